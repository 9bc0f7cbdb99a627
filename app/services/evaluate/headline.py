"""The headline of a report: what everybody looks at first, small whatever the number of classes."""

from collections.abc import Mapping, Sequence

from app.domain.inputs.content import Content
from app.domain.named_metrics import HEADLINE
from app.domain.report import (
    GroupedMetrics,
    Headline,
    HeadlineValue,
    InputSummary,
    Interval,
    Requested,
    Section,
    Value,
    WeakestClass,
)
from app.kernel.metrics.families.per_class.rates import recall, support

# Characters of requested expressions: with the usual metrics and a class the headline stays below two kilobytes.
_MOST_REQUESTED = 700
_CHARACTERS_OF_VALUES = 70


def headline_of(summary: InputSummary, whole: Section, keys: Sequence[str] = HEADLINE) -> Headline:
    """The usual metrics as far as they apply, what was requested, and the class of the lowest recall."""
    return {
        "metrics": {
            key: _with_limits(whole.values[key], whole.intervals.get(key)) for key in keys if key in whole.values
        },
        "requested": _requested(whole.requested, whole.intervals),
        "weakest_class": _weakest(summary, whole),
        "n_samples": summary.n_samples,
        "n_classes": summary.n_classes,
    }


def _with_limits(value: Value, interval: Interval | None) -> HeadlineValue:
    if interval is None:
        return {"value": value, "low": None, "high": None}
    return {"value": value, "low": interval["low"], "high": interval["high"]}


def _requested(requested: Requested, intervals: Mapping[str, Interval]) -> dict[str, HeadlineValue]:
    """Those of one value, in order, as long as there is room; lists stand in ``requested`` alone."""
    found: dict[str, HeadlineValue] = {}
    room = _MOST_REQUESTED
    for text, value in requested.items():
        if isinstance(value, Mapping):
            continue
        room -= len(text.encode()) + _CHARACTERS_OF_VALUES
        if room < 0:
            break
        found[text] = _with_limits(value, intervals.get(text))
    return found


def _weakest(summary: InputSummary, whole: Section) -> WeakestClass | None:
    lowest: WeakestClass | None = None
    for place, (label, groups) in enumerate(whole.per_class.items()):
        value = groups["prevalence_insensitive"].get(recall.key)
        if value is not None and (lowest is None or value < lowest.recall):
            lowest = WeakestClass(label, value, _members(summary, place, groups))
    return lowest


def _members(summary: InputSummary, place: int, groups: GroupedMetrics) -> float:
    """Samples of a class, or with a label."""
    if summary.confusion_matrix is not None:
        members: float = summary.confusion_matrix[place].sum().item()
        return members
    counted = groups["prevalence_sensitive"][support.key] or 0.0
    return int(counted) if summary.content is Content.counts else counted
