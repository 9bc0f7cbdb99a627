"""The queue as a transaction of ours sees it: a job is added, and taken out, together with what we remember of it.

These are procrastinate's own functions in the database, which it gives versions to; they need no second connection.
"""

from typing import Final
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

SCHEMA: Final = "procrastinate"
QUEUE: Final = "prevail"
TASK: Final = "prevail.job"


async def add(connection: AsyncConnection, project: str, identifier: UUID) -> int:
    """Put a job at the end of the queue, whose workers are told when the transaction is done; returns its id there."""
    await _enter(connection)
    add = text(
        "SELECT (procrastinate_defer_jobs_v1(ARRAY[ROW(CAST(:queue AS varchar), CAST(:task AS varchar), 0, NULL, NULL, "
        "jsonb_build_object('project', CAST(:project AS text), 'identifier', CAST(:identifier AS text)), NULL)]"
        "::procrastinate_job_to_defer_v1[]))[1]"
    )
    given = {"queue": QUEUE, "task": TASK, "project": project, "identifier": str(identifier)}
    added: int = (await connection.scalars(add, given)).one()
    return added


async def cancel(connection: AsyncConnection, queue_id: int) -> bool:
    """Take a job out of the queue, True, or have whoever works on it told, False."""
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
