"""A database cluster in a folder: made, started, stopped, with a reserve on the disk."""

import contextlib
import errno
import logging
import os
import random
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from app.embedded.installation import EmbeddedPostgresError, Installation, ServerUser, write_private

# Recovery writes its log to the end of a segment, and then begins the next: 16 MiB each.
RESERVE_BYTES: Final = 64 * 1024 * 1024
NAME: Final = "reserve"

_log = logging.getLogger("prevail.embedded")


def free_bytes(folder: Path) -> int:
    """Return the bytes that an ordinary user may still write to the file system of a folder."""
    state = os.statvfs(folder)
    return state.f_bavail * state.f_frsize


def keep_reserve(home: Path) -> None:
    """Take the reserve, unless it is taken, or there would not be as much again left beside it."""
    path = home / NAME
    if path.exists() or free_bytes(home) < 2 * RESERVE_BYTES:
        return
    # It has its name once it is whole: half a reserve is none.
    part = path.with_suffix(".part")
    part.unlink(missing_ok=True)
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
            for _ in range(RESERVE_BYTES >> 20):
                os.write(file.fileno(), bytes(1 << 20))
        part.rename(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise


def release_reserve(home: Path) -> None:
    """Give the reserve back to the file system when that is as good as full."""
    if free_bytes(home) < RESERVE_BYTES and (home / NAME).exists():
        (home / NAME).unlink()
        _log.error("no space left in %s: its reserve of %d MiB was released", home, RESERVE_BYTES >> 20)


ROLE: Final = "prevail"
# Recovery after a crash replays the write-ahead log first, which may take a while.
START_SECONDS: Final = 300.0
# A clean stop writes everything out, which a busy disk can draw out for minutes. Without it nothing is lost either: the
# next start recovers.
STOP_SECONDS: Final = 15.0
LOG_LIMIT_BYTES: Final = 10 * 1024 * 1024
POLL_SECONDS: Final = 0.01
PORT_ATTEMPTS: Final = 5
# Below the ports of outgoing connections: from 32768 on Linux, from 49152 elsewhere.
PORTS: Final = range(20_000, 32_768)
# How a server is made to end, each for so many seconds; its children end with it.
STOPPING: Final = ((signal.SIGINT, STOP_SECONDS), (signal.SIGQUIT, 10.0), (signal.SIGKILL, 10.0))
# Children that have lost their server end by themselves, unless they are busy.
_ORPHANS: Final = ((signal.SIGQUIT, 3.0), (signal.SIGKILL, 10.0))


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Wait for a condition to hold; False when it still does not after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True


def free_port() -> int:
    """A TCP port of the loopback that is free now, and that the system gives to nobody of its own accord.

    A server that is started again has to get its port back, so it is none of those that outgoing connections get.
    """
    for _ in range(1000):
        port = random.choice(PORTS)  # noqa: S311 - no secret
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise EmbeddedPostgresError(f"no port from {PORTS.start} to {PORTS.stop - 1} is free on the loopback")


def processes_of(cluster: Path) -> list[int]:
    """Ids of the processes that work in `cluster`: a Postgres server and its children."""
    if sys.platform == "linux":
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    if entry.joinpath("cwd").readlink() == cluster:
                        found.append(int(entry.name))
        return found
    listing = subprocess.run(["/bin/ps", "-axo", "pid=,command="], capture_output=True, text=True, check=True)
    return [int(line.split()[0]) for line in listing.stdout.splitlines() if f"-D {cluster} " in line]


def read_status(cluster: Path) -> tuple[int, str] | None:
    """Process id and state (`starting`, `ready`, …) from the server's own note, or None without one."""
    try:
        lines = (cluster / "postmaster.pid").read_text().splitlines()
        return int(lines[0]), lines[7].strip() if len(lines) > 7 else "starting"
    except (FileNotFoundError, IndexError, ValueError):
        return None


def read_port(cluster: Path) -> int | None:
    """The port of the server that runs in `cluster`, from its own note; None when it is not ready."""
    status = read_status(cluster)
    if status is None or status[1] != "ready":
        return None
    return int((cluster / "postmaster.pid").read_text().splitlines()[3])


def clear_leftovers(cluster: Path) -> None:
    """Stop a server that outlived its service, or what a killed one left running, and drop its note.

    The caller holds the lock of the folder, so whatever runs here has lost its service.

    Raises:
        EmbeddedPostgresError: a process of the old server does not end.
    """
    status = read_status(cluster)
    server = None if status is None else status[0]
    for number, seconds in STOPPING if server in processes_of(cluster) else _ORPHANS:
        running = processes_of(cluster)
        for process_id in [server] if server in running and number != signal.SIGKILL else running:
            # It may be gone already.
            with contextlib.suppress(ProcessLookupError):
                os.kill(process_id, number)
        if wait_until(lambda: not processes_of(cluster), seconds):
            break
    else:
        raise EmbeddedPostgresError(f"an old server in {cluster} does not end: processes {processes_of(cluster)}")
    # The id in a note left behind may belong to a stranger by now; the server would take that for a server of its own.
    (cluster / "postmaster.pid").unlink(missing_ok=True)


def create_cluster(home: Path, installation: Installation, user: ServerUser, *, durable: bool) -> None:
    """Make a new cluster with one role and a random password; there whole or not at all."""
    partial, handed_over = home / "cluster.partial", home / "password.initdb"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(mode=0o700)
    user.take_over(partial)
    password = secrets.token_hex(32)
    write_private(home / "password", password)
    write_private(handed_over, password, user)
    options = [f"--username={ROLE}", "--auth=scram-sha-256", f"--pwfile={handed_over}", "--no-instructions"]
    # Text sorts by code point, the same on every machine and for ever.
    options += ["--encoding=UTF8", "--locale=C"]
    if installation.major >= 17:
        options += ["--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
    if not durable:
        options.append("--no-sync")
    answer = user.run(installation.program("initdb"), "-D", partial, *options)
    handed_over.unlink()
    if answer.returncode != 0:
        raise EmbeddedPostgresError(f"initdb failed in {home}:\n{answer.stdout}{answer.stderr}".strip())
    partial.rename(home / "cluster")


def read_password(home: Path) -> str:
    """The password that `create_cluster` left."""
    try:
        return (home / "password").read_text()
    except FileNotFoundError as error:
        raise EmbeddedPostgresError(
            f"{home / 'password'} is gone; without it the database beside it stays closed"
        ) from error


def launch(
    home: Path,
    installation: Installation,
    user: ServerUser,
    options: Mapping[str, str],
    *,
    port: int | None = None,
    unwanted: Callable[[], bool] = lambda: False,
) -> tuple["subprocess.Popen[bytes]", int]:
    """Start the server and wait until it takes connections; returns its process and port.

    Without a port a free one is taken. `unwanted` is asked while the server is not ready; True gives it up.

    Raises:
        EmbeddedPostgresError: the server ended, was not ready in `START_SECONDS`, or was given up; with the end of
            its log.
    """
    cluster, log = home / "cluster", home / "server.log"
    if log.exists() and log.stat().st_size > LOG_LIMIT_BYTES:
        log.replace(home / "server.log.1")
    settings = [part for name, value in options.items() for part in ("-c", f"{name}={value}")]
    for _ in range(PORT_ATTEMPTS if port is None else 1):
        chosen = free_port() if port is None else port
        with os.fdopen(os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW, 0o600), "ab") as output:
            begin = log.stat().st_size
            server = subprocess.Popen(
                [installation.program("postgres"), "-D", cluster, "-p", str(chosen), *settings],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                # Away from the terminal: Ctrl-C must reach the service first, which then stops the server.
                start_new_session=True,
                **user.popen_arguments(),
            )
        if becomes_ready(server, cluster, unwanted):
            return server, chosen
        said = log.read_bytes()[begin:].decode(errors="replace")
        # Somebody else may have taken the port in the meantime: then another one.
        if "could not bind" not in said:
            break
    raise EmbeddedPostgresError(f"the embedded Postgres did not start ({log}):\n{said[-2000:]}".strip())


def becomes_ready(server: "subprocess.Popen[bytes]", cluster: Path, unwanted: Callable[[], bool]) -> bool:
    """Wait until the server takes connections; when it does not, end it for good and return False."""
    ready = False
    try:
        wait_until(
            lambda: server.poll() is not None or unwanted() or read_status(cluster) == (server.pid, "ready"),
            START_SECONDS,
        )
        ready = server.poll() is None and read_status(cluster) == (server.pid, "ready")
    finally:
        if not ready:
            server.kill()
            server.wait()
    return ready


def watch_over(server: "subprocess.Popen[bytes]", user: ServerUser) -> "subprocess.Popen[bytes]":
    """Stop the server also when this process is killed outright: a shell waits for the end of a pipe that we hold open.

    The id cannot pass to a stranger in between: until we end, the server stays our unreaped child.
    """
    return subprocess.Popen(
        ["/bin/sh", "-c", 'read -r _; kill -INT "$1"', "sh", str(server.pid)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
        **user.popen_arguments(),
    )
