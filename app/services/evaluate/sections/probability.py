"""Section of a report on probabilities and scores."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Final

import numpy as np

from app.domain.findings import Finding
from app.domain.inputs.content import GROUPS_FACT
from app.domain.inputs.kind import Reported
from app.domain.inputs.matrices import MatrixInput
from app.domain.members import numbers
from app.domain.named_metrics import LOSSES_SHOWN
from app.domain.report import Section, merged_metrics
from app.kernel.metrics.card import Metric, Scope, evaluate_table
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
    cautions_of_samples,
    probability_metrics,
)
from app.services.estimates.run_data import RunData
from app.services.evaluate.questions import Question, decided
from app.services.evaluate.sections.findings import OF_FINDINGS, probability_findings
from app.services.evaluate.sections.matrix import over_folds
from app.services.evaluate.sections.unit import Found, asked_of
from app.services.reasons import ALL_AT_ONCE, IF_ASKED


def probability_section(question: Question, run: RunData) -> Section:
    """Make the section on probabilities or scores of an input, of which the run has the samples, in memory or streamed:
    what cannot be said of streamed ones has a reason.
    """
    source, scores = question.source, run.scores
    overall_metrics = catalogue().of_probabilities.reported.of_scope(Scope.OVERALL)
    class_metrics = catalogue().of_probabilities.reported.of_scope(Scope.CLASS)
    labels = source.labels
    brief = not question.options.details and source.positive is None
    if brief:
        class_metrics = tuple(one for one in class_metrics if one.key in OF_FINDINGS)
    overall, of_classes = ([*map(Reported.plain, some)] for some in (overall_metrics, class_metrics))
    known, left_out = _of_streamed(question, run, [*overall_metrics, *class_metrics])
    found = Found([*overall, *of_classes], run.subject, labels, scores.n_classes, known=known, left_out=left_out)
    metrics, per_class = found.overall(), found.per_class()
    if source.positive is not None:
        metrics = merged_metrics(metrics, per_class[labels[source.positive]])
    every = probability_metrics(scores, question.options)
    limited = [metric for metric in every if known is None or metric.key in known]
    requested, gaps, estimates = asked_of(question, run, question.of_probabilities, limited)
    details = _details(run, chosen_seed(question.options.seed, source.counts), whole=question.options.details)
    if scores.are_probabilities and question.options.details:
        _add_details_of_classes(details["per_class"], source, scores)
    if question.options.costs is not None and scores.are_probabilities:
        details["costs"] = decided(question.options.costs, scores, labels)
    class_values = {one.name: numbers(own) for one, own in zip(of_classes, found.values(of_classes), strict=True)}
    findings = [*probability_findings(run, class_values, details), *_chance_of_groups(source, scores)]
    if question.has_intervals:
        findings += cautions_of_samples(estimates, run, question.options)
    if run.streamed is not None:
        findings.append(_STREAMED(n_samples=scores.n_samples))
    rows = [evaluate_table(fold.scores, overall_metrics) for fold in run.folds]
    return Section(
        metrics=metrics,
        per_class={} if brief else per_class,
        values=dict(zip([one.name for one in overall], numbers(np.array(found.values(overall))), strict=True)),
        requested=requested,
        undefined=(*found.undefined(), *gaps),
        findings=tuple(findings),
        folds=over_folds([one.key for one in overall_metrics], np.stack(rows, axis=1)) if rows else None,
        intervals=estimates.intervals(),
        details=details,
        curves=None if run.streamed is None else run.streamed.curves_as_json(),
    )


def _of_streamed(
    question: Question, run: RunData, metrics: Sequence[Metric[Scores]]
) -> tuple[Mapping[str, Array] | None, Mapping[str, str]]:
    """Values of streamed samples by key, and why these do not say the others, or would have to be read again for them;
    None of samples in memory.
    """
    scores = run.streamed
    if scores is None:
        return None, {}
    known = streamed_values(scores, {leaf.metric.key for _, one in question.of_probabilities for leaf in measures(one)})
    left_out = [metric for metric in metrics if metric.key not in known and not _has_none(metric, scores)]
    return known, {one.key: IF_ASKED if is_dear(one, run.n_classes) else ALL_AT_ONCE for one in left_out}


_STREAMED: Final = partial(
    Finding.note,
    "samples_folded",
    "There are more samples than were held in memory, so they were read once, batch by batch. Values are exact. What "
    "needs all of them at once, such as trapezoids under an IMCP curve, has none. Limits by a method whose name begins "
    "with folded_ are drawn from samples between cuts of their order, which are taken together. Whether limits rest on "
    "few samples is not looked at.",
)


def _has_none(metric: Metric[Scores], scores: Scores) -> bool:
    """Is it undefined of such samples in any case?"""
    conditions = metric.card.undefined
    return (NOT_PROBABILITIES in conditions and not scores.are_probabilities) or (
        WEIGHTED in conditions and scores.weights is not None
    )


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
        with silently():
            parts = decompose(scores, code)
        names = [part.name for part in fields(parts)]
        decomposed = numbers(np.array([getattr(parts, name) for name in names]))
        entry["brier_decomposition"] = dict(zip(names, decomposed, strict=True))
        # Its variance is that of independent samples.
        if scores.weights is None and not source.is_grouped:
            z, p_value = spiegelhalter(scores, code)
            entry["spiegelhalter"] = dict(zip(("z", "p_value"), numbers(np.array([z, p_value])), strict=True))


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


def _chance_of_groups(source: MatrixInput, scores: Scores) -> Iterator[Finding]:
    """Yield a caution about calibration errors expected by chance, where samples come in groups."""
    if source.is_grouped and scores.are_probabilities:
        yield Finding.note(
            "chance_of_independent_samples",
            "What perfect probabilities would show as calibration errors is simulated for independent samples. Samples "
            "in groups show more by chance, so the p values of calibration are too small.",
            n_groups=source.facts[GROUPS_FACT],
        )
