"""Matrices and their intervals by the bootstrap, as services ask for them."""

from collections.abc import Sequence
from functools import partial

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Functional, Shares, Summary, summarise
from app.kernel.uncertainty.resampling import Plan, Resampled, bootstrap_samples, resamples
from app.kernel.uncertainty.simulation import DRAWS, accelerated, acceleration
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
