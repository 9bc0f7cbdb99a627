"""What samples weigh, by class."""

from collections.abc import Iterable
from fractions import Fraction
from functools import partial
from typing import Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.weights.grid import Grid, lowest_bit
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import BLOCK, ExactSums
from app.kernel.samples.losses import Codes, sums_by_code


class WeightTotals:
    """What samples weigh, by class; states merge in any order.

    Attributes:
        used: Samples (K) with a weight above 0.

    Args:
        n_classes: K.
    """

    def __init__(self, n_classes: int) -> None:
        self.used: NDArray[np.int64] = np.zeros(n_classes, dtype=np.int64)
        self._sums = ExactSums((2, n_classes))
        # Of weights and of their squares.
        self._lowest: list[int | None] = [None, None]

    def add(self, weights: Array, y: Codes) -> None:
        """Add weights (n), finite and 0 or more, of samples with codes (n)."""
        size = self.used.size
        self.used = self.used + np.bincount(y[weights > 0], minlength=size)
        values = np.stack([weights, weights * weights])
        self._lowest = [_lower(own, lowest_bit(row)) for own, row in zip(self._lowest, values, strict=True)]
        for start in range(0, y.size, BLOCK):
            codes = y[start : start + BLOCK]
            self._sums.add(values[:, start : start + BLOCK], partial(sums_by_code, codes, n_classes=size))

    def merge(self, other: Self) -> None:
        """Take in those of others."""
        self.used = self.used + other.used
        self._sums.merge(other._sums)
        self._lowest = [_lower(*both) for both in zip(self._lowest, other._lowest, strict=True)]

    def by_class(self) -> tuple[list[Fraction], list[Fraction]]:
        """Sums (K) of the weights and of their squares."""
        exact, size = self._sums.exact(), self.used.size
        return exact[:size], exact[size:]

    def grids(self) -> tuple[Grid, Grid]:
        """For sums of the weights and of their squares."""
        first, second = (
            Grid.of(sum(sums, Fraction(0)), 0 if lowest is None else lowest)
            for sums, lowest in zip(self.by_class(), self._lowest, strict=True)
        )
        return first, second

    def effective(self, codes: Iterable[int]) -> float:
        """The effective number of samples of some classes, (sum w)^2 / sum w^2 (Kish 1965); 0 without any."""
        chosen = [*codes]
        total, squares = (sum((sums[code] for code in chosen), Fraction(0)) for sums in self.by_class())
        return float(total * total / squares) if squares else 0.0


def _lower(first: int | None, second: int | None) -> int | None:
    known = [one for one in (first, second) if one is not None]
    return min(known, default=None)
