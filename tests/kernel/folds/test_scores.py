"""Folded probabilities beside the metrics of the samples and scikit-learn; neither parts nor order show."""

import pickle
import tracemalloc
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.domain.inputs.classified import decide
from app.kernel.folds import runs
from app.kernel.folds.entries import NotFolded
from app.kernel.folds.folded import FoldedScores
from app.kernel.folds.metrics import folded_metrics, folded_values
from app.kernel.folds.scores import ScoresFold
from app.kernel.matrix.table import confusion_counts
from app.kernel.metrics.card import Metric
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families import calibration, imcp, proper_scores, score_ranking
from app.kernel.numerics.arrays import silently
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import Influences, limits, variance
from tests.kernel.closeness import assert_close
from tests.kernel.folds.lines import lines_of, looked_at, told_limits
from tests.kernel.folds.problems import PROBLEMS, TWO, Problem, drawn, merged, of_one_column
from tests.witnesses import sk

ROOMY, TINY = 1 << 22, 1 << 10
NEAR_ZERO = 4e-15


def folded(problem: Problem, folder: Path, budget: int = ROOMY, step: int = 400) -> FoldedScores:
    """The problem in parts of one size."""
    with ScoresFold(problem.classes, budget, folder) as fold:
        for start in range(0, problem.y.size, step):
            fold.add(problem.y[start : start + step], problem.given[start : start + step])
        made = fold.finish()
        folded_values(made)
    return made


def told(scores: FoldedScores) -> dict[str, bytes]:
    """Everything that a fold answers, bit by bit."""
    answers = {key: np.asarray(value).tobytes() for key, value in folded_values(scores).items()}
    answers["limits"] = told_limits(scores)
    answers["confusion"], answers["ties"] = scores.confusion.tobytes(), bytes([scores.ties % 256])
    return answers


@pytest.fixture
def many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and blocks of few samples, so that few samples make many of them."""
    monkeypatch.setattr(runs, "_LEAST", 16)


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_values_are_those_of_the_samples(problem: Problem, tmp_path: Path, many_runs: None) -> None:
    scores, whole = folded(problem, tmp_path, TINY), Scores(problem.y, problem.rows)
    values = folded_values(scores)
    with silently():
        for one in looked_at(problem.classes):
            assert_close(one.metric, values[one.metric.key], one.metric.compute(whole), absolute=NEAR_ZERO)
    predicted, ties = decide(problem.rows)
    assert (scores.confusion == confusion_counts(problem.y, predicted, problem.classes)).all()
    assert scores.ties == ties
    assert scores.clipped == np.count_nonzero(whole.p_true < 2.0**-52)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("classes", [2, 3])
def test_what_does_not_fold_says_so(classes: int, tmp_path: Path) -> None:
    scores = folded(drawn(300, classes, 11), tmp_path)
    fold = {one.metric.key for one in folded_metrics(classes)}
    for metric in catalogue().of_probabilities.metrics:
        if metric.key not in fold:
            with silently(), pytest.raises(NotFolded, match="folded"):
                metric.compute(scores)


@pytest.mark.parametrize(
    ("metric", "parameters"),
    [
        (score_ranking.partial_roc_auc, {"max_fpr": 0.2}),
        (imcp.median_phi, {"quantile": 0.4}),
        (calibration.expected_calibration_error, {"bins": 10.0}),
        (calibration.classwise_calibration_error, {"bins": 10.0}),
    ],
)
def test_other_parameters_do_not_fold(metric: Metric[Scores], parameters: dict[str, float], tmp_path: Path) -> None:
    with pytest.raises(NotFolded):
        metric.compute(folded(TWO, tmp_path), **parameters)


def test_quartiles_fold(tmp_path: Path) -> None:
    expected = imcp.phi_quartiles(Scores(TWO.y, TWO.rows))
    np.testing.assert_allclose(imcp.phi_quartiles(folded(TWO, tmp_path)), expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["two columns", "one column tied", "three classes", "three classes tied"])
def test_errors_and_limits_are_those_of_the_samples(name: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]
    influences, compared = Influences(Scores(problem.y, problem.rows)), 0
    for one, code, line in lines_of(folded(problem, tmp_path)):
        own = influences.of(one.metric, code)
        assert own is not None
        assert variance(line) == pytest.approx(variance(own), rel=1e-9)
        found, expected = limits(line), limits(own)
        assert (found is None, line.method, line.strata) == (expected is None, own.method, own.strata)
        if found is not None and expected is not None:
            assert (found.low, found.high) == pytest.approx((expected.low, expected.high), rel=1e-9)
            assert found.method is expected.method
        compared += 1
    assert compared >= 17


def test_values_are_those_of_scikit_learn(tmp_path: Path) -> None:
    y, one = PROBLEMS["one column tied"].y, PROBLEMS["one column tied"].given
    values = folded_values(folded(PROBLEMS["one column tied"], tmp_path, TINY))
    assert values[score_ranking.roc_auc.key][1] == pytest.approx(sk.roc_auc_score(y, one), rel=1e-13)
    assert values[score_ranking.average_precision.key][1] == pytest.approx(
        sk.average_precision_score(y, one), rel=1e-13
    )
    assert values[proper_scores.log_loss.key] == pytest.approx(sk.log_loss(y, one), rel=1e-13)
    assert values[proper_scores.brier_score.key] == pytest.approx(sk.brier_score_loss(y, one), rel=1e-13)


def parts_of(problem: Problem, generator: np.random.Generator) -> Iterator[Problem]:
    """All samples in some order and some number of parts, empty ones among them."""
    order = generator.permutation(problem.y.size)
    cuts = np.sort(generator.integers(0, order.size + 1, generator.integers(0, 9)))
    for part in np.split(order, cuts):
        yield Problem(problem.y[part], problem.given[part], problem.rows[part])


def states_of(parts: Sequence[Problem], folder: Path, generator: np.random.Generator) -> Iterator[ScoresFold]:
    """Each part folded in steps, with a budget of its own; some are sent to another process."""
    for part in parts:
        fold = ScoresFold(part.classes, int(generator.choice([TINY, 1 << 14, ROOMY])), folder)
        for batch in np.array_split(np.arange(part.y.size), generator.integers(1, 4)):
            # Codes and complete rows come in any form that says the same.
            fold.add(part.y[batch].astype(generator.choice(["i1", "u4", "i8"])), part.given[batch])
        yield pickle.loads(pickle.dumps(fold)) if generator.random() < 0.5 else fold  # noqa: S301 - its own


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one column tied", "two columns", "three classes"])
def test_no_split_and_no_order_shows(name: str, tmp_path: Path, many_runs: None) -> None:
    whole = PROBLEMS[name]
    problem = Problem(whole.y[:240], whole.given[:240], whole.rows[:240])
    expected, spilled = told(folded(problem, tmp_path)), 0
    generator = np.random.default_rng(12)
    for _ in range(17):
        fold = merged(list(states_of(list(parts_of(problem, generator)), tmp_path, generator)), generator)
        with fold:
            spilled += len(list(tmp_path.iterdir()))
            assert told(fold.finish()) == expected
        assert not list(tmp_path.iterdir())
    assert spilled > 17


def test_rows_that_are_pairs_and_rows_that_are_not_fold_together(tmp_path: Path, many_runs: None) -> None:
    pairs, rows = of_one_column(drawn(300, 2, 13)), drawn(300, 2, 14)
    off = rows.rows * (1.0 - 1e-9)
    together = Problem(np.concatenate([pairs.y, rows.y]), pairs.given, np.concatenate([pairs.rows, off]))
    first, second = ScoresFold(2, TINY, tmp_path).add(pairs.y, pairs.given), ScoresFold(2, TINY, tmp_path)
    with second.add(rows.y[:100], off[:100]).merge(first.add(rows.y[100:], off[100:])) as fold:
        values = folded_values(fold.finish())
    whole = Scores(together.y, together.rows)
    for one in looked_at(2):
        assert_close(one.metric, values[one.metric.key], one.metric.compute(whole), absolute=NEAR_ZERO)


def test_many_samples_of_two_classes_that_are_sorted_at_once_in_memory(tmp_path: Path) -> None:
    problem = of_one_column(drawn(6000, 2, 3))
    values, whole = folded_values(folded(problem, tmp_path, 1 << 16)), Scores(problem.y, problem.rows)
    for one in looked_at(2):
        assert_close(one.metric, values[one.metric.key], one.metric.compute(whole), absolute=NEAR_ZERO)


def test_a_fold_can_go_on_after_its_end(tmp_path: Path) -> None:
    with ScoresFold(2, TINY, tmp_path) as fold:
        fold.add(TWO.y[:150], TWO.given[:150])
        before = told(fold.finish())
        assert told(fold.finish()) == before
        assert told(fold.add(TWO.y[150:], TWO.given[150:]).finish()) == told(folded(TWO, tmp_path))


def peak(rows: int, folder: Path, budget: int) -> int:
    """The most bytes that were allocated at once."""
    generator = np.random.default_rng(15)
    tracemalloc.start()
    try:
        with ScoresFold(2, budget, folder) as fold:
            for _ in range(0, rows, 20_000):
                one = generator.random(20_000)
                fold.add(generator.random(20_000) < one, one)
            folded_values(fold.finish())
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.slow
def test_memory_is_bounded_whatever_comes(tmp_path: Path) -> None:
    budget, beside = 1 << 20, 1 << 20
    few, many = peak(60_000, tmp_path, budget), peak(240_000, tmp_path, budget)
    assert many < budget + beside
    # Samples take 8 bytes each. A key in 128 stays in memory, and is copied several times when the runs are read.
    assert many - few < 2 * 180_000


def test_one_score_of_many_samples_is_one_entry(tmp_path: Path) -> None:
    """Half of all samples have one score: no block of the merged order holds them one by one."""
    one = np.where(np.arange(40_000) % 2, 0.0, np.random.default_rng(16).random(40_000))
    problem = of_one_column(Problem(np.arange(40_000) % 4 // 2, one, np.column_stack([1.0 - one, one])))
    with ScoresFold(2, 1 << 16, tmp_path) as fold:
        fold.add(problem.y, problem.given)
        scores = fold.finish()
        assert fold._paired is not None
        kept = sum(run.size for run in fold._paired.runs)
        value = scores.ranking(1).auc
    assert kept < 20_500
    assert value == pytest.approx(sk.roc_auc_score(problem.y, one), rel=1e-13)


def test_files_are_deleted_when_something_fails(tmp_path: Path) -> None:
    def fail() -> None:
        with ScoresFold(2, TINY, tmp_path) as fold:
            fold.add(TWO.y, TWO.given)
            assert list(tmp_path.iterdir())
            fold.add(TWO.y, np.full_like(TWO.given, 2.0))

    with pytest.raises(ValueError, match=r"numbers in \[0, 1\]"):
        fail()
    assert not list(tmp_path.iterdir())


WRONG: dict[str, tuple[Any, Any, str]] = {
    "shape": ([0, 1], np.ones((2, 4)), "expected probabilities of shape"),
    "one column of three classes": ([0, 1], np.ones(2), "expected probabilities of shape"),
    "a code too large": ([0, 3], np.ones((2, 3)), r"must lie in 0\.\.2"),
    "a code below 0": ([0, -1], np.ones((2, 3)), r"must lie in 0\.\.2"),
    "codes that are no numbers": (["0", "1"], np.ones((2, 3)), "whole numbers"),
    "NaN": ([0, 1], np.array([[1.0, 0.0, 0.0], [np.nan, 0.0, 0.0]]), r"\[0, 1\]"),
    "below 0": ([0, 1], np.array([[1.0, 0.0, 0.0], [1.1, -0.1, 0.0]]), r"\[0, 1\]"),
}


@pytest.mark.parametrize(("actual", "probabilities", "message"), WRONG.values(), ids=WRONG)
def test_wrong_parts_are_refused_and_nothing_is_added(
    actual: Any, probabilities: Any, message: str, tmp_path: Path
) -> None:
    fold = ScoresFold(3, ROOMY, tmp_path)
    with pytest.raises(ValueError, match=message):
        fold.add(np.asarray(actual), probabilities)
    assert fold.rows == 0


def test_nothing_has_no_end_and_other_classes_do_not_merge(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at least one sample"):
        ScoresFold(2, ROOMY, tmp_path).finish()
    with pytest.raises(ValueError, match="states of 2 and of 3 classes"):
        ScoresFold(2, ROOMY, tmp_path).merge(ScoresFold(3, ROOMY, tmp_path))
    with pytest.raises(ValueError, match="at least two classes"):
        ScoresFold(1, ROOMY, tmp_path)
