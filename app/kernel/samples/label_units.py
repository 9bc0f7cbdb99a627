"""What samples have of each label and what was predicted of it, four labels to a byte: counted and summed by table.

A byte has 256 values, so a sum over four labels of any numbers that follow from these two facts is one look-up.

What samples that went by leave behind of their labels: how often each two cells of labels came together.

A sum over the labels of a sample of numbers by the cell that each label is in is linear in these cells. So squares of
such sums, added up over the samples, follow from second moments: the counts of pairs of cells, which are whole numbers.

Scores of labels of which a sample can have several: each label against its absence, and the labels of a sample
against each other.

The labels that samples have and those that were predicted, set by set.
"""

from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask, each, lazy
from app.kernel.numerics.weighted_units import WeightedUnits
from app.kernel.samples.rankings import Ranking
from app.kernel.samples.scores import Scores

Bytes = NDArray[np.uint8]

# Cells of a label: neither, predicted alone, there alone, both. The place of a cell is 2 * there + predicted.
CELLS = 4
_LABELS = 4
_VALUES = np.arange(256)
_THERE, _PREDICTED = ((_VALUES[:, None] >> np.arange(first, first - _LABELS, -1)) & 1 for first in (7, 3))
# (256, 4), the cell that each of the four labels of a byte is in.
_CELL = 2 * _THERE + _PREDICTED
# (256, 4, 4), 1 for the cell of each label.
_IN_CELL = (_CELL[..., None] == np.arange(CELLS)).astype(np.int64)


class LabelPairs:
    """Two facts about each of L labels of n samples.

    Args:
        truth: (n, L), does the sample have the label?
        predicted: (n, L), was it predicted?
    """

    def __init__(self, truth: Mask, predicted: Mask) -> None:
        self.n_samples, self.n_labels = truth.shape
        there, said = (np.packbits(members, axis=1).T for members in (truth, predicted))
        columns: Bytes = np.empty((2 * len(there), self.n_samples), dtype=np.uint8)
        # Labels 8j to 8j + 3 are in the high half of byte j.
        columns[0::2] = (there & 0xF0) | (said >> 4)
        columns[1::2] = (there << 4) | (said & 0x0F)
        self.columns = columns[: -(-self.n_labels // _LABELS)]

    @cached_property
    def counts(self) -> NDArray[np.int64]:
        """Samples (L, 4) in each cell of each label."""
        histograms = np.stack([np.bincount(column, minlength=256) for column in self.columns])
        found: NDArray[np.int64] = np.tensordot(histograms, _IN_CELL, axes=1).reshape(-1, CELLS)[: self.n_labels]
        return found

    def deviations(self, values: Array) -> Array:
        """Of these sums from their mean (n)."""
        sums = self.sums(values)
        found: Array = sums - np.ones(self.n_samples) @ sums / self.n_samples
        return found

    def squares(self, values: Array) -> float:
        """Sum of the squares of these sums where they add up to 0."""
        sums = self.sums(values)
        return float(sums @ sums)

    def sums(self, values: Array) -> Array:
        """For each sample (n) the sum over its labels of the values (L, 4) of the cells that these are in."""
        filled = np.zeros((len(self.columns) * _LABELS, CELLS))
        filled[: self.n_labels] = values
        summed = np.zeros(self.n_samples)
        for column, own in zip(self.columns, filled.reshape(-1, _LABELS, CELLS), strict=True):
            by_value = np.take_along_axis(own.T[None], _CELL[:, None], axis=1)[:, 0].sum(axis=-1)
            summed += by_value.take(column)
        return summed


Counts = NDArray[np.int64]

# Cells and rows whose products are added up in float32: each is 0 or 1, so the sums are exact.
_ENTRIES, _MOST_ROWS, _FEWEST_ROWS = 1 << 23, 1 << 16, 1 << 10
# Products of so many samples fit into 64 bits.
_MANY = 3_000_000_000


class LabelMoments:
    """Two facts about each of L labels of samples that are not at hand any more. Adds up in any order.

    Args:
        n_labels: L.

    Attributes:
        counts: (L, 4), samples in each cell of each label, as `LabelPairs` has them.
        pairs: (3 L, 3 L), samples that are in two cells at once: those of all labels but the first, cell by cell.
    """

    def __init__(self, n_labels: int) -> None:
        self.n_samples, self.n_labels = 0, n_labels
        self.counts: Counts = np.zeros((n_labels, CELLS), dtype=np.int64)
        size = (CELLS - 1) * n_labels
        self.pairs: Counts = np.zeros((size, size), dtype=np.int64)
        self._centred: Array | None = None

    def add(self, truth: Mask, predicted: Mask) -> None:
        """Add samples: labels that they have (n, L), and those that were predicted (n, L)."""
        self._centred = None
        self.n_samples += len(truth)
        self.counts += LabelPairs(truth, predicted).counts
        rows = min(max(_ENTRIES // len(self.pairs), _FEWEST_ROWS), _MOST_ROWS)
        for start in range(0, len(truth), rows):
            there, said = truth[start : start + rows], predicted[start : start + rows]
            cells = np.concatenate([said & ~there, there & ~said, there & said], axis=1).astype(np.float32)
            self.pairs += (cells.T @ cells).astype(np.int64)

    def merge(self, other: "LabelMoments") -> None:
        """Take in others, of the same labels."""
        self._centred = None
        self.n_samples += other.n_samples
        self.counts = self.counts + other.counts
        self.pairs = self.pairs + other.pairs

    def deviations(self, values: Array) -> Array:
        """One number, whose square is that of the deviations of all samples: of sums over their labels of the values
        (L, 4) of the cells that these are in, from their mean.
        """
        return np.sqrt([self.squares(values)])

    def squares(self, values: Array) -> float:
        """That square."""
        if self._centred is None:
            self._centred = self._products()
        each = (values[:, 1:] - values[:, :1]).T.ravel()
        return max(float(each @ self._centred @ each), 0.0)

    def _products(self) -> Array:
        """Sums (3 L, 3 L) of products of deviations, in whole numbers up to one division, row by row."""
        totals, whole = self.counts[:, 1:].T.ravel(), object if self.n_samples > _MANY else np.int64
        found = np.empty(self.pairs.shape)
        for row, pairs, total in zip(found, self.pairs, totals.astype(whole), strict=True):
            row[:] = (self.n_samples * pairs.astype(whole) - total * totals.astype(whole)) / self.n_samples
        return found


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
