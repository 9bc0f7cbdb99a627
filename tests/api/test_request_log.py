"""Lines about requests, and tags of answers."""

import gzip
import json
import logging
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from app.api.middleware import LOGGER
from app.domain.operations import KeyMade
from app.settings import Authentication, Settings
from tests.api.answers import create, evaluation
from tests.api.keys import bearer, make_key


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return Settings(database_url=SecretStr(database_url), access_log=True, authentication=Authentication.keys)


@pytest.fixture(scope="module")
def key(database_url: str) -> KeyMade:
    return make_key(database_url, "logged", "write")


@pytest.fixture(scope="module")
def client(base_url: str, key: KeyMade) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base_url, timeout=60, headers=bearer(key)) as opened:
        yield opened


class Lines(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@pytest.fixture
def lines() -> Iterator[list[str]]:
    handler, logger = Lines(), logging.getLogger(LOGGER)
    level = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    yield handler.said
    logger.setLevel(level)
    logger.removeHandler(handler)


def last(lines: list[str]) -> dict[str, Any]:
    # The line is written when the answer has been sent, which may be a moment after it was read.
    until = time.monotonic() + 10.0
    while not lines and time.monotonic() < until:
        time.sleep(0.01)
    # One line each, whatever was sent.
    assert "\n" not in lines[-1]
    found: dict[str, Any] = json.loads(lines[-1])
    return found


def test_a_request_is_one_line(client: httpx.Client, key: KeyMade, lines: list[str]) -> None:
    trace = "0af7651916cd43dd8448eb211c80319c"
    headers = {"X-Request-ID": "mine-1", "traceparent": f"00-{trace}-b7ad6b7169203331-01"}
    reply = client.post("/v1/evaluations", json=evaluation(model="payload-m"), headers=headers)
    assert len(lines) == 1
    line = last(lines)
    assert 0 < line.pop("milliseconds") < 60_000
    assert 0 < line.pop("compute_milliseconds") < 60_000
    assert 0 < line.pop("database_milliseconds") < 60_000
    assert datetime.fromisoformat(line.pop("at")) <= datetime.now(UTC)
    assert line == {
        "request": "mine-1",
        "trace": trace,
        "key": str(key.facts.id),
        "project": "logged",
        "method": "POST",
        "route": "/v1/evaluations",
        "path": "/v1/evaluations",
        "status": 201,
        "code": None,
        "bytes_in": len(reply.request.content),
        "bytes_out": int(reply.headers["content-length"]),
    }
    # Neither what was sent nor the key.
    assert "payload-m" not in lines[0]
    assert key.key not in lines[0]
    assert key.key[36:] not in lines[0]


@pytest.mark.parametrize(
    ("path", "status", "code", "route"),
    [
        ("/v1/evaluations/01900000-0000-7000-8000-000000000001", 404, "not_found", "/v1/evaluations/{identifier}"),
        ("/v1/evaluations?x=1", 422, "invalid_query", "/v1/evaluations"),
        ("/v1/keys", 403, "forbidden", "/v1/keys"),
        ("/nowhere", 404, "not_found", None),
        ("/v1/metrics/compute", 405, "method_not_allowed", "/v1/metrics/compute"),
        ("/healthz", 200, None, "/healthz"),
    ],
)
def test_a_refusal_has_its_reason(
    client: httpx.Client, lines: list[str], path: str, status: int, code: str | None, route: str | None
) -> None:
    client.get(path)
    line = last(lines)
    assert (line["status"], line["code"], line["route"]) == (status, code, route)


def test_who_has_no_key_is_in_the_log_too(client: httpx.Client, lines: list[str]) -> None:
    client.get("/v1/models", headers=bearer("pv_nonsense"))
    line = last(lines)
    assert (line["status"], line["code"], line["key"], line["project"]) == (401, "unauthenticated", None, None)
    assert "nonsense" not in lines[-1]


@pytest.mark.parametrize(
    "parent",
    [
        "",
        "nonsense",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
    ],
)
def test_what_is_no_trace_is_passed_over(client: httpx.Client, lines: list[str], parent: str) -> None:
    assert client.get("/healthz", headers={"traceparent": parent}).status_code == 200
    assert last(lines)["trace"] is None


# --- tags ------------------------------------------------------------------------------------------------------------


def test_what_is_known_is_not_sent_again(client: httpx.Client) -> None:
    path = f"/v1/evaluations/{create(client, evaluation())['id']}"
    reply = client.get(path)
    tag = reply.headers["etag"]
    assert tag.startswith('W/"')
    for known in (tag, tag.removeprefix("W/"), f'"other", {tag}', "*"):
        unchanged = client.get(path, headers={"If-None-Match": known})
        assert (unchanged.status_code, unchanged.content) == (304, b"")
        assert unchanged.headers["etag"] == tag
        assert unchanged.headers["x-request-id"]
    assert client.get(path, headers={"If-None-Match": '"other"'}).json() == reply.json()
    assert client.head(path).headers["etag"] == tag
    # Packed or not, it is the same.
    assert client.get(path, headers={"Accept-Encoding": "identity"}).headers["etag"] == tag
    client.patch(path, json={"tags": {"a": "b"}})
    changed = client.get(path, headers={"If-None-Match": tag})
    assert changed.status_code == 200
    assert changed.headers["etag"] != tag


def test_a_tag_opens_nothing(client: httpx.Client, database_url: str) -> None:
    path = f"/v1/evaluations/{create(client, evaluation())['id']}"
    tag = client.get(path).headers["etag"]
    other = bearer(make_key(database_url, "other", "admin"))
    assert client.get(path, headers={**other, "If-None-Match": tag}).status_code == 404
    assert client.get(path, headers={**other, "If-None-Match": "*"}).status_code == 404
    assert client.get(path, headers={**bearer("nonsense"), "If-None-Match": tag}).status_code == 401


def test_only_what_is_read_has_a_tag(client: httpx.Client) -> None:
    reply = client.post("/v1/metrics/compute", json={"input": evaluation()["input"]}, headers={"If-None-Match": "*"})
    assert reply.status_code == 200
    assert "etag" not in reply.headers
    assert "etag" not in client.get("/v1/evaluations/x").headers
    packed = client.get("/v1/metrics", headers={"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["etag"] == client.get("/v1/metrics", headers={"Accept-Encoding": "identity"}).headers["etag"]
    assert len(packed.content) > len(gzip.compress(packed.content))


# --- the list of comparisons -----------------------------------------------------------------------------------------


def test_comparisons_are_listed(client: httpx.Client, database_url: str) -> None:
    mine = bearer(make_key(database_url, "comparing", "write"))
    runs = []
    for model in ("a", "b", "c"):
        for dataset in range(5):
            reply = client.post("/v1/evaluations", json=evaluation(model=model, dataset=f"d{dataset}"), headers=mine)
            runs.append(reply.json()["id"])
    questions = ({"evaluations": runs[:2]}, {"evaluations": runs[2:5], "metrics": ["mcc", "gps(recall@*)"]})
    made = [client.post("/v1/comparisons", json=asked, headers=mine).json() for asked in questions]
    across = {"metric": "h_mean", "models": ["a", "b", "c"], "datasets": [f"d{one}" for one in range(5)]}
    reply = client.post("/v1/comparisons/across-datasets", json=across, headers=mine)
    assert reply.status_code == 201, reply.text
    made.append(reply.json())
    first = client.get("/v1/comparisons", params={"limit": 2}, headers=mine).json()
    second = client.get("/v1/comparisons", params={"limit": 2, "cursor": first["next_cursor"]}, headers=mine).json()
    found = [*first["items"], *second["items"]]
    assert second["next_cursor"] is None
    assert [one["id"] for one in found] == [one["id"] for one in reversed(made)]
    assert [one["kind"] for one in found] == ["across_datasets", "runs", "runs"]
    assert found[0]["metrics"] == ["h_mean"]
    assert sorted(one["id"] for one in found[0]["evaluations"]) == sorted(runs)
    assert found[1]["metrics"] == list(made[1]["metrics"])
    assert [{**one, "n_samples": 12} for one in found[1]["evaluations"]] == made[1]["evaluations"]
    assert found[2]["metrics"] == list(made[0]["metrics"])
    assert found[0]["created_at"] > found[1]["created_at"] > found[2]["created_at"]
