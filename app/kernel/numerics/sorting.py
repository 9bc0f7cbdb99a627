"""Fast sorting of floats.

numpy sorts 16-bit numbers by radix, so passes over those do most of the work. Large temporary arrays cost more than the
arithmetic on them; few are made, and they are reused.
"""

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array

Order = NDArray[np.intp]

# Below this size a plain sort is faster.
_SMALL = 2048
# Leaves room for rounding below the highest level.
_LEVELS_32 = 2.0**32 - 1024.0
# Neighbours out of order that are exchanged one by one; more of them are left to timsort.
_FEW = 4096
_EXCHANGES = 16


def ascending_order(values: Array) -> tuple[Order, Array]:
    """Indices (n,) that sort finite values (n,), ties in any order, and the sorted values.

    The values are rounded to 32 bits and sorted by their lower, then by their upper half. Pairs that rounding left in
    the wrong order are repaired afterwards.
    """
    low, scale = _spread(values)
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


def _spread(values: Array) -> tuple[float, np.float64]:
    """Lowest value and the factor that spreads the values over the 32-bit levels; 0 where no finite factor does."""
    low, high = float(values.min()), float(values.max())
    with np.errstate(over="ignore", divide="ignore"):
        scale = np.float64(_LEVELS_32) / (high - low)
    return low, scale if np.isfinite(scale) else np.float64(0.0)


def _exchange(ordered: Array, order: Order) -> bool:
    """Swap the few neighbours that stand in the wrong order, in place. False when that does not suffice."""
    wrong = np.flatnonzero(ordered[1:] < ordered[:-1])
    for _ in range(_EXCHANGES):
        if wrong.size == 0:
            return True
        if wrong.size > _FEW:
            return False
        # Swaps made at the same time must not overlap.
        first = wrong[np.concatenate([[True], np.diff(wrong) > 1])]
        for array in (ordered, order):
            array[first], array[first + 1] = array[first + 1], array[first]
        near = np.unique(np.concatenate([first - 1, first, first + 1, wrong]))
        near = near[(near >= 0) & (near < ordered.size - 1)]
        wrong = near[ordered[near + 1] < ordered[near]]
    return wrong.size == 0
