"""Comparisons in Postgres: the port `app.services.ports.ComparisonStore`."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from sqlalchemy import ColumnElement, Row, func, or_, select

from app.domain.decisions import ComparisonFilter, ComparisonKind, ComparisonRecord, ComparisonSummary, model_readings
from app.domain.evaluation import EvaluationName, Page
from app.domain.operations import Kind
from app.store.audit import add_once, remove
from app.store.engine import OnEngine, read_one, read_page, same, writing
from app.store.tables import COMPARED_RUNS, comparisons


class PostgresComparisonStore(OnEngine):
    """The memory of comparisons."""

    async def add(self, project: str, record: ComparisonRecord) -> None:
        row = {"id": record.id, "project": project, "kind": record.kind, "answer": dict(record.answer)}
        async with writing(self._engine) as connection:
            await add_once(connection, comparisons, Kind.COMPARISON, row)

    async def get(self, project: str, identifier: UUID) -> ComparisonRecord | None:
        wanted = select(comparisons).where(*same(comparisons, project=project, id=identifier))
        return await read_one(self._engine, wanted, ComparisonRecord)

    async def delete(self, project: str, identifier: UUID) -> bool:
        return await remove(self._engine, comparisons, Kind.COMPARISON, project, id=identifier)

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
        return await read_page(self._engine, wanted, columns.id, limit, before, ComparisonSummary, _said)


def _said(row: Row[Any]) -> Mapping[str, Any]:
    runs = row.evaluations
    if row.kind is ComparisonKind.ACROSS_DATASETS:
        # The models on one dataset after the other.
        runs = [one for models in runs for one in models]
    return {
        "metrics": row.metrics if row.metric is None else [row.metric],
        "evaluations": [EvaluationName.within(one) for one in runs],
        "models": [one["model"] for one in runs] if row.models is None else row.models,
    }


def _has_run(named: Mapping[str, Any]) -> ColumnElement[bool]:
    return COMPARED_RUNS.contains([named])
