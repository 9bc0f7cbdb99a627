"""Domain objects as the JSON that is sent."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from app.domain.evaluation import DatasetRef, ModelRef
from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.report import Report, Undefined
from app.services.evaluate.evaluations import Evaluation


def present_time(moment: datetime) -> str:
    """RFC 3339 with milliseconds, UTC."""
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def present_model(model: ModelRef) -> dict[str, Any]:
    """A model."""
    return {"name": model.name, "version": model.version}


def present_dataset(dataset: DatasetRef) -> dict[str, Any]:
    """A dataset."""
    return {"name": dataset.name, "version": dataset.version, "split": dataset.split}


def present_tags(tags: Mapping[str, str]) -> dict[str, str]:
    """Tags by name: the order in which they were sent is not kept."""
    return dict(sorted(tags.items()))


def present_evaluation(evaluation: Evaluation) -> dict[str, Any]:
    """An evaluation with its report."""
    report = evaluation.report
    answer: dict[str, Any] = {
        "id": None if evaluation.id is None else str(evaluation.id),
        "created_at": None if evaluation.created_at is None else present_time(evaluation.created_at),
        "model": None if evaluation.model is None else present_model(evaluation.model),
        "dataset": None if evaluation.dataset is None else present_dataset(evaluation.dataset),
        "tags": present_tags(evaluation.tags),
        "input": _input(report),
        "metrics": report.metrics,
        "per_class": report.per_class,
        "requested": report.requested,
        "intervals": report.intervals,
        "undefined": [_undefined(entry) for entry in report.undefined],
        "findings": [_finding(finding) for finding in report.findings],
    }
    if report.parts.probabilities is not None:
        answer["probabilities"] = report.parts.probabilities.details
    if report.parts.groups is not None:
        answer["groups"] = report.parts.groups.design
    if report.folds is not None:
        answer["folds"] = {
            key: {"mean": fold.mean, "sd": fold.sd, "values": fold.values} for key, fold in report.folds.items()
        }
    if report.interpretation is not None:
        answer["interpretation"] = report.interpretation
    return answer


def _input(report: Report) -> dict[str, Any]:
    source = report.input
    return {
        "kind": source.kind,
        "content": source.content.value,
        "n_samples": None if source.content is Content.rates else source.counts.sum().item(),
        "n_classes": len(source.labels),
        "labels": source.labels,
        "positive": None if source.positive is None else source.labels[source.positive],
        "orientation": "actual_rows",
        "confusion_matrix": source.counts,
        "prevalence": {
            label: groups["prevalence_sensitive"]["prevalence"] for label, groups in report.per_class.items()
        },
        **source.facts,
    }


def _undefined(entry: Undefined) -> dict[str, Any]:
    answer: dict[str, Any] = {"metric": entry.metric, "code": entry.code, "reason": entry.reason}
    if entry.label is not None:
        answer["class"] = entry.label
    if entry.group is not None:
        answer["group"] = entry.group.value
    return answer


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "message": finding.message,
        "evidence": finding.evidence,
    }


Metrics = dict[str, float | None]


class GroupedMetrics(BaseModel):
    """Values by what prevalence does to them."""

    prevalence_insensitive: Metrics = Field(description="Unchanged when classes are replicated.")
    prevalence_sensitive: Metrics = Field(description="Move with the mix of the classes.")
    at_balanced_prevalence: Metrics = Field(
        description="The sensitive ones again, on the matrix with its rows scaled to equal totals; without those that "
        "are counts or depend on the number of samples."
    )


class UndefinedValue(BaseModel):
    """Why a value is null."""

    metric: str = Field(description="A key, an expression as it was asked, or `*` for every metric of the group.")
    code: str
    reason: str
    label: str | None = Field(None, alias="class", description="The class, for a value of one class.")
    group: str | None = Field(None, description="Given when only the values of this group are meant.")


class IntervalValue(BaseModel):
    """An interval for a metric."""

    low: float | None
    high: float | None
    level: float
    method: str
    given: str = Field(description="The counts that it takes as fixed.")
    prior: str | None = Field(None, description="What every row of the matrix was given before its counts.")
    seed: int | None = Field(None, description="Of the simulation: the same seed gives the same interval.")
    draws: int | None = Field(None, description="Simulated matrices, or resamples of the samples.")
    monte_carlo_error: float | None = Field(
        None, description="Standard error of an end that comes from the finite number of draws."
    )
    undefined_draws: int | None = Field(
        None, description="Resamples in which the metric did not exist, when there were some; they are left out."
    )
    reason: str | None = Field(None, description="Why there is none.")


class FindingValue(BaseModel):
    """What the numbers mean."""

    code: str
    severity: Literal["critical", "warning", "note"]
    message: str
    evidence: dict[str, Any]


class FoldStatistics(BaseModel):
    """A metric over the folds."""

    mean: float | None
    sd: float | None
    values: list[float | None]


class InputSummary(BaseModel):
    """What was evaluated, rows actual."""

    kind: str
    content: Literal["counts", "weights", "rates"]
    n_samples: float | None = Field(description="null when the entries are rates.")
    n_classes: int
    labels: list[str]
    positive: str | None
    orientation: Literal["actual_rows"]
    confusion_matrix: list[list[float]]
    prevalence: dict[str, float]


class GroupDesign(BaseModel):
    """The groups that samples came in."""

    n_groups: int
    smallest: int = Field(description="Samples of the smallest group.")
    largest: int = Field(description="Samples of the largest group.")
    effective_groups: float = Field(description="So many groups of equal size are worth as much.")
    design_effects: dict[str, float | None] | None = Field(
        None,
        description="By metric, how many times larger its variance is than that of as many independent samples; left "
        "out for weighted samples.",
    )


class EvaluationResponse(BaseModel):
    """An evaluation with its report."""

    id: UUID | None
    created_at: datetime | None
    model: dict[str, str | None] | None
    dataset: dict[str, str | None] | None
    tags: dict[str, str]
    input: InputSummary
    metrics: GroupedMetrics
    per_class: dict[str, GroupedMetrics]
    requested: dict[str, float | dict[str, float | None] | None]
    intervals: dict[str, IntervalValue]
    undefined: list[UndefinedValue]
    findings: list[FindingValue]
    probabilities: dict[str, Any] | None = Field(
        None, description="For probabilities and scores: what belongs to their metrics and is none itself."
    )
    groups: GroupDesign | None = Field(None, description="For samples with group_ids.")
    folds: dict[str, FoldStatistics] | None = None
    interpretation: dict[str, dict[str, str]] | None = None


class BatchItem(BaseModel):
    """What became of one evaluation of a batch."""

    status: int
    evaluation: EvaluationResponse | None = None
    problem: dict[str, Any] | None = None


class BatchResponse(BaseModel):
    """One entry per evaluation, in order."""

    items: list[BatchItem]
