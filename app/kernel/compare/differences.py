"""The difference of any metric between two runs: from draws, by the delta method, and by permutation.

For paired runs the draws come from ``joint``, both runs from the same draw; for unpaired ones from two independent
calls of ``posterior.draw_matrices``. Two intervals are never compared by overlap.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from app.kernel.compare.joint import JointCounts
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Scale
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.special import normal_cdf
from app.kernel.uncertainty.delta import NUMERIC_NOISE, cell_sensitivities
from app.kernel.uncertainty.design import ClassCounts
from app.kernel.uncertainty.draws import MOST_UNDEFINED, Functional, Summary, summarise
from app.kernel.uncertainty.intervals import two_sided_z


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """First less second of V values. Arrays (V).

    Attributes:
        interval: The difference with its limits.
        first_larger: Posterior probability that the first is larger by more than the region of equivalence.
        equivalent: That the two differ by no more than it.
        probability_error: Largest Monte-Carlo standard error of these two and of the rest.
    """

    interval: Summary
    first_larger: Array
    equivalent: Array
    probability_error: Array


def compare_draws(
    first: Array, second: Array, estimate: Array, *, level: float = 0.95, rope: float = 0.0
) -> Difference:
    """Difference of V values from draws (D, V) of both, taken draw by draw.

    Args:
        first: draws of the first run.
        second: draws of the second run, of the same joint draws when the runs are paired.
        estimate: (V) the difference in the data.
        level: of the interval.
        rope: half width of the region of practical equivalence, in units of the metric. With 0, exact ties count as
            equivalent.
    """
    with silently():
        gaps = first - second
    interval = summarise(gaps, estimate, level)
    draws = gaps.shape[0]
    present = draws - interval.undefined
    with silently():
        larger = (gaps > rope).sum(axis=0) / present
        smaller = (gaps < -rope).sum(axis=0) / present
        equivalent = (np.abs(gaps) <= rope).sum(axis=0) / present
        error = np.sqrt(np.maximum.reduce([p * (1.0 - p) for p in (larger, smaller, equivalent)]) / present)
    absent = np.isnan(estimate) | (interval.undefined > MOST_UNDEFINED * draws)
    return Difference(interval, *(np.where(absent, np.nan, value) for value in (larger, equivalent, error)))


def paired_variance(
    joint: JointCounts, functional: Functional, *, class_counts: ClassCounts = ClassCounts.RANDOM
) -> Array:
    """Delta-method variances (V) of the difference between two runs on the same items.

    The derivative with respect to the count of a combination (t, a, b) is dM/dC at (t, a) of the first matrix less
    that at (t, b) of the second.

    Raises:
        ValueError: there are not two runs.
    """
    if joint.n_runs != 2:
        raise ValueError(f"a paired difference needs two runs, not {joint.n_runs}")
    slopes = []
    for matrix, cells in zip(joint.matrices(), joint.cells(), strict=True):
        moves, filled = cell_sensitivities(matrix, functional)
        per_cell = np.zeros((matrix.size, moves.shape[1]))
        per_cell[filled[:, 0] * joint.n_classes + filled[:, 1]] = moves / matrix[filled[:, 0], filled[:, 1]][:, None]
        slopes.append(per_cell[cells])
    gradient = slopes[0] - slopes[1]
    weighted = joint.counts[:, None] * gradient
    if class_counts is ClassCounts.RANDOM:
        explained = weighted.sum(axis=0) ** 2 / joint.n
    else:
        rows = np.zeros((joint.n_classes, gradient.shape[1]))
        np.add.at(rows, joint.truth, weighted)
        explained = (rows**2 / np.maximum(joint.actual(), 1.0)[:, None]).sum(axis=0)
    gross = (weighted * gradient).sum(axis=0)
    scale = (joint.counts[:, None] * (slopes[0] ** 2 + slopes[1] ** 2)).sum(axis=0)
    return np.where(gross - explained <= NUMERIC_NOISE * scale, 0.0, gross - explained)


def on_scale(values: Array, scale: Scale) -> Array:
    """Values as they are tested and compared: ratios by their logarithms, of which equal steps are equal factors.

    So a ratio and a monotone function of it on the same scale, such as the odds ratio and discriminant power, have
    one p.
    """
    with silently():
        return np.log(values) if scale is Scale.LOG else values


def normal_limits(estimate: Array, variance: Array, level: float = 0.95) -> tuple[Array, Array, Array]:
    """Lower and upper limits and two-sided p (V) of differences with these variances.

    Without variance there is no interval, and p is 1 for a difference of 0 and NaN otherwise: nothing can be said.
    """
    error = np.sqrt(variance)
    spread = two_sided_z(level) * np.where(error > 0, error, np.nan)
    with silently():
        p = 2.0 * normal_cdf(-np.abs(estimate) / error)
    p = np.where(error > 0, p, np.where(estimate == 0, 1.0, np.nan))
    return estimate - spread, estimate + spread, p


def permutation_p(joint: JointCounts, functionals: Sequence[Functional], permuted: Iterable[Array]) -> list[Array]:
    """Two-sided permutation p-values of the difference, one array () or (K) per functional.

    p = (1 + permutations with a difference as large as observed) / (1 + permutations), so never 0. Where the metric
    is undefined for a permutation, that one counts as extreme; where it is undefined for the data, p is NaN.

    Args:
        joint: two runs.
        functionals: the metrics.
        permuted: batches (d, 2, K, K) of ``joint.permute``.
    """
    with silently():
        table = Table(joint.matrices())
        observed = [np.subtract(*functional(table)) for functional in functionals]
        extreme = [np.zeros(np.shape(value)) for value in observed]
        draws = 0
        for batch in permuted:
            draws += batch.shape[0]
            shuffled = Table(batch)
            for count, value, functional in zip(extreme, observed, functionals, strict=True):
                values = functional(shuffled)
                gaps = np.abs(values[:, 0] - values[:, 1])
                # Equal values reached by other sums differ by rounding; they are as extreme.
                np.add(count, (~(gaps < np.abs(value) * (1.0 - 1e-12))).sum(axis=0), out=count)
    return [
        np.where(np.isnan(value), np.nan, (1.0 + count) / (1.0 + draws))
        for count, value in zip(extreme, observed, strict=True)
    ]
