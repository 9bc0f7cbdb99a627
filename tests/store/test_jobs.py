"""Jobs in Postgres: kept, taken in hand by one at a time, ended once, and nothing of another project."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from io import BytesIO
from typing import Any
from uuid import UUID

import pytest
from psycopg_pool.base import AttemptWithBackoff
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.errors import Overloaded, PreconditionFailed, TooManyJobs
from app.domain.identifiers import id_at, new_id
from app.domain.operations import Actor, Job, JobEnd, JobResult, JobStatus, KeptRequest, Task
from app.services.present import act_as, begin_change
from app.store.engine import create_engine
from app.store.jobs import PostgresJobStore, work_on_jobs
from app.store.queue import JOBS, QueueWorker, libpq_url
from tests.conftest import Template

pytestmark = pytest.mark.anyio
REQUEST = KeptRequest(
    kind="createEvaluation",
    method="POST",
    path="/v1/evaluations",
    query="store=true",
    headers={"content-type": "application/json"},
)


@pytest.fixture
async def jobs(engine: AsyncEngine) -> PostgresJobStore:
    """A store without jobs: those who work on them look at all projects."""
    async with engine.begin() as connection:
        for table in ("jobs", "procrastinate.procrastinate_jobs", "procrastinate.procrastinate_workers"):
            await connection.execute(text(f"TRUNCATE {table} CASCADE"))
    return PostgresJobStore(engine, overall=50, per_project=30)


async def add(jobs: PostgresJobStore, project: str, body: bytes = b"{}") -> UUID:
    return (await jobs.add(project, REQUEST, BytesIO(body))).id


async def read(jobs: PostgresJobStore, project: str, identifier: UUID) -> Job:
    job = await jobs.get(project, identifier)
    assert job is not None
    return job


async def begin(jobs: PostgresJobStore, project: str, identifier: UUID) -> Task:
    task = await jobs.begin(project, identifier)
    assert task is not None
    return task


async def count(engine: AsyncEngine, table: str) -> int:
    async with engine.connect() as connection:
        return int(await connection.scalar(text(f"SELECT count(*) FROM {table}")) or 0)


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for it, for a while."""
    async with asyncio.timeout(30):
        while not await condition():
            await asyncio.sleep(0.02)


async def test_a_job_is_kept_with_the_body_of_its_request(jobs: PostgresJobStore, project: str) -> None:
    body = bytes(range(256)) * 10_000
    who = Actor("ci", new_id(), "request-1")
    act_as(who)
    job = await jobs.add(project, REQUEST, BytesIO(body))
    assert (job.kind, job.status, job.progress) == ("createEvaluation", JobStatus.QUEUED, 0.0)
    assert (job.started_at, job.finished_at, job.result, job.problem) == (None, None, None, None)
    assert await jobs.get(project, job.id) == job
    assert b"".join([piece async for piece in jobs.body(project, job.id)]) == body
    task = await begin(jobs, project, job.id)
    assert (task.actor, task.request, task.run, task.lost) == (who, REQUEST, 1, 0)
    assert task.makes != job.id
    assert await jobs.get("another", job.id) is None
    assert [piece async for piece in jobs.body("another", job.id)] == []
    assert await jobs.begin("another", job.id) is None
    assert await jobs.cancel("another", job.id) is None


async def test_a_clock_that_was_set_back_since_a_job_was_made(
    jobs: PostgresJobStore, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of it is said to be earlier than itself."""
    later = id_at(datetime.now(UTC) + timedelta(seconds=60), new_id())
    monkeypatch.setattr("app.store.jobs.new_id", lambda: later)
    await add(jobs, project)
    task = await begin(jobs, project, later)
    await jobs.end(task, JobEnd(status=JobStatus.SUCCEEDED, result="/v1/evaluations/1"))
    job = await read(jobs, project, later)
    assert job.started_at is not None
    assert job.finished_at is not None
    assert job.created_at <= job.started_at <= job.finished_at


async def test_jobs_are_listed_latest_first(jobs: PostgresJobStore, project: str) -> None:
    made = [await add(jobs, project) for _ in range(3)]
    await add(jobs, "another")
    first = await jobs.page(project, None, 2)
    assert [job.id for job in first.items] == [made[2], made[1]]
    second = await jobs.page(project, None, 2, first.next_position)
    assert [job.id for job in second.items] == [made[0]]
    assert second.next_position is None
    assert len((await jobs.page(project, JobStatus.QUEUED, 50)).items) == 3
    assert (await jobs.page(project, JobStatus.RUNNING, 50)).items == ()


async def test_only_so_many_may_wait(engine: AsyncEngine, jobs: PostgresJobStore, project: str) -> None:
    narrow = PostgresJobStore(engine, overall=3, per_project=2)
    made = [await add(narrow, project) for _ in range(2)]
    with pytest.raises(TooManyJobs, match="at most 2 jobs of the project"):
        await narrow.require_room(project)
    with pytest.raises(TooManyJobs):
        await add(narrow, project)
    await add(narrow, "another")
    with pytest.raises(Overloaded, match="at most 3 jobs to wait"):
        await add(narrow, "a third")
    # What was refused is nowhere.
    assert [await count(engine, table) for table in ("jobs", "job_bodies", "procrastinate.procrastinate_jobs")] == [
        3
    ] * 3
    await begin(narrow, project, made[0])
    await narrow.require_room("a third")


async def test_many_at_once_do_not_pass_the_limit(engine: AsyncEngine, jobs: PostgresJobStore, project: str) -> None:
    narrow = PostgresJobStore(engine, overall=50, per_project=5)
    outcomes = await asyncio.gather(*(add(narrow, project) for _ in range(12)), return_exceptions=True)
    assert sum(isinstance(one, UUID) for one in outcomes) == 5
    assert sum(isinstance(one, TooManyJobs) for one in outcomes) == 7


async def test_only_the_last_one_that_began_is_heard(jobs: PostgresJobStore, project: str) -> None:
    identifier = await add(jobs, project)
    first = await begin(jobs, project, identifier)
    second = await begin(jobs, project, identifier)
    assert (second.run, second.lost) == (2, 1)
    await jobs.note_progress(first, 0.9)
    await jobs.put_back(first)
    await jobs.end(first, JobEnd(status=JobStatus.FAILED, problem={"code": "x"}))
    job = await read(jobs, project, identifier)
    assert (job.status, job.progress, job.problem) == (JobStatus.RUNNING, None, None)
    await jobs.note_progress(second, 0.5)
    assert (await read(jobs, project, identifier)).progress == 0.5
    content = JobResult("application/json", b"[1]")
    await jobs.end(second, JobEnd(status=JobStatus.SUCCEEDED, result="/v1/x", content=content))
    job = await read(jobs, project, identifier)
    assert (job.status, job.progress, job.result) == (JobStatus.SUCCEEDED, 1.0, "/v1/x")
    assert job.started_at is not None
    assert job.finished_at is not None
    assert job.created_at <= job.finished_at
    assert await jobs.result(project, identifier) == content
    assert await jobs.result("another", identifier) is None
    assert [piece async for piece in jobs.body(project, identifier)] == []
    # An end is for good.
    await jobs.end(second, JobEnd(status=JobStatus.FAILED))
    assert await jobs.begin(project, identifier) is None
    assert await jobs.cancel(project, identifier) is None
    assert (await read(jobs, project, identifier)).status is JobStatus.SUCCEEDED


async def test_what_is_put_back_in_order_is_not_lost(jobs: PostgresJobStore, project: str) -> None:
    identifier = await add(jobs, project)
    first = await begin(jobs, project, identifier)
    await jobs.note_progress(first, 0.4)
    await jobs.put_back(first)
    job = await read(jobs, project, identifier)
    # Also for good, where it is cancelled now: what was done until then stays.
    assert (job.status, job.progress) == (JobStatus.QUEUED, 0.4)
    task = await begin(jobs, project, identifier)
    assert (task.run, task.lost) == (2, 0)
    # When it first began.
    assert (await read(jobs, project, identifier)).started_at == job.started_at
    await jobs.put_back(task, lost=True)
    assert (await begin(jobs, project, identifier)).lost == 1


async def test_a_job_that_waits_is_cancelled_at_once(engine: AsyncEngine, jobs: PostgresJobStore, project: str) -> None:
    identifier = await add(jobs, project)
    job = await jobs.cancel(project, identifier)
    assert job is not None
    assert job.status is JobStatus.CANCELLED
    assert job.started_at is None
    assert job.finished_at is not None
    assert await jobs.cancel(project, identifier) is None
    assert await count(engine, "procrastinate.procrastinate_jobs") == await count(engine, "job_bodies") == 0


async def test_a_job_that_is_done_before_it_is_stopped_is_not_cancelled(
    engine: AsyncEngine, jobs: PostgresJobStore, project: str
) -> None:
    identifier = await add(jobs, project)
    task = await begin(jobs, project, identifier)
    async with engine.begin() as connection:
        await connection.execute(text("SET LOCAL search_path TO procrastinate"))
        await connection.execute(text("UPDATE procrastinate_jobs SET status = 'doing'"))
    job = await jobs.cancel(project, identifier)
    assert job is not None
    assert job.status is JobStatus.RUNNING
    await jobs.end(task, JobEnd(status=JobStatus.SUCCEEDED))
    assert not await jobs.end_if_cancelled(project, identifier)
    assert (await read(jobs, project, identifier)).status is JobStatus.SUCCEEDED


async def test_jobs_that_ended_are_forgotten_after_a_while(
    engine: AsyncEngine, jobs: PostgresJobStore, project: str
) -> None:
    ended, goes_on = await add(jobs, project), await add(jobs, project)
    content = JobResult("text/plain", b"x")
    await jobs.end(await begin(jobs, project, ended), JobEnd(status=JobStatus.SUCCEEDED, content=content))
    await jobs.purge(3600.0)
    assert await jobs.result(project, ended) == content
    await jobs.purge(0.0)
    assert await jobs.get(project, ended) is None
    assert await count(engine, "job_results") == 0
    assert (await read(jobs, project, goes_on)).status is JobStatus.QUEUED


# --- those who work on them ------------------------------------------------------------------------------------------


class Hands:
    """Work that says what it was given, and goes on for as long as a test wants."""

    def __init__(self, jobs: PostgresJobStore) -> None:
        self.jobs = jobs
        self.begun: list[UUID] = []
        self.may_end = asyncio.Event()

    async def __call__(self, project: str, identifier: UUID) -> None:
        task = await self.jobs.begin(project, identifier)
        if task is None:
            return
        self.begun.append(identifier)
        try:
            await self.may_end.wait()
        except asyncio.CancelledError:
            await self.jobs.put_back(task)
            raise
        await self.jobs.end(task, JobEnd(status=JobStatus.SUCCEEDED))


@asynccontextmanager
async def at_work(url: str, hands: Any, jobs: PostgresJobStore, **settings: Any) -> AsyncIterator[None]:
    usual: dict[str, Any] = {"at_once": 2, "grace_seconds": 0.0, "lost_seconds": 1.0}
    worker = QueueWorker(url, JOBS, **(usual | settings))
    async with worker.at_work(work_on_jobs(jobs, hands, keep_seconds=3600.0)):
        yield


def has(jobs: PostgresJobStore, project: str, identifier: UUID, status: JobStatus) -> Callable[[], Awaitable[bool]]:
    async def look() -> bool:
        return (await read(jobs, project, identifier)).status is status

    return look


async def test_two_at_work_do_nothing_twice(
    engine: AsyncEngine, database_url: str, jobs: PostgresJobStore, project: str
) -> None:
    made = [await add(jobs, project) for _ in range(12)]
    first, second = Hands(jobs), Hands(jobs)
    first.may_end.set()
    second.may_end.set()

    async def all_done() -> bool:
        return all(job.status is JobStatus.SUCCEEDED for job in (await jobs.page(project, None, 50)).items)

    async with at_work(database_url, first, jobs), at_work(database_url, second, jobs):
        made += [await add(jobs, project) for _ in range(12)]
        await until(all_done)
    assert sorted(first.begun + second.begun) == sorted(made)
    assert await count(engine, "procrastinate.procrastinate_jobs") == 0


async def test_a_job_in_hand_is_cancelled(database_url: str, jobs: PostgresJobStore, project: str) -> None:
    identifier = await add(jobs, project)
    hands = Hands(jobs)
    async with at_work(database_url, hands, jobs):
        await until(has(jobs, project, identifier, JobStatus.RUNNING))
        job = await jobs.cancel(project, identifier)
        assert job is not None
        assert job.status is JobStatus.RUNNING
        await until(has(jobs, project, identifier, JobStatus.CANCELLED))
        # Its place is free again.
        hands.may_end.set()
        other = await add(jobs, project)
        await until(has(jobs, project, other, JobStatus.SUCCEEDED))
    assert hands.begun == [identifier, other]


async def test_a_job_that_is_cancelled_while_it_is_put_back_ends(
    engine: AsyncEngine, database_url: str, jobs: PostgresJobStore, project: str
) -> None:
    """The queue gives it up then, and tells nobody."""
    identifier = await add(jobs, project)
    await jobs.put_back(await begin(jobs, project, identifier))
    given_up = (
        "UPDATE procrastinate_jobs SET status = 'doing'",
        "SELECT procrastinate_cancel_job_v1(id, true, true) FROM procrastinate_jobs",
        "SELECT procrastinate_retry_job_v1(id, now(), NULL, NULL, NULL) FROM procrastinate_jobs",
    )
    for statement in given_up:
        async with engine.begin() as connection:
            await connection.execute(text("SET LOCAL search_path TO procrastinate, public"))
            await connection.execute(text(statement))
            await connection.execute(text("UPDATE jobs SET cancel_requested = true"))
    async with at_work(database_url, Hands(jobs), jobs):
        await until(has(jobs, project, identifier, JobStatus.CANCELLED))


async def test_at_a_stop_jobs_in_hand_wait_for_somebody_else(
    database_url: str, jobs: PostgresJobStore, project: str
) -> None:
    identifier = await add(jobs, project)
    hands = Hands(jobs)
    async with at_work(database_url, hands, jobs):
        await until(has(jobs, project, identifier, JobStatus.RUNNING))
    assert (await read(jobs, project, identifier)).status is JobStatus.QUEUED
    hands.may_end.set()
    async with at_work(database_url, hands, jobs):
        await until(has(jobs, project, identifier, JobStatus.SUCCEEDED))
    assert hands.begun == [identifier, identifier]


@pytest.mark.parametrize("seconds", [0.0, 0.002])
async def test_a_stop_while_it_connects_leaves_nothing_behind(
    database_url: str, jobs: PostgresJobStore, seconds: float
) -> None:
    """What connects can lose a cancellation, and would hold up the end of the process."""
    before = asyncio.all_tasks()
    async with at_work(database_url, Hands(jobs), jobs):
        while not any(task.get_name().startswith("pool-") for task in asyncio.all_tasks() - before):
            await asyncio.sleep(0)
        await asyncio.sleep(seconds)
    assert not asyncio.all_tasks() - before


async def test_at_a_stop_jobs_may_be_finished(database_url: str, jobs: PostgresJobStore, project: str) -> None:
    identifier = await add(jobs, project)
    hands = Hands(jobs)
    async with at_work(database_url, hands, jobs, grace_seconds=30.0):
        await until(has(jobs, project, identifier, JobStatus.RUNNING))
        asyncio.get_running_loop().call_later(0.3, hands.may_end.set)
    assert (await read(jobs, project, identifier)).status is JobStatus.SUCCEEDED


async def test_whoever_is_not_heard_of_is_taken_for_lost(
    engine: AsyncEngine, database_url: str, jobs: PostgresJobStore, project: str
) -> None:
    """As a killed process leaves it: the job in hand, and no more signs of life."""
    lost, to_be_cancelled = await add(jobs, project), await add(jobs, project)
    for identifier in (lost, to_be_cancelled):
        await begin(jobs, project, identifier)
    taken = text(
        "WITH gone AS (INSERT INTO procrastinate.procrastinate_workers (last_heartbeat) "
        "VALUES (now() - interval '1 hour') RETURNING id) "
        "UPDATE procrastinate.procrastinate_jobs SET status = 'doing', worker_id = (SELECT id FROM gone)"
    )
    async with engine.begin() as connection:
        # The functions of the queue look for their tables there.
        await connection.execute(text("SET LOCAL search_path TO procrastinate"))
        await connection.execute(taken)
    assert await jobs.cancel(project, to_be_cancelled) is not None
    hands = Hands(jobs)
    hands.may_end.set()
    async with at_work(database_url, hands, jobs):
        await until(has(jobs, project, lost, JobStatus.SUCCEEDED))
        await until(has(jobs, project, to_be_cancelled, JobStatus.CANCELLED))
    assert hands.begun == [lost]


async def test_a_fault_lets_the_job_wait(database_url: str, jobs: PostgresJobStore, project: str) -> None:
    identifier = await add(jobs, project)
    hands = Hands(jobs)
    hands.may_end.set()
    faults = [RuntimeError("a fault of ours")]

    async def faulty(project: str, identifier: UUID) -> None:
        if faults:
            raise faults.pop()
        await hands(project, identifier)

    async with at_work(database_url, faulty, jobs):
        await until(has(jobs, project, identifier, JobStatus.SUCCEEDED))


async def test_a_fault_in_tidying_up_is_not_in_the_way(
    database_url: str, jobs: PostgresJobStore, project: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Work goes on, and ends when it is to end."""

    async def faulty(_: PostgresJobStore, seconds: float) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(PostgresJobStore, "purge", faulty)
    identifier = await add(jobs, project)
    hands = Hands(jobs)
    hands.may_end.set()
    async with asyncio.timeout(30), at_work(database_url, hands, jobs):
        await until(has(jobs, project, identifier, JobStatus.SUCCEEDED))


async def test_a_database_that_went_away_is_waited_for(
    engine: AsyncEngine, database_url: str, template_database: Template, jobs: PostgresJobStore, project: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    """Not longer than it is away, whatever the pauses between tries to connect have grown to."""
    monkeypatch.setattr("app.store.queue._RECONNECT_SECONDS", 0.1)
    monkeypatch.setattr(AttemptWithBackoff, "INITIAL_DELAY", 0.05)
    monkeypatch.setattr(AttemptWithBackoff, "DELAY_BACKOFF", 10_000.0)
    hands = Hands(jobs)
    hands.may_end.set()
    name = database_url.rpartition("/")[2].partition("?")[0]
    cut = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'prevail-queue'")
    async with at_work(database_url, hands, jobs):
        await until(has(jobs, project, await add(jobs, project), JobStatus.SUCCEEDED))
        template_database.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS false')
        async with engine.begin() as connection:
            assert (await connection.execute(cut)).all()
        await asyncio.sleep(0.3)
        template_database.execute(f'ALTER DATABASE "{name}" ALLOW_CONNECTIONS true')
        await until(has(jobs, project, await add(jobs, project), JobStatus.SUCCEEDED))


async def test_jobs_are_taken_for_whoever_acts(jobs: PostgresJobStore, project: str) -> None:
    job = await jobs.add(project, REQUEST, BytesIO(b"{}"))
    task = await begin(jobs, project, job.id)
    assert task.actor == Actor("local")
    assert task.makes != job.id


def test_urls_for_the_driver_of_the_queue() -> None:
    ours = "postgresql+asyncpg://u:p%40@h:5433/d?ssl=require&prepared_statement_cache_size=0&target_session_attrs=any"
    assert libpq_url(ours) == "postgresql://u:p%40@h:5433/d?sslmode=require&target_session_attrs=any"
    socket = "postgresql+asyncpg:///d?host=%2Ftmp%2Fx&port=5"
    assert libpq_url(socket) == "postgresql:///d?host=%2Ftmp%2Fx&port=5"


async def test_a_state_that_preconditions_named_is_held_until_the_change(database_url: str, project: str) -> None:
    """With one connection for everything, and against who works on the job, too, who takes no turns."""
    engine = create_engine(database_url, pool_size=1, connect_timeout=2)
    jobs = PostgresJobStore(engine, overall=50, per_project=30)
    identifier = await add(jobs, project)
    task = await begin(jobs, project, identifier)

    async def progress() -> None:
        await jobs.note_progress(task, 0.5)

    begin_change(progress)
    with pytest.raises(PreconditionFailed):
        await jobs.cancel(project, identifier)
    assert not await jobs.end_if_cancelled(project, identifier)

    async def nothing() -> None:
        await read(jobs, project, identifier)

    change = begin_change(nothing)
    assert await jobs.cancel(project, identifier) is not None
    assert change.stands is not None
    assert await change.stands()
    await jobs.purge(0)
    assert not await change.stands()
    await engine.dispose()
