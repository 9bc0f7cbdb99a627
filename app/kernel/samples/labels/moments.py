"""What samples that went by leave behind of their labels: how often each two cells of labels came together.

A sum over the labels of a sample of numbers by the cell that each label is in is linear in these cells. So squares of
such sums, added up over the samples, follow from second moments: the counts of pairs of cells, which are whole numbers.
"""

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.labels.pairs import CELLS, LabelPairs

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
