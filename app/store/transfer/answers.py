"""Comparisons, gates and their checks as rows of JSON, and back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from sqlalchemy import Column, Table, Uuid, select, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.identifiers import read_id
from app.domain.operations.access import Change, Kind
from app.services.ports import ArchiveConflictError, ArchiveKind
from app.store.audit import note
from app.store.database.tables import comparisons, gate_checks, gates


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one kind.

    Attributes:
        order: Columns of the primary key after the project: the order of the rows.
        kind: Of the objects in the trail of changes.
        named: The column that the trail names an object by.
    """

    table: Table
    order: tuple[str, ...]
    kind: Kind
    named: str = "id"


_KINDS: Final[Mapping[ArchiveKind, _Rows]] = {
    ArchiveKind.COMPARISONS: _Rows(comparisons, ("id",), Kind.COMPARISON),
    ArchiveKind.GATES: _Rows(gates, ("name", "version"), Kind.GATE, "name"),
    ArchiveKind.CHECKS: _Rows(gate_checks, ("id",), Kind.CHECK),
}


async def read_rows(
    connection: AsyncConnection, kind: ArchiveKind, project: str, after: Sequence[Any] | None, most: int
) -> list[dict[str, Any]]:
    """The next rows in their order, without the project; `place` of each is where to go on after it."""
    of = _KINDS[kind]
    order = [of.table.c[name] for name in of.order]
    wanted = select(of.table).where(of.table.c.project == project).order_by(*order).limit(most)
    if after is not None:
        place = [_read(column, value) for column, value in zip(order, after, strict=True)]
        wanted = wanted.where(tuple_(*order) > tuple_(*place))
    rows = (await connection.execute(wanted)).mappings()
    return [
        {str(column.name): _written(row[column.name]) for column in of.table.c if column.name != "project"}
        | {"place": [_written(row[name]) for name in of.order]}
        for row in rows
    ]


async def add_rows(
    connection: AsyncConnection, kind: ArchiveKind, project: str, rows: Sequence[Mapping[str, Any]]
) -> int:
    """Add those that are not there; returns how many these were.

    Raises:
        ArchiveConflictError: a row with the same key is there, and is another.
        AttributeError, KeyError, TypeError, ValueError: a row is none of ours.
    """
    of, columns = _KINDS[kind], _KINDS[kind].table.c
    added: list[str] = []
    for row in rows:
        values = {column.name: _read(column, row[column.name]) for column in columns if column.name != "project"}
        add = insert(of.table).values(project=project, **values).on_conflict_do_nothing().returning(columns.id)
        if await connection.scalar(add) is not None:
            added.append(str(values[of.named]))
            continue
        key = [columns[name] == values[name] for name in of.order]
        there = await connection.scalar(select(columns.id).where(columns.project == project, *key))
        if there is None or there.int != values["id"].int:
            raise ArchiveConflictError(
                f"there is another {of.kind.value} {' '.join(str(values[name]) for name in of.order)} in {project}"
            )
    if added:
        await note(connection, project, Change.CREATED, of.kind, *added)
    return len(added)


def _written(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _read(column: Column[Any], value: Any) -> Any:
    if column.name == "id":
        # Its moment is in it.
        return read_id(value)
    return UUID(value) if isinstance(column.type, Uuid) and value is not None else value
