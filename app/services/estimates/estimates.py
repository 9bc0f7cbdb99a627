"""The one way from estimands and a run to values with limits: which method a value has is decided here.

What is of slices follows from runs of these alone. For all else in this order: nothing for what only describes the
sample; for the smallest or largest of several values, and the mean of values of slices, what follows from their own
limits; the exact methods of rates; closed forms, unless simulation is preferred to approximations; simulation. At
another class prevalence what it does not move stays as it is; for what it moves the order is the same.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import isfinite, isnan, nan

import numpy as np

from app.domain.expressions.expressions import render
from app.domain.options import IntervalMethod
from app.kernel.metrics.expression import (
    Combination,
    OverSlices,
    Sliced,
    is_about_sample,
    is_biased,
    is_of_slices,
    measures,
    needs_counts,
    value_over_slices,
)
from app.kernel.metrics.families.combinations import Ends
from app.kernel.numerics.arrays import Array
from app.kernel.slices.extremes import level_of_any, level_of_pairs, mean_of, range_of, ratio_of
from app.kernel.uncertainty.closed_forms import Method
from app.kernel.uncertainty.designs import Given
from app.kernel.uncertainty.draws import Alternative
from app.kernel.uncertainty.intervals import Limits, ProportionInterval, ValueWithEnds
from app.services.estimands import Estimand, estimand_of, estimands_in
from app.services.estimates.estimate import ClassShares, Estimate, Estimates, LimitSettings, NoLimits, canonical
from app.services.estimates.methods import closed_forms, simulation
from app.services.estimates.methods.closed_forms import limits_of_many as limits_of_many
from app.services.estimates.run_data import RunData, joined

_DEFAULTS = LimitSettings()
Picks = Callable[[Iterable[float]], float]
OfPairs = Callable[[Array, Limits, Limits], ValueWithEnds]
_PICKED = (
    "The {one} of several values is another quantity than the value that came out {one}: which one would was not known "
    "beforehand. So its {far} limit holds for all of them together, and lies further out than that of one value that "
    "was chosen beforehand."
)
_NOTES: Mapping[Picks, str] = {
    min: _PICKED.format(one="lowest", far="upper"),
    max: _PICKED.format(one="highest", far="lower"),
}


_OF_PAIRS: Mapping[Ends | None, OfPairs] = {Ends.DISTANCE: range_of, Ends.RATIO: ratio_of}
_NOTE_OF_PAIRS = (
    "Which two of several values lie furthest apart was not known beforehand: so the limit on the side of equal values "
    "holds for all pairs together."
)
_NOTE_OF_MEAN = (
    "How the values vary together is not known: so its limits are the means of limits that hold for all of them "
    "together, and wider than need be."
)
_NOTE_OF_GROUPS = (
    "Groups have samples in several slices, whose values may move together: so the limits are the means of theirs."
)


def estimate(estimands: Sequence[Estimand], run: RunData, settings: LimitSettings = _DEFAULTS) -> list[Estimates]:
    """Values of estimands for one run, with limits or the reason why there are none.

    The limits of a value follow from the run and the settings alone, whatever else is asked: everything that is
    simulated sees the same draws.
    """
    return [at_once for (at_once,) in estimate_at(estimands, run, None, settings)]


def estimate_at(
    estimands: Sequence[Estimand], run: RunData, shares: ClassShares | None, settings: LimitSettings = _DEFAULTS
) -> list[list[Estimates]]:
    """Estimate at another class prevalence: for every estimand its values at each of the G points; without shares there
    is one, the run as it is.

    What prevalence does not move has there what it has everywhere. What it moves and has no closed form is simulated,
    and all points see the same draws.
    """
    estimands = [_in_one_form(estimand, run) for estimand in estimands]
    found: dict[int, list[Estimates | None]] = {}
    if shares is not None:
        still = [place for place, estimand in enumerate(estimands) if shares.leave(estimand)]
        for place, own in zip(still, estimate([estimands[place] for place in still], run, settings), strict=True):
            found[place] = [own] * len(shares)
    for place, estimand in enumerate(estimands):
        if place not in found:
            found[place] = _without_simulation(estimand, run, shares, settings)
    from_samples = [one.scored if shares is None else shares.from_samples(one) for one in estimands]
    for of_samples_too in (False, True):
        places = [place for place, known in found.items() if None in known and from_samples[place] is of_samples_too]
        drawn = simulation.simulated([estimands[place] for place in places], run, shares, settings) if places else []
        for place, points in zip(places, drawn, strict=True):
            found[place] = [one or simulated for one, simulated in zip(found[place], points, strict=True)]
    return [
        [tuple(one.opened(settings.alternative, estimand.bounds) for one in point or ()) for point in found[place]]
        for place, estimand in enumerate(estimands)
    ]


def values_at_shares(estimand: Estimand, run: RunData, shares: ClassShares) -> Array:
    """Values (G, V) alone."""
    if is_of_slices(estimand.expression):
        values = [values_at_shares(one, some, shares) for one, some in _inside(estimand, run, shares)]
        return joined(estimand.expression, values, (len(shares), len(estimand.names)))
    return simulation.shifted_values([_in_one_form(estimand, run)], run, shares)[0]


def work_of(estimand: Estimand, run: RunData, settings: LimitSettings = _DEFAULTS) -> float:
    """Return the time that the limits of an estimand take, as a part of the longest that anyone waits."""
    if is_of_slices(estimand.expression):
        # Of several values each has limits at two levels.
        levels = 1.0 if isinstance(estimand.expression, Sliced) else 2.0
        return levels * sum(work_of(one, some, settings) for one, some in _inside(estimand, run))
    known = None not in _without_simulation(_in_one_form(estimand, run), run, None, settings)
    return 0.0 if known else simulation.work_of(estimand, run, settings)


def _inside(estimand: Estimand, run: RunData, shares: ClassShares | None = None) -> list[tuple[Estimand, RunData]]:
    """Parts of an estimand of slices, each with its samples, without slices that lack a class with a share."""
    found = []
    for part, some in run.inside(estimand.expression):
        labels = some.source.labels
        if some is run or shares is None or (some.source.counts.sum(axis=1) > 0)[(shares.points > 0).any(axis=0)].all():
            found.append((estimand_of(part, render(part, labels), labels, task=estimand.task), some))
    return found


def _in_one_form(estimand: Estimand, run: RunData) -> Estimand:
    return replace(estimand, expression=canonical(estimand.expression, run.source.labels))


def _without_simulation(
    estimand: Estimand, run: RunData, shares: ClassShares | None, settings: LimitSettings
) -> list[Estimates | None]:
    """The values of an estimand with limits that need no simulation, point by point; None where one does."""
    if isinstance(estimand.expression, Sliced | OverSlices):
        return [*_of_slices(estimand, run, shares, settings)]
    biased = shares is not None and shares.from_samples(estimand) and is_biased(estimand.expression)
    reason = NoLimits.BIASED if biased else _refusal(estimand, run)
    if reason is not None and shares is None:
        return [values_alone(estimand, run, settings, reason)]
    if reason is not None and shares is not None:
        form = Estimate(value=np.nan, level=settings.level).without_limits(reason)
        return [form.of_values(values) for values in values_at_shares(estimand, run, shares)]
    expression = estimand.expression
    if isinstance(expression, Combination) and (expression.card.picks is not None or is_of_slices(expression)):
        return [*_of_parts(estimand, expression, run, shares, settings)]
    if shares is not None:
        return closed_forms.at_shares(estimand, run, shares, settings)
    return [closed_forms.in_closed_form(estimand, run, settings)]


def _refusal(estimand: Estimand, run: RunData) -> NoLimits | None:
    if not run.is_counted and needs_counts(estimand.expression):
        return NoLimits.NO_COUNTS
    reason = run.uncounted
    if reason is None and is_about_sample(estimand.expression):
        return NoLimits.ABOUT_SAMPLE
    return reason or (NoLimits.EMPTY_CLASS if _averages_an_empty_class(estimand, run) else None)


def _averages_an_empty_class(estimand: Estimand, run: RunData) -> bool:
    """Is it a mean over classes, one of which has no samples?"""
    if run.source.task is not None or estimand.scored or (run.table.actual > 0).all():
        return False
    if any(leaf.metric.card.inference.over_classes for leaf in measures(estimand.expression)):
        return bool(np.isfinite(run.values(estimand)).all())
    return False


def values_alone(estimand: Estimand, run: RunData, settings: LimitSettings, reason: NoLimits) -> Estimates:
    """Return the values of an estimand without limits, for this reason."""
    form = Estimate(value=np.nan, level=settings.level)
    if reason in (NoLimits.ABOUT_SAMPLE, NoLimits.EMPTY_CLASS, NoLimits.SLOW):
        resampled = replace(form, method=IntervalMethod.BOOTSTRAP.value, given=Given.SAMPLES.value)
        form = resampled if estimand.scored else simulation.simulated_form(run, settings, from_samples=False)
    if reason is NoLimits.ONE_GROUP:
        form = replace(form, method=Method.CLUSTER_BOOTSTRAP.value, given=Given.GROUPS.value)
    return form.without_limits(reason).of_values(run.values(estimand))


def _of_parts(
    estimand: Estimand, expression: Combination, run: RunData, shares: ClassShares | None, settings: LimitSettings
) -> list[Estimates]:
    """The smallest, the largest or the mean of P values at each point, from their own limits."""
    parts, pick = estimands_in(estimand, expression, run.source.labels), expression.card.picks
    values = run.values(estimand)[None] if shares is None else values_at_shares(estimand, run, shares)
    of_any = settings.of_any(sum(len(part.names) for part in parts))
    together = [_flat(one) for one in zip(*estimate_at(parts, run, shares, of_any), strict=True)]
    if pick is not None:
        alone = [_flat(one) for one in zip(*estimate_at(parts, run, shares, settings), strict=True)]
        points = zip(values[:, 0].tolist(), alone, together, strict=True)
        return [(_pick(estimand, pick, value, one, far, settings),) for value, one, far in points]
    found: list[Estimates] = []
    for value, far in zip(values[:, 0].tolist(), together, strict=True):
        # Of limits that hold for all parts together (Bonferroni).
        low, high = (float(expression.card.compute(end, **expression.parameters)) for end in _limits(far))
        found.append((_from_several(estimand, (value, low, high), far, (), settings, _NOTE_OF_MEAN),))
    return found


def _of_slices(
    estimand: Estimand, run: RunData, shares: ClassShares | None, settings: LimitSettings
) -> list[Estimates]:
    """The values of one slice are those of its samples, brought to the shares if there are some; what is picked from
    several follows from theirs.
    """
    expression, slices = estimand.expression, _inside(estimand, run, shares)
    n_points = 1 if shares is None else len(shares)

    @cache
    def at(asked: LimitSettings) -> list[list[Estimates]]:
        return [estimate_at([inside], one, shares, asked)[0] for inside, one in slices]

    if not isinstance(expression, OverSlices):
        if slices:
            return at(settings)[0]
        without = _without_slices(settings, NoLimits.EMPTY_CLASS if run.inside(expression) else NoLimits.EMPTY_SLICE)
        return [without.of_values(np.full(len(estimand.names), nan))] * n_points
    found: list[Estimates] = []
    independent = run.slices(expression).independent
    for place in range(n_points):

        def of_each(asked: LimitSettings, place: int = place) -> list[Estimate]:
            return [own[place][0] for own in at(asked)]

        found.append((picked_of(estimand, expression, of_each, settings, independent=independent),))
    return found


def _without_slices(settings: LimitSettings, reason: NoLimits) -> Estimate:
    form = Estimate(value=nan, level=settings.level, method=Method.SIMULTANEOUS.value, given=Given.SAMPLES.value)
    return form.without_limits(reason)


def picked_of(
    estimand: Estimand,
    expression: OverSlices,
    of_each: Callable[[LimitSettings], Sequence[Estimate]],
    settings: LimitSettings,
    *,
    independent: bool = True,
) -> Estimate:
    """A function of the values that disjoint slices have, from their own limits.

    ``of_each`` gives the value of each slice with limits by some settings. Of slices that share groups, which are not
    ``independent``, the mean has wider limits.
    """
    card, level = expression.card, settings.level_of_each
    plain = replace(
        settings,
        level=level,
        together=1,
        alternative=Alternative.TWO_SIDED,
        proportions=settings.proportions_of_each,
    )
    known = tuple(one for one in of_each(plain) if isfinite(one.value))
    value = float(value_over_slices(expression, np.array([one.value for one in known])))
    if isnan(value):
        enough = len(known) > (1 if card.picks is None else 0)
        return _without_slices(settings, NoLimits.UNDEFINED if enough else NoLimits.FEW_SLICES)
    if card.linear and len(known) == 1:
        return replace(known[0], level=settings.level)
    if card.linear:
        each = of_each(replace(plain, proportions=ProportionInterval.CLOPPER_PEARSON))
        known = tuple(one for one in each if isfinite(one.value))
        low, high = mean_of(np.array([one.value for one in known]), _limits(known), independent=independent)
        note = None if independent else _NOTE_OF_GROUPS
        found = _from_several(estimand, (value, float(low), float(high)), known, (), settings, note)
        return replace(found, method=Method.MOVER.value)
    if card.picks is not None:
        far = replace(plain, level=level_of_any(level, len(known)), proportions=ProportionInterval.CLOPPER_PEARSON)
    else:
        far = replace(plain, level=level_of_pairs(level, len(known)))
    further = tuple(one for one in of_each(far) if isfinite(one.value))
    if card.picks is not None:
        return replace(_pick(estimand, card.picks, value, known, further, settings), level=settings.level)
    of_pairs = _OF_PAIRS[card.ends]
    _, low, high = of_pairs(np.array([one.value for one in known]), *map(_limits, (known, further)))
    return _from_several(estimand, (value, float(low), float(high)), known, further, settings, _NOTE_OF_PAIRS)


def _flat(found: Iterable[Estimates]) -> Estimates:
    return tuple(one for estimates in found for one in estimates)


def _pick(
    estimand: Estimand, pick: Picks, value: float, alone: Estimates, together: Estimates, settings: LimitSettings
) -> Estimate:
    """The smallest or largest of P values, from limits of each alone and from those that hold for all together.

    The smallest is above a number only if all are: so it is above the smallest of their lower limits, at the level of
    one, which errs to the safe side (an intersection-union test, Berger 1982). It is below a number if any of them is,
    and which of them is not known beforehand: so below the smallest of upper limits that hold for all of them
    together. Draws of the smallest of noisy values would lie below the smallest of the values themselves.
    """
    if len(alone) == 1:
        return alone[0]
    lower, upper = (alone, together) if pick is min else (together, alone)
    ends = pick(one.low for one in lower), pick(one.high for one in upper)
    return _from_several(estimand, (value, *ends), alone, together, settings, _NOTES[pick])


def _limits(found: Estimates) -> Limits:
    return np.array([one.low for one in found]), np.array([one.high for one in found])


def _from_several(
    estimand: Estimand,
    of: tuple[float, float, float],
    alone: Estimates,
    together: Estimates,
    settings: LimitSettings,
    note: str | None,
) -> Estimate:
    """A value with its limits, as they were made of those of several values."""
    value, low, high = of
    simulated = next((one for one in alone if one.seed is not None), None)
    errors = [one.monte_carlo_error for one in (*alone, *together) if one.monte_carlo_error is not None]
    found = Estimate(
        value=value,
        low=low,
        high=high,
        level=settings.level,
        method=Method.SIMULTANEOUS.value,
        given=", ".join(sorted({one.given for one in alone if one.given is not None})),
        prior=None if simulated is None else simulated.prior,
        seed=None if simulated is None else simulated.seed,
        draws=None if simulated is None else simulated.draws,
        monte_carlo_error=max(errors, default=None),
        note=note,
    )
    reason = next((one.reason for one in (*alone, *together) if one.reason is not None), None)
    if isnan(found.value):
        reason = NoLimits.UNDEFINED_FOR_SAMPLES if estimand.scored else NoLimits.UNDEFINED
    return found if reason is None else found.without_limits(reason)
