"""Jobs as a caller knows them: taken, read, listed, cancelled."""

from typing import BinaryIO
from uuid import UUID

from app.domain.errors import JobEnded, NotFound
from app.domain.evaluation import Page
from app.domain.identifiers import new_id
from app.domain.operations.jobs import Job, JobResult, KeptRequest, NewJob
from app.services.acting import actor
from app.services.ports.requests import JobStore


class JobService:
    """Use cases of jobs. Everything happens within one project."""

    def __init__(self, store: JobStore) -> None:
        self._store = store

    async def require_room(self, project: str) -> None:
        """Go on only when one more may wait: asked before a body is read.

        Raises:
            TooManyJobs: too many of the project wait.
            Overloaded: too many of all do.
        """
        await self._store.require_room(project)

    async def take(self, project: str, request: KeptRequest, body: BinaryIO) -> Job:
        """Keep a request and answer it later, for whoever acts now. Raises as `require_room`."""
        # What it makes has another id, so that nobody takes one for the other.
        new = NewJob(id=new_id(), makes=new_id(), actor=actor(), request=request)
        return await self._store.add(project, new, body)

    async def read(self, project: str, identifier: UUID) -> Job:
        """One job."""
        job = await self._store.get(project, identifier)
        if job is None:
            raise _missing(identifier)
        return job

    async def page(self, project: str, limit: int, before: UUID | None) -> Page[Job, UUID]:
        """The jobs of a project, latest first."""
        return await self._store.page(project, limit, before)

    async def result(self, project: str, identifier: UUID) -> JobResult:
        """What a job computed and nothing else keeps.

        Raises:
            NotFound: there is no such job, or it has no such result.
        """
        result = await self._store.result(project, identifier)
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
        job = await self._store.cancel(project, identifier)
        if job is None:
            ended = await self.read(project, identifier)
            raise JobEnded(f"expected a job that is queued or running, {identifier} is {ended.status.value}")
        return job


def _missing(identifier: UUID) -> NotFound:
    return NotFound(f"there is no job {identifier}")
