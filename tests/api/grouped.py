"""Samples that come in groups: inputs of patients, some of whom are hard."""

from typing import Any

import httpx
import numpy as np

from tests.api.answers import Json, create, evaluation
from tests.api.decisions import probabilities

LABELS = ["a", "b", "c"]


def patients(n_groups: int = 40, size: int = 8, seed: int = 0) -> tuple[Any, Any, Any]:
    """Group, truth and prediction of each sample: some patients are hard."""
    random = np.random.default_rng(seed)
    groups = np.repeat(np.arange(n_groups), random.integers(size // 2, 2 * size, n_groups))
    truth = random.integers(0, 3, groups.size)
    right = random.random(groups.size) < random.beta(2, 1, n_groups)[groups]
    return groups, truth, np.where(right, truth, (truth + random.integers(1, 3, groups.size)) % 3)


def source_of(groups: Any, truth: Any, predicted: Any, **members: Any) -> Json:
    return {
        "kind": "predictions",
        "labels": LABELS,
        "y_true": [LABELS[code] for code in truth],
        "y_pred": [LABELS[code] for code in predicted],
        "group_ids": [f"patient {group}" for group in groups],
        **members,
    }


def scored_source(groups: Any, truth: Any, **members: Any) -> Json:
    return {
        "kind": "probabilities",
        "labels": LABELS,
        "y_true": [LABELS[code] for code in truth],
        "probabilities": probabilities(truth, 3).tolist(),
        "group_ids": np.asarray(groups).tolist(),
        **members,
    }


def kept(client: httpx.Client, source: Json, model: str, dataset: str) -> str:
    return str(create(client, evaluation(model=model, dataset=dataset, input=source))["id"])


GROUPS, TRUTH, PREDICTED = patients()
PREDICTIONS = source_of(GROUPS, TRUTH, PREDICTED)
PROBABILITIES = scored_source(GROUPS, TRUTH)
INPUTS = {"predictions": PREDICTIONS, "probabilities": PROBABILITIES}
