"""The closed-form intervals of a report under the names that expressions have."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from app.domain.expressions.syntax import write_label
from app.domain.report import Interval
from app.kernel.matrix.table import Table
from app.kernel.uncertainty.group_headline import GroupedHeadline
from app.kernel.uncertainty.headline import OverallInterval, RateIntervals, Refusal, headlines

ONE_GROUP = "all samples that it is about are in one group, so how groups differ is not known"
_REFUSALS = {
    Refusal.UNDEFINED_ESTIMATE: "the metric is undefined for this matrix",
    Refusal.ZERO_STANDARD_ERROR: "the standard error is 0, which says nothing about the uncertainty",
    Refusal.ONE_GROUP: ONE_GROUP,
}
_FIRST = (slice(None), slice(1))
# The names of as many labels as this take some 100 kB.
_FEW_LABELS = 64


def headline_intervals(table: Table, labels: Sequence[tuple[str, ...]], level: float) -> list[dict[str, Interval]]:
    """Intervals of the first matrix of each pair in a table (B, 2, K, K) by expression: overall metrics by key, rates
    as ``recall@D``.

    A rate with denominator 0 has none.
    """
    found = headlines(table, level, of=_FIRST)
    # One matrix after another, and in it rate by rate.
    lows, highs = (ends[:, :, 0].transpose(1, 0, 2).tolist() for ends in (found.rates.low, found.rates.high))
    gaps: Any = np.isnan(found.rates.low).any(axis=(0, 2, 3))
    answers = []
    for index, overall in enumerate(found.overall):
        intervals = {item.key: _overall(item, level) for item in overall}
        write = _remembered_names if len(labels[index]) <= _FEW_LABELS else _names
        names = write(found.rates.keys, labels[index])
        rates = zip(names, _rates(found.rates, lows[index], highs[index], level), strict=True)
        # NaN is the one value that differs from itself.
        intervals.update(((n, rate) for n, rate in rates if rate["low"] == rate["low"]) if gaps[index] else rates)
        answers.append(intervals)
    return answers


def group_headline_intervals(found: GroupedHeadline, labels: tuple[str, ...]) -> dict[str, Interval]:
    """Headline intervals of one matrix whose samples come in groups, by expression.

    A rate with denominator 0 has none, one that only one group is about has a reason.
    """
    rates, level = found.headline.rates, found.headline.level
    intervals = {item.key: _overall(item, level) for item in found.headline.overall}
    rows = _rates(rates, rates.low.tolist(), rates.high.tolist(), level)
    for name, rate, defined in zip(_names(rates.keys, labels), rows, found.defined.ravel().tolist(), strict=True):
        if not defined:
            continue
        intervals[name] = (
            rate if rate["low"] == rate["low"] else {**rate, "low": None, "high": None, "reason": ONE_GROUP}
        )
    return intervals


def _names(keys: tuple[str, ...], labels: tuple[str, ...]) -> tuple[str, ...]:
    """Expressions of the rates, rate by rate."""
    suffixes = [f"@{write_label(label)}" for label in labels]
    return tuple(key + suffix for key in keys for suffix in suffixes)


# Who evaluates again does so on the same classes, most of the time.
_remembered_names = lru_cache(maxsize=256)(_names)


def _overall(item: OverallInterval, level: float) -> Interval:
    method, given = item.method.value, item.given.value
    if item.refusal is None:
        return {"low": item.low, "high": item.high, "level": level, "method": method, "given": given}
    reason = _REFUSALS[item.refusal]
    return {"low": None, "high": None, "level": level, "method": method, "given": given, "reason": reason}


def _rates(
    rates: RateIntervals, lows: Sequence[Sequence[float]], highs: Sequence[Sequence[float]], level: float
) -> list[Interval]:
    """Rate by rate. Written out, since a report has more than a hundred of them."""
    method = rates.method.value
    return [
        {"low": low, "high": high, "level": level, "method": method, "given": given}
        for given, row_of_lows, row_of_highs in zip([fixed.value for fixed in rates.given], lows, highs, strict=True)
        for low, high in zip(row_of_lows, row_of_highs, strict=True)
    ]
