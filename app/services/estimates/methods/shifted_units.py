"""Metrics of classes and decisions at other class shares: rows stay, their weights change, and rows are resampled."""

from collections.abc import Sequence
from dataclasses import replace
from math import nan

import numpy as np

from app.kernel.matrix.prevalence import class_factors
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.closed_forms import Given
from app.kernel.uncertainty.draws import ClassCounts, summarise
from app.kernel.uncertainty.resampling import plan, resamples
from app.services.estimands import Estimand
from app.services.estimates.estimate import ClassShares, Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.methods.of_matrix import MISSING_OF_RESAMPLES, estimates_from
from app.services.estimates.run_data import RunData
from app.services.seeds import chosen_seed

# Cells passed over at all points together.
_MOST_CELLS = 100_000_000


def most_points(run: RunData) -> int:
    """At how many shares values can be had in reasonable time."""
    return max(_MOST_CELLS // run.units.n_units, 1)


def resampling(run: RunData, shares: ClassShares, settings: LimitSettings) -> Estimate:
    """What all that is resampled has in common, and why nothing can be: class counts are fixed."""
    made = plan(run.units.n_units, run.units.width * shares.work, settings.sampling.draws)
    form = Estimate(value=nan, level=settings.level, method="bootstrap", given=Given.ACTUAL.value)
    if made is None:
        return form.without_limits(NoLimits.TOO_MANY_POINTS)
    seed = chosen_seed(settings.seed, run.source.counts)
    return replace(form, seed=seed, draws=made.draws, monte_carlo_error=nan)


def shifted_values(estimands: Sequence[Estimand], run: RunData, shares: ClassShares) -> list[Array]:
    """Values (G, V) of every estimand at the shares."""
    return _at(estimands, run, _masses(run)[None], shares.points)


def resampled_all(
    estimands: Sequence[Estimand], run: RunData, shares: ClassShares, settings: LimitSettings
) -> list[list[Estimates]]:
    """For every estimand its values at each point, by a bootstrap within the classes; all points see the same one."""
    values, form = shifted_values(estimands, run, shares), resampling(run, shares, settings)
    made = plan(run.units.n_units, run.units.width * shares.work, settings.sampling.draws)
    if made is None or form.seed is None:
        return [[form.of_values(one) for one in of_estimand] for of_estimand in values]
    drawn = [weights for *_, batches in resamples(run.units, made, form.seed, ClassCounts.FIXED) for weights in batches]
    found: list[list[Estimates]] = [[] for _ in estimands]
    for place, at_draws in enumerate(shares.drawn(made.draws, form.seed)):
        at_point = _at(estimands, run, np.concatenate(drawn), at_draws)
        for own, known, of_estimand in zip(at_point, values, found, strict=True):
            summary = summarise(own, known[place], settings.level_of_each)
            of_estimand.append(estimates_from(summary, form, MISSING_OF_RESAMPLES))
    return found


def _masses(run: RunData) -> Array:
    masses = run.units.multiplicities
    if masses is None:
        raise TypeError("expected units that stand for samples")
    return masses


def _at(estimands: Sequence[Estimand], run: RunData, weights: Array, shares: Array) -> list[Array]:
    """Values (D, V) of every estimand for units in weights (D or 1, n), at shares (D or 1, K)."""
    strata = run.units.strata
    actual = np.bincount(strata, _masses(run), run.n_classes).astype(np.float64)
    with silently():
        subject = run.units.subject(weights * class_factors(actual, shares).take(strata, axis=-1))
        return [one.values(np.asarray(one.functional(subject))) for one in estimands]
