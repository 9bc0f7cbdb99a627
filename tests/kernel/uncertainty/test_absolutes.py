"""Limits of sums and maxima of absolute values against what is known of one gap and of many."""

import numpy as np
import pytest
from scipy.stats import norm

from app.kernel.metrics.card import Gaps
from app.kernel.metrics.expression import Every, Measure
from app.kernel.metrics.families.calibration import class_calibration_error
from app.kernel.numerics.arrays import Array
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.resampling import Plan, bootstrap_samples, inverted, resampled
from app.kernel.uncertainty.units import Run
from tests.kernel.probability.problems import softmax_problem

NOISE = norm.ppf((np.arange(4000) + 0.5) / 4000)
SUM, LARGEST = Gaps(lambda gaps: gaps), Gaps(lambda gaps: gaps, norm="max")


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


def test_squares_of_gaps_without_noise_are_known() -> None:
    gaps = np.array([0.3, -0.4])
    assert limits(gaps, np.tile(gaps, (50, 1)), Gaps(lambda found: found, norm="l2")) == pytest.approx((0.5, 0.5))


@pytest.mark.parametrize("kind", ["l1", "l2", "max"])
def test_all_classes_have_the_limits_that_each_has_alone(kind: str) -> None:
    scores = Scores(*softmax_problem(200, 3, 1))
    asked = [Measure(class_calibration_error, {"bins": 15.0, "norm": kind}, of) for of in (Every.CLASS, 0, 1, 2)]
    reads = [resampled(one, (0.0, 1.0)) for one in asked]
    together, *alone = bootstrap_samples(Run(scores, scores.predicted), reads, seed=1, made=Plan(200, 200, 200))
    for name in ("estimate", "low", "high", "deviation"):
        np.testing.assert_array_equal(getattr(together, name), np.concatenate([getattr(one, name) for one in alone]))
    np.testing.assert_allclose(together.estimate, class_calibration_error.compute(scores, norm=kind), rtol=1e-12)
