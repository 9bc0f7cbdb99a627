"""Section of a report on probabilities and scores."""

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import partial
from typing import Any, Final

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.content import GROUPS_FACT
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import numbers
from app.domain.named_metrics import LOSSES_SHOWN
from app.domain.options import IntervalChoice, Options
from app.domain.report import FoldValues, GroupedMetrics, Section, Undefined, Value, merged_metrics
from app.kernel.metrics.card import Explainer, Metric, Scope, evaluate_table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.conditions import NOT_PROBABILITIES, WEIGHTED
from app.kernel.metrics.expression import measures
from app.kernel.metrics.families.imcp import phi_quartiles, regions
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.calibration import decompose, spiegelhalter
from app.kernel.samples.losses import threshold_correct, threshold_incorrect
from app.kernel.samples.scores import Scores
from app.kernel.streamed.metrics import is_dear, streamed_values
from app.kernel.uncertainty.draws import chosen_seed
from app.services.estimates.report_intervals import (
    ReportEstimates,
    about_biased,
    about_resampling,
    estimate_for_report,
    few_effective_samples,
    few_members,
    few_out_of_order,
    probability_metrics,
    stretched_findings,
)
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import Question, decided
from app.services.evaluate.sections.findings import OF_FINDINGS, probability_findings
from app.services.evaluate.sections.matrix import over_folds
from app.services.reasons import ALL_AT_ONCE, IF_ASKED, NOT_FOLDED, reason, requested_values
from app.services.stored import scores_of


def probability_section(question: Question, run: RunData) -> Section:
    """Make the section on probabilities or scores of an input. What cannot be said of streamed samples has a reason.

    Args:
        question: What is asked.
        run: With its samples, in memory or streamed.
    """
    source, scores = question.source, run.scores
    overall_metrics = catalogue().of_probabilities.reported.of_scope(Scope.OVERALL)
    class_metrics = catalogue().of_probabilities.reported.of_scope(Scope.CLASS)
    labels, size = source.labels, scores.n_classes
    brief = not question.options.details and source.positive is None
    if brief:
        first = question.options.first
        overall_metrics = tuple(one for one in overall_metrics if first is None or one.key in first)
        class_metrics = tuple(one for one in class_metrics if one.key in OF_FINDINGS)
    known = _values(question, run, [*overall_metrics, *class_metrics])
    overall = np.array([float(known.get(metric.key, np.nan)) for metric in overall_metrics])
    by_class = np.stack([known.get(metric.key, np.full(size, np.nan)) for metric in class_metrics])
    columns = numbers(by_class.T)
    per_class = {label: grouped(class_metrics, row, size) for label, row in zip(labels, columns, strict=True)}
    metrics = grouped(overall_metrics, numbers(overall), size)
    if source.positive is not None:
        metrics = merged_metrics(metrics, per_class[labels[source.positive]])
    requested, gaps = requested_values(question.of_probabilities, labels, run.subject)
    details = _details(run, chosen_seed(question.options.seed, source.counts), whole=question.options.details)
    if scores.are_probabilities and question.options.details:
        _add_details_of_classes(details["per_class"], source, scores)
    if question.options.costs is not None and scores.are_probabilities:
        details["costs"] = decided(question.options.costs, scores, labels)
    class_values = dict(zip((m.key for m in class_metrics), numbers(by_class), strict=True))
    findings = [*probability_findings(run, class_values, details), *chance_of_groups(source, scores)]
    intervals = {}
    if question.has_intervals:
        missing = {gap.metric for gap in gaps if gap.code == NOT_FOLDED}
        estimates = estimate_for_report(
            [metric for metric in probability_metrics(scores, question.options) if metric.key in known],
            [(text, expression) for text, expression in question.of_probabilities if text not in missing],
            run,
            question.options,
        )
        intervals = estimates.intervals()
        findings += _about_intervals(estimates, run, question.options)
    if run.streamed is not None:
        findings.append(_STREAMED(n_samples=scores.n_samples))
    return Section(
        metrics=metrics,
        per_class={} if brief else per_class,
        values=dict(zip((m.key for m in overall_metrics), numbers(overall), strict=True)),
        requested=requested,
        undefined=(
            *_undefined(run, labels, overall_metrics, overall, known),
            *_undefined(run, labels, class_metrics, by_class, known),
            *gaps,
        ),
        findings=tuple(findings),
        folds=_folds(source, overall_metrics),
        intervals=intervals,
        details=details,
        curves=None if run.streamed is None else run.streamed.curves_as_json(),
    )


def _values(question: Question, run: RunData, metrics: Sequence[Metric[Scores]]) -> Mapping[str, Array]:
    """Values by key: () of overall metrics, (K) of those of classes. What streamed samples do not say is left out, and
    what they would have to be read again for unless it is asked for.
    """
    asked = {leaf.metric.key for _, expression in question.of_probabilities for leaf in measures(expression)}
    if run.streamed is not None:
        return streamed_values(run.streamed, asked)
    with silently():
        return {metric.key: metric.compute(run.scores) for metric in metrics}


_STREAMED: Final = partial(
    Finding.note,
    "samples_folded",
    "There are more samples than were held in memory, so they were read once, batch by batch. Values are exact. What "
    "needs all of them at once, such as trapezoids under an IMCP curve, has none. Limits by a method whose name begins "
    "with folded_ are drawn from samples between cuts of their order, which are taken together.",
)


def _about_intervals(found: ReportEstimates, run: RunData, options: Options) -> Iterator[Finding]:
    """Yield cautions about the intervals."""
    by_name = found.by_name
    yield from few_effective_samples(by_name, run)
    if options.intervals is IntervalChoice.ALL:
        if run.streamed is None:
            yield from few_out_of_order(run)
            yield from about_resampling(found.by_estimand, run, options.sampling.draws)
        else:
            yield from about_biased(found.by_estimand, run)
        yield from stretched_findings(by_name)
    yield from few_members(run)


def grouped(metrics: Sequence[Metric[Scores]], row: Sequence[Value], n_classes: int) -> GroupedMetrics:
    """Group values by the effect of prevalence; samples have no twin at balanced prevalence."""
    insensitive, sensitive = dict[str, Value](), dict[str, Value]()
    for metric, value in zip(metrics, row, strict=True):
        chosen = insensitive if metric.card.prevalence.is_insensitive(n_classes) else sensitive
        chosen[metric.key] = value
    return {"prevalence_insensitive": insensitive, "prevalence_sensitive": sensitive, "at_balanced_prevalence": {}}


def _undefined(
    run: RunData,
    labels: Sequence[str],
    metrics: Sequence[Metric[Scores]],
    values: Array,
    known: Container[str],
) -> Iterator[Undefined]:
    explainer = Explainer(run.scores)
    for where in np.argwhere(~np.isfinite(values)):
        metric, *code = metrics[where[0]], *map(int, where[1:])
        label = labels[code[0]] if code else None
        if run.streamed is not None and metric.key not in known and not _has_none(metric, run.streamed):
            yield Undefined(metric.key, NOT_FOLDED, IF_ASKED if is_dear(metric, run.n_classes) else ALL_AT_ONCE, label)
        else:
            gap = explainer.explain(metric, code[0] if code else None, float(values[tuple(where)]))
            yield Undefined(metric.key, gap.condition.code, reason(gap, labels), label)


def _has_none(metric: Metric[Scores], scores: Scores) -> bool:
    """Is it undefined of such samples in any case?"""
    conditions = metric.card.undefined
    return (NOT_PROBABILITIES in conditions and not scores.are_probabilities) or (
        WEIGHTED in conditions and scores.weights is not None
    )


def _folds(source: MatrixInput, metrics: Sequence[Metric[Scores]]) -> dict[str, FoldValues] | None:
    samples = source.samples
    if samples is None or samples.fold_sizes is None:
        return None
    ends = np.cumsum(samples.fold_sizes)
    rows = []
    for start, stop in zip(ends - samples.fold_sizes, ends, strict=True):
        part = slice(int(start), int(stop))
        fold = replace(
            samples,
            truth=samples.truth[part],
            predicted=samples.predicted[part],
            outputs=None if samples.outputs is None else samples.outputs[part],
            weights=None if samples.weights is None else samples.weights[part],
        )
        rows.append(evaluate_table(scores_of(replace(source, samples=fold)), metrics))
    return over_folds([metric.key for metric in metrics], np.stack(rows, axis=1))


def _details(run: RunData, seed: int, *, whole: bool) -> dict[str, Any]:
    """Return details beside the values: chosen parameters, and quantities that papers report with them; where not all
    is wanted, what chance does to errors that are shown first.
    """
    source, scores = run.source, run.scores
    details: dict[str, Any] = {"per_class": {label: {} for label in source.labels}}
    for metric in catalogue().of_probabilities.metrics:
        beside = metric.card.inference.details
        if beside is None or (NOT_PROBABILITIES in metric.card.undefined and not scores.are_probabilities):
            continue
        found = {name: numbers(np.asarray(values)) for name, values in beside(scores).items()}
        if metric.card.scope is Scope.OVERALL:
            details[metric.key] = found
            continue
        for code, entry in enumerate(details["per_class"].values()):
            entry[metric.key] = {name: values[code] for name, values in found.items()}
    if scores.are_probabilities:
        details["imcp"] = {
            "certainly_right": {"p_true_above": 0.5, "phi_above": threshold_correct()},
            "certainly_wrong": {
                "p_true_below": 1.0 / scores.n_classes,
                "phi_below": threshold_incorrect(scores.n_classes),
            },
        }
        errors = catalogue().of_probabilities.reported.of_scope(Scope.OVERALL)
        asked = [metric for metric in errors if whole or metric.key in LOSSES_SHOWN]
        details["calibration"] = calibration_by_chance(run, asked, seed)
    return details


def _add_details_of_classes(per_class: Mapping[str, dict[str, Any]], source: MatrixInput, scores: Scores) -> None:
    with silently():
        quartiles, shares = numbers(phi_quartiles(scores)), numbers(regions(scores))
    for code, entry in enumerate(per_class.values()):
        entry["phi_quartiles"] = [quartile[code] for quartile in quartiles]
        entry["shares"] = {
            name: shares[index][code] for index, name in enumerate(("certainly_right", "uncertain", "certainly_wrong"))
        }
        entry["brier_decomposition"] = _decomposed(scores, code)
        # Its variance is that of independent samples.
        if scores.weights is None and not source.is_grouped:
            z, p_value = spiegelhalter(scores, code)
            entry["spiegelhalter"] = dict(zip(("z", "p_value"), numbers(np.array([z, p_value])), strict=True))


def _decomposed(scores: Scores, code: int) -> dict[str, Value]:
    with silently():
        parts = decompose(scores, code)
    names = [part.name for part in fields(parts)]
    return dict(zip(names, numbers(np.array([getattr(parts, name) for name in names])), strict=True))


def calibration_by_chance(run: RunData, asked: Sequence[Metric[Scores]], seed: int) -> dict[str, dict[str, Any]]:
    """Return calibration errors beside those of perfect probabilities on as many samples, or the reason why these are
    unknown.
    """
    found: dict[str, dict[str, Any]] = {}
    for metric in asked:
        chance = run.by_chance(metric, metric.card.defaults, seed)
        if chance is not None:
            found[metric.key] = {
                "observed": chance.observed,
                "expected_if_calibrated": chance.mean,
                "upper_if_calibrated": chance.upper,
                "p_value": chance.p_value,
                "draws": chance.draws,
                "seed": chance.seed,
            }
        elif run.streamed is not None and metric.card.inference.by_chance is not None:
            unknown = dict.fromkeys(("expected_if_calibrated", "upper_if_calibrated", "p_value"))
            found[metric.key] = {"observed": float(metric.compute(run.scores)), **unknown, "reason": ALL_AT_ONCE}
    return found


def chance_of_groups(source: MatrixInput, scores: Scores) -> list[Finding]:
    """Return a caution about calibration errors expected by chance, where samples come in groups."""
    if not source.is_grouped or not scores.are_probabilities:
        return []
    return [
        Finding.note(
            "chance_of_independent_samples",
            "What perfect probabilities would show as calibration errors is simulated for independent samples. Samples "
            "in groups show more by chance, so the p values of calibration are too small.",
            n_groups=source.facts[GROUPS_FACT],
        )
    ]
