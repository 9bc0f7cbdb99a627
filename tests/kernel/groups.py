"""Rates and metrics of samples in groups, worked out directly: oracles for the intervals of reports."""

import numpy as np

from app.kernel.numerics.arrays import Array, kish_effective_n, silently, sums_by_code
from app.kernel.uncertainty.closed_forms import cell_slopes, moves_in_cells
from app.kernel.uncertainty.designs import DesignedRate
from app.kernel.uncertainty.draws import Functional
from app.kernel.uncertainty.groups import GroupedCounts, group_variance
from app.kernel.uncertainty.intervals import Limits, wilson


def influences(runs: GroupedCounts, functional: Functional) -> Array:
    """How much each group moves the values, (G, V): their sums over the groups are 0."""
    matrix = runs.matrix()
    per_sample = cell_slopes(matrix, functional).reshape(-1, matrix.size)
    return sums_by_code(runs.codes, per_sample[:, runs.cell] * runs.times, runs.n_groups).T


def design_effect(runs: GroupedCounts, functional: Functional) -> Array:
    """How many times larger (V) the variance is than it would be with independent samples; NaN where that is 0."""
    matrix = runs.matrix()
    variance = (moves_in_cells(matrix, functional) * cell_slopes(matrix, functional)).sum(axis=(1, 2))
    with silently():
        effect: Array = np.where(variance > 0, group_variance(influences(runs, functional)) / variance, np.nan)
    return effect


def grouped_wilson(hits: Array, sizes: Array, level: float = 0.95, sides: tuple[Array, Array] | None = None) -> Limits:
    """Interval of a rate whose samples come in groups (G); NaN where all are in one.

    Of what is predicted also the samples on the sides of hits and of misses: NaN where those of the hits are in one.
    """
    total, hit = float(sizes.sum()), float(hits.sum())
    present = sizes > 0
    with silently():
        rate = np.divide(hit, total)
        variance = group_variance(((hits - rate * sizes) / total)[present])
    there, worth = np.array(float(np.count_nonzero(present))), np.array(kish_effective_n(sizes))
    at_edge = np.where(there > 1, there, np.nan)
    if sides is not None:
        parts = ((1.0 - rate) * hits, rate * (sizes - hits))
        squares = [float(part @ part) for part in parts]
        known = [kish_effective_n(side) - 1.0 for side in sides]
        worth = np.minimum(
            worth, 1.0 + sum(squares) ** 2 / sum(one**2 / k for one, k in zip(squares, known, strict=True))
        )
        at_edge = np.where(np.count_nonzero(sides[0]) > 1, at_edge, np.nan)
    return wilson(*DesignedRate(rate, variance, np.array(total), worth, at_edge).as_counts(level), level)
