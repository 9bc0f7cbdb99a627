"""Labels of which a sample can have several: one table of two by two for each, looked at as a `Table` looks at classes.

Every metric of one class against the rest, and every mean of such metrics, is computed on it by the same function.
"""

from typing import Self

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, lazy, ones, ratio, silently, total


class LabelTable(Table):
    """The counts of L labels, each present or absent. Leading axes are a batch, as those of a `Table`.

    Attributes of shape (..., L) look at a label against its absence. What sums over classes sums over labels: ``n`` is
    the number of labels that samples have, ``n_each`` that of the samples. There is no matrix of all labels together,
    so what is made of the cells between two classes does not exist here.

    Args:
        hits: Samples (..., L) with a label that it was predicted for.
        actual: Samples (..., L) with the label.
        predicted: Samples (..., L) that it was predicted for.
        n_samples: All samples (..., 1), or (..., L) where labels have numbers of their own.
    """

    def __init__(self, hits: Array, actual: Array, predicted: Array, n_samples: Array) -> None:
        # In the places where a `Table` puts what it computes of its matrix.
        self.__dict__.update(tp=hits, actual=actual, predicted=predicted)
        self.n_classes = hits.shape[-1]
        self._n_samples = n_samples

    @classmethod
    def of(cls, counts: Array) -> Self:
        """From tables (..., L, 2, 2): actual rows, predicted columns, absent before present."""
        cells = np.asarray(counts, dtype=np.float64)
        present = cells[..., 1, 1]
        samples = cells.sum(axis=(-2, -1))
        return cls(present, cells[..., 1, :].sum(axis=-1), cells[..., :, 1].sum(axis=-1), samples)

    @lazy
    def n_each(self) -> Array:
        """All samples, for each label."""
        return self._n_samples * ones(self.n_classes)

    @lazy
    def false_alarms(self) -> Array:
        """Labels that were predicted and are not there, all labels together."""
        return total(self.fp)

    def cells(self) -> Array:
        """The tables (..., L, 2, 2)."""
        rows = (np.stack([self.tn, self.fp], axis=-1), np.stack([self.fn, self.tp], axis=-1))
        return np.stack(rows, axis=-2)

    def balanced(self) -> "LabelTable":
        """Every label as if it were there in half of the samples; NaN where it is in all or in none."""
        with silently():
            recall, false_alarms = ratio(self.tp, self.actual), ratio(self.fp, self.rest)
        ends = np.isfinite(recall) & np.isfinite(false_alarms)
        half = np.where(ends, 0.5 * self.n_each, np.nan)
        return LabelTable(half * recall, half, half * (recall + false_alarms), half + half)
