"""Every way in which a request can fail has one shape, tells nothing of the inside, and leaves nothing behind."""

import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.api.problem_types import PROBLEM_TYPES
from app.services.evaluate import evaluations
from tests.api.answers import check_problem, count_stored, create, evaluation, matrix_input

ROUTES = [
    ("POST", "/v1/evaluations"),
    ("POST", "/v1/evaluations/batch"),
    ("POST", "/v1/metrics/compute"),
    ("POST", "/v1/metrics/recommendations"),
    ("POST", "/v1/bounds/h-mean"),
    ("PATCH", "/v1/evaluations/0197e0a0-0000-7000-8000-000000000000"),
]
by_route = pytest.mark.parametrize(("method", "path"), ROUTES)


@pytest.fixture(autouse=True)
def nothing_is_kept(client: httpx.Client) -> Iterator[None]:
    before = count_stored(client)
    yield
    assert count_stored(client) == before


@by_route
@pytest.mark.parametrize(
    "media_type", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"]
)
def test_bodies_are_announced_as_json(client: httpx.Client, method: str, path: str, media_type: str | None) -> None:
    headers = {} if media_type is None else {"Content-Type": media_type}
    problem = check_problem(client.request(method, path, content=b"{}", headers=headers), 415, "unsupported_media_type")
    assert "application/json" in problem["detail"]


@pytest.mark.parametrize(
    "media_type", ["application/json; charset=utf-8", "APPLICATION/JSON", "application/merge-patch+json"]
)
def test_announcements_that_count(client: httpx.Client, media_type: str) -> None:
    body = b'{"input": {"kind": "binary_counts", "tp": 1, "fn": 1, "fp": 1, "tn": 1}}'
    reply = client.post("/v1/metrics/compute", content=body, headers={"Content-Type": media_type})
    assert reply.status_code == 200


@by_route
def test_no_json(client: httpx.Client, method: str, path: str) -> None:
    headers = {"Content-Type": "application/json"}
    check_problem(client.request(method, path, content=b"{", headers=headers), 400, "bad_request")
    check_problem(client.request(method, path, content=b"", headers=headers), 400, "bad_request")


@by_route
def test_another_form(client: httpx.Client, method: str, path: str) -> None:
    check_problem(client.request(method, path, json={"unheard_of": 1}), 422, "invalid_request")
    check_problem(client.request(method, path, json=[]), 422, "invalid_request")


@by_route
def test_unknown_parameters(client: httpx.Client, method: str, path: str) -> None:
    problem = check_problem(client.request(method, path, params={"dry_run": "1"}, json={}), 422, "invalid_query")
    assert problem["errors"][0]["parameter"] == "dry_run"


@by_route
def test_a_body_that_is_too_large(client: httpx.Client, method: str, path: str) -> None:
    """Announced, or found out while it comes in pieces."""
    limit = 16 * 1024 * 1024
    headers = {"Content-Type": "application/json"}
    announced = client.request(method, path, content=b" " * (limit + 1), headers=headers)
    problem = check_problem(announced, 413, "body_too_large")
    assert str(limit) in problem["detail"]

    def pieces() -> Iterator[bytes]:
        for _ in range(17):
            yield b" " * (1024 * 1024)

    check_problem(client.request(method, path, content=pieces(), headers=headers), 413, "body_too_large")


def test_a_body_of_the_largest_size_passes(client: httpx.Client) -> None:
    labels = "[" + "0,1," * 1_900_000 + "0,1]"
    body = f'{{"input": {{"kind": "predictions", "y_true": {labels}, "y_pred": {labels}}}}}'.ljust(16 * 1024 * 1024)
    headers = {"Content-Type": "application/json"}
    assert client.post("/v1/metrics/compute", content=body.encode(), headers=headers).status_code == 200


@pytest.mark.parametrize(
    "path", ["/", "/v1", "/v2/evaluations", "/v1/evaluation", "/v1/evaluations/", "/v1/evaluations/a/b"]
)
def test_addresses_that_are_not_there(client: httpx.Client, path: str) -> None:
    check_problem(client.get(path), 404, "not_found")


def test_methods_that_are_not_there(client: httpx.Client) -> None:
    for path, allowed in (
        ("/v1/evaluations", "GET, POST"),
        (f"/v1/evaluations/{uuid4()}", "GET, PATCH, DELETE"),
        ("/v1/evaluations/batch", None),
        ("/v1/metrics", "GET"),
        ("/v1/bounds/h-mean", "POST"),
        ("/healthz", "GET"),
    ):
        reply = client.put(path, json={})
        check_problem(reply, 405, "method_not_allowed")
        if allowed:
            assert reply.headers["allow"] == allowed


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize("name", ["abc", "0", "0197e0a0-0000-7000-8000-00000000000", "%00", "é"])
def test_what_is_no_identifier(client: httpx.Client, method: str, name: str) -> None:
    reply = client.request(method, f"/v1/evaluations/{name}", json={"tags": {}} if method == "PATCH" else None)
    assert check_problem(reply, 422, "invalid_query")["errors"][0]["parameter"] == "identifier"


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
def test_what_is_not_there(client: httpx.Client, method: str) -> None:
    identifier = uuid4()
    reply = client.request(method, f"/v1/evaluations/{identifier}", json={"tags": {}} if method == "PATCH" else None)
    assert str(identifier) in check_problem(reply, 404, "not_found")["detail"]


@pytest.mark.parametrize("store", ["maybe", "2", ""])
def test_store_is_yes_or_no(client: httpx.Client, store: str) -> None:
    for path in ("/v1/evaluations", "/v1/evaluations/batch"):
        problem = check_problem(client.post(path, params={"store": store}, json={}), 422, "invalid_query")
        assert problem["errors"][0]["parameter"] == "store"


# Faults of ours.

SECRET = "the password is hunter2"


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evaluating fails in a way that nobody foresaw."""

    def fail(*_: Any, **__: Any) -> Any:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr(evaluations, "new_id", fail)


@pytest.mark.usefixtures("broken")
def test_a_fault_of_ours_tells_nothing(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    reply = client.post("/v1/evaluations", json=evaluation(), headers={"X-Request-ID": "find-me"})
    problem = check_problem(reply, 500, "internal_error")
    assert problem["instance"] == "urn:request:find-me"
    assert SECRET not in reply.text
    assert "ZeroDivisionError" not in reply.text
    (record,) = [record for record in caplog.records if record.name == "prevail.api"]
    assert "find-me" in record.getMessage()
    assert record.exc_info is not None
    assert SECRET in str(record.exc_info[1])
    # The connection is good for further requests.
    for _ in range(3):
        assert client.get("/healthz").status_code == 200
        assert client.post("/v1/evaluations", json=evaluation()).status_code == 500


@pytest.mark.usefixtures("broken")
def test_a_fault_of_ours_in_a_batch_is_that_of_its_item(client: httpx.Client) -> None:
    bad = evaluation(input=matrix_input([[1]]))
    reply = client.post("/v1/evaluations/batch", json={"evaluations": [evaluation(), bad]})
    assert reply.status_code == 207
    assert SECRET not in reply.text
    items = reply.json()["items"]
    assert [item["status"] for item in items] == [500, 422]
    assert items[0]["problem"]["code"] == "internal_error"


# Around every request.


@pytest.mark.parametrize("path", ["/healthz", "/v1/metrics/h_mean", "/nothing", "/v1/evaluations/x"])
def test_request_ids(client: httpx.Client, path: str) -> None:
    assert client.get(path, headers={"X-Request-ID": "a-b:c/1"}).headers["x-request-id"] == "a-b:c/1"
    first, second = (client.get(path).headers["x-request-id"] for _ in range(2))
    assert first != second
    for insane in ("x" * 129, "a b", 'a"b', "<script>"):
        given = client.get(path, headers={"X-Request-ID": insane}).headers["x-request-id"]
        assert re.fullmatch("[0-9a-f]{32}", given)


def test_a_caller_that_hangs_up_does_no_harm(client: httpx.Client, base_url: str) -> None:
    port = int(base_url.rpartition(":")[2])
    lines = [
        b"POST /v1/evaluations HTTP/1.1",
        b"Host: x",
        b"Content-Type: application/json",
        b"Content-Length: 99",
        b"",
        b"{",
    ]
    for count in range(1, len(lines) + 1):
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(b"\r\n".join(lines[:count]))
    assert client.get("/healthz").status_code == 200


def test_every_problem_is_explained(client: httpx.Client) -> None:
    for code in PROBLEM_TYPES:
        reply = client.get(f"/problems/{code}")
        assert reply.status_code == 200
        assert reply.json()["meaning"]
    check_problem(client.get("/problems/unheard_of"), 404, "not_found")


def test_every_code_in_the_source_has_an_explanation() -> None:
    """Codes of problems, as they are written in the domain and in the API."""
    app = Path(__file__).parents[2] / "app"
    used = set(
        re.findall(
            r'^    code: ClassVar\[str\] = "(\w+)"|^    code = "(\w+)"',
            (app / "domain" / "errors.py").read_text(),
            re.M,
        )
    )
    codes = {first or second for first, second in used} - {"error"}
    for path in (app / "api").rglob("*.py"):
        text = path.read_text()
        codes |= set(re.findall(r'\bcode="(\w+)"', text))
        codes |= set(re.findall(r'_retry\(\s*"(\w+)"', text))
    assert codes >= {"not_found", "internal_error", "overloaded", "database_unavailable", "body_too_large"}
    assert codes <= set(PROBLEM_TYPES)


def test_what_is_refused_leaves_nothing(client: httpx.Client) -> None:
    """Of a new model and a new dataset no trace is kept either."""
    name = f"never kept {uuid4()}"
    for members in (
        {"input": matrix_input([[1, 2], [3, -4]])},
        {"options": {"metrics": ["nonsense"]}},
        {"tags": {"a": 1}},
        {"more": 1},
    ):
        reply = client.post("/v1/evaluations", json=evaluation(model=name, dataset=name) | members)
        assert reply.status_code == 422
    for path in ("/v1/models", "/v1/datasets"):
        assert name not in client.get(path, params={"limit": 200}).text


def test_what_is_kept_is_removed_again(client: httpx.Client) -> None:
    """The counting of these tests is itself right: it sees one more, and one less."""
    before = count_stored(client)
    made = create(client, evaluation())
    assert count_stored(client)[0] == before[0] + 1
    client.delete(f"/v1/evaluations/{made['id']}")
