"""The kinds of input that are more than a matrix of classes, by what is judged in them."""

from collections.abc import Collection, Mapping
from typing import Final

from app.domain.expressions.expressions import render
from app.domain.inputs.matrices import MatrixInput
from app.domain.named_metrics import RANKED
from app.kernel.metrics.card import INPUTS_OF_CLASSES, AnyMetric, Inputs, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Measure
from app.services.kinds.clustering import CLUSTERING_KIND
from app.services.kinds.decisions import DECISIONS_KIND
from app.services.kinds.kind import UnitKind
from app.services.kinds.multilabel import MULTILABEL_KIND
from app.services.kinds.ranking import RANKING_KIND
from app.services.kinds.sets import SETS_KIND

UNIT_KINDS: Final[Mapping[Task, UnitKind]] = {
    Task.MULTILABEL: MULTILABEL_KIND,
    Task.RANKING: RANKING_KIND,
    Task.CLUSTERING: CLUSTERING_KIND,
    Task.DECISIONS: DECISIONS_KIND,
    Task.SETS: SETS_KIND,
}


def inputs_of(source: MatrixInput) -> frozenset[Inputs]:
    """What metrics of an input can be computed from."""
    if source.task is not None:
        return UNIT_KINDS[source.task].inputs(source)
    return INPUTS_OF_CLASSES if source.is_scored else frozenset({Inputs.MATRIX})


def usual_metrics(task: Task, inputs: Collection[Inputs]) -> tuple[str, ...]:
    """What is looked at first where a task is judged, at default parameters, as expressions."""
    reported = catalogue().reported.for_task(task, inputs).of_scope(Scope.OVERALL)
    return tuple(_usual(one) for one in reported if one.card.inference.leads(task))


def ranked_by(source: MatrixInput) -> str:
    """What runs such as this one are ranked by where no metric is named, as an expression."""
    inputs = inputs_of(source)
    candidates = () if source.task is None else UNIT_KINDS[source.task].ranked
    return next((_usual(one) for one in candidates if one.card.inputs in inputs), RANKED)


def _usual(metric: AnyMetric) -> str:
    """A metric at its default parameters."""
    return render(Measure(metric, metric.card.defaults, None), ())
