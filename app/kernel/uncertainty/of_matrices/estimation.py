"""Intervals of any metrics and expressions of one matrix by the method asked for, all from one set of draws."""

from collections.abc import Sequence

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Scale
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.design import ClassCounts, Prior, Shares, generator
from app.kernel.uncertainty.draws import (
    MOST_UNDEFINED,
    Functional,
    Summary,
    evaluate_draws,
    summarise,
)
from app.kernel.uncertainty.of_matrices import bootstrap, delta, posterior
from app.kernel.uncertainty.of_matrices.bootstrap import BootstrapInterval

DRAWS = 4000

# From so many classes on the curvature of means over classes shows in coverage: 95 % intervals of H held the truth 92
# times in 100 for 10 classes of 25, now 95 (benchmarks/coverage.py). For fewer, the posterior stays as it is.
CURVED_CLASSES = 5


def estimates(counts: Array, functionals: Sequence[Functional]) -> list[Array]:
    """Values (V) of every functional of one matrix (K, K): V is 1, or K for a list over the classes."""
    table = Table(counts)
    with silently():
        return [np.atleast_1d(functional(table)) for functional in functionals]


def posterior_intervals(
    counts: Array,
    functionals: Sequence[Functional],
    *,
    seed: int,
    draws: int = DRAWS,
    prior: Prior = Prior.EDGE,
    custom: Array | None = None,
    shares: Shares = Shares.OBSERVED,
    level: float = 0.95,
    squares: Array | None = None,
) -> list[Summary]:
    """Posterior intervals of every functional of one matrix of counts (K, K), in the order given; of weighted samples
    with their sums of squared weights (K, K).

    With 5 or more classes limits are moved by what the curvature of a metric shifts its draws, see
    ``draws.curvature_shift``. How matrices are drawn: see ``posterior.draw_matrices``.

    Raises:
        ValueError: as ``posterior.draw_matrices``.
    """
    batches = posterior.draw_matrices(
        counts, draws=draws, random=generator(seed), prior=prior, custom=custom, shares=shares, squares=squares
    )
    observed = estimates(counts, functionals)
    centers: Sequence[Array | None] = [None] * len(functionals)
    if counts.shape[-1] >= CURVED_CLASSES:
        middle = posterior.mean_matrix(counts, prior=prior, custom=custom, shares=shares, squares=squares)
        centers = estimates(middle, functionals)
    drawn = evaluate_draws(batches, functionals)
    return [
        summarise(values.reshape(draws, -1), estimate, level, center=center)
        for values, estimate, center in zip(drawn, observed, centers, strict=True)
    ]


def bootstrap_intervals(
    counts: Array,
    functionals: Sequence[Functional],
    *,
    seed: int,
    draws: int = DRAWS,
    level: float = 0.95,
    method: BootstrapInterval = BootstrapInterval.PERCENTILE,
    class_counts: ClassCounts = ClassCounts.RANDOM,
) -> list[Summary]:
    """Bootstrap intervals of every functional of one matrix of whole counts (K, K); fixed class counts resample
    within rows.

    Raises:
        ValueError: the counts are not whole, or there are none.
    """
    stratified = class_counts is ClassCounts.FIXED
    batches = bootstrap.resample(counts, draws=draws, random=generator(seed), stratified=stratified)
    found = []
    replicates = evaluate_draws(batches, functionals)
    for functional, values, estimate in zip(functionals, replicates, estimates(counts, functionals), strict=True):
        flat = values.reshape(draws, -1)
        summary = summarise(flat, estimate, level)
        if method is BootstrapInterval.BCA:
            skew = bootstrap.acceleration(counts, functional, stratified=stratified)
            low, high = bootstrap.bca_limits(flat, estimate, skew, level)
            absent = np.isnan(estimate) | (summary.undefined > MOST_UNDEFINED * draws)
            summary = Summary(
                estimate,
                np.where(absent, np.nan, low),
                np.where(absent, np.nan, high),
                summary.deviation,
                summary.monte_carlo_error,
                summary.undefined,
                np.zeros(estimate.shape, dtype=np.bool_),
            )
        found.append(summary)
    return found


def delta_interval(
    counts: Array,
    functional: Functional,
    *,
    bounds: tuple[float | None, float | None] = (None, None),
    level: float = 0.95,
    class_counts: ClassCounts = ClassCounts.RANDOM,
    scale: Scale | None = None,
    squares: Array | None = None,
) -> Summary:
    """Delta-method interval of a functional that is smooth at the counts (K, K); without any draws.

    Args:
        counts: whole or real counts.
        functional: the metric.
        bounds: its range, None where unbounded.
        level: of the interval.
        class_counts: the design.
        scale: on which the interval is symmetric; one that stays within the range when None.
        squares: sums of squared weights (K, K) of weighted samples.
    """
    estimate = estimates(counts, [functional])[0]
    error = np.sqrt(delta.variance(counts, functional, class_counts=class_counts, squares=squares))
    chosen = delta.scale_for(*bounds) if scale is None else scale
    low, high = delta.limits(estimate, error, scale=chosen, level=level, low=bounds[0], high=bounds[1])
    none = np.zeros(estimate.shape)
    return Summary(estimate, low, high, error, none, none, none.astype(np.bool_))
