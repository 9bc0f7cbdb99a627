"""Delta method: standard errors of smooth metrics from their gradient in the cell shares p = C / n."""

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Scale
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.design import ClassCounts
from app.kernel.uncertainty.draws import Functional
from app.kernel.uncertainty.intervals import two_sided_z

# Relative step of a numeric derivative: its truncation and its rounding are both near 1e-10.
_STEP = 1e-5
NUMERIC_NOISE = 1e-9
_CELLS_PER_BATCH = 1 << 20


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


def variance(
    counts: Array,
    functional: Functional,
    *,
    class_counts: ClassCounts = ClassCounts.RANDOM,
    squares: Array | None = None,
) -> Array:
    """Delta-method variances (V) of any functional of one matrix (K, K) that is smooth there.

    With G = dM/dC: multinomial counts sum c G^2 - (sum c G)^2 / n; fixed class counts the same within every row,
    summed. What rounding leaves of a variance of 0 is given as 0. Of weighted samples with sums of squares s the
    linearised variance of sampling with replacement, sum s (G - G_)^2 with the weighted mean G_ of all or of the row.
    """
    moves, cells = cell_sensitivities(counts, functional)
    if squares is not None:
        return _weighted_variance(counts, moves, cells, class_counts, squares)
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


def _weighted_variance(
    counts: Array, moves: Array, cells: NDArray[np.intp], class_counts: ClassCounts, squares: Array
) -> Array:
    rows, columns = cells.T
    own = squares[rows, columns][:, None]
    slopes = moves / counts[rows, columns][:, None]
    if class_counts is ClassCounts.RANDOM:
        means = moves.sum(axis=0) / counts.sum()
    else:
        sums = np.zeros((counts.shape[0], moves.shape[1]))
        np.add.at(sums, rows, moves)
        means = (sums / np.maximum(counts.sum(axis=-1), np.finfo(float).tiny)[:, None])[rows]
    gross, rest = (own * slopes**2).sum(axis=0), (own * (slopes - means) ** 2).sum(axis=0)
    smallest = _STEP**2 * squares.sum() / counts.sum() ** 2
    return np.where(rest <= NUMERIC_NOISE * np.maximum(gross, smallest), 0.0, rest)


def scale_for(low: float | None, high: float | None) -> Scale:
    """The scale that keeps an interval inside the range of its metric; None is unbounded."""
    if low is not None and high is not None:
        return Scale.LOGIT
    return Scale.LOG if low == 0 else Scale.LINEAR


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

    The logit maps the range [low, high] to the whole line and back, which for correlations is Fisher's z; the logarithm
    maps [0, inf]. Linear limits, those of Wald, are cut to the range.
    """
    z = two_sided_z(level)
    with silently():
        if scale is Scale.LINEAR:
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
