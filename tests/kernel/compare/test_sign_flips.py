"""Sums with signs by fair coins, against enumeration, McNemar's test and simulation."""

from itertools import product
from math import comb

import numpy as np
import pytest
from scipy.stats import norm

from app.kernel.compare.paired.effects import upper_mid_p
from app.kernel.compare.paired.tests import mcnemar_mid_p


@pytest.mark.parametrize(("b", "c"), [(1, 0), (4, 0), (5, 1), (7, 7), (12, 4), (40, 20), (0, 9), (9_000, 8_800)])
def test_equal_sizes_are_mcnemars_test(b: int, c: int) -> None:
    found = upper_mid_p(0.3 * (b - c), np.array([0.3]), np.array([float(b + c)]))
    assert 2 * min(found, 1 - found) == pytest.approx(float(mcnemar_mid_p(b, c)), rel=1e-4)
    assert found == pytest.approx(1 - upper_mid_p(0.3 * (c - b), np.array([0.3]), np.array([float(b + c)])))


@pytest.mark.parametrize("seed", range(5))
def test_few_terms_are_enumerated(seed: int) -> None:
    random = np.random.default_rng(seed)
    sizes, counts = random.random(4) * [1.0, 1.0, 0.1, 0.01], random.integers(0, 5, 4)
    sums, chances = [], []
    for ups in product(*(range(count + 1) for count in counts)):
        sums.append(sum(a * (2 * x - m) for a, x, m in zip(sizes, ups, counts, strict=True)))
        chances.append(np.prod([comb(int(m), x) / 2**m for x, m in zip(ups, counts, strict=True)]))
    for statistic in random.choice(sums, 5):
        away = np.array(sums) - statistic
        expected = np.array(chances) @ ((away > 1e-12) + 0.5 * (np.abs(away) <= 1e-12))
        assert upper_mid_p(float(statistic), sizes, counts.astype(np.float64)) == pytest.approx(expected, abs=1e-12)


def test_many_terms_of_many_sizes() -> None:
    random = np.random.default_rng(0)
    sizes = np.concatenate([random.random(60), np.full(3, 8.0)])
    signs = random.integers(0, 2, (200_000, sizes.size)) * 2.0 - 1.0
    sums = signs @ sizes
    for statistic in (10.0, 16.0, 24.0, 30.0):
        error = 4 * np.sqrt((sums > statistic).mean() / sums.size)
        assert upper_mid_p(statistic, sizes, np.ones(63)) == pytest.approx((sums > statistic).mean(), abs=error)


def test_small_terms_without_number_are_normal() -> None:
    """With the correction for the fourth cumulant (Edgeworth), until only the normal tail itself is left."""
    sizes, counts = np.linspace(0.5, 1.0, 3_000), np.ones(3_000)
    deviation = np.sqrt((sizes**2).sum())
    fourth = -2 * (sizes**4).sum() / deviation**4
    for z in (0.0, 1.0, 2.0, 3.0):
        expected = norm.sf(z) + norm.pdf(z) * fourth / 24 * (z**3 - 3 * z)
        assert upper_mid_p(z * deviation, sizes, counts) == pytest.approx(expected, rel=1e-5)
    for z in (8.0, 30.0):
        assert upper_mid_p(z * deviation, sizes, counts) == pytest.approx(norm.sf(z), rel=1e-6)


def test_nothing_to_flip() -> None:
    assert upper_mid_p(0.0, np.array([]), np.array([])) == 0.5
