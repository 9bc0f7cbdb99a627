"""Extremes over slices: worked values, and how often their limits hold."""

import numpy as np
import pytest
from scipy.stats import studentized_range

from app.kernel.numerics.arrays import Array
from app.kernel.slices.extremes import level_of_any, level_of_pairs, range_cdf, range_of, ratio_of
from app.kernel.uncertainty.intervals import Limits, wilson

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
