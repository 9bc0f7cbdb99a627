"""What tests of comparisons, gates and projections share."""

import json
from typing import Any
from uuid import uuid4

import httpx
import numpy as np

from tests.api.answers import Json, check_json, create, evaluation, matrix_input
from tests.api.shown import FIRST, SECOND

Matrix = list[list[Any]]


def keep(client: httpx.Client, matrix: Matrix, model: str = "m", dataset: str | None = None, **members: Any) -> str:
    """Id of a saved evaluation; on a dataset of its own unless one is named."""
    body = evaluation(model=model, dataset=dataset or uuid4().hex, input=matrix_input(matrix, **members))
    return str(create(client, body)["id"])


def keep_labels(
    client: httpx.Client, truth: Any, predicted: Any, model: str = "m", dataset: str = "paired", **members: Any
) -> str:
    """Id of a saved evaluation of labels with sample ids."""
    y_true, y_pred = np.asarray(truth).tolist(), np.asarray(predicted).tolist()
    source = {
        "kind": "predictions",
        "y_true": y_true,
        "y_pred": y_pred,
        "sample_ids": list(range(len(y_true))),
        **members,
    }
    return str(create(client, evaluation(model=model, dataset=dataset, input=source))["id"])


def only(answer: Json, metric: str) -> Json:
    """The one difference of a metric."""
    (difference,) = answer["metrics"][metric]["differences"]
    found: Json = difference
    return found


def compare(client: httpx.Client, *identifiers: str, **members: Any) -> Json:
    """A comparison, checked for its form and read back."""
    reply = client.post("/v1/comparisons", json={"evaluations": list(identifiers), **members})
    assert reply.status_code == 201, reply.text
    check_json(reply, named=("metrics", "predictive_values"))
    answer: Json = reply.json()
    assert reply.headers["location"] == f"/v1/comparisons/{answer['id']}"
    assert client.get(reply.headers["location"]).content == reply.content
    return answer


def with_ids(example: Any, first: str, second: str) -> Any:
    """An example of the documentation with ids that exist."""
    return json.loads(json.dumps(example).replace(FIRST, first).replace(SECOND, second))


def probabilities(truth: Any, seed: int, skill: float = 0.8, shared: int = 0) -> Any:
    """Probabilities [n, K] of a model that knows something; those with the same ``shared`` err alike."""
    y = np.asarray(truth)
    classes = int(y.max()) + 1
    alike = np.random.default_rng(shared).normal(size=(len(y), classes))
    own = 0.6 * np.random.default_rng(1000 + seed).normal(size=alike.shape)
    mass = np.exp(2 * skill * np.eye(classes)[y] + alike + own)
    return mass / mass.sum(axis=1, keepdims=True)


def keep_probabilities(
    client: httpx.Client, truth: Any, outputs: Any, model: str = "m", dataset: str = "scored", **members: Any
) -> str:
    """Id of a saved evaluation of probabilities, with sample ids unless these are None."""
    y_true = np.asarray(truth).tolist()
    source = {
        "kind": "probabilities",
        "y_true": y_true,
        "probabilities": np.asarray(outputs).tolist(),
        "labels": list(range(np.asarray(outputs).shape[1])),
        "sample_ids": list(range(len(y_true))),
        **{name: value for name, value in members.items() if name != "options"},
    }
    body = evaluation(model=model, dataset=dataset, input={k: v for k, v in source.items() if v is not None})
    return str(create(client, {**body, "options": members.get("options", {})})["id"])
