"""The audit log, written in the transaction of each change."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from sqlalchemy import Row, Text, Uuid, bindparam, delete, func, insert, select, text
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.evaluation import Page
from app.domain.identifiers import first_id_from, new_id, time_of
from app.domain.operations import AuditEntry, Change, Kind
from app.services.present import actor
from app.store.engine import made_of, read_page, reading, writing
from app.store.tables import audit_entries


async def note(connection: AsyncConnection, project: str, action: Change, kind: Kind, *changed: UUID | str) -> None:
    """Say that the present actor did something to an object, or the same to several."""
    row = {"project": project, "action": action.value, "kind": kind.value, **who()}
    rows = [{"id": new_id(), "object": str(one), **row} for one in changed]
    await connection.execute(insert(audit_entries), rows)


def who() -> dict[str, Any]:
    """The columns that say who acts, and in which request."""
    acting = actor()
    return {"key_id": acting.key, "actor": acting.name, "request_id": acting.request}


# What stands for these columns in a statement that is compiled once.
WHO_PARAMETERS: dict[str, Any] = {
    "key_id": bindparam("key_id", type_=Uuid),
    "actor": bindparam("actor", type_=Text),
    "request_id": bindparam("request_id", type_=Text),
}


class PostgresTrail:
    """The audit log, as far as it is cut: the port `app.services.ports.Trail`."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def projects(self) -> Sequence[str]:
        async with reading(self._engine) as connection:
            # Of all projects, which a statement that is compiled may not touch; from one to the next, not through all.
            found: Sequence[str] = (
                await connection.scalars(
                    text(
                        "WITH RECURSIVE known (project) AS ((SELECT project FROM audit_entries ORDER BY 1 LIMIT 1) "
                        "UNION ALL SELECT (SELECT next.project FROM audit_entries next "
                        "WHERE next.project > known.project ORDER BY 1 LIMIT 1) "
                        "FROM known WHERE known.project IS NOT NULL) "
                        "SELECT project FROM known WHERE project IS NOT NULL"
                    )
                )
            ).all()
            return found

    async def remove_some(self, project: str, before: datetime, most: int) -> int:
        columns = audit_entries.c
        async with writing(self._engine) as connection:
            # Two that remove the same take turns, so that they never wait for each other's rows.
            await connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"trail {project}", 0))))
            old = select(columns.id).where(columns.project == project, columns.id < first_id_from(before))
            these = columns.id.in_(old.order_by(columns.id).limit(most))
            return (await connection.execute(delete(audit_entries).where(columns.project == project, these))).rowcount


async def read_entries(engine: AsyncEngine, project: str, limit: int, before: UUID | None) -> Page[AuditEntry, UUID]:
    """Read a page of a project's changes, latest first."""
    mine = select(audit_entries).where(audit_entries.c.project == project)
    return await read_page(engine, mine, audit_entries.c.id, limit, before, _entry)


def _entry(row: Row[Any]) -> AuditEntry:
    key = None if row.key_id is None else UUID(int=row.key_id.int)
    return made_of(AuditEntry, row, at=time_of(row.id), key=key, action=Change(row.action), kind=Kind(row.kind))
