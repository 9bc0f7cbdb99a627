"""Limits of rates of single labels, which need no resampling."""

from dataclasses import replace
from math import isnan

from app.kernel.uncertainty.intervals import proportion_limits
from app.kernel.uncertainty.of_matrices.headline import GIVEN, Method
from app.services.estimands import Estimand
from app.services.estimates.estimate import Estimate, Estimates, LimitSettings, NoLimits
from app.services.estimates.run_data import RunData


def of_rates(estimand: Estimand, run: RunData, settings: LimitSettings) -> Estimates | None:
    """An estimand that is a rate of each of some labels in independent samples; None for all else.

    A label is there or not in every sample, so its rates are those of two classes, with the same limits.
    """
    if estimand.rates is None or run.grouping is not None:
        return None
    found = []
    chosen = settings.proportions_of_each
    for rate, value in zip(estimand.rates, run.values(estimand).tolist(), strict=True):
        hits, among = rate.counts(run.table)
        low, high = proportion_limits(hits, among, settings.level_of_each, chosen)
        ends = rate.line.limits(low, high)
        one = Estimate(
            value=value,
            level=settings.level,
            method=Method(chosen.value).value,
            given=GIVEN[rate.among].value,
        )
        reason = NoLimits.UNDEFINED if isnan(value) else None if ends[0] < ends[1] else NoLimits.DEGENERATE
        one = replace(one, low=float(ends[0]), high=float(ends[1])) if reason is None else one.without_limits(reason)
        found.append(one)
    return tuple(found)
