"""Requests as bytes, a service that is a process of its own, and how much of the machine it takes."""

import contextlib
import itertools
import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from app.embedded.cluster import free_port

ROOT = Path(__file__).parents[2]
JSON = {"Content-Type": "application/json"}
COMPUTE = "/v1/metrics/compute"
MB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Case:
    """A request and what it has to get.

    Attributes:
        name: Says what is wrong with it.
        request: The bytes, or what makes them, since many are large: at once, or piece by piece while they are sent.
        status: Of the answer.
        code: Of the problem, or of its first fault; None when the request is fine.
    """

    name: str
    request: bytes | Callable[[], bytes | Iterable[bytes]]
    status: int
    code: str | None

    def __str__(self) -> str:
        return self.name

    def content(self) -> bytes | Iterable[bytes]:
        """The request, made now if it has to be made."""
        return self.request() if callable(self.request) else self.request


def http(method: str, path: str, body: bytes = b"", headers: Mapping[str, str] = JSON, *, length: bool = True) -> bytes:
    """A request as it goes over the wire; the connection is closed after its answer."""
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", "Connection: close"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if length:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def streamed(*pieces: tuple[bytes, int], path: str = COMPUTE) -> Callable[[], Iterator[bytes]]:
    """A request whose body is these pieces, each so many times: made while it is sent, never held."""

    def request() -> Iterator[bytes]:
        length = sum(len(piece) * times for piece, times in pieces)
        yield http("POST", path, b"", {**JSON, "Content-Length": str(length)}, length=False)
        for piece, times in pieces:
            at_once = max(MB // len(piece), 1)
            for start in range(0, times, at_once):
                yield piece * min(at_once, times - start)

    return request


def compute(source: Any, **members: Any) -> bytes:
    """A request to compute what is saved nowhere."""
    return http("POST", COMPUTE, json.dumps({"input": source, **members}).encode())


def form(data: bytes, source: Mapping[str, Any], path: str = COMPUTE, **more: Any) -> bytes:
    """A request with a file."""
    evaluation = json.dumps({"input": source, **more}).encode()
    return http("POST", path, *parts(("evaluation", None, evaluation), ("data", "samples", data)))


def parts(*fields: tuple[str, str | None, bytes]) -> tuple[bytes, Mapping[str, str]]:
    """The body and the headers of a form: name, name of the file or None, content."""
    boundary = b"----------------------------prevail"
    pieces = []
    for name, filename, content in fields:
        file = f'; filename="{filename}"' if filename is not None else ""
        head = f'Content-Disposition: form-data; name="{name}"{file}\r\n\r\n'.encode()
        pieces += [b"--", boundary, b"\r\n", head, content, b"\r\n"]
    body = b"".join([*pieces, b"--", boundary, b"--\r\n"])
    return body, {"Content-Type": f"multipart/form-data; boundary={boundary.decode()}"}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def problem(self) -> dict[str, Any]:
        """The body of an error."""
        assert self.headers["content-type"] == "application/problem+json", (self.status, self.headers, self.body[:200])
        problem: dict[str, Any] = json.loads(self.body)
        assert problem["status"] == self.status
        return problem

    def codes(self) -> set[str]:
        """The code of a problem and those of its faults."""
        problem = self.problem()
        return {problem["code"], *(fault["code"] for fault in problem.get("errors", []))}


def read_answer(connection: socket.socket) -> Answer:
    """One answer, read until its end or that of the connection."""
    received = b""
    while b"\r\n\r\n" not in received:
        part = connection.recv(1 << 16)
        if not part:
            raise ConnectionError(f"closed after {received[:200]!r}")
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    status, *lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    length = int(headers.get("content-length", "0"))
    while len(body) < length:
        part = connection.recv(1 << 16)
        if not part:
            break
        body += part
    return Answer(int(status.split(" ")[1]), headers, body)


class Service:
    """The service as `prevail serve` starts it, and what it takes of the machine."""

    def __init__(self, database_url: str, **settings: str) -> None:
        self.port = free_port()
        clean = {name: value for name, value in os.environ.items() if not name.startswith("PREVAIL_")}
        environment = {
            **clean,
            "PREVAIL_DATABASE_URL": database_url,
            "PREVAIL_PORT": str(self.port),
            "PREVAIL_LOG_LEVEL": "error",
            **settings,
        }
        self._process = subprocess.Popen([sys.executable, "-m", "app", "serve"], cwd=ROOT, env=environment)
        self.process = psutil.Process(self._process.pid)

    def __enter__(self) -> "Service":
        deadline = time.monotonic() + 60
        while True:
            assert self._process.poll() is None, "the service ended"
            assert time.monotonic() < deadline, "the service did not start"
            with contextlib.suppress(OSError):
                if self.send(http("GET", "/readyz")).status == 200:
                    return self
            time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.wait(30)
        finally:
            self._process.kill()

    def connect(self, timeout: float = 60) -> socket.socket:
        """A connection to it."""
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def send(self, request: bytes | Iterable[bytes], timeout: float = 150) -> Answer:
        """The answer to a request."""
        with self.connect(timeout) as connection:
            # It may be answered, and the connection closed, before all was sent.
            with contextlib.suppress(ConnectionError):
                for piece in [request] if isinstance(request, bytes) else request:
                    connection.sendall(piece)
            return read_answer(connection)

    def processes(self) -> list[psutil.Process]:
        """Its own and those that it has started."""
        return [self.process, *self.process.children(recursive=True)]

    def busy_seconds(self) -> float:
        """Seconds of a processor that all its processes have taken so far."""
        total = 0.0
        for process in self.processes():
            with contextlib.suppress(psutil.NoSuchProcess):
                total += sum(process.cpu_times()[:2])
        return total

    def idle_memory(self, at_once: int = 1) -> int:
        """Bytes of memory once all is loaded, and every process started, for so many requests at once that are fine."""
        body = json.dumps({"input": {"kind": "binary_counts", "tp": 8, "fn": 2, "fp": 1, "tn": 9}}).encode()
        request = http("POST", COMPUTE, body.ljust(300_000))
        with ThreadPoolExecutor(at_once) as pool:
            answers = list(pool.map(self.send, [request] * 4 * at_once))
        assert {answer.status for answer in answers} == {200}
        assert self.comes_to_rest(2**40, 60)
        return self.memory()

    def comes_to_rest(self, memory: int, seconds: float) -> bool:
        """Whether within so many seconds it holds no more than these bytes and computes nothing."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            before = self.busy_seconds()
            time.sleep(0.1)
            if self.busy_seconds() - before < 0.03 and self.memory() <= memory:
                return True
        return False

    def memory(self, processes: Iterable[psutil.Process] | None = None) -> int:
        """Bytes of memory of all its processes, or of those that are given."""
        total = 0
        for process in self.processes() if processes is None else processes:
            with contextlib.suppress(psutil.NoSuchProcess):
                total += process.memory_info().rss
        return total

    @contextlib.contextmanager
    def watched(self) -> Iterator["Watch"]:
        """Watch its memory, and how long a health check takes, every few milliseconds."""
        watch = Watch()
        idle = self.memory()
        done = threading.Event()

        def look() -> None:
            # To find its processes is to look at all of the machine, which takes longer than the rest.
            for turn in itertools.count():
                if turn % 10 == 0:
                    known = self.processes()
                watch.memory = max(watch.memory, self.memory(known) - idle)
                if done.wait(0.03):
                    return

        def ask() -> None:
            while not done.wait(0.05):
                start = time.monotonic()
                with contextlib.suppress(OSError):
                    self.send(http("GET", "/healthz"), timeout=30)
                watch.delay = max(watch.delay, time.monotonic() - start)

        threads = [threading.Thread(target=work, daemon=True) for work in (look, ask)]
        for thread in threads:
            thread.start()
        try:
            yield watch
        finally:
            done.set()
            for thread in threads:
                thread.join()


@dataclass(slots=True)
class Watch:
    """Bytes above idle at most, and seconds of the slowest health check."""

    memory: int = 0
    delay: float = 0.0
