"""The closed-form intervals of a report under the names that expressions have."""

from collections.abc import Sequence

from app.domain.report import Interval
from app.domain.syntax import write_label
from app.kernel.table import Table
from app.kernel.uncertainty.headline import Refusal, headline

_REFUSALS = {
    Refusal.UNDEFINED_ESTIMATE: "the metric is undefined for this matrix",
    Refusal.ZERO_STANDARD_ERROR: "the standard error is 0, which says nothing about the uncertainty",
}


def headline_intervals(table: Table, labels: Sequence[str], level: float) -> dict[str, Interval]:
    """Intervals by expression: overall metrics by key, rates as ``recall@D``. A rate with denominator 0 has none."""
    found = headline(table, level)
    answers = {
        item.key: Interval(
            None if item.refusal else item.low,
            None if item.refusal else item.high,
            level,
            item.method.value,
            item.given.value,
            _REFUSALS[item.refusal] if item.refusal else None,
        )
        for item in found.overall
    }
    suffixes = [f"@{write_label(label)}" for label in labels]
    method = found.rates.method.value
    rows = zip(found.rates.keys, found.rates.given, found.rates.low.tolist(), found.rates.high.tolist(), strict=True)
    for key, given, lows, highs in rows:
        fixed = given.value
        for suffix, low, high in zip(suffixes, lows, highs, strict=True):
            if low == low:
                answers[key + suffix] = Interval(low, high, level, method, fixed)
    return answers
