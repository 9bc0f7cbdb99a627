"""Sorting probabilities fast: numpy sorts 16-bit keys by radix, so sort coarsely first and repair what is left.

All orders are ascending and leave ties in no particular order: whoever needs one groups them.
"""

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics import Array

Order = NDArray[np.intp]
Flags = NDArray[np.uint8]

# Below this size a plain sort is faster.
_SMALL = 4096
_BUCKETS = 65535
# Rows sorted after the coarse pass, twice, half a row apart: that repairs every bucket of up to half a row.
_ROW = 64
_FLAG_BITS = np.uint64(2)


def _coarse_order(values: Array) -> Order | None:
    """Order of values rounded to 65536 levels, or None where levels would not tell them apart."""
    low, high = float(values.min()), float(values.max())
    with np.errstate(over="ignore", divide="ignore"):
        scale = np.float64(_BUCKETS) / (high - low)
    if not np.isfinite(scale * max(abs(low), abs(high))) or scale == 0.0:
        return None
    scaled = values * scale
    scaled -= scaled.min()
    return np.argsort(scaled.astype(np.uint16), kind="stable")


def ascending_order(values: Array) -> Order:
    """Indices (n,) that sort finite values (n,), ties in any order."""
    coarse = _coarse_order(values) if values.size >= _SMALL else None
    if coarse is None:
        return np.argsort(values)
    nearly = values.take(coarse)
    if (nearly[1:] >= nearly[:-1]).all():
        return coarse
    # Timsort finds the long sorted runs that the coarse pass has left.
    return coarse.take(np.argsort(nearly, kind="stable"))


def sort_flagged(values: Array, flags: Flags) -> tuple[Array, Flags]:
    """Sorted values (n,) with the flags that belong to them.

    Numbers in [0, 2) leave the two highest of their 64 bits unused: shifted out, they make room for the flags, and the keys
    sort as integers without an index and without losing a digit.

    Args:
        values: numbers in [0, 2), shape (n,).
        flags: 0 to 3, shape (n,).
    """
    keys = values.view(np.uint64) << _FLAG_BITS
    keys |= flags
    coarse = _coarse_order(values) if values.size >= _SMALL else None
    if coarse is None:
        keys.sort()
    else:
        keys = keys.take(coarse)
        for start in (0, _ROW // 2):
            rows = (keys.size - start) // _ROW
            keys[start : start + rows * _ROW].reshape(rows, _ROW).sort(axis=1)
        keys[-2 * _ROW :].sort()
    sorted_flags = (keys & np.uint64(3)).astype(np.uint8)
    keys >>= _FLAG_BITS
    ordered = keys.view(np.float64)
    if not (ordered[1:] >= ordered[:-1]).all():
        keys <<= _FLAG_BITS
        keys |= sorted_flags
        keys.sort(kind="stable")
        sorted_flags = (keys & np.uint64(3)).astype(np.uint8)
        keys >>= _FLAG_BITS
    return ordered, sorted_flags
