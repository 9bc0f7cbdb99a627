"""Who is told of what: webhooks, what happened, and how far the telling is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from app.domain.members import LEFT_OUT, SPREAD


class Event(StrEnum):
    """What webhooks can be told of."""

    EVALUATION_CREATED = "evaluation.created"
    GATE_CHECKED = "gate.checked"
    JOB_FINISHED = "job.finished"


@dataclass(frozen=True, slots=True, kw_only=True)
class Happening:
    """Something that happened, as it is told.

    Attributes:
        id: Of what it happened to, which happens once: receivers know by it what they were told already.
        data: What is told of it, as JSON.
    """

    event: Event
    id: UUID
    at: datetime
    data: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A webhook as it is remembered.

    Attributes:
        secret: `whsec_…`, with which what is sent is signed.
    """

    name: str
    url: str
    events: tuple[Event, ...]
    secret: str
    created_at: datetime

    @property
    def shown(self) -> "WebhookFacts":
        """What others are told of it."""
        return WebhookFacts(name=self.name, url=self.url, events=self.events, created_at=self.created_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookFacts:
    """A webhook. Its secret is shown when it is made, and only then.

    Attributes:
        url: The address that events are sent to, by POST.
        events: Which events are sent.
    """

    name: str
    url: str
    events: Sequence[Event]
    created_at: datetime


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
class DeliveryRetry:
    """A delivery that is sent again."""

    id: UUID
    webhook: str
    event: Event


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What waits to be sent.

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
class Sent:
    """What became of an attempt.

    Attributes:
        status: Of the answer; None when none came.
        error: Why it failed, None when it did not.
    """

    status: int | None
    error: str | None
