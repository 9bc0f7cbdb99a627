"""Sums of values of samples and of their products, class by class, exact until the last rounding."""

from fractions import Fraction
from functools import partial
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.exact_products import Halves, products
from app.kernel.numerics.exact_sums import BLOCK, ExactSums
from app.kernel.samples.losses import Codes, sums_by_code


class ClassMoments(NamedTuple):
    """What is left of V values of n samples of K classes.

    Attributes:
        counts: (K) samples.
        means: (K, V); NaN without samples.
        away: (K, V) the mean of the class less that of all samples; 0 without samples.
        products: (K, V, V) sums of products of deviations from the means of the class.
        overall: (V) means of all samples.
    """

    counts: Array
    means: Array
    away: Array
    products: Array
    overall: Array


class Moments:
    """Sums over the samples of each class, and of all products of two values of a sample.

    States merge in any order and give the same, bit for bit. A value that is not finite makes what it is in infinite
    or undefined.

    Args:
        n_classes: K.
        n_values: V.
    """

    def __init__(self, n_classes: int, n_values: int) -> None:
        self.n_classes, self.n_values = n_classes, n_values
        self.counts: NDArray[np.int64] = np.zeros(n_classes, dtype=np.int64)
        # Values that are infinite, and that are no numbers: (2, V, K).
        self._beyond: NDArray[np.int64] = np.zeros((2, n_values, n_classes), dtype=np.int64)
        self._sums = ExactSums((n_values, n_classes))
        # Row i: products of value i with itself and those behind it.
        self._products = [ExactSums((n_values - first, n_classes)) for first in range(n_values)]

    def add(self, values: Array, y: Codes) -> None:
        """Add values (V, n) of samples with codes (n)."""
        for start in range(0, y.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._add(values[:, part], y[part])

    def merge(self, other: Self) -> Self:
        """Take in the sums of others."""
        self.counts = self.counts + other.counts
        self._beyond = self._beyond + other._beyond
        self._sums.merge(other._sums)
        for own, theirs in zip(self._products, other._products, strict=True):
            own.merge(theirs)
        return self

    def infinite(self) -> Mask:
        """Has a class samples of which a value is infinite, (V, K)?"""
        found: Mask = self._beyond[0] > 0
        return found

    def read(self) -> ClassMoments:
        """Means and sums of products about them, each rounded once."""
        sums = self._as_table(self._sums)
        sizes, total = self.counts.tolist(), int(self.counts.sum())
        shape = self.n_classes, self.n_values
        means, away, crossed = np.full(shape, np.nan), np.zeros(shape), np.zeros((*shape, self.n_values))
        wholes = [sum(row, start=Fraction(0)) / max(total, 1) for row in sums]
        for code, size in enumerate(sizes):
            if size:
                own = [row[code] / size for row in sums]
                means[code] = [float(one) for one in own]
                away[code] = [float(one - whole) for one, whole in zip(own, wholes, strict=True)]
        for first, exact in enumerate(map(self._as_table, self._products)):
            for place, row in enumerate(exact):
                second = first + place
                for code, size in enumerate(sizes):
                    if size:
                        found = float(row[code] - sums[first][code] * sums[second][code] / size)
                        crossed[code, first, second] = crossed[code, second, first] = found
        overall = np.array([float(one) for one in wholes])
        self._spoil(means, away, crossed, overall)
        return ClassMoments(self.counts.astype(np.float64), means, away, crossed, overall)

    def _spoil(self, means: Array, away: Array, crossed: Array, overall: Array) -> None:
        for kind, worth in enumerate((np.inf, np.nan)):
            for value, code in np.argwhere(self._beyond[kind]):
                means[code, value] = overall[value] = worth
                away[code, value] = crossed[code, value, :] = crossed[code, :, value] = np.nan

    def _as_table(self, sums: ExactSums) -> list[list[Fraction]]:
        flat, size = sums.exact(), self.n_classes
        return [flat[start : start + size] for start in range(0, len(flat), size)]

    def _add(self, given: Array, y: Codes) -> None:
        gather = partial(_by_class, y, self.n_classes)
        self.counts += np.bincount(y, minlength=self.n_classes)
        values, finite = given.copy(), np.isfinite(given)
        if not finite.all():
            for held, there in zip(self._beyond, (np.isinf(given), np.isnan(given)), strict=True):
                held += gather(there.astype(np.float64)).astype(np.int64)
            values[~finite] = 0.0
        halves = Halves.of(values)
        for first, sums in enumerate(self._products):
            for part in products(halves.at(first), halves.at(slice(first, None))):
                sums.add(part, gather)
        self._sums.add(values, gather)


def _by_class(y: Codes, n_classes: int, rows: Array) -> Array:
    return sums_by_code(y, rows, n_classes)
