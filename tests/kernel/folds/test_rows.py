"""Some rows of each class that stand for all: variances of averages of areas over more than two classes."""

import pickle
from pathlib import Path

import numpy as np
import pytest

from app.kernel.folds import joint, runs
from app.kernel.folds import joint as of_rows
from app.kernel.folds.entries import NotFolded
from app.kernel.folds.joint import RowSample
from app.kernel.folds.metrics import folded_values, linearised
from app.kernel.folds.scores import ScoresFold
from app.kernel.metrics.families.score_ranking import roc_auc_ovr_macro, roc_auc_ovr_micro, roc_auc_ovr_weighted
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import Influences, variance
from tests.kernel.folds.problems import PROBLEMS, Problem, drawn, merged

AVERAGES = roc_auc_ovr_macro, roc_auc_ovr_weighted, roc_auc_ovr_micro


def variances(fold: ScoresFold) -> list[float]:
    scores = fold.finish()
    folded_values(scores)
    lines = [linearised(scores, metric) for metric in AVERAGES]
    return [variance(line) for line in lines if line is not None]


def expected(problem: Problem) -> list[float]:
    influences = Influences(Scores(problem.y, problem.rows))
    lines = [influences.of(metric) for metric in AVERAGES]
    return [variance(line) for line in lines if line is not None]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["three classes", "three classes tied", "three classes of float32", "ten classes"])
def test_few_rows_say_everything(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_LEAST", 16)
    problem = PROBLEMS[name]
    with ScoresFold(problem.classes, 1 << 10, tmp_path) as fold:
        assert variances(fold.add(problem.y, problem.given)) == pytest.approx(expected(problem), rel=1e-11)


@pytest.mark.parametrize("decimals", [None, 1])
def test_some_rows_stand_for_all(decimals: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "_MOST", 4000)
    problem = drawn(30_000, 3, 17, decimals=decimals)
    fold = ScoresFold(3, 1 << 22, None).add(problem.y, problem.given)
    assert variances(fold) == pytest.approx(expected(problem), rel=0.04 if decimals is None else 1e-10)


def test_of_a_rare_class_all_rows_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joint, "_MOST", 2000)
    problem = drawn(30_000, 3, 18)
    kept = np.sort(np.concatenate([np.flatnonzero(problem.y < 2), np.flatnonzero(problem.y == 2)[:50]]))
    problem = Problem(problem.y[kept], problem.given[kept], problem.rows[kept])
    fold = ScoresFold(3, 1 << 22, None).add(problem.y, problem.given)
    # What it leaves of the room for three times 2,000 goes to the others.
    assert np.bincount(fold.finish().together.placed.rows.codes).tolist() == [2975, 2975, 50]  # type: ignore[union-attr]
    assert variances(fold) == pytest.approx(expected(problem), rel=0.04)


@pytest.mark.slow
def test_no_split_and_no_order_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that are there often among them, which are kept with their number."""
    monkeypatch.setattr(joint, "_MOST", 20)
    monkeypatch.setattr(of_rows, "_MOST_CHANGED", np.inf)
    monkeypatch.setattr(runs, "_LEAST", 16)
    tied, free = drawn(300, 3, 19, decimals=1), drawn(300, 3, 20)
    y, given = np.concatenate([tied.y, free.y]), np.concatenate([tied.given, free.given])

    def of(parts: list[np.ndarray]) -> tuple[list[float], list[int]]:
        states = []
        for part in parts:
            budget = int(generator.choice([1 << 10, 1 << 22]))
            state = ScoresFold(3, budget, tmp_path).add(y[part], given[part])
            states.append(pickle.loads(pickle.dumps(state)) if generator.random() < 0.5 else state)  # noqa: S301
        with merged(states, generator) as fold:
            assert fold._rows is not None
            return variances(fold), fold._rows.read().counts.tolist()

    generator = np.random.default_rng(21)
    whole = of([np.arange(600)])
    assert max(whole[1]) > 1
    assert len(whole[1]) == 60
    for _ in range(8):
        order = generator.permutation(600)
        assert of(np.array_split(order, generator.integers(1, 7))) == whole


def test_kept_rows_are_a_random_part_of_the_different_ones() -> None:
    generator = np.random.default_rng(22)
    values = np.round(generator.random((40_000, 1)), 4) * np.array([[1.0, 0.5, 0.25]])
    sample = RowSample(3)
    sample._room = sample._most = 2000
    sample.add(np.zeros(40_000, dtype=np.intp), values)
    kept, different = sample.read(), np.unique(values[:, 0])
    assert kept.codes.size == 2000
    # The mean of so many of them, drawn without replacement, has this standard error.
    error = different.std() * np.sqrt((1.0 - 2000 / different.size) / 2000)
    assert abs(kept.probabilities[:, 0].mean() - different.mean()) < 3.5 * error
    held = {value: int(count) for value, count in zip(*np.unique(values[:, 0], return_counts=True), strict=True)}
    assert [held[value] for value in kept.probabilities[:, 0]] == kept.counts.tolist()


def test_more_than_32_classes_keep_none_and_are_not_read_side_by_side() -> None:
    problem = drawn(400, 33, 23)
    scores = ScoresFold(33, 1 << 22, None).add(problem.y, problem.given).finish()
    assert roc_auc_ovr_micro.key not in folded_values(scores)
    assert scores.kept_rows is None
    with pytest.raises(NotFolded):
        roc_auc_ovr_micro.compute(scores)
    assert linearised(scores, roc_auc_ovr_macro) is None


@pytest.mark.parametrize("kept", [True, False])
def test_a_row_that_is_there_often_is_no_random_part(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept or left out by one toss, whatever its share: what is known of all samples says for how many others stand."""
    monkeypatch.setattr(joint, "_MOST", 2000)
    problem = drawn(30_000, 3, 25)
    tossed = np.array([[0.7 - place / 100, 0.2, 0.1 + place / 100] for place in range(40)])
    hashes = joint._hashes(np.zeros(40, dtype=np.intp), tossed)
    given = problem.given.copy()
    often = (problem.y == 0) & (np.random.default_rng(24).random(problem.y.size) < 0.08)
    given[often] = tossed[np.argmin(hashes) if kept else np.argmax(hashes)]
    fold = ScoresFold(3, 1 << 22, None).add(problem.y, given)
    assert variances(fold) == pytest.approx(expected(Problem(problem.y, given, given)), rel=0.02)
    placed = fold.finish().together.placed
    assert placed is not None
    assert (placed.rows.counts.max() == often.sum()) is np.bool_(kept)


def test_rows_that_are_most_of_all_leave_no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Standard errors were a third too small, where 70 % of the rows are [1, 0, 0] and the like."""
    monkeypatch.setattr(joint, "_MOST", 2000)
    generator, problem = np.random.default_rng(31), drawn(40_000, 3, 32)
    given = problem.given.copy()
    sure = generator.random(problem.y.size) < 0.7
    said = np.where(generator.random(problem.y.size) < 0.1, (problem.y + 1) % 3, problem.y)
    given[sure] = np.eye(3)[said[sure]]
    assert np.isnan(variances(ScoresFold(3, 1 << 22, None).add(problem.y, given))).all()


def test_kept_rows_without_the_few_that_count_leave_no_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two of 30,000 samples are out of order, and their rows were not kept."""
    monkeypatch.setattr(joint, "_MOST", 50)
    generator = np.random.default_rng(33)
    y = np.repeat(np.arange(3), 10_000)
    given = 0.1 * generator.dirichlet(np.ones(3), y.size) + 0.9 * np.eye(3)[y]
    given[[0, 10_000]] = given[[10_000, 0]]
    fold = ScoresFold(3, 1 << 22, None).add(y, given)
    assert np.isnan(variances(fold)).all()


def test_classes_share_the_room() -> None:
    assert joint._shared(60, np.array([5, 100, 100])) == 27
    assert joint._shared(60, np.array([20, 20, 20])) == 60
    assert joint._shared(60, np.array([61, 0, 0])) == 60
    assert joint._shared(60, np.array([30, 30, 1])) == 29
