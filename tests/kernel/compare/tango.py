"""Tango's (1998) score method by its closed form and by bisection: an oracle for the score method of the service."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.intervals import two_sided_z


def tango_z(b: ArrayLike, c: ArrayLike, n: ArrayLike, difference: ArrayLike = 0.0) -> Array:
    """Score statistic of the hypothesis that accuracy of the first less the second is ``difference``. Tango (1998).

    z = (b - c - n d) / sqrt(n (2 q + d (1 - d))) with q the maximum-likelihood share of c under the hypothesis; 0
    where both are 0.
    """
    b, c = np.asarray(b, dtype=np.float64), np.asarray(c, dtype=np.float64)
    n, d = np.asarray(n, dtype=np.float64), np.asarray(difference, dtype=np.float64)
    linear = (2.0 * n - b + c) * d - b - c
    constant = -c * d * (1.0 - d)
    root = np.sqrt(np.maximum(linear * linear - 8.0 * n * constant, 0.0))
    with silently():
        # The root of 2 n q^2 + linear q + constant = 0, in the form that does not cancel.
        share = np.where(linear <= 0, (root - linear) / (4.0 * n), -2.0 * constant / (root + linear))
        share = np.where(np.isnan(share), 0.0, share)
        gap = b - c - n * d
        z = gap / np.sqrt(np.maximum(n * (2.0 * share + d * (1.0 - d)), 0.0))
    return np.where(gap == 0, 0.0, z)


def tango_interval(b: ArrayLike, c: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """Score interval of the difference in accuracy of paired runs: the differences that ``tango_z`` does not reject."""
    z = two_sided_z(level)
    b, c, n = np.broadcast_arrays(*(np.asarray(value, dtype=np.float64) for value in (b, c, n)))
    with silently():
        estimate = (b - c) / n

    def statistic(difference: Array) -> Array:
        return tango_z(b, c, n, difference)

    one = np.ones(estimate.shape)
    low, high = _crossing(statistic, -one, estimate, z), _crossing(statistic, estimate, one, -z)
    # At an end of the range there is nothing beyond the estimate.
    return np.where(estimate == -1.0, -1.0, low), np.where(estimate == 1.0, 1.0, high)


def _crossing(statistic: Callable[[Array], Array], low: Array, high: Array, target: float) -> Array:
    """Point (...) between low and high (...) where a non-increasing statistic falls below the target.

    A statistic that is NaN counts as below: bracket from the side on which it exists.
    """
    low, high = np.array(low, dtype=np.float64), np.array(high, dtype=np.float64)
    for _ in range(54):
        middle = (low + high) / 2.0
        above = statistic(middle) > target
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return (low + high) / 2.0
