"""One process that computes for the service, with a limit on its memory and a deadline for each piece of work.

Code that counts its steps reports its progress through here, and freed memory goes back to the system.
"""

import contextlib
import copyreg
import ctypes
import gc
import io
import logging
import multiprocessing
import os
import pickle
import resource
import select
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import pairwise
from multiprocessing import forkserver, reduction, spawn, util
from multiprocessing.connection import Connection
from pathlib import Path
from traceback import format_exc
from types import MappingProxyType
from typing import Any, BinaryIO, Final, TypeVar

from app.domain.errors import DeadlinePassed, NotEnoughMemory, ProcessLost

_log = logging.getLogger("prevail.compute")

# Freed arrays and answers up to this size are used again. The allocator would give them back to the system and ask for
# them anew, page by page, each of which is a fault: a third of the time of resampling, half of that of a thousand
# reports in one batch, depending on what else happens to lie at the end of the heap.
KEPT_BYTES: Final = 64 * 1024 * 1024
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3


def keep_freed_memory() -> None:
    """Let this process keep what it frees, up to `KEPT_BYTES`."""
    # Only glibc has it, and only glibc needs it.
    set_option = getattr(ctypes.CDLL(None), "mallopt", None)
    if set_option is not None:
        set_option(_M_MMAP_THRESHOLD, KEPT_BYTES)
        set_option(_M_TRIM_THRESHOLD, KEPT_BYTES)


Item = TypeVar("Item")
Tell = Callable[[float], object]
_LISTENER: ContextVar[Tell | None] = ContextVar("progress", default=None)


def tell_progress(tell: Tell | None) -> None:
    """Set the listener to the progress of this task and of those it starts; None is no listener."""
    _LISTENER.set(tell)


def listener() -> Tell | None:
    """Return the listener to the present task's progress, or None."""
    return _LISTENER.get()


def progressed(done: int, steps: int) -> None:
    """Tell the listener that so many of the steps are done."""
    tell = _LISTENER.get()
    if tell is not None:
        tell(done / steps)


@contextmanager
def no_collection() -> Iterator[None]:
    """Look for no garbage: what is imported, or read of a large body, is none, and looking is much of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


@contextmanager
def as_step(done: int, steps: int) -> Iterator[None]:
    """Report progress inside as that of one of several steps, after ``done`` of them."""
    tell = _LISTENER.get()
    token = _LISTENER.set(None if tell is None else lambda share: tell((done + share) / steps))
    try:
        yield
    finally:
        _LISTENER.reset(token)


def each_as_step(done: int, steps: int, items: Iterable[Item]) -> Iterator[Item]:
    """Items, each made as a part of one of several steps; what is said between them is no part of it."""
    left = iter(items)
    while True:
        with as_step(done, steps):
            try:
                item = next(left)
            except StopIteration:
                return
        yield item


# Forked from a server that has everything imported, a process is there within milliseconds, and without the threads,
# locks and connections that a fork of the service itself would copy.
_CONTEXT = multiprocessing.get_context("forkserver")
# What the server, and so every process, finds imported.
FORKED: Final = "app.forked"
_CONTEXT.set_forkserver_preload([FORKED])
# Objects made until the garbage collector looks at the youngest. A body may be millions of lists, none of them garbage:
# at the usual 700 half of the time of reading goes into looking for it.
_GARBAGE_THRESHOLD = 100_000

_NAME: Final = "prevail-compute"
BLAS_THREADS: Final = "OPENBLAS_NUM_THREADS"
_preparation = spawn.get_preparation_data


def _preparation_without_main(name: str) -> dict[str, Any]:
    """Arguments of a process at its start, for compute processes without the module ``__main__``.

    Each would run it: the script of a user who has the service inside it (`prevail.local`).
    """
    told = _preparation(name)
    if name == _NAME:
        for member in ("init_main_from_name", "init_main_from_path"):
            told.pop(member, None)
    return told


spawn.get_preparation_data = _preparation_without_main


def begin_forking() -> None:
    """Start the process that compute processes are forked from; it imports the service while this one goes on."""
    forkserver.ensure_running()


def fork_from_here() -> None:
    """Start the process that compute processes are forked from as a fork of this one, which has `FORKED` imported.

    Else it is a new interpreter that imports them again: seconds at every start, and all of their memory twice. Call it
    before this process has connections and threads that hold locks.
    """
    new_interpreter = util.spawnv_passfds
    # It starts the library's tracker of resources too.
    util.spawnv_passfds = _forked
    try:
        forkserver.ensure_running()
    finally:
        util.spawnv_passfds = new_interpreter


def _forked(path: bytes, args: Sequence[Any], passfds: Sequence[int]) -> int:  # noqa: ARG001 - of the library
    """Have a fork of this process do what a new interpreter is told by ``-c``; returns its id."""
    identifier = os.fork()
    if identifier:
        return identifier
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        ends = [2, *sorted(passfds), os.sysconf("SC_OPEN_MAX")]
        for before, behind in pairwise(ends):
            os.closerange(before + 1, behind)
        exec(args[-1], {})  # noqa: S102 - the library's own command
    finally:
        # Nothing of what this process was in the middle of is to go on.
        os._exit(0)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one piece of work.

    Attributes:
        seconds: From its arguments to its result.
        memory_bytes: Beyond what the process has before.
        growth_bytes: A process that has grown by more than this ends after its work: what an allocator keeps is given
            back that way only.
    """

    seconds: float
    memory_bytes: int
    growth_bytes: int = 128 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a piece of work: its result, or the exception that it raised."""

    value: Any = None
    error: Exception | None = None


class Worker:
    """The service's end of one process. One thread at a time may use it; `kill` may come from any."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._line, theirs = _CONTEXT.Pipe()
        self._process = _CONTEXT.Process(target=_serve, args=(theirs, limits), name=_NAME, daemon=True)
        self._process.start()
        theirs.close()
        self.usable, self._killed = True, False

    def call(self, task: bytes, file: BinaryIO | None, tell: Tell | None = None) -> Any:
        """Result of a pickled function, called with the file if there is one; tells how far it is, if it says so.

        Raises:
            DeadlinePassed, NotEnoughMemory: it took more than it may.
            ProcessLost: the process ended under it.
            Exception: what the function raised.
        """
        deadline = time.monotonic() + self._limits.seconds
        said: Outcome | float = 0.0
        try:
            self._line.send_bytes(task)
            self._line.send((file is not None, tell is not None))
            if file is not None:
                # What lies in a buffer of this process is not in the file.
                file.flush()
                reduction.send_handle(self._line, file.fileno(), self._process.pid)
            while not isinstance(said, Outcome):
                if not self._line.poll(max(deadline - time.monotonic(), 0)):
                    self.close()
                    limit = f"{self._limits.seconds:g} seconds"
                    raise DeadlinePassed(f"expected something that can be computed in {limit}")
                said = self._line.recv()
                if tell is not None and isinstance(said, float):
                    tell(said)
            self.usable = not self._line.recv()
        except (EOFError, OSError):
            self.close()
            if not self._killed:
                code = self._process.exitcode
                _log.error("a compute process ended with exit code %s; its request is answered 503", code)
            detail = "the process that computed this ended unexpectedly; nothing was saved"
            raise ProcessLost(detail) from None
        if isinstance(said.error, MemoryError):
            limit = f"{self._limits.memory_bytes >> 20} MiB of memory"
            raise NotEnoughMemory(f"expected something that needs at most {limit} to compute")
        if said.error is not None:
            raise said.error
        return said.value

    def kill(self) -> None:
        """End the process at once, whatever it does."""
        self._killed = True
        self._process.kill()

    def close(self) -> None:
        """End the process and give back what it held."""
        self.usable = False
        self._process.kill()
        self._process.join()
        self._line.close()


def _serve(line: "Connection[Any, Any]", limits: Limits) -> None:
    """Work until the service is gone."""
    # Ctrl-C reaches the whole group of processes; the service says when its workers end.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Before memory is counted.
    threading.Thread(target=_follow, args=(line.fileno(),), name="follow-service", daemon=True).start()
    _be_ended_first()
    _limit_memory(limits.memory_bytes)
    gc.set_threshold(_GARBAGE_THRESHOLD)
    keep_freed_memory()
    before = _peak_bytes()
    while True:
        try:
            task = line.recv_bytes()
            with_file, watched = line.recv()
            file = os.fdopen(reduction.recv_handle(line), "rb") if with_file else None
        except EOFError:
            return
        # Should the service be gone by then, nobody else ends this.
        signal.alarm(int(limits.seconds) + 2)
        tell_progress(line.send if watched else None)
        with file or contextlib.nullcontext():
            answer = _called(task, file)
        signal.alarm(0)
        last = _peak_bytes() - before > limits.growth_bytes
        try:
            line.send_bytes(answer)
            line.send(last)
        except BrokenPipeError:
            return
        del answer
        if last:
            return


def _follow(line: int) -> None:
    """End this process with the service at the other end of its line: work that takes an hour would outlive it."""
    watch = select.poll()
    # Nothing but the end, which is always told.
    watch.register(line, 0)
    watch.poll()
    os.kill(os.getpid(), signal.SIGKILL)


def _called(task: bytes, file: BinaryIO | None) -> bytes:
    """The outcome of a pickled call, pickled too, whatever it raises."""
    try:
        function = pickle.loads(task)  # noqa: S301 - the service's own
        return pickle.dumps(Outcome(function() if file is None else function(file)), protocol=5)
    except MemoryError:
        return pickle.dumps(Outcome(error=MemoryError()))
    except Exception as error:  # noqa: BLE001 - it belongs to the caller
        # No future takes a StopIteration: whoever waits for it would wait for ever.
        raised = RuntimeError("StopIteration") if isinstance(error, StopIteration) else error
        raised.add_note("In a compute process:\n" + format_exc())
        target = io.BytesIO()
        _Pickler(target, protocol=5).dump(Outcome(error=raised))
        return target.getvalue()


def _read_only(members: dict[Any, Any]) -> "MappingProxyType[Any, Any]":
    return MappingProxyType(members)


copyreg.pickle(MappingProxyType, lambda value: (_read_only, (dict(value),)))


class _Pickler(pickle.Pickler):
    """Exceptions are made again without a call of their constructors, which take other arguments than `args`."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, BaseException):
            return _exception, (type(value), value.args, dict(vars(value)))
        return NotImplemented


def _exception(kind: type[BaseException], arguments: tuple[Any, ...], members: Mapping[str, Any]) -> BaseException:
    error = kind.__new__(kind, *arguments)
    vars(error).update(members)
    return error


def _limit_memory(most: int) -> None:
    """Let allocations fail that go beyond what there is by more than ``most`` bytes. Only Linux counts them."""
    with contextlib.suppress(OSError):
        pages = int(Path("/proc/self/statm").read_text().split()[5])
        resource.setrlimit(resource.RLIMIT_DATA, (pages * resource.getpagesize() + most, resource.RLIM_INFINITY))


def _be_ended_first() -> None:
    """Should the machine run out of memory, a worker is to go and not the service or its database."""
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
