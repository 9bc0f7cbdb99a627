"""MOVER: the interval of a mean from the intervals of its parts, without sampling. Zou & Donner (2008).

The recalls of different classes are independent, so with limits l_i, u_i of each recall r_i the mean of f(r) lies in
mean f(r) -+ (1/K) sqrt(sum (f(r_i) - f(limit_i))^2), for f the identity (A), the logarithm (G) and the reciprocal (H).

A recall of 0 makes G and H zero and f infinite. Their lower end is then 0, and their upper end is the formula's with
the upper limit of that recall in the place of the recall. The limit of the formula as one recall falls to 0 is a little
lower, because there the other recalls stay at their estimates: the rule errs to the safe side.
"""

import numpy as np

from app.kernel.numerics import Array, ones, silently

# From so many classes on, and below so many samples in the smallest, limits were seen to hold the truth less than 93
# times in 100: for 10 classes, 92 and 90 % (A and H) at 25 samples each, 94 and 93 % at 100 (benchmarks/coverage.py).
_MANY_CLASSES = 8
_SMALL_CLASS = 150


def undercovers(actual: Array) -> bool:
    """Are limits of means over classes of these sizes (K) known to be too narrow? The posterior with the edge prior
    is then better.
    """
    present = actual[actual > 0]
    return bool(present.size >= _MANY_CLASSES and present.min() < _SMALL_CLASS)


def mean_limits(rates: Array, low: Array, high: Array) -> Array:
    """Limits of the arithmetic, the geometric and the harmonic mean of independent rates.

    Args:
        rates: (..., K), NaN where undefined.
        low: lower limits of each, (..., K).
        high: upper limits of each, (..., K).

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
        logarithms = _ends(np.log(positive), np.log(limits))
        reciprocals = _ends(1.0 / positive, 1.0 / limits)
        ends = np.array([_ends(rates, limits), np.exp(logarithms), 1.0 / reciprocals])
        if degenerate:
            some = zero.any(axis=-1) & ~np.isnan(rates.dot(weights))
            ends[1:, 0] = np.where(some, 0.0, ends[1:, 0])
    return ends


def _ends(parts: Array, limits: Array) -> Array:
    """Mean of parts (..., K) moved towards either set of limits (2, ..., K): (2, ...)."""
    size = parts.shape[-1]
    weights = ones(size)
    moved = limits - parts
    # The limits of one side move a mean all the same way, up or down with the direction of its transformation.
    distance = np.copysign(np.sqrt((moved * moved).dot(weights)), moved.dot(weights))
    ends: Array = (parts.dot(weights) + distance) / size
    return ends
