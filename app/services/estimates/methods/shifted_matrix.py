"""Metrics of a matrix at other class shares: rows stay, their weights change."""

from collections.abc import Sequence
from functools import partial
from math import nan

import numpy as np

from app.kernel.matrix.prevalence import project
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.closed_forms import Given
from app.kernel.uncertainty.draws import generator, summarise
from app.kernel.uncertainty.simulation import CURVED_CLASSES, draw_matrices, mean_matrix
from app.services.estimands import Estimand
from app.services.estimates.estimate import ClassShares, Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.methods.of_matrix import MissingLimits, affordable_draws, estimates_from, method_of
from app.services.estimates.run_data import RunData
from app.services.seeds import chosen_seed

# Cells of the matrices that are measured together.
_AT_ONCE = 1 << 20
# What does not vary follows from the shares alone, and these are given.
_MISSING = MissingLimits(undefined=NoLimits.UNDEFINED, undefined_draws=NoLimits.UNDEFINED_DRAWS, constant=None)


def values_at(counts: Array, estimands: Sequence[Estimand], shares: Array | None = None) -> list[Array]:
    """Values (..., V) of every estimand for matrices (..., K, K); what prevalence moves at the shares (K), if given."""
    table = Table(counts)
    projected = table if shares is None else Table(project(counts, shares))
    with silently():
        return [
            estimand.values(np.asarray(estimand.functional(table if estimand.insensitive else projected)))
            for estimand in estimands
        ]


def shifted_values(estimands: Sequence[Estimand], run: RunData, points: Array) -> list[Array]:
    """Values (G, V) of every estimand at shares (G, K)."""
    size = max(1, _AT_ONCE // run.counts.size)
    found = []
    for start in range(0, len(points), size):
        some = points[start : start + size]
        found.append(values_at(np.broadcast_to(run.counts, (len(some), *run.counts.shape)), estimands, some))
    return [np.concatenate(of_estimand) for of_estimand in zip(*found, strict=True)]


def simulation(run: RunData, shares: ClassShares, settings: LimitSettings) -> Estimate:
    """What all that is simulated has in common, and why nothing can be: rows by their posterior, class counts fixed."""
    sampling = settings.sampling
    draws = affordable_draws(run.counts.size * shares.work, sampling.draws)
    form = Estimate(
        value=nan,
        level=settings.level,
        method=method_of(sampling, run),
        given=Given.ACTUAL.value,
        prior=sampling.prior.value,
        seed=chosen_seed(settings.seed, run.source.counts),
        draws=draws,
        monte_carlo_error=nan,
    )
    return form if draws else form.without_limits(NoLimits.TOO_MANY_POINTS)


def simulated(
    estimands: Sequence[Estimand], run: RunData, shares: ClassShares, settings: LimitSettings
) -> list[list[Estimates]]:
    """For every estimand its values at each point; all points see the same draws, so that they are on smooth curves."""
    values = shifted_values(estimands, run, shares.points)
    form = simulation(run, shares, settings)
    if not form.draws or form.seed is None:
        return [[form.of_values(one) for one in of_estimand] for of_estimand in values]
    sampling = settings.sampling
    custom = None if sampling.pseudo_counts is None else np.array(sampling.pseudo_counts, dtype=np.float64)
    draw = partial(draw_matrices, run.counts, prior=sampling.prior, custom=custom, squares=run.squares)
    matrices = np.concatenate(list(draw(draws=form.draws, random=generator(form.seed))))
    center = None
    if run.n_classes >= CURVED_CLASSES:
        center = mean_matrix(run.counts, prior=sampling.prior, custom=custom, squares=run.squares)
    found: list[list[Estimates]] = [[] for _ in estimands]
    for point, drawn_at in enumerate(shares.drawn(form.draws, form.seed)):
        drawn = values_at(matrices, estimands, drawn_at)
        centers: Sequence[Array | None] = [None] * len(estimands)
        if center is not None:
            centers = values_at(center, estimands, shares.points[point])
        for place, (own, middle) in enumerate(zip(drawn, centers, strict=True)):
            summary = summarise(own, values[place][point], settings.level_of_each, center=middle)
            found[place].append(estimates_from(summary, form, _MISSING))
    return found
