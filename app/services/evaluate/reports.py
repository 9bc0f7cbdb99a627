"""From a question to its report: one builder over what is said of the matrix, of probabilities and of groups."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from app.domain.inputs.content import Content
from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Options
from app.domain.report import InputSummary, Report, Section, SectionName, merged_metrics
from app.kernel.metrics.card import Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.combinations import GPS
from app.kernel.metrics.families.rates import recall
from app.services.estimates.run_data import RunData
from app.services.evaluate.headline import headline_names, headline_of
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.sections.group import group_section
from app.services.evaluate.sections.matrix import BatchValues, batch_values, sections, with_slow_intervals
from app.services.evaluate.sections.probability import probability_section
from app.services.evaluate.sections.unit import unit_section
from app.services.evaluate.sections.weight import weight_section

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
    requested = whole.requested
    if of_samples:
        requested = {text: requested[text] for text in question.options.metrics}
    summary = InputSummary.of(question.source, whole.classes)
    return Report(
        input=summary,
        headline=headline_of(summary, replace(whole, requested=requested)),
        metrics=whole.metrics,
        per_class=whole.per_class,
        values=whole.values,
        requested=requested,
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
