"""What generated requests find there: runs, a gate and a check, comparisons."""

from dataclasses import dataclass

import httpx

from tests.api.answers import Json, create, evaluation
from tests.api.jobs import ended, put_aside

MODELS = ("forest", "boosted", "majority")
DATASETS = tuple(f"d{index}" for index in range(6))
ROWS = 180
_TRUTH = [index % 2 for index in range(ROWS)]
_OUTPUTS = [(index * 7 % 11) / 20 + label / 6 for index, label in enumerate(_TRUTH)]
# Of two classes, so that everything can be asked of it.
PROBABILITIES: Json = {
    "kind": "probabilities",
    "y_true": _TRUTH,
    "probabilities": [[1 - output, output] for output in _OUTPUTS],
    "attributes": {
        "site": [("A", "B", None)[index % 3] for index in range(ROWS)],
        "shift": ["day" if index < ROWS // 2 else "night" for index in range(ROWS)],
    },
}


@dataclass(frozen=True, slots=True)
class Kept:
    """Ids, by what they are of.

    Attributes:
        runs: Of matrices with the classes 0 and 1, of different models on one dataset.
        by_probabilities: Of probabilities of the same classes.
        gate: The name of a gate that has a check, and of a webhook that was told of it.
    """

    runs: tuple[str, ...]
    by_probabilities: str
    comparison: str
    gate: str
    check: str
    key: str
    job: str


def keep_everything(base_url: str, headers: dict[str, str] | None = None) -> Kept:
    """Make it, by way of the API, with headers that may do everything."""
    with httpx.Client(base_url=base_url, headers=headers, timeout=60) as client:
        runs = [
            create(client, evaluation(model=model, dataset=dataset, input=_matrix(3 + index + place)))["id"]
            for place, model in enumerate(MODELS)
            for index, dataset in enumerate(DATASETS)
        ]
        rules = [{"metric": "h_mean", "min": 0.5}, {"metric": "recall@*", "not_worse_than": "baseline"}]
        # Told of nothing but the check below, whose address it does not send to.
        hook = {"url": "https://hooks.example:9/", "events": ["gate.checked"]}
        _made(client.put("/v1/webhooks/kept", json=hook))
        _made(client.put("/v1/gates/kept", json={"rules": rules}))
        question = {"evaluation": runs[0], "baseline": runs[1]}
        return Kept(
            runs=tuple(runs),
            by_probabilities=create(client, evaluation(input=PROBABILITIES))["id"],
            comparison=_made(client.post("/v1/comparisons", json={"evaluations": runs[:2]}))["id"],
            gate="kept",
            check=_made(client.post("/v1/gates/kept/checks", json=question))["id"],
            key=_made(client.post("/v1/keys", json={"name": "kept", "scopes": ["read"]}))["id"],
            job=ended(client, put_aside(client, "/v1/metrics/compute", {"input": PROBABILITIES}))["id"],
        )


def _matrix(weight: int) -> Json:
    return {"kind": "confusion_matrix", "matrix": [[40 + weight, 9], [7 + weight % 3, 30]]}


def _made(reply: httpx.Response) -> Json:
    assert reply.status_code == 201, reply.text
    answer: Json = reply.json()
    return answer
