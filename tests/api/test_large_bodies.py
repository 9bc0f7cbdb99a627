"""Room for large bodies, and work for clients who are gone."""

import asyncio
import io
import json
import socket
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pydantic import SecretStr

from app.api.bodies import received
from app.api.middleware import Lease
from app.embedded.cluster import wait_until
from app.services.processes.compute import ComputePool
from app.settings import Settings
from tests.api.answers import check_problem
from tests.serving import Served

HEADERS = {"Content-Type": "application/json"}
LABELS = json.dumps([0, 1] * 200_000).encode()
LARGE = b'{"input": {"kind": "predictions", "y_true": ' + LABELS + b', "y_pred": ' + LABELS + b"}}"


@pytest.fixture(scope="module")
def narrow(database_url: str) -> Iterator[str]:
    """A service with room for one such body."""
    settings = Settings(database_url=SecretStr(database_url), max_bodies_bytes=3_000_000)
    with Served(settings) as url:
        yield url


@contextmanager
def sending(url: str, announced: int, sent: int) -> Iterator[None]:
    """A connection on which a part of a body has gone out."""
    host, port = url.removeprefix("http://").split(":")
    head = "POST /v1/metrics/compute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{head}Content-Length: {announced}\r\n\r\n".encode() + LARGE[:sent])
        yield


def test_large_bodies_share_a_room(narrow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    part, sizes, held, grow = 2_000_000, Counter[Lease](), threading.Event(), Lease.grow

    def noted(lease: Lease, size: int) -> bool:
        sizes[lease] += size
        has_room = grow(lease, size)
        if has_room and sizes[lease] == part:
            held.set()
        return has_room

    monkeypatch.setattr(Lease, "grow", noted)
    with httpx.Client(base_url=narrow, timeout=60) as client:

        def post() -> httpx.Response:
            return client.post("/v1/metrics/compute", content=LARGE, headers=HEADERS)

        with sending(narrow, len(LARGE), part):
            assert held.wait(60)
            reply = post()
            check_problem(reply, 503, "overloaded")
            assert reply.headers["Retry-After"] == "5"
            assert client.post("/v1/metrics/compute", content=b"{}", headers=HEADERS).status_code == 422
        # What it held may still be there for a moment.
        assert wait_until(lambda: post().status_code == 200, 60)
        assert wait_until(lambda: post().status_code == 200, 60)
        # There is never room for this one.
        check_problem(client.post("/v1/metrics/compute", content=LARGE + LARGE), 413, "body_too_large")


def test_json_has_a_limit_of_its_own(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(received, "MOST_JSON_BYTES", 1_000_000)
    reply = client.post("/v1/metrics/compute", content=LARGE, headers=HEADERS)
    problem = check_problem(reply, 413, "body_too_large")
    assert problem["detail"] == "expected JSON of at most 1000000 bytes; send more as a file of Arrow or Parquet"


@pytest.mark.parametrize("headers", [{}, {"Prefer": "respond-async"}])
def test_a_body_that_there_is_no_space_for(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch, headers: dict[str, str]
) -> None:
    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Path("/dev/full").open("wb"))  # noqa: SIM115 - as it does
    # What is held back in a buffer has no room when the file is closed, either.
    pieces = (LARGE[start : start + 3000] for start in range(0, len(LARGE), 3000))
    reply = client.post("/v1/metrics/compute", content=pieces, headers=HEADERS | headers)
    assert "temporary files" in check_problem(reply, 507, "no_space")["detail"]
    assert reply.headers["Retry-After"] == "10"


def test_work_for_a_client_who_is_gone_is_ended(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    begun, ended = threading.Event(), threading.Event()

    async def endless(_: ComputePool, function: Any, file: BinaryIO | None = None) -> Any:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            ended.set()
            raise

    monkeypatch.setattr(ComputePool, "run", endless)
    with sending(base_url, len(LARGE), len(LARGE)):
        assert begun.wait(60)
    assert ended.wait(60)


def test_a_client_who_waits_is_answered(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ComputePool.run

    async def slow(pool: ComputePool, function: Any, file: BinaryIO | None = None) -> Any:
        # Longer than until somebody looks after the client.
        await asyncio.sleep(1.2)
        return await run(pool, function, file)

    monkeypatch.setattr(ComputePool, "run", slow)
    assert client.post("/v1/metrics/compute", content=LARGE, headers=HEADERS).status_code == 200


def test_a_process_that_ends_is_said(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ComputePool.run

    async def dying(pool: ComputePool, _: Any, file: BinaryIO | None = None) -> Any:
        return await run(pool, partial(_exit, 9))

    monkeypatch.setattr(ComputePool, "run", dying)
    reply = client.post("/v1/metrics/compute", content=LARGE, headers=HEADERS)
    check_problem(reply, 503, "process_lost")
    assert "Retry-After" in reply.headers


@pytest.mark.parametrize(
    ("settings_", "status", "code"),
    [({"compute_seconds": 0.001}, 504, "deadline_passed"), ({"compute_memory_bytes": 2**26}, 413, "not_enough_memory")],
)
def test_too_long_and_too_much(database_url: str, settings_: dict[str, Any], status: int, code: str) -> None:
    # Forty million bytes as an array, and twice that while its pieces are joined.
    labels = b"[" + b"0,1," * 2_500_000 + b"0,1]"
    body = b'{"input": {"kind": "predictions", "y_true": ' + labels + b', "y_pred": ' + labels + b"}}"
    with Served(Settings(database_url=SecretStr(database_url), **settings_)) as url:
        reply = httpx.post(f"{url}/v1/metrics/compute", content=body, headers=HEADERS, timeout=60)
    check_problem(reply, status, code)


def test_a_file_that_needs_too_much_memory_is_not_called_unreadable(database_url: str) -> None:
    """Half a megabyte that unpacks to twice what one request may take: Arrow says so while it reads."""
    columns = {"y_true": np.arange(8_000_000, dtype=np.int64) % 2, "score": np.zeros(8_000_000)}
    sink = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), sink, compression="zstd")
    with Served(Settings(database_url=SecretStr(database_url), compute_memory_bytes=2**26)) as url:
        reply = httpx.post(
            f"{url}/v1/metrics/compute",
            data={"evaluation": '{"input": {"kind": "scores"}}'},
            files={"data": ("scores.parquet", sink.getvalue())},
            timeout=60,
        )
    check_problem(reply, 413, "not_enough_memory")


def _exit(code: int) -> None:
    raise SystemExit(code)
