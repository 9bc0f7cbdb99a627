"""Clients that send half of something and wait, send what is no HTTP, or do not take their answer."""

import contextlib
import json
import resource
import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.hostile.harness import JSON, MB, Service, compute, http, read_answer

pytestmark = pytest.mark.slow

SECONDS = 1.0
MARGIN = 2.0
READERS = 10
HALF_HEADERS = b"POST /v1/evaluations HTTP/1.1\r\nHost: localhost\r\n"
SMALL_REQUEST = compute({"kind": "binary_counts", "tp": 8, "fn": 2, "fp": 1, "tn": 9})
HALF_BODY = http("POST", "/v1/metrics/compute", b"", {**JSON, "Content-Length": "1000"}, length=False) + b'{"input":'


@pytest.fixture(scope="module")
def service(database_url: str) -> Iterator[Service]:
    limits = {"PREVAIL_HEADER_SECONDS": str(SECONDS), "PREVAIL_BODY_SECONDS": str(SECONDS)}
    with Service(database_url, **limits, PREVAIL_CONNECTION_LIMIT="900") as running:
        yield running


@pytest.fixture(autouse=True, scope="module")
def enough_open_files() -> None:
    """A thousand connections have two ends, and this is one."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (4096 if hard == resource.RLIM_INFINITY else min(4096, hard), hard))


def wait_until_closed(connection: socket.socket, seconds: float) -> bytes:
    connection.settimeout(seconds)
    received = b""
    while part := connection.recv(1 << 16):
        received += part
    return received


def open_connections(service: Service) -> int:
    return sum(
        one.status == "ESTABLISHED" and one.laddr.port == service.port
        for process in service.processes()
        for one in process.net_connections("tcp")
    )


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"", None),
        (b"\r\n", None),
        (b"P", 408),
        (HALF_HEADERS, 408),
        (HALF_BODY, 408),
        (http("POST", "/v1/metrics/compute", b"", {**JSON, "Transfer-Encoding": "chunked"}, length=False) + b"5\r\nab", 408),
    ],
    ids=["nothing", "an empty line", "one letter", "half of the headers", "half of a body", "half of a chunk"],
)  # fmt: skip
def test_what_never_comes_is_not_waited_for(service: Service, sent: bytes, status: int | None) -> None:
    start = time.monotonic()
    with service.connect() as connection:
        connection.sendall(sent)
        if status is None:
            assert b"200" not in wait_until_closed(connection, SECONDS + MARGIN)
        else:
            answer = read_answer(connection)
            assert (answer.status, answer.codes()) == (status, {"request_timeout"})
            assert not wait_until_closed(connection, MARGIN)
    assert SECONDS * 0.8 < time.monotonic() - start < SECONDS + MARGIN


def test_a_connection_that_is_kept_open_may_not_be_used_to_wait(service: Service) -> None:
    """Half of a second request, and empty lines after the first, end as they do at the start."""
    for more in (HALF_HEADERS, b"\r\n"):
        with service.connect() as connection:
            connection.sendall(http("GET", "/healthz").replace(b"Connection: close\r\n", b""))
            assert read_answer(connection).status == 200
            connection.sendall(more)
            wait_until_closed(connection, SECONDS + MARGIN)


@pytest.mark.parametrize("start", [HALF_HEADERS, HALF_BODY], ids=["headers", "body"])
def test_drops_do_not_keep_a_connection_open(service: Service, start: bytes) -> None:
    begun = time.monotonic()
    with service.connect() as connection:
        connection.sendall(start)
        # A pause in a body is shorter than the limit; on the whole it is too slow.
        allowed = SECONDS * 1.5 if start == HALF_BODY else SECONDS
        # Whatever the system calls it when the other end is gone.
        with contextlib.suppress(OSError):
            while time.monotonic() - begun < 10:
                connection.sendall(b" ")
                time.sleep(0.1)
    assert time.monotonic() - begun < allowed + MARGIN


def test_hundreds_of_halves_are_gone_after_the_deadline(service: Service) -> None:
    before = open_connections(service)
    connections = []
    for sent, count in ((HALF_HEADERS, 600), (HALF_BODY, 200)):
        for _ in range(count):
            connection = service.connect()
            connection.sendall(sent)
            connections.append(connection)
    assert service.send(http("GET", "/healthz")).status == 200
    deadline = time.monotonic() + SECONDS + MARGIN
    while open_connections(service) > before:
        assert time.monotonic() < deadline, open_connections(service)
        time.sleep(0.1)
    for connection in connections:
        connection.close()


def test_idle_parts_of_large_bodies_are_not_held_in_memory(database_url: str) -> None:
    """Twelve bodies of 100 MB, of each 30 sent: others are served meanwhile, and all of it is given back."""
    head = http("POST", "/v1/metrics/compute", b"", {**JSON, "Content-Length": str(100 * MB)}, length=False)
    with Service(database_url, PREVAIL_BODY_SECONDS="8") as service:
        before = service.idle_memory()
        with service.watched() as watch, contextlib.ExitStack() as stack:
            connections = [stack.enter_context(service.connect()) for _ in range(12)]
            for connection in connections:
                connection.sendall(head)
                for _ in range(30):
                    connection.sendall(b" " * MB)
            assert service.send(SMALL_REQUEST).status == 200
            for connection in connections:
                assert read_answer(connection).codes() == {"request_timeout"}
        assert watch.memory < 150 * MB
        assert watch.delay < 1.0
        assert service.comes_to_rest(before + 40 * MB, 5)


def test_an_answer_that_nobody_takes_is_not_kept(service: Service) -> None:
    """The client asks for a long answer again and again and reads nothing."""
    connection = socket.socket()
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    connection.connect(("127.0.0.1", service.port))
    request = http("GET", "/openapi.json").replace(b"Connection: close\r\n", b"")
    connection.settimeout(20)
    connection.sendall(request * 200)
    before = open_connections(service)
    deadline = time.monotonic() + 2 * SECONDS + 3 * MARGIN
    while open_connections(service) >= before:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    connection.close()


@pytest.mark.parametrize("rate", [1, 1000])
def test_readers_of_some_bytes_a_second_are_ended(database_url: str, rate: int) -> None:
    """Each asks for 14 MB. Others are answered meanwhile, and what was written for the slow ones is given back."""
    matrix = [[9 if row == column else (row * column) % 3 for column in range(40)] for row in range(40)]
    one = {
        "model": {"name": "m"},
        "dataset": {"name": "d"},
        "input": {"kind": "confusion_matrix", "matrix": matrix},
    }
    large = http("POST", "/v1/evaluations/batch?store=false", json.dumps({"evaluations": [one] * 64}).encode())
    with Service(database_url, PREVAIL_BODY_SECONDS="2") as service, contextlib.ExitStack() as stack:
        # As many at once who take it as it comes, so that the rest is what slow ones cost.
        # What the allocator keeps differs by up to 60 MB from round to round: the most of three is what they leave.
        before, opened = 0, open_connections(service)
        for _ in range(3):
            with ThreadPoolExecutor(READERS) as pool:
                answers = list(pool.map(service.send, [large] * READERS))
            assert min(len(answer.body) for answer in answers) > 10 * MB
            assert service.comes_to_rest(2**40, 60)
            before = max(before, service.memory())
        readers = []
        for _ in range(READERS):
            reader = stack.enter_context(socket.socket())
            # What its system takes for it is little too.
            reader.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            reader.connect(("127.0.0.1", service.port))
            reader.sendall(large)
            readers.append(reader)
        for reader in readers:
            assert reader.recv(1) == b"H"
        assert open_connections(service) == opened + len(readers)
        deadline = time.monotonic() + 60
        with service.watched() as watch:
            while open_connections(service) > opened:
                assert time.monotonic() < deadline, open_connections(service)
                for reader in readers:
                    with contextlib.suppress(OSError):
                        reader.recv(rate, socket.MSG_DONTWAIT)
                assert service.send(SMALL_REQUEST).status == 200
                time.sleep(1)
        assert watch.delay < 1.0
        assert service.comes_to_rest(before + 64 * MB, 10)


def test_slow_but_steady_is_fine(service: Service) -> None:
    body = b'{"input": {"kind": "binary_counts", "tp": 1, "fn": 1, "fp": 1, "tn": 1}}'.ljust(20_000)
    with service.connect() as connection:
        connection.sendall(http("POST", "/v1/metrics/compute", b"", {**JSON, "Content-Length": "20000"}, length=False))
        for start in range(0, len(body), 2500):
            connection.sendall(body[start : start + 2500])
            time.sleep(0.4)
        assert read_answer(connection).status == 200


def test_too_many_connections(service: Service) -> None:
    connections = [service.connect() for _ in range(950)]
    answer = service.send(http("GET", "/healthz"))
    assert (answer.status, answer.codes()) == (503, {"overloaded"})
    assert answer.headers["retry-after"]
    for connection in connections:
        connection.close()
    time.sleep(0.3)
    assert service.send(http("GET", "/healthz")).status == 200


NO_HTTP = {
    "a bad line": (b"WHAT IS THIS\r\n\r\n", 400, "bad_request"),
    "another protocol": (b"\x16\x03\x01\x02\x00\x01\x00", 400, "bad_request"),
    "an unknown method": (b"FETCH /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "bad_request"),
    "a space before a colon": (b"GET /healthz HTTP/1.1\r\nHost : x\r\n\r\n", 400, "bad_request"),
    "two lengths": (
        b"POST /v1/metrics/compute HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}",
        400,
        "bad_request",
    ),
    "a length that is no number": (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: ten\r\n\r\n", 400, "bad_request"),
    "a negative length": (b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n", 400, "bad_request"),
    "a length and chunks": (
        b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        400,
        "bad_request",
    ),
    "a bad chunk": (
        http("POST", "/v1/metrics/compute", b"", {**JSON, "Transfer-Encoding": "chunked"}, length=False) + b"xyz\r\n",
        400,
        "bad_request",
    ),
    "a chunk longer than it says": (
        http("POST", "/v1/metrics/compute", b"", {**JSON, "Transfer-Encoding": "chunked"}, length=False) + b"1\r\nabc\r\n",
        400,
        "bad_request",
    ),
    "headers of 100 KB": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 100_000 + b"\r\n\r\n", 431, "headers_too_large"),
    "headers without an end": (b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 3_000_000, 431, "headers_too_large"),
    "ten thousand headers": (b"GET /healthz HTTP/1.1\r\n" + b"A: b\r\n" * 20_000 + b"\r\n", 431, "headers_too_large"),
    "a line of 100 KB": (b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n", 431, "headers_too_large"),
    "a line without an end": (b"GET /" + b"a" * 3_000_000, 431, "headers_too_large"),
    "a path that is no text": (b"GET /\xff\xfe HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "bad_request"),
}  # fmt: skip


@pytest.mark.parametrize(("sent", "status", "code"), NO_HTTP.values(), ids=NO_HTTP.keys())
def test_what_is_no_http(service: Service, sent: bytes, status: int, code: str) -> None:
    answer = service.send(sent)
    assert (answer.status, answer.codes()) == (status, {code})
    assert answer.headers["connection"] == "close"
    assert answer.problem()["instance"] == f"urn:request:{answer.headers['x-request-id']}"


def test_an_answer_under_way_is_finished_before_what_follows_is_refused(service: Service) -> None:
    with service.connect() as connection:
        connection.sendall(http("GET", "/readyz").replace(b"Connection: close\r\n", b"") + b"NONSENSE\r\n\r\n")
        received = wait_until_closed(connection, 10)
    assert received.startswith(b"HTTP/1.1 200")
    assert received.count(b"HTTP/1.1") == 1
