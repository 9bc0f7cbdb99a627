"""Quotas of projects: what is used is counted, what is used up is refused, and other projects notice nothing."""

from datetime import UTC, datetime, timedelta

import httpx
import pytest
from pydantic import SecretStr

from app.domain.operations import Usage
from app.settings import Authentication, Settings
from tests.api.answers import check_json, check_problem, check_shape, evaluation
from tests.api.jobs import result
from tests.serving import Served


def limited(database_url: str, **limits: float) -> Settings:
    return Settings.model_validate(
        {"database_url": SecretStr(database_url), "authentication": Authentication.off, **limits}
    )


def client_of(url: str, project: str) -> httpx.Client:
    return httpx.Client(base_url=url, timeout=60, headers={"X-Prevail-Project": project})


def test_evaluations_of_a_day_are_limited_over_restarts(database_url: str) -> None:
    settings = limited(database_url, quota_evaluations=4)
    with Served(settings) as url, client_of(url, "few") as client:
        body = evaluation()
        assert client.post("/v1/evaluations", json=body).status_code == 201
        batch = client.post("/v1/evaluations/batch", json={"evaluations": [body, body]})
        assert batch.status_code == 207
        # What is refused or keeps nothing is not counted.
        assert client.post("/v1/evaluations", json={}).status_code == 422
        assert client.post("/v1/metrics/compute", json={"input": body["input"]}).status_code == 200
    with Served(settings) as url, client_of(url, "few") as client:
        used = client.get("/v1/usage")
        check_json(used)
        check_shape(used, Usage)
        assert used.json()["evaluations"] == {"used": 3, "limit": 4}
        assert used.json()["bytes"]["used"] > 0
        assert used.json()["bytes"]["limit"] is None
        assert client.post("/v1/evaluations", json=body).status_code == 201
        reply = client.post("/v1/evaluations", json=body)
        problem = check_problem(reply, 429, "project_quota_used_up")
        midnight = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
        assert f"used 4 of 4 evaluations of this day (UTC), which ends at {midnight.isoformat()}" in problem["detail"]
        assert 0 < int(reply.headers["Retry-After"]) <= 86_400
        assert reply.headers["RateLimit-Policy"].endswith("q=4;w=86400")
        # What keeps no evaluation goes on, and so do others.
        assert client.post("/v1/metrics/compute", json={"input": body["input"]}).status_code == 200
        for no in ("false", "False", "0"):
            assert client.post("/v1/evaluations", params={"store": no}, json=body).status_code == 200
        two = [one["id"] for one in client.get("/v1/evaluations", params={"limit": 2}).json()["items"]]
        merged = client.post("/v1/evaluations/merge", json={"evaluations": two})
        check_problem(merged, 429, "project_quota_used_up")
        assert len(client.get("/v1/evaluations").json()["items"]) == 4
        with client_of(url, "others") as other:
            assert other.post("/v1/evaluations", json=body).status_code == 201


def test_what_was_kept_is_answered_again_when_a_quota_is_used_up(database_url: str) -> None:
    """Also to whoever never got the first answer."""
    with Served(limited(database_url, quota_evaluations=3)) as url, client_of(url, "again") as client:
        batch = {"evaluations": [evaluation(), evaluation()]}
        for path, body in (("", evaluation()), ("/batch", batch)):
            first, again = (
                client.post(f"/v1/evaluations{path}", json=body, headers={"Idempotency-Key": f"key{path}"})
                for _ in range(2)
            )
            assert first.is_success
            assert (again.status_code, again.content) == (first.status_code, first.content)
        for headers in ({}, {"Idempotency-Key": "another"}):
            reply = client.post("/v1/evaluations", json=evaluation(), headers=headers)
            check_problem(reply, 429, "project_quota_used_up")


def test_bytes_of_a_day_are_limited(database_url: str) -> None:
    with Served(limited(database_url, quota_bytes=100)) as url, client_of(url, "bytes") as client:
        body = evaluation()
        assert client.post("/v1/evaluations", json=body).status_code == 201
        reply = client.post("/v1/evaluations", json=body)
        problem = check_problem(reply, 507, "storage_quota_used_up")
        assert "of 100 bytes of this day" in problem["detail"]
        assert int(reply.headers["Retry-After"]) > 0
        assert client.get("/v1/usage").json()["evaluations"] == {"used": 1, "limit": None}


def test_seconds_of_arithmetic_are_limited_and_jobs_count(database_url: str) -> None:
    with Served(limited(database_url, quota_compute_seconds=1e-9)) as url, client_of(url, "busy") as client:
        body = evaluation()
        later = client.post("/v1/evaluations", json=body, headers={"Prefer": "respond-async"})
        assert later.status_code == 202, later.text
        assert result(client, later.json()).status_code == 200
        problem = check_problem(
            client.post("/v1/metrics/compute", json={"input": body["input"]}), 429, "project_quota_used_up"
        )
        assert "1e-09 compute seconds" in problem["detail"]
        used = client.get("/v1/usage").json()
        assert used["evaluations"]["used"] == 1
        assert used["compute_seconds"]["used"] > 0


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return limited(database_url)


def test_without_limits_use_is_counted_all_the_same(client: httpx.Client) -> None:
    before = client.get("/v1/usage").json()["evaluations"]["used"]
    assert client.post("/v1/evaluations", json=evaluation()).status_code == 201
    assert client.get("/v1/usage").json()["evaluations"] == {"used": before + 1, "limit": None}


def test_bytes_are_those_of_what_is_kept(client: httpx.Client) -> None:
    def used() -> int:
        return int(client.get("/v1/usage").json()["bytes"]["used"])

    before, key = used(), {"Idempotency-Key": "once"}
    made = client.post("/v1/evaluations", json=evaluation(), headers=key)
    kept = used()
    assert kept - before == int(made.request.headers["content-length"])
    again = client.post("/v1/evaluations", json=evaluation(), headers=key)
    assert again.headers["idempotent-replayed"] == "true"
    later = {"Idempotency-Key": "later", "Prefer": "respond-async"}
    taken = client.post("/v1/evaluations", json=evaluation(), headers=later)
    kept += int(taken.request.headers["content-length"])
    again = client.post("/v1/evaluations", json=evaluation(), headers=later)
    assert (again.status_code, again.headers["idempotent-replayed"]) == (202, "true")
    assert client.post("/v1/evaluations?store=false", json=evaluation()).status_code == 200
    assert client.post("/v1/evaluations/batch", json={"evaluations": [{}]}).status_code == 207
    assert used() == kept
