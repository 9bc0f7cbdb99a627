"""Similarity coefficients and some averages: in no report, and everywhere where they are asked for."""

from uuid import uuid4

import httpx
import pytest

from app.kernel.metrics.catalogue import catalogue
from tests.api.answers import compute, matrix_input
from tests.api.decisions import compare, keep

ON_REQUEST = [metric.key for metric in catalogue().metrics if metric.card.on_request]
MATRIX = [[80, 15, 5], [10, 30, 10], [2, 3, 15]]
OTHER = [[70, 20, 10], [5, 40, 5], [4, 4, 12]]


@pytest.mark.parametrize("matrix", [MATRIX, [[40, 10], [5, 45]]])
@pytest.mark.parametrize("intervals", ["headline", "all"])
def test_no_report_has_them_unasked(client: httpx.Client, matrix: list[list[int]], intervals: str) -> None:
    answer = compute(client, matrix_input(matrix), intervals=intervals)
    blocks = [answer["metrics"], *answer["per_class"].values()]
    reported = {key for block in blocks for group in block.values() for key in group}
    assert "jaccard" in reported
    assert not reported & set(ON_REQUEST)
    assert not {name.partition("@")[0] for name in answer["intervals"]} & set(ON_REQUEST)
    assert not {entry["metric"] for entry in answer["undefined"]} & set(ON_REQUEST)


def test_a_report_has_those_that_are_asked_for(client: httpx.Client) -> None:
    texts = ["dispersion@*", "hamann_similarity@1", "forbes_ii@0", "gps(fleiss_levin_paik@*)", "kent_foster_i@2"]
    answer = compute(client, matrix_input(MATRIX), metrics=texts, intervals="all")
    found = answer["requested"]
    assert found["hamann_similarity@1"] == pytest.approx((30 + 102 - 20 - 18) / 170)
    assert found["dispersion@*"]["0"] == pytest.approx((80 * 58 - 12 * 20) / 170**2)
    assert found["forbes_ii@0"] == pytest.approx((80 * 58 - 12 * 20) / min(100 * 78, 92 * 70))
    limits = answer["intervals"]["hamann_similarity@1"]
    assert limits["low"] < found["hamann_similarity@1"] < limits["high"]


def test_what_is_missing_has_a_reason(client: httpx.Client) -> None:
    answer = compute(client, matrix_input([[5, 0], [0, 5]]), metrics=["kent_foster_i@0", "batagelj_bren@0"])
    assert answer["requested"] == {"kent_foster_i@0": None, "batagelj_bren@0": 0.0}
    (entry,) = [entry for entry in answer["undefined"] if entry["metric"] == "kent_foster_i@0"]
    assert entry["code"] == "no_error"


def test_comparisons_gates_leaderboards_and_projections_take_them(client: httpx.Client) -> None:
    dataset, text = f"similar-{uuid4().hex[:8]}", "baroni_urbani_buser_i@1"
    one, two = keep(client, MATRIX, "one", dataset), keep(client, OTHER, "two", dataset)
    (difference,) = compare(client, one, two, metrics=[text])["metrics"][text]["differences"]
    assert difference["low"] < difference["difference"] < difference["high"]
    name = f"gate-{uuid4().hex[:8]}"
    assert client.put(f"/v1/gates/{name}", json={"rules": [{"metric": text, "min": 0.1}]}).status_code == 201
    assert client.post(f"/v1/gates/{name}/checks", json={"evaluation": one}).json()["verdict"] == "pass"
    board = client.get("/v1/leaderboard", params={"dataset": dataset, "metric": text}).json()
    assert len(board["items"]) == 2
    asked = {"prevalence": {"0": 0.2, "1": 0.3, "2": 0.5}, "metrics": [text]}
    projected = client.post(f"/v1/evaluations/{one}/projections", json=asked).json()["metrics"][text]
    assert projected["value"] != pytest.approx(projected["observed"])


def test_the_catalogue_marks_them(client: httpx.Client) -> None:
    page = client.get("/v1/metrics").json()["items"]
    assert {one["key"] for one in page if one["on_request"]} == set(ON_REQUEST)


def test_averages_on_request_are_in_no_list_of_stored_values(client: httpx.Client) -> None:
    """Leaderboards compute them; a list is in the order of what is stored."""
    dataset = f"similar-{uuid4().hex[:8]}"
    keep(client, MATRIX, "one", dataset)
    keep(client, OTHER, "two", dataset)
    answer = compute(client, matrix_input(MATRIX), metrics=["micro_jaccard", "weighted_specificity", "weighted_npv"])
    assert answer["requested"]["micro_jaccard"] == pytest.approx(125 / (340 - 125))
    board = client.get("/v1/leaderboard", params={"dataset": dataset, "metric": "micro_jaccard"}).json()
    assert [item["model"]["name"] for item in board["items"]] == ["one", "two"]
    assert client.get("/v1/evaluations", params={"sort": "-micro_jaccard"}).status_code == 422
    assert client.get("/v1/evaluations", params={"where": "weighted_npv>=0.5"}).status_code == 422
