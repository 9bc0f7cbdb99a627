"""Exact posteriors of the means of two recalls: no sampling, the same digits every time.

With independent recalls x ~ Beta(a, b) and y ~ Beta(c, d), P(M <= m) = E_x[F_y(boundary)], the boundary being the y at
which the mean of x and y is m. Brodersen et al. (2010) for the arithmetic mean; the same holds for the other two.
"""

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.special import betainc

from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.scipy_bridge import beta_quantile
from app.kernel.uncertainty.draws import Prior, pseudo_counts

_NODES = 400


def _harmonic_boundary(m: Array, x: Array) -> Array:
    # Where 2x <= m even y = 1 stays below.
    return np.where(2.0 * x > m, m * x / (2.0 * x - m), 1.0)


BOUNDARIES: dict[str, Callable[[Array, Array], Array]] = {
    "balanced_accuracy": lambda m, x: 2.0 * m - x,
    "g_mean": lambda m, x: m * m / x,
    "h_mean": _harmonic_boundary,
}


@cache
def _quadrature() -> tuple[Array, Array]:
    """Nodes and weights on (0, 1), denser towards the ends: Gauss-Legendre after u = t^2 (3 - 2t)."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    t = (nodes + 1.0) / 2.0
    return t * t * (3.0 - 2.0 * t), weights / 2.0 * 6.0 * t * (1.0 - t)


def mean_cdf(counts: Array, key: str, values: Array, prior: Prior = Prior.EDGE) -> Array:
    """P(M <= value) for values (V) of a mean of the two recalls of one matrix (2, 2) with samples in both rows.

    Args:
        counts: the matrix.
        key: ``balanced_accuracy``, ``g_mean`` or ``h_mean``.
        values: where.
        prior: see ``Prior``; custom pseudo-counts are not offered here.
    """
    parameters = counts + pseudo_counts(counts, prior)
    (a, b), (c, d) = (parameters[0, 0], parameters[0, 1]), (parameters[1, 1], parameters[1, 0])
    nodes, weights = _quadrature()
    x = beta_quantile(a, b, nodes)
    with silently():
        boundary = np.clip(BOUNDARIES[key](np.asarray(values, dtype=np.float64)[:, None], x), 0.0, 1.0)
    probabilities: Array = betainc(c, d, boundary) @ weights
    return probabilities


def mean_limits(counts: Array, key: str, level: float = 0.95, prior: Prior = Prior.EDGE) -> tuple[float, float]:
    """Equal-tailed posterior limits of a mean of the two recalls of one matrix (2, 2), by bisection."""
    tails = np.array([(1.0 - level) / 2.0, (1.0 + level) / 2.0])
    low, high = np.zeros(2), np.ones(2)
    for _ in range(48):
        middle = (low + high) / 2.0
        below = mean_cdf(counts, key, middle, prior) < tails
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    return float(low[0]), float(high[1])
