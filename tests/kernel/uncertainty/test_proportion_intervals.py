"""Intervals of a proportion against published values, scipy's own quantiles and their defining equations."""

import numpy as np
import pytest
from scipy.stats import beta, binomtest

from app.kernel.numerics.arrays import kish_effective_n
from app.kernel.uncertainty.intervals import (
    ProportionInterval,
    clopper_pearson,
    jeffreys,
    one_sided_z,
    proportion_limits,
    two_sided_z,
    wald,
    wilson,
)
from tests.bank import each

METHODS = {"wilson": wilson, "jeffreys": jeffreys, "clopper_pearson": clopper_pearson, "wald": wald}
# What statsmodels calls them.
ELSEWHERE = {"wilson": "wilson", "jeffreys": "jeffreys", "clopper_pearson": "beta", "wald": "normal"}


def limits(method: str, x: float, n: float, level: float = 0.95) -> tuple[float, float]:
    low, high = METHODS[method](np.array([x], dtype=float), np.array([n], dtype=float), level)
    return float(low[0]), float(high[0])


@pytest.mark.parametrize(
    ("method", "x", "n", "expected"),
    [
        ("wilson", 81, 263, (0.2553, 0.3662)),
        ("wilson", 0, 20, (0.0, 0.1611)),
        ("jeffreys", 0, 20, (0.0, 0.1166)),
        ("clopper_pearson", 0, 20, (0.0, 0.1684)),
    ],
)
def test_published_limits(method: str, x: float, n: int, expected: tuple[float, float]) -> None:
    assert limits(method, x, n) == pytest.approx(expected, abs=5e-5)


@each("method", METHODS)
@each("n", [1, 2, 7, 20, 263, 1000, 123_456_789])
def test_closed_ends_are_exact_and_limits_mirror(method: str, n: int) -> None:
    x = np.array([0.0, 1.0, n // 2, n - 1.0, n])
    low, high = METHODS[method](x, np.full(5, float(n)), 0.95)
    assert low[0] == 0.0
    assert high[-1] == 1.0
    assert np.all((low >= 0) & (low <= x / n) & (x / n <= high) & (high <= 1))
    mirrored_low, mirrored_high = METHODS[method](n - x, np.full(5, float(n)), 0.95)
    np.testing.assert_allclose(1 - mirrored_low, high, rtol=0, atol=1e-12)
    np.testing.assert_allclose(1 - mirrored_high, low, rtol=0, atol=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_no_trials_is_nan(method: str) -> None:
    low, high = METHODS[method](np.zeros((2, 3)), np.zeros((2, 3)), 0.95)
    assert np.isnan(low).all()
    assert np.isnan(high).all()


def test_wilson_agrees_with_scipy() -> None:
    for x, n in [(0, 5), (1, 5), (81, 263), (499, 500), (500, 500)]:
        for level in (0.8, 0.95, 0.99):
            interval = binomtest(x, n).proportion_ci(level, method="wilson")
            assert limits("wilson", x, n, level) == pytest.approx((interval.low, interval.high), abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_limits_agree_with_statsmodels(method: str) -> None:
    from statsmodels.stats.proportion import proportion_confint

    for x, n in [(1, 5), (81, 263), (499, 500), (123_456, 200_000)]:
        for level in (0.8, 0.95, 0.99):
            low, high = proportion_confint(x, n, alpha=1 - level, method=ELSEWHERE[method])
            assert limits(method, x, n, level) == pytest.approx((low, min(high, 1.0)), rel=1e-12, abs=1e-14)


@each("method", METHODS)
@each("n", [1, 7, 20, 1000])
def test_edges_agree_with_statsmodels(method: str, n: int) -> None:
    """Jeffreys is forced to the edge there (Brown, Cai & DasGupta 2001), which statsmodels leaves to its reader."""
    from statsmodels.stats.proportion import proportion_confint

    for x, edge in [(0, 0), (n, 1)]:
        found = list(limits(method, x, n))
        other = list(proportion_confint(x, n, method=ELSEWHERE[method]))
        if method == "jeffreys":
            other[edge] = float(edge)
        assert found == pytest.approx(other, rel=1e-12, abs=1e-14)


def test_clopper_and_pearson_agree_with_scipy() -> None:
    for x, n in [(0, 5), (1, 5), (81, 263), (500, 500)]:
        for level in (0.8, 0.95, 0.99):
            interval = binomtest(x, n).proportion_ci(level, method="exact")
            assert limits("clopper_pearson", x, n, level) == pytest.approx((interval.low, interval.high), rel=1e-12)


@pytest.mark.parametrize("method", ProportionInterval)
def test_every_method_is_found_by_its_name(method: ProportionInterval) -> None:
    found = proportion_limits(np.array([3.0]), np.array([11.0]), 0.9, method)
    assert (float(found[0][0]), float(found[1][0])) == limits(method.value, 3, 11, 0.9)


def test_jeffreys_is_the_beta_quantile_inside() -> None:
    x, n = np.array([3.0, 16.0]), np.array([10.0, 100.0])
    low, high = jeffreys(x, n, 0.9)
    np.testing.assert_allclose(low, beta.ppf(0.05, x + 0.5, n - x + 0.5), rtol=1e-10)
    np.testing.assert_allclose(high, beta.ppf(0.95, x + 0.5, n - x + 0.5), rtol=1e-10)


def test_real_counts_and_any_shape() -> None:
    low, high = wilson(np.full((2, 3, 4), 2.5), np.full((2, 3, 4), 7.25))
    assert low.shape == high.shape == (2, 3, 4)


@pytest.mark.parametrize("level", [0.0, 1.0, -0.1, 1.5])
def test_levels_outside_are_refused(level: float) -> None:
    with pytest.raises(ValueError, match="level"):
        two_sided_z(level)


def test_quantiles() -> None:
    assert two_sided_z(0.95) == pytest.approx(1.959963984540054)
    assert one_sided_z(0.025) == pytest.approx(two_sided_z(0.95))


def test_kish() -> None:
    assert kish_effective_n(np.full(10, 3.0)) == pytest.approx(10.0)
    assert kish_effective_n(np.array([1.0, 3.0])) == pytest.approx(1.6)
