import asyncio
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sqlalchemy import func, select
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.errors import NotFound
from app.domain.inputs.samples import Samples
from app.store import samples as stored
from app.store.evaluations import PostgresEvaluationStore
from app.store.samples import pack, unpack
from app.store.tables import evaluation_samples, probability_reports, sample_columns
from tests.store.conftest import MakeRecord

pytestmark = pytest.mark.anyio

RNG = np.random.default_rng(0)
COLUMNS: dict[str, NDArray[Any]] = {
    "codes": RNG.integers(0, 3, 1000),
    "many codes": RNG.integers(0, 70_000, 1000),
    "integers": RNG.integers(-(2**62), 2**62, 1000),
    "probabilities": RNG.dirichlet(np.ones(3), 1000),
    "single precision": RNG.dirichlet(np.ones(3), 1000).astype(np.float32).astype(np.float64),
    "rounded": np.round(RNG.dirichlet(np.ones(3), 1000), 6),
    "large and rounded": np.array([1e12, 0.12345678]),
    "zeros": np.array([0.0, -0.0, 1.0]),
    "scores": np.array([1e300, -1e-300, 0.0, -0.0, 5e-324]),
    "text": np.array(["a", "", "ü\n", "long" * 50]),
    "one": np.array([7]),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS.keys())
def test_a_column_comes_back_bit_for_bit(column: NDArray[Any]) -> None:
    found = unpack(pack(column).content)
    assert found.dtype.kind == column.dtype.kind
    assert found.shape == column.shape
    assert found.tobytes() == column.tobytes() if column.dtype.kind != "U" else (found == column).all()


def test_digests_name_what_is_held() -> None:
    codes = RNG.integers(0, 3, 1000)
    assert pack(codes).digest == pack(codes.copy()).digest
    assert pack(codes).digest != pack(codes[::-1]).digest
    # The same bytes in another shape are another column.
    assert pack(np.zeros((2, 3))).digest != pack(np.zeros((3, 2))).digest
    assert pack(np.zeros(2)).digest != pack(np.zeros(2, dtype=np.int64)).digest


def test_columns_are_small() -> None:
    assert len(pack(RNG.integers(0, 10, 100_000)).content) < 60_000
    rounded = np.round(RNG.dirichlet(np.ones(10), 10_000), 3)
    assert len(pack(rounded).content) < 0.2 * rounded.nbytes


def make_samples(seed: int = 0, **fields: Any) -> Samples:
    rng = np.random.default_rng(seed)
    return Samples(
        **{
            "truth": rng.integers(0, 2, 50),
            "predicted": rng.integers(0, 2, 50),
            "outputs": rng.dirichlet([1, 1], 50),
            "ids": np.arange(50),
            **fields,
        }
    )


def assert_same(found: Samples | None, expected: Samples) -> None:
    assert found is not None
    for name in ("truth", "predicted", "outputs", "ids", "weights", "groups"):
        one, other = getattr(found, name), getattr(expected, name)
        assert (one is None) == (other is None), name
        if one is not None:
            np.testing.assert_array_equal(one, other)
    assert found.fold_sizes == expected.fold_sizes


async def count(engine: AsyncEngine, project: str) -> list[int | None]:
    found: list[int | None] = []
    async with engine.connect() as connection:
        for table in (evaluation_samples, sample_columns, probability_reports):
            statement = select(func.count()).select_from(table).where(table.c.project == project)
            found.append(await connection.scalar(statement))
    return found


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"outputs": np.linspace(-3, 3, 50)},
        {"outputs": None},
        {"ids": None, "weights": np.linspace(0, 3, 50)},
        {"ids": np.array([f"id {i}" for i in range(50)]), "fold_sizes": (20, 30)},
        {"groups": np.arange(50) // 5},
        {"ids": None, "outputs": None, "groups": np.array([f"patient {i // 5}" for i in range(50)])},
    ],
)
async def test_samples_come_back(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, fields: dict[str, Any]
) -> None:
    samples = make_samples(**fields)
    record = make_record(samples=samples)
    await store.add(project, record)
    assert_same(await store.read_samples(project, record.id), samples)
    assert await store.get(project, record.id) is not None
    with pytest.raises(NotFound):
        await store.read_samples(f"{project}-other", record.id)
    labels = await store.read_labels(project, [record.id])
    if samples.ids is None and samples.weights is None and samples.groups is None:
        assert labels == {}
    else:
        for name in ("ids", "truth", "predicted", "groups", "weights"):
            one, other = getattr(labels[record.id], name), getattr(samples, name)
            assert (one is None) == (other is None), name
            if one is not None:
                np.testing.assert_array_equal(one, other)


async def test_samples_of_several_at_once(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    kept = [make_samples(), make_samples(ids=None)]
    records = [*(make_record(samples=samples) for samples in kept), make_record()]
    for record in records:
        await store.add(project, record)
    found = await store.read_outputs(project, [record.id for record in records])
    assert set(found) == {record.id for record in records[:2]}
    for record, samples in zip(records, kept, strict=False):
        assert_same(found[record.id], samples)
    assert await store.read_outputs(f"{project}-other", [record.id for record in records]) == {}


async def test_a_record_without_samples_has_none(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    record = make_record()
    await store.add(project, record)
    assert await store.read_samples(project, record.id) is None
    assert await store.read_labels(project, [record.id]) == {}
    await store.delete(project, record.id)
    with pytest.raises(NotFound):
        await store.read_samples(project, record.id)


async def test_what_was_said_of_samples_that_are_not_kept(
    store: PostgresEvaluationStore, engine: AsyncEngine, project: str, make_record: MakeRecord
) -> None:
    record = make_record(part={"values": {"log_loss": 0.25}, "folds": None})
    await store.add(project, record)
    assert await store.read_part(project, record.id) == {"values": {"log_loss": 0.25}, "folds": None}
    assert await store.read_part(f"{project}-other", record.id) is None
    assert await count(engine, project) == [0, 0, 1]
    await store.delete(project, record.id)
    assert await count(engine, project) == [0, 0, 0]


async def test_equal_columns_are_kept_once_and_go_with_the_last(
    store: PostgresEvaluationStore, engine: AsyncEngine, project: str, make_record: MakeRecord
) -> None:
    samples = make_samples()
    # Perfect predictions: one column twice in one evaluation.
    perfect = make_samples(predicted=samples.truth)
    other = make_samples(1, truth=samples.truth)
    records = [make_record(samples=each) for each in (samples, samples, perfect, other)]
    for record in records:
        await store.add(project, record)
    # truth, ids; predicted of the first two, outputs; predicted and outputs of the last.
    assert await count(engine, project) == [4, 6, 0]
    assert await store.delete(project, records[0].id)
    assert await count(engine, project) == [3, 6, 0]
    assert_same(await store.read_samples(project, records[1].id), samples)
    assert await store.delete(project, records[1].id)
    assert await count(engine, project) == [2, 5, 0]
    assert_same(await store.read_samples(project, records[2].id), perfect)
    for record in records[2:]:
        assert await store.delete(project, record.id)
    assert await count(engine, project) == [0, 0, 0]
    assert not await store.delete(project, records[0].id)


async def test_adding_and_deleting_at_once_loses_nothing(
    store: PostgresEvaluationStore, engine: AsyncEngine, project: str, make_record: MakeRecord
) -> None:
    samples = make_samples()
    first = [make_record(samples=samples) for _ in range(12)]
    await asyncio.gather(*(store.add(project, record) for record in first))
    second = [make_record(samples=samples) for _ in range(12)]
    await asyncio.gather(
        *(store.delete(project, record.id) for record in first), *(store.add(project, record) for record in second)
    )
    assert await count(engine, project) == [12, 4, 0]
    for record in second:
        assert_same(await store.read_samples(project, record.id), samples)
    await asyncio.gather(*(store.delete(project, record.id) for record in second))
    assert await count(engine, project) == [0, 0, 0]


async def test_a_column_that_one_evaluation_has_twice_goes_with_the_last_of_all(
    store: PostgresEvaluationStore, project: str, make_record: MakeRecord, engine: AsyncEngine
) -> None:
    truth = make_samples().truth
    perfect = make_samples(predicted=truth)
    first, second = make_record(samples=perfect), make_record(samples=perfect)
    await store.add_all(project, [first, second])
    assert await store.delete(project, first.id)
    assert_same(await store.read_samples(project, second.id), perfect)
    assert await store.delete(project, second.id)
    assert await count(engine, project) == [0, 0, 0]


async def test_those_who_keep_several_never_wait_for_each_other(
    store: PostgresEvaluationStore,
    project: str,
    make_record: MakeRecord,
    engine: AsyncEngine,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    original: Any = stored._link

    async def slowly(*arguments: Any) -> None:
        await original(*arguments)
        await asyncio.sleep(0.005)

    monkeypatch.setattr(stored, "_link", slowly)
    first, second = make_samples(1), make_samples(2, truth=make_samples(1).truth)
    kept = [[make_record(samples=one) for one in order] for order in ((first, second), (second, first))]
    await asyncio.gather(*(store.add_all(project, records) for records in kept))
    for records, order in zip(kept, ((first, second), (second, first)), strict=True):
        for record, samples in zip(records, order, strict=True):
            assert_same(await store.read_samples(project, record.id), samples)
    for records in kept:
        for record in records:
            assert await store.delete(project, record.id)
    assert await count(engine, project) == [0, 0, 0]
