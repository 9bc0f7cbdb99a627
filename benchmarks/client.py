"""Load over HTTP/1.1 on kept connections: `python -m benchmarks.client < plan.json`, one JSON line as the answer.

A process of its own and as little work per request as Python allows, so that the servers under test have the processor.
A conversation is one or more requests in turn; what the first one's answer names `run_id` takes the place of
`PLACEHOLDER` in the others, which has the same length.
"""

import asyncio
import json
import re
import sys
import time
from dataclasses import dataclass, field
from itertools import cycle
from typing import Any, cast

import uvloop

PLACEHOLDER = b"run-id-of-the-first-answer".ljust(32, b"_")
_RUN_ID = re.compile(rb'"run_id":\s*"([0-9a-f]{32})"')
_LENGTH = re.compile(rb"\r\ncontent-length:\s*(\d+)", re.IGNORECASE)
_DRAIN_SECONDS = 60.0

Conversation = list[bytes]


def request(path: str, body: str, port: int, key: str = "") -> bytes:
    """One POST of JSON as it goes over the wire."""
    content = body.encode()
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n"
    head += f"Authorization: Bearer {key}\r\n" if key else ""
    return f"{head}Content-Length: {len(content)}\r\n\r\n".encode() + content


@dataclass
class Load:
    """What all connections share."""

    conversations: "cycle[Conversation]"
    measure_from: float
    measure_until: float
    latencies: list[float] = field(default_factory=list)
    completed: int = 0
    failed: int = 0
    first_failure: str = ""
    answer_bytes: int = 0


class Connection(asyncio.Protocol):
    """One kept connection that holds one conversation after another until the time is over."""

    def __init__(self, load: Load) -> None:
        self._load = load
        self._steps: Conversation = []
        self._step = 0
        self._run_id = b""
        self._started = 0.0
        self._received = bytearray()
        self._expected = 0
        self._status = 0
        self.closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # uvloop's transports are no subclass of asyncio's.
        self._transport = cast("asyncio.Transport", transport)
        self._begin()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.closed.done():
            if self._expected or self._started:
                self._fail(f"connection lost: {error}")
            self.closed.set_result(None)

    def _begin(self) -> None:
        now = time.perf_counter()
        if now >= self._load.measure_until:
            self._started = 0.0
            self._transport.close()
            return
        self._steps = next(self._load.conversations)
        self._step = 0
        self._started = now
        self._transport.write(self._steps[0])

    def data_received(self, data: bytes) -> None:
        received = self._received
        received += data
        if not self._expected:
            end = received.find(b"\r\n\r\n")
            if end < 0:
                return
            length = _LENGTH.search(received, 0, end + 2)
            if length is None:
                self._fail("an answer without Content-Length")
                self._transport.abort()
                return
            self._status = int(received[9:12])
            self._expected = end + 4 + int(length[1])
        if len(received) >= self._expected:
            self._answered()

    def _answered(self) -> None:
        load = self._load
        answer, self._received, self._expected = self._received, bytearray(), 0
        if self._status >= 300:
            self._fail(answer[-300:].decode(errors="replace"))
            self._begin()
            return
        self._step += 1
        if self._step < len(self._steps):
            if self._step == 1:
                found = _RUN_ID.search(answer)
                assert found is not None, answer
                self._run_id = found[1]
            self._transport.write(self._steps[self._step].replace(PLACEHOLDER, self._run_id))
            return
        now = time.perf_counter()
        load.completed += 1
        load.answer_bytes = len(answer)
        if load.measure_from <= now < load.measure_until:
            load.latencies.append(now - self._started)
        self._begin()

    def _fail(self, message: str) -> None:
        self._load.failed += 1
        self._load.first_failure = self._load.first_failure or f"{self._status} {message}"


async def run(plan: dict[str, Any]) -> dict[str, Any]:
    """Hold the connections of the plan open for its time; counts and latencies of what fell into the measured part."""
    port, key = plan["port"], plan.get("key", "")
    conversations = [[request(path, body, port, key) for path, body in steps] for steps in plan["conversations"]]
    start = time.perf_counter()
    load = Load(cycle(conversations), start + plan["warm_up"], start + plan["warm_up"] + plan["seconds"])
    loop = asyncio.get_running_loop()
    used = time.process_time()
    opened = [
        (await loop.create_connection(lambda: Connection(load), "127.0.0.1", port))[1]
        for _ in range(plan["connections"])
    ]
    async with asyncio.timeout(plan["warm_up"] + plan["seconds"] + _DRAIN_SECONDS):
        await asyncio.gather(*(connection.closed for connection in opened))
    return {
        "rate": len(load.latencies) / plan["seconds"],
        "latencies": load.latencies,
        "completed": load.completed,
        "failed": load.failed,
        "first_failure": load.first_failure,
        "answer_bytes": load.answer_bytes,
        "client_cpu": time.process_time() - used,
        "process_cpu": time.process_time(),
    }


def main() -> None:
    plan = json.load(sys.stdin)
    print(json.dumps(uvloop.run(run(plan))))


if __name__ == "__main__":
    main()
