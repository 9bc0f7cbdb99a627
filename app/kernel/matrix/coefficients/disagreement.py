"""Disagreement of ordered classes: a confusion counts by how far apart the two classes are."""

from functools import cache, lru_cache

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, total

# |i-j| (`linear`), (i-j)^2 (`quadratic`), or a matrix (K, K) with actual classes as rows.
Weights = str | tuple[tuple[float, ...], ...]


@lru_cache(maxsize=8)
def _disagreement(n_classes: int, weights: Weights) -> Array:
    """Disagreement weights |i-j| or (i-j)^2 or those given, of shape (K, K)."""
    if not isinstance(weights, str):
        given = np.array(weights)
        return given if given[0, 0] == 0.0 else 1.0 - given
    distance = np.abs(np.subtract.outer(np.arange(n_classes, dtype=np.float64), np.arange(n_classes, dtype=np.float64)))
    return distance if weights == "linear" else distance * distance


def disagreements(t: Table, weights: Weights) -> tuple[Array, Array]:
    """sum_ij v_ij n_ij and sum_ij v_ij P_i T_j."""
    if weights == "linear":
        return t.distance, t.chance_distance
    v = _disagreement(t.n_classes, weights)
    return total(total(t.counts * v)), total((t.actual @ v) * t.predicted)


@cache
def _credit_sums(n_classes: int, weights: str) -> Array:
    """sum_j (1 - v_ij/v_max) of shape (K,)."""
    v = _disagreement(n_classes, weights)
    sums: Array = (1.0 - v / v.max()).sum(axis=0)
    return sums


def weighted_alpha_parts(t: Table, weights: str) -> tuple[Array, Array]:
    """1 - p_o and 1 - p_e of the weighted alpha. Unlike other chance agreements this p_e can exceed 1."""
    largest = float(t.n_classes - 1) ** (1 if weights == "linear" else 2)
    observed, expected = disagreements(t, weights)
    # sum (1 - v_ij/v_max)(P_i + T_j)^2, multiplied out so that no (..., K, K) array is made.
    squares = total((t.actual * t.actual + t.predicted * t.predicted) * _credit_sums(t.n_classes, weights))
    chance = (squares + 2.0 * (t.pairs - expected / largest)) / (4.0 * t.pairs)
    return observed / (largest * t.n), 1.0 - chance
