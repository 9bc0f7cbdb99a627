import asyncio
from dataclasses import fields, replace

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.evaluation import DatasetRef, EvaluationQuery, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id, time_of
from app.domain.inputs.content import Content
from app.services.ports import EvaluationStore
from app.store.engine import create_engine, schema_state
from app.store.evaluations import PostgresEvaluationStore
from app.store.writer import EvaluationWriter
from tests.store.conftest import MakeRecord

pytestmark = pytest.mark.anyio


def assert_same(found: EvaluationRecord | None, expected: EvaluationRecord) -> None:
    assert found is not None
    for field in fields(EvaluationRecord):
        ours, theirs = getattr(found, field.name), getattr(expected, field.name)
        if isinstance(theirs, np.ndarray):
            assert_array_equal(ours, theirs, strict=True)
        else:
            assert ours == theirs, field.name


async def test_store_and_readiness_are_what_the_services_expect(engine: AsyncEngine) -> None:
    store: EvaluationStore = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    state = await schema_state(engine)
    assert state.current
    assert await store.get("nobody", new_id()) is None


@pytest.mark.parametrize("largest", [0, 255, 256, 65_535, 65_536, 2**32 - 1, 2**32, 2**62])
async def test_counts_come_back_exactly(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, largest: int
) -> None:
    record = make_record(counts=np.array([[largest, 0], [1, 0]], dtype=np.int64))
    await store.add(project, record)
    found = await store.get(project, record.id)
    assert_same(found, record)
    assert found is not None
    assert found.created_at == time_of(record.id)


async def test_several_are_kept_together_or_not_at_all(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    first, second = make_record(), make_record()
    # No Postgres takes a zero byte.
    broken = replace(second, tags={"a": "\x00"})
    with pytest.raises(DBAPIError):
        await store.add_all(project, [first, broken])
    assert await store.get(project, first.id) is None
    await store.add_all(project, [first, second])
    assert (await store.get_many(project, [first.id, second.id])).keys() == {first.id, second.id}


async def test_everything_comes_back(store: PostgresEvaluationStore, project: str, make_record: MakeRecord) -> None:
    counts = np.array([[0.5, 1e-300, 0.1], [0.0, 1 / 3, 1e300], [0.0, 0.0, 7.25]])
    record = make_record(
        model=ModelRef("modèle \U0001f332"),
        dataset=DatasetRef("d", None, "test"),
        tags={"git": "a1b2c3", "": "empty key", "quote": 'it\'s "quoted" \\ {}'},
        kind="folds",
        labels=("a", "", "c,\"{}' NULL"),
        positive=1,
        content=Content.weights,
        counts=counts,
        fold_counts=np.stack([counts, counts * 0.25]),
        options={"metrics": ["f_beta(beta=2)@D"], "level": 0.95, "deep": {"list": [1, None, True]}},
        values={"accuracy": 1 / 3, "mcc": None, "likelihood_ratio_positive": float("inf"), "only_here": -0.0},
        facts={"orientation": "predicted_rows"},
    )
    await store.add(project, record)
    assert_same(await store.get(project, record.id), record)


@pytest.mark.parametrize("content", [Content.weights, Content.rates])
async def test_a_large_matrix_comes_back(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, content: Content
) -> None:
    k = 300
    record = make_record(
        labels=tuple(map(str, range(k))), content=content, counts=np.random.default_rng(0).random((k, k))
    )
    await store.add(project, record)
    assert_same(await store.get(project, record.id), record)


async def test_a_record_without_values_or_names_beyond_the_needed(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    record = make_record(model=ModelRef("m"), dataset=DatasetRef("d"), values={}, tags={})
    await store.add(project, record)
    assert_same(await store.get(project, record.id), record)


async def test_a_project_sees_nothing_of_another(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    record = make_record()
    await store.add(project, record)
    other = f"{project}-other"
    assert await store.get(other, record.id) is None
    assert await store.change_tags(other, record.id, {"a": "b"}) is None
    assert await store.delete(other, record.id) is False
    for query in (
        EvaluationQuery(),
        EvaluationQuery(model="forest"),
        EvaluationQuery(dataset="digits"),
        EvaluationQuery(sort_metric="accuracy"),
        EvaluationQuery(sort_metric="not_headline"),
        EvaluationQuery(dataset="digits", sort_metric="accuracy"),
    ):
        assert (await store.page(other, query)).items == ()
    assert (await store.models(other, 10)).items == ()
    assert (await store.datasets(other, 10)).items == ()
    assert await store.leaderboard(other, record.dataset, "accuracy", limit=5, higher_is_better=True) == ()
    assert_same(await store.get(project, record.id), record)


async def test_changing_tags_changes_nothing_else(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    record = make_record(tags={"stage": "candidate", "git": "a"})
    await store.add(project, record)
    changed = await store.change_tags(project, record.id, {"stage": "production"})
    expected = make_record(id=record.id, tags={"stage": "production", "git": "a"})
    assert_same(changed, expected)
    assert_same(await store.get(project, record.id), expected)
    assert (await store.page(project, EvaluationQuery(tags=(("stage", "candidate"),)))).items == ()
    assert len((await store.page(project, EvaluationQuery(tags=(("stage", "production"),)))).items) == 1
    cleared = await store.change_tags(project, record.id, {"stage": None, "git": None, "absent": None})
    assert cleared is not None
    assert cleared.tags == {}
    assert await store.change_tags(project, new_id(), {"a": "b"}) is None


async def test_deleting_removes_the_row_for_good(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    record, other = make_record(), make_record(model=ModelRef("kept"))
    await store.add(project, record)
    await store.add(project, other)
    assert await store.delete(project, record.id) is True
    assert await store.delete(project, record.id) is False
    assert await store.get(project, record.id) is None
    assert [item.id for item in (await store.page(project, EvaluationQuery())).items] == [other.id]
    assert (await store.models(project, 10)).items == (ModelRef("kept"),)
    board = await store.leaderboard(project, record.dataset, "accuracy", limit=5, higher_is_better=True)
    assert [standing.evaluation.id for standing in board] == [other.id]


async def test_names_of_deleted_evaluations_can_be_used_again(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    record, again = make_record(), make_record()
    await store.add(project, record)
    await store.delete(project, record.id)
    await store.add(project, again)
    assert_same(await store.get(project, again.id), again)
    assert (await store.models(project, 10)).items == (record.model,)


async def test_two_processes_that_bring_the_same_new_names_agree(
    database_url: str, project: str, make_record: MakeRecord
) -> None:
    engines = [create_engine(database_url, pool_size=4) for _ in range(3)]
    stores = [PostgresEvaluationStore(engine, EvaluationWriter(engine)) for engine in engines]
    records = [
        make_record(
            model=ModelRef(f"m{i % 2}"),
            dataset=DatasetRef("d", split=None if i % 3 else "test"),
            values={f"{project}-{i % 5}": float(i), "accuracy": 0.5},
        )
        for i in range(30)
    ]
    await asyncio.gather(*(stores[i % 3].add(project, record) for i, record in enumerate(records)))
    assert (await stores[0].models(project, 10)).items == (ModelRef("m0"), ModelRef("m1"))
    assert (await stores[1].datasets(project, 10)).items == (DatasetRef("d", split="test"), DatasetRef("d"))
    for i, record in enumerate(records):
        assert_same(await stores[(i + 1) % 3].get(project, record.id), record)
    for store in stores:
        await store.close()


async def test_a_metric_added_by_another_process_is_read(
    store: PostgresEvaluationStore, database_url: str, project: str, make_record: MakeRecord
) -> None:
    first = make_record()
    await store.add(project, first)
    engine = create_engine(database_url)
    newer = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    record = make_record(values={f"{project}-new": 0.5, "accuracy": 0.1})
    await newer.add(project, record)
    await newer.close()
    assert_same(await store.get(project, record.id), record)
    page = await store.page(project, EvaluationQuery(sort_metric=f"{project}-new"))
    assert [item.id for item in page.items] == [record.id, first.id]


async def test_preparing_twice_keeps_the_slots(store: PostgresEvaluationStore, project: str) -> None:
    keys = [f"{project}-{i}" for i in range(20)]
    await store.prepare(keys)
    slots = dict(await store._names.slots_of(keys))
    await store.prepare([*keys, f"{project}-last"])
    later = await store._names.slots_of([])
    assert {key: later[key] for key in keys} == {key: slots[key] for key in keys}
    assert [slots[key] for key in keys] == list(range(slots[keys[0]], slots[keys[0]] + 20))
    assert later[f"{project}-last"] == max(later.values())
