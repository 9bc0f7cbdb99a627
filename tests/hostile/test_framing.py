"""Where a message begins and ends, what is a header of it, and what is answered when a layer fails."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import SecretStr

from app.api.wire.disconnects import DisconnectWatch
from app.api.wire.observed import Observed
from app.api.wire.same_site import HeaderChecks
from app.settings import Authentication, Settings
from tests.api.answers import check_problem
from tests.api.keys import make_key
from tests.api.test_metrics import grown, read
from tests.hostile.harness import Answer, read_answer
from tests.serving import Served

BODY = b'{"input":{"kind":"binary_counts","tp":8,"fn":2,"fp":1,"tn":9}}'


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return Settings(database_url=SecretStr(database_url), authentication=Authentication.keys)


@pytest.fixture(scope="module")
def key(database_url: str) -> str:
    return make_key(database_url, "framing", "admin").key


@pytest.fixture(scope="module")
def client(settings: Settings, key: str) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {key}"}
    with Served(settings) as url, httpx.Client(base_url=url, headers=headers, timeout=60) as opened:
        yield opened


def sent_raw(client: httpx.Client, *pieces: bytes) -> Answer:
    address = urlsplit(str(client.base_url))
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        # It may be answered, and closed, before all was sent.
        with contextlib.suppress(ConnectionError):
            for piece in pieces:
                connection.sendall(piece)
        return read_answer(connection)


def chunked(key: str, trailers: str, headers: str = "") -> bytes:
    head = f"POST /v1/metrics/compute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Transfer-Encoding: chunked\r\n\r\n{len(BODY):x}\r\n{BODY.decode()}\r\n0\r\n{trailers}\r\n".encode()


def test_no_trailer_is_a_header(client: httpx.Client, key: str) -> None:
    """In one packet with the request, so that all of it is parsed before anybody looks at the headers."""
    for trailers in (f"Authorization: Bearer {key}\r\n", f"X-A: b\r\nauthorization: Bearer {key}\r\n"):
        answer = sent_raw(client, chunked(key, trailers))
        assert (answer.status, answer.codes()) == (401, {"unauthenticated"})
    own = f"Authorization: Bearer {key}\r\n"
    # It would be refused as the name of a project.
    answer = sent_raw(client, chunked(key, "X-Prevail-Project: No Name\r\nX-Request-ID: trailer\r\n", own))
    assert answer.status == 200
    assert answer.headers["x-request-id"] != "trailer"


@pytest.mark.parametrize("more", [f"X: {'a' * 3_000_000}\r\n", "X: a\r\n" * 500_000], ids=["one", "many"])
def test_trailers_have_the_limit_of_headers(client: httpx.Client, key: str, more: str) -> None:
    head, _, tail = chunked(key, more, f"Authorization: Bearer {key}\r\n").partition(b"\r\n0\r\n")
    answer = sent_raw(client, head, b"\r\n0\r\n" + tail)
    assert (answer.status, answer.codes()) == (431, {"headers_too_large"})


@pytest.mark.parametrize("digits", ["9" * 5001, "0" * 5000 + "1", "0" * 20, "9" * 19])
@pytest.mark.parametrize("path", ["/v1/metrics/compute", "/healthz", "/nowhere"])
def test_a_length_of_many_digits(client: httpx.Client, digits: str, path: str) -> None:
    answer = sent_raw(client, f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {digits}\r\n\r\n".encode())
    assert (answer.status, answer.codes()) == (400, {"bad_request"})


@pytest.mark.parametrize(
    ("layer", "name", "status"),
    [
        (HeaderChecks, "refusal", "500"),
        (DisconnectWatch, "__init__", "500"),
        (Observed, "__call__", None),
        (None, "starlette.middleware.errors.ServerErrorMiddleware.__call__", None),
        (None, "uvicorn.middleware.proxy_headers.ProxyHeadersMiddleware.__call__", None),
    ],
    ids=["checks", "envelope", "observed", "framework", "server"],
)
def test_every_layer_fails_alike(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, layer: Any, name: str, status: str | None
) -> None:
    """As a problem, and counted: as a request too where the layer that counts requests was reached."""

    def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError("a secret of the inside")

    before = read(client)
    with monkeypatch.context() as patched:
        if layer is None:
            patched.setattr(name, fail)
        else:
            patched.setattr(layer, name, fail)
        problem = check_problem(client.get("/v1/models"), 500, "internal_error")
    assert "secret" not in str(problem)
    after = read(client)
    assert grown(before, after, "refusals_total", code="internal_error") == 1
    if status is not None:
        assert grown(before, after, "http_requests_total", route="/v1/models", method="GET", status=status) == 1
