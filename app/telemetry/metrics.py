"""Metrics of the service itself: instruments, samples of queues and memory, and the text that Prometheus reads."""

import asyncio
import contextlib
import logging
import os
import resource
from collections import Counter as Counted
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from sqlalchemy.ext.asyncio import AsyncEngine

from app.api.answers import write_json
from app.api.middleware import LOGGER, RequestFacts, RequestSink
from app.domain.members import rfc3339
from app.services.admission import Admission
from app.services.present import Observer
from app.services.processes.compute import ComputePool
from app.store.writer import EvaluationWriter

_log = logging.getLogger(LOGGER)


class DatabaseLog(Observer):
    """Writes to the log when the database is lost and when it is back."""

    def observed(self, what: str, amount: float, **labels: str) -> None:
        """Tell of nothing else."""
        match what:
            case "database_lost":
                _write(what, **labels)
            case "database_lost_seconds":
                _write("database_back", seconds=round(amount, 3))


def _write(event: str, **facts: Any) -> None:
    _log.info("%s", write_json({"at": rfc3339(datetime.now(UTC)), "event": event, **facts}).decode())


NO_ADDRESS: Final = "none"
OTHER: Final = "other"
# The client went away before there was an answer.
GONE: Final = "gone"
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_ROWS: Final = (1, 2, 4, 8, 16, 32, 64, 128)
# Clients that are told apart between two looks; further ones count as one.
_MOST_CLIENTS: Final = 10_000


# By name what each counts, and its labels.
_COUNTERS: Final[Mapping[str, tuple[str, ...]]] = {
    "http_requests": ("Requests that are over.", "route", "method", "status"),
    "http_request_bytes": ("Bytes of bodies of requests, as they came.",),
    "http_response_bytes": ("Bytes of bodies of answers, as they were sent.",),
    "refusals": ("Requests that were answered a problem, by its code.", "code"),
    "busiest_client_requests": ("Of each few seconds, the requests of the client that sent most.",),
    "database_lost": ("How often the database stopped answering.",),
    "database_back": ("How often it answered again.",),
    "database_lost_seconds": ("How long it was away, counted when it is back.",),
}
_HISTOGRAMS: Final[Mapping[str, tuple[str, ...]]] = {
    "http_request_seconds": ("From a request to its answer.", "route", "method"),
    "compute_seconds": ("Arithmetic, by use case and by where: on the event loop or in a process.", "kind", "where"),
    "compute_wait_seconds": ("How long arithmetic waited for a process.",),
    "database_seconds": ("What was asked of the database, waiting for a connection or a commit included.", "work"),
    "commit_rows": ("Evaluations that were committed together.",),
    "commit_seconds": ("One commit of evaluations.",),
    "webhook_seconds": ("One attempt to tell a webhook, by what became of the delivery.", "outcome"),
    "event_loop_delay_seconds": ("How late the event loop comes to what is due.",),
}


class ServiceMetrics(Observer, RequestSink):
    """The instruments of one process, which observers and layers of the web tell what happens."""

    def __init__(self, codes: Container[str], version: str) -> None:
        """Take the codes that problems can have: a refusal for another reason counts as `other`."""
        # Twice as many series otherwise, which nobody asks for.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # the library leaves it untyped
        self.registry = CollectorRegistry(auto_describe=False)
        self._codes = codes
        # By the id of their key, or else by their address.
        self._clients: Counted[object] = Counted()
        self.in_flight = 0
        self._instruments: dict[str, Counter | Histogram] = {
            name: Counter(f"prevail_{name}", said, labels, registry=self.registry)
            for name, (said, *labels) in _COUNTERS.items()
        }
        for name, (said, *labels) in _HISTOGRAMS.items():
            buckets = _ROWS if name == "commit_rows" else _SECONDS
            self._instruments[name] = Histogram(
                f"prevail_{name}", said, labels, registry=self.registry, buckets=buckets
            )
        release = self.gauge("build_info", "1, with the release of the service.", "version", mode="livemax")
        release.labels(version).set(1)

    def observed(self, what: str, amount: float, **labels: str) -> None:
        """Count it, or observe the time that it took."""
        instrument = self._instruments[what]
        _, *names = _COUNTERS.get(what) or _HISTOGRAMS[what]
        if names:
            instrument = instrument.labels(*(labels[name] for name in names))
        if isinstance(instrument, Counter):
            instrument.inc(amount)
        else:
            instrument.observe(amount)

    def gauge(self, name: str, said: str, *labels: str, mode: str = "livesum") -> Gauge:
        """A gauge; over all workers it is the sum of those that live."""
        return Gauge(f"prevail_{name}", said, labels, registry=self.registry, multiprocess_mode=mode)  # type: ignore[arg-type]  # one of its literals

    # What the layers of the web tell.

    def begun(self) -> None:
        """A request has come."""
        self.in_flight += 1

    def ended(self, facts: RequestFacts) -> None:
        """A request is over."""
        self.in_flight -= 1
        scope, state = facts.scope, facts.state
        method = scope["method"] if scope["method"] in _METHODS else OTHER
        status = GONE if facts.status is None else str(facts.status)
        route = facts.template or NO_ADDRESS
        self.observed("http_requests", 1, route=route, method=method, status=status)
        self.observed("http_request_seconds", facts.seconds, route=route, method=method)
        self.observed("http_request_bytes", facts.received)
        self.observed("http_response_bytes", facts.sent)
        if state.get("code") is not None:
            self.refused(state["code"])
        client = state.get("key_id") or (scope.get("client") or ("",))[0]
        if client in self._clients or len(self._clients) < _MOST_CLIENTS:
            self._clients[client] += 1
        else:
            self._clients[OTHER] += 1

    def refused(self, code: str) -> None:
        """A request was answered a problem."""
        self.observed("refusals", 1, code=code if code in self._codes else OTHER)

    def count_clients(self) -> int:
        """Return the number of clients since the last call; add the requests of the busiest to its counter."""
        clients, self._clients = self._clients, Counted()
        if clients:
            self.observed("busiest_client_requests", max(clients.values()))
        return len(clients)


# Queues are looked at at every turn, and when metrics are read; memory and clients at every fifth.
TURN_SECONDS: Final = 1.0
_SLOW_TURNS: Final = 5
_PAGE: Final = resource.getpagesize()


# Gauges, with what is read for each.
Levels = list[tuple[Gauge, Callable[[], float]]]


class Sampler:
    """Samples gauges on the event loop, one for each process."""

    def __init__(
        self,
        metrics: ServiceMetrics,
        levels: Levels,
        *,
        lost: Callable[[], bool],
        ask: Callable[[], Awaitable[object]],
    ) -> None:
        """Take what to look at, and whether the database is lost: it is asked at every turn then until it is back."""
        self._metrics, self._levels, self._lost, self._ask = metrics, levels, lost, ask
        self._clients = metrics.gauge("clients", "Clients, by key or else by address, in the last few seconds.")
        self._memory = metrics.gauge("resident_memory_bytes", "Memory in use, shared pages counted in each.", "process")
        self._processes = metrics.gauge("processes", "Processes that run.", "process")

    async def run(self) -> None:
        """Look again and again."""
        loop = asyncio.get_running_loop()
        turn = 0
        while True:
            self.look()
            if turn % _SLOW_TURNS == 0:
                self._clients.set(self._metrics.count_clients())
                self.weigh()
            if self._lost():
                await self._ask()
            turn += 1
            due = loop.time() + TURN_SECONDS
            await asyncio.sleep(TURN_SECONDS)
            self._metrics.observed("event_loop_delay_seconds", max(loop.time() - due, 0.0))

    async def text(self) -> bytes:
        """The metrics in the text format of Prometheus, with what this process finds now."""
        self.look()
        folder = os.environ.get(FOLDER_VARIABLE)
        if folder is None:
            return generate_latest(self._metrics.registry)
        # Files of all workers are read, which takes a while.
        return await asyncio.to_thread(_of_all_workers, Path(folder))

    def look(self) -> None:
        """Set the gauges of queues."""
        for gauge, read in self._levels:
            gauge.set(read())

    def weigh(self) -> None:
        """Set the gauges of memory; only Linux tells it of other processes."""
        own = _resident(os.getpid())
        if own is None:
            return
        others = [size for size in map(_resident, descendants(os.getpid())) if size is not None]
        for name, sizes in (("server", [own]), ("compute", others)):
            self._memory.labels(name).set(sum(sizes))
            self._processes.labels(name).set(len(sizes))


def descendants(process: int) -> Iterator[int]:
    """Processes of the same program that one has started, and those that they have. An embedded Postgres is another."""
    program = _program(process)
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        # It may end while it is looked at.
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                if program is not None and _program(child) == program:
                    yield child
                    yield from descendants(child)


def _program(process: int) -> Path | None:
    """The program of a process; None when it has ended."""
    try:
        return Path(f"/proc/{process}/exe").readlink()
    except OSError:
        return None


def _resident(process: int) -> int | None:
    """Bytes of memory of a process; None when it has ended."""
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    except OSError:
        return None


def levels(
    metrics: ServiceMetrics,
    admission: Admission,
    compute: ComputePool,
    writer: EvaluationWriter,
    engine: AsyncEngine,
) -> Levels:
    """Return the gauges of queues and connections."""

    def level(name: str, said: str, read: Callable[[], float]) -> Levels:
        return [(metrics.gauge(name, said), read)]

    def by_state(name: str, said: str, **states: Callable[[], float]) -> Levels:
        gauge = metrics.gauge(name, said, "state")
        return [(gauge.labels(state), read) for state, read in states.items()]

    # No overflow is allowed, so it has no other kind.
    pool: Any = engine.pool
    return [
        *level("http_requests_in_flight", "Requests that are not over.", lambda: metrics.in_flight),
        *by_state("writes", "Writes by state.", admitted=lambda: admission.held, waiting=lambda: admission.waiting),
        *by_state(
            "compute_jobs",
            "Large computations by state.",
            running=lambda: compute.running,
            waiting=lambda: compute.waiting,
        ),
        *level("commit_queue", "Evaluations that wait for a commit to begin.", lambda: writer.waiting),
        *by_state(
            "database_connections", "Connections of the pool by state.", in_use=pool.checkedout, idle=pool.checkedin
        ),
        *level("database_pool_size", "Connections that the pool may have.", pool.size),
    ]


# prometheus_client looks at it when it is imported.
FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"


def _of_all_workers(folder: Path) -> bytes:
    for path in folder.glob("gauge_live*_*.db"):
        process = int(path.stem.rpartition("_")[2])
        if not _lives(process):
            # What it had counted stays, how it was is over.
            mark_process_dead(process, str(folder))  # type: ignore[no-untyped-call]  # the library leaves it untyped
    gathered = CollectorRegistry()
    gathered.register(_WorkersCollector(folder))
    return generate_latest(gathered)


class _WorkersCollector(Collector):
    """The metrics of all workers, without files that another worker has only just made: those are empty."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterable[Metric]:
        files = [str(path) for path in self._folder.glob("*.db") if path.stat().st_size]
        merge = MultiProcessCollector.merge
        merged: Iterable[Metric] = merge(files, accumulate=True)  # type: ignore[no-untyped-call]  # as above
        return merged


def _lives(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        # Gone, or another's that has got its id.
        return False
    return True
