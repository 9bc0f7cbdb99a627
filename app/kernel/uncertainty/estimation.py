"""Intervals of any metrics and expressions of one matrix by the method asked for, all from one set of draws."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from app.kernel.numerics import Array, silently
from app.kernel.table import Table
from app.kernel.uncertainty import bootstrap, delta, posterior
from app.kernel.uncertainty.bootstrap import BootstrapInterval
from app.kernel.uncertainty.delta import Scale
from app.kernel.uncertainty.design import ClassCounts, Prior, Shares, generator
from app.kernel.uncertainty.draws import MOST_UNDEFINED, Functional, Summary, evaluate_draws, summarise

DRAWS = 4000


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sampling:
    """How posterior matrices are drawn; everything an answer has to state. See ``posterior.draw_matrices``."""

    seed: int
    draws: int = DRAWS
    prior: Prior = Prior.EDGE
    custom: Array | None = None
    shares: Shares = Shares.OBSERVED
    given: Array | None = None


def estimates(counts: Array, functionals: Sequence[Functional]) -> list[Array]:
    """Values (V) of every functional of one matrix (K, K): V is 1, or K for a list over the classes."""
    table = Table(counts)
    with silently():
        return [np.atleast_1d(functional(table)) for functional in functionals]


def posterior_intervals(
    counts: Array, functionals: Sequence[Functional], sampling: Sampling, *, level: float = 0.95
) -> list[Summary]:
    """Posterior intervals of every functional of one matrix of counts (K, K), in the order given.

    Raises:
        ValueError: as ``posterior.draw_matrices``.
    """
    batches = posterior.draw_matrices(
        counts,
        draws=sampling.draws,
        random=generator(sampling.seed),
        prior=sampling.prior,
        custom=sampling.custom,
        shares=sampling.shares,
        given=sampling.given,
    )
    return _summaries(batches, counts, functionals, draws=sampling.draws, level=level)


def _summaries(
    batches: Iterator[Array], counts: Array, functionals: Sequence[Functional], *, draws: int, level: float
) -> list[Summary]:
    observed = estimates(counts, functionals)
    first = next(batches)
    if len(first) < draws:
        values = evaluate_draws(itertools.chain([first], batches), functionals)
        return [summarise(v.reshape(draws, -1), e, level) for v, e in zip(values, observed, strict=True)]
    # All draws at once: the values of one metric are used up before the next are made, which saves the memory of all.
    table, found = Table(first), []
    for functional, estimate in zip(functionals, observed, strict=True):
        with silently():
            one = functional(table)
        found.append(summarise(one.reshape(draws, -1), estimate, level))
    return found


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


@dataclass(frozen=True, slots=True, eq=False)
class DeltaInterval:
    """Delta-method limits of V values, NaN where the standard error is 0 or the value stands at an end of its scale."""

    estimate: Array
    error: Array
    low: Array
    high: Array
    scale: Scale


def delta_interval(
    counts: Array,
    functional: Functional,
    *,
    bounds: tuple[float | None, float | None] = (None, None),
    level: float = 0.95,
    class_counts: ClassCounts = ClassCounts.RANDOM,
    scale: Scale | None = None,
) -> DeltaInterval:
    """Delta-method interval of a functional that is smooth at the counts (K, K).

    Args:
        counts: whole or real counts.
        functional: the metric.
        bounds: its range, None where unbounded.
        level: of the interval.
        class_counts: the design.
        scale: on which the interval is symmetric; one that stays within the range when None.
    """
    estimate = estimates(counts, [functional])[0]
    error = np.sqrt(delta.variance(counts, functional, class_counts=class_counts))
    chosen = delta.scale_for(*bounds) if scale is None else scale
    low, high = delta.limits(estimate, error, scale=chosen, level=level, low=bounds[0], high=bounds[1])
    return DeltaInterval(estimate, error, low, high, chosen)
