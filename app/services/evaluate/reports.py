"""From a question to its report, and the headline of the report."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.domain.expressions.expressions import render
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.inputs.matrices import MatrixInput
from app.domain.named_metrics import HEADLINE
from app.domain.options import Options
from app.domain.report import (
    GroupedMetrics,
    Headline,
    HeadlineValue,
    InputSummary,
    Interval,
    Report,
    Requested,
    Section,
    SectionName,
    Value,
    WeakestClass,
    merged_metrics,
)
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import AnyMetric, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.engine import evaluate_table
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.families.combinations import GPS
from app.kernel.metrics.families.rates import prevalence, recall, support
from app.kernel.numerics.arrays import silently
from app.services.estimates.report_intervals import headline_intervals, overall_intervals
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.sections.group import group_section
from app.services.evaluate.sections.matrix import (
    BatchValues,
    batch_values,
    leading_rates,
    metric_order,
    requested_of_matrix,
    sections,
    with_slow_intervals,
)
from app.services.evaluate.sections.probability import probability_section
from app.services.evaluate.sections.unit import unit_section
from app.services.evaluate.sections.weight import weight_section
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


# Beyond this many entries in its matrices a report takes long enough to be noticed by other requests.
HEAVY_ENTRIES = 64 * 64
_PASS_LIMIT = 32


def evaluate(source: MatrixInput, options: Options) -> Report:
    """Everything that is answered about an input.

    Raises:
        InvalidExpression: one of ``options.metrics`` is none; its pointer names which.
        InvalidInput: what is asked cannot be given for this input.
    """
    return report_alone(ask(source, options))


def report_alone(question: Question, kept: Mapping[SectionName, Section] | None = None) -> Report:
    """The report of one question; the only way to what takes a while: intervals of everything, probabilities, groups.

    Args:
        question: Its source is without samples when these were not kept.
        kept: What was said of the samples then.
    """
    source, run = question.source, RunData(question.source)
    if source.task is not None:
        return unit_report(question, source.task, run, kept)
    of_matrix = sections(batch_values([question]))[0]
    if question.has_slow_intervals:
        of_matrix = with_slow_intervals(of_matrix, question, run)
    if kept is None:
        kept = {}
        if source.is_grouped:
            kept[SectionName.GROUPS] = group_section(question, run)
        elif source.is_weighted:
            kept[SectionName.WEIGHTS] = weight_section(question, run)
        if source.is_scored:
            kept[SectionName.PROBABILITIES] = probability_section(question, run)
    return build_report(question, of_matrix, kept)


def unit_report(question: Question, task: Task, run: RunData, kept: Mapping[SectionName, Section] | None) -> Report:
    """The report of what is more than a matrix of classes: all of it is one section."""
    section = unit_section(question, task, run) if kept is None else kept[SectionName.UNITS]
    kind = UNIT_KINDS[task]
    summary = InputSummary.of(question.source, section.per_class, kind.shown(question.source))
    reported = catalogue().reported.for_task(task, kind.inputs(question.source)).of_scope(Scope.OVERALL)
    shown = section.metrics["prevalence_insensitive"].keys() | section.metrics["prevalence_sensitive"]
    leading = headline_names(reported, task, [name for name in section.values if name in shown])
    return Report(
        input=summary,
        headline=headline_of(summary, section, leading),
        metrics=section.metrics,
        per_class=section.per_class,
        values=section.values,
        requested=section.requested,
        intervals=section.intervals,
        undefined=section.undefined,
        findings=section.findings,
        of_samples={SectionName.UNITS: section},
        queries=section.details.get("queries"),
        decisions=section.details.get("decisions"),
        weights=section.details.get("weights"),
    )


def matrix_reports(found: BatchValues) -> list[Report]:
    """The reports of questions that ask for no more than what follows quickly from their matrices."""
    return [
        build_report(question, section, {}) for question, section in zip(found.questions, sections(found), strict=True)
    ]


def is_light(question: Question) -> bool:
    """Does its report follow so quickly from its matrix that nobody minds to wait for it?"""
    source = question.source
    entries = source.counts.size + (0 if source.fold_counts is None else source.fold_counts.size)
    beyond_matrix = source.is_scored or source.is_grouped or source.is_weighted or source.task is not None
    return not (beyond_matrix or question.has_slow_intervals or entries > HEAVY_ENTRIES)


def passes(questions: Sequence[Question]) -> Iterator[list[int]]:
    """Places of light questions that are answered in one pass: those of a family, up to a number."""
    families: dict[tuple[int, float | None], list[int]] = {}
    for place, question in enumerate(questions):
        families.setdefault(question.family, []).append(place)
    for (n_classes, _), places in families.items():
        size = min(_PASS_LIMIT, HEAVY_ENTRIES // n_classes**2)
        for start in range(0, len(places), size):
            yield places[start : start + size]


def build_report(question: Question, of_matrix: Section, of_samples: Mapping[SectionName, Section]) -> Report:
    """The report of all sections together; of groups and weights it speaks before it does of probabilities."""
    whole = of_matrix
    for name in (SectionName.GROUPS, SectionName.WEIGHTS, SectionName.PROBABILITIES):
        if name in of_samples:
            whole = _joined(whole, of_samples[name])
    if of_samples:
        whole = replace(whole, requested={text: whole.requested[text] for text in question.options.metrics})
    summary = InputSummary.of(question.source, whole.classes)
    return Report(
        input=summary,
        headline=headline_of(summary, whole),
        metrics=whole.metrics,
        per_class=whole.per_class,
        values=whole.values,
        requested=whole.requested,
        intervals=whole.intervals,
        balanced_intervals=whole.balanced_intervals,
        undefined=whole.undefined,
        findings=whole.findings,
        folds=whole.folds,
        interpretation=whole.interpretation,
        of_samples=of_samples,
        probabilities=_details(of_samples, SectionName.PROBABILITIES),
        groups=_details(of_samples, SectionName.GROUPS),
        weights=_details(of_samples, SectionName.WEIGHTS),
    )


def _details(of_samples: Mapping[SectionName, Section], name: SectionName) -> Any:
    return of_samples[name].details if name in of_samples else None


def _joined(first: Section, second: Section) -> Section:
    """What two sections say, the second behind the first."""
    return Section(
        metrics=merged_metrics(first.metrics, second.metrics),
        per_class={
            label: merged_metrics(own, second.per_class[label]) if second.per_class else own
            for label, own in first.per_class.items()
        },
        values={**first.values, **second.values},
        requested={**first.requested, **second.requested},
        intervals={**first.intervals, **second.intervals},
        balanced_intervals={**first.balanced_intervals, **second.balanced_intervals},
        undefined=(*first.undefined, *second.undefined),
        findings=(*first.findings, *second.findings),
        folds=None if first.folds is None else {**first.folds, **(second.folds or {})},
        interpretation=first.interpretation,
    )


def warm_up() -> None:
    """Evaluate something small: the first caller should not wait for imports and for what is built at first use."""
    for labels, positive in ((("0", "1"), 1), (("0", "1", "2"), None)):
        counts = np.eye(len(labels), dtype=np.int64) + 1
        source = MatrixInput("confusion_matrix", labels, positive, Content.counts, counts)
        evaluate(source, Options(metrics=(f"{GPS.key}({recall.key}@*)",)))
