"""Pairs of an actual and a predicted set: regions, answers and other sets, known by their sizes and that of their
overlap.

Sizes are numbers of pixels, tokens or ids, or areas.
"""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask, sums_by_code
from app.kernel.numerics.weighted_units import WeightedUnits

Codes = NDArray[np.intp]


class Overlaps(WeightedUnits):
    """Sizes of the actual and the predicted set of each of U items. Leading axes of the weights are a batch over the
    same items.

    Metrics of label sets that are means over samples take it in place of label sets.

    Attributes:
        actual: (U) sizes of the actual sets.
        predicted_size: (U) sizes of the predicted sets.
        hits: (U) sizes of the overlaps.
        right: (U), True if both sets are equal.
        codes: (U) class codes of the items; None if they have none.
        n_classes: Number of classes.

    Args:
        actual: (U), 0 or more.
        predicted: (U), 0 or more.
        common: (U), at most the smaller of both.
        exact: (U), True if both sets are equal; None to conclude it from the sizes.
        codes: (U), or None.
        n_classes: Number of classes.
        weights: (..., U), 0 or more; None is 1 each.
    """

    def __init__(
        self,
        actual: ArrayLike,
        predicted: ArrayLike,
        common: ArrayLike,
        *,
        exact: Mask | None = None,
        codes: Codes | None = None,
        n_classes: int = 0,
        weights: ArrayLike | None = None,
    ) -> None:
        self.actual, self.predicted_size, self.hits = (
            np.asarray(part, dtype=np.float64) for part in (actual, predicted, common)
        )
        super().__init__(self.actual.size, weights)
        same = (self.hits == self.actual) & (self.hits == self.predicted_size)
        self.right: Mask = same if exact is None else exact
        self.codes, self.n_classes = codes, n_classes

    def part(self, chosen: Codes) -> "Overlaps":
        """Some of the items, without weights."""
        sizes = (one.take(chosen) for one in (self.actual, self.predicted_size, self.hits))
        codes = None if self.codes is None else self.codes.take(chosen)
        return Overlaps(*sizes, exact=self.right.take(chosen), codes=codes, n_classes=self.n_classes)

    @property
    def true_values(self) -> Array:
        """Actual size and class of each item (U, 2)."""
        return np.stack([self.actual, np.zeros(self.n_units) if self.codes is None else self.codes], axis=1)

    @cached_property
    def union(self) -> Array:
        """Sizes of the unions (U)."""
        return self.actual + self.predicted_size - self.hits

    @property
    def classes(self) -> tuple[Array, Array, Array]:
        """Sums (..., K) by class of the actual, the predicted and the overlapping sizes.

        Raises:
            ValueError: the items have no class.
        """
        if self.codes is None:
            raise ValueError("expected items with a class")
        mass = np.ones(self.n_units) if self.weights is None else self.weights
        actual, predicted, common = (
            sums_by_code(self.codes, mass * part, self.n_classes)
            for part in (self.actual, self.predicted_size, self.hits)
        )
        return actual, predicted, common
