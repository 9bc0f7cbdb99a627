"""The kinds of input that are more than a matrix of classes, by what is judged in them."""

from collections.abc import Mapping
from typing import Final

from app.domain.inputs.matrices import MatrixInput
from app.kernel.metrics.card import INPUTS_OF_CLASSES, Inputs, Task
from app.services.kinds.clustering import CLUSTERING_KIND
from app.services.kinds.kind import UnitKind
from app.services.kinds.multilabel import MULTILABEL_KIND
from app.services.kinds.ranking import RANKING_KIND

UNIT_KINDS: Final[Mapping[Task, UnitKind]] = {
    Task.MULTILABEL: MULTILABEL_KIND,
    Task.RANKING: RANKING_KIND,
    Task.CLUSTERING: CLUSTERING_KIND,
}


def inputs_of(source: MatrixInput) -> frozenset[Inputs]:
    """What metrics of an input can be computed from."""
    if source.task is not None:
        return UNIT_KINDS[source.task].inputs(source)
    return INPUTS_OF_CLASSES if source.is_scored else frozenset({Inputs.MATRIX})
