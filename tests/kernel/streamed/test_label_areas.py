"""Areas of streamed labels and their averages beside those of the samples in memory."""

from itertools import chain

import numpy as np
import pyarrow as pa
import pytest

from app.kernel.metrics.families.score_ranking import (
    micro_average_precision,
    roc_auc_ovr_macro,
    roc_auc_ovr_micro,
    roc_auc_ovr_weighted,
    weighted_average_precision,
)
from app.kernel.samples.influence import WeightedSamples
from app.kernel.samples.label_units import LabelScores
from app.kernel.samples.scores import Scores
from app.kernel.streamed.influences import Leaf
from app.kernel.streamed.labels import LabelMoments, StreamedLabelScores
from app.kernel.streamed.metrics import linearised
from app.kernel.uncertainty.influence import Influences
from app.services.ports import OpenEngine


@pytest.mark.parametrize("n_labels", [2, 3])
def test_two_labels_are_not_taken_for_two_classes(engine: OpenEngine, n_labels: int) -> None:
    random = np.random.default_rng(1)
    truth = random.random((3000, n_labels)) < np.linspace(0.3, 0.6, n_labels)
    scores = random.normal(size=truth.shape) + truth * np.linspace(0.3, 2.0, n_labels)
    moments = LabelMoments(n_labels, weighted=False)
    moments.add_labels(truth, scores > 0, None)
    columns = {f"p{code}": own for code, own in enumerate(scores.T)}
    table = pa.table(columns | {f"c{code}": own for code, own in enumerate(2 * truth.T.astype(np.uint8))})
    streamed = StreamedLabelScores(engine.take(table.schema, table.to_batches()), moments)
    found = linearised(streamed, roc_auc_ovr_macro)
    whole = LabelScores(truth, scores)
    for metric in (roc_auc_ovr_weighted, roc_auc_ovr_micro, weighted_average_precision, micro_average_precision):
        assert float(metric.compute(streamed)) == pytest.approx(float(metric.compute(whole)), rel=1e-12)
        leaf, own = Leaf.made(metric, None), Influences(whole).of(metric)
        assert leaf is not None
        assert own is not None
        parts = streamed.in_parts(streamed.read_columns)
        values = np.concatenate(
            [*chain.from_iterable(streamed.values_of([leaf], streamed.part(part)) for part in parts)]
        )
        # Places between two kept ones are interpolated.
        assert [values @ values, values @ own.influence] == pytest.approx([own.variance] * 2, rel=3e-3)
        assert streamed.made(leaf).freedom == pytest.approx(own.freedom, rel=1e-6) or np.isinf(own.freedom)
    each = [
        WeightedSamples(Scores.of_scores(own.astype(np.intp), column)).areas[1][1]
        for own, column in zip(truth.T, scores.T, strict=True)
    ]
    assert found is not None
    assert found.variance == pytest.approx(float(np.square(np.mean(each, axis=0)).sum()), rel=1e-4)
