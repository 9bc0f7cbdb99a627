"""Pairs of an actual and a predicted set: regions, answers and other sets, known by their sizes and that of their
overlap.

Sizes are numbers of pixels, tokens or ids, or areas.
"""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask
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
            self._by_class(mass * part) for part in (self.actual, self.predicted_size, self.hits)
        )
        return actual, predicted, common

    def _by_class(self, values: Array) -> Array:
        """Sums (..., K) by class of values (..., U)."""
        order, present, starts = self._in_classes
        found = np.zeros((*values.shape[:-1], self.n_classes))
        found[..., present] = np.add.reduceat(values.take(order, axis=-1), starts, axis=-1)
        return found

    @cached_property
    def _in_classes(self) -> tuple[Codes, Codes, Codes]:
        """Items sorted by class, the classes that occur, and the first index of each."""
        codes = np.asarray(self.codes)
        order = np.argsort(codes, kind="stable")
        present, starts = np.unique(codes.take(order), return_index=True)
        return order, present, starts
