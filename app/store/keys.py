"""API keys in Postgres, and what projects use: the ports `KeyStore`, `KeyLookup` and `UsageStore`."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import date, datetime
from uuid import UUID

from sqlalchemy import ColumnElement, bindparam, func, or_, select, text, update
from sqlalchemy.dialects.postgresql import insert

from app.domain.errors import NotFound
from app.domain.evaluation import Page
from app.domain.operations import AuditEntry, Change, KeyFacts, Kind, Used
from app.store.audit import note, note_result
from app.store.engine import OnEngine, changing_row, made_of, read_one, read_page, reading, same, writing
from app.store.tables import api_keys, audit_entries, key_usage, project_usage


class PostgresKeyStore(OnEngine):
    """The memory of keys."""

    async def any(self) -> bool:
        async with reading(self._engine) as connection:
            # Of all projects, which a statement that is compiled may not ask.
            return bool(await connection.scalar(text("SELECT EXISTS (SELECT FROM api_keys)")))

    async def find(self, identifier: UUID, day: date) -> KeyFacts | None:
        used = select(key_usage.c.requests).where(*same(key_usage, key_id=identifier, day=day)).scalar_subquery()
        wanted = select(api_keys, func.coalesce(used, 0).label("used_today")).where(api_keys.c.id == identifier)
        return await read_one(self._engine, wanted, KeyFacts)

    async def add(self, key: KeyFacts) -> None:
        names = ("id", "project", "name", "scopes", "digest", "expires_at", "rate", "daily_quota")
        async with writing(self._engine) as connection:
            await connection.execute(insert(api_keys).values({name: getattr(key, name) for name in names}))
            await note_result(connection, key.project, Change.CREATED, Kind.KEY, key.id)

    async def get(self, project: str, identifier: UUID) -> KeyFacts:
        wanted = select(api_keys).where(*same(api_keys, project=project, id=identifier))
        return NotFound.unless(await read_one(self._engine, wanted, KeyFacts), _named(identifier))

    async def page(self, project: str, limit: int, before: UUID | None = None) -> Page[KeyFacts, UUID]:
        mine = select(api_keys).where(api_keys.c.project == project)
        return await read_page(self._engine, mine, api_keys.c.id, limit, before, KeyFacts)

    async def rotate(self, project: str, identifier: UUID, digest: bytes, until: datetime) -> KeyFacts:
        ends = api_keys.c.expires_at
        changed = update(api_keys).where(*_good(project, identifier), or_(ends.is_(None), ends > func.now()))
        changed = changed.values(previous_digest=api_keys.c.digest, previous_until=until, digest=digest)
        async with writing(self._engine) as connection:
            found = (await connection.execute(changed.returning(api_keys))).one_or_none()
            row = NotFound.unless(found, f"{_named(identifier)} or expired")
            await note_result(connection, project, Change.ROTATED, Kind.KEY, identifier)
        return made_of(KeyFacts, row)

    async def revoke(self, project: str, identifier: UUID) -> None:
        changed = update(api_keys).where(*_good(project, identifier)).values(revoked_at=func.now())
        async with changing_row(self._engine, api_keys, project=project, id=identifier) as connection:
            NotFound.unless((await connection.execute(changed)).rowcount == 1, _named(identifier))
            await note(connection, project, Change.REVOKED, Kind.KEY, identifier)

    async def note_usage(self, used: Mapping[tuple[UUID, date], int], moment: datetime) -> None:
        # In one order for all, so that two workers never wait for each other.
        rows = [{"key_id": key, "day": day, "requests": used[key, day]} for key, day in sorted(used)]
        add = insert(key_usage)
        add = add.on_conflict_do_update(
            index_elements=["key_id", "day"], set_={"requests": key_usage.c.requests + add.excluded.requests}
        )
        latest = func.greatest(api_keys.c.last_used_at, bindparam("moment"))
        last = update(api_keys).where(api_keys.c.id == bindparam("key")).values(last_used_at=latest)
        async with writing(self._engine) as connection:
            await connection.execute(add, rows)
            await connection.execute(last, [{"key": row["key_id"], "moment": moment} for row in rows])

    async def audit(self, project: str, limit: int, before: UUID | None = None) -> Page[AuditEntry, UUID]:
        columns = audit_entries.c
        mine = select(audit_entries, columns.key_id.label("key")).where(columns.project == project)
        return await read_page(self._engine, mine, columns.id, limit, before, AuditEntry)


def _named(identifier: UUID) -> str:
    return f"key {identifier}, or it is revoked"


def _good(project: str, identifier: UUID) -> list[ColumnElement[bool]]:
    return [*same(api_keys, project=project, id=identifier), api_keys.c.revoked_at.is_(None)]


class PostgresUsageStore(OnEngine):
    """The use of each project, one row for each day."""

    async def read(self, project: str, day: date) -> Used:
        wanted = select(project_usage).where(*same(project_usage, project=project, day=day))
        return await read_one(self._engine, wanted, Used) or Used()

    async def add(self, used: Mapping[tuple[str, date], Used]) -> None:
        added = insert(project_usage)
        sums = {name: project_usage.c[name] + added.excluded[name] for name in asdict(Used())}
        added = added.on_conflict_do_update(index_elements=["project", "day"], set_=sums)
        # In one order for all, so that two workers never wait for each other.
        rows = [{"project": project, "day": day, **asdict(used[project, day])} for project, day in sorted(used)]
        async with writing(self._engine) as connection:
            await connection.execute(added, rows)
