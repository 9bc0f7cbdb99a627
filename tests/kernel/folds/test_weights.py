"""Folded samples with weights beside the metrics of the samples and whole fractions; neither parts nor order show."""

import pickle
import tracemalloc
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kernel.folds import runs
from app.kernel.folds.entries import Grid, NotFolded, lowest_bit, pieces_of
from app.kernel.folds.folded import FoldedOrder, FoldedScores
from app.kernel.folds.metrics import folded_values, linearised
from app.kernel.folds.scores import OrderFold, ScoresFold
from app.kernel.metrics.families import calibration, imcp, proper_scores, score_ranking
from app.kernel.metrics.families.imcp import regions
from app.kernel.numerics.arrays import silently
from app.kernel.samples.influence import LinearMethod
from app.kernel.samples.losses import TOLERANCE
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import Influences, variance
from tests.kernel.closeness import assert_close
from tests.kernel.folds.lines import lines_of, looked_at
from tests.kernel.folds.problems import PROBLEMS, Problem, drawn, merged, of_one_column

ROOMY, TINY = 1 << 22, 1 << 10
RANDOM = np.random.default_rng(77)
Weights = NDArray[np.float64]


def uneven(n: int) -> Weights:
    return np.exp(RANDOM.normal(scale=1.5, size=n))


WEIGHTS = {
    "uneven": uneven(400),
    "with zeros": uneven(400) * (np.arange(400) % 3 > 0),
    "whole": RANDOM.integers(1, 6, 400).astype(float),
    "tiny and huge": np.exp(RANDOM.normal(scale=20.0, size=400)),
}


@pytest.fixture(autouse=True)
def many_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs and blocks of few samples, so that few samples make many of them."""
    monkeypatch.setattr(runs, "_LEAST", 16)


def folded(problem: Problem, weights: Weights, folder: Path | None, budget: int = ROOMY) -> FoldedScores:
    with ScoresFold(problem.classes, budget, folder, weighted=True) as fold:
        for start in range(0, problem.y.size, 130):
            part = slice(start, start + 130)
            fold.add(problem.y[part], problem.given[part], None, weights[part])
        made = fold.finish()
        folded_values(made)
        made.curves_as_json()
    return made


def told(scores: FoldedScores | FoldedOrder) -> dict[str, bytes]:
    answers = {key: np.asarray(value).tobytes() for key, value in folded_values(scores).items()}
    lines = [(one.metric.key, code, line) for one, code, line in lines_of(scores)]
    return answers | {"lines": repr(lines).encode(), "curves": repr(scores.curves_as_json()).encode()}


@pytest.mark.parametrize("of", WEIGHTS)
@pytest.mark.parametrize("name", PROBLEMS)
def test_values_and_errors_are_those_of_the_samples(name: str, of: str, tmp_path: Path) -> None:
    problem = PROBLEMS[name]
    weights = WEIGHTS[of][: problem.y.size]
    if not weights.any():
        weights = np.ones_like(weights)
    found, whole = folded(problem, weights, tmp_path, TINY), Scores(problem.y, problem.rows, weights)
    values, influences = folded_values(found), Influences(whole)
    with silently():
        for one in looked_at(problem.classes, weighted=True):
            absolute = 1e-10 if of == "tiny and huge" else 4e-14
            assert_close(one.metric, values[one.metric.key], one.metric.compute(whole), absolute=absolute)
    # Where one sample is nearly all, deviations at hand have fewer digits, and products along the order are rounded.
    huge = of == "tiny and huge"
    relative = 1e-6 if huge else 1e-10
    for one, code, line in lines_of(found):
        own = influences.of(one.metric, code)
        assert own is not None
        floor = 3e-15 if not huge else 3e-7 if own.method is LinearMethod.DELONG_LOGIT else 1e-12
        error, expected = np.sqrt(variance(line)), np.sqrt(variance(own))
        assert error == pytest.approx(expected, rel=relative, abs=floor), (one.metric.key, code)
        assert (line.method, line.strata) == (own.method, own.strata)
        assert line.worth == pytest.approx(own.worth, rel=1e-12)
        assert line.freedom == pytest.approx(own.freedom, rel=1e-4 if huge else 1e-9)
        assert (line.sizes is None) == (own.sizes is None)
        if line.sizes is not None:
            assert line.sizes == pytest.approx(own.sizes, rel=1e-12)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("heaviest", [1.0, 1e8, 6e9, 1e12])
@pytest.mark.parametrize("name", ["one column", "three classes"])
def test_errors_of_means_are_those_of_whole_fractions_where_one_weight_is_nearly_all(
    name: str, heaviest: float
) -> None:
    problem = PROBLEMS[name]
    weights = uneven(problem.y.size)
    weights[5] = heaviest
    found, whole = folded(problem, weights, None), Scores(problem.y, problem.rows, weights)
    shares = (whole.p_true > 0.5).astype(float), (whole.p_true < 1.0 / problem.classes).astype(float)
    norms = np.sqrt((problem.rows**2).sum(axis=1))
    own = [
        (proper_scores.log_loss, -np.log(whole.p_true)),
        (proper_scores.spherical_score, whole.p_true / norms),
        (imcp.au_mcp, whole.phi),
        (imcp.fraction_correct_certain, shares[0]),
        (imcp.fraction_incorrect_certain, shares[1]),
        (imcp.fraction_uncertain, 1.0 - shares[0] - shares[1]),
    ]
    for metric, values in own:
        line = linearised(found, metric)
        assert line is not None
        expected = variance_of_mean(values, weights)
        assert variance(line) == pytest.approx(expected, rel=1e-6 if heaviest > 1e10 else 1e-10), metric.key
        if metric is not imcp.fraction_uncertain or problem.classes > 2:
            assert variance(line) > 0.0, metric.key
    for code in range(problem.classes):
        inside = problem.y == code
        line = linearised(found, imcp.mean_phi, code)
        assert line is not None
        expected = variance_of_mean(whole.phi[inside], weights[inside])
        assert variance(line) == pytest.approx(expected, rel=1e-6 if heaviest > 1e10 else 1e-10)


def variance_of_mean(values: Weights, weights: Weights) -> float:
    """Linearised, of samples drawn with replacement."""
    pairs = [
        (Fraction(weight), Fraction(value)) for weight, value in zip(weights.tolist(), values.tolist(), strict=True)
    ]
    total = sum(weight for weight, _ in pairs)
    mean = sum(weight * value for weight, value in pairs) / total
    away = sum((weight * (value - mean)) ** 2 for weight, value in pairs) / total**2
    return float(away * Fraction(len(pairs), len(pairs) - 1))


@pytest.mark.parametrize("name", PROBLEMS)
def test_what_no_sample_is_weighs_exactly_nothing(name: str) -> None:
    problem = PROBLEMS[name]
    for seed in range(3):
        weights = np.exp(np.random.default_rng(seed).normal(size=problem.y.size))
        whole, found = Scores(problem.y, problem.rows, weights), folded(problem, weights, None)
        undecided = ~((whole.p_true > 0.5 + TOLERANCE) | (whole.p_true < 1.0 / problem.classes - TOLERANCE))
        for scores in (whole, found):
            by_class = regions(scores)[1]
            for code in range(problem.classes):
                if (problem.y == code).any():
                    assert (by_class[code] > 0.0) == (undecided & (problem.y == code)).any()
                    assert by_class[code] >= 0.0
            share = float(imcp.fraction_uncertain.compute(scores))
            assert share == pytest.approx(float(weights[undecided].sum() / weights.sum()), rel=1e-14)


@pytest.mark.parametrize("name", PROBLEMS)
def test_weights_of_1_change_no_bit_of_a_value(name: str) -> None:
    problem = PROBLEMS[name]
    plain = ScoresFold(problem.classes, ROOMY, None).add(problem.y, problem.given).finish()
    weighted = folded(problem, np.ones(problem.y.size), None)
    values = folded_values(plain)
    unlike = {imcp.au_mcp_trapezoid.key, "roc_auc_standard_error"}
    for key, value in folded_values(weighted).items():
        if key not in unlike:
            np.testing.assert_array_equal(value, values[key], err_msg=key)
        else:
            assert np.isnan(value).all()
    for own, other in zip(weighted.curves_as_json()["classes"], plain.curves_as_json()["classes"], strict=True):
        assert own == other


@pytest.mark.parametrize("of", WEIGHTS)
def test_areas_are_those_of_whole_fractions(of: str) -> None:
    problem = of_one_column(drawn(120, 2, 3, decimals=1))
    weights = [Fraction(float(one)) for one in WEIGHTS[of][:120]]
    values = folded_values(folded(problem, WEIGHTS[of][:120], None))
    rows = [*zip(problem.rows[:, 1].tolist(), (problem.y == 1).tolist(), weights, strict=True)]
    members, others = ([(score, weight) for score, own, weight in rows if own is side] for side in (True, False))
    pairs = sum(a * b for _, a in members for _, b in others)
    won = sum(a * b * (Fraction(s > t) + Fraction(s == t) / 2) for s, a in members for t, b in others)
    precision = Fraction(0)
    for score, weight in members:
        if weight:
            above = sum(w for s, _, w in rows if s >= score)
            precision += weight * sum(w for s, w in members if s >= score) / above
    positives = sum(w for _, w in members)
    assert values[score_ranking.roc_auc.key][1] == pytest.approx(float(won / pairs), rel=1e-15)
    assert values[score_ranking.average_precision.key][1] == pytest.approx(float(precision / positives), rel=2e-15)


@pytest.mark.slow
@pytest.mark.parametrize("of", WEIGHTS)
@pytest.mark.parametrize("name", ["one column tied", "two columns of float32", "three classes tied", "all equal"])
def test_no_split_and_no_order_shows(name: str, of: str, tmp_path: Path) -> None:
    problem, random, spilled = PROBLEMS[name], np.random.default_rng(4), 0
    n = problem.y.size
    weights = WEIGHTS[of][:n]
    expected = told(folded(problem, weights, None))
    for _ in range(4):
        parts = np.split(random.permutation(n), np.sort(random.integers(0, n + 1, random.integers(0, 6))))
        states = []
        for part in parts:
            folder = None if random.random() < 0.3 else tmp_path
            fold = ScoresFold(problem.classes, int(random.choice([TINY, ROOMY])), folder, weighted=True)
            fold.add(problem.y[part], problem.given[part], None, weights[part])
            states.append(pickle.loads(pickle.dumps(fold)) if random.random() < 0.5 else fold)  # noqa: S301 - its own
        with merged(states, random) as fold:
            spilled += len(list(tmp_path.iterdir()))
            assert told(fold.finish()) == expected
        assert not list(tmp_path.iterdir())
    assert spilled > 0


def test_what_looks_at_counts_does_not_fold(tmp_path: Path) -> None:
    scores = folded(PROBLEMS["three classes"], uneven(300), tmp_path)
    for metric in (score_ranking.roc_auc_ovr_micro, score_ranking.macro_pr_auc, calibration.calibration_slope):
        assert metric.key not in folded_values(scores)
        with pytest.raises(NotFolded, match="folded"):
            metric.compute(scores)


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_without_bounds_fold_with_weights(classes: int, tmp_path: Path) -> None:
    y = RANDOM.integers(0, classes, 300)
    rows = (RANDOM.normal(size=(300, classes)) + np.eye(classes)[y]).round(1)
    given = rows if classes > 2 else rows[:, 1]
    weights = WEIGHTS["with zeros"][:300]
    whole = Scores.of_class_scores(y, rows, weights) if classes > 2 else Scores.of_scores(y, given, weights)
    states = [
        OrderFold(classes, TINY, tmp_path, weighted=True).add(y[part], given[part], None, weights[part])
        for part in np.array_split(np.arange(300), 4)
    ]
    with states[1].merge(states[3]).merge(states[0].merge(states[2])) as fold:
        found = fold.finish()
        values, influences = folded_values(found), Influences(whole)
        with OrderFold(classes, ROOMY, None, weighted=True) as other:
            assert told(found) == told(other.add(y, given, None, weights).finish())
    with silently():
        for one in looked_at(classes, weighted=True):
            assert_close(one.metric, values[one.metric.key], one.metric.compute(whole), absolute=4e-15)
    for one, code, line in lines_of(found):
        own = influences.of(one.metric, code)
        assert own is not None
        assert variance(line) == pytest.approx(variance(own), rel=1e-10, abs=1e-29)


def test_one_score_of_many_samples_with_weights_takes_little(tmp_path: Path) -> None:
    n = 40_000
    with ScoresFold(2, 1 << 16, tmp_path, weighted=True) as fold:
        fold.add(RANDOM.integers(0, 2, n), np.full(n, 0.25), None, uneven(n))
        fold.finish()
        kept = sum(path.stat().st_size for path in tmp_path.iterdir())
        assert kept < n
        assert folded_values(fold.finish())[score_ranking.roc_auc.key].tolist() == [0.5, 0.5]


@pytest.mark.slow
def test_memory_is_bounded_however_many_digits_weights_have(tmp_path: Path) -> None:
    random, budget = np.random.default_rng(15), 1 << 20
    tracemalloc.start()
    try:
        with ScoresFold(2, budget, tmp_path, weighted=True) as fold:
            for _ in range(2):
                one, weights = random.random(20_000), np.exp(random.normal(scale=60.0, size=20_000))
                fold.add(random.random(20_000) < one, one, None, np.minimum(weights, 1e12))
            fold.finish().ranking(1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    # As many samples at once as of few digits would take a third more.
    assert peak < 3.3 * budget


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (None, "the weights of 3 samples"),
        (np.ones(2), "the weights of 3 samples"),
        (np.array([1.0, np.nan, 1.0]), "0 or more"),
        (np.array([1.0, -1.0, 1.0]), "0 or more"),
        (np.array([1.0, np.inf, 1.0]), "0 or more"),
        (np.array([1.0, 2.0**100, 1.0]), "0 or more"),
    ],
)
def test_wrong_weights_are_refused_and_nothing_is_added(weights: Weights | None, said: str) -> None:
    for fold in (ScoresFold(2, ROOMY, None, weighted=True), OrderFold(2, ROOMY, None, weighted=True)):
        with pytest.raises(ValueError, match=said):
            fold.add(np.array([0, 1, 1]), np.array([0.1, 0.2, 0.3]), None, weights)
        assert not fold.rows


def test_a_class_that_weighs_too_little_is_refused(tmp_path: Path) -> None:
    y, scores = np.array([0, 1, 1]), np.array([0.1, 0.2, 0.3])
    for kind in (ScoresFold, OrderFold):
        for weights in (np.array([1.0, 1e-31, 1e-31]), np.full(3, 1e-90), np.full(3, 1e-165)):
            with (
                kind(2, ROOMY, tmp_path, weighted=True) as fold,
                pytest.raises(ValueError, match=r"add up to 0, or to at least 2\^-100"),
            ):
                fold.add(y, scores, None, weights).finish()
        # Of a class that weighs enough single samples may weigh next to nothing.
        with kind(2, ROOMY, tmp_path, weighted=True) as fold:
            found = fold.add(y, scores, None, np.array([1e-30, 1e-30, 1e-320])).finish()
            assert folded_values(found)[score_ranking.roc_auc.key].tolist() == [1.0, 1.0]
        with kind(2, ROOMY, tmp_path, weighted=True) as fold:
            assert fold.add(y, scores, None, np.array([0.0, 1.0, 2.0])).finish().actual.tolist() == [0.0, 3.0]


def test_weights_are_for_folds_that_have_them() -> None:
    y, scores = np.array([0, 1]), np.array([0.2, 0.3])
    with pytest.raises(ValueError, match="samples without weights"):
        ScoresFold(2, ROOMY, None).add(y, scores, None, np.ones(2))
    with pytest.raises(ValueError, match="with weights and without"):
        OrderFold(2, ROOMY, None).merge(OrderFold(2, ROOMY, None, weighted=True))
    with pytest.raises(ValueError, match="in groups do not fold with weights"):
        ScoresFold(2, ROOMY, None, grouped=True, weighted=True)


def test_sums_of_weights_are_whole_numbers() -> None:
    values = np.array([5e-324, 0.0, 0.1, 2.0**52 + 1.0, 3.0, 1e-200])
    total = sum(map(Fraction, values.tolist()), Fraction(0))
    lowest = lowest_bit(values)
    assert lowest == -1074
    grid = Grid.of(total, lowest)
    digits = grid.digits(values)
    np.testing.assert_array_equal(grid.rounded(digits), values)
    sums = grid.cumulated(digits, 7)
    assert [grid.fraction(one) for one in grid.units(sums)][-1] == total + grid.fraction(7)
    assert grid.total(digits) == grid.whole(total)
    np.testing.assert_allclose(grid.rounded(grid.cumulated(digits, 0)), np.cumsum(values), rtol=1e-15)
    pieces = np.concatenate(pieces_of(values, np.array([0, 3])))
    assert [sum(map(Fraction, column.tolist())) for column in pieces.T] == [
        sum(map(Fraction, part.tolist())) for part in (values[:3], values[3:])
    ]
    assert lowest_bit(np.zeros(3)) is None
    assert lowest_bit(np.array([0.0, 12.0])) == 2
