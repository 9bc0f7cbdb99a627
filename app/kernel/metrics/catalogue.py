"""All metrics by key and by every other name they go by."""

from collections.abc import Iterable
from functools import cache, cached_property
from hashlib import sha256
from types import ModuleType

from app.kernel.metrics.card import Metric, Scope
from app.kernel.metrics.families import (
    accuracy,
    agreement,
    averages,
    calibration,
    detection,
    discrimination,
    gps,
    imcp,
    information,
    proper,
    ranking,
    rates,
    recall_means,
)

# The order in which the catalogue lists them.
MATRIX_FAMILIES: tuple[ModuleType, ...] = (
    rates,
    detection,
    discrimination,
    accuracy,
    averages,
    recall_means,
    gps,
    agreement,
    information,
)


PROBABILITY_FAMILIES: tuple[ModuleType, ...] = (ranking, imcp, proper, calibration)


def _declared(modules: Iterable[ModuleType]) -> tuple[Metric, ...]:
    return tuple(value for module in modules for value in vars(module).values() if isinstance(value, Metric))


class Catalogue:
    """Metrics with their names. Raises ValueError when two metrics claim one name."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        self.metrics: tuple[Metric, ...] = tuple(metrics)
        self.by_name: dict[str, Metric] = {}
        for metric in self.metrics:
            for name in (metric.key, *metric.card.aliases):
                if name in self.by_name:
                    raise ValueError(f"{name!r} names both {self.by_name[name].key} and {metric.key}")
                self.by_name[name] = metric

    @cached_property
    def revision(self) -> str:
        """Changes when a definition does: stored beside values to tell which definitions they were computed with."""
        facts = ";".join(f"{metric.key}:{metric.card.revision}" for metric in self.metrics)
        return sha256(facts.encode()).hexdigest()[:12]

    def of_scope(self, scope: Scope) -> tuple[Metric, ...]:
        """Those of one class, or those of the whole input."""
        return tuple(metric for metric in self.metrics if metric.card.scope is scope)


@cache
def catalogue() -> Catalogue:
    """The one catalogue, built at first use."""
    return Catalogue(_declared(MATRIX_FAMILIES))


@cache
def probability_catalogue() -> Catalogue:
    """The metrics of probabilities, whose functions take ``Scores`` instead of a table."""
    return Catalogue(_declared(PROBABILITY_FAMILIES))


@cache
def whole_catalogue() -> Catalogue:
    """The metrics of matrices, and those of probabilities behind them."""
    return Catalogue((*catalogue().metrics, *probability_catalogue().metrics))
