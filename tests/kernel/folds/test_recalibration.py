"""Logistic recalibration of samples that went by, beside that of the samples."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from app.kernel.folds.folded import FoldedScores
from app.kernel.folds.metrics import linearised
from app.kernel.folds.not_folded import NotFolded
from app.kernel.folds.orders import runs
from app.kernel.folds.scores import ScoresFold
from app.kernel.metrics.engine import Explainer
from app.kernel.metrics.families.probabilities.recalibration import calibration_intercept, calibration_slope
from app.kernel.numerics.arrays import silently
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.of_samples.influence import Influences, limits, variance
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


def test_few_readings_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    readings = 0
    with folded(of_one_column(drawn(20_000, 2, 5)), tmp_path, ROOMY, 5000) as scores:
        scores.ranking(1)
        stretches = scores._stretches

        def counted(code: int) -> object:
            nonlocal readings
            readings += 1
            return stretches(code)

        monkeypatch.setattr(scores, "_stretches", counted)
        scores.fit(1, 2.0**-52, sloped=True)
        assert readings <= 3
        scores.fit(1, 2.0**-52, sloped=True)
        assert readings <= 3


def test_steps_that_do_not_end_are_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.kernel.folds.fits.logistic._MOST_READINGS", 0)
    with folded(PROBLEMS["one column"], tmp_path) as scores, pytest.raises(NotFolded, match="readings"):
        scores.fit(1, 2.0**-52, sloped=True)
