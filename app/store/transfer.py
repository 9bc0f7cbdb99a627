"""The rows that a project is exported from and imported into."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

from numpy.typing import NDArray
from sqlalchemy import Column, Row, Table, func, select, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.identifiers import read_id
from app.domain.operations import Change, Kind
from app.services.ports import ArchiveConflictError, Archived, ArchiveKind, SampleColumn
from app.store.audit import note
from app.store.engine import among, read_rows, reading, same, take_turn, writing
from app.store.evaluations import PostgresInventory, add_whole, ids_of, row_of
from app.store.samples import (
    COLUMN_NAMES,
    PackedSamples,
    StoredColumn,
    add_samples,
    find_digests,
    pack,
    read_reports,
    unpack,
)
from app.store.tables import (
    Id,
    comparisons,
    evaluations,
    gate_checks,
    gates,
    sample_columns,
)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one kind.

    Attributes:
        order: Columns of the primary key after the project: the order of the rows.
        kind: Of the objects in the audit log.
        named: The column that the audit log names an object by.
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


def _written(value: Any) -> Any:
    return str(value) if isinstance(value, UUID) else value


def _read(column: Column[Any], value: Any) -> Any:
    if column.name == "id":
        # Its moment is in it.
        return read_id(value)
    return UUID(value) if isinstance(column.type, Id) and value is not None else value


# Bytes of matrices, and of packed columns, that are read at once.
_MOST_BYTES: Final = 8 << 20


class PostgresArchive(PostgresInventory):
    """The archive of projects."""

    async def evaluations(self, project: str, after: UUID, last: UUID, most: int) -> Sequence[Archived]:
        async with reading(self._engine) as connection:
            # What is removed meanwhile is there with all that belongs to it, or not at all.
            await connection.execution_options(isolation_level="REPEATABLE READ")
            identifiers = await _next(connection, project, after, last, most)
            records = await self._records(connection, project, identifiers)
            samples = await find_digests(connection, project, identifiers)
            parts = await read_reports(connection, project, identifiers)
        found = {key: Archived(replace(records[key], part=parts.get(key)), {}) for key in sorted(records)}
        for one in samples:
            columns = {name: one[name] for name in COLUMN_NAMES if one[name] is not None}
            sizes = None if one["fold_sizes"] is None else tuple(one["fold_sizes"])
            found[one["evaluation_id"]] = replace(found[one["evaluation_id"]], columns=columns, fold_sizes=sizes)
        return [*found.values()]

    async def columns(self, project: str, digests: Sequence[bytes]) -> AsyncIterator[Mapping[bytes, SampleColumn]]:
        columns = sample_columns.c
        size = func.octet_length(columns.content)
        # In one order: two exports of the same are the same files.
        mine = select(columns.digest, size).where(columns.project == project).order_by(columns.digest)
        sizes = await read_rows(self._engine, mine.where(among(columns.digest, digests)))
        for group in _groups(sizes):
            content = mine.with_only_columns(columns.digest, columns.links, columns.content)
            rows = await read_rows(self._engine, content.where(among(columns.digest, group)))
            yield await asyncio.to_thread(_unpacked, rows)

    async def answers(self, kind: ArchiveKind, project: str, after: Any, most: int) -> Sequence[Mapping[str, Any]]:
        of = _KINDS[kind]
        order = [of.table.c[name] for name in of.order]
        wanted = select(of.table).where(of.table.c.project == project).order_by(*order).limit(most)
        if after is not None:
            place = [_read(column, value) for column, value in zip(order, after, strict=True)]
            wanted = wanted.where(tuple_(*order) > tuple_(*place))
        return [
            {str(column.name): _written(row[column.name]) for column in of.table.c if column.name != "project"}
            | {"place": [_written(row[name]) for name in of.order]}
            for row in (row._mapping for row in await read_rows(self._engine, wanted))
        ]

    async def add_evaluations(
        self, project: str, found: Sequence[Archived], column: Callable[[bytes], NDArray[Any]]
    ) -> int:
        # An import that is run again is quick where it was before.
        async with reading(self._engine) as connection:
            there = await ids_of(connection, project, [one.record.id for one in found])
        new = [one for one in found if one.record.id not in there]
        added = 0
        # Those with samples one by one: they can be large.
        for group in filter(None, ([one for one in new if not one.columns], *([one] for one in new if one.columns))):
            rows = [await row_of(self._names, project, one.record) for one in group]
            packed = {one.record.id: await asyncio.to_thread(_packed, one, column) for one in group if one.columns}
            async with writing(self._engine, sum(one.size for one in packed.values())) as connection:
                # Two imports of the same take turns.
                await take_turn(connection, f"import {project}")
                there = await ids_of(connection, project, [one.record.id for one in group])
                await add_samples(connection, project, {key: packed[key] for key in packed.keys() - there})
                for one, row in zip(group, rows, strict=True):
                    if one.record.id not in there:
                        await add_whole(connection, project, one.record, row)
                        added += 1
        return added

    async def add_answers(self, kind: ArchiveKind, project: str, rows: Sequence[Mapping[str, Any]]) -> int:
        of, columns = _KINDS[kind], _KINDS[kind].table.c
        added: list[str] = []
        async with writing(self._engine) as connection:
            for row in rows:
                values = {
                    column.name: _read(column, row[column.name]) for column in columns if column.name != "project"
                }
                add = insert(of.table).values(project=project, **values).on_conflict_do_nothing().returning(columns.id)
                if await connection.scalar(add) is not None:
                    added.append(str(values[of.named]))
                    continue
                key = {name: values[name] for name in of.order}
                there = select(columns.id).where(*same(of.table, project=project, **key))
                if await connection.scalar(there) != values["id"]:
                    named = " ".join(map(str, key.values()))
                    raise ArchiveConflictError(f"there is another {of.kind.value} {named} in {project}")
            if added:
                await note(connection, project, Change.CREATED, of.kind, *added)
        return len(added)


async def _next(connection: AsyncConnection, project: str, after: UUID, last: UUID, most: int) -> list[UUID]:
    columns = evaluations.c
    size = func.octet_length(columns.counts) + func.coalesce(func.octet_length(columns.fold_counts), 0)
    beyond = (columns.project == project, columns.id > after, columns.id <= last)
    rows = (await connection.execute(select(columns.id, size).where(*beyond).order_by(columns.id).limit(most))).all()
    groups = _groups(rows)
    return groups[0] if groups else []


def _unpacked(rows: Sequence[Row[Any]]) -> dict[bytes, SampleColumn]:
    return {row.digest: SampleColumn(unpack(row.content), row.links > 1) for row in rows}


def _packed(one: Archived, column: Callable[[bytes], NDArray[Any]]) -> PackedSamples:
    packed: dict[str, StoredColumn | None] = dict.fromkeys(COLUMN_NAMES)
    for name, digest in one.columns.items():
        stored = pack(column(digest))
        if stored.digest != digest:
            raise ValueError(f"expected the column {digest.hex()} of {one.record.id}, got another one")
        packed[name] = stored
    return PackedSamples(packed, one.fold_sizes)


def _groups(sized: Sequence[Any]) -> list[list[Any]]:
    """Keys in groups of not too many bytes, one at least."""
    groups: list[list[Any]] = []
    size = 0
    for key, own in sized:
        if not groups or size + own > _MOST_BYTES:
            groups.append([])
            size = 0
        groups[-1].append(key)
        size += own
    return groups
