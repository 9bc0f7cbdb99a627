"""Evaluations in the database: rows, reading, tags, removal, and models and datasets as a whole."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any, Final
from uuid import UUID

import numpy as np
import orjson
from asyncpg import UniqueViolationError
from numpy.typing import NDArray
from sqlalchemy import ARRAY, Row, RowMapping, Select, Table, Uuid, delete, func, literal, select, true, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.evaluation import (
    AlikeEvaluations,
    DatasetRef,
    EvaluationName,
    EvaluationQuery,
    EvaluationRecord,
    EvaluationSummary,
    ModelRef,
    Page,
    Position,
    Standing,
    SummarisedInput,
    ValueCondition,
    merged_tags,
)
from app.domain.identifiers import new_id, time_of
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import shape_of
from app.domain.inputs.samples import Samples
from app.domain.inventory import DatasetFacts, DatasetPartFacts, ModelFacts, ModelVersionFacts, NewestEvaluation
from app.domain.members import as_json
from app.domain.named_metrics import HEADLINE
from app.domain.operations import Change, Event, Kind, WebhookEvent
from app.domain.wording import run_title
from app.services.idempotency import present_mark
from app.store import lists
from app.store.audit import note, who
from app.store.engine import read_rows, reading, require_room, translated, write_json, writing
from app.store.idempotency import keep_result, mark_values
from app.store.lists import find_scope
from app.store.names import Names, NameTable, Ref
from app.store.samples import (
    add_report,
    add_samples,
    find_samples,
    kept_of,
    pack_samples,
    read_report,
    remove_samples,
)
from app.store.tables import datasets, evaluations, former_models, models
from app.store.webhooks import Listeners, announce, look_at
from app.store.writer import INSERT, EvaluationWriter

_COUNT_TYPES = tuple((np.dtype(name), int(np.iinfo(name).max)) for name in ("<u1", "<u2", "<u4"))
_WIDEST_COUNT = np.dtype("<i8")
_WEIGHT = np.dtype("<f8")


async def row_of(names: Names, project: str, record: EvaluationRecord) -> dict[str, Any]:
    """Return the row of a record, whose names and metrics are added where they are new; see `encode_record`."""
    with translated():
        ids = await names.resolve(project, record.model, record.dataset)
        return encode_record(project, record, ids=ids, slots=await names.slots_of(record.values))


def encode_record(
    project: str, record: EvaluationRecord, *, ids: Mapping[str, int], slots: Mapping[str, int]
) -> dict[str, Any]:
    """Return the row of a record, keyed by column, JSON columns as text, and who makes it."""
    stored = _type_to_store(record)
    return {
        "id": record.id,
        "entry_id": new_id(),
        "project": project,
        **ids,
        "n_classes": record.n_classes,
        "positive": record.positive,
        "n_samples": record.n_samples,
        "kind": record.kind,
        "content": record.content.value,
        "revision": record.revision,
        "counts_type": stored.str,
        "labels": record.labels,
        "tags": write_json(dict(record.tags)),
        "options": write_json(dict(record.options)) if record.options else None,
        "extra": write_json(dict(record.facts)) if record.facts else None,
        "metric_values": encode_values(record.values, slots),
        "counts": _to_bytes(record.counts, stored),
        "fold_counts": None if record.fold_counts is None else _to_bytes(record.fold_counts, stored),
        **who(),
    }


def decode_record(row: RowMapping, keys: Mapping[int, str]) -> EvaluationRecord:
    """Return the record of a row that has the names of its model and dataset; see `lists.RECORD`."""
    extra = row["extra"] or {}
    shape = shape_of(row["kind"], row["n_classes"], extra)
    content = Content(row["content"])
    stored = np.dtype(row["counts_type"])
    folds = row["fold_counts"]
    return EvaluationRecord(
        id=_plain(row["id"]),
        model=_model(row),
        dataset=_dataset(row),
        kind=row["kind"],
        labels=tuple(row["labels"]),
        content=content,
        counts=_from_bytes(row["counts"], stored, content, shape),
        revision=row["revision"],
        values=decode_values(row["metric_values"], keys),
        positive=row["positive"],
        fold_counts=None if folds is None else _from_bytes(folds, stored, content, (-1, *shape)),
        tags=row["tags"],
        options=row["options"] or {},
        facts=extra,
    )


def decode_alike(row: RowMapping) -> AlikeEvaluations:
    """Return the evaluations of a row; see `lists.select_series`."""
    extra, options = (orjson.loads(row[name] or "{}") for name in ("extra", "options"))
    content, ids = Content(row["content"]), np.frombuffer(row["ids"], ">u8").reshape(-1, 2).astype(np.uint64)
    shape = (len(ids), *shape_of(row["kind"], row["n_classes"], extra))
    counts = _from_bytes(row["counts"], np.dtype(row["counts_type"]), content, shape)
    known = {int(model): version for model, version in row["versions"].items()}
    versions = [known[model] for model in row["model_ids"]]
    first = EvaluationRecord(
        id=UUID(bytes=row["ids"][:16]),
        model=ModelRef(row["model_name"], versions[0]),
        dataset=_dataset(row),
        kind=row["kind"],
        labels=tuple(row["labels"]),
        content=content,
        counts=counts[0],
        revision="",
        values={},
        positive=row["positive"],
        options=options,
        facts=extra,
    )
    return AlikeEvaluations(first, ids, versions, counts)


def decode_summary(row: RowMapping, keys: Mapping[int, str]) -> EvaluationSummary:
    """Return the summary of a row that has the names of its model and dataset; see `lists.SUMMARY`."""
    content, labels, positive = Content(row["content"]), row["labels"], row["positive"]
    return EvaluationSummary(
        id=_plain(row["id"]),
        created_at=time_of(row["id"]),
        model=_model(row),
        dataset=_dataset(row),
        tags=dict(sorted(row["tags"].items())),
        input=SummarisedInput(
            kind=row["kind"],
            content=content,
            n_samples=_size(content, row["n_samples"]),
            n_classes=row["n_classes"],
            labels=labels,
            positive=None if positive is None else labels[positive],
        ),
        metrics=decode_values(row["metric_values"], keys),
    )


def _size(content: Content, total: float) -> float | None:
    match content:
        case Content.counts:
            return int(total)
        case Content.weights:
            return total
    return None


def encode_values(values: Mapping[str, float | None], slots: Mapping[str, int]) -> str:
    """Put each value in its slot, as the text of a Postgres array: NaN for undefined, null for what does not apply.

    The driver takes 16 us for the numbers of an evaluation, one by one; as text they take a third.
    """
    encoded: list[float | str | None] = [None] * max(map(slots.__getitem__, values), default=0)
    for key, value in values.items():
        # JSON knows no infinities, Postgres knows them by these names too.
        encoded[slots[key] - 1] = "NaN" if value is None else value if isfinite(value) else str(value)
    return f"{{{write_json(encoded)[1:-1]}}}"


def decode_values(encoded: Sequence[float | None], keys: Mapping[int, str]) -> dict[str, float | None]:
    """Undo `encode_values`; NaN is the one value that differs from itself."""
    return {
        keys[slot]: value if value == value else None
        for slot, value in enumerate(encoded, start=1)
        if value is not None
    }


def _type_to_store(record: EvaluationRecord) -> np.dtype[Any]:
    """Return the narrowest type that holds every entry exactly: one byte for most counts in place of eight."""
    if record.content is not Content.counts:
        return _WEIGHT
    # Entries of folds are parts of those of their sum.
    greatest = int(record.counts.max(initial=0))
    return next((dtype for dtype, limit in _COUNT_TYPES if greatest <= limit), _WIDEST_COUNT)


def _to_bytes(array: NDArray[Any], stored: np.dtype[Any]) -> bytes:
    return np.ascontiguousarray(array, dtype=stored).tobytes()


def _from_bytes(data: bytes, stored: np.dtype[Any], content: Content, shape: tuple[int, ...]) -> NDArray[Any]:
    in_memory = np.int64 if content is Content.counts else np.float64
    return np.frombuffer(data, dtype=stored).reshape(shape).astype(in_memory)


def _model(row: RowMapping) -> ModelRef:
    return ModelRef(row["model_name"], row["model_version"])


def _dataset(row: RowMapping) -> DatasetRef:
    return DatasetRef(row["dataset_name"], row["dataset_version"], row["dataset_split"])


def _plain(identifier: UUID) -> UUID:
    """Return the driver's own subclass of UUID as the standard one."""
    return UUID(int=identifier.int)


_MOST_VERSIONS: Final = 1000


class PostgresInventory:
    """Counts, and removes in small transactions: nobody waits for one that goes through a hundred thousand."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._names = Names(engine)

    async def model(self, project: str, name: str) -> ModelFacts | None:
        async with reading(self._engine) as connection:
            rows = await _fetch(connection, _select_used(models, evaluations.c.model_id, project, name))
        if not rows:
            return None
        versions = [
            ModelVersionFacts(version=row.version, n_evaluations=row.evaluations, newest=_newest(row)) for row in rows
        ]
        return ModelFacts(
            name=name,
            n_evaluations=sum(one.n_evaluations for one in versions),
            newest=versions[0].newest,
            n_versions=len(versions),
            versions=versions[:_MOST_VERSIONS],
        )

    async def dataset(self, project: str, name: str) -> DatasetFacts | None:
        async with reading(self._engine) as connection:
            rows = await _fetch(connection, _select_used(datasets, evaluations.c.dataset_id, project, name))
            judged = await connection.scalar(_count_models(project, name))
            former = await connection.scalar(
                lists.count_former(project, self._names.datasets.select_ids(project, name=name))
            )
        if not rows:
            return None
        parts = [
            DatasetPartFacts(version=row.version, split=row.split, n_evaluations=row.evaluations, newest=_newest(row))
            for row in rows
        ]
        return DatasetFacts(
            name=name,
            n_evaluations=sum(one.n_evaluations for one in parts),
            newest=parts[0].newest,
            n_models=(judged or 0) + (former or 0),
            splits=sorted({one.split for one in parts if one.split is not None}),
            n_versions=len(parts),
            versions=parts[:_MOST_VERSIONS],
        )

    async def count(self, project: str, query: EvaluationQuery) -> int:
        async with reading(self._engine) as connection:
            scope = await find_scope(connection, self._names, project, query)
            if scope is None:
                return 0
            return await connection.scalar(lists.select_count(scope, query)) or 0

    async def newest(self, project: str, query: EvaluationQuery) -> UUID | None:
        async with reading(self._engine) as connection:
            scope = await find_scope(connection, self._names, project, query)
            if scope is None:
                return None
            found: UUID | None = await connection.scalar(lists.select_ids(scope, query, 1, descending=True))
            return None if found is None else UUID(int=found.int)

    async def remove_some(self, project: str, query: EvaluationQuery) -> int:
        async with writing(self._engine) as connection:
            scope = await find_scope(connection, self._names, project, query)
            if scope is None:
                return 0
            # Two that remove the same take turns, so that they never wait for each other's rows.
            name = func.hashtextextended(f"removal {project}", 0)
            await connection.execute(select(func.pg_advisory_xact_lock(name)))
            identifiers: Sequence[Any] = (await connection.scalars(lists.select_ids(scope, query, query.limit))).all()
            return await _remove(connection, project, identifiers)


async def _remove(connection: AsyncConnection, project: str, identifiers: Sequence[UUID]) -> int:
    """Remove evaluations for good, remembering who was judged on what; returns how many there were."""
    these = evaluations.c.project == project, evaluations.c.id == func.any(literal(identifiers, ARRAY(Uuid)))
    judged = select(evaluations.c.dataset_id, evaluations.c.model_id).where(*these).distinct()
    remember = insert(former_models).from_select(["dataset_id", "model_id"], judged).on_conflict_do_nothing()
    await connection.execute(remember)
    remove = delete(evaluations).where(*these).returning(evaluations.c.id)
    gone = [UUID(int=identifier.int) for identifier in await connection.scalars(remove)]
    if gone:
        await remove_samples(connection, project, gone)
        await note(connection, project, Change.DELETED, Kind.EVALUATION, *gone)
    return len(gone)


def _select_used(table: Table, used_in: Any, project: str, name: str) -> Select[Any]:
    """The rows of a name that evaluations have, each with how many have it and the newest of these, newest first."""
    # One by one: each is a stretch of an index.
    newest = select(evaluations.c.id.label("newest")).where(used_in == table.c.id)
    last = newest.order_by(evaluations.c.id.desc()).limit(1).lateral("last")
    number = select(func.count().label("evaluations")).select_from(evaluations).where(used_in == table.c.id)
    counted = number.lateral("counted")
    return (
        select(*table.c, last.c.newest, counted.c.evaluations)
        .select_from(table.join(last, true()).join(counted, true()))
        .where(table.c.project == project, table.c.name == name)
        .order_by(last.c.newest.desc())
    )


def _count_models(project: str, name: str) -> Select[Any]:
    """Count the versions of models that have an evaluation on a dataset."""
    judged = evaluations.join(datasets, evaluations.c.dataset_id == datasets.c.id)
    of_name = datasets.c.project == project, datasets.c.name == name
    return select(func.count(evaluations.c.model_id.distinct())).select_from(judged).where(*of_name)


def _newest(row: Row[Any]) -> NewestEvaluation:
    identifier = UUID(int=row.newest.int)
    return NewestEvaluation(id=identifier, url=f"/v1/evaluations/{identifier}", created_at=time_of(identifier))


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
        require_room(self._engine)
        told = await self._listeners.want(project, Event.EVALUATION_CREATED)
        watched = await self._listeners.want(project, Event.MODEL_CHANGED)
        if record.samples is not None or record.part is not None or told or watched:
            return await self.add_all(project, [record])
        row, mark = await row_of(self._names, project, record), present_mark()
        try:
            await self._writer.add(row if mark is None else row | mark_values(mark))
        except (UniqueViolationError, IntegrityError):
            if not await self._are_kept(project, [record]):
                raise

    async def add_all(self, project: str, records: Sequence[EvaluationRecord]) -> None:
        require_room(self._engine)
        rows = [await row_of(self._names, project, record) for record in records]
        try:
            await self._add_alone(project, list(zip(records, rows, strict=True)))
        except (UniqueViolationError, IntegrityError):
            if not await self._are_kept(project, records):
                raise

    async def _are_kept(self, project: str, records: Sequence[EvaluationRecord]) -> bool:
        """A job that is carried out again finds what it stored the time before."""
        identifiers = {record.id for record in records}
        mine = (evaluations.c.project == project, evaluations.c.id.in_(identifiers))
        async with reading(self._engine) as connection:
            found = await connection.scalars(select(evaluations.c.id).where(*mine))
        return {*found} == identifiers

    async def _add_alone(self, project: str, records: Sequence[tuple[EvaluationRecord, Mapping[str, Any]]]) -> None:
        """Write evaluations, their samples and what is told of them in a transaction of its own: groups do not wait."""
        packed = [
            None if record.samples is None else await asyncio.to_thread(pack_samples, record.samples)
            for record, _ in records
        ]
        watched = await self._listeners.want(project, Event.MODEL_CHANGED)
        async with writing(self._engine, sum(one.size for one in packed if one is not None)) as connection:
            for (record, row), samples in zip(records, packed, strict=True):
                await keep_result(connection, Kind.EVALUATION, record.id)
                if samples is not None:
                    await add_samples(connection, project, record.id, samples)
                if record.part is not None:
                    await add_report(connection, project, record.id, record.part)
                driver: Any = (await connection.get_raw_connection()).driver_connection
                # The same statement as the writer's, within the transaction that the lines above began.
                await driver.execute(INSERT.sql, *(row[name] for name in INSERT.columns))
                await announce(connection, project, _happening(project, record))
                if watched:
                    await look_at(connection, project, record.id)

    async def read_samples(self, project: str, identifier: UUID) -> Samples | None:
        unpack = await self.read_packed(project, identifier)
        return None if unpack is None else await asyncio.to_thread(unpack)

    async def read_packed(self, project: str, identifier: UUID) -> Callable[[], Samples] | None:
        async with reading(self._engine) as connection:
            found = await find_samples(connection, project, [identifier])
        return found.alone if found.rows else None

    async def kept(self, project: str, identifier: UUID) -> tuple[bool, bool]:
        async with reading(self._engine) as connection:
            return await kept_of(connection, project, identifier)

    async def read_labels(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, Samples]:
        columns = ("truth", "predicted", "ids", "groups", "weights")
        async with reading(self._engine) as connection:
            found = await find_samples(connection, project, identifiers, columns)
        return await asyncio.to_thread(found.labels)

    async def read_outputs(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, Samples]:
        async with reading(self._engine) as connection:
            found = await find_samples(connection, project, identifiers)
        return await asyncio.to_thread(found.samples)

    async def read_part(self, project: str, identifier: UUID) -> Mapping[str, Any] | None:
        async with reading(self._engine) as connection:
            return await read_report(connection, project, identifier)

    async def get(self, project: str, identifier: UUID) -> EvaluationRecord | None:
        async with reading(self._engine) as connection:
            return await self._read(connection, project, identifier)

    async def get_many(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, EvaluationRecord]:
        async with reading(self._engine) as connection:
            some = {"project": project, "ids": [*identifiers]}
            rows = (await connection.execute(lists.SOME_RECORDS, some)).all()
            keys = await self._names.keys_up_to(connection, max((len(r.metric_values) for r in rows), default=0))
        records = (decode_record(row._mapping, keys) for row in rows)
        return {record.id: record for record in records}

    async def change_tags(
        self, project: str, identifier: UUID, tags: Mapping[str, str | None]
    ) -> EvaluationRecord | None:
        mine = (evaluations.c.project == project, evaluations.c.id == identifier)
        async with writing(self._engine) as connection:
            # Locked, so that two changes at once both take place.
            old = (await connection.execute(select(evaluations.c.tags).where(*mine).with_for_update())).scalar()
            if old is None:
                return None
            new = merged_tags(old, tags)
            await connection.execute(update(evaluations).where(*mine).values(tags=new))
            await note(connection, project, Change.CHANGED, Kind.EVALUATION, identifier)
            return await self._read(connection, project, identifier)

    async def delete(self, project: str, identifier: UUID) -> bool:
        async with writing(self._engine) as connection:
            return await _remove(connection, project, [identifier]) == 1

    async def former_models(self, project: str, dataset: DatasetRef) -> int:
        """Return how many model versions had an evaluation on a dataset and have none there since."""
        these = self._names.datasets.select_ids(
            project, name=dataset.name, version=dataset.version, split=dataset.split
        )
        async with reading(self._engine) as connection:
            return await connection.scalar(lists.count_former(project, these)) or 0

    async def page(self, project: str, query: EvaluationQuery) -> Page[EvaluationSummary, Position]:
        async with reading(self._engine) as connection:
            return await self._page(connection, project, query)

    async def series(self, project: str, query: EvaluationQuery) -> Sequence[AlikeEvaluations]:
        async with reading(self._engine) as connection:
            scope = await find_scope(connection, self._names, project, query)
            if scope is None:
                return ()
            rows = await _fetch(connection, lists.select_series(scope, query, query.limit))
        return [decode_alike(row._mapping) for row in rows]

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
        return await self._list(self._names.models, ModelRef, project, limit, after)

    async def datasets(self, project: str, limit: int, after: DatasetRef | None = None) -> Page[DatasetRef, DatasetRef]:
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
        this = {"project": project, "id": identifier}
        row = (await connection.execute(lists.ONE_RECORD, this)).one_or_none()
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


def _happening(project: str, record: EvaluationRecord) -> WebhookEvent:
    name = EvaluationName.of(record)
    values = {key: record.values[key] for key in HEADLINE if key in record.values}
    return WebhookEvent(
        event=Event.EVALUATION_CREATED,
        id=record.id,
        at=record.created_at,
        text=f"Evaluated {run_title(as_json(name))}.",
        data={"project": project, "evaluation": name, "values": values},
    )
