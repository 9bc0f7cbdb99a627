"""Every way in which a request can fail has one shape, tells nothing of the inside, and leaves nothing behind."""

import gzip
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import pytest

from app.api.problems import PROBLEM_TYPES
from app.services.evaluate import evaluations
from tests.api.answers import check_problem, count_stored, create, evaluation, matrix_input
from tests.bank import each

ROUTES = [
    ("POST", "/v1/evaluations"),
    ("POST", "/v1/evaluations/batch"),
    ("POST", "/v1/metrics/compute"),
    ("POST", "/v1/metrics/recommendations"),
    ("POST", "/v1/bounds/h-mean"),
    ("PATCH", "/v1/evaluations/0197e0a0-0000-7000-8000-000000000000"),
]
by_route = each(("method", "path"), ROUTES)


@pytest.fixture(autouse=True, scope="module")
def nothing_is_kept(client: httpx.Client) -> Iterator[None]:
    before = count_stored(client)
    yield
    assert count_stored(client) == before


@by_route
@each("media_type", [None, "", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"])
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


def test_what_a_text_has_to_look_like_is_said_as_what_was_expected(client: httpx.Client) -> None:
    asked = client.post("/v1/consistency-checks", json={"p": 5, "n": 5, "scores": {"accuracy": "much"}})
    (fault,) = check_problem(asked, 422, "invalid_request")["errors"]
    assert fault["detail"].startswith("expected text that matches ^")
    named = client.put("/v1/gates/-", json={"rules": []})
    assert check_problem(named, 422, "invalid_path")["detail"].startswith("name: expected text that matches ^")


@pytest.mark.parametrize("path", ["/v2/evaluations", "/v1/evaluation", "/v1/evaluations/", "/v1/evaluations/a/b"])
def test_addresses_that_are_not_there(client: httpx.Client, path: str) -> None:
    check_problem(client.get(path), 404, "not_found")


ALLOWED = {
    "/v1/evaluations": "GET, HEAD, POST, DELETE, OPTIONS",
    "/v1/evaluations/0197e0a0-0000-7000-8000-000000000000": "GET, HEAD, PATCH, DELETE, OPTIONS",
    "/v1/evaluations/batch": "POST, OPTIONS",
    "/v1/comparisons/across-datasets": "POST, OPTIONS",
    "/v1/metrics": "GET, HEAD, OPTIONS",
    "/v1/metrics/compute": "POST, OPTIONS",
    "/v1/metrics/recommendations": "POST, OPTIONS",
    "/v1/metrics/h_mean": "GET, HEAD, OPTIONS",
    "/v1/bounds/h-mean": "POST, OPTIONS",
    "/v1/gates/g": "GET, HEAD, PUT, DELETE, OPTIONS",
    "/healthz": "GET, HEAD, OPTIONS",
    "/openapi.json": "GET, HEAD, OPTIONS",
}


@pytest.mark.parametrize(("path", "allowed"), ALLOWED.items(), ids=ALLOWED.keys())
def test_methods_that_are_not_there(client: httpx.Client, path: str, allowed: str) -> None:
    for method in ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE"):
        reply = client.request(method, path, json={})
        if method in allowed.split(", "):
            assert reply.status_code != 405
            continue
        assert reply.status_code == 405
        assert reply.headers["allow"] == allowed
        if method != "HEAD":
            check_problem(reply, 405, "method_not_allowed")
    reply = client.options(path)
    assert (reply.status_code, reply.headers["allow"], reply.content) == (204, allowed, b"")


def test_options_of_what_is_not_there(client: httpx.Client) -> None:
    check_problem(client.options("/v1/nothing"), 404, "not_found")


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/v1/evaluations", "/v1/metrics", "/docs", "/v1/nothing"])
def test_head_is_get_without_a_body(client: httpx.Client, path: str) -> None:
    got, headed = client.get(path), client.head(path)
    assert (headed.status_code, headed.content) == (got.status_code, b"")
    for name in ("content-type", "content-length"):
        assert (name == "content-length" and path == "/v1/nothing") or headed.headers[name] == got.headers[name]


# Compressed bodies, and other encodings.

COUNTS = b'{"input": {"kind": "binary_counts", "tp": 1, "fn": 1, "fp": 1, "tn": 1}}'
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    "packed",
    [
        gzip.compress(COUNTS),
        gzip.compress(COUNTS[:20]) + gzip.compress(COUNTS[20:]),
        gzip.compress(COUNTS + b" " * 2_000_000),
        gzip.compress(COUNTS, compresslevel=0),
    ],
    ids=["plain", "two files", "larger", "stored"],
)
def test_bodies_in_gzip(client: httpx.Client, packed: bytes) -> None:
    for name in ("gzip", "GZIP", "x-gzip"):
        reply = client.post("/v1/metrics/compute", content=packed, headers={**JSON, "Content-Encoding": name})
        assert reply.status_code == 200, reply.text
        pieces = (packed[start : start + 7] for start in range(0, len(packed), 7))
        reply = client.post("/v1/metrics/compute", content=pieces, headers={**JSON, "Content-Encoding": name})
        assert reply.json()["input"]["confusion_matrix"] == [[1, 1], [1, 1]]


def test_a_form_in_gzip(client: httpx.Client) -> None:
    form = httpx.Request(
        "POST",
        "http://test",
        data={"evaluation": '{"input": {"kind": "predictions"}}'},
        files={"data": b"y_true,y_pred\na,a\nb,a\n"},
    )
    headers = {"Content-Type": form.headers["content-type"], "Content-Encoding": "gzip"}
    reply = client.post("/v1/metrics/compute", content=gzip.compress(form.read()), headers=headers)
    assert reply.json()["input"]["confusion_matrix"] == [[1, 0], [1, 0]]


@pytest.mark.parametrize(
    "packed",
    [COUNTS, gzip.compress(COUNTS)[:-4], gzip.compress(COUNTS)[:30] + b"\0" * 30, gzip.compress(COUNTS) + b"x"],
    ids=["plain", "cut off", "damaged", "something after it"],
)
def test_what_is_no_gzip(client: httpx.Client, packed: bytes) -> None:
    reply = client.post("/v1/metrics/compute", content=packed, headers={**JSON, "Content-Encoding": "gzip"})
    assert check_problem(reply, 400, "bad_request")["errors"][0]["code"] == "invalid_gzip"
    assert client.get("/healthz").status_code == 200


def test_a_small_body_that_becomes_a_large_one(client: httpx.Client) -> None:
    packed = gzip.compress(b" " * (16 * 1024 * 1024 + 1))
    assert len(packed) < 20_000
    reply = client.post("/v1/metrics/compute", content=packed, headers={**JSON, "Content-Encoding": "gzip"})
    check_problem(reply, 413, "body_too_large")


@pytest.mark.parametrize("encoding", ["br", "deflate", "zstd", "gzip, gzip", "nonsense"])
def test_other_encodings(client: httpx.Client, encoding: str) -> None:
    reply = client.post("/v1/metrics/compute", content=COUNTS, headers={**JSON, "Content-Encoding": encoding})
    assert encoding in check_problem(reply, 415, "unsupported_encoding")["detail"]
    assert reply.headers["accept-encoding"] == "gzip"


def test_a_byte_order_mark(client: httpx.Client) -> None:
    for padding in (b"", b" " * 300_000):
        reply = client.post("/v1/metrics/compute", content=b"\xef\xbb\xbf" + COUNTS + padding, headers=JSON)
        assert reply.status_code == 200


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_of_text(client: httpx.Client, encoding: str) -> None:
    reply = client.post("/v1/metrics/compute", content=COUNTS.decode().encode(encoding), headers=JSON)
    assert "UTF-8" in check_problem(reply, 400, "bad_request")["detail"]


def test_long_answers_are_packed_for_who_asks(client: httpx.Client) -> None:
    for path, packed in (("/openapi.json", True), ("/v1/metrics", True), ("/healthz", False)):
        plain = client.get(path, headers={"Accept-Encoding": "identity"})
        small = client.get(path, headers={"Accept-Encoding": "gzip"})
        assert plain.content == small.content
        assert "content-encoding" not in plain.headers
        assert small.headers.get("content-encoding") == ("gzip" if packed else None)
        if packed:
            assert int(small.headers["content-length"]) < len(plain.content) / 3
            assert plain.headers["vary"] == small.headers["vary"] == "Accept-Encoding"


@each("method", ["GET", "PATCH", "DELETE"])
@each("name", ["abc", "0", "0197e0a0-0000-7000-8000-00000000000", "%00", "é"])
def test_what_is_no_identifier(client: httpx.Client, method: str, name: str) -> None:
    reply = client.request(method, f"/v1/evaluations/{name}", json={"tags": {}} if method == "PATCH" else None)
    assert check_problem(reply, 422, "invalid_path")["errors"][0]["parameter"] == "identifier"


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

    monkeypatch.setattr(evaluations, "made_id", fail)


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


@pytest.fixture(params=[MemoryError(SECRET), RuntimeError("can't start new thread")], ids=str)
def without_memory(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> None:
    def fail(*_: Any, **__: Any) -> Any:
        raise request.param

    monkeypatch.setattr(evaluations, "made_id", fail)


@pytest.mark.usefixtures("without_memory")
def test_without_memory_is_for_the_moment(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> None:
    reply = client.post("/v1/evaluations", json=evaluation())
    check_problem(reply, 503, "unavailable")
    assert int(reply.headers["retry-after"]) > 0
    assert SECRET not in reply.text
    assert [record.exc_info for record in caplog.records if record.name == "prevail.api"]
    items = client.post("/v1/evaluations/batch", json={"evaluations": [evaluation()]}).json()["items"]
    assert [item["status"] for item in items] == [503]


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
        b"Host: localhost",
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
    codes = set(re.findall(r'^class \w+\(\w+, code="(\w+)"\)', (app / "domain" / "errors.py").read_text(), re.M))
    assert len(codes) > 30
    for path in (app / "api").rglob("*.py"):
        text = path.read_text()
        codes |= set(re.findall(r'\bcode="(\w+)"', text))
        codes |= set(re.findall(r'_retry\(\s*"(\w+)"', text))
    assert codes >= {"not_found", "internal_error", "overloaded", "database_unavailable", "body_too_large"}
    assert codes <= set(PROBLEM_TYPES)


def test_what_is_refused_leaves_nothing(client: httpx.Client) -> None:
    """Of a new model and a new dataset no trace is kept either."""
    name = f"never saved {uuid4()}"
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


def test_all_expressions_that_are_none_are_named_at_once(client: httpx.Client) -> None:
    asked = ["accuracy", "no_such_metric", "recall@Z", "f_beta(beta=-1)", "accuracy"]
    source = {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 4]], "labels": ["A", "B"]}
    reply = client.post("/v1/metrics/compute", json={"input": source, "options": {"metrics": asked}})
    problem = check_problem(reply, 422, "unknown_metric")
    found = [(fault["pointer"], fault["code"]) for fault in problem["errors"]]
    assert found == [
        ("/options/metrics/1", "unknown_metric"),
        ("/options/metrics/2", "unknown_label"),
        ("/options/metrics/3", "invalid_parameter"),
    ]


@pytest.mark.parametrize(
    ("level", "said"), [(95, "expected less than 1, got 95: for 95 % write 0.95"), (-1, "got -1"), (1000, "got 1000")]
)
def test_the_value_that_came_is_said(client: httpx.Client, level: float, said: str) -> None:
    source = {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 4]]}
    reply = client.post("/v1/metrics/compute", json={"input": source, "options": {"level": level}})
    (fault,) = check_problem(reply, 422, "invalid_request")["errors"]
    assert fault["pointer"] == "/options/level"
    assert fault["detail"].endswith(said)
    assert client.get("/v1/leaderboard", params={"dataset": "d", "limit": 1000}).json()["detail"].endswith("got 1000")


def test_faults_that_another_process_finds_are_said_alike(client: httpx.Client) -> None:
    rows = 30_000
    source = {"kind": "predictions", "y_true": ["a", "b"] * rows, "y_pred": ["a", "a", "b", "b"] * (rows // 2)}
    asked = ["no_such_metric", "accuracy", "another"]
    reply = client.post("/v1/metrics/compute", json={"input": source, "options": {"metrics": asked}})
    problem = check_problem(reply, 422, "unknown_metric")
    assert [fault["pointer"] for fault in problem["errors"]] == ["/options/metrics/0", "/options/metrics/2"]
