"""Inverting a test into an interval: where a statistic crosses a target, or a condition ceases to hold."""

from collections.abc import Callable

import numpy as np

from app.kernel.numerics.arrays import Array

# Each step halves the bracket: after these it is below the spacing of numbers near 1.
_STEPS = 54


def crossing(statistic: Callable[[Array], Array], low: Array, high: Array, target: float) -> Array:
    """Point (...) between low and high (...) where a non-increasing statistic falls below the target.

    A statistic that is NaN counts as below: bracket from the side on which it exists.
    """
    low, high = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    for _ in range(_STEPS):
        middle = (low + high) / 2.0
        above = statistic(middle) > target
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (low + high) / 2.0


def last_inside(inside: Callable[[float], bool], start: float, end: float, *, steps: int = 60) -> float:
    """The point farthest from start, where a condition holds, towards end at which it still does."""
    if inside(end):
        return end
    for _ in range(steps):
        middle = (start + end) / 2.0
        start, end = (middle, end) if inside(middle) else (start, middle)
    return start
