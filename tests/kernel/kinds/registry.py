"""What each metric is tried on."""

from collections.abc import Mapping

from app.kernel.metrics.card import AnyMetric, Inputs
from tests.kernel.kinds.classes import OfMatrices, OfSamples
from tests.kernel.kinds.clusters import OfDecisions, OfPoints, OfTables
from tests.kernel.kinds.kind import Kind
from tests.kernel.kinds.labels import OfLabels
from tests.kernel.kinds.units import OfOverlaps, OfQueries

KINDS: Mapping[Inputs, Kind] = {
    Inputs.MATRIX: OfMatrices(),
    Inputs.PROBABILITIES: OfSamples(),
    Inputs.LABELS: OfLabels(scores=False),
    Inputs.LABEL_SCORES: OfLabels(scores=True),
    Inputs.QUERIES: OfQueries(),
    Inputs.CONTINGENCY: OfTables(),
    Inputs.DECISIONS: OfDecisions(),
    Inputs.FEATURES: OfPoints(),
    Inputs.OVERLAPS: OfOverlaps(),
    Inputs.CLASS_OVERLAPS: OfOverlaps(),
}


def kind_of(metric: AnyMetric) -> Kind:
    """What a metric is tried on."""
    return KINDS[metric.card.inputs]
