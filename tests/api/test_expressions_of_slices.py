"""Slices in expressions, wherever the service takes a metric."""

from typing import Any

import httpx
import pytest

from tests.api.answers import Json, create, evaluation
from tests.api.shown import SLICED

WORST, ONE = "min(recall@D, by=site, minimum_samples=5)", 'recall@D[site="B"]'
IDS = [*range(20)]
DATASET = "slices-in-expressions"


def sent(**more: Any) -> Json:
    return evaluation(input={**SLICED, "sample_ids": IDS, **more.pop("input", {})}, dataset=DATASET, **more)


@pytest.fixture(scope="module")
def kept(client: httpx.Client) -> str:
    return str(create(client, sent(model="one", options={"metrics": [WORST, ONE]}))["id"])


@pytest.fixture(scope="module")
def better(client: httpx.Client) -> str:
    right = {"y_pred": [*["D", "healthy"] * 10]}
    return str(create(client, sent(model="two", input=right))["id"])


def test_reports_have_them_when_they_are_made_and_when_they_are_read(client: httpx.Client, kept: str) -> None:
    found = client.get(f"/v1/evaluations/{kept}").json()
    assert found["requested"] == {WORST: 0.4, ONE: 0.4}
    assert found["intervals"][ONE]["method"] == "wilson"
    assert [one["evidence"]["smallest"] for one in found["findings"] if one["code"] == "over_slices"] == [{"site": "B"}]
    chosen = client.get(f"/v1/evaluations/{kept}", params={"fields": "values", "metrics": ['recall@D[site="A"]', ONE]})
    assert {name: one["value"] for name, one in chosen.json()["values"].items()} == {
        'recall@D[site="A"]': 1.0,
        ONE: 0.4,
    }


def test_what_is_not_kept_is_said_of_the_samples_then(client: httpx.Client) -> None:
    options = {"metrics": [WORST], "retain": "none"}
    made = create(client, sent(model="bare", options=options))
    again = client.get(f"/v1/evaluations/{made['id']}").json()
    assert again["requested"] == made["requested"] == {WORST: 0.4}
    assert again["intervals"] == made["intervals"]
    chosen = client.get(f"/v1/evaluations/{made['id']}", params={"fields": "values", "metrics": ONE}).json()
    assert "not saved" in chosen["values"][ONE]["reason"]


def test_gates_comparisons_and_leaderboards_have_them(client: httpx.Client, kept: str, better: str) -> None:
    rules = [{"metric": WORST, "min": 0.99}, {"metric": ONE, "not_worse_than": "baseline", "margin": 0.1}]
    gate = client.put("/v1/gates/every-site", json={"rules": rules})
    assert gate.status_code in (200, 201), gate.text
    checked = client.post("/v1/gates/every-site/checks", json={"evaluation": kept, "baseline": better}).json()
    assert checked["verdict"] == "fail"
    assert [one["value"] for one in checked["results"]] == [0.4, pytest.approx(-0.6)]
    both = client.post("/v1/comparisons", json={"evaluations": [kept, better], "metrics": [WORST, ONE, "recall@D"]})
    assert both.status_code == 201, both.text
    assert {name: one["values"] for name, one in both.json()["metrics"].items()} == {
        WORST: [0.4, 1.0],
        ONE: [0.4, 1.0],
        "recall@D": [0.7, 1.0],
    }
    for metric in (WORST, ONE):
        board = client.get("/v1/leaderboard", params={"dataset": DATASET, "metric": metric}).json()
        assert [one["value"] for one in board["items"][:2]] == [1.0, 0.4]
    series = client.get("/v1/models/one/history", params={"dataset": DATASET, "metric": WORST})
    assert series.status_code == 200, series.text
    assert series.json()["items"][0]["metrics"][WORST]["value"] == 0.4


def test_models_are_compared_across_datasets_by_their_worst_slice(client: httpx.Client) -> None:
    names = [f"{DATASET}-{place}" for place in range(5)]
    items = [
        {**sent(model=model, input=right), "dataset": {"name": name}}
        for name in names
        for model, right in (("first", {"y_pred": [*["D", "healthy"] * 10]}), ("second", {}))
    ]
    kept = client.post("/v1/evaluations/batch", json={"evaluations": items})
    assert {item["status"] for item in kept.json()["items"]} == {201}
    body = {"metric": WORST, "models": ["first", "second"], "datasets": names}
    found = client.post("/v1/comparisons/across-datasets", json=body)
    assert found.status_code == 201, found.text
    assert found.json()["average_ranks"] == [1.0, 2.0]
    refused = client.post("/v1/comparisons/across-datasets", json={**body, "metric": "min(recall, by=town)"})
    assert refused.status_code == 422
    assert "got 'town'" in refused.json()["detail"]


def test_where_there_are_no_slices_one_sentence_says_so(client: httpx.Client, kept: str) -> None:
    matrix = {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 7]]}
    for body, words in (
        (evaluation(input=matrix, options={"metrics": ["recall[a=1]"]}), "expected samples with attributes"),
        (sent(options={"metrics": ["min(recall, by=sites)"]}), "did you mean 'site'?"),
    ):
        refused = client.post("/v1/evaluations", json=body)
        assert refused.status_code == 422
        assert refused.json()["errors"][0]["pointer"] == "/options/metrics/0"
        assert words in refused.text
    refused = client.post(f"/v1/evaluations/{kept}/slices", json={"by": ["site"], "metrics": [ONE]})
    assert refused.status_code == 422
    assert "values of slices are not known here" in refused.text
    projected = f"/v1/evaluations/{kept}/projections"
    asked = {"prevalence": {"D": 0.1, "healthy": 0.9}, "metrics": [ONE]}
    found = client.post(projected, json=asked)
    assert found.status_code == 200, found.text
    assert found.json()["metrics"][ONE]["observed"] is not None
    unknown = client.post(projected, json={**asked, "metrics": ["h_mean", "min(recall, by=sites)"]})
    assert unknown.status_code == 422
    assert unknown.json()["errors"][0]["pointer"] == "/metrics/1"
