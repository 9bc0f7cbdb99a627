"""Domain objects as the JSON that is sent."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson
from starlette.responses import Response

from app.domain.evaluation import DatasetRef, EvaluationSummary, ModelRef
from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.report import Report, Undefined
from app.services.evaluate.evaluations import Evaluation


def write_json(content: Any) -> bytes:
    """JSON as it is sent."""
    return orjson.dumps(content, option=orjson.OPT_SERIALIZE_NUMPY)


def json_response(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    """An answer in JSON. Values that are not finite were turned into None before."""
    return Response(
        write_json(content),
        status_code=status,
        media_type="application/json",
        headers=headers,
    )


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


def _size(summary: EvaluationSummary) -> float | None:
    """The number of samples, a whole one for counts as in the full report."""
    match summary.content:
        case Content.counts:
            return int(summary.n_samples)
        case Content.weights:
            return summary.n_samples
    return None


def present_summary(summary: EvaluationSummary) -> dict[str, Any]:
    """An evaluation in a list."""
    return {
        "id": str(summary.id),
        "created_at": present_time(summary.created_at),
        "model": present_model(summary.model),
        "dataset": present_dataset(summary.dataset),
        "tags": present_tags(summary.tags),
        "input": {
            "kind": summary.kind,
            "content": summary.content.value,
            "n_samples": _size(summary),
            "n_classes": summary.n_classes,
            "labels": summary.labels,
            "positive": None if summary.positive is None else summary.labels[summary.positive],
        },
        "metrics": dict(summary.values),
    }
