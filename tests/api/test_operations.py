"""Alive, ready, overloaded, without a database: what those who run the service see."""

import asyncio
import json
import logging
import re
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine
from sqlalchemy.pool import NullPool

from app.domain.errors import SchemaOutdated
from app.settings import Settings
from app.store.engine import expected_revision
from app.wiring import build_services, build_telemetry
from tests.api.answers import check_json, check_problem, count_stored, evaluation
from tests.api.conftest import usual_settings
from tests.conftest import run_coroutine
from tests.serving import Served


def execute(url: str, *statements: str) -> None:
    async def run() -> None:
        engine = create_async_engine(url, poolclass=NullPool)
        async with engine.begin() as connection:
            for statement in statements:
                await connection.execute(text(statement))

    run_coroutine(run())


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return usual_settings(database_url)


@pytest.fixture
def outdated(database_url: str) -> Iterator[None]:
    """A database that no migration of ours has seen."""
    execute(database_url, "DELETE FROM alembic_version")
    yield
    execute(database_url, f"INSERT INTO alembic_version VALUES ('{expected_revision()}')")


@pytest.fixture
def migrated_by_a_newer_release(database_url: str) -> Iterator[None]:
    execute(database_url, "UPDATE alembic_version SET version_num = 'of_the_future'")
    yield
    execute(database_url, f"UPDATE alembic_version SET version_num = '{expected_revision()}'")


def test_alive_and_ready(client: httpx.Client) -> None:
    for path, status in (("/healthz", "alive"), ("/readyz", "ready")):
        reply = client.get(path)
        assert reply.status_code == 200
        check_json(reply)
        assert reply.json()["status"] == status


@pytest.mark.usefixtures("outdated")
def test_an_outdated_schema_is_not_ready(client: httpx.Client) -> None:
    reply = client.get("/readyz")
    problem = check_problem(reply, 503, "schema_outdated")
    assert "prevail migrate" in problem["detail"]
    assert problem["schema"] is None
    assert problem["reachable"] is True
    assert int(reply.headers["retry-after"]) > 0
    assert client.get("/healthz").status_code == 200


@pytest.mark.usefixtures("migrated_by_a_newer_release")
def test_a_running_release_stays_ready_while_the_next_one_migrates(client: httpx.Client) -> None:
    reply = client.get("/readyz")
    assert reply.status_code == 200
    assert reply.json()["schema"] == "of_the_future"


async def start(settings: Settings) -> None:
    async with build_services(settings, build_telemetry(settings, "")):
        raise AssertionError("it started")


@pytest.mark.usefixtures("outdated")
def test_an_outdated_schema_is_refused_at_the_start(settings: Settings) -> None:
    with pytest.raises(SchemaOutdated, match="prevail migrate"):
        asyncio.run(start(settings))


def test_no_database_is_refused_at_the_start(settings: Settings) -> None:
    with pytest.raises(ValueError, match="PREVAIL_DATABASE_URL"):
        asyncio.run(start(Settings()))


def test_a_service_starts_while_its_database_is_away(caplog: pytest.LogCaptureFixture) -> None:
    """A worker that is replaced meanwhile must not end the others with it."""
    nowhere = Settings(database_url=SecretStr("postgresql://nobody:secret@127.0.0.1:9/none"))
    with Served(nowhere) as base_url, httpx.Client(base_url=base_url) as client:
        for reply in (
            client.get("/readyz"),
            client.get("/v1/models"),
            client.post("/v1/evaluations", json=evaluation()),
        ):
            check_problem(reply, 503, "database_unavailable")
            assert int(reply.headers["retry-after"]) > 0
    assert "the database does not answer" in caplog.text
    assert "secret" not in caplog.text


@pytest.fixture
def crowded_client(database_url: str, tmp_path: Path) -> Iterator[httpx.Client]:
    """A service that finds less space beside its database than it wants to leave free."""
    settings = Settings(database_url=SecretStr(database_url), database_dir=tmp_path, min_free_bytes=1 << 60)
    with Served(settings) as base_url, httpx.Client(base_url=base_url, timeout=60) as client:
        yield client


def test_without_space_writes_are_refused_and_reads_go_on(client: httpx.Client, crowded_client: httpx.Client) -> None:
    made = client.post("/v1/evaluations", json=evaluation()).json()
    path = f"/v1/evaluations/{made['id']}"
    before = count_stored(client)
    for reply in (
        crowded_client.post("/v1/evaluations", json=evaluation()),
        crowded_client.patch(path, json={"tags": {"a": "b"}}),
        crowded_client.delete(path),
        crowded_client.put("/v1/gates/crowded", json={"rules": [{"metric": "accuracy", "min": 0.5}]}),
    ):
        problem = check_problem(reply, 507, "no_space")
        assert problem["detail"] == "no space left where the database keeps its files; nothing was saved"
        assert reply.headers["retry-after"] == "10"
    assert crowded_client.get(path).json() == made
    assert crowded_client.get("/v1/models").status_code == 200
    assert crowded_client.get("/readyz").status_code == 200
    assert crowded_client.get("/problems/no_space").status_code == 200
    assert count_stored(client) == before
    assert client.get("/v1/gates/crowded").status_code == 404


class Gate:
    """Passes connections on to the database until it is shut."""

    def __init__(self, host: str, port: int) -> None:
        self._target = (host, port)
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._open = True
        self.port = 0
        ready = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        self._thread.start()
        assert ready.wait(10)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)
        server = self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        ready.set()
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._open:
            writer.close()
            return
        there, back = await asyncio.open_connection(*self._target)
        self._writers |= {writer, back}

        async def copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
            try:
                while data := await source.read(65536):
                    target.write(data)
                    await target.drain()
            except OSError:
                pass
            finally:
                target.close()

        await asyncio.gather(copy(reader, back), copy(there, writer))

    def shut(self) -> None:
        """Cut every connection and take no more."""

        def cut() -> None:
            self._open = False
            for writer in self._writers:
                writer.transport.abort()
            self._writers.clear()

        self._loop.call_soon_threadsafe(cut)
        time.sleep(0.1)

    def reopen(self) -> None:
        self._open = True

    def close(self) -> None:
        self.shut()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


@pytest.fixture
def gate(database_url: str) -> Iterator[Gate]:
    address = database_url.rpartition("@")[2].partition("/")[0]
    host, _, port = address.rpartition(":")
    gate = Gate(host, int(port))
    yield gate
    gate.close()


@pytest.fixture
def gated_client(database_url: str, gate: Gate) -> Iterator[httpx.Client]:
    """A service whose way to the database can be shut."""
    head, _, tail = database_url.rpartition("@")
    url = f"{head}@127.0.0.1:{gate.port}/{tail.partition('/')[2]}"
    settings = Settings(database_url=SecretStr(url), pool_size=2, admission_wait_seconds=0.5, access_log=True)
    with Served(settings) as base_url, httpx.Client(base_url=base_url, timeout=60) as client:
        yield client


def test_a_database_that_stops_and_comes_back(gated_client: httpx.Client, gate: Gate) -> None:
    client = gated_client
    made = client.post("/v1/evaluations", json=evaluation()).json()
    gate.shut()
    path = f"/v1/evaluations/{made['id']}"
    requests: list[tuple[str, str, Any]] = [
        ("POST", "/v1/evaluations", evaluation()),
        ("POST", "/v1/evaluations", evaluation(model="a name never seen")),
        ("GET", path, None),
        ("PATCH", path, {"tags": {}}),
        ("DELETE", path, None),
        ("GET", "/v1/evaluations", None),
        ("GET", "/v1/evaluations?sort=-h_mean", None),
        ("GET", "/v1/models", None),
        ("GET", "/v1/datasets", None),
    ]
    for method, address, body in requests:
        reply = client.request(method, address, json=body)
        check_problem(reply, 503, "database_unavailable")
        assert int(reply.headers["retry-after"]) > 0
    batch = client.post("/v1/evaluations/batch", json={"evaluations": [evaluation()]})
    assert [item["status"] for item in batch.json()["items"]] == [503]
    check_problem(client.get("/readyz"), 503, "database_unavailable")
    # What needs no database works all the same.
    assert client.get("/healthz").status_code == 200
    assert client.post("/v1/metrics/compute", json=evaluation()).status_code == 200
    assert client.get("/v1/metrics").status_code == 200
    gate.reopen()
    assert client.get("/readyz").status_code == 200
    assert client.get(path).json() == made
    assert client.post("/v1/evaluations", json=evaluation()).status_code == 201


@pytest.mark.slow
def test_loss_and_return_of_the_database_are_told(
    gated_client: httpx.Client, gate: Gate, caplog: pytest.LogCaptureFixture
) -> None:
    """Once each, whatever was asked meanwhile, and the return also when nobody asks."""
    client = gated_client
    client.post("/v1/evaluations", json=evaluation()).raise_for_status()

    def events() -> list[dict[str, Any]]:
        lines = [record.getMessage() for record in caplog.records if record.name == "prevail.requests"]
        return [line for line in map(json.loads, lines) if "event" in line]

    with caplog.at_level(logging.INFO, logger="prevail.requests"):
        gate.shut()
        for _ in range(3):
            check_problem(client.post("/v1/evaluations", json=evaluation()), 503, "database_unavailable")
            check_problem(client.get("/v1/models"), 503, "database_unavailable")
        assert [line["event"] for line in events()] == ["database_lost"]
        gate.reopen()
        deadline = time.monotonic() + 30
        while len(events()) < 2:
            assert time.monotonic() < deadline
            time.sleep(0.05)
    lost, back = events()
    assert lost.keys() == {"at", "event", "reason"}
    assert re.fullmatch(r"[A-Za-z]+", lost["reason"])
    assert back["event"] == "database_back"
    assert 0 < back["seconds"] < 60
    counted = client.get("/metrics").text
    assert "prevail_database_lost_total 1.0" in counted
    assert "prevail_database_back_total 1.0" in counted
    said = [record.getMessage() for record in caplog.records if record.name == "prevail.database"]
    assert len(said) == 2


def post_many(base_url: str, count: int, body: Any) -> list[httpx.Response]:
    async def run() -> list[httpx.Response]:
        limits = httpx.Limits(max_connections=count)
        async with httpx.AsyncClient(base_url=base_url, timeout=60, limits=limits) as client:
            return await asyncio.gather(*(client.post("/v1/evaluations", json=body) for _ in range(count)))

    return asyncio.run(run())


@pytest.mark.slow
def test_sixty_four_at_once_are_all_kept_or_refused(database_url: str, client: httpx.Client) -> None:
    settings = Settings(database_url=SecretStr(database_url), pool_size=2, admission_wait_seconds=0.2)
    before = count_stored(client)[0]
    with Served(settings) as base_url:
        replies = post_many(base_url, 64, evaluation(model="crowd"))
    kept = [reply for reply in replies if reply.status_code == 201]
    for reply in replies:
        if reply.status_code != 201:
            check_problem(reply, 503, "overloaded")
            assert int(reply.headers["retry-after"]) > 0
    assert kept
    assert len({reply.json()["id"] for reply in kept}) == len(kept)
    assert count_stored(client)[0] == before + len(kept)
    # What was computed together with others is read alone, to the same bytes.
    for reply in kept:
        assert client.get(reply.headers["location"]).content == reply.content


def test_what_finds_no_place_is_refused_and_not_kept(database_url: str, client: httpx.Client) -> None:
    """A lock on the table holds the first write up; those behind it wait for a place, and then no longer."""
    settings = Settings(database_url=SecretStr(database_url), pool_size=2, admission_wait_seconds=0.1)
    before = count_stored(client)[0]

    async def run(base_url: str) -> list[httpx.Response]:
        engine = create_async_engine(database_url, poolclass=NullPool)
        async with httpx.AsyncClient(base_url=base_url, timeout=60) as caller:
            async with engine.begin() as connection:
                await connection.execute(text("LOCK TABLE evaluations IN SHARE MODE"))
                tasks = [asyncio.create_task(caller.post("/v1/evaluations", json=evaluation())) for _ in range(8)]
                while sum(task.done() for task in tasks) < 6:
                    await asyncio.sleep(0.02)
                refused = [task.result() for task in tasks if task.done()]
                # Meanwhile the service answers others.
                assert (await caller.get("/healthz")).status_code == 200
                assert (await caller.post("/v1/metrics/compute", json=evaluation())).status_code == 200
            held = [await task for task in tasks]
        assert sorted(reply.status_code for reply in held) == [201] * 2 + [503] * 6
        return refused

    with Served(settings) as base_url:
        refused = asyncio.run(run(base_url))
    for reply in refused:
        problem = check_problem(reply, 503, "overloaded")
        assert "nothing was saved" in problem["detail"]
        assert int(reply.headers["retry-after"]) > 0
    assert count_stored(client)[0] == before + 2
