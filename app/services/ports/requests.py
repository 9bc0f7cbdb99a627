"""The memory of requests that are repeated or answered later."""

from collections.abc import AsyncIterator, Sequence
from datetime import timedelta
from typing import BinaryIO, Protocol
from uuid import UUID

from app.domain.evaluation import Page
from app.domain.operations.idempotency import ClaimOutcome, KeptResult
from app.domain.operations.jobs import Job, JobEnd, JobResult, NewJob, Task


class KeyTakenError(Exception):
    """Something was kept already under the key of the request. Nothing of this one was kept."""


class IdempotencyStore(Protocol):
    """The memory of keys of requests. What is kept under them is written in the transaction that keeps it."""

    async def claim(self, project: str, key: str, fingerprint: bytes, claim: UUID, lease: timedelta) -> ClaimOutcome:
        """Claim a key, unless somebody has it or the request was kept already."""
        ...

    async def renew(self, project: str, key: str, claim: UUID, lease: timedelta) -> None:
        """Let a claim last for another lease."""
        ...

    async def release(self, project: str, key: str, claim: UUID) -> None:
        """End a claim."""
        ...

    async def results(self, project: str, key: str) -> Sequence[KeptResult]:
        """Return what was kept under a key and has not expired."""
        ...

    async def purge(self) -> None:
        """Forget what has expired, in all projects."""
        ...


class JobStore(Protocol):
    """The memory of jobs, and the queue in which they wait.

    Of those who work on one job only the last that began is listened to: what others say of it changes nothing.
    """

    async def require_room(self, project: str) -> None:
        """Go on only when one more job may wait.

        Raises:
            TooManyJobs: too many of the project do.
            Overloaded: too many of all do.
        """
        ...

    async def add(self, project: str, job: NewJob, body: BinaryIO) -> Job:
        """Keep a job with the body of its request, and put it into the queue, all or nothing. Raises as above too."""
        ...

    async def get(self, project: str, identifier: UUID) -> Job | None:
        """Return a job of the project."""
        ...

    async def page(self, project: str, limit: int, before: UUID | None = None) -> Page[Job, UUID]:
        """List the jobs of the project, latest first."""
        ...

    async def result(self, project: str, identifier: UUID) -> JobResult | None:
        """Return what was computed, where it is kept with the job."""
        ...

    async def cancel(self, project: str, identifier: UUID) -> Job | None:
        """End a job that waits, or tell its worker to stop; None when the project has no such job under way."""
        ...

    async def begin(self, project: str, identifier: UUID) -> Task | None:
        """Take a job in hand; None when it has ended, which one that was cancelled does by this."""
        ...

    def body(self, project: str, identifier: UUID) -> AsyncIterator[bytes]:
        """Read the body of its request, piece by piece."""
        ...

    async def note_progress(self, task: Task, share: float) -> None:
        """Say how far it is."""
        ...

    async def put_back(self, task: Task, *, lost: bool = False) -> None:
        """Let it wait again; ``lost`` when it was lost with the process that it was computed in."""
        ...

    async def end(self, task: Task, end: JobEnd) -> None:
        """Say how it ended; from now on it has ended for good, and its request is forgotten."""
        ...
