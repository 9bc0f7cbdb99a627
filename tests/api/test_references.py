"""Evaluations by what they are of, wherever an id is asked for."""

from typing import Any

import httpx
import pytest

from tests.api.answers import Json, check_problem, create, evaluation

DATA = {"name": "referred"}


@pytest.fixture(scope="module")
def kept(client: httpx.Client) -> dict[str, str]:
    """Three runs, of which two are of one model version, the later one tagged."""

    def one(model: str, version: str, matrix: list[list[int]], **members: Any) -> str:
        body = evaluation(**members)
        body |= {"model": {"name": model, "version": version}, "dataset": DATA}
        body["input"] = {"kind": "confusion_matrix", "matrix": matrix}
        return str(create(client, body)["id"])

    return {
        "old": one("rf", "7", [[50, 10], [20, 40]]),
        "new": one("rf", "7", [[55, 5], [20, 40]], tags={"stage": "candidate"}),
        "champion": one("gbm", "2", [[50, 10], [10, 50]], tags={"stage": "champion"}),
    }


def compare(client: httpx.Client, *runs: Any, **members: Any) -> httpx.Response:
    return client.post("/v1/comparisons", json={"evaluations": list(runs), "metrics": ["accuracy"], **members})


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ({"model": {"name": "rf"}}, "new"),
        ({"model": {"name": "rf", "version": "7"}, "dataset": DATA}, "new"),
        ({"tags": {"stage": "champion"}}, "champion"),
        ({"tags": {"stage": "candidate"}, "model": {"name": "rf"}}, "new"),
    ],
)
def test_the_latest_that_matches(client: httpx.Client, kept: dict[str, str], reference: Json, found: str) -> None:
    reply = compare(client, reference, kept["old"], baseline=kept["old"])
    assert reply.status_code == 201, reply.text
    answer = reply.json()
    assert [run["id"] for run in answer["evaluations"]] == [kept[found], kept["old"]]
    assert answer["baseline_id"] == kept["old"]


def test_a_gate_takes_references(client: httpx.Client, kept: dict[str, str]) -> None:
    client.put("/v1/gates/referring", json={"rules": [{"metric": "accuracy", "not_worse_than": "baseline"}]})
    body = {"evaluation": {"tags": {"stage": "candidate"}}, "baseline": {"tags": {"stage": "champion"}}}
    answer = client.post("/v1/gates/referring/checks", json=body).json()
    assert answer["evaluation"]["id"] == kept["new"]
    assert answer["baseline"]["id"] == kept["champion"]


def test_a_baseline_by_reference_is_one_of_the_runs(client: httpx.Client, kept: dict[str, str]) -> None:
    answer = compare(client, kept["new"], kept["champion"], baseline={"model": {"name": "gbm"}}).json()
    assert answer["baseline_id"] == kept["champion"]
    outside = compare(client, kept["old"], kept["champion"], baseline={"model": {"name": "rf"}})
    problem = check_problem(outside, 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/baseline"


def test_nothing_matches(client: httpx.Client, kept: dict[str, str]) -> None:
    reference = {"model": {"name": "rf", "version": "9"}, "dataset": DATA, "tags": {"stage": "none"}}
    problem = check_problem(compare(client, kept["old"], reference), 404, "not_found")
    assert problem["errors"][0]["pointer"] == "/evaluations/1"
    assert problem["detail"] == "there is no evaluation of model rf 9, dataset referred, tag stage:none"


def test_two_names_of_one_run(client: httpx.Client, kept: dict[str, str]) -> None:
    problem = check_problem(compare(client, kept["new"], {"model": {"name": "rf"}}), 422, "invalid_input")
    assert problem["errors"][0]["pointer"] == "/evaluations/1"


@pytest.mark.parametrize(
    ("reference", "pointer"),
    [
        ({}, "/evaluations/1"),
        ({"model": {}}, "/evaluations/1/model/name"),
        ({"model": {"name": ""}}, "/evaluations/1/model/name"),
        ({"models": {"name": "rf"}}, "/evaluations/1/models"),
        ({"tags": {}}, "/evaluations/1"),
        ("rf", "/evaluations/1"),
        (7, "/evaluations/1"),
    ],
)
def test_what_is_no_reference(client: httpx.Client, kept: dict[str, str], reference: Any, pointer: str) -> None:
    problem = check_problem(compare(client, kept["old"], reference), 422, "invalid_request")
    assert problem["errors"][0]["pointer"] == pointer
