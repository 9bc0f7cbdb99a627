"""Lists are read at a standby that keeps up, and nobody notices when it does not: with a real one."""

import asyncio
import logging
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.evaluation import DatasetRef, EvaluationQuery
from app.embedded import EmbeddedPostgres
from app.services.recency import may_be_old, read_old
from app.store.database.replica import Reader, Replica
from app.store.database.sealing import UnsealedStatement
from app.store.database.tables import evaluations
from app.store.evaluations.evaluations import PostgresEvaluationStore
from tests.replica.conftest import MOST, Clock, Heard, is_standby, listed, make_replica, until_it_has_all
from tests.replica.standby import Standby, execute
from tests.store.conftest import MakeRecord

pytestmark = pytest.mark.anyio


# --- which reads go where --------------------------------------------------------------------------------------------


async def test_only_what_may_be_old_is_read_there(reader: Reader, heard: Heard) -> None:
    assert not await reader.read(is_standby)
    read_old(may_be_old=True)
    assert await reader.read(is_standby)
    read_old(may_be_old=False)
    assert not await reader.read(is_standby)
    assert heard.told == ["replica"]


async def test_lists_may_be_old_and_what_is_looked_up_never_is(
    store: PostgresEvaluationStore, standby: Standby, project: str, make_record: MakeRecord, heard: Heard
) -> None:
    first, second = make_record(), make_record(values={"accuracy": 0.9, "new metric": 1.0})
    await store.add(project, first)
    standby.pause()
    await store.add(project, second)
    read_old(may_be_old=True)
    assert await listed(store, project) == [first.id]
    assert [one.id for one in (await store.page(project, EvaluationQuery(sort_metric="accuracy"))).items] == [first.id]
    dataset = DatasetRef("digits")
    board = await store.leaderboard(project, dataset, "accuracy", limit=5, higher_is_better=True)
    assert [one.evaluation.id for one in board] == [first.id]
    assert (await store.get_many(project, [first.id, second.id])).keys() == {first.id}
    assert set(heard.told) == {"replica"}
    # What the standby does not know yet is not forgotten because it was asked.
    assert (await store.page(project, EvaluationQuery(sort_metric="new metric"))).items != ()
    found = await store.get(project, second.id)
    assert found is not None
    assert found.values["new metric"] == 1.0
    # One answer does not go back in time.
    read_old(may_be_old=True)
    standby.resume()
    assert await listed(store, project) == [second.id, first.id]


async def test_nothing_is_what_the_primary_says(
    store: PostgresEvaluationStore, standby: Standby, project: str, make_record: MakeRecord, heard: Heard
) -> None:
    record = make_record()
    standby.pause()
    await store.add(project, record)
    for ask, expected in (
        (store.page(project, EvaluationQuery()), record.id),
        (store.models(project, 5), record.model),
        (store.datasets(project, 5), record.dataset),
    ):
        read_old(may_be_old=True)
        (item,) = (await ask).items
        assert expected in (item, getattr(item, "id", None))
        # From now on the rest of the answer comes from there too.
        assert not may_be_old()
    assert heard.told == ["primary"] * 3
    standby.resume()


async def test_projects_are_sealed_there_and_nothing_can_be_written(replica: Replica) -> None:
    async def everything(connection: AsyncConnection) -> Any:
        return await connection.execute(select(evaluations.c.id))

    with pytest.raises(UnsealedStatement):
        await replica.read(everything)
    async with replica.engine.connect() as connection:
        with pytest.raises(DBAPIError, match="read-only transaction"):
            await connection.execute(text("CREATE TABLE mine (id int)"))


# --- a standby that is behind, away, or somebody else's --------------------------------------------------------------


async def test_a_standby_that_is_too_far_behind_is_not_read_until_it_has_caught_up(
    primary: EmbeddedPostgres,
    standby: Standby,
    replica: Replica,
    reader: Reader,
    heard: Heard,
    clock: Clock,
    caplog: pytest.LogCaptureFixture,
) -> None:
    standby.pause()
    execute(primary.dsn(), "CREATE TABLE IF NOT EXISTS later (id int)", "INSERT INTO later VALUES (1)")
    clock.now += 1
    await replica.look()
    assert replica.keeps_up
    clock.now += MOST - 1
    await replica.look()
    assert (replica.age, replica.keeps_up) == (MOST, True)
    clock.now += 0.5
    # Not looked at for so long is as bad as seen to be behind.
    assert not replica.keeps_up
    with caplog.at_level(logging.WARNING):
        await replica.look()
        await replica.look()
        read_old(may_be_old=True)
        assert not await reader.read(is_standby)
        standby.resume()
        clock.now += 2
        await until_it_has_all(replica)
        read_old(may_be_old=True)
        assert await reader.read(is_standby)
    assert (replica.age, replica.keeps_up) == (0.0, True)
    assert heard.told == [f"lost: it is more than {MOST:g} s behind", "primary", "back after 2", "replica"]
    assert [record.message for record in caplog.records] == [
        f"the read replica is not used: it is more than {MOST:g} s behind; lists are read from the primary",
        "lists are read from the replica again, after 2.0 s",
    ]


async def test_when_nothing_is_written_a_standby_is_never_behind(replica: Replica, clock: Clock) -> None:
    for _ in range(3):
        clock.now += 100 * MOST
        assert not replica.keeps_up
        await until_it_has_all(replica)
        assert replica.keeps_up


async def test_a_record_that_is_written_in_part_is_no_delay(
    primary: EmbeddedPostgres, standby: Standby, replica: Replica
) -> None:
    """Pages of log without a commit: what is written ends where a page ends, in the middle of a record."""
    size = 3 * 8192
    end = execute(primary.dsn(), f"SELECT pg_logical_emit_message(false, 'part', repeat('x', {size}))::text")
    in_part = f"SELECT pg_current_wal_lsn() > pg_lsn '{end}' - {size}"
    async with asyncio.timeout(30):
        while not execute(primary.dsn(), in_part):
            await asyncio.sleep(0.01)
    for _ in range(4):
        await replica.look()
    assert execute(primary.dsn(), f"SELECT pg_current_wal_lsn() >= '{end}'")
    await until_it_has_all(replica)


async def test_a_standby_that_goes_away_costs_no_list(
    standby: Standby, replica: Replica, reader: Reader, heard: Heard, clock: Clock
) -> None:
    read_old(may_be_old=True)
    assert await reader.read(is_standby)
    standby.stop()
    # With connections that were good a moment ago.
    answers = await asyncio.gather(*(reader.read(is_standby) for _ in range(4)))
    assert answers == [False] * 4
    clock.now += 3
    await replica.look()
    read_old(may_be_old=True)
    assert not await reader.read(is_standby)
    standby.start()
    clock.now += 1
    await until_it_has_all(replica)
    read_old(may_be_old=True)
    assert await reader.read(is_standby)
    lost = [told for told in heard.told if told.startswith("lost")]
    assert len(lost) == 1
    assert lost[0].startswith("lost: it does not answer")
    assert heard.told[-2:] == ["back after 4", "replica"]


async def test_a_read_under_way_does_not_wait_for_a_standby_that_is_gone(
    replica: Replica, reader: Reader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when its machine loses power: nothing comes any more, not even an end of the connection."""
    asked = asyncio.Event()

    async def slow_there(connection: AsyncConnection) -> bool:
        there = await is_standby(connection)
        asked.set()
        if there:
            await connection.execute(text("SELECT pg_sleep(600)"))
        return there

    async def gone(*_: object) -> Any:
        raise TimeoutError

    read_old(may_be_old=True)
    reading = asyncio.create_task(reader.read(slow_there))
    await asked.wait()
    monkeypatch.setattr("app.store.database.replica._ask", gone)
    await replica.look()
    assert await reading is False


async def test_a_statement_that_fails_there_alone_goes_to_the_primary(
    replica: Replica, reader: Reader, heard: Heard, caplog: pytest.LogCaptureFixture
) -> None:
    """The role may not read the table, a statement took too long, or the replay of the log was in its way."""

    async def forbidden(connection: AsyncConnection) -> bool:
        if await is_standby(connection):
            await connection.execute(text("SELECT pg_read_file('/etc/hostname')"))
        return await is_standby(connection)

    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            read_old(may_be_old=True)
            assert not await reader.read(forbidden)
    assert [record.message for record in caplog.records] == [
        "a read at the replica failed and went to the primary: InsufficientPrivilegeError"
    ]
    assert heard.told == ["primary", "primary"]
    assert replica.keeps_up


@pytest.mark.parametrize("other", ["the primary itself", "another database", "nothing"])
async def test_what_is_no_standby_of_the_database_is_never_read(
    primary: EmbeddedPostgres, standby: Standby, heard: Heard, clock: Clock, other: str
) -> None:
    urls = {
        "the primary itself": primary.dsn(),
        "another database": standby.dsn("postgres"),
        "nothing": primary.dsn().replace(f":{primary.port}/", ":1/"),
    }
    replica = make_replica(primary, urls[other], heard, clock)
    await replica.look()
    assert not replica.keeps_up
    (told,) = heard.told
    assert told.startswith("lost: it does not answer" if other == "nothing" else "lost: it is no standby of this")
    await replica.close()
