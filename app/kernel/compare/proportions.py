"""Difference of two independent proportions: x1 of n1 less x2 of n2. Everything is elementwise."""

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.intervals import wilson


def _floats(*values: ArrayLike) -> list[Array]:
    return [np.asarray(value, dtype=np.float64) for value in values]


def newcombe_interval(
    x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, level: float = 0.95
) -> tuple[Array, Array]:
    """Hybrid score interval: the distances to the Wilson limits of both, combined as a hypotenuse.

    Newcombe (1998b), method 10.
    """
    x1, n1, x2, n2 = _floats(x1, n1, x2, n2)
    low1, high1 = wilson(x1, n1, level)
    low2, high2 = wilson(x2, n2, level)
    with silently():
        p1, p2 = x1 / n1, x2 / n2
    difference = p1 - p2
    return difference - np.hypot(p1 - low1, high2 - p2), difference + np.hypot(high1 - p1, p2 - low2)


def restricted_shares(
    x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, difference: ArrayLike
) -> tuple[Array, Array]:
    """Maximum-likelihood proportions under p1 - p2 = difference. Miettinen & Nurminen (1985), appendix; Farrington &
    Manning (1990).

    p2 is the root in the feasible interval of (n1 + n2) p^3 + l2 p^2 + l1 p + l0 = 0 with
    l2 = (n1 + 2 n2) d - n1 - n2 - x1 - x2, l1 = (n2 d - n1 - n2 - 2 x2) d + x1 + x2, l0 = x2 d (1 - d), found by
    trigonometry.
    """
    x1, n1, x2, n2, d = _floats(x1, n1, x2, n2, difference)
    n, x = n1 + n2, x1 + x2
    l2 = (n1 + 2.0 * n2) * d - n - x
    l1 = (n2 * d - n - 2.0 * x2) * d + x
    l0 = x2 * d * (1.0 - d)
    with silently():
        v = l2**3 / (3.0 * n) ** 3 - l1 * l2 / (6.0 * n * n) + l0 / (2.0 * n)
        u = np.copysign(np.sqrt(np.maximum(l2 * l2 / (3.0 * n) ** 2 - l1 / (3.0 * n), 0.0)), v)
        angle = (np.pi + np.arccos(np.clip(v / u**3, -1.0, 1.0))) / 3.0
        p2 = 2.0 * u * np.cos(angle) - l2 / (3.0 * n)
    p2 = np.where(u == 0, -l2 / (3.0 * n), p2)
    p2 = np.clip(p2, np.maximum(0.0, -d), np.minimum(1.0, 1.0 - d))
    return p2 + d, p2


def score_z(x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, difference: ArrayLike = 0.0) -> Array:
    """Score statistic of p1 - p2 = difference with the variance at ``restricted_shares``. Farrington & Manning (1990).

    0 where the gap is 0.
    """
    x1, n1, x2, n2, d = _floats(x1, n1, x2, n2, difference)
    p1, p2 = restricted_shares(x1, n1, x2, n2, d)
    variance = p1 * (1.0 - p1) / n1 + p2 * (1.0 - p2) / n2
    gap = x1 / n1 - x2 / n2 - d
    with silently():
        z = gap / np.sqrt(np.maximum(variance, 0.0))
    return np.where(gap == 0, 0.0, z)
