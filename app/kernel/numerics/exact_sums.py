"""Exact sums and products of floats, for results that do not depend on the order of summation.

Sums: a value is cut along fixed powers of 2 into pieces of 40 bits, by adding and taking away a large constant (Rump,
Ogita & Oishi 2008, "Accurate floating-point summation part I", section 3). Pieces of one level are whole multiples of
one power, so few of them add up in float64 without rounding, in any order. Integers take over before that ends.

Products: each is the sum of two floats. A float is cut into halves of 26 bits, the products of which are exact (Dekker
1971, "A floating-point technique for extending the available precision"; Veltkamp's cut).
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array

# Values added at once: the sum of this many pieces of a level is below 2^53.
BLOCK = 4096
_BITS = 40
# Level 0 has the multiples of 2^-29 below 2^11. Losses and their squares need it and the two levels below.
_UNIT, _TOP = -29, 11
# Levels go down to where subnormal numbers end, and up to where the constant is no longer finite.
_LOWEST = -27
_TOO_LARGE = 2.0**920
# 1 in units of the lowest level.
_ONE = 1 << -(_BITS * _LOWEST + _UNIT)
# The sum of this many values of a level is below 2^63.
_CARRY = 1 << 22
# Squares and products with counts are rounded, each by at most 2^-53.
_ROUNDING = Fraction(1, 1 << 50)
# Squared relative difference up to which values count as equal: 1e-12, as for data in memory.
_EQUAL = Fraction(1, 10**24)

Whole = NDArray[np.object_]
# Sums multiples (r, b) into any fixed shape.
Gather = Callable[[Array], Array]


class ExactSums:
    """Sums that merge in any order; only the last step rounds.

    Args:
        shape: Shape of the sums.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        # In units of the lowest level.
        self._whole: Whole = np.zeros(shape, dtype=object)
        self._levels: dict[int, NDArray[np.int64]] = {}
        self._held = 0

    def add(self, values: Array, gather: Gather) -> None:
        """Add values (r, b), which are overwritten.

        Args:
            values: Finite, and at most 4096 columns.
            gather: Says which values go into which sum. It may add float64 in any order.

        Raises:
            ValueError: too many at once, or one is NaN, infinite or above 2^920.
        """
        width = values.shape[-1]
        if width > BLOCK:
            raise ValueError(f"at most {BLOCK} values can be added at once, got {width}")
        if self._held + width > _CARRY:
            self._carry()
        self._held += width
        piece = np.empty_like(values)
        # The lowest level of which all values are below the top; below it they go down one by one.
        level = -((_TOP - int(np.frexp(_largest(values))[1])) // _BITS)
        while values.any():
            unit = _BITS * level + _UNIT
            constant = np.ldexp(1.5, 52 + unit)
            np.add(values, constant, out=piece)
            piece -= constant
            values -= piece
            multiples = np.ldexp(gather(piece), -unit).astype(np.int64)
            held = self._levels.get(level)
            self._levels[level] = multiples if held is None else held + multiples
            level -= 1

    def merge(self, other: Self) -> Self:
        """Add the sums of another instance to these."""
        self._carry()
        other._carry()
        self._whole = self._whole + other._whole
        return self

    def rounded(self) -> Array:
        """Sums, each rounded to the nearest float64."""
        self._carry()
        return np.array([value / _ONE for value in self._whole.ravel()], dtype=np.float64).reshape(self._whole.shape)

    def exact(self) -> list[Fraction]:
        """Exact sums as fractions, flattened."""
        self._carry()
        return [Fraction(value, _ONE) for value in self._whole.ravel()]

    def _carry(self) -> None:
        for level, multiples in self._levels.items():
            self._whole = self._whole + (multiples.astype(object) << (_BITS * (level - _LOWEST)))
        self._levels, self._held = {}, 0


def row_sums(values: Array) -> Array:
    """Row sums: gathers values (r, b) to (r)."""
    summed: Array = values.sum(axis=-1)
    return summed


def _largest(values: Array) -> float:
    """Largest absolute value; 0 for an empty array."""
    if not values.size:
        return 0.0
    # NaN comes through both.
    largest = float(np.maximum(values.max(), -values.min()))
    if not largest < _TOO_LARGE:
        raise ValueError("only finite values below 2^920 can be summed exactly")
    return largest


def spread(total: Fraction, squares: Fraction, size: int) -> float:
    """Variance over n - 1 from the sum of values and the sum of their squares, each square rounded once. It is 0 where
    it does not exceed the error of that rounding.
    """
    excess = squares - total * total / size if size else Fraction(0)
    return float(excess / max(size - 1, 1)) if excess > squares * _ROUNDING else 0.0


def weighted_spread(mean: Fraction, sums: Sequence[Fraction], size: int, *, exact: bool = False) -> Fraction:
    """Variance of a weighted sum drawn with replacement: sum of squared weights times squared deviations, times n / (n
    - 1).

    It is 0 where it does not exceed the rounding error: of each product with equal values or, where products are exact,
    of values that differ by rounding.

    Args:
        mean: Mean from which values deviate.
        sums: Sums of squared weights, of squared weights times values, and of squared weights times squared values.
        size: Number of samples n that have a weight.
        exact: The products were summed as two floats each, without rounding.
    """
    plain, first, second = sums
    excess = second - 2 * mean * first + mean * mean * plain
    varies = excess > second * (_EQUAL if exact else _ROUNDING)
    return excess * Fraction(size, max(size - 1, 1)) if varies else Fraction(0)


_CUT = float((1 << 27) + 1)


class Halves(NamedTuple):
    """Floats of any shape, each split into two parts that add up to it."""

    values: Array
    high: Array
    low: Array

    @classmethod
    def of(cls, values: Array) -> "Halves":
        """Split values below 2^900."""
        scaled = _CUT * values
        high = scaled - (scaled - values)
        return cls(values, high, values - high)

    def at(self, rows: slice | int) -> "Halves":
        """Selection of rows."""
        return Halves(self.values[rows], self.high[rows], self.low[rows])


def products(first: Halves, second: Halves) -> tuple[Array, Array]:
    """Rounded products and their rounding errors; exact unless a nonzero product is below 2^-960."""
    rounded = first.values * second.values
    rest = first.high * second.high
    rest -= rounded
    rest += first.high * second.low
    rest += first.low * second.high
    rest += first.low * second.low
    return np.asarray(rounded), rest


def weighted_powers(weights: Array, values: Array) -> tuple[Array, Array]:
    """Products (2 m, n) of weights (n) with values (m, n) and with their squares, and the rounding errors (2 m, n).
    Product and error add up to the exact product but for 2^-104 of it.
    """
    of_values = Halves.of(values)
    first, rest = products(Halves.of(weights), of_values)
    second, more = products(Halves.of(first), of_values)
    more += rest * values
    return np.concatenate([first, second]), np.concatenate([rest, more])
