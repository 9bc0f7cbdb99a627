"""What is answered about probabilities and scores, beside the report on the matrix of their decisions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from app.domain.findings import Finding, Severity
from app.domain.inputs.content import GROUPS_FACT
from app.domain.inputs.matrices import MatrixInput
from app.domain.report import (
    FoldValues,
    Group,
    GroupedMetrics,
    Groups,
    Options,
    ProbabilityPart,
    Report,
    Undefined,
    Value,
)
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Metric, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.conditions import NOT_PROBABILITIES
from app.kernel.metrics.engine import Explainer, evaluate_table
from app.kernel.metrics.expression import Expression, Subject
from app.kernel.metrics.families.imcp import phi_quartiles, regions, threshold_correct, threshold_incorrect
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.calibration import decompose, spiegelhalter
from app.kernel.samples.scores import Scores
from app.services.estimates.probability_intervals import sample_intervals
from app.services.evaluate.group_reports import grouping_of
from app.services.evaluate.probability_findings import probability_findings
from app.services.reasons import plain, reason, requested_values
from app.services.stored import scores_of

_GROUPS = (Group.INSENSITIVE.value, Group.SENSITIVE.value)
# Simulated outcomes behind "expected under perfect calibration", all classes and draws together: a tenth of a second.
_SIMULATED = 20_000_000
_MOST_DRAWS, _FEWEST_DRAWS = 1000, 20


def judge(
    source: MatrixInput,
    scores: Scores,
    asked: Sequence[tuple[str, Expression]],
    seed: int,
    options: Options | None = None,
) -> ProbabilityPart:
    """Everything that is answered about the samples of an input.

    Args:
        source: With samples.
        scores: The same for the kernel.
        asked: Metric expressions that need probabilities, by their text.
        seed: Of simulated outcomes and of resamples.
        options: Which intervals are wanted; those of a report that says nothing of it when None.
    """
    overall_metrics = catalogue().of_probabilities.of_scope(Scope.OVERALL)
    class_metrics = catalogue().of_probabilities.of_scope(Scope.CLASS)
    overall = evaluate_table(scores, overall_metrics)
    by_class = evaluate_table(scores, class_metrics)
    labels, size = source.labels, scores.n_classes
    values: dict[str, Value] = dict(zip((m.key for m in overall_metrics), plain(overall), strict=True))
    columns = plain(by_class.T)
    per_class = {label: _grouped(class_metrics, row, size) for label, row in zip(labels, columns, strict=True)}
    metrics = _grouped(overall_metrics, plain(overall), size)
    if source.positive is not None:
        for group, found in per_class[labels[source.positive]].items():
            metrics[group] |= found
    requested, gaps = requested_values(asked, labels, Subject(Table(source.counts), scores))
    grouping = grouping_of(source)
    details = _details(source, scores, seed)
    ranges = sample_intervals(
        source,
        scores,
        asked,
        options=options or Options(),
        seed=seed,
        calibration=details.get("calibration", {}),
        grouping=grouping,
    )
    class_values = dict(zip((m.key for m in class_metrics), plain(by_class), strict=True))
    return ProbabilityPart(
        metrics=metrics,
        per_class=per_class,
        values=values,
        requested=requested,
        undefined=(*_undefined(scores, labels, overall_metrics, overall, class_metrics, by_class), *gaps),
        findings=(
            *probability_findings(source, scores, class_values, details),
            *_chance_of_groups(source, scores),
            *ranges.findings,
        ),
        folds=_folds(source, overall_metrics),
        intervals=ranges.intervals,
        details=details,
    )


def with_probabilities(report: Report, part: ProbabilityPart, texts: Sequence[str]) -> Report:
    """The report on the decisions and the part on the probabilities as one; ``texts`` give the order of expressions."""
    requested = {**report.requested, **part.requested}
    folds = None
    if report.folds is not None:
        folds = {**report.folds, **(part.folds or {})}
    return replace(
        report,
        metrics=_merged(report.metrics, part.metrics),
        per_class={label: _merged(groups, part.per_class[label]) for label, groups in report.per_class.items()},
        values={**report.values, **part.values},
        requested={text: requested[text] for text in texts},
        intervals={**report.intervals, **part.intervals},
        undefined=(*report.undefined, *part.undefined),
        findings=(*report.findings, *part.findings),
        folds=folds,
    )


def _merged(groups: GroupedMetrics, more: Groups) -> GroupedMetrics:
    """The values of a matrix and those of its probabilities, which have no twins at balanced prevalence."""
    return {
        "prevalence_insensitive": {**groups["prevalence_insensitive"], **more[Group.INSENSITIVE]},
        "prevalence_sensitive": {**groups["prevalence_sensitive"], **more[Group.SENSITIVE]},
        "at_balanced_prevalence": groups["at_balanced_prevalence"],
    }


def _grouped(metrics: Sequence[Metric[Scores]], row: Sequence[Value], n_classes: int) -> Groups:
    groups: Groups = {name: {} for name in _GROUPS}
    for metric, value in zip(metrics, row, strict=True):
        groups[_GROUPS[not metric.card.prevalence.is_insensitive(n_classes)]][metric.key] = value
    return groups


def _undefined(
    scores: Scores,
    labels: Sequence[str],
    overall_metrics: Sequence[Metric[Scores]],
    overall: Array,
    class_metrics: Sequence[Metric[Scores]],
    by_class: Array,
) -> Iterator[Undefined]:
    explainer = Explainer(scores)
    for metrics, values in ((overall_metrics, overall), (class_metrics, by_class)):
        for gap in explainer.gaps(metrics, values):
            label = None if gap.class_index is None else labels[gap.class_index]
            yield Undefined(gap.metric.key, gap.condition.code, reason(gap, labels), label)


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
    values = np.stack(rows, axis=1)
    defined = np.isfinite(values).all(axis=1)
    with silently():
        means = np.where(defined, values.mean(axis=1), np.nan)
        spread = values.std(axis=1, ddof=1) if len(rows) > 1 else np.full(len(values), np.nan)
    found = zip(metrics, plain(values), plain(means), plain(np.where(defined, spread, np.nan)), strict=True)
    return {metric.key: FoldValues(tuple(row), mean, sd) for metric, row, mean, sd in found}


def _details(source: MatrixInput, scores: Scores, seed: int) -> dict[str, Any]:
    """What belongs to the values: parameters that were chosen for them, and what stands beside them in the papers."""
    details: dict[str, Any] = {"per_class": {label: {} for label in source.labels}}
    for metric in catalogue().of_probabilities.metrics:
        beside = metric.card.inference.details
        if beside is None or (NOT_PROBABILITIES in metric.card.undefined and not scores.are_probabilities):
            continue
        found = {name: plain(np.asarray(values)) for name, values in beside(scores).items()}
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
        details["calibration"] = _by_chance(scores, seed)
        _add_details_of_classes(details["per_class"], source, scores)
    return details


def _add_details_of_classes(per_class: Mapping[str, dict[str, Any]], source: MatrixInput, scores: Scores) -> None:
    with silently():
        quartiles, shares = plain(phi_quartiles(scores)), plain(regions(scores))
    for code, entry in enumerate(per_class.values()):
        entry["phi_quartiles"] = [quartile[code] for quartile in quartiles]
        entry["shares"] = {
            name: shares[index][code] for index, name in enumerate(("certainly_right", "uncertain", "certainly_wrong"))
        }
        entry["brier_decomposition"] = _decomposed(scores, code)
        # Its variance is that of independent samples.
        if scores.weights is None and not source.is_grouped:
            z, p_value = spiegelhalter(scores, code)
            entry["spiegelhalter"] = dict(zip(("z", "p_value"), plain(np.array([z, p_value])), strict=True))


def _decomposed(scores: Scores, code: int) -> dict[str, Value]:
    with silently():
        parts = decompose(scores, code)
    names = [part.name for part in fields(parts)]
    return dict(zip(names, plain(np.array([getattr(parts, name) for name in names])), strict=True))


def _by_chance(scores: Scores, seed: int) -> dict[str, dict[str, Any]]:
    """Calibration errors beside those that perfect probabilities would show on as many samples."""
    entries = scores.n_samples * scores.n_classes
    draws = max(_FEWEST_DRAWS, min(_MOST_DRAWS, _SIMULATED // entries))
    simulated = ((metric.key, metric.card.inference.by_chance) for metric in catalogue().of_probabilities.metrics)
    found = {key: by_chance(scores, draws=draws, seed=seed) for key, by_chance in simulated if by_chance is not None}
    return {
        name: {
            "observed": chance.observed,
            "expected_if_calibrated": chance.mean,
            "upper_if_calibrated": chance.upper,
            "p_value": chance.p_value,
            "draws": chance.draws,
            "seed": chance.seed,
        }
        for name, chance in found.items()
    }


def findings_as_json(findings: Sequence[Finding]) -> list[list[Any]]:
    """Findings as they are stored."""
    return [[f.code, f.severity.value, f.message, dict(f.evidence)] for f in findings]


def findings_from_json(stored: Sequence[Sequence[Any]]) -> tuple[Finding, ...]:
    """The reverse of ``findings_as_json``."""
    return tuple(Finding(code, Severity(severe), message, evidence) for code, severe, message, evidence in stored)


def _chance_of_groups(source: MatrixInput, scores: Scores) -> list[Finding]:
    if not source.is_grouped or not scores.are_probabilities:
        return []
    return [
        Finding.note(
            "chance_of_independent_samples",
            "What perfect probabilities would show as calibration errors is simulated for independent samples. Samples "
            "in groups show more by chance: p-values of calibration are too small, and an error somewhat above what is "
            "expected need not mean anything.",
            n_groups=source.facts[GROUPS_FACT],
        )
    ]


def part_as_json(part: ProbabilityPart) -> dict[str, Any]:
    """A part as it is stored when the samples are not."""
    return {
        "metrics": part.metrics,
        "per_class": part.per_class,
        "values": part.values,
        "requested": part.requested,
        "undefined": [[u.metric, u.code, u.reason, u.label] for u in part.undefined],
        "findings": findings_as_json(part.findings),
        "folds": None
        if part.folds is None
        else {key: [list(fold.values), fold.mean, fold.sd] for key, fold in part.folds.items()},
        "intervals": part.intervals,
        "details": part.details,
    }


def part_from_json(stored: Mapping[str, Any]) -> ProbabilityPart:
    """The reverse of ``part_as_json``."""
    folds = stored["folds"]
    return ProbabilityPart(
        metrics=stored["metrics"],
        per_class=stored["per_class"],
        values=stored["values"],
        requested=stored["requested"],
        undefined=tuple(Undefined(*entry) for entry in stored["undefined"]),
        findings=findings_from_json(stored["findings"]),
        folds=None
        if folds is None
        else {key: FoldValues(tuple(values), mean, sd) for key, (values, mean, sd) in folds.items()},
        # Parts that were stored before there were intervals have none.
        intervals=stored.get("intervals", {}),
        details=stored["details"],
    )
