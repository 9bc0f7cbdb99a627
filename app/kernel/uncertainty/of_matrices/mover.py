"""MOVER: the interval of a mean from the intervals of its parts, without sampling. Zou & Donner (2008).

The recalls of different classes are independent, so with limits l_i, u_i of each recall r_i the mean of f(r) lies in
mean f(r) -+ (1/K) sqrt(sum (f(r_i) - f(limit_i))^2), for f the identity (A), the logarithm (G) and the reciprocal (H).

A recall of 0 makes G and H zero and f infinite. Their lower end is then 0, and their upper end is the formula's with
the upper limit of that recall in the place of the recall. The limit of the formula as one recall falls to 0 is a little
lower, because there the other recalls stay at their estimates: the rule errs to the safe side.
"""

from collections.abc import Callable
from math import fsum

import numpy as np

from app.kernel.numerics.arrays import Array, ones, silently

# Limits of H were seen to hold the truth less than 93 times in 100 where the reciprocals of the class sizes add up to
# more than this: 88 times with 10 classes of 25 samples each and 94 with 10 of 100, 64 to 94 with 35 of 25 and 86 to
# 94 with 35 of 100, depending on the recalls (benchmarks/coverage.py). Every class adds its skewness.
_MOST_RECIPROCALS = 1.0 / 8.0
_FEWEST_CLASSES = 3
# From moves (..., K) to how far their sum moves (...).
Spread = Callable[[Array], Array]


def undercovers(actual: Array) -> bool:
    """Are limits of means over classes of these sizes (K) known to be too narrow? The posterior is then better."""
    # Plain numbers, which take a fifth of the time for a handful of classes.
    present = [size for size in actual.tolist() if size > 0]
    return len(present) >= _FEWEST_CLASSES and fsum(1.0 / size for size in present) > _MOST_RECIPROCALS


def _independent(moved: Array) -> Array:
    """Root of the sum of squares (...) of moves (..., K)."""
    root: Array = np.sqrt((moved * moved).dot(ones(moved.shape[-1])))
    return root


def mean_limits(rates: Array, low: Array, high: Array, *, spread: Spread = _independent) -> Array:
    """Limits of the arithmetic, the geometric and the harmonic mean of rates.

    Args:
        rates: (..., K), NaN where undefined.
        low: lower limits of each, (..., K).
        high: upper limits of each, (..., K).
        spread: how far the sum moves when every rate moves to its limit: for correlated rates the root of the sum of
            all products of two moves and their correlation.

    Returns:
        (3, 2, ...): A, G, H by low, high. NaN where a rate is.
    """
    size = rates.shape[-1]
    weights = ones(size)
    with silently():
        limits = np.array([low, high])
        zero = rates == 0
        degenerate = bool(zero.any())
        positive = np.where(zero, high, rates) if degenerate else rates
        logarithms = _ends(np.log(positive), np.log(limits), spread)
        reciprocals = _ends(1.0 / positive, 1.0 / limits, spread)
        ends = np.array([_ends(rates, limits, spread), np.exp(logarithms), 1.0 / reciprocals])
        if degenerate:
            some = zero.any(axis=-1) & ~np.isnan(rates.dot(weights))
            ends[1:, 0] = np.where(some, 0.0, ends[1:, 0])
    return ends


def _ends(parts: Array, limits: Array, spread: Spread) -> Array:
    """Mean of parts (..., K) moved towards either set of limits (2, ..., K): (2, ...)."""
    size = parts.shape[-1]
    weights = ones(size)
    moved = limits - parts
    # The limits of one side move a mean all the same way, up or down with the direction of its transformation.
    distance = np.copysign(spread(moved), moved.dot(weights))
    ends: Array = (parts.dot(weights) + distance) / size
    return ends
