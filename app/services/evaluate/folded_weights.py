"""Weights of samples that went by: what was decided of those of each class, and what they weigh together."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.domain.inputs.samples import Samples, Tally, WeightSums
from app.kernel.numerics.exact_sums import BLOCK, ExactSums
from app.kernel.samples.losses import sums_by_code

Codes = NDArray[Any]


class DecidedInWeights:
    """What samples of each actual and predicted class weigh; by several rules at once while it is open which it is.
    Sums are exact, and rounded once.

    Args:
        n_classes: K.
        n_rules: How many rules.
    """

    def __init__(self, n_classes: int, n_rules: int) -> None:
        self._n_classes, self._n_rules = n_classes, n_rules
        size = n_classes ** (1 + n_rules)
        self._times: NDArray[np.int64] = np.zeros(size, dtype=np.int64)
        self._used: NDArray[np.int64] = np.zeros(size, dtype=np.int64)
        self._lightest, self._heaviest = np.full(size, np.inf), np.full(size, -np.inf)
        # Of the weights and of their squares.
        self._sums = ExactSums((2, size))

    def add(self, weights: NDArray[np.float64], truth: Codes, predicted: Sequence[Codes]) -> None:
        """Add samples.

        Args:
            weights: (n), 0 or more.
            truth: (n) codes of classes.
            predicted: The same by each rule.
        """
        cells, size = truth.astype(np.intp), self._times.size
        for codes in predicted:
            cells = cells * self._n_classes + codes
        used = weights > 0
        self._times = self._times + np.bincount(cells, minlength=size)
        self._used = self._used + np.bincount(cells[used], minlength=size)
        np.minimum.at(self._lightest, cells[used], weights[used])
        np.maximum.at(self._heaviest, cells[used], weights[used])
        for start in range(0, cells.size, BLOCK):
            here = weights[start : start + BLOCK]
            gather = partial(sums_by_code, cells[start : start + BLOCK], n_classes=size)
            self._sums.add(np.stack([here, here * here]), gather)

    def merged(self, other: Self) -> Self:
        """With others, which are not to be used any more."""
        self._times, self._used = self._times + other._times, self._used + other._used
        self._lightest = np.minimum(self._lightest, other._lightest)
        self._heaviest = np.maximum(self._heaviest, other._heaviest)
        self._sums.merge(other._sums)
        return self

    def samples(self, rule: int) -> Samples:
        """Those that say the same as one entry each.

        Args:
            rule: That decides, counted from 0.
        """
        size, cells = self._n_classes, np.flatnonzero(self._times)
        predicted = cells // size ** (self._n_rules - 1 - rule) % size
        weights, squares = self._sums.rounded()[:, cells]
        used = self._used[cells]
        ends = (np.where(used > 0, side[cells], np.nan) for side in (self._lightest, self._heaviest))
        tally = Tally(self._times[cells], WeightSums(squares, used, *ends))
        return Samples(cells // size**self._n_rules, predicted, weights=weights, tally=tally)
