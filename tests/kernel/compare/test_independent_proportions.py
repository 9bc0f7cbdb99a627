"""Two independent proportions: score statistics with a margin, where a known library is wrong, and the hybrid
interval.
"""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from app.kernel.compare.differences import newcombe_interval, restricted_shares, score_z
from tests.bank import each


def test_published_newcombe_interval() -> None:
    from statsmodels.stats.proportion import confint_proportions_2indep

    low, high = newcombe_interval(56, 70, 48, 80)
    assert (float(low), float(high)) == pytest.approx((0.0524, 0.3339), abs=5e-5)
    theirs = confint_proportions_2indep(56, 70, 48, 80, method="newcomb", compare="diff")
    assert (float(low), float(high)) == pytest.approx(theirs, abs=1e-9)


def test_published_score_at_a_margin_where_statsmodels_errs() -> None:
    from statsmodels.stats.proportion import score_test_proportions_2indep

    assert float(score_z(92, 100, 90, 100, -0.05)) == pytest.approx(1.6706, abs=5e-5)
    # Its cubic has a wrong linear coefficient: neither order of the samples gives the likelihood's answer.
    theirs = score_test_proportions_2indep(92, 100, 90, 100, value=-0.05, compare="diff", correction=False)
    assert abs(theirs.statistic - 1.6706) > 5e-3


@each("difference", [-0.3, -0.05, 0.0, 0.02, 0.4])
@each("table", [(92, 100, 90, 100), (7, 34, 1, 34), (0, 10, 4, 12), (10, 10, 3, 9), (5, 50, 45, 50)])
def test_restricted_shares_maximise_the_likelihood(table: tuple[int, int, int, int], difference: float) -> None:
    x1, n1, x2, n2 = table

    def loss(p: float) -> float:
        shares = np.clip([p + difference, p], 1e-300, None)
        rests = np.clip([1 - p - difference, 1 - p], 1e-300, None)
        return float(-(np.array([x1, x2]) @ np.log(shares) + np.array([n1 - x1, n2 - x2]) @ np.log(rests)))

    bounds = (max(0.0, -difference), min(1.0, 1 - difference))
    best = minimize_scalar(loss, bounds=bounds, method="bounded", options={"xatol": 1e-12})
    p1, p2 = restricted_shares(*table, difference)
    assert float(p1 - p2) == pytest.approx(difference, abs=1e-12)
    assert loss(float(p2)) <= best.fun + 1e-6


def test_score_without_margin_is_the_pooled_test() -> None:
    z = score_z(56, 70, 48, 80)
    pooled = 104 / 150
    assert float(z) == pytest.approx((56 / 70 - 48 / 80) / np.sqrt(pooled * (1 - pooled) * (1 / 70 + 1 / 80)))


def test_score_is_antisymmetric() -> None:
    forward = score_z(92, 100, 90, 120, -0.05)
    backward = score_z(90, 120, 92, 100, 0.05)
    assert float(forward) == pytest.approx(-float(backward), rel=1e-10)
