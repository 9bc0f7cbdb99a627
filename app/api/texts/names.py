"""How texts name runs: by what people call them, and never by more than they can obey."""

from collections.abc import Mapping, Sequence
from typing import Any

from app.api.texts.lines import shown


def run_name(model: Mapping[str, Any] | None) -> str:
    """A model and its version."""
    if model is None:
        return ""
    return shown(f"{model['name']} {model['version']}" if model.get("version") else model["name"])


def dataset_name(dataset: Mapping[str, Any] | None) -> str:
    """A dataset and its split."""
    if dataset is None:
        return ""
    return shown(f"{dataset['name']}, {dataset['split']}" if dataset.get("split") else dataset["name"])


def run_title(answer: Mapping[str, Any]) -> str:
    """Whose evaluation it is."""
    model, dataset = run_name(answer.get("model")), dataset_name(answer.get("dataset"))
    return f"{model} on {dataset}" if model and dataset else model or dataset or "evaluation, not kept"


def run_names(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names that tell runs apart: the models, with what else differs where these are the same."""
    names = [run_name(run["model"]) for run in runs]
    if len(set(names)) < len(names):
        names = [run_title(run) for run in runs]
    if len(set(names)) < len(names):
        names = [f"{name} ({place})" for place, name in enumerate(names, start=1)]
    return names
