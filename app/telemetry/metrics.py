"""Metrics of the service itself: instruments, samples of queues and memory, and the text that Prometheus reads."""

import asyncio
import contextlib
import logging
import os
import resource
from collections import Counter as Counted
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics, generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector
from sqlalchemy.ext.asyncio import AsyncEngine

from app.api.answers import write_json
from app.api.middleware import LOGGER, RequestFacts
from app.domain.members import rfc3339
from app.services.admission import Admission
from app.services.present import Observer
from app.services.processes.compute import ComputePool
from app.store.writer import EvaluationWriter

_log = logging.getLogger(LOGGER)


class DatabaseLog(Observer):
    """Tells of nothing else."""

    def database_lost(self, reason: str) -> None:
        """Write a line to the log."""
        _write("database_lost", reason=reason)

    def database_back(self, seconds: float) -> None:
        """Write a line to the log."""
        _write("database_back", seconds=round(seconds, 3))


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


class ServiceMetrics(Observer):
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
        self._make_instruments()
        release = self.gauge("build_info", "1, with the release of the service.", "version", mode="livemax")
        release.labels(version).set(1)

    def _make_instruments(self) -> None:
        self._requests = self._counter("http_requests", "Requests that are over.", "route", "method", "status")
        self._request_seconds = self._histogram(
            "http_request_seconds", "From a request to its answer.", "route", "method"
        )
        self._received = self._counter("http_request_bytes", "Bytes of bodies of requests, as they came.")
        self._sent = self._counter("http_response_bytes", "Bytes of bodies of answers, as they were sent.")
        self._refusals = self._counter("refusals", "Requests that were answered a problem, by its code.", "code")
        self._busiest = self._counter(
            "busiest_client_requests", "Of each few seconds, the requests of the client that sent most."
        )
        self._compute_seconds = self._histogram(
            "compute_seconds",
            "Arithmetic, by use case and by where: on the event loop or in a process.",
            "kind",
            "where",
        )
        self._compute_wait = self._histogram("compute_wait_seconds", "How long arithmetic waited for a process.")
        self._database_seconds = self._histogram(
            "database_seconds", "What was asked of the database, waiting for a connection or a commit included.", "work"
        )
        self._commit_rows = self._histogram("commit_rows", "Evaluations that were committed together.", buckets=_ROWS)
        self._commit_seconds = self._histogram("commit_seconds", "One commit of evaluations.")
        self._webhook_seconds = self._histogram(
            "webhook_seconds", "One attempt to tell a webhook, by what became of the delivery.", "outcome"
        )
        self._lost = self._counter("database_lost", "How often the database stopped answering.")
        self._back = self._counter("database_back", "How often it answered again.")
        self._lost_seconds = self._counter("database_lost_seconds", "How long it was away, counted when it is back.")
        self._delay = self._histogram("event_loop_delay_seconds", "How late the event loop comes to what is due.")

    def _counter(self, name: str, said: str, *labels: str) -> Counter:
        return Counter(f"prevail_{name}", said, labels, registry=self.registry)

    def _histogram(self, name: str, said: str, *labels: str, buckets: tuple[float, ...] = _SECONDS) -> Histogram:
        return Histogram(f"prevail_{name}", said, labels, registry=self.registry, buckets=buckets)

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
        self._requests.labels(route, method, status).inc()
        self._request_seconds.labels(route, method).observe(facts.seconds)
        self._received.inc(facts.received)
        self._sent.inc(facts.sent)
        if state.get("code") is not None:
            self.refused(state["code"])
        client = state.get("key_id") or (scope.get("client") or ("",))[0]
        if client in self._clients or len(self._clients) < _MOST_CLIENTS:
            self._clients[client] += 1
        else:
            self._clients[OTHER] += 1

    def refused(self, code: str) -> None:
        """A request was answered a problem."""
        self._refusals.labels(code if code in self._codes else OTHER).inc()

    # What observers are told.

    def computed(self, kind: str, seconds: float, *, apart: bool) -> None:
        """Observe the time of a computation."""
        self._compute_seconds.labels(kind, "process" if apart else "loop").observe(seconds)

    def waited_to_compute(self, seconds: float) -> None:
        """Observe the time that a computation waited."""
        self._compute_wait.observe(seconds)

    def database_used(self, work: str, seconds: float) -> None:
        """Observe the time of a use of the database."""
        self._database_seconds.labels(work).observe(seconds)

    def committed(self, rows: int, seconds: float) -> None:
        """Observe a commit."""
        self._commit_rows.observe(rows)
        self._commit_seconds.observe(seconds)

    def webhook_sent(self, outcome: str, seconds: float) -> None:
        """Count an attempt to send to a webhook."""
        self._webhook_seconds.labels(outcome).observe(seconds)

    def database_lost(self, reason: str) -> None:  # noqa: ARG002 - a label for each would be one for each driver's error
        """Count a loss of the database."""
        self._lost.inc()

    def database_back(self, seconds: float) -> None:
        """Observe the time that the database was lost."""
        self._back.inc()
        self._lost_seconds.inc(seconds)

    # What is looked at from time to time.

    def loop_was_late(self, seconds: float) -> None:
        """The event loop came so late to something that was due."""
        self._delay.observe(seconds)

    def count_clients(self) -> int:
        """Return the number of clients since the last call; add the requests of the busiest to its counter."""
        clients, self._clients = self._clients, Counted()
        if clients:
            self._busiest.inc(max(clients.values()))
        return len(clients)


# Queues are looked at at every turn, and when metrics are read; memory and clients at every fifth.
TURN_SECONDS: Final = 1.0
_SLOW_TURNS: Final = 5
_PAGE: Final = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Level:
    """A gauge: its name, description, value, and perhaps a label.

    Attributes:
        mode: How the gauges of several workers become one.
    """

    name: str
    said: str
    read: Callable[[], float]
    label: tuple[str, str] | None = None
    mode: str = "livesum"


class Sampler:
    """Samples gauges on the event loop, one for each process."""

    def __init__(
        self,
        metrics: ServiceMetrics,
        levels: Sequence[Level],
        *,
        lost: Callable[[], bool],
        ask: Callable[[], Awaitable[object]],
    ) -> None:
        """Take what to look at, and whether the database is lost: it is asked at every turn then until it is back."""
        self._metrics, self._lost, self._ask = metrics, lost, ask
        self._gauges: list[tuple[Gauge, Callable[[], float]]] = []
        made: dict[str, Gauge] = {}
        for level in levels:
            if level.name not in made:
                made[level.name] = metrics.gauge(level.name, level.said, *(level.label or ())[:1], mode=level.mode)
            gauge = made[level.name]
            self._gauges.append((gauge if level.label is None else gauge.labels(level.label[1]), level.read))
        self._clients = metrics.gauge("clients", "Clients, by key or else by address, in the last few seconds.")
        self._memory = metrics.gauge("resident_memory_bytes", "Memory in use, shared pages counted in each.", "process")
        self._processes = metrics.gauge("processes", "Processes that run.", "process")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begin to look."""
        self._task = asyncio.create_task(self._run(), name="metrics-sampler")

    async def stop(self) -> None:
        """End."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
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
            self._metrics.loop_was_late(max(loop.time() - due, 0.0))

    def look(self) -> None:
        """Set the gauges of queues."""
        for gauge, read in self._gauges:
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
    """Processes that one has started, and those that they have."""
    for path in Path(f"/proc/{process}/task").glob("*/children"):
        # It may end while it is looked at.
        with contextlib.suppress(OSError):
            for child in map(int, path.read_text().split()):
                yield child
                yield from descendants(child)


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
) -> list[Level]:
    """Return the gauges of queues and connections."""
    # No overflow is allowed, so it has no other kind.
    pool: Any = engine.pool
    writes, jobs, connections = "Writes by state.", "Large computations by state.", "Connections of the pool by state."
    return [
        Level("http_requests_in_flight", "Requests that are not over.", lambda: metrics.in_flight),
        Level("writes", writes, lambda: admission.held, ("state", "admitted")),
        Level("writes", writes, lambda: admission.waiting, ("state", "waiting")),
        Level("compute_jobs", jobs, lambda: compute.running, ("state", "running")),
        Level("compute_jobs", jobs, lambda: compute.waiting, ("state", "waiting")),
        Level("commit_queue", "Evaluations that wait for a commit to begin.", lambda: writer.waiting),
        Level("database_connections", connections, pool.checkedout, ("state", "in_use")),
        Level("database_connections", connections, pool.checkedin, ("state", "idle")),
        Level("database_pool_size", "Connections that the pool may have.", pool.size),
    ]


# prometheus_client looks at it when it is imported.
FOLDER_VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"


class Exposition:
    """Writes the metrics when they are asked for."""

    def __init__(self, registry: CollectorRegistry, look: Callable[[], None]) -> None:
        self._registry, self._look = registry, look

    async def text(self) -> bytes:
        """The metrics in the text format of Prometheus, with what this process finds now."""
        self._look()
        folder = os.environ.get(FOLDER_VARIABLE)
        if folder is None:
            return generate_latest(self._registry)
        # Files of all workers are read, which takes a while.
        return await asyncio.to_thread(_of_all_workers, Path(folder))


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
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
