"""Comparisons in Postgres: the port `app.services.ports.ComparisonStore`."""

from uuid import UUID

from sqlalchemy import insert, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.access import Change, Kind
from app.domain.decisions import ComparisonKind, ComparisonRecord
from app.store.audit import note
from app.store.database.engine import reading, writing
from app.store.database.tables import comparisons


class PostgresComparisonStore:
    """The memory of comparisons."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def add(self, project: str, record: ComparisonRecord) -> None:
        """Keep a comparison; durable on return."""
        row = {"id": record.id, "project": project, "kind": record.kind.value, "answer": dict(record.answer)}
        async with writing(self._engine) as connection:
            await connection.execute(insert(comparisons).values(row))
            await note(connection, project, Change.CREATED, Kind.COMPARISON, record.id)

    async def get(self, project: str, identifier: UUID) -> ComparisonRecord | None:
        """Return the comparison, or None when the project has none of that id."""
        columns = comparisons.c
        wanted = select(columns.kind, columns.answer).where(columns.project == project, columns.id == identifier)
        async with reading(self._engine) as connection:
            row = (await connection.execute(wanted)).one_or_none()
        return None if row is None else ComparisonRecord(identifier, ComparisonKind(row.kind), row.answer)
