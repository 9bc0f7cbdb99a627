"""What tests of the HTTP interface share: small requests, and the demands that every answer has to meet."""

import json
import re
from collections.abc import Collection
from typing import Any

import httpx
import pytest

from app.api.answers import answer_model

Json = dict[str, Any]

FOUR_CLASSES = [[800, 0, 0, 0], [0, 600, 0, 0], [0, 0, 500, 0], [40, 24, 20, 16]]
PROBLEM_MEMBERS = {"type", "title", "status", "detail", "instance", "code"}
# Metrics with a cutoff are named as expressions.
_SNAKE_CASE = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*(\(k=\d+\))?")
# Members whose own members are named by the caller: labels, tags, expressions.
# Members that callers name, of some of them also what is inside.
_NAMED_TWICE = {"requested", "share_of_class", "share_of_decision"}
_NAMED_BY_CALLERS = {
    "per_class",
    "prevalence",
    "intervals",
    "intervals_at_balanced_prevalence",
    "interpretation",
    "tags",
    "ignored",
    "share",
    *_NAMED_TWICE,
}


def evaluation(*, model: str = "m", dataset: str = "d", **members: Any) -> Json:
    """A request that can be kept."""
    return {
        "model": {"name": model},
        "dataset": {"name": dataset},
        "input": {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 4]]},
        **members,
    }


def matrix_input(matrix: list[list[Any]], **members: Any) -> Json:
    return {"kind": "confusion_matrix", "matrix": matrix, **members}


def compute(client: httpx.Client, source: Json, **options: Any) -> Json:
    """The report of an input that is not saved."""
    reply = client.post("/v1/metrics/compute", json={"input": source, "options": options})
    assert reply.status_code == 200, reply.text
    check_json(reply)
    answer: Json = reply.json()
    return answer


def create(client: httpx.Client, body: Json) -> Json:
    """An evaluation that is kept."""
    reply = client.post("/v1/evaluations", json=body)
    assert reply.status_code == 201, reply.text
    check_json(reply)
    answer: Json = reply.json()
    return answer


def check_shape(answer: httpx.Response | Json, shape: Any) -> None:
    """An answer has the shape that the documentation shows."""
    content = answer.content if isinstance(answer, httpx.Response) else json.dumps(answer)
    answer_model(shape).model_validate_json(content)


def check_problem(reply: httpx.Response, status: int, code: str) -> Json:
    """An error has one shape, whatever it is."""
    assert reply.status_code == status, reply.text
    assert reply.headers["content-type"] == "application/problem+json"
    problem: Json = reply.json()
    assert set(problem) >= PROBLEM_MEMBERS
    assert problem["code"] == code
    assert problem["status"] == status
    assert problem["type"] == f"/problems/{code}"
    assert problem["instance"] == f"urn:request:{reply.headers['x-request-id']}"
    assert problem["title"]
    # One line of words for people, nothing of the inside.
    assert 5 <= len(problem["detail"]) < 1000
    assert "Traceback" not in reply.text
    assert "app/" not in reply.text
    for fault in problem.get("errors", []):
        assert ("pointer" in fault) != ("parameter" in fault)
        assert fault["code"]
        assert fault["detail"]
    return problem


def refused(client: httpx.Client, source: Json, **members: Any) -> Json:
    """The one fault for which an input is refused."""
    reply = client.post("/v1/evaluations", json=evaluation(input=source, **members))
    problem = check_problem(reply, 422, reply.json().get("code", ""))
    assert len(problem["errors"]) == 1, problem
    fault: Json = problem["errors"][0]
    return fault


def count_stored(client: httpx.Client) -> tuple[int, int, int]:
    """How many evaluations, models and datasets there are."""
    found = []
    for path in ("/v1/evaluations", "/v1/models", "/v1/datasets"):
        reply = client.get(path, params={"limit": 200})
        assert reply.status_code == 200
        assert reply.json()["next_cursor"] is None, "too many for this way of counting"
        found.append(len(reply.json()["items"]))
    return found[0], found[1], found[2]


def check_json(reply: httpx.Response, *, named: Collection[str] = ()) -> None:
    """Strict JSON (no NaN, no Infinity) with members named in snake_case, but for those of ``named`` members."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} on the wire")

    answer = json.loads(reply.content, parse_constant=refuse)
    assert reply.headers["content-type"] in ("application/json", "application/problem+json")
    for name in _member_names(answer, _NAMED_BY_CALLERS | set(named)):
        assert _SNAKE_CASE.fullmatch(name), name


def _member_names(value: Any, named: Collection[str]) -> set[str]:
    found, left = set[str](), [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            found.update(one)
            for name, member in one.items():
                if name not in named or not isinstance(member, dict):
                    left.append(member)
                elif name not in _NAMED_TWICE:
                    left.extend(member.values())
        elif isinstance(one, list):
            left.extend(one)
    return found


def same_numbers(found: Any, expected: Any, where: str = "", *, rel: float = 1e-12) -> None:
    """Check that answers are equal, numbers to what another order of the same sums may change."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for name in expected:
            same_numbers(found[name], expected[name], f"{where}/{name}", rel=rel)
    elif isinstance(expected, list):
        assert len(found) == len(expected), where
        for place, (one, other) in enumerate(zip(found, expected, strict=True)):
            same_numbers(one, other, f"{where}/{place}", rel=rel)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=rel, abs=1e-12), where
    else:
        assert found == expected, where
