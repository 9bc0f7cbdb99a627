"""Samples with several labels each: pairs of actual and predicted labels, scores and sets."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask, lazy
from app.kernel.numerics.weighted_units import WeightedUnits
from app.kernel.samples.scores import Scores

# Cells of a label: neither, predicted only, actual only, both. The index of a cell is 2 * actual + predicted.
CELLS = 4


class LabelPairs:
    """Cells (L, n) that samples are in for each label.

    Args:
        truth: (n, L), True if the sample has the label.
        predicted: (n, L), True if it was predicted.
    """

    def __init__(self, truth: Mask, predicted: Mask) -> None:
        self.n_samples, self.n_labels = truth.shape
        self.cells = np.ascontiguousarray((2 * truth.view(np.uint8) + predicted.view(np.uint8)).T)

    def counts(self, weights: Array | None = None) -> NDArray[Any]:
        """Samples (L, 4) in each cell of each label, or their weights (n)."""
        return np.stack([np.bincount(column, weights, CELLS) for column in self.cells])

    def deviations(self, values: Array) -> Array:
        """Deviations (n) of the sums of values (L, 4) by cell from their mean."""
        sums = self.sums(values)
        found: Array = sums - np.ones(self.n_samples) @ sums / self.n_samples
        return found

    def squares(self, values: Array) -> float:
        """Sum of squares of the sums of values (L, 4) by cell, which add up to 0."""
        sums = self.sums(values)
        return float(sums @ sums)

    def sums(self, values: Array) -> Array:
        """Sum over the labels of each sample (n) of the values (L, 4) of their cells."""
        summed = np.zeros(self.n_samples)
        for column, own in zip(self.cells, values, strict=True):
            summed += own.take(column)
        return summed


class LabelScores(Scores, WeightedUnits):
    """Scores of the labels of n samples, beside the truth.

    Statistics of the order of the samples by the score of a label are those of `Scores` for a class.

    Args:
        truth: (n, L), True if the sample has the label.
        probabilities: (n, L), higher for more likely labels.
        weights: (..., n), 0 or more; None is 1 each.
    """

    def __init__(self, truth: NDArray[np.bool_], probabilities: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.truth = np.asarray(truth, dtype=bool)
        self.probabilities = np.ascontiguousarray(probabilities, dtype=np.float64)
        if self.truth.ndim != 2 or self.truth.shape != self.probabilities.shape or not len(self.truth):
            raise ValueError(f"expected two tables (n, L), got {self.truth.shape} and {self.probabilities.shape}")
        self.n_samples, self.n_classes = self.truth.shape
        WeightedUnits.__init__(self, self.n_samples, weights)
        self._orders, self._row_values = {}, {}

    def with_weights(self, weights: ArrayLike | None) -> "LabelScores":
        """Copy with other weights; the order of the labels of each sample is kept."""
        other = LabelScores(self.truth, self.probabilities, weights)
        other._orders = self._orders
        other.__dict__.update({name: self.__dict__[name] for name in ("in_order", "_terms") if name in self.__dict__})
        return other

    @property
    def is_mirrored(self) -> bool:
        """False: each of two labels has its own order."""
        return False

    def members(self, code: int | None) -> Mask:
        """Samples (n) with a label; without one the labels (n L) of all, sample after sample."""
        return self.truth.ravel() if code is None else self.truth[:, code]

    def of_members(self, values: Array) -> Array:
        """Sum (n) of the values (L) of the labels of each sample."""
        summed: Array = self.truth @ values
        return summed

    @lazy
    def n(self) -> Array:
        """Weight of all samples, shape (...)."""
        return np.asarray(float(self.n_samples)) if self.weights is None else self.weights.sum(axis=-1)

    @lazy
    def actual(self) -> Array:
        """Weight of the samples with each label, shape (..., L)."""
        return self._held(self.truth)

    @lazy
    def rest(self) -> Array:
        """Weight of the samples without each label, shape (..., L), without the rounding of n - P."""
        return self._held(~self.truth)

    def _held(self, those: Mask) -> Array:
        members = those.astype(np.float64)
        found: Array = members.sum(axis=0) if self.weights is None else self.weights @ members
        return found

    @property
    def area_of_entries(self) -> Array:
        """Area under the ROC curve of all labels in one order, shape (...)."""
        return self.ranking(None).auc

    @lazy
    def in_order(self) -> "OrderedLabels":
        """Labels of every sample by falling score."""
        return OrderedLabels(self.truth, self.probabilities)


class OrderedLabels:
    """Labels (n, L) of every sample by falling score; labels of one score share their counts.

    Attributes:
        relevant: The sample has the label at this place.
        above: Labels with at least the score of this place.
        relevant_above: Labels of the sample among them.
        first: Labels (n) that share the highest score, and `relevant_first` (n) those of the sample among them.
        count: Labels (n) of the sample.
    """

    def __init__(self, truth: NDArray[np.bool_], scores: Array) -> None:
        size = truth.shape[1]
        order = np.argsort(-scores, axis=1, kind="stable")
        falling = np.take_along_axis(scores, order, axis=1)
        self.relevant = np.take_along_axis(truth, order, axis=1)
        last = np.ones(truth.shape, dtype=bool)
        last[:, :-1] = falling[:, :-1] != falling[:, 1:]
        places = np.where(last, np.arange(size), size)
        ends = np.minimum.accumulate(places[:, ::-1], axis=1)[:, ::-1]
        found = np.cumsum(self.relevant, axis=1)
        self.above = (ends + 1).astype(np.float64)
        self.relevant_above = np.take_along_axis(found, ends, axis=1).astype(np.float64)
        self.first, self.relevant_first = self.above[:, 0], self.relevant_above[:, 0]
        self.count = found[:, -1].astype(np.float64)


class LabelSets(WeightedUnits):
    """Actual and predicted label sets of n samples. Leading axes of the weights are a batch over the same samples.

    Args:
        truth: (n, L), True if the sample has the label.
        predicted: (n, L), True if it was predicted.
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

    @lazy
    def pairs(self) -> LabelPairs:
        """Actual and predicted labels."""
        return LabelPairs(self.truth, self.predicted)

    @lazy
    def hits(self) -> Array:
        """Number of labels (n) of a sample that were predicted for it."""
        return self._count((0.0, 0.0, 0.0, 1.0))

    @lazy
    def actual(self) -> Array:
        """Number of labels (n) of a sample."""
        return self._count((0.0, 0.0, 1.0, 1.0))

    @lazy
    def predicted_size(self) -> Array:
        """Number of labels (n) predicted for a sample."""
        return self._count((0.0, 1.0, 0.0, 1.0))

    @lazy
    def right(self) -> Mask:
        """Mask (n) of the samples whose labels are exactly those predicted."""
        same: Mask = (self.hits == self.actual) & (self.hits == self.predicted_size)
        return same

    def _count(self, cells: tuple[float, ...]) -> Array:
        """Number of labels (n) in some of the cells of `LabelPairs`."""
        return self.pairs.sums(np.tile(cells, (self.n_labels, 1)))
