"""The interval of each run alone, as its report has it."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.expression import is_biased
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import summarise
from app.kernel.uncertainty.influence import limits
from app.services.estimands import Estimand
from app.services.estimates.headline_intervals import headline_intervals
from app.services.runs.comparison import Comparison
from app.services.runs.sample_draws import ClosedForm, NormalDraws
from app.services.runs.simulation import summarise_run

# Relative to the value, a deviation below this is rounding.
_NO_VARIANCE = 1e-12


@dataclass(frozen=True, slots=True)
class OwnInterval:
    """The value of one run alone, NaN limits where there are none, and how they were made."""

    value: float
    low: float = nan
    high: float = nan
    method: str | None = None


def own_intervals(of: Comparison, index: int, run: int, level: float) -> list[OwnInterval]:
    """Each of the values (V) of an estimand for one of the runs that are compared, with limits of its own."""
    values = of.values[index][run]
    way, place = of.way(index)
    estimand = of.estimands[index]
    if isinstance(way, NormalDraws):
        return _closed(way.forms[place], values, run, level)
    if not estimand.scored:
        shown = _shown(of, estimand, values, run, level)
        if shown is not None:
            return shown
    drawn = of.drawn(index)
    if drawn is None:
        return [OwnInterval(value) for value in values.tolist()]
    if estimand.scored:
        return _resampled(estimand, drawn[:, run], values, level)
    found = summarise_run(drawn[:, run], values, of.runs.counts[run], estimand, level=level)
    return [OwnInterval(*ends, "posterior") for ends in zip(values.tolist(), found.low, found.high, strict=True)]


def _closed(forms: Sequence[ClosedForm], values: Array, run: int, level: float) -> list[OwnInterval]:
    found = []
    for form, value in zip(forms, values.tolist(), strict=True):
        ends = limits(form.parts[run], level)
        method = form.runs.methods[run].value
        found.append(
            OwnInterval(value, method=method)
            if ends is None
            else OwnInterval(value, ends.low, ends.high, ends.method.value)
        )
    return found


def _shown(of: Comparison, estimand: Estimand, values: Array, run: int, level: float) -> list[OwnInterval] | None:
    """The intervals that the evaluation itself shows, where it shows all of them."""
    intervals = headline_intervals(Table(of.runs.counts[run][None, None]), [of.runs.labels], level)[0]
    known = [one for name in estimand.names if (one := intervals.get(name)) is not None and one["low"] is not None]
    if len(known) < len(estimand.names):
        return None
    return [
        OwnInterval(value, _number(one["low"]), _number(one["high"]), one["method"])
        for value, one in zip(values.tolist(), known, strict=True)
    ]


def _number(end: float | None) -> float:
    return nan if end is None else end


def _resampled(estimand: Estimand, draws: Array, values: Array, level: float) -> list[OwnInterval]:
    """Limits of values (V) from draws (D, V), within the range; none of what does not vary."""
    biased = is_biased(estimand.expression)
    # Turned around the value what is biased loses its bias (Davison & Hinkley 1997, eq. 5.6).
    found = summarise(2.0 * values - draws if biased else draws, values, level)
    low, high = estimand.bounds
    lows = np.maximum(found.low, -inf if low is None else low)
    highs = np.minimum(found.high, inf if high is None else high)
    fixed = ~(found.deviation > _NO_VARIANCE * np.maximum(np.abs(values), _NO_VARIANCE))
    lows, highs = (np.where(fixed, nan, ends) for ends in (lows, highs))
    name = "bootstrap_basic" if biased else "bootstrap"
    return [OwnInterval(*ends, name) for ends in zip(values.tolist(), lows.tolist(), highs.tolist(), strict=True)]
