"""A database that goes away and comes back, and one whose disk is full."""

import asyncio
import errno
import os
import shutil
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncEngine

from app.cli import upgrade
from app.domain.errors import StoreFullError, StoreUnavailableError
from app.embedded import EmbeddedPostgres
from app.settings import normalize_database_url
from app.store.engine import Disk, create_engine, is_full, is_unavailable, require_room, translated, watch_of, writing
from app.store.evaluations import PostgresEvaluationStore
from app.store.writer import EvaluationWriter
from tests.folders import server_folder
from tests.store.conftest import MakeRecord

pytestmark = pytest.mark.anyio
FULL = "DO $$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = '53100'; END $$"


# --- a full disk -----------------------------------------------------------------------------------------------------


async def test_postgres_says_that_its_disk_is_full(engine: AsyncEngine) -> None:
    with pytest.raises(DBAPIError) as caught:
        async with engine.begin() as connection:
            await connection.execute(text(FULL))
    assert is_full(caught.value)
    with pytest.raises(StoreFullError, match="space"):
        async with writing(engine) as connection:
            await connection.execute(text(FULL))


async def test_a_quota_that_is_used_up_is_a_full_disk(engine: AsyncEngine) -> None:
    """Postgres has no state for it: what it passes on is the sentence of the system."""
    said = f'could not extend file "base/16384/1259": {os.strerror(errno.EDQUOT)}'
    refusal = f"DO $$ BEGIN RAISE EXCEPTION '{said}' USING ERRCODE = 'XX000'; END $$"
    with pytest.raises(StoreFullError, match="space"):
        async with writing(engine) as connection:
            await connection.execute(text(refusal))
    assert not is_full(asyncpg.InternalServerError("could not open relation"))


def test_other_shortages_are_none_of_space() -> None:
    for kind in (asyncpg.TooManyConnectionsError, asyncpg.OutOfMemoryError):
        assert not is_full(kind("x"))
        assert is_unavailable(kind("x"))
    # Nobody is let in, or nothing may be written.
    for refusing in (
        asyncpg.InvalidPasswordError,
        asyncpg.InvalidCatalogNameError,
        asyncpg.ReadOnlySQLTransactionError,
    ):
        assert is_unavailable(refusing("x"))
    assert not is_unavailable(asyncpg.UniqueViolationError("x"))
    with pytest.raises(StoreUnavailableError), translated():
        raise ConnectionRefusedError


@pytest.fixture
async def full_table(engine: AsyncEngine) -> AsyncIterator[None]:
    """No row fits into the table of evaluations any more."""
    async with engine.begin() as connection:
        body = FULL.removeprefix("DO $$").removesuffix("$$")
        await connection.execute(text(f"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ {body} $$"))
        await connection.execute(
            text("CREATE TRIGGER refuse BEFORE INSERT ON evaluations FOR EACH ROW EXECUTE FUNCTION refuse()")
        )
    yield
    async with engine.begin() as connection:
        await connection.execute(text("DROP FUNCTION refuse CASCADE"))


@pytest.mark.usefixtures("full_table")
async def test_a_full_disk_fails_the_group_and_the_writer_goes_on(
    engine: AsyncEngine, store: PostgresEvaluationStore, project: str, make_record: MakeRecord
) -> None:
    records = [make_record() for _ in range(5)]
    answers = await asyncio.gather(*(store.add(project, each) for each in records), return_exceptions=True)
    assert [type(answer) for answer in answers] == [StoreFullError] * 5
    assert len({id(answer) for answer in answers}) == 5
    assert await store.get_many(project, [each.id for each in records]) == {}
    async with engine.begin() as connection:
        await connection.execute(text("ALTER TABLE evaluations DISABLE TRIGGER refuse"))
    await store.add(project, records[0])
    assert await store.get(project, records[0].id) is not None


async def test_the_folder_of_the_database_is_asked_before_anything_is_written(
    database_url: str, tmp_path: Path, project: str, make_record: MakeRecord
) -> None:
    free = os.statvfs(tmp_path)
    least = free.f_bavail * free.f_frsize // 2
    engine = create_engine(database_url, disk=Disk(tmp_path, least))
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    await store.add(project, make_record())
    require_room(engine, least // 2)
    with pytest.raises(StoreFullError):
        require_room(engine, 2 * least)
    with pytest.raises(StoreFullError):
        async with writing(engine, least):
            raise AssertionError("it began")
    await store.close()


async def test_where_nothing_may_be_written_a_write_is_to_be_tried_again(engine: AsyncEngine) -> None:
    """As after a failover, or where the provider has closed a full database; it is not lost for readers."""
    with pytest.raises(StoreUnavailableError):
        async with writing(engine) as connection:
            await connection.execute(text("DO $$ BEGIN SET TRANSACTION READ ONLY; DELETE FROM jobs; END $$"))
    assert not watch_of(engine).lost


async def test_a_folder_that_is_gone_is_a_database_that_is_gone(database_url: str, tmp_path: Path) -> None:
    engine = create_engine(database_url, disk=Disk(tmp_path / "gone", 1))
    with pytest.raises(StoreUnavailableError):
        require_room(engine)


# --- a database that ends and comes back -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def postgres() -> Iterator[EmbeddedPostgres]:
    """A server of this module's own, which is brought back when it ends: from here, an external one."""
    folder = server_folder("failures")
    with EmbeddedPostgres.start(folder / "data", durable=True) as server:
        server.create_database()
        upgrade(SecretStr(normalize_database_url(server.dsn())), "head")
        server.supervise()
        yield server
    shutil.rmtree(folder, ignore_errors=True)


async def until_it_answers(ask: Callable[[], Awaitable[Any]]) -> None:
    """Ask until there is an answer; until then there is one error only."""
    async with asyncio.timeout(10):
        while True:
            try:
                await ask()
            except StoreUnavailableError:
                await asyncio.sleep(0.05)
            else:
                return


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGQUIT])
async def test_pool_and_writer_reconnect_by_themselves(
    postgres: EmbeddedPostgres, project: str, make_record: MakeRecord, number: signal.Signals
) -> None:
    engine = create_engine(normalize_database_url(postgres.dsn()), pool_size=4)
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    first = make_record()
    await store.add(project, first)
    # Several connections of the pool, and the writer's, are lost at once.
    await asyncio.gather(*(store.get(project, first.id) for _ in range(4)))
    server = postgres._server
    os.kill(server.pid, number)
    await until_it_answers(lambda: store.add(project, make_record()))
    while postgres._server is server:
        await asyncio.sleep(0.02)
        await until_it_answers(lambda: store.add(project, make_record()))
    await until_it_answers(lambda: store.get(project, first.id))
    answers = await asyncio.gather(*(store.get(project, first.id) for _ in range(8)))
    assert [answer is not None and answer.id == first.id for answer in answers] == [True] * 8
    await store.close()


async def test_a_driver_that_lost_its_way_with_the_connection_is_a_database_that_is_gone(
    engine: AsyncEngine, project: str, make_record: MakeRecord, monkeypatch: pytest.MonkeyPatch
) -> None:
    """asyncpg says so when a connection breaks between two messages; it belongs to none of its families."""
    writer = EvaluationWriter(engine)
    store = PostgresEvaluationStore(engine, writer)
    first, second = make_record(), make_record()
    await store.add(project, first)
    broken = writer._driver

    async def refuse(*_: object) -> None:
        raise asyncpg.InternalClientError("cannot switch to state 13; another operation (2) is in progress")

    with monkeypatch.context() as patched:
        patched.setattr(asyncpg.Connection, "executemany", refuse)
        with pytest.raises(StoreUnavailableError):
            await store.add(project, second)
    await store.add(project, second)
    assert writer._driver is not broken
    assert await store.get(project, second.id) is not None
    await store.close()
