"""Weighted units, and metrics of them as a ratio of two sums over the units."""

from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask, ratio, silently


class Terms(NamedTuple):
    """Contributions of each unit to the numerator and the denominator of a ratio, both (U). The denominator is 0 for a
    unit without a value, and 1 throughout for a mean.
    """

    above: Array
    below: Array

    @property
    def of_units(self) -> Array:
        """Value of each unit alone (U); NaN where it has none."""
        with silently():
            return ratio(self.above, self.below)


def mean_terms(values: Array) -> Terms:
    """Terms of the mean of values (U) over the units that have one; NaN is no value."""
    known = ~np.isnan(values)
    return Terms(np.where(known, values, 0.0), known.astype(np.float64))


class WeightedUnits:
    """Independent units with weights, the base of everything that is resampled.

    Attributes:
        width: Cost of one unit in a pass, in sorted numbers.

    Args:
        n_units: Number of units, U.
        weights: Weights of the units, shape (..., U); None is 1 each. The leading axes are a batch.

    Raises:
        ValueError: there is no unit, or the weights do not fit.
    """

    width = 1

    def __init__(self, n_units: int, weights: ArrayLike | None = None) -> None:
        self.n_units = n_units
        self._terms: dict[Hashable, Terms] = {}
        self.weights: Array | None = None if weights is None else np.asarray(weights, dtype=np.float64)
        if n_units == 0:
            raise ValueError("there has to be something to look at")
        if self.weights is not None and self.weights.shape[-1:] != (n_units,):
            raise ValueError(f"weights need {n_units} as their last axis, got shape {self.weights.shape}")

    def with_weights(self, weights: ArrayLike | None) -> Self:
        """Copy with other weights; what is known of the units is kept."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        WeightedUnits.__init__(other, self.n_units, weights)
        other._terms = self._terms
        return other

    def part(self, chosen: NDArray[np.intp]) -> "WeightedUnits":
        """Some of the units, without weights. Raises TypeError where they are not told apart."""
        raise TypeError(f"{chosen.size} of these units cannot be chosen by themselves")

    @property
    def true_values(self) -> NDArray[Any] | None:
        """Truth of each unit, (U) or (U, m), the same in all runs on them; None where it cannot be compared."""
        return None

    @property
    def n(self) -> Array:
        """Total weight, shape (...)."""
        return self.total(np.ones(self.n_units))

    def total(self, values: Array) -> Array:
        """Weighted sum of values (U) over the units, shape (...)."""
        summed = np.add.reduce(values) if self.weights is None else self.weights @ values
        return np.asarray(summed, dtype=np.float64)

    def remembered(self, name: Hashable, make: Callable[[], Terms]) -> Terms:
        """Terms by name, computed once for all weights of the same units."""
        known = self._terms.get(name)
        if known is None:
            known = self._terms[name] = make()
        return known

    @property
    def known_terms(self) -> Mapping[Hashable, Terms]:
        """All terms computed so far, by name."""
        return self._terms

    def ratio_of(self, terms: Terms) -> Array:
        """Ratio of the two weighted sums, shape (...); NaN where no unit has a value."""
        with silently():
            return ratio(self.total(terms.above), self.total(terms.below))

    def have(self, mask: Mask) -> Array:
        """Total weight of the units in a mask (U), shape (...)."""
        return self.total(mask.astype(np.float64))
