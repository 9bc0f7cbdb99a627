"""Reports and their headlines, computed alone or in groups: requests that arrive during a pass share the next one.

numpy's price is per call and hardly per matrix: the metrics of sixteen matrices of ten classes take about 1.5 times as
long as those of one. No request waits for others: one that comes alone is computed at once, as with the commits of the
store.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np

from app.domain.errors import all_understood
from app.domain.expressions.expressions import render
from app.domain.findings import Finding, Severity
from app.domain.inputs.content import WEIGHTS_FACT, Content
from app.domain.inputs.kinds import UNIT_KINDS, inputs_of, needs_samples
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.members import numbers
from app.domain.named_metrics import HEADLINE
from app.domain.options import Options
from app.domain.report import (
    FoldValues,
    Group,
    GroupedMetrics,
    Headline,
    HeadlineValue,
    InputSummary,
    Interval,
    Report,
    Section,
    SectionName,
    Undefined,
    Value,
    WeakestClass,
    merged_metrics,
    no_metrics,
)
from app.domain.slices import refuse_unknown_slices
from app.kernel.metrics.card import Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.families.combinations import GPS
from app.kernel.metrics.families.rates import recall, support
from app.services.estimands import estimand_of
from app.services.estimates.estimate import NoLimits
from app.services.estimates.report_intervals import estimate_for_report
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import Question, ask
from app.services.evaluate.sections.designs import design_section
from app.services.evaluate.sections.findings import about_decisions
from app.services.evaluate.sections.matrix import (
    BatchValues,
    batch_values,
    brief_sections,
    sections,
    with_slow_intervals,
)
from app.services.evaluate.sections.probability import probability_section
from app.services.evaluate.sections.unit import unit_section
from app.services.present import ON_LOOP, Observers, Tally, share, tally
from app.services.processes.compute import ComputePool
from app.services.reasons import slice_findings, why_undefined

# Characters of requested expressions: with the usual metrics and a class the headline stays below two kilobytes.
_MOST_REQUESTED = 1000
_CHARACTERS_OF_VALUES = 70


def headline_of(summary: InputSummary, whole: Section, keys: Sequence[str] = HEADLINE) -> Headline:
    """The usual metrics as far as they apply, what was requested, and the class of the lowest recall."""
    return {
        "metrics": {
            key: _with_limits(whole.values[key], whole.intervals.get(key)) for key in keys if key in whole.values
        },
        "requested": _requested(summary, whole),
        "weakest_class": _weakest(summary, whole),
        "n_samples": summary.n_samples,
        "n_classes": summary.n_classes,
    }


def leading_names(source: MatrixInput, task: Task, shown: Collection[str]) -> list[str]:
    """Return the names of the leading values of an input among those shown; of a metric at several cutoffs, the one at
    its default or at the last.
    """
    found = list[str]()
    for metric in catalogue().reported_of(task, inputs_of(source)).of_scope(Scope.OVERALL):
        if not metric.card.inference.leads(task):
            continue
        usual = render(Measure(metric, metric.card.defaults, None), ())
        names = [name for name in shown if name.partition("(")[0] == metric.key]
        found += [usual] if usual in names else names[-1:]
    return found


def is_quick(question: Question) -> bool:
    """Is the headline less work than the report?"""
    source = question.source
    beyond = source.task is not None or question.by_units or question.of_probabilities or question.of_slices
    return not (beyond or question.has_slow_intervals)


def why_without_limits(content: Content, facts: Mapping[str, Any]) -> str:
    """Return why values of an input have no limits, where nothing is said of one."""
    counted = content is Content.counts or WEIGHTS_FACT in facts
    return "no intervals were asked for" if counted else NoLimits.NO_COUNTS.value


def _with_limits(value: Value, interval: Interval | None) -> HeadlineValue:
    ends: Mapping[str, Any] = interval or {}
    return {"value": value, "low": ends.get("low"), "high": ends.get("high")}


def _requested(summary: InputSummary, whole: Section) -> dict[str, HeadlineValue]:
    """Return the requested single values, in order, as long as there is room; lists stand in ``requested`` alone."""
    found: dict[str, HeadlineValue] = {}
    room = _MOST_REQUESTED
    without_any = why_without_limits(summary.content, summary.facts)
    for text, value in whole.requested.items():
        if isinstance(value, Mapping):
            continue
        interval = whole.intervals.get(text)
        one = _with_limits(value, interval)
        if one["low"] is None and one["high"] is None:
            one["reason"] = without_any if interval is None else interval.get("reason", "")
        room -= len(text.encode()) + _CHARACTERS_OF_VALUES + len(one.get("reason", ""))
        if room < 0:
            break
        found[text] = one
    return found


def _weakest(summary: InputSummary, whole: Section) -> WeakestClass | None:
    recalls = [groups["prevalence_insensitive"].get(recall.key) for groups in whole.per_class.values()]
    known = [(value, place) for place, value in enumerate(recalls) if value is not None]
    if not known:
        return None
    value, place = min(known)
    label = [*whole.per_class][place]
    members = whole.per_class[label]["prevalence_sensitive"][support.key] or 0.0
    # Rates say nothing of how many samples there are.
    n = None if summary.n_samples is None else int(members) if summary.content is Content.counts else members
    return WeakestClass(label, value, n)


# Beyond this many entries in its matrices a report takes long enough to be noticed by other requests.
HEAVY_ENTRIES = 64 * 64
_PASS_LIMIT = 32


def evaluate(source: MatrixInput, options: Options) -> Report:
    """Evaluate an input; raises as `ask` does."""
    return report_alone(ask(source, options))


# What is kept of the samples where the input is without them: what was said of them, or they; else None.
Kept = Mapping[SectionName, Section] | Samples | None


def report_alone(question: Question, kept: Kept = None, run: RunData | None = None) -> Report:
    """The report of one question; the only way to what takes a while: intervals of everything, probabilities, groups.

    Args:
        question: What is asked.
        kept: Of its samples.
        run: What limits are made from, where that is more than the source.
    """
    if isinstance(kept, Samples):
        question, kept = replace(question, source=replace(question.source, samples=kept)), None
    source, run = question.source, run or RunData(question.source)
    of_matrix = None if source.task is not None else sections(batch_values([question]))[0]
    if of_matrix is not None and question.has_slow_intervals:
        of_matrix = with_slow_intervals(of_matrix, question, run)
    if kept is None:
        kept = {}
        if source.task is not None:
            kept[SectionName.UNITS] = unit_section(question, source.task, run)
        elif source.is_grouped:
            kept[SectionName.GROUPS] = design_section(question, run)
        elif source.is_weighted:
            kept[SectionName.WEIGHTS] = design_section(question, run)
        if source.is_scored:
            kept[SectionName.PROBABILITIES] = probability_section(question, run)
        if question.of_slices:
            kept[SectionName.SLICES] = _slice_section(question, run)
    return build_report(question, of_matrix, kept)


def matrix_reports(found: BatchValues, *, brief: bool = False) -> list[Report]:
    """The reports of questions that ask for no more than what follows quickly from their matrices; ``brief``: of
    questions that are all quick no more than the headline, values and limits.
    """
    made = brief_sections(found) if brief else sections(found)
    return [build_report(*each, {}) for each in zip(found.questions, made, strict=True)]


def is_light(question: Question, kept: Kept = None) -> bool:
    """Does its report follow so quickly from its matrix that nobody minds to wait for it? ``kept`` is as in
    `report_alone`: where that is empty, no more than the matrix is asked of samples.
    """
    if kept:
        return False
    source = question.source
    entries = source.counts.size + (0 if source.fold_counts is None else source.fold_counts.size)
    of_samples = kept is None and needs_samples(source)
    slow = question.has_slow_intervals or bool(question.of_slices)
    return not (of_samples or source.task is not None or slow or entries > HEAVY_ENTRIES)


def passes(questions: Sequence[Question]) -> Iterator[list[int]]:
    """Places of light questions that are answered in one pass: those of a family, up to a number."""
    families: dict[tuple[int, float | None], list[int]] = {}
    for place, question in enumerate(questions):
        families.setdefault(question.family, []).append(place)
    for (n_classes, _), places in families.items():
        size = min(_PASS_LIMIT, HEAVY_ENTRIES // n_classes**2)
        for start in range(0, len(places), size):
            yield places[start : start + size]


def build_report(question: Question, of_matrix: Section | None, of_samples: Mapping[SectionName, Section]) -> Report:
    """The report of all sections together, of what is more than a matrix of classes without one on that; of groups and
    weights it speaks before it does of probabilities.
    """
    source = question.source
    whole = of_samples[SectionName.UNITS] if of_matrix is None else of_matrix
    details: dict[str, Any] = {name.value: of_samples[name].details for name in _DETAILED if name in of_samples}
    details |= {name: whole.details[name] for name in _DETAILS_OF_UNITS if name in whole.details}
    for name in (SectionName.GROUPS, SectionName.WEIGHTS, SectionName.PROBABILITIES, SectionName.SLICES):
        if name in of_samples:
            whole = _joined(whole, of_samples[name])
    if of_samples:
        # What was chosen for the answer to the first request is no part of what was requested.
        whole = replace(whole, requested={text: whole.requested[text] for text in question.options.metrics})
    if source.is_scored:
        whole = replace(whole, findings=about_decisions(whole.findings, source))
    kind = None if source.task is None else UNIT_KINDS[source.task]
    summary = InputSummary.of(source, whole.per_class, None if kind is None else kind.shown(source))
    leading: Sequence[str] = HEADLINE
    if source.task is not None:
        shown = whole.metrics["prevalence_insensitive"].keys() | whole.metrics["prevalence_sensitive"]
        leading = leading_names(source, source.task, [name for name in whole.values if name in shown])
    headline = headline_of(summary, whole, leading)
    said = {name: getattr(whole, name) for name in _SHARED}
    return Report(input=summary, headline=headline, **said, of_samples=of_samples, **details)


# Sections whose details are a member of a report, and details of what is more than a matrix of classes that are.
_DETAILED = (SectionName.PROBABILITIES, SectionName.GROUPS, SectionName.WEIGHTS)
_DETAILS_OF_UNITS = ("queries", "decisions", "groups", "weights")
# Members of a report that its section has too.
_SHARED = frozenset(one.name for one in fields(Report)) & frozenset(one.name for one in fields(Section))


def _joined(first: Section, second: Section) -> Section:
    """Join two sections, the second behind the first."""
    joined = {name: {**getattr(first, name), **getattr(second, name)} for name in _BY_NAME}
    per_class = first.per_class
    if second.per_class:
        per_class = {label: merged_metrics(own, second.per_class[label]) for label, own in per_class.items()}
    return replace(
        first,
        metrics=merged_metrics(first.metrics, second.metrics),
        per_class=per_class,
        undefined=(*first.undefined, *second.undefined),
        findings=(*first.findings, *second.findings),
        folds=None if first.folds is None else {**first.folds, **(second.folds or {})},
        **joined,
    )


# Members of a section whose values have names.
_BY_NAME = ("values", "requested", "intervals", "balanced_intervals")


def warm_up() -> None:
    """Evaluate something small: the first caller should not wait for imports and for what is built at first use."""
    for labels, positive in ((("0", "1"), 1), (("0", "1", "2"), None)):
        counts = np.eye(len(labels), dtype=np.int64) + 1
        source = MatrixInput("confusion_matrix", labels, positive, Content.counts, counts)
        evaluate(source, Options(metrics=(f"{GPS.key}({recall.key}@*)",)))


# Turns of the event loop before values are computed: what has arrived by then is read, checked and joins the group. An
# idle turn takes less than a microsecond.
_TURNS_TO_GATHER = 6
# What is told of arithmetic on the event loop.
_KIND = "evaluate"


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    """A light question that shares a pass with others."""

    question: Question
    answer: "asyncio.Future[Report]"
    tally: Tally | None


class Reports:
    """Makes reports on one event loop."""

    def __init__(self, compute: ComputePool) -> None:
        self._compute = compute
        # Those of which the headline is enough, and the others.
        self._waiting: dict[bool, list[_Waiting]] = {}

    async def make(self, source: MatrixInput, options: Options, kept: Kept = None, *, brief: bool = False) -> Report:
        """The report of an input; ``brief``: no more than its headline and values where that spares work.

        Raises:
            InvalidExpression: one of the metric expressions is none.
            Overloaded: too many large inputs are being computed.
        """
        question = ask(source, options)
        brief = brief and is_quick(question)
        # A quick headline follows from the matrix alone.
        kept = {} if brief else kept
        if is_light(question, kept):
            return await self._together(question, brief=brief)
        return await self._compute.run(partial(report_alone, question, kept))

    async def _together(self, question: Question, *, brief: bool) -> Report:
        """The answer to a light question, in one pass with all that arrive during the next turns."""
        waiting = self._waiting.setdefault(brief, [])
        if not waiting:
            _after(_TURNS_TO_GATHER, lambda: self._answer_all(brief=brief))
        one = _Waiting(question, asyncio.get_running_loop().create_future(), tally())
        waiting.append(one)
        return await one.answer

    def _answer_all(self, *, brief: bool) -> None:
        still = [one for one in self._waiting.pop(brief) if not one.answer.done()]
        for places in passes([one.question for one in still]):
            _answer_group([still[place] for place in places], self._compute.observers, brief=brief)


def _answer_group(group: Sequence[_Waiting], observers: Observers, *, brief: bool) -> None:
    """Answer a group, one by one if it fails as a whole: what cannot be computed spoils no other."""
    begin, failed = time.perf_counter(), None
    try:
        answers = matrix_reports(batch_values([one.question for one in group]), brief=brief)
    except Exception as error:  # noqa: BLE001 - it belongs to the caller
        answers, failed = [], error
    seconds = time.perf_counter() - begin
    share([one.tally for one in group], seconds)
    observers.observed("compute_seconds", seconds, kind=_KIND, where=ON_LOOP)
    if failed is None:
        for one, answer in zip(group, answers, strict=True):
            one.answer.set_result(answer)
    elif len(group) == 1:
        group[0].answer.set_exception(failed)
    else:
        for one in group:
            _answer_group([one], observers, brief=brief)


def _after(turns: int, function: Callable[[], None]) -> None:
    """Call a function some turns of the event loop from now."""
    if turns:
        asyncio.get_running_loop().call_soon(_after, turns - 1, function)
    else:
        function()


# Sections beside that of the probabilities, which stands for itself.
_NESTED = (SectionName.GROUPS, SectionName.WEIGHTS, SectionName.UNITS, SectionName.SLICES)


# Members of a section that are JSON as they are.
_PLAIN = ("metrics", "per_class", "values", "requested", "intervals", "balanced_intervals", "details")


def sections_as_json(sections: Mapping[SectionName, Section]) -> dict[str, Any]:
    """The sections as one object: that of the probabilities with the others inside of it."""
    probabilities = sections.get(SectionName.PROBABILITIES)
    stored = {} if probabilities is None else _as_json(probabilities)
    return stored | {name.value: _as_json(sections[name]) for name in _NESTED if name in sections}


def sections_from_json(stored: Mapping[str, Any]) -> dict[SectionName, Section]:
    """The reverse of ``sections_as_json``."""
    found = {}
    # Whatever else there is belongs to the probabilities.
    if stored.keys() - {name.value for name in _NESTED}:
        found[SectionName.PROBABILITIES] = _from_json(stored)
    return found | {name: _from_json(stored[name.value]) for name in _NESTED if name.value in stored}


def _as_json(section: Section) -> dict[str, Any]:
    folds = section.folds
    return {
        **{name: getattr(section, name) for name in _PLAIN},
        "undefined": [[*astuple(gap)] for gap in section.undefined],
        "findings": [[one.code, one.severity.value, one.message, one.evidence] for one in section.findings],
        "folds": None if folds is None else {key: [fold.values, fold.mean, fold.sd] for key, fold in folds.items()},
        **({} if section.curves is None else {"curves": section.curves}),
    }


def _from_json(stored: Mapping[str, Any]) -> Section:
    # Sections of groups that were stored before sections were of one kind have less, and call the details a design.
    plain: dict[str, Any] = {name: stored[name] for name in (*_PLAIN, "curves") if name in stored}
    plain.setdefault("details", stored.get("design"))
    folds = stored.get("folds")
    return replace(
        Section(**plain),
        metrics=_metrics(stored.get("metrics", {})),
        per_class={label: _metrics(groups) for label, groups in stored.get("per_class", {}).items()},
        undefined=tuple(_undefined(*entry) for entry in stored.get("undefined", ())),
        findings=tuple(Finding(code, Severity(how), text, facts) for code, how, text, facts in stored["findings"]),
        folds=None if folds is None else {key: FoldValues.of(*of_metric) for key, of_metric in folds.items()},
    )


def _undefined(metric: str, code: str, reason: str, label: str | None, group: str | None = None) -> Undefined:
    # Older versions stored no group.
    return Undefined(metric, code, reason, label, None if group is None else Group(group))


def _metrics(stored: Mapping[str, Any]) -> GroupedMetrics:
    found = no_metrics()
    # Of samples nothing is stored at balanced prevalence by older versions.
    found.update(stored)  # type: ignore[typeddict-item]  # as it was written
    return found


def _slice_section(question: Question, run: RunData) -> Section:
    """Make the section on the expressions of slices that are asked for. Raises InvalidExpression, or
    InvalidExpressions, where the samples have no such attributes or none is in a slice; pointers say which.
    """
    source = question.source
    expressions = dict(question.of_slices)
    all_understood(
        expressions,
        lambda text: refuse_unknown_slices(expressions[text], source),
        lambda text: f"/options/metrics/{question.options.metrics.index(text)}",
    )
    requested: dict[str, Any] = {}
    undefined = []
    asked = [estimand_of(one, text, source.labels, task=source.task) for text, one in expressions.items()]
    for estimand in asked:
        values = run.values(estimand)
        found = numbers(values)
        requested[estimand.text] = dict(zip(source.labels, found, strict=True)) if estimand.is_list else found[0]
        for place in np.flatnonzero(~np.isfinite(values)).tolist():
            label = source.labels[place] if estimand.is_list else None
            undefined.append(Undefined(estimand.text, *why_undefined(estimand.expression, run, place), label))
    intervals = {}
    if question.has_intervals:
        intervals = estimate_for_report([], question.of_slices, run, question.options).intervals()
    findings = tuple(slice_findings(asked, run))
    return Section(requested=requested, intervals=intervals, undefined=tuple(undefined), findings=findings)
