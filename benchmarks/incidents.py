"""What metrics show of incidents, each provoked once: `python -m benchmarks.incidents [--seconds 15]`.

One worker on an embedded Postgres behind a proxy that can be made slow. Eight keys send a little of everything all the
time. Then, one after another: nothing, a slow database, more large computations than there is room for, one client
that floods, and a service that keeps something of every request. The table has what the expressions give that
docs/operations.md and the dashboard have, over the time of the incident.
"""

import argparse
import asyncio
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from math import isnan
from pathlib import Path
from typing import Any, Final

import httpx
import numpy as np
from prometheus_client.parser import text_string_to_metric_families
from starlette.types import ASGIApp, Receive, Scope, Send

from app.embedded import EmbeddedPostgres
from benchmarks.http import free_port, serving, wait_for
from benchmarks.observed import make_key

KEYS: Final = 8
_PAUSE_SECONDS: Final = 0.5
_SLOW_SECONDS: Final = 0.15
_LEAK_BYTES: Final = 256 * 1024
_AT_ONCE: Final = 48
_FLOOD: Final = 16
_MATRIX: Final = {
    "model": {"name": "m"},
    "dataset": {"name": "d"},
    "input": {"kind": "confusion_matrix", "matrix": [[50, 4, 1], [3, 40, 7], [2, 6, 60]]},
}

# --- what is sent ----------------------------------------------------------------------------------------------------


def large() -> dict[str, Any]:
    """Something that takes a process for a while."""
    random = np.random.default_rng(1)
    truth = random.integers(0, 2, 4000)
    score = np.clip(random.normal(0.4 + 0.2 * truth, 0.2), 0, 1)
    source = {"kind": "scores", "y_true": truth.tolist(), "scores": score.round(6).tolist(), "threshold": 0.5}
    return {"input": source, "options": {"intervals": "all"}}


@dataclass(frozen=True)
class Target:
    """A service, the keys of its clients, and the way to its database."""

    port: int
    keys: list[str]
    way: "Way"

    @asynccontextmanager
    async def client(self, key: int) -> AsyncIterator[httpx.AsyncClient]:
        """One of those who use it."""
        headers = {"Authorization": f"Bearer {self.keys[key]}"}
        limits = httpx.Limits(max_connections=_AT_ONCE)
        url = f"http://127.0.0.1:{self.port}"
        async with httpx.AsyncClient(base_url=url, headers=headers, timeout=60, limits=limits) as client:
            yield client


async def usual(target: Target, key: int) -> None:
    """A little of everything, for ever."""
    async with target.client(key) as client:
        while True:
            for method, path, body in (("POST", "/v1/evaluations", _MATRIX), ("GET", "/v1/evaluations?limit=5", None)):
                await client.request(method, path, json=body)
                await asyncio.sleep(_PAUSE_SECONDS)


async def nothing(_: Target) -> None:
    """As always."""


async def slow_database(target: Target) -> None:
    """Every answer of the database comes late."""
    target.way.delay = _SLOW_SECONDS


async def full_queue(target: Target) -> None:
    """All clients ask for large computations at once, again and again."""
    body = large()

    async def ask(key: int) -> None:
        async with target.client(key) as client:
            while True:
                await asyncio.gather(*(client.post("/v1/metrics/compute", json=body) for _ in range(_AT_ONCE // KEYS)))

    await asyncio.gather(*(ask(key) for key in range(KEYS)))


async def flooding(target: Target) -> None:
    """One client sends as much as it can."""
    async with target.client(0) as client:

        async def send() -> None:
            while True:
                await client.post("/v1/evaluations", json=_MATRIX)

        await asyncio.gather(*(send() for _ in range(_FLOOD)))


INCIDENTS: Final[dict[str, Callable[[Target], Awaitable[None]]]] = {
    "as always": nothing,
    "slow database": slow_database,
    "full queue": full_queue,
    "one client floods": flooding,
    "a leak": nothing,
}


def leaking() -> ASGIApp:
    """The service with a fault: it keeps something of every request."""
    from app.main import create

    app, kept = create(), []

    async def leak(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            kept.append(b"x" * _LEAK_BYTES)
        await app(scope, receive, send)

    return leak


class Way:
    """Hands on what service and database say, later when it is told so."""

    def __init__(self, port: int) -> None:
        self._target = port
        self.delay = 0.0

    async def open(self) -> int:
        """Take connections; the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", self._target)

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter, *, answers: bool) -> None:
            with suppress(OSError):
                while data := await source.read(65536):
                    if answers and self.delay:
                        await asyncio.sleep(self.delay)
                    target.write(data)
                    await target.drain()
            target.close()

        await asyncio.gather(copy(reader, back, answers=False), copy(there, writer, answers=True))


# --- what is read ----------------------------------------------------------------------------------------------------

Labels = frozenset[tuple[str, str]]
Series = dict[tuple[str, Labels], float]


def parsed(text: str) -> Series:
    """Every sample of an exposition."""
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@dataclass(frozen=True)
class Watched:
    """The metrics at each second of an incident."""

    series: list[Series]
    seconds: float

    def total(self, name: str, **labels: str) -> float:
        """How much a counter has grown, over all its series with these labels."""
        return sum(
            value - self.series[0].get((found, own), 0.0)
            for (found, own), value in self.series[-1].items()
            if found == name and labels.items() <= dict(own).items()
        )

    def rate(self, name: str, **labels: str) -> float:
        """By second."""
        return self.total(name, **labels) / self.seconds

    def highest(self, name: str, **labels: str) -> float:
        """The greatest value of a gauge."""
        return max(one.get((name, frozenset(labels.items())), 0.0) for one in self.series)

    def quantile(self, q: float, name: str, **labels: str) -> float:
        """As `histogram_quantile` finds it: linear within the bucket."""
        bounds = sorted(
            {float(dict(own)["le"]) for (found, own) in self.series[-1] if found == f"{name}_bucket"} - {float("inf")}
        )
        everything = self.total(f"{name}_bucket", le="+Inf", **labels)
        below, start = 0.0, 0.0
        for bound in bounds:
            within = self.total(f"{name}_bucket", le=str(bound), **labels)
            if everything and within >= q * everything:
                return start + (bound - start) * (q * everything - below) / (within - below)
            below, start = within, bound
        return start if everything else float("nan")

    def slope(self, name: str, **labels: str) -> float:
        """By second, as `deriv` finds it: least squares."""
        values = [one.get((name, frozenset(labels.items())), 0.0) for one in self.series]
        return float(np.polyfit(np.linspace(0, self.seconds, len(values)), values, 1)[0])


_ALL: Final = "prevail_http_requests_total"
_POST: Final = {"route": "/v1/evaluations", "method": "POST"}


def milliseconds(seconds: float) -> str:
    return "-" if isnan(seconds) else f"{1000 * seconds:.1f} ms"


SIGNALS: Final[tuple[tuple[str, Callable[[Watched], str]], ...]] = (
    ("requests per second", lambda w: f"{w.rate(_ALL):.0f}"),
    (
        "request, 95 %",
        lambda w: milliseconds(w.quantile(0.95, "prevail_http_request_seconds", **_POST)),
    ),
    ("commit, 95 %", lambda w: milliseconds(w.quantile(0.95, "prevail_commit_seconds"))),
    ("database read, 95 %", lambda w: milliseconds(w.quantile(0.95, "prevail_database_seconds", work="read"))),
    (
        "rows per commit",
        lambda w: f"{w.total('prevail_commit_rows_sum') / max(w.total('prevail_commit_rows_count'), 1):.1f}",
    ),
    ("compute jobs waiting, most", lambda w: f"{w.highest('prevail_compute_jobs', state='waiting'):.0f}"),
    ("wait for a process, 95 %", lambda w: milliseconds(w.quantile(0.95, "prevail_compute_wait_seconds"))),
    ("refused `overloaded` per second", lambda w: f"{w.rate('prevail_refusals_total', code='overloaded'):.1f}"),
    ("refused `rate_limited` per second", lambda w: f"{w.rate('prevail_refusals_total', code='rate_limited'):.1f}"),
    (
        "share of the busiest client",
        lambda w: f"{100 * w.rate('prevail_busiest_client_requests_total') / w.rate(_ALL):.0f} %",
    ),
    (
        "memory of the server, growth per minute",
        lambda w: f"{60 * w.slope('prevail_resident_memory_bytes', process='server') / 2**20:.0f} MiB",
    ),
)


async def watch(target: Target, incident: Callable[[Target], Awaitable[None]], seconds: float) -> Watched:
    """Let an incident happen beside the usual load, and read the metrics every second."""
    loads = [asyncio.create_task(usual(target, key)) for key in range(KEYS)]
    await asyncio.sleep(6)
    extra = asyncio.ensure_future(incident(target))
    # What it changes shows from here on.
    await asyncio.sleep(3)
    series = []
    async with target.client(KEYS) as scraper:
        begin = asyncio.get_running_loop().time()
        for place in range(int(seconds) + 1):
            await asyncio.sleep(max(begin + place - asyncio.get_running_loop().time(), 0))
            series.append(parsed((await scraper.get("/metrics")).raise_for_status().text))
        took = asyncio.get_running_loop().time() - begin
    for task in (*loads, extra):
        task.cancel()
    await asyncio.gather(*loads, extra, return_exceptions=True)
    target.way.delay = 0.0
    return Watched(series, took)


@contextmanager
def service(dsn: str, *, leaks: bool) -> Iterator[int]:
    """The service with keys, on its way to a database."""
    port = free_port()
    environment = {
        "PREVAIL_DATABASE_URL": dsn,
        "PREVAIL_PORT": str(port),
        "PREVAIL_AUTHENTICATION": "keys",
        "PREVAIL_KEY_RATE": "200/second",
        "PREVAIL_COMPUTE_PROCESSES": "1",
        "PREVAIL_LOG_LEVEL": "warning",
    }
    command = [sys.executable, "-m", "app", "serve"]
    if leaks:
        command = [sys.executable, "-m", "uvicorn", "--factory", "benchmarks.incidents:leaking", "--port", str(port)]
        command += ["--loop", "uvloop", "--no-access-log", "--log-level", "warning"]
    with serving(command, **environment) as process:
        wait_for(port, "/healthz", process)
        yield port


async def run(seconds: float) -> dict[str, Watched]:
    """All incidents, one after another."""
    found = {}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prevail-bench-")))
        postgres = stack.enter_context(EmbeddedPostgres.start(folder / "data", durable=True))
        postgres.create_database("incidents")
        dsn = postgres.dsn("incidents")
        migrated = {**os.environ, "PREVAIL_DATABASE_URL": dsn}
        subprocess.run([sys.executable, "-m", "app", "migrate"], env=migrated, check=True, stdout=subprocess.DEVNULL)
        keys = [make_key(dsn) for _ in range(KEYS + 1)]
        head, _, tail = dsn.rpartition("@")
        host_and_port, _, name = tail.partition("/")
        way = Way(int(host_and_port.rpartition(":")[2]))
        through = f"{head}@127.0.0.1:{await way.open()}/{name}"
        for incident, happen in INCIDENTS.items():
            # Each has its own, so that nothing is left of the one before. The way has to go on meanwhile.
            own = ExitStack()
            port = await asyncio.to_thread(own.enter_context, service(through, leaks=incident == "a leak"))
            found[incident] = await watch(Target(port, keys, way), happen, seconds)
            await asyncio.to_thread(own.close)
            print(f"{incident}: {len(found[incident].series)} readings", file=sys.stderr, flush=True)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=15.0)
    chosen = parser.parse_args()
    found = asyncio.run(run(chosen.seconds))
    length = statistics.median(watched.seconds for watched in found.values())
    print(f"Each for {length:.0f} s; {KEYS} clients as always, one worker, one compute process.")
    print()
    print(f"| | {' | '.join(found)} |")
    print(f"| --- |{' ---: |' * len(found)}")
    for name, signal in SIGNALS:
        print(f"| {name} | {' | '.join(signal(watched) for watched in found.values())} |")


if __name__ == "__main__":
    main()
