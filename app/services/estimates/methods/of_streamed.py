"""Limits of metrics of streamed probabilities and scores.

Where influences add up there is a closed form. Of all else the numbers of samples between the cuts that were saved, and
in the bins, are drawn again.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isfinite, nan
from typing import Final

import numpy as np

from app.kernel.metrics.card import Metric, is_of_probabilities
from app.kernel.metrics.expression import Bounds, Every, Expression, Measure, usual_measure
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.samples.scores import Scores
from app.kernel.streamed.cells import Cells, cells_of, cells_of_groups
from app.kernel.streamed.metrics import draw_of, linearised, streams
from app.kernel.uncertainty.designs import Given
from app.kernel.uncertainty.draws import ClassCounts, Shares, chosen_seed
from app.kernel.uncertainty.groups import expanded_level
from app.kernel.uncertainty.resampling import bootstrap_samples, plan, resampled
from app.services.estimands import Estimand
from app.services.estimates.estimate import Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.methods.of_matrix import MISSING_OF_RESAMPLES, estimates_from, given_of
from app.services.estimates.methods.of_samples import areas, of_sum, reaching_for_zero
from app.services.estimates.run_data import RunData

# Of the names of the methods, before those of resampled samples.
_PREFIX: Final = "folded_"


@dataclass(frozen=True, slots=True)
class _ResampledValue:
    """One value of a metric at its default parameters, the same of one of the two classes of the cells, and the place
    of its estimand and its own within.
    """

    measure: Measure
    of_cells: Measure
    value: float
    bounds: Bounds
    place: tuple[int, int]


def in_closed_form(estimand: Estimand, run: RunData, settings: LimitSettings) -> Estimates | None:
    """An estimand whose influences were added up, or an area; None for others."""
    metric, codes = _streamed_metric(estimand, run), _codes(estimand, run)
    if metric is None or run.streamed is None:
        return None
    if metric is roc_auc and run.grouping is None and run.streamed.worth is None:
        return tuple(areas([code for code in codes if code is not None], run, settings))
    lines = [linearised(run.streamed, metric, code) for code in codes]
    known = [line for line in lines if line is not None]
    return tuple(of_sum(line, run, settings) for line in known) if len(known) == len(lines) else None


def resampled_all(estimands: Sequence[Estimand], run: RunData, settings: LimitSettings) -> list[Estimates]:
    """Any estimands by resampling cells. All that are of the same cells see the same resamples."""
    if run.streamed is None:
        raise ValueError("expected samples that were folded")
    values = [run.values(estimand).tolist() for estimand in estimands]
    found = [
        [_not_drawn(one, value, run, settings) for value in own] for one, own in zip(estimands, values, strict=True)
    ]
    orders: dict[int | None, list[_ResampledValue]] = {}
    for place, (estimand, own) in enumerate(zip(estimands, values, strict=True)):
        metric = _streamed_metric(estimand, run)
        for index, (code, value) in enumerate(zip(_codes(estimand, run), own, strict=True)):
            at = None if metric is None else draw_of(metric, run.n_classes, code)
            if metric is not None and at is not None and isfinite(value):
                measure = Measure(metric, metric.card.defaults, code)
                of_cells = replace(measure, of=at[1])
                one = _ResampledValue(measure, of_cells, value, estimand.bounds, (place, index))
                orders.setdefault(at[0], []).append(one)
    grouped = {} if run.grouping is None or not orders else cells_of_groups(run.streamed, orders)
    for code, asked in orders.items():
        made = _resampled(grouped.get(code) or cells_of(run.streamed, code), asked, run, settings)
        for one, estimate in zip(asked, made, strict=True):
            place, index = one.place
            found[place][index] = estimate
    return [tuple(own) for own in found]


def _streamed_metric(estimand: Estimand, run: RunData) -> Metric[Scores] | None:
    """The metric that an estimand is, at its default parameters, if it can be streamed."""
    expression = usual_measure(estimand.expression)
    if expression is None or run.streamed is None or not is_of_probabilities(expression.metric):
        return None
    return expression.metric if streams(expression.metric, run.streamed) else None


def _codes(estimand: Estimand, run: RunData) -> list[int | None]:
    """The class of each value."""
    of = estimand.expression.of if isinstance(estimand.expression, Measure) else None
    return [*range(run.n_classes)] if isinstance(of, Every) else [of]


def _form(expression: Expression, bounds: Bounds, run: RunData, settings: LimitSettings, given: Given) -> Estimate:
    """Return the estimate without its limits: level, method and what is taken as fixed."""
    method = _PREFIX + run.in_design(resampled(expression, bounds).method, "cluster")
    return Estimate(value=nan, level=settings.level, method=method, given=given_of(given, run))


def _not_drawn(estimand: Estimand, value: float, run: RunData, settings: LimitSettings) -> Estimate:
    form = replace(_form(estimand.expression, estimand.bounds, run, settings, Given.SAMPLES), value=value)
    return form.without_limits(NoLimits.FOLDED if isfinite(value) else NoLimits.UNDEFINED_FOR_SAMPLES)


def _resampled(cells: Cells, asked: Sequence[_ResampledValue], run: RunData, settings: LimitSettings) -> list[Estimate]:
    fixed = settings.sampling.shares is Shares.OBSERVED and cells.n_strata > 1
    given = Given.ACTUAL if fixed else Given.SAMPLES
    reads = [resampled(one.of_cells, one.bounds) for one in asked]
    forms = [replace(_form(one.of_cells, one.bounds, run, settings, given), value=one.value) for one in asked]
    size = cells.scores.n_samples
    made = plan(size, run.n_classes, settings.sampling.draws, whole=True)
    if made is None:
        return [one.without_limits(NoLimits.TOO_LARGE) for one in forms]
    made, level = replace(made, subset=cells.n_units, n_samples=cells.n_units), settings.level_of_each
    if run.grouping is not None:
        level = expanded_level(level, min(run.grouping.effective_groups, cells.n_units))
    seed = chosen_seed(settings.seed, run.source.counts)
    summaries = bootstrap_samples(
        cells,
        reads,
        seed=seed,
        made=made,
        level=level,
        class_counts=ClassCounts.FIXED if fixed else ClassCounts.RANDOM,
        known=[np.atleast_1d(resampled(one.measure, one.bounds).values(run.subject)) for one in asked],
    )
    found = []
    for one, of_draws, summary in zip(asked, forms, summaries, strict=True):
        drawn = replace(of_draws, seed=seed, draws=made.draws, monte_carlo_error=nan)
        (estimate,) = estimates_from(summary, drawn, MISSING_OF_RESAMPLES)
        if estimate.reason is None:
            # What the cells are off the value can move the ends of resamples beyond the range.
            low, high = np.clip([estimate.low, estimate.high], *one.bounds).tolist()
            estimate = replace(estimate, low=low, high=high)
        found.append(reaching_for_zero(estimate, one.measure, run, settings))
    return found
