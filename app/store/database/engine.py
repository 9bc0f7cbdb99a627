"""The connections to Postgres."""

import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
from sqlalchemy import Row, Select
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.services.ports import StoreFullError
from app.store.database.failures import NO_SPACE, translated
from app.store.database.sealing import seal
from app.store.database.watch import DatabaseWatch


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system of the database, as far as it is one of this machine's.

    Attributes:
        folder: One on it; None when the database lies elsewhere.
        least: Bytes that have to stay free: Postgres ends when it cannot write its log any more, reads included.
    """

    folder: Path | None = None
    least: int = 0

    def has_room(self, size: int = 0) -> bool:
        """Whether so many bytes may be written. Asks the system, which takes two microseconds."""
        if self.folder is None:
            return True
        state = os.statvfs(self.folder)
        return state.f_bavail * state.f_frsize - size >= self.least


def create_engine(
    url: str,
    *,
    pool_size: int = 8,
    statement_timeout: float = 30.0,
    connect_timeout: float = 5.0,
    disk: Disk = Disk(),
    watch: DatabaseWatch | None = None,
) -> AsyncEngine:
    """Create the engine of one process; nothing is connected yet.

    Args:
        url: With the scheme `postgresql+asyncpg`.
        pool_size: Connections at most; there is no overflow. The write path keeps one more of its own.
        statement_timeout: Seconds after which Postgres cancels a statement.
        connect_timeout: Seconds to wait for a connection, from the server as from the pool.
        disk: Where the database lies: `writing` and `require_room` ask it.
        watch: Looks on; one that tells nobody when it is left out.
    """
    engine = create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=connect_timeout,
        pool_pre_ping=True,
        json_serializer=write_json,
        json_deserializer=orjson.loads,
        execution_options={"disk": disk, "watch": watch or DatabaseWatch()},
        connect_args={
            "timeout": connect_timeout,
            "server_settings": {
                "application_name": "prevail",
                "statement_timeout": str(int(statement_timeout * 1000)),
                "idle_in_transaction_session_timeout": "60000",
                # Compiling a query costs 100 ms and more; none of ours runs that long.
                "jit": "off",
                # Datasets hold ten evaluations or a hundred thousand: a plan for the average one fits neither.
                "plan_cache_mode": "force_custom_plan",
            },
        },
    )
    seal(engine.dialect)
    return engine


def write_json(value: Any) -> str:
    """Serialise for a JSON column."""
    return orjson.dumps(value).decode()


def watch_of(engine: AsyncEngine) -> DatabaseWatch:
    """Who looks on while the database is used."""
    watch: DatabaseWatch = engine.get_execution_options()["watch"]
    return watch


@asynccontextmanager
async def reading(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection to read with. Raises StoreUnavailableError when the database cannot be worked with."""
    with watch_of(engine).use("read"), translated():
        async with engine.connect() as connection:
            yield connection


async def read_rows(engine: AsyncEngine, statement: Select[Any]) -> Sequence[Row[Any]]:
    """All rows of a statement, read over a connection of its own. Raises as `reading` does."""
    async with reading(engine) as connection:
        rows: Sequence[Any] = (await connection.execute(statement)).all()
        return rows


def require_room(engine: AsyncEngine, size: int = 0) -> None:
    """Go on only when there is space for what is to be written.

    Raises:
        StoreFullError: there is not; nothing was tried, so that Postgres itself does not run out of it.
    """
    disk: Disk = engine.get_execution_options()["disk"]
    with translated():
        if not disk.has_room(size):
            raise StoreFullError(NO_SPACE)


@asynccontextmanager
async def writing(engine: AsyncEngine, size: int = 0) -> AsyncIterator[AsyncConnection]:
    """A connection in a transaction that is committed at the end; `size` bytes, if they are many.

    Raises StoreUnavailableError as ``reading``, and StoreFullError when there is no space.
    """
    # Twice: in the table, and before in the log.
    require_room(engine, 2 * size)
    with watch_of(engine).use("write"), translated():
        async with engine.begin() as connection:
            yield connection
