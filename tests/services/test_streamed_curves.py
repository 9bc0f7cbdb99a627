"""Curves of streamed probabilities, beside those of the same samples in memory."""

import json
from uuid import UUID

import numpy as np
import pytest

from app.domain.errors import NoSamples
from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.kernel.matrix.table import confusion_counts
from app.services.decide.curves import BandForm, CalibrationForm, CurveName, CurveQuestion, curve_of
from app.services.stored import StreamedInput
from tests.bank import each
from tests.engine import ENGINE
from tests.kernel.streamed.problems import Problem, streamed

N, LABELS = 4000, ("a", "b", "c")
RANDOM = np.random.default_rng(5)
ROWS = RANDOM.dirichlet(np.ones(3), N).round(4)
ROWS[:, 0] = 1.0 - ROWS[:, 1:].sum(axis=1)
ROWS = ROWS.clip(0.0, 1.0)
TRUTH = np.array([RANDOM.choice(3, p=row / row.sum()) for row in ROWS])
GUESS = ROWS.argmax(axis=1)
COUNTS = confusion_counts(TRUTH, GUESS, 3)
WHOLE = MatrixInput("probabilities", LABELS, None, Content.counts, COUNTS, samples=Samples(TRUTH, GUESS, ROWS))
OF_CUTS = [CurveName.ROC, CurveName.PR, CurveName.DET, CurveName.DECISION, CurveName.LIFT]


@pytest.fixture(scope="module")
def kept_input(tmp_path_factory: pytest.TempPathFactory) -> StreamedInput:
    """The same samples, streamed, stored and read again."""
    with ENGINE.opened(tmp_path_factory.mktemp("runs")) as engine:
        curves = streamed(engine, Problem(TRUTH, ROWS, ROWS)).curves_as_json()
    record = EvaluationRecord(
        id=UUID(int=0),
        model=ModelRef("m"),
        dataset=DatasetRef("d"),
        kind="probabilities",
        labels=LABELS,
        positive=None,
        content=Content.counts,
        counts=COUNTS,
        facts={},
        revision="",
        values={},
    )
    return StreamedInput.of(record, json.loads(json.dumps(curves)))


@each("name", OF_CUTS)
@each("label", LABELS)
def test_kept_points_lie_on_the_curve_and_none_lies_far_from_them(
    kept_input: StreamedInput, name: CurveName, label: str
) -> None:
    question = CurveQuestion(name=name, label=label, max_points=10_000)
    full, kept = curve_of(WHOLE, question), curve_of(kept_input, question)
    assert kept.n_points == full.n_points
    assert 200 < kept.x.size < full.x.size
    assert kept.area == (None if full.area is None else pytest.approx(full.area, rel=1e-12))
    places = {float(one): place for place, one in enumerate(full.thresholds) if not np.isnan(one)}
    at = [0 if np.isnan(one) else places[float(one)] for one in kept.thresholds]
    for mine, theirs in ((kept.x, full.x), (kept.y, full.y)):
        np.testing.assert_allclose(mine, theirs[at], rtol=1e-12, atol=1e-15)
    assert name is CurveName.DECISION or (at[0], at[-1]) == (0, full.x.size - 1)
    before = np.repeat(at, np.diff(at, append=full.x.size))
    if name in (CurveName.ROC, CurveName.DET, CurveName.PR):
        # Steps of three classes: one in 333 of each rate, and one in 33 of the number predicted.
        assert np.abs(full.x[before] - full.x).max() <= 1 / 333
        assert np.abs(full.y[before] - full.y).max() <= (1 / 33 if name is CurveName.PR else 1 / 333)


@pytest.mark.parametrize("label", [None, "a", "b", "c"])
def test_calibration_is_that_of_all_samples(kept_input: StreamedInput, label: str | None) -> None:
    question = CurveQuestion(name=CurveName.CALIBRATION, label=label, band=BandForm.POINTWISE)
    full, kept = curve_of(WHOLE, question), curve_of(kept_input, question)
    assert kept.n_points == full.n_points
    assert kept.area == pytest.approx(full.area, rel=1e-12)
    bounds = ((kept.low, full.low), (kept.high, full.high))
    for mine, theirs in ((kept.x, full.x), (kept.y, full.y), (kept.weights, full.weights), *bounds):
        assert mine is not None
        assert theirs is not None
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


@pytest.mark.parametrize(
    "question",
    [
        CurveQuestion(name=CurveName.IMCP),
        CurveQuestion(name=CurveName.GAIN, label="a"),
        CurveQuestion(name=CurveName.ROC, label="micro"),
        CurveQuestion(name=CurveName.ROC, label="macro"),
        CurveQuestion(name=CurveName.ROC, label="a", band=BandForm.POINTWISE),
        CurveQuestion(name=CurveName.CALIBRATION, label="a", bins=10),
        CurveQuestion(name=CurveName.CALIBRATION, label="a", form=CalibrationForm.ISOTONIC),
    ],
    ids=lambda question: f"{question.name.value}-{question.label}",
)
def test_what_needs_the_samples_says_so(kept_input: StreamedInput, question: CurveQuestion) -> None:
    with pytest.raises(NoSamples, match="were streamed"):
        curve_of(kept_input, question)
