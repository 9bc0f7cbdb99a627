"""Processes for heavy arithmetic, which can be ended.

Work in a thread cannot be: one request that takes too long, too much memory, or the interpreter with it would take the
service along. A process costs its request a few milliseconds and one copy of its arguments, and nobody else anything.
"""

import asyncio
import pickle
import queue
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
from typing import Any, BinaryIO, TypeVar
from weakref import WeakValueDictionary

from app.domain.errors import ProcessLost
from app.services.admission import Admission
from app.services.present import APART, UNOBSERVED, Observers, kind_of, sharer
from app.services.processes.worker import Limits, Tell, Worker, listener

Result = TypeVar("Result")


class ComputePool:
    """Runs pure functions. They are sent to a process with their arguments, so both have to be picklable."""

    def __init__(
        self,
        processes: int,
        limits: Limits,
        *,
        wait_seconds: float,
        observers: Observers = UNOBSERVED,
    ) -> None:
        """Work waits ``wait_seconds`` for a process."""
        self.observers = observers
        self._limits = limits
        # Threads wait for processes; each job has a thread and a worker to itself, a piece that is lent one too.
        self._threads = ThreadPoolExecutor(max_workers=processes + 1, thread_name_prefix="compute")
        self._idle: queue.SimpleQueue[Worker] = queue.SimpleQueue()
        # By time, not by number: many short computations in a row are no reason to refuse one, a few long ones are.
        self._admitting = partial(Admission, wait_seconds=wait_seconds, what="large computations", retry_after=5)
        self._places = self._admitting(limit=processes)
        # Of each project as long as it computes: it has all processes but one at most, and where there is one only the
        # next place after those of others, so that nobody's long computations leave the others without.
        self._shares: WeakValueDictionary[str, Admission] = WeakValueDictionary()
        self._jobs: set[_Job] = set()
        # Where there are several processes, one is left for requests that are alone.
        self._in_turn = asyncio.Semaphore(max(processes - 1, 1))
        # That one is lent to a piece of a batch as long as nobody needs it.
        self._lent = False
        self._processes = processes
        self._closed = False

    async def run(self, function: Callable[..., Result], file: BinaryIO | None = None) -> Result:
        """Result of a function in a process of its own, called with the file if there is one.

        Raises:
            Overloaded: no process became free in time.
            DeadlinePassed: it took too long and was ended.
            NotEnoughMemory: it needed more memory than one request may have.
            ProcessLost: its process ended under it, or the service ends.
        """
        asked = time.perf_counter()
        async with self._share(), self._places:
            return await self._begin(function, file, asked)

    def _share(self) -> AbstractAsyncContextManager[None]:
        project = sharer()
        if project is None:
            return nullcontext()
        share = self._shares.get(project)
        if share is None:
            share = self._shares[project] = self._admitting(limit=max(self._processes - 1, 1))
        return share

    async def _begin(self, function: Callable[..., Result], file: BinaryIO | None, asked: float) -> Result:
        """Have a function computed now that was asked for a while ago."""
        if self._closed:
            raise ProcessLost("the service is ending; nothing was saved")
        began = time.perf_counter()
        self.observers.observed("compute_wait_seconds", began - asked)
        loop = asyncio.get_running_loop()
        job = _Job(function, file, _on_loop(loop, listener()))
        self._jobs.add(job)
        try:
            return await loop.run_in_executor(self._threads, self._work, job)
        except asyncio.CancelledError:
            # Nobody waits for it any more.
            job.cancel()
            raise
        finally:
            self._jobs.discard(job)
            took = time.perf_counter() - began
            self.observers.observed("compute_seconds", took, kind=kind_of(function), where=APART)

    @property
    def running(self) -> int:
        """Computations that have a process."""
        return self._places.held + self._lent

    @property
    def waiting(self) -> int:
        """Computations that wait for one."""
        return self._places.waiting + sum(share.waiting for share in self._shares.values())

    async def run_in_turn(self, function: Callable[..., Result]) -> Result:
        """Run one of many functions of a request, after those before it of all such requests.

        So a request of a hundred large pieces neither fills the places of others nor is refused for its own number.
        """
        async with self._in_turn:
            return await self.run(function)

    async def run_piece(self, function: Callable[..., Result]) -> Result:
        """Run a piece of a batch that takes no more than a moment; it may use the process reserved for others while
        that is idle.

        Whoever comes meanwhile does not wait for the piece: it is lent a place and takes none. For so long there is
        one process more.
        """
        if not self._in_turn.locked() or self._lent or self._places.held >= self._processes:
            return await self.run_in_turn(function)
        self._lent = True
        try:
            return await self._begin(function, None, time.perf_counter())
        finally:
            self._lent = False

    def _work(self, job: "_Job") -> Any:
        task = pickle.dumps(job.function, protocol=5)
        try:
            worker = self._idle.get_nowait()
        except queue.Empty:
            worker = Worker(self._limits)
        try:
            if not job.begin(worker):
                return None
            return worker.call(task, job.file, job.tell)
        finally:
            job.end()
            # Of those that came beside a piece one goes again.
            if worker.usable and not self._closed and self._idle.qsize() < self._processes:
                self._idle.put(worker)
            else:
                worker.close()

    def warm_up(self, first: Callable[[], object]) -> None:
        """Start a process in the background and have it do something, so that the first large request finds one."""
        if not self._closed:
            self._threads.submit(self._work, _Job(first, None, None))

    def close(self) -> None:
        """End all processes, also those at work, and take no more work."""
        self._closed = True
        for job in self._jobs:
            job.cancel()
        self._threads.shutdown(wait=False, cancel_futures=True)
        while True:
            try:
                self._idle.get_nowait().close()
            except queue.Empty:
                return


def _on_loop(loop: asyncio.AbstractEventLoop, tell: Tell | None) -> Tell | None:
    """Return a listener for threads that forwards progress to the loop."""
    return None if tell is None else lambda share: loop.call_soon_threadsafe(tell, share)


class _Job:
    """A computation that can be cancelled while it waits and while it runs."""

    def __init__(self, function: Callable[..., Any], file: BinaryIO | None, tell: Tell | None) -> None:
        """``tell`` is told how far it is, in the thread that waits for it."""
        self.function, self.file, self.tell = function, file, tell
        self.cancelled = False
        self._worker: Worker | None = None
        self._lock = threading.Lock()

    def begin(self, worker: Worker) -> bool:
        with self._lock:
            self._worker = None if self.cancelled else worker
            return not self.cancelled

    def end(self) -> None:
        with self._lock:
            self._worker = None

    def cancel(self) -> None:
        with self._lock:
            self.cancelled = True
            if self._worker is not None:
                self._worker.kill()
