"""What is looked at from time to time: how long queues are, connections, memory, whether the event loop keeps up."""

import asyncio
import contextlib
import os
import resource
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from prometheus_client import Gauge

from app.telemetry.metrics import ServiceMetrics

# Queues are looked at at every turn, and when metrics are read; memory and clients at every fifth.
TURN_SECONDS: Final = 1.0
_SLOW_TURNS: Final = 5
_PAGE: Final = resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Level:
    """Something that has a height: the name of its gauge, what is said of it, and perhaps a label with its value.

    Attributes:
        mode: How the gauges of several workers become one.
    """

    name: str
    said: str
    read: Callable[[], float]
    label: tuple[str, str] | None = None
    mode: str = "livesum"


class Sampler:
    """One per process, on its event loop."""

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
