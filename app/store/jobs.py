"""Jobs in Postgres: the port `app.services.ports.JobStore`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import asdict
from datetime import datetime
from http import HTTPStatus
from io import SEEK_END
from itertools import count
from typing import Any, BinaryIO, Final
from uuid import UUID

from sqlalchemy import ColumnElement, case, delete, func, insert, literal, select, text, update
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.errors import Overloaded, TooManyJobs
from app.domain.evaluation import Page
from app.domain.identifiers import new_id, time_of
from app.domain.operations import (
    Actor,
    Change,
    Event,
    Job,
    JobEnd,
    JobResult,
    JobStatus,
    KeptRequest,
    Kind,
    Task,
    WebhookEvent,
)
from app.store import queue
from app.store.audit import note, note_result, who
from app.store.engine import changing_row, made_of, read_one, read_page, reading, same, writing
from app.store.queue import Work
from app.store.tables import job_bodies, job_results, jobs
from app.store.webhooks import announce

_PIECE: Final = 1024 * 1024
RETRY_SECONDS: Final = 10
# Who counts what waits has to be alone until he has added to it. Any fixed number of our own will do.
_COUNTING_LOCK: Final = 7_313_025_762
_OPEN: Final = jobs.c.finished_at.is_(None)


class PostgresJobStore:
    """The memory of jobs."""

    def __init__(self, engine: AsyncEngine, *, overall: int, per_project: int) -> None:
        """Take how many jobs may wait."""
        self._engine = engine
        self._overall, self._per_project = overall, per_project

    async def require_room(self, project: str) -> None:
        async with reading(self._engine) as connection:
            await self._require(connection, project, more=1)

    async def _require(self, connection: AsyncConnection, project: str, *, more: int) -> None:
        queued = select(func.count()).where(*same(jobs, project=project, status=JobStatus.QUEUED))
        if (await connection.scalar(queued) or 0) + more > self._per_project:
            detail = f"expected at most {self._per_project} jobs of the project to wait; nothing was saved"
            raise TooManyJobs(detail, retry_after=RETRY_SECONDS)
        # Of all projects, which a statement that is compiled may not ask.
        overall = await connection.scalar(text("SELECT count(*) FROM jobs WHERE status = 'queued'"))
        if (overall or 0) + more > self._overall:
            detail = f"expected at most {self._overall} jobs to wait; nothing was saved"
            raise Overloaded(detail, retry_after=RETRY_SECONDS)

    async def add(self, project: str, request: KeptRequest, body: BinaryIO) -> Job:
        identifier, size = new_id(), body.seek(0, SEEK_END)
        body.seek(0)
        async with writing(self._engine, size) as connection:
            queue_id = await queue.add(connection, queue.JOBS, {"project": project, "identifier": identifier})
            row = {"id": identifier, "project": project, "queue_id": queue_id, **who(), **asdict(request)}
            # What it makes has another id, so that nobody takes one for the other.
            begin = {"makes": new_id(), "status": JobStatus.QUEUED, "progress": 0.0}
            await connection.execute(
                insert(jobs).values(row | begin | {"runs": 0, "lost": 0, "cancel_requested": False})
            )
            place = 0
            while piece := body.read(_PIECE):
                row = {"project": project, "job_id": identifier, "place": place, "content": piece}
                await connection.execute(insert(job_bodies).values(row))
                place += 1
            accepted = HTTPStatus.ACCEPTED
            await note_result(connection, project, Change.CREATED, Kind.JOB, identifier, status=accepted)
            await connection.execute(select(func.pg_advisory_xact_lock(_COUNTING_LOCK)))
            # This one is among them.
            await self._require(connection, project, more=0)
            return await _read(connection, project, identifier)

    async def get(self, project: str, identifier: UUID) -> Job | None:
        return await read_one(self._engine, select(jobs).where(*_mine(project, identifier)), Job)

    async def page(
        self, project: str, status: JobStatus | None, limit: int, before: UUID | None = None
    ) -> Page[Job, UUID]:
        wanted = select(jobs).where(jobs.c.project == project)
        if status is not None:
            wanted = wanted.where(jobs.c.status == status)
        return await read_page(self._engine, wanted, jobs.c.id, limit, before, Job)

    async def result(self, project: str, identifier: UUID) -> JobResult | None:
        wanted = select(job_results).where(*same(job_results, project=project, job_id=identifier))
        return await read_one(self._engine, wanted, JobResult)

    async def cancel(self, project: str, identifier: UUID) -> Job | None:
        wanted = select(jobs.c.queue_id).where(*_mine(project, identifier), _OPEN).with_for_update()
        async with changing_row(self._engine, jobs, project=project, id=identifier) as connection:
            queue_id = await connection.scalar(wanted)
            if queue_id is None:
                return None
            await note(connection, project, Change.CANCELLED, Kind.JOB, identifier)
            if await queue.cancel(connection, queue_id):
                # Nobody works on it.
                await _end(connection, project, identifier, JobEnd(status=JobStatus.CANCELLED))
            else:
                asked = update(jobs).where(*_mine(project, identifier)).values(cancel_requested=True)
                await connection.execute(asked)
            return await _read(connection, project, identifier)

    async def end_if_cancelled(self, project: str, identifier: UUID) -> bool:
        """End a job that was to be cancelled while somebody worked on it; False when it was not."""
        asked = select(jobs.c.id).where(*_mine(project, identifier), _OPEN, jobs.c.cancel_requested).with_for_update()
        async with writing(self._engine) as connection:
            if await connection.scalar(asked) is None:
                return False
            await _end(connection, project, identifier, JobEnd(status=JobStatus.CANCELLED))
        return True

    async def begin(self, project: str, identifier: UUID) -> Task | None:
        if await self.end_if_cancelled(project, identifier):
            return None
        taken = update(jobs).where(*_mine(project, identifier), _OPEN)
        taken = taken.values(
            status=JobStatus.RUNNING,
            started_at=func.coalesce(jobs.c.started_at, _from_creation(identifier, func.now())),
            runs=jobs.c.runs + 1,
            # Until it says so itself.
            progress=None,
            # Whoever had it before never said how that went.
            lost=jobs.c.lost + case((jobs.c.status == JobStatus.RUNNING, 1), else_=0),
        )
        async with writing(self._engine) as connection:
            row = (await connection.execute(taken.returning(jobs))).one_or_none()
        if row is None:
            return None
        actor = Actor(row.actor, row.key_id, row.request_id)
        return made_of(Task, row, actor=actor, request=made_of(KeptRequest, row), run=row.runs)

    async def body(self, project: str, identifier: UUID) -> AsyncIterator[bytes]:
        for place in count():
            here = same(job_bodies, project=project, job_id=identifier, place=place)
            async with reading(self._engine) as connection:
                piece = await connection.scalar(select(job_bodies.c.content).where(*here))
            if piece is None:
                return
            yield piece

    async def note_progress(self, task: Task, share: float) -> None:
        async with writing(self._engine) as connection:
            await connection.execute(update(jobs).where(*_held(task)).values(progress=share))

    async def put_back(self, task: Task, *, lost: bool = False) -> None:
        # The progress stays: a job that is cancelled while it waits keeps it.
        queued = {"status": JobStatus.QUEUED, "lost": jobs.c.lost + int(lost)}
        async with writing(self._engine) as connection:
            await connection.execute(update(jobs).where(*_held(task)).values(queued))

    async def end(self, task: Task, end: JobEnd) -> None:
        size = 0 if end.content is None else len(end.content.content)
        held = select(jobs.c.id).where(*_held(task)).with_for_update()
        async with writing(self._engine, size) as connection:
            if await connection.scalar(held) is not None:
                await _end(connection, task.project, task.id, end)

    async def purge(self, seconds: float) -> None:
        async with writing(self._engine) as connection:
            await connection.execute(
                text("DELETE FROM jobs WHERE finished_at < now() - make_interval(secs => :seconds)"),
                {"seconds": seconds},
            )


def work_on_jobs(store: PostgresJobStore, run: Callable[[str, UUID], Awaitable[None]], *, keep_seconds: float) -> Work:
    """Return the work of the job queue; ended jobs are deleted after ``keep_seconds``."""

    def job(given: queue.Given) -> tuple[str, UUID]:
        return given["project"], UUID(given["identifier"])

    return Work(
        do=lambda given: run(*job(given)),
        end_cancelled=lambda given: store.end_if_cancelled(*job(given)),
        forget=lambda: store.purge(keep_seconds),
    )


def _mine(project: str, identifier: UUID) -> list[ColumnElement[bool]]:
    return same(jobs, project=project, id=identifier)


def _from_creation(identifier: UUID, moment: ColumnElement[datetime]) -> ColumnElement[datetime]:
    """Return `moment`, or that of the job's id if it is later: clocks are set back, and ids are not."""
    return func.greatest(moment, literal(time_of(identifier), jobs.c.started_at.type))


def _held(task: Task) -> list[ColumnElement[bool]]:
    """The row of a job, as long as nobody else has begun to work on it and it has not ended."""
    return [*same(jobs, project=task.project, id=task.id, status=JobStatus.RUNNING, runs=task.run), _OPEN]


async def _end(connection: AsyncConnection, project: str, identifier: UUID, end: JobEnd) -> None:
    changed: dict[str, Any] = {
        "status": end.status,
        "finished_at": func.greatest(_from_creation(identifier, func.clock_timestamp()), jobs.c.started_at),
        "result": end.result,
        "problem": None if end.problem is None else dict(end.problem),
    }
    if end.status is JobStatus.SUCCEEDED:
        changed["progress"] = 1.0
    ended = update(jobs).where(*_mine(project, identifier)).values(changed)
    row = (await connection.execute(ended.returning(jobs.c.kind, jobs.c.finished_at))).one()
    await connection.execute(delete(job_bodies).where(*same(job_bodies, project=project, job_id=identifier)))
    if end.content is not None:
        kept = {"media_type": end.content.media_type, "content": end.content.content}
        await connection.execute(insert(job_results).values({"project": project, "job_id": identifier, **kept}))
    data = {
        "project": project,
        "job": {"id": identifier, "url": f"/v1/jobs/{identifier}"},
        "kind": row.kind,
        "status": end.status,
        "result": end.result,
        "problem": end.problem,
    }
    said = f"Job {identifier} ({row.kind}): {end.status}."
    happening = WebhookEvent(event=Event.JOB_FINISHED, id=identifier, at=row.finished_at, text=said, data=data)
    await announce(connection, project, happening)


async def _read(connection: AsyncConnection, project: str, identifier: UUID) -> Job:
    return made_of(Job, (await connection.execute(select(jobs).where(*_mine(project, identifier)))).one())
