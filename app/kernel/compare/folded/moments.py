"""Sums of values of samples and of their products, class by class, exact until the last rounding.

Of samples with weights w a value v goes in as w v, rounded once, and w itself as one value more: what a weighted mean
varies by is a sum of products of these.
"""

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
    """What is left of V values of n samples of K classes, which weigh w, or 1.

    Attributes:
        counts: (K) samples.
        masses: (K) sums of w.
        squares: (K) sums of w^2.
        means: (K, V) in the weights; NaN without samples.
        away: (K, V) the mean of the class less that of all samples; 0 without samples.
        products: (K, V, V) sums of w^2 times products of deviations from the means of the class.
        leaning: (K, V) sums of w^2 times deviations; 0 without weights.
        overall: (V) means of all samples in the weights.
    """

    counts: Array
    masses: Array
    squares: Array
    means: Array
    away: Array
    products: Array
    leaning: Array
    overall: Array


class _OfClass(NamedTuple):
    """Exact sums over the samples of one class.

    Attributes:
        mass: Of w.
        square: Of w^2.
        sums: (V) of w v.
        mixed: (V) of w w v.
    """

    mass: Fraction
    square: Fraction
    sums: list[Fraction]
    mixed: list[Fraction]

    def product(self, first: int, second: int, crossed: Fraction) -> float:
        """Of w^2 times deviations of two values, from the sum of w v w u; rounded once."""
        one, other = self.sums[first], self.sums[second]
        leaning = one * self.mixed[second] + other * self.mixed[first]
        found = (crossed * self.mass - leaning) * self.mass + one * other * self.square
        return float(found / (self.mass * self.mass))

    def lean(self, value: int) -> float:
        """Of w^2 times deviations of a value; rounded once."""
        return float((self.mixed[value] * self.mass - self.sums[value] * self.square) / self.mass)


class Moments:
    """Sums over the samples of each class, and of all products of two values of a sample.

    States merge in any order and give the same, bit for bit. A value that is not finite makes what it is in infinite
    or undefined.

    Args:
        n_classes: K.
        n_values: V.
        weighted: Have the samples weights?
    """

    def __init__(self, n_classes: int, n_values: int, *, weighted: bool = False) -> None:
        self.n_classes, self.n_values, self.weighted = n_classes, n_values, weighted
        self.counts: NDArray[np.int64] = np.zeros(n_classes, dtype=np.int64)
        # Values that are infinite, and that are no numbers: (2, V, K).
        self._beyond: NDArray[np.int64] = np.zeros((2, n_values, n_classes), dtype=np.int64)
        # Behind the values stand the weights.
        rows = n_values + weighted
        self._sums = ExactSums((rows, n_classes))
        # Row i: products of value i with itself and those behind it.
        self._products = [ExactSums((rows - first, n_classes)) for first in range(rows)]

    def add(self, values: Array, y: Codes, weights: Array | None = None) -> None:
        """Add values (V, n) of samples with codes (n) and, where they have some, weights (n) above 0."""
        for start in range(0, y.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._add(values[:, part], y[part], None if weights is None else weights[part])

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
        classes = self._classes()
        total = sum((one.mass for one in classes), start=Fraction(0))
        shape = self.n_classes, self.n_values
        means, away, leaning = np.full(shape, np.nan), np.zeros(shape), np.zeros(shape)
        crossed = np.zeros((*shape, self.n_values))
        wholes = [sum((one.sums[value] for one in classes), start=Fraction(0)) for value in range(self.n_values)]
        wholes = [one / total if total else Fraction(0) for one in wholes]
        filled = [(code, one) for code, one in enumerate(classes) if one.mass]
        for code, one in filled:
            own = [value / one.mass for value in one.sums]
            means[code] = [float(mean) for mean in own]
            away[code] = [float(mean - whole) for mean, whole in zip(own, wholes, strict=True)]
            leaning[code] = [one.lean(value) for value in range(self.n_values)]
        for first, sums in enumerate(self._products[: self.n_values]):
            exact = self._as_table(sums)
            for second in range(first, self.n_values):
                for code, one in filled:
                    found = one.product(first, second, exact[second - first][code])
                    crossed[code, first, second] = crossed[code, second, first] = found
        overall = np.array([float(one) for one in wholes])
        self._spoil(means, away, crossed, overall)
        leaning[np.isnan(crossed).any(axis=2)] = np.nan
        masses, squares = np.array([[float(one.mass), float(one.square)] for one in classes]).T
        return ClassMoments(self.counts.astype(np.float64), masses, squares, means, away, crossed, leaning, overall)

    def _classes(self) -> list[_OfClass]:
        sums = self._as_table(self._sums)
        if not self.weighted:
            sizes = [Fraction(size) for size in self.counts.tolist()]
            return [_OfClass(size, size, own := [row[code] for row in sums], own) for code, size in enumerate(sizes)]
        *values, masses = sums
        # The last row of each table is that of products with the weights.
        mixed = [self._as_table(products)[-1] for products in self._products]
        *of_values, squares = mixed
        return [
            _OfClass(mass, squares[code], [row[code] for row in values], [row[code] for row in of_values])
            for code, mass in enumerate(masses)
        ]

    def _spoil(self, means: Array, away: Array, crossed: Array, overall: Array) -> None:
        for kind, worth in enumerate((np.inf, np.nan)):
            for value, code in np.argwhere(self._beyond[kind]):
                means[code, value] = overall[value] = worth
                away[code, value] = crossed[code, value, :] = crossed[code, :, value] = np.nan

    def _as_table(self, sums: ExactSums) -> list[list[Fraction]]:
        flat, size = sums.exact(), self.n_classes
        return [flat[start : start + size] for start in range(0, len(flat), size)]

    def _add(self, given: Array, y: Codes, weights: Array | None) -> None:
        gather = partial(sums_by_code, y, n_classes=self.n_classes)
        self.counts += np.bincount(y, minlength=self.n_classes)
        values, finite = given.copy(), np.isfinite(given)
        if not finite.all():
            for held, there in zip(self._beyond, (np.isinf(given), np.isnan(given)), strict=True):
                held += gather(there.astype(np.float64)).astype(np.int64)
            values[~finite] = 0.0
        if weights is not None:
            values = np.vstack([values * weights, weights])
        halves = Halves.of(values)
        for first, sums in enumerate(self._products):
            for part in products(halves.at(first), halves.at(slice(first, None))):
                sums.add(part, gather)
        self._sums.add(values, gather)
