"""Products of floats without rounding: each is the sum of two floats.

A float is cut into halves of 26 bits, the products of which are exact (Dekker 1971, "A floating-point technique for
extending the available precision"; Veltkamp's cut).
"""

from typing import NamedTuple

import numpy as np

from app.kernel.numerics.arrays import Array

_CUT = float((1 << 27) + 1)


class Halves(NamedTuple):
    """Floats, any shape, and the two parts that add up to them."""

    values: Array
    high: Array
    low: Array

    @classmethod
    def of(cls, values: Array) -> "Halves":
        """Of values below 2^900."""
        scaled = _CUT * values
        high = scaled - (scaled - values)
        return cls(values, high, values - high)

    def at(self, rows: slice | int) -> "Halves":
        """Some of the rows."""
        return Halves(self.values[rows], self.high[rows], self.low[rows])


def products(first: Halves, second: Halves) -> tuple[Array, Array]:
    """Rounded products and what rounding took from them: exact where no product but 0 is below 2^-960."""
    rounded = first.values * second.values
    rest = first.high * second.high
    rest -= rounded
    rest += first.high * second.low
    rest += first.low * second.high
    rest += first.low * second.low
    return np.asarray(rounded), rest


def weighted_powers(weights: Array, values: Array) -> tuple[Array, Array]:
    """Products of weights (n) with values (m, n) and with their squares, rounded, and what rounding took from them,
    (2 m, n) each. The two add up to a product but for 2^-104 of it.
    """
    of_values = Halves.of(values)
    first, rest = products(Halves.of(weights), of_values)
    second, more = products(Halves.of(first), of_values)
    more += rest * values
    return np.concatenate([first, second]), np.concatenate([rest, more])
