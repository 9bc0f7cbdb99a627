"""Extremes over slices: worked values, and how often their limits hold."""

import numpy as np
import pytest
from scipy.stats import studentized_range

from app.kernel.numerics.arrays import Array
from app.kernel.slices.extremes import level_of_any, level_of_pairs, mean_of, range_of, ratio_of
from app.kernel.uncertainty.intervals import Limits, clopper_pearson, range_cdf, wilson

_HITS, _SIZES = np.array([90.0, 85.0, 70.0, 92.0]), np.full(4, 100.0)


def _limits(hits: Array, sizes: Array) -> tuple[Array, Limits, Limits]:
    return hits / sizes, wilson(hits, sizes), wilson(hits, sizes, level_of_pairs(0.95, hits.shape[-1]))


def test_the_range_and_the_ratio_of_four_slices() -> None:
    values, alone, of_pairs = _limits(_HITS, _SIZES)
    assert range_of(values, alone, of_pairs) == pytest.approx((0.22, 0.063669, 0.323444), abs=5e-7)
    assert ratio_of(values, alone, of_pairs) == pytest.approx((0.760870, 0.653088, 0.924491), abs=5e-7)


def test_a_batch_has_what_each_has_alone() -> None:
    hits = np.stack([_HITS, _SIZES - _HITS, np.zeros(4)])
    sizes = np.broadcast_to(_SIZES, hits.shape)
    values, alone, of_pairs = _limits(hits, sizes)
    for place in range(3):
        one = _limits(hits[place], sizes[place])
        for together, own in (
            (range_of(values, alone, of_pairs), range_of(*one)),
            (ratio_of(values, alone, of_pairs), ratio_of(*one)),
        ):
            np.testing.assert_array_equal([part[place] for part in together], own)


def test_the_ratio_of_equal_slices_is_at_most_1() -> None:
    ratio, low, high = ratio_of(*_limits(np.full(3, 40.0), np.full(3, 50.0)))
    assert float(ratio) == float(high) == 1.0
    assert 0.5 < low < 1.0


def test_where_all_values_are_0_there_is_no_ratio() -> None:
    values, alone, of_pairs = _limits(np.zeros(3), np.full(3, 50.0))
    assert np.isnan(ratio_of(values, alone, of_pairs)).all()
    gap, low, high = range_of(values, alone, of_pairs)
    assert float(gap) == float(low) == 0.0
    assert high > 0.0


@pytest.mark.parametrize("count", [2, 3, 20, 200])
def test_the_range_of_normals_is_distributed_as_scipy_says(count: int) -> None:
    for q in (0.5, 2.0, 3.7, 5.5):
        assert range_cdf(q, count) == pytest.approx(studentized_range.cdf(q, count, np.inf), abs=1e-10)


@pytest.mark.parametrize("count", [1, 2, 20, 200])
def test_limits_of_any_slice_hold_for_all_with_half_of_the_error(count: int) -> None:
    one_sided = (1.0 + level_of_any(0.95, count)) / 2.0
    assert one_sided**count == pytest.approx(0.975, abs=1e-13)


def test_levels_of_two_slices() -> None:
    # Of two the difference is one, at the level that leaves half of the error on this side.
    assert level_of_pairs(0.95, 2) == pytest.approx(0.975, abs=1e-9)


def test_limits_of_the_mean_of_two_slices() -> None:
    values, limits = np.array([0.5, 1.0]), (np.array([0.4, 0.9]), np.array([0.7, 1.0]))
    # Moves of 0.1 and 0.2, of 0.1 and 0: their squares are 0.025 and 0.005 in the mean.
    reach = 0.03**0.5 / 2.0
    assert mean_of(values, limits, independent=True) == pytest.approx((0.75 - reach, 0.75 + reach))
    assert mean_of(values, limits, independent=False) == pytest.approx((0.65, 0.85))
    # Where every slice is at its end, so is the mean.
    assert mean_of(np.ones(2), (np.full(2, 0.9), np.ones(2)), independent=True)[1] == 1.0


@pytest.mark.parametrize(
    ("count", "size"),
    [(5, 30), *(pytest.param(*one, marks=pytest.mark.slow) for one in ((2, 30), (50, 30), (2, 300), (50, 300)))],
)
def test_limits_of_a_mean_hold_the_truth(count: int, size: int) -> None:
    for rates in (np.full(count, 0.98), np.full(count, 0.5), np.linspace(0.7, 0.95, count)):
        hits = np.random.default_rng(3).binomial(size, rates, (4000, count))
        known = clopper_pearson(np.arange(size + 1.0), np.full(size + 1, float(size)))
        low, high = mean_of(hits / size, (known[0][hits], known[1][hits]), independent=True)
        missed = float((low > rates.mean() + 1e-12).mean()), float((high < rates.mean() - 1e-12).mean())
        assert sum(missed) < 0.055
        assert max(missed) < 0.04


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "size", "rate", "lower"), [(2, 300, 0.9, 0.0), (5, 30, 0.9, 0.2), (20, 300, 0.98, 0.0)]
)
def test_limits_hold_the_truth_though_slices_were_picked(count: int, size: int, rate: float, lower: float) -> None:
    random = np.random.default_rng(3)
    rates = np.full(count, rate)
    rates[0] -= lower
    hits = random.binomial(size, rates, (2000, count)).astype(float)
    values, alone, of_pairs = _limits(hits, np.full(hits.shape, float(size)))
    truths = (np.ptp(rates), rates.min() / rates.max())
    found = (range_of(values, alone, of_pairs), ratio_of(values, alone, of_pairs))
    for truth, (_, low, high) in zip(truths, found, strict=True):
        assert float(((low <= truth + 1e-12) & (truth <= high + 1e-12)).mean()) > 0.945
