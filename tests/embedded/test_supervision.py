"""A server that ends by itself comes back: killed, stopped, left without space, with children that stay behind."""

import contextlib
import functools
import logging
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import asyncpg
import pytest

from app.embedded import EmbeddedPostgres, EmbeddedPostgresError, cluster, supervision
from app.embedded.cluster import processes_of, wait_until
from app.embedded.supervision import Supervisor, describe_end
from tests.embedded.conftest import ask

pytestmark = pytest.mark.slow

GONE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    with EmbeddedPostgres.start(folder / "data", durable=False) as server:
        server.supervise()
        ask(server.dsn("postgres"), "CREATE TABLE kept AS SELECT 7 AS answer")
        # It is not durable: what was not written yet is lost with the server.
        ask(server.dsn("postgres"), "CHECKPOINT")
        yield server
    assert processes_of(folder / "data" / "cluster") == []


def answers(url: str) -> bool:
    with contextlib.suppress(*GONE):
        return ask(url, "SELECT answer FROM kept") == 7
    return False


def comes_back(server: EmbeddedPostgres) -> bool:
    return wait_until(lambda: answers(server.dsn("postgres")), 30)


def replaced(server: EmbeddedPostgres, first: int) -> bool:
    return server._server.pid != first


# --- a server that ends ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGQUIT])
def test_a_server_that_was_ended_comes_back_where_it_was(
    server: EmbeddedPostgres, number: signal.Signals, caplog: pytest.LogCaptureFixture
) -> None:
    first, port, watch = server._server.pid, server.port, server._watch.pid
    os.kill(first, number)
    assert wait_until(lambda: "is back after" in caplog.text, 30)
    assert comes_back(server)
    assert server._server.pid != first
    assert server.port == port
    assert server._watch.pid != watch
    said = [record.getMessage() for record in caplog.records if record.name == "prevail.embedded"]
    end = "SIGKILL" if number is signal.SIGKILL else "exit code"
    assert sum(f"the embedded Postgres ended ({end}" in line for line in said) == 1
    assert sum("the embedded Postgres is back after" in line for line in said) == 1


def test_a_killed_backend_is_the_servers_own_affair(server: EmbeddedPostgres) -> None:
    first = server._server.pid
    url = server.dsn("postgres")

    def sleep() -> None:
        with contextlib.suppress(*GONE):
            ask(url, "SELECT pg_sleep(60)")

    sleeping = threading.Thread(target=sleep)
    sleeping.start()
    find = "SELECT pid FROM pg_stat_activity WHERE query = 'SELECT pg_sleep(60)'"
    assert wait_until(lambda: ask(url, find) is not None, 30)
    os.kill(int(str(ask(url, find))), signal.SIGKILL)
    sleeping.join(10)
    assert not sleeping.is_alive()
    assert comes_back(server)
    assert server._server.pid == first


def test_children_that_stay_behind_are_ended_first(server: EmbeddedPostgres) -> None:
    """A stopped process notices nothing, as one that is busy does not."""
    cluster = server.home / "cluster"
    first = server._server.pid
    child = next(id_ for id_ in processes_of(cluster) if id_ != first)
    os.kill(child, signal.SIGSTOP)
    os.kill(first, signal.SIGKILL)
    assert wait_until(lambda: server._server.pid != first, 30)
    assert comes_back(server)
    assert child not in processes_of(cluster)


def test_a_server_that_is_killed_again_and_again_comes_back_every_time(server: EmbeddedPostgres) -> None:
    for _ in range(3):
        first = server._server.pid
        os.kill(first, signal.SIGKILL)
        assert wait_until(functools.partial(replaced, server, first), 30)
        assert comes_back(server)


def test_stopping_starts_nothing_again(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    with EmbeddedPostgres.start(folder / "data", durable=False) as server:
        server.supervise()
    time.sleep(2 * supervision.LOOK_SECONDS)
    assert processes_of(folder / "data" / "cluster") == []
    assert not caplog.records


def test_stopping_while_it_is_down_does_not_wait_for_it(server: EmbeddedPostgres) -> None:
    os.kill(server._server.pid, signal.SIGKILL)
    assert wait_until(lambda: not answers(server.dsn("postgres")), 30)
    begin = time.monotonic()
    server.stop()
    assert time.monotonic() - begin < 5
    assert processes_of(server.home / "cluster") == []


def test_stopping_ends_what_a_killed_server_left_behind(folder: Path) -> None:
    """A stopped process notices nothing, as one that is busy does not."""
    with EmbeddedPostgres.start(folder / "data", durable=False) as server:
        cluster = server.home / "cluster"
        os.kill(next(id_ for id_ in processes_of(cluster) if id_ != server._server.pid), signal.SIGSTOP)
        os.kill(server._server.pid, signal.SIGKILL)
    assert processes_of(cluster) == []


def test_two_threads_may_stop_it(server: EmbeddedPostgres) -> None:
    threads = [threading.Thread(target=server.stop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not any(thread.is_alive() for thread in threads)
    assert server._server.returncode == 0


def test_the_port_of_a_server_is_none_that_the_system_gives_away(server: EmbeddedPostgres) -> None:
    lowest = Path("/proc/sys/net/ipv4/ip_local_port_range")
    assert server.port < (int(lowest.read_text().split()[0]) if lowest.exists() else 49152)


def test_a_port_that_is_taken_meanwhile_is_waited_for(server: EmbeddedPostgres) -> None:
    first = server._server.pid
    os.kill(first, signal.SIGSTOP)  # it cannot answer, and its port stays taken until it is killed
    taken = socket.socket()
    taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)

    def take() -> bool:
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", server.port))
            taken.listen()
            return True
        return False

    os.kill(first, signal.SIGKILL)
    with taken:
        assert wait_until(take, 30)
        assert wait_until(lambda: "could not bind" in (server.home / "server.log").read_text(), 30)
    assert comes_back(server)


# --- pauses ----------------------------------------------------------------------------------------------------------


def supervised(
    monkeypatch: pytest.MonkeyPatch, start_again: Callable[[], None], ended: Callable[[], int | None]
) -> Supervisor:
    monkeypatch.setattr(supervision, "LOOK_SECONDS", 0.001)
    return Supervisor(ended=ended, start_again=start_again, meanwhile=lambda: None)


def test_attempts_get_rarer_up_to_a_limit(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", 0.02)
    monkeypatch.setattr(supervision, "LONGEST_PAUSE", 0.08)
    moments: list[float] = []

    def refuse() -> None:
        moments.append(time.monotonic())
        raise EmbeddedPostgresError("no space")

    supervisor = supervised(monkeypatch, refuse, lambda: 1)
    supervisor.start()
    assert wait_until(lambda: len(moments) >= 6, 30)
    supervisor.stop()
    gaps = [later - earlier for earlier, later in pairwise(moments)]
    assert [gap >= least for gap, least in zip(gaps, (0.02, 0.04, 0.08, 0.08), strict=False)] == [True] * 4
    assert "next attempt in 0.04 s: no space" in caplog.text
    assert caplog.text.count("ended (exit code 1)") == 1


def test_a_server_that_ends_at_once_is_not_started_in_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervision, "FIRST_PAUSE", 0.1)
    starts: list[float] = []
    supervisor = supervised(monkeypatch, lambda: starts.append(time.monotonic()), lambda: -6)
    supervisor.start()
    assert wait_until(lambda: len(starts) >= 3, 30)
    supervisor.stop()
    assert starts[1] - starts[0] >= 0.1
    assert starts[2] - starts[1] >= 0.2


def test_a_trouble_with_the_reserve_is_said_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(supervision, "LOOK_SECONDS", 0.001)
    looks: list[int] = []

    def refuse() -> None:
        looks.append(1)
        raise OSError("read-only file system")

    supervisor = Supervisor(ended=lambda: None, start_again=lambda: None, meanwhile=refuse)
    supervisor.start()
    assert wait_until(lambda: len(looks) > 5, 30)
    supervisor.stop()
    assert caplog.text.count("read-only file system") == 1


def test_how_a_process_ended() -> None:
    assert describe_end(1) == "exit code 1"
    assert describe_end(-9) == "SIGKILL"
    assert describe_end(-63) == "signal 63"


# --- space -----------------------------------------------------------------------------------------------------------


def test_the_reserve_is_taken_while_there_is_space_and_given_back_when_there_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    free = 2 * cluster.RESERVE_BYTES - 1
    monkeypatch.setattr(cluster, "free_bytes", lambda _: free)
    path = folder / cluster.NAME
    cluster.keep_reserve(folder)
    assert not path.exists()
    free += 1
    cluster.keep_reserve(folder)
    cluster.keep_reserve(folder)
    assert path.stat().st_size == cluster.RESERVE_BYTES
    assert path.stat().st_blocks * 512 >= cluster.RESERVE_BYTES, "it must hold its blocks"
    free = cluster.RESERVE_BYTES
    cluster.release_reserve(folder)
    assert path.exists()
    free -= 1
    cluster.release_reserve(folder)
    assert not path.exists()
    cluster.release_reserve(folder)
    assert caplog.text.count("its reserve of 64 MiB was released") == 1


def test_a_reserve_that_does_not_fit_leaves_nothing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(28, "No space left on device")

    (folder / "reserve.part").write_bytes(b"of a service that was killed meanwhile")
    monkeypatch.setattr(os, "write", refuse)
    cluster.keep_reserve(folder)
    assert not list(folder.iterdir())


def test_a_reserve_has_its_name_once_it_is_whole(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write, named = os.write, []

    def look(file: int, data: bytes) -> int:
        named.append((folder / cluster.NAME).exists())
        return write(file, data)

    monkeypatch.setattr(os, "write", look)
    cluster.keep_reserve(folder)
    assert named == [False] * 64
    assert (folder / cluster.NAME).stat().st_size == cluster.RESERVE_BYTES


@contextlib.contextmanager
def small_disk(place: Path, size: str) -> Iterator[Path]:
    place.mkdir()
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", f"size={size},mode=755", "prevail-test", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["/bin/umount", "-l", place], check=True)


def fill(disk: Path) -> Path:
    """Write a file until nothing more fits."""
    path = disk / "filling"
    with path.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(1 << 20)):
            pass
    with path.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while file.write(bytes(512)):
            pass
    return path


def can_mount() -> bool:
    """Only where a file system can be mounted can a full one be had; elsewhere the tests above stand for it."""
    if os.geteuid() != 0:
        return False
    tried = subprocess.run(
        ["/usr/bin/unshare", "-m", "/bin/mount", "-t", "tmpfs", "none", "/mnt"], check=False, capture_output=True
    )
    return tried.returncode == 0


if can_mount():

    def test_reads_come_back_on_a_full_disk_and_writes_with_space(
        folder: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        """The log of Postgres cannot be written any more: it ends, and can recover only with the reserve."""
        with (
            small_disk(folder / "disk", "400m") as disk,
            EmbeddedPostgres.start(disk / "data", durable=True) as server,
        ):
            url = server.dsn("postgres")
            server.supervise()
            ask(url, "CREATE TABLE kept AS SELECT 7 AS answer")
            assert wait_until((server.home / cluster.NAME).exists, 30)
            filling = fill(disk)
            first = server._server.pid
            much = "SELECT count(pg_logical_emit_message(false, 'x', repeat('y', 1000000))) FROM generate_series(1, 40)"
            with pytest.raises(GONE):
                ask(url, much)
            assert wait_until(lambda: server._server.pid != first, 30)
            assert comes_back(server)
            assert "No space left on device" in (server.home / "server.log").read_text()
            assert "its reserve of 64 MiB was released" in caplog.text
            assert not (server.home / cluster.NAME).exists()
            filling.unlink()
            assert ask(url, much) is not None
            assert wait_until((server.home / cluster.NAME).exists, 30)

    def test_a_service_starts_on_a_full_disk(folder: Path) -> None:
        with small_disk(folder / "disk", "400m") as disk:
            with EmbeddedPostgres.start(disk / "data", durable=True) as server:
                server.supervise()
                ask(server.dsn("postgres"), "CREATE TABLE kept AS SELECT 7 AS answer")
                assert wait_until((server.home / cluster.NAME).exists, 30)
            fill(disk)
            with EmbeddedPostgres.start(disk / "data", durable=True) as server:
                assert answers(server.dsn("postgres"))

    @pytest.mark.parametrize("size", ["4k", "8m"])
    def test_a_first_start_without_space_says_so(folder: Path, size: str) -> None:
        with (
            small_disk(folder / "disk", size) as disk,
            pytest.raises(EmbeddedPostgresError, match="No space left on device"),
        ):
            EmbeddedPostgres.start(disk / "data", durable=True)


def test_a_data_folder_that_is_a_file_is_refused_in_a_sentence(folder: Path) -> None:
    (folder / "data").write_text("")
    for place in (folder / "data", folder / "data" / "below"):
        with pytest.raises(EmbeddedPostgresError, match=r"expected PREVAIL_DATA_DIR to be a folder .*/data"):
            EmbeddedPostgres.start(place, durable=True)


@pytest.fixture(autouse=True)
def log_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, logger="prevail.embedded")
