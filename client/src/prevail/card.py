"""A model card: metadata that Hugging Face reads as `model-index`, and the report below it."""

import json
from typing import Any, Final

from prevail.results.evaluation import Evaluation

TASK: Final = "tabular-classification"


def model_index(evaluation: Evaluation, task: str = TASK) -> dict[str, Any]:
    """The metadata. A metric without a value is left out: the format has no word for it, and 0 would be wrong."""
    model, dataset = evaluation.model or {}, evaluation.dataset or {}
    metrics = []
    headline = evaluation.headline
    for name, one in {**headline.get("metrics", {}), **headline.get("requested", {})}.items():
        if one.get("value") is None:
            continue
        metric: dict[str, Any] = {"type": name, "value": one["value"], "name": name}
        if one.get("low") is not None and one.get("high") is not None:
            metric["args"] = {"low": one["low"], "high": one["high"]}
        metrics.append(metric)
    kept: dict[str, Any] = {"name": dataset.get("name", "unnamed"), "type": dataset.get("name", "unnamed")}
    kept |= {"split": dataset["split"]} if dataset.get("split") else {}
    kept |= {"revision": dataset["version"]} if dataset.get("version") else {}
    result = {"task": {"type": task}, "dataset": kept, "metrics": metrics}
    return {"model-index": [{"name": model.get("name", "unnamed"), "results": [result]}]}


def model_card(evaluation: Evaluation, report: str) -> str:
    """The card: the metadata as JSON, which is YAML too, so that names can have anything in them."""
    index = json.dumps(model_index(evaluation)["model-index"], indent=2, ensure_ascii=True)
    return f"---\nmodel-index: {index}\n---\n\n{report}"
