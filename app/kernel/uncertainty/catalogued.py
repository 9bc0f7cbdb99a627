"""Rates and headline metrics of the catalogue, what limits take as fixed, and why there may be none."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Gradient, Mean, Metric, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.proportion import ConfusionCells, Proportion, Rate
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import MOST_UNDEFINED


class Given(StrEnum):
    """The counts that an interval takes as fixed."""

    SAMPLES = "n"
    ACTUAL = "actual_counts"
    PREDICTED = "predicted_counts"
    GROUPS = "groups"


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
    ONE_GROUP = "all samples that it concerns are in one group, so how groups differ is not known"
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
    EQUAL_ROWS = (
        "too many rows are equal, or too few of them were saved, for knowing how the areas of the classes vary together"
    )
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


@dataclass(frozen=True, slots=True)
class CatalogueRates:
    """The rates of the catalogue, and the F quantities that they are: a rate, or what is missing of it to 1.

    Attributes:
        keys: R of them.
        given: What limits of each take as fixed, then those of the overlaps.
        numerators: Of each quantity, a property of a table.
        denominators: The same.
        places: Which quantity each rate is (R).
        turned: Is it what is missing of that (R)?
        overlaps: By key, the O rising maps to metrics that follow from the share of actual and predicted members that
            are both (F1 = 2 J / (1 + J)): the last of the quantities.
    """

    keys: tuple[str, ...]
    given: tuple[Given, ...]
    numerators: tuple[str, ...]
    denominators: tuple[str, ...]
    places: tuple[int, ...]
    turned: tuple[bool, ...]
    overlaps: Mapping[str, Callable[[Array], Array]]

    @property
    def limited(self) -> tuple[str, ...]:
        """Keys (R + O) of what has limits: rates, then overlaps."""
        return (*self.keys, *self.overlaps)

    def quantity(self, rate: Rate) -> int:
        """The place of a rate among the quantities.

        Raises:
            ValueError: no metric of the catalogue is that rate.
        """
        pairs = list(zip(self.numerators, self.denominators, strict=True))
        return pairs.index((rate.hits.column, rate.among.column))

    @property
    def of_recall(self) -> int:
        """The place of the recall among the quantities."""
        return self.quantity(RECALL)

    def limits(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Limits (R + O, ...) of the rates and the overlaps, from those of the quantities (F, ...): complements have
        mirrored ones.
        """
        of_overlaps = [np.array([of(ends[-1]) for of in self.overlaps.values()]) for ends in (low, high)]
        places = list(self.places)
        turned = np.array(self.turned).reshape(-1, *(1,) * (low.ndim - 1))
        low, high = low[places], high[places]
        of_rates = np.where(turned, 1.0 - high, low), np.where(turned, 1.0 - low, high)
        low, high = (np.concatenate(ends) for ends in zip(of_rates, of_overlaps, strict=True))
        return low, high


@cache
def catalogue_rates() -> CatalogueRates:
    """The rates of the catalogue."""
    facts = {metric.key: metric.card.inference for metric in catalogue().of_matrices.of_scope(Scope.CLASS)}
    declared = ((key, fact.proportion) for key, fact in facts.items())
    # Of more classes than two: with two, rates of different classes are one quantity, with the same counts.
    rates = {key: each.at(3, 0) for key, each in declared if each is not None and each.is_plain}
    pairs = [(rate.hits.column, rate.among.column) for rate in rates.values()]
    distinct = list(dict.fromkeys(pairs))
    overlaps = {key: fact.overlap for key, fact in facts.items() if fact.overlap is not None}
    return CatalogueRates(
        keys=tuple(rates),
        given=(*(GIVEN[rate.among] for rate in rates.values()), *(Given.SAMPLES for _ in overlaps)),
        numerators=(*(numerator for numerator, _ in distinct), "tp"),
        denominators=(*(denominator for _, denominator in distinct), "union"),
        places=tuple(distinct.index(pair) for pair in pairs),
        turned=tuple(rate.line.slope < 0.0 for rate in rates.values()),
        overlaps=overlaps,
    )


SmoothMetrics = tuple[tuple[Metric[Table], Gradient], ...]


@dataclass(frozen=True, slots=True)
class HeadlineMetrics:
    """The headline metrics of a matrix as a whole, by what gives them limits in closed form.

    Attributes:
        shares: Rates of the samples.
        means: Means of the recalls.
        smooth: What has limits by its gradient.
        gradients: Of all of them, one kind after another.
    """

    shares: tuple[tuple[Metric[Table], Proportion], ...]
    means: tuple[tuple[Metric[Table], Mean], ...]
    smooth: SmoothMetrics
    gradients: SmoothMetrics


@cache
def headline_metrics() -> HeadlineMetrics:
    """Return the metrics whose cards say that they lead, by the closed form of their limits."""
    chosen = [metric for metric in catalogue().of_matrices.of_scope(Scope.OVERALL) if metric.card.inference.headline]
    facts = [(metric, metric.card.inference) for metric in chosen]
    shares = tuple((metric, fact.proportion) for metric, fact in facts if fact.proportion is not None)
    means = tuple((metric, fact.mean_of_recalls) for metric, fact in facts if fact.mean_of_recalls is not None)
    gradients = {metric.key: (metric, fact.gradient) for metric, fact in facts if fact.gradient is not None}
    others = [metric.key for metric, _ in (*shares, *means)]
    smooth = tuple(pair for key, pair in gradients.items() if key not in others)
    return HeadlineMetrics(shares, means, smooth, (*(gradients[key] for key in others), *smooth))
