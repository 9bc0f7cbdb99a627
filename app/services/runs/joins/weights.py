"""Weights of samples that several runs have in common: those of the first, where all others are multiples of them."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.exact_sums import BLOCK, ExactSums
from app.services.runs.pairing import SAME_WEIGHTS, WEIGHTLESS, weighs_otherwise


class CommonWeights:
    """What is to be known of the weights of R runs: their sums, and by how much they differ from those of the first.

    Merges in any order, with the same bits.
    """

    def __init__(self, n_runs: int) -> None:
        self._sums = ExactSums((n_runs,))
        # The smallest and the largest ratio to the weight of the first; infinite where only that is 0. Where both are
        # the ratio is NaN and says nothing.
        self._ratios = np.stack([np.full(n_runs, np.inf), np.full(n_runs, -np.inf)])

    def add(self, weights: Sequence[Array]) -> None:
        """Add samples: what each weighs (n) in each run."""
        each = np.stack(weights)
        for start in range(0, each.shape[1], BLOCK):
            self._sums.add(each[:, start : start + BLOCK].copy(), lambda rows: np.asarray(rows.sum(axis=1)))
        if each.size:
            with silently():
                ratios = each / each[0]
            self._take(np.fmin.reduce(ratios, axis=1), np.fmax.reduce(ratios, axis=1))

    def merge(self, other: Self) -> None:
        """Take in those of others."""
        self._sums.merge(other._sums)
        self._take(*other._ratios)

    def fault(self) -> str | None:
        """Why the runs cannot be paired."""
        sums = self._sums.rounded()
        if sums.min() <= 0.0:
            return WEIGHTLESS
        for place, (low, high) in enumerate(self._ratios.T):
            each = np.array([low, high]) * sums[0] / sums[place]
            if not (np.abs(each - 1.0) <= SAME_WEIGHTS).all():
                return weighs_otherwise(place)
        return None

    def _take(self, low: Array, high: Array) -> None:
        self._ratios = np.stack([np.fmin(self._ratios[0], low), np.fmax(self._ratios[1], high)])
