"""All metrics by key and by every other name they go by."""

import copyreg
from collections.abc import Callable, Collection, Iterable
from functools import cache, cached_property
from hashlib import sha256
from types import ModuleType
from typing import Generic, TypeVar

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import (
    AnyMetric,
    Inputs,
    Metric,
    Scope,
    Task,
    is_of_matrices,
    is_of_probabilities,
    is_of_rankings,
)
from app.kernel.metrics.families.clustering import information as shared_information
from app.kernel.metrics.families.clustering import pairs, shape
from app.kernel.metrics.families.labels import rankings as label_rankings
from app.kernel.metrics.families.labels import sets as label_sets
from app.kernel.metrics.families.overall import (
    accuracy,
    agreement,
    averages,
    decided,
    gps,
    information,
    more_averages,
    recall_means,
)
from app.kernel.metrics.families.overall import costs as matrix_costs
from app.kernel.metrics.families.per_class import detection, discrimination, rates
from app.kernel.metrics.families.probabilities import (
    areas,
    calibration,
    costs,
    imcp,
    operating_points,
    proper,
    ranking,
    recalibration,
)
from app.kernel.metrics.families.similarity import association, baulieu, resemblance
from app.kernel.metrics.families.units import at_cutoffs, overlaps, whole_lists
from app.kernel.samples.scores import Scores
from app.kernel.units.queries import Queries

# The order in which the catalogue lists them, modules and tables: the metrics of matrices, behind them those of
# probabilities, and then those of other kinds of input.
FAMILIES: tuple[ModuleType | tuple[Metric[Table], ...], ...] = (
    rates,
    detection,
    discrimination,
    accuracy,
    averages,
    recall_means,
    gps,
    agreement,
    information,
    more_averages,
    resemblance.COEFFICIENTS,
    association.COEFFICIENTS,
    baulieu.COEFFICIENTS,
    matrix_costs,
    ranking,
    operating_points,
    areas,
    imcp,
    proper,
    calibration,
    recalibration,
    costs,
    label_sets,
    label_rankings,
    at_cutoffs,
    whole_lists,
    overlaps,
    pairs,
    shared_information,
    shape,
    decided,
)

_Kind = TypeVar("_Kind", bound=AnyMetric)


class Selection(Generic[_Kind]):
    """Metrics with their names. Raises ValueError when two metrics of one task claim one name.

    Attributes:
        by_name: By key and alias.
        shadowed: What an alias means for its own tasks that is the key of a metric of others.
    """

    def __init__(self, metrics: Iterable[_Kind]) -> None:
        self.metrics: tuple[_Kind, ...] = tuple(metrics)
        self.by_name: dict[str, _Kind] = {}
        self.shadowed: dict[str, _Kind] = {}
        named = [(metric.key, metric) for metric in self.metrics]
        named += [(alias, metric) for metric in self.metrics for alias in metric.card.aliases]
        for name, metric in named:
            known = self.by_name.get(name)
            if known is None:
                self.by_name[name] = metric
            elif name in self.shadowed or set(known.card.tasks) & set(metric.card.tasks):
                raise ValueError(f"{name!r} names both {known.key} and {metric.key}")
            else:
                self.shadowed[name] = metric

    def named(self, name: str, task: Task | None) -> _Kind | None:
        """What a name means for a task, None being classes; None when there is no such name."""
        found, other = self.by_name.get(name), self.shadowed.get(name)
        wanted = {Task.BINARY, Task.MULTICLASS} if task is None else {task}
        return found if other is None or (found is not None and not wanted.isdisjoint(found.card.tasks)) else other

    @cached_property
    def revision(self) -> str:
        """Changes when a definition does: stored beside values to tell which definitions they were computed with."""
        facts = ";".join(f"{metric.key}:{metric.card.revision}" for metric in self.metrics)
        return sha256(facts.encode()).hexdigest()[:12]

    def of_scope(self, scope: Scope) -> tuple[_Kind, ...]:
        """Those of one class, or those of the whole input."""
        return tuple(metric for metric in self.metrics if metric.card.scope is scope)

    def for_task(self, task: Task, inputs: Collection[Inputs]) -> "Selection[_Kind]":
        """Those that make sense for a task and are computed from what there is."""
        return Selection(
            metric for metric in self.metrics if task in metric.card.tasks and metric.card.inputs in inputs
        )

    @cached_property
    def reported(self) -> "Selection[_Kind]":
        """Those that stand in every report."""
        return Selection(metric for metric in self.metrics if not metric.card.on_request)


class Catalogue(Selection[AnyMetric]):
    """All metrics, and what there is for each kind of input."""

    @cached_property
    def of_matrices(self) -> Selection[Metric[Table]]:
        """Those of a confusion matrix."""
        return Selection(metric for metric in self.metrics if is_of_matrices(metric))

    @cached_property
    def of_probabilities(self) -> Selection[Metric[Scores]]:
        """Those of the probabilities or scores of samples."""
        return Selection(metric for metric in self.metrics if is_of_probabilities(metric))

    @cached_property
    def of_rankings(self) -> Selection[Metric[Queries]]:
        """Those of ranked items of queries."""
        return Selection(metric for metric in self.metrics if is_of_rankings(metric))


@cache
def catalogue() -> Catalogue:
    """The one catalogue, built at first use."""
    return Catalogue(metric for family in FAMILIES for metric in _declared(family))


def _declared(family: ModuleType | tuple[AnyMetric, ...]) -> tuple[AnyMetric, ...]:
    """The metrics of a module, or those of a table."""
    if isinstance(family, tuple):
        return family
    return tuple(value for value in vars(family).values() if isinstance(value, Metric))


@cache
def _by_key(key: str, inputs: Inputs) -> AnyMetric:
    return next(one for one in catalogue().metrics if one.key == key and one.card.inputs is inputs)


def _named(metric: AnyMetric) -> tuple[Callable[[str, Inputs], AnyMetric], tuple[str, Inputs]]:
    return _by_key, (metric.key, metric.card.inputs)


# A metric that is sent to another process is its name: its function stands there already.
copyreg.pickle(Metric, _named)
