"""Evaluations that say when they were made, for those who bring them from elsewhere."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from pydantic import SecretStr

from app.settings import Authentication, Settings
from tests.api.answers import Json, check_problem, create, evaluation
from tests.api.generated.kept import PROBABILITIES
from tests.api.jobs import ended, put_aside, result
from tests.api.keys import bearer, make_key
from tests.serving import Served

MOMENT = "2024-01-01T00:00:00Z"
LARGE = {
    "kind": "predictions",
    "y_true": [index % 2 for index in range(30_000)],
    "y_pred": [index % 3 % 2 for index in range(30_000)],
}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("2024-05-06T07:08:09.123Z", "2024-05-06T07:08:09.123000Z"),
        ("2024-05-06T07:08:09.123456+02:00", "2024-05-06T05:08:09.123000Z"),
        ("2024-05-06 07:08:09-00:30", "2024-05-06T07:38:09Z"),
        ("1970-01-01T00:00:00Z", "1970-01-01T00:00:00Z"),
    ],
)
@pytest.mark.parametrize("source", [None, LARGE], ids=["matrix", "large"])
def test_the_moment_is_that_which_is_given(project: httpx.Client, given: str, kept: str, source: Json | None) -> None:
    body = evaluation(created_at=given) | ({} if source is None else {"input": source})
    made = create(project, body)
    assert datetime.fromisoformat(made["created_at"]) == datetime.fromisoformat(kept)
    read = project.get(f"/v1/evaluations/{made['id']}").json()
    assert read == made


def test_lists_are_in_the_order_of_the_moments(project: httpx.Client) -> None:
    moments = [f"2024-01-0{day}T00:00:00Z" for day in (3, 1, 2)]
    made = [create(project, evaluation(created_at=moment)) for moment in moments]
    now = create(project, evaluation())
    items = project.get("/v1/evaluations").json()["items"]
    assert [item["id"] for item in items] == [now["id"], *(made[place]["id"] for place in (0, 2, 1))]
    found = project.get("/v1/evaluations", params={"created_after": "2024-01-02", "created_before": "2024-01-03"})
    assert [item["id"] for item in found.json()["items"]] == [made[2]["id"]]


def test_a_batch_may_say_it_too(project: httpx.Client) -> None:
    future = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    bodies = [evaluation(created_at=MOMENT), evaluation(created_at=future), evaluation()]
    items = project.post("/v1/evaluations/batch", json={"evaluations": bodies}).json()["items"]
    assert [item["status"] for item in items] == [201, 422, 201]
    assert items[0]["evaluation"]["created_at"].startswith("2024-01-01T00:00:00")
    assert items[1]["problem"]["errors"][0]["pointer"] == "/evaluations/1/created_at"


def test_the_trail_says_when_it_was_written(project: httpx.Client) -> None:
    before = datetime.now(UTC) - timedelta(seconds=1)
    made = create(project, evaluation(created_at=MOMENT))
    (entry,) = project.get("/v1/audit").json()["items"]
    assert entry["object"] == made["id"]
    assert datetime.fromisoformat(entry["at"]) > before


@pytest.mark.parametrize(
    ("moment", "code"),
    [
        ("2999-01-01T00:00:00Z", "in_the_future"),
        ("1969-12-31T23:59:59Z", "too_early"),
        ("1970-01-01T00:00:00+02:00", "too_early"),
        ("yesterday", "wrong_value"),
        ("2024-01-01", "wrong_value"),
        ("2024-01-01T00:00:00", "wrong_value"),
        ("9999-12-31T23:59:59-05:00", "wrong_value"),
        ("0001-01-01T00:00:00+05:00", "wrong_value"),
        (1_700_000_000, "wrong_value"),
        ("1700000000", "wrong_value"),
    ],
)
def test_what_is_no_moment(project: httpx.Client, moment: Any, code: str) -> None:
    refused = "invalid_input" if code == "in_the_future" else "invalid_request"
    problem = check_problem(project.post("/v1/evaluations", json=evaluation(created_at=moment)), 422, refused)
    assert [(fault["pointer"], fault["code"]) for fault in problem["errors"]] == [("/created_at", code)]
    assert project.get("/v1/evaluations").json()["items"] == []


def test_what_is_not_kept_has_no_moment(project: httpx.Client) -> None:
    body = evaluation(created_at=MOMENT)
    for path in ("/v1/evaluations?store=false", "/v1/metrics/compute"):
        problem = check_problem(project.post(path, json=body), 422, "invalid_input")
        assert problem["errors"][0]["code"] == "not_kept"


@pytest.mark.parametrize("source", [None, LARGE], ids=["matrix", "large"])
def test_the_moment_is_kept_where_it_is_answered_later(project: httpx.Client, source: Json | None) -> None:
    body = evaluation(created_at=MOMENT) | ({} if source is None else {"input": source})
    made = result(project, put_aside(project, "/v1/evaluations", body)).json()
    assert datetime.fromisoformat(made["created_at"]) == datetime.fromisoformat(MOMENT)
    assert [item["id"] for item in project.get("/v1/evaluations").json()["items"]] == [made["id"]]


@pytest.fixture(scope="module")
def guarded(database_url: str) -> Iterator[httpx.Client]:
    settings = Settings(database_url=SecretStr(database_url), authentication=Authentication.keys)
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as client:
        yield client


@pytest.mark.parametrize("source", [None, PROBABILITIES], ids=["matrix", "probabilities"])
def test_only_an_admin_may_say_it(guarded: httpx.Client, database_url: str, source: Json | None) -> None:
    body = evaluation(created_at=MOMENT) | ({} if source is None else {"input": source})
    for scope in ("write", "admin"):
        headers = bearer(make_key(database_url, f"moments-{scope}", scope))
        reply = guarded.post("/v1/evaluations", json=body, headers=headers)
        later = ended(guarded, put_aside(guarded, "/v1/evaluations", body, headers=headers), headers=headers)
        batch = guarded.post("/v1/evaluations/batch", json={"evaluations": [body]}, headers=headers).json()["items"][0]
        if scope == "admin":
            assert (reply.status_code, batch["status"], later["status"]) == (201, 201, "succeeded")
        else:
            check_problem(reply, 403, "forbidden")
            assert (batch["status"], batch["problem"]["code"]) == (403, "forbidden")
            assert (later["status"], later["problem"]["code"]) == ("failed", "forbidden")
            assert guarded.get("/v1/evaluations", headers=headers).json()["items"] == []
