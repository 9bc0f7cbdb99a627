"""Weighted means, the Stolarsky mean, kappa with any weights and named forms, wherever an expression may stand."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.api.answers import Json, check_json, check_problem, compute, matrix_input
from tests.api.decisions import compare, keep

MATRIX = [[80, 15, 5], [10, 30, 10], [2, 3, 15]]
OTHER = [[70, 20, 10], [5, 40, 5], [4, 4, 12]]
RECALLS = (0.8, 0.6, 0.75)
TEXTS = {
    'wmean(recall@*, weights="0:2,1:1,2:1")': (2 * 0.8 + 0.6 + 0.75) / 4,
    'wgps(recall@*, weights="2,1,1")': 4 / (2 / 0.8 + 1 / 0.6 + 1 / 0.75),
    "wgmean(recall@*, weights='2,1,1')": (0.8**2 * 0.6 * 0.75) ** 0.25,
    "stolarsky(recall@0, recall@1, p=2, q=1)": 0.7,
    "mean(recall@0, recall@1)": 0.7,
}
KAPPA = 'weighted_kappa(weights="0,1,1;1,0,1;1,1,0")'
F_BETA = "macro_f_beta(beta=2, form=means)"
TREES = [*TEXTS, KAPPA, F_BETA]


def of(answer: Json, text: str) -> Any:
    return answer["requested"][text]


def test_reports_have_them_with_limits(client: httpx.Client) -> None:
    answer = compute(client, matrix_input(MATRIX), metrics=TREES, intervals="all")
    precision = (80 / 92 + 30 / 48 + 15 / 30) / 3
    recall = sum(RECALLS) / 3
    po, pe = 125 / 170, (100 * 92 + 50 * 48 + 20 * 30) / 170**2
    expected = TEXTS | {
        F_BETA: 5 * precision * recall / (4 * precision + recall),
        KAPPA: (po - pe) / (1 - pe),
    }
    for text, value in expected.items():
        assert of(answer, text) == pytest.approx(value, rel=1e-12)
        limits = answer["intervals"][text]
        assert limits["low"] < value < limits["high"]


@pytest.mark.parametrize("intervals", ["headline", "all"])
def test_equal_weights_are_the_plain_mean_and_have_its_limits(client: httpx.Client, intervals: str) -> None:
    texts = ['wmean(recall@*, weights="3,3,3")', "balanced_accuracy", 'wgps(recall@*, weights="1,1,1")', "h_mean"]
    found = compute(client, matrix_input(MATRIX), metrics=texts, intervals=intervals)["intervals"]
    for weighted, plain in zip(texts[::2], texts[1::2], strict=True):
        assert [found[weighted][end] for end in ("low", "high")] == pytest.approx(
            [found[plain][end] for end in ("low", "high")], rel=1e-14
        )
        assert found[weighted]["method"] == found[plain]["method"]


def test_comparisons_gates_leaderboards_and_projections_take_them(client: httpx.Client) -> None:
    dataset = f"weights-{uuid4().hex[:8]}"
    one, two = keep(client, MATRIX, "one", dataset), keep(client, OTHER, "two", dataset)
    answer = compare(client, one, two, metrics=TREES)
    for text in TREES:
        values = answer["metrics"][text]["values"]
        (difference,) = answer["metrics"][text]["differences"]
        assert difference["difference"] == pytest.approx(values[0] - values[1], rel=1e-9)
        assert difference["low"] < difference["difference"] < difference["high"]
    name = f"gate-{uuid4().hex[:8]}"
    rules = [{"metric": text, "min": 0.01} for text in TREES]
    assert client.put(f"/v1/gates/{name}", json={"rules": rules}).status_code == 201
    checked = client.post(f"/v1/gates/{name}/checks", json={"evaluation": one}).json()
    assert [result["verdict"] for result in checked["results"]] == ["pass"] * len(TREES)
    for text in TREES:
        board = client.get("/v1/leaderboard", params={"dataset": dataset, "metric": text})
        assert board.status_code == 200, board.text
        assert len(board.json()["items"]) == 2
    asked = {"prevalence": {"0": 0.2, "1": 0.3, "2": 0.5}, "metrics": TREES}
    reply = client.post(f"/v1/evaluations/{one}/projections", json=asked)
    check_json(reply, named=("prevalence", "metrics"))
    projected = reply.json()["metrics"]
    assert projected[TREES[0]]["value"] == pytest.approx(TEXTS[TREES[0]])
    assert projected[TREES[-1]]["value"] != pytest.approx(projected[TREES[-1]]["observed"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('wmean(recall@*, weights="1,2")', "expected 3 weights"),
        ('wmean(recall@*, weights="0:1,1:1")', "the class '2' has no weight"),
        ('weighted_kappa(weights="0,1;1,0")', "expected 3 rows"),
    ],
)
def test_wrong_weights_are_a_422_with_a_pointer(client: httpx.Client, text: str, words: str) -> None:
    body = {"input": matrix_input(MATRIX), "options": {"metrics": ["h_mean", text]}}
    problem = check_problem(client.post("/v1/evaluations?store=false", json=body), 422, "invalid_parameter")
    (error,) = problem["errors"]
    assert error["pointer"] == "/options/metrics/1"
    assert words in error["detail"]


def test_a_gate_refuses_what_fits_no_classes(client: httpx.Client) -> None:
    rules = [{"metric": 'wmean(recall@*, weights="1,0")', "min": 0.5}]
    problem = check_problem(client.put("/v1/gates/weights", json={"rules": rules}), 422, "invalid_input")
    (error,) = problem["errors"]
    assert error["pointer"] == "/rules/0/metric"
    assert "weight 2 of wmean is a number above 0" in error["detail"]


def test_the_catalogue_tells_what_functions_take(client: httpx.Client) -> None:
    page = client.get("/v1/metrics").json()
    functions = {one["key"]: one for one in page["combinations"]}
    assert functions["wgps"]["weighted"]
    assert not functions["gps"]["weighted"]
    assert functions["stolarsky"]["parts"] == 2
    assert [one["name"] for one in functions["stolarsky"]["parameters"]] == ["p", "q"]
    kappa = client.get("/v1/metrics/weighted_kappa").json()
    assert [one["matrix_allowed"] for one in kappa["parameters"]] == [True]
