"""Matrices and their intervals by the bootstrap, as services ask for them."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.draws import Functional, Shares, Summary, evaluate_draws, generator, summarise
from app.kernel.uncertainty.groups import GroupedCounts, expanded_level
from app.kernel.uncertainty.resampling import Plan, Resampled, bootstrap_samples, resamples
from app.kernel.uncertainty.simulation import DRAWS, RowPosterior, accelerated, acceleration
from app.kernel.uncertainty.units import TableUnits


def resampled_matrices(counts: Array, *, draws: int, seed: int, shares: Shares = Shares.SAMPLED) -> Array:
    """Matrices (D, K, K)."""
    made = Plan(draws, counts.size, counts.size)
    ((_, _, batches),) = resamples(TableUnits(counts, Table), made, seed, shares)
    return np.concatenate([*batches]).reshape(-1, *counts.shape)


def bootstrap_intervals(
    counts: Array,
    functionals: Sequence[Functional],
    *,
    seed: int,
    draws: int = DRAWS,
    corrected: bool = False,
    shares: Shares = Shares.SAMPLED,
) -> list[Summary]:
    """Intervals by percentiles, or by BCa."""

    def asked(functional: Functional) -> Resampled:
        def values(subject: Subject) -> Array:
            return functional(subject.table)

        skew = acceleration(counts, functional, stratified=shares is Shares.OBSERVED)
        return Resampled(values, partial(accelerated, skew) if corrected else summarise)

    made, units = Plan(draws, counts.size, counts.size), TableUnits(counts, Table)
    return bootstrap_samples(units, [*map(asked, functionals)], seed=seed, made=made, shares=shares)


def posterior_intervals(
    posterior: RowPosterior, functionals: Sequence[Functional], *, seed: int, draws: int = DRAWS, level: float = 0.95
) -> list[Summary]:
    """Intervals of a matrix from one sequence of draws."""
    drawn = evaluate_draws(posterior.batches(draws, generator(seed)), functionals)
    middle = posterior.middle
    centers = [None if middle is None else np.atleast_1d(functional(Table(middle))) for functional in functionals]
    return _summaries(drawn, functionals, posterior.counts, level, centers)


def group_intervals(
    runs: GroupedCounts, functionals: Sequence[Functional], *, seed: int, draws: int = 2000, level: float = 0.95
) -> list[Summary]:
    """Intervals by resampling groups."""
    drawn = evaluate_draws(runs.resample(draws=draws, random=generator(seed)), functionals)
    level = expanded_level(level, runs.effective_groups)
    return _summaries(drawn, functionals, runs.matrix(), level, [None] * len(functionals))


def _summaries(
    drawn: Sequence[Array],
    functionals: Sequence[Functional],
    counts: Array,
    level: float,
    centers: Sequence[Array | None],
) -> list[Summary]:
    with silently():
        found = [np.atleast_1d(functional(Table(counts))) for functional in functionals]
    each = zip(drawn, found, centers, strict=True)
    return [summarise(one.reshape(len(one), -1), own, level, center=center) for one, own, center in each]
