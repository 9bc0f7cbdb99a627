"""From a confusion matrix to its report: a pure function, so a stored evaluation is answered by computing it again."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from app.domain.errors import InvalidExpression
from app.domain.expressions.expressions import parse
from app.domain.expressions.syntax import write_label
from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.report import (
    FoldValues,
    Group,
    GroupedMetrics,
    InputSummary,
    Interval,
    IntervalChoice,
    Options,
    ProbabilityPart,
    Report,
    SampleParts,
    Undefined,
    Value,
)
from app.kernel.matrix.table import Table, at_equal_prevalence
from app.kernel.metrics.card import Inputs
from app.kernel.metrics.engine import Explainer, Gap, evaluate_table
from app.kernel.metrics.expression import Expression, measures, needs_counts, of_probabilities
from app.kernel.metrics.families.combinations import GPS
from app.kernel.metrics.families.rates import recall
from app.kernel.numerics.arrays import Array, silently
from app.services.estimates.full_intervals import check_sampling, full_intervals
from app.services.estimates.headline_intervals import headline_intervals
from app.services.estimates.interval_warnings import headline_cautions
from app.services.evaluate.findings import matrix_findings
from app.services.evaluate.group_reports import check_groups, judge_groups, with_groups
from app.services.evaluate.metric_order import Layout, layout
from app.services.evaluate.probability_reports import judge, with_probabilities
from app.services.reasons import Requested, plain, reason, requested_values
from app.services.seeds import chosen_seed
from app.services.stored import scores_of

Interpretation = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True, eq=False)
class Question:
    """An input and what is asked of it, understood."""

    source: MatrixInput
    options: Options
    expressions: tuple[Expression, ...]

    @property
    def asked(self) -> list[tuple[str, Expression]]:
        """The expressions with their text."""
        return list(zip(self.options.metrics, self.expressions, strict=True))

    @property
    def of_matrix(self) -> list[tuple[str, Expression]]:
        """Those that need no probabilities."""
        return [(text, expression) for text, expression in self.asked if not of_probabilities(expression)]

    @property
    def level(self) -> float | None:
        """Coverage of the intervals, None when there are to be none: they need numbers of samples."""
        wanted = self.source.content is Content.counts and self.options.intervals is not IntervalChoice.NONE
        # Samples in groups have intervals of their own.
        return self.options.level if wanted and not self.source.is_grouped else None

    @property
    def family(self) -> tuple[int, float | None]:
        """What questions must have in common to be answered together."""
        return len(self.source.labels), self.level


def ask(source: MatrixInput, options: Options) -> Question:
    """Understand what is asked.

    Raises:
        InvalidExpression: one of ``options.metrics`` is none; its pointer names which.
        InvalidInput: intervals of everything cannot be given for this input.
    """
    check_groups(source, options)
    check_sampling(source, options)
    return Question(source, options, parse_all(options.metrics, source))


def evaluate(source: MatrixInput, options: Options) -> Report:
    """Everything that is answered about a matrix.

    Raises:
        InvalidExpression: one of ``options.metrics`` is none; its pointer names which.
    """
    return answer_alone(ask(source, options))


def answer_alone(question: Question, parts: SampleParts | None = None) -> Report:
    """The report of one question; the only way to what takes a while: intervals of everything, probabilities, groups.

    Args:
        question: Its source is without samples when these were not kept.
        parts: What was said of the samples then.
    """
    report = explain(measure([question]))[0]
    source, asked = question.source, question.of_matrix
    said = parts or SampleParts(
        probabilities=judge_samples(question) if source.is_scored else None,
        groups=judge_groups(source, question.options, asked) if source.is_grouped else None,
    )
    if said.groups is not None:
        report = with_groups(report, said.groups)
    elif question.options.intervals is IntervalChoice.ALL:
        found = full_intervals(source, question.options, asked, report.intervals)
        report = replace(report, intervals=found.intervals, findings=(*report.findings, *found.findings))
    if said.probabilities is not None:
        report = with_probabilities(report, said.probabilities, question.options.metrics)
    return replace(
        report,
        parts=said,
        probabilities=None if said.probabilities is None else said.probabilities.details,
        groups=None if said.groups is None else said.groups.design,
    )


def judge_samples(question: Question) -> ProbabilityPart:
    """What there is to say about the probabilities or scores of a question."""
    asked = [(text, expression) for text, expression in question.asked if of_probabilities(expression)]
    seed = chosen_seed(question.options.seed, question.source.counts)
    return judge(question.source, scores_of(question.source), asked, seed, question.options)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Questions of one family and all values of their metrics, those at balanced prevalence beside the others.

    Attributes:
        table: Every matrix and its twin, (B, 2, K, K).
        by_class: (M, B, 2, K).
        overall: (M, B, 2).
        values: Overall metrics by key, question by question.
        requested: Values of the metric expressions by their text, and why some are missing, question by question.
    """

    questions: Sequence[Question]
    table: Table
    by_class: Array
    overall: Array
    values: Sequence[dict[str, Value]]
    requested: Sequence[tuple[Requested, list[Undefined]]]


def measure(questions: Sequence[Question]) -> Measured:
    """Values of all metrics for questions of one family, in one pass: numpy's price is per call, hardly per matrix.

    Every value is the same, bit for bit, whatever it is computed together with (see `arrays.total`).
    """
    n_classes, _ = questions[0].family
    plan = layout(binary=n_classes == 2)
    counts = np.array([question.source.counts for question in questions], dtype=np.float64)[:, None]
    with silently():
        table = Table(np.concatenate([counts, at_equal_prevalence(counts)], axis=1))
    by_class = evaluate_table(table, plan.class_metrics)
    overall = evaluate_table(table, plan.overall_metrics)
    for index, question in enumerate(questions):
        if question.source.content is not Content.counts:
            overall[plan.needs_counts, index] = np.nan
    values = [dict(zip(plan.overall_keys, row, strict=True)) for row in plain(overall[:, :, 0].T)]
    return Measured(questions, table, by_class, overall, values, [_requested(question) for question in questions])


def explain(measured: Measured) -> list[Report]:
    """The reports: values in their groups, intervals, reasons and findings."""
    questions, by_class, overall = measured.questions, measured.by_class, measured.overall
    n_classes, level = questions[0].family
    plan = layout(binary=n_classes == 2)
    intervals: Sequence[dict[str, Interval]] = [{}] * len(questions)
    if level is not None:
        labels = [question.source.labels for question in questions]
        intervals = headline_intervals(measured.table, labels, level)
    recalls = plain(by_class[plan.recall, :, 0])
    complete: Any = np.isfinite(by_class).all(axis=(0, 2, 3)) & np.isfinite(overall).all(axis=(0, 2))
    overall_rows = plain(_overall_rows(plan, questions, overall, by_class))
    class_rows = plain(_class_rows(plan, by_class))
    return [
        _report(
            plan,
            question,
            metrics=plan.overall.grouped(overall_rows[index]),
            per_class=dict(zip(question.source.labels, map(plan.per_class.grouped, class_rows[index]), strict=True)),
            values=measured.values[index],
            requested=measured.requested[index],
            intervals=intervals[index],
            recalls=recalls[index],
            undefined=()
            if complete[index]
            else _undefined(plan, question.source, by_class[:, index], overall[:, index]),
            interpretation=_interpretation(plan, question, measured.values[index], by_class[:, index, 0])
            if question.options.interpretation
            else None,
        )
        for index, question in enumerate(questions)
    ]


def _report(
    plan: Layout,
    question: Question,
    *,
    metrics: GroupedMetrics,
    per_class: dict[str, GroupedMetrics],
    values: dict[str, Value],
    requested: tuple[Requested, list[Undefined]],
    intervals: dict[str, Interval],
    recalls: Sequence[Value],
    undefined: Sequence[Undefined],
    interpretation: Interpretation | None,
) -> Report:
    source = question.source
    answers, gaps = requested
    findings = matrix_findings(
        source.labels, source.counts, source.content, values, recalls, independent=not source.is_grouped
    )
    return Report(
        input=InputSummary.of(source, per_class),
        metrics=metrics,
        per_class=per_class,
        values=values,
        requested=answers,
        intervals=intervals,
        undefined=(*undefined, *gaps),
        findings=(*findings, *_cautions(question.expressions), *headline_cautions(source, question.options)),
        folds=None if source.fold_counts is None else _folds(plan, source.fold_counts),
        interpretation=interpretation,
    )


def warm_up() -> None:
    """Evaluate something small: the first caller should not wait for imports and for what is built at first use."""
    for labels, positive in ((("0", "1"), 1), (("0", "1", "2"), None)):
        counts = np.eye(len(labels), dtype=np.int64) + 1
        source = MatrixInput("confusion_matrix", labels, positive, Content.counts, counts)
        evaluate(source, Options(metrics=(f"{GPS.key}({recall.key}@*)",)))


def parse_all(texts: Sequence[str], source: MatrixInput) -> tuple[Expression, ...]:
    """Metric expressions of a request; an error names its place in ``options.metrics``."""
    inputs = frozenset(Inputs) if source.is_scored else frozenset({Inputs.MATRIX})
    parsed = []
    for index, text in enumerate(texts):
        try:
            parsed.append(parse(text, source.labels, source.positive, inputs=inputs))
        except InvalidExpression as error:
            error.pointer = f"/options/metrics/{index}"
            raise
    return tuple(parsed)


def _overall_rows(plan: Layout, questions: Sequence[Question], overall: Array, by_class: Array) -> Array:
    """Values (B, V) in the order of the report; for two classes with those of the positive class."""
    positives = [question.source.positive for question in questions if question.source.positive is not None]
    if positives:
        of_positive = by_class[:, range(len(questions)), :, positives].transpose(1, 0, 2)
        overall = np.concatenate([overall, of_positive])
    metrics, matrices, _ = overall.shape
    rows: Array = overall.transpose(1, 2, 0).reshape(matrices, 2 * metrics)[:, plan.overall.order]
    return rows


def _class_rows(plan: Layout, by_class: Array) -> Array:
    """Values (B, K, V) in the order of the report."""
    metrics, matrices, _, classes = by_class.shape
    rows: Array = by_class.transpose(1, 3, 2, 0).reshape(matrices, classes, 2 * metrics)[..., plan.per_class.order]
    return rows


def _undefined(plan: Layout, source: MatrixInput, by_class: Array, overall: Array) -> list[Undefined]:
    """Why each value (M, 2, K) and (M, 2) that is missing is missing."""
    observed = Table(source.counts)
    entries: list[Undefined] = []
    explainer = Explainer(observed)
    for metrics, values in ((plan.overall_metrics, overall), (plan.class_metrics, by_class)):
        entries.extend(_entry(gap, source, None) for gap in explainer.gaps(metrics, values[:, 0]))
    empty = [label for label, total in zip(source.labels, observed.actual, strict=True) if total == 0]
    if empty:
        entries.append(
            Undefined(
                "*",
                "no_actual_samples",
                f"{_quoted(empty)} no actual samples, so the rows cannot be brought to equal totals",
                group=Group.BALANCED,
            )
        )
        return entries
    balanced = Explainer(Table(at_equal_prevalence(observed.counts)))
    for metrics, values in ((plan.overall_metrics, overall), (plan.class_metrics, by_class)):
        twins = [i for i, m in enumerate(metrics) if m.card.has_twin(observed.n_classes)]
        # What has no value in the matrix as it is has none in its twin either, for the same reason: said once.
        missing = np.where(np.isfinite(values[twins, 0]), values[twins, 1], 0.0)
        entries.extend(
            _entry(gap, source, Group.BALANCED) for gap in balanced.gaps([metrics[i] for i in twins], missing)
        )
    return entries


def _quoted(labels: Sequence[str]) -> str:
    names = ", ".join(repr(label) for label in labels[:5]) + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")
    return f"class {names} has" if len(labels) == 1 else f"classes {names} have"


def _entry(gap: Gap, source: MatrixInput, group: Group | None) -> Undefined:
    if gap.metric.card.needs_counts and source.content is not Content.counts:
        return _without_counts(gap.metric.key, source)
    label = None if gap.class_index is None else source.labels[gap.class_index]
    return Undefined(gap.metric.key, gap.condition.code, reason(gap, source.labels), label, group)


def _without_counts(name: str, source: MatrixInput) -> Undefined:
    return Undefined(name, "needs_counts", f"needs numbers of samples, and the matrix holds {source.content}")


def _requested(question: Question) -> tuple[Requested, list[Undefined]]:
    """Values of the metric expressions that a matrix has, and the reasons of those that are missing."""
    if not question.expressions:
        return {}, []
    source, asked = question.source, question.of_matrix
    refused = [text for text, one in asked if needs_counts(one) and source.content is not Content.counts]
    asked = [(text, one) for text, one in asked if text not in refused]
    answers, gaps = requested_values(asked, source.labels, Table(source.counts))
    missing = {text: _without_counts(text, source) for text in refused}
    return answers | dict.fromkeys(missing), [*gaps, *missing.values()]


def _cautions(expressions: Sequence[Expression]) -> list[Finding]:
    found = []
    for leaf in (leaf for expression in expressions for leaf in measures(expression)):
        card = leaf.metric.card
        text = card.caution(**{**card.defaults, **leaf.parameters}) if card.caution else None
        if text:
            found.append(Finding.warning("not_monotone", text, metric=card.key, parameters=dict(leaf.parameters)))
    return found


def _folds(plan: Layout, fold_counts: Array) -> dict[str, FoldValues]:
    """Mean and standard deviation over the folds of every overall metric, from one batch."""
    values = evaluate_table(Table(fold_counts), plan.overall_metrics)
    count = values.shape[1]
    defined = np.isfinite(values).all(axis=1)
    with silently():
        means = np.where(defined, values.mean(axis=1), np.nan)
        deviations = np.where(defined & (count > 1), values.std(axis=1, ddof=1) if count > 1 else np.nan, np.nan)
    rows = zip(plan.overall_keys, plain(values), plain(means), plain(deviations), strict=True)
    return {key: FoldValues(tuple(row), mean, sd) for key, row, mean, sd in rows}


def _interpretation(plan: Layout, question: Question, values: Mapping[str, Value], by_class: Array) -> Interpretation:
    """Labels of the verbal scales by metric, ``metric@label`` for one class."""
    answers: Interpretation = {}
    for metric in plan.overall_metrics:
        value = values[metric.key]
        if metric.card.scales and value is not None:
            answers[metric.key] = {scale.name: scale.label(value) for scale in metric.card.scales}
    for metric, row in zip(plan.class_metrics, plain(by_class), strict=True):
        if metric.card.scales:
            for label, value in zip(question.source.labels, row, strict=True):
                if value is not None:
                    answers[f"{metric.key}@{write_label(label)}"] = {
                        scale.name: scale.label(value) for scale in metric.card.scales
                    }
    return answers
