"""The application under uvicorn: its address taken before anything else, its end in time whatever still runs."""

import asyncio
import contextlib
import errno
import gc
import logging
import multiprocessing
import os
import resource
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from multiprocessing.process import BaseProcess
from typing import Any, Final

from app.services.processes.worker import FORKED, fork_from_here, keep_freed_memory, no_collection
from app.settings import Settings

APPLICATION: Final = "app.main:create"
BACKLOG: Final = 2048
# What a stop may take beyond the time for requests under way: the last commits, connections that are closed.
GRACE_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.1
# Of prometheus_client, which looks at it when it is imported.
_METRICS_FOLDER: Final = "PROMETHEUS_MULTIPROC_DIR"

_log = logging.getLogger("prevail.serving")


class CannotListen(RuntimeError):
    """The address of the service cannot be had; the message says why and what to do."""


def configure_logging(settings: Settings) -> None:
    """Lines of our own with the time, from the severity of the settings on; uvicorn has its handlers for its own."""
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    logging.getLogger("prevail").setLevel(settings.log_level.upper())
    # They warn of every form that is none, which the client is told, and of every try to connect, which we say once.
    for noisy in ("python_multipart", "psycopg.pool"):
        logging.getLogger(noisy).setLevel(logging.ERROR)
    # Nothing but JSON on standard output, for what collects it.
    requests = logging.getLogger("prevail.requests")
    if not requests.handlers:
        requests.addHandler(logging.StreamHandler(sys.stdout))
        requests.setLevel(logging.INFO)
        requests.propagate = False


# --- the address -----------------------------------------------------------------------------------------------------


def take_address(host: str, port: int) -> list[socket.socket]:
    """Sockets on every address of a host, which take no connections yet.

    Raises:
        CannotListen: another program has the port, or the host is none of this machine's.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except (OSError, UnicodeError) as error:
        raise CannotListen(f"{host!r} is no address of this machine ({error}); see PREVAIL_HOST") from error
    taken, refusal = [], OSError(errno.EADDRNOTAVAIL, os.strerror(errno.EADDRNOTAVAIL))
    with contextlib.ExitStack() as undo:
        for family, kind, protocol, _, address in dict.fromkeys(found):
            try:
                taken.append(undo.enter_context(_bind(family, kind, protocol, address, dual=host == "::")))
            except OSError as error:
                # Of a name with several addresses, those of a family that this machine does not have are left out.
                if error.errno not in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
                    raise _describe(error, host, port) from error
                refusal = error
        if not taken:
            raise _describe(refusal, host, port) from refusal
        undo.pop_all()
    return taken


def _bind(family: int, kind: int, protocol: int, address: Any, *, dual: bool) -> socket.socket:
    with contextlib.ExitStack() as undo:
        taken = undo.enter_context(socket.socket(family, kind, protocol))
        # Else a service that was stopped a moment ago would keep its port for a minute.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, not dual)
        taken.bind(address)
        undo.pop_all()
    return taken


def listen(sockets: list[socket.socket], host: str, port: int) -> None:
    """Take connections from now on; they wait for the application.

    Raises:
        CannotListen: another program was faster with the same port.
    """
    for each in sockets:
        try:
            each.listen(BACKLOG)
        except OSError as error:
            raise _describe(error, host, port) from error


def _describe(error: OSError, host: str, port: int) -> CannotListen:
    if error.errno == errno.EADDRINUSE:
        return CannotListen(
            f"port {port} of {host} is in use by another program; stop that one, or choose another port by PREVAIL_PORT"
        )
    if error.errno == errno.EACCES:
        return CannotListen(
            f"port {port} may be used by root only; choose one from 1024 by PREVAIL_PORT, and let a proxy listen there"
        )
    return CannotListen(f"cannot listen on port {port} of {host} ({error.strerror}); see PREVAIL_HOST and PREVAIL_PORT")


# --- open files ------------------------------------------------------------------------------------------------------


def allow_open_files(settings: Settings) -> None:
    """Raise the limit on open files of this process, and of those it starts, to what the settings need.

    A thousand connections do not fit under the usual 1,024: the last ones would not be refused but hang.
    """
    # Connections up to the one that is cut without an answer, a file for the body of each that gets one, the database,
    # pipes to compute processes, and what a Python process has open anyway.
    needed = 3 * settings.connection_limit + settings.pool_size + 4 * settings.compute_processes + 128
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    with contextlib.suppress(ValueError, OSError):
        # Some systems refuse what their own limit allows; then it stays as it was.
        resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    got = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if got < needed:
        _log.warning(
            "this system lets the service have %d open files, PREVAIL_CONNECTION_LIMIT=%d needs %d: raise its hard "
            "limit (ulimit -Hn, LimitNOFILE), or lower the setting to %d",
            got,
            settings.connection_limit,
            needed,
            max(settings.connection_limit - (needed - got + 2) // 3, 1),
        )


# --- the server ------------------------------------------------------------------------------------------------------


def run(settings: Settings, sockets: list[socket.socket], *, before_end: Callable[[], None]) -> None:
    """Serve until SIGTERM or SIGINT.

    When the process is still there `GRACE_SECONDS` after the time that requests under way have, its work is cut off:
    worker processes are killed; without any `before_end` is called and this process ends there and then.
    """
    allow_open_files(settings)
    import uvicorn
    from uvicorn.config import STARTUP_FAILURE
    from uvicorn.supervisors import Multiprocess

    from app.protocol import GuardedProtocol

    config = uvicorn.Config(
        "app.serving:create_application",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        # Named, never "auto": asyncio's loop leaves Nagle's algorithm on for sockets handed to several workers, and
        # every second request on a kept connection then waits 40 ms for a delayed acknowledgement.
        loop="app.serving:new_loop",
        http=GuardedProtocol,
        lifespan="on",
        log_level=settings.log_level.value,
        # Lines about requests are our own: `app.api.middleware`.
        access_log=False,
        timeout_graceful_shutdown=settings.shutdown_seconds,
    )
    seconds = settings.shutdown_seconds + GRACE_SECONDS
    if settings.workers > 1:
        supervisor = Multiprocess(config, sockets=sockets)

        def kill_workers() -> None:
            for worker in supervisor.processes:
                worker.process.kill()

        def stopping() -> bool:
            # While it waits for a worker that hangs, it has not looked at the signal yet.
            told = {signal.SIGTERM, signal.SIGINT}.intersection(supervisor.signal_queue)
            return supervisor.should_exit.is_set() or bool(told)

        _end_in_time(stopping, seconds, kill_workers)
        with _shared_metrics():
            supervisor.run()
        failed = any(worker.exitcode == STARTUP_FAILURE for worker in supervisor.processes)
    else:
        server = uvicorn.Server(config)

        def end() -> None:
            before_end()
            _leave(0)

        _end_in_time(lambda: server.should_exit, seconds, end)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=sockets)
        failed = not server.started
    if failed:
        sys.exit(STARTUP_FAILURE)


@contextlib.contextmanager
def _shared_metrics() -> Iterator[None]:
    """A folder in which workers keep what they count, so that each of them can tell of all."""
    if _METRICS_FOLDER in os.environ:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="prevail-metrics-", ignore_cleanup_errors=True) as folder:
        os.environ[_METRICS_FOLDER] = folder
        try:
            yield
        finally:
            del os.environ[_METRICS_FOLDER]


def _end_in_time(stopping: Callable[[], bool], seconds: float, end: Callable[[], None]) -> None:
    """Call `end` so many seconds after a stop began, should this process still be there."""

    def watch() -> None:
        while not stopping():
            time.sleep(LOOK_SECONDS)
        time.sleep(seconds)
        _log.error("work that does not end is cut off %g s after the stop began", seconds)
        end()

    threading.Thread(target=watch, name="end-in-time", daemon=True).start()


def _leave(code: int) -> None:
    """End this process without waiting for threads that are busy."""
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(code)


# --- a worker of jobs ------------------------------------------------------------------------------------------------


def run_worker(settings: Settings) -> None:
    """Be an application that listens nowhere, and works on jobs until SIGTERM or SIGINT."""
    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(_work(settings))


async def _work(settings: Settings) -> None:
    from uvicorn.importer import import_from_string

    grace = float(settings.shutdown_seconds)
    application: Any = import_from_string(f"{APPLICATION}_app")(settings, job_grace_seconds=grace, alone=True)
    told = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    async with application.router.lifespan_context(application):
        await told.wait()
        # A job that takes longer is put back; whatever else there may be is cut off.
        _end_in_time(lambda: True, grace + GRACE_SECONDS, lambda: _leave(0))


# --- in each server process ------------------------------------------------------------------------------------------


def new_loop() -> asyncio.AbstractEventLoop:
    """Import everything, start what compute processes are forked from, and make the event loop of this process.

    Nothing that is imported is garbage, so nobody looks for that meanwhile: it is a quarter of the time. Frozen, it is
    not looked at later either, which would write into pages that processes share. The loop comes last, since what it
    opens may not be closed in a fork.
    """
    import uvloop

    with no_collection():
        import_module(FORKED)
        gc.freeze()
    fork_from_here()
    return uvloop.new_event_loop()


def create_application() -> Any:
    """Build the ASGI application in a server process; a worker first ties its life to that of its parent."""
    from uvicorn.importer import import_from_string

    configure_logging(Settings())
    # An answer is some 70 kB, a batch of them 70 MB.
    keep_freed_memory()
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_follow, args=(parent,), name="follow-parent", daemon=True).start()
    return import_from_string(APPLICATION)()


def _follow(parent: BaseProcess) -> None:
    """End this worker once its parent is gone; a parent killed outright would else leave it on the port."""
    parent.join()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(Settings().shutdown_seconds + GRACE_SECONDS)
    _leave(1)
