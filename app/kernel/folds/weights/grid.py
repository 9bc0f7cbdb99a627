"""Weights as whole numbers of a power of 2, of as many digits as they need.

A weight is a whole number of the lowest bit that any of them has. A digit has 30 bits, so that 2^33 of them add up in
64 bits; what is carried over makes every sum one row of digits, however it came together.
"""

from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import Whole

# Digits (d, n), the lowest first.
Digits = NDArray[np.int64]
_BITS = 30
_LOW = (1 << _BITS) - 1
# Bits of a float64, and of pieces of which 2^29 have a sum of no more.
_MANTISSA, _PIECE = 53, 24


class Grid(NamedTuple):
    """Sums up to a total, without rounding.

    Attributes:
        exponent: Of the power of 2 that all values are multiples of.
        size: How many digits the total has.
    """

    exponent: int
    size: int

    @classmethod
    def of(cls, total: Fraction, exponent: int) -> Self:
        """For values that add up to a total."""
        bits = cls(exponent, 1).whole(total).bit_length()
        return cls(exponent, max(1, -(-bits // _BITS)))

    @classmethod
    def of_part(cls, values: Array, times: int) -> Self:
        """For sums of values (n), 0 or more, each so often: grids of several parts differ by whole digits."""
        lowest = lowest_bit(values)
        exponent = 0 if lowest is None else lowest // _BITS * _BITS
        return cls.of(Fraction(float(values.max(initial=0.0))) * values.size * times, exponent)

    def taken(self, digits: Digits, own: "Grid") -> Digits:
        """The same sums on this grid, whose exponent is at most theirs, by whole digits."""
        if own == self:
            return digits
        found: Digits = np.zeros((self.size, *digits.shape[1:]), dtype=np.int64)
        # What a part could need is not what all of them come to.
        rows = found[(own.exponent - self.exponent) // _BITS :]
        rows[: own.size] = digits[: len(rows)]
        return found

    def of_units(self, units: int) -> Digits:
        """The digits (d, 1) of a whole number of units."""
        return np.array([(units >> (_BITS * place)) & _LOW for place in range(self.size)])[:, None]

    def digits(self, values: Array) -> Digits:
        """Those of values (n)."""
        found, left = np.empty((self.size, values.size), dtype=np.int64), values
        for place in reversed(range(self.size)):
            unit = self.exponent + _BITS * place
            piece = np.floor(np.ldexp(left, -unit))
            found[place] = piece
            left = left - np.ldexp(piece, unit)
        return found

    def added(self, digits: Digits, starts: NDArray[np.intp]) -> Digits:
        """Sums of stretches that begin at some places."""
        if starts.size == digits.shape[1]:
            return digits
        return carried(np.add.reduceat(digits, starts, axis=1))

    def cumulated(self, digits: Digits, above: int) -> Digits:
        """What they add up to from the first on, and what is above them, in units."""
        sums: Digits = np.cumsum(digits, axis=1)
        sums += self.of_units(above)
        return carried(sums)

    def units(self, digits: Digits) -> Whole:
        """Whole numbers (n) of any size, in units."""
        whole: Whole = np.zeros(digits.shape[1], dtype=object)
        for place, row in enumerate(digits):
            whole = whole + (row.astype(object) << (_BITS * place))
        return whole

    def total(self, digits: Digits) -> int:
        """The sum of all of them, in units."""
        return sum(int(row.sum()) << (_BITS * place) for place, row in enumerate(digits))

    def rounded(self, digits: Digits) -> Array:
        """As float64 (n), which follow from the digits alone and rise with them."""
        values: Array = np.zeros(digits.shape[1])
        for place, row in enumerate(digits):
            values += np.ldexp(row.astype(np.float64), self.exponent + _BITS * place)
        return values

    def rounded_units(self, units: int) -> float:
        """The same of a whole number."""
        return float(self.rounded(self.of_units(units))[0])

    def whole(self, value: Fraction) -> int:
        """A sum as a whole number of units."""
        return int(value / _power(self.exponent))

    def fraction(self, units: int) -> Fraction:
        """A whole number of units."""
        return units * _power(self.exponent)


def pieces_of(values: Array, starts: NDArray[np.intp]) -> list[Array]:
    """Sums of stretches of values (n), 0 or more, that begin at some places: pieces (s) that add up to them, each cut
    along powers of 2 that are the same for all values, so that nothing is rounded.
    """
    found = []
    while values.any():
        unit = _PIECE * (-(-int(np.frexp(values.max())[1]) // _PIECE) - 1)
        whole = np.floor(np.ldexp(values, -unit))
        values = values - np.ldexp(whole, unit)
        found.append(np.ldexp(np.add.reduceat(whole, starts), unit))
    return [piece[None] for piece in found]


def lowest_bit(values: Array) -> int | None:
    """The largest exponent of a power of 2 that values (n), 0 or more, are whole multiples of; None where all are 0."""
    mantissas, exponents = np.frexp(values[values > 0])
    if not mantissas.size:
        return None
    whole = np.ldexp(mantissas, _MANTISSA).astype(np.int64)
    last = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return int((exponents + last).min()) - _MANTISSA


def carried(sums: Digits) -> Digits:
    """Digits below 2^30 but for the highest; they are overwritten."""
    for place in range(len(sums) - 1):
        sums[place + 1] += sums[place] >> _BITS
        sums[place] &= _LOW
    return sums


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent
