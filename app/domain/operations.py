"""Records of operation: API keys, repeated requests, jobs, usage, webhooks."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Final, Self
from uuid import UUID

from app.domain.identifiers import time_of
from app.domain.members import HIDDEN, LEFT_OUT, SPREAD

DEFAULT_PROJECT: Final = "default"


class Scope(StrEnum):
    """Rights of a key; each scope includes those before it."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


_ORDER: Final = tuple(Scope)


def key_prefix(identifier: UUID) -> str:
    """Return the beginning of a key, which identifies it and is no secret."""
    return f"pv_{identifier.hex}"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyFacts:
    """An API key; its secret is shown once, when it is made.

    Attributes:
        project: The project it acts in.
        prefix: How the key begins.
        expires_at: `null` when it never does.
        revoked_at: `null` where it was not revoked.
        last_used_at: Accurate to some seconds; `null` when it was never used.
        rate: How often it may be used; `null` is the rate of the service.
        daily_quota: Requests per day (UTC); `null` is no limit.
        digest: SHA-256 of the secret.
        previous_digest: That of the secret before the last rotation, good until `previous_until`.
        used_today: Requests of this day (UTC) that were counted when the key was read.
    """

    id: UUID
    name: str
    project: str
    scopes: Sequence[Scope]
    prefix: str = field(init=False)
    created_at: datetime = field(init=False)
    expires_at: datetime | None = None
    revoked_at: datetime | None = None
    last_used_at: datetime | None = None
    rate: str | None = None
    daily_quota: int | None = None
    digest: bytes = field(metadata=HIDDEN, repr=False)
    previous_digest: bytes | None = field(default=None, metadata=HIDDEN, repr=False)
    previous_until: datetime | None = field(default=None, metadata=HIDDEN)
    used_today: int = field(default=0, metadata=HIDDEN)

    def __post_init__(self) -> None:
        # They follow from the id.
        object.__setattr__(self, "prefix", key_prefix(self.id))
        object.__setattr__(self, "created_at", time_of(self.id))

    def is_good_at(self, moment: datetime) -> bool:
        """Neither revoked nor expired."""
        return self.revoked_at is None and (self.expires_at is None or moment < self.expires_at)

    def allows(self, scope: Scope) -> bool:
        """Has it this scope, or one that includes it?"""
        return any(_ORDER.index(own) >= _ORDER.index(scope) for own in self.scopes)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyMade:
    """An API key with its secret.

    Attributes:
        key: What goes into the header `Authorization`, after `Bearer`. It is not stored, and shown only in this answer.
    """

    key: str
    facts: KeyFacts = field(metadata=SPREAD)


@dataclass(frozen=True, slots=True)
class Actor:
    """The key, or command, that changes something.

    Attributes:
        name: Of the key when it was used; `local` where no key was needed, `command line`.
        key: Its id; None where there was none.
        request: Id of the request.
    """

    name: str
    key: UUID | None = None
    request: str | None = None


class Change(StrEnum):
    """Changes that the audit log has."""

    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    ROTATED = "rotated"
    REVOKED = "revoked"
    CANCELLED = "cancelled"
    RETRIED = "retried"


class Kind(StrEnum):
    """Objects of the audit log and of stored results."""

    EVALUATION = "evaluation"
    COMPARISON = "comparison"
    GATE = "gate"
    CHECK = "check"
    KEY = "key"
    JOB = "job"
    WEBHOOK = "webhook"
    DELIVERY = "delivery"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditEntry:
    """A change in the audit log: its time, actor, kind and object.

    Attributes:
        actor: Name of the key when it was used; `local` where none was needed, `command line` for a command.
        key: Id of the key.
        object: Id of what was changed; the name of a gate.
        request_id: Id of the request, as in the log.
    """

    id: UUID
    at: datetime
    actor: str
    key: UUID | None = field(metadata=LEFT_OUT)
    action: Change
    kind: Kind
    object: str
    request_id: str | None = field(metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResult:
    """The stored result of a request, or of one item of it.

    Attributes:
        item: 0 is the request as a whole; an item of a batch counts from 1.
        fingerprint: Of the request: another one with the same key is refused.
        kind: Of the object that was saved.
        object: Its id; the version of a gate; the name of a webhook, or nothing where its secret was shown once.
        status: As it was answered.
    """

    item: int
    fingerprint: bytes
    kind: Kind
    object: str
    status: int

    @property
    def identifier(self) -> UUID:
        """The id of the object, for all kinds but gates."""
        return UUID(self.object)


class JobStatus(StrEnum):
    """State of a job. The last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """True for the final states."""
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
class Task:
    """A job in the hand of somebody who works on it.

    Attributes:
        makes: The id of what it makes: whoever does the work again makes no second one.
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
    """The body of a job's result, stored with the job."""

    media_type: str
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnd:
    """The final state of a job.

    Attributes:
        result: The address of what was made.
        content: What was computed, where nothing was made.
        problem: What went wrong.
    """

    status: JobStatus
    result: str | None = None
    content: JobResult | None = None
    problem: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Used:
    """Amount of each quota that was used.

    Attributes:
        bytes: Of bodies with evaluations that were saved.
        compute_seconds: Of arithmetic, of requests and of jobs.
    """

    evaluations: int = 0
    bytes: int = 0
    compute_seconds: float = 0.0

    def __add__(self, other: "Used") -> "Used":
        return Used(
            self.evaluations + other.evaluations,
            self.bytes + other.bytes,
            self.compute_seconds + other.compute_seconds,
        )


@dataclass(frozen=True, slots=True)
class QuotaUse:
    """Used part of a quota.

    Attributes:
        limit: For each day; `null` is no limit.
    """

    used: float
    limit: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Use of a project today (UTC), accurate to some seconds.

    Attributes:
        since: When the day began.
        until: When it ends and quotas are free again.
        bytes: Of bodies with evaluations that were saved.
        compute_seconds: Of arithmetic, of requests and of jobs.
    """

    since: datetime
    until: datetime
    evaluations: QuotaUse
    bytes: QuotaUse
    compute_seconds: QuotaUse


class Event(StrEnum):
    """Events that webhooks are told of; all but the test can be subscribed to."""

    EVALUATION_CREATED = "evaluation.created"
    GATE_CHECKED = "gate.checked"
    JOB_FINISHED = "job.finished"
    MODEL_CHANGED = "model.changed"
    WEBHOOK_TEST = "webhook.test"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookEvent:
    """An event, as webhooks receive it.

    Attributes:
        id: Of what it happened to, or made of that, the same each time: receivers know by it what they were told
            already.
        text: What happened in a sentence, for people.
        data: What is told of it, as JSON.
    """

    event: Event
    id: UUID
    at: datetime
    text: str
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFacts:
    """A webhook. Its secret is shown when it is made, and only then.

    Attributes:
        url: The address that events are sent to, by POST.
        events: Which events are sent.
        secret: `whsec_…`, with which what is sent is signed.
    """

    name: str
    url: str
    events: Sequence[Event]
    created_at: datetime
    secret: str = field(metadata=HIDDEN, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookPut:
    """A webhook that was made or changed.

    Attributes:
        secret: The secret that messages are signed with, `whsec_…`; only where the service made it.
    """

    facts: WebhookFacts = field(metadata=SPREAD)
    secret: str | None = field(default=None, metadata=LEFT_OUT)


class DeliveryStatus(StrEnum):
    """The state of a delivery."""

    PENDING = "pending"
    DELIVERED = "delivered"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One message of a webhook, about one event.

    Attributes:
        id: What is sent as `webhook-id`: that of the evaluation, the check or the job.
        status: `pending`: it will be sent, or sent again. `failed`: it will not be sent again unless that is asked for.
        attempts: Attempts since the delivery was made or last asked for again.
        next_attempt_at: `null` when there will be none.
        response_status: What the last attempt was answered; `null` when nothing came.
        error: Why the last attempt failed; `null` when it did not.
    """

    id: UUID
    event: Event
    status: DeliveryStatus
    created_at: datetime
    attempts: int
    next_attempt_at: datetime | None
    delivered_at: datetime | None
    response_status: int | None
    error: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookName:
    """A webhook where another object names it.

    Attributes:
        url: Address of the webhook, not of its receiver.
    """

    name: str
    url: str

    @classmethod
    def of(cls, name: str) -> Self:
        """Name a webhook."""
        return cls(name=name, url=f"/v1/webhooks/{name}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryRetry:
    """A delivery that is to be sent: again, or as a test."""

    id: UUID
    webhook: WebhookName
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A delivery that waits to be sent.

    Attributes:
        id: Of the delivery.
        asked: How often the delivery was asked for when this was ordered; only the last order is carried out.
    """

    project: str
    webhook: str
    id: UUID
    asked: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """A delivery that is to be sent now.

    Attributes:
        body: The bytes that are sent.
        attempts: How often it was sent since it was last asked for, this time among them.
    """

    order: Order
    url: str
    secret: str
    body: bytes
    attempts: int


@dataclass(frozen=True, slots=True)
class SendResult:
    """The result of one attempt to send.

    Attributes:
        status: Of the answer; None when none came.
        error: Why it failed, None when it did not.
    """

    status: int | None
    error: str | None
