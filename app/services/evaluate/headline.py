"""The headline of a report: what everybody looks at first, small whatever the number of classes."""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from app.domain.expressions.expressions import render
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
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import AnyMetric, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.engine import evaluate_table
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.families.rates import prevalence, recall, support
from app.kernel.numerics.arrays import silently
from app.services.estimates.report_intervals import headline_intervals, overall_intervals
from app.services.evaluate.questions import Question
from app.services.evaluate.sections.matrix import BatchValues, leading_rates, requested_of_matrix
from app.services.evaluate.sections.metric_order import metric_order
from app.services.json_values import numbers

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


def headline_names(reported: Iterable[AnyMetric], task: Task, shown: Collection[str]) -> list[str]:
    """What to look at first of the values of a kind of input that are shown; of a metric at several cutoffs that at its
    default one, or at the last.
    """
    found = []
    for metric in reported:
        if not metric.card.inference.leads(task):
            continue
        usual = render(Measure(metric, metric.card.defaults, None), ())
        names = [name for name in shown if name.partition("(")[0] == metric.key]
        found += [usual] if usual in names else names[-1:]
    return found


def headline_alone(question: Question) -> Headline | None:
    """The headline without the rest of the report, where a few metrics of the matrix are all that it takes; None where
    it is as much work as the report: other limits than the quick ones, groups, what needs probabilities.
    """
    source, level = question.source, question.quick_level
    if not is_quick(question):
        return None
    by_key = catalogue().of_matrices.by_name
    with silently():
        table = Table(source.counts.astype(np.float64)[None, None])
    overall = numbers(evaluate_table(table, [by_key[key] for key in HEADLINE])[:, 0, 0])
    rates = numbers(evaluate_table(table, [by_key[recall.key], by_key[prevalence.key]])[:, 0, 0])
    requested, _ = requested_of_matrix(question)
    intervals = {} if level is None else headline_intervals(table, [source.labels], level)[0]
    return _headline(question, dict(zip(HEADLINE, overall, strict=True)), rates, requested, intervals)


def is_quick(question: Question) -> bool:
    """Is the headline less work than the report?"""
    source = question.source
    beyond = source.task is not None or source.is_grouped
    return not (beyond or question.has_slow_intervals or question.of_probabilities)


def headlines_of(found: BatchValues) -> list[Headline]:
    """Headlines of questions of one family that are all quick, of values that are known."""
    (_, level), labels = found.questions[0].family, [question.source.labels for question in found.questions]
    order = metric_order(binary=len(labels[0]) == 2)
    rates = numbers(found.by_class[[order.recall, order.prevalence], :, 0].transpose(1, 0, 2))
    intervals: Sequence[Mapping[str, Interval]] = [{}] * len(labels)
    if level is not None:
        # Of classes only where they are asked for.
        asked = any(question.expressions for question in found.questions)
        intervals = headline_intervals(found.table, labels, level) if asked else overall_intervals(found.table, level)
    each = zip(found.questions, found.values, rates, found.requested, intervals, strict=True)
    return [_headline(question, values, own, wanted, ends) for question, values, own, (wanted, _), ends in each]


def _headline(
    question: Question,
    values: Mapping[str, Value],
    rates: Sequence[Sequence[Value]],
    requested: Requested,
    intervals: Mapping[str, Interval],
) -> Headline:
    """Of overall values, and of the recalls and prevalences of the classes."""
    per_class = leading_rates(question.source.labels, *rates)
    section = Section(per_class=per_class, values=values, requested=requested, intervals=intervals)
    return headline_of(InputSummary.of(question.source, per_class), section)


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
    lowest: tuple[float, int, str] | None = None
    for place, (label, groups) in enumerate(whole.classes.items()):
        value = groups["prevalence_insensitive"].get(recall.key)
        if value is not None and (lowest is None or value < lowest[0]):
            lowest = value, place, label
    if lowest is None:
        return None
    value, place, label = lowest
    return WeakestClass(label, value, _members(summary, place, whole.classes[label]))


def _members(summary: InputSummary, place: int, groups: GroupedMetrics) -> float:
    """Samples of a class, or with a label."""
    if summary.confusion_matrix is not None:
        members: float = summary.confusion_matrix[place].sum().item()
        return members
    counted = groups["prevalence_sensitive"][support.key] or 0.0
    return int(counted) if summary.content is Content.counts else counted
