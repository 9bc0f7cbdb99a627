"""Requests that are answered later: jobs."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from app.domain.operations.access import Actor


class JobStatus(StrEnum):
    """How far a job is. The last three are for good."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Is it for good?"""
        return self not in (JobStatus.QUEUED, JobStatus.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A request that is answered later.

    Attributes:
        kind: The operation that was asked for, as `/openapi.json` names it.
        progress: The share of the work that is done, from 0 to 1: of the items of a batch, of the metrics of a
            comparison, of the rules of a gate, of the files of data by reference. `null` while steps cannot be counted.
        started_at: When work on it first began; `null` before.
        finished_at: When it ended, however it ended; `null` before.
        result: The address of what was made or computed; `null` unless it succeeded.
        problem: What the request would have been answered, as `application/problem+json`; `null` unless it failed.
    """

    id: UUID
    kind: str
    status: JobStatus
    progress: float | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    result: str | None
    problem: Mapping[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptRequest:
    """A request as it is kept until its job has ended; its body is kept apart.

    Attributes:
        kind: The operation.
        headers: Those that decide about the answer.
    """

    kind: str
    method: str
    path: str
    query: str
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class NewJob:
    """A job that is to be done.

    Attributes:
        makes: The id of what it makes: whoever does the work again makes no second one.
    """

    id: UUID
    makes: UUID
    actor: Actor
    request: KeptRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """A job in the hand of somebody who works on it.

    Attributes:
        run: How often work on it has begun, this time included. Only the last one may say how it ended.
        lost: How often whoever worked on it was never heard of again.
    """

    id: UUID
    project: str
    makes: UUID
    actor: Actor
    request: KeptRequest
    run: int
    lost: int


@dataclass(frozen=True, slots=True)
class JobResult:
    """What was computed and is kept with its job."""

    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """How a job ended.

    Attributes:
        result: The address of what was made.
        content: What was computed, where nothing was made.
        problem: What went wrong.
    """

    status: JobStatus
    result: str | None = None
    content: JobResult | None = None
    problem: Mapping[str, Any] | None = None
