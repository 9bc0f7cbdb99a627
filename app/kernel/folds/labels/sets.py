"""Samples with sets of labels that go by in batches: what their metrics and the limits of these need of them adds up.

Metrics of the labels' tables need counts, their limits the second moments of the cells (`LabelMoments`). Metrics of
single samples need how many labels a sample has, how many were predicted and how many of these it has: samples that
agree in all three are counted.
"""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Groups
from app.kernel.folds.labels.folded import FoldedLabels
from app.kernel.folds.labels.groups import ValuesInGroups
from app.kernel.folds.labels.means import said_of_samples
from app.kernel.folds.labels.scores import LabelScoresFold
from app.kernel.folds.orders.stretches import InOrder
from app.kernel.metrics.card import Metric
from app.kernel.metrics.families.labels.sets import (
    hamming_loss,
    samples_f1,
    samples_jaccard,
    samples_precision,
    samples_recall,
    subset_accuracy,
)
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.labels.moments import LabelMoments
from app.kernel.samples.labels.sets import CountedSets, LabelSets

# What is said of the sets of a sample: means over the samples, of values that all of them have.
OF_SETS: Final[tuple[Metric[Any], ...]] = (
    subset_accuracy,
    hamming_loss,
    samples_precision,
    samples_recall,
    samples_f1,
    samples_jaccard,
)
# Sizes of sets that are gathered before they are counted together.
_GATHERED: Final = 1 << 18


class LabelFold:
    """Samples of L labels. States of parts are merged in any order and give the same answers, bit for bit.

    Args:
        n_labels: L.
        scores: Takes the probabilities of the labels, where there are some.
        grouped: Do samples have groups?
    """

    def __init__(self, n_labels: int, scores: LabelScoresFold | None = None, *, grouped: bool = False) -> None:
        self._moments, self._scores = LabelMoments(n_labels), scores
        self._in_groups = ValuesInGroups(OF_SETS) if grouped else None
        self._sizes: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    @property
    def n_groups(self) -> int:
        """How many groups there were when they were looked at last."""
        return 0 if self._in_groups is None else self._in_groups.n_groups

    @property
    def bytes_of_groups(self) -> int:
        """Bytes in memory for sums within groups then."""
        of_scores = 0 if self._scores is None else self._scores.bytes_of_groups
        return of_scores + (0 if self._in_groups is None else self._in_groups.nbytes)

    def add(
        self, truth: Mask, predicted: Mask, probabilities: Array | None = None, groups: Groups | None = None
    ) -> None:
        """Add samples.

        Args:
            truth: Labels that they have (n, L).
            predicted: Labels that were predicted (n, L).
            probabilities: Of the labels (n, L).
            groups: A number for the group of each (n).

        Raises:
            ValueError: there are probabilities or groups where there are to be none, or the other way round, the shapes
                do not fit, or a probability is no number in [0, 1]. Nothing was added then.
        """
        if truth.shape != predicted.shape or truth.shape[1:] != (self._moments.n_labels,):
            expected = f"expected two tables (n, {self._moments.n_labels})"
            raise ValueError(f"{expected}, got {truth.shape} and {predicted.shape}")
        if (self._scores is None) != (probabilities is None) or (self._in_groups is None) != (groups is None):
            raise ValueError("expected probabilities and groups of all samples, or of none")
        if self._scores is not None and probabilities is not None:
            self._scores.add(truth, probabilities, groups)
        if not len(truth):
            return
        self._moments.add(truth, predicted)
        sets, most = LabelSets(truth, predicted), self._moments.n_labels + 1
        if self._in_groups is not None and groups is not None:
            self._in_groups.add(groups, said_of_samples(OF_SETS, sets))
        codes = (sets.hits * most + sets.actual) * most + sets.predicted_size
        self._gather([np.unique(codes.astype(np.int64), return_counts=True)])

    def merge(self, other: "LabelFold") -> None:
        """Take in another state, of the same labels.

        Raises:
            ValueError: it has another number of labels, or one of them alone has probabilities or groups.
        """
        self._check_mergeable(other)
        if self._scores is not None and other._scores is not None:
            self._scores.merge(other._scores)
        self._moments.merge(other._moments)
        self._gather(other._sizes)
        if self._in_groups is not None and other._in_groups is not None:
            self._in_groups.merge(other._in_groups)

    def close(self) -> None:
        """Delete the files."""
        if self._scores is not None:
            self._scores.close()

    def finish(self, in_order: InOrder = map) -> FoldedLabels[LabelMoments]:
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
        scores = None if self._scores is None else self._scores.finish(in_order)
        return FoldedLabels(self._moments, sets, scores, self._in_groups)

    def _check_mergeable(self, other: "LabelFold") -> None:
        own, theirs = self._moments.n_labels, other._moments.n_labels
        if own != theirs:
            raise ValueError(f"states of {own} and of {theirs} labels cannot be merged")
        if (self._scores is None) != (other._scores is None):
            raise ValueError("states with probabilities and without cannot be merged")
        if (self._in_groups is None) != (other._in_groups is None):
            raise ValueError("states with groups and without cannot be merged")

    def _gather(self, sizes: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> None:
        self._sizes += sizes
        if self._sizes and sum(codes.size for codes, _ in self._sizes[1:]) > max(_GATHERED, self._sizes[0][0].size):
            self._sizes = [self._counted()]

    def _counted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        codes, places = np.unique(np.concatenate([codes for codes, _ in self._sizes]), return_inverse=True)
        times = np.zeros(codes.size, dtype=np.int64)
        np.add.at(times, places, np.concatenate([times for _, times in self._sizes]))
        return codes, times
