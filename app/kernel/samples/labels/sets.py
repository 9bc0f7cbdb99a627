"""The labels that samples have and those that were predicted, set by set."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask, lazy
from app.kernel.numerics.weighted_units import WeightedUnits
from app.kernel.samples.labels.pairs import LabelPairs


class LabelSets(WeightedUnits):
    """Sets of labels of n samples. Leading axes of the weights are a batch over the same samples.

    Args:
        truth: (n, L), does the sample have the label?
        predicted: (n, L), was it predicted?
        weights: (..., n), 0 or more; None is 1 each.

    Raises:
        ValueError: the shapes do not fit, or there is no sample.
    """

    def __init__(
        self, truth: NDArray[np.bool_], predicted: NDArray[np.bool_], weights: ArrayLike | None = None
    ) -> None:
        self.truth, self.predicted = np.asarray(truth, dtype=bool), np.asarray(predicted, dtype=bool)
        if self.truth.ndim != 2 or self.truth.shape != self.predicted.shape or not len(self.truth):
            raise ValueError(f"expected two tables (n, L), got {self.truth.shape} and {self.predicted.shape}")
        self.n_samples, self.n_labels = self.truth.shape
        super().__init__(self.n_samples, weights)

    def with_weights(self, weights: Array | None) -> "LabelSets":
        """The same samples weighted otherwise; what is known of each is not counted again."""
        other = LabelSets.__new__(LabelSets)
        other.__dict__.update(self.__dict__)
        other.weights = weights
        return other

    @lazy
    def pairs(self) -> LabelPairs:
        """What is there and what was predicted, packed."""
        return LabelPairs(self.truth, self.predicted)

    @lazy
    def hits(self) -> Array:
        """Labels (n) that a sample has and that were predicted for it."""
        return self._count((0.0, 0.0, 0.0, 1.0))

    @lazy
    def actual(self) -> Array:
        """Labels (n) that it has."""
        return self._count((0.0, 0.0, 1.0, 1.0))

    @lazy
    def predicted_size(self) -> Array:
        """Labels (n) that were predicted for it."""
        return self._count((0.0, 1.0, 0.0, 1.0))

    @lazy
    def right(self) -> Mask:
        """Samples (n) whose labels are those predicted, and no others."""
        same: Mask = (self.hits == self.actual) & (self.hits == self.predicted_size)
        return same

    def _count(self, cells: tuple[float, ...]) -> Array:
        """Labels (n) in some of the cells of `LabelPairs`."""
        return self.pairs.sums(np.tile(cells, (self.n_labels, 1)))


class CountedSets(LabelSets):
    """Sets of which the sizes are known, and in how many samples these are so.

    Args:
        hits: Labels (m) that are there and predicted.
        actual: Labels (m) that are there.
        predicted_size: Labels (m) that are predicted.
        n_labels: All labels.
        times: (m), how many samples.
    """

    def __init__(self, hits: Array, actual: Array, predicted_size: Array, n_labels: int, times: Array) -> None:
        WeightedUnits.__init__(self, hits.size, times)
        self.n_samples, self.n_labels = hits.size, n_labels
        # In the places where sets put what they count.
        self.__dict__.update(hits=hits, actual=actual, predicted_size=predicted_size)
