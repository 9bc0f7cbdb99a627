"""Metrics of probabilities of weighted samples: derivatives by each weight, statsmodels, equality for equal weights."""

import numpy as np
import pytest

from app.kernel.metrics.card import Metric, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.proper_scores import log_loss
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.numerics.arrays import Array
from app.kernel.samples.influence import LinearMethod
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import Influences, limits
from tests.bank import each
from tests.witnesses import sk, sm

LINEAR = [
    metric
    for metric in catalogue().of_probabilities.metrics
    if metric.card.inference.influence is not None and metric.card.inference.influence.of_weighted
]


def samples(n_classes: int, size: int) -> tuple[Array, Array, Array]:
    random = np.random.default_rng(4)
    rows = random.dirichlet(np.ones(n_classes), size)
    truth = np.array([random.choice(n_classes, p=row) for row in rows])
    return truth, rows, random.gamma(2.0, 1.0, size) + 0.1


@each("n_classes", [2, 3])
@each("metric", LINEAR, ids=lambda metric: metric.key)
def test_samples_of_one_weight_have_the_influences_of_those_without(metric: Metric[Scores], n_classes: int) -> None:
    truth, rows, _ = samples(n_classes, 90)
    plain, weighted = Influences(Scores(truth, rows)), Influences(Scores(truth, rows, np.full(90, 2.5)))
    for code in range(n_classes) if metric.card.scope is Scope.CLASS else [None]:
        own, expected = weighted.of(metric, code), plain.of(metric, code)
        assert own is not None
        assert expected is not None
        if np.isnan(own.value):
            # Trapezoids between samples are not defined for weights.
            assert metric.key.endswith("trapezoid")
            continue
        np.testing.assert_allclose(own.influence, expected.influence, rtol=1e-9, atol=1e-15)
        assert own.freedom == pytest.approx(expected.freedom, rel=1e-9)
        found, without = limits(own), limits(expected)
        assert (found is None) == (without is None)
        if found is None or without is None:
            continue
        np.testing.assert_allclose([found.low, found.high], [without.low, without.high], rtol=1e-10)


def test_many_samples_have_the_influences_of_weights_of_1() -> None:
    """Samples without weights are counted in integers, whose squares and products have to fit."""
    random = np.random.default_rng(5)
    share = random.uniform(size=100_000)
    rows, truth = np.column_stack([1.0 - share, share]), (random.uniform(size=share.size) < share).astype(np.intp)
    plain, weighted = Influences(Scores(truth, rows)), Influences(Scores(truth, rows, np.ones(share.size)))
    wrong = []
    for metric in LINEAR:
        code = 0 if metric.card.scope is Scope.CLASS else None
        own, expected = plain.of(metric, code), weighted.of(metric, code)
        assert own is not None
        assert expected is not None
        # Trapezoids between samples are not defined for weights.
        if not metric.key.endswith("trapezoid") and not np.allclose(
            own.influence, expected.influence, rtol=1e-9, atol=0
        ):
            wrong.append(metric.key)
    assert wrong == []


def test_scores_that_are_no_probabilities_have_no_influence_on_what_they_have_no_value_of() -> None:
    truth, rows, _ = samples(3, 60)
    of = Influences(Scores.of_class_scores(truth, np.log(rows)))
    for metric in LINEAR:
        found = of.of(metric, 0 if metric.card.scope is Scope.CLASS else None)
        if found is not None and np.isnan(found.value):
            assert np.isnan(found.influence).all() or not found.influence.any(), metric.key


@each("metric", LINEAR, ids=lambda metric: metric.key)
def test_a_class_of_weight_0_changes_nothing(metric: Metric[Scores]) -> None:
    """What says nothing has no influence, whatever the logarithm of its share is."""
    truth, rows, weights = samples(3, 60)
    weights[truth == 1] = 0.0
    counted = weights > 0
    for code in (0, 2) if metric.card.scope is Scope.CLASS else [None]:
        own = Influences(Scores(truth, rows, weights)).of(metric, code)
        expected = Influences(Scores(truth[counted], rows[counted], weights[counted])).of(metric, code)
        assert own is not None
        assert expected is not None
        if np.isnan(expected.value):
            continue
        np.testing.assert_array_equal(own.influence[~counted], 0.0)
        np.testing.assert_allclose(own.influence[counted], expected.influence, rtol=1e-9, atol=1e-15)


# Of equal scores the average precision is the share of the class, which is random.
AREAS = [
    metric
    for metric in LINEAR
    if (form := metric.card.inference.influence) is not None and form.area is not None and not form.area.of_precision
]


@each("weighted", [False, True], ids=["plain", "weighted"])
@each("n_classes", [2, 3])
@each("metric", AREAS, ids=lambda metric: metric.key)
def test_equal_scores_and_perfect_ones_leave_no_influence_on_areas(
    metric: Metric[Scores], n_classes: int, weighted: bool
) -> None:
    """What places differ by is rounding."""
    truth, _, weights = samples(n_classes, 400)
    equal = np.full((400, n_classes), 0.7 / (n_classes - 1))
    equal[:, -1] = 0.3
    perfect = np.eye(n_classes)[truth] * 0.7 + 0.3 / n_classes
    alike = np.full((400, n_classes), 1.0 / n_classes)
    for rows in (alike, perfect) if metric.key == "roc_auc_ovr_micro" else (alike, perfect, equal):
        of = Influences(Scores(truth, rows, weights if weighted else None))
        for code in range(n_classes) if metric.card.scope is Scope.CLASS else [None]:
            found = of.of(metric, code)
            assert found is not None
            np.testing.assert_array_equal(found.influence, 0.0)
            ends = limits(found)
            assert ends is None or (ends.method is LinearMethod.NEWCOMBE and ends.high - ends.low > 1e-3)


@each("metric", LINEAR, ids=lambda metric: metric.key)
def test_influences_are_derivatives_by_the_weights(metric: Metric[Scores]) -> None:
    truth, rows, weights = samples(3, 40)
    code = 1 if metric.card.scope is Scope.CLASS else None
    found = Influences(Scores(truth, rows, weights)).of(metric, code)
    assert found is not None
    if np.isnan(found.value):
        assert metric.key.endswith("trapezoid")
        return

    def value(moved: Array) -> float:
        computed = metric.compute(Scores(truth, rows, moved), **metric.card.defaults)
        return float(computed if code is None else computed[code])

    step, moves = 1e-5, np.zeros(truth.size)
    for place in range(truth.size):
        ends = [weights.copy(), weights.copy()]
        ends[0][place] *= 1.0 + step
        ends[1][place] *= 1.0 - step
        moves[place] = (value(ends[0]) - value(ends[1])) / (2.0 * step)
    # Sampled with replacement, n/(n-1) of all, or of each class or side, stands before it.
    np.testing.assert_allclose(found.influence, moves, atol=0.1 * np.abs(moves).max())
    if metric in (roc_auc, log_loss):
        factors = found.influence[np.abs(moves) > 1e-9] / moves[np.abs(moves) > 1e-9]
        sides = [truth.size] if metric is log_loss else [np.sum(truth == 1), np.sum(truth != 1)]
        expected = np.sqrt([size / (size - 1.0) for size in sides])
        assert np.abs(factors[:, None] - expected).min(axis=1).max() < 1e-6


def test_a_mean_loss_has_the_error_of_statsmodels() -> None:
    truth, rows, weights = samples(3, 120)
    found = Influences(Scores(truth, rows, weights)).of(log_loss)
    assert found is not None
    losses = -np.log(rows[np.arange(120), truth])
    fit = sm.WLS(losses, np.ones(120), weights=weights).fit(cov_type="HC1")
    assert found.value == pytest.approx(sk.log_loss(truth, rows, sample_weight=weights), rel=1e-12)
    assert found.variance == pytest.approx(float(fit.bse[0]) ** 2, rel=1e-12)
    assert found.freedom == pytest.approx(weights.sum() ** 2 / (weights**2).sum() - 1.0)


def test_an_area_without_mistakes_is_held_at_its_end() -> None:
    truth = np.array([0, 0, 0, 1, 1, 1, 1])
    rows = np.column_stack([1.0 - truth * 0.8 - 0.1, truth * 0.8 + 0.1])
    found = Influences(Scores(truth, rows, np.array([1.0, 2.0, 3.0, 1.0, 1.0, 1.0, 5.0]))).of(roc_auc, 1)
    assert found is not None
    ends = limits(found)
    assert ends is not None
    assert ends.high == 1.0
    assert 0.2 < ends.low < 0.9
