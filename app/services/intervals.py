"""The closed-form intervals of a report under the names that expressions have."""

from collections.abc import Sequence

from app.domain.report import Interval
from app.domain.syntax import write_label
from app.kernel.table import Table
from app.kernel.uncertainty.headline import OverallInterval, RateIntervals, Refusal, headlines

_REFUSALS = {
    Refusal.UNDEFINED_ESTIMATE: "the metric is undefined for this matrix",
    Refusal.ZERO_STANDARD_ERROR: "the standard error is 0, which says nothing about the uncertainty",
}


def headline_intervals(table: Table, labels: Sequence[Sequence[str]], level: float) -> list[dict[str, Interval]]:
    """Intervals of each matrix of a table (B, 1, K, K) by expression: overall metrics by key, rates as ``recall@D``.

    A rate with denominator 0 has none.
    """
    found = headlines(table, level)
    # One matrix after another, and in it rate by rate.
    lows, highs = (ends[:, :, 0].transpose(1, 0, 2).tolist() for ends in (found.rates.low, found.rates.high))
    answers = []
    for overall, names, low, high in zip(found.overall, labels, lows, highs, strict=True):
        intervals = {item.key: _overall(item, level) for item in overall}
        intervals.update(_rates(found.rates, names, low, high, level))
        answers.append(intervals)
    return answers


def _overall(item: OverallInterval, level: float) -> Interval:
    method, given = item.method.value, item.given.value
    if item.refusal is None:
        return {"low": item.low, "high": item.high, "level": level, "method": method, "given": given}
    reason = _REFUSALS[item.refusal]
    return {"low": None, "high": None, "level": level, "method": method, "given": given, "reason": reason}


def _rates(
    rates: RateIntervals,
    labels: Sequence[str],
    lows: Sequence[Sequence[float]],
    highs: Sequence[Sequence[float]],
    level: float,
) -> dict[str, Interval]:
    suffixes = [f"@{write_label(label)}" for label in labels]
    method = rates.method.value
    answers: dict[str, Interval] = {}
    for key, fixed, row_of_lows, row_of_highs in zip(rates.keys, rates.given, lows, highs, strict=True):
        given = fixed.value
        for suffix, low, high in zip(suffixes, row_of_lows, row_of_highs, strict=True):
            if low == low:
                answers[key + suffix] = {"low": low, "high": high, "level": level, "method": method, "given": given}
    return answers
