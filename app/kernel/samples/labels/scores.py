"""Scores of labels of which a sample can have several: each label against its absence, and the labels of a sample
against each other.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask, each, lazy
from app.kernel.numerics.weighted_units import WeightedUnits
from app.kernel.samples.rankings.ranking import Ranking
from app.kernel.samples.scores import Scores


class LabelScores(Scores, WeightedUnits):
    """What a model said about every label of n samples, beside the truth.

    What a `Scores` reads off the order of the samples by the score of a class is read off here in the same way.

    Args:
        truth: (n, L), does the sample have the label?
        probabilities: (n, L), the higher the more likely.
        weights: (..., n), 0 or more; None is 1 each.
    """

    def __init__(self, truth: NDArray[np.bool_], probabilities: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.truth = np.asarray(truth, dtype=bool)
        self.probabilities = np.ascontiguousarray(probabilities, dtype=np.float64)
        if self.truth.ndim != 2 or self.truth.shape != self.probabilities.shape or not len(self.truth):
            raise ValueError(f"expected two tables (n, L), got {self.truth.shape} and {self.probabilities.shape}")
        self.n_samples, self.n_classes = self.truth.shape
        WeightedUnits.__init__(self, self.n_samples, weights)
        self._rankings = {}

    def with_weights(self, weights: ArrayLike | None) -> "LabelScores":
        """The same samples weighted otherwise; the order of the labels of each is kept."""
        other = LabelScores(self.truth, self.probabilities, weights)
        other.__dict__.update({name: self.__dict__[name] for name in ("in_order", "_terms") if name in self.__dict__})
        return other

    @property
    def is_mirrored(self) -> bool:
        """Never: two labels have an order each."""
        return False

    def members(self, code: int) -> Mask:
        """Samples (n) with a label."""
        return self.truth[:, code]

    @lazy
    def n(self) -> Array:
        """Weight of all samples, shape (...)."""
        return np.asarray(float(self.n_samples)) if self.weights is None else self.weights.sum(axis=-1)

    @lazy
    def actual(self) -> Array:
        """Weight of the samples with each label, shape (..., L)."""
        members = self.truth.astype(np.float64)
        found: Array = members.sum(axis=0) if self.weights is None else self.weights @ members
        return found

    @lazy
    def rest(self) -> Array:
        """Weight of those without it, shape (..., L)."""
        return each(self.n) - self.actual

    def _rank(self, code: int) -> Ranking:
        order, falling, weights = self._falling(self.columns[code])
        return Ranking(falling, self.truth[:, code].take(order), weights)

    @lazy
    def in_order(self) -> "OrderedLabels":
        """The labels of every sample by falling score."""
        return OrderedLabels(self.truth, self.probabilities)


class OrderedLabels:
    """The labels (n, L) of every sample by falling score, those with one score together.

    Attributes:
        relevant: Has the sample the label at this place?
        above: Labels with at least the score of this place.
        relevant_above: Those of them that the sample has.
        first: Labels (n) that share the highest score, and `relevant_first` (n) of them that the sample has.
        count: Labels (n) that the sample has.
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
