"""Use of each project by day."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.operations import Used
from app.store.engine import read_one, writing
from app.store.tables import project_usage


class PostgresUsageStore:
    """A table with one row for each project and day."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def read(self, project: str, day: date) -> Used:
        columns = (project_usage.c.evaluations, project_usage.c.bytes, project_usage.c.compute_seconds)
        wanted = select(*columns).where(project_usage.c.project == project, project_usage.c.day == day)
        return await read_one(self._engine, wanted, lambda row: Used(*row)) or Used()

    async def add(self, used: Mapping[str, Used], day: date) -> None:
        added = insert(project_usage)
        sums = {name: project_usage.c[name] + added.excluded[name] for name in asdict(Used())}
        added = added.on_conflict_do_update(index_elements=["project", "day"], set_=sums)
        # In one order for all, so that two workers never wait for each other.
        rows = [{"project": project, "day": day, **asdict(used[project])} for project in sorted(used)]
        async with writing(self._engine) as connection:
            await connection.execute(added, rows)
