"""Evaluations in the database: rows, reading, tags, removal, and models and datasets as a whole."""

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from math import inf
from typing import Any, Final
from uuid import UUID

import numpy as np
import orjson
from asyncpg import UniqueViolationError
from numpy.typing import NDArray
from sqlalchemy import Row, RowMapping, Select, Table, delete, func, select, true, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.errors import NotFound
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
from app.store.engine import (
    OnEngine,
    among,
    changing,
    changing_row,
    made_of,
    read_rows,
    reading,
    require_room,
    same,
    translated,
    write_json,
    writing,
)
from app.store.idempotency import keep_result, mark_values
from app.store.lists import SearchScope, find_scope
from app.store.names import Names, NameTable, Ref
from app.store.samples import (
    add_report,
    add_samples,
    find_digests,
    find_samples,
    pack_samples,
    read_reports,
    remove_samples,
)
from app.store.tables import datasets, evaluations, former_models, models
from app.store.webhooks import Listeners, announce, look_at
from app.store.writer import INSERT, EvaluationWriter


async def row_of(names: Names, project: str, record: EvaluationRecord) -> dict[str, Any]:
    """Return the row of a record, whose names and metrics are added where they are new; see `encode_record`."""
    with translated():
        ids = await names.resolve(project, record.model, record.dataset)
        return encode_record(project, record, ids=ids, slots=await names.slots_of(record.values))


_AS_THEY_ARE: Final = ("id", "n_classes", "positive", "n_samples", "kind", "content", "revision", "labels")


def encode_record(
    project: str, record: EvaluationRecord, *, ids: Mapping[str, int], slots: Mapping[str, int]
) -> dict[str, Any]:
    """Return the row of a record, keyed by column, JSON columns as text, and who makes it."""
    # The narrowest type that holds every entry exactly: entries of folds are parts of those of their sum.
    whole = record.content is Content.counts
    stored = np.min_scalar_type(int(record.counts.max(initial=0))) if whole else np.dtype("<f8")
    return {
        **{name: getattr(record, name) for name in _AS_THEY_ARE},
        **ids,
        "entry_id": new_id(),
        "project": project,
        "counts_type": stored.str,
        "tags": write_json(dict(record.tags)),
        "options": write_json(dict(record.options)) if record.options else None,
        "extra": write_json(dict(record.facts)) if record.facts else None,
        "metric_values": encode_values(record.values, slots),
        "counts": _to_bytes(record.counts, stored),
        "fold_counts": None if record.fold_counts is None else _to_bytes(record.fold_counts, stored),
        **who(),
    }


def decode_record(row: Mapping[Any, Any], keys: Mapping[int, str]) -> EvaluationRecord:
    """Return the record of a row that has the names of its model and dataset; see `lists.RECORDS`."""
    extra = row["extra"] or {}
    shape = shape_of(row["kind"], row["n_classes"], extra)
    content, stored = row["content"], np.dtype(row["counts_type"])
    folds = row["fold_counts"]
    return EvaluationRecord(
        id=row["id"],
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
    ids, joined = np.frombuffer(row["ids"], ">u8").reshape(-1, 2).astype(np.uint64), row["counts"]
    known = {int(model): version for model, version in row["versions"].items()}
    versions = [known[model] for model in row["model_ids"]]
    one = {"id": UUID(bytes=row["ids"][:16]), "counts": joined[: len(joined) // len(ids)], "fold_counts": None}
    one |= {"model_version": versions[0], "extra": extra, "options": options}
    first = decode_record({**row, **one, "revision": "", "metric_values": (), "tags": {}}, {})
    counts = _from_bytes(joined, np.dtype(row["counts_type"]), first.content, (len(ids), *first.counts.shape))
    return AlikeEvaluations(first, ids, versions, counts)


def decode_summary(row: RowMapping, keys: Mapping[int, str]) -> EvaluationSummary:
    """Return the summary of a row that has the names of its model and dataset; see `lists.SUMMARY`."""
    content, labels, positive, total = row["content"], row["labels"], row["positive"], row["n_samples"]
    return EvaluationSummary(
        id=row["id"],
        created_at=time_of(row["id"]),
        model=_model(row),
        dataset=_dataset(row),
        tags=dict(sorted(row["tags"].items())),
        input=SummarisedInput(
            kind=row["kind"],
            content=content,
            n_samples=None if content is Content.rates else int(total) if content is Content.counts else total,
            n_classes=row["n_classes"],
            labels=labels,
            positive=None if positive is None else labels[positive],
        ),
        metrics=decode_values(row["metric_values"], keys),
    )


def encode_values(values: Mapping[str, float | None], slots: Mapping[str, int]) -> str:
    """Put each value in its slot, as the text of a Postgres array: NaN for undefined, null for what does not apply.

    The driver takes 16 us for the numbers of an evaluation, one by one; as text they take a third.
    """
    encoded: list[float | str | None] = [None] * max(map(slots.__getitem__, values), default=0)
    for key, value in values.items():
        # JSON knows no infinities, Postgres knows them by these names too.
        encoded[slots[key] - 1] = "NaN" if value is None else value if -inf < value < inf else str(value)
    return f"{{{write_json(encoded)[1:-1]}}}"


def decode_values(encoded: Sequence[float | None], keys: Mapping[int, str]) -> dict[str, float | None]:
    """Undo `encode_values`; NaN is the one value that differs from itself."""
    return {
        keys[slot]: value if value == value else None
        for slot, value in enumerate(encoded, start=1)
        if value is not None
    }


def _to_bytes(array: NDArray[Any], stored: np.dtype[Any]) -> bytes:
    return np.ascontiguousarray(array, dtype=stored).tobytes()


def _from_bytes(data: bytes, stored: np.dtype[Any], content: Content, shape: tuple[int, ...]) -> NDArray[Any]:
    in_memory = np.int64 if content is Content.counts else np.float64
    return np.frombuffer(data, dtype=stored).reshape(shape).astype(in_memory)


def _model(row: Mapping[Any, Any]) -> ModelRef:
    return ModelRef(row["model_name"], row["model_version"])


def _dataset(row: Mapping[Any, Any]) -> DatasetRef:
    return DatasetRef(row["dataset_name"], row["dataset_version"], row["dataset_split"])


_MOST_VERSIONS: Final = 1000
EVERYTHING: Final = EvaluationQuery()


class PostgresInventory(OnEngine):
    """Counts, and removes in small transactions: nobody waits for one that goes through a hundred thousand."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self._names = Names(engine)

    async def _found(
        self,
        project: str,
        query: EvaluationQuery,
        statement: Callable[[SearchScope], Select[Any]],
        *,
        removing: bool = False,
    ) -> Sequence[Row[Any]]:
        """Return the rows of a statement about what the names in a query stand for, which may be nothing."""
        async with reading(self._engine) as connection:
            scope = await find_scope(connection, self._names, project, query, removing=removing)
            return () if scope is None else await _fetch(connection, statement(scope))

    async def _records(
        self, connection: AsyncConnection, project: str, identifiers: Sequence[UUID]
    ) -> dict[UUID, EvaluationRecord]:
        rows = (await connection.execute(lists.RECORDS, {"project": project, "ids": identifiers})).all()
        keys = await self._names.keys_of(connection, rows)
        return {row.id: decode_record(row._mapping, keys) for row in rows}

    async def model(self, project: str, name: str) -> ModelFacts:
        rows = await read_rows(self._engine, _select_used(models, evaluations.c.model_id, project, name))
        NotFound.unless(bool(rows), f"model {name!r}")
        return ModelFacts(name=name, **_facts(ModelVersionFacts, rows))

    async def dataset(self, project: str, name: str) -> DatasetFacts:
        async with reading(self._engine) as connection:
            rows = await _fetch(connection, _select_used(datasets, evaluations.c.dataset_id, project, name))
            judged = await connection.scalar(_count_models(project, name))
            former = await connection.scalar(
                lists.count_former(project, self._names.datasets.select_ids(project, name=name))
            )
        NotFound.unless(bool(rows), f"dataset {name!r}")
        return DatasetFacts(
            name=name,
            n_models=(judged or 0) + (former or 0),
            splits=sorted({row.split for row in rows if row.split is not None}),
            **_facts(DatasetPartFacts, rows),
        )

    async def count(self, project: str, query: EvaluationQuery) -> int:
        found = await self._found(project, query, lambda scope: lists.select_count(scope, query), removing=True)
        return found[0][0] if found else 0

    async def newest(self, project: str, query: EvaluationQuery = EVERYTHING) -> UUID | None:
        last = partial(lists.select_ids, query=query, limit=1, descending=True)
        found = await self._found(project, query, last, removing=True)
        return found[0].id if found else None

    async def remove_some(self, project: str, query: EvaluationQuery) -> int:
        async def newest(connection: AsyncConnection, most: int = 1) -> Sequence[Any]:
            scope = await find_scope(connection, self._names, project, query, removing=True)
            if scope is None:
                return ()
            found = await connection.scalars(lists.select_ids(scope, query, most, descending=True))
            return found.all()

        # Two that remove the same take turns, so that they never wait for each other's rows.
        async with changing(self._engine, f"removal {project}", newest) as connection:
            return await _remove(connection, project, await newest(connection, query.limit))


async def _remove(connection: AsyncConnection, project: str, identifiers: Sequence[UUID]) -> int:
    """Remove evaluations for good, remembering who was judged on what; returns how many there were."""
    these = evaluations.c.project == project, among(evaluations.c.id, identifiers)
    judged = select(evaluations.c.dataset_id, evaluations.c.model_id).where(*these).distinct()
    remember = insert(former_models).from_select(["dataset_id", "model_id"], judged).on_conflict_do_nothing()
    await connection.execute(remember)
    remove = delete(evaluations).where(*these).returning(evaluations.c.id)
    gone = (await connection.scalars(remove)).all()
    if gone:
        await remove_samples(connection, project, gone)
        await note(connection, project, Change.DELETED, Kind.EVALUATION, *gone)
    return len(gone)


def _select_used(table: Table, used_in: Any, project: str, name: str) -> Select[Any]:
    """The rows of a name that evaluations have, each with how many have it and the newest of these, newest first."""
    # One by one: each is a stretch of an index.
    newest = select(evaluations.c.id.label("newest")).where(used_in == table.c.id)
    last = newest.order_by(evaluations.c.id.desc()).limit(1).lateral("last")
    number = select(func.count().label("n_evaluations")).select_from(evaluations).where(used_in == table.c.id)
    counted = number.lateral("counted")
    return (
        select(*table.c, last.c.newest, counted.c.n_evaluations)
        .select_from(table.join(last, true()).join(counted, true()))
        .where(table.c.project == project, table.c.name == name)
        .order_by(last.c.newest.desc())
    )


def _count_models(project: str, name: str) -> Select[Any]:
    """Count the versions of models that have an evaluation on a dataset."""
    judged = evaluations.join(datasets, evaluations.c.dataset_id == datasets.c.id)
    of_name = datasets.c.project == project, datasets.c.name == name
    return select(func.count(evaluations.c.model_id.distinct())).select_from(judged).where(*of_name)


def _facts(kind: type[ModelVersionFacts] | type[DatasetPartFacts], rows: Sequence[Row[Any]]) -> dict[str, Any]:
    """The facts of all parts together, and of the newest of them."""
    return {
        "n_evaluations": sum(row.n_evaluations for row in rows),
        "newest": _newest(rows[0]),
        "n_versions": len(rows),
        "versions": [made_of(kind, row, newest=_newest(row)) for row in rows[:_MOST_VERSIONS]],
    }


def _newest(row: Row[Any]) -> NewestEvaluation:
    return NewestEvaluation(id=row.newest, url=f"/v1/evaluations/{row.newest}", created_at=time_of(row.newest))


class PostgresEvaluationStore(PostgresInventory):
    """The memory of evaluations; one per process, on the loop that uses it."""

    def __init__(self, engine: AsyncEngine, writer: EvaluationWriter, listeners: Listeners | None = None) -> None:
        super().__init__(engine)
        self._listeners = listeners or Listeners(engine)
        self._writer = writer

    async def prepare(self, metrics: Sequence[str]) -> None:
        """Give the metrics of the catalogue their slots in its order; without it slots come as values come."""
        with translated():
            await self._names.slots_of(metrics)

    async def close(self) -> None:
        """Commit what waits and close all connections."""
        await self._writer.close()
        await self._engine.dispose()

    async def add(self, project: str, record: EvaluationRecord) -> None:
        await self.add_all(project, [record])

    async def add_all(self, project: str, records: Sequence[EvaluationRecord]) -> None:
        require_room(self._engine)
        told = await self._listeners.want(project, Event.EVALUATION_CREATED)
        watched = await self._listeners.want(project, Event.MODEL_CHANGED)
        rows = [await row_of(self._names, project, record) for record in records]
        more = any(record.samples is not None or record.part is not None for record in records)
        try:
            if len(records) != 1 or more or told or watched:
                return await self._add_alone(project, records, rows, watched=watched)
            mark = present_mark()
            await self._writer.add(rows[0] if mark is None else rows[0] | mark_values(mark))
        except (UniqueViolationError, IntegrityError):
            # A job that is carried out again finds what it stored the time before.
            identifiers = {record.id for record in records}
            async with reading(self._engine) as connection:
                if await ids_of(connection, project, identifiers) != identifiers:
                    raise

    async def _add_alone(
        self, project: str, records: Sequence[EvaluationRecord], rows: Sequence[Mapping[str, Any]], *, watched: bool
    ) -> None:
        """Write evaluations, their samples and what is told of them in a transaction of its own: groups do not wait."""
        packed = {
            record.id: await asyncio.to_thread(pack_samples, record.samples)
            for record in records
            if record.samples is not None
        }
        async with writing(self._engine, sum(one.size for one in packed.values())) as connection:
            await add_samples(connection, project, packed)
            for record, row in zip(records, rows, strict=True):
                await keep_result(connection, Kind.EVALUATION, record.id)
                await add_whole(connection, project, record, row)
                await announce(connection, project, _happening(project, record))
                if watched:
                    await look_at(connection, project, record.id)

    async def read_samples(self, project: str, identifier: UUID) -> Samples | None:
        found = (await self.read_outputs(project, [identifier])).get(identifier)
        if found is None:
            # Samples go with their evaluation, perhaps since this was read.
            NotFound.unless(await self.get(project, identifier), f"evaluation {identifier}")
        return found

    async def kept(self, project: str, identifier: UUID) -> tuple[bool, bool]:
        async with reading(self._engine) as connection:
            rows = await find_digests(connection, project, [identifier], ["attributes"])
        return bool(rows), any(row["attributes"] is not None for row in rows)

    async def read_labels(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, Samples]:
        columns = ("truth", "predicted", "ids", "groups", "weights")
        async with reading(self._engine) as connection:
            found = await find_samples(connection, project, identifiers, columns)
        samples = await asyncio.to_thread(found)
        return {identifier: labels for identifier, one in samples.items() if (labels := one.labels) is not None}

    async def read_outputs(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, Samples]:
        async with reading(self._engine) as connection:
            found = await find_samples(connection, project, identifiers)
        return await asyncio.to_thread(found)

    async def read_part(self, project: str, identifier: UUID) -> Mapping[str, Any] | None:
        async with reading(self._engine) as connection:
            return (await read_reports(connection, project, [identifier])).get(identifier)

    async def get(self, project: str, identifier: UUID) -> EvaluationRecord | None:
        return (await self.get_many(project, [identifier])).get(identifier)

    async def get_many(self, project: str, identifiers: Sequence[UUID]) -> Mapping[UUID, EvaluationRecord]:
        async with reading(self._engine) as connection:
            return await self._records(connection, project, identifiers)

    async def change_tags(
        self, project: str, identifier: UUID, tags: Mapping[str, str | None]
    ) -> EvaluationRecord | None:
        mine = same(evaluations, project=project, id=identifier)
        async with changing_row(self._engine, evaluations, project=project, id=identifier) as connection:
            old = await connection.scalar(select(evaluations.c.tags).where(*mine).with_for_update())
            if old is None:
                return None
            new = merged_tags(old, tags)
            await connection.execute(update(evaluations).where(*mine).values(tags=new))
            await note(connection, project, Change.CHANGED, Kind.EVALUATION, identifier)
            return (await self._records(connection, project, [identifier]))[identifier]

    async def delete(self, project: str, identifier: UUID) -> bool:
        async with changing_row(self._engine, evaluations, project=project, id=identifier) as connection:
            return await _remove(connection, project, [identifier]) == 1

    async def former_models(self, project: str, dataset: DatasetRef) -> int:
        these = self._names.datasets.select_ids(
            project, name=dataset.name, version=dataset.version, split=dataset.split
        )
        async with reading(self._engine) as connection:
            return await connection.scalar(lists.count_former(project, these)) or 0

    async def page(self, project: str, query: EvaluationQuery) -> Page[EvaluationSummary, Position]:
        async with reading(self._engine) as connection:
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

    async def series(self, project: str, query: EvaluationQuery) -> Sequence[AlikeEvaluations]:
        rows = await self._found(project, query, lambda scope: lists.select_series(scope, query, query.limit))
        return [decode_alike(row._mapping) for row in rows]

    async def models(self, project: str, limit: int, after: ModelRef | None = None) -> Page[ModelRef, ModelRef]:
        return await self._list(self._names.models, project, limit, after)

    async def datasets(self, project: str, limit: int, after: DatasetRef | None = None) -> Page[DatasetRef, DatasetRef]:
        return await self._list(self._names.datasets, project, limit, after)

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
            return tuple(Standing(row._mapping["value"], item) for row, item in zip(rows, items, strict=True))

    async def _summaries(self, connection: AsyncConnection, rows: Sequence[Row[Any]]) -> tuple[EvaluationSummary, ...]:
        keys = await self._names.keys_of(connection, rows)
        return tuple(decode_summary(row._mapping, keys) for row in rows)

    async def _list(self, table: NameTable[Ref], project: str, limit: int, after: Ref | None) -> Page[Ref, Ref]:
        rows = await read_rows(self._engine, table.select_used(project, limit + 1, after))
        items = tuple(table.ref(*row) for row in rows[:limit])
        return Page(items, items[-1] if len(rows) > limit else None)


async def add_whole(
    connection: AsyncConnection, project: str, record: EvaluationRecord, row: Mapping[str, Any]
) -> None:
    """Add an evaluation, and what was said of samples that are not saved; those that are go before."""
    if record.part is not None:
        await add_report(connection, project, record.id, record.part)
    # The same statement as the writer's.
    await connection.exec_driver_sql(INSERT.sql, tuple(row[name] for name in INSERT.columns))


async def ids_of(connection: AsyncConnection, project: str, identifiers: Collection[UUID]) -> set[UUID]:
    """Return the ids, of these, that evaluations of a project have."""
    wanted = select(evaluations.c.id).where(evaluations.c.project == project, among(evaluations.c.id, identifiers))
    return {*await connection.scalars(wanted)}


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
