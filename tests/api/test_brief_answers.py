"""Answers without a report: the same headline, and the same is kept."""

from typing import Any

import httpx
import pytest

from tests.api.answers import FOUR_CLASSES, Json, check_json, evaluation, matrix_input
from tests.api.generated.kept import PROBABILITIES

BRIEF = {"Prefer": "return=minimal"}
TRUTH, CALLED = [index % 3 for index in range(60)], [(index * 7 % 5) % 3 for index in range(60)]
INPUTS: dict[str, Json] = {
    "matrix": matrix_input(FOUR_CLASSES),
    "two classes": matrix_input([[40, 9], [7, 30]]),
    "another matrix of two classes": matrix_input([[4, 0], [1, 3]]),
    "undefined": matrix_input([[5, 0, 1], [0, 0, 0], [2, 0, 4]]),
    "rates": {"kind": "confusion_matrix", "matrix": [[0.9, 0.1], [0.2, 0.8]], "normalized": True},
    "weights": {"kind": "confusion_matrix", "matrix": [[1.25, 0.1], [0.5, 3]]},
    "folds": {"kind": "folds", "folds": [{"kind": "confusion_matrix", "matrix": [[9, k], [k, 7]]} for k in (1, 2, 3)]},
    "predictions": {"kind": "predictions", "y_true": TRUTH, "y_pred": CALLED, "sample_ids": list(range(60))},
    "groups": {"kind": "predictions", "y_true": TRUTH, "y_pred": CALLED, "group_ids": [i // 3 for i in range(60)]},
    "weighted": {"kind": "predictions", "y_true": TRUTH, "y_pred": CALLED, "sample_weight": [1.5, 1, 2] * 20},
    "probabilities": PROBABILITIES,
    "clustering": {"kind": "clustering", "y_true": TRUTH, "y_pred": CALLED},
    "no input": {"kind": "confusion_matrix", "matrix": [[1, 2]]},
}
OPTIONS: dict[str, Json] = {
    "requested": {"metrics": ["recall@1", "gps(recall@*, precision@1)", "recall@*"], "level": 0.9},
    "without limits": {"intervals": "none"},
    "other limits": {"proportion_interval": "clopper_pearson"},
}
BODIES = {
    **{name: evaluation(input=given) for name, given in INPUTS.items()},
    **{name: evaluation(input=INPUTS["two classes"], options=given) for name, given in OPTIONS.items()},
}


@pytest.fixture(scope="module")
def whole(client: httpx.Client) -> dict[str, Json]:
    """What each is answered in full."""
    return {name: client.post("/v1/evaluations", json=body).json() for name, body in BODIES.items()}


def check_kept(client: httpx.Client, brief: Json, whole: Json) -> None:
    """The headline is that of the report, and what is saved is the same."""
    assert set(brief) == {"id", "headline"}
    assert brief["headline"] == whole["headline"]
    kept = client.get(f"/v1/evaluations/{brief['id']}").json()
    own = ("id", "created_at")
    assert {name: value for name, value in kept.items() if name not in own} == {
        name: value for name, value in whole.items() if name not in own
    }
    items = client.get("/v1/evaluations", params={"limit": 200}).json()["items"]
    metrics = {item["id"]: item["metrics"] for item in items}
    assert metrics[brief["id"]] == metrics[whole["id"]]


def test_a_batch_that_is_answered_briefly_keeps_the_same(client: httpx.Client, whole: dict[str, Json]) -> None:
    sent: dict[str, Any] = {"evaluations": list(BODIES.values())}
    reply = client.post("/v1/evaluations/batch", json=sent, headers=BRIEF)
    assert reply.status_code == 207, reply.text
    check_json(reply)
    assert (reply.headers["preference-applied"], reply.headers["vary"]) == ("return=minimal", "Prefer")
    for (name, full), item in zip(whole.items(), reply.json()["items"], strict=True):
        if name == "no input":
            assert (item["status"], item["problem"]["code"]) == (422, full["code"])
        else:
            assert item["status"] == 201, (name, item)
            check_kept(client, item["evaluation"], full)
    in_full = client.post("/v1/evaluations/batch", json={"evaluations": [BODIES["matrix"]]})
    assert "preference-applied" not in in_full.headers
    assert set(in_full.json()["items"][0]["evaluation"]) == set(whole["matrix"])


@pytest.mark.parametrize("name", ["matrix", "folds", "probabilities", "requested"])
def test_one_that_is_answered_briefly_keeps_the_same(client: httpx.Client, whole: dict[str, Json], name: str) -> None:
    reply = client.post("/v1/evaluations", json=BODIES[name], headers=BRIEF)
    assert reply.status_code == 201, reply.text
    check_kept(client, reply.json(), whole[name])


def test_what_is_not_kept_is_answered_briefly_too(client: httpx.Client, whole: dict[str, Json]) -> None:
    sent = {"evaluations": [BODIES["matrix"]]}
    reply = client.post("/v1/evaluations/batch?store=false", json=sent, headers=BRIEF)
    (item,) = reply.json()["items"]
    assert item == {"status": 200, "evaluation": {"id": None, "headline": whole["matrix"]["headline"]}}


def test_a_batch_sent_again_is_answered_briefly(client: httpx.Client) -> None:
    sent = {"evaluations": [BODIES["matrix"], BODIES["two classes"]]}
    first, again = (
        client.post("/v1/evaluations/batch", json=sent, headers=BRIEF | {"Idempotency-Key": "brief"}) for _ in range(2)
    )
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json() == first.json()
