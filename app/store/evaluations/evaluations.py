"""Evaluations in Postgres: the port `app.services.ports.EvaluationStore`."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any
from uuid import UUID

from asyncpg import UniqueViolationError
from sqlalchemy import Row, Select, delete, select, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.evaluation import (
    DatasetRef,
    EvaluationQuery,
    EvaluationRecord,
    EvaluationSummary,
    ModelRef,
    Page,
    Position,
    Standing,
    ValueCondition,
)
from app.domain.inputs.samples import Samples
from app.domain.members import as_json
from app.domain.named_metrics import HEADLINE
from app.domain.operations.access import Change, Kind
from app.domain.operations.webhooks import Event, Happening
from app.services.idempotency import present_mark
from app.services.ports import SampleLabels
from app.store import lists
from app.store.audit import note
from app.store.database.engine import read_rows, reading, require_room, writing
from app.store.database.failures import translated
from app.store.database.tables import evaluations
from app.store.evaluations.rows import decode_record, decode_summary, encode_record
from app.store.evaluations.writer import INSERT, EvaluationWriter
from app.store.idempotency import keep_result, mark_values
from app.store.lists import find_scope
from app.store.names import Names, NameTable, Ref
from app.store.samples.samples import add_report, add_samples, find_samples, pack_samples, read_report, remove_samples
from app.store.webhooks import Listeners, announce


class PostgresEvaluationStore:
    """The memory of evaluations; one per process, on the loop that uses it."""

    def __init__(
        self,
        engine: AsyncEngine,
        writer: EvaluationWriter,
        listeners: Listeners | None = None,
    ) -> None:
        self._engine = engine
        self._listeners = listeners or Listeners(engine)
        self._writer = writer
        self._names = Names(engine)

    async def prepare(self, metrics: Sequence[str]) -> None:
        """Give the metrics of the catalogue their slots in its order; without it slots come as values come."""
        with translated():
            await self._names.slots_of(metrics)

    async def close(self) -> None:
        """Commit what waits and close all connections."""
        await self._writer.close()
        await self._engine.dispose()

    async def add(self, project: str, record: EvaluationRecord) -> None:
        """Keep a record; on return it is durable."""
        require_room(self._engine)
        with translated():
            names = await self._names.resolve(project, record.model, record.dataset)
            slots = await self._names.slots_of(record.values)
        told = await self._listeners.want(project, Event.EVALUATION_CREATED)
        row = encode_record(project, record, names=names, slots=slots)
        try:
            if record.samples is None and record.part is None and not told:
                mark = present_mark()
                await self._writer.add(row if mark is None else row | mark_values(mark))
            else:
                await self._add_alone(project, record, row)
        except (UniqueViolationError, IntegrityError):
            # A job that is carried out again finds what it stored the time before.
            if not await self._is_kept(project, record.id):
                raise

    async def _is_kept(self, project: str, identifier: UUID) -> bool:
        mine = (evaluations.c.project == project, evaluations.c.id == identifier)
        async with reading(self._engine) as connection:
            return await connection.scalar(select(evaluations.c.id).where(*mine)) is not None

    async def _add_alone(self, project: str, record: EvaluationRecord, row: Mapping[str, Any]) -> None:
        """Write an evaluation, its samples and what is told of it in a transaction of its own: groups do not wait."""
        packed = None if record.samples is None else await asyncio.to_thread(pack_samples, record.samples)
        async with writing(self._engine, 0 if packed is None else packed.size) as connection:
            await keep_result(connection, Kind.EVALUATION, record.id)
            if packed is not None:
                await add_samples(connection, project, record.id, packed)
            if record.part is not None:
                await add_report(connection, project, record.id, record.part)
            driver: Any = (await connection.get_raw_connection()).driver_connection
            # The same statement as the writer's, within the transaction that the lines above began.
            await driver.execute(INSERT.sql, *(row[name] for name in INSERT.columns))
            await announce(connection, project, _happening(project, record))

    async def read_samples(self, project: str, identifier: UUID) -> Samples | None:
        """Return what is kept of the samples of an evaluation."""
        async with reading(self._engine) as connection:
            found = await find_samples(connection, project, [identifier])
        return (await asyncio.to_thread(found.samples)).get(identifier)

    async def read_labels(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, SampleLabels]:
        """Return the samples of those evaluations of which they were kept with ids or weights."""
        columns = ("truth", "predicted", "ids", "groups", "weights")
        async with reading(self._engine) as connection:
            found = await find_samples(connection, project, identifiers, columns)
        return await asyncio.to_thread(found.labels)

    async def read_outputs(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, Samples]:
        """Return the samples of those evaluations of which they were kept, with their probabilities or scores."""
        async with reading(self._engine) as connection:
            found = await find_samples(connection, project, identifiers)
        return await asyncio.to_thread(found.samples)

    async def read_part(self, project: str, identifier: UUID) -> Mapping[str, Any] | None:
        """Return what was said of samples that are not kept."""
        async with reading(self._engine) as connection:
            return await read_report(connection, project, identifier)

    async def get(self, project: str, identifier: UUID) -> EvaluationRecord | None:
        """Return the record, or None when the project has none of that id."""
        async with reading(self._engine) as connection:
            return await self._read(connection, project, identifier)

    async def get_many(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, EvaluationRecord]:
        """Return those of the records that the project has."""
        async with reading(self._engine) as connection:
            rows = await _fetch(connection, lists.select_records(project, identifiers))
            keys = await self._names.keys_up_to(connection, max((len(r.metric_values) for r in rows), default=0))
        records = (decode_record(row._mapping, keys) for row in rows)
        return {record.id: record for record in records}

    async def replace_tags(self, project: str, identifier: UUID, tags: Mapping[str, str]) -> EvaluationRecord | None:
        """Put `tags` in the place of all tags and return the record as it is now, or None when there is none."""
        mine = (evaluations.c.project == project, evaluations.c.id == identifier)
        async with writing(self._engine) as connection:
            record = await self._read(connection, project, identifier)
            changed = await connection.execute(update(evaluations).where(*mine).values(tags=dict(tags)))
            if changed.rowcount == 1:
                await note(connection, project, Change.CHANGED, Kind.EVALUATION, identifier)
        return replace(record, tags=dict(tags)) if record is not None and changed.rowcount == 1 else None

    async def delete(self, project: str, identifier: UUID) -> bool:
        """Remove the record for good; False when there was none."""
        mine = (evaluations.c.project == project, evaluations.c.id == identifier)
        async with writing(self._engine) as connection:
            gone = (await connection.execute(delete(evaluations).where(*mine))).rowcount == 1
            if gone:
                await remove_samples(connection, project, [identifier])
                await note(connection, project, Change.DELETED, Kind.EVALUATION, identifier)
        return gone

    async def page(self, project: str, query: EvaluationQuery) -> Page[EvaluationSummary, Position]:
        """Return up to `query.limit` summaries in the order asked for."""
        async with reading(self._engine) as connection:
            return await self._page(connection, project, query)

    async def _page(
        self, connection: AsyncConnection, project: str, query: EvaluationQuery
    ) -> Page[EvaluationSummary, Position]:
        scope = await find_scope(connection, self._names, project, query)
        if scope is None:
            return Page((), None)
        # One more than asked for tells whether there is a next page.
        if query.sort_metric is None:
            rows = await _fetch(connection, lists.select_by_time(scope, query, query.limit + 1))
        else:
            slot = await self._names.slot_of(connection, query.sort_metric)
            rows = await lists.fetch_by_metric(connection, scope, query, slot=slot, names=self._names)
        items = await self._summaries(connection, rows[: query.limit])
        if len(rows) <= query.limit:
            return Page(items, None)
        last = rows[query.limit - 1]._mapping
        return Page(items, Position(items[-1].id, last.get("value")))

    async def models(self, project: str, limit: int, after: ModelRef | None = None) -> Page[ModelRef, ModelRef]:
        """List the model versions that have an evaluation, by name, then version; those without one come last."""
        return await self._list(self._names.models, ModelRef, project, limit, after)

    async def datasets(self, project: str, limit: int, after: DatasetRef | None = None) -> Page[DatasetRef, DatasetRef]:
        """List the datasets that have an evaluation, by name, version, split; those without one come last."""
        return await self._list(self._names.datasets, DatasetRef, project, limit, after)

    async def leaderboard(
        self,
        project: str,
        dataset: DatasetRef,
        metric: str,
        *,
        limit: int,
        higher_is_better: bool,
        where: tuple[ValueCondition, ...] = (),
    ) -> tuple[Standing, ...]:
        """Rank the latest evaluation of each model version on a dataset; undefined values last, without a rank."""
        query = EvaluationQuery(dataset=dataset.name, dataset_version=dataset.version, split=dataset.split, where=where)
        async with reading(self._engine) as connection:
            slot = await self._names.slot_of(connection, metric)
            scope = await find_scope(connection, self._names, project, query)
            if scope is None:
                return ()
            rows = await _fetch(
                connection,
                lists.select_leaderboard(scope, limit, slot=slot, higher_is_better=higher_is_better),
            )
            items = await self._summaries(connection, rows)
            values = [row._mapping["value"] for row in rows]
            return tuple(
                Standing(None if value is None else values.index(value) + 1, value, item)
                for value, item in zip(values, items, strict=True)
            )

    async def _read(self, connection: AsyncConnection, project: str, identifier: UUID) -> EvaluationRecord | None:
        row = (await connection.execute(lists.select_record(project, identifier))).one_or_none()
        if row is None:
            return None
        keys = await self._names.keys_up_to(connection, len(row.metric_values))
        return decode_record(row._mapping, keys)

    async def _summaries(self, connection: AsyncConnection, rows: Sequence[Row[Any]]) -> tuple[EvaluationSummary, ...]:
        keys = await self._names.keys_up_to(connection, max((len(row.metric_values) for row in rows), default=0))
        return tuple(decode_summary(row._mapping, keys) for row in rows)

    async def _list(
        self, table: NameTable[Ref], ref: type[Ref], project: str, limit: int, after: Ref | None
    ) -> Page[Ref, Ref]:
        rows = await read_rows(self._engine, table.select_used(project, limit + 1, after))
        items = tuple(ref(*row) for row in rows[:limit])
        return Page(items, items[-1] if len(rows) > limit else None)


async def _fetch(connection: AsyncConnection, statement: Select[Any]) -> Sequence[Row[Any]]:
    rows: Sequence[Row[Any]] = (await connection.execute(statement)).all()
    return rows


def _happening(project: str, record: EvaluationRecord) -> Happening:
    return Happening(
        event=Event.EVALUATION_CREATED,
        id=record.id,
        at=record.created_at,
        data={
            "id": record.id,
            "project": project,
            "evaluation": f"/v1/evaluations/{record.id}",
            "model": as_json(record.model),
            "dataset": as_json(record.dataset),
            "tags": dict(record.tags),
            "values": {key: record.values[key] for key in HEADLINE if key in record.values},
        },
    )
