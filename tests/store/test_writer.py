import asyncio
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from sqlalchemy import func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.errors import Overloaded, StoreUnavailableError
from app.domain.inputs.content import Content
from app.store.audit import WHO_PARAMETERS
from app.store.evaluations import encode_record
from app.store.tables import evaluations
from app.store.writer import ENTRY_ID, INSERT, KEYED_INSERT, EvaluationWriter
from tests.store.conftest import MakeRecord

pytestmark = pytest.mark.anyio


@pytest.fixture
async def writer(engine: AsyncEngine) -> AsyncIterator[EvaluationWriter]:
    writer = EvaluationWriter(engine)
    yield writer
    await writer.close()


@pytest.fixture
def make_row(make_record: MakeRecord, project: str) -> Any:
    def make(**fields: Any) -> dict[str, Any]:
        slots = {"accuracy": 1, "h_mean": 4}
        return encode_record(
            project, make_record(**fields), ids={"model_id": 1, "model_name_id": 1, "dataset_id": 1}, slots=slots
        )

    return make


async def stored_ids(engine: AsyncEngine, project: str) -> list[UUID]:
    async with engine.connect() as connection:
        ids = select(evaluations.c.id).where(evaluations.c.project == project).order_by(evaluations.c.id)
        return list((await connection.scalars(ids)).all())


async def transactions_of(engine: AsyncEngine, project: str) -> list[int]:
    """How many rows each transaction wrote: xmin is the transaction that made a row."""
    async with engine.connect() as connection:
        sizes = select(func.count()).where(evaluations.c.project == project).group_by(text("xmin::text"))
        return sorted((await connection.scalars(sizes)).all())


def test_every_column_is_written() -> None:
    # Who made it stands in the audit log, in an entry of its own.
    written = [*(column.name for column in evaluations.c), *WHO_PARAMETERS, ENTRY_ID]
    assert sorted(INSERT.columns) == sorted(written)
    # So does what was kept under the key of a request.
    assert set(KEYED_INSERT.columns) > set(INSERT.columns)


async def test_one_alone_is_committed_at_once(
    engine: AsyncEngine, writer: EvaluationWriter, project: str, make_row: Any
) -> None:
    row = make_row()
    await writer.add(row)
    assert await stored_ids(engine, project) == [row["id"]]


async def test_those_that_arrive_together_share_commits(
    engine: AsyncEngine, writer: EvaluationWriter, project: str, make_row: Any
) -> None:
    rows = [make_row() for _ in range(200)]
    await asyncio.gather(*(writer.add(row) for row in rows))
    assert await stored_ids(engine, project) == [row["id"] for row in rows]
    sizes = await transactions_of(engine, project)
    assert max(sizes) <= 128
    assert len(sizes) <= 4


async def test_a_group_is_bounded_in_bytes(engine: AsyncEngine, project: str, make_row: Any) -> None:
    writer = EvaluationWriter(engine, group_bytes=20_000)
    large = np.full((50, 50), 0.5)  # 20 kB as float64
    rows = [make_row(labels=tuple(map(str, range(50))), content=Content.weights, counts=large) for _ in range(6)]
    await asyncio.gather(*(writer.add(row) for row in rows))
    await writer.close()
    assert await transactions_of(engine, project) == [1] * 6


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param({"kind": "nul \x00 byte"}, id="refused-by-postgres"),
        pytest.param({"kind": "\ud800"}, id="refused-by-the-encoder"),
        pytest.param({"n_classes": "two"}, id="refused-by-the-driver"),
        pytest.param({"revision": None}, id="refused-by-a-constraint"),
    ],
)
async def test_a_bad_row_fails_no_other(
    engine: AsyncEngine, writer: EvaluationWriter, project: str, make_row: Any, broken: dict[str, Any]
) -> None:
    rows = [make_row() for _ in range(9)]
    good = [row["id"] for index, row in enumerate(rows) if index != 4]
    rows[4] |= broken
    answers = await asyncio.gather(*(writer.add(row) for row in rows), return_exceptions=True)
    assert isinstance(answers[4], Exception)
    assert not isinstance(answers[4], StoreUnavailableError)
    assert [answer for index, answer in enumerate(answers) if index != 4] == [None] * 8
    assert await stored_ids(engine, project) == good
    later = make_row()
    await writer.add(later)
    assert await stored_ids(engine, project) == [*good, later["id"]]


async def test_the_queue_is_bounded(engine: AsyncEngine, project: str, make_row: Any) -> None:
    writer = EvaluationWriter(engine, queue_limit=5)
    rows = [make_row() for _ in range(9)]
    answers = await asyncio.gather(*(writer.add(row) for row in rows), return_exceptions=True)
    assert answers[:5] == [None] * 5
    assert all(isinstance(answer, Overloaded) for answer in answers[5:])
    await writer.close()
    assert await stored_ids(engine, project) == [row["id"] for row in rows[:5]]


async def test_closing_commits_what_waits_and_refuses_what_comes(
    engine: AsyncEngine, writer: EvaluationWriter, project: str, make_row: Any
) -> None:
    rows = [make_row() for _ in range(300)]
    waiting = [asyncio.create_task(writer.add(row)) for row in rows]
    await asyncio.sleep(0)
    await writer.close()
    assert await asyncio.gather(*waiting) == [None] * 300
    with pytest.raises(StoreUnavailableError, match="shutting down"):
        await writer.add(make_row())
    assert await stored_ids(engine, project) == [row["id"] for row in rows]
    await writer.close()


async def test_closing_leaves_no_connection(engine: AsyncEngine, project: str, make_row: Any) -> None:
    async def count() -> int:
        """A new transaction each time: within one, Postgres shows the same picture of its processes again."""
        async with engine.connect() as connection:
            processes = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
            return await connection.scalar(text(f"{processes} AND backend_type = 'client backend'")) or 0

    before = await count()
    writer = EvaluationWriter(engine)
    await writer.add(make_row())
    during = await count()
    await writer.close()
    for _ in range(200):
        if await count() == before:
            break
        await asyncio.sleep(0.02)
    assert (during, await count()) == (before + 1, before)


async def test_a_caller_that_gives_up_before_its_commit_leaves_nothing(
    engine: AsyncEngine, writer: EvaluationWriter, project: str, make_row: Any
) -> None:
    rows = [make_row() for _ in range(6)]
    tasks = [asyncio.create_task(writer.add(row)) for row in rows]
    await asyncio.sleep(0)
    tasks[2].cancel()
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert isinstance(answers[2], asyncio.CancelledError)
    assert [row["id"] for index, row in enumerate(rows) if index != 2] == await stored_ids(engine, project)


async def test_a_caller_that_gives_up_during_its_commit_disturbs_nobody(
    engine: AsyncEngine, writer: EvaluationWriter, project: str, make_row: Any
) -> None:
    await writer.add(make_row())
    async with engine.begin() as blocker:
        await blocker.execute(text("LOCK TABLE evaluations IN SHARE MODE"))
        tasks = [asyncio.create_task(writer.add(make_row())) for _ in range(6)]
        await wait_for_blocked(engine)
        tasks[2].cancel()
        with pytest.raises(asyncio.CancelledError):
            await tasks[2]
    assert await asyncio.gather(*(task for task in tasks if task is not tasks[2])) == [None] * 5
    assert len(await stored_ids(engine, project)) == 7


async def wait_for_blocked(engine: AsyncEngine) -> int:
    """Wait until the writer hangs at a lock; returns its process id in Postgres."""
    blocked = text("SELECT pid FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()")
    for _ in range(500):
        async with engine.connect() as connection:
            if (pid := await connection.scalar(blocked)) is not None:
                return int(pid)
        await asyncio.sleep(0.01)
    raise AssertionError("the writer never came to the lock")


async def test_a_connection_that_breaks_during_a_commit_fails_its_group_and_is_replaced(
    engine: AsyncEngine, writer: EvaluationWriter, project: str, make_row: Any
) -> None:
    async with engine.begin() as blocker:
        await blocker.execute(text("LOCK TABLE evaluations IN SHARE MODE"))
        tasks = [asyncio.create_task(writer.add(make_row())) for _ in range(4)]
        pid = await wait_for_blocked(engine)
        await blocker.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(answer, StoreUnavailableError) for answer in answers)
    assert await stored_ids(engine, project) == []
    row = make_row()
    await writer.add(row)
    assert await stored_ids(engine, project) == [row["id"]]


async def test_a_connection_lost_while_idle_is_replaced_unnoticed(
    engine: AsyncEngine, writer: EvaluationWriter, project: str, make_row: Any
) -> None:
    first, second = make_row(), make_row()
    await writer.add(first)
    async with engine.connect() as connection:
        others = text(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )
        await connection.execute(others)
    await asyncio.sleep(0.05)
    await writer.add(second)
    assert await stored_ids(engine, project) == [first["id"], second["id"]]


async def test_no_database_is_an_answer(engine: AsyncEngine, make_row: Any) -> None:
    from app.store.engine import create_engine

    nowhere = create_engine("postgresql+asyncpg://nobody:x@127.0.0.1:1/none")
    writer = EvaluationWriter(nowhere)
    answers = await asyncio.gather(*(writer.add(make_row()) for _ in range(3)), return_exceptions=True)
    assert all(isinstance(answer, StoreUnavailableError) for answer in answers)
    await writer.close()
    await nowhere.dispose()


async def test_a_loop_that_ends_leaves_nobody_waiting(engine: AsyncEngine, make_row: Any) -> None:
    writer = EvaluationWriter(engine)
    async with engine.begin() as blocker:
        await blocker.execute(text("LOCK TABLE evaluations IN SHARE MODE"))
        tasks = [asyncio.create_task(writer.add(make_row())) for _ in range(3)]
        await wait_for_blocked(engine)
        late = asyncio.create_task(writer.add(make_row()))
        await asyncio.sleep(0)
        assert writer._task is not None
        writer._task.cancel()
        answers = await asyncio.gather(*tasks, late, return_exceptions=True)
        assert all(isinstance(answer, StoreUnavailableError) for answer in answers)
        await writer._disconnect()
