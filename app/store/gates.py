"""Gates and their checks in Postgres: the port `app.services.ports.GateStore`."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

from sqlalchemy import ARRAY, Row, Select, Text, cast, func, literal, or_, select, true
from sqlalchemy.dialects.postgresql import JSONB, distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.decisions import CheckFilter, GateCheck, GateVersion, model_readings
from app.domain.evaluation import Page
from app.domain.identifiers import new_id, time_of
from app.domain.operations import Change, Event, Kind, WebhookEvent
from app.domain.wording import run_title
from app.kernel.compare.gates import Verdict
from app.store.audit import add_once, note
from app.store.engine import OnEngine, changing_row, made_of, read_one, read_page, read_rows, same, writing
from app.store.idempotency import keep_result
from app.store.tables import gate_checks, gates
from app.store.webhooks import announce


class PostgresGateStore(OnEngine):
    """The memory of gates. A deletion is a version without a definition, so no number of a version is used twice."""

    async def put(self, project: str, name: str, definition: Mapping[str, Any]) -> tuple[GateVersion, bool]:
        async with changing_row(self._engine, gates, project=project, name=name) as connection:
            latest = await _latest(connection, project, name)
            absent = latest is None or latest.definition is None
            if latest is not None and latest.definition == definition:
                await keep_result(connection, Kind.GATE, str(latest.version), status=HTTPStatus.OK)
                return _made(latest), False
            identifier, version = await _add(connection, project, name, definition, latest)
            status = HTTPStatus.CREATED if absent else HTTPStatus.OK
            await keep_result(connection, Kind.GATE, version, status=status)
            await note(connection, project, Change.CREATED if absent else Change.CHANGED, Kind.GATE, name)
            return GateVersion(name=name, version=version, created_at=time_of(identifier), **definition), absent

    async def get(self, project: str, name: str, version: int | None = None) -> GateVersion | None:
        wanted = _versions(project, name).limit(1)
        if version is not None:
            wanted = wanted.where(gates.c.version == version)
        rows = await read_rows(self._engine, wanted)
        return _made(rows[0]) if rows and rows[0].definition is not None else None

    async def versions(self, project: str, name: str) -> Sequence[GateVersion]:
        rows = await read_rows(self._engine, _versions(project, name))
        return [_made(row) for row in rows if row.definition is not None]

    async def delete(self, project: str, name: str) -> bool:
        async with changing_row(self._engine, gates, project=project, name=name) as connection:
            latest = await _latest(connection, project, name)
            if latest is None or latest.definition is None:
                return False
            await _add(connection, project, name, None, latest)
            await note(connection, project, Change.DELETED, Kind.GATE, name)
            return True

    async def page(self, project: str, limit: int, after: str | None = None) -> Page[GateVersion, str]:
        latest = select(gates).where(gates.c.project == project).ext(distinct_on(gates.c.name))
        rows_of = latest.order_by(gates.c.name, gates.c.version.desc()).subquery("latest")
        wanted = select(rows_of).where(rows_of.c.definition.is_not(None))
        return await read_page(
            self._engine, wanted, rows_of.c.name, limit, after, GateVersion, _stated, latest_first=False
        )

    async def add_check(self, project: str, check: GateCheck) -> None:
        row = {name: getattr(check, name) for name in ("id", "version", "gate", "verdict")}
        row |= {"evaluation_id": check.evaluation, "baseline_id": check.baseline}
        row |= {"project": project, "answer": dict(check.answer)}
        async with writing(self._engine) as connection:
            if await add_once(connection, gate_checks, Kind.CHECK, row):
                await announce(connection, project, _happening(project, check))

    async def get_check(self, project: str, name: str, identifier: UUID) -> GateCheck | None:
        wanted = select(*_CHECK).where(*same(gate_checks, project=project, gate=name, id=identifier))
        return await read_one(self._engine, wanted, GateCheck)

    async def checks(
        self, project: str, asked: CheckFilter, limit: int, before: UUID | None = None
    ) -> Page[GateCheck, UUID]:
        columns = gate_checks.c
        wanted = select(*_CHECK).where(columns.project == project)
        if asked.gate is not None:
            wanted = wanted.where(columns.gate == asked.gate)
        if asked.verdict is not None:
            wanted = wanted.where(columns.verdict == asked.verdict)
        if asked.model is not None:
            model = cast(columns.answer["evaluation"]["model"], JSONB)
            wanted = wanted.where(or_(*(model.contains(one) for one in model_readings(asked.model))))
        return await read_page(self._engine, wanted, columns.id, limit, before, GateCheck)

    async def last_checks(self, project: str, names: Sequence[str]) -> Mapping[str, GateCheck]:
        wanted = func.unnest(literal(list(names), ARRAY(Text))).table_valued("name", name="wanted").render_derived()
        # Gate by gate: each is the end of a stretch of an index.
        mine = select(*_CHECK).where(gate_checks.c.project == project, gate_checks.c.gate == wanted.c.name)
        last = mine.order_by(gate_checks.c.id.desc()).limit(1).lateral("last")
        rows = await read_rows(self._engine, select(last).select_from(wanted.join(last, true())))
        return {row.gate: made_of(GateCheck, row) for row in rows}


# A check, its columns called as its fields are.
_CHECK: Final = (
    gate_checks,
    gate_checks.c.evaluation_id.label("evaluation"),
    gate_checks.c.baseline_id.label("baseline"),
)


def _happening(project: str, check: GateCheck) -> WebhookEvent:
    results = check.answer["results"]
    run = run_title(check.answer["evaluation"])
    open_rules = [one["message"] for one in results if one["verdict"] != Verdict.PASS]
    return WebhookEvent(
        event=Event.GATE_CHECKED,
        id=check.id,
        at=time_of(check.id),
        text=" ".join((f"Gate {check.gate}: {check.verdict} for {run}.", *open_rules)),
        data={
            "project": project,
            "check": {"id": check.id, "url": f"/v1/gates/{check.gate}/checks/{check.id}"},
            "gate": check.answer["gate"],
            "evaluation": check.shown.evaluation,
            "baseline": check.shown.baseline,
            "verdict": check.verdict,
            "messages": [one["message"] for one in results],
        },
    )


def _versions(project: str, name: str) -> Select[Any]:
    return select(gates).where(*same(gates, project=project, name=name)).order_by(gates.c.version.desc())


async def _latest(connection: AsyncConnection, project: str, name: str) -> Row[Any] | None:
    """Read the latest version; `changing_row` keeps others from adding one until the transaction ends."""
    found: Row[Any] | None = (await connection.execute(_versions(project, name).limit(1))).one_or_none()
    return found


async def _add(
    connection: AsyncConnection, project: str, name: str, definition: Mapping[str, Any] | None, latest: Row[Any] | None
) -> tuple[UUID, str]:
    """Add a version; its id and its number."""
    identifier, version = new_id(), 1 if latest is None else latest.version + 1
    row = {"id": identifier, "version": version, "project": project, "name": name}
    await connection.execute(
        insert(gates).values({**row, "definition": None if definition is None else dict(definition)})
    )
    return identifier, str(version)


def _made(row: Row[Any]) -> GateVersion:
    return made_of(GateVersion, row, **_stated(row))


def _stated(row: Row[Any]) -> Mapping[str, Any]:
    """Members of a version that are no columns."""
    return {"version": str(row.version), **row.definition}
