"""An evaluation as MLflow keeps it: metrics, tags and files of a run."""

import csv
import json
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from prevail.client import Client
from prevail.results.decisions import Check
from prevail.results.evaluation import Evaluation

# Slashes are parts of a path there, which has rules of its own.
_UNKNOWN: Final = re.compile(r"[^\w\-. :]+")
_LONGEST_TAG: Final = 4000
# MLflow takes 250 characters; limits and what is undefined have some more.
_LONGEST_NAME: Final = 200
PREFIX: Final = "prevail"


def metric_name(expression: str) -> str:
    """An expression as MLflow can name it: ``recall@D`` is ``prevail/recall.D``."""
    return f"{PREFIX}/{_UNKNOWN.sub('_', expression.replace('@', '.')).strip('_')[:_LONGEST_NAME]}"


def metrics_and_tags(evaluation: Evaluation) -> tuple[dict[str, float], dict[str, str]]:
    """The headline with its limits. What has no value is a tag with the reason, and never a metric of 0. Of expressions
    that MLflow cannot tell apart, such as ``recall@<50`` and ``recall@>50``, those after the first are numbered.
    """
    metrics: dict[str, float] = {}
    tags: dict[str, str] = {}
    seen: Counter[str] = Counter()
    headline = evaluation.headline
    for expression, one in {**headline.get("metrics", {}), **headline.get("requested", {})}.items():
        name = metric_name(expression)
        seen[name] += 1
        name = name if seen[name] == 1 else f"{name}.{seen[name]}"
        if one.get("value") is None:
            reason = evaluation[expression].reason if expression in evaluation else None
            tags[name.replace("/", ".undefined.")] = (reason or "no value")[:_LONGEST_TAG]
            continue
        metrics[name] = float(one["value"])
        for end in ("low", "high"):
            if one.get(end) is not None:
                metrics[f"{name}_{end}"] = float(one[end])
    if evaluation.id is not None:
        tags[f"{PREFIX}.evaluation"] = evaluation.id
    for number, finding in enumerate(evaluation.findings[:10]):
        tags[f"{PREFIX}.finding.{number}"] = str(finding.get("message", ""))[:_LONGEST_TAG]
    return metrics, tags


def verdict_tags(check: Check) -> dict[str, str]:
    """Return the tags of a gate's verdict."""
    return {
        f"{PREFIX}.verdict": check.verdict,
        f"{PREFIX}.gate": f"{check.gate}, version {check.data['gate']['version']}",
        f"{PREFIX}.check": check.id,
    }


def write_files(client: Client, evaluation: Evaluation, check: Check | None, folder: Path) -> list[Path]:
    """Reports and the matrix as files."""
    texts = {
        "report.txt": client.report(evaluation),
        "report.md": client.report(evaluation, "text/markdown"),
        "report.json": json.dumps(evaluation.to_dict(), ensure_ascii=False, indent=1),
    }
    if check is not None:
        texts |= {"gate.txt": client.report(check), "gate.md": client.report(check, "text/markdown")}
    found = []
    for name, text in texts.items():
        found.append(folder / name)
        found[-1].write_text(text, encoding="utf-8")
    matrix = evaluation.confusion_matrix
    if matrix is not None:
        found.append(folder / "confusion_matrix.csv")
        with found[-1].open("w", newline="", encoding="utf-8") as file:
            lines = csv.writer(file)
            lines.writerow(["actual", *evaluation.labels])
            lines.writerows([label, *row] for label, row in zip(evaluation.labels, matrix, strict=True))
    return found


def log(
    mlflow_client: Any, run_id: str, client: Client, evaluation: Evaluation, check: Check | None, folder: Path
) -> Mapping[str, float]:
    """Put an evaluation, and a verdict on it, into a run of MLflow; returns the metrics."""
    metrics, tags = metrics_and_tags(evaluation)
    tags |= verdict_tags(check) if check is not None else {}
    for name, value in metrics.items():
        mlflow_client.log_metric(run_id, name, value)
    for name, text in tags.items():
        mlflow_client.set_tag(run_id, name, text)
    for path in write_files(client, evaluation, check, folder):
        mlflow_client.log_artifact(run_id, str(path), PREFIX)
    return metrics
