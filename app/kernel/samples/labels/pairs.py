"""What samples have of each label and what was predicted of it, four labels to a byte: counted and summed by table.

A byte has 256 values, so a sum over four labels of any numbers that follow from these two facts is one look-up.
"""

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask

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
