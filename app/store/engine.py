"""The connections to Postgres."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from app.store.failures import translated


def create_engine(
    url: str, *, pool_size: int = 8, statement_timeout: float = 30.0, connect_timeout: float = 5.0
) -> AsyncEngine:
    """Create the engine of one process; nothing is connected yet.

    Args:
        url: With the scheme `postgresql+asyncpg`.
        pool_size: Connections at most; there is no overflow. The write path keeps one more of its own.
        statement_timeout: Seconds after which Postgres cancels a statement.
        connect_timeout: Seconds to wait for a connection, from the server as from the pool.
    """
    return create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=connect_timeout,
        pool_pre_ping=True,
        json_serializer=write_json,
        json_deserializer=orjson.loads,
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


def write_json(value: Any) -> str:
    """Serialise for a JSON column."""
    return orjson.dumps(value).decode()


@asynccontextmanager
async def reading(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection to read with. Raises StoreUnavailableError when the database cannot be worked with."""
    with translated():
        async with engine.connect() as connection:
            yield connection


@asynccontextmanager
async def writing(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection in a transaction that is committed at the end. Raises StoreUnavailableError as ``reading``."""
    with translated():
        async with engine.begin() as connection:
            yield connection
