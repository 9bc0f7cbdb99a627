"""Limits of metrics of samples with labels that need no resampling: rates of single labels, and functions of all."""

from dataclasses import replace
from math import hypot, isfinite, isnan

import numpy as np

from app.kernel.metrics.card import Part
from app.kernel.metrics.expression import Measure, usual_measure
from app.kernel.numerics.arrays import silently
from app.kernel.uncertainty.closed_forms import Method
from app.kernel.uncertainty.designs import GIVEN, Given
from app.kernel.uncertainty.influence import LabelInfluences
from app.services.estimands import Estimand
from app.services.estimates.estimate import Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.methods.of_matrix import by_proportions, given_of, limits_of_counts, of_overlaps, of_rates
from app.services.estimates.methods.of_samples import of_sum
from app.services.estimates.run_data import RunData


def in_closed_form(estimand: Estimand, run: RunData, settings: LimitSettings) -> Estimates | None:
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
