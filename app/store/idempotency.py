"""Keys of requests in Postgres: the port `IdempotencyStore` of `app.services.ports`; results beside what is saved."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any
from uuid import UUID

from sqlalchemy import (
    CTE,
    ColumnElement,
    DateTime,
    Integer,
    LargeBinary,
    Row,
    Select,
    Text,
    Uuid,
    bindparam,
    cast,
    delete,
    func,
    literal_column,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningInsert

from app.domain.errors import IdempotencyKeyInFlight
from app.domain.operations import KeptResult, Kind
from app.services.idempotency import WHOLE, Mark, present_mark, reused
from app.services.ports import KeyTakenError
from app.store.engine import OnEngine, made_of, read_rows, require_room, same, translated, writing
from app.store.tables import idempotency_claims, idempotency_results

_claims, _kept = idempotency_claims.c, idempotency_results.c


class PostgresIdempotencyStore(OnEngine):
    """The memory of keys of requests."""

    async def claim(
        self, project: str, key: str, fingerprint: bytes, claim: UUID, lease: timedelta
    ) -> Mapping[int, KeptResult]:
        require_room(self._engine)
        with translated():
            async with self._engine.connect() as connection, connection.begin() as transaction:
                # First: what somebody is about to commit under the key is waited for, and seen by what is read next.
                asked = _claim(project, key, fingerprint, claim, lease)
                taken = (await connection.execute(asked)).one_or_none() is not None
                results = await _standing_results(connection, project, key)
                mine = same(idempotency_claims, project=project, key=key)
                wanted = select(_claims.fingerprint).where(*mine)
                holders: Iterable[bytes] = () if taken else await connection.scalars(wanted)
                if {*holders, *(one.fingerprint for one in results)} - {fingerprint}:
                    raise reused(key)
                found = {one.item: one for one in results}
                if taken and WHOLE in found:
                    await transaction.rollback()
        if not taken and WHOLE not in found:
            raise IdempotencyKeyInFlight(f"a request with the Idempotency-Key {key!r} is under way; ask again shortly")
        return found

    async def renew(self, project: str, key: str, claim: UUID, lease: timedelta) -> None:
        own = same(idempotency_claims, project=project, key=key, claim=claim)
        async with writing(self._engine) as connection:
            await connection.execute(update(idempotency_claims).where(*own).values(leased_until=func.now() + lease))

    async def release(self, project: str, key: str, claim: UUID) -> None:
        own = same(idempotency_claims, project=project, key=key, claim=claim)
        async with writing(self._engine) as connection:
            await connection.execute(delete(idempotency_claims).where(*own))

    async def results(self, project: str, key: str) -> Sequence[KeptResult]:
        return _standing(await read_rows(self._engine, _under(project, key)))

    async def purge(self) -> None:
        async with writing(self._engine) as connection:
            # Of all projects, which a statement that is compiled may not touch.
            await connection.execute(text("DELETE FROM idempotency_results WHERE expires_at <= now()"))
            await connection.execute(text("DELETE FROM idempotency_claims WHERE leased_until <= now()"))


async def keep_result(connection: AsyncConnection, kind: Kind, kept: UUID | str, *, status: int = 201) -> None:
    """Say under the key of the present request, if it has one, what this transaction keeps.

    Raises:
        KeyTakenError: a request with that key was quicker; nothing of this transaction may stay.
    """
    mark = present_mark()
    if mark is None:
        return
    row = {name: getattr(mark, name) for name in _PARAMETERS}
    row |= {"kind": kind, "object": str(kept), "status": status}
    added = await connection.execute(insert(idempotency_results).values(row).on_conflict_do_nothing())
    if added.rowcount != 1:
        raise KeyTakenError(f"expected a key under which nothing was saved, got {mark.key!r}")
    if mark.item == WHOLE:
        own = same(idempotency_claims, project=mark.project, key=mark.key, claim=mark.claim)
        await connection.execute(delete(idempotency_claims).where(*own))


async def _standing_results(connection: AsyncConnection, project: str, key: str) -> list[KeptResult]:
    """Return the results stored under a key; delete those that have expired."""
    rows = (await connection.execute(_under(project, key))).all()
    if any(row.expired for row in rows):
        mine = same(idempotency_results, project=project, key=key)
        await connection.execute(delete(idempotency_results).where(*mine, _kept.expires_at <= func.now()))
    return _standing(rows)


def _standing(rows: Sequence[Row[Any]]) -> list[KeptResult]:
    return [made_of(KeptResult, row) for row in rows if not row.expired]


def _claim(project: str, key: str, fingerprint: bytes, claim: UUID, lease: timedelta) -> ReturningInsert[tuple[UUID]]:
    """A claim, also of a key that somebody has had whose lease is over; it returns nothing when that cannot be."""
    row = {"claim": claim, "fingerprint": fingerprint, "leased_until": func.now() + lease}
    asked = insert(idempotency_claims).values(project=project, key=key, **row)
    return asked.on_conflict_do_update(
        index_elements=["project", "key"], set_=row, where=_claims.leased_until <= func.now()
    ).returning(_claims.claim)


def _under(project: str, key: str) -> Select[Any]:
    expired = (_kept.expires_at <= func.now()).label("expired")
    mine = same(idempotency_results, project=project, key=key)
    return select(idempotency_results, expired).where(*mine).order_by(_kept.item)


# --- beside an evaluation, in the statement of the writer ------------------------------------------------------------

# The constraint that a second result violates, and a parameter that only rows with a key have.
PRIMARY_KEY, MARKED = "pk_idempotency_results", "mark_key"
_PARAMETERS: Mapping[str, Any] = {
    "project": Text,
    "key": Text,
    "item": Integer,
    "fingerprint": LargeBinary,
    "expires_at": DateTime(timezone=True),
}


def mark_values(mark: Mark) -> dict[str, Any]:
    """The parameters that `beside_evaluation` adds to a statement."""
    values = {f"mark_{name}": getattr(mark, name) for name in _PARAMETERS}
    # NULL is nobody's claim.
    return values | {"mark_claim": mark.claim if mark.item == WHOLE else None}


def beside_evaluation(identifier: ColumnElement[UUID]) -> tuple[CTE, CTE]:
    """Return the parts of a statement that store the result of a request with a key, and end its claim.

    A key under which something was saved violates the primary key, and the whole statement fails.
    """
    given: dict[str, Any] = {name: bindparam(f"mark_{name}", type_=type_) for name, type_ in _PARAMETERS.items()}
    told = {
        "kind": literal_column(f"'{Kind.EVALUATION.value}'"),
        "object": cast(identifier, Text),
        "status": literal_column("201"),
    }
    mine = (_claims.project == given["project"], _claims.key == given["key"])
    ended = delete(idempotency_claims).where(*mine, _claims.claim == bindparam("mark_claim", type_=Uuid))
    return insert(idempotency_results).values(given | told).cte("remembered"), ended.cte("ended")
