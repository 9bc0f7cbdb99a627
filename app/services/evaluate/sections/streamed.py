"""Section of a report on streamed probabilities: the metrics that can be streamed, and which cannot."""

from collections.abc import Container, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from app.domain.findings import Finding
from app.domain.members import numbers
from app.domain.report import Section, Undefined, Value, merged_metrics
from app.kernel.metrics.card import Explainer, Metric, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.conditions import NOT_PROBABILITIES, WEIGHTED
from app.kernel.metrics.expression import measures
from app.kernel.metrics.families.imcp import phi_quartiles, regions
from app.kernel.metrics.families.score_ranking import roc_auc
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.losses import threshold_correct, threshold_incorrect
from app.kernel.samples.scores import Scores
from app.kernel.streamed.metrics import streamed_values, streams
from app.kernel.streamed.scores import StreamedScores
from app.services.estimates.report_intervals import (
    ReportEstimates,
    about_biased,
    estimate_for_report,
    probability_metrics,
)
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import Question
from app.services.evaluate.sections.findings import findings_of_order, miscalibrated
from app.services.evaluate.sections.probability import calibration_by_chance, chance_of_groups, grouped
from app.services.reasons import ALL_AT_ONCE, IF_ASKED, NOT_FOLDED, reason, requested_of_streamed
from app.services.seeds import chosen_seed


def streamed_section(question: Question, run: RunData) -> Section:
    """Everything that is said of probabilities or scores that an engine holds.

    Args:
        question: What is asked.
        run: With its streamed samples.

    Raises:
        ValueError: its samples were not streamed.
    """
    scores = run.streamed
    if scores is None:
        raise ValueError("expected samples that were streamed")
    metrics = catalogue().of_probabilities.reported
    overall, of_class = metrics.of_scope(Scope.OVERALL), metrics.of_scope(Scope.CLASS)
    labels, size = question.source.labels, scores.n_classes
    asked = {leaf.metric.key for _, expression in question.of_probabilities for leaf in measures(expression)}
    values = streamed_values(scores, asked)
    rows = {metric.key: values.get(metric.key, np.full(size, np.nan)) for metric in of_class}
    by_class = np.stack([rows[metric.key] for metric in of_class])
    whole = np.array([float(values.get(metric.key, np.nan)) for metric in overall])
    per_class = {label: grouped(of_class, row, size) for label, row in zip(labels, numbers(by_class.T), strict=True)}
    found = grouped(overall, numbers(whole), size)
    if question.source.positive is not None:
        found = merged_metrics(found, per_class[labels[question.source.positive]])
    requested, gaps = requested_of_streamed(question.of_probabilities, labels, run.subject)
    details = _details(run, labels, chosen_seed(question.options.seed, question.source.counts))
    estimates = _estimates(question, run, values, {gap.metric for gap in gaps if gap.code == NOT_FOLDED})
    return Section(
        metrics=found,
        per_class=per_class,
        values=dict(zip((metric.key for metric in overall), numbers(whole), strict=True)),
        requested=requested,
        # A metric that is asked for by its own name is told once.
        undefined=tuple(
            dict.fromkeys(
                (
                    *_undefined(scores, labels, overall, whole, values.keys()),
                    *_undefined(scores, labels, of_class, by_class, values.keys()),
                    *gaps,
                )
            )
        ),
        findings=(
            *_findings(question, run, scores, numbers(rows[roc_auc.key]), details),
            *about_biased(estimates.by_estimand, run),
        ),
        intervals=estimates.intervals(),
        details=details,
        curves=scores.curves_as_json(),
    )


def _findings(
    question: Question, run: RunData, scores: StreamedScores, areas: Sequence[Value], details: Mapping[str, Any]
) -> Iterator[Finding]:
    top_label = scores.top_label_bins
    if top_label is not None and top_label.spreads is not None:
        found = miscalibrated(details["calibration"], top_label.spreads.excess, grouped=question.source.is_grouped)
        yield from [] if found is None else [found]
        yield from chance_of_groups(question.source, scores)
    yield from findings_of_order(run, areas)
    yield Finding.note(
        "samples_folded",
        "There are more samples than were held in memory, so they were read once, batch by batch. Values are exact. "
        "What needs all of them at once, such as trapezoids under an IMCP curve, has none. Limits by a method whose "
        "name begins with folded_ are simulated from the points of curves and the bins that were kept.",
        n_samples=scores.n_samples,
    )


def _undefined(
    scores: StreamedScores,
    labels: Sequence[str],
    metrics: Sequence[Metric[Scores]],
    values: Array,
    known: Container[str],
) -> Iterator[Undefined]:
    explainer = Explainer[Scores](scores)
    for where in np.argwhere(~np.isfinite(values)):
        metric, *code = metrics[where[0]], *map(int, where[1:])
        label = labels[code[0]] if code else None
        # What needs probabilities has no value of scores in any case, and what needs equal weights none of weighted
        # samples.
        conditions = metric.card.undefined
        unfit = (NOT_PROBABILITIES in conditions and not scores.are_probabilities) or (
            WEIGHTED in conditions and scores.weights is not None
        )
        if metric.key not in known and not unfit:
            yield Undefined(metric.key, NOT_FOLDED, IF_ASKED if streams(metric, scores) else ALL_AT_ONCE, label)
            continue
        gap = explainer.explain(metric, code[0] if code else None, float(values[tuple(where)]))
        yield Undefined(metric.key, gap.condition.code, reason(gap, labels), label)


def _estimates(question: Question, run: RunData, known: Container[str], missing: Container[str]) -> ReportEstimates:
    """As of samples at hand, of what has a value; none where none are asked for."""
    if not question.has_intervals:
        return ReportEstimates({}, {})
    metrics = [one for one in probability_metrics(run.scores, question.options) if one.key in known]
    asked = [(text, expression) for text, expression in question.of_probabilities if text not in missing]
    return estimate_for_report(metrics, asked, run, question.options)


def _details(run: RunData, labels: Sequence[str], seed: int) -> dict[str, Any]:
    scores = run.scores
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
        "calibration": calibration_by_chance(run, seed),
    }
