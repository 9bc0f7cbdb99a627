"""From a confusion matrix to its report: a pure function, so a stored evaluation is answered by computing it again."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from app.domain.errors import InvalidExpression
from app.domain.evaluation import Content
from app.domain.expressions import parse
from app.domain.findings import Finding
from app.domain.inputs import MatrixInput
from app.domain.report import FoldValues, Group, Interval, IntervalChoice, Options, Report, Undefined, Value
from app.domain.syntax import write_label
from app.kernel.engine import Explainer, Gap, evaluate_table
from app.kernel.expression import Expression, Measure, compute, is_list, measures
from app.kernel.numerics import Array, silently
from app.kernel.table import Table, at_equal_prevalence
from app.services.findings import matrix_findings
from app.services.intervals import headline_intervals
from app.services.layout import Layout, layout

MOST_EXPRESSIONS = 200


def evaluate(source: MatrixInput, options: Options) -> Report:
    """Everything that is answered about a matrix.

    Raises:
        InvalidExpression: one of ``options.metrics`` is none; its pointer names which.
    """
    plan = layout(binary=len(source.labels) == 2)
    expressions = parse_all(options.metrics, source)
    counts = source.counts.astype(np.float64)
    with silently():
        # The matrix and its twin at equal prevalence are a batch of two: one pass computes both.
        table = Table(np.stack([counts, at_equal_prevalence(counts)]))
    by_class = evaluate_table(table, plan.class_metrics)
    overall = evaluate_table(table, plan.overall_metrics)
    if source.content is not Content.counts:
        overall[plan.needs_counts] = np.nan

    class_lists = plain(by_class[:, 0])
    values = dict(zip(plan.overall_keys, plain(overall[:, 0]), strict=True))
    observed = Table(counts)
    undefined = _undefined(plan, source, observed, by_class, overall)
    requested, gaps = _requested(expressions, options.metrics, observed, source.labels)
    findings = matrix_findings(
        source.labels, source.counts, source.content, values, dict(zip(plan.class_keys, class_lists, strict=True))
    )
    return Report(
        input=source,
        metrics=plan.overall.grouped(_overall_row(plan, source, overall, by_class)),
        per_class={
            label: plan.per_class.grouped(row)
            for label, row in zip(source.labels, _class_rows(plan, by_class), strict=True)
        },
        values=values,
        requested=requested,
        intervals=_intervals(source, observed, options),
        undefined=(*undefined, *gaps),
        findings=(*findings, *_cautions(expressions), *_no_intervals(source, options)),
        folds=None if source.fold_counts is None else _folds(plan, source.fold_counts),
        interpretation=_interpretation(plan, values, class_lists, source.labels) if options.interpretation else None,
    )


def plain(values: Array) -> list[Any]:
    """Nested lists with None for what is not finite."""
    finite = np.isfinite(values)
    listed: Any = values if finite.all() else np.where(finite, values, np.array(None))
    return listed.tolist()  # type: ignore[no-any-return]  # numpy gives Any


def parse_all(texts: Sequence[str], source: MatrixInput) -> tuple[Expression, ...]:
    """Metric expressions of a request; an error names its place in ``options.metrics``."""
    parsed = []
    for index, text in enumerate(texts):
        try:
            parsed.append(parse(text, source.labels, source.positive))
        except InvalidExpression as error:
            error.pointer = f"/options/metrics/{index}"
            raise
    return tuple(parsed)


def _overall_row(plan: Layout, source: MatrixInput, overall: Array, by_class: Array) -> list[Value]:
    if source.positive is not None:
        overall = np.concatenate([overall, by_class[:, :, source.positive]])
    return plain(overall.T.ravel()[plan.overall.order])


def _class_rows(plan: Layout, by_class: Array) -> list[list[Value]]:
    metrics, _, classes = by_class.shape
    return plain(by_class.transpose(2, 1, 0).reshape(classes, 2 * metrics)[:, plan.per_class.order])


def _undefined(plan: Layout, source: MatrixInput, observed: Table, by_class: Array, overall: Array) -> list[Undefined]:
    if np.isfinite(by_class).all() and np.isfinite(overall).all():
        return []
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
        sensitive = [i for i, m in enumerate(metrics) if plan.is_sensitive(m, observed.n_classes)]
        entries.extend(
            _entry(gap, source, Group.BALANCED)
            for gap in balanced.gaps([metrics[i] for i in sensitive], values[sensitive, 1])
        )
    return entries


def _quoted(labels: Sequence[str]) -> str:
    names = ", ".join(repr(label) for label in labels[:5]) + (f" and {len(labels) - 5} more" if len(labels) > 5 else "")
    return f"class {names} has" if len(labels) == 1 else f"classes {names} have"


def _entry(gap: Gap, source: MatrixInput, group: Group | None) -> Undefined:
    if gap.metric.card.needs_counts and source.content is not Content.counts:
        return Undefined(
            gap.metric.key,
            "needs_counts",
            f"needs numbers of samples, and the matrix holds {source.content}",
            group=group,
        )
    label = None if gap.class_index is None else source.labels[gap.class_index]
    return Undefined(gap.metric.key, gap.condition.code, reason(gap, source.labels), label, group)


def reason(gap: Gap, labels: Sequence[str]) -> str:
    """Why a value does not exist, with the classes at fault by name."""
    if not gap.culprits:
        return gap.condition.reason
    first, *others = (repr(labels[index]) for index in gap.culprits)
    text = gap.condition.reason.format(label=first)
    if not others:
        return text
    more = f" and {len(others) - 5} more" if len(others) > 5 else ""
    return f"{text}; the same holds for {', '.join(others[:5])}{more}"


def _requested(
    expressions: Sequence[Expression], texts: Sequence[str], table: Table, labels: Sequence[str]
) -> tuple[dict[str, Value | dict[str, Value]], list[Undefined]]:
    answers: dict[str, Value | dict[str, Value]] = {}
    gaps: list[Undefined] = []
    explainer = Explainer(table)
    for text, expression in zip(texts, expressions, strict=True):
        values = compute(expression, table)
        answers[text] = (
            dict(zip(labels, plain(values), strict=True)) if is_list(expression) else plain(np.asarray(values))
        )
        for index in np.flatnonzero(~np.isfinite(np.atleast_1d(values))):
            label = labels[int(index)] if is_list(expression) else None
            code, why = _why(expression, table, explainer, labels, int(index) if label is not None else None)
            gaps.append(Undefined(text, code, why, label))
    return answers, gaps


def _why(
    expression: Expression, table: Table, explainer: Explainer, labels: Sequence[str], index: int | None
) -> tuple[str, str]:
    """Code and reason of a missing expression: those of the first part without a value."""
    for leaf in measures(expression):
        values = np.atleast_1d(compute(leaf, table))
        candidates = [index] if index is not None else range(len(values))
        for position in candidates:
            if not np.isfinite(values[position]):
                of = position if is_list(leaf) else (leaf.of if isinstance(leaf.of, int) else None)
                gap = explainer.explain(leaf.metric, of, float(values[position]))
                part = "" if isinstance(expression, Measure) else f"{leaf.metric.card.name}: "
                return gap.condition.code, part + reason(gap, labels)
    return (
        "zero_part",
        "a part is 0, so the harmonic mean is 0 and has no dispersion, or there are fewer than two parts",
    )


def _cautions(expressions: Sequence[Expression]) -> list[Finding]:
    found = []
    for leaf in (leaf for expression in expressions for leaf in measures(expression)):
        card = leaf.metric.card
        text = card.caution(**{**card.defaults, **leaf.parameters}) if card.caution else None
        if text:
            found.append(Finding.warning("not_monotone", text, metric=card.key, parameters=dict(leaf.parameters)))
    return found


def _intervals(source: MatrixInput, table: Table, options: Options) -> dict[str, Interval]:
    if source.content is not Content.counts or options.intervals is IntervalChoice.NONE:
        return {}
    return headline_intervals(table, source.labels, options.level)


def _no_intervals(source: MatrixInput, options: Options) -> list[Finding]:
    if source.content is Content.counts or options.intervals is IntervalChoice.NONE:
        return []
    return [
        Finding.note(
            "no_intervals",
            "No intervals are given: they need the number of samples behind every entry, and the matrix holds "
            f"{source.content}.",
            content=source.content.value,
        )
    ]


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


def _interpretation(
    plan: Layout, values: dict[str, Value], class_lists: Sequence[Sequence[Value]], labels: Sequence[str]
) -> dict[str, dict[str, str]]:
    """Labels of the verbal scales by metric, ``metric@label`` for one class."""
    answers: dict[str, dict[str, str]] = {}
    for metric in plan.overall_metrics:
        value = values[metric.key]
        if metric.card.scales and value is not None:
            answers[metric.key] = {scale.name: scale.label(value) for scale in metric.card.scales}
    for metric, row in zip(plan.class_metrics, class_lists, strict=True):
        if metric.card.scales:
            for label, value in zip(labels, row, strict=True):
                if value is not None:
                    answers[f"{metric.key}@{write_label(label)}"] = {
                        scale.name: scale.label(value) for scale in metric.card.scales
                    }
    return answers
