"""Which metrics of a matrix have limits in closed form, and what these are called."""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Gradient, Mean, Metric, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.proportion import Cells, Proportion, Rate
from app.kernel.numerics.arrays import Array


class Method(StrEnum):
    """How an interval was made."""

    WILSON = "wilson"
    CLOPPER_PEARSON = "clopper_pearson"
    JEFFREYS = "jeffreys"
    WALD = "wald"
    SIMULTANEOUS = "simultaneous"
    MOVER = "mover"
    DELTA_LOGIT = "delta_logit"
    DELTA_FISHER_Z = "delta_fisher_z"
    GROUPED_WILSON = "grouped_wilson"
    GROUPED_MOVER = "grouped_mover"
    CLUSTER_DELTA_LOGIT = "cluster_delta_logit"
    CLUSTER_DELTA_FISHER_Z = "cluster_delta_fisher_z"
    CLUSTER_BOOTSTRAP = "cluster_bootstrap"
    WEIGHTED_WILSON = "weighted_wilson"
    WEIGHTED_MOVER = "weighted_mover"
    WEIGHTED_DELTA_LOGIT = "weighted_delta_logit"
    WEIGHTED_DELTA_FISHER_Z = "weighted_delta_fisher_z"


class Given(StrEnum):
    """The counts that an interval takes as fixed."""

    SAMPLES = "n"
    ACTUAL = "actual_counts"
    PREDICTED = "predicted_counts"
    GROUPS = "groups"


class Refusal(StrEnum):
    """Why there is no interval."""

    UNDEFINED_ESTIMATE = "undefined_estimate"
    ZERO_STANDARD_ERROR = "zero_standard_error"
    ONE_GROUP = "one_group"


# What limits of a rate among such samples take as fixed.
GIVEN = {
    Cells.ALL: Given.SAMPLES,
    Cells.ACTUAL: Given.ACTUAL,
    Cells.REST: Given.ACTUAL,
    Cells.PREDICTED: Given.PREDICTED,
    Cells.PREDICTED_REST: Given.PREDICTED,
}


@dataclass(frozen=True, slots=True)
class CatalogueRates:
    """The rates of the catalogue, and the F quantities that they are: a rate, or what is missing of it to 1.

    Attributes:
        keys: R of them.
        given: What limits of each take as fixed.
        numerators: Of each quantity, a property of a table.
        denominators: The same.
        places: Which quantity each rate is (R).
        turned: Is it what is missing of that (R)?
    """

    keys: tuple[str, ...]
    given: tuple[Given, ...]
    numerators: tuple[str, ...]
    denominators: tuple[str, ...]
    places: tuple[int, ...]
    turned: tuple[bool, ...]

    def place(self, rate: Rate) -> int:
        """Where a quantity of one class stands among the rates.

        Raises:
            ValueError: no metric of the catalogue is that rate.
        """
        pairs = list(zip(self.numerators, self.denominators, strict=True))
        found = pairs.index((rate.hits.column, rate.among.column))
        return list(zip(self.places, self.turned, strict=True)).index((found, False))

    def limits(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Limits (R, ...) of the rates from those of the quantities (F, ...): complements have mirrored ones."""
        places = list(self.places)
        turned = np.array(self.turned).reshape(-1, *(1,) * (low.ndim - 1))
        low, high = low[places], high[places]
        return np.where(turned, 1.0 - high, low), np.where(turned, 1.0 - low, high)


@cache
def catalogue_rates() -> CatalogueRates:
    """The rates of the catalogue."""
    declared = (
        (metric.key, metric.card.inference.proportion) for metric in catalogue().of_matrices.of_scope(Scope.CLASS)
    )
    # Of more classes than two: with two, rates of different classes are one quantity, with the same counts.
    rates = {key: each.at(3, 0) for key, each in declared if each is not None and each.is_plain}
    pairs = [(rate.hits.column, rate.among.column) for rate in rates.values()]
    distinct = list(dict.fromkeys(pairs))
    return CatalogueRates(
        keys=tuple(rates),
        given=tuple(GIVEN[rate.among] for rate in rates.values()),
        numerators=tuple(numerator for numerator, _ in distinct),
        denominators=tuple(denominator for _, denominator in distinct),
        places=tuple(distinct.index(pair) for pair in pairs),
        turned=tuple(rate.line.slope < 0.0 for rate in rates.values()),
    )


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
    smooth: tuple[tuple[Metric[Table], Gradient], ...]
    gradients: tuple[tuple[Metric[Table], Gradient], ...]


@cache
def headline_metrics() -> HeadlineMetrics:
    """Those whose cards say so."""
    chosen = [metric for metric in catalogue().of_matrices.of_scope(Scope.OVERALL) if metric.card.inference.headline]
    facts = [(metric, metric.card.inference) for metric in chosen]
    shares = tuple((metric, fact.proportion) for metric, fact in facts if fact.proportion is not None)
    means = tuple((metric, fact.mean_of_recalls) for metric, fact in facts if fact.mean_of_recalls is not None)
    gradients = {metric.key: (metric, fact.gradient) for metric, fact in facts if fact.gradient is not None}
    others = [metric.key for metric, _ in (*shares, *means)]
    smooth = tuple(pair for key, pair in gradients.items() if key not in others)
    return HeadlineMetrics(shares, means, smooth, (*(gradients[key] for key in others), *smooth))
