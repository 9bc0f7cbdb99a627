"""Sorting fast: numpy sorts 16-bit numbers by radix, so passes over those do most of the work.

Large temporary arrays cost more than the arithmetic on them; they are few here and reused.
"""

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics import Array

Order = NDArray[np.intp]
Flags = NDArray[np.uint8]

# Below this size a plain sort is faster.
_SMALL = 2048
_BLOCK = 8192
# Leaves room for rounding below the highest level.
_LEVELS_32 = 2.0**32 - 1024.0
_LEVELS_16 = 65535.0
# Rows of this length are sorted after a 16-bit pass, twice, half a row apart: that repairs every level of half a row.
_ROW = 64
_FLAG_BITS = np.uint64(2)
_FLAG_MASK = np.uint64(3)
# Neighbours out of order that are exchanged one by one; more of them are left to timsort.
_FEW = 4096
_EXCHANGES = 16


def ascending_order(values: Array) -> tuple[Order, Array]:
    """Indices (n,) that sort finite values (n,), ties in any order, and the sorted values.

    The values are rounded to 32 bits and sorted by their lower, then by their upper half. What rounding has left in
    disorder is
    next to nothing. Where rounding tells values badly apart, there is merely more to repair.
    """
    low, scale = _spread(values, _LEVELS_32)
    if values.size < _SMALL or scale == 0.0:
        order = np.argsort(values)
        return order, values.take(order)
    scaled = values - low
    scaled *= scale
    levels = scaled.astype(np.uint32)
    by_lower = np.argsort(levels.astype(np.uint16), kind="stable")
    levels >>= np.uint32(16)
    order = by_lower.take(np.argsort(levels.astype(np.uint16).take(by_lower), kind="stable"))
    ordered = values.take(order, out=scaled, mode="clip")
    if _exchange(ordered, order):
        return order, ordered
    repair = np.argsort(ordered, kind="stable")
    return order.take(repair), ordered.take(repair)


def sort_flagged(values: Array, flags: Flags) -> tuple[Array, Flags]:
    """Sorted values (n,) with the flags that belong to them; ties in any order. Overwrites both.

    Numbers in [0, 2) leave the two highest of their 64 bits unused: shifted out, they make room for the flags, and the
    keys sort as integers without an index and without losing a digit.

    Args:
        values: numbers in [0, 2), shape (n,).
        flags: 0 to 3, shape (n,).
    """
    keys = values.view(np.uint64)
    low, scale = _spread(values, _LEVELS_16)
    levels = np.empty(values.shape, dtype=np.uint16)
    for start in range(0, values.size, _BLOCK):
        part = slice(start, start + _BLOCK)
        np.multiply(values[part] - low, scale, out=levels[part], casting="unsafe")
        keys[part] <<= _FLAG_BITS
        keys[part] |= flags[part]
    if values.size < _SMALL:
        keys.sort()
    else:
        keys = keys.take(np.argsort(levels, kind="stable"))
        for start in (0, _ROW // 2):
            rows = (keys.size - start) // _ROW
            keys[start : start + rows * _ROW].reshape(rows, _ROW).sort(axis=1)
        keys[-2 * _ROW :].sort()
    np.bitwise_and(keys, _FLAG_MASK, out=flags, casting="unsafe")
    keys >>= _FLAG_BITS
    ordered = keys.view(np.float64)
    if (ordered[1:] >= ordered[:-1]).all():
        return ordered, flags
    repair, ordered = ascending_order(ordered)
    return ordered, flags.take(repair)


def _spread(values: Array, levels: float) -> tuple[float, np.float64]:
    """Lowest value and the factor that spreads the values over 0..levels; 0 where no factor does."""
    low, high = float(values.min()), float(values.max())
    with np.errstate(over="ignore", divide="ignore"):
        scale = np.float64(levels) / (high - low)
    return low, scale if np.isfinite(scale) else np.float64(0.0)


def _exchange(ordered: Array, order: Order) -> bool:
    """Put a few neighbours right that stand in the wrong order, in place. False when that is not enough."""
    wrong = np.flatnonzero(ordered[1:] < ordered[:-1])
    for _ in range(_EXCHANGES):
        if wrong.size == 0:
            return True
        if wrong.size > _FEW:
            return False
        # No two exchanges at once may touch.
        first = wrong[np.concatenate([[True], np.diff(wrong) > 1])]
        for array in (ordered, order):
            array[first], array[first + 1] = array[first + 1], array[first]
        near = np.unique(np.concatenate([first - 1, first, first + 1, wrong]))
        near = near[(near >= 0) & (near < ordered.size - 1)]
        wrong = near[ordered[near + 1] < ordered[near]]
    return wrong.size == 0
