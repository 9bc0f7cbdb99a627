"""Bins of equal width, folded: counts and sums beside exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from app.kernel.folds.sums import BinSums
from app.kernel.samples.calibration import width_limits

LIMITS = width_limits(15)


def test_sums_are_rounded_once_whatever_the_scores_are() -> None:
    random = np.random.default_rng(1)
    scores = np.unique(np.concatenate([random.random(300), random.random(300) * 1e-3, [0.0, 5e-324, 2.0**-10, 1.0]]))
    scores = scores[::-1].copy()
    members, others = random.integers(0, 2, (2, scores.size))
    others |= 1 - members
    bins = BinSums()
    bins.add_cuts(scores[:200], members[:200], others[:200])
    bins.add_cuts(scores[200:], members[200:], others[200:])
    weight, values, hits = bins.read().between(LIMITS)
    places = np.searchsorted(-LIMITS, -scores, side="right")
    for place in range(15):
        own = places == place
        exact = sum(
            (Fraction(one) * int(n) for one, n in zip(scores[own], (members + others)[own], strict=True)), Fraction()
        )
        # Of scores below 2^-10 products with counts are rounded too, here of two samples at most, which is exact.
        assert values[place] == float(exact)
        assert (weight[place], hits[place]) == ((members + others)[own].sum(), members[own].sum())


@pytest.mark.parametrize("largest", [1, 3, 1 << 20])
def test_samples_and_cuts_say_the_same(largest: int) -> None:
    random = np.random.default_rng(largest)
    scores = np.concatenate([random.random(40), [1e-5, 3e-7, 1.0]]).round(9)
    scores = np.unique(scores)[::-1].copy()
    members, others = random.integers(1, largest + 1, (2, scores.size))
    by_cuts = BinSums()
    by_cuts.add_cuts(scores, members, others)
    for place, name in enumerate(("weight", "values", "members")):
        found = by_cuts.read().between(LIMITS)[place]
        inside = np.searchsorted(-LIMITS, -scores, side="right")
        amounts = {"weight": members + others, "values": scores * (members + others), "members": members}[name]
        np.testing.assert_allclose(found, np.bincount(inside, amounts, 15), rtol=1e-12)
    spreads = by_cuts.read().spreads
    assert spreads is not None
    for side, amounts in enumerate((others, members)):
        for place in range(15):
            at = inside == 14 - place
            assert spreads.counts[side, place] == amounts[at].sum()
            if amounts[at].any():
                mean = np.average(scores[at], weights=amounts[at])
                deviation = np.sqrt(np.average((scores[at] - mean) ** 2, weights=amounts[at]))
                assert spreads.means[side, place] == pytest.approx(mean, rel=1e-12)
                assert spreads.deviations[side, place] == pytest.approx(deviation, abs=1e-7)
    if largest == 1:
        by_rows, half = BinSums(), BinSums()
        by_rows.add(scores, np.ones(scores.size, dtype=bool))
        half.add(scores[::-1], np.zeros(scores.size, dtype=bool))
        by_rows.merge(half)
        for one, other in zip(by_rows.read().between(LIMITS), by_cuts.read().between(LIMITS), strict=True):
            np.testing.assert_array_equal(one, other)


def test_excess_is_that_of_the_samples() -> None:
    random = np.random.default_rng(5)
    scores = random.random(700)
    members = random.random(700) < scores**2
    bins = BinSums()
    bins.add(scores, members)
    spreads = bins.read().spreads
    assert spreads is not None
    found, above = spreads.excess(), scores - members
    assert found == pytest.approx((scores.mean(), above.mean(), above.std() / np.sqrt(700)), rel=1e-9)


def test_equal_scores_do_not_spread() -> None:
    bins = BinSums()
    bins.add(np.full(1001, 0.77), np.arange(1001) % 3 == 0)
    spreads = bins.read().spreads
    assert spreads is not None
    assert not spreads.deviations.any()
    assert spreads.means[:, 11].tolist() == [pytest.approx(0.77, rel=1e-15)] * 2
