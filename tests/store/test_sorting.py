"""Lists in the order of a metric, or of values that satisfy conditions, beside a sort of everything."""

import asyncio
import random
from dataclasses import replace
from datetime import UTC, datetime
from itertools import product
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.evaluation import Bound, DatasetRef, EvaluationQuery, EvaluationRecord, ModelRef, ValueCondition
from app.domain.identifiers import first_id_from, new_id
from app.store.engine import create_engine
from app.store.evaluations import PostgresEvaluationStore
from app.store.tables import evaluations
from app.store.writer import EvaluationWriter
from tests.store.conftest import MakeRecord
from tests.store.test_pages import DATASETS, FILTERS, MODELS, expected_order, walk

pytestmark = pytest.mark.anyio

START = first_id_from(datetime(2020, 1, 1, tzinfo=UTC))


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
    """Walk through lists of every form and compare them with a sort of everything."""
    span: dict[str, Any] = {"created_after": sorted(record.created_at for record in records)[20]}
    for metric, filters, descending in product(("plain", "rare"), [*FILTERS[:11:5], span], (True, False)):
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


async def test_lists_are_a_sort_of_everything(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    await add_all(store, f"{project}-other", make_all(make_record, 30, seed=1))
    records = make_all(make_record, 60, seed=1)
    await add_all(store, project, records)
    await check(store, project, records)
    for record in records[::3]:
        await store.delete(project, record.id)
    left = [record for place, record in enumerate(records) if place % 3]
    await check(store, project, left)


@pytest.mark.slow
async def test_pages_while_others_write(
    store: PostgresEvaluationStore,
    database_url: str,
    project: str,
    make_record: MakeRecord,
) -> None:
    """Whatever happens at the same time: what was answered before a page is on the page."""
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


async def test_writers_of_the_release_before_are_understood(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, engine: AsyncEngine
) -> None:
    """They do not know the id of the name of a model."""
    record = make_record(model=ModelRef("old", "1"), dataset=DatasetRef("d"))
    await store.add(project, record)
    known = [column.name for column in evaluations.c if column.name not in ("id", "model_name_id")]
    copy = (
        f"INSERT INTO evaluations (id, {', '.join(known)}) "
        f"SELECT :id, {', '.join(known)} FROM evaluations WHERE project = :project"
    )
    async with engine.begin() as connection:
        await connection.execute(text(copy), {"project": project, "id": new_id()})
        rows = (await connection.execute(select(evaluations).where(evaluations.c.project == project))).all()
    assert len({row.model_name_id for row in rows}) == 1
    assert len((await store.page(project, EvaluationQuery(model="old"))).items) == 2


async def test_a_metric_of_few_is_complete(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    """As a metric of probabilities among evaluations of matrices: first those that have it, then all others."""
    records = [
        make_record(values={"accuracy": 0.5, **({"log_loss": i / 40} if i % 10 == 0 else {})}) for i in range(40)
    ]
    await add_all(store, project, records)
    for descending in (True, False):
        query = EvaluationQuery(sort_metric="log_loss", descending=descending, limit=6)
        assert await walk(store, project, query) == expected_order(records, query)
    board = await store.leaderboard(project, records[0].dataset, "log_loss", limit=5, higher_is_better=False)
    assert [standing.value for standing in board] == [None]


async def test_a_leaderboard_by_a_metric_of_probabilities(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    losses: list[float | None] = [0.7, 0.2, None, 0.4]
    for i, loss in enumerate(losses):
        await store.add(project, make_record(model=ModelRef("m", str(i)), values={"accuracy": 0.5, "log_loss": loss}))
    await store.add(project, make_record(model=ModelRef("no probabilities"), values={"accuracy": 0.9}))
    board = await store.leaderboard(project, make_record().dataset, "log_loss", limit=5, higher_is_better=False)
    assert [standing.value for standing in board] == [0.2, 0.4, 0.7, None, None]
