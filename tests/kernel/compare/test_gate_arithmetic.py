"""Verdicts, sample sizes and what point-estimate gates do."""

import math

import numpy as np
import pytest
from scipy.stats import norm

from app.kernel.compare.gates import (
    Bound,
    ValueWithLimits,
    Verdict,
    combine,
    samples_to_settle,
    verdict_of,
)
from app.kernel.uncertainty.intervals import wilson
from tests.kernel.compare.tango import tango_interval, tango_z


def settling(found: ValueWithLimits, threshold: float, samples: float) -> tuple[float, float]:
    return samples_to_settle([(found, threshold)], samples, error=0.025, power=0.8)


PASS, FAIL, OPEN = Verdict.PASS, Verdict.FAIL, Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("low", "high", "lower", "upper", "value"),
    [
        (0.81, 0.9, PASS, PASS, PASS),
        (0.7, 0.79, FAIL, FAIL, FAIL),
        (0.75, 0.85, OPEN, PASS, PASS),
        (0.8, 0.9, PASS, PASS, PASS),
    ],
)
def test_floors(low: float, high: float, lower: Verdict, upper: Verdict, value: Verdict) -> None:
    found = ValueWithLimits((low + high) / 2, low, high)
    assert verdict_of(found, 0.8) is lower
    assert verdict_of(found, 0.8, Bound.UPPER) is upper
    assert verdict_of(found, 0.8, Bound.VALUE) is value
    assert verdict_of(found.mirrored(), -0.8) is {PASS: FAIL, FAIL: PASS, OPEN: OPEN}[lower] or low == 0.8


def test_nothing_known_is_inconclusive() -> None:
    nothing = ValueWithLimits(math.nan, math.nan, math.nan)
    assert {verdict_of(nothing, 0.5, bound) for bound in Bound} == {OPEN}
    assert all(map(math.isnan, settling(nothing, 0.5, 100)))


def superiority(found: ValueWithLimits, margin: float = 0.0) -> Verdict:
    return verdict_of(found, margin, strictly=True)


def equivalence(found: ValueWithLimits, margin: float) -> Verdict:
    return combine([superiority(side, -margin) for side in (found, found.mirrored())])


def test_margins() -> None:
    better, worse, vague = (
        ValueWithLimits(0.02, 0.005, 0.035),
        ValueWithLimits(-0.05, -0.07, -0.03),
        ValueWithLimits(0.0, -0.02, 0.02),
    )
    assert [superiority(found) for found in (better, worse, vague)] == [PASS, FAIL, OPEN]
    assert [superiority(found, -0.01) for found in (better, worse, vague)] == [PASS, FAIL, OPEN]
    assert [equivalence(found, 0.04) for found in (better, worse, vague)] == [PASS, OPEN, PASS]
    assert [equivalence(found, 0.01) for found in (better, worse, vague)] == [OPEN, FAIL, OPEN]
    assert equivalence(ValueWithLimits(0.05, 0.04, 0.06), 0.01) is FAIL
    assert [verdict_of(found, -0.01, Bound.UPPER) for found in (better, worse, vague)] == [PASS, FAIL, PASS]
    assert superiority(ValueWithLimits(0.0, 0.0, 0.1)) is OPEN


def test_all_rules_have_to_pass() -> None:
    assert combine([PASS, PASS]) is PASS
    assert combine([PASS, OPEN]) is OPEN
    assert combine([FAIL, OPEN]) is FAIL
    assert combine([]) is PASS


def test_published_gates() -> None:
    low, high = (float(end) for end in tango_interval(30, 34, 3000))
    assert float(tango_z(30, 34, 3000, -0.01)) == pytest.approx(3.02, abs=5e-3)
    assert superiority(ValueWithLimits(-4 / 3000, low, high), -0.01) is PASS
    low, high = (float(end) for end in tango_interval(9, 7, 150))
    assert superiority(ValueWithLimits(2 / 150, low, high), -0.01) is OPEN


def test_published_sample_size_and_its_power() -> None:
    reach = 1.959964 * math.sqrt(0.1 / 1000)
    assert settling(ValueWithLimits(0.0, -reach, reach), -0.01, 1000)[0] == pytest.approx(7849, abs=1)
    random = np.random.default_rng(0)
    equal = random.multinomial(7849, [0.05, 0.05, 0.9], size=8000)
    assert (tango_z(equal[:, 0], equal[:, 1], 7849, -0.01) > 1.959964).mean() == pytest.approx(0.79, abs=0.02)
    boundary = random.multinomial(7849, [0.045, 0.055, 0.9], size=20_000)
    assert (tango_z(boundary[:, 0], boundary[:, 1], 7849, -0.01) > 1.959964).mean() == pytest.approx(0.024, abs=0.005)


def test_published_failures_of_point_estimates() -> None:
    random = np.random.default_rng(0)
    worse = random.multinomial(500, [0.04, 0.06, 0.9], size=100_000)
    equal = random.multinomial(500, [0.05, 0.05, 0.9], size=100_000)
    gaps = (worse[:, 0] - worse[:, 1]) / 500, (equal[:, 0] - equal[:, 1]) / 500
    floor = -0.01 - 1e-12
    assert (gaps[0] >= floor).mean() == pytest.approx(0.26, abs=0.01)
    assert (gaps[1] < floor).mean() == pytest.approx(0.21, abs=0.01)
    assert (gaps[1] > 0).mean() == pytest.approx(0.47, abs=0.01)


def test_samples_to_settle_settle() -> None:
    low, high = (float(end) for end in wilson(np.array(85.0), np.array(100.0)))
    found = ValueWithLimits(0.85, low, high)
    assert verdict_of(found, 0.8) is OPEN
    needed, at_least = settling(found, 0.8, 100)
    low, high = (float(end) for end in wilson(np.array(0.85 * needed), np.array(needed)))
    assert verdict_of(ValueWithLimits(0.85, low, high), 0.8) is PASS
    assert 100 <= at_least < needed
    assert settling(found, 0.85, 100)[0] == math.inf
    assert settling(found, 0.5, 100) == (100, 100)


@pytest.mark.parametrize(("sides", "missed"), [((-0.01, 0.01), 0.1), ((-0.01,) * 4, 0.05), ((-0.01, -1.0), 0.2)])
def test_chances_to_miss_one_of_several_add_up(sides: tuple[float, ...], missed: float) -> None:
    """What is far away is not missed."""
    reach = 1.959964 * math.sqrt(0.1 / 1000)
    found = ValueWithLimits(0.0, -reach, reach)
    together, _ = samples_to_settle([(found, side) for side in sides], 1000, error=0.025, power=0.8)
    assert together == pytest.approx((1.959964 + norm.isf(missed)) ** 2 * 0.1 / 0.01**2, abs=1)


@pytest.mark.parametrize(("truth", "threshold"), [(0.9, 0.85), (0.85, 0.9), (0.98, 0.95), (0.5, 0.45)])
def test_as_many_samples_as_named_settle_with_a_power_of_80_percent(truth: float, threshold: float) -> None:
    found = ValueWithLimits(truth, *(float(end) for end in wilson(np.array(truth * 100), np.array(100.0))))
    needed = settling(found, threshold, 100)[0]
    hits = np.random.default_rng(0).binomial(int(needed), truth, 4000)
    low, high = wilson(hits.astype(float), np.full(4000, needed))
    settled = (low >= threshold) if truth > threshold else (high < threshold)
    assert 0.77 <= settled.mean() <= 0.87


def test_what_only_rounding_keeps_apart_is_equal() -> None:
    at_margin = ValueWithLimits(0.85 - 0.8, -0.01, 0.11)
    assert at_margin.value != 0.05
    assert settling(at_margin, 0.05, 400)[0] == math.inf
    assert verdict_of(at_margin, 0.05, Bound.VALUE) is PASS
    assert verdict_of(at_margin.mirrored(), -0.05, Bound.VALUE) is PASS
    assert verdict_of(ValueWithLimits(0.9, 0.1 + 0.2, 1.0), 0.3) is PASS
    assert verdict_of(ValueWithLimits(0.2, 0.0, 0.85 - 0.8), 0.05) is OPEN
    assert superiority(ValueWithLimits(0.4, 0.1 + 0.2, 0.5), 0.3) is OPEN
    assert superiority(ValueWithLimits(0.4, 0.3 + 1e-9, 0.5), 0.3) is PASS


def test_absurd_numbers_of_samples_settle_nothing() -> None:
    assert settling(ValueWithLimits(0.5, 0.4, 0.6), 0.5 + 1e-10, 400)[0] == math.inf
    # Twice as many as would do it in half of the cases.
    needed = settling(ValueWithLimits(0.5, 0.4, 0.6), 0.5 + 1e-7, 400)[0]
    assert needed == pytest.approx(4e14 * 2.0433, rel=1e-4)
    assert settling(ValueWithLimits(0.5, 0.4, math.inf), 0.6, 400)[0] == math.inf
