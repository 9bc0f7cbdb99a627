"""Section of a report on an input that is more than a matrix of classes: labels, clusters, rankings."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from app.domain.inputs.kind import Reported
from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import numbers
from app.domain.report import Group, GroupedMetrics, Requested, Section, Undefined, Value
from app.kernel.metrics.card import DIVISION_BY_ZERO, AnyMetric, Explainer, Scope, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.conditions import NO_ACTUAL, NO_REST
from app.kernel.metrics.expression import Expression, Measure, Subject, measures
from app.kernel.numerics.arrays import Array, silently
from app.services.estimates.report_intervals import ReportEstimates, estimate_for_report, unit_metrics
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import Question
from app.services.evaluate.sections.designs import effects_on_units, groups_of, weights_of
from app.services.evaluate.sections.findings import data_findings, threshold_findings
from app.services.reasons import NOT_FOLDED, reason, requested_values, uncounted


def unit_section(question: Question, task: Task, run: RunData) -> Section:
    """Make the report's section on an input, of which the run has the samples where the kind needs them."""
    source, kind = question.source, UNIT_KINDS[task]
    metrics_of_kind, reported, listed = _measured(source, task)
    outcomes, lacking = task.outcomes(len(source.labels)), uncounted(source)
    found = Found(reported, run.subject, source.labels, outcomes, kind.twin(run.subject), uncounted=lacking)
    metrics, per_class = found.overall(), found.per_class()
    values = dict(zip([one.name for one in listed], numbers(np.array(found.values(listed))), strict=True))
    asked = question.of_matrix + question.of_probabilities
    limited = unit_metrics(reported, task, question.options)
    requested, gaps, estimates = asked_of(question, run, asked, limited, lacking)
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
        details["weights"], of_weights = weights_of(question, run, effects_on_units(run, leading))
        findings += of_weights
    return Section(
        metrics=metrics,
        per_class=per_class,
        # What is called like a metric of classes and is another one cannot stand in lists beside it.
        values={one.name: values[one.name] for one in listed if catalogue().by_name[one.metric.key] is one.metric},
        requested=requested,
        intervals=estimates.intervals(),
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
        uncounted: Why nothing is known that needs numbers of samples; None where these are known.
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
        *,
        uncounted: str | None = None,
        known: Mapping[str, Array] | None = None,
        left_out: Mapping[str, str] | None = None,
    ) -> None:
        self._reported, self._subject, self._twin = reported, subject, twin
        self._labels, self._outcomes, self._uncounted = labels, outcomes, uncounted
        self._left_out, self._values = left_out or {}, dict[str, Array]()
        if known is not None:
            none = {Scope.OVERALL: np.array(np.nan), Scope.CLASS: np.full(len(labels), np.nan)}
            self._values = {one.name: known.get(one.name, none[one.card.scope]) for one in reported}

    def overall(self) -> GroupedMetrics:
        """Overall values by group."""
        return self._of_scope(Scope.OVERALL)[0]

    def per_class(self) -> dict[str, GroupedMetrics]:
        """Return the values by label."""
        rows = self._of_scope(Scope.CLASS)
        return dict(zip(self._labels, rows, strict=bool(rows)))

    def values(self, metrics: Sequence[Reported]) -> list[Array]:
        """Return the values; NaN where a metric needs numbers of samples and there are weights."""
        new = [one for one in metrics if one.name not in self._values]
        for metric, value in zip(new, _computed(new, self._subject), strict=True):
            lost = self._uncounted is not None and metric.card.needs_counts
            self._values[metric.name] = np.full_like(value, np.nan) if lost else value
        return [self._values[one.name] for one in metrics]

    def _twins(self, metrics: Sequence[Reported]) -> list[Reported]:
        """Return the metrics that have another value at balanced prevalence."""
        parts = {} if self._twin is None else self._twin.parts
        return [one for one in metrics if one.card.has_twin(self._outcomes) and one.card.inputs in parts]

    def _of_scope(self, scope: Scope) -> list[GroupedMetrics]:
        """Values by group: of a class each, or one of them."""
        metrics = [one for one in self._reported if one.card.scope is scope]
        twins = self._twins(metrics)
        own, balanced = (np.array(some).T for some in (self.values(metrics), _computed(twins, self._twin)))
        if scope is Scope.OVERALL:
            return [self._grouped(metrics, numbers(own), twins, numbers(balanced))]
        rows = numbers(own)
        each = zip(rows, numbers(balanced) or [[]] * len(rows), strict=True)
        return [self._grouped(metrics, row, twins, of_twin) for row, of_twin in each]

    def _grouped(
        self, metrics: Sequence[Reported], row: Sequence[Value], twins: Sequence[Reported], balanced: Sequence[Value]
    ) -> GroupedMetrics:
        insensitive: dict[str, Value] = {}
        sensitive: dict[str, Value] = {}
        for metric, value in zip(metrics, row, strict=True):
            fixed = metric.card.prevalence.is_insensitive(self._outcomes)
            (insensitive if fixed else sensitive)[metric.name] = value
        return {
            "prevalence_insensitive": insensitive,
            "prevalence_sensitive": sensitive,
            "at_balanced_prevalence": dict(zip([one.name for one in twins], balanced, strict=True)),
        }

    def undefined(self) -> Iterator[Undefined]:
        """Why each value that is missing is missing, and after them those of the twins alone."""
        metrics = sorted(self._reported, key=lambda one: one.card.scope is Scope.CLASS)
        yield from self._gaps(metrics, self.values(metrics), self._subject, None)
        if self._twin is not None:
            twins = self._twins(metrics)
            pairs = zip(self.values(twins), _computed(twins, self._twin), strict=True)
            # What has no value as it is has none in its twin either, for the same reason: said once.
            balanced = [np.where(np.isfinite(own), value, 0.0) for own, value in pairs]
            yield from self._gaps(twins, balanced, self._twin, Group.BALANCED)

    def _gaps(
        self, metrics: Sequence[Reported], values: Sequence[Array], subject: Subject, group: Group | None
    ) -> Iterator[Undefined]:
        explainers = {inputs: Explainer[Any](data) for inputs, data in subject.parts.items()}
        for metric, found in zip(metrics, values, strict=True):
            if np.isfinite(found).all():
                continue
            card = metric.card
            if card.needs_counts and self._uncounted is not None:
                yield Undefined(metric.name, "needs_counts", self._uncounted)
                continue
            if metric.name in self._left_out:
                for label in self._labels if found.ndim else (None,):
                    yield Undefined(metric.name, NOT_FOLDED, self._left_out[metric.name], label)
                continue
            for gap in explainers[card.inputs].gaps([metric.metric], found[None]):
                if group is not None and gap.condition is DIVISION_BY_ZERO:
                    # What a twin alone lacks it lacks since a label that nothing has, or all has, cannot be balanced.
                    observed = Explainer(self._subject.parts[card.inputs])
                    gap = observed.explain(metric.metric, gap.class_index, np.nan, (NO_ACTUAL, NO_REST))
                label = None if gap.class_index is None else self._labels[gap.class_index]
                yield Undefined(metric.name, gap.condition.code, reason(gap, self._labels), label, group)


def _computed(metrics: Sequence[Reported], subject: Subject | None) -> list[Array]:
    """Values () or (L) of metrics; none of nothing."""
    if subject is None:
        return []
    with silently():
        return [np.asarray(one.metric.compute(subject.parts[one.card.inputs], **one.parameters)) for one in metrics]


def asked_of(
    question: Question,
    run: RunData,
    asked: Sequence[tuple[str, Expression]],
    limited: Sequence[AnyMetric | Reported],
    uncounted: str | None = None,
) -> tuple[Requested, list[Undefined], ReportEstimates]:
    """Return the values of what was asked and why some are missing; and the limits of these values and of some metrics,
    none where there are to be none.
    """
    requested, gaps = requested_values(asked, run.source.labels, run.subject, uncounted)
    if not question.has_intervals:
        return requested, gaps, ReportEstimates({}, {})
    missing = {gap.metric for gap in gaps if gap.code == NOT_FOLDED}
    known = [(text, one) for text, one in asked if text not in missing]
    return requested, gaps, estimate_for_report(limited, known, run, question.options)
