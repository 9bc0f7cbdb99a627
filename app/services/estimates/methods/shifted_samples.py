"""Metrics of samples at other class shares: every class in another weight, and, if wanted, other probabilities.

Under label shift this is exact: a sample of a class stands for as many as the class has where the model is used.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from math import nan

import numpy as np

from app.domain.inputs.classified import decide, decide_by_threshold
from app.domain.inputs.samples import DecidedBy
from app.kernel.matrix.prevalence import class_factors, recalibrate
from app.kernel.metrics.expression import Subject
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.closed_forms import Given
from app.kernel.uncertainty.draws import ClassCounts, summarise
from app.kernel.uncertainty.resampling import Plan, plan, resamples
from app.kernel.uncertainty.units import Run
from app.services.estimands import Estimand
from app.services.estimates.estimate import ClassShares, Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.methods.of_matrix import MISSING_OF_RESAMPLES, estimates_from
from app.services.estimates.run_data import RunData
from app.services.seeds import chosen_seed

# Probabilities passed over at all points together, and at a time.
MOST_ENTRIES = 100_000_000
_AT_ONCE = 1 << 20


def most_points(run: RunData) -> int:
    """At how many shares values can be had in reasonable time."""
    return max(MOST_ENTRIES // run.scores.probabilities.size, 1)


def resampling(run: RunData, shares: ClassShares, settings: LimitSettings) -> Estimate:
    """What all that is resampled has in common, and why nothing can be: class counts are fixed."""
    made = _plan(run, shares, settings)
    form = Estimate(
        value=nan,
        level=settings.level,
        method="bootstrap" if run.scores.weights is None else "weighted_bootstrap",
        given=Given.ACTUAL.value,
    )
    if made is None:
        return form.without_limits(NoLimits.TOO_MANY_POINTS)
    seed = chosen_seed(settings.seed, run.source.counts)
    return replace(form, seed=seed, draws=made.draws, monte_carlo_error=nan)


def _plan(run: RunData, shares: ClassShares, settings: LimitSettings) -> Plan | None:
    """How many resamples of what; None when even few take too long."""
    return plan(run.scores.n_samples, run.n_classes * shares.work, settings.sampling.draws)


def shifted_values(estimands: Sequence[Estimand], run: RunData, shares: ClassShares) -> list[Array]:
    """Values (G, V) of every estimand at the shares."""
    found = [np.repeat(run.values(estimand)[None], len(shares), axis=0) for estimand in estimands]
    moving = [place for place, estimand in enumerate(estimands) if not shares.leave(estimand)]
    samples = _Samples(run, shares.calibrated_to)
    size = max(1, _AT_ONCE // run.scores.probabilities.size) if shares.calibrated_to is None else 1
    own = np.ones(run.scores.n_samples) if run.scores.weights is None else run.scores.weights
    for start in range(0, len(shares) if moving else 0, size):
        part = slice(start, start + size)
        some = shares.points[part]
        at_points = _AtPoint(samples.at(some[0]), own[None], class_factors(run.scores.actual, some))
        for place in moving:
            found[place][part] = at_points.values(estimands[place])
    return found


def resampled_all(
    estimands: Sequence[Estimand], run: RunData, shares: ClassShares, settings: LimitSettings
) -> list[list[Estimates]]:
    """For every estimand its values at each point, by a bootstrap within the classes; all points see the same one."""
    values, made = shifted_values(estimands, run, shares), _plan(run, shares, settings)
    form = resampling(run, shares, settings)
    if made is None or form.seed is None:
        return [[form.of_values(one) for one in of_estimand] for of_estimand in values]
    drawn = _drawn(estimands, run, shares, values, made, form.seed)
    return [
        [
            estimates_from(summarise(own[:, point], one, settings.level_of_each), form, MISSING_OF_RESAMPLES)
            for point, one in enumerate(of_estimand)
        ]
        for own, of_estimand in zip(drawn, values, strict=True)
    ]


def _drawn(
    estimands: Sequence[Estimand], run: RunData, shares: ClassShares, values: Sequence[Array], made: Plan, seed: int
) -> list[Array]:
    """Values (D, G, V) of every estimand in resamples."""
    samples = _Samples(run, shares.calibrated_to)
    drawn = [np.empty((made.draws, *of_estimand.shape)) for of_estimand in values]
    spread = shares.drawn(made.draws, seed)
    own, done = run.scores.weights, 0
    for chosen, base, batches in resamples(run.units, made, seed, ClassCounts.FIXED):
        parts = [samples.part(one, chosen) for one in shares.points]
        mine = own if own is None or chosen is None else own.take(chosen)
        # What a subset is off the data is no sampling error of the data.
        shifts = [np.zeros(of_estimand.shape) for of_estimand in values]
        if base is not None:
            whole = base[None] if mine is None else (base * mine)[None]
            at_subset = samples.at_points(estimands, parts, whole, [one[None] for one in shares.points])
            shifts = [found - subset[0] for found, subset in zip(values, at_subset, strict=True)]
        for weights in batches:
            rows = slice(done, done + len(weights))
            done = rows.stop
            at_draws = [one if len(one) == 1 else one[rows] for one in spread]
            found = samples.at_points(estimands, parts, weights if mine is None else weights * mine, at_draws)
            for all_of_one, computed, shift in zip(drawn, found, shifts, strict=True):
                all_of_one[rows] = computed + shift
    return drawn


class _Samples:
    """Samples with their decisions, and both fitted to other shares where these are to be.

    Args:
        run: With probabilities or scores.
        calibrated_to: The shares (K) that the probabilities are calibrated to, when they are to be fitted.
    """

    def __init__(self, run: RunData, calibrated_to: Array | None) -> None:
        self._run, self._scores, self._old = run, run.scores, calibrated_to

    def at(self, shares: Array) -> Run:
        """Scores and decisions for shares (K)."""
        if self._old is None:
            return Run(self._scores, self._run.predicted)
        rows = recalibrate(self._scores.probabilities, self._old, shares)
        facts, positive = self._run.source.facts, self._run.source.positive or 0
        if facts.get("rule") == DecidedBy.THRESHOLD.value:
            codes = decide_by_threshold(rows[:, positive], float(facts["threshold"]), positive)
        else:
            codes, _ = decide(rows)
        return Run(Scores(self._scores.y, rows, self._scores.weights), codes.astype(np.intp))

    def part(self, shares: Array, chosen: Codes | None) -> Run:
        """The same of some samples; None for all."""
        run = self.at(shares)
        return run if chosen is None else run.part(chosen)

    def at_points(
        self, estimands: Sequence[Estimand], runs: Sequence[Run], weights: Array, shares: Sequence[Array]
    ) -> list[Array]:
        """Values (d, G, V) of every estimand for weights (d, b), at each point with shares (1 or d, K)."""
        points = [
            _AtPoint(run, weights, class_factors(self._scores.actual, one))
            for run, one in zip(runs, shares, strict=True)
        ]
        return [np.stack([point.values(estimand) for point in points], axis=1) for estimand in estimands]


class _AtPoint:
    """Samples with scores and decisions, in weights (d, n), every class by a factor (d or 1, K)."""

    def __init__(self, run: Run, weights: Array, factors: Array) -> None:
        self._run, self._weights, self._factors = run, weights, factors

    @cached_property
    def _moved(self) -> Subject:
        return self._run.subject(self._weights * self._factors.take(self._run.scores.y, axis=-1))

    @cached_property
    def _still(self) -> Subject:
        return self._run.subject(self._weights)

    def values(self, estimand: Estimand) -> Array:
        """Values (d, V); what prevalence does not move has one even where a class has no share."""
        with silently():
            return estimand.values(
                np.asarray(estimand.functional(self._still if estimand.insensitive else self._moved))
            )
