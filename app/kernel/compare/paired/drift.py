"""McNemar's test for several classes.

On the square table (K, K) of the classes that two runs predict, truth not needed: are they predicted equally often, and
is one exchanged for another as often as the other for it? Such tests say that predictions differ, and nothing about
which run is right more often. On the samples that one run only has right: are the recalls of all classes equal?

All are sums over the samples held against the sum of the squares of what each adds. Of samples with weights the sums
are of weights, and the squares those of the weights (linearised as of survey samples, Rao & Scott 1981, in the form of
score tests): with one weight for all that is the plain test.
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


def chi_squared(statistic: float, freedom: int) -> ChiSquared:
    """A statistic with its p."""
    return ChiSquared(statistic, freedom, float(chi_squared_upper_tail(statistic, freedom)) if freedom else 1.0)


def prediction_table(joint: JointCounts, *, squares: bool = False) -> Array:
    """How often the first run's class (row) met the second run's (column), (K, K), or the weight of such samples, or
    the sum of their squared weights.
    """
    first, second = joint.predictions
    size = joint.n_classes
    met = np.bincount(first * size + second, weights=_masses(joint, squares=squares), minlength=size * size)
    return met.astype(np.float64).reshape(size, size)


def _masses(joint: JointCounts, *, squares: bool) -> Array:
    return joint.masses if not squares or joint.weights is None else joint.masses * joint.weights


def discordant(joint: JointCounts, *, squares: bool = False) -> tuple[Array, Array]:
    """Samples (K) of each actual class that only the first of two runs has right, and that only the second has; or
    their weight, or the sum of their squared weights.
    """
    first, second = joint.correct()
    masses = _masses(joint, squares=squares)
    both = (
        np.bincount(joint.truth[one], weights=masses[one], minlength=joint.n_classes).astype(np.float64)
        for one in (first & ~second, second & ~first)
    )
    only_first, only_second = both
    return only_first, only_second


def bowker(table: Array, squares: Array | None = None) -> ChiSquared:
    """Symmetry of the table: sum (n_ij - n_ji)^2 / (n_ij + n_ji) over the pairs that occur. Bowker (1948).

    Args:
        table: (K, K) of samples, or of what they weigh.
        squares: (K, K) of squared weights; None where samples have none.
    """
    rows, columns = np.triu_indices(table.shape[0], 1)
    spread = table if squares is None else squares
    both, gap = spread[rows, columns] + spread[columns, rows], table[rows, columns] - table[columns, rows]
    some = both > 0
    return chi_squared(float((gap[some] ** 2 / both[some]).sum()), int(some.sum()))


def stuart_maxwell(table: Array, squares: Array | None = None) -> ChiSquared:
    """Equal margins of the table: d' S^-1 d with d the differences of margins. Stuart (1955), Maxwell (1970).

    Classes on which the runs never differ are left out. Arguments are those of ``bowker``.
    """
    gaps, spread = _margins(table, squares)
    return quadratic(gaps, spread)


def bhapkar(table: Array, squares: Array | None = None) -> ChiSquared:
    """Equal margins by the Wald statistic, whose variance is not that under equality but around what was found; without
    weights SM / (1 - SM/n). Bhapkar (1966).

    NaN where SM = n: then the differences of margins do not vary over the samples, so that their Wald test is none.
    Arguments are those of ``bowker``.
    """
    plain, total = stuart_maxwell(table, squares), float(table.sum())
    if squares is None:
        left = 1.0 - plain.statistic / total
        if left <= _ROUNDING:
            return ChiSquared(nan, plain.freedom, nan)
        return chi_squared(plain.statistic / left, plain.freedom)
    if plain.freedom == 0:
        return plain
    gaps, spread = _margins(table, squares)
    mean, (added, _) = gaps / total, _margins(squares, squares)
    # Sum of w^2 (u - mean) (u - mean)' with u what a sample adds.
    mixed = np.outer(mean, added)
    centred = spread - mixed - mixed.T + float(squares.sum()) * np.outer(mean, mean)
    found = quadratic(gaps, centred)
    return found if found.freedom == plain.freedom else ChiSquared(nan, plain.freedom, nan)


def _margins(table: Array, squares: Array | None) -> tuple[Array, Array]:
    """Differences (k) of the margins of classes on which the runs differ, and their variance (k, k) under equality."""
    each = table if squares is None else squares
    differing = np.flatnonzero((each.sum(axis=0) + each.sum(axis=1) - 2 * np.diagonal(each)) > 0)
    inner, of_squares = (one[np.ix_(differing, differing)] for one in (table, each))
    spread = -(of_squares + of_squares.T)
    np.fill_diagonal(spread, of_squares.sum(axis=1) + of_squares.sum(axis=0) - 2 * np.diagonal(of_squares))
    return inner.sum(axis=1) - inner.sum(axis=0), spread


def quadratic(gaps: Array, spread: Array) -> ChiSquared:
    """The statistic d' S^- d of sums d (k) with variances S (k, k)."""
    if gaps.size == 0:
        return chi_squared(0.0, 0)
    # One class of every separate group of confused classes is redundant, which the rank tells.
    rank = int(np.linalg.matrix_rank(spread, hermitian=True))
    return chi_squared(float(gaps @ np.linalg.pinv(spread, hermitian=True) @ gaps), rank)


def equal_recalls(better: Array, worse: Array, squares: Array | None = None) -> ChiSquared:
    """Equal recalls of two runs in every class: sum (b - c)^2 / (b + c) over the classes. Lachenbruch & Lynch (1998).

    Of two classes that is their generalised test of sensitivity and specificity together.

    Args:
        better: Samples (K) of each class that only the first run has right, b, or what they weigh.
        worse: The same of the second, c.
        squares: (K) of both, of squared weights; None where samples have none.
    """
    both, gap = better + worse if squares is None else squares, better - worse
    some = both > 0
    return chi_squared(float((gap[some] ** 2 / both[some]).sum()), int(some.sum()))
