"""Limits of sums and maxima of absolute values against what is known of one gap and of many."""

import numpy as np
import pytest
from scipy.stats import norm

from app.kernel.metrics.card import Gaps
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.of_samples.absolutes import inverted

NOISE = norm.ppf((np.arange(4000) + 0.5) / 4000)
SUM, LARGEST = Gaps(lambda gaps: gaps), Gaps(lambda gaps: gaps, largest=True)


def limits(gaps: Array, drawn: Array, kind: Gaps = SUM) -> tuple[float, float]:
    found = inverted(drawn, gaps, 0.95, combined=kind.combined)
    return float(found.low[0]), float(found.high[0])


@pytest.mark.parametrize("kind", [SUM, LARGEST])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_large_gap_has_normal_limits(kind: Gaps, sign: float) -> None:
    gaps = np.array([5.0 * sign])
    assert limits(gaps, gaps + NOISE[:, None], kind) == pytest.approx((5 - 1.96, 5 + 1.96), abs=0.01)


def test_a_gap_within_the_noise_may_be_none() -> None:
    """|N(mu, 1)| is 1.5 or less in 2.5 % of the cases where mu is 3.46, and 0 is not too small."""
    gaps = np.array([1.5])
    low, high = limits(gaps, gaps + NOISE[:, None])
    assert low == 0.0
    assert norm.cdf(1.5 - high) - norm.cdf(-1.5 - high) == pytest.approx(0.025, abs=0.001)


def test_gaps_without_noise_are_known() -> None:
    gaps = np.array([0.1, -0.2])
    assert limits(gaps, np.tile(gaps, (50, 1))) == pytest.approx((0.3, 0.3))
    assert limits(gaps, np.tile(gaps, (50, 1)), LARGEST) == pytest.approx((0.2, 0.2))


def test_many_gaps_of_noise_alone_may_be_none() -> None:
    """Thirty gaps that are 0 show a sum of about 24, resamples 34; no limit leaves out the value that is shown."""
    random = np.random.default_rng(0)
    gaps = random.normal(size=30)
    low, high = limits(gaps, gaps + random.normal(size=(2000, 30)))
    assert low == 0.0
    assert np.abs(gaps).sum() <= high < 30
