"""Keys over HTTP: made, used, rotated, limited; who needs one; what is left of their use."""

import argparse
import asyncio
import re
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import httpx
import pytest
from pydantic import SecretStr

from app.commands import RefusedAtService, add_key_arguments, run_keys, run_keys_at
from app.domain.errors import Faulty
from app.domain.operations import KeyFacts, KeyMade
from app.settings import Authentication, Settings
from app.store.engine import create_engine
from tests.api.answers import check_json, check_problem, check_shape, evaluation
from tests.api.keys import bearer, execute, expire, make_key
from tests.bank import each
from tests.conftest import Template
from tests.serving import Served


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return Settings(
        database_url=SecretStr(database_url),
        authentication=Authentication.keys,
        cors_origins=("https://board.example",),
    )


@pytest.fixture(scope="module")
def admin(database_url: str) -> KeyMade:
    return make_key(database_url, "default", "admin", name="first")


@pytest.fixture(scope="module")
def client(base_url: str, admin: KeyMade) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base_url, timeout=60, headers=bearer(admin)) as opened:
        yield opened


def make(client: httpx.Client, **members: object) -> dict[str, str]:
    reply = client.post("/v1/keys", json={"name": "made", "scopes": ["read"], **members})
    assert reply.status_code == 201, reply.text
    answer: dict[str, str] = reply.json()
    return answer


def test_a_key_is_shown_once(client: httpx.Client, database_url: str) -> None:
    reply = client.post("/v1/keys", json={"name": "ci", "scopes": ["write"]})
    check_json(reply)
    check_shape(reply, KeyMade)
    made = reply.json()
    assert re.fullmatch(r"pv_[0-9a-f]{32}_[A-Za-z0-9_-]{43}", made["key"])
    assert reply.headers["cache-control"] == "no-store"
    read = client.get(reply.headers["location"])
    check_shape(read, KeyFacts)
    assert read.json() == {name: value for name, value in made.items() if name != "key"}
    assert made["prefix"] == made["key"][:35]
    secret = made["key"][36:]
    listed = client.get("/v1/keys").text
    assert made["id"] in listed
    assert secret not in listed
    assert client.get("/v1/models", headers=bearer(made["key"])).status_code == 200
    # Nor is it in the database, in whatever column.
    execute(
        database_url,
        "DO $$ BEGIN ASSERT NOT EXISTS (SELECT FROM api_keys k WHERE k::text LIKE '%" + secret + "%'); END $$",
    )


def test_two_keys_of_one_name_are_two(client: httpx.Client) -> None:
    first, second = make(client, name="twin"), make(client, name="twin")
    assert first["key"] != second["key"]
    assert first["id"] != second["id"]


def test_what_cannot_be_a_key(client: httpx.Client) -> None:
    for body, pointer in (
        ({"scopes": ["read"]}, "/name"),
        ({"name": "x", "scopes": []}, "/scopes"),
        ({"name": "x", "scopes": ["root"]}, "/scopes/0"),
        ({"name": "x", "scopes": ["read"], "project": "No"}, "/project"),
        ({"name": "x", "scopes": ["read"], "expires_at": "2020-01-01T00:00:00Z"}, "/expires_at"),
        ({"name": "x", "scopes": ["read"], "expires_at": "2099-01-01T00:00:00"}, "/expires_at"),
        ({"name": "x", "scopes": ["read"], "expires_at": "9999-12-31T23:59:59-05:00"}, "/expires_at"),
        ({"name": "x", "scopes": ["read"], "rate": "often"}, "/rate"),
        ({"name": "x", "scopes": ["read"], "rate": "5/hour; 0/second"}, "/rate"),
        ({"name": "x", "scopes": ["read"], "daily_quota": 0}, "/daily_quota"),
    ):
        reply = client.post("/v1/keys", json=body)
        assert reply.status_code == 422, body
        assert [one["pointer"] for one in reply.json()["errors"]] == [pointer]


@each(
    ("arguments", "pointer"),
    [
        ("create --scope read --name=", "/name"),
        ("create --scope read --name a\tb", "/name"),
        ("create --scope read --quota 0", "/daily_quota"),
        (f"create --scope read --quota {10**20}", "/daily_quota"),
        ("create --scope read --rate 0/second", "/rate"),
        ("create --scope read --expires 9999-12-31T23:59:59-05:00", "/expires_at"),
        ("rotate 01a22c8a-0ec9-76a4-8e99-884675599db9 --overlap -1", "/overlap_seconds"),
        (f"rotate 01a22c8a-0ec9-76a4-8e99-884675599db9 --overlap {10**12}", "/overlap_seconds"),
    ],
)
def test_the_command_refuses_what_a_service_would(arguments: str, pointer: str) -> None:
    parser = argparse.ArgumentParser()
    add_key_arguments(parser)
    nowhere = create_engine("postgresql+asyncpg://nobody@127.0.0.1:9/none")
    with pytest.raises(Faulty) as refused:
        asyncio.run(run_keys(parser.parse_args(arguments.split(" ")), nowhere))
    assert [fault.pointer for fault in refused.value.faults] == [pointer]


@each(
    ("answer", "said"),
    [
        (
            httpx.Response(301, headers={"Location": "https://prevail.example/"}),
            "answered 301 with something that the service does not send",
        ),
        (
            httpx.Response(200, text="<title>Log in</title>"),
            "answered 200 without the JSON that the service sends",
        ),
        (httpx.ConnectError("refused"), "no answer from http://prevail.example"),
    ],
)
def test_what_is_no_answer_of_a_service_is_told_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, answer: httpx.Response | Exception, said: str
) -> None:
    def send(_: object, request: httpx.Request, **__: object) -> httpx.Response:
        if isinstance(answer, Exception):
            raise answer
        answer.request = request
        return answer

    monkeypatch.setattr(httpx.Client, "send", send)
    parser = argparse.ArgumentParser()
    add_key_arguments(parser)
    with pytest.raises(RefusedAtService, match=said):
        run_keys_at("http://prevail.example", None, parser.parse_args(["list"]))


def test_a_rotated_key_has_another_secret(client: httpx.Client) -> None:
    made = make(client)
    rotated = client.post(f"/v1/keys/{made['id']}/rotations", json={})
    assert rotated.status_code == 201
    assert rotated.headers["cache-control"] == "no-store"
    check_problem(client.get("/v1/models", headers=bearer(made["key"])), 401, "unauthenticated")
    new = rotated.json()["key"]
    assert client.get("/v1/models", headers=bearer(new)).status_code == 200
    third = client.post(f"/v1/keys/{made['id']}/rotations", json={"overlap_seconds": 60}).json()["key"]
    for key, status in ((third, 200), (new, 200), (made["key"], 401)):
        assert client.get("/v1/models", headers=bearer(key)).status_code == status


def test_the_secret_before_ends_with_the_overlap(client: httpx.Client, database_url: str) -> None:
    made = make(client)
    client.post(f"/v1/keys/{made['id']}/rotations", json={"overlap_seconds": 60})
    execute(database_url, "UPDATE api_keys SET previous_until = now() WHERE id = :id", id=made["id"])
    check_problem(client.get("/v1/models", headers=bearer(made["key"])), 401, "unauthenticated")


def test_a_revoked_key_is_refused_at_once_and_stays_in_the_list(client: httpx.Client) -> None:
    made = make(client)
    assert client.get("/v1/models", headers=bearer(made["key"])).status_code == 200
    path = f"/v1/keys/{made['id']}"
    assert client.delete(path).status_code == 204
    check_problem(client.get("/v1/models", headers=bearer(made["key"])), 401, "unauthenticated")
    assert client.get(path).json()["revoked_at"] is not None
    check_problem(client.delete(path), 404, "not_found")
    check_problem(client.post(f"{path}/rotations", json={}), 404, "not_found")


def test_another_worker_refuses_a_revoked_key_within_seconds(client: httpx.Client, database_url: str) -> None:
    made = make(client)
    assert client.get("/v1/models", headers=bearer(made["key"])).status_code == 200
    # As another worker does it, which tells this one nothing.
    execute(database_url, "UPDATE api_keys SET revoked_at = now() WHERE id = :id", id=made["id"])
    begin = time.monotonic()
    while client.get("/v1/models", headers=bearer(made["key"])).status_code == 200:
        assert time.monotonic() - begin < 5
        time.sleep(0.05)


def test_an_expired_key_is_refused_and_gets_no_other_secret(client: httpx.Client, database_url: str) -> None:
    key = make_key(database_url, "default", "read", expires_at=datetime.now(UTC) + timedelta(hours=1))
    assert client.get("/v1/models", headers=bearer(key)).status_code == 200
    expire(database_url, key)
    time.sleep(2.1)
    check_problem(client.get("/v1/models", headers=bearer(key)), 401, "unauthenticated")
    check_problem(client.post(f"/v1/keys/{key.facts.id}/rotations", json={}), 404, "not_found")


def test_the_last_use_is_kept(client: httpx.Client) -> None:
    made = make(client)
    assert client.get(f"/v1/keys/{made['id']}").json()["last_used_at"] is None
    before = datetime.now(UTC) - timedelta(seconds=1)
    client.get("/v1/models", headers=bearer(made["key"]))
    deadline = time.monotonic() + 20
    while (used := client.get(f"/v1/keys/{made['id']}").json()["last_used_at"]) is None:
        assert time.monotonic() < deadline
        time.sleep(0.2)
    assert before < datetime.fromisoformat(used) < datetime.now(UTC) + timedelta(seconds=1)


def test_a_rate_holds(client: httpx.Client) -> None:
    headers = bearer(make(client, rate="3/hour; 1000/day")["key"])
    left = []
    for _ in range(3):
        reply = client.get("/v1/metrics/h_mean", headers=headers)
        assert reply.status_code == 200
        assert reply.headers["ratelimit-policy"] == '"key";q=3;w=3600'
        left.append(int(re.findall(r'"key";r=(\d+);t=\d+', reply.headers["ratelimit"])[0]))
    assert left == [2, 1, 0]
    reply = client.get("/v1/metrics/h_mean", headers=headers)
    check_problem(reply, 429, "rate_limited")
    assert reply.headers["ratelimit"].startswith('"key";r=0;t=')
    assert 0 < int(reply.headers["retry-after"]) <= 7200
    # Each key has a count of its own.
    assert client.get("/v1/metrics/h_mean").status_code == 200


def test_a_quota_holds_over_restarts(client: httpx.Client, settings: Settings) -> None:
    made = make(client, daily_quota=4)
    headers = bearer(made["key"])
    with Served(settings) as other, httpx.Client(base_url=other, headers=headers, timeout=60) as stopped:
        assert [stopped.get("/v1/models").status_code for _ in range(3)] == [200] * 3
    # The other one has written down at its end what it had counted.
    assert client.get("/v1/models", headers=headers).status_code == 200
    reply = client.get("/v1/models", headers=headers)
    check_problem(reply, 429, "quota_used_up")
    assert 0 < int(reply.headers["retry-after"]) <= 86_401


def test_a_quota_begins_anew_each_day(client: httpx.Client, settings: Settings, database_url: str) -> None:
    made = make(client, daily_quota=1)
    headers = bearer(made["key"])
    with Served(settings) as other, httpx.Client(base_url=other, headers=headers, timeout=60) as stopped:
        assert stopped.get("/v1/models").status_code == 200
    execute(database_url, "UPDATE key_usage SET day = day - 1 WHERE key_id = :id", id=made["id"])
    assert client.get("/v1/models", headers=headers).status_code == 200


def test_a_refused_request_keeps_nothing(client: httpx.Client) -> None:
    headers = bearer(make(client, scopes=["write"], rate="1/hour", project="counted")["key"])
    assert client.post("/v1/evaluations", json=evaluation(), headers=headers).status_code == 201
    check_problem(client.post("/v1/evaluations", json=evaluation(), headers=headers), 429, "rate_limited")
    listed = client.get("/v1/evaluations", headers={"X-Prevail-Project": "counted"})
    assert len(listed.json()["items"]) == 1


def test_who_did_what_is_kept(client: httpx.Client) -> None:
    made = make(client, name="writer", scopes=["write"], project="trail")
    headers = {**bearer(made["key"]), "X-Request-ID": "trail-1"}
    run = client.post("/v1/evaluations", json=evaluation(), headers=headers).json()["id"]
    other = client.post("/v1/evaluations", json=evaluation(), headers=headers).json()["id"]
    client.patch(f"/v1/evaluations/{run}", json={"tags": {"a": "b"}}, headers=headers)
    comparison = client.post("/v1/comparisons", json={"evaluations": [run, other]}, headers=headers).json()["id"]
    rules = {"rules": [{"metric": "h_mean", "min": 0.5}]}
    for minimum in (0.5, 0.5, 0.6):
        rules["rules"][0]["min"] = minimum
        client.put("/v1/gates/trail", json=rules, headers=headers)
    check = client.post("/v1/gates/trail/checks", json={"evaluation": run}, headers=headers).json()["id"]
    client.delete("/v1/gates/trail", headers=headers)
    client.delete(f"/v1/evaluations/{run}", headers=headers)
    # What changed nothing leaves no trace.
    client.delete(f"/v1/evaluations/{run}", headers=headers)
    client.post("/v1/evaluations", json={}, headers=headers)

    found, cursor = [], None
    while True:
        page = client.get(
            "/v1/audit",
            params={"limit": 3} | ({} if cursor is None else {"cursor": cursor}),
            headers={"X-Prevail-Project": "trail"},
        ).json()
        found += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break
    assert [(one["action"], one["kind"], one["object"]) for one in reversed(found)] == [
        ("created", "key", made["id"]),
        ("created", "evaluation", run),
        ("created", "evaluation", other),
        ("changed", "evaluation", run),
        ("created", "comparison", comparison),
        ("created", "gate", "trail"),
        ("changed", "gate", "trail"),
        ("created", "check", check),
        ("deleted", "gate", "trail"),
        ("deleted", "evaluation", run),
    ]
    assert {(one["actor"], one["key"], one["request_id"]) for one in found[:-1]} == {("writer", made["id"], "trail-1")}
    assert found[-1]["actor"] == "first"


def test_pages_of_other_origins_may_ask_when_they_are_named(client: httpx.Client) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization, content-type"}
    mine = {"Origin": "https://board.example"}
    allowed = client.options("/v1/evaluations", headers=mine | asked)
    assert allowed.status_code == 200
    assert allowed.headers["access-control-allow-origin"] == "https://board.example"
    assert "access-control-allow-credentials" not in allowed.headers
    other = {"Origin": "https://elsewhere.example"}
    assert client.options("/v1/evaluations", headers=other | asked).status_code == 400
    assert "access-control-allow-origin" not in client.get("/v1/models", headers=other).headers
    for reply in (
        client.get("/v1/models", headers=mine),
        client.get("/v1/models", headers=mine | bearer("nonsense")),
        client.get("/nowhere", headers=mine),
    ):
        assert reply.headers["access-control-allow-origin"] == "https://board.example"
        assert "X-Request-ID" in reply.headers["access-control-expose-headers"]


# --- who needs a key -------------------------------------------------------------------------------------------------


@pytest.fixture
def empty_url(template_database: Template) -> Iterator[str]:
    """A database without any key."""
    name = f"keyless_{time.time_ns()}"
    template_database.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template_database.name}"')
    yield template_database.url(name)
    template_database.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.mark.slow
def test_without_any_key_this_machine_needs_none_until_there_is_one(empty_url: str) -> None:
    settings = Settings(database_url=SecretStr(empty_url))
    assert settings.authentication is Authentication.auto
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as client:
        assert client.post("/v1/evaluations", json=evaluation()).status_code == 201
        named = {"X-Prevail-Project": "other"}
        assert client.get("/v1/models", headers=named).json()["items"] == []
        # One that comes nevertheless is held against what there is.
        check_problem(client.get("/v1/models", headers=bearer("pv_nonsense")), 401, "unauthenticated")
        made = make(client, scopes=["admin"])
        begin = time.monotonic()
        while client.get("/v1/models").status_code == 200:
            assert time.monotonic() - begin < 5
            time.sleep(0.05)
        headers = bearer(made["key"])
        assert len(client.get("/v1/models", headers=headers).json()["items"]) == 1
        # A key that is revoked does not open the service again.
        assert client.delete(f"/v1/keys/{made['id']}", headers=headers).status_code == 204
        time.sleep(2.1)
        check_problem(client.get("/v1/models"), 401, "unauthenticated")


def test_without_any_key_other_machines_are_refused(empty_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.api.deps.is_local", lambda _: False)
    with Served(Settings(database_url=SecretStr(empty_url))) as url, httpx.Client(base_url=url) as client:
        check_problem(client.get("/v1/models"), 401, "unauthenticated")
        check_problem(client.post("/v1/keys", json={"name": "x", "scopes": ["admin"]}), 401, "unauthenticated")
        assert client.get("/healthz").status_code == 200


def test_where_keys_are_demanded_nobody_makes_the_first_over_http(empty_url: str) -> None:
    settings = Settings(database_url=SecretStr(empty_url), authentication=Authentication.keys)
    with Served(settings) as url, httpx.Client(base_url=url) as client:
        check_problem(client.post("/v1/keys", json={"name": "x", "scopes": ["admin"]}), 401, "unauthenticated")


def test_when_nobody_knows_whether_a_key_is_good_nothing_is_done() -> None:
    nowhere = Settings(database_url=SecretStr("postgresql://nobody:secret@127.0.0.1:9/none"))
    token = f"pv_{'0' * 32}_{'a' * 43}"
    with Served(nowhere) as url, httpx.Client(base_url=url, timeout=60) as client:
        for headers in ({}, bearer(token)):
            reply = client.get("/v1/metrics/h_mean", headers=headers)
            check_problem(reply, 503, "database_unavailable")
