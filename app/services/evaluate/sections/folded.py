"""What a report says of probabilities that went by batch by batch: the metrics that fold, and which do not."""

from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from app.domain.expressions.syntax import write_label
from app.domain.findings import Finding
from app.domain.report import Interval, Section, Undefined, Value, merged_metrics
from app.kernel.folds.fold import NotFolded
from app.kernel.folds.folded import FoldedSamples
from app.kernel.folds.metrics import FoldedEstimate, folded_estimates, folded_values
from app.kernel.metrics.card import Metric, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.conditions import NOT_PROBABILITIES
from app.kernel.metrics.engine import Explainer
from app.kernel.metrics.expression import Subject, is_list
from app.kernel.metrics.families.probabilities.imcp import phi_quartiles, regions
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.influence import LinearMethod
from app.kernel.samples.losses import threshold_correct, threshold_incorrect
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.design import Alternative, AreaInterval
from app.kernel.uncertainty.of_matrices.closed_forms import Given
from app.services.estimates.report_intervals import probability_metrics
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import Question
from app.services.evaluate.sections.probability import grouped
from app.services.json_values import numbers
from app.services.reasons import reason, requested_values

NOT_FOLDED: Final = "not_folded"
_OF_AREAS: Final = (LinearMethod.DELONG_LOGIT, LinearMethod.NEWCOMBE)
_REASON: Final = "it needs all samples at once, and there are more than were held in memory"


def folded_section(question: Question, run: RunData, scores: FoldedSamples) -> Section:
    """Everything that is said of probabilities of which only sums and orders are left.

    Args:
        question: What is asked.
        run: Without its samples.
        scores: What is left of them.
    """
    metrics = catalogue().of_probabilities.reported
    overall, of_class = metrics.of_scope(Scope.OVERALL), metrics.of_scope(Scope.CLASS)
    labels, size = question.source.labels, scores.n_classes
    values = folded_values(scores)
    rows = {metric.key: values.get(metric.key, np.full(size, np.nan)) for metric in of_class}
    by_class = np.stack([rows[metric.key] for metric in of_class])
    whole = np.array([float(values.get(metric.key, np.nan)) for metric in overall])
    per_class = {label: grouped(of_class, row, size) for label, row in zip(labels, numbers(by_class.T), strict=True)}
    found = grouped(overall, numbers(whole), size)
    if question.source.positive is not None:
        found = merged_metrics(found, per_class[labels[question.source.positive]])
    requested, gaps = _requested(question, run, scores)
    return Section(
        metrics=found,
        per_class=per_class,
        values=dict(zip((metric.key for metric in overall), numbers(whole), strict=True)),
        requested=requested,
        undefined=(
            *_undefined(scores, labels, overall, whole, values.keys()),
            *_undefined(scores, labels, of_class, by_class, values.keys()),
            *gaps,
        ),
        findings=(_folded_finding(scores),),
        intervals=dict(_intervals(question, scores)),
        details=_details(scores, labels),
        curves=scores.curves_as_json(),
    )


def _folded_finding(scores: FoldedSamples) -> Finding:
    return Finding.note(
        "samples_folded",
        "There are more samples than were held in memory, so they were read once, batch by batch. What is there is "
        "exact. What needs all of them at once, such as calibration errors over bins of equal mass, has no value.",
        n_samples=scores.n_samples,
    )


def _undefined(
    scores: FoldedSamples, labels: Sequence[str], metrics: Sequence[Metric[Scores]], values: Array, folded: Any
) -> Iterator[Undefined]:
    explainer = Explainer[Scores](scores)
    for where in np.argwhere(~np.isfinite(values)):
        metric, *code = metrics[where[0]], *map(int, where[1:])
        label = labels[code[0]] if code else None
        # What needs probabilities has no value of scores, whether it folds or not.
        if metric.key not in folded and (scores.are_probabilities or NOT_PROBABILITIES not in metric.card.undefined):
            yield Undefined(metric.key, NOT_FOLDED, _REASON, label)
            continue
        gap = explainer.explain(metric, code[0] if code else None, float(values[tuple(where)]))
        yield Undefined(metric.key, gap.condition.code, reason(gap, labels), label)


def _requested(question: Question, run: RunData, scores: FoldedSamples) -> tuple[dict[str, Any], list[Undefined]]:
    """Values of what was asked for, one by one: those that do not fold leave the others as they are."""
    answers: dict[str, Any] = {}
    gaps: list[Undefined] = []
    labels, subject = question.source.labels, Subject.of_classes(run.table, scores)
    for text, expression in dict(question.of_probabilities).items():
        try:
            found, missing = requested_values([(text, expression)], labels, subject)
        except NotFolded:
            none: dict[str, Value] | None = dict.fromkeys(labels) if is_list(expression) else None
            found = {text: none}
            missing = [Undefined(text, NOT_FOLDED, _REASON, label) for label in (none or [None])]
        answers |= found
        gaps += missing
    return answers, gaps


def _intervals(question: Question, scores: FoldedSamples) -> Iterator[tuple[str, Interval]]:
    """Of the metrics of which a report has some, by their sampling errors, with limits on both sides."""
    options = question.options
    usual = options.alternative is Alternative.TWO_SIDED and options.area_interval is AreaInterval.DELONG
    if not question.has_intervals or not usual:
        return
    estimates = folded_estimates(scores, options.level)
    for metric in probability_metrics(scores, options):
        known = estimates.get(metric.key, ())
        of_class = metric.card.scope is Scope.CLASS
        for place, one in enumerate(known):
            if one.limits is not None:
                name = f"{metric.key}@{write_label(question.source.labels[place])}" if of_class else metric.key
                # Areas, and what does not move with the class shares, take the sizes of the classes as they are.
                by_class = one.limits.method in _OF_AREAS or metric.card.prevalence.is_insensitive(scores.n_classes)
                yield name, _interval(one, options.level, Given.ACTUAL if by_class else Given.SAMPLES)


def _interval(one: FoldedEstimate, level: float, given: Given) -> Interval:
    assert one.limits is not None  # noqa: S101 - who calls has looked
    low, high, method = one.limits.low, one.limits.high, one.limits.method.value
    return {"low": low, "high": high, "level": level, "method": method, "given": given.value}


def _details(scores: Scores, labels: Sequence[str]) -> dict[str, Any]:
    if not scores.are_probabilities:
        return {"per_class": {label: {} for label in labels}}
    with silently():
        quartiles, shares = numbers(phi_quartiles(scores)), numbers(regions(scores))
    names = ("certainly_right", "uncertain", "certainly_wrong")
    return {
        "per_class": {
            label: {
                "phi_quartiles": [quartile[code] for quartile in quartiles],
                "shares": {name: shares[index][code] for index, name in enumerate(names)},
            }
            for code, label in enumerate(labels)
        },
        "imcp": {
            "certainly_right": {"p_true_above": 0.5, "phi_above": threshold_correct()},
            "certainly_wrong": {
                "p_true_below": 1.0 / scores.n_classes,
                "phi_below": threshold_incorrect(scores.n_classes),
            },
        },
    }
