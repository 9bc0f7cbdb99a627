"""Closed-form intervals for samples in groups, such as several of one patient: the groups are independent, the
samples are not.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, kish_effective_n, silently, sums_by_code
from app.kernel.numerics.scipy_bridge import normal_cdf, student_quantile
from app.kernel.samples.areas import ROUNDING
from app.kernel.uncertainty.simulation import item_weights

Codes = NDArray[np.intp]
# With fewer groups intervals hold the truth too seldom where groups differ in size, however many samples there are.
FEW_GROUPS = 30
# Entries of a table of groups by cells that is multiplied with; larger ones are summed entry by entry.
_DENSE = 1 << 22
_AT_ONCE = 1 << 21
# Of more groups some at random are drawn as one, as the method of random groups does: the variance of what is drawn is
# that of single groups, give or take sqrt(1 / (2 * _DRAWN)) of its root, 0.6 %.
_DRAWN = 1 << 14
# Time of resampling, in that of drawing one group or adding one entry: some seconds. An entry of a table that is
# multiplied with takes less.
_MOST_WORK = 400_000_000
_WORK_IN_TABLE = 0.04
# Entries of the matrices without each of the groups; beyond, one group has little weight, and derivatives are faster.
MOST_LEFT_OUT = 1 << 21
# Read out to here an interval is as wide as all draws.
_HIGHEST_LEVEL = 1.0 - 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class Grouping:
    """Groups of dependent samples.

    Attributes:
        codes: (n) group of each sample, 0..G-1.
        n_groups: G.
        times: (n) how many samples each stands for; None is 1 each.
    """

    codes: Codes
    n_groups: int
    times: NDArray[Any] | None = None

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

    def held(self, classes: Sequence[NDArray[Any]], weights: Array) -> Array:
        """Weight (S, G) of each group in each of the strata that classes (n) of several kinds divide samples into."""
        strata = np.zeros(self.codes.size, np.intp)
        for one in classes:
            strata = np.unique(strata * (int(one.max()) + 1) + one, return_inverse=True)[1]
        places, n_strata = strata * self.n_groups + self.codes, int(strata.max()) + 1
        return sums_by_code(places, weights, n_strata * self.n_groups).reshape(-1, self.n_groups)

    def weights(self, *, draws: int, random: np.random.Generator, batch: int) -> Iterator[Array]:
        """Batches (d, n) of how often each sample is drawn with its group; ``draws`` in total."""
        for drawn in _group_weights(self.n_groups, draws=draws, random=random, batch=batch):
            yield drawn.take(self.codes, axis=1)


def _group_weights(n_groups: int, *, draws: int, random: np.random.Generator, batch: int) -> Iterator[Array]:
    """Batches (d, G) of how often each group is among as many, drawn with replacement."""
    return item_weights(np.zeros(n_groups, dtype=np.int64), draws=draws, random=random, batch=batch)


@dataclass(frozen=True, slots=True, eq=False)
class GroupedCounts(Grouping):
    """Labels of one run in groups, as counts of what each group holds.

    Attributes:
        times: (M) samples of an entry, or the sum of their weights.
        cell: (M) actual and predicted class as one number, actual K + predicted.
        n_classes: K.
        n_samples: How many there are.
    """

    times: Array
    cell: Codes
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
    ) -> Self:
        """From samples in any order.

        Args:
            groups: (n) group of each sample, 0..G-1.
            truth: (n) actual class.
            predictions: (n) predicted class.
            n_classes: K.
            weights: (n) of the samples.

        Raises:
            ValueError: there are fewer than two groups: nothing is known of how they differ.
        """
        n_groups, n_cells = int(groups.max()) + 1, n_classes * n_classes
        if n_groups < 2:
            raise ValueError("at least two groups are needed")
        cells = np.asarray(truth, dtype=np.int64) * n_classes + predictions
        places = np.asarray(groups, dtype=np.int64) * n_cells + cells
        keys, members = np.unique(places, return_inverse=True)
        counts = np.bincount(members, weights).astype(np.float64)
        n_samples = truth.size if weights is None else int(np.count_nonzero(weights > 0))
        return cls(keys // n_cells, n_groups, counts, keys % n_cells, n_classes, n_samples)

    @property
    def samples_per_weight(self) -> float:
        """Number of samples per unit of weight; 1 without weights, NaN where all weights are 0."""
        weight = float(self.times.sum())
        return self.n_samples / weight if weight else np.nan

    def matrix(self) -> Array:
        """The confusion matrix (K, K) of all groups together."""
        size = self.n_classes
        return sums_by_code(self.cell, self.times, size * size).reshape(size, size)

    def resample(self, *, draws: int, random: np.random.Generator) -> Iterator[Array]:
        """Batches (d, K, K) of the matrices of as many groups, drawn with replacement; ``draws`` in total.

        Of more groups than `_DRAWN` some at random are one (random groups: Wolter 2007, chapter 2).
        """
        drawn, size = self._together(random), self.n_classes
        filled, place = np.unique(drawn.cell, return_inverse=True)
        table, shape = None, (drawn.n_groups, filled.size)
        if drawn.n_groups * filled.size <= _DENSE:
            table = np.bincount(drawn.codes * filled.size + place, drawn.times, math.prod(shape)).reshape(shape)
        batch = max(1, _AT_ONCE // max(drawn.n_groups, size * size))
        for weights in _group_weights(drawn.n_groups, draws=draws, random=random, batch=batch):
            matrices = np.zeros((len(weights), size * size))
            entries = (weight.take(drawn.codes) * drawn.times for weight in weights)
            matrices[:, filled] = [np.bincount(place, one) for one in entries] if table is None else weights @ table
            yield matrices.reshape(-1, size, size)

    def _together(self, random: np.random.Generator) -> Self:
        """Groups of which equally many at random, but for one, are one where there are too many to draw each."""
        each = -(-self.n_groups // _DRAWN)
        if each == 1:
            return self
        places = random.permutation(self.n_groups) // each
        return replace(self, codes=places.take(self.codes), n_groups=int(places.max()) + 1)

    def left_out(self) -> Array:
        """The matrix without each of the groups, shape (G, K, K)."""
        whole, size = self.matrix(), self.n_classes * self.n_classes
        held = np.bincount(self.codes * size + self.cell, self.times, self.n_groups * size)
        left = whole - held.reshape(self.n_groups, *whole.shape)
        return np.where(left > ROUNDING * whole, left, 0.0)

    def without_each(self, values: Array, functional: Callable[[Table], Array]) -> Array | None:
        """Return how far values (V) of the matrix move without each group, as `moved_by_groups` says; None of too many
        groups.
        """
        if self.n_groups * self.n_classes**2 > MOST_LEFT_OUT:
            return None
        return moved_by_groups(values, np.reshape(functional(Table(self.left_out())), (self.n_groups, -1)))

    def affordable_draws(self, draws: int) -> int:
        """So many of the draws as take some seconds."""
        n_groups = min(self.n_groups, _DRAWN)
        table = n_groups * np.unique(self.cell).size
        work = _WORK_IN_TABLE * table if table <= _DENSE else self.cell.size
        return min(draws, int(_MOST_WORK / (n_groups + work)))


def variance_freedom(influence: Array) -> float:
    """Degrees of freedom of a variance that is a sum of squared influences (n), from how unequal these are.

    2 / (sum u^4 / (sum u^2)^2 - 1/n), which is n for a normal distribution (Satterthwaite 1946), at least 1; infinite
    where nothing varies.
    """
    used = influence[influence != 0.0]
    if used.size < 2:
        return 1.0 if used.size else np.inf
    squares = used * used
    spread = float((squares * squares).sum() / squares.sum() ** 2) - 1.0 / influence.size
    return float(np.clip(2.0 / max(spread, 1e-12), 1.0, influence.size - 1.0))


def carrying_freedom(influences: Array, about: Array, *, alone: bool) -> float:
    """Degrees of freedom of the variance of a metric of classes, as `widened` has its influences (G) and ``about``;
    infinite of all other metrics.

    From how unequal influences are, and of a run ``alone`` from how few groups a class is in (Satterthwaite 1946),
    which moves two runs on the same samples alike.
    """
    shares = _shares_of_groups(about)
    if len(shares) < 2:
        return np.inf
    carrying = variance_freedom(influences)
    if not alone:
        return carrying
    with silently():
        parts = np.nan_to_num(shares / shares.sum(axis=0)) @ (influences * influences)
        known = 1.0 / (shares * shares).sum(axis=1) - 1.0
        by_class = float(parts.sum() ** 2 / (parts * parts / known).sum())
    return min(carrying, max(1.0, by_class))


def _shares_of_groups(about: Array) -> Array:
    """Shares (S, G) of the groups in what each class weighs that counts at all."""
    held = about[about.any(axis=1)]
    return np.asarray(held / held.sum(axis=1, keepdims=True))


def moved_by_groups(values: Array, left: Array) -> Array:
    """Return how far values (V) are from those without each group (G, V), as (V, G) such that G/(G-1) of the squares
    are variances of the jackknife; NaN where a value is about one group, or needs one.

    Where a class is in few groups, derivatives take the variance for too small (MacKinnon, Nielsen & Webb 2023).
    """
    moved = np.where(np.abs(values - left) <= ROUNDING * np.abs(values), 0.0, values - left)
    # Of the groups that a value is about at all.
    count = np.count_nonzero(moved, axis=0)
    found: Array = (moved * np.where(count == 1, np.nan, (count - 1.0) / np.maximum(count, 1.0))).T
    return found


def widened(influences: Array, about: Array) -> Array:
    """Influences (G) of groups of which the sum of squares is a variance between groups; NaN where all, or all of a
    class, is in one group.

    Without one of m groups of one weight the mean of a class moves by m/(m-1) times its influence: so metrics of
    classes have the variance of the jackknife, which is larger where a class is in few groups (MacKinnon, Nielsen &
    Webb 2023). A group that has several classes has the mean of theirs, as it has shares of them. All other variances
    are G/(G-1) times those of the influences (Liang & Zeger 1986).

    Args:
        influences: (G).
        about: Weight (S, G) of the samples that count, by class where the value is of several.
    """
    shares = _shares_of_groups(about)
    if (np.count_nonzero(shares, axis=1) < 2).any():
        return np.full(influences.shape, np.nan)
    of_groups = shares.sum(axis=0)
    count = np.count_nonzero(of_groups)
    each = np.asarray(count / (count - 1.0))
    if len(shares) > 1:
        with silently():
            each = (1.0 / (1.0 - (shares * shares).sum(axis=1))) @ shares / of_groups
    # A group without a share has no influence.
    found: Array = np.where(influences != 0.0, influences * each, 0.0) * (1.0 - 1.0 / count) ** 0.5
    return found


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
