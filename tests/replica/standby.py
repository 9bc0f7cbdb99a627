"""A standby of a Postgres: a copy of its folder that follows its log."""

import asyncio
import subprocess
from collections.abc import Coroutine
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import asyncpg

from app.embedded import EmbeddedPostgres
from app.embedded.accounts import ServerUser
from app.embedded.cluster import STOPPING, launch
from app.embedded.server import COMMON_OPTIONS


class Standby:
    """Runs from its making to `stop`, and after `start` again."""

    def __init__(self, primary: EmbeddedPostgres, folder: Path) -> None:
        self._primary, self._home, self._user = primary, folder, ServerUser.choose()
        folder.mkdir(mode=0o711)
        self._user.take_over(folder)
        copy = primary.installation.program("pg_basebackup")
        options = ("--write-recovery-conf", "--wal-method=stream", "--checkpoint=fast", "--no-sync")
        answer = self._user.run(copy, "-d", primary.dsn("postgres"), "-D", folder / "cluster", *options)
        assert answer.returncode == 0, answer.stderr
        self._server: subprocess.Popen[bytes]
        self._port: int | None = None
        self.start()

    def start(self) -> None:
        """Follow the primary; at the same address as before."""
        self._server, self._port = launch(
            self._home, self._primary.installation, self._user, COMMON_OPTIONS, port=self._port
        )

    def stop(self) -> None:
        """End it at once."""
        for number, seconds in STOPPING[1:]:
            if self._server.poll() is None:
                self._server.send_signal(number)
                self._server.wait(seconds)

    def dsn(self, database: str = "prevail", role: str | None = None) -> str:
        """URL of a database on it; a role has its name as its password."""
        base = self._primary.dsn(database).replace(f":{self._primary.port}/", f":{self._port}/")
        if role is None:
            return base
        return f"postgresql://{role}:{role}@{base.rpartition('@')[2]}"

    def execute(self, statement: str) -> Any:
        """The one value that a statement has."""
        return execute(self.dsn(), statement)

    def pause(self) -> None:
        """Follow no further: what it has is what there was."""
        self.catch_up()
        self.execute("SELECT pg_wal_replay_pause()")
        self._wait("SELECT pg_get_wal_replay_pause_state() = 'paused'")

    def resume(self) -> None:
        """Follow again, until here."""
        self.execute("SELECT pg_wal_replay_resume()")
        self.catch_up()

    def catch_up(self) -> None:
        """Wait until it has all that the primary has now."""
        # A commit: of what is no commit the last page may stay unwritten for 15 s.
        reached = execute(self._primary.dsn(), "SELECT pg_logical_emit_message(true, 'test', '')::text")
        self._wait(f"SELECT pg_last_wal_replay_lsn() >= '{reached}'")

    def _wait(self, question: str) -> None:
        async def wait() -> None:
            connection = await asyncpg.connect(self.dsn())
            async with asyncio.timeout(30):
                while not await connection.fetchval(question):
                    await asyncio.sleep(0.01)
            await connection.close()

        run(wait())


def execute(url: str, *statements: str) -> Any:
    """Run statements outside of any transaction; returns the one value of the last."""

    async def ask() -> Any:
        connection = await asyncpg.connect(url)
        try:
            for statement in statements:
                value = await connection.fetchval(statement)
            return value
        finally:
            await connection.close()

    return run(ask())


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine to its end, also when the caller stands inside an event loop."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(asyncio.run, coroutine).result()
