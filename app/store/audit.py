"""The audit log, written in the transaction of each change."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from http import HTTPStatus
from typing import Any
from uuid import UUID

from sqlalchemy import Table, Text, Uuid, bindparam, delete, select, text
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.identifiers import first_id_from, new_id
from app.domain.operations import Change, Kind
from app.services.present import actor
from app.store.engine import OnEngine, changing_row, reading, same, take_turn, writing
from app.store.idempotency import keep_result
from app.store.tables import audit_entries


async def note(connection: AsyncConnection, project: str, action: Change, kind: Kind, *changed: UUID | str) -> None:
    """Say that the present actor did something to an object, or the same to several."""
    row = {"project": project, "action": action, "kind": kind, **who()}
    rows = [{"id": new_id(), "object": str(one), **row} for one in changed]
    await connection.execute(insert(audit_entries), rows)


async def note_result(
    connection: AsyncConnection,
    project: str,
    action: Change,
    kind: Kind,
    changed: UUID | str,
    *,
    status: int = HTTPStatus.CREATED,
) -> None:
    """Say it as ``note`` does, and under the key of the present request. Raises as ``keep_result``."""
    await keep_result(connection, kind, changed, status=status)
    await note(connection, project, action, kind, changed)


async def add_once(connection: AsyncConnection, table: Table, kind: Kind, row: Mapping[str, Any]) -> bool:
    """Add an object with an id, and say so; False when it is there already. Raises as ``keep_result``."""
    added = await connection.execute(insert(table).values(row).on_conflict_do_nothing())
    if added.rowcount:
        await note_result(connection, row["project"], Change.CREATED, kind, row["id"])
    return added.rowcount > 0


async def remove(engine: AsyncEngine, table: Table, kind: Kind, project: str, **named: Any) -> bool:
    """Remove an object, and say so; False when there is none."""
    async with changing_row(engine, table, project=project, **named) as connection:
        these = delete(table).where(*same(table, project=project, **named))
        gone = (await connection.execute(these)).rowcount == 1
        if gone:
            await note(connection, project, Change.DELETED, kind, *named.values())
    return gone


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


class PostgresTrail(OnEngine):
    """The audit log, as far as it is cut: the port `app.services.ports.Trail`."""

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
            await take_turn(connection, f"trail {project}")
            old = select(columns.id).where(columns.project == project, columns.id < first_id_from(before))
            these = columns.id.in_(old.order_by(columns.id).limit(most))
            return (await connection.execute(delete(audit_entries).where(columns.project == project, these))).rowcount
