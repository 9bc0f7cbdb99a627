"""What there is of names, and the removal of many evaluations: the port `app.services.ports.Inventory`."""

from collections.abc import Sequence
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ARRAY, Row, Select, Table, Uuid, delete, func, literal, select, true
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.evaluation import EvaluationQuery
from app.domain.identifiers import time_of
from app.domain.inventory import (
    DatasetFacts,
    DatasetPartFacts,
    ModelFacts,
    ModelVersionFacts,
    NewestEvaluation,
)
from app.domain.operations.access import Change, Kind
from app.store import lists
from app.store.audit import note
from app.store.database.engine import reading, writing
from app.store.database.tables import datasets, evaluations, models
from app.store.lists import find_scope
from app.store.names import Names
from app.store.samples.samples import remove_samples

_MOST_VERSIONS: Final = 1000


class PostgresInventory:
    """Counts, and removes in small transactions: nobody waits for one that goes through a hundred thousand."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._names = Names(engine)

    async def model(self, project: str, name: str) -> ModelFacts | None:
        """What there is of a model; None when it has no evaluation."""
        async with reading(self._engine) as connection:
            rows = await _fetch_used(connection, models, evaluations.c.model_id, project, name)
        if not rows:
            return None
        versions = [
            ModelVersionFacts(version=row.version, evaluations=row.evaluations, newest=_newest(row)) for row in rows
        ]
        return ModelFacts(
            name=name,
            evaluations=sum(one.evaluations for one in versions),
            newest=versions[0].newest,
            n_versions=len(versions),
            versions=versions[:_MOST_VERSIONS],
        )

    async def dataset(self, project: str, name: str) -> DatasetFacts | None:
        """What there is of a dataset; None when it has no evaluation."""
        async with reading(self._engine) as connection:
            rows = await _fetch_used(connection, datasets, evaluations.c.dataset_id, project, name)
        if not rows:
            return None
        parts = [
            DatasetPartFacts(version=row.version, split=row.split, evaluations=row.evaluations, newest=_newest(row))
            for row in rows
        ]
        return DatasetFacts(
            name=name,
            evaluations=sum(one.evaluations for one in parts),
            newest=parts[0].newest,
            splits=sorted({one.split for one in parts if one.split is not None}),
            n_versions=len(parts),
            versions=parts[:_MOST_VERSIONS],
        )

    async def count(self, project: str, query: EvaluationQuery) -> int:
        """How many evaluations pass."""
        async with reading(self._engine) as connection:
            scope = await find_scope(connection, self._names, project, query)
            if scope is None:
                return 0
            return await connection.scalar(lists.select_count(scope, query)) or 0

    async def newest(self, project: str, query: EvaluationQuery) -> UUID | None:
        """Return the newest evaluation that passes."""
        async with reading(self._engine) as connection:
            scope = await find_scope(connection, self._names, project, query)
            if scope is None:
                return None
            found: UUID | None = await connection.scalar(lists.select_ids(scope, query, 1, descending=True))
            return None if found is None else UUID(int=found.int)

    async def remove_some(self, project: str, query: EvaluationQuery) -> int:
        """Remove the oldest `query.limit` that pass, in one transaction; returns how many there were."""
        async with writing(self._engine) as connection:
            scope = await find_scope(connection, self._names, project, query)
            if scope is None:
                return 0
            # Two that remove the same take turns, so that they never wait for each other's rows.
            name = func.hashtextextended(f"removal {project}", 0)
            await connection.execute(select(func.pg_advisory_xact_lock(name)))
            identifiers: Sequence[Any] = (await connection.scalars(lists.select_ids(scope, query, query.limit))).all()
            these = evaluations.c.id == func.any(literal(identifiers, ARRAY(Uuid)))
            remove = delete(evaluations).where(evaluations.c.project == project, these).returning(evaluations.c.id)
            gone = [UUID(int=identifier.int) for identifier in await connection.scalars(remove)]
            if gone:
                await remove_samples(connection, project, gone)
                await note(connection, project, Change.DELETED, Kind.EVALUATION, *gone)
            return len(gone)


async def _fetch_used(
    connection: AsyncConnection, table: Table, used_in: Any, project: str, name: str
) -> Sequence[Row[Any]]:
    """The rows of a name that evaluations have, each with how many have it and the newest of these, newest first."""
    rows: Sequence[Row[Any]] = (await connection.execute(_select_used(table, used_in, project, name))).all()
    return rows


def _select_used(table: Table, used_in: Any, project: str, name: str) -> Select[Any]:
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


def _newest(row: Row[Any]) -> NewestEvaluation:
    identifier = UUID(int=row.newest.int)
    return NewestEvaluation(id=identifier, created_at=time_of(identifier))
