"""Designs of samples: what closed forms have to know of how the samples behind matrices were drawn.

A rate needs what it is worth as a number of independent samples, a smooth metric its variance, and both how sure that
variance is. Independent samples, samples in weights and samples in groups differ in nothing else.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from functools import cache, cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import (
    AdditiveGradient,
    LabelTable,
    Table,
    WeightedCounts,
    additive_variance,
    recall_gradient,
    stack,
)
from app.kernel.metrics.card import Inputs, Metric, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.proportion import ACCURACY, ConfusionCells, Rate
from app.kernel.numerics.arrays import Array, Mask, kept, silently, sums_by_code
from app.kernel.numerics.scipy_bridge import student_quantile
from app.kernel.samples.areas import ROUNDING
from app.kernel.uncertainty.draws import MOST_UNDEFINED
from app.kernel.uncertainty.groups import GroupedCounts, group_variance
from app.kernel.uncertainty.intervals import Limits, ProportionInterval, Spread, correlated, independent, two_sided_z

# Hits and numbers of samples for intervals of proportions, each (...).
Counts = tuple[Array, Array]
# Which matrices of a batch, as an index of its leading axes.
Selection = tuple[slice, ...]


class Given(StrEnum):
    """The counts that an interval takes as fixed."""

    SAMPLES = "n"
    ACTUAL = "actual_counts"
    PREDICTED = "predicted_counts"
    GROUPS = "groups"


# Methods of rates, which stand beside others of samples in groups.
_OF_RATES = frozenset({*ProportionInterval, "mover"})


class Sampled(Enum):
    """The way in which samples are drawn: each alone, each alone and in weights, or in groups."""

    ALONE = ""
    IN_WEIGHTS = "weighted_"
    IN_GROUPS = "grouped_"

    @classmethod
    def of(cls, *, grouped: bool, weighted: bool) -> "Sampled":
        """Groups that may have weights too, else weights, or neither."""
        return cls.IN_GROUPS if grouped else cls.IN_WEIGHTS if weighted else cls.ALONE

    def named(self, method: str) -> str:
        """Name of a method of such samples."""
        by_clusters = self is Sampled.IN_GROUPS and method not in _OF_RATES
        return f"{'cluster_' if by_clusters else self.value}{method}"


class NoLimits(StrEnum):
    """Why a value has no limits."""

    UNDEFINED = "the metric is undefined for this matrix"
    UNDEFINED_FOR_SAMPLES = "the metric is undefined for these samples"
    UNDEFINED_DRAWS = f"the metric is undefined in more than {MOST_UNDEFINED:.0%} of the simulated matrices"
    UNDEFINED_RESAMPLES = f"the metric is undefined in more than {MOST_UNDEFINED:.0%} of the resamples"
    FIXED = "the value follows from the class counts, which are taken as fixed"
    EMPTY_SLICE = "there are no samples"
    FEW_SLICES = "too few slices have enough samples and a value"
    DEGENERATE = "its estimated variance is zero, which says nothing about its uncertainty"
    UNBOUNDED = "an end of the interval is infinite"
    ABOUT_SAMPLE = "the metric describes this sample and is no property of the classifier"
    ONE_GROUP = "what it concerns, or its class, is in one group at most, so how groups differ is not known"
    FEW_AT_RATE = (
        "too few samples hold the given rate: none of them bounds the threshold in the population (it takes 36 at a "
        "rate of .9 and limits of 95 %)"
    )
    EMPTY_CLASS = "a class has no samples, so what it adds to a mean over the classes is not known"
    NO_COUNTS = "limits need the number of samples behind every entry of the matrix"
    NO_WEIGHTS = "limits need the weight of every sample, and these are not known here"
    NO_GROUPS = "the samples come in groups, and which of them belong together is not known here"
    BIASED = "noise biases the value to one side, and resampling adds the same bias again"
    FEW_FOR_CELLS = (
        "there are fewer samples than cells of classes and clusters, and noise moves the value by more than it varies"
    )
    TOO_MANY_POINTS = "so many points with so many samples or classes cannot be simulated in reasonable time"
    TOO_MANY_CLASSES = "there are too many classes for simulating the matrix in reasonable time"
    TOO_MANY_RUNS = "there are too many runs with so many samples or classes for simulating each in reasonable time"
    FOLDED = "they need all samples at once, and there are more than were held in memory"
    SLOW = "they take a while for so many samples or classes, and are made with intervals of everything"
    TOO_LARGE = "there are too many samples, classes or expressions for resampling them in reasonable time"


# What limits of a rate among such samples take as fixed.
GIVEN = {
    ConfusionCells.ALL: Given.SAMPLES,
    ConfusionCells.ACTUAL: Given.ACTUAL,
    ConfusionCells.REST: Given.ACTUAL,
    ConfusionCells.PREDICTED: Given.PREDICTED,
    ConfusionCells.PREDICTED_REST: Given.PREDICTED,
    ConfusionCells.UNION: Given.SAMPLES,
}


RECALL = Rate(ConfusionCells.TP, ConfusionCells.ACTUAL, None)
_BOTH = Rate(ConfusionCells.TP, ConfusionCells.UNION, None)


@dataclass(frozen=True, slots=True, eq=False)
class CatalogueRates:
    """The rates of single classes in the catalogue, then what follows from the share of actual and predicted members
    that are both (F1 = 2 J / (1 + J)).

    Attributes:
        keys: Of R metrics.
        rates: (R) what each is a line of, as of one of many classes.
        given: (R) what limits of each take as fixed.
        turned: Places of those that are what is missing of the rate to 1.
        overlaps: (O) the rising maps of the last of them, from that share.
    """

    keys: tuple[str, ...]
    rates: tuple[Rate, ...]
    given: tuple[Given, ...]
    turned: NDArray[np.intp]
    overlaps: tuple[Callable[[Array], Array], ...]

    def place(self, rate: Rate) -> int:
        """The first place of the same samples above and below.

        Raises:
            ValueError: no metric of the catalogue is that rate.
        """
        return [(one.hits, one.among) for one in self.rates].index((rate.hits, rate.among))

    def limits(self, low: Array, high: Array) -> Limits:
        """Limits (R, ...) of the metrics, from those of the rates (R, ...)."""
        turned = self.turned
        low[turned], high[turned] = 1.0 - high[turned], 1.0 - low[turned]
        for place, of in enumerate(self.overlaps, start=len(self.keys) - len(self.overlaps)):
            low[place], high[place] = of(low[place]), of(high[place])
        return low, high


@cache
def catalogue_rates() -> CatalogueRates:
    """The rates of the catalogue."""
    facts = {metric.key: metric.card.inference for metric in catalogue().of_matrices.of_scope(Scope.CLASS)}
    declared = ((key, fact.proportion) for key, fact in facts.items())
    # Of more classes than two: with two, rates of different classes are one quantity, with the same counts.
    rates = {key: each.at(3, 0) for key, each in declared if each is not None and each.is_plain}
    overlaps = {key: fact.overlap for key, fact in facts.items() if fact.overlap is not None}
    of_all = (*rates.values(), *(_BOTH for _ in overlaps))
    given = tuple(GIVEN[rate.among] for rate in of_all)
    turned = np.flatnonzero([rate.line.slope < 0.0 for rate in of_all])
    return CatalogueRates((*rates, *overlaps), of_all, given, turned, tuple(overlaps.values()))


def counts_of(rates: Sequence[Rate], table: Table | LabelTable) -> Counts:
    """Hits and samples (R, ..., K) of rates, whatever class they are of."""
    hits, among = (
        np.array([getattr(table, cells.column) for cells in each])
        for each in ([rate.hits for rate in rates], [rate.among for rate in rates])
    )
    return hits, among


class HeadlineMetrics(NamedTuple):
    """Overall metrics by the closed form of their limits: rates of the samples with means of the recalls, and what has
    limits by its gradient. All have a gradient.
    """

    rates: tuple[Metric[Table], ...]
    smooth: tuple[Metric[Table], ...]


@cache
def headline_metrics() -> HeadlineMetrics:
    """Return the metrics whose cards say that they lead."""
    chosen = [metric for metric in catalogue().of_matrices.of_scope(Scope.OVERALL) if metric.card.inference.headline]
    facts = [(metric, metric.card.inference) for metric in chosen]
    shares = [metric for metric, fact in facts if fact.proportion is not None]
    means = [metric for metric, fact in facts if fact.mean_of_recalls is not None]
    smooth = [metric for metric, fact in facts if fact.gradient is not None and metric not in (*shares, *means)]
    return HeadlineMetrics((*shares, *means), tuple(smooth))


def gradients_of(metrics: Sequence[Metric[Table]], table: Table) -> AdditiveGradient:
    """Gradients (M, ..., K) of metrics that have one."""
    known = [metric.card.inference.gradient for metric in metrics]
    return stack([gradient(table) for gradient in known if gradient is not None])


def worth_of_few(effective: Array | float, units: Array | float, level: float) -> Array:
    """Return the effective number of samples (...) for normal limits when their variance is estimated from so many
    independent units of equal size (...): m (t(m-1) / t(u-1))^2, at most m.
    """
    tail = (1.0 + level) / 2.0
    own, known = (student_quantile(tail, np.maximum(np.subtract(size, 1.0), 1.0)) for size in (effective, units))
    return np.asarray(effective * np.minimum(own / known, 1.0) ** 2)


def surer(level: float, samples: float, effective: float) -> float:
    """By how much an interval is wider since the variance comes from n_eff samples and not from n, t / t; 1 for equal
    weights.
    """
    return float(np.sqrt(samples / worth_of_few(samples, effective, level)))


def spread_of_slopes(
    slopes: Array, masses: Array, squares: Array, strata: NDArray[np.intp] | None = None
) -> tuple[Array, Array]:
    """Variances (V) of values by their derivatives, as if masses were counts, and what rounding of them is relative to.

    Sums of s (g - g_)^2 and of s g^2 over the units, with s their squared weights and g_ the mean of the derivatives in
    their masses, of all or, where its size is taken as fixed, of the stratum.

    Args:
        slopes: Derivatives (C, V) by the weight of each unit, such as a cell.
        masses: (C) weight in each.
        squares: (C) sums of the squared weights.
        strata: (C) stratum of each; None is one of all.
    """
    codes = np.zeros(masses.size, np.intp) if strata is None else strata
    sums, totals = np.zeros((codes.max(initial=0) + 1, slopes.shape[1])), np.bincount(codes, masses)
    np.add.at(sums, codes, masses[:, None] * slopes)
    with silently():
        away = slopes - (sums / totals[:, None])[codes]
    return squares @ (away * away), squares @ (slopes * slopes)


# Cells of a class against the rest: the basis that all counts of one class are sums in.
_BASIS = np.zeros((4, 2, 2))
_BASIS[range(4), (1, 1, 0, 0), (1, 0, 1, 0)] = 1.0
_BITS = 1 << np.arange(4)
# Cells of the members of a class, and of the others.
_SIDES = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])


@dataclass(frozen=True, slots=True, eq=False)
class DesignedRate:
    """Rates of samples in weights, or in groups.

    Attributes:
        rate: (...), NaN where there are no samples.
        variance: Of the rate, linearised, (...).
        samples: n, (...).
        effective: Kish's n_eff, or how many groups of one size are worth as much, (...).
        at_edge: What a rate of 0 or 1 is worth, (...); NaN where all is in one group.
    """

    rate: Array
    variance: Array
    samples: Array
    effective: Array
    at_edge: Array

    def as_counts(self, level: float) -> Counts:
        """Hits and samples (...) for intervals of proportions: as many independent ones as the rates are worth; NaN
        where all is in one group.

        n over the design effect, which is the variance over r(1-r)/n and counts as 1 at least (Rao & Scott 1992, Korn &
        Graubard 1998, Kott & Carr 1997). What that comes to, m, is worth less where it exceeds the number of units that
        the variance comes from (`worth_of_few`). A rate of 0 or 1 shows no design effect.
        """
        with silently():
            binomial = self.rate * (1.0 - self.rate) / self.samples
            worth = worth_of_few(self.samples / np.maximum(self.variance / binomial, 1.0), self.effective, level)
        worth = np.where((binomial > 0) & ~np.isnan(self.at_edge), worth, self.at_edge)
        return self.rate * worth, worth


class DesignedSums:
    """Sums over samples in weights, or in groups, that give rates of labels, or of classes, and their variances: what
    lies in the cells of a label, and over the units, samples or groups, products of what each has in two cells.

    A rate h/s is a ratio of sums over the units. Its variance is the linearised one of units drawn with replacement,
    sum (h - r s)^2 / (sum s)^2, which follows from the products; R's `svyratio` has n/(n-1) times this. Of groups it
    has that factor here too.

    Args:
        n_labels: L.
        per_weight: Samples per unit of weight, where the units are groups; None where they are samples.
    """

    def __init__(self, n_labels: int, per_weight: float | None = None) -> None:
        self._per_weight = per_weight
        self._sums, self._products = np.zeros((4, n_labels)), np.zeros((n_labels, 4, 4))
        # By the cells that a unit has some weight in, as bits.
        self._patterns = np.zeros((n_labels, 16))

    @classmethod
    def of_tables(cls, *tables: Table | LabelTable) -> Self:
        """From tables of weights, of squared weights, and of numbers of samples with a weight above 0."""
        made = cls(tables[0].n_classes)
        made._sums, squares, samples = (np.stack([one.tp, one.fn, one.fp, one.tn]) for one in tables)
        made._products[:, range(4), range(4)], made._patterns[:, _BITS] = squares.T, samples.T
        return made

    @classmethod
    def of_groups(
        cls, labels: Iterable[tuple[Mask, Mask]], groups: NDArray[np.intp], mass: Array, per_weight: float | None
    ) -> Self:
        """From whether samples (n) have each label, and whether it was predicted; with their groups and weights (n)."""
        labels, sizes = [*labels], np.bincount(groups, mass).astype(np.float64)
        made = cls(len(labels), per_weight)
        for label, (there, said) in enumerate(labels):
            cells = np.stack([there & said, there & ~said, said & ~there])
            made.add(label, sums_by_code(groups, cells * mass, sizes.size), sizes)
        return made

    def add(self, label: int, parts: Array, sizes: Array) -> None:
        """Add groups: of a label their weight (3, G) in its cells but that of neither, and in all (G)."""
        others = sizes - parts.sum(axis=0)
        # What is less is rounding.
        cells = np.vstack([parts, np.where(others > ROUNDING * sizes, others, 0.0)])
        self._sums[:, label] += cells.sum(axis=1)
        self._products[label] += cells @ cells.T
        self._patterns[label] += np.bincount(_BITS @ (cells > 0), minlength=16)

    def ratios(self, rates: Sequence[Rate]) -> DesignedRate:
        """Rates (R, L) of every label, whatever label ``rates`` are of."""
        hits, among = (counts[..., 1] for counts in counts_of(rates, Table(_BASIS)))
        with silently():
            totals, present, effective = self._among(among)
            found = (hits @ self._sums) / totals
            differences = hits[:, None] - found[..., None] * among[:, None]
            squares = np.einsum("rki,kij,rkj->rk", differences, self._products, differences)
            variances = np.maximum(squares, 0.0) / totals**2
            if self._per_weight is None:
                return DesignedRate(found, variances, present, effective, effective)
            variances *= present / (present - 1.0)
            # Of what is predicted hits are known from the groups of one side, and misses from those of the other.
            _, in_side, of_side = self._among(_SIDES)
            sides = differences * _SIDES[:, None, None]
            parts = np.einsum("srki,kij,srkj->srk", sides, self._products, sides)
            freedom = parts.sum(axis=0) ** 2 / (parts**2 / (of_side[:, None] - 1.0)).sum(axis=0)
        by_truth = np.array([rate.by_truth for rate in rates])[:, None]
        effective = np.where(by_truth, effective, np.fmin(effective, 1.0 + freedom))
        of_hits = in_side[(hits @ _SIDES[1] > 0).astype(np.intp)]
        known = (present > 1) & (by_truth | (of_hits > 1))
        at_edge = np.where(known, present, np.nan)
        return DesignedRate(found, variances, totals * self._per_weight, effective, at_edge)

    def _among(self, cells: Array) -> tuple[Array, Array, Array]:
        """Weight (M, L) in some of the cells (M, 4), how many units have any there, and what these are worth."""
        inside = (np.arange(16)[:, None] & _BITS) > 0
        total = cells @ self._sums
        present = ((inside @ cells.T) > 0).T @ self._patterns.T
        return total, present, total**2 / np.einsum("mi,kij,mj->mk", cells, self._products, cells)

    def rates(self, rate: Rate) -> DesignedRate:
        """One rate of every label (L)."""
        found = self.ratios([rate])
        return DesignedRate(*(getattr(found, name)[0] for name in found.__slots__))


class LeftOut(NamedTuple):
    """Inputs of metrics without each of the groups (G), and what the samples of each weigh (G)."""

    subject: Subject
    sizes: Array


def labels_without_each(cells: Array, sizes: Array) -> LeftOut:
    """Tables of labels without each group (G), from what weigh (3, L, G) those found, said though absent and missed,
    and all samples (G).
    """
    whole = cells.sum(axis=-1, keepdims=True)
    left = np.where(whole - cells > ROUNDING * whole, whole - cells, 0.0)
    hits, false, missed = left.transpose(0, 2, 1)
    table = LabelTable.among(hits, false, missed, (sizes.sum() - sizes)[:, None])
    return LeftOut(Subject({Inputs.MATRIX: table}), sizes)


class Design(ABC):
    """The sampling design of matrices: independent samples, weights or groups.

    Attributes:
        sampled: How samples are drawn, which names of methods say.
        given: What all limits take as fixed; None where it hangs on the metric.
        of: Of which of the matrices limits are wanted.
        effective: How many samples of one weight, or groups of one size, are worth as much as there are; of weights and
            groups alone.
        at_edge: What a rate of 0 or 1 of all samples is worth; of weights and groups alone.
        samples_per_weight: Number of samples per unit of weight; 1 without weights.
    """

    sampled: ClassVar[Sampled]
    given: ClassVar[Given | None]
    of: Selection = ()

    def __init__(
        self,
        table: Table,
        sums: Callable[[], DesignedSums],
        effective: float,
        at_edge: float,
        samples_per_weight: float,
    ) -> None:
        self.table, self._sums, self.samples_per_weight = table, sums, samples_per_weight
        self.effective, self.at_edge = effective, at_edge

    @cached_property
    def _ratios(self) -> DesignedRate:
        """The catalogue's rates (R, K)."""
        return self._sums().ratios(catalogue_rates().rates)

    def accuracy(self, level: float) -> Counts:
        """Right answers and samples (...) for intervals of proportions, as many as they are worth."""
        (hits, total), right = ACCURACY.counts(self.table), np.ones((1, self.table.n_classes))
        (variance,) = self.variances(AdditiveGradient(right, 0.0 * right, 0.0 * right))
        samples, effective, at_edge = map(np.asarray, (total * self.samples_per_weight, self.effective, self.at_edge))
        return DesignedRate(hits / total, variance, samples, effective, at_edge).as_counts(level)

    @kept
    def rates(self, level: float) -> Counts:
        """Hits and samples (R, ..., K) of the catalogue's rates (``catalogue_rates``) of each class, as many as they
        are worth.
        """
        return self._ratios.as_counts(level)

    @abstractmethod
    def variances(self, gradients: AdditiveGradient) -> Array:
        """Variances (M, ...) of metrics with these gradients (M, ..., K) in the cell shares."""

    def variances_of(self, metrics: Sequence[Metric[Table]], gradients: AdditiveGradient) -> Array:  # noqa: ARG002
        """Variances (M, ...) of M metrics, which have these gradients."""
        return self.variances(gradients)

    @abstractmethod
    def reach(self, level: float) -> float:
        """Half width of an interval in standard errors."""

    def counts(self, rate: Rate, level: float) -> Counts:
        """Hits and samples of one rate for intervals of proportions."""
        if rate.of is None:
            return self.accuracy(level)
        place = catalogue_rates().place(rate)
        hits, among = self.rates(level)
        return hits[place, ..., rate.of], among[place, ..., rate.of]

    def recalls(self, level: float) -> Counts:
        """Hits and samples (..., K) of the recalls."""
        hits, among = self.rates(level)
        place = catalogue_rates().place(RECALL)
        return hits[place], among[place]

    @property
    def spread(self) -> Spread:
        """Function from the moves of single recalls to the move of their sum."""
        return independent


class Independent(Design):
    """Independent samples.

    Args:
        matrices: (..., K, K).
        of: Of which of them limits are wanted.
    """

    sampled, given = Sampled.ALONE, None

    def __init__(self, matrices: Table, of: Selection = ()) -> None:
        self.table, self.of, self.samples_per_weight = matrices, of, 1.0

    def accuracy(self, level: float) -> Counts:  # noqa: ARG002 - every sample is worth one
        """Right answers and samples (...)."""
        hits, among = ACCURACY.counts(self.table)
        return hits[self.of], among[self.of]

    def rates(self, level: float) -> Counts:  # noqa: ARG002 - every sample is worth one
        """Hits and samples (R, ..., K)."""
        hits, among = counts_of(catalogue_rates().rates, self.table)
        return hits[:, *self.of], among[:, *self.of]

    def recalls(self, level: float) -> Counts:  # noqa: ARG002 - every sample is worth one
        """Hits and samples (..., K) of the recalls."""
        return self.table.tp[self.of], self.table.actual[self.of]

    def variances(self, gradients: AdditiveGradient) -> Array:
        """Variances of multinomial counts."""
        return additive_variance(self.table, gradients)

    def reach(self, level: float) -> float:
        """A normal quantile."""
        return two_sided_z(level)


class Weighted(Design):
    """Independent samples in weights: linearised variances of sampling with replacement, which R's `survey` has
    n/(n-1) times.
    """

    sampled, given = Sampled.IN_WEIGHTS, Given.SAMPLES

    def __init__(self, sums: WeightedCounts) -> None:
        tables, effective = [Table(one) for one in (sums.counts, sums.squares, sums.samples)], sums.effective_samples
        per_weight = float(sums.samples.sum() / sums.counts.sum())
        super().__init__(tables[0], lambda: DesignedSums.of_tables(*tables), effective, effective, per_weight)
        self.sums = sums

    def variances(self, gradients: AdditiveGradient) -> Array:
        """Sum w^2 (g - g_)^2 / (sum w)^2 with the weighted mean g_ of the derivatives of the samples."""
        # Where a class has no samples a derivative need not exist.
        used = self.sums.counts > 0
        counts = self.sums.counts[used]
        found, gross = spread_of_slopes(gradients.by_cell[:, used].T, counts, self.sums.squares[used])
        return np.where(found <= ROUNDING * gross, 0.0, found) / float(counts.sum()) ** 2

    def reach(self, level: float) -> float:
        """A normal quantile, further out where few samples carry the weight."""
        return two_sided_z(level) * surer(level, float(self.sums.samples.sum()), self.effective)


class Grouped(Design):
    """Samples in groups, perhaps in weights: the groups are independent."""

    sampled, given = Sampled.IN_GROUPS, Given.GROUPS

    def __init__(self, runs: GroupedCounts) -> None:
        per_weight = runs.samples_per_weight
        super().__init__(Table(runs.matrix()), self._in_groups, runs.effective_groups, float(runs.n_groups), per_weight)
        self.runs = runs

    def _in_groups(self) -> DesignedSums:
        runs, (actual, predicted) = self.runs, np.divmod(self.runs.cell, self.runs.n_classes)
        labels = ((actual == of, predicted == of) for of in range(runs.n_classes))
        return DesignedSums.of_groups(labels, runs.codes, runs.times, runs.samples_per_weight)

    def variances(self, gradients: AdditiveGradient) -> Array:
        """Variances of sums over the groups of the influences of their samples, with G/(G-1)."""
        rows = zip(gradients.diagonal, gradients.rows, gradients.columns, strict=True)
        return np.array([float(group_variance(additive_influences(self.runs, AdditiveGradient(*row)))) for row in rows])

    def variances_of(self, metrics: Sequence[Metric[Table]], gradients: AdditiveGradient) -> Array:
        """Variances of the jackknife, of too many groups by the gradients."""

        def values(table: Table) -> Array:
            return np.stack([metric(table) for metric in metrics], axis=-1)

        moved = self.runs.without_each(values(self.table), values)
        if moved is None:
            return self.variances(gradients)
        count = np.maximum(np.count_nonzero(moved, axis=1), 2)
        found: Array = np.square(moved).sum(axis=1) * count / (count - 1.0)
        return found

    def reach(self, level: float) -> float:
        """Student's quantile of as many groups of one size as are worth as much."""
        return float(student_quantile((1.0 + level) / 2.0, self.effective - 1.0))

    @property
    def spread(self) -> Spread:
        """Function from the moves of single recalls to the move of their sum, whose errors groups correlate."""
        place, groups = catalogue_rates().place(RECALL), self.runs.n_groups
        # Of all groups, as the variances of sums are, and not of those alone that have some of the class.
        own = 1.0 - 1.0 / self._ratios.at_edge[place]
        errors = np.sqrt(self._ratios.variance[place] * own * groups / (groups - 1.0))
        return correlated(
            errors, lambda rows: self.variances(stack([recall_gradient(self.table, row) for row in rows]))
        )


def design_effects(design: Design) -> Mapping[str, float]:
    """By overall metric how many times larger its variance is than that of as many independent samples of one weight;
    NaN where that is 0.
    """
    known = [metric for some in headline_metrics() for metric in some]
    with silently():
        gradients = gradients_of(known, design.table)
        alone = additive_variance(design.table, gradients) / design.samples_per_weight
        effects = np.where(alone > 0, design.variances(gradients) / alone, np.nan)
    return dict(zip((metric.key for metric in known), effects.tolist(), strict=True))


def additive_influences(runs: GroupedCounts, gradient: AdditiveGradient) -> Array:
    """Influence (G) of each group of one run on a metric with this gradient (K) in the cell shares; 0 where all of it
    is rounding, which would depend on the order of the samples.
    """
    moves, total = gradient.by_cell.ravel()[runs.cell], runs.times.sum()
    with silently():
        centred = runs.times * (moves - runs.times @ moves / total) / total
        sizes = sums_by_code(runs.codes, runs.times * np.abs(moves) / total, runs.n_groups)
    influences = sums_by_code(runs.codes, centred, runs.n_groups)
    is_rounding = bool((np.abs(influences) <= ROUNDING * sizes.max()).all())
    return np.zeros_like(influences) if is_rounding else influences
