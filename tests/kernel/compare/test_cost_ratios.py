"""For which costs a run is better: against fractions, and against trying ratios one by one."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import pairwise
from math import inf
from typing import Any

import numpy as np
import pytest

from app.kernel.compare.cost_ratios import (
    Cheaper,
    CostRatioRange,
    RateGaps,
    certain_cost_ranges,
    cost_ranges,
    curve_cost_ranges,
    independent_gap,
)
from app.kernel.compare.paired.tests import paired_gap
from app.kernel.numerics.hull import upper_hull
from app.kernel.uncertainty.intervals import two_sided_z
from tests.bank import each

RATIOS = [Fraction(k, 7) for k in range(1, 60)] + [Fraction(10**k) for k in (-6, -3, 2, 4, 6)]


BY_SIGN = {1: Cheaper.A, 0: Cheaper.EQUAL, -1: Cheaper.B}


def kind_at(ranges: list[CostRatioRange], ratio: Fraction) -> Cheaper:
    """What is said of a ratio that is no end of a range."""
    (found,) = [one.cheaper for one in ranges if one.low < ratio < (inf if one.high is None else one.high)]
    return found


def is_partition(ranges: list[CostRatioRange]) -> bool:
    ends = [(one.low, one.high) for one in ranges]
    return (
        ends[0][0] == 0
        and ends[-1][1] is None
        and all(first[1] == second[0] for first, second in pairwise(ends))
        and all(first.cheaper != second.cheaper for first, second in pairwise(ranges))
    )


def test_two_rules_by_hand() -> None:
    """1 of 10 misses and 30 of 90 false alarms, or 4 and 12: at 10 % they cost the same where 3 r = 18."""
    found = cost_ranges(RateGaps(0.1 - 0.4, 30 / 90 - 12 / 90), 0.1)
    assert [one.cheaper for one in found] == [Cheaper.B, Cheaper.A]
    assert found[0].high == pytest.approx(6.0, rel=1e-12)
    (alone,) = cost_ranges(RateGaps(-0.1, -0.2), 0.3)
    assert alone == CostRatioRange(0.0, None, Cheaper.A)
    assert cost_ranges(RateGaps(0.0, 0.0), 0.3) == [CostRatioRange(0.0, None, Cheaper.EQUAL)]
    assert cost_ranges(RateGaps(0.0, 0.1), 0.3) == [CostRatioRange(0.0, None, Cheaper.B)]


@each("seed", range(20))
def test_trying_ratios_in_fractions(seed: int) -> None:
    random = np.random.default_rng(seed)
    positives, negatives = (int(size) for size in random.integers(1, 30, 2))
    wrong = [(int(random.integers(0, positives + 1)), int(random.integers(0, negatives + 1))) for _ in "ab"]
    prevalence = Fraction(int(random.integers(1, 20)), 20)
    gaps = RateGaps(
        wrong[0][0] / positives - wrong[1][0] / positives, wrong[0][1] / negatives - wrong[1][1] / negatives
    )
    found = cost_ranges(gaps, float(prevalence))
    assert is_partition(found)
    for ratio in RATIOS:
        cost = [
            prevalence * ratio * Fraction(missed, positives) + (1 - prevalence) * Fraction(false, negatives)
            for missed, false in wrong
        ]
        if cost[0] != cost[1]:
            assert kind_at(found, ratio) is (Cheaper.A if cost[0] < cost[1] else Cheaper.B)
        elif len(found) == 2:
            assert found[0].high == pytest.approx(float(ratio), rel=1e-12)
        else:
            assert found == [CostRatioRange(0.0, None, Cheaper.EQUAL)]


def curves(random: Any, positives: int, negatives: int) -> tuple[Any, Any]:
    """All operating points (hits, false alarms) of random scores with many ties."""
    points = []
    for _ in "ab":
        scores = [random.integers(0, 9, positives) + random.integers(0, 4), random.integers(0, 9, negatives)]
        cuts = range(14, -1, -1)
        points.append(np.array([[(scores[side] >= cut).sum() for cut in cuts] for side in (0, 1)], dtype=float))
    return points[0], points[1]


@each("seed", range(20))
def test_curves_by_trying_all_thresholds_in_fractions(seed: int) -> None:
    random = np.random.default_rng(seed)
    positives, negatives = (int(size) for size in random.integers(1, 25, 2))
    both = curves(random, positives, negatives)
    prevalence = Fraction(int(random.integers(1, 20)), 20)
    found = curve_cost_ranges(upper_hull(*both[0]), upper_hull(*both[1]), float(prevalence))
    assert is_partition(found)
    exact_ends = set(crossings(both, positives, negatives, prevalence))
    for one in found[:-1]:
        assert any(float(end) == pytest.approx(one.high, rel=1e-12) for end in exact_ends)
    for ratio in RATIOS:
        costs = [lowest(points, positives, negatives, prevalence, ratio) for points in both]
        if ratio not in exact_ends:
            assert kind_at(found, ratio) is BY_SIGN[(costs[0] < costs[1]) - (costs[0] > costs[1])]


def lowest(points: Any, positives: int, negatives: int, prevalence: Fraction, ratio: Fraction) -> Fraction:
    return min(
        prevalence * ratio * (1 - Fraction(int(hits), positives)) + (1 - prevalence) * Fraction(int(alarms), negatives)
        for hits, alarms in points.T
    )


def crossings(both: tuple[Any, Any], positives: int, negatives: int, prevalence: Fraction) -> Iterator[Fraction]:
    """Ratios at which any two operating points of the two runs, or of one, cost the same."""
    points = {(int(hits), int(alarms)) for one in both for hits, alarms in one.T}
    for hits, alarms in points:
        for other_hits, other_alarms in points:
            if hits > other_hits:
                gained = prevalence * Fraction(hits - other_hits, positives)
                yield (1 - prevalence) * Fraction(alarms - other_alarms, negatives) / gained


def test_a_curve_against_itself_and_against_one_that_is_never_below() -> None:
    curve = np.array([0.0, 6, 8, 10]), np.array([0.0, 2, 8, 20])
    assert curve_cost_ranges(curve, curve, 0.3) == [CostRatioRange(0.0, None, Cheaper.EQUAL)]
    better = np.array([0.0, 8, 10]), np.array([0.0, 2, 20])
    found = curve_cost_ranges(better, curve, 0.5)
    # Where misses cost nearly nothing both treat nobody, where they cost most both treat everybody.
    assert [one.cheaper for one in found] == [Cheaper.EQUAL, Cheaper.A, Cheaper.EQUAL]
    assert found[0].high == pytest.approx(2 / 20 * 10 / 8)
    assert found[-1].low == pytest.approx(18 / 20 * 10 / 2)


@each("seed", range(12))
def test_certain_ranges_are_where_the_difference_is_beyond_its_deviation(seed: int) -> None:
    random = np.random.default_rng(seed)
    gaps = RateGaps(*random.normal(0, 0.1, 2), *random.uniform(1e-4, 0.01, 2))
    prevalence, z = float(random.uniform(0.05, 0.9)), two_sided_z(0.9)
    found = certain_cost_ranges(gaps, prevalence, 0.9)
    assert is_partition(found)
    for ratio in RATIOS:
        weights = prevalence * float(ratio), 1 - prevalence
        gap = weights[0] * gaps.misses + weights[1] * gaps.false_alarms
        deviation = (weights[0] ** 2 * gaps.misses_variance + weights[1] ** 2 * gaps.false_alarms_variance) ** 0.5
        assert kind_at(found, ratio) is (Cheaper.UNDECIDED if abs(gap) <= z * deviation else BY_SIGN[-np.sign(gap)])


@pytest.mark.parametrize("prevalence", [5e-324, 1e-310, 1e-200, 1e-9, 1 - 1e-12, 1 - 2**-53])
def test_any_prevalence_has_ranges_from_0_to_infinity(prevalence: float) -> None:
    gaps = RateGaps(0.3, -0.3, 1e-4, 1e-4)
    curve = np.array([0.0, 6, 8, 10]), np.array([0.0, 2, 8, 20])
    other = np.array([0.0, 5, 9, 10]), np.array([0.0, 1, 10, 20])
    for found in (
        cost_ranges(gaps, prevalence),
        certain_cost_ranges(gaps, prevalence, 0.95),
        curve_cost_ranges(curve, other, prevalence),
    ):
        assert is_partition(found)
        assert all(one.low < inf for one in found)


def test_certain_ranges_may_be_none_two_or_one() -> None:
    nothing = certain_cost_ranges(RateGaps(0.01, -0.01, 0.01, 0.01), 0.5, 0.95)
    assert nothing == [CostRatioRange(0.0, None, Cheaper.UNDECIDED)]
    both_ends = certain_cost_ranges(RateGaps(0.3, -0.3, 1e-4, 1e-4), 0.5, 0.95)
    assert [one.cheaper for one in both_ends] == [Cheaper.A, Cheaper.UNDECIDED, Cheaper.B]
    between = both_ends[1]
    assert between.high is not None
    assert between.low < 1 < between.high
    assert certain_cost_ranges(RateGaps(0.3, 0.3, 1e-4, 1e-4), 0.5, 0.95) == [CostRatioRange(0.0, None, Cheaper.B)]


def test_no_difference_is_never_beyond_doubt() -> None:
    """Of two groups that cancel out: at one ratio the variance is 0, but for rounding."""
    found = certain_cost_ranges(RateGaps(0.0, 0.0, 0.57 * 0.57, 0.98 * 0.98, -0.57 * 0.98), 0.5, 0.95)
    assert found == [CostRatioRange(0.0, None, Cheaper.UNDECIDED)]


@pytest.mark.parametrize(("better", "worse", "size"), [(0, 0, 5), (3, 1, 20), (0, 9, 40), (40, 20, 160), (5, 0, 5)])
def test_gaps_have_what_a_multinomial_has(better: int, worse: int, size: int) -> None:
    """Half a sample more of each of the four kinds, in fractions."""
    shares = [Fraction(2 * better + 2, 2 * (size + 2)), Fraction(2 * worse + 2, 2 * (size + 2))]
    gap = shares[1] - shares[0]
    variance = (shares[0] + shares[1] - gap**2) / (size + 2)
    found = paired_gap(better, worse, size)
    assert found[1] == pytest.approx(float(variance), rel=1e-12)
    assert found[0] == pytest.approx(float(gap), rel=1e-12, abs=1e-15)


def test_gaps_of_different_samples() -> None:
    gap, variance = independent_gap((3.0, 10.0), (0.0, 30.0))
    assert gap == pytest.approx(4 / 12 - 1 / 32)
    assert variance == pytest.approx(4 * 8 / 12**3 + 31 / 32**3)
