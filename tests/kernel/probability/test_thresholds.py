"""Threshold and weight search against trying everything."""

from functools import cache
from itertools import product

import numpy as np
import pytest

from app.kernel.decide.class_weights import confusion, decide
from app.kernel.decide.rules import Constraint, Correction, NoFeasibleRule, Placed
from app.kernel.decide.thresholds import cut_matrices
from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Combination, Every, Expression, Measure, compute
from app.kernel.numerics.arrays import Array
from app.kernel.samples.scores import Scores
from tests.bank import each
from tests.kernel.probability.problems import Codes, softmax_problem, tied_problem
from tests.kernel.probability.searching import by_threshold, by_weights


def measure(key: str, of: int | Every | None = None) -> Measure:
    return Measure(catalogue().of_matrices.by_name[key], {}, of)


# The operating point of Wu & Cannistraci (2025): mean of both F scores and the AC-score.
OPERATING_POINT = Combination("mean", (measure("f1", 1), measure("f1_negative", 1), measure("h_mean")))
GPS = Combination("gps", (measure("recall", Every.CLASS), measure("precision", 1)))
OBJECTIVES: dict[str, Expression] = {
    "operating point": OPERATING_POINT,
    "gps": GPS,
    "mcc": measure("mcc"),
    "informedness": measure("informedness", 1),
    "worst recall": Combination("min", (measure("recall", Every.CLASS),)),
}


def matrix(y: Codes, predicted: Codes, classes: int = 2, weights: Array | None = None) -> Array:
    counts = np.zeros((classes, classes))
    np.add.at(counts, (y, predicted), 1.0 if weights is None else weights)
    return counts


def all_cuts(y: Codes, score: Array, positive: int, weights: Array | None) -> list[Array]:
    # Above a probability of 1 there is none.
    thresholds = [*([np.inf] if score.max() < 1.0 else []), *np.unique(score)[::-1]]
    return [matrix(y, np.where(score >= t, positive, 1 - positive), weights=weights) for t in thresholds]


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("make", [softmax_problem, tied_problem])
def test_every_distinct_cut_and_no_other(positive: int, weighted: bool, make: object) -> None:
    y, p = make(70, 2, 3)  # type: ignore[operator]
    weights = np.random.default_rng(0).integers(0, 5, 70).astype(float) if weighted else None
    cuts = cut_matrices(Scores(y, p, weights), positive)
    np.testing.assert_allclose(cuts.counts, all_cuts(y, p[:, positive], positive, weights))
    # The thresholds make exactly these matrices.
    for threshold, counts in zip(cuts.thresholds, cuts.counts, strict=True):
        predicted = np.where(p[:, positive] >= threshold, positive, 1 - positive)
        np.testing.assert_array_equal(matrix(y, predicted, weights=weights), counts)


@pytest.mark.parametrize("n", [6000])
def test_thresholds_part_the_very_scores_that_came(n: int) -> None:
    """Decimals whose complement is off by the last digit, in a problem large enough for one order of both classes."""
    rng = np.random.default_rng(0)
    one = np.round(rng.random(n), 3)
    p = np.column_stack([np.round(1.0 - one, 3), one])
    y = (rng.random(n) < one).astype(int)
    for positive in (0, 1):
        cuts = cut_matrices(Scores(y, p), positive)
        for index in range(0, cuts.thresholds.size, 97):
            predicted = np.where(p[:, positive] >= cuts.thresholds[index], positive, 1 - positive)
            np.testing.assert_array_equal(matrix(y, predicted), cuts.counts[index])


def test_neighbouring_numbers_are_parted() -> None:
    low = 0.5
    high = np.nextafter(low, 1.0)
    cuts = cut_matrices(Scores.of_scores([0, 1], [low, high]), 1)
    assert cuts.thresholds.tolist() == [np.nextafter(high, np.inf), high, low]


def test_no_threshold_is_above_the_highest_that_there_can_be() -> None:
    """Nothing is better than to predict nothing, but no threshold of probabilities says so where one of them is 1."""
    y, p = [0, 0, 1], np.array([1.0, 1.0, 0.5])
    rule = by_threshold(Scores(y, np.column_stack([1.0 - p, p])), measure("accuracy"), resamples=10)
    assert (rule.threshold, rule.objective, rule.thresholds.tolist()) == (0.5, 1 / 3, [0.75, 0.5])
    assert rule.limits == (0.5, 0.5)
    largest = np.finfo(np.float64).max
    assert cut_matrices(Scores.of_scores([0, 1], [largest, largest]), 1).thresholds.tolist() == [largest]
    below = np.nextafter(1.0, 0.0)
    assert cut_matrices(Scores([0], np.array([[1.0 - below, below]])), 1).thresholds.tolist() == [1.0, below]


@each("objective", OBJECTIVES)
@each("positive", [0, 1])
@each("make", [softmax_problem, tied_problem])
def test_best_threshold(objective: str, positive: int, make: object) -> None:
    y, p = make(90, 2, 5)  # type: ignore[operator]
    expression = OBJECTIVES[objective]
    rule = by_threshold(Scores(y, p), expression, positive=positive, correction=Correction.NONE)
    values = compute(expression, Table(np.array(all_cuts(y, p[:, positive], positive, None))))
    assert rule.objective == pytest.approx(np.nanmax(values), rel=1e-12)
    applied = matrix(y, np.where(p[:, positive] >= rule.threshold, positive, 1 - positive))
    np.testing.assert_array_equal(rule.counts, applied)
    default = matrix(y, np.where(p[:, positive] >= 0.5, positive, 1 - positive))
    assert rule.objective >= float(compute(expression, Table(default)))
    np.testing.assert_allclose(rule.objectives, values, equal_nan=True)
    assert rule.corrected is None


def test_smaller_can_be_better() -> None:
    y, p = softmax_problem(90, 2, 5)
    rule = by_threshold(Scores(y, p), measure("error_rate"), maximize=False, correction=Correction.NONE)
    assert rule.objective == pytest.approx(np.nanmin(rule.objectives))


def test_constraints() -> None:
    y, p = softmax_problem(200, 2, 6)
    recall = Constraint(Placed(measure("recall", 1)), minimum=0.9)
    rule = by_threshold(Scores(y, p), measure("precision", 1), constraints=[recall], correction=Correction.NONE)
    cuts = np.array(all_cuts(y, p[:, 1], 1, None))
    found = compute(measure("recall", 1), Table(cuts))
    precision = compute(measure("precision", 1), Table(cuts))
    assert rule.objective == pytest.approx(np.nanmax(precision[found >= 0.9]), rel=1e-12)
    np.testing.assert_array_equal(rule.feasible, found >= 0.9)
    both = [recall, Constraint(Placed(measure("specificity", 1)), minimum=0.999)]
    with pytest.raises(NoFeasibleRule):
        by_threshold(Scores(y, p), measure("precision", 1), constraints=both)
    upper = [Constraint(Placed(measure("fpr", 1)), maximum=0.2)]
    capped = by_threshold(Scores(y, p), measure("recall", 1), constraints=upper, correction=Correction.NONE)
    false = compute(measure("fpr", 1), Table(cuts))
    assert capped.objective == pytest.approx(found[false <= 0.2].max())


def test_of_equal_thresholds_the_one_nearest_the_default_is_taken() -> None:
    p = np.array([0.1, 0.2, 0.3, 0.6, 0.8, 0.9])
    scores = Scores([0, 0, 0, 0, 1, 1], np.column_stack([1 - p, p]))
    # Anything between 0.6 and 0.8 is perfect; here the scores themselves leave one choice.
    assert by_threshold(scores, measure("accuracy"), correction=Correction.NONE).threshold == pytest.approx(0.7)
    constant = by_threshold(scores, measure("support", 1), correction=Correction.NONE)
    assert constant.threshold == pytest.approx(0.45)


@pytest.mark.parametrize("method", [Correction.OPTIMISM, Correction.B632])
def test_optimism_of_pure_noise(method: Correction) -> None:
    """Scores that know nothing: the best balanced accuracy looks better than 1/2, and the corrected one less so."""
    rng = np.random.default_rng(4)
    apparent, corrected = [], []
    for seed in range(12):
        y = np.arange(60) % 2
        p = rng.random(60)
        scores = Scores(y, np.column_stack([1 - p, p]))
        rule = by_threshold(scores, measure("balanced_accuracy"), correction=method, resamples=40, seed=seed)
        assert rule.corrected is not None
        assert rule.corrected.optimism == pytest.approx(rule.objective - rule.corrected.value)
        low, high = rule.limits
        assert low is not None
        assert high is not None
        assert low <= high
        apparent.append(rule.objective)
        corrected.append(rule.corrected.value)
    assert np.mean(apparent) > 0.55
    assert abs(np.mean(corrected) - 0.5) < 0.75 * abs(np.mean(apparent) - 0.5)


def test_optimism_is_repeatable_and_small_on_much_data() -> None:
    y, p = softmax_problem(6000, 2, 5)
    first = by_threshold(Scores(y, p), OPERATING_POINT, resamples=20, seed=3)
    assert first.corrected == by_threshold(Scores(y, p), OPERATING_POINT, resamples=20, seed=3).corrected
    assert first.corrected is not None
    assert abs(first.corrected.optimism) < 0.01
    assert first.corrected.resamples == 20


def every_rule(p: Array) -> list[Codes]:
    """All predictions that class weights can make of three classes, by a fine grid of both ratios."""
    steps = np.exp(np.linspace(-4.0, 4.0, 241))
    found: dict[bytes, Codes] = {}
    for second, third in product(steps, steps):
        predicted = np.argmax(p * np.array([1.0, second, third]), axis=1)
        found[predicted.tobytes()] = predicted
    return list(found.values())


@cache
def tried(seed: int) -> Table:
    """What comes of every rule."""
    y, p = softmax_problem(24, 3, seed)
    return Table(np.array([matrix(y, predicted, 3) for predicted in every_rule(p)]))


@pytest.mark.parametrize("objective", ["gps", "mcc", "worst recall", "macro_f1"])
@pytest.mark.parametrize("seed", range(2))
def test_weights_against_trying_everything(objective: str, seed: int) -> None:
    y, p = softmax_problem(24, 3, seed)
    expression = OBJECTIVES.get(objective) or measure(objective)
    rule = by_weights(Scores(y, p), expression, starts=16, seed=1)
    best = np.nanmax(compute(expression, tried(seed)))
    # A search along one class at a time may stop short of the best of all; it must come close and be no worse than
    # argmax.
    assert rule.objective >= 0.97 * best
    assert rule.objective >= float(compute(expression, Table(matrix(y, p.argmax(axis=1), 3))))
    applied = matrix(y, np.argmax(p * rule.weights, axis=1), 3)
    np.testing.assert_array_equal(rule.counts, applied)
    assert rule.objective == pytest.approx(float(compute(expression, Table(applied))))
    assert np.prod(rule.weights) == pytest.approx(1.0)


@pytest.mark.parametrize("weighted", [False, True])
def test_two_classes_by_weights_are_a_threshold(weighted: bool) -> None:
    y, p = softmax_problem(150, 2, 9)
    weights = np.random.default_rng(0).gamma(1.0, size=150) if weighted else None
    scores = Scores(y, p, weights)
    one, other = by_threshold(scores, GPS, correction=Correction.NONE), by_weights(scores, GPS)
    assert other.objective == pytest.approx(one.objective, rel=1e-12)


def test_weights_with_constraints_ties_and_zeros() -> None:
    y, p = tied_problem(120, 4, 3)
    scores = Scores(y, p)
    constraint = Constraint(Placed(measure("recall", 0)), minimum=0.5)
    rule = by_weights(scores, measure("macro_f1"), constraints=[constraint])
    assert float(compute(measure("recall", 0), Table(rule.counts))) >= 0.5
    np.testing.assert_array_equal(rule.counts, confusion(scores, decide(scores, rule.weights)))
    impossible = [Constraint(Placed(measure("accuracy")), minimum=1.1)]
    with pytest.raises(NoFeasibleRule):
        by_weights(scores, measure("macro_f1"), constraints=impossible, starts=2)


@pytest.mark.parametrize("method", [Correction.OPTIMISM, Correction.B632])
def test_optimism_of_weights(method: Correction) -> None:
    rng = np.random.default_rng(0)
    y = np.arange(90) % 3
    scores = Scores(y, rng.dirichlet(np.ones(3), 90))
    rule = by_weights(scores, measure("balanced_accuracy"), correction=method, resamples=8, starts=2)
    assert rule.corrected is not None
    assert rule.corrected.value < rule.objective
    assert rule.corrected.optimism == pytest.approx(rule.objective - rule.corrected.value)


def test_what_is_certain_is_decided_so_whatever_the_weights() -> None:
    """Class 1 is sure of samples of class 0: no weight above 0 takes them from it."""
    rows = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.5, 0.3, 0.2], [0.4, 0.2, 0.4], [0.1, 0.2, 0.7]])
    scores = Scores(np.array([0, 0, 0, 2, 2]), rows)
    for objective in ("accuracy", "gwet_ac1", "micro_f1"):
        found = by_weights(scores, measure(objective))
        assert (found.weights > 0.0).all()
        np.testing.assert_array_equal(found.counts, confusion(scores, decide(scores, found.weights)))
        assert found.counts[0, 1] == 2
