"""What an order by id leaves open: evaluations that are written long after their id was made.

Ids grow with time, so what came after a moment is found through any index that ends in the id, at no cost when writing.
Only an evaluation that was held up is missed by that: `late_at` says when it was written, by the clock of the database,
and is NULL for all others. What was written since a moment is then what has an id of `LATE_SECONDS` before that moment
or later, or was late since.
"""

import asyncio
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import Case, ColumnElement, Uuid, bindparam, case, func, literal_column, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.identifiers import first_id_from
from app.store.database.tables import evaluations

LATE_SECONDS = 10
# Between reading the clock for a row and beginning to write it Postgres waits for nothing.
_MARGIN = timedelta(seconds=3)


def late_at() -> Case[Any]:
    """Return the value of `late_at` in an INSERT that has a parameter `id`."""
    # The first 48 of its 128 bits are milliseconds.
    milliseconds = f"(extract(epoch from clock_timestamp()) * 1000)::bigint - {LATE_SECONDS * 1000}"
    oldest: ColumnElement[UUID] = literal_column(f"rpad(lpad(to_hex({milliseconds}), 12, '0'), 32, '0')::uuid", Uuid)
    return case((bindparam("id", type_=Uuid) < oldest, func.clock_timestamp()))


def in_time_since(moment: datetime) -> ColumnElement[bool]:
    """Whether an evaluation that was not late may have been written at `moment` or later."""
    return evaluations.c.id >= first_id_from(moment - timedelta(seconds=LATE_SECONDS))


def late_since(moment: datetime) -> ColumnElement[bool]:
    """Whether an evaluation was late, and written at `moment` or later."""
    return evaluations.c.late_at >= moment


async def find_visibility_horizon(engine: AsyncEngine, *, tries: int = 40) -> datetime | None:
    """Return a moment of which is known: whatever was written before it is visible to every later statement.

    None when a transaction that may have written before goes on and on.
    """
    async with engine.begin() as connection:
        moment: datetime = (await connection.scalars(select(func.clock_timestamp()))).one()
        # Whoever wrote before that has a smaller number than this transaction: all those must be done.
        await connection.execute(text("SELECT pg_current_xact_id()"))
        done = text("SELECT pg_snapshot_xmin(pg_current_snapshot()) >= pg_current_xact_id()")
        for _ in range(tries):
            if await connection.scalar(done):
                return moment - _MARGIN
            await asyncio.sleep(0.05)
    return None
