"""Where the values of the catalogue stand in a report: which group, in which order. Depends on K = 2 or K > 2 only."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray

from app.domain.report import Group
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Metric, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.rates import prevalence, recall
from app.services.json_values import NUMBER, Form


@dataclass(frozen=True, slots=True, eq=False)
class GroupedOrder:
    """Some metrics of one scope in the order in which they are answered, group after group.

    Attributes:
        form: The JSON of a class or of the whole matrix, `GroupedMetrics`.
        order: Positions of all of them, groups one after another, in the values of the scope.
    """

    form: Form
    order: NDArray[np.intp]


def _block(metrics: Sequence[Metric[Table]], n_classes: int) -> GroupedOrder:
    """Insensitive, sensitive, and twins at equal prevalence, whose positions continue after the last metric."""
    insensitive = [i for i, m in enumerate(metrics) if m.card.prevalence.is_insensitive(n_classes)]
    sensitive = [i for i, m in enumerate(metrics) if not m.card.prevalence.is_insensitive(n_classes)]
    twins = [i for i, m in enumerate(metrics) if m.card.has_twin(n_classes)]
    names = [metric.key for metric in metrics]
    groups = {Group.INSENSITIVE: insensitive, Group.SENSITIVE: sensitive, Group.BALANCED: twins}
    return GroupedOrder(
        form=Form.of({group.value: {names[i]: NUMBER for i in those} for group, those in groups.items()}),
        order=np.array(insensitive + sensitive + [i + len(metrics) for i in twins], dtype=np.intp),
    )


@dataclass(frozen=True, slots=True, eq=False)
class MetricOrder:
    """The matrix metrics by scope, and the two blocks of a report.

    ``overall`` covers, for two classes, the metrics of the positive class too.
    """

    class_metrics: tuple[Metric[Table], ...]
    overall_metrics: tuple[Metric[Table], ...]
    overall_keys: tuple[str, ...]
    per_class: GroupedOrder
    overall: GroupedOrder
    needs_counts: NDArray[np.intp]
    recall: int
    prevalence: int


@cache
def metric_order(*, binary: bool) -> MetricOrder:
    """The order for two classes, or for more."""
    n_classes = 2 if binary else 3
    metrics = catalogue().of_matrices.reported
    by_class, overall = metrics.of_scope(Scope.CLASS), metrics.of_scope(Scope.OVERALL)
    return MetricOrder(
        class_metrics=by_class,
        overall_metrics=overall,
        overall_keys=tuple(metric.key for metric in overall),
        per_class=_block(by_class, n_classes),
        overall=_block((*overall, *by_class) if binary else overall, n_classes),
        recall=by_class.index(recall),
        prevalence=by_class.index(prevalence),
        needs_counts=np.array([i for i, metric in enumerate(overall) if metric.card.needs_counts], dtype=np.intp),
    )
