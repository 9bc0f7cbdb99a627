"""DeLong's components against pairs and scikit-learn, and limits of one area."""

import numpy as np
import pytest
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array
from app.kernel.samples.influence import LinearMethod
from app.kernel.uncertainty.influence import area_alone, limits, newcombe_area_limits
from tests.kernel.delong import delong, macro_area, placements
from tests.witnesses import sk


def example(n: int = 60, runs: int = 3, seed: int = 0) -> tuple[NDArray[np.bool_], Array]:
    random = np.random.default_rng(seed)
    positive = random.random(n) < 0.4
    scores = np.round(positive * 1.0 + random.normal(0, 1, (runs, n)), 1)
    return positive, scores


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
        assert area == pytest.approx(sk.roc_auc_score(positive, row))
    above, below = placements(positive, scores)
    expected = np.cov(above) / positive.sum() + np.cov(below) / (~positive).sum()
    np.testing.assert_allclose(found.covariance, expected)


def test_standard_error_is_the_spread_over_samples() -> None:
    positive = np.arange(150) < 60
    found = delong(positive, positive + np.random.default_rng(1).normal(0, 1.2, (600, 150)))
    assert np.sqrt(found.covariance.diagonal().mean()) == pytest.approx(np.std(found.areas), rel=0.08)


def test_macro_area_agrees_with_scikit_learn_and_its_error_with_samples() -> None:
    truth = np.repeat([0, 1, 2], [40, 60, 50])
    odds = np.exp(1.2 * np.eye(3)[truth] + np.random.default_rng(2).normal(size=(300, 150, 3)))
    probabilities = odds / odds.sum(axis=2, keepdims=True)
    areas, influence = macro_area(truth, probabilities)
    assert areas[-1] == pytest.approx(sk.roc_auc_score(truth, probabilities[-1], multi_class="ovr"))
    assert np.sqrt((influence**2).sum(axis=1).mean()) == pytest.approx(np.std(areas), rel=0.1)


def test_published_limits_of_a_perfect_area() -> None:
    low, high = newcombe_area_limits(1.0, 10, 15)
    assert low == pytest.approx(0.832, abs=5e-4)
    assert high == 1.0
    ends = limits(area_alone(1.0, 0.0, 10, 15))
    assert ends is not None
    assert ends.method is LinearMethod.NEWCOMBE
    assert ends.low == pytest.approx(0.832, abs=5e-4)
    assert newcombe_area_limits(0.0, 10, 15)[1] == pytest.approx(1 - 0.832, abs=5e-4)
    assert newcombe_area_limits(0.7, 10, 15)[0] < 0.7 < newcombe_area_limits(0.7, 10, 15)[1]


def test_limits_on_the_logit_scale() -> None:
    ends = limits(area_alone(0.9, 0.05**2, 30, 30))
    assert ends is not None
    assert ends.method is LinearMethod.DELONG_LOGIT
    center, spread = np.log(9), 1.959964 * 0.05 / 0.09
    assert ends.low == pytest.approx(1 / (1 + np.exp(-(center - spread))), rel=1e-6)
    assert ends.high == pytest.approx(1 / (1 + np.exp(-(center + spread))), rel=1e-6)
