"""Logistic recalibration of samples that went by, beside that of the samples."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from app.kernel.folds import runs
from app.kernel.folds.folded import FoldedScores
from app.kernel.folds.metrics import linearised
from app.kernel.folds.runs import Stretch
from app.kernel.folds.scores import ScoresFold
from app.kernel.metrics.card import Explainer
from app.kernel.metrics.families.calibration import calibration_intercept, calibration_slope
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import Influences, limits, variance
from tests.kernel.folds.problems import PROBLEMS, Problem, drawn, of_one_column

TINY, ROOMY = 1 << 10, 1 << 22
FITTED = (calibration_intercept, calibration_slope)


@contextmanager
def folded(problem: Problem, folder: Path, budget: int = TINY, step: int = 100) -> Iterator[FoldedScores]:
    with ScoresFold(problem.classes, budget, folder) as fold:
        for start in range(0, problem.y.size, step):
            fold.add(problem.y[start : start + step], problem.given[start : start + step])
        yield fold.finish()


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_lines_are_those_of_the_samples(problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_LEAST", 16)
    whole = Scores(problem.y, problem.rows)
    influences = Influences(whole)
    with folded(problem, tmp_path) as scores, silently():
        for metric in FITTED:
            own, expected = metric.compute(scores), metric.compute(whole)
            np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-11)
            np.testing.assert_array_equal(scores.ends, whole.ends)
            for code in np.flatnonzero(np.isfinite(expected)).tolist():
                line, other = linearised(scores, metric, code), influences.of(metric, code)
                assert line is not None
                assert other is not None
                assert variance(line) == pytest.approx(variance(other), rel=1e-9, abs=1e-15)
                found, limited = limits(line), limits(other)
                assert (found is None) == (limited is None)
                if found is not None and limited is not None:
                    assert (found.low, found.high) == pytest.approx((limited.low, limited.high), rel=1e-8, abs=1e-11)


SEPARATED = Problem(np.array([0, 0, 1, 1]), np.array([0.1, 0.2, 0.2, 0.4]), np.zeros((4, 2)))
WRONG_WAY = SEPARATED._replace(y=np.array([1, 1, 0, 0]))
CERTAIN = SEPARATED._replace(y=np.array([0, 1, 1, 0]), given=np.array([0.0, 0.3, 0.2, 1.0]))


@pytest.mark.parametrize(
    ("problem", "clip"), [(SEPARATED, 2.0**-52), (WRONG_WAY, 2.0**-52), (CERTAIN, 0.0), (CERTAIN, 0.3), (CERTAIN, 1e-9)]
)
def test_where_there_is_no_line_it_says_what_samples_say(problem: Problem, clip: float, tmp_path: Path) -> None:
    problem = problem._replace(rows=np.column_stack([1.0 - problem.given, problem.given]))
    whole = Scores(problem.y, problem.rows)
    with folded(problem, tmp_path) as scores, silently():
        for metric in FITTED:
            own, expected = metric.compute(scores, clip=clip), metric.compute(whole, clip=clip)
            np.testing.assert_allclose(own, expected, rtol=1e-9, atol=1e-11)
            for code in np.flatnonzero(~np.isfinite(expected)).tolist():
                first, second = Explainer[Scores](scores), Explainer[Scores](whole)
                told = [one.explain(metric, code, float(expected[code])).condition.code for one in (first, second)]
                assert told[0] == told[1]


@pytest.mark.parametrize("name", ["one column tied", "three classes"])
def test_no_split_shows(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_LEAST", 16)
    problem = PROBLEMS[name]

    def told(budget: int, step: int) -> str:
        with folded(problem, tmp_path, budget, step) as scores:
            lines = [
                scores.fit(code, 1e-12, sloped=sloped) for code in range(problem.classes) for sloped in (False, True)
            ]
            return repr([(line.a, line.b, line.variance, line.ends.tolist()) for line in lines])

    assert told(TINY, 7) == told(TINY, 100) == told(ROOMY, 300)


def all_but_separated(gap: float, size: int = 20_000) -> Problem:
    """Members above others, but for one of each, so near to each other."""
    scores = np.sort(np.random.default_rng(1).uniform(0.4, 0.6, size))
    half = size // 2
    scores[half] = scores[half - 1] + gap
    members = np.arange(size) >= half
    members[half - 1], members[half] = True, False
    return of_one_column_of(members, scores)


def narrow(size: int = 20_000) -> Problem:
    rng = np.random.default_rng(1)
    return of_one_column_of(rng.random(size) < 0.5, 0.5 + 1e-9 * rng.normal(size=size))


def far_apart(size: int = 100_000) -> Problem:
    """Two heaps of log odds, of which few lie on the other's side."""
    rng = np.random.default_rng(2)
    members = rng.random(size) < 0.5
    odds = np.where(members, 5.0, -5.0) + 1.2 * rng.normal(size=size)
    odds[:2], members[:2] = (0.5, -0.25), (False, True)
    return of_one_column_of(members, 1.0 / (1.0 + np.exp(-odds)))


def with_outlier(size: int = 20_000) -> Problem:
    """One of 20,000 says as much of the slope as all others."""
    rng = np.random.default_rng(3)
    odds = rng.normal(size=size)
    members = rng.random(size) < 1.0 / (1.0 + np.exp(-odds))
    given = 1.0 / (1.0 + np.exp(-odds))
    given[0], members[0] = 1e-15, True
    return of_one_column_of(members, given)


def of_one_column_of(members: Mask, scores: Array) -> Problem:
    return Problem(members.astype(np.int64), scores, np.column_stack([1.0 - scores, scores]))


@contextmanager
def counted(scores: FoldedScores, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """The classes whose order goes by, each time."""
    assert len(scores.rankings) == scores.n_classes
    found: list[int] = []
    stretches = scores._stretches

    def told(code: int) -> Iterable[Stretch]:
        found.append(code)
        return stretches(code)

    monkeypatch.setattr(scores, "_stretches", told)
    yield found


@pytest.mark.parametrize(
    "problem",
    [all_but_separated(1e-5), all_but_separated(1e-9), narrow(), far_apart(), with_outlier()],
    ids=["one pair", "one near pair", "narrow", "far apart", "an outlier"],
)
def test_hard_lines_take_some_more_readings(problem: Problem, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Scores(problem.y, problem.rows)
    influences = Influences(whole)
    with folded(problem, tmp_path, ROOMY, 5000) as scores, counted(scores, monkeypatch) as readings, silently():
        for metric in FITTED:
            readings.clear()
            np.testing.assert_allclose(metric.compute(scores), metric.compute(whole), rtol=1e-9, atol=1e-11)
            assert max(map(readings.count, (0, 1))) <= 6
            line, other = linearised(scores, metric, 1), influences.of(metric, 1)
            assert line is not None
            assert other is not None
            assert variance(line) == pytest.approx(variance(other), rel=1e-7)


def test_no_split_shows_in_hard_lines(tmp_path: Path) -> None:
    def told(budget: int, step: int) -> str:
        with folded(all_but_separated(1e-7, 2000), tmp_path, budget, step) as scores:
            return repr([scores.fit(code, 2.0**-52, sloped=True)[:3] for code in (0, 1)])

    assert told(TINY, 100) == told(TINY, 333) == told(ROOMY, 2000)


def test_few_readings_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    problem = of_one_column(drawn(20_000, 2, 5))
    with folded(problem, tmp_path, ROOMY, 5000) as scores, counted(scores, monkeypatch) as readings:
        scores.fit(1, 2.0**-52, sloped=True)
        assert len(readings) <= 3
        scores.fit(1, 2.0**-52, sloped=True)
        assert len(readings) <= 3


def test_steps_that_do_not_end_are_told_by_class_and_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.kernel.folds.logistic._MOST_STEPS", 1)
    rng = np.random.default_rng(4)
    # The last class has two probabilities, so cells say all of it and one step is enough.
    last, share = rng.choice([0.2, 0.4], 5000), rng.random(5000)
    rows = np.column_stack([(1.0 - last) * share, (1.0 - last) * (1.0 - share), last])
    problem = Problem(rng.integers(0, 3, 5000), rows, rows)
    with folded(problem, tmp_path, ROOMY, 5000) as scores, counted(scores, monkeypatch) as readings, silently():
        found = calibration_slope.compute(scores)
        assert np.isfinite(found).tolist() == [False, False, True]
        gap = Explainer[Scores](scores).explain(calibration_slope, 0, float(found[0]))
        assert (gap.condition.code, gap.culprits) == ("steps_without_end", (0,))
        readings.clear()
        calibration_slope.compute(scores)
        assert not readings
