"""Filters of comparisons, checks and jobs, members of their items, and comparisons that are removed."""

from typing import Any
from uuid import uuid4

import httpx
import pytest

from tests.api.answers import check_problem
from tests.api.decisions import compare, keep
from tests.api.jobs import LATER

Json = dict[str, Any]
DATA = f"filters {uuid4().hex}"


def items(client: httpx.Client, path: str, **params: Any) -> list[Json]:
    reply = client.get(path, params=params)
    assert reply.status_code == 200, reply.text
    found: list[Json] = reply.json()["items"]
    return found


@pytest.fixture(scope="module")
def runs(client: httpx.Client) -> list[str]:
    mine = uuid4().hex[:6]
    return [
        keep(client, [[90 + step, 10 - step], [5, 15]], f"{mine}-{name}", DATA)
        for step, name in enumerate(("one", "two", "three"))
    ]


def test_comparisons_of_a_run_and_of_a_model(client: httpx.Client, runs: list[str]) -> None:
    first, second = compare(client, runs[0], runs[1]), compare(client, runs[1], runs[2])
    names = [run["model"]["name"] for run in (*first["evaluations"], second["evaluations"][1])]

    def ids(**params: Any) -> list[str]:
        return [one["id"] for one in items(client, "/v1/comparisons", **params)]

    assert ids(evaluation=runs[0]) == [first["id"]]
    assert ids(evaluation=runs[1]) == [second["id"], first["id"]]
    assert ids(evaluation=str(uuid4())) == []
    assert ids(model=names[2]) == [second["id"]]
    assert ids(model=names[0], evaluation=runs[1]) == [first["id"]]
    assert ids(model=names[0], evaluation=runs[2]) == []
    assert ids(model=f"{names[0]}:9") == []
    cursor = client.get("/v1/comparisons", params={"model": names[1], "limit": 1}).json()["next_cursor"]
    assert ids(model=names[1], limit=1, cursor=cursor) == [first["id"]]
    reply = client.get("/v1/comparisons", params={"model": names[2], "cursor": cursor})
    assert check_problem(reply, 422, "invalid_query")["errors"][0]["code"] == "cursor_of_another_list"
    check_problem(client.get("/v1/comparisons", params={"evaluation": "x"}), 422, "invalid_query")


def test_a_version_of_a_model(client: httpx.Client) -> None:
    name, made = uuid4().hex[:8], []
    for version in ("1", "2", "3"):
        body = {
            "model": {"name": name, "version": version},
            "dataset": {"name": DATA},
            "input": {"kind": "confusion_matrix", "matrix": [[9, 1], [int(version), 9]]},
        }
        made.append(client.post("/v1/evaluations", json=body).json()["id"])
    first, second = compare(client, *made[:2]), compare(client, *made[1:])
    for model, expected in ((f"{name}:1", [first]), (f"{name}:2", [second, first]), (name, [second, first])):
        assert [one["id"] for one in items(client, "/v1/comparisons", model=model)] == [one["id"] for one in expected]


def test_a_comparison_is_removed_for_good(client: httpx.Client, runs: list[str]) -> None:
    made = compare(client, runs[0], runs[2])
    path = f"/v1/comparisons/{made['id']}"
    check_problem(client.delete(path, headers={"If-Match": '"nope"'}), 412, "precondition_failed")
    assert client.delete(path).status_code == 204
    check_problem(client.get(path), 404, "not_found")
    check_problem(client.delete(path), 404, "not_found")
    assert client.get(f"/v1/evaluations/{runs[0]}").status_code == 200
    assert ("deleted", made["id"]) in [(one["action"], one["object"]) for one in items(client, "/v1/audit", limit=100)]


def test_a_comparison_says_what_its_sentence_says(client: httpx.Client, runs: list[str]) -> None:
    worst = keep(client, [[40, 60], [15, 5]], "poor", DATA)
    made = compare(client, runs[0], worst, metrics=["accuracy", "h_mean", "recall@1"])
    headline = made["headline"]
    assert headline["metric"] == "accuracy"
    assert (headline["best"], headline["verdict"]) == (runs[0], "better")
    assert headline["better"] == ["accuracy", "h_mean", "recall@1"]
    assert headline["worse"] == headline["same"] == headline["undecided"] == []
    turned = compare(client, worst, runs[0], metrics=["accuracy", "h_mean", "recall@1"])["headline"]
    assert (turned["verdict"], turned["worse"], turned["best"]) == ("worse", headline["better"], runs[0])
    three = compare(client, *runs, metrics=["accuracy"], level=0.8)
    assert three["headline"]["verdict"] is None
    assert {one["level"] for one in three["metrics"]["accuracy"]["differences"]} == {0.8}
    assert {one["verdict"] for one in three["metrics"]["accuracy"]["differences"]} <= {
        "better", "worse", "same", "undecided",
    }  # fmt: skip
    same = compare(client, runs[0], keep(client, [[90, 10], [5, 15]], "twin", DATA), metrics=["accuracy"], rope=0.5)
    assert same["headline"]["same"] == ["accuracy"]


def test_checks_over_all_gates(client: httpx.Client, runs: list[str]) -> None:
    gates = [f"filters-{uuid4().hex[:8]}" for _ in range(2)]
    for gate, least in zip(gates, (0.01, 0.99), strict=True):
        rules = {"rules": [{"metric": "h_mean", "min": least}]}
        assert client.put(f"/v1/gates/{gate}", json=rules).status_code == 201
    checks = [
        client.post(f"/v1/gates/{gate}/checks", json={"evaluation": run}).json() for gate in gates for run in runs[:2]
    ]
    name = checks[0]["evaluation"]["model"]["name"]
    of_model = items(client, "/v1/gate-checks", model=name)
    assert [one["id"] for one in of_model] == [checks[2]["id"], checks[0]["id"]]
    assert [one["gate"]["name"] for one in of_model] == [gates[1], gates[0]]
    passed = items(client, "/v1/gate-checks", model=name, verdict="pass")
    assert [one["id"] for one in passed] == [checks[0]["id"]]
    of_gate = items(client, f"/v1/gates/{gates[1]}/checks", model=name, verdict="fail")
    assert [one["id"] for one in of_gate] == [checks[2]["id"]]
    assert items(client, f"/v1/gates/{gates[1]}/checks", verdict="pass") == []
    (fault,) = check_problem(client.get("/v1/gate-checks", params={"verdict": "good"}), 422, "invalid_query")["errors"]
    assert fault["parameter"] == "verdict"
    cut = items(client, "/v1/gate-checks", fields="gate,verdict", model=name)
    assert [(one["gate"]["name"], one["verdict"]) for one in cut] == [(gates[1], "fail"), (gates[0], "pass")]


def test_jobs_by_status_and_until_they_end(client: httpx.Client) -> None:
    body = {"input": {"kind": "confusion_matrix", "matrix": [[9, 1], [2, 8]]}}
    taken = client.post("/v1/metrics/compute", json=body, headers=LATER)
    assert taken.status_code == 202
    assert int(taken.headers["retry-after"]) >= 1
    path = f"/v1/jobs/{taken.json()['id']}"
    ended = client.get(path, params={"wait": 30})
    assert ended.json()["status"] == "succeeded"
    assert "retry-after" not in ended.headers
    assert taken.json()["id"] in [one["id"] for one in items(client, "/v1/jobs", status="succeeded", limit=200)]
    assert taken.json()["id"] not in [one["id"] for one in items(client, "/v1/jobs", status="failed", limit=200)]
    check_problem(client.get(path, params={"wait": 1000}), 422, "invalid_query")
    check_problem(client.get("/v1/jobs", params={"status": "done"}), 422, "invalid_query")


LISTS = [
    "evaluations",
    "models",
    "datasets",
    "comparisons",
    "gates",
    "gate-checks",
    "jobs",
    "keys",
    "webhooks",
    "audit",
]


@pytest.mark.parametrize("noun", LISTS)
def test_every_list_takes_members(client: httpx.Client, runs: list[str], noun: str) -> None:
    (fault,) = check_problem(client.get(f"/v1/{noun}", params={"fields": "nmae"}), 422, "invalid_query")["errors"]
    assert (fault["parameter"], fault["code"]) == ("fields", "unknown_member")
    member = "name" if noun in ("models", "datasets", "gates", "webhooks", "keys") else "id"
    reply = client.get(f"/v1/{noun}", params={"fields": member, "limit": 3})
    assert reply.status_code == 200, reply.text
    assert all(set(item) == {member} for item in reply.json()["items"])


def test_a_list_is_sorted_by_names_of_other_libraries(client: httpx.Client, runs: list[str]) -> None:
    plain = client.get("/v1/evaluations", params={"sort": "-macro_f1", "dataset": DATA}).json()
    named = client.get("/v1/evaluations", params={"sort": "-f1_score(average=macro)", "dataset": DATA}).json()
    assert named["items"] == plain["items"]
    assert len(plain["items"]) >= 3
    reply = client.get("/v1/evaluations", params={"sort": "f1_score(average=weighted)@x"})
    check_problem(reply, 422, "invalid_query")
