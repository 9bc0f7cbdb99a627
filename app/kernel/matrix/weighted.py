"""Matrices of weighted samples: of every cell the sum of the weights, the sum of their squares, and the samples.

With replacement sampling, which weights are made for, the variance of anything that follows from the matrix depends on
the samples through these three numbers alone: all samples of a cell have one derivative.
"""

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, silently


@dataclass(frozen=True, slots=True, eq=False)
class WeightedCounts:
    """What weighted samples make of a matrix.

    Attributes:
        counts: (K, K) sums of weights, rows actual.
        squares: (K, K) sums of squared weights.
        samples: (K, K) numbers of samples with a weight above 0.
    """

    counts: Array
    squares: Array
    samples: Array

    @classmethod
    def of(cls, truth: NDArray[Any], predicted: NDArray[Any], weights: Array, n_classes: int) -> Self:
        """From class codes (n) and weights (n)."""
        return cls.of_sums(truth, predicted, (weights, weights * weights, (weights > 0).astype(np.float64)), n_classes)

    @classmethod
    def of_sums(
        cls, truth: NDArray[Any], predicted: NDArray[Any], parts: tuple[Array, Array, Array], n_classes: int
    ) -> Self:
        """From what entries (n) with a class each add up to: weights, their squares, and samples."""
        cells, size = truth * n_classes + predicted, n_classes * n_classes
        sums = [np.bincount(cells, each, size) for each in parts]
        return cls(*(each.reshape(n_classes, n_classes).astype(np.float64) for each in sums))

    @property
    def effective_samples(self) -> float:
        """(sum w)^2 / sum w^2: the effective number of samples for a mean. Kish (1965)."""
        return float(self.counts.sum() ** 2 / self.squares.sum())


def weight_scales(counts: Array, squares: Array) -> Array:
    """The weight (..., K, K) that samples of each cell have on average, each by its own weight: sum w^2 / sum w.

    A cell without samples has that of its row, and an empty row 1.
    """
    with silently():
        rows = squares.sum(axis=-1, keepdims=True) / counts.sum(axis=-1, keepdims=True)
        scales: Array = np.where(counts > 0, squares / counts, np.where(np.isfinite(rows), rows, 1.0))
    return scales
