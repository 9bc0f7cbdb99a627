"""Where a message begins and ends, what is a header of it, and what is answered when a layer fails."""

import asyncio
import contextlib
import logging
import re
import socket
import struct
import threading
import time
from collections.abc import Iterator
from itertools import product
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from pydantic import SecretStr

from app.api.middleware import DisconnectWatch, HeaderChecks, Observed
from app.services.access import Quotas
from app.settings import Authentication, Settings
from tests.api.answers import check_problem
from tests.api.keys import make_key
from tests.api.test_metrics import grown, read
from tests.hostile.harness import COMPUTE, JSON, Answer, http, read_answer
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


def test_a_body_that_there_is_no_memory_for(client: httpx.Client, key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The parser refuses it then as it refuses what is no HTTP."""

    def fail(*_: Any) -> None:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr("uvicorn.protocols.http.httptools_impl.HttpToolsProtocol.on_body", fail)
        answer = sent_raw(client, kept_open(http("POST", COMPUTE, BODY), key))
    assert (answer.status, answer.codes()) == (503, {"unavailable"})
    assert int(answer.headers["retry-after"]) > 0


# --- pipelines ---------------------------------------------------------------------------------------------------------

CHUNKED = http("POST", COMPUTE, b"", {**JSON, "Transfer-Encoding": "chunked"}, length=False)
REFUSED = {
    "no request": b"NONSENSE\r\n\r\n",
    "a chunk that is none": CHUNKED + b"xyz\r\n",
    "a second chunk that is none": CHUNKED + b"2\r\n{}\r\nxyz\r\n",
    "headers that are too large": b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 600_000,
}


def kept_open(message: bytes, key: str) -> bytes:
    return message.replace(b"Connection: close\r\n", f"Authorization: Bearer {key}\r\n".encode())


@pytest.fixture
def complaints(client: httpx.Client, caplog: pytest.LogCaptureFixture) -> Iterator[list[logging.LogRecord]]:
    """What the server and the loop log while a test runs, which goes past the usual handlers."""
    assert client.get("/healthz").status_code == 200
    loggers = [logging.getLogger(name) for name in ("uvicorn.error", "asyncio")]
    for logger in loggers:
        logger.addHandler(caplog.handler)
    yield caplog.records
    for logger in loggers:
        logger.removeHandler(caplog.handler)


def test_what_is_refused_in_a_pipeline_is_no_fault_of_the_service(
    client: httpx.Client, key: str, complaints: list[logging.LogRecord]
) -> None:
    """What came before it is answered, it is refused, and no traceback is written, whether the client waits or not."""
    whole = kept_open(http("POST", COMPUTE, BODY.ljust(300_000)), key)
    address = urlsplit(str(client.base_url))
    for refused, earlier, gone in product(REFUSED.values(), (1, 2, 3), (False, True)):
        with (
            socket.create_connection((address.hostname, address.port), timeout=30) as connection,
            contextlib.suppress(ConnectionError),
        ):
            connection.sendall(whole * earlier + kept_open(refused, key))
            if not gone:
                received = b"".join(iter(lambda: connection.recv(1 << 16), b""))
                statuses = [int(status) for status in re.findall(rb"HTTP/1.1 (\d+)", received)]
                assert statuses[:earlier] == [200] * earlier, received
                assert all(400 <= status < 500 for status in statuses[earlier:]), received
                assert len(statuses) <= earlier + 1
            else:
                # Not even its system answers any more.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    time.sleep(0.5)
    assert client.get("/healthz").status_code == 200
    assert not [(record.getMessage(), record.exc_info) for record in complaints if record.levelno >= logging.ERROR]


def test_nobody_works_for_a_pipeline_whose_client_is_gone(
    client: httpx.Client, key: str, complaints: list[logging.LogRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def take_long(*_: Any) -> None:
        begun.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    monkeypatch.setattr(Quotas, "usage", take_long)
    address = urlsplit(str(client.base_url))
    with socket.create_connection((address.hostname, address.port), timeout=30) as connection:
        connection.sendall(kept_open(http("GET", "/v1/usage"), key) + kept_open(http("GET", "/v1/models"), key))
        assert begun.wait(30)
    assert ended.wait(30)
    assert client.get("/healthz").status_code == 200
    assert not [record.getMessage() for record in complaints if record.levelno >= logging.ERROR]
