"""McNemar's test for several classes.

On the square table (K, K) of the classes that two runs predict, truth not needed: are they predicted equally often, and
is one exchanged for another as often as the other for it? Such tests say that predictions differ, and nothing about
which run is right more often. On the samples that one run only has right: are the recalls of all classes equal?
"""

from dataclasses import dataclass
from math import nan

import numpy as np

from app.kernel.compare.paired.joint import JointCounts
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.special import chi_squared_upper_tail

# Of a share of the variance that is left: less is none.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True)
class ChiSquared:
    """A chi-squared statistic with its degrees of freedom and p-value; NaN where there is no statistic."""

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


def discordant(joint: JointCounts) -> tuple[Array, Array]:
    """Samples (K) of each actual class that only the first of two runs has right, and that only the second has."""
    first, second = joint.correct()
    both = (
        np.bincount(joint.truth[one], weights=joint.counts[one], minlength=joint.n_classes).astype(np.float64)
        for one in (first & ~second, second & ~first)
    )
    only_first, only_second = both
    return only_first, only_second


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
    """Equal margins by the Wald statistic SM / (1 - SM/n). Bhapkar (1966).

    NaN where SM = n: then the differences of margins do not vary over the samples, so that their Wald test is none.
    """
    plain, total = stuart_maxwell(table), float(table.sum())
    left = 1.0 - plain.statistic / total
    if left <= _ROUNDING:
        return ChiSquared(nan, plain.freedom, nan)
    return _chi_squared(plain.statistic / left, plain.freedom)


def equal_recalls(better: Array, worse: Array) -> ChiSquared:
    """Equal recalls of two runs in every class: sum (b - c)^2 / (b + c) over the classes. Lachenbruch & Lynch (1998).

    Of two classes that is their generalised test of sensitivity and specificity together.

    Args:
        better: Samples (K) of each class that only the first run has right, b.
        worse: The same of the second, c.
    """
    both, gap = better + worse, better - worse
    some = both > 0
    return _chi_squared(float((gap[some] ** 2 / both[some]).sum()), int(some.sum()))
