"""Limits in closed form: of rates, the usual metrics of a matrix, areas and sums over samples, and of labels, as they
are and at another class prevalence.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import hypot, isfinite, isnan, nan
from typing import Final, NamedTuple

import numpy as np

from app.kernel.compare.linear import linearised
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Part
from app.kernel.metrics.expression import Every, Measure, is_about_sample, usual_measure
from app.kernel.metrics.families.score_ranking import recall_at, roc_auc, specificity_at
from app.kernel.metrics.proportion import ACCURACY, ConfusionCells, Rate
from app.kernel.numerics.arrays import Array, Mask, silently, sums_by_code
from app.kernel.samples.areas import area_variance
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.streamed.rankings import StreamedRanking
from app.kernel.uncertainty.closed_forms import Headlines, Method
from app.kernel.uncertainty.designs import GIVEN, Given, Independent
from app.kernel.uncertainty.draws import AreaInterval
from app.kernel.uncertainty.influence import (
    ROUNDING_OF_SUMS,
    Influences,
    LabelInfluences,
    Linearisation,
    UnitInfluences,
    area_alone,
    by_groups,
    effective_samples,
    hanley_mcneil_limits,
    limits,
)
from app.kernel.uncertainty.intervals import (
    Limits,
    ValueWithEnds,
    clopper_pearson,
    jeffreys,
    limits_at_rate,
    proportion_limits,
    ratio_limits,
    share_limits,
)
from app.services.estimands import Estimand
from app.services.estimates.estimate import ClassShares, Estimate, Estimates, LimitSettings, NoLimits, canonical
from app.services.estimates.methods.simulation import shifted_values
from app.services.estimates.run_data import RunData

_DEFAULTS = LimitSettings()
# With fewer samples behind the variance of a mean its t interval misses its level.
FEW_EFFECTIVE: Final = 10
# That many of all samples would carry it if none stood out: a third for values with a normal distribution.
_USUAL_SHARE = 0.2
# What follows from the order of one class, and needs no influences.
_OF_ONE_ORDER: Final = (roc_auc, recall_at, specificity_at)
# Samples that sums at all shares together may have: a second for each metric.
_MOST_SUMMED = 5_000_000
# Shares closer than this are one.
_SAME_SHARE = 1e-12


def in_closed_form(estimand: Estimand, run: RunData, settings: LimitSettings) -> Estimates | None:
    """The values of an estimand as the run is; None where there is no closed form."""
    expression, usual = estimand.expression, usual_measure(estimand.expression)
    if isinstance(expression, Measure) and (part := expression.metric.card.inference.part) is not None:
        return _of_part(estimand, expression, part, run, settings)
    # Those of labels are no approximations.
    proportion = _proportion(estimand, run.n_classes, simulate=estimand.task is None and settings.simulate)
    if proportion is not None:
        counted = run.counted(proportion.rates, settings.level_of_each)
        ends = proportion.limits(_limits_of_counts(counted, settings), run.table)
        return _by_proportions(estimand, ends, run.given(GIVEN[proportion.rates[0].among]), run, settings)
    if estimand.scored:
        return _of_label_tables(estimand, run, settings) or _of_samples(estimand, run, settings)
    if usual is None or settings.simulate:
        return None
    forms = run.closed_forms(settings.level_of_each).of(usual.metric)
    return None if forms is None else (Estimate.of(forms[0], settings.level),)


# --- rates, and the usual metrics of a matrix ------------------------------------------------------------------------


class _Proportion(NamedTuple):
    """Rates (V), and the map from their limits (V, ...) in a table (...) to those of the values."""

    rates: Sequence[Rate]
    limits: Callable[[Limits, Table], Limits]


def _proportion(estimand: Estimand, n_classes: int, *, simulate: bool) -> _Proportion | None:
    """The rates that an estimand is or follows from, so that it has the same limits by whatever name it is asked for;
    None for others. A label is there or not in every sample, so its rates are those of two classes.

    F1 and the Jaccard index follow from the share of actual and predicted members that are both, unless all but rates
    is to be simulated.
    """
    if (rates := estimand.rates) is not None:
        return _Proportion(rates, partial(_on_lines, rates))
    usual = None if simulate else usual_measure(estimand.expression)
    overlap = None if usual is None else usual.metric.card.inference.overlap
    if usual is None or overlap is None:
        return None
    classes = [usual.of] if isinstance(usual.of, int) else range(n_classes)
    both = [Rate(ConfusionCells.TP, ConfusionCells.UNION, of) for of in classes]
    return _Proportion(both, lambda ends, _: (overlap(ends[0]), overlap(ends[1])))


def _on_lines(rates: Sequence[Rate], ends: Limits, table: Table) -> Limits:
    """Limits of what are lines of rates: of two classes one may have the rate of the other turned round."""
    lines = [rate.line.limits(*own) for rate, *own in zip(rates, *ends, strict=True)]
    times = [table.n if rate.counted else 1.0 for rate in rates]
    low, high = np.stack([np.multiply(one, line) for one, line in zip(times, lines, strict=True)], axis=1)
    return low, high


def limits_of_many(
    estimand: Estimand, counts: Array, labels: Sequence[str], settings: LimitSettings = _DEFAULTS
) -> tuple[Array, Array, Array] | None:
    """Values with their limits (B) of one value of many matrices of independent samples (B, K, K), as `estimate` gives
    them of each; NaN where there are none. None for what has no closed form.
    """
    design, level = Independent(table := Table(counts)), settings.level_of_each
    if is_about_sample(estimand.expression):
        return None
    one_form = replace(estimand, expression=canonical(estimand.expression, labels))
    proportion = _proportion(one_form, len(labels), simulate=settings.simulate)
    usual = usual_measure(one_form.expression)
    with silently():
        if proportion is not None:
            hits, among = design.counts(proportion.rates[0], level)
            (low,), (high,) = proportion.limits(_limits_of_counts((hits[None], among[None]), settings), table)
            return estimand.functional(table), low, high
    return None if usual is None else Headlines(design, level).many(usual.metric)


def _limits_of_counts(counts: tuple[Array, Array], settings: LimitSettings) -> Limits:
    """Limits of proportions from hits and samples (...)."""
    return proportion_limits(*counts, settings.level_of_each, settings.proportions_of_each)


def _by_proportions(estimand: Estimand, ends: Limits, given: str, run: RunData, settings: LimitSettings) -> Estimates:
    """Values (V) with limits (V) that follow from those of proportions."""
    method = run.in_design(settings.proportions_of_each.value)
    form, found = Estimate(value=nan, level=settings.level, method=method, given=given), []
    for value, low, high in zip(run.values(estimand).tolist(), ends[0].tolist(), ends[1].tolist(), strict=True):
        one = replace(form, value=value)
        why = NoLimits.ONE_GROUP if isnan(low) else NoLimits.DEGENERATE
        found.append(one.without_limits(NoLimits.UNDEFINED) if isnan(value) else one.limited(low, high, why))
    return tuple(found)


# --- sums over samples, and areas ------------------------------------------------------------------------------------


def _of_samples(estimand: Estimand, run: RunData, settings: LimitSettings) -> Estimates | None:
    """An estimand that is a sum over the samples, or over other units such as queries; None for others."""
    expression = estimand.expression
    orders = _OF_ONE_ORDER if run.at_hand else () if run.streamed is None else (roc_auc,)
    in_order = isinstance(expression, Measure) and expression.metric in orders and run.grouping is None
    if isinstance(expression, Measure) and in_order and run.scores.weights is None:
        codes = range(run.n_classes) if isinstance(expression.of, Every) else (expression.of,)
        classes = [code for code in codes if code is not None]
        if expression.metric is roc_auc:
            return tuple(_areas(classes, run, settings))
        values = zip(classes, run.values(estimand).tolist(), strict=True)
        return tuple(_at_rate(expression, code, value, run, settings) for code, value in values)
    # Influences that were added up say nothing of functions of several metrics.
    single = isinstance(expression, Measure) or run.streamed is None
    influences = run.influences
    found = linearised(expression, influences) if single else None
    if found is not None and isinstance(influences, UnitInfluences):
        found = [influences.between_groups(expression, linear) for linear in found]
    return None if found is None else tuple(_of_sum(linear, run, settings) for linear in found)


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


def _areas(classes: Sequence[int], run: RunData, settings: LimitSettings) -> Iterator[Estimate]:
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
            ends = hanley_mcneil_limits(value, *sizes, settings.level_of_each)
            yield replace(form, value=value).limited(*ends, NoLimits.DEGENERATE)
        else:
            variance = ranking.area_variance if isinstance(ranking, StreamedRanking) else area_variance(ranking)
            yield _of_sum(area_alone(value, variance, *sizes), run, settings)


def _of_sum(linear: Linearisation, run: RunData, settings: LimitSettings) -> Estimate:
    """One value that is a sum over the samples."""
    summed = linear if run.grouping is None else by_groups(linear, run.grouping)
    given = run.given(Given.ACTUAL if linear.strata is Strata.BY_CLASS else Given.SAMPLES)
    form = Estimate(value=linear.value, level=settings.level, method=summed.sampled.named(summed.method), given=given)
    ends = limits(summed, settings.level_of_each, settings.proportions)
    if ends is not None:
        few = _few_effective(summed)
        method = summed.sampled.named(ends.method)
        return replace(form, low=ends.low, high=ends.high, method=method, effective_samples=few)
    if not isfinite(linear.value):
        return form.without_limits(NoLimits.UNDEFINED_FOR_SAMPLES)
    if np.isinf(summed.bias):
        return form.without_limits(NoLimits.FEW_FOR_CELLS)
    known = np.isfinite(summed.influence).all()
    return form.without_limits(NoLimits.DEGENERATE if known else NoLimits.ONE_GROUP)


def _few_effective(linear: Linearisation) -> float | None:
    """Return the number of samples that carry the variance of a mean, or of groups that carry that of any sum, if it is
    too small, as with the log loss of one confident mistake.
    """
    means = (LinearMethod.HALL_T, LinearMethod.INFLUENCE)
    if linear.method is LinearMethod.WILSON or (linear.n_groups is None and linear.method not in means):
        return None
    carrying = effective_samples(linear)
    return carrying if carrying < min(FEW_EFFECTIVE, _USUAL_SHARE * np.count_nonzero(linear.influence)) else None


# --- labels ----------------------------------------------------------------------------------------------------------


def _of_label_tables(estimand: Estimand, run: RunData, settings: LimitSettings) -> Estimates | None:
    """A smooth function of the tables of all labels; None for all else."""
    influences, expression = run.label_influences, estimand.expression
    of_one_label = isinstance(expression, Measure) and expression.of is not None
    # What went by cannot be resampled.
    if influences is None or of_one_label or (settings.simulate and run.at_hand):
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
    ends = _limits_of_counts((hits, among), settings)
    return _by_proportions(estimand, ends, run.given(GIVEN[part.among]), run, settings)


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
    one = _of_sum(influences.between_groups(estimand.expression, linear), run, settings)
    if not isfinite(linear.value) or one.reason == NoLimits.ONE_GROUP:
        return (one,)
    moves = influences.edge_moves(estimand.expression, settings.level_of_each)
    lowest, highest = ((-np.inf, np.inf)[place] if end is None else end for place, end in enumerate(estimand.bounds))
    known = (0.0, 0.0) if one.reason is not None else (one.value - one.low, one.high - one.value)
    sides = np.minimum(moves, 0.0).tolist(), np.maximum(moves, 0.0).tolist()
    below, above = (hypot(own, *side) for own, side in zip(known, sides, strict=True))
    if not below + above > 0.0:
        return (one,)
    return (replace(one, low=max(one.value - below, lowest), high=min(one.value + above, highest), reason=None),)


# --- at another class prevalence -------------------------------------------------------------------------------------


def at_shares(estimand: Estimand, run: RunData, shares: ClassShares, settings: LimitSettings) -> list[Estimates | None]:
    """An estimand of the matrix at each point; None where only simulation does, as at shares that are uncertain.

    Accuracy is a mean of the recalls in weights, for every design of samples. At equal shares the usual metrics have
    the limits of a report. Rates among what was predicted have limits where samples are independent. Sums over the
    samples, of which classes weigh what the shares say, have those of sums.
    """
    nothing: list[Estimates | None] = [None] * len(shares)
    if shares.worth is not None or shares.calibrated_to is not None:
        return nothing
    if estimand.scored:
        few = estimand.task is None and run.streamed is None and run.units.n_units * shares.work <= _MOST_SUMMED
        return [_of_sums(estimand, run, one, settings) for one in shares.points] if few else nothing
    if estimand.rates is None:
        return nothing if settings.simulate else [_headline(estimand, run, one, settings) for one in shares.points]
    if all(rate.same_as(ACCURACY) and not rate.counted for rate in estimand.rates):
        if settings.simulate:
            return nothing
        return [tuple(_accuracy(rate, run, one, settings) for rate in estimand.rates) for one in shares.points]
    plain = run.grouping is None and run.weighted is None
    if not plain or any(rate.by_truth or rate.counted for rate in estimand.rates):
        return nothing
    values = shifted_values([estimand], run, shares)[0]
    return [
        tuple(
            _among_predicted(rate, value, run.counts, point, settings)
            for rate, value in zip(estimand.rates, of_point.tolist(), strict=True)
        )
        for point, of_point in zip(shares.points, values, strict=True)
    ]


def _of_sums(estimand: Estimand, run: RunData, shares: Array, settings: LimitSettings) -> Estimates | None:
    """Sums over the samples at shares (K), which do not vary: what the classes add is about the mean of each."""
    weights, y = run.units.at_shares(run.weights, shares), run.scores.y
    found = linearised(estimand.expression, Influences(run.scores.with_weights(weights)))
    if found is None or any(linear.method is LinearMethod.WILSON for linear in found):
        return None
    sizes = sums_by_code(y, weights, run.n_classes)
    estimates = []
    for linear in found:
        with silently():
            means = np.where(sizes > 0, sums_by_code(y, linear.influence, run.n_classes) / sizes, 0.0)
        own, worth = linear.influence - weights * means[y], linear.worth if run.source.is_weighted else None
        own[np.abs(own) <= ROUNDING_OF_SUMS * np.abs(linear.influence).max()] = 0.0
        one = replace(linear, influence=own, strata=Strata.BY_CLASS, worth=worth)
        estimates.append(_of_sum(one, run, settings))
    return tuple(estimates)


def _headline(estimand: Estimand, run: RunData, shares: Array, settings: LimitSettings) -> Estimates | None:
    """One of the usual metrics at shares (K), where these are equal."""
    expression = usual_measure(estimand.expression)
    if expression is None or np.ptp(shares) > _SAME_SHARE:
        return None
    forms = run.at_equal_shares(settings.level_of_each)
    return next(((Estimate.of(one, settings.level),) for one in forms if one.key == expression.metric.key), None)


def _accuracy(rate: Rate, run: RunData, shares: Array, settings: LimitSettings) -> Estimate:
    """A line of the mean of the recalls in weights (K), by MOVER on their Jeffreys limits."""
    design, level = run.design, settings.level_of_each
    with silently():
        recall, (hits, worth) = design.table.recall, design.recalls(level)
        recalls = jeffreys(hits, worth, level)
    ends = share_limits(recall, *recalls, worth, shares, level, design.spread)
    value = float(shares @ np.where(shares > 0, recall, 0.0))
    low, high = (float(end) for end in rate.line.limits(*ends))
    method, given = run.in_design(Method.MOVER.value), design.given or Given.ACTUAL
    found = Estimate(value=float(rate.line(np.asarray(value))), level=settings.level, method=method, given=given.value)
    return found.limited(low, high, NoLimits.ONE_GROUP)


def _among_predicted(rate: Rate, value: float, counts: Array, shares: Array, settings: LimitSettings) -> Estimate:
    """A rate among what was predicted, such as precision, at shares (K).

    It is a / (a + b), each a sum of shares times rates of rows: the hits, and what else was predicted. With few false
    positives draws put too little weight on none. So each rate of a row has the limits of Clopper and Pearson; sums
    have those of MOVER, and the ratio b / a those of MOVER-R (Donner & Zou 2012).
    """
    form = Estimate(value=value, level=settings.level, method=Method.MOVER.value, given=Given.ACTUAL.value)
    if np.isnan(value):
        return form.without_limits(NoLimits.UNDEFINED)
    places = np.arange(len(counts))
    hits, among = (cells.hold(places[:, None], places, rate.of) for cells in (rate.hits, rate.among))
    level = settings.level_of_each
    a, b = (shares_of_rows(counts, mask, shares, level) for mask in (hits, among & ~hits))
    least, most = ratio_limits(b, a)
    low, high = rate.line.limits(1.0 / (1.0 + most), 1.0 / (1.0 + least))
    return replace(form, low=float(low), high=float(high))


def shares_of_rows(counts: Array, mask: Mask, shares: Array, level: float) -> ValueWithEnds:
    """Return the sum of shares times the part of each row in some cells, with limits."""
    sizes = counts.sum(axis=1)
    rows = mask.any(axis=1) & (sizes > 0)
    hits, sizes, weights = np.where(mask, counts, 0.0).sum(axis=1)[rows], sizes[rows], shares[rows]
    rates, (low, high) = hits / sizes, clopper_pearson(hits, sizes, level)
    value = np.asarray(weights @ rates)
    below, above = (np.sqrt(((weights * (rates - end)) ** 2).sum()) for end in (low, high))
    return value, np.maximum(value - below, 0.0), value + above
