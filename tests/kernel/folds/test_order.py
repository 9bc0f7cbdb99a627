"""Folded scores of two classes beside the metrics of the samples and scikit-learn; neither parts nor order show."""

import pickle
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kernel.folds import runs
from app.kernel.folds.folded import FoldedOrder
from app.kernel.folds.metrics import folded_values
from app.kernel.folds.scores import OrderFold, scores_of, sortable
from app.kernel.metrics.families import score_ranking
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import Influences, variance
from tests.kernel.closeness import assert_close
from tests.kernel.folds.lines import lines_of, looked_at, told_limits
from tests.kernel.folds.problems import merged
from tests.witnesses import sk

ROOMY, TINY = 1 << 22, 1 << 10
RANDOM = np.random.default_rng(2)
Y = RANDOM.integers(0, 2, 600)
NORMAL = RANDOM.normal(size=600) + Y
SCORES = {
    "different": NORMAL,
    "tied": NORMAL.round(1),
    "huge and tiny": np.sign(NORMAL) * np.exp(150.0 * NORMAL),
    "zeros of both signs": np.where(np.arange(600) % 3 == 0, -0.0, np.where(np.arange(600) % 3 == 1, 0.0, NORMAL)),
    "all equal": np.full(600, -3.0),
}
Codes = NDArray[np.int64]


@pytest.fixture(autouse=True)
def many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and blocks of few samples, so that few samples make many of them."""
    monkeypatch.setattr(runs, "_LEAST", 16)


def folded(y: Codes, scores: Array, folder: Path, budget: int = ROOMY, step: int = 600) -> FoldedOrder:
    with OrderFold(2, budget, folder) as fold:
        for start in range(0, y.size, step):
            fold.add(y[start : start + step], scores[start : start + step])
        made = fold.finish()
        folded_values(made)
    return made


def told(scores: FoldedOrder) -> dict[str, bytes]:
    answers = {key: np.asarray(value).tobytes() for key, value in folded_values(scores).items()}
    return answers | {"limits": told_limits(scores), "curves": repr(scores.curves_as_json()).encode()}


@pytest.mark.parametrize("scores", SCORES.values(), ids=SCORES)
def test_values_and_errors_are_those_of_the_samples(scores: Array, tmp_path: Path) -> None:
    found, whole = folded(Y, scores, tmp_path, TINY, 130), Scores.of_scores(Y, scores)
    values, influences, compared = folded_values(found), Influences(whole), 0
    with silently():
        for one in looked_at(2):
            assert_close(one.metric, values[one.metric.key], one.metric.compute(whole), absolute=4e-15)
    for one, code, line in lines_of(found):
        own = influences.of(one.metric, code)
        assert own is not None
        assert variance(line) == pytest.approx(variance(own), rel=1e-9, abs=1e-30)
        compared += 1
    assert compared >= 5
    assert np.isfinite(values[score_ranking.roc_auc.key]).all()
    assert not list(tmp_path.iterdir())


def test_values_are_those_of_scikit_learn(tmp_path: Path) -> None:
    values = folded_values(folded(Y, SCORES["tied"], tmp_path, TINY))
    areas, precisions = values[score_ranking.roc_auc.key], values[score_ranking.average_precision.key]
    for code, sign in enumerate((-1, 1)):
        member, scores = code == Y, sign * SCORES["tied"]
        assert areas[code] == pytest.approx(sk.roc_auc_score(member, scores), rel=1e-13)
        assert precisions[code] == pytest.approx(sk.average_precision_score(member, scores), rel=1e-13)


@pytest.mark.parametrize("name", ["different", "tied"])
def test_no_split_and_no_order_shows(name: str, tmp_path: Path) -> None:
    scores = SCORES[name]
    expected, random, spilled = told(folded(Y, scores, tmp_path)), np.random.default_rng(4), 0
    for _ in range(8):
        parts = np.split(random.permutation(600), np.sort(random.integers(0, 601, random.integers(0, 6))))
        states = []
        for part in parts:
            folder = None if random.random() < 0.3 else tmp_path
            fold = OrderFold(2, int(random.choice([TINY, ROOMY])), folder).add(Y[part], scores[part])
            states.append(pickle.loads(pickle.dumps(fold)) if random.random() < 0.5 else fold)  # noqa: S301 - its own
        with merged(states, random) as fold:
            spilled += len(list(tmp_path.iterdir()))
            assert told(fold.finish()) == expected
        assert not list(tmp_path.iterdir())
    assert spilled > 4


def test_scores_of_three_classes_are_those_of_the_samples(tmp_path: Path) -> None:
    y = RANDOM.integers(0, 3, 500)
    rows = (RANDOM.normal(size=(500, 3)) + np.eye(3)[y]).round(1)
    whole = Scores.of_class_scores(y, rows)
    states = [OrderFold(3, TINY, tmp_path).add(y[part], rows[part]) for part in np.array_split(np.arange(500), 4)]
    with states[1].merge(states[3]).merge(states[0].merge(states[2])) as fold:
        found = fold.finish()
        values = folded_values(found)
        assert told(found) == told(OrderFold(3, ROOMY, None).add(y, rows).finish())
    with silently():
        for one in looked_at(3):
            assert_close(one.metric, values[one.metric.key], one.metric.compute(whole), absolute=4e-15)
    assert values[score_ranking.roc_auc_ovr_macro.key] == pytest.approx(
        np.mean([sk.roc_auc_score(y == code, rows[:, code]) for code in range(3)]), rel=1e-13
    )
    with pytest.raises(ValueError, match="cannot be merged"):
        OrderFold(3, TINY, tmp_path).merge(OrderFold(2, TINY, tmp_path))


def test_whole_numbers_rise_with_scores_and_lead_back() -> None:
    values = np.array([-np.finfo(float).max, -1.5, -1.0, -5e-324, 0.0, 5e-324, 1.0, np.finfo(float).max])
    keys = sortable(values)
    assert (np.diff(keys.astype(object)) > 0).all()
    np.testing.assert_array_equal(scores_of(keys), values)
    assert sortable(np.array([-0.0])) == sortable(np.array([0.0]))


@pytest.mark.parametrize(
    ("codes", "scores", "message"),
    [
        ([0, 2], [0.0, 1.0], "codes"),
        ([0, 1], [0.0, np.inf], "finite"),
        ([0, 1], [np.nan, 0.0], "finite"),
        ([0, 1], [0.0], "scores of shape"),
    ],
)
def test_wrong_parts_are_refused(codes: list[int], scores: list[float], message: str, tmp_path: Path) -> None:
    fold = OrderFold(2, ROOMY, tmp_path)
    with pytest.raises(ValueError, match=message):
        fold.add(np.array(codes), np.array(scores))
    with pytest.raises(ValueError, match="at least one sample"):
        fold.finish()
