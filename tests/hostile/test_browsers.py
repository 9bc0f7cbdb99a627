"""What a browser sends for pages of other sites, and names that are none of the service's, are refused by the headers."""

import json
import socket
import time
from collections.abc import Iterator
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import SecretStr

from app.settings import Authentication, Settings
from tests.api.answers import check_problem, evaluation
from tests.api.keys import bearer, make_key
from tests.conftest import Template
from tests.hostile.harness import Answer, read_answer
from tests.serving import Served

BOARD = "https://board.example"
FOREIGN = [
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
    {"Sec-Fetch-Site": "cross-site", "Origin": "http://evil.example"},
    {"Sec-Fetch-Site": "unheard-of"},
    {"Origin": "http://evil.example"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "null"},
]
OWN = [{}, {"Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}, {"Origin": "$own"}]
NAMED = [{"Origin": BOARD}, {"Origin": BOARD, "Sec-Fetch-Site": "cross-site"}]
FORM = {
    "evaluation": (None, json.dumps(evaluation(input={"kind": "predictions"}))),
    "data": ("data.csv", "y_true,y_pred\n0,0\n1,1\n1,0\n"),
}


@pytest.fixture(scope="module", params=["without keys", "with keys"])
def client(request: pytest.FixtureRequest, database_url: str) -> Iterator[httpx.Client]:
    keys = request.param == "with keys"
    settings = Settings(
        database_url=SecretStr(database_url),
        authentication=Authentication.keys if keys else Authentication.off,
        cors_origins=(BOARD,),
    )
    headers = bearer(make_key(database_url, "browsers", "admin")) if keys else {}
    with Served(settings) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as opened:
        yield opened


def count(client: httpx.Client) -> int:
    return len(client.get("/v1/evaluations").json()["items"])


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_no_page_of_another_site_writes(client: httpx.Client, headers: dict[str, str]) -> None:
    before = count(client)
    check_problem(client.post("/v1/evaluations", files=FORM, headers=headers), 403, "cross_site")
    check_problem(client.post("/v1/evaluations", json=evaluation(), headers=headers), 403, "cross_site")
    check_problem(client.request("DELETE", "/v1/models/m", headers=headers), 403, "cross_site")
    for path in ("/ui/sign-in", "/ui/sign-out"):
        reply = client.post(path, data={"key": "x"}, headers=headers)
        check_problem(reply, 403, "cross_site")
        assert "set-cookie" not in reply.headers
    assert count(client) == before
    # What reads changes nothing, and the browser keeps the answer from the page.
    reply = client.get("/v1/evaluations", headers=headers)
    assert reply.status_code == 200
    assert "access-control-allow-origin" not in reply.headers


@pytest.mark.parametrize("headers", OWN + NAMED, ids=str)
def test_programs_own_pages_and_named_origins_write(client: httpx.Client, headers: dict[str, str]) -> None:
    sent = {name: value.replace("$own", str(client.base_url).rstrip("/")) for name, value in headers.items()}
    assert client.post("/v1/evaluations", json=evaluation(), headers=sent).status_code == 201
    assert client.post("/v1/evaluations", files=FORM, headers=sent).status_code == 201


def test_it_is_refused_before_the_body_comes(client: httpx.Client) -> None:
    head = (
        "POST /v1/evaluations HTTP/1.1\r\nHost: 127.0.0.1\r\nSec-Fetch-Site: cross-site\r\n"
        "Content-Type: multipart/form-data; boundary=x\r\nContent-Length: 1000\r\n\r\n"
    )
    answer = sent_raw(client, head.encode())
    assert (answer.status, answer.codes()) == (403, {"cross_site"})


# --- names -----------------------------------------------------------------------------------------------------------


def sent_raw(client: httpx.Client, data: bytes) -> Answer:
    address = urlsplit(str(client.base_url))
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(data)
        return read_answer(connection)


@pytest.fixture(scope="module")
def keyless(template_database: Template) -> Iterator[httpx.Client]:
    """A service as it comes, on a database that never had a key."""
    name = f"keyless_{time.time_ns()}"
    template_database.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template_database.name}"')
    with (
        Served(Settings(database_url=SecretStr(template_database.url(name)))) as url,
        httpx.Client(base_url=url) as one,
    ):
        yield one
    template_database.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:8000", "prevail.localhost", "127.0.0.1:1", "[::1]", "127.9.9.9"]
)
def test_names_of_this_machine(keyless: httpx.Client, host: str) -> None:
    assert keyless.get("/v1/models", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:8000",
        "localhost.evil.example",
        "xlocalhost",
        "127.0.0.1.evil.example",
        "10.0.0.1",
        "",
    ],
)
def test_other_names_while_there_is_no_key(keyless: httpx.Client, host: str) -> None:
    headers = {"Host": host}
    check_problem(keyless.get("/v1/models", headers=headers), 403, "unknown_host")
    check_problem(keyless.post("/v1/evaluations", json=evaluation(), headers=headers), 403, "unknown_host")
    check_problem(
        keyless.post("/v1/keys", json={"name": "x", "scopes": ["admin"]}, headers=headers), 403, "unknown_host"
    )
    check_problem(keyless.get("/metrics", headers=headers), 403, "unknown_host")
    # Probes name what they please, and are told nothing.
    for path in ("/healthz", "/readyz"):
        assert keyless.get(path, headers=headers).status_code == 200


@pytest.mark.parametrize("origin", [BOARD, "http://evil.example"])
def test_a_preflight_under_another_name(client: httpx.Client, origin: str) -> None:
    asked = {"Origin": origin, "Access-Control-Request-Method": "POST"}
    usual = client.options("/v1/evaluations", headers=asked)
    assert usual.status_code == (200 if origin == BOARD else 400)
    reply = client.options("/v1/evaluations", headers=asked | {"Host": "evil.example"})
    if "authorization" in client.headers:
        # With keys any name will do.
        assert reply.status_code == usual.status_code
    else:
        check_problem(reply, 403, "unknown_host")
        assert "access-control-allow-origin" not in reply.headers
    lines = "".join(f"{name}: {value}\r\n" for name, value in asked.items())
    for hosts in ("", "Host: localhost\r\nHost: localhost\r\n"):
        answer = sent_raw(client, f"OPTIONS /v1/evaluations HTTP/1.1\r\n{hosts}{lines}\r\n".encode())
        assert (answer.status, answer.codes()) == (400, {"bad_request"})


def test_with_keys_any_name_will_do(client: httpx.Client) -> None:
    keys = "authorization" in client.headers
    reply = client.get("/v1/models", headers={"Host": "evil.example"})
    assert reply.status_code == (200 if keys else 403)


def test_as_soon_as_there_is_a_key_any_name_will_do(template_database: Template) -> None:
    name = f"keyless_{time.time_ns()}"
    template_database.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template_database.name}"')
    url = template_database.url(name)
    with Served(Settings(database_url=SecretStr(url))) as base, httpx.Client(base_url=base) as one:
        key = bearer(make_key(url, "default", "read"))
        assert one.get("/v1/models", headers=key | {"Host": "prevail.example"}).status_code == 200
    template_database.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


def test_allowed_hosts(database_url: str) -> None:
    settings = Settings(
        database_url=SecretStr(database_url),
        authentication=Authentication.keys,
        allowed_hosts=("prevail.example", "*.corp.example"),
    )
    with Served(settings) as url, httpx.Client(base_url=url) as one:
        headers = bearer(make_key(database_url, "named", "read"))

        def status(host: str) -> int:
            return one.get("/v1/models", headers=headers | {"Host": host}).status_code

        for host in ("prevail.example", "Prevail.Example.:443", "a.corp.example", "a.b.corp.example", "127.0.0.1"):
            assert status(host) == 200, host
        for host in ("evil.example", "corp.example", "xcorp.example", "a.prevail.example", "prevail.example.evil"):
            assert status(host) == 403, host


@pytest.mark.parametrize(
    "hosts",
    ["", "Host: localhost\r\nHost: localhost\r\n", "Host: localhost\r\nhost: evil.example\r\n", "Host: a b\r\n"],
)
@pytest.mark.parametrize("path", ["/healthz", "/v1/models", "/ui"])
def test_none_or_two_names_are_no_request(keyless: httpx.Client, hosts: str, path: str) -> None:
    answer = sent_raw(keyless, f"GET {path} HTTP/1.1\r\n{hosts}\r\n".encode())
    assert (answer.status, answer.codes()) == (400, {"bad_request"})


def test_the_first_version_of_http_needs_no_name(keyless: httpx.Client) -> None:
    assert sent_raw(keyless, b"GET /v1/models HTTP/1.0\r\n\r\n").status == 200
    assert sent_raw(keyless, b"GET /v1/models HTTP/1.0\r\nHost: evil.example\r\n\r\n").status == 403


# --- pages -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", ["/ui/https:evil.example", "/ui/evaluations", "/ui/%2F%2Fevil.example", "/ui/..%5cx"])
def test_pages_lead_to_pages_of_the_service(keyless: httpx.Client, path: str) -> None:
    reply = keyless.get(f"{path}?x=&y=1")
    if reply.status_code == 303:
        assert reply.headers["location"] == "?y=1"
    else:
        assert reply.status_code == 404


@pytest.mark.parametrize(
    "path", ["/v1%2fmodels", "/v1%2Fmodels", "/v1/evaluations%2fbatch", "/v1%2fmodels/a/b", "/%2fv1/models"]
)
def test_an_encoded_slash_separates_nothing(keyless: httpx.Client, path: str) -> None:
    check_problem(keyless.get(path), 404, "not_found")


def test_names_may_have_encoded_slashes(keyless: httpx.Client) -> None:
    assert keyless.post("/v1/evaluations", json=evaluation(model="team/model")).status_code == 201
    assert keyless.get("/v1/models/team%2Fmodel").status_code == 200
    assert keyless.get("/v1/models/team/model").status_code == 200
