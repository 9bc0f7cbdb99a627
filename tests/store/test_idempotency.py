"""Keys of requests in the database: claims and their leases, and what is written beside what is saved."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, text, update
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.errors import IdempotencyKeyInFlight, IdempotencyKeyReused
from app.domain.identifiers import new_id
from app.domain.operations import KeptResult, Kind
from app.services.idempotency import IdempotencyService, KeyedWork, Mark, keep_under
from app.services.ports import KeyTakenError
from app.store.evaluations import PostgresEvaluationStore
from app.store.idempotency import PostgresIdempotencyStore
from app.store.tables import evaluations, idempotency_claims, idempotency_results
from app.store.writer import EvaluationWriter
from tests.store.conftest import MakeRecord

pytestmark = pytest.mark.anyio
MINUTE = timedelta(minutes=1)


@pytest.fixture
def keys(engine: AsyncEngine) -> PostgresIdempotencyStore:
    return PostgresIdempotencyStore(engine)


def mark_of(project: str, claim: UUID, *, item: int = 0, fingerprint: bytes = b"f") -> Mark:
    return Mark(project, "key", fingerprint, claim, datetime.now(UTC) + MINUTE, item)


async def add(store: PostgresEvaluationStore, record: Any, project: str, mark: Mark | None) -> None:
    """Keep a record as a request with a key does, in a task of its own."""

    async def kept() -> None:
        keep_under(mark)
        await store.add(project, record)

    await asyncio.create_task(kept())


async def count(engine: AsyncEngine, table: Any, project: str) -> int:
    async with engine.connect() as connection:
        found = await connection.scalar(select(func.count()).select_from(table).where(table.c.project == project))
    return found or 0


async def test_a_claim_holds_until_it_is_released_or_its_lease_ends(
    keys: PostgresIdempotencyStore, engine: AsyncEngine, project: str
) -> None:
    first, second = new_id(), new_id()
    assert await keys.claim(project, "key", b"f", first, MINUTE) == {}
    with pytest.raises(IdempotencyKeyReused):
        await keys.claim(project, "key", b"g", second, MINUTE)
    # Only who has it lets go of it.
    await keys.release(project, "key", second)
    with pytest.raises(IdempotencyKeyInFlight):
        await keys.claim(project, "key", b"f", second, MINUTE)
    await keys.release(project, "key", first)
    assert await keys.claim(project, "key", b"f", second, timedelta(0)) == {}
    assert await keys.claim(project, "key", b"f", first, timedelta(0)) == {}
    # Lost to another, it is not renewed.
    await keys.renew(project, "key", second, MINUTE)
    assert await keys.claim(project, "key", b"f", second, MINUTE) == {}
    await keys.renew(project, "key", second, timedelta(0))
    assert await keys.claim(project, "key", b"f", first, MINUTE) == {}
    assert await count(engine, idempotency_claims, project) == 1


@pytest.mark.parametrize("samples", [False, True])
async def test_a_second_result_keeps_nothing(
    engine: AsyncEngine,
    keys: PostgresIdempotencyStore,
    store: PostgresEvaluationStore,
    make_record: MakeRecord,
    project: str,
    *,
    samples: bool,
) -> None:
    """Two that think the key is theirs: whatever the leases say, one evaluation is saved."""
    part = {"part": {"calibration": 1}} if samples else {}
    claims = [new_id(), new_id()]
    records = [make_record(**part), make_record(**part)]
    await keys.claim(project, "key", b"f", claims[1], MINUTE)
    outcomes = await asyncio.gather(
        *(add(store, record, project, mark_of(project, claim)) for record, claim in zip(records, claims, strict=True)),
        return_exceptions=True,
    )
    assert [type(one) for one in outcomes if one is not None] == [KeyTakenError]
    kept = records[outcomes.index(None)].id
    (result,) = await keys.results(project, "key")
    assert result == KeptResult(item=0, fingerprint=b"f", kind=Kind.EVALUATION, object=str(kept), status=201)
    # The slower one is answered with it, unless its request was another.
    service = IdempotencyService(keys, keep=MINUTE)
    assert await service.result(mark_of(project, claims[0])) == result
    with pytest.raises(IdempotencyKeyReused):
        await service.result(mark_of(project, claims[0], fingerprint=b"g"))
    async with engine.connect() as connection:
        ids = (await connection.scalars(select(evaluations.c.id).where(evaluations.c.project == project))).all()
    assert ids == [kept]
    assert await count(engine, idempotency_claims, project) == (0 if kept == records[1].id else 1)


@pytest.mark.parametrize("samples", [False, True])
async def test_items_leave_the_claim_of_their_batch_and_each_other(
    engine: AsyncEngine,
    keys: PostgresIdempotencyStore,
    store: PostgresEvaluationStore,
    make_record: MakeRecord,
    project: str,
    *,
    samples: bool,
) -> None:
    part, claim = {"part": {"calibration": 1}} if samples else {}, new_id()
    await keys.claim(project, "key", b"f", claim, MINUTE)
    for item in (1, 2):
        await add(store, make_record(**part), project, mark_of(project, claim, item=item))
    with pytest.raises(IdempotencyKeyInFlight):
        await keys.claim(project, "key", b"f", new_id(), MINUTE)
    await keys.release(project, "key", claim)
    # What is kept later is remembered longer.
    async with engine.begin() as connection:
        mine = (idempotency_results.c.project == project, idempotency_results.c.item == 1)
        await connection.execute(update(idempotency_results).where(*mine).values(expires_at=func.now()))
    assert list(await keys.claim(project, "key", b"f", claim, timedelta(0))) == [2]
    assert list(await keys.claim(project, "key", b"f", new_id(), MINUTE)) == [2]


async def test_what_shares_a_commit_with_a_taken_key_is_kept(
    engine: AsyncEngine, store: PostgresEvaluationStore, make_record: MakeRecord, project: str
) -> None:
    await add(store, make_record(), project, mark_of(project, new_id()))
    marks = [None, mark_of(project, new_id()), None, mark_of(project, new_id(), item=1), None]
    outcomes = await asyncio.gather(
        *(add(store, make_record(), project, mark) for mark in marks), return_exceptions=True
    )
    assert [type(one) for one in outcomes] == [type(None), KeyTakenError, *[type(None)] * 3]
    assert await count(engine, evaluations, project) == 5


async def test_replicas_that_wait_for_each_other(engine: AsyncEngine, make_record: MakeRecord, project: str) -> None:
    """Groups of two writers with the same keys in another order."""
    stores = [PostgresEvaluationStore(engine, EvaluationWriter(engine)) for _ in range(2)]
    items = range(1, 41)
    orders = [items, reversed(items)]
    outcomes = await asyncio.gather(
        *(
            add(store, make_record(), project, mark_of(project, new_id(), item=item))
            for store, order in zip(stores, orders, strict=True)
            for item in order
        ),
        return_exceptions=True,
    )
    assert {type(one) for one in outcomes} == {type(None), KeyTakenError}
    assert outcomes.count(None) == 40
    assert await count(engine, evaluations, project) == await count(engine, idempotency_results, project) == 40
    for store in stores:
        await store.close()


async def test_a_commit_that_is_under_way_is_waited_for(
    engine: AsyncEngine, keys: PostgresIdempotencyStore, store: PostgresEvaluationStore, make_record: MakeRecord,
    project: str,
) -> None:  # fmt: skip
    claim = new_id()
    await keys.claim(project, "key", b"f", claim, MINUTE)
    async with engine.connect() as connection, connection.begin() as transaction:
        # As a transaction does it that has ended the claim and was not committed yet.
        own = idempotency_claims.c.project == project
        await connection.execute(idempotency_claims.delete().where(own))
        waiting = asyncio.create_task(keys.claim(project, "key", b"f", new_id(), MINUTE))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await transaction.rollback()
    with pytest.raises(IdempotencyKeyInFlight):
        await waiting
    await add(store, make_record(), project, mark_of(project, claim))
    found = await keys.claim(project, "key", b"f", new_id(), MINUTE)
    assert [*found] == [0]
    # It was not claimed for that.
    assert await count(engine, idempotency_claims, project) == 0


async def test_work_is_claimed_as_long_as_it_lasts(
    keys: PostgresIdempotencyStore, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("app.services.idempotency._LEASE", timedelta(seconds=0.3))
    service = IdempotencyService(keys, keep=MINUTE)
    work = await service.begin(project, "key", b"f")
    assert isinstance(work, KeyedWork)
    await asyncio.sleep(0.8)
    with pytest.raises(IdempotencyKeyInFlight):
        await service.begin(project, "key", b"f")
    with pytest.raises(IdempotencyKeyReused):
        await service.begin(project, "key", b"g")
    await work.end(kept=False)
    again = await service.begin(project, "key", b"g")
    assert isinstance(again, KeyedWork)
    # A process that was killed renews nothing.
    again._renewing.cancel()
    await asyncio.sleep(0.4)
    assert isinstance(await service.begin(project, "key", b"f"), KeyedWork)


async def test_what_has_expired_is_purged(
    engine: AsyncEngine, keys: PostgresIdempotencyStore, store: PostgresEvaluationStore, make_record: MakeRecord,
    project: str,
) -> None:  # fmt: skip
    await add(store, make_record(), project, mark_of(project, new_id(), item=1))
    await keys.claim(project, "under way", b"f", new_id(), MINUTE)
    await keys.claim(project, "dead", b"f", new_id(), timedelta(0))
    await keys.purge()
    assert await count(engine, idempotency_results, project) == 1
    assert await count(engine, idempotency_claims, project) == 1
    async with engine.begin() as connection:
        await connection.execute(text("UPDATE idempotency_results SET expires_at = now()"))
    assert await keys.results(project, "key") == []
    await keys.purge()
    assert await count(engine, idempotency_results, project) == 0
    assert await count(engine, evaluations, project) == 1
