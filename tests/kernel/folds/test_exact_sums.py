"""Sums that do not depend on the order, beside exact fractions."""

import math
import pickle
from fractions import Fraction

import numpy as np
import pytest

from app.kernel.numerics import exact_sums
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import ExactSums, spread

WIDE = {"moderate": 1.0, "wide": 30.0, "very wide": 120.0}


def _total(pieces: Array) -> Array:
    return np.asarray(pieces.sum(axis=-1))


def _summed(*parts: Array) -> ExactSums:
    sums = ExactSums((1,))
    for part in parts:
        sums.add(part[None].copy(), _total)
    return sums


def _values(width: float, seed: int) -> Array:
    generator = np.random.default_rng(seed)
    return generator.normal(size=999) * np.exp(width * generator.normal(size=999))


@pytest.mark.parametrize("width", WIDE.values(), ids=WIDE)
def test_the_sum_is_the_nearest_number_to_the_exact_one(width: float) -> None:
    values = np.concatenate([_values(width, 1), [5e-324, 1e-310, -1e-320, 2.0**900]])
    sums = _summed(values)
    exact = sum(map(Fraction, values.tolist()), start=Fraction(0))
    assert sums.exact() == [exact]
    assert sums.rounded().tolist() == [float(exact)] == [math.fsum(values)]


@pytest.mark.parametrize("width", WIDE.values(), ids=WIDE)
def test_neither_order_nor_parts_nor_carries_show(width: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exact_sums, "_CARRY", 300)
    values, generator = _values(width, 2), np.random.default_rng(3)
    expected = _summed(values).exact()
    for _ in range(10):
        cuts = np.sort(generator.integers(0, values.size, 7))
        first, *others = (
            pickle.loads(pickle.dumps(_summed(part)))  # noqa: S301 - its own
            for part in np.split(generator.permutation(values), cuts)
        )
        for other in others:
            first.merge(other)
        assert first.exact() == expected


def test_what_cancels_leaves_what_is_small() -> None:
    assert _summed(np.array([2.0**600, 2.0**-600]), np.array([-(2.0**600)])).rounded().tolist() == [2.0**-600]


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf, 2.0**920])
def test_what_is_not_finite_or_too_large_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="only finite values"):
        _summed(np.array([1.0, wrong]))


def test_too_many_values_at_once_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 4096 values"):
        _summed(np.ones(4097))


def test_no_value_is_no_harm() -> None:
    assert _summed(np.empty(0)).rounded().tolist() == [0.0]


def test_equal_values_have_no_spread_whatever_rounding_does() -> None:
    for value in (0.1, 1 / 3, 12.345678901234567):
        sums = ExactSums((2,))
        sums.add(np.array([[value] * 1000, [value * value] * 1000]), _total)
        total, squares = sums.exact()
        assert spread(total, squares, 1000) == 0.0


def test_the_spread_is_the_variance() -> None:
    values = np.random.default_rng(4).random(500)
    sums = ExactSums((2,))
    sums.add(np.stack([values, values * values]), _total)
    total, squares = sums.exact()
    assert spread(total, squares, 500) == pytest.approx(float(np.var(values, ddof=1)), rel=1e-13)
    assert spread(Fraction(0), Fraction(0), 0) == 0.0
