"""The labels that samples have and those that were predicted, set by set."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask, lazy


class LabelSets:
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
        self.weights: Array | None = None if weights is None else np.asarray(weights, dtype=np.float64)
        if self.truth.ndim != 2 or self.truth.shape != self.predicted.shape or not len(self.truth):
            raise ValueError(f"expected two tables (n, L), got {self.truth.shape} and {self.predicted.shape}")
        self.n_samples, self.n_labels = self.truth.shape

    def with_weights(self, weights: Array | None) -> "LabelSets":
        """The same samples weighted otherwise; what is known of each is not counted again."""
        other = LabelSets.__new__(LabelSets)
        known = {"hits", "actual", "predicted_size", "right"} & self.__dict__.keys()
        other.__dict__.update({name: self.__dict__[name] for name in known})
        other.truth, other.predicted, other.weights = self.truth, self.predicted, weights
        other.n_samples, other.n_labels = self.n_samples, self.n_labels
        return other

    @lazy
    def n(self) -> Array:
        """Weight of all samples, shape (...)."""
        return np.asarray(float(self.n_samples)) if self.weights is None else self.weights.sum(axis=-1)

    @lazy
    def hits(self) -> Array:
        """Labels (n) that a sample has and that were predicted for it."""
        return _sizes(self.truth & self.predicted)

    @lazy
    def actual(self) -> Array:
        """Labels (n) that it has."""
        return _sizes(self.truth)

    @lazy
    def predicted_size(self) -> Array:
        """Labels (n) that were predicted for it."""
        return _sizes(self.predicted)

    @lazy
    def right(self) -> Mask:
        """Samples (n) whose labels are those predicted, and no others."""
        same: Mask = (self.hits == self.actual) & (self.hits == self.predicted_size)
        return same

    def mean(self, values: Array) -> Array:
        """Mean over the samples of values (n), shape (...)."""
        return values.mean() if self.weights is None else self.weights @ values / self.n


def _sizes(members: NDArray[np.bool_]) -> Array:
    """How many labels (n) each set has: eight at a time."""
    sizes: Array = np.bitwise_count(np.packbits(members, axis=1)).sum(axis=1, dtype=np.float64)
    return sizes
