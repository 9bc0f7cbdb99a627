"""The queues as a transaction of ours sees them: work is added, and taken out, together with what we remember of it.

These are procrastinate's own functions in the database, which it gives versions to; they need no second connection.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

SCHEMA: Final = "procrastinate"
Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of its own for one kind of work: its name, and that of what is done."""

    name: str
    task: str


JOBS: Final = Queue("prevail", "prevail.job")
DELIVERIES: Final = Queue("prevail-deliveries", "prevail.delivery")


async def add(connection: AsyncConnection, queue: Queue, given: Given) -> int:
    """Put something at the end of a queue, whose workers are told when the transaction is done; returns its id there.

    ``given`` is what they are to know of it, as JSON.
    """
    await _enter(connection)
    add = text(
        "SELECT (procrastinate_defer_jobs_v1(ARRAY[ROW(CAST(:queue AS varchar), CAST(:task AS varchar), 0, NULL, NULL, "
        "CAST(:given AS jsonb), NULL)]::procrastinate_job_to_defer_v1[]))[1]"
    )
    values = {"queue": queue.name, "task": queue.task, "given": orjson.dumps(given).decode()}
    added: int = (await connection.scalars(add, values)).one()
    return added


async def cancel(connection: AsyncConnection, queue_id: int) -> bool:
    """Take something out of its queue, True, or have whoever works on it told, False."""
    await _enter(connection)
    await connection.execute(text("SELECT procrastinate_cancel_job_v1(:id, true, true)"), {"id": queue_id})
    left = await connection.scalar(
        text("SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE id = :id AND status = 'doing')"), {"id": queue_id}
    )
    return not left


async def _enter(connection: AsyncConnection) -> None:
    """Let the functions find their tables, beside ours, until the transaction ends."""
    await connection.execute(
        text("SELECT set_config('search_path', :schema || ',' || current_setting('search_path'), true)"),
        {"schema": SCHEMA},
    )
