"""A database, a standby that can be held back or ended, and what reads at either."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from uuid import UUID

import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.cli import upgrade
from app.domain.evaluation import EvaluationQuery
from app.embedded import EmbeddedPostgres
from app.services.observing import Observer, Observers
from app.settings import normalize_database_url
from app.store.database.engine import create_engine
from app.store.database.replica import Reader, Replica
from app.store.evaluations.evaluations import PostgresEvaluationStore
from app.store.evaluations.writer import EvaluationWriter
from tests.folders import server_folder
from tests.replica.standby import Standby, execute
from tests.store.conftest import anyio_backend, make_record, project

MOST = 10.0
IN_RECOVERY = text("SELECT pg_is_in_recovery()")

__all__ = ["anyio_backend", "make_record", "project"]


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
