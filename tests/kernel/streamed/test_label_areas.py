"""The mean area of streamed labels beside that of the samples in memory."""

import numpy as np
import pyarrow as pa
import pytest

from app.kernel.metrics.families.score_ranking import roc_auc_ovr_macro
from app.kernel.samples.areas import area_influences
from app.kernel.samples.scores import Scores
from app.kernel.streamed.labels import LabelMoments, StreamedLabelScores
from app.kernel.streamed.metrics import linearised
from app.services.ports import OpenEngine


@pytest.mark.parametrize("n_labels", [2, 3])
def test_two_labels_are_not_taken_for_two_classes(engine: OpenEngine, n_labels: int) -> None:
    random = np.random.default_rng(1)
    truth = random.random((3000, n_labels)) < np.linspace(0.3, 0.6, n_labels)
    scores = random.normal(size=truth.shape) + truth * np.linspace(0.3, 2.0, n_labels)
    moments = LabelMoments(n_labels, weighted=False)
    moments.add(truth, scores > 0, None)
    columns = {f"p{code}": own for code, own in enumerate(scores.T)}
    table = pa.table(columns | {f"t{code}": own for code, own in enumerate(truth.T)})
    found = linearised(StreamedLabelScores(engine.take(table.schema, table.to_batches()), moments), roc_auc_ovr_macro)
    each = [
        area_influences(Scores.of_scores(own.astype(np.intp), column))[1][1]
        for own, column in zip(truth.T, scores.T, strict=True)
    ]
    assert found is not None
    assert found.variance == pytest.approx(float(np.square(np.mean(each, axis=0)).sum()), rel=1e-4)
