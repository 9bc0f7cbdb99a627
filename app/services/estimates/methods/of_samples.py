"""Limits of metrics of probabilities and scores, and of expressions with such metrics in them.

Where a metric is a sum over the samples or an area there is a closed form; all else is resampled, all of it at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import isfinite, nan
from typing import Final

import numpy as np

from app.kernel.compare.linear import linearised
from app.kernel.metrics.card import Scale, is_of_probabilities
from app.kernel.metrics.expression import Every, Expression, Measure, measures, usual_measure
from app.kernel.metrics.families.score_ranking import average_precision, recall_at, roc_auc, specificity_at
from app.kernel.numerics.arrays import Array
from app.kernel.samples.areas import precision_variance
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.uncertainty.closed_forms import Method
from app.kernel.uncertainty.designs import Given
from app.kernel.uncertainty.draws import AreaInterval, ClassCounts, Shares, chosen_seed
from app.kernel.uncertainty.influence import (
    Linearisation,
    area_alone,
    by_groups,
    effective_samples,
    hanley_mcneil_limits,
    limits,
)
from app.kernel.uncertainty.intervals import limits_at_rate
from app.kernel.uncertainty.resampling import Plan, bootstrap_samples, plan, resampled
from app.services.estimands import Estimand
from app.services.estimates.estimate import Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.methods.of_matrix import MISSING_OF_RESAMPLES, estimates_from, given_of
from app.services.estimates.run_data import RunData

# With fewer samples behind the variance of a mean its t interval misses its level.
FEW_EFFECTIVE: Final = 10
# That many of all samples would carry it if none stood out: a third for values with a normal distribution.
_USUAL_SHARE = 0.2
# What follows from the order of one class, and needs no influences.
_OF_ONE_ORDER: Final = (roc_auc, average_precision, recall_at, specificity_at)
# So many metrics are as much work as all that have to be resampled of the catalogue.
_METRICS_OF_A_LOAD = 8


def in_closed_form(estimand: Estimand, run: RunData, settings: LimitSettings) -> Estimates | None:
    """An estimand that is a sum over the samples, or over other units such as queries; None for others."""
    expression = estimand.expression
    if isinstance(expression, Measure) and expression.metric in _OF_ONE_ORDER and _are_alike(run):
        codes = range(run.n_classes) if isinstance(expression.of, Every) else (expression.of,)
        classes = [code for code in codes if code is not None]
        if expression.metric is roc_auc:
            return tuple(areas(classes, run, settings))
        if expression.metric is average_precision:
            return tuple(_precision(code, run, settings) for code in classes)
        values = zip(classes, run.values(estimand).tolist(), strict=True)
        return tuple(_at_rate(expression, code, value, run, settings) for code, value in values)
    found = linearised(expression, run.influences)
    return None if found is None else tuple(of_sum(linear, run, settings) for linear in found)


def _are_alike(run: RunData) -> bool:
    """Are its samples at hand, independent and of one weight?"""
    return run.units.at_hand and run.grouping is None and run.scores.weights is None


def _at_rate(expression: Measure, code: int, value: float, run: RunData, settings: LimitSettings) -> Estimate:
    """A rate of a class at the cut where the rate of the others, or of its members, is given: by order statistics."""
    found = Estimate(value=value, level=settings.level, method=Method.ORDER_STATISTICS.value, given=Given.ACTUAL.value)
    if not isfinite(value):
        return found.without_limits(NoLimits.UNDEFINED_FOR_SAMPLES)
    scores, members = run.scores.probabilities[:, code], run.scores.y == code
    fixed, other = np.sort(scores[members]), np.sort(scores[~members])
    (rate,) = {**expression.metric.card.defaults, **expression.parameters}.values()
    if expression.metric is recall_at:
        # Turned around, members are what lies below the cut.
        fixed, other = -other[::-1], -fixed[::-1]
    low, high = limits_at_rate(value, float(rate), fixed, other, settings.level_of_each)
    known = isfinite(low) and isfinite(high)
    return replace(found, low=low, high=high) if known else found.without_limits(NoLimits.FEW_AT_RATE)


def areas(classes: Sequence[int], run: RunData, settings: LimitSettings) -> Iterator[Estimate]:
    """Areas under the curves of classes by DeLong, from the orders that their values were read off."""
    by_sizes = settings.areas is AreaInterval.HANLEY_MCNEIL
    method = settings.areas.value if by_sizes else LinearMethod.DELONG_LOGIT.value
    form = Estimate(value=nan, level=settings.level, method=method, given=Given.ACTUAL.value)
    spread: float | None = None
    for code in classes:
        ranking = run.scores.ranking(code)
        value, sizes = float(ranking.auc), (int(ranking.positives), int(ranking.negatives))
        if not isfinite(value):
            yield form.without_limits(NoLimits.UNDEFINED_FOR_SAMPLES)
        elif by_sizes:
            low, high = hanley_mcneil_limits(value, *sizes, settings.level_of_each)
            one = replace(form, value=value, low=low, high=high)
            yield one if low < high else one.without_limits(NoLimits.DEGENERATE)
        else:
            # With two classes both have the same order, one from above and one from below.
            spread = run.area_variance(ranking) if spread is None or not run.scores.is_mirrored else spread
            yield of_sum(area_alone(value, spread, *sizes), run, settings)


def _precision(code: int, run: RunData, settings: LimitSettings) -> Estimate:
    """Average precision of a class, from the order that its value was read off."""
    ranking = run.scores.ranking(code)
    members, others = float(ranking.positives), float(ranking.negatives)
    spread = precision_variance(ranking) if members else nan
    value, freedom = float(ranking.average_precision), max(min(members, others) - 1.0, 1.0)
    method = LinearMethod.INFLUENCE_LOGIT
    linear = Linearisation(value, np.array([spread**0.5]), Scale.LOGIT, Strata.WHOLE, method, freedom=freedom)
    return of_sum(linear, run, settings)


def of_sum(linear: Linearisation, run: RunData, settings: LimitSettings) -> Estimate:
    """One value that is a sum over the samples."""
    summed = linear if run.grouping is None else by_groups(linear, run.grouping)
    given = given_of(Given.ACTUAL if linear.strata is Strata.BY_CLASS else Given.SAMPLES, run)
    form = Estimate(value=linear.value, level=settings.level, method=summed.named, given=given)
    ends = limits(summed, settings.level_of_each, settings.proportions)
    if ends is not None:
        few = _few_effective(summed)
        return replace(form, low=ends.low, high=ends.high, method=summed.name_of(ends.method), effective_samples=few)
    if not isfinite(linear.value):
        return form.without_limits(NoLimits.UNDEFINED_FOR_SAMPLES)
    if np.isinf(summed.bias):
        return form.without_limits(NoLimits.FEW_FOR_CELLS)
    known = np.isfinite(summed.influence).all()
    return form.without_limits(NoLimits.DEGENERATE if known else NoLimits.ONE_GROUP)


def _few_effective(linear: Linearisation) -> float | None:
    """Return the number of samples that carry the variance of a mean if it is too small, as with the log loss of one
    confident mistake.
    """
    if linear.method not in (LinearMethod.T, LinearMethod.INFLUENCE):
        return None
    carrying = effective_samples(linear)
    return carrying if carrying < min(FEW_EFFECTIVE, _USUAL_SHARE * np.count_nonzero(linear.influence)) else None


def resampling_plan(run: RunData, draws: int, points: int = 1) -> Plan | None:
    """Return the numbers of resamples and of samples in each, from the run alone, for values at so many class shares;
    None when even few take long.
    """
    # Of cells all are drawn at once: a part of them is no part of the samples.
    whole = run.grouping is not None or run.units.multiplicities is not None
    return plan(run.units.n_units, run.units.width * points, draws, whole=whole)


def work_of(estimand: Estimand, run: RunData, settings: LimitSettings) -> float:
    """Return the time that resampling takes, as a part of the longest that anyone waits."""
    made = resampling_plan(run, settings.sampling.draws)
    return (
        0.0 if made is None else len(measures(estimand.expression)) / _METRICS_OF_A_LOAD / made.loads(run.units.width)
    )


def resampled_all(estimands: Sequence[Estimand], run: RunData, settings: LimitSettings) -> list[Estimates]:
    """Any estimands by resampling. All see the same resamples."""
    made = resampling_plan(run, settings.sampling.draws) if run.units.at_hand else None
    # Where units are in no strata their mix is as random as everything else.
    fixed = settings.sampling.shares is Shares.OBSERVED and run.units.n_strata > 1
    given = given_of(Given.ACTUAL if fixed else Given.SAMPLES, run)
    form = Estimate(value=nan, level=settings.level, given=given)
    reads = [resampled(one.expression, one.bounds) for one in estimands]
    forms = [replace(form, method=run.in_design(read.method, "cluster")) for read in reads]
    values = [run.values(one) for one in estimands]
    chosen = [] if made is None else _affordable(estimands, values, made, run.units.width)
    why = NoLimits.TOO_LARGE if run.units.at_hand else NoLimits.FOLDED
    found = [
        tuple(_unsampled(one, value, why) for value in own.tolist()) for one, own in zip(forms, values, strict=True)
    ]
    if made is None or not chosen:
        return found
    seed = chosen_seed(settings.seed, run.source.counts)
    summaries = bootstrap_samples(
        run.units,
        [reads[index] for index in chosen],
        seed=seed,
        made=made,
        level=settings.level_of_each,
        class_counts=ClassCounts.FIXED if fixed else ClassCounts.RANDOM,
        grouping=run.grouping,
        weighting=run.weights,
    )
    for index, summary in zip(chosen, summaries, strict=True):
        drawn = replace(forms[index], seed=seed, draws=made.draws, monte_carlo_error=nan)
        estimates = estimates_from(summary, drawn, MISSING_OF_RESAMPLES, estimands[index].bounds)
        found[index] = tuple(reaching_for_zero(one, estimands[index].expression, run, settings) for one in estimates)
    return found


def _unsampled(form: Estimate, value: float, why: NoLimits) -> Estimate:
    reason = why if isfinite(value) else NoLimits.UNDEFINED_FOR_SAMPLES
    return replace(form, value=value).without_limits(reason)


def _affordable(estimands: Sequence[Estimand], values: Sequence[Array], made: Plan, n_classes: int) -> list[int]:
    """Return the estimands that can be resampled in reasonable time: the first of those that have a value.

    Metrics of the catalogue share their work, all of them together are one load.
    """
    chosen, catalogued, others = [], 0, 0
    for index, (estimand, own) in enumerate(zip(estimands, values, strict=True)):
        if not np.isfinite(own).any():
            continue
        leaves = len(measures(estimand.expression))
        usual = usual_measure(estimand.expression) is not None
        more = (catalogued + leaves, others) if usual else (catalogued, others + leaves)
        if min(1.0, more[0] / _METRICS_OF_A_LOAD) + more[1] / _METRICS_OF_A_LOAD <= made.loads(n_classes):
            catalogued, others = more
            chosen.append(index)
    return chosen


def reaching_for_zero(one: Estimate, expression: Expression, run: RunData, settings: LimitSettings) -> Estimate:
    """A calibration error that perfect probabilities might show as well has 0 within its limits."""
    if one.reason is not None or one.seed is None or not isinstance(expression, Measure):
        return one
    if not is_of_probabilities(expression.metric):
        return one
    chance = run.by_chance(expression.metric, expression.parameters, one.seed)
    error = 1.0 - settings.stated_level_of_each
    return one if chance is None or chance.p_value <= error else replace(one, low=0.0)
