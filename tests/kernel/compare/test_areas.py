"""Areas under ROC curves: components, covariances, limits; and means of losses."""

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import rankdata, ttest_1samp
from sklearn.metrics import roc_auc_score

from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.auc import (
    area_difference,
    area_influence,
    area_limits,
    delong,
    difference_test,
    equal_areas,
    macro_area,
    mean_limits,
    midranks,
    newcombe_area_limits,
    placements,
)


def example(n: int = 60, runs: int = 3, seed: int = 0) -> tuple[NDArray[np.bool_], Array]:
    random = np.random.default_rng(seed)
    positive = random.random(n) < 0.4
    scores = np.round(positive * 1.0 + random.normal(0, 1, (runs, n)), 1)
    return positive, scores


def test_midranks_are_those_of_scipy_in_double_precision() -> None:
    random = np.random.default_rng(0)
    values = random.integers(0, 30, (3, 200)).astype(float)
    np.testing.assert_array_equal(midranks(values), rankdata(values, axis=1))
    many = np.arange(40_000_001.0)[-3:]
    assert midranks(np.concatenate([np.zeros(5), many]))[-1] == 8.0


def test_components_are_shares_of_pairs() -> None:
    positive, scores = example()
    above, below = placements(positive, scores)
    for run, row in enumerate(scores):
        wins = (row[positive][:, None] > row[~positive][None]) + 0.5 * (row[positive][:, None] == row[~positive][None])
        np.testing.assert_allclose(above[run], wins.mean(axis=1))
        np.testing.assert_allclose(below[run], wins.mean(axis=0))


def test_areas_agree_with_scikit_learn_and_covariance_with_its_definition() -> None:
    positive, scores = example()
    found = delong(positive, scores)
    for area, row in zip(found.areas, scores, strict=True):
        assert area == pytest.approx(roc_auc_score(positive, row))
    above, below = placements(positive, scores)
    expected = np.cov(above) / positive.sum() + np.cov(below) / (~positive).sum()
    np.testing.assert_allclose(found.covariance, expected)


def test_standard_error_is_the_spread_over_samples() -> None:
    random = np.random.default_rng(1)
    areas, errors = [], []
    for _ in range(600):
        positive = np.arange(150) < 60
        found = delong(positive, positive + random.normal(0, 1.2, (1, 150)))
        areas.append(found.areas[0])
        errors.append(found.covariance[0, 0])
    assert np.sqrt(np.mean(errors)) == pytest.approx(np.std(areas), rel=0.08)


def test_difference_of_paired_areas() -> None:
    positive, scores = example()
    found = delong(positive, scores)
    test = area_difference(found, 0, 1)
    spread = found.covariance[0, 0] + found.covariance[1, 1] - 2 * found.covariance[0, 1]
    assert test.difference == pytest.approx(found.areas[0] - found.areas[1])
    assert test.statistic == pytest.approx(test.difference / np.sqrt(spread))
    statistic, freedom, p = equal_areas(delong(positive, scores[:2]))
    assert statistic == pytest.approx(test.statistic**2)
    assert freedom == 1
    assert p == pytest.approx(test.p)
    assert equal_areas(found)[1] == 2


def test_published_p_of_a_z() -> None:
    assert difference_test(0.083, (0.083 / 0.628) ** 2, 1.0).p == pytest.approx(0.530, abs=5e-4)


def test_identical_scores_do_not_differ_and_perfect_ones_are_refused() -> None:
    positive, scores = example(runs=1)
    same = area_difference(delong(positive, np.vstack([scores, scores])), 0, 1)
    assert (same.difference, same.p) == (0.0, 1.0)
    assert equal_areas(delong(positive, np.vstack([scores, scores])))[2] == 1.0
    extremes = delong(positive, np.vstack([positive * 1.0, -1.0 * positive]))
    with pytest.raises(ValueError, match="no variance"):
        area_difference(extremes, 0, 1)


def test_published_limits_of_a_perfect_area() -> None:
    low, high = newcombe_area_limits(1.0, 10, 15)
    assert low == pytest.approx(0.832, abs=5e-4)
    assert high == 1.0
    low, high, method = area_limits(1.0, 0.0, 10, 15)
    assert method == "newcombe_5"
    assert low == pytest.approx(0.832, abs=5e-4)
    assert newcombe_area_limits(0.0, 10, 15)[1] == pytest.approx(1 - 0.832, abs=5e-4)
    assert newcombe_area_limits(0.7, 10, 15)[0] < 0.7 < newcombe_area_limits(0.7, 10, 15)[1]


def test_limits_on_the_logit_scale() -> None:
    low, high, method = area_limits(0.9, 0.05**2, 20, 20)
    assert method == "delong_logit"
    center, spread = np.log(9), 1.959964 * 0.05 / 0.09
    assert low == pytest.approx(1 / (1 + np.exp(-(center - spread))), rel=1e-6)
    assert high == pytest.approx(1 / (1 + np.exp(-(center + spread))), rel=1e-6)


def test_influences_reproduce_the_covariance_and_add_up() -> None:
    positive, scores = example()
    areas, influence = area_influence(positive, scores)
    found = delong(positive, scores)
    np.testing.assert_allclose(areas, found.areas)
    np.testing.assert_allclose(influence @ influence.T, found.covariance)
    np.testing.assert_allclose(influence.sum(axis=1), 0.0, atol=1e-12)


def test_macro_area_agrees_with_scikit_learn_and_its_error_with_samples() -> None:
    random = np.random.default_rng(2)
    areas, errors = [], []
    for _ in range(300):
        truth = np.repeat([0, 1, 2], [40, 60, 50])
        logits = 1.2 * np.eye(3)[truth] + random.normal(size=(150, 3))
        probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
        area, influence = macro_area(truth, probabilities[None])
        areas.append(area[0])
        errors.append((influence**2).sum())
    assert areas[-1] == pytest.approx(roc_auc_score(truth, probabilities, multi_class="ovr"))
    assert np.sqrt(np.mean(errors)) == pytest.approx(np.std(areas), rel=0.1)
    weighted, _ = macro_area(truth, probabilities[None], np.array([40.0, 60, 50]))
    assert weighted[0] == pytest.approx(roc_auc_score(truth, probabilities, multi_class="ovr", average="weighted"))


def test_one_class_or_missing_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="positive and negative"):
        delong(np.ones(5, dtype=bool), np.ones((1, 5)))
    with pytest.raises(ValueError, match="numbers"):
        delong(np.array([True, False]), np.array([[0.1, np.nan]]))


def test_mean_limits_are_those_of_student() -> None:
    values = np.random.default_rng(0).normal(0.3, 1, 40)
    found = mean_limits(values)
    theirs = ttest_1samp(values, 0.0)
    interval = theirs.confidence_interval(0.95)
    assert (found.statistic, found.p) == pytest.approx((theirs.statistic, theirs.pvalue))
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert mean_limits(np.zeros(5)).p == 1.0
    assert np.isnan(mean_limits(np.ones(5)).p)
    assert np.isnan(mean_limits(np.ones(1)).low)
