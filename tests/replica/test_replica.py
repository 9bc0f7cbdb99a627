"""Lists are read at a standby that keeps up, and nobody notices when it does not: with a real one."""

import asyncio
import logging
import shutil
import time
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any
from uuid import UUID

import httpx
import pytest
from fastapi.routing import APIRoute
from pydantic import SecretStr
from sqlalchemy import select, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection

from app.api.recency import is_list
from app.api.ui import pages as ui
from app.cli import upgrade
from app.domain.evaluation import DatasetRef, EvaluationQuery
from app.embedded import EmbeddedPostgres
from app.main import ROUTERS
from app.services.observing import Observer, Observers
from app.services.recency import may_be_old, read_old
from app.settings import Authentication, MetricsAccess, Settings, normalize_database_url
from app.store.database.engine import create_engine
from app.store.database.replica import Reader, Replica
from app.store.database.sealing import UnsealedStatement
from app.store.database.tables import evaluations
from app.store.evaluations.evaluations import PostgresEvaluationStore
from app.store.evaluations.writer import EvaluationWriter
from tests.folders import server_folder
from tests.replica.standby import Standby, execute
from tests.serving import Served
from tests.store.conftest import MakeRecord

pytestmark = pytest.mark.anyio
MOST = 10.0
IN_RECOVERY = text("SELECT pg_is_in_recovery()")


@pytest.fixture(scope="module")
def primary() -> Iterator[EmbeddedPostgres]:
    folder = server_folder("replica")
    with EmbeddedPostgres.start(folder / "data", durable=True) as server:
        server.create_database()
        upgrade(SecretStr(normalize_database_url(server.dsn())), "head")
        # Whoever reads lists needs to be able to do no more than that.
        execute(
            server.dsn(),
            "CREATE ROLE lists LOGIN PASSWORD 'lists'",
            "GRANT SELECT ON ALL TABLES IN SCHEMA public TO lists",
        )
        yield server
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def standby(primary: EmbeddedPostgres) -> Iterator[Standby]:
    folder = server_folder("standby")
    standby = Standby(primary, folder / "data")
    yield standby
    standby.stop()
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def clock() -> "Clock":
    return Clock()


class Clock:
    """Goes when it is told to."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


class Heard(Observer):
    """What was told of the replica, in its order."""

    def __init__(self) -> None:
        self.told: list[str] = []

    def read_list(self, source: str) -> None:
        self.told.append(source)

    def replica_lost(self, reason: str) -> None:
        self.told.append(f"lost: {reason}")

    def replica_back(self, seconds: float) -> None:
        self.told.append(f"back after {seconds:g}")


@pytest.fixture
def heard() -> Heard:
    return Heard()


def make_replica(primary: EmbeddedPostgres, url: str, heard: Heard, clock: Callable[[], float]) -> Replica:
    return Replica(
        create_engine(normalize_database_url(url), pool_size=2, read_only=True),
        create_engine(normalize_database_url(primary.dsn()), pool_size=1),
        most_seconds=MOST,
        observers=Observers([heard]),
        clock=clock,
    )


@pytest.fixture
async def replica(primary: EmbeddedPostgres, standby: Standby, heard: Heard, clock: Clock) -> AsyncIterator[Replica]:
    standby.catch_up()
    replica = make_replica(primary, standby.dsn(role="lists"), heard, clock)
    await until_it_has_all(replica)
    yield replica
    await replica.close()


@pytest.fixture
async def reader(primary: EmbeddedPostgres, replica: Replica) -> AsyncIterator[Reader]:
    engine = create_engine(normalize_database_url(primary.dsn()), pool_size=2)
    yield Reader(engine, replica)
    await engine.dispose()


@pytest.fixture
async def store(primary: EmbeddedPostgres, replica: Replica) -> AsyncIterator[PostgresEvaluationStore]:
    engine = create_engine(normalize_database_url(primary.dsn()), pool_size=4)
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine), reader=Reader(engine, replica))
    yield store
    await store.close()


async def until_it_has_all(replica: Replica) -> None:
    """Look until the standby is known to have what there is now."""
    async with asyncio.timeout(30):
        while True:
            await replica.look()
            if replica.age == 0.0:
                return
            await asyncio.sleep(0.01)


async def is_standby(connection: AsyncConnection) -> bool:
    found: bool = (await connection.scalars(IN_RECOVERY)).one()
    return found


async def listed(store: PostgresEvaluationStore, project: str) -> list[UUID]:
    return [one.id for one in (await store.page(project, EvaluationQuery())).items]


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


# --- over HTTP -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def client(primary: EmbeddedPostgres, standby: Standby) -> Iterator[httpx.Client]:
    settings = Settings(
        database_url=SecretStr(primary.dsn()),
        read_database_url=SecretStr(standby.dsn(role="lists")),
        read_lag_seconds=3600,
        authentication=Authentication.off,
        metrics_access=MetricsAccess.open,
        job_concurrency=0,
    )
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as client:
        deadline = time.monotonic() + 30
        while "prevail_replica_in_use 1.0" not in client.get("/metrics").text:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        yield client


def test_which_answers_may_be_old() -> None:
    given = [route for router in (*ROUTERS, *ui.ROUTERS) for route in router.routes if isinstance(route, APIRoute)]
    marked = {(route.path, *(route.methods or ())) for route in given if is_list(route.endpoint)}
    nouns = ("evaluations", "models", "datasets", "comparisons", "gates", "gates/{name}/checks", "leaderboard")
    pages = ("/ui", "/ui/comparisons", "/ui/gates", "/ui/gates/{name}")
    assert marked == {(path, "GET") for path in (*(f"/v1/{noun}" for noun in nouns), *pages)}


BODY = {"dataset": {"name": "d"}, "input": {"kind": "confusion_matrix", "matrix": [[5, 1], [2, 4]]}}
NOW = {"Cache-Control": "no-cache"}


def test_over_http(client: httpx.Client, standby: Standby, project: str) -> None:
    client.headers["X-Prevail-Project"] = project

    def post(name: str) -> str:
        answer = client.post("/v1/evaluations", json={"model": {"name": name}, **BODY})
        assert answer.status_code == 201, answer.text
        identifier: str = answer.json()["id"]
        return identifier

    def names(path: str, **headers: str) -> list[str]:
        answer = client.get(path, headers=headers)
        assert answer.status_code == 200, answer.text
        return [one["model"]["name"] if "model" in one else one["name"] for one in answer.json()["items"]]

    post("first")
    standby.pause()
    # The first of a project is seen at once, wherever it is asked for.
    second = post("second")
    gate = {"rules": [{"metric": "accuracy", "min": 0.1}]}
    assert client.put("/v1/gates/g", json=gate).status_code == 201
    for path in ("/v1/evaluations?sort=created_at", "/v1/models", "/v1/leaderboard?dataset=d&metric=accuracy"):
        assert names(path) == ["first"], path
        assert sorted(names(path, **NOW)) == ["first", "second"], path
        assert sorted(names(path, **{"Cache-Control": "max-age=0"})) == ["first", "second"], path
    assert client.get(f"/v1/evaluations/{second}").status_code == 200
    assert client.get("/v1/models/second").json()["evaluations"] == 1
    assert names("/v1/gates") == ["g"]
    # What decides takes the latest there is.
    checked = client.post("/v1/gates/g/checks", json={"evaluation": {"dataset": {"name": "d"}}})
    assert checked.json()["evaluation"]["id"] == second
    assert client.get("/v1/gates/g/checks").json()["items"][0]["id"] == checked.json()["id"]
    page = client.get("/ui").text
    assert "first" in page
    assert "second" not in page
    assert "second" in client.get("/ui", headers=NOW).text
    standby.resume()
    assert names("/v1/evaluations") == ["second", "first"]
    standby.stop()
    assert names("/v1/evaluations") == ["second", "first"]
    counted = client.get("/metrics").text
    assert "prevail_replica_lost_total 0.0" not in counted
    assert "prevail_replica_in_use 0.0" in counted
    assert 'prevail_list_reads_total{source="replica"}' in counted
    assert 'prevail_list_reads_total{source="primary"}' in counted
    standby.start()
