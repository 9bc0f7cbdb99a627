"""Comparisons in Postgres: the port `app.services.ports.ComparisonStore`."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, delete, func, or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.decisions import ComparisonFilter, ComparisonKind, ComparisonRecord, ComparisonSummary, model_readings
from app.domain.evaluation import EvaluationName, Page
from app.domain.identifiers import time_of
from app.domain.operations import Change, Kind
from app.store.audit import note
from app.store.engine import read_one, read_page, writing
from app.store.idempotency import keep_result
from app.store.tables import COMPARED_RUNS, comparisons


class PostgresComparisonStore:
    """The memory of comparisons."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def add(self, project: str, record: ComparisonRecord) -> None:
        row = {"id": record.id, "project": project, "kind": record.kind.value, "answer": dict(record.answer)}
        async with writing(self._engine) as connection:
            added = await connection.execute(insert(comparisons).values(row).on_conflict_do_nothing())
            if added.rowcount:
                await keep_result(connection, Kind.COMPARISON, record.id)
                await note(connection, project, Change.CREATED, Kind.COMPARISON, record.id)

    async def get(self, project: str, identifier: UUID) -> ComparisonRecord | None:
        columns = comparisons.c
        wanted = select(columns.kind, columns.answer).where(columns.project == project, columns.id == identifier)
        return await read_one(
            self._engine, wanted, lambda row: ComparisonRecord(identifier, ComparisonKind(row.kind), row.answer)
        )

    async def delete(self, project: str, identifier: UUID) -> bool:
        mine = (comparisons.c.project == project, comparisons.c.id == identifier)
        async with writing(self._engine) as connection:
            gone = (await connection.execute(delete(comparisons).where(*mine))).rowcount == 1
            if gone:
                await note(connection, project, Change.DELETED, Kind.COMPARISON, identifier)
        return gone

    async def page(
        self, project: str, asked: ComparisonFilter, limit: int, before: UUID | None = None
    ) -> Page[ComparisonSummary, UUID]:
        columns = comparisons.c
        # Of an answer, which may have megabytes, only the names.
        names = func.json_object_keys(columns.answer["metrics"]).table_valued("name")
        metrics = select(func.array_agg(names.c.name)).select_from(names).scalar_subquery()
        wanted = select(
            columns.id,
            columns.kind,
            metrics.label("metrics"),
            columns.answer["metric"].as_string().label("metric"),
            columns.answer["evaluations"].label("evaluations"),
            columns.answer["models"].label("models"),
        )
        wanted = wanted.where(columns.project == project)
        if asked.evaluation is not None:
            wanted = wanted.where(_has_run({"id": str(asked.evaluation)}))
        if asked.model is not None:
            wanted = wanted.where(or_(*(_has_run({"model": one}) for one in model_readings(asked.model))))
        return await read_page(self._engine, wanted, columns.id, limit, before, _summary)


def _summary(row: Row[Any]) -> ComparisonSummary:
    return ComparisonSummary(
        id=UUID(int=row.id.int),
        created_at=time_of(UUID(int=row.id.int)),
        kind=ComparisonKind(row.kind),
        metrics=row.metrics if row.metric is None else [row.metric],
        evaluations=_runs(ComparisonKind(row.kind), row.evaluations),
        models=[one["model"] for one in row.evaluations] if row.models is None else row.models,
    )


def _has_run(named: Mapping[str, Any]) -> ColumnElement[bool]:
    return COMPARED_RUNS.contains([named])


def _runs(kind: ComparisonKind, evaluations: list[Any]) -> list[Mapping[str, Any]]:
    """The runs, or the models on one dataset after the other."""
    runs = evaluations if kind is ComparisonKind.RUNS else [one for models in evaluations for one in models]
    return [EvaluationName.within(one) for one in runs]
