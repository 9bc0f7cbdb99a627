"""The mid-p of sums with signs by fair coins, against McNemar's test and enumeration."""

from itertools import product

import numpy as np
import pytest

from app.kernel.compare.paired.effects import PairedScore, swaps_tail, weighted_rate_effects
from app.kernel.compare.paired.tests import mcnemar_mid_p
from app.kernel.numerics.scipy_bridge import normal_cdf


@pytest.mark.parametrize(("b", "c"), [(1, 0), (4, 0), (5, 1), (7, 7), (12, 4), (40, 20), (0, 9), (9_000, 8_800)])
def test_equal_sizes_are_mcnemars_test(b: int, c: int) -> None:
    found = swaps_tail(np.array([0.3 * (b - c)]), np.array([[0.3], [-0.3]]), np.array([b, c], dtype=np.float64))
    assert 2 * found[0] == pytest.approx(float(mcnemar_mid_p(b, c)), rel=1e-9)


@pytest.mark.parametrize("seed", range(10))
def test_the_test_keeps_its_level_for_other_sizes(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes = random.random(3).repeat(4)
    sums = np.array([*product((-1, 1), repeat=12)]) @ sizes
    tails = np.nan_to_num(swaps_tail(sums, np.repeat(sizes[:, None], sums.size, axis=1), np.ones(12)))
    assert (2 * tails < 0.05).mean() < 0.06
    assert (2 * tails < 0.1).mean() == pytest.approx(0.1, abs=0.04)


def test_nothing_to_flip() -> None:
    assert swaps_tail(np.zeros(1), np.zeros((2, 1)), np.ones(2)).tolist() == [0.5]


def test_a_sum_beyond_that_of_so_many_equal_items_is_left_to_the_score() -> None:
    """One item that weighs as much as nine others: they count as 3.6 items, which have no such sum."""
    sizes = np.array([9.0] + [1.0] * 50)
    assert np.isnan(swaps_tail(np.array([sizes.sum()]), sizes[:, None], np.ones(51)))
    effects = weighted_rate_effects(sizes / 200, np.ones(51), members=100.0, unit=0.01)
    score = PairedScore(effects)
    assert score.p == pytest.approx(2 * normal_cdf(-score.score))
