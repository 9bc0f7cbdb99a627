"""Tests of counts of two runs on the same samples: McNemar's test, several classes, predictive values, samples in
groups.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import nan

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.compare.paired.joint import Codes, JointCounts
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.scipy_bridge import (
    chi_squared_upper_tail,
    f_upper_tail,
    fair_binomial_cdf,
    fair_binomial_mass,
    student_cdf,
    student_quantile,
)
from app.kernel.samples.losses import sums_by_code
from app.kernel.uncertainty.intervals import two_sided_z


def mcnemar_mid_p(b: ArrayLike, c: ArrayLike) -> Array:
    """Two-sided mid-p of McNemar's test of b = c; 1 where b = c. Fagerland, Lydersen & Laake (2013).

    The exact p, 2 P(Bin(b+c, 1/2) <= min), less P(min).
    """
    b, c = np.asarray(b, dtype=np.float64), np.asarray(c, dtype=np.float64)
    total, smaller = b + c, np.minimum(b, c)
    p = 2.0 * fair_binomial_cdf(smaller, total) - fair_binomial_mass(smaller, total)
    return np.where(b == c, 1.0, p)


@dataclass(frozen=True, slots=True)
class PairingBounds:
    """What the unknown pairing of two runs on one test set leaves open about McNemar's test.

    Attributes:
        difference: b - c, known without the pairing.
        fewest: smallest possible number of discordant items.
        most: largest possible number.
        smallest_p: mid-p at ``fewest``; it grows with the discordant items.
    """

    difference: float
    fewest: float
    most: float
    smallest_p: float


def pairing_bounds(first: Array, second: Array, sizes: Array) -> PairingBounds:
    """Range of McNemar's p over every pairing of two runs on the same items.

    The discordant items number at least sum |a_i - b_i| and at most sum min(a_i + b_i, 2 n_i - a_i - b_i); p grows with
    them.

    Args:
        first: Items (K) of each class that the first run has right, a.
        second: The same of the second run, b.
        sizes: Items (K) of each class, n.
    """
    difference = float(first.sum() - second.sum())
    fewest = float(np.abs(first - second).sum())
    most = float(np.minimum(first + second, 2 * sizes - first - second).sum())
    smallest_p = mcnemar_mid_p((fewest + difference) / 2.0, (fewest - difference) / 2.0)
    return PairingBounds(difference, fewest, most, float(smallest_p))


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


@dataclass(frozen=True, slots=True, eq=False)
class PredictiveCounts:
    """Samples (...) that the first run only, the second only, or both put among the predicted ones, by whether that
    is right.
    """

    first_right: Array
    first_wrong: Array
    second_right: Array
    second_wrong: Array
    both_right: Array
    both_wrong: Array

    @classmethod
    def of(cls, joint: JointCounts, *, squares: bool = False) -> "PredictiveCounts":
        """Of the predictions of each class (K) by two runs; what samples weigh, or sums of their squared weights."""
        masses = joint.masses if not squares or joint.weights is None else joint.masses * joint.weights
        return cls(
            *(
                np.bincount(classes[some], weights=masses[some], minlength=joint.n_classes).astype(np.float64)
                for classes, some in _kinds(joint)
            )
        )

    @classmethod
    def of_groups(cls, joint: JointCounts, group: Codes, n_groups: int, classes: range) -> "PredictiveCounts":
        """The same (G, k) of each group, whose codes (P) are 0..G-1, for some classes (k)."""
        found, size, masses = [], len(classes), joint.masses
        for predicted, kind in _kinds(joint):
            some = kind & (predicted >= classes.start) & (predicted < classes.stop)
            places = group[some] * size + predicted[some] - classes.start
            counted = np.bincount(places, weights=masses[some], minlength=n_groups * size).astype(np.float64)
            found.append(counted.reshape(n_groups, size))
        return cls(*found)

    def of_absence(self, actual: Array, everything: Array | None = None) -> "PredictiveCounts":
        """The same of predictions that a sample is not of the class, which has so many samples (...) of all in the
        last axis, or of ``everything`` (..., 1).
        """
        rest = (actual.sum(axis=-1, keepdims=True) if everything is None else everything) - actual
        return PredictiveCounts(
            first_right=self.second_wrong,
            first_wrong=self.second_right,
            second_right=self.first_wrong,
            second_wrong=self.first_right,
            both_right=rest - self.first_wrong - self.second_wrong - self.both_wrong,
            both_wrong=actual - self.first_right - self.second_right - self.both_right,
        )

    def together(self) -> "PredictiveCounts":
        """Of all groups, which are the first axis."""
        return PredictiveCounts(*(one.sum(axis=0) for one in self.parts))

    @property
    def parts(self) -> tuple[Array, ...]:
        """In the order of the attributes."""
        return (
            self.first_right,
            self.first_wrong,
            self.second_right,
            self.second_wrong,
            self.both_right,
            self.both_wrong,
        )


def _kinds(joint: JointCounts) -> tuple[tuple[Codes, NDArray[np.bool_]], ...]:
    """What is predicted (P) of which combinations (P), in the order of the attributes of the counts."""
    (first, second), (first_right, second_right) = joint.predictions, joint.correct()
    same = first == second
    return (
        (first, ~same & first_right),
        (first, ~same & ~first_right),
        (second, ~same & second_right),
        (second, ~same & ~second_right),
        (first, same & first_right),
        (first, same & ~first_right),
    )


@dataclass(frozen=True, slots=True, eq=False)
class PredictiveValues:
    """Predictive values of two runs with the statistics that they are equal, each chi-squared with one degree of
    freedom; NaN where a run predicts nothing of the kind.

    Attributes:
        first: (...).
        second: (...).
        score: (...) generalised score statistic. Leisenring, Alonzo & Pepe (2000), as written by Kosinski (2013).
        weighted_score: (...) the weighted one, which is the score statistic of two shares where no sample is predicted
            by both runs; NaN where samples have weights or come in groups. Kosinski (2013).
        log_ratio: (...) log of first over second, NaN where one of them is 0.
        log_ratio_variance: (...) of it. Moskowitz & Pepe (2006).
        freedom: (...) degrees of Student's distribution of the logarithm; None where it is the normal one.
    """

    first: Array
    second: Array
    score: Array
    weighted_score: Array
    log_ratio: Array
    log_ratio_variance: Array
    freedom: Array | None = None

    @property
    def relative(self) -> Array:
        """Wald statistic (...) of the ratio on its logarithm. Moskowitz & Pepe (2006)."""
        return _quotient(self.log_ratio**2, self.log_ratio_variance)

    @property
    def relative_p(self) -> Array:
        """P (...) of it."""
        if self.freedom is None:
            return p_of(self.relative)
        return 2.0 * np.asarray(student_cdf(-np.sqrt(self.relative), self.freedom))

    def ratio_limits(self, level: float) -> tuple[Array, Array]:
        """Limits (...) of first over second."""
        z = two_sided_z(level) if self.freedom is None else student_quantile((1.0 + level) / 2.0, self.freedom)
        reach = z * np.sqrt(self.log_ratio_variance)
        return np.exp(self.log_ratio - reach), np.exp(self.log_ratio + reach)


def p_of(statistic: Array) -> Array:
    """P (...) of a statistic (...) with one degree of freedom, NaN of NaN."""
    return np.asarray(chi_squared_upper_tail(statistic, 1.0))


def predictive_values(
    counts: PredictiveCounts, squares: PredictiveCounts | None = None, groups: PredictiveCounts | None = None
) -> PredictiveValues:
    """Compare them; of samples with weights by the ``squares`` of these, of such as come in groups by the sums (G, ...)
    of each group.

    With n the numbers of predictions, v the values, w = n_2 / (n_1 + n_2), p the value of all predictions together, D
    whether one is right and z = (n_1 n_2 / (n_1 + n_2)) (v_1 - v_2), the generalised score statistic is z^2 over the
    sum over the samples of ((sum of w or w - 1 over its predictions) (D - p))^2; the weighted one is (v_1 - v_2)^2 over
    (1/n_1 + 1/n_2) times the mean over all predictions of (D - p)^2 where one run only predicts, else 0. In groups the
    squares are those of the sums over a group, and the logarithm has Student's distribution with G/(G-1) for its
    variance, G the groups with such predictions.
    """
    c, each = counts, counts if squares is None else squares
    independent = squares is None and groups is None
    with silently():
        right = c.first_right + c.both_right, c.second_right + c.both_right
        n = right[0] + c.first_wrong + c.both_wrong, right[1] + c.second_wrong + c.both_wrong
        total = n[0] + n[1]
        first, second = right[0] / n[0], right[1] / n[1]
        hit = (right[0] + right[1]) / total
        miss, share, gap = 1.0 - hit, n[1] / total, first - second
        rest, both = 1.0 - share, 2.0 * share - 1.0
        moves = share * miss, -share * hit, -rest * miss, rest * hit, both * miss, -both * hit
        alone = (each.first_right + each.second_right) * miss**2 + (each.first_wrong + each.second_wrong) * hit**2
        mean = alone / total * (1.0 / n[0] + 1.0 / n[1])
        positive = (first > 0) & (second > 0)
        variance = _square_sum(_log_moves(n, (first, second)), each, groups)
        freedom = None if groups is None else _present(groups) - 1.0
        if freedom is not None:
            variance = variance * (freedom + 1.0) / freedom
        return PredictiveValues(
            first=first,
            second=second,
            score=_quotient((n[0] * n[1] / total * gap) ** 2, _square_sum(moves, each, groups)),
            weighted_score=_quotient(gap**2, mean) if independent else np.full(gap.shape, np.nan),
            log_ratio=np.where(positive, np.log(first / second), np.nan),
            log_ratio_variance=np.where(positive, variance, np.nan),
            freedom=freedom,
        )


def _square_sum(moves: tuple[Array, ...], each: PredictiveCounts, groups: PredictiveCounts | None) -> Array:
    """Sum of squares (...) of what samples add, or all of a group together, by what a sample of each kind does."""
    if groups is None:
        return np.asarray(sum(count * move**2 for count, move in zip(each.parts, moves, strict=True)))
    added = np.zeros(groups.first_right.shape)
    for count, move in zip(groups.parts, moves, strict=True):
        added += count * move
    return np.asarray((added**2).sum(axis=0))


def _present(groups: PredictiveCounts) -> Array:
    """Groups (...) with predictions of the kind; NaN where that is one."""
    found = np.count_nonzero(np.sum(groups.parts, axis=0), axis=0).astype(np.float64)
    return np.where(found > 1, found, np.nan)


def _log_moves(n: tuple[Array, Array], values: tuple[Array, Array]) -> tuple[Array, ...]:
    """What each kind of sample adds to the difference of the logarithms, to first order."""
    hits = tuple((1.0 - value) / (size * value) for value, size in zip(values, n, strict=True))
    misses = tuple(1.0 / size for size in n)
    return hits[0], -misses[0], -hits[1], misses[1], hits[0] - hits[1], misses[1] - misses[0]


def _quotient(square: Array, variance: Array) -> Array:
    """A statistic; 0 where nothing differs and nothing varies."""
    with silently():
        return np.where((square == 0.0) & (variance == 0.0), 0.0, square / variance)


# Entries of a table of groups by columns that is made at once.
_AT_ONCE = 1 << 20
# Products that a matrix of variances may take: a second or two.
_MOST_WORK = 4_000_000_000


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Sums (k) of columns over all groups, and the sums (k, k) of products of what each group adds."""

    gaps: Array
    spread: Array
    n_groups: int


@dataclass(frozen=True, eq=False)
class GroupedPair:
    """Two runs on the same samples, which come in groups.

    Attributes:
        joint: What each sample (P) is and is predicted to be, with its weight; samples of several groups are not put
            together.
        group: (P) codes 0..G-1.
        n_groups: G.
    """

    joint: JointCounts
    group: Codes
    n_groups: int

    @cached_property
    def _signs(self) -> Array:
        """Who is right where the other is not (P): 1 the first run, -1 the second, 0 neither or both."""
        first, second = self.joint.correct().astype(np.float64)
        signs: Array = first - second
        return signs

    def discordant(self) -> tuple[Array, Array]:
        """Weight of the samples (G) of each group that only the first, and that only the second run has right."""
        masses = self.joint.masses
        only_first, only_second = (
            sums_by_code(self.group, masses * (self._signs == sign), self.n_groups) for sign in (1, -1)
        )
        return only_first, only_second

    def of_class(self, k: int) -> tuple[Array, float]:
        """The same of the samples of a class, with their weight (3, G), and how many samples these are."""
        mine = self.joint.truth == k
        group, masses, signs = self.group[mine], self.joint.masses[mine], self._signs[mine]
        each = np.stack([masses * (signs == 1), masses * (signs == -1), masses])
        return sums_by_code(group, each, self.n_groups), float(self.joint.counts[mine].sum())

    def equal_recalls(self) -> ChiSquared:
        """As ``drift.equal_recalls``, with what the recalls of a group's classes have to do with each other."""
        some = self._signs != 0
        return self._score(self._sums(some, self.joint.truth[some], self._signs[some]))

    def stuart_maxwell(self) -> ChiSquared:
        """As ``drift.stuart_maxwell``."""
        return self._score(self._margins())

    def bhapkar(self) -> ChiSquared:
        """As ``drift.bhapkar``: Wald's statistic W with G/(G-1) for the variance, p of (G-r) W / ((G-1) r) on r and
        G - r degrees of freedom.
        """
        sums, total = self._margins(), self.joint.n
        plain = self._score(sums)
        if plain.freedom == 0 or np.isnan(plain.p):
            return plain
        mean, sizes = sums.gaps / total, sums_by_code(self.group, self.joint.masses, self.n_groups)
        columns = self._differing
        added = np.zeros(columns.size)
        for where, signs in ((self.joint.predictions[0], 1.0), (self.joint.predictions[1], -1.0)):
            added += signs * sums_by_code(where, self.joint.masses * sizes[self.group], self.joint.n_classes)[columns]
        mixed = np.outer(mean, added)
        centred = sums.spread - mixed - mixed.T + float(sizes @ sizes) * np.outer(mean, mean)
        few = self.n_groups / (self.n_groups - 1.0)
        found = quadratic(sums.gaps, few * centred)
        r, left = found.freedom, self.n_groups - found.freedom
        if r != plain.freedom or left <= 0:
            return ChiSquared(nan, plain.freedom, nan)
        scaled = found.statistic * left / ((self.n_groups - 1.0) * r)
        return ChiSquared(found.statistic, r, float(f_upper_tail(scaled, r, left)))

    def bowker(self) -> ChiSquared:
        """As ``drift.bowker``, with what the exchanges in a group have to do with each other."""
        first, second = self.joint.predictions
        some = first != second
        low, high = np.minimum(first, second)[some], np.maximum(first, second)[some]
        return self._score(
            self._sums(some, low * self.joint.n_classes + high, np.where(first < second, 1.0, -1.0)[some])
        )

    @cached_property
    def _differing(self) -> Codes:
        """Classes on which the runs differ."""
        first, second = self.joint.predictions
        return np.unique(self.joint.predictions[:, first != second])

    def _margins(self) -> _Sums:
        first, second = self.joint.predictions
        some = np.flatnonzero(first != second)
        columns = np.concatenate([first[some], second[some]])
        return self._sums(np.tile(some, 2), columns, np.repeat([1.0, -1.0], some.size))

    def _sums(self, some: Array, columns: Array, signs: Array) -> _Sums:
        """What some samples add, with a sign, to columns with any codes, of which those that occur are kept.

        The products are not summed where that would take long, which leaves them NaN.
        """
        groups, group = np.unique(self.group[some], return_inverse=True)
        names, column = np.unique(columns, return_inverse=True)
        values, size = signs * self.joint.masses[some], names.size
        if size == 0:
            return _Sums(np.zeros(0), np.zeros((0, 0)), 0)
        gaps = sums_by_code(column, values, size)
        if groups.size * size**2 > _MOST_WORK:
            return _Sums(gaps, np.full((size, size), nan), groups.size)
        spread = np.zeros((size, size))
        order = np.argsort(group, kind="stable")
        step = max(1, _AT_ONCE // size)
        for start in range(0, groups.size, step):
            mine = order[slice(*np.searchsorted(group[order], [start, start + step]))]
            rows = min(step, groups.size - start)
            table = sums_by_code((group[mine] - start) * size + column[mine], values[mine], rows * size)
            spread += (each := table.reshape(rows, size)).T @ each
        return _Sums(gaps, spread, groups.size)

    def _score(self, sums: _Sums) -> ChiSquared:
        """NaN where there are too few groups, or the sums are not known."""
        if np.isnan(sums.spread).any():
            return ChiSquared(nan, sums.gaps.size, nan)
        found = quadratic(sums.gaps, sums.spread)
        return found if found.freedom == 0 or found.freedom < sums.n_groups else ChiSquared(nan, found.freedom, nan)

    def predictive_values(self) -> Iterator[tuple[tuple[PredictiveCounts, PredictiveValues], ...]]:
        """Of some classes at a time, in order: that a sample is of a class, and that it is not; what is counted in all
        groups, and what is found.
        """
        everything = sums_by_code(self.group, self.joint.masses, self.n_groups)[:, None]
        step = max(1, _AT_ONCE // self.n_groups)
        for start in range(0, self.joint.n_classes, step):
            classes = range(start, min(start + step, self.joint.n_classes))
            present = PredictiveCounts.of_groups(self.joint, self.group, self.n_groups, classes)
            mine = (self.joint.truth >= classes.start) & (self.joint.truth < classes.stop)
            places = self.group[mine] * len(classes) + self.joint.truth[mine] - start
            actual = sums_by_code(places, self.joint.masses[mine], self.n_groups * len(classes))
            absent = present.of_absence(actual.reshape(self.n_groups, -1), everything)
            yield tuple((one.together(), predictive_values(one.together(), groups=one)) for one in (present, absent))
