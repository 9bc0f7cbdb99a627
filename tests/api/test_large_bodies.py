"""Room for large bodies, and work for clients who are gone."""

import asyncio
import io
import json
import socket
import time
from collections.abc import Iterator
from functools import partial
from typing import Any, BinaryIO

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from pydantic import SecretStr

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


def half_sent(url: str, announced: int, sent: int) -> socket.socket:
    """A connection on which a part of a body is held. What came before may still be there for a moment."""
    host, port = url.removeprefix("http://").split(":")
    head = "POST /v1/metrics/compute HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    start = f"{head}Content-Length: {announced}\r\n\r\n".encode()
    deadline = time.monotonic() + 20
    while True:
        connection = socket.create_connection((host, int(port)))
        connection.sendall(start + LARGE[:sent])
        connection.settimeout(0.5)
        try:
            answer = connection.recv(1000)
        except TimeoutError:
            return connection
        assert b" 503 " in answer, answer
        assert time.monotonic() < deadline
        connection.close()


def test_large_bodies_share_a_room(narrow: str) -> None:
    with httpx.Client(base_url=narrow, timeout=60) as client:
        assert client.post("/v1/metrics/compute", content=LARGE, headers=HEADERS).status_code == 200
        with half_sent(narrow, len(LARGE), 2_000_000):
            deadline = time.monotonic() + 20
            while (reply := client.post("/v1/metrics/compute", content=LARGE, headers=HEADERS)).status_code == 200:
                assert time.monotonic() < deadline
            check_problem(reply, 503, "overloaded")
            assert reply.headers["Retry-After"] == "5"
            assert client.post("/v1/metrics/compute", content=b"{}", headers=HEADERS).status_code == 422
        while client.post("/v1/metrics/compute", content=LARGE, headers=HEADERS).status_code != 200:
            assert time.monotonic() < deadline + 20


def test_work_for_a_client_who_is_gone_is_ended(base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ends: list[str] = []

    async def slow(_: ComputePool, function: Any, file: BinaryIO | None = None) -> Any:
        try:
            await asyncio.sleep(30)
            return function(file)
        except asyncio.CancelledError:
            ends.append("cancelled")
            raise

    monkeypatch.setattr(ComputePool, "run", slow)
    with half_sent(base_url, len(LARGE), len(LARGE)):
        time.sleep(0.5)
    _wait_for(lambda: ends == ["cancelled"])


def test_a_client_who_waits_is_answered(client: httpx.Client, monkeypatch: pytest.MonkeyPatch) -> None:
    run = ComputePool.run

    async def slow(pool: ComputePool, function: Any, file: BinaryIO | None = None) -> Any:
        await asyncio.sleep(2.5)
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


def _wait_for(condition: Any) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
