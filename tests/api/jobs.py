"""What tests of jobs share."""

import time
from typing import Any

import httpx

from app.domain.operations import Job
from tests.api.answers import Json, check_json, check_shape

LATER = {"Prefer": "respond-async"}
_OPEN = ("queued", "running")


def put_aside(client: httpx.Client, path: str, body: Any = None, **arguments: Any) -> Json:
    """The job of a request that is answered later."""
    headers = LATER | arguments.pop("headers", {})
    reply = client.post(path, json=body, headers=headers, **arguments)
    assert reply.status_code == 202, reply.text
    check_json(reply)
    check_shape(reply, Job)
    job: Json = reply.json()
    assert reply.headers["location"] == f"/v1/jobs/{job['id']}"
    assert reply.headers["preference-applied"] == "respond-async"
    assert (job["status"], job["progress"], job["result"], job["problem"]) == ("queued", 0.0, None, None)
    return job


def read(client: httpx.Client, job: Json, **arguments: Any) -> Json:
    """The job as it is now."""
    reply = client.get(f"/v1/jobs/{job['id']}", **arguments)
    assert reply.status_code == 200, reply.text
    check_shape(reply, Job)
    found: Json = reply.json()
    return found


def ended(client: httpx.Client, job: Json, *, within: float = 180.0, **arguments: Any) -> Json:
    """The job once it has ended."""
    deadline = time.monotonic() + within
    while (found := read(client, job, **arguments))["status"] in _OPEN:
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found


def running(client: httpx.Client, job: Json) -> None:
    """Wait until somebody works on it."""
    deadline = time.monotonic() + 180
    while (found := read(client, job))["status"] == "queued":
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert found["status"] == "running", found


def result(client: httpx.Client, job: Json) -> httpx.Response:
    """What came of a job that succeeded."""
    found = ended(client, job)
    assert found["status"] == "succeeded", found
    assert found["progress"] == 1.0
    assert found["created_at"] <= found["started_at"] <= found["finished_at"]
    reply = client.get(found["result"])
    assert reply.status_code == 200, reply.text
    return reply
