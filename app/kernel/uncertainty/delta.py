"""Delta method: standard errors of smooth metrics from their gradient in the cell shares p = C / n."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, each, ones, silently, total
from app.kernel.uncertainty.design import ClassCounts
from app.kernel.uncertainty.draws import Functional
from app.kernel.uncertainty.intervals import two_sided_z

# Relative to the sum that it is the rest of, a variance below this is rounding and means 0.
_ROUNDING = 1e-13
# Relative step of a numeric derivative: its truncation and its rounding are both near 1e-10.
_STEP = 1e-5
NUMERIC_NOISE = 1e-9
_CELLS_PER_BATCH = 1 << 20


@dataclass(frozen=True, slots=True)
class AdditiveGradient:
    """A gradient of the form dM/dp_ij = [i = j] diagonal_i + rows_i + columns_j, each part (..., K).

    Macro F1, MCC and kappa all have it, which makes their variances a few products of vectors instead of K^2 terms.
    """

    diagonal: Array
    rows: Array
    columns: Array

    def full(self) -> Array:
        """The gradient cell by cell, (..., K, K)."""
        cells: Array = self.rows[..., :, None] + self.columns[..., None, :]
        size = cells.shape[-1]
        cells[..., range(size), range(size)] += self.diagonal
        return cells


def macro_f1_gradient(t: Table) -> AdditiveGradient:
    """Gradient of macro F1 of matrices (..., K, K). Takahashi et al. (2022), with s = row share + column share.

    g_ii = 2(s_i - 2p_ii)/(K s_i^2) and g_ij = -(2/K)(p_ii/s_i^2 + p_jj/s_j^2).
    """
    per_class = (t.n_each / t.n_classes) / t.margins
    falling = -t.f1 * per_class
    return AdditiveGradient(2.0 * per_class, falling, falling)


def kappa_gradient(t: Table) -> AdditiveGradient:
    """Gradient of Cohen's kappa of matrices (..., K, K): [i = j]/(1-pe) - (1-po)(T_i + P_j)/(1-pe)^2.

    It gives the variance of Fleiss, Cohen & Everitt (1969).
    """
    left = t.chance_disagreement / (t.n * t.n)
    slope = each(-t.wrong / (t.n * left) ** 2)
    return AdditiveGradient(ones(t.n_classes) / each(left), slope * t.predicted, slope * t.actual)


def mcc_gradient(t: Table) -> AdditiveGradient:
    """Gradient of Gorodkin's R_K = (po - pe) / sqrt(x y) of matrices (..., K, K), x = 1 - sum P^2 and y = 1 - sum T^2.

    g_ij = ([i = j] - T_i - P_j) / sqrt(x y) + R_K (P_i/x + T_j/y).
    """
    n = t.n
    x, y = total(t.actual * t.rest), total(t.predicted * t.predicted_rest)
    scale = 1.0 / np.sqrt(x * y)
    value = t.covariance * scale
    actual, predicted = t.actual * t.n_each, t.predicted * t.n_each
    falling = each(scale)
    return AdditiveGradient(
        ones(t.n_classes) * each(scale * n * n),
        each(value / x) * actual - falling * predicted,
        each(value / y) * predicted - falling * actual,
    )


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


def cell_sensitivities(counts: Array, functional: Functional) -> tuple[Array, NDArray[np.intp]]:
    """How values move with the counts: (cells, V) of c dM/dc for the C non-empty cells of one matrix, and those cells
    (C, 2).

    Central differences with a relative step of 1e-5, in batches. Empty cells contribute nothing to a variance.
    """
    cells = np.argwhere(counts > 0)
    batch = max(1, _CELLS_PER_BATCH // (2 * counts.size))
    parts = []
    with silently():
        for start in range(0, len(cells), batch):
            rows, columns = cells[start : start + batch].T
            here = np.arange(rows.size)
            moved = np.repeat(counts[None, None], 2 * rows.size, axis=0).reshape(2, rows.size, *counts.shape)
            moved[0, here, rows, columns] *= 1.0 + _STEP
            moved[1, here, rows, columns] *= 1.0 - _STEP
            up, down = functional(Table(moved)).reshape(2, rows.size, -1)
            parts.append((up - down) / (2.0 * _STEP))
    return np.concatenate(parts), cells


def variance(counts: Array, functional: Functional, *, class_counts: ClassCounts = ClassCounts.RANDOM) -> Array:
    """Delta-method variances (V) of any functional of one matrix (K, K) that is smooth there.

    With G = dM/dC: multinomial counts sum c G^2 - (sum c G)^2 / n; fixed class counts the same within every row,
    summed. What rounding leaves of a variance of 0 is given as 0.
    """
    moves, cells = cell_sensitivities(counts, functional)
    weights = counts[cells[:, 0], cells[:, 1]][:, None]
    square = moves * moves / weights
    if class_counts is ClassCounts.RANDOM:
        gross, explained = square.sum(axis=0), moves.sum(axis=0) ** 2 / counts.sum()
    else:
        rows = np.zeros((counts.shape[0], moves.shape[1]))
        np.add.at(rows, cells[:, 0], moves)
        actual = np.maximum(counts.sum(axis=-1), 1.0)[:, None]
        gross, explained = square.sum(axis=0), (rows**2 / actual).sum(axis=0)
    rest = gross - explained
    return np.where(rest <= NUMERIC_NOISE * np.maximum(gross, _STEP**2 / counts.sum()), 0.0, rest)


class Scale(StrEnum):
    """On which scale a delta-method interval is symmetric."""

    WALD = "wald"
    LOGIT = "logit"
    FISHER_Z = "fisher_z"
    LOG = "log"


def scale_for(low: float | None, high: float | None) -> Scale:
    """The scale that keeps an interval inside the range of its metric; None is unbounded."""
    if low is not None and high is not None:
        return Scale.FISHER_Z if low < 0 else Scale.LOGIT
    return Scale.LOG if low == 0 else Scale.WALD


def limits(
    estimate: Array,
    error: Array,
    *,
    scale: Scale,
    level: float = 0.95,
    low: float | None = None,
    high: float | None = None,
) -> tuple[Array, Array]:
    """Delta-method limits (V) around estimates (V) with standard errors (V); NaN where the error is 0 or the value at
    an end.

    Logit and Fisher z map the range [low, high] to the whole line and back, Log maps [0, inf]; Wald limits are cut to
    the range.
    """
    z = two_sided_z(level)
    with silently():
        if scale is Scale.WALD:
            ends = estimate - z * error, estimate + z * error
            bottom, top = -np.inf if low is None else low, np.inf if high is None else high
            ends = np.maximum(ends[0], bottom), np.minimum(ends[1], top)
        elif scale is Scale.LOG:
            factor = np.exp(z * error / estimate)
            ends = estimate / factor, estimate * factor
        else:
            start, width = (0.0, 1.0) if low is None or high is None else (low, high - low)
            share = (estimate - start) / width
            odds, spread = share / (1.0 - share), z * error / width / (share * (1.0 - share))
            ends = _from_odds(odds * np.exp(-spread), start, width), _from_odds(odds * np.exp(spread), start, width)
        absent = ~(error > 0) | ~np.isfinite(ends[0]) | ~np.isfinite(ends[1])
    return np.where(absent, np.nan, ends[0]), np.where(absent, np.nan, ends[1])


def _from_odds(odds: Array, start: float, width: float) -> Array:
    return start + width * (1.0 - 1.0 / (1.0 + odds))
