"""Do two runs predict the classes equally often? On the square table of their predictions (K, K), truth not needed.

These tests say that predictions differ. They say nothing about which run is right more often.
"""

from dataclasses import dataclass

import numpy as np

from app.kernel.compare.paired.joint import JointCounts
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.special import chi_squared_upper_tail


@dataclass(frozen=True, slots=True)
class ChiSquared:
    """A chi-squared statistic with its degrees of freedom and p-value."""

    statistic: float
    freedom: int
    p: float


def _chi_squared(statistic: float, freedom: int) -> ChiSquared:
    return ChiSquared(statistic, freedom, float(chi_squared_upper_tail(statistic, freedom)) if freedom else 1.0)


def prediction_table(joint: JointCounts) -> Array:
    """How often the first run's class (row) met the second run's (column), (K, K)."""
    first, second = joint.predictions
    size = joint.n_classes
    met = np.bincount(first * size + second, weights=joint.counts, minlength=size * size)
    return met.astype(np.float64).reshape(size, size)


def bowker(table: Array) -> ChiSquared:
    """Symmetry of the table: sum (n_ij - n_ji)^2 / (n_ij + n_ji) over the pairs that occur. Bowker (1948)."""
    rows, columns = np.triu_indices(table.shape[0], 1)
    both, gap = table[rows, columns] + table[columns, rows], table[rows, columns] - table[columns, rows]
    some = both > 0
    return _chi_squared(float((gap[some] ** 2 / both[some]).sum()), int(some.sum()))


def stuart_maxwell(table: Array) -> ChiSquared:
    """Equal margins of the table: d' S^-1 d with d the differences of margins. Stuart (1955), Maxwell (1970).

    Classes on which the runs never differ are left out.
    """
    differing = np.flatnonzero((table.sum(axis=0) + table.sum(axis=1) - 2 * np.diagonal(table)) > 0)
    if differing.size < 2:
        return _chi_squared(0.0, 0)
    inner = table[np.ix_(differing, differing)]
    gaps = inner.sum(axis=1) - inner.sum(axis=0)
    spread = -(inner + inner.T)
    np.fill_diagonal(spread, inner.sum(axis=1) + inner.sum(axis=0) - 2 * np.diagonal(inner))
    # One class of every separate group of confused classes is redundant, which the rank tells.
    rank = int(np.linalg.matrix_rank(spread, hermitian=True))
    return _chi_squared(float(gaps @ np.linalg.pinv(spread, hermitian=True) @ gaps), rank)


def bhapkar(table: Array) -> ChiSquared:
    """Equal margins by the Wald statistic SM / (1 - SM/n). Bhapkar (1966)."""
    plain = stuart_maxwell(table)
    return _chi_squared(plain.statistic / (1.0 - plain.statistic / float(table.sum())), plain.freedom)
