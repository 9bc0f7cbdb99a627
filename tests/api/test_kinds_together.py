"""Kinds of input that are more than a matrix: compared, gated and ranked without anybody naming a metric of classes."""

from typing import Any

import httpx
import pytest

from tests.api.answers import create, evaluation

KINDS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "multilabel": (
        {"y_true": [["a"], ["a", "b"], ["c"], [], ["b"]], "y_pred": [["a"], ["a", "b"], ["c"], ["a"], ["b"]]},
        {"y_true": [["a"], ["a", "b"], ["c"], [], ["b"]], "y_pred": [["b"], ["a"], ["c"], ["a"], []]},
    ),
    "clustering": (
        {"y_true": [0, 0, 0, 1, 1, 1, 2, 2, 2], "y_pred": [0, 0, 0, 1, 1, 1, 2, 2, 1]},
        {"y_true": [0, 0, 0, 1, 1, 1, 2, 2, 2], "y_pred": [0, 1, 0, 1, 2, 1, 2, 0, 1]},
    ),
    "ranking": (
        {"query_ids": [1, 1, 1, 2, 2, 3, 3], "relevance": [2, 1, 0, 1, 0, 1, 0], "scores": [3, 2, 1, 2, 1, 2, 1]},
        {"query_ids": [1, 1, 1, 2, 2, 3, 3], "relevance": [2, 1, 0, 1, 0, 1, 0], "scores": [1, 2, 3, 2, 1, 1, 2]},
    ),
    "sets": (
        {"y_true": [["a"], ["a", "b"], ["c"], [], ["b"]], "y_pred": [["a"], ["a", "b"], ["c"], ["a"], ["b"]]},
        {"y_true": [["a"], ["a", "b"], ["c"], [], ["b"]], "y_pred": [["b"], ["a"], ["c"], ["a"], []]},
    ),
}
BEST = {
    "multilabel": "subset_accuracy",
    "clustering": "adjusted_rand",
    "ranking": "ndcg_at_k(k=10)",
    "sets": "samples_f1",
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def runs(client: httpx.Client, kind: str) -> list[str]:
    made = []
    for place, source in enumerate(KINDS[kind]):
        ids = {} if kind == "ranking" else {"sample_ids": list(range(len(source["y_true"])))}
        body = evaluation(model=f"{kind}-{place}", dataset=kind) | {"input": {"kind": kind, **ids, **source}}
        made.append(str(create(client, body)["id"]))
    return made


def test_compared_by_what_is_looked_at_first(client: httpx.Client, kind: str, runs: list[str]) -> None:
    reply = client.post("/v1/comparisons", json={"evaluations": runs, "draws": 200})
    assert reply.status_code == 201, reply.text
    answer, headline = reply.json(), client.get(f"/v1/evaluations/{runs[0]}?fields=headline").json()["headline"]
    assert set(answer["metrics"]) == set(headline["metrics"])
    assert answer["design"]["paired"] is True
    found = answer["metrics"][BEST[kind]]
    assert found["best"] == runs[0]
    assert found["differences"][0]["difference"] > 0
    text = client.get(f"/v1/comparisons/{answer['id']}", headers={"Accept": "text/plain"}).text
    assert f"{kind}-0 against {kind}-1 on {kind}" in text


def test_judged_by_a_gate(client: httpx.Client, kind: str, runs: list[str]) -> None:
    rules = [{"metric": BEST[kind], "min": 0.01, "bound": "value"}, {"metric": BEST[kind], "better_than": "baseline"}]
    client.put(f"/v1/gates/of-{kind}", json={"rules": rules}).raise_for_status()
    reply = client.post(f"/v1/gates/of-{kind}/checks", json={"evaluation": runs[0], "baseline": runs[1]})
    assert reply.status_code == 201, reply.text
    value, difference = reply.json()["results"]
    assert (value["verdict"], difference["verdict"] in ("pass", "inconclusive")) == ("pass", True)
    assert difference["value"] > 0


def test_ranked(client: httpx.Client, kind: str, runs: list[str]) -> None:
    board = client.get("/v1/leaderboard", params={"dataset": kind, "metric": BEST[kind]}).json()
    assert [line["model"]["name"] for line in board["items"]] == [f"{kind}-0", f"{kind}-1"]
    assert runs[0] in {line["evaluation"] for line in board["items"]}
