"""The launcher of the embedded Postgres: starting, stopping, surviving, and staying closed."""

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import sys
import textwrap
import time
import traceback
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import asyncpg
import pytest

from app.embedded import EmbeddedPostgres, EmbeddedPostgresError, cluster, installation
from app.embedded.cluster import clear_leftovers, processes_of
from app.embedded.installation import PACKAGE, Installation, ServerUser
from tests.embedded.conftest import ask

pytestmark = pytest.mark.slow

ROOT = os.geteuid() == 0
HOUSE = Path(__file__).resolve().parents[2]


def start(data_dir: Path, *, durable: bool = False) -> EmbeddedPostgres:
    return EmbeddedPostgres.start(data_dir, durable=durable)


def wait_for_end(process_id: int) -> None:
    assert cluster.wait_until(lambda: not alive(process_id), 20), f"process {process_id} still runs"


def alive(process_id: int) -> bool:
    status = Path(f"/proc/{process_id}/status")
    with contextlib.suppress(FileNotFoundError):
        return "State:\tZ" not in status.read_text()
    return False


# --- starting and stopping -------------------------------------------------------------------------------------------


def test_starts_answers_and_leaves_nothing_running(folder: Path) -> None:
    with start(folder / "data") as server:
        server.create_database()
        server.create_database()
        assert int(str(ask(server.dsn(), "SHOW server_version_num"))) >= 150000
        assert ask(server.dsn(), "SELECT string_agg(extname, ',') FROM pg_extension") == "plpgsql"
        assert ask(server.dsn(), "SELECT lower('ÄÖ') || upper('é')") == "äöÉ"
        running = processes_of(server.home / "cluster")
        watch = server._watch.pid
        assert len(running) > 1
    assert processes_of(server.home / "cluster") == []
    assert not any(map(alive, [*running, watch]))
    server.stop()


def test_keeps_data_and_password_over_a_restart(folder: Path) -> None:
    with start(folder / "data") as server:
        ask(server.dsn("postgres"), "CREATE TABLE kept AS SELECT 41 + 1 AS answer")
        password = server.dsn().split(":")[2].split("@")[0]
    with start(folder / "data") as server:
        assert ask(server.dsn("postgres"), "SELECT answer FROM kept") == 42
        assert password in server.dsn()


@pytest.mark.parametrize(("durable", "expected"), [(True, "on"), (False, "off")])
def test_durability_is_a_choice(folder: Path, durable: bool, expected: str) -> None:
    with start(folder / "data", durable=durable) as server:
        for name in ("fsync", "synchronous_commit", "full_page_writes"):
            assert ask(server.dsn("postgres"), f"SHOW {name}") == expected


def test_a_database_name_is_a_name(folder: Path) -> None:
    with start(folder / "data") as server, pytest.raises(ValueError, match="database name"):
        server.create_database('x"; DROP DATABASE postgres; --')


def test_takes_another_port_when_one_is_taken_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        first, honest = iter([taken.getsockname()[1]]), cluster.free_port
        monkeypatch.setattr(cluster, "free_port", lambda: next(first, None) or honest())
        with start(folder / "data") as server:
            assert server.port != taken.getsockname()[1]
            assert ask(server.dsn("postgres"), "SELECT 1") == 1


def test_says_why_a_server_did_not_start(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from app.embedded import server

    monkeypatch.setitem(server.COMMON_OPTIONS, "max_connections", "many")
    with pytest.raises(EmbeddedPostgresError, match=r'did not start.*server\.log(.|\n)*"max_connections"'):
        start(folder / "data")
    assert processes_of(folder / "data" / "cluster") == []


def test_names_the_extra_when_the_wheel_is_missing(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EmbeddedPostgresError, match=r"prevail-server\[embedded\].*PREVAIL_DATABASE_URL"):
        start(folder / "data")


def test_refuses_data_of_another_major_version(folder: Path) -> None:
    with start(folder / "data"):
        pass
    version = folder / "data" / "cluster" / "PG_VERSION"
    present = version.read_text().strip()
    version.write_text("9\n")
    with pytest.raises(EmbeddedPostgresError, match=rf"written by Postgres 9, .*{present}"):
        start(folder / "data")


# --- after a kill ----------------------------------------------------------------------------------------------------


def test_recovers_after_the_server_was_killed(folder: Path) -> None:
    with start(folder / "data", durable=True) as server:
        ask(server.dsn("postgres"), "CREATE TABLE kept AS SELECT 7 AS answer")
        os.kill(server._server.pid, signal.SIGKILL)
    with start(folder / "data", durable=True) as server:
        assert ask(server.dsn("postgres"), "SELECT answer FROM kept") == 7


def test_half_a_cluster_is_made_anew(folder: Path) -> None:
    rest = folder / "data" / "cluster.partial"
    rest.mkdir(parents=True)
    (folder / "data").chmod(0o711)
    (rest / "PG_VERSION").write_text("18\n")
    with start(folder / "data") as server:
        assert ask(server.dsn("postgres"), "SELECT 1") == 1


def start_service(data_dir: Path) -> tuple["subprocess.Popen[str]", dict[str, str]]:
    """A process of its own that starts a server and waits; with what it says of itself."""
    program = """
        import sys, time
        from pathlib import Path
        from app.embedded import EmbeddedPostgres, installation
        installation.REACHABLE_ROOTS = (Path(sys.argv[2]),)
        server = EmbeddedPostgres.start(Path(sys.argv[1]), durable=True)
        print(server._server.pid, server._watch.pid, server.dsn("postgres"), flush=True)
        time.sleep(600)
    """
    service = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), data_dir, installation.REACHABLE_ROOTS[0]],
        cwd=HOUSE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert service.stdout is not None
    values = service.stdout.readline().split()
    return service, dict(zip(("server", "watch", "url"), values, strict=True))


def test_the_server_ends_with_a_service_that_is_killed(folder: Path) -> None:
    service, said = start_service(folder / "data")
    ask(said["url"], "CREATE TABLE kept AS SELECT 5 AS answer")
    service.kill()
    service.communicate()
    wait_for_end(int(said["server"]))
    wait_for_end(int(said["watch"]))
    with start(folder / "data") as server:
        assert ask(server.dsn("postgres"), "SELECT answer FROM kept") == 5


def test_a_server_that_outlived_its_service_is_stopped_first(folder: Path) -> None:
    service, said = start_service(folder / "data")
    ask(said["url"], "CREATE TABLE kept AS SELECT 6 AS answer")
    # The watch goes first, as in a kill of everything the service started but the server.
    os.kill(int(said["watch"]), signal.SIGKILL)
    service.kill()
    service.communicate()
    assert ask(said["url"], "SELECT answer FROM kept") == 6
    with start(folder / "data") as server:
        assert not alive(int(said["server"]))
        assert ask(server.dsn("postgres"), "SELECT answer FROM kept") == 6


def test_everything_killed_at_once(folder: Path) -> None:
    service, said = start_service(folder / "data")
    ask(said["url"], "CREATE TABLE kept AS SELECT 8 AS answer")
    for process_id in (service.pid, int(said["watch"]), int(said["server"])):
        os.kill(process_id, signal.SIGKILL)
    service.communicate()
    with start(folder / "data") as server:
        assert ask(server.dsn("postgres"), "SELECT answer FROM kept") == 8


def test_a_stranger_with_the_id_of_the_old_server_is_left_alone(folder: Path) -> None:
    with start(folder / "data"):
        pass
    with subprocess.Popen(["/bin/sleep", "600"]) as stranger:
        note = folder / "data" / "cluster" / "postmaster.pid"
        note.write_text(f"{stranger.pid}\n{note.parent}\n{int(time.time())}\n1\n\n127.0.0.1\n\nready\n")
        clear_leftovers(note.parent)
        assert not note.exists()
        assert stranger.poll() is None
        with start(folder / "data") as server:
            assert ask(server.dsn("postgres"), "SELECT 1") == 1
        stranger.kill()


# --- beside others ---------------------------------------------------------------------------------------------------


def test_two_services_on_one_machine(folder: Path) -> None:
    with start(folder / "one") as one, start(folder / "two") as two:
        assert one.port != two.port
        ask(one.dsn("postgres"), "CREATE TABLE mine AS SELECT 1")
        assert ask(two.dsn("postgres"), "SELECT to_regclass('mine')") is None
        with pytest.raises(asyncpg.InvalidPasswordError):
            ask(one.dsn("postgres").replace(f":{one.port}/", f":{two.port}/"), "SELECT 1")


def test_two_services_on_the_same_data_are_refused(folder: Path) -> None:
    with start(folder / "data") as server:
        with pytest.raises(EmbeddedPostgresError, match=rf"in use by .*process {os.getpid()}.*PREVAIL_DATA_DIR"):
            start(folder / "data")
        assert ask(server.dsn("postgres"), "SELECT 1") == 1
    with start(folder / "data"):
        pass


def test_closed_without_the_password(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PGPASSWORD", raising=False)
    with start(folder / "data") as server:
        password = server.dsn().split(":")[2].split("@")[0]
        assert len(password) >= 32
        for guess in ("", ":", f":{password[:-1]}"):
            with pytest.raises((asyncpg.InvalidPasswordError, asyncpg.InterfaceError)):
                ask(server.dsn("postgres").replace(f":{password}", guess), "SELECT 1")
        rules = (server.home / "cluster" / "pg_hba.conf").read_text().splitlines()
        assert {line.split()[-1] for line in rules if line and not line.startswith("#")} == {"scram-sha-256"}
        assert ask(server.dsn("postgres"), "SHOW listen_addresses") == "127.0.0.1"
        assert ask(server.dsn("postgres"), "SHOW unix_socket_directories") == ""


def test_files_are_closed_to_others(folder: Path) -> None:
    with start(folder / "data") as server:
        for name in ("password", "lock", "server.log", "cluster"):
            assert stat.S_IMODE((server.home / name).stat().st_mode) & 0o077 == 0, name
        assert stat.S_IMODE(server.home.stat().st_mode) & 0o066 == 0
        command_lines = [Path(f"/proc/{id_}/cmdline").read_text() for id_ in processes_of(server.home / "cluster")]
        password = server.dsn().split(":")[2].split("@")[0]
        assert not any(password in line for line in command_lines)


# --- accounts --------------------------------------------------------------------------------------------------------


def test_the_server_never_runs_as_root(folder: Path) -> None:
    with start(folder / "data") as server:
        owners = {Path(f"/proc/{id_}").stat().st_uid for id_ in processes_of(server.home / "cluster")}
        user = ServerUser.choose()
        assert owners == {os.geteuid() if user.account is None else user.account.pw_uid}
        assert 0 not in owners


if ROOT:
    # What only root can set up. An ordinary user's run has the tests above, which then all take that user's way.

    def test_an_ordinary_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Done in a fork that gives up root: another user may not be able to start this very interpreter."""
        account = pwd.getpwnam("nobody")
        installation = Installation.choose(folder / "none").within_reach_of(ServerUser(account))
        monkeypatch.setattr(Installation, "all", classmethod(lambda _: [installation]))
        home = folder / "home"
        home.mkdir(mode=0o700)
        os.chown(home, account.pw_uid, account.pw_gid)
        with start(folder / "of-root"):
            pass
        with warnings.catch_warnings():
            # Python 3.12 and later warn of a fork beside threads; the child below takes no lock of theirs.
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
        if child == 0:
            code = 1
            try:
                os.setgroups([])
                os.setgid(account.pw_gid)
                os.setuid(account.pw_uid)
                for round_ in range(2):
                    with start(home / "data") as server:
                        server.create_database()
                        (home / f"round{round_}").write_text(str(ServerUser.choose().account))
                with pytest.raises(EmbeddedPostgresError, match="belongs to another user"):
                    start(folder / "of-root")
                code = 0
            except BaseException:
                traceback.print_exc()
                raise
            finally:
                os._exit(code)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert (home / "round1").read_text() == "None"
        assert (home / "data").stat().st_uid == account.pw_uid
        assert stat.S_IMODE((home / "data").stat().st_mode) == 0o700

    @pytest.fixture
    def closed_home(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """A closed home folder of root's with an environment in it, which is the one that is found."""
        home = folder / "home"
        home.mkdir(mode=0o700)
        spec = importlib.util.find_spec(PACKAGE)
        assert spec is not None
        assert spec.origin is not None
        present = Path(spec.origin).parent
        newest = Installation.choose(folder / "none").prefix
        shutil.copytree(newest, home / PACKAGE / newest.name, ignore=shutil.ignore_patterns("*.a", "include"))
        shutil.copytree(present.with_name(f"{PACKAGE}.libs"), home / f"{PACKAGE}.libs")
        inside = Installation(home / PACKAGE / newest.name, "1.2.3")
        monkeypatch.setattr(Installation, "all", classmethod(lambda _: [inside]))
        return home

    def test_a_clone_in_roots_closed_home(closed_home: Path, reachable: Path) -> None:
        data_dir = closed_home / "prevail" / "data"
        with start(data_dir) as server:
            server.create_database()
            ask(server.dsn(), "CREATE TABLE kept AS SELECT 9 AS answer")
            assert server.home.parent == reachable
            assert (data_dir / "location").read_text().strip() == str(server.home)
            copied = server.installation.prefix
            assert copied == reachable / f"postgres-1.2.3-{copied.name}" / PACKAGE / copied.name
            first = copied.stat().st_ino
        with start(data_dir) as server:
            assert ask(server.dsn(), "SELECT answer FROM kept") == 9
            assert server.installation.prefix.stat().st_ino == first, "copied again"
        for path in [reachable, *reachable.glob("postgres-*"), *reachable.glob("postgres-*/**/*")]:
            assert path.stat().st_uid == 0
            assert stat.S_IMODE(path.stat().st_mode) & 0o022 == 0

    def test_a_moved_clone_keeps_its_data_and_a_removed_one_starts_anew(closed_home: Path) -> None:
        with start(closed_home / "data") as server:
            ask(server.dsn("postgres"), "CREATE TABLE kept AS SELECT 3 AS answer")
        (closed_home / "data").rename(closed_home / "moved")
        with start(closed_home / "moved") as server:
            assert ask(server.dsn("postgres"), "SELECT answer FROM kept") == 3
        with start(closed_home / "data") as server:
            assert ask(server.dsn("postgres"), "SELECT to_regclass('kept')") is None

    def test_first_starts_that_race_agree_on_one_place(closed_home: Path) -> None:
        user = ServerUser.choose()
        with ThreadPoolExecutor(4) as pool:
            homes = set(pool.map(lambda _: installation.choose_home(closed_home / "data", user), range(4)))
        assert len(homes) == 1

    def test_first_starts_that_race_share_one_copy(closed_home: Path, reachable: Path) -> None:
        user = ServerUser.choose()
        with ThreadPoolExecutor(4) as pool:
            jobs = [pool.submit(Installation.choose(closed_home).within_reach_of, user) for _ in range(4)]
            copies = {job.result().prefix for job in jobs}
        assert len(copies) == 1
        assert [path.name for path in reachable.glob("postgres-*")] == [copies.pop().parent.parent.name]

    def test_a_half_copy_is_made_anew(closed_home: Path, reachable: Path) -> None:
        user = ServerUser.choose()
        original = Installation.choose(closed_home)
        partial = reachable / f"postgres-1.2.3-{original.prefix.name}.partial"
        partial.mkdir(parents=True)
        (partial / "rest").touch()
        copied = original.within_reach_of(user)
        assert copied.usable_by(user)
        assert not (copied.prefix.parent.parent / "rest").exists()

    @pytest.mark.parametrize("spoil", ["writable", "owned", "link"])
    def test_a_folder_that_others_can_change_is_not_used(closed_home: Path, reachable: Path, spoil: str) -> None:
        if spoil == "link":
            (reachable.parent / "elsewhere").mkdir(mode=0o755)
            reachable.symlink_to(reachable.parent / "elsewhere")
        else:
            reachable.mkdir()
            reachable.chmod(0o777 if spoil == "writable" else 0o755)
            os.chown(reachable, pwd.getpwnam("nobody").pw_uid if spoil == "owned" else 0, 0)
        with pytest.raises(EmbeddedPostgresError, match=r"none of .*PREVAIL_DATABASE_URL"):
            start(closed_home / "data")

    def test_a_database_that_got_closed_in_is_not_replaced_by_an_empty_one(folder: Path) -> None:
        (folder / "home").mkdir(mode=0o755)
        with start(folder / "home" / "data"):
            pass
        (folder / "home").chmod(0o700)
        with pytest.raises(EmbeddedPostgresError, match=r"holds a database, .*chmod o\+x"):
            start(folder / "home" / "data")

    def test_a_forged_location_is_refused(folder: Path) -> None:
        (folder / "data").mkdir()
        (folder / "data" / "location").write_text("/etc\n")
        with pytest.raises(EmbeddedPostgresError, match="names /etc"):
            start(folder / "data")
