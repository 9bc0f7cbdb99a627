"""Samples with sets of labels that go by in batches: what their metrics and the limits of these need of them adds up.

Metrics of the labels' tables need counts, their limits the second moments of the cells (`LabelMoments`). Metrics of
single samples need how many labels a sample has, how many were predicted and how many of these it has: samples that
agree in all three are counted.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.labels.folded import FoldedLabels
from app.kernel.folds.labels.scores import LabelScoresFold
from app.kernel.folds.orders.stretches import InOrder
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.labels.moments import LabelMoments
from app.kernel.samples.labels.sets import CountedSets, LabelSets

# Sizes of sets that are gathered before they are counted together.
_GATHERED: Final = 1 << 18


class LabelFold:
    """Samples of L labels. States of parts are merged in any order and give the same answers, bit for bit.

    Args:
        n_labels: L.
        scores: Takes the probabilities of the labels, where there are some.
    """

    def __init__(self, n_labels: int, scores: LabelScoresFold | None = None) -> None:
        self._moments, self._scores = LabelMoments(n_labels), scores
        self._sizes: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    def add(self, truth: Mask, predicted: Mask, probabilities: Array | None = None) -> None:
        """Add samples: labels that they have (n, L), those that were predicted (n, L), and their probabilities (n, L).

        Raises:
            ValueError: there are probabilities where there are to be none, or the other way round.
        """
        if (self._scores is None) != (probabilities is None):
            raise ValueError("expected probabilities of all samples, or of none")
        if self._scores is not None and probabilities is not None:
            self._scores.add(truth, probabilities)
        self._moments.add(truth, predicted)
        sets, most = LabelSets(truth, predicted), self._moments.n_labels + 1
        codes = (sets.hits * most + sets.actual) * most + sets.predicted_size
        self._gather([np.unique(codes.astype(np.int64), return_counts=True)])

    def merge(self, other: "LabelFold") -> None:
        """Take in another state, of the same labels."""
        self._moments.merge(other._moments)
        self._gather(other._sizes)
        if self._scores is not None and other._scores is not None:
            self._scores.merge(other._scores)

    def close(self) -> None:
        """Delete the files."""
        if self._scores is not None:
            self._scores.close()

    def finish(self, in_order: InOrder = map) -> FoldedLabels:
        """What is left of the samples.

        Args:
            in_order: Has stretches of the orders looked at, here or in other processes.

        Raises:
            ValueError: there is no sample.
        """
        if not self._sizes:
            raise ValueError("expected at least one sample")
        codes, times = self._counted()
        most = self._moments.n_labels + 1
        hits, actual, predicted = (
            part.astype(np.float64) for part in (codes // most**2, codes // most % most, codes % most)
        )
        sets = CountedSets(hits, actual, predicted, self._moments.n_labels, times.astype(np.float64))
        return FoldedLabels(self._moments, sets, None if self._scores is None else self._scores.finish(in_order))

    def _gather(self, sizes: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> None:
        self._sizes += sizes
        if sum(codes.size for codes, _ in self._sizes[1:]) > max(_GATHERED, self._sizes[0][0].size):
            self._sizes = [self._counted()]

    def _counted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        codes, places = np.unique(np.concatenate([codes for codes, _ in self._sizes]), return_inverse=True)
        times = np.zeros(codes.size, dtype=np.int64)
        np.add.at(times, places, np.concatenate([times for _, times in self._sizes]))
        return codes, times
