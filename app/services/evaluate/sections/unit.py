"""Section of a report on an input that is more than a matrix of classes: labels, clusters, rankings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from app.domain.inputs.content import Content
from app.domain.inputs.kind import Reported
from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import numbers
from app.domain.report import Group, GroupedMetrics, Section, Undefined, Value, no_metrics
from app.kernel.metrics.card import DIVISION_BY_ZERO, AnyMetric, Explainer, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.conditions import NO_ACTUAL, NO_REST
from app.kernel.metrics.expression import Measure, Subject, measures
from app.kernel.numerics.arrays import Array, silently
from app.services.estimates.report_intervals import estimate_for_report, unit_metrics
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import Question
from app.services.evaluate.sections.designs import groups_of, unit_weights
from app.services.evaluate.sections.findings import data_findings, threshold_findings
from app.services.reasons import NOT_FOLDED, reason, requested_values


def unit_section(question: Question, task: Task, run: RunData) -> Section:
    """Make the report's section on an input, of which the run has the samples where the kind needs them."""
    source, kind = question.source, UNIT_KINDS[task]
    metrics_of_kind, reported, listed = _measured(source, task)
    outcomes = task.outcomes(len(source.labels))
    found = Found(reported, run.subject, source.labels, outcomes, kind.twin(run.subject), source.content)
    metrics, per_class = found.overall(), found.per_class()
    values = dict(zip([one.name for one in listed], numbers(np.array(found.values(listed))), strict=True))
    asked = question.of_matrix + question.of_probabilities
    requested, gaps = requested_values(asked, source.labels, run.subject, _uncounted(source.content))
    intervals = {}
    if question.has_intervals:
        missing = {gap.metric for gap in gaps if gap.code == NOT_FOLDED}
        intervals = estimate_for_report(
            unit_metrics(reported, task, question.options),
            [(text, one) for text, one in asked if text not in missing],
            run,
            question.options,
        ).intervals()
    given = question.options.costs
    costs = None if given is None else np.array(given.matrix)
    findings, details = (
        [*kind.findings(source, run.subject, values, per_class), *threshold_findings(source), *data_findings(source)],
        {**kind.details(source, run.subject, question.options.level, costs)},
    )
    if source.is_grouped:
        details["groups"], of_groups = groups_of(question, run, kind.unit or "samples")
        findings += of_groups
    elif source.is_weighted:
        leading = [one for one in metrics_of_kind if one.card.scope is Scope.OVERALL and one.card.inference.leads(task)]
        details["weights"], of_weights = unit_weights(question, run, leading)
        findings += of_weights
    return Section(
        metrics=metrics,
        per_class=per_class,
        # What is called like a metric of classes and is another one cannot stand in lists beside it.
        values={one.name: values[one.name] for one in listed if catalogue().by_name[one.metric.key] is one.metric},
        requested=requested,
        intervals=intervals,
        undefined=(*found.undefined(), *gaps),
        findings=tuple(findings),
        details=details,
    )


def measures_of(question: Question, task: Task) -> list[Measure]:
    """Every metric that the section looks at with its parameters, which are all that is needed of units."""
    _, reported, listed = _measured(question.source, task)
    asked = [leaf for expression in question.expressions for leaf in measures(expression)]
    return [*(Measure(one.metric, one.parameters, None) for one in (*reported, *listed)), *asked]


def _measured(source: MatrixInput, task: Task) -> tuple[Sequence[AnyMetric], list[Reported], list[Reported]]:
    """The metrics of an input, what the report says of them, and what is saved for lists."""
    kind = UNIT_KINDS[task]
    metrics = catalogue().reported_of(task, kind.inputs(source)).metrics
    reported = [one for metric in metrics for one in kind.variants(source, metric)]
    listed = [one for metric in metrics for one in kind.listed(metric) if one.card.scope is Scope.OVERALL]
    return metrics, reported, listed


class Found:
    """The values of all metrics of a kind, as they are and with all labels equally frequent.

    Args:
        reported: The metrics.
        subject: What they are of.
        labels: Of the classes.
        outcomes: Of a sample, where prevalence counts.
        twin: The same with all labels equally frequent, where that exists.
        content: What the entries are.
        known: Values of samples that were streamed, by name; others are NaN. None: they are computed.
        left_out: Why some of these are not made.
    """

    def __init__(
        self,
        reported: Sequence[Reported],
        subject: Subject,
        labels: Sequence[str],
        outcomes: int,
        twin: Subject | None = None,
        content: Content = Content.counts,
        known: Mapping[str, Array] | None = None,
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        self._reported, self._subject, self._twin = reported, subject, twin
        self._labels, self._outcomes, self._content = labels, outcomes, content
        self._left_out, self._values = left_out or {}, dict[str, Array]()
        if known is not None:
            none = {Scope.OVERALL: np.array(np.nan), Scope.CLASS: np.full(len(labels), np.nan)}
            self._values = {one.name: known.get(one.name, none[one.card.scope]) for one in reported}

    def overall(self) -> GroupedMetrics:
        """Overall values by group."""
        metrics = _of_scope(self._reported, Scope.OVERALL)
        twins = self._twins(metrics)
        balanced = [] if self._twin is None else _computed(twins, self._twin)
        return self._grouped(metrics, numbers(np.array(self.values(metrics))), twins, numbers(np.array(balanced)))

    def per_class(self) -> dict[str, GroupedMetrics]:
        """Return the values by label."""
        metrics = _of_scope(self._reported, Scope.CLASS)
        twins = self._twins(metrics)
        rows = numbers(np.array(self.values(metrics)).T) if metrics else []
        balanced: list[Any] = [[]] * len(rows)
        if self._twin is not None and twins:
            balanced = numbers(np.array(_computed(twins, self._twin)).T)
        return {
            label: self._grouped(metrics, row, twins, of_twin)
            for label, row, of_twin in zip(self._labels, rows, balanced, strict=bool(metrics))
        }

    def values(self, metrics: Sequence[Reported]) -> list[Array]:
        """Return the values; NaN where a metric needs numbers of samples and there are weights."""
        counted, new = self._content is Content.counts, [one for one in metrics if one.name not in self._values]
        for metric, value in zip(new, _computed(new, self._subject), strict=True):
            known = counted or not metric.card.needs_counts
            self._values[metric.name] = value if known else np.full_like(value, np.nan)
        return [self._values[one.name] for one in metrics]

    def _twins(self, metrics: Sequence[Reported]) -> list[Reported]:
        """Return the metrics that have another value at balanced prevalence."""
        if self._twin is None:
            return []
        parts = self._twin.parts
        return [one for one in metrics if one.card.has_twin(self._outcomes) and one.card.inputs in parts]

    def _grouped(
        self, metrics: Sequence[Reported], row: Sequence[Value], twins: Sequence[Reported], balanced: Sequence[Value]
    ) -> GroupedMetrics:
        insensitive: dict[str, Value] = {}
        sensitive: dict[str, Value] = {}
        for metric, value in zip(metrics, row, strict=True):
            fixed = metric.card.prevalence.is_insensitive(self._outcomes)
            (insensitive if fixed else sensitive)[metric.name] = value
        found = no_metrics()
        found["prevalence_insensitive"], found["prevalence_sensitive"] = insensitive, sensitive
        found["at_balanced_prevalence"] = dict(zip([one.name for one in twins], balanced, strict=True))
        return found

    def undefined(self) -> Iterator[Undefined]:
        """Why each value that is missing is missing, and after them those of the twins alone."""
        metrics = (*_of_scope(self._reported, Scope.OVERALL), *_of_scope(self._reported, Scope.CLASS))
        known = dict(zip([metric.name for metric in metrics], self.values(metrics), strict=True))
        yield from self._gaps(metrics, [known[metric.name] for metric in metrics], self._subject, None)
        if self._twin is not None:
            twins = self._twins(metrics)
            with silently():
                # What has no value as it is has none in its twin either, for the same reason: said once.
                balanced = [
                    np.where(np.isfinite(known[one.name]), value, 0.0)
                    for one, value in zip(twins, _computed(twins, self._twin), strict=True)
                ]
            yield from self._gaps(twins, balanced, self._twin, Group.BALANCED)

    def _gaps(
        self, metrics: Sequence[Reported], values: Sequence[Array], subject: Subject, group: Group | None
    ) -> Iterator[Undefined]:
        explainers: dict[str, Explainer[Any]] = {}
        for metric, found in zip(metrics, values, strict=True):
            if np.isfinite(found).all():
                continue
            if metric.card.needs_counts and (why := _uncounted(self._content)):
                yield Undefined(metric.name, "needs_counts", why)
                continue
            if metric.name in self._left_out:
                for label in self._labels if found.ndim else (None,):
                    yield Undefined(metric.name, NOT_FOLDED, self._left_out[metric.name], label)
                continue
            inputs = metric.card.inputs
            explainer = explainers.setdefault(inputs, Explainer(subject.parts[inputs]))
            for gap in explainer.gaps([metric.metric], found[None]):
                if group is not None and gap.condition is DIVISION_BY_ZERO:
                    # What a twin alone lacks it lacks since a label that nothing has, or all has, cannot be balanced.
                    observed = Explainer(self._subject.parts[inputs])
                    gap = observed.explain(metric.metric, gap.class_index, np.nan, (NO_ACTUAL, NO_REST))
                label = None if gap.class_index is None else self._labels[gap.class_index]
                yield Undefined(metric.name, gap.condition.code, reason(gap, self._labels), label, group)


def _of_scope(reported: Sequence[Reported], scope: Scope) -> list[Reported]:
    return [one for one in reported if one.card.scope is scope]


def _computed(metrics: Sequence[Reported], subject: Subject) -> list[Array]:
    """Values (...) or (..., L) of metrics."""
    with silently():
        return [np.asarray(one.metric.compute(subject.parts[one.card.inputs], **one.parameters)) for one in metrics]


def _uncounted(content: Content) -> str | None:
    return None if content is Content.counts else f"needs numbers of samples, and these are {content}"
