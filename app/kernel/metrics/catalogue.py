"""The catalogue: all metrics by key and alias."""

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
)
from app.kernel.metrics.families import (
    agreement,
    averages,
    calibration,
    clusterings,
    decisions,
    detection,
    discrimination,
    imcp,
    information,
    label_sets,
    overlaps,
    proper_scores,
    rate_means,
    rates,
    retrieval,
    score_ranking,
    similarities,
)
from app.kernel.numerics.arrays import kept
from app.kernel.samples.scores import Scores

# The catalogue lists metrics of matrices first, then those of probabilities, then those of other kinds of input; within
# each, modules and tables in this order.
FAMILIES: tuple[ModuleType | tuple[Metric[Table], ...], ...] = (
    rates,
    detection,
    discrimination,
    averages,
    rate_means,
    agreement,
    information,
    averages.ON_REQUEST,
    similarities.RESEMBLANCES,
    similarities.ASSOCIATIONS,
    similarities.BAULIEU,
    score_ranking,
    imcp,
    proper_scores,
    calibration,
    label_sets,
    retrieval,
    overlaps,
    clusterings,
    decisions,
    agreement.ON_REQUEST,
)

_Kind = TypeVar("_Kind", bound=AnyMetric)


class Selection(Generic[_Kind]):
    """Metrics with their names.

    Attributes:
        by_name: Metrics by key and alias.
        shadowed: Metrics by an alias that is also the key of a metric of other tasks.

    Raises:
        ValueError: two metrics of one task claim one name.
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
        """Metric of this name for a task, None being classes; None when there is none."""
        found, other = self.by_name.get(name), self.shadowed.get(name)
        wanted = {Task.BINARY, Task.MULTICLASS} if task is None else {task}
        return found if other is None or (found is not None and not wanted.isdisjoint(found.card.tasks)) else other

    @cached_property
    def revision(self) -> str:
        """Hash that changes with any definition; stored beside values to tell which definitions they were computed
        with.
        """
        facts = ";".join(f"{metric.key}:{metric.card.revision}" for metric in self.metrics)
        return sha256(facts.encode()).hexdigest()[:12]

    def of_scope(self, scope: Scope) -> tuple[_Kind, ...]:
        """Metrics of one class, or of the whole input."""
        return tuple(metric for metric in self.metrics if metric.card.scope is scope)

    def for_task(self, task: Task, inputs: Collection[Inputs]) -> "Selection[_Kind]":
        """Metrics that are defined for a task and computed from these inputs."""
        return Selection(
            metric for metric in self.metrics if task in metric.card.tasks and metric.card.inputs in inputs
        )

    @cached_property
    def reported(self) -> "Selection[_Kind]":
        """Metrics that every report shows."""
        return Selection(metric for metric in self.metrics if not metric.card.on_request)


class Catalogue(Selection[AnyMetric]):
    """All metrics, with the selections by kind of input."""

    @kept
    def reported_of(self, task: Task, inputs: frozenset[Inputs]) -> Selection[AnyMetric]:
        """Metrics that every report of a task shows that has these inputs."""
        known = self.reported.for_task(task, inputs).metrics
        return Selection(one for one in known if task not in one.card.on_request_of)

    @cached_property
    def of_matrices(self) -> Selection[Metric[Table]]:
        """Metrics of a confusion matrix of classes."""
        return Selection(metric for metric in self.metrics if is_of_matrices(metric) and not metric.card.of_labels)

    @cached_property
    def of_probabilities(self) -> Selection[Metric[Scores]]:
        """Metrics of the probabilities or scores of samples."""
        return Selection(metric for metric in self.metrics if is_of_probabilities(metric))


@cache
def catalogue() -> Catalogue:
    """The catalogue, built at first use."""
    declared = [metric for family in FAMILIES for metric in _declared(family)]
    return Catalogue(sorted(declared, key=lambda metric: (not is_of_matrices(metric), not is_of_probabilities(metric))))


def _declared(family: ModuleType | tuple[AnyMetric, ...]) -> tuple[AnyMetric, ...]:
    """Metrics of a table, or those of a module that are not in its table of metrics on request."""
    if isinstance(family, tuple):
        return family
    elsewhere = getattr(family, "ON_REQUEST", ())
    return tuple(value for value in vars(family).values() if isinstance(value, Metric) and value not in elsewhere)


@cache
def _by_key(key: str, inputs: Inputs) -> AnyMetric:
    return next(one for one in catalogue().metrics if one.key == key and one.card.inputs is inputs)


def _named(metric: AnyMetric) -> tuple[Callable[[str, Inputs], AnyMetric], tuple[str, Inputs]]:
    return _by_key, (metric.key, metric.card.inputs)


# Metrics are pickled by name: other processes have the function already.
copyreg.pickle(Metric, _named)
