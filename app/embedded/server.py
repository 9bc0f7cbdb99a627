"""One running server: start, connect, stop."""

import contextlib
import fcntl
import os
import re
import subprocess
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self

from app.embedded.cluster import (
    ROLE,
    STOPPING,
    clear_leftovers,
    create_cluster,
    keep_reserve,
    launch,
    read_password,
    read_port,
    release_reserve,
    watch_over,
)
from app.embedded.installation import EmbeddedPostgresError, Installation, ServerUser, choose_home, open_lock
from app.embedded.supervision import Supervisor

COMMON_OPTIONS: Final[dict[str, str]] = {
    "listen_addresses": "127.0.0.1",
    # No socket file: a path to it may be too long or closed, and TCP with a password serves every client.
    "unix_socket_directories": "",
    "max_connections": "200",
    "timezone": "UTC",
    "log_timezone": "UTC",
    "log_checkpoints": "off",
}
FAST_OPTIONS: Final[dict[str, str]] = {
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
}


@dataclass(slots=True)
class EmbeddedPostgres:
    """A running server. Make it with `start`; end it with `stop`, or use it as a context manager."""

    home: Path
    installation: Installation
    port: int
    _password: str
    _user: ServerUser
    _options: Mapping[str, str]
    _server: "subprocess.Popen[bytes]"
    _watch: "subprocess.Popen[bytes]"
    _lock: IO[str]
    _supervisor: Supervisor | None = None
    # Two threads may stop it: the one that owns it, and the one that ends a process whose time is over.
    _stop: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def start(cls, data_dir: Path, *, durable: bool) -> Self:
        """Start the server of `data_dir`, making its cluster first where there is none.

        Args:
            data_dir: folder of this service's data; two services cannot share it.
            durable: False trades the safety of the data against speed (for tests).

        Raises:
            EmbeddedPostgresError: the folder is in use, or there is no way to a running server.
        """
        user = ServerUser.choose()
        Installation.all()  # without the wheel, that is what to say, before anything of the folder
        data_dir = data_dir.expanduser().resolve()
        with contextlib.ExitStack() as undo:
            home, lock = _take_home(data_dir, user)
            undo.callback(lock.close)
            cluster = home / "cluster"
            installation = Installation.choose(cluster).within_reach_of(user)
            options = COMMON_OPTIONS if durable else COMMON_OPTIONS | FAST_OPTIONS
            try:
                if cluster.exists():
                    clear_leftovers(cluster)
                else:
                    create_cluster(home, installation, user, durable=durable)
                password = read_password(home)
                server, port = launch(home, installation, user, options)
            except OSError as error:
                raise EmbeddedPostgresError(f"the embedded Postgres in {home} cannot be started: {error}") from error
            undo.callback(server.wait)
            undo.callback(server.kill)
            watch = watch_over(server, user)
            undo.pop_all()
        return cls(home, installation, port, password, user, options, server, watch, lock)

    def supervise(self) -> None:
        """Start the server again whenever it ends before `stop`, with the same address and password."""
        self._supervisor = Supervisor(
            ended=lambda: self._server.poll(),
            start_again=self.start_again,
            meanwhile=lambda: keep_reserve(self.home),
        )
        self._supervisor.start()

    def start_again(self) -> None:
        """Start a server in the place of the one that ended, with its address and password."""
        # First of all: the id that the watch would signal may be a stranger's from now on.
        self._end_watch()
        clear_leftovers(self.home / "cluster")
        release_reserve(self.home)
        self._server, _ = launch(
            self.home,
            self.installation,
            self._user,
            self._options,
            port=self.port,
            unwanted=lambda: self._supervisor is not None and self._supervisor.stopping,
        )
        self._watch = watch_over(self._server, self._user)

    def _end_watch(self) -> None:
        self._watch.kill()
        self._watch.communicate()

    def dsn(self, database: str = ROLE) -> str:
        """URL of one database of this server, with the password."""
        return f"postgresql://{ROLE}:{self._password}@127.0.0.1:{self.port}/{database}"

    def create_database(self, name: str = ROLE) -> None:
        """Make a database unless it is there."""
        if not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", name):
            raise ValueError(f"expected a database name of lower-case letters, digits and _, got {name!r}")
        # Imported when a server is started: commands that start none have no use for it.
        import psycopg
        from psycopg.sql import SQL, Identifier

        try:
            with psycopg.connect(self.dsn("postgres"), autocommit=True) as connection:
                if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [name]).fetchone():
                    connection.execute(SQL("CREATE DATABASE {}").format(Identifier(name)))
        except psycopg.Error as error:
            raise EmbeddedPostgresError(f"the embedded Postgres refused a statement: {error}") from error

    def stop(self) -> None:
        """End the server cleanly and wait for it; harmless when it is ended already.

        Raises:
            EmbeddedPostgresError: a process that a killed server left behind does not end.
        """
        with self._stop:
            # Without the lock the folder may be another service's by now.
            if self._lock.closed:
                return
            if self._supervisor is not None:
                self._supervisor.stop()
            for number, seconds in STOPPING:
                if self._server.poll() is None:
                    self._server.send_signal(number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._server.wait(seconds)
                    break
            self._end_watch()
            try:
                if self._server.returncode != 0:
                    clear_leftovers(self.home / "cluster")
            finally:
                self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()


@contextlib.contextmanager
def start_embedded(data_dir: Path) -> Iterator[EmbeddedPostgres]:
    """The embedded Postgres of a data folder, with the service's database in it."""
    with EmbeddedPostgres.start(data_dir, durable=True) as server:
        server.create_database()
        yield server


def _take_home(data_dir: Path, user: ServerUser) -> tuple[Path, IO[str]]:
    """The folder of the server's files, and the lock that makes it ours until it is closed."""
    with contextlib.ExitStack() as undo:
        try:
            home = choose_home(data_dir, user)
            lock = undo.enter_context(open_lock(home / "lock"))
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Before anything is written, which would fail on a full disk.
            release_reserve(home)
            lock.truncate(0)
            lock.write(str(os.getpid()))
            lock.flush()
        except PermissionError as error:
            raise EmbeddedPostgresError(
                f"{data_dir} belongs to another user or lies in a folder closed to this one ({error}); "
                "set PREVAIL_DATA_DIR to a folder of your own"
            ) from error
        except BlockingIOError as error:
            holder = lock.read().strip() or "unknown"
            raise EmbeddedPostgresError(
                f"{data_dir} is in use by another service (process {holder}); "
                "give this one its own PREVAIL_DATA_DIR, or a shared PREVAIL_DATABASE_URL"
            ) from error
        except OSError as error:
            raise EmbeddedPostgresError(
                f"expected PREVAIL_DATA_DIR to be a folder that can be written, {data_dir} is not: {error}"
            ) from error
        undo.pop_all()
    return home, lock


def running_dsn(data_dir: Path) -> str | None:
    """URL of the service's database on the server that another service runs in `data_dir`; None when none runs there.

    Raises:
        EmbeddedPostgresError: the folder belongs to another user, or the password is gone.
    """
    try:
        home = _home_of(data_dir)
        if not (home / "lock").exists():
            return None
        with open_lock(home / "lock") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                port = read_port(home / "cluster")
                return None if port is None else f"postgresql://{ROLE}:{read_password(home)}@127.0.0.1:{port}/{ROLE}"
    except PermissionError as error:
        raise EmbeddedPostgresError(f"{data_dir} belongs to another user ({error})") from error
    return None


def has_database(data_dir: Path) -> bool:
    """Is there a database in `data_dir`, whether or not a service runs on it?"""
    try:
        return (_home_of(data_dir) / "cluster" / "PG_VERSION").exists()
    except PermissionError as error:
        raise EmbeddedPostgresError(f"{data_dir} belongs to another user ({error})") from error


def _home_of(data_dir: Path) -> Path:
    """The folder of the server's files, which lies elsewhere when a note says so."""
    home = data_dir.expanduser().resolve()
    note = home / "location"
    return Path(note.read_text().strip()) if note.exists() else home
