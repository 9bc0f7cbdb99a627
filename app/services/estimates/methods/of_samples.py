"""Limits of metrics of probabilities and scores, and of samples with labels.

Where a metric is a sum over the samples or an area there is a closed form, as there is of rates of single labels and of
functions of all; all else is resampled, all of it at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import hypot, isfinite, isnan, nan
from typing import Final

import numpy as np

from app.kernel.compare.linear import linearised
from app.kernel.metrics.card import Part, is_of_probabilities
from app.kernel.metrics.expression import Every, Expression, Measure, measures, usual_measure
from app.kernel.metrics.families.score_ranking import recall_at, roc_auc, specificity_at
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.uncertainty.closed_forms import Method
from app.kernel.uncertainty.designs import GIVEN, Given
from app.kernel.uncertainty.draws import AreaInterval, Shares, chosen_seed
from app.kernel.uncertainty.influence import (
    LabelInfluences,
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
from app.services.estimates.methods.of_matrix import (
    by_proportions,
    estimates_from,
    given_of,
    limits_of_counts,
    of_overlaps,
    of_rates,
)
from app.services.estimates.run_data import RunData

# With fewer samples behind the variance of a mean its t interval misses its level.
FEW_EFFECTIVE: Final = 10
# That many of all samples would carry it if none stood out: a third for values with a normal distribution.
_USUAL_SHARE = 0.2
# What follows from the order of one class, and needs no influences.
_OF_ONE_ORDER: Final = (roc_auc, recall_at, specificity_at)
# So many metrics are as much work as all that have to be resampled of the catalogue.
_METRICS_OF_A_LOAD = 8


def in_closed_form(estimand: Estimand, run: RunData, settings: LimitSettings) -> Estimates | None:
    """An estimand that is a sum over the samples, or over other units such as queries; None for others."""
    expression = estimand.expression
    independent = run.units.at_hand and run.grouping is None
    in_order = isinstance(expression, Measure) and expression.metric in _OF_ONE_ORDER and independent
    if isinstance(expression, Measure) and in_order and run.scores.weights is None:
        codes = range(run.n_classes) if isinstance(expression.of, Every) else (expression.of,)
        classes = [code for code in codes if code is not None]
        if expression.metric is roc_auc:
            return tuple(areas(classes, run, settings))
        values = zip(classes, run.values(estimand).tolist(), strict=True)
        return tuple(_at_rate(expression, code, value, run, settings) for code, value in values)
    found = linearised(expression, run.influences)
    return None if found is None else tuple(of_sum(linear, run, settings) for linear in found)


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
            yield of_sum(area_alone(value, run.area_variance(ranking), *sizes), run, settings)


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


def of_labels(estimand: Estimand, run: RunData, settings: LimitSettings) -> Estimates | None:
    """An estimand of labels; None for all else."""
    expression = estimand.expression
    if isinstance(expression, Measure):
        fact = expression.metric.card.inference
        if fact.part is not None:
            return _of_part(estimand, expression, fact.part, run, settings)
        if fact.overlap is not None and usual_measure(expression):
            return of_overlaps(estimand, expression, fact.overlap, run, settings)
    if estimand.rates is not None:
        return of_rates(estimand, estimand.rates, run, settings)
    influences = run.label_influences
    of_one_label = isinstance(expression, Measure) and expression.of is not None
    # What went by cannot be resampled.
    simulated = settings.simulate and run.units.at_hand
    if influences is None or of_one_label or simulated:
        return None
    # Of five labels in 20 to 100 groups MOVER alone held the harmonic mean of the recalls in 86 to 95 % of cases,
    # influences in 94 to 96 % (benchmarks/coverage.py).
    of_recalls = None if run.grouping is not None else _mean_of_recalls(estimand, influences, run, settings)
    return of_recalls or _of_tables(estimand, influences, run, settings)


def _of_part(estimand: Estimand, expression: Measure, part: Part, run: RunData, settings: LimitSettings) -> Estimates:
    """Return the limits of the share of one part."""
    counted = part.of(run.subject.parts[expression.metric.card.inputs], **expression.parameters)
    chosen = [expression.of] if isinstance(expression.of, int) else slice(None)
    hits, among = (np.atleast_1d(one)[chosen] for one in counted)
    ends = limits_of_counts((hits, among), settings)
    return by_proportions(estimand, ends, given_of(GIVEN[part.among], run), run, settings)


def _mean_of_recalls(
    estimand: Estimand, influences: LabelInfluences, run: RunData, settings: LimitSettings
) -> Estimates | None:
    """A mean of the recalls of all labels, whose errors go together as samples have several labels."""
    expression = usual_measure(estimand.expression)
    mean = None if expression is None else expression.metric.card.inference.mean_of_recalls
    if expression is None or mean is None:
        return None
    low, high = influences.recall_means(settings.level_of_each)[mean]
    with silently():
        value = float(expression.metric.compute(influences.table))
    method, given = run.in_design(Method.MOVER.value), Given.SAMPLES if run.source.is_weighted else Given.ACTUAL
    form = Estimate(value=value, level=settings.level, method=method, given=given.value)
    if isnan(low + high):
        return (form.without_limits(NoLimits.UNDEFINED_FOR_SAMPLES),)
    return (replace(form, low=low, high=high),)


def _of_tables(
    estimand: Estimand, influences: LabelInfluences, run: RunData, settings: LimitSettings
) -> Estimates | None:
    """A smooth function of the tables of the labels, with what derivatives do not see of labels at an edge."""
    linear = influences.of_tables(estimand.expression)
    if linear is None:
        return None
    one = of_sum(linear, run, settings)
    if not isfinite(linear.value):
        return (one,)
    moves = influences.edge_moves(estimand.expression, settings.level_of_each)
    lowest, highest = ((-np.inf, np.inf)[place] if end is None else end for place, end in enumerate(estimand.bounds))
    known = (0.0, 0.0) if one.reason is not None else (one.value - one.low, one.high - one.value)
    sides = np.minimum(moves, 0.0).tolist(), np.maximum(moves, 0.0).tolist()
    below, above = (hypot(own, *side) for own, side in zip(known, sides, strict=True))
    if not below + above > 0.0:
        return (one,)
    return (replace(one, low=max(one.value - below, lowest), high=min(one.value + above, highest), reason=None),)


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
        tuple(
            replace(form, value=value).without_limits(why if isfinite(value) else NoLimits.UNDEFINED_FOR_SAMPLES)
            for value in own.tolist()
        )
        for form, own in zip(forms, values, strict=True)
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
        shares=settings.sampling.shares,
        grouping=run.grouping,
        weighting=run.weights,
    )
    for index, summary in zip(chosen, summaries, strict=True):
        drawn = replace(forms[index], seed=seed, draws=made.draws, monte_carlo_error=nan)
        estimates = estimates_from(summary, drawn, estimands[index].bounds, of_samples=True)
        found[index] = tuple(reaching_for_zero(one, estimands[index].expression, run, settings) for one in estimates)
    return found


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
