"""Jobs: requests that are accepted now and carried out later."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Final, Protocol
from uuid import UUID

from app.domain.errors import DomainError, JobEnded, JobLost, NotFound, StoreError
from app.domain.operations import Job, JobEnd, JobResult, Task, Used
from app.services.ports import JobStore, Waits
from app.services.present import act_as, begin_tally, make_as
from app.services.processes.worker import tell_progress

# Seconds after which whoever waits for a job looks again.
_LOOKS_AGAIN: Final = 0.25


@dataclass(frozen=True, slots=True)
class JobService:
    """Use cases of jobs. Everything happens within one project."""

    store: JobStore

    async def read(self, project: str, identifier: UUID, seconds: float = 0.0) -> Job:
        """One job. With ``seconds``, as soon as it has ended, or after so long."""
        end = time.monotonic() + seconds
        while True:
            job = NotFound.unless(await self.store.get(project, identifier), f"job {identifier}")
            if job.status.ended or time.monotonic() >= end:
                return job
            await asyncio.sleep(_LOOKS_AGAIN)

    async def result(self, project: str, identifier: UUID) -> JobResult:
        """Return a result that is stored with its job and nowhere else.

        Raises:
            NotFound: there is no such job, or it has no such result.
        """
        result = await self.store.result(project, identifier)
        if result is None:
            job = await self.read(project, identifier)
            other = "" if job.result is None else f": its result is {job.result}"
            raise NotFound(f"the job {identifier} is {job.status.value} and keeps no result here{other}")
        return result

    async def cancel(self, project: str, identifier: UUID) -> Job:
        """Cancel a job. One that waits has ended by this; of one that is worked on the end follows shortly.

        Raises:
            NotFound: there is no such job.
            JobEnded: it has ended already.
        """
        job = await self.store.cancel(project, identifier)
        if job is None:
            ended = await self.read(project, identifier)
            raise JobEnded(f"expected a job that is queued or running, {identifier} is {ended.status.value}")
        return job


# Between two notes of how far a job is.
_NOTE_SECONDS: Final = 0.5
_AGAIN_SECONDS: Final = 5.0
# Between two tries to tell the database what became of a job.
_SAYS_AGAIN: Final = 1.0
# Of a job that has not ended: all is done when its result is kept.
_MOST: Final = 0.99
# What passes by itself, and costs a job nothing but time.
_PASSING: Final = frozenset({"overloaded", "database_unavailable", "no_space"})
_LOST: Final = "process_lost"


class Requests(Protocol):
    """Carries out kept requests."""

    async def answer(self, task: Task, body: AsyncIterator[bytes]) -> JobEnd:
        """Carry out the request and return its answer."""

    def refuse(self, task: Task, error: DomainError) -> JobEnd:
        """Return the answer of a request that ended with this error."""


NoteUse = Callable[[str, Used], None]


class JobRunner:
    """Works on jobs, whatever their kind: a new kind is a new request."""

    def __init__(self, store: JobStore, requests: Requests, *, attempts: int, note: NoteUse) -> None:
        """``attempts`` is how often a job may lose its worker before it is given up; ``note`` is told what it used."""
        self._note = note
        self._store = store
        self._requests = requests
        self._attempts = attempts

    async def run(self, project: str, identifier: UUID) -> None:
        """Work on a job until it has ended. In a task of its own, which may be cancelled: then the job waits again.

        Raises:
            Waits: it could not be done now.
        """
        task = await self._store.begin(project, identifier)
        if task is None:
            return
        if task.lost >= self._attempts:
            detail = f"its worker ended before the job was done, {task.lost} times; it is not tried again"
            await self._say(partial(self._store.end, task, self._requests.refuse(task, JobLost(detail))))
            return
        try:
            answered = await self._answered(task)
        except asyncio.CancelledError:
            with contextlib.suppress(StoreError):
                await self._store.put_back(task)
            raise
        code = None if answered.problem is None else answered.problem["code"]
        if code in _PASSING:
            await self._say(partial(self._store.put_back, task))
            raise Waits(_AGAIN_SECONDS)
        if code == _LOST and task.lost + 1 < self._attempts:
            await self._say(partial(self._store.put_back, task, lost=True))
            raise Waits(0.0)
        await self._say(partial(self._store.end, task, answered))

    async def _answered(self, task: Task) -> JobEnd:
        act_as(task.actor, task.project)
        make_as(task.makes)
        progress = _Progress(self._store, task)
        tell_progress(progress)
        tally = begin_tally()
        try:
            return await self._requests.answer(task, self._store.body(task.project, task.id))
        finally:
            self._note(task.project, Used(tally.evaluations, 0, tally.compute))
            await progress.close()

    @staticmethod
    async def _say(said: Callable[[], Awaitable[None]]) -> None:
        """Say what became of a job, once the database can hear it: else it would be taken for lost."""
        while True:
            try:
                return await said()
            except StoreError:
                await asyncio.sleep(_SAYS_AGAIN)


class _Progress:
    """Notes how far a job is, not more often than anybody would look."""

    def __init__(self, store: JobStore, task: Task) -> None:
        self._store, self._task = store, task
        self._share = -1.0
        self._noting: asyncio.Task[None] | None = None
        self._closed = False

    def __call__(self, share: float) -> None:
        self._share = min(share, _MOST)
        # A process that is being ended may say something after the end.
        if self._noting is None and not self._closed:
            self._noting = asyncio.create_task(self._note())

    async def _note(self) -> None:
        noted = -1.0
        while True:
            if self._share > noted:
                noted = self._share
                with contextlib.suppress(StoreError):
                    await self._store.note_progress(self._task, noted)
            await asyncio.sleep(_NOTE_SECONDS)

    async def close(self) -> None:
        """Stop the notes of progress, before the end is noted."""
        self._closed = True
        if self._noting is not None:
            self._noting.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._noting
