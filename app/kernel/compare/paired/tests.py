"""Tests of counts of two runs on the same samples: McNemar's test, several classes, predictive values, error rates."""

from dataclasses import dataclass
from functools import cached_property
from math import nan

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.compare.paired.joint import Codes, JointCounts
from app.kernel.numerics.arrays import Array, kish_effective_n, silently, sums_by_code
from app.kernel.numerics.scipy_bridge import (
    chi_squared_upper_tail,
    f_upper_tail,
    fair_binomial_cdf,
    fair_binomial_mass,
    student_cdf,
    student_quantile,
)
from app.kernel.uncertainty.designs import worth_of_few
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
class ChiSquared:
    """A chi-squared statistic with its degrees of freedom and p-value; NaN where there is no statistic."""

    statistic: float
    freedom: int
    p: float


def quadratic(gaps: Array, spread: Array) -> ChiSquared:
    """The statistic d' S^- d of sums d (k) with variances S, (k, k), or (k) where the sums do not vary together."""
    if not gaps.size:
        return ChiSquared(0.0, 0, 1.0)
    if spread.ndim == 1:
        statistic, rank = float((gaps**2 / spread).sum()), gaps.size
    else:
        # One class of every separate group of confused classes is redundant, which the rank tells.
        rank = int(np.linalg.matrix_rank(spread, hermitian=True))
        statistic = float(gaps @ np.linalg.pinv(spread, hermitian=True) @ gaps)
    return ChiSquared(statistic, rank, float(chi_squared_upper_tail(statistic, rank)) if rank else 1.0)


@dataclass(frozen=True, slots=True)
class PredictiveValue:
    """A predictive value of two runs with the statistics that it is equal, each chi-squared with one degree of
    freedom; NaN where a run predicts nothing of the kind.

    Attributes:
        score: Generalised score statistic. Leisenring, Alonzo & Pepe (2000), as written by Kosinski (2013).
        weighted_score: The weighted one, which is the score statistic of two shares where no sample is predicted
            by both runs; NaN where samples have weights or come in groups. Kosinski (2013).
        log_ratio: Log of first over second, NaN where one of them is 0.
        log_ratio_variance: Of it. Moskowitz & Pepe (2006).
        alone: Right, or wrong, samples that one run only predicts so, whichever are fewer, or their weight.
        freedom: Degrees of Student's distribution of the logarithm; None where it is the normal one.
    """

    first: float
    second: float
    score: float
    weighted_score: float
    log_ratio: float
    log_ratio_variance: float
    alone: float
    freedom: float | None = None

    @property
    def relative(self) -> float:
        """Wald statistic of the ratio on its logarithm. Moskowitz & Pepe (2006)."""
        return _quotient(self.log_ratio**2, self.log_ratio_variance)

    @property
    def relative_p(self) -> float:
        """P of it."""
        if self.freedom is None:
            return p_of(self.relative)
        return 2.0 * float(student_cdf(-np.sqrt(self.relative), self.freedom))

    def ratio_limits(self, level: float) -> tuple[float, float]:
        """Limits of first over second."""
        z = two_sided_z(level) if self.freedom is None else student_quantile((1.0 + level) / 2.0, self.freedom)
        reach = z * np.sqrt(self.log_ratio_variance)
        return float(np.exp(self.log_ratio - reach)), float(np.exp(self.log_ratio + reach))


def p_of(statistic: float) -> float:
    """P of a statistic with one degree of freedom, NaN of NaN."""
    return float(chi_squared_upper_tail(statistic, 1.0))


def _quotient(square: float, variance: float) -> float:
    """A statistic; 0 where nothing differs and nothing varies."""
    with silently():
        return 0.0 if square == 0.0 and variance == 0.0 else float(np.divide(square, variance))


def paired_gap(better: float, worse: float, size: float) -> tuple[float, float]:
    """Difference of the error rates of two runs on the same samples and its variance, with half a sample more of
    each of the four kinds. Bonett & Price (2012).

    Args:
        better: Samples that the first only has right.
        worse: Samples that the second only has right.
        size: All of them.
    """
    total = size + 2.0
    gap, either = (worse - better) / total, (better + worse + 2.0) / total
    return gap, (either - gap * gap) / total


# Entries of a table of groups by columns that is made at once.
_AT_ONCE = 1 << 20
# Products that a matrix of variances may take: a second or two.
_MOST_WORK = 4_000_000_000


@dataclass(frozen=True, slots=True, eq=False)
class _Sums:
    """Sums (k) of what samples add to some columns.

    Attributes:
        columns: (k) codes of the columns that anything is added to.
        spread: Their variance without a difference: sums of products of what each unit adds, (k, k), or (k) where
            no unit adds to two columns; NaN where it is not known.
        units: Groups that add anything; infinitely many of independent samples.
    """

    columns: Codes
    gaps: Array
    spread: Array
    units: float

    def score(self) -> ChiSquared:
        """The test of no difference; NaN where there are too few groups, or the variance is not known."""
        if np.isnan(self.spread).any():
            return ChiSquared(nan, self.gaps.size, nan)
        found = quadratic(self.gaps, self.spread)
        return found if found.freedom == 0 or found.freedom < self.units else ChiSquared(nan, found.freedom, nan)


@dataclass(frozen=True, eq=False)
class RunPair:
    """Two runs on the same samples, with whatever weights and groups these have.

    Sums over the samples have the sum of squares of what each unit adds for their variance: a unit is a sample with
    its weight, or a group.
    """

    joint: JointCounts

    @property
    def grouped(self) -> bool:
        """Do the samples come in groups?"""
        return self.joint.grouping is not None

    @cached_property
    def _squares(self) -> Array:
        """Weight of each combination (P) times that of the unit that it is in."""
        masses, grouping = self.joint.masses, self.joint.grouping
        if grouping is not None:
            squares: Array = masses * sums_by_code(grouping.codes, masses, grouping.n_groups)[grouping.codes]
            return squares
        return masses if self.joint.weights is None else masses * self.joint.weights

    @cached_property
    def _signs(self) -> Array:
        """Sign (P) of the run that alone is right: 1 the first, -1 the second, 0 neither or both."""
        first, second = self.joint.correct().astype(np.float64)
        signs: Array = first - second
        return signs

    def _by_group(self, values: Array) -> Array:
        """Sums (G) by group of what samples of combinations add in each unit of weight."""
        grouping = self.joint.grouping
        assert grouping is not None  # noqa: S101 - who calls has looked
        return sums_by_code(grouping.codes, self.joint.masses * values, grouping.n_groups)

    def _variance(self, values: Array) -> float:
        """Variance of a sum to which samples of combinations (P) add this in each unit of weight."""
        if not self.grouped:
            return float(self._squares @ values**2)
        added = self._by_group(values)
        return float(added @ added)

    def _sums(self, some: Codes, columns: Codes, signs: Array, less: Codes | None = None) -> _Sums:
        """Sums by column of the signed weights of some combinations, less the same by other columns, if there are any.

        Of groups the products are not summed where that would take long.
        """
        together = columns if less is None else np.concatenate([columns, less])
        names, places = np.unique(together, return_inverse=True)
        size, grouping = names.size, self.joint.grouping
        if not size:
            return _Sums(names, np.zeros(0), np.zeros((0, 0)), 0)
        rows, each = (some, signs) if less is None else (np.tile(some, 2), np.concatenate([signs, -signs]))
        values = each * self.joint.masses[rows]
        gaps = sums_by_code(places, values, size)
        if grouping is not None:
            units, unit = np.unique(grouping.codes[rows], return_inverse=True)
            return _Sums(names, gaps, _products(unit, units.size, places, values, size), float(units.size))
        squares = self._squares[some]
        spread = sums_by_code(places, squares if less is None else np.tile(squares, 2), size)
        if less is not None:
            spread = np.diag(spread)
            for one, other in (np.split(places, 2), np.split(places, 2)[::-1]):
                np.add.at(spread, (one, other), -squares)
        return _Sums(names, gaps, spread, np.inf)

    def equal_recalls(self) -> ChiSquared:
        """Equal recalls in every class: of independent samples sum (b - c)^2 / (b + c) over the classes.

        Lachenbruch & Lynch (1998), of two classes their generalised test of sensitivity and specificity together.
        """
        some = np.flatnonzero(self._signs)
        return self._sums(some, self.joint.truth[some], self._signs[some]).score()

    def bowker(self) -> ChiSquared:
        """Symmetry: of independent samples sum (n_ij - n_ji)^2 / (n_ij + n_ji) over the pairs that occur. Bowker
        (1948).
        """
        first, second = self.joint.predictions
        some = np.flatnonzero(first != second)
        low, high = np.minimum(first, second)[some], np.maximum(first, second)[some]
        signs = np.where(first < second, 1.0, -1.0)[some]
        return self._sums(some, low * self.joint.n_classes + high, signs).score()

    @cached_property
    def _margins(self) -> _Sums:
        """Differences of the margins of classes on which the runs differ; all others are left out."""
        first, second = self.joint.predictions
        some = np.flatnonzero(first != second)
        return self._sums(some, first[some], np.ones(some.size), second[some])

    def stuart_maxwell(self) -> ChiSquared:
        """Equal margins: d' S^-1 d with d the differences of margins. Stuart (1955), Maxwell (1970)."""
        return self._margins.score()

    def bhapkar(self) -> ChiSquared:
        """Equal margins by the Wald statistic W, whose variance is not that under equality but around what was found;
        of samples without weights SM / (1 - SM/n). Bhapkar (1966).

        NaN where SM = n: then the differences of margins do not vary over the samples, so that their Wald test is none.
        Of G groups the variance has the factor G/(G-1), and p is that of (G-r) W / ((G-1) r) on r and G - r degrees of
        freedom.
        """
        sums, plain = self._margins, self.stuart_maxwell()
        if plain.freedom == 0 or np.isnan(plain.p):
            return plain
        squares, size = self._squares, self.joint.n_classes
        first, second = (sums_by_code(one, squares, size)[sums.columns] for one in self.joint.predictions)
        # Sum of what units add away from their mean, times the same.
        mean = sums.gaps / self.joint.n
        mixed = np.outer(mean, first - second)
        centred = sums.spread - mixed - mixed.T + float(squares.sum()) * np.outer(mean, mean)
        n_groups = np.inf if self.joint.grouping is None else float(self.joint.grouping.n_groups)
        few = 1.0 if self.joint.grouping is None else n_groups / (n_groups - 1.0)
        found = quadratic(sums.gaps, few * centred)
        r, left = found.freedom, n_groups - found.freedom
        if r != plain.freedom or left <= 0:
            return ChiSquared(nan, plain.freedom, nan)
        if not self.grouped:
            return found
        scaled = found.statistic * left / ((n_groups - 1.0) * r)
        return ChiSquared(found.statistic, r, float(f_upper_tail(scaled, r, left)))

    def predictive_value(self, k: int, *, absent: bool = False) -> PredictiveValue:
        """Compare the predictive values of a class, or of predictions that a sample is not of it.

        With n the numbers of predictions x, v the values, w = n_2 / (n_1 + n_2), p the value of all predictions
        together, D whether one is right and z = (n_1 n_2 / (n_1 + n_2)) (v_1 - v_2), the generalised score statistic
        is z^2 over the variance of the sum of (w x_1 - (1 - w) x_2) (D - p); the weighted one is (v_1 - v_2)^2 over
        (1/n_1 + 1/n_2) times the mean over all predictions of (D - p)^2 where one run only predicts, else 0. Of groups
        the logarithm has Student's distribution with G/(G-1) for its variance, G the groups with such predictions.
        """
        masses = self.joint.masses
        of_class = [(codes == k) != absent for codes in (*self.joint.predictions, self.joint.truth)]
        x, y, right = (mask.astype(np.float64) for mask in of_class)
        freedom, factor = None, 1.0
        if self.grouped:
            present = np.count_nonzero(self._by_group(x + y))
            freedom = present - 1.0 if present > 1 else nan
            factor = (freedom + 1.0) / freedom
        with silently():
            n = masses @ x, masses @ y
            first, second = masses @ (x * right) / n[0], masses @ (y * right) / n[1]
            total = n[0] + n[1]
            share, hit = n[1] / total, (n[0] * first + n[1] * second) / total
            moves, gap = (share * x - (1.0 - share) * y) * (right - hit), first - second
            alone = masses * np.abs(x - y)
            hits, misses = alone @ right, alone @ (1.0 - right)
            mean = (hits * (1.0 - hit) ** 2 + misses * hit**2) / total * (1.0 / n[0] + 1.0 / n[1])
            log_moves = x * (right - first) / (n[0] * first) - y * (right - second) / (n[1] * second)
            positive, plain = first > 0 and second > 0, not self.grouped and self.joint.weights is None
            return PredictiveValue(
                first=float(first),
                second=float(second),
                score=_quotient((n[0] * n[1] / total * gap) ** 2, self._variance(moves)),
                weighted_score=_quotient(gap**2, mean) if plain else nan,
                log_ratio=float(np.log(first / second)) if positive else nan,
                log_ratio_variance=factor * self._variance(log_moves) if positive else nan,
                alone=float(min(hits, misses)),
                freedom=freedom,
            )

    def error_gap(self, k: int, level: float) -> tuple[float, float, Array] | None:
        """Difference of the error rates on a class, its variance, and what each group (G) adds to it, to first order,
        nothing of independent samples; None where these are one group.

        The variance is by the effective number of samples: what it is per sample over what it is by linearisation, sum
        over the units of (sum of w (u - gap))^2 / (sum w)^2, which counts as that of all samples at least. Where
        nothing varies it is Kish's number of samples, or that of the groups. Few groups are worth less
        (``worth_of_few``), at the level of limits. Samples of one weight are worth their number.
        """
        joint, grouping = self.joint, self.joint.grouping
        mine = joint.truth == k
        masses = np.where(mine, joint.masses, 0.0)
        total, members = float(masses.sum()), float(joint.counts[mine].sum())
        better, worse = (float(masses @ (self._signs == sign)) for sign in (1, -1))
        gap = (worse - better) / total
        values = np.where(mine, -self._signs - gap, 0.0) / total
        spread, moves = (better + worse) / total - gap * gap, np.zeros(0)
        variance, units = self._variance(values), total**2 / float(self._squares[mine].sum())
        if grouping is not None:
            moves, sizes = self._by_group(values), sums_by_code(grouping.codes, masses, grouping.n_groups)
            units = float(np.count_nonzero(sizes))
            if units < 2:
                return None
            variance *= units / (units - 1.0)
        worth = units
        if variance > 0.0 and spread > 0.0:
            worth = min(spread / variance, members)
            if grouping is not None:
                worth = float(worth_of_few(worth, kish_effective_n(sizes), level))
        return *paired_gap(better * worth / total, worse * worth / total, worth), moves


def _products(unit: Codes, n_units: int, column: Codes, values: Array, size: int) -> Array:
    """Sums (k, k) over the units of products of what each adds to two columns; NaN where that would take long."""
    if n_units * size**2 > _MOST_WORK:
        return np.full((size, size), nan)
    spread = np.zeros((size, size))
    order = np.argsort(unit, kind="stable")
    step = max(1, _AT_ONCE // max(size, 1))
    for start in range(0, n_units, step):
        mine = order[slice(*np.searchsorted(unit[order], [start, start + step]))]
        rows = min(step, n_units - start)
        table = sums_by_code((unit[mine] - start) * size + column[mine], values[mine], rows * size)
        spread += (each := table.reshape(rows, size)).T @ each
    return spread
