"""Items of which each is a set beside a set: a region and the one that was found, an answer and the one that was given.

How much belongs to both is all that is known: numbers of pixels, of tokens, of ids, or areas.
"""

from functools import cached_property
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.weighted_units import WeightedUnits

Codes = NDArray[np.intp]


class Overlaps(WeightedUnits):
    """The sizes of two sets for each of U items. Leading axes of the weights are a batch over the same items.

    Those metrics of sets of labels that look at one sample after another take it as they take label sets.

    Attributes:
        actual: (U) how much there is.
        predicted_size: (U) how much was predicted.
        hits: (U) how much belongs to both.
        right: (U) is all that was predicted exactly what is there?
        codes: (U) the class of each item; None where items have none.
        n_classes: How many classes there are.

    Args:
        actual: (U), 0 or more.
        predicted: (U), 0 or more.
        common: (U), at most the smaller of both.
        exact: (U); None where that is so if both sizes are those of the common part.
        codes: (U), or None.
        n_classes: How many classes.
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

    def with_weights(self, weights: ArrayLike | None) -> Self:
        """The same items weighted otherwise."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__)
        other.__dict__.pop("classes", None)
        other.weights = None if weights is None else np.asarray(weights, dtype=np.float64)
        return other

    @cached_property
    def union(self) -> Array:
        """How much belongs to either (U)."""
        return self.actual + self.predicted_size - self.hits

    @cached_property
    def classes(self) -> tuple[Array, Array, Array]:
        """Sums (..., K) of what is there, of what was predicted and of what belongs to both, class by class.

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
        """Sums (..., K) of values (..., U)."""
        order, present, starts = self._in_classes
        found = np.zeros((*values.shape[:-1], self.n_classes))
        found[..., present] = np.add.reduceat(values.take(order, axis=-1), starts, axis=-1)
        return found

    @cached_property
    def _in_classes(self) -> tuple[Codes, Codes, Codes]:
        """Items class by class, the classes that occur, and where each begins."""
        codes = np.asarray(self.codes)
        order = np.argsort(codes, kind="stable")
        present, starts = np.unique(codes.take(order), return_index=True)
        return order, present, starts
