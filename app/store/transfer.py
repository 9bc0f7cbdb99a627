"""The rows that a project is exported from and imported into."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import UUID

import orjson
from numpy.typing import NDArray
from sqlalchemy import ARRAY, Column, LargeBinary, Row, Table, Uuid, func, literal, select, tuple_
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.evaluation import EvaluationQuery
from app.domain.identifiers import read_id
from app.domain.operations import Change, Kind
from app.services.ports import ArchiveConflictError, Archived, ArchiveKind, SampleColumn
from app.store import lists
from app.store.audit import note
from app.store.engine import reading, writing
from app.store.evaluations import decode_record, row_of
from app.store.lists import SearchScope
from app.store.names import Names
from app.store.samples import COLUMN_NAMES, PackedSamples, StoredColumn, add_report, add_samples, pack, unpack
from app.store.tables import (
    comparisons,
    evaluation_samples,
    evaluations,
    gate_checks,
    gates,
    probability_reports,
    sample_columns,
)
from app.store.writer import INSERT


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


# Bytes of matrices, and of packed columns, that are read at once.
_MOST_BYTES: Final = 8 << 20


class PostgresArchive:
    """The archive of projects."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._names = Names(engine)

    async def newest(self, project: str) -> UUID | None:
        newest = lists.select_ids(SearchScope(project), EvaluationQuery(), 1, descending=True)
        async with reading(self._engine) as connection:
            found: UUID | None = await connection.scalar(newest)
        return None if found is None else UUID(int=found.int)

    async def evaluations(self, project: str, after: UUID, last: UUID, most: int) -> Sequence[Archived]:
        async with reading(self._engine) as connection:
            identifiers = await _next(connection, project, after, last, most)
            some = {"project": project, "ids": [*identifiers]}
            rows = (await connection.execute(lists.SOME_RECORDS, some)).all()
            keys = await self._names.keys_up_to(connection, max((len(row.metric_values) for row in rows), default=0))
            samples = await _samples_of(connection, project, identifiers)
            parts = await _parts_of(connection, project, identifiers)
        found = []
        for row in sorted(rows, key=lambda row: row.id):
            record = decode_record(row._mapping, keys)
            columns, sizes = samples.get(record.id, ({}, None))
            found.append(Archived(replace(record, part=parts.get(record.id)), columns, sizes))
        return found

    async def columns(self, project: str, digests: Sequence[bytes]) -> AsyncIterator[Mapping[bytes, SampleColumn]]:
        columns = sample_columns.c
        mine = (columns.project == project, columns.digest == func.any(literal(list(digests), ARRAY(LargeBinary))))
        async with reading(self._engine) as connection:
            sized = select(columns.digest, func.octet_length(columns.content)).where(*mine).order_by(columns.digest)
            sizes = (await connection.execute(sized)).all()
        for group in _groups([(digest, size) for digest, size in sizes]):
            here = columns.digest == func.any(literal(group, ARRAY(LargeBinary)))
            # In one order: two exports of the same are the same files.
            wanted = (
                select(columns.digest, columns.links, columns.content)
                .where(columns.project == project, here)
                .order_by(columns.digest)
            )
            async with reading(self._engine) as connection:
                rows: Sequence[Any] = (await connection.execute(wanted)).all()
            yield await asyncio.to_thread(_unpacked, rows)

    async def answers(self, kind: ArchiveKind, project: str, after: Any, most: int) -> Sequence[Mapping[str, Any]]:
        async with reading(self._engine) as connection:
            return await read_rows(connection, kind, project, after, most)

    async def add_evaluations(
        self, project: str, found: Sequence[Archived], column: Callable[[bytes], NDArray[Any]]
    ) -> int:
        # An import that is run again is quick where it was before.
        async with reading(self._engine) as connection:
            there = await _there(connection, project, [one.record.id for one in found])
        new = [one for one in found if one.record.id not in there]
        rows = {one.record.id: await row_of(self._names, project, one.record) for one in new}
        # Those with samples one by one: columns are locked in one order within an evaluation only.
        added = await self._add(project, [one for one in new if not one.columns], rows, {})
        for one in new:
            if one.columns:
                packed = await asyncio.to_thread(_packed, one, column)
                added += await self._add(project, [one], rows, {one.record.id: packed})
        return added

    async def _add(
        self,
        project: str,
        found: Sequence[Archived],
        rows: Mapping[UUID, Mapping[str, Any]],
        packed: Mapping[UUID, PackedSamples],
    ) -> int:
        if not found:
            return 0
        async with writing(self._engine, sum(one.size for one in packed.values())) as connection:
            # Two imports of the same take turns.
            name = func.hashtextextended(f"import {project}", 0)
            await connection.execute(select(func.pg_advisory_xact_lock(name)))
            there = await _there(connection, project, [one.record.id for one in found])
            new = [one for one in found if one.record.id not in there]
            for one in new:
                if one.record.id in packed:
                    await add_samples(connection, project, one.record.id, packed[one.record.id])
                if one.record.part is not None:
                    await add_report(connection, project, one.record.id, one.record.part)
            driver: Any = (await connection.get_raw_connection()).driver_connection
            # The same statement as the writer's, within the transaction that the lines above began.
            written = [tuple(rows[one.record.id][name] for name in INSERT.columns) for one in new]
            if written:
                await driver.executemany(INSERT.sql, written)
            return len(new)

    async def add_answers(self, kind: ArchiveKind, project: str, rows: Sequence[Mapping[str, Any]]) -> int:
        async with writing(self._engine) as connection:
            return await add_rows(connection, kind, project, rows)


async def _next(connection: AsyncConnection, project: str, after: UUID, last: UUID, most: int) -> list[UUID]:
    columns = evaluations.c
    size = func.octet_length(columns.counts) + func.coalesce(func.octet_length(columns.fold_counts), 0)
    beyond = (columns.project == project, columns.id > after, columns.id <= last)
    rows = (await connection.execute(select(columns.id, size).where(*beyond).order_by(columns.id).limit(most))).all()
    groups = _groups([(row[0], row[1]) for row in rows])
    return groups[0] if groups else []


async def _there(connection: AsyncConnection, project: str, identifiers: Sequence[UUID]) -> set[UUID]:
    these = evaluations.c.id == func.any(literal(list(identifiers), ARRAY(Uuid)))
    found = await connection.scalars(select(evaluations.c.id).where(evaluations.c.project == project, these))
    return {UUID(int=identifier.int) for identifier in found}


async def _samples_of(
    connection: AsyncConnection, project: str, identifiers: Sequence[UUID]
) -> dict[UUID, tuple[Mapping[str, bytes], tuple[int, ...] | None]]:
    columns = evaluation_samples.c
    these = columns.evaluation_id == func.any(literal(list(identifiers), ARRAY(Uuid)))
    rows = (await connection.execute(select(evaluation_samples).where(columns.project == project, these))).mappings()
    return {
        UUID(int=row["evaluation_id"].int): (
            {name: row[name] for name in COLUMN_NAMES if row[name] is not None},
            None if row["fold_sizes"] is None else tuple(row["fold_sizes"]),
        )
        for row in rows
    }


async def _parts_of(
    connection: AsyncConnection, project: str, identifiers: Sequence[UUID]
) -> dict[UUID, Mapping[str, Any]]:
    columns = probability_reports.c
    these = columns.evaluation_id == func.any(literal(list(identifiers), ARRAY(Uuid)))
    rows = await connection.execute(
        select(columns.evaluation_id, columns.content).where(columns.project == project, these)
    )
    return {UUID(int=row.evaluation_id.int): orjson.loads(row.content) for row in rows}


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


def _groups(sized: Sequence[tuple[Any, int]]) -> list[list[Any]]:
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
