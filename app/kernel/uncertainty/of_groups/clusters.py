"""Samples that come in groups, such as several of one patient: what is independent are the groups, not the samples.

Groups are resampled (Davison & Hinkley 1997, section 3.8), or influences summed within them (the sandwich of Liang &
Zeger 1986). Runs on the same groups are resampled together, which pairs them whatever their samples have in common.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, kish_effective_n, silently
from app.kernel.numerics.special import normal_cdf, student_cdf, student_quantile
from app.kernel.samples.losses import sums_by_code
from app.kernel.uncertainty.design import generator
from app.kernel.uncertainty.draws import Functional, Summary, evaluate_draws, summarise
from app.kernel.uncertainty.intervals import Limits, wilson
from app.kernel.uncertainty.of_matrices.bootstrap import item_weights

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
