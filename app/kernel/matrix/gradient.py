"""Gradients of metrics of a matrix in its cell shares p = C / n that are sums over rows, columns and the diagonal."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, total

# Relative to the sum that it is the rest of, a variance below this is rounding and means 0.
_ROUNDING = 1e-13


@dataclass(frozen=True, slots=True)
class AdditiveGradient:
    """A gradient of the form dM/dp_ij = [i = j] diagonal_i + rows_i + columns_j, each part (..., K).

    Accuracy, means of recalls, macro F1, MCC and kappa all have it, which makes their variances a few products of
    vectors instead of K^2 terms.
    """

    diagonal: Array
    rows: Array
    columns: Array


def of_recalls(t: Table, slopes: Array) -> AdditiveGradient:
    """Of a function of the recalls with these derivatives (..., K)."""
    per_sample = slopes * t.n_each / t.actual
    return AdditiveGradient(per_sample, -per_sample * t.recall, np.zeros_like(per_sample))


def stack(gradients: Sequence[AdditiveGradient]) -> AdditiveGradient:
    """Several gradients (..., K) as one (M, ..., K), for their variances in one go."""
    diagonal, rows, columns = np.array(
        [
            [gradient.diagonal for gradient in gradients],
            [gradient.rows for gradient in gradients],
            [gradient.columns for gradient in gradients],
        ]
    )
    return AdditiveGradient(diagonal, rows, columns)


def additive_variance(t: Table, gradients: AdditiveGradient) -> Array:
    """Variances (M, ...) of metrics of matrices (..., K, K) under multinomial sampling: [sum p g^2 - (sum p g)^2] / n.

    What rounding leaves of a variance of 0 is given as 0.
    """
    diagonal, rows, columns = gradients.diagonal, gradients.rows, gradients.columns
    mean = total(diagonal * t.tp + rows * t.actual + columns * t.predicted) / t.n
    parts = (
        total(diagonal * (diagonal + 2.0 * (rows + columns)) * t.tp),
        total(rows * rows * t.actual + columns * columns * t.predicted),
        2.0 * total((rows[..., None, :] @ t.counts)[..., 0, :] * columns),
    )
    square = (parts[0] + parts[1] + parts[2]) / t.n
    size = (np.abs(parts[0]) + parts[1]) / t.n
    variance = square - mean * mean
    return np.where(variance <= _ROUNDING * (size + mean * mean), 0.0, variance) / t.n
