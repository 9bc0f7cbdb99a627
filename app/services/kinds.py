"""What metrics an input can be evaluated by, whatever its kind."""

from collections.abc import Collection

from app.domain.expressions.expressions import render
from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.inputs.matrices import MatrixInput
from app.domain.named_metrics import RANKED
from app.kernel.metrics.card import INPUTS_OF_CLASSES, AnyMetric, Inputs, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Measure


def inputs_of(source: MatrixInput) -> frozenset[Inputs]:
    """Data that metrics of an input can be computed from."""
    if source.task is not None:
        return UNIT_KINDS[source.task].inputs(source)
    return INPUTS_OF_CLASSES if source.is_scored else frozenset({Inputs.MATRIX})


def usual_metrics(task: Task, inputs: Collection[Inputs]) -> tuple[str, ...]:
    """Metrics to look at first where a task is judged, at default parameters, as expressions."""
    reported = catalogue().reported.for_task(task, inputs).of_scope(Scope.OVERALL)
    return tuple(_usual(one) for one in reported if one.card.inference.leads(task))


def ranked_by(source: MatrixInput) -> str:
    """The metric by which runs such as this one are ranked where none is named, as an expression."""
    inputs = inputs_of(source)
    candidates = () if source.task is None else UNIT_KINDS[source.task].ranked
    return next((_usual(one) for one in candidates if one.card.inputs in inputs), RANKED)


def _usual(metric: AnyMetric) -> str:
    """A metric at its default parameters."""
    return render(Measure(metric, metric.card.defaults, None), ())
