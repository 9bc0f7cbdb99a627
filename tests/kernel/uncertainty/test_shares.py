"""Limits of class shares against brute force over all shares, and against estimates from other old shares."""

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import chi2

from app.kernel.matrix import prevalence
from app.kernel.matrix.prevalence import estimate_by_likelihood
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.intervals import wilson
from app.kernel.uncertainty.shares import likelihood_limits, moves_by_old, spread_by_old


@pytest.fixture(autouse=True)
def _nearly_at_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    """Derivatives by brute force take differences of estimates."""
    monkeypatch.setattr(prevalence, "_AT_REST", 1e-14)


def calibrated(old: Array, new: Array, size: int, seed: int, apart: float = 1.2) -> Array:
    """Probabilities right for the old shares, of samples with new ones."""
    random = np.random.default_rng(seed)
    y = random.choice(old.size, size, p=new)
    logits = random.normal(size=(size, old.size)) * apart + np.log(old)
    logits[np.arange(size), y] += apart**2
    mass = np.exp(logits)
    found: Array = mass / mass.sum(axis=1, keepdims=True)
    return found


def test_two_classes_have_the_limits_of_the_likelihood_ratio() -> None:
    old = np.array([0.5, 0.5])
    ratios = calibrated(old, np.array([0.85, 0.15]), 200, 1) / old
    shares = estimate_by_likelihood(ratios * old, old).shares

    def fall(share: float) -> float:
        lost = np.log(ratios @ shares).sum() - np.log(ratios @ np.array([1 - share, share])).sum()
        return float(2 * lost - chi2.ppf(0.95, 1))

    low, high = likelihood_limits(ratios, shares, 0.95)
    assert low[1] == pytest.approx(brentq(fall, 1e-9, shares[1]), abs=1e-6)
    assert high[1] == pytest.approx(brentq(fall, shares[1], 1.0), abs=1e-6)
    np.testing.assert_allclose(low[0], 1 - high[1], atol=1e-6)
    # Items that occur several times count as often.
    doubled = likelihood_limits(ratios, shares, 0.95, counts=np.full(200, 2.0))
    np.testing.assert_allclose(doubled, likelihood_limits(np.tile(ratios, (2, 1)), shares, 0.95), atol=1e-9)


def test_three_classes_are_near_the_profile_likelihood() -> None:
    old = np.full(3, 1 / 3)
    ratios = calibrated(old, np.array([0.5, 0.3, 0.2]), 400, 2) / old
    shares = estimate_by_likelihood(ratios * old, old).shares
    grid = np.linspace(0, 1, 201)
    first, second = np.meshgrid(grid, grid)
    inside = first + second <= 1
    everywhere = np.column_stack([first[inside], second[inside], np.maximum(1 - first[inside] - second[inside], 0)])
    with np.errstate(divide="ignore"):
        fall = 2 * (np.log(ratios @ shares).sum() - np.log(ratios @ everywhere.T).sum(axis=0))
    kept = everywhere[fall <= chi2.ppf(0.95, 1)]
    low, high = likelihood_limits(ratios, shares, 0.95)
    np.testing.assert_allclose(low, kept.min(axis=0), atol=0.006)
    np.testing.assert_allclose(high, kept.max(axis=0), atol=0.006)


def test_a_class_that_no_item_looks_like_may_still_be_a_few() -> None:
    """Of N items none looks like B: log(1 - share) per item is lost, so the limit is 1 - exp(-3.84 / 2 N)."""
    ratios = np.tile([1.0, 1e-9], (300, 1))
    low, high = likelihood_limits(ratios, np.array([1.0, 0.0]), 0.95)
    assert low[1] == 0.0
    assert high[1] == pytest.approx(1 - np.exp(-chi2.ppf(0.95, 1) / 600), rel=1e-6)
    assert low[0] == pytest.approx(1 - high[1])


def test_classes_that_look_alike_are_not_told_apart() -> None:
    ratios = np.column_stack([np.full(50, 0.7), np.full(50, 0.7)])
    np.testing.assert_allclose(likelihood_limits(ratios, np.array([0.4, 0.6]), 0.95), [[0, 0], [1, 1]])


def test_items_that_never_occur_say_nothing() -> None:
    """They are impossible at some shares, and there nothing is lost by them."""
    perfect, some = np.eye(3), np.array([[0.9, 0.1, 0.0], [0.1, 0.7, 0.0], [0.0, 0.2, 1.0]])
    for ratios, shares in ((perfect, [1.0, 0.0, 0.0]), (some, [0.5, 0.5, 0.0])):
        limits = likelihood_limits(ratios, np.array(shares), 0.95, counts=np.array([60.0, 40.0 * shares[1], 0.0]))
        items = np.repeat(ratios, [60, int(40 * shares[1]), 0], axis=0)
        np.testing.assert_allclose(limits, likelihood_limits(items, np.array(shares), 0.95), atol=1e-9)
        assert limits[1][2] < 0.1


def test_old_shares_move_the_estimate_as_the_derivative_says() -> None:
    old = np.array([0.5, 0.3, 0.2])
    probabilities = calibrated(old, np.array([0.2, 0.3, 0.5]), 600, 3)
    shares = estimate_by_likelihood(probabilities, old).shares
    for direction in ([1.0, -1.0, 0.0], [0.0, 1.0, -1.0]):
        step = 1e-5 * np.array(direction)
        moved = [estimate_by_likelihood(probabilities, old + side * step).shares for side in (1, -1)]
        slope = (moved[0] - moved[1]) / 2
        found = spread_by_old(probabilities / old, shares, old, np.outer(step, step))
        np.testing.assert_allclose(found, np.abs(slope), rtol=1e-3, atol=1e-9)


def test_the_share_moves_as_its_old_share_goes_to_its_limits() -> None:
    probabilities, old = calibrated(np.array([0.5, 0.5]), np.array([0.6, 0.4]), 400, 5), np.array([0.45, 0.55])
    shares = estimate_by_likelihood(probabilities, old).shares
    below, above = moves_by_old(probabilities, shares, old, 1, (22.0, 40.0), 0.95)
    ends = [
        estimate_by_likelihood(probabilities, np.array([1 - end, end])).shares[1]
        for end in map(float, wilson(np.array(22.0), np.array(40.0)))
    ]
    assert (below, above) == pytest.approx((min(ends) - shares[1], max(ends) - shares[1]), abs=1e-5)
    # Of two classes one loses what the other gains.
    assert moves_by_old(probabilities, shares, old, 0, (18.0, 40.0), 0.95) == pytest.approx((-above, -below), abs=1e-5)


def test_an_absent_class_is_not_moved_by_old_shares() -> None:
    old = np.array([0.5, 0.5])
    covariance = 0.001 * np.array([[1.0, -1.0], [-1.0, 1.0]])
    assert spread_by_old(np.tile([1.8, 0.2], (50, 1)), np.array([1.0, 0.0]), old, covariance).max() < 1e-9


def test_limits_of_next_to_no_confidence_are_the_share() -> None:
    """Rounding alone then takes the likelihood beyond what is allowed, at the share itself too."""
    old = np.array([0.5, 0.5])
    ratios = calibrated(old, np.array([0.7, 0.3]), 60, 3) / old
    shares = estimate_by_likelihood(ratios * old, old).shares
    low, high = likelihood_limits(ratios, shares, 5e-324)
    np.testing.assert_allclose((low, high), np.tile(shares, (2, 1)), atol=1e-6)
