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

USUAL = BEST | {"multilabel": "h_mean"}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def runs(client: httpx.Client, kind: str) -> list[str]:
    made = []
    for place, source in enumerate(KINDS[kind]):
        ids = {} if kind == "ranking" else {"sample_ids": list(range(len(next(iter(source.values())))))}
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
    assert runs[0] in {line["evaluation"]["id"] for line in board["items"]}
    assert board["metric"] == BEST[kind]


@pytest.mark.parametrize("kind", USUAL, indirect=True)
def test_ranked_when_nobody_says_by_what(client: httpx.Client, kind: str, runs: list[str]) -> None:
    """Each kind has a metric of its own for it; that of classes says nothing of clusters, orders and sets."""
    board = client.get("/v1/leaderboard", params={"dataset": kind}).json()
    assert board["metric"] == USUAL[kind]
    assert runs[0] in {line["evaluation"]["id"] for line in board["items"]}
    assert all(line["value"] is not None for line in board["items"])


def test_clusterings_without_classes_are_ranked_by_what_they_have(client: httpx.Client) -> None:
    for model, points in (("near", [0, 2, 3, 5]), ("far", [0, 1, 9, 10])):
        source = {"kind": "clustering", "y_pred": [0, 0, 1, 1], "features": [[point] for point in points]}
        create(client, evaluation(model=model, dataset="points alone") | {"input": source})
    board = client.get("/v1/leaderboard", params={"dataset": "points alone"}).json()
    assert board["metric"] == "silhouette"
    assert [line["model"]["name"] for line in board["items"]] == ["far", "near"]


def test_rankings_that_were_cut_elsewhere_have_the_usual_metric_all_the_same(client: httpx.Client) -> None:
    for model, source in enumerate(KINDS["ranking"]):
        body = evaluation(model=f"cut-{model}", dataset="cut elsewhere")
        create(client, body | {"input": {"kind": "ranking", "cutoffs": [2], **source}})
    board = client.get("/v1/leaderboard", params={"dataset": "cut elsewhere"}).json()
    assert board["metric"] == "ndcg_at_k(k=10)"
    assert [line["model"]["name"] for line in board["items"]] == ["cut-0", "cut-1"]
    assert board["items"][0]["value"] == 1.0
    assert board["items"][1]["value"] < 1.0
