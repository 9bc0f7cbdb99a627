"""Bins over [0, 1] of samples with weights: sums of weights and of weighted scores, exactly."""

from typing import Self

import numpy as np

from app.kernel.folds.sums.bins import BINS, FoldedBins, Positions, bins_of
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_products import Halves, products
from app.kernel.numerics.exact_sums import BLOCK, ExactSums

# Others and members: what they weigh, that times their scores, and what rounding took from these products.
_ROWS = 6


class WeightedBins:
    """Bins of equal width; states merge in any order."""

    by_width = True

    def __init__(self) -> None:
        self._sums = ExactSums((_ROWS, BINS))
        self._one_hot = np.eye(BINS)

    def add(self, scores: Array, sides: Array) -> None:
        """Add scores (n) in any order with what others and members (2, n) of each weigh."""
        for start in range(0, scores.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._add(self._places(scores[part], sides[:, part]), scores[part], sides[:, part])

    def merge(self, other: Self) -> None:
        """Take in the samples of others."""
        self._sums.merge(other._sums)

    def read(self) -> FoldedBins:
        """What there is so far, in the form that calibration errors take."""
        exact = np.array(self._sums.exact(), dtype=object).reshape(_ROWS, BINS)
        rows = (exact[0] + exact[1], exact[2:].sum(axis=0), exact[1])
        weight, scores, held = (np.array([float(one) for one in row]) for row in rows)
        return FoldedBins(weight, scores, held, by_width=self.by_width)

    def _places(self, scores: Array, _: Array, /) -> Positions:
        """The bin (n) of each."""
        return bins_of(scores)

    def _add(self, places: Positions, scores: Array, sides: Array) -> None:
        inside = self._one_hot.take(places, axis=0)
        weighed, rest = products(Halves.of(sides), Halves.of(scores))
        self._sums.add(np.concatenate([sides, weighed, rest]), lambda rows: rows @ inside)


class WeightedMass(WeightedBins):
    """Bins of equal weight. Samples of one score stay together, in the bin of the middle of them.

    Args:
        total: Weight of all samples.
    """

    by_width = False

    def __init__(self, total: float) -> None:
        super().__init__()
        self._wanted = np.arange(BINS) * (2.0 * total)

    def add_cuts(self, scores: Array, sides: Array, reached: Array) -> None:
        """Add distinct scores (c), falling, with what others and members (2, c) of each weigh, and what there is above
        each and above the next one (c + 1).
        """
        middles = (reached[1:] + reached[:-1]) * BINS
        places = BINS - np.searchsorted(self._wanted, middles, side="right")
        for start in range(0, scores.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._add(places[part], scores[part], sides[:, part])
