"""Rates and metrics of samples in groups, worked out directly: oracles for the intervals of reports."""

import numpy as np

from app.kernel.numerics.arrays import Array, kish_effective_n, silently
from app.kernel.samples.losses import sums_by_code
from app.kernel.uncertainty.closed_forms import cell_sensitivities
from app.kernel.uncertainty.draws import Functional
from app.kernel.uncertainty.groups import GroupedRuns, Groups, group_variance, wilson_of_variance
from app.kernel.uncertainty.intervals import Limits


def influences(runs: GroupedRuns, functional: Functional) -> Array:
    """How much each group moves the values of each run, (G, R, V): their sums over the groups are 0."""
    found = []
    size = runs.n_classes * runs.n_classes
    for run, matrix in enumerate(runs.matrices()):
        moved, cells = cell_sensitivities(matrix, functional)
        per_sample = np.zeros((size, moved.shape[1]))
        rows, columns = cells.T
        per_sample[rows * runs.n_classes + columns] = moved / matrix[rows, columns][:, None]
        mine = runs.cell // size == run
        parts = per_sample[runs.cell[mine] % size] * runs.count[mine][:, None]
        found.append(sums_by_code(runs.group[mine], parts.T, runs.n_groups).T)
    return np.stack(found, axis=1)


def design_effect(runs: GroupedRuns, functional: Functional) -> Array:
    """How many times larger (R, V) the variance is than it would be with independent samples; NaN where that is 0."""
    alone = []
    for matrix in runs.matrices():
        moved, cells = cell_sensitivities(matrix, functional)
        alone.append((moved * moved / matrix[tuple(cells.T)][:, None]).sum(axis=0))
    variance = np.array(alone)
    with silently():
        effect: Array = np.where(variance > 0, group_variance(influences(runs, functional)) / variance, np.nan)
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
