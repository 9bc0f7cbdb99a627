"""Rates and headline metrics of the catalogue, and what their limits take as fixed."""

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


class Given(StrEnum):
    """The counts that an interval takes as fixed."""

    SAMPLES = "n"
    ACTUAL = "actual_counts"
    PREDICTED = "predicted_counts"
    GROUPS = "groups"


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
