"""Sums of values and of their products by class: those of exact fractions, whatever came in which part."""

import pickle
from fractions import Fraction

import numpy as np
import pytest

from app.kernel.compare.folded import Moments
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import Halves, products

RANDOM = np.random.default_rng(1971)
CLASSES, VALUES = 3, 3


def exact(first: Array, second: Array) -> Fraction:
    """Sum of products of deviations from the means."""
    ones, others = ([Fraction(value) for value in side.tolist()] for side in (first, second))
    together = sum((one * other for one, other in zip(ones, others, strict=True)), start=Fraction(0))
    return together - sum(ones, start=Fraction(0)) * sum(others, start=Fraction(0)) / len(ones)


@pytest.mark.parametrize("scale", [1.0, 1e-120, 1e120, 4e9])
def test_products_are_exact(scale: float) -> None:
    first, second = (RANDOM.standard_normal(2000) * scale * 2.0 ** RANDOM.integers(-30, 30, 2000) for _ in "ab")
    rounded, rest = products(Halves.of(first), Halves.of(second))
    for one, other, value, left in zip(first, second, rounded, rest, strict=True):
        assert Fraction(one) * Fraction(other) == Fraction(value) + Fraction(left)


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_moments_are_those_of_fractions(offset: float) -> None:
    y = RANDOM.integers(0, 2, 900)
    values = RANDOM.standard_normal((VALUES, y.size)) + offset
    values[2] = values[0]
    parts = np.array_split(np.arange(y.size), 7)
    states = []
    for part in parts:
        state = Moments(CLASSES, VALUES)
        state.add(values[:, part], y[part])
        states.append(pickle.loads(pickle.dumps(state)))  # noqa: S301 - made above
    whole = Moments(CLASSES, VALUES)
    for place in RANDOM.permutation(len(states)):
        whole.merge(states[place])
    found = whole.read()
    assert found.counts.tolist() == [*np.bincount(y, minlength=CLASSES)]
    for code in range(2):
        inside = values[:, y == code]
        for first in range(VALUES):
            mean = sum(map(Fraction, inside[first].tolist()), start=Fraction(0)) / inside.shape[1]
            overall = sum(map(Fraction, values[first].tolist()), start=Fraction(0)) / y.size
            assert found.means[code, first] == float(mean)
            assert found.away[code, first] == float(mean - overall)
            assert found.overall[first] == float(overall)
            for second in range(VALUES):
                assert found.products[code, first, second] == float(exact(inside[first], inside[second]))
    assert np.isnan(found.means[2]).all()
    assert not found.products[2].any()


@pytest.mark.parametrize("offset", [0.0, 1e8])
def test_weighted_moments_are_those_of_fractions(offset: float) -> None:
    y, weights = RANDOM.integers(0, 2, 500), np.exp(RANDOM.normal(0.0, 4.0, 500))
    values = RANDOM.standard_normal((VALUES, y.size)) + offset
    whole = Moments(CLASSES, VALUES, weighted=True)
    for part in np.array_split(RANDOM.permutation(y.size), 5):
        state = Moments(CLASSES, VALUES, weighted=True)
        state.add(values[:, part], y[part], weights[part])
        whole.merge(pickle.loads(pickle.dumps(state)))  # noqa: S301 - made above
    found = whole.read()
    masses = [Fraction(one) for one in weights.tolist()]
    # What a weighted value is, is rounded once.
    worth = [[Fraction(one) for one in (row * weights).tolist()] for row in values]
    overall = [sum(row, start=Fraction(0)) / sum(masses) for row in worth]
    assert found.overall.tolist() == [float(one) for one in overall]
    for code in range(2):
        inside = np.flatnonzero(y == code).tolist()
        mass, square = sum(masses[one] for one in inside), sum(masses[one] ** 2 for one in inside)
        assert (found.counts[code], found.masses[code], found.squares[code]) == (
            len(inside),
            float(mass),
            float(square),
        )
        means = [sum((row[one] for one in inside), start=Fraction(0)) / mass for row in worth]
        away = [[row[one] - mean * masses[one] for one in inside] for row, mean in zip(worth, means, strict=True)]
        for first in range(VALUES):
            assert found.means[code, first] == float(means[first])
            assert found.away[code, first] == float(means[first] - overall[first])
            leaning = sum(one * masses[place] for one, place in zip(away[first], inside, strict=True))
            assert found.leaning[code, first] == float(leaning)
            for second in range(VALUES):
                together = sum(one * other for one, other in zip(away[first], away[second], strict=True))
                assert found.products[code, first, second] == float(together)
    assert np.isnan(found.means[2]).all()
    assert not found.squares[2]


def test_what_is_not_finite_spoils_its_own_value_and_no_other() -> None:
    y = np.array([0, 0, 1, 1])
    whole = Moments(2, 3)
    whole.add(np.array([[1.0, np.inf, 2.0, 3.0], [1.0, 2.0, np.nan, 4.0], [1.0, 2.0, 3.0, 5.0]]), y)
    found = whole.read()
    assert found.overall.tolist() == [np.inf, pytest.approx(np.nan, nan_ok=True), 2.75]
    assert found.means[0].tolist() == [np.inf, 1.5, 1.5]
    assert found.means[1, 0] == 2.5
    assert np.isnan(found.means[1, 1])
    assert found.products[1, 2, 2] == 2.0
    assert np.isnan(found.products[0, 0, 2])
    assert whole.infinite().tolist() == [[True, False], [False, False], [False, False]]
