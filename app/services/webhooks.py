"""Webhooks: registered, told of events, signed (Standard Webhooks), sent again until they arrive or are given up."""

import hmac
import random
import secrets
import time
from base64 import b64decode, b64encode
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

from app.domain.errors import InvalidInput
from app.domain.identifiers import new_id
from app.domain.operations import (
    DeliveryRetry,
    DeliveryStatus,
    Event,
    Order,
    Outgoing,
    SendResult,
    WebhookEvent,
    WebhookName,
    WebhookPut,
)
from app.services.ports import Outbox, Waits, WebhookStore
from app.services.present import Observer

PREFIX: Final = "whsec_"
# Bytes of a secret, by the specification.
_LEAST, _USUAL, _MOST = 24, 32, 64


def make_secret() -> str:
    """A new secret."""
    return PREFIX + b64encode(secrets.token_bytes(_USUAL)).decode()


def is_secret(text: str) -> bool:
    """Is it a secret: `whsec_` and 24 to 64 bytes in Base64?"""
    try:
        return text.startswith(PREFIX) and _LEAST <= len(_bytes_of(text)) <= _MOST
    except ValueError:
        return False


def signed_headers(secret: str, identifier: str, timestamp: int, body: bytes) -> dict[str, str]:
    """The headers that tell a receiver who sent a body, and when: seconds since 1970, of this attempt. The identifier
    of a message is the same whenever it is sent again.
    """
    content = f"{identifier}.{timestamp}.".encode() + body
    signature = b64encode(hmac.digest(_bytes_of(secret), content, "sha256")).decode()
    return {
        "webhook-id": identifier,
        "webhook-timestamp": str(timestamp),
        "webhook-signature": f"v1,{signature}",
    }


def _bytes_of(secret: str) -> bytes:
    return b64decode(secret.removeprefix(PREFIX), validate=True)


@dataclass(frozen=True, slots=True)
class WebhookService:
    """Use cases of webhooks. Everything happens within one project."""

    store: WebhookStore
    # Whether a host may ever be sent to.
    can_be_reached: Callable[[str], bool]

    async def put(
        self, project: str, name: str, url: str, events: tuple[Event, ...], secret: str | None
    ) -> tuple[WebhookPut, bool]:
        """Make or change a webhook; True when there was none of that name. Without a secret the present one stays.

        Raises:
            InvalidInput: nothing is ever sent to the address.
            TooManyWebhooks: there was none, and the project has as many as it may.
        """
        if not self.can_be_reached(urlsplit(url).hostname or ""):
            detail = "expected an address of the Internet, unless PREVAIL_WEBHOOK_PRIVATE_ADDRESSES allows others"
            raise InvalidInput.at("/url", "unreachable", detail)
        fresh = make_secret()
        webhook, made = await self.store.put(project, name, url, events, given=secret, fresh=fresh)
        return WebhookPut(facts=webhook, secret=fresh if made and secret is None else None), made

    async def test(self, project: str, name: str) -> DeliveryRetry:
        """Send a test message, in the way that all messages are sent. Raises NotFound."""
        said = f"A test of the webhook {name} of the project {project}: what it is told arrives here."
        data = {"project": project, "webhook": WebhookName.of(name)}
        happening = WebhookEvent(event=Event.WEBHOOK_TEST, id=new_id(), at=datetime.now(UTC), text=said, data=data)
        return await self.store.send(project, name, happening)


# Seconds between an attempt and the next one; after the last of them a delivery has failed. A day and a half in all.
PAUSES: Final[Sequence[float]] = (5, 30, 300, 1800, 7200, 18_000, 36_000, 72_000)
_MOST_ATTEMPTS: Final = len(PAUSES) + 1


Post = Callable[[str, Mapping[str, str], bytes], Awaitable[SendResult]]


class Sender:
    """Sends what waits: ``post`` is given an address, headers and a body; whatever happens is an answer, no error."""

    def __init__(self, outbox: Outbox, post: Post, observer: Observer) -> None:
        self._outbox, self._post_to, self._observer = outbox, post, observer

    async def send(self, order: Order) -> None:
        """Send a delivery, unless it was asked for again, or its webhook deleted, since this was ordered.

        Raises:
            Waits: it is to be sent again, after a pause.
        """
        outgoing = await self._outbox.begin(order)
        if outgoing is None:
            return
        begin = time.perf_counter()
        sent = await self._post(outgoing)
        status, pause = _outcome(sent, outgoing.attempts)
        await self._outbox.settle(outgoing, status, sent, None if pause is None else timedelta(seconds=pause))
        self._observer.observed("webhook_seconds", time.perf_counter() - begin, outcome=status.value)
        if pause is not None:
            raise Waits(pause)

    async def _post(self, outgoing: Outgoing) -> SendResult:
        if outgoing.attempts > _MOST_ATTEMPTS:
            return SendResult(None, "the process that sent it ended each time before it had recorded an answer")
        headers = signed_headers(outgoing.secret, str(outgoing.order.id), int(time.time()), outgoing.body)
        return await self._post_to(outgoing.url, headers, outgoing.body)


def _outcome(sent: SendResult, attempts: int) -> tuple[DeliveryStatus, float | None]:
    """Return the status of a delivery after so many attempts, and the seconds until the next attempt."""
    if sent.error is None:
        return DeliveryStatus.DELIVERED, None
    if attempts >= _MOST_ATTEMPTS or sent.status == HTTPStatus.GONE:
        return DeliveryStatus.FAILED, None
    # Not all at the same moment when a receiver was away.
    return DeliveryStatus.PENDING, PAUSES[attempts - 1] * random.uniform(0.8, 1.2)  # noqa: S311 - no secret
