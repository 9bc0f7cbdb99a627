"""Samples with sets of labels that go by in batches: what their metrics and the limits of these need of them adds up.

Metrics of the labels' tables need counts, their limits the second moments of the cells (`LabelMoments`). Metrics of
single samples need how many labels a sample has, how many were predicted and how many of these it has: samples that
agree in all three are counted.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.not_folded import NotFolded
from app.kernel.matrix.label_table import LabelTable
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.labels.moments import LabelMoments
from app.kernel.samples.labels.sets import CountedSets, LabelSets
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.of_samples.units import Units

# Sizes of sets that are gathered before they are counted together.
_GATHERED: Final = 1 << 18


class LabelFold:
    """Samples of L labels. States of parts are merged in any order and give the same answers, bit for bit.

    Args:
        n_labels: L.
    """

    def __init__(self, n_labels: int) -> None:
        self._moments = LabelMoments(n_labels)
        self._sizes: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []

    def add(self, truth: Mask, predicted: Mask) -> None:
        """Add samples: labels that they have (n, L), and those that were predicted (n, L)."""
        self._moments.add(truth, predicted)
        sets, most = LabelSets(truth, predicted), self._moments.n_labels + 1
        codes = (sets.hits * most + sets.actual) * most + sets.predicted_size
        self._gather([np.unique(codes.astype(np.int64), return_counts=True)])

    def merge(self, other: "LabelFold") -> None:
        """Take in another state, of the same labels."""
        self._moments.merge(other._moments)
        self._gather(other._sizes)

    def finish(self) -> "FoldedLabels":
        """What is left of the samples.

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
        return FoldedLabels(self._moments, sets)

    def _gather(self, sizes: list[tuple[NDArray[np.int64], NDArray[np.int64]]]) -> None:
        self._sizes += sizes
        if sum(codes.size for codes, _ in self._sizes[1:]) > max(_GATHERED, self._sizes[0][0].size):
            self._sizes = [self._counted()]

    def _counted(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        codes, places = np.unique(np.concatenate([codes for codes, _ in self._sizes]), return_inverse=True)
        times = np.zeros(codes.size, dtype=np.int64)
        np.add.at(times, places, np.concatenate([times for _, times in self._sizes]))
        return codes, times


class FoldedLabels(Units):
    """Samples with labels that went by: metrics and limits in closed form, and nothing that is resampled.

    Args:
        pairs: The cells of their labels.
        sets: The sizes of their sets.
    """

    def __init__(self, pairs: LabelMoments, sets: CountedSets) -> None:
        self.pairs, self._sets = pairs, sets

    @property
    def n_units(self) -> int:
        """How many samples."""
        return self.pairs.n_samples

    @property
    def width(self) -> int:
        """Nothing can be drawn, whatever it costs."""
        return 1

    @property
    def at_hand(self) -> bool:
        """They are not."""
        return False

    @property
    def times(self) -> Array:
        """How many samples there are of each of the sizes of sets."""
        assert self._sets.weights is not None  # noqa: S101 - sets that are counted have some
        return self._sets.weights

    def subject(self, weights: Array | None = None) -> Subject:
        """Tables of the labels, and sets. Raises NotFolded: other weights."""
        if weights is not None:
            raise NotFolded("samples that went by have no weights of their own")
        _, false, missed, hits = self.pairs.counts.T.astype(np.float64)
        table = LabelTable(hits, missed + hits, false + hits, np.array([float(self.n_units)]))
        return Subject({Inputs.MATRIX: table, Inputs.LABELS: self._sets})

    def part(self, chosen: Codes) -> "FoldedLabels":
        """Raises NotFolded."""
        raise NotFolded(f"{chosen.size} samples that went by cannot be chosen")
