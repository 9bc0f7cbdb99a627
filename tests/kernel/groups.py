"""Rates and metrics of samples in groups, worked out directly: oracles for the intervals of reports."""

import numpy as np

from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.clusters import GroupedRuns, Groups, group_variance, wilson_of_variance
from app.kernel.uncertainty.delta import cell_sensitivities
from app.kernel.uncertainty.draws import Functional
from app.kernel.uncertainty.intervals import Limits, kish_effective_n


def design_effect(runs: GroupedRuns, functional: Functional) -> Array:
    """How many times larger (R, V) the variance is than it would be with independent samples; NaN where that is 0."""
    alone = []
    for matrix in runs.matrices():
        moved, cells = cell_sensitivities(matrix, functional)
        alone.append((moved * moved / matrix[tuple(cells.T)][:, None]).sum(axis=0))
    variance = np.array(alone)
    with silently():
        effect: Array = np.where(variance > 0, group_variance(runs.influences(functional)) / variance, np.nan)
    return effect


def grouped_wilson(hits: Array, sizes: Array, level: float = 0.95) -> Limits:
    """Interval of a rate whose samples come in groups (G); NaN where all are in one."""
    total, hit = float(sizes.sum()), float(hits.sum())
    present = sizes > 0
    with silently():
        rate = np.divide(hit, total)
        variance = group_variance(((hits - rate * sizes) / total)[present])
    groups = Groups(np.array(np.count_nonzero(present)), np.array(kish_effective_n(sizes)))
    return wilson_of_variance(rate, np.array(total), variance, groups, level)
