"""Limits of metrics of streamed probabilities and scores.

Where influences add up there is a closed form. Of all else the numbers of samples between the cuts that were saved, and
in the bins, are drawn again.
"""

from collections.abc import Sequence
from dataclasses import replace
from math import isfinite, nan
from typing import Final

import numpy as np

from app.kernel.metrics.card import Metric, is_of_probabilities
from app.kernel.metrics.expression import Bounds, Every, Measure, usual_measure
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.samples.scores import Scores
from app.kernel.streamed.cells import Cells, cells_of, cells_of_groups
from app.kernel.streamed.metrics import is_drawn, linearised, order_of, streams
from app.kernel.uncertainty.designs import Given
from app.kernel.uncertainty.draws import Shares, chosen_seed
from app.kernel.uncertainty.groups import expanded_level
from app.kernel.uncertainty.resampling import bootstrap_samples, plan, resampled
from app.services.estimands import Estimand
from app.services.estimates.estimate import Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.methods.of_matrix import estimates_from, given_of
from app.services.estimates.methods.of_samples import areas, of_sum, reaching_for_zero
from app.services.estimates.run_data import RunData

# Of the names of the methods, before those of resampled samples.
_PREFIX: Final = "folded_"


# One value without its limits, its metric at default parameters, and its range.
_Value = tuple[Estimate, Measure, Bounds]


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
    forms = [[_form(one, value, run, settings) for value in run.values(one).tolist()] for one in estimands]
    found = [
        [one.without_limits(NoLimits.FOLDED if isfinite(one.value) else NoLimits.UNDEFINED_FOR_SAMPLES) for one in own]
        for own in forms
    ]
    # By order, and within by the places of an estimand and of its value.
    orders: dict[int | None, dict[tuple[int, int], _Value]] = {}
    for place, (estimand, own) in enumerate(zip(estimands, forms, strict=True)):
        metric = _streamed_metric(estimand, run)
        for index, (code, form) in enumerate(zip(_codes(estimand, run), own, strict=True)):
            if metric is not None and isfinite(form.value) and is_drawn(metric, run.n_classes, code):
                value = form, Measure(metric, metric.card.defaults, code), estimand.bounds
                orders.setdefault(order_of(metric, code), {})[place, index] = value
    grouped = {} if run.grouping is None or not orders else cells_of_groups(run.streamed, orders)
    for code, asked in orders.items():
        made = _resampled(grouped.get(code) or cells_of(run.streamed, code), [*asked.values()], run, settings)
        for (place, index), estimate in zip(asked, made, strict=True):
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


def _form(estimand: Estimand, value: float, run: RunData, settings: LimitSettings) -> Estimate:
    method = _PREFIX + run.in_design(resampled(estimand.expression, estimand.bounds).method, "cluster")
    return Estimate(value=value, level=settings.level, method=method, given=given_of(Given.SAMPLES, run))


def _resampled(cells: Cells, asked: Sequence[_Value], run: RunData, settings: LimitSettings) -> list[Estimate]:
    made = plan(cells.n_units, cells.width, settings.sampling.draws, whole=True)
    if made is None:
        return [form.without_limits(NoLimits.TOO_LARGE) for form, _, _ in asked]
    fixed = settings.sampling.shares is Shares.OBSERVED and cells.n_strata > 1
    level = settings.level_of_each
    if run.grouping is not None:
        level = expanded_level(level, min(run.grouping.effective_groups, cells.n_units))
    seed = chosen_seed(settings.seed, run.source.counts)
    summaries = bootstrap_samples(
        cells,
        # Of the two classes of the cells the members are the second.
        [resampled(replace(one, of=None if one.of is None else 1), bounds) for _, one, bounds in asked],
        seed=seed,
        made=made,
        level=level,
        shares=settings.sampling.shares,
        known=[np.atleast_1d(resampled(one, bounds).values(run.subject)) for _, one, bounds in asked],
    )
    found = []
    for (form, measure, bounds), summary in zip(asked, summaries, strict=True):
        given = given_of(Given.ACTUAL if fixed else Given.SAMPLES, run)
        drawn = replace(form, given=given, seed=seed, draws=made.draws, monte_carlo_error=nan)
        (estimate,) = estimates_from(summary, drawn, bounds, of_samples=True)
        found.append(reaching_for_zero(estimate, measure, run, settings))
    return found
