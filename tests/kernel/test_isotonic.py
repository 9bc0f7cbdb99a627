"""Pooling of many series against scikit-learn, one by one."""

import numpy as np

from app.kernel.numerics.scipy_bridge import falling_means


def test_means_are_pooled_within_each_series() -> None:
    from sklearn.isotonic import IsotonicRegression

    random = np.random.default_rng(3)
    weights = random.integers(1, 9, 60).astype(np.float64)
    sums = random.binomial(weights.astype(int), np.linspace(0.8, 0.3, 60), (25, 60)).astype(np.float64)
    found = falling_means(sums, weights)
    for own, fitted in zip(sums, found, strict=True):
        expected = IsotonicRegression(increasing=False).fit(np.arange(60), own / weights, sample_weight=weights)
        np.testing.assert_allclose(fitted, expected.predict(np.arange(60)), atol=1e-12)


def test_what_falls_stays_and_what_rises_becomes_one() -> None:
    falling, rising = np.array([4.0, 3.0, 1.0]), np.array([1.0, 2.0, 3.0])
    found = falling_means(np.stack([rising, falling, rising]), np.ones(3))
    np.testing.assert_array_equal(found, [[2.0] * 3, falling, [2.0] * 3])
