"""Lists in the order of a metric where what is kept, what was written since and the table must agree."""

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, text, update
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.evaluation import Bound, DatasetRef, EvaluationQuery, EvaluationRecord, ModelRef, ValueCondition
from app.domain.identifiers import first_id_from, new_id
from app.store.database.engine import create_engine
from app.store.database.tables import evaluations, extreme_scopes, extreme_values
from app.store.evaluations.evaluations import PostgresEvaluationStore
from app.store.evaluations.writer import EvaluationWriter
from app.store.lists import maintainer, statements, top_entries
from app.store.lists import visibility as lateness
from app.store.lists.partitions import LARGE, Partition, PartitionKind
from app.store.lists.statements import Segment
from app.store.lists.visibility import find_visibility_horizon
from tests.store.conftest import MakeRecord
from tests.store.test_pages import DATASETS, FILTERS, MODELS, expected_order, walk

pytestmark = pytest.mark.anyio

START = first_id_from(datetime(2020, 1, 1, tzinfo=UTC))


@pytest.fixture(autouse=True)
def small_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is large, little is kept, and every look is worth it."""
    monkeypatch.setattr(top_entries, "CAPACITY", 9)
    monkeypatch.setattr(maintainer, "_MOST_SINCE", 0)
    monkeypatch.setattr(maintainer, "_CHUNK", 7)
    for name in ("_LOOK", "_LOOK_SMALL", "_ANEW"):
        monkeypatch.setattr(maintainer, name, 0.0)
    monkeypatch.setattr(lateness, "_MARGIN", timedelta(0))
    for kind in LARGE:
        monkeypatch.setitem(LARGE, kind, 3)


@pytest.fixture
async def from_table(monkeypatch: pytest.MonkeyPatch) -> list[EvaluationQuery]:
    """The queries for values that the table had to answer alone."""
    asked: list[EvaluationQuery] = []
    original = statements.select_by_metric

    def spy(scope: Any, query: EvaluationQuery, limit: int, *, slot: int | None, segment: Segment) -> Any:
        if segment is Segment.defined:
            asked.append(query)
        return original(scope, query, limit, slot=slot, segment=segment)

    monkeypatch.setattr(statements, "select_by_metric", spy)
    return asked


def make_all(make_record: MakeRecord, count: int, *, seed: int, now: bool = False) -> list[EvaluationRecord]:
    """Some of everything mixed, most of it tied; with ids of now, or of long ago as if each had been held up."""
    chance = random.Random(seed)  # noqa: S311 - a sample, not a secret
    records = []
    for i in range(count):
        values: dict[str, float | None] = {"plain": chance.choice([None, 0.0, 0.5, float("-inf"), float("inf")])}
        if chance.random() < 0.8:
            values["accuracy"] = chance.choice([None, 0.1, 0.5, 0.9])
        if chance.random() < 0.1:
            values["rare"] = chance.random()
        records.append(
            make_record(
                id=new_id() if now else UUID(int=START.int + ((chance.randrange(40)) << 80) + seed * 1000 + i),
                model=chance.choice(MODELS),
                dataset=chance.choice(DATASETS),
                tags={"stage": chance.choice(["x", "y"]), "git": str(i % 7)},
                values=values,
            )
        )
    return records


async def add_all(store: PostgresEvaluationStore, project: str, records: list[EvaluationRecord]) -> None:
    for record in records:
        await store.add(project, record)


async def check(store: PostgresEvaluationStore, project: str, records: list[EvaluationRecord]) -> None:
    """Walk through every list and compare it with a sort of everything."""
    span: dict[str, Any] = {"created_after": sorted(record.created_at for record in records)[20]}
    for metric, filters, descending in product(("plain", "rare"), [*FILTERS[:11], span], (True, False)):
        query = EvaluationQuery(**filters, sort_metric=metric, descending=descending, limit=8)
        assert await walk(store, project, query) == expected_order(records, query), query
    few = (ValueCondition("rare", Bound.AT_LEAST, 0.8),)
    many = (ValueCondition("plain", Bound.AT_MOST, 0.5),)
    for metric, filters, where in product((None, "plain", "rare"), FILTERS[:5:4], (few, (*many, *few))):
        query = EvaluationQuery(**filters, where=where, sort_metric=metric, descending=metric == "rare", limit=4)
        assert await walk(store, project, query) == expected_order(records, query), query
    for dataset in (None, "e"):
        query = EvaluationQuery(dataset=dataset, sort_metric="accuracy", limit=1)
        assert await walk(store, project, query) == expected_order(records, query), query


async def test_lists_are_exact_whatever_is_kept(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, engine: AsyncEngine
) -> None:
    other = f"{project}-other"
    await add_all(store, other, make_all(make_record, 30, seed=1))
    records = make_all(make_record, 60, seed=1)
    await add_all(store, project, records)
    await check(store, project, records)
    await store.rest()
    assert await kept_parts(engine, project) > {Partition(project, PartitionKind.PROJECT)}
    await check(store, project, records)
    # Without a look at what is new: it must come from the table.
    more = [*make_all(make_record, 15, seed=2), *make_all(make_record, 15, seed=3, now=True)]
    await add_all(store, project, more)
    await store._maintainer.close()
    store._maintainer.want = lambda *_, **__: None  # type: ignore[method-assign]
    await check(store, project, [*records, *more])
    gone = random.Random(5).sample([*records, *more], 45)  # noqa: S311 - a sample, not a secret
    for record in gone:
        await store.delete(project, record.id)
    left = [record for record in [*records, *more] if record not in gone]
    await check(store, project, left)
    del store._maintainer.want
    await check(store, project, left)
    await store.rest()
    await check(store, project, left)


async def kept_parts(engine: AsyncEngine, project: str) -> set[Partition]:
    columns = extreme_scopes.c
    async with engine.connect() as connection:
        rows = await connection.execute(select(columns.kind, columns.member).where(columns.project == project))
        return {Partition(project, PartitionKind(row.kind), row.member) for row in rows}


@pytest.mark.parametrize("sort_metric", [None, "plain", "accuracy"])
async def test_a_condition_that_few_satisfy_needs_only_what_is_kept(
    store: PostgresEvaluationStore,
    project: str,
    make_record: MakeRecord,
    monkeypatch: pytest.MonkeyPatch,
    sort_metric: str | None,
) -> None:
    """Whatever the order: nobody reads a large part from end to end for the few that satisfy it."""
    records = make_all(make_record, 60, seed=4)
    best = make_record(id=new_id(), values={"plain": 1.0, "accuracy": 0.99})
    await add_all(store, project, [*records, best])
    query = EvaluationQuery(
        where=(ValueCondition("accuracy", Bound.ABOVE, 0.9),), sort_metric=sort_metric, dataset="digits"
    )
    everywhere = replace(query, dataset=None)
    assert await walk(store, project, everywhere) == [best.id]
    await store.rest()
    for name in ("select_by_time", "select_by_metric"):
        monkeypatch.delattr(statements, name)
    assert await walk(store, project, everywhere) == [best.id]
    # One that came since, and one that is gone.
    newer = make_record(id=new_id(), values={"plain": 0.5, "accuracy": 0.95})
    await store.add(project, newer)
    assert set(await walk(store, project, everywhere)) == {best.id, newer.id}
    await store.delete(project, best.id)
    assert await walk(store, project, everywhere) == [newer.id]


async def test_a_first_page_needs_only_what_is_kept(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, from_table: list[EvaluationQuery]
) -> None:
    records = make_all(make_record, 60, seed=4)
    await add_all(store, project, records)
    query = EvaluationQuery(sort_metric="plain", limit=5)
    queries = [
        query,
        replace(query, descending=False),
        replace(query, model="m"),
        replace(query, dataset="d"),
        replace(query, dataset="e", sort_metric="accuracy"),
        replace(query, model="m", model_version="1"),
        replace(query, sort_metric="rare", limit=20),
    ]
    for asked in queries:
        await store.page(project, asked)
    await store.rest()
    from_table.clear()
    for asked in queries:
        page = await store.page(project, asked)
        assert [item.id for item in page.items] == expected_order(records, asked)[: asked.limit], asked
    assert from_table == []


async def test_what_was_deleted_is_replaced(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, from_table: list[EvaluationQuery]
) -> None:
    records = make_all(make_record, 60, seed=4)
    await add_all(store, project, records)
    query = EvaluationQuery(sort_metric="plain", limit=5)
    await store.page(project, query)
    await store.rest()
    for identifier in expected_order(records, query)[:7]:
        await store.delete(project, identifier)
    left = expected_order(records, query)[7:]
    assert [item.id for item in (await store.page(project, query)).items] == left[:5]
    assert from_table == [query, query]
    await store.rest()
    assert [item.id for item in (await store.page(project, query)).items] == left[:5]
    assert from_table == [query, query]


async def test_what_is_no_longer_large_is_forgotten(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, engine: AsyncEngine
) -> None:
    records = make_all(make_record, 40, seed=4)
    await add_all(store, project, records)
    query = EvaluationQuery(sort_metric="plain", limit=5)
    await store.page(project, query)
    await store.rest()
    assert await kept_parts(engine, project) == {Partition(project, PartitionKind.PROJECT)}
    for record in records[2:]:
        await store.delete(project, record.id)
    for _ in range(2):
        assert [item.id for item in (await store.page(project, query)).items] == expected_order(records[:2], query)
        await store.rest()
        assert await kept_parts(engine, project) == set()
    async with engine.connect() as connection:
        orphans = text("SELECT scope_id FROM extreme_values WHERE scope_id NOT IN (SELECT id FROM extreme_scopes)")
        assert (await connection.scalars(orphans)).all() == []


async def test_small_parts_keep_nothing(
    store: PostgresEvaluationStore,
    project: str,
    make_record: MakeRecord,
    engine: AsyncEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(LARGE, PartitionKind.DATASET, 1000)
    monkeypatch.setattr(maintainer, "_LOOK_SMALL", 60.0)
    await add_all(store, project, make_all(make_record, 20, seed=4))
    await store.page(project, EvaluationQuery(sort_metric="plain", dataset="d"))
    await store.rest()
    assert await kept_parts(engine, project) == set()
    query = EvaluationQuery(sort_metric="plain", dataset="unknown")
    assert (await store.page(project, query)).items == ()


async def test_pages_while_others_write_and_keep(
    store: PostgresEvaluationStore,
    database_url: str,
    project: str,
    make_record: MakeRecord,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever happens at the same time: what was answered before a page is on the page."""
    monkeypatch.setattr(lateness, "_MARGIN", timedelta(seconds=0.5))
    second_engine = create_engine(database_url, pool_size=4)
    second = PostgresEvaluationStore(second_engine, EvaluationWriter(second_engine))
    records = [*make_all(make_record, 40, seed=6), *make_all(make_record, 40, seed=7, now=True)]
    query = EvaluationQuery(sort_metric="plain", limit=200)
    written: list[EvaluationRecord] = []

    async def write(to: PostgresEvaluationStore, mine: list[EvaluationRecord]) -> None:
        for record in mine:
            await to.add(project, record)
            written.append(record)

    async def read(of: PostgresEvaluationStore) -> None:
        while len(written) < len(records):
            before = {record.id for record in written}
            found = await of.page(project, query)
            assert before <= {item.id for item in found.items}
            first = await of.page(project, replace(query, limit=3))
            place = [item.metrics["plain"] for item in first.items]
            assert place == sorted(place, key=lambda value: float("-inf") if value is None else value, reverse=True)

    await asyncio.gather(write(store, records[::2]), write(second, records[1::2]), read(store), read(second))
    await second.close()
    await check(store, project, records)


async def test_nothing_is_complete_while_a_writer_is_under_way(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, engine: AsyncEngine
) -> None:
    record = make_record()
    await store.add(project, record)
    before = await find_visibility_horizon(engine)
    assert before is not None
    async with engine.connect() as writer:
        mine = update(evaluations).where(evaluations.c.project == project, evaluations.c.id == record.id)
        await writer.execute(mine.values(revision="2"))
        assert await find_visibility_horizon(engine, tries=2) is None
        waiting = asyncio.create_task(find_visibility_horizon(engine))
        await asyncio.sleep(0.1)
        assert not waiting.done()
        await writer.commit()
    after = await waiting
    assert after is not None
    assert after > before


async def test_only_what_was_held_up_is_late(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, engine: AsyncEngine
) -> None:
    now, old = make_record(), make_record(id=first_id_from(datetime.now(UTC) - timedelta(seconds=12)))
    almost = make_record(id=first_id_from(datetime.now(UTC) - timedelta(seconds=5)))
    for record in (now, old, almost):
        await store.add(project, record)
    columns = evaluations.c
    late = select(columns.id).where(columns.project == project, columns.late_at.is_not(None))
    recently = columns.late_at > func.clock_timestamp() - timedelta(minutes=1)
    async with engine.connect() as connection:
        assert (await connection.scalars(late.where(recently))).all() == [old.id]
        assert (await connection.scalars(late)).all() == [old.id]


async def test_writers_of_the_release_before_are_understood(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, engine: AsyncEngine
) -> None:
    """They know neither the name of a model nor what is late."""
    record = make_record(model=ModelRef("old", "1"), dataset=DatasetRef("d"))
    await store.add(project, record)
    known = [column.name for column in evaluations.c if column.name not in ("id", "model_name_id", "late_at")]
    copy = (
        f"INSERT INTO evaluations (id, {', '.join(known)}) "
        f"SELECT :id, {', '.join(known)} FROM evaluations WHERE project = :project"
    )
    async with engine.begin() as connection:
        await connection.execute(text(copy), {"project": project, "id": new_id()})
        rows = (await connection.execute(select(evaluations).where(evaluations.c.project == project))).all()
    assert len({row.model_name_id for row in rows}) == 1
    assert sorted(row.late_at is None for row in rows) == [False, True]
    assert len((await store.page(project, EvaluationQuery(model="old"))).items) == 2


async def test_a_metric_of_few_is_complete(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, engine: AsyncEngine
) -> None:
    """As a metric of probabilities among evaluations of matrices: first those that have it, then all others."""
    records = [
        make_record(values={"accuracy": 0.5, **({"log_loss": i / 40} if i % 10 == 0 else {})}) for i in range(40)
    ]
    await add_all(store, project, records)
    for descending in (True, False):
        query = EvaluationQuery(sort_metric="log_loss", descending=descending, limit=6)
        for _ in range(2):
            assert await walk(store, project, query) == expected_order(records, query)
            await store.rest()
    board = await store.leaderboard(project, records[0].dataset, "log_loss", limit=5, higher_is_better=False)
    assert [(standing.rank, standing.value) for standing in board] == [(None, None)]
    async with engine.connect() as connection:
        sizes = select(func.length(extreme_values.c.entries) / top_entries.ENTRY.itemsize)
        assert max((await connection.scalars(sizes)).all()) <= top_entries.CAPACITY


async def test_a_leaderboard_by_a_metric_of_probabilities(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    losses: list[float | None] = [0.7, 0.2, None, 0.4]
    for i, loss in enumerate(losses):
        await store.add(project, make_record(model=ModelRef("m", str(i)), values={"accuracy": 0.5, "log_loss": loss}))
    await store.add(project, make_record(model=ModelRef("no probabilities"), values={"accuracy": 0.9}))
    board = await store.leaderboard(project, make_record().dataset, "log_loss", limit=5, higher_is_better=False)
    assert [(standing.rank, standing.value) for standing in board] == [
        (1, 0.2),
        (2, 0.4),
        (3, 0.7),
        (None, None),
        (None, None),
    ]


@pytest.fixture
def stopped(database_url: str) -> str:
    return database_url.replace("?", "_none?") if "?" in database_url else f"{database_url}_none"


async def test_a_database_that_is_away_does_not_end_the_maintainer(
    stopped: str, project: str, caplog: pytest.LogCaptureFixture
) -> None:
    engine = create_engine(stopped)
    one = maintainer.TopEntriesMaintainer(engine)
    for _ in range(2):
        one.want([Partition(project, PartitionKind.PROJECT)])
        await one.rest()
    assert len([record for record in caplog.records if "not brought up to date" in record.message]) == 2
    await one.close()
    await engine.dispose()
