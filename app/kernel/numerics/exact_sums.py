"""Sums of floats that do not depend on the order: every bit of every value is kept until the last rounding.

A value is cut along fixed powers of 2 into pieces of 40 bits, by adding and taking away a large constant (Rump, Ogita &
Oishi 2008, "Accurate floating-point summation part I", section 3). Pieces of one level are whole multiples of one
power, so few of them add up in float64 without rounding, in any order. Integers take over before that ends.
"""

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array

# Values added at once: that many pieces of a level have a sum below 2^53.
BLOCK = 4096
_BITS = 40
# Level 0 is that of multiples of 2^-29 below 2^11: losses and their squares begin there, and end two levels below.
_UNIT, _TOP = -29, 11
# Levels go down to where subnormal numbers end, and up to where the constant is no longer finite.
_LOWEST = -27
_TOO_LARGE = 2.0**920
# 1 in units of the lowest level.
_ONE = 1 << -(_BITS * _LOWEST + _UNIT)
# So many values of a level add up to less than 2^63.
_CARRY = 1 << 22
# Squares and products with counts are rounded, each by at most 2^-53.
_ROUNDING = Fraction(1, 1 << 50)
# Squares of values that differ by 1e-12 of their size: that is how far equal values may be apart at hand.
_EQUAL = Fraction(1, 10**24)

Whole = NDArray[np.object_]
# From multiples (r, b) to their sums, in any shape that is always the same.
Gather = Callable[[Array], Array]


class ExactSums:
    """Sums that merge in any order; the last rounding is the only one.

    Args:
        shape: of the sums.
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
        """Take in the sums of others."""
        self._carry()
        other._carry()
        self._whole = self._whole + other._whole
        return self

    def rounded(self) -> Array:
        """The sums, each the float64 that is nearest to it."""
        self._carry()
        return np.array([value / _ONE for value in self._whole.ravel()], dtype=np.float64).reshape(self._whole.shape)

    def exact(self) -> list[Fraction]:
        """The sums as they are, in one row."""
        self._carry()
        return [Fraction(value, _ONE) for value in self._whole.ravel()]

    def _carry(self) -> None:
        for level, multiples in self._levels.items():
            self._whole = self._whole + (multiples.astype(object) << (_BITS * (level - _LOWEST)))
        self._levels, self._held = {}, 0


def total_of(values: Array) -> Array:
    """All values of each row into one sum: how rows (r, b) are gathered to (r)."""
    summed: Array = values.sum(axis=-1)
    return summed


def _largest(values: Array) -> float:
    """The largest absolute value."""
    if not values.size:
        return 0.0
    # NaN comes through both.
    largest = float(np.maximum(values.max(), -values.min()))
    if not largest < _TOO_LARGE:
        raise ValueError("only finite values below 2^920 can be summed exactly")
    return largest


def spread(total: Fraction, squares: Fraction, size: int) -> float:
    """Variance over n - 1 of values from their sum and the sum of their squares, each square rounded once.

    0 where it is not larger than what that rounding makes of equal values.
    """
    excess = squares - total * total / size if size else Fraction(0)
    return float(excess / max(size - 1, 1)) if excess > squares * _ROUNDING else 0.0


def weighted_spread(mean: Fraction, sums: Sequence[Fraction], size: int, *, exact: bool = False) -> Fraction:
    """Sum of squared weights times squared deviations, times n / (n - 1): the variance of a weighted sum, drawn with
    replacement. 0 where it is not larger than what rounding each product makes of equal values, or, where products are
    exact, than it is of values that differ by rounding.

    Args:
        mean: That values deviate from.
        sums: Of squared weights, and of their products with the values and with the squares of these.
        size: Samples that count, n.
        exact: Are the products sums of two floats?
    """
    plain, first, second = sums
    excess = second - 2 * mean * first + mean * mean * plain
    varies = excess > second * (_EQUAL if exact else _ROUNDING)
    return excess * Fraction(size, max(size - 1, 1)) if varies else Fraction(0)
