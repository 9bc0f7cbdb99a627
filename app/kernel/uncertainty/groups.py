"""Closed-form intervals for samples in groups, such as several of one patient: the groups are independent, the
samples are not.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import AdditiveGradient, Table, additive_variance, recall_gradient, stack
from app.kernel.metrics.card import Metric
from app.kernel.metrics.families.rates import recall
from app.kernel.metrics.proportion import Proportion
from app.kernel.numerics.arrays import Array, kish_effective_n, silently
from app.kernel.numerics.scipy_bridge import normal_cdf, student_cdf, student_quantile
from app.kernel.samples.areas import ROUNDING
from app.kernel.samples.losses import sums_by_code
from app.kernel.uncertainty import intervals
from app.kernel.uncertainty.closed_forms import (
    Given,
    Headline,
    Method,
    OverallInterval,
    RateIntervals,
    Refusal,
    catalogue_rates,
    headline_metrics,
    is_signed,
    limits_on_scale,
)
from app.kernel.uncertainty.draws import Functional, Summary, evaluate_draws, generator, summarise
from app.kernel.uncertainty.intervals import Limits, wilson
from app.kernel.uncertainty.simulation import item_weights

Codes = NDArray[np.intp]
# With fewer groups intervals hold the truth too seldom where groups differ in size, however many samples there are.
FEW_GROUPS = 30
# Entries of a table of groups by cells that is multiplied with; larger ones are summed entry by entry.
_DENSE = 1 << 22
_AT_ONCE = 1 << 21
# Time of resampling, in that of drawing one group or adding one entry: some seconds. An entry of a table that is
# multiplied with takes less.
_MOST_WORK = 400_000_000
_WORK_IN_TABLE = 0.04
# Read out to here an interval is as wide as all draws.
_HIGHEST_LEVEL = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Which samples belong together.

    Attributes:
        codes: (n) group of each sample, 0..G-1.
        n_groups: G.
        times: (n) how many samples each stands for; None is 1 each.
    """

    codes: Codes
    n_groups: int
    times: NDArray[np.int64] | None = None

    @classmethod
    def of(cls, names: NDArray[Any], times: NDArray[np.int64] | None = None) -> Self:
        """From the names (n) of the groups."""
        found, codes = np.unique(names, return_inverse=True)
        return cls(codes.astype(np.intp, copy=False), len(found), times)

    @property
    def effective_groups(self) -> float:
        """Effective number of groups of equal size."""
        return kish_effective_n(self.sizes())

    def sizes(self) -> Array:
        """Samples (G) of each group."""
        return np.bincount(self.codes, self.times, self.n_groups).astype(np.float64)

    def weights(self, *, draws: int, random: np.random.Generator, batch: int) -> Iterator[Array]:
        """Batches (d, n) of how often each sample is drawn with its group; ``draws`` in total."""
        for drawn in _group_weights(self.n_groups, draws=draws, random=random, batch=batch):
            yield drawn.take(self.codes, axis=1)


def _masses(members: Codes, times: Array, weights: Array | None, n_runs: int) -> Array:
    """What entries (n_runs n) weigh together that have one code: equal weights are counted, and the rest added up as it
    rises.
    """
    if weights is None:
        return np.bincount(members, times).astype(np.float64)
    distinct, own = np.unique(weights, return_inverse=True)
    alike, places = np.unique(members * distinct.size + np.tile(own, n_runs), return_inverse=True)
    codes, ranks = np.divmod(alike, distinct.size)
    return np.bincount(codes, np.bincount(places, times) * distinct[ranks]).astype(np.float64)


def _group_weights(n_groups: int, *, draws: int, random: np.random.Generator, batch: int) -> Iterator[Array]:
    """Batches (d, G) of how often each group is among as many, drawn with replacement."""
    return item_weights(np.zeros(n_groups, dtype=np.int64), draws=draws, random=random, batch=batch)


@dataclass(frozen=True, slots=True, eq=False)
class GroupedRuns:
    """Labels of R runs on the same groups, as counts of what each group holds.

    Attributes:
        group: (M) group of an entry, 0..G-1.
        cell: (M) run, actual and predicted class as one number, (run K + actual) K + predicted.
        count: (M) samples, or the sum of their weights.
        n_groups: G.
        n_runs: R.
        n_classes: K.
        n_samples: Of each run.
    """

    group: Codes
    cell: Codes
    count: Array
    n_groups: int
    n_runs: int
    n_classes: int
    n_samples: int

    @classmethod
    def gather(
        cls,
        groups: Codes,
        truth: Codes,
        predictions: Codes,
        n_classes: int,
        weights: Array | None = None,
        times: Array | None = None,
    ) -> Self:
        """From samples in any order, bit for bit.

        Args:
            groups: (n) group of each sample, 0..G-1.
            truth: (n) actual class.
            predictions: (n) predicted class, or (R, n) of several runs on the same samples.
            n_classes: K.
            weights: (n) of the samples.
            times: (n) how many samples each is; None is 1 each.

        Raises:
            ValueError: there are fewer than two groups: nothing is known of how they differ.
        """
        rows = np.atleast_2d(predictions).astype(np.int64)
        n_groups, n_cells = int(groups.max()) + 1, len(rows) * n_classes * n_classes
        if n_groups < 2:
            raise ValueError("at least two groups are needed")
        cells = (np.arange(len(rows))[:, None] * n_classes + truth) * n_classes + rows
        places = np.asarray(groups, dtype=np.int64) * n_cells + cells
        if weights is None and times is None:
            # Counting takes a third of the time of naming all of them.
            keys, counted = np.unique(places, return_counts=True)
            counts, n_samples = counted.astype(np.float64), truth.size
        else:
            each = np.ones(truth.size) if times is None else times
            keys, members = np.unique(places, return_inverse=True)
            counts = _masses(members.ravel(), np.tile(each, len(rows)), weights, len(rows))
            n_samples = int((each if weights is None else each[weights > 0]).sum())
        return cls(keys // n_cells, keys % n_cells, counts, n_groups, len(rows), n_classes, n_samples)

    @property
    def samples_per_weight(self) -> float:
        """How many samples there are for what they weigh in all; 1 without weights."""
        return self.n_samples / (float(self.count.sum()) / self.n_runs)

    @property
    def effective_groups(self) -> float:
        """Effective number of groups of equal size."""
        return kish_effective_n(self.sizes())

    def matrices(self) -> Array:
        """The confusion matrices (R, K, K) of all groups together."""
        return self._shaped(sums_by_code(self.cell, self.count, self._n_cells))

    def pair(self, first: int, second: int) -> Self:
        """Two of the runs, in this order."""
        size = self.n_classes * self.n_classes
        run, cell = np.divmod(self.cell, size)
        kept = (run == first) | (run == second)
        places = cell[kept] + np.where(run[kept] == first, 0, size)
        return replace(self, group=self.group[kept], cell=places, count=self.count[kept], n_runs=2)

    def sizes(self) -> Array:
        """Samples (G) of each group."""
        return sums_by_code(self.group, self.count, self.n_groups) / self.n_runs

    def resample(self, *, draws: int, random: np.random.Generator) -> Iterator[Array]:
        """Batches (d, R, K, K) of the matrices of as many groups, drawn with replacement; ``draws`` in total."""
        for weights in _group_weights(self.n_groups, draws=draws, random=random, batch=self._at_once):
            yield self._shaped(self._totals(weights))

    def affordable_draws(self, draws: int) -> int:
        """So many of the draws as take some seconds."""
        table = self.n_groups * np.unique(self.cell).size
        work = _WORK_IN_TABLE * table if table <= _DENSE else self.cell.size
        return min(draws, int(_MOST_WORK / (self.n_groups + work)))

    def exchange(self, *, draws: int, random: np.random.Generator) -> Iterator[Array]:
        """Batches (d, 2, K, K) of the matrices of two runs, exchanged in half of the groups; ``draws`` in total.

        Raises:
            ValueError: there are not two runs.
        """
        if self.n_runs != 2:
            raise ValueError(f"two runs can be exchanged, not {self.n_runs}")
        together = self.matrices().sum(axis=0)
        for size in self._batches(draws):
            stays = random.integers(0, 2, (size, self.n_groups)).astype(np.float64)
            kept, left = self._shaped(self._totals(stays)), self._shaped(self._totals(1.0 - stays))
            first = kept[:, 0] + left[:, 1]
            yield np.stack([first, together - first], axis=1)

    @property
    def _n_cells(self) -> int:
        return self.n_runs * self.n_classes * self.n_classes

    def _shaped(self, totals: Array) -> Array:
        return totals.reshape(*totals.shape[:-1], self.n_runs, self.n_classes, self.n_classes)

    @property
    def _at_once(self) -> int:
        return max(1, _AT_ONCE // max(self.n_groups, self._n_cells, 1))

    def _batches(self, draws: int) -> Iterator[int]:
        for start in range(0, draws, self._at_once):
            yield min(self._at_once, draws - start)

    def _totals(self, weights: Array) -> Array:
        """Cells (d, R K K) of the groups in weights (d, G)."""
        filled, place = np.unique(self.cell, return_inverse=True)
        totals = np.zeros((len(weights), self._n_cells))
        if self.n_groups * filled.size <= _DENSE:
            table = np.zeros((self.n_groups, filled.size))
            table[self.group, place] = self.count
            totals[:, filled] = weights @ table
            return totals
        for row, weight in enumerate(weights):
            totals[row] = sums_by_code(self.cell, weight[self.group] * self.count, self._n_cells)
        return totals


def group_variance(influences: Array) -> Array:
    """Variances (...) of values that groups move by influences (G, ...): G/(G-1) sum of squares about their mean."""
    count = len(influences)
    if count < 2:
        return np.full(influences.shape[1:], np.nan)
    centered = influences - influences.mean(axis=0)
    variance: Array = count / (count - 1.0) * (centered * centered).sum(axis=0)
    return variance


def expanded_level(level: float, n_groups: float) -> float:
    """Level at which percentiles of resampled groups are read, so that few groups do not make the interval too short.

    The tail is the normal one beyond sqrt(G/(G-1)) times Student's quantile of G - 1 degrees, G > 1. Hesterberg (2015).
    """
    quantile = float(student_quantile((1.0 + level) / 2.0, n_groups - 1.0))
    found = 1.0 - 2.0 * float(normal_cdf(-((n_groups / (n_groups - 1.0)) ** 0.5) * quantile))
    return min(found, _HIGHEST_LEVEL)


def group_intervals(
    runs: GroupedRuns, functionals: Sequence[Functional], *, seed: int, draws: int = 2000, level: float = 0.95
) -> list[Summary]:
    """Intervals of every functional of one run by resampling its groups.

    Raises:
        ValueError: there are several runs.
    """
    if runs.n_runs != 1:
        raise ValueError(f"expected one run, got {runs.n_runs}")
    batches = (matrices[:, 0] for matrices in runs.resample(draws=draws, random=generator(seed)))
    found = evaluate_draws(batches, functionals)
    table, read_at = Table(runs.matrices()[0]), expanded_level(level, runs.effective_groups)
    with silently():
        return [
            summarise(values.reshape(draws, -1), np.atleast_1d(functional(table)), read_at)
            for values, functional in zip(found, functionals, strict=True)
        ]


def group_permutation_p(
    runs: GroupedRuns, functionals: Sequence[Functional], *, seed: int, draws: int = 2000
) -> list[Array]:
    """Two-sided p (V) of every functional when two runs are exchanged within groups: exact where they are exchangeable.

    The observed division counts as one of them, so p is at least 1/(draws + 1). Phipson & Smyth (2010).
    """
    drawn = evaluate_draws(runs.exchange(draws=draws, random=generator(seed)), functionals)
    observed, found = Table(runs.matrices()), []
    with silently():
        for values, functional in zip(drawn, functionals, strict=True):
            own, pairs = functional(observed).reshape(2, -1), values.reshape(draws, 2, -1)
            gap = np.abs(own[0] - own[1])
            larger = np.abs(pairs[:, 0] - pairs[:, 1]) >= gap * (1.0 - 1e-12)
            found.append(np.where(np.isnan(gap), np.nan, (larger.sum(axis=0) + 1.0) / (draws + 1.0)))
    return found


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """Numbers of groups that values are about.

    Attributes:
        present: (...) that have any of the samples.
        effective: (...) of equal size that are worth as much: the square of the sum of sizes over the sum of squares.
    """

    present: Array
    effective: Array


def wilson_of_variance(rate: Array, total: Array, variance: Array, groups: Groups, level: float = 0.95) -> Limits:
    """Wilson's intervals of rates whose samples come in groups, at their effective sample sizes.

    n is divided by the design effect, the variance over p(1-p)/n (Rao & Scott 1992), never below 1. What it comes to,
    m, is multiplied with (t(m-1) / t(G-1))^2 where it exceeds G, the groups of equal size that are worth as much, since
    a variance from few groups is uncertain (after Korn & Graubard 1998). A rate of 0 or 1 has no design effect to be
    seen: its groups are counted as one sample each.

    Args:
        rate: (...).
        total: (...) samples.
        variance: (...) of the rate.
        groups: (...); NaN limits where it is one.
        level: of the intervals.
    """
    with silently():
        binomial = rate * (1.0 - rate) / total
        effect = np.maximum(variance / binomial, 1.0)
        worth = np.where(binomial > 0, worth_of_few(total / effect, groups.effective, level), groups.present)
        worth = np.where(groups.present > 1, worth, np.nan)
        return wilson(rate * worth, worth, level)


def worth_of_few(effective: Array | float, groups: Array | float, level: float) -> Array:
    """What so many samples (...) are worth in normal limits when their variance is that between so many groups of equal
    size (...): m (t(m-1) / t(G-1))^2, at most m.
    """
    tail = (1.0 + level) / 2.0
    own = student_quantile(tail, np.maximum(effective - 1.0, 1.0))
    known = own / student_quantile(tail, groups - 1.0)
    return np.asarray(effective * np.minimum(known, 1.0) ** 2)


def grouped_mcnemar(only_first: Array, only_second: Array) -> float:
    """Two-sided p of equal shares of right answers of two runs, whose discordant samples come in groups (G).

    t = sum(b - c) / sqrt(G/(G-1) sum (b - c)^2) on G - 1 degrees, over the groups with discordant samples. Obuchowski
    (1998), with Student's distribution for few groups. 1 when nothing is discordant.
    """
    gaps = (only_first - only_second)[only_first + only_second > 0]
    square = float((gaps * gaps).sum())
    if square == 0.0 or gaps.size < 2:
        return 1.0
    statistic = float(gaps.sum()) / (gaps.size / (gaps.size - 1.0) * square) ** 0.5
    return float(2.0 * student_cdf(-abs(statistic), gaps.size - 1.0))


# Cells of a class against the rest: the basis that all counts of one class are sums in.
_TP, _FN, _FP, _TN = range(4)
_BASIS = np.zeros((4, 2, 2))
_BASIS[_TP, 1, 1] = _BASIS[_FN, 1, 0] = _BASIS[_FP, 0, 1] = _BASIS[_TN, 0, 0] = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class GroupedHeadline:
    """Headline intervals of one matrix whose samples come in groups.

    Attributes:
        headline: The intervals.
        design_effects: By overall metric how many times larger its variance is than that of independent samples; NaN
            where that is 0.
    """

    headline: Headline
    design_effects: Mapping[str, float]


def group_headline(runs: GroupedRuns, level: float = 0.95) -> GroupedHeadline:
    """Headline intervals of one run on samples in groups.

    Accuracy and rates by Wilson at the sample size they are worth; balanced accuracy, G and H by MOVER on these
    intervals of the recalls and their correlation; macro F1, MCC and kappa by the delta method with Student's quantile.

    Raises:
        ValueError: there are several runs.
    """
    if runs.n_runs != 1:
        raise ValueError(f"expected one run, got {runs.n_runs}")
    with silently():
        table = Table(runs.matrices()[0])
        variances, effects = _variances(runs, table)
        rates, recall_variances = _rates(runs, level)
        chosen, worth = headline_metrics(), runs.effective_groups
        overall = (
            *(_share(runs, rate, table, variances[rate[0].key], level) for rate in chosen.shares),
            *_recall_means(runs, table, rates, recall_variances),
            *(_smooth(metric, table, variances[metric.key], worth, level) for metric, _ in chosen.smooth),
        )
    return GroupedHeadline(Headline(level, overall, rates), effects)


def additive_influences(runs: GroupedRuns, gradient: AdditiveGradient) -> Array:
    """How much each group (G) of one run moves a metric with this gradient (K) in the cell shares; 0 where all of it is
    rounding, which would depend on the order of the samples.
    """
    actual, predicted = np.divmod(runs.cell, runs.n_classes)
    moves = gradient.rows[actual] + gradient.columns[predicted]
    moves = moves + np.where(actual == predicted, gradient.diagonal[actual], 0.0)
    total = runs.count.sum()
    centred = runs.count * (moves - runs.count @ moves / total) / total
    influences = sums_by_code(runs.group, centred, runs.n_groups)
    sizes = sums_by_code(runs.group, runs.count * np.abs(moves) / total, runs.n_groups)
    is_rounding = bool((np.abs(influences) <= ROUNDING * sizes.max()).all())
    return np.zeros_like(influences) if is_rounding else influences


def _variances(runs: GroupedRuns, table: Table) -> tuple[dict[str, float], dict[str, float]]:
    """Variances by the delta method, and how many times they are those of independent samples."""
    known = headline_metrics().gradients
    gradients = stack([gradient(table) for _, gradient in known])
    rows = zip(gradients.diagonal, gradients.rows, gradients.columns, strict=True)
    grouped = [float(group_variance(additive_influences(runs, AdditiveGradient(*row)))) for row in rows]
    alone = additive_variance(table, gradients) / runs.samples_per_weight
    effects = np.where(alone > 0, np.array(grouped) / alone, np.nan)
    keys = [metric.key for metric, _ in known]
    return dict(zip(keys, grouped, strict=True)), dict(zip(keys, effects.tolist(), strict=True))


def _interval(key: str, value: float, ends: tuple[float, float] | None, method: Method) -> OverallInterval:
    if np.isnan(value):
        return OverallInterval(key, np.nan, np.nan, method, Given.GROUPS, Refusal.UNDEFINED_ESTIMATE)
    if ends is None:
        return OverallInterval(key, np.nan, np.nan, method, Given.GROUPS, Refusal.ZERO_STANDARD_ERROR)
    refusal = Refusal.ONE_GROUP if np.isnan(ends).any() else None
    return OverallInterval(key, *ends, method, Given.GROUPS, refusal)


def _share(
    runs: GroupedRuns, share: tuple[Metric[Table], Proportion], table: Table, variance: float, level: float
) -> OverallInterval:
    metric, proportion = share
    rate = proportion.at(table.n_classes)
    hits, total = rate.counts(table)
    groups = Groups(np.asarray(runs.n_groups), np.asarray(runs.effective_groups))
    size = total * runs.samples_per_weight
    low, high = rate.line.limits(*wilson_of_variance(hits / total, size, np.asarray(variance), groups, level))
    return _interval(metric.key, float(metric(table)), (float(low), float(high)), Method.GROUPED_WILSON)


def _recall_means(runs: GroupedRuns, table: Table, rates: RateIntervals, variances: Array) -> Iterator[OverallInterval]:
    """MOVER with correlated rates (Zou 2008): a recall that does not vary between groups has no correlation."""
    place = rates.keys.index(recall.key)
    error = np.sqrt(variances)

    def spread(moved: Array) -> Array:
        """For two sides (2, K): the variance of moves in standard errors is that of the sum of all of them."""
        varies = error > 0
        shares = np.where(varies, moved / error, 0.0)
        together = [float(group_variance(additive_influences(runs, recall_gradient(table, row)))) for row in shares]
        alone = np.where(varies, 0.0, moved)
        found: Array = np.sqrt(np.array(together) + (alone * alone).sum(axis=-1))
        return found

    ends = intervals.mean_limits(table.recall, rates.low[place], rates.high[place], spread=spread)
    for metric, mean in headline_metrics().means:
        low, high = ends[mean]
        yield _interval(metric.key, float(metric(table)), (float(low), float(high)), Method.GROUPED_MOVER)


def _smooth(metric: Metric[Table], table: Table, variance: float, n_groups: float, level: float) -> OverallInterval:
    method = Method.CLUSTER_DELTA_FISHER_Z if is_signed(metric) else Method.CLUSTER_DELTA_LOGIT
    value = float(metric(table))
    half_width = float(student_quantile((1.0 + level) / 2.0, n_groups - 1.0)) * variance**0.5
    return _interval(metric.key, value, limits_on_scale(metric, value, half_width), method)


def _rates(runs: GroupedRuns, level: float) -> tuple[RateIntervals, Array]:
    """Intervals of all rates (R, K), and the variances (K) of the recalls.

    A rate h/s of one class is a ratio of sums over the groups of their four counts against the rest, so the sum of the
    squares (h - r s)^2 follows from the products of these counts, added up over the groups.
    """
    rates = catalogue_rates()
    basis = Table(_BASIS)
    hits, among = (
        np.array([getattr(basis, name)[:, 1] for name in names]) for names in (rates.numerators, rates.denominators)
    )
    counts = _Counts.of(runs)
    totals = among @ counts.sums
    found = (hits @ counts.sums) / totals
    differences = hits[:, None] - found[..., None] * among[:, None]
    squares = np.einsum("rki,kij,rkj->rk", differences, counts.products, differences)
    present = counts.present(among)
    variances = np.maximum(squares, 0.0) / totals**2 * present / (present - 1.0)
    effective = totals**2 / np.einsum("ri,kij,rj->rk", among, counts.products, among)
    sizes = totals * runs.samples_per_weight
    limits = rates.limits(*wilson_of_variance(found, sizes, variances, Groups(present, effective), level))
    given = (Given.GROUPS,) * len(rates.keys)
    of_recall = rates.places[rates.keys.index(recall.key)]
    return RateIntervals(rates.keys, given, *limits, Method.GROUPED_WILSON), variances[of_recall]


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """What groups hold of each class against the rest, for the E pairs of a group and a class that it has.

    Attributes:
        of_class: (E).
        parts: (4, E), in the order of the basis.
        sizes: (G) samples of each group.
        sums: (4, K) over all groups.
        products: (K, 4, 4), of two of the four counts, over all groups.
    """

    of_class: Codes
    parts: Array
    sizes: Array
    sums: Array
    products: Array

    @classmethod
    def of(cls, runs: GroupedRuns) -> Self:
        """From the cells of the groups."""
        size = runs.n_classes
        actual, predicted = np.divmod(runs.cell, size)
        wrong = actual != predicted
        keys = np.concatenate([runs.group * size + actual, (runs.group * size + predicted)[wrong]])
        kinds = np.concatenate([np.where(wrong, _FN, _TP), np.full(np.count_nonzero(wrong), _FP)])
        mass = np.concatenate([runs.count, runs.count[wrong]])
        found, places = np.unique(keys, return_inverse=True)
        parts = sums_by_code(kinds * found.size + places, mass, 4 * found.size).reshape(4, -1)
        sizes = runs.sizes()
        own = sizes[found // size]
        parts[_TN] = own - parts.sum(axis=0)
        of_class = found % size
        sums = sums_by_code(of_class, parts, size)
        sums[_TN] = sizes.sum() - sums[:_TN].sum(axis=0)
        products = np.array([[np.bincount(of_class, one * other, size) for other in parts] for one in parts]).transpose(
            2, 0, 1
        )
        # Groups without the class have negatives only, all of them right.
        products[:, _TN, _TN] += (sizes @ sizes) - np.bincount(of_class, own * own, size)
        return cls(of_class, parts, sizes, sums, products)

    def present(self, among: Array) -> Array:
        """In how many groups there are any of R kinds of samples (R, 4) of each class: (R, K)."""
        size = self.sums.shape[1]
        with_class = np.bincount(self.of_class, minlength=size)
        return np.array(
            [
                np.bincount(self.of_class, row @ self.parts > 0, size) + (self.sizes.size - with_class) * (row[_TN] > 0)
                for row in among
            ]
        )
