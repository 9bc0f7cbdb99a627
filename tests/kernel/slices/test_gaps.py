"""Differences of slices: worked values, and derivatives by hand."""

import numpy as np
import pytest
from scipy import stats

from app.kernel.compare.rankings import Adjustment, adjust
from app.kernel.matrix.table import Table
from app.kernel.metrics.families.averages import macro_f1
from app.kernel.numerics.arrays import Array
from app.kernel.slices.gaps import (
    RateDifferences,
    at_reference_shares,
    drawn_at_reference_shares,
    half_counted,
    of_influences,
)
from app.kernel.uncertainty.closed_forms import cell_influences


def _one(hits: float, among: float, other_hits: float, other_among: float, **more: float) -> RateDifferences:
    return RateDifferences(np.array([[hits], [other_hits]]), np.array([[among], [other_among]]), **more)


def _precision(table: Table) -> Array:
    values: Array = table.tp[..., 1:] / table.predicted[..., 1:]
    return values


def _two_classes(size: float, share: float) -> Array:
    """Recall .8, false alarms .1."""
    members = size * share
    return np.array([[0.9 * (size - members), 0.1 * (size - members)], [0.2 * members, 0.8 * members]])


def test_a_slice_and_the_rest_have_newcombes_limits_and_the_p_at_which_one_touches_0() -> None:
    gap = _one(17, 41, 111, 120)
    low, high = gap.limits(0.95)
    assert (gap.gaps[0], low[0], high[0]) == pytest.approx((-0.510366, -0.651843, -0.346713), abs=5e-7)
    assert gap.p[0] == pytest.approx(5.944970e-12, rel=1e-6)
    touching = gap.limits(1.0 - gap.p[0])[1] if gap.p[0] > 1e-15 else gap.limits(0.95)[1]
    assert touching[0] == pytest.approx(0.0, abs=1e-4)


def test_p_is_that_of_the_level_whose_limit_is_0_for_any_difference_and_correlation() -> None:
    hits, among = np.array([[40.0, 90.0, 50.0, 3.0], [70.0, 75.0, 50.0, 0.0]]), np.full((2, 4), 100.0)
    for correlation in (0.0, 0.4):
        gap = RateDifferences(hits, among, correlation)
        for place, p in enumerate(gap.p.tolist()):
            if gap.gaps[place] == 0:
                assert p == 1.0
                continue
            side = 0 if gap.gaps[place] > 0 else 1
            assert gap.limits(1.0 - p)[side][place] == pytest.approx(0.0, abs=1e-9)


def test_against_all_samples_a_difference_is_that_against_the_rest_times_a_part() -> None:
    gap = _one(17, 41, 111, 120, factor=120 / 161)
    low, high = gap.limits(0.95)
    assert (gap.gaps[0], low[0], high[0]) == pytest.approx((-0.380397, -0.485846, -0.258419), abs=5e-7)
    assert gap.gaps[0] == pytest.approx(17 / 41 - 128 / 161, rel=1e-12)
    assert gap.p[0] == pytest.approx(5.944970e-12, rel=1e-6)


def test_correlated_rates_have_narrower_limits_as_they_rise_together() -> None:
    alone, together = _one(40, 50, 60, 100), _one(40, 50, 60, 100, correlation=0.5)
    (low,), (high,) = alone.limits(0.95)
    (closer,), (nearer,) = together.limits(0.95)
    assert low < closer < together.gaps[0] < nearer < high


def test_a_side_without_samples_has_no_difference() -> None:
    gap = _one(0, 0, 5, 10)
    assert np.isnan(gap.gaps[0])
    assert np.isnan(gap.p[0])


def test_means_are_compared_as_scipy_does_by_welch() -> None:
    random = np.random.default_rng(5)
    one, other = random.exponential(1.0, 40), random.exponential(1.4, 300)
    first, second = np.zeros((1, 340)), np.zeros((1, 340))
    first[0, :40], second[0, 40:] = (
        (values - values.mean()) / np.sqrt(values.size * (values.size - 1.0)) for values in (one, other)
    )
    gap = np.array([one.mean() - other.mean()])
    found = of_influences(gap, first, second, np.array([[39.0], [299.0]]))
    expected = stats.ttest_ind(one, other, equal_var=False)
    assert found.p[0] == pytest.approx(expected.pvalue, rel=1e-10)
    ends = expected.confidence_interval(0.9)
    assert [end[0] for end in found.limits(0.9)] == pytest.approx([ends.low, ends.high], rel=1e-10)


def test_influences_against_all_samples_give_the_difference_against_the_rest_times_a_part() -> None:
    values, inside = np.random.default_rng(8).normal(size=200), np.arange(200) < 50
    own = np.where(inside, values - values[inside].mean(), 0.0) / 50
    rest = np.where(inside, 0.0, values - values[~inside].mean()) / 150
    whole = (values - values.mean()) / 200
    gap = values[inside].mean() - values.mean()
    found = of_influences(np.array([gap]), own[None], whole[None], np.array([[49.0], [199.0]]))
    # The influence on the mean of all is that of both parts, and the part q itself taken as known.
    parts = np.hypot(0.75 * np.sqrt(own @ own), 0.75 * np.sqrt(rest @ rest))
    assert found.errors[0] == pytest.approx(parts, rel=0.01)


def test_a_gap_of_prevalence_is_none_at_the_shares_of_the_reference() -> None:
    slice_, reference = _two_classes(1000, 0.1), _two_classes(1000, 0.3)
    assert float(_precision(Table(slice_))[0]) == pytest.approx(0.470588, abs=5e-7)
    found = at_reference_shares(slice_, reference, _precision)
    assert found is not None
    values, (own, others) = found
    assert values[:, 0] == pytest.approx((0.774194, 0.774194), abs=5e-7)
    variance = (slice_ * own**2).sum() + (reference * others**2).sum()
    assert 1.959964 * variance**0.5 == pytest.approx(0.055451, abs=5e-7)


def _gap(slice_: Array, reference: Array) -> float:
    moved = slice_ * (reference.sum(axis=1) / slice_.sum(axis=1))[:, None]
    return float(macro_f1.compute(Table(moved)) - macro_f1.compute(Table(reference)))


@pytest.mark.parametrize("contained", [False, True])
def test_what_samples_add_at_the_shares_of_the_reference_is_the_derivative_of_the_difference(contained: bool) -> None:
    random = np.random.default_rng(2)
    slice_, rest = (random.integers(5, 60, (3, 3)).astype(float) for _ in range(2))
    reference = slice_ + rest if contained else rest
    found = at_reference_shares(slice_, reference, lambda table: macro_f1.compute(table)[..., None])
    assert found is not None
    (first, second), (own, others) = found
    assert first[0] - second[0] == pytest.approx(_gap(slice_, reference), rel=1e-12)
    for place in np.ndindex(3, 3):
        step = np.zeros((3, 3))
        step[place] = 1e-4
        for moves, more in (((1, 0), own), ((0, 1), -others)):
            ends = [_gap(slice_ + sign * moves[0] * step, reference + sign * moves[1] * step) for sign in (1.0, -1.0)]
            assert more[0][place] == pytest.approx((ends[0] - ends[1]) / 2e-4, abs=1e-8)


def test_a_class_that_only_the_reference_has_leaves_nothing_to_compare() -> None:
    slice_ = np.array([[5.0, 1.0], [0.0, 0.0]])
    assert at_reference_shares(slice_, np.ones((2, 2)), _precision) is None
    reference = np.array([[9.0, 1.0], [0.0, 0.0]])
    found = at_reference_shares(np.array([[5.0, 1.0], [2.0, 3.0]]), reference, _precision)
    assert found is not None
    assert found[0][0, 0] == 0.0


@pytest.mark.parametrize("contained", [False, True])
def test_many_members_have_the_limits_of_the_derivatives_in_draws_too(contained: bool) -> None:
    slice_, rest = _two_classes(2000, 0.1), _two_classes(9000, 0.3)
    drawn = drawn_at_reference_shares(slice_, rest, _precision, contained=contained, draws=4000, seed=3)
    found = at_reference_shares(slice_, slice_ + rest if contained else rest, _precision)
    assert found is not None
    (first, second), (own, others) = found
    own = own - others if contained else own
    error = ((slice_ * own**2).sum() + (rest * others**2).sum()) ** 0.5
    assert drawn.gaps[0] == pytest.approx(first[0] - second[0], abs=1e-12)
    assert np.concatenate(drawn.limits(0.95)) == pytest.approx([-1.96 * error, 1.96 * error], abs=0.15 * error)


def test_cells_add_what_a_share_of_samples_does() -> None:
    counts = np.array([[40.0, 10.0], [7.0, 43.0]])
    (influence,) = cell_influences(counts, lambda table: table.correct[..., None] / table.n[..., None])
    hit, miss = (1.0 - 0.83) / 100, -0.83 / 100
    np.testing.assert_allclose(influence, [[hit, miss], [miss, hit]], atol=1e-9)


def test_a_class_all_right_or_all_wrong_has_half_a_sample_of_the_other_kind() -> None:
    counts = np.array([[9.0, 0.0, 0.0], [2.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    np.testing.assert_array_equal(half_counted(counts), [[9.0, 0.25, 0.25], [2.0, 0.5, 1.0], [0.0, 0.0, 0.0]])


def test_p_of_many_are_adjusted_as_statsmodels_does() -> None:
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p = np.random.default_rng(4).random(40) ** 2
    expected = multitest.multipletests(p, method="fdr_bh")[1]
    np.testing.assert_allclose(adjust(p, Adjustment.BENJAMINI_HOCHBERG), expected, rtol=1e-12)


@pytest.mark.slow
def test_equal_rates_are_told_apart_as_often_as_the_level_says() -> None:
    random = np.random.default_rng(11)
    for size, rest, rate in ((30, 300, 0.5), (100, 3000, 0.9), (300, 3000, 0.98)):
        hits = np.stack([random.binomial(size, rate, 4000), random.binomial(rest, rate, 4000)]).astype(float)
        among = np.stack([np.full(4000, float(size)), np.full(4000, float(rest))])
        rejected = float((RateDifferences(hits, among).p < 0.05).mean())
        assert 0.025 < rejected < 0.062
