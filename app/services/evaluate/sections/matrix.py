"""Section of a report on a confusion matrix, for one matrix or many at once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.expressions.syntax import write_label
from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import numbers
from app.domain.options import IntervalChoice
from app.domain.report import FoldValues, Group, GroupedMetrics, Interval, Requested, Section, Undefined, Value
from app.kernel.matrix.table import Table, at_equal_prevalence
from app.kernel.metrics.card import Explainer, Gap, Metric, Scope, evaluate_table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Expression, measures
from app.kernel.metrics.families.rates import prevalence, recall, support
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.closed_forms import Headlines
from app.kernel.uncertainty.designs import headline_metrics
from app.services.estimates.report_intervals import (
    balanced_for_report,
    estimate_for_report,
    everything_findings,
    headline_cautions,
    headline_intervals,
    intervals_by_key,
    matrix_metrics,
)
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import Question
from app.services.evaluate.sections.findings import data_findings, ignored_findings, matrix_findings
from app.services.reasons import reason, requested_values, uncounted


def over_folds(keys: Sequence[str], values: Array) -> dict[str, FoldValues]:
    """Values (M, F) of metrics by key, with mean and standard deviation where every fold has a value."""
    count = values.shape[1]
    defined = np.isfinite(values).all(axis=1)
    with silently():
        means = np.where(defined, values.mean(axis=1), np.nan)
        deviations = np.where(defined & (count > 1), values.std(axis=1, ddof=1) if count > 1 else np.nan, np.nan)
    # The mean of equal numbers may be off by a rounding, which would be their deviation.
    same = defined & (values == values[:, :1]).all(axis=1)
    means[same] = values[same, 0]
    deviations[same & (count > 1)] = 0.0
    rows = zip(keys, numbers(values), numbers(means), numbers(deviations), strict=True)
    return {key: FoldValues.of(row, mean, sd) for key, row, mean, sd in rows}


@dataclass(frozen=True, slots=True, eq=False)
class GroupedOrder:
    """Some metrics of one scope in the order in which they are answered, group after group.

    Attributes:
        names: By group.
        order: Positions of all of them, groups one after another, in the values of the scope.
    """

    names: Mapping[str, Sequence[str]]
    order: NDArray[np.intp]

    def grouped(self, row: Sequence[Value]) -> Any:
        """Return the values of a class or of the whole matrix, in this order, as `GroupedMetrics`."""
        values = iter(row)
        return {group: dict(zip(names, values, strict=False)) for group, names in self.names.items()}


def _block(metrics: Sequence[Metric[Table]], n_classes: int) -> GroupedOrder:
    """Insensitive, sensitive, and twins at equal prevalence, whose positions continue after the last metric."""
    insensitive = [i for i, m in enumerate(metrics) if m.card.prevalence.is_insensitive(n_classes)]
    sensitive = [i for i, m in enumerate(metrics) if not m.card.prevalence.is_insensitive(n_classes)]
    twins = [i for i, m in enumerate(metrics) if m.card.has_twin(n_classes)]
    groups = zip(Group, (insensitive, sensitive, twins), strict=True)
    return GroupedOrder(
        names={group.value: [metrics[i].key for i in those] for group, those in groups},
        order=np.array(insensitive + sensitive + [i + len(metrics) for i in twins], dtype=np.intp),
    )


@dataclass(frozen=True, slots=True, eq=False)
class MetricOrder:
    """The matrix metrics by scope, and the two blocks of a report.

    ``overall`` covers, for two classes, the metrics of the positive class too.
    """

    class_metrics: tuple[Metric[Table], ...]
    overall_metrics: tuple[Metric[Table], ...]
    overall_keys: tuple[str, ...]
    per_class: GroupedOrder
    overall: GroupedOrder


@cache
def metric_order(*, binary: bool) -> MetricOrder:
    """The order for two classes, or for more."""
    n_classes = 2 if binary else 3
    metrics = catalogue().of_matrices.reported
    by_class, overall = metrics.of_scope(Scope.CLASS), metrics.of_scope(Scope.OVERALL)
    return MetricOrder(
        class_metrics=by_class,
        overall_metrics=overall,
        overall_keys=tuple(metric.key for metric in overall),
        per_class=_block(by_class, n_classes),
        overall=_block((*overall, *by_class) if binary else overall, n_classes),
    )


Interpretation = dict[str, dict[str, str]]


@dataclass(frozen=True, slots=True, eq=False)
class BatchValues:
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

    def headlines(self, level: float) -> Headlines:
        """Return the limits of their values."""
        keys = metric_order(binary=self.table.n_classes == 2).overall_keys
        leading = [metric.key for some in headline_metrics() for metric in some]
        return Headlines.of_pairs(self.table, level, {key: self.overall[keys.index(key)] for key in leading})


def batch_values(questions: Sequence[Question]) -> BatchValues:
    """Values of all metrics for questions of one family, in one pass: numpy's price is per call, hardly per matrix.

    Every value is the same, bit for bit, whatever it is computed together with (see `arrays.total`).
    """
    n_classes, _ = questions[0].family
    order = metric_order(binary=n_classes == 2)
    counts = np.array([question.source.counts for question in questions], dtype=np.float64)[:, None]
    with silently():
        table = Table(np.concatenate([counts, at_equal_prevalence(counts)], axis=1))
    by_class = evaluate_table(table, order.class_metrics)
    overall = evaluate_table(table, order.overall_metrics)
    without = [place for place, question in enumerate(questions) if question.source.content is not Content.counts]
    if without:
        needing = [place for place, metric in enumerate(order.overall_metrics) if metric.card.needs_counts]
        overall[np.ix_(needing, without)] = np.nan
    values = [dict(zip(order.overall_keys, row, strict=True)) for row in numbers(overall[:, :, 0].T)]
    requested = []
    for question in questions:
        source, observed = question.source, Table(question.source.counts)
        requested.append(requested_values(question.of_matrix, source.labels, observed, uncounted(source)))
    return BatchValues(questions, table, by_class, overall, values, requested)


def brief_sections(found: BatchValues) -> list[Section]:
    """Return what headlines are made of: values, leading ones of the classes, what was requested, and limits."""
    labels, (_, level) = [question.source.labels for question in found.questions], found.questions[0].family
    limits: Sequence[Mapping[str, Interval]] = [{}] * len(labels)
    if level is not None and any(question.expressions for question in found.questions):
        limits = headline_intervals(found.headlines(level), labels)
    elif level is not None:
        # Of classes only where they are asked for.
        limits = intervals_by_key(found.headlines(level).overall, level)
    order = metric_order(binary=len(labels[0]) == 2)
    places = [order.class_metrics.index(metric) for metric in (recall, prevalence, support)]
    leading = numbers(found.by_class[places, :, 0].transpose(1, 0, 2))
    each = zip(labels, leading, found.values, found.requested, limits, strict=True)
    return [
        Section(per_class=_leading(of, *rates), values=values, requested=requested, intervals=intervals)
        for of, rates, values, (requested, _), intervals in each
    ]


def sections(found: BatchValues) -> list[Section]:
    """Return the section of each matrix: values in their groups, quick intervals, reasons and findings."""
    questions, by_class, overall = found.questions, found.by_class, found.overall
    n_classes, level = questions[0].family
    order = metric_order(binary=n_classes == 2)
    intervals: Sequence[Mapping[str, Interval]] = [{}] * len(questions)
    balanced: Sequence[dict[str, Interval]] = [{}] * len(questions)
    if level is not None:
        headlines = found.headlines(level)
        intervals = headline_intervals(headlines, [question.source.labels for question in questions])
        balanced = intervals_by_key(headlines.at_equal_shares(), level)
    complete: Any = np.isfinite(by_class).all(axis=(0, 2, 3)) & np.isfinite(overall).all(axis=(0, 2))
    # Values (B, K, V) and (B, V) in the order of the report; of two classes with those of the positive one.
    metrics, matrices, _, classes = by_class.shape
    class_rows = by_class.transpose(1, 3, 2, 0).reshape(matrices, classes, 2 * metrics)[..., order.per_class.order]
    whole = overall
    if n_classes == 2:
        positives: Any = [question.source.positive for question in questions]
        whole = np.concatenate([overall, by_class[:, range(matrices), :, positives].transpose(1, 0, 2)])
    rows_of_all = numbers(whole.transpose(1, 2, 0).reshape(matrices, 2 * len(whole))[:, order.overall.order])
    return [
        Section(
            metrics=order.overall.grouped(rows_of_all[index]),
            per_class=dict(zip(question.source.labels, map(order.per_class.grouped, rows), strict=True)),
            values=values,
            requested=requested,
            intervals=intervals[index],
            balanced_intervals=balanced[index],
            undefined=(
                *(() if complete[index] else _undefined(order, question.source, by_class[:, index], overall[:, index])),
                *gaps,
            ),
            findings=findings_of(question, values),
            folds=None
            if question.source.fold_counts is None
            else over_folds(
                order.overall_keys, evaluate_table(Table(question.source.fold_counts), order.overall_metrics)
            ),
            interpretation=_interpretation(order, question, values, by_class[:, index, 0])
            if question.options.interpretation
            else None,
        )
        for index, (question, values, (requested, gaps), rows) in enumerate(
            zip(questions, found.values, found.requested, numbers(class_rows), strict=True)
        )
    ]


def _leading(
    labels: Sequence[str], recalls: Sequence[Value], prevalences: Sequence[Value], sizes: Sequence[Value]
) -> dict[str, GroupedMetrics]:
    """Return recall, prevalence and size of each class, which headlines and summaries need."""
    return {
        label: {
            "prevalence_insensitive": {recall.key: found},
            "prevalence_sensitive": {prevalence.key: share, support.key: size},
            "at_balanced_prevalence": {},
        }
        for label, found, share, size in zip(labels, recalls, prevalences, sizes, strict=True)
    }


def findings_of(question: Question, values: Mapping[str, Value]) -> tuple[Finding, ...]:
    """Return the findings on a matrix, on the requested expressions and on the limits that a report has at once."""
    source = question.source
    return (
        *matrix_findings(source, values),
        *ignored_findings(source),
        *data_findings(source),
        *_cautions(question.expressions),
        *headline_cautions(source, question.options),
    )


def with_slow_intervals(section: Section, question: Question, run: RunData) -> Section:
    """The section of a matrix, or of its design, with the intervals that are not the quick ones."""
    options, quick = question.options, question.quick_level is not None
    found = estimate_for_report([] if quick else matrix_metrics(options), question.limits_beyond, run, options)
    everything = options.intervals is IntervalChoice.ALL
    more = everything_findings(found, run, options) if everything else ()
    # A rate has one interval, whatever name it was asked by.
    new = {text: one for text, one in found.intervals().items() if text not in section.intervals}
    return replace(
        section,
        intervals={**section.intervals, **new},
        balanced_intervals=section.balanced_intervals if quick else balanced_for_report(run, options),
        findings=(*section.findings, *more),
    )


def _undefined(order: MetricOrder, source: MatrixInput, by_class: Array, overall: Array) -> Iterator[Undefined]:
    """Why each value (M, 2, K) and (M, 2) that is missing is missing."""
    observed = Table(source.counts)
    explainer, of_each = Explainer(observed), ((order.overall_metrics, overall), (order.class_metrics, by_class))
    for metrics, values in of_each:
        yield from (_entry(gap, source, None) for gap in explainer.gaps(metrics, values[:, 0]))
    empty = [label for label, total in zip(source.labels, observed.actual, strict=True) if total == 0]
    if empty:
        why = f"{_quoted(empty)} no actual samples, so the rows cannot be brought to equal totals"
        yield Undefined("*", "no_actual_samples", why, group=Group.BALANCED)
        return
    balanced = Explainer(Table(at_equal_prevalence(observed.counts)))
    for metrics, values in of_each:
        twins = [i for i, m in enumerate(metrics) if m.card.has_twin(observed.n_classes)]
        # What has no value in the matrix as it is has none in its twin either, for the same reason: said once.
        missing = np.where(np.isfinite(values[twins, 0]), values[twins, 1], 0.0)
        gaps = balanced.gaps([metrics[i] for i in twins], missing)
        yield from (_entry(gap, source, Group.BALANCED) for gap in gaps)


def _quoted(labels: Sequence[str]) -> str:
    names = ", ".join(repr(label) for label in labels[:5]) + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")
    return f"class {names} has" if len(labels) == 1 else f"classes {names} have"


def _entry(gap: Gap, source: MatrixInput, group: Group | None) -> Undefined:
    if gap.metric.card.needs_counts and (why := uncounted(source)):
        return Undefined(gap.metric.key, "needs_counts", why)
    label = None if gap.class_index is None else source.labels[gap.class_index]
    return Undefined(gap.metric.key, gap.condition.code, reason(gap, source.labels), label, group)


def _cautions(expressions: Sequence[Expression]) -> Iterable[Finding]:
    found: dict[str, Finding] = {}
    for leaf in (leaf for expression in expressions for leaf in measures(expression)):
        card = leaf.metric.card
        text = card.caution(**leaf.parameters) if card.caution else None
        if text:
            found[text] = Finding.warning("not_monotone", text, metric=card.key, parameters=dict(leaf.parameters))
    return found.values()


def _interpretation(
    order: MetricOrder, question: Question, values: Mapping[str, Value], by_class: Array
) -> Interpretation:
    """Labels of the verbal scales by metric, ``metric@label`` for one class."""
    known = [(metric, metric.key, values[metric.key]) for metric in order.overall_metrics]
    known += [
        (metric, f"{metric.key}@{write_label(label)}", value)
        for metric, row in zip(order.class_metrics, numbers(by_class), strict=True)
        for label, value in zip(question.source.labels, row, strict=True)
    ]
    return {
        name: {scale.name: scale.label(value) for scale in metric.card.scales}
        for metric, name, value in known
        if metric.card.scales and value is not None
    }
