"""POST /v1/evaluations/merge: the answer is that of one POST of everything, and the parts stay."""

from typing import Any

import httpx
import numpy as np
import pytest

from tests.api.answers import create, evaluation

RNG = np.random.default_rng(11)
N = 80
ROWS: dict[str, dict[str, list[Any]]] = {
    "predictions": {
        "y_true": RNG.choice(["a", "b", "c"], N).tolist(),
        "y_pred": RNG.choice(["a", "b", "c"], N).tolist(),
        "group_ids": RNG.integers(0, 12, N).tolist(),
        "sample_weight": RNG.random(N).tolist(),
    },
    "probabilities": {
        "y_true": ["a", "b", *RNG.choice(["a", "b"], N - 4), "a", "b"],
        "probabilities": [[one, 1.0 - one] for one in RNG.random(N)],
        "sample_ids": list(range(N)),
    },
    "multilabel": {
        "y_true": (RNG.random((N, 3)) < 0.4).astype(int).tolist(),
        "scores": RNG.normal(size=(N, 3)).tolist(),
        "labels": ["dog", "cat", "bird"],
    },
    "ranking": {
        "query_ids": [place // 8 for place in range(N)],
        "relevance": RNG.integers(0, 3, N).tolist(),
        "scores": RNG.normal(size=N).tolist(),
    },
    "sets": {"n_true": [3, 4] * (N // 2), "n_predicted": [4, 3] * (N // 2), "n_common": RNG.integers(0, 4, N).tolist()},
    "clustering": {"y_true": RNG.integers(0, 3, N).tolist(), "y_pred": RNG.integers(0, 4, N).tolist()},
}


def kept(client: httpx.Client, kind: str, rows: slice, name: str) -> dict[str, Any]:
    columns = {name: values if name == "labels" else values[rows] for name, values in ROWS[kind].items()}
    source = {"kind": kind, **columns}
    return create(client, evaluation(model=f"{kind}-{name}", dataset=f"merged-{kind}") | {"input": source})


def without_names(answer: dict[str, Any]) -> dict[str, Any]:
    source = {name: fact for name, fact in answer["input"].items() if name != "merged_from"}
    return {**answer, "input": source, "id": None, "created_at": None, "model": None}


@pytest.mark.parametrize("kind", ROWS)
def test_the_answer_is_that_of_everything(client: httpx.Client, kind: str) -> None:
    whole = kept(client, kind, slice(None), "whole")
    parts = [kept(client, kind, rows, name) for rows, name in ((slice(40), "first"), (slice(40, N), "second"))]
    body = {"evaluations": [parts[0]["id"], {"model": {"name": f"{kind}-second"}}], "model": {"name": f"{kind}-both"}}
    reply = client.post("/v1/evaluations/merge", json=body)
    assert reply.status_code == 201, reply.text
    found = reply.json()
    assert found["input"]["merged_from"] == [part["id"] for part in parts]
    assert found["dataset"]["name"] == f"merged-{kind}"
    assert without_names(found) == without_names(whole)
    assert client.get(reply.headers["Location"]).json() == found
    assert [client.get(f"/v1/evaluations/{part['id']}").json() for part in parts] == parts


def test_runs_as_folds_and_a_repeated_request(client: httpx.Client) -> None:
    parts = [kept(client, "predictions", rows, "seeds")["id"] for rows in (slice(40), slice(40, N), slice(20, 60))]
    headers = {"Idempotency-Key": "merged-once"}
    body = {"evaluations": parts, "mode": "folds", "tags": {"of": "seeds"}, "options": {"metrics": ["recall@a"]}}
    first, again = (client.post("/v1/evaluations/merge", json=body, headers=headers) for _ in range(2))
    assert first.status_code == 201, first.text
    assert first.json() == again.json()
    assert again.headers["Idempotent-Replayed"] == "true"
    answer = first.json()
    assert answer["input"]["kind"] == "folds"
    assert "recall@a" in answer["requested"]
    assert (answer["model"]["name"], answer["tags"]) == ("predictions-seeds", {"of": "seeds"})
    text = client.get(f"/v1/evaluations/{answer['id']}", headers={"Accept": "text/plain"}).text
    (row,) = (line.split() for line in text.partition("over the folds")[2].split("\n") if "accuracy" in line.split())
    found = answer["folds"]["accuracy"]
    told = (found["mean"], found["sd"], min(found["values"]), max(found["values"]))
    assert row == ["accuracy", *(f"{one:.3f}" for one in told)]


def test_what_cannot_be_merged_is_refused_and_nothing_is_kept(client: httpx.Client) -> None:
    first = kept(client, "probabilities", slice(40), "refused")["id"]
    second = kept(client, "probabilities", slice(39, N), "refused too")["id"]
    other = kept(client, "clustering", slice(40), "refused")["id"]
    named = {"model": {"name": "never"}, "dataset": {"name": "never"}}
    expected = [
        ([first, second], 422, "/evaluations/1", "duplicate_sample_id"),
        ([first, other], 422, "/evaluations/1", "incomparable_runs"),
        ([first, first], 422, "/evaluations/1", "repeated_evaluation"),
        ([first, "01900000-0000-7000-8000-00000000ffff"], 404, "/evaluations/1", "not_found"),
    ]
    for evaluations, status, pointer, code in expected:
        reply = client.post("/v1/evaluations/merge", json={"evaluations": evaluations, **named})
        problem = reply.json()
        faults = problem.get("errors") or [problem]
        assert (reply.status_code, faults[0]["code"], faults[0].get("pointer")) == (status, code, pointer), reply.text
    unnamed = client.post("/v1/evaluations/merge", json={"evaluations": [first, other]})
    assert unnamed.status_code == 422
    assert client.get("/v1/evaluations", params={"model": "never"}).json()["items"] == []
