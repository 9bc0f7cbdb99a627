"""What weighted samples that went by leave behind of their labels: sums of weights, and of their squares, in each two
cells of labels at once.

Sums are exact until they are divided, so they depend on no order of the samples.
"""

from fractions import Fraction
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.labels.means import Weighed
from app.kernel.matrix.label_table import LabelTable
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import Whole
from app.kernel.samples.labels.pairs import CELLS
from app.kernel.uncertainty.of_samples.label_units import WeightedLabels

# What is added up of the weights: they themselves, and their squares.
_WEIGHTS, _SQUARES = 0, 1
KINDS: Final = 2


class WeightedMoments:
    """Two facts about each of L labels of weighted samples that are not at hand any more.

    Attributes:
        weighed: What the samples weigh.
        ends: The smallest weight above 0, and the largest.
        cells: (L, 4), weight in each cell of each label.
        tables: Of the labels.

    Args:
        counts: (L, 4), samples in each cell of each label, as `LabelPairs` has them.
        pairs: Of weights and of their squares, sums over the samples in two cells at once, (2, 3 L, 3 L) in one row.
        weighed: See above.
        ends: See above.
    """

    def __init__(
        self, counts: NDArray[np.int64], pairs: list[Fraction], weighed: Weighed, ends: tuple[float, float]
    ) -> None:
        self.weighed, self.ends, size = weighed, ends, (CELLS - 1) * len(counts)
        # All of them are whole numbers of one power of 2.
        scale = max(one.denominator for one in (*pairs, *weighed[:KINDS]))
        whole = np.array([_times(one, scale) for one in pairs], dtype=object).reshape(KINDS, size, size)
        totals = [_times(one, scale) for one in weighed[:KINDS]]
        in_cells = [np.diagonal(kind) for kind in whole]
        self.cells = _cells(in_cells[_WEIGHTS], totals[_WEIGHTS], scale)
        sums, squares = (_table(own, total, scale) for own, total in zip(in_cells, totals, strict=True))
        false, missed, hits = counts.T[1:].astype(np.float64)
        samples = LabelTable(hits, missed + hits, false + hits, np.array([float(weighed.n_samples)]))
        self.tables = WeightedLabels(sums, squares, samples)
        means = in_cells[_WEIGHTS], totals[_WEIGHTS]
        self._centred = [
            _around_means(kind, own, total, means, scale)
            for kind, own, total in zip(whole, in_cells, totals, strict=True)
        ]

    @property
    def n_samples(self) -> int:
        """Samples that count."""
        return self.weighed.n_samples

    def deviations(self, values: Array) -> Array:
        """One number, whose square is that of the weighted deviations of all samples: of sums over their labels of the
        values (L, 4) of the cells that these are in, from their weighted mean.
        """
        return np.sqrt([self.squares(values)])

    def squares(self, values: Array) -> float:
        """That square."""
        return self._form(values, _SQUARES)

    def design_effect(self, values: Array) -> float:
        """How many times larger it is than that of as many samples of one weight; NaN where it is 0."""
        squares, plain = self.squares(values), self._form(values, _WEIGHTS)
        return self.n_samples * squares / (float(self.weighed.total) * plain) if squares and plain else float("nan")

    def _form(self, values: Array, kind: int) -> float:
        each = (values[:, 1:] - values[:, :1]).T.ravel()
        return max(float(each @ self._centred[kind] @ each), 0.0)


def _times(value: Fraction, scale: int) -> int:
    return value.numerator * (scale // value.denominator)


def _cells(in_cells: Whole, total: int, scale: int) -> Array:
    """Sums (L, 4) in all cells, from those in three of each label (3 L)."""
    others = np.stack(np.split(in_cells, CELLS - 1), axis=-1)
    cells = np.concatenate([total - others.sum(axis=-1, keepdims=True), others], axis=-1)
    return (cells / scale).astype(np.float64)


def _table(in_cells: Whole, total: int, scale: int) -> LabelTable:
    """From sums in three cells of each label (3 L)."""
    false, missed, hits = np.split(in_cells, CELLS - 1)
    parts = hits, missed + hits, false + hits, np.array([total], dtype=object)
    return LabelTable(*((part / scale).astype(np.float64) for part in parts))


def _around_means(pairs: Whole, in_cells: Whole, total: int, means: tuple[Whole, int], scale: int) -> Array:
    """Sums (3 L, 3 L) of weights, or of their squares, times products of deviations from weighted means, in whole
    numbers up to one division, row by row.
    """
    sums, whole = means
    found = np.empty(pairs.shape)
    for row, own, one, of_sums in zip(found, pairs, in_cells, sums, strict=True):
        product = own * whole**2 - whole * (one * sums + of_sums * in_cells) + total * of_sums * sums
        row[:] = product / (whole * whole * scale)
    return found
