"""The audit log is cut from its old end, of one project at a time."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from sqlalchemy import insert
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.identifiers import id_at, new_id, time_of
from app.domain.operations import Change, Kind
from app.store.audit import PostgresTrail
from app.store.engine import writing
from app.store.keys import PostgresKeyStore
from app.store.tables import audit_entries

pytestmark = pytest.mark.anyio

NOW = datetime.now(UTC)


async def left(engine: AsyncEngine, project: str) -> list[UUID]:
    return [entry.id for entry in (await PostgresKeyStore(engine).audit(project, 100)).items]


async def test_old_entries_go_and_no_others(engine: AsyncEngine, project: str) -> None:
    other = f"{project}-2"
    ids = {name: [id_at(NOW - timedelta(days=age), new_id()) for age in range(12)] for name in (project, other)}
    row = {"actor": "a", "action": Change.CREATED.value, "kind": Kind.GATE.value, "object": "g"}
    async with writing(engine) as connection:
        rows = [{"id": one, "project": name, **row} for name, own in ids.items() for one in own]
        await connection.execute(insert(audit_entries), rows)
    trail = PostgresTrail(engine)
    assert {project, other} <= set(await trail.projects())
    assert len(await trail.projects()) == len(set(await trail.projects()))
    before = time_of(ids[project][4])
    assert await trail.remove_some(project, before, 5) == 5
    # The oldest went first.
    assert await left(engine, project) == ids[project][:7]
    assert await trail.remove_some(project, before, 5) == 2
    assert await trail.remove_some(project, before, 5) == 0
    assert await left(engine, project) == ids[project][:5]
    assert await left(engine, other) == ids[other]
    await trail.remove_some(project, NOW + timedelta(days=1), 100)
    assert project not in await trail.projects()
