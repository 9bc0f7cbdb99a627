"""Sums over streamed samples of what each of them says: by class, with products of values, or within groups."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.areas import ROUNDING
from app.kernel.samples.influence import ClassSums
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Side
from app.kernel.uncertainty.groups import Grouping


class Cubes:
    """Sums over units, samples or groups, of products of three numbers: of weights and V weighed values.

    Attributes:
        weight: Sum of the weights.
    """

    def __init__(self, n_values: int) -> None:
        # With a value in none of the three, in one, in two, and in all.
        self._sums, self.weight = np.zeros((4, n_values)), 0.0

    def add(self, weights: Array, weighed: Array) -> None:
        """Add weights (n) and weighed values (V, n)."""
        both, squares = weights * weights, weighed * weighed
        self.weight += float(weights.sum())
        self._sums[0] += both @ weights
        self._sums[1:] += weighed @ both, squares @ weights, np.vecdot(squares, weighed)

    def of(self, place: int, slope: float, level: float) -> float:
        """Sum of the cubes of one value times a slope and the weight times a level."""
        none, once, twice, thrice = self._sums[:, place].tolist()
        mixed = 3.0 * slope * level * (level * once + slope * twice)
        return float(slope**3 * thrice + mixed + level**3 * none)


class ClassMoments(NamedTuple):
    """Moments of V values of n samples of K classes, which weigh w.

    Attributes:
        sides: (K) samples of each class.
        means: (K, V) in the weights; NaN without samples.
        away: (K, V) the mean of the class less that of all samples; 0 without samples.
        products: (K, V, V) sums of w^2 times products of deviations from the means of the class.
        leaning: (K, V) sums of w^2 times deviations; 0 where all weights are 1.
        overall: (V) means of all samples in the weights.
    """

    sides: Sequence[Side]
    means: Array
    away: Array
    products: Array
    leaning: Array
    overall: Array

    @property
    def whole(self) -> Side:
        """All samples."""
        return Side.summed(self.sides)

    def of(self, at: int) -> ClassSums:
        """One of the values."""
        overall, spreads = float(self.overall[at]), self.products[:, at, at]
        return ClassSums(self.sides, self.means[:, at], self.away[:, at], spreads, overall)

    def covariance(self, coefficients: Array) -> Array:
        """Covariance (R, R) of influences (R, K (V + 1)): coefficients of the deviations of the values, and a constant
        for each class.
        """
        size, width = self.means.shape
        unknown: Mask = np.logical_or.reduce(~np.isfinite(coefficients), axis=1)
        by_class = np.where(unknown[:, None], 0.0, coefficients).reshape(len(coefficients), size, width + 1)
        # What is not known is of the runs without a value.
        products, leaning = (np.where(np.isnan(one), 0.0, one) for one in (self.products, self.leaning))
        found = np.zeros((len(coefficients), len(coefficients)))
        for code, side in enumerate(self.sides):
            inner, means = by_class[:, code, :width], by_class[:, code, width]
            mixed = np.outer(inner @ leaning[code], means)
            found += inner @ products[code] @ inner.T + mixed + mixed.T + side.squares * np.outer(means, means)
        found[unknown, :] = found[:, unknown] = np.nan
        return found


class Moments:
    """Sums over the samples of each class, and within groups where there are some.

    A value that is not finite makes what it is in infinite or undefined.

    Args:
        n_classes: K.
        n_values: V.
        together: Places of values whose products with each other are summed, beside their squares.
        n_groups: G; 0 where samples are independent.
        classless: Values that are 0 in the mean over all samples, whatever their class; their sums within groups are
            not told apart by class.
    """

    def __init__(
        self,
        n_classes: int,
        n_values: int,
        together: Sequence[Codes] = (),
        n_groups: int = 0,
        classless: Sequence[bool] = (),
    ) -> None:
        self.counts, self._masses, self._squares = np.zeros((3, n_classes))
        # Values that are infinite, and that are no numbers.
        self._beyond = np.zeros((2, n_classes, n_values))
        # Deviations are from one value of the class: so products lose no digits, and are 0 where nothing varies.
        self._from, self._sums, self._mixed, self._own = np.zeros((4, n_classes, n_values))
        self._cubes = [Cubes(n_values) for _ in range(n_classes)]
        self._products = {tuple(one.tolist()): np.zeros((n_classes, one.size, one.size)) for one in together}
        self.n_groups = n_groups
        self._from_zero = np.array(classless or [False] * n_values)
        if n_groups:
            # Weights of samples of each class in each group, and sums of values.
            self._weights = np.zeros(n_groups * n_classes)
            self._of_groups = [np.zeros(n_groups * (1 if one else n_classes)) for one in self._from_zero]

    def add(self, code: int, values: Array, weights: Array, groups: Codes | None = None) -> None:
        """Add values (V, n) of samples of one class, at least one, with weights (n) above 0."""
        finite = np.isfinite(values)
        if not finite.all():
            self._beyond[:, code] += np.isinf(values).sum(axis=1), np.isnan(values).sum(axis=1)
            values = np.where(finite, values, 0.0)
        if not self.counts[code]:
            self._from[code] = np.where(self._from_zero, 0.0, np.median(values, axis=1))
        weighed = values - self._from[code][:, None]
        weighed *= weights
        self.counts[code] += weights.size
        self._masses[code] += weights.sum()
        self._squares[code] += weights @ weights
        self._sums[code] += weighed.sum(axis=1)
        if groups is not None:
            at = groups * self.counts.size + code
            np.add.at(self._weights, at, weights)
            for sums, row, alone in zip(self._of_groups, weighed, self._from_zero, strict=True):
                np.add.at(sums, groups if alone else at, row)
        self._mixed[code] += weighed @ weights
        self._own[code] += np.vecdot(weighed, weighed)
        self._cubes[code].add(weights, weighed)
        for places, products in self._products.items():
            some = weighed[list(places)]
            products[code] += some @ some.T

    def infinite(self) -> Mask:
        """Has a class samples of which a value is infinite, (V, K)?"""
        found: Mask = self._beyond[0].T > 0
        return found

    def sums(self, place: int, masses: Array) -> Array:
        """Weighted sums (K) of a value, 0 where only a rounding of them is left; ``masses`` are the weights of the
        classes, so that the mean of what is 1 everywhere is 1.
        """
        moved = masses * self._from[:, place]
        found = self._sums[:, place] + moved
        return np.where(np.abs(found) <= ROUNDING * np.abs(moved), 0.0, found)

    def cubes(self, place: int, coefficients: Array) -> float:
        """Sum of the cubes of influences on a value, from coefficients (K, 2) as those of `ClassMoments.covariance`."""
        moved = np.divide(self._sums[:, place], self._masses, out=np.zeros(len(coefficients)), where=self._masses > 0)
        rows = zip(self._cubes, coefficients.tolist(), moved.tolist(), strict=True)
        return sum(of.of(place, slope, level - slope * away) for of, (slope, level), away in rows)

    def read(self, places: Sequence[int]) -> ClassMoments | None:
        """Means of some values, and sums of products about them; None where these were not summed."""
        if len(places) == 1 or self.n_groups:
            # Of groups products of samples are not asked for.
            raw: Array = self._own[:, places][:, :, None] * np.eye(len(places))
        elif tuple(places) in self._products:
            raw = self._products[tuple(places)]
        else:
            return None
        start, sums, mixed = self._from[:, places], self._sums[:, places], self._mixed[:, places]
        filled = self._masses > 0
        moved = np.divide(sums, self._masses[:, None], out=np.zeros_like(sums), where=filled[:, None])
        means = np.where(filled[:, None], start + moved, np.nan)
        first = means[np.argmax(filled)]
        overall = first + self._masses @ np.where(filled[:, None], means - first, 0.0) / self._masses.sum()
        away = np.where(filled[:, None], means - overall, 0.0)
        squares = self._squares[:, None]
        leaning = mixed - squares * moved
        one = moved[:, :, None] * mixed[:, None, :]
        both = squares[:, :, None] * moved[:, :, None] * moved[:, None, :]
        crossed = raw - one - one.transpose(0, 2, 1) + both
        for kind, worth in zip(self._beyond[:, :, places], (np.inf, np.nan), strict=True):
            for code, value in np.argwhere(kind):
                means[code, value] = overall[value] = worth
                away[code, value] = crossed[code, value, :] = crossed[code, :, value] = np.nan
        leaning[np.isnan(crossed).any(axis=2)] = np.nan
        each = zip(self._masses.tolist(), self._squares.tolist(), self.counts.astype(np.int64).tolist(), strict=True)
        return ClassMoments([Side(*one) for one in each], means, away, crossed, leaning, overall)

    def held(self, classes: Sequence[NDArray[Any]], concerned: Mask) -> Array:
        """Weight (S, G) of the samples of some classes (K) in each group, by strata of these classes."""
        size = self.counts.size
        grouping = Grouping(np.repeat(np.arange(self.n_groups), size), self.n_groups)
        kinds = tuple(np.tile(one, self.n_groups) for one in classes)
        return grouping.held(kinds, self._weights * np.tile(concerned, self.n_groups))

    def in_groups(self, places: Sequence[int], coefficients: Array) -> Array:
        """Influences (R, G) of groups, from coefficients (R, K (V + 1)) as those of `ClassMoments.covariance`."""
        size, width = self.counts.size, len(places)
        by_class = coefficients.reshape(len(coefficients), size, width + 1)
        weights = self._weights.reshape(self.n_groups, size)
        found: Array = by_class[:, :, width] @ weights.T
        for at, place in enumerate(places):
            sums, slopes = self._of_groups[place], by_class[:, :, at]
            moved = np.divide(self._sums[:, place], self._masses, out=np.zeros(size), where=self._masses > 0)
            if self._from_zero[place]:
                # Whatever the class; the constant has the mean of the class.
                found += slopes[:, :1] * sums - (slopes * moved) @ weights.T
            else:
                found += slopes @ (sums.reshape(self.n_groups, size) - weights * moved).T
        return found
