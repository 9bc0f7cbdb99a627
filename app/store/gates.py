"""Gates and their checks in Postgres: the port `app.services.ports.GateStore`."""

from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any
from uuid import UUID

from sqlalchemy import ARRAY, Row, Select, Text, cast, func, literal, or_, select, true
from sqlalchemy.dialects.postgresql import JSONB, distinct_on, insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.decisions import CheckFilter, Gate, GateCheck, model_readings
from app.domain.evaluation import Page
from app.domain.identifiers import new_id, time_of
from app.domain.operations import Change, Event, Kind, WebhookEvent
from app.domain.wording import run_title
from app.kernel.compare.gates import Verdict
from app.store.audit import note
from app.store.engine import made_of, read_one, read_page, read_rows, writing
from app.store.idempotency import keep_result
from app.store.tables import gate_checks, gates
from app.store.webhooks import announce


class PostgresGateStore:
    """The memory of gates. A deletion is a version without a definition, so no number of a version is used twice."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def put(self, project: str, name: str, definition: Mapping[str, Any]) -> tuple[Gate, bool]:
        async with writing(self._engine) as connection:
            latest = await _latest(connection, project, name)
            absent = latest is None or latest.definition is None
            if latest is not None and latest.definition == definition:
                await keep_result(connection, Kind.GATE, str(latest.version), status=HTTPStatus.OK)
                return _gate(latest), False
            gate = await _add(connection, project, name, definition, latest)
            status = HTTPStatus.CREATED if absent else HTTPStatus.OK
            await keep_result(connection, Kind.GATE, str(gate.version), status=status)
            await note(connection, project, Change.CREATED if absent else Change.CHANGED, Kind.GATE, name)
            return gate, absent

    async def get(self, project: str, name: str, version: int | None = None) -> Gate | None:
        wanted = _versions(project, name).limit(1)
        if version is not None:
            wanted = wanted.where(gates.c.version == version)
        rows = await read_rows(self._engine, wanted)
        return _gate(rows[0]) if rows and rows[0].definition is not None else None

    async def versions(self, project: str, name: str) -> Sequence[Gate]:
        rows = await read_rows(self._engine, _versions(project, name))
        return [_gate(row) for row in rows if row.definition is not None]

    async def delete(self, project: str, name: str) -> bool:
        async with writing(self._engine) as connection:
            latest = await _latest(connection, project, name)
            if latest is None or latest.definition is None:
                return False
            await _add(connection, project, name, None, latest)
            await note(connection, project, Change.DELETED, Kind.GATE, name)
            return True

    async def page(self, project: str, limit: int, after: str | None = None) -> Page[Gate, str]:
        latest = select(gates).where(gates.c.project == project).ext(distinct_on(gates.c.name))
        rows_of = latest.order_by(gates.c.name, gates.c.version.desc()).subquery("latest")
        wanted = select(rows_of).where(rows_of.c.definition.is_not(None))
        return await read_page(self._engine, wanted, rows_of.c.name, limit, after, _gate, latest_first=False)

    async def add_check(self, project: str, check: GateCheck) -> None:
        row = {
            "id": check.id,
            "evaluation_id": check.evaluation,
            "baseline_id": check.baseline,
            "version": check.version,
            "project": project,
            "gate": check.gate,
            "verdict": check.verdict.value,
            "answer": dict(check.answer),
        }
        async with writing(self._engine) as connection:
            added = await connection.execute(insert(gate_checks).values(row).on_conflict_do_nothing())
            if added.rowcount:
                await keep_result(connection, Kind.CHECK, check.id)
                await note(connection, project, Change.CREATED, Kind.CHECK, check.id)
                await announce(connection, project, _happening(project, check))

    async def get_check(self, project: str, name: str, identifier: UUID) -> GateCheck | None:
        checks = gate_checks.c
        wanted = select(gate_checks).where(checks.project == project, checks.gate == name, checks.id == identifier)
        return await read_one(self._engine, wanted, _check)

    async def checks(
        self, project: str, asked: CheckFilter, limit: int, before: UUID | None = None
    ) -> Page[GateCheck, UUID]:
        columns = gate_checks.c
        wanted = select(gate_checks).where(columns.project == project)
        if asked.gate is not None:
            wanted = wanted.where(columns.gate == asked.gate)
        if asked.verdict is not None:
            wanted = wanted.where(columns.verdict == asked.verdict.value)
        if asked.model is not None:
            model = cast(columns.answer["evaluation"]["model"], JSONB)
            wanted = wanted.where(or_(*(model.contains(one) for one in model_readings(asked.model))))
        return await read_page(self._engine, wanted, columns.id, limit, before, _check)

    async def last_checks(self, project: str, names: Sequence[str]) -> Mapping[str, GateCheck]:
        wanted = func.unnest(literal(list(names), ARRAY(Text))).table_valued("name", name="wanted").render_derived()
        # Gate by gate: each is the end of a stretch of an index.
        mine = select(gate_checks).where(gate_checks.c.project == project, gate_checks.c.gate == wanted.c.name)
        last = mine.order_by(gate_checks.c.id.desc()).limit(1).lateral("last")
        rows = await read_rows(self._engine, select(last).select_from(wanted.join(last, true())))
        return {row.gate: _check(row) for row in rows}


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
    mine = (gates.c.project == project, gates.c.name == name)
    return select(gates).where(*mine).order_by(gates.c.version.desc())


async def _latest(connection: AsyncConnection, project: str, name: str) -> Row[Any] | None:
    """Read the latest version, and keep others from adding one until the transaction ends."""
    await connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(f"gate {project} {name}", 0))))
    found: Row[Any] | None = (await connection.execute(_versions(project, name).limit(1))).one_or_none()
    return found


async def _add(
    connection: AsyncConnection, project: str, name: str, definition: Mapping[str, Any] | None, latest: Row[Any] | None
) -> Gate:
    version = 1 if latest is None else latest.version + 1
    gate = Gate(new_id(), name, version, {} if definition is None else dict(definition))
    row = {"id": gate.id, "version": version, "project": project, "name": name}
    await connection.execute(
        insert(gates).values({**row, "definition": None if definition is None else dict(definition)})
    )
    return gate


def _gate(row: Row[Any]) -> Gate:
    return made_of(Gate, row)


def _check(row: Row[Any]) -> GateCheck:
    return made_of(
        GateCheck,
        row,
        evaluation=UUID(int=row.evaluation_id.int),
        baseline=None if row.baseline_id is None else UUID(int=row.baseline_id.int),
        verdict=Verdict(row.verdict),
    )
