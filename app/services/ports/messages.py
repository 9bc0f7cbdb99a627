"""The memory of webhooks and of what they are told, and what sends it."""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from app.domain.evaluation import Page
from app.domain.operations.webhooks import Delivery, DeliveryStatus, Event, Order, Outgoing, Sent, Webhook


class Waits(Exception):
    """What was taken out of a queue has to wait there again, for so many seconds at least."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"it waits for {seconds:g} s")
        self.seconds = seconds


class WebhookStore(Protocol):
    """The memory of webhooks."""

    async def put(
        self, project: str, name: str, url: str, events: Sequence[Event], *, given: str | None, fresh: str
    ) -> tuple[Webhook, bool]:
        """Make or change a webhook; True when there was none. A secret that is not given stays, or is the fresh one.

        Raises:
            TooManyWebhooks: there was none, and the project has as many as it may.
        """
        ...

    async def get(self, project: str, name: str) -> Webhook | None:
        """Return the webhook of that name."""
        ...

    async def page(self, project: str, limit: int, after: str | None = None) -> Page[Webhook, str]:
        """List the webhooks of the project by name."""
        ...

    async def delete(self, project: str, name: str) -> bool:
        """End a webhook, with all it was to be told; False when there is none."""
        ...

    async def deliveries(
        self, project: str, name: str, status: DeliveryStatus | None, limit: int, before: UUID | None = None
    ) -> Page[Delivery, UUID]:
        """List what a webhook was told or is to be told, latest first; only what is so far, where that is said."""
        ...

    async def retry(self, project: str, name: str, identifier: UUID) -> Event | None:
        """Let a delivery be sent again, now; None when there is none."""
        ...

    async def event_of(self, project: str, name: str, identifier: UUID) -> Event | None:
        """Return what a delivery tells of; None when there is none."""
        ...


class Outbox(Protocol):
    """What is to be told to webhooks of all projects."""

    async def begin(self, order: Order) -> Outgoing | None:
        """Take a delivery in hand; None when there is nothing to send any more."""
        ...

    async def settle(self, outgoing: Outgoing, status: DeliveryStatus, sent: Sent, pause: timedelta | None) -> None:
        """Write down what became of an attempt, and in how long there is to be another."""
        ...


class Poster(Protocol):
    """Sends to webhooks."""

    async def post(self, url: str, headers: Mapping[str, str], body: bytes) -> Sent:
        """Send a body. Whatever happens is an answer, not an error."""
        ...
