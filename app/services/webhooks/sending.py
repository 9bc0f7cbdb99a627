"""What was written down to be told is sent, and sent again until it has arrived or there is no hope.

It waits in a queue, which hands it to one sender at a time. One that ends after it has sent and before it has written
that down leaves it to be sent once more; receivers know it by its id.
"""

import random
import time
from collections.abc import Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Final

from app.domain.operations.webhooks import DeliveryStatus, Order, Outgoing, Sent
from app.services.observing import Observer
from app.services.ports.messages import Outbox, Poster, Waits
from app.services.webhooks.signing import signed_headers

# Seconds between an attempt and the next one; after the last of them a delivery has failed. A day and a half in all.
PAUSES: Final[Sequence[float]] = (5, 30, 300, 1800, 7200, 18_000, 36_000, 72_000)
_MOST_ATTEMPTS: Final = len(PAUSES) + 1


class Sender:
    """Sends what waits."""

    def __init__(self, outbox: Outbox, poster: Poster, observer: Observer) -> None:
        self._outbox, self._poster, self._observer = outbox, poster, observer

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
        self._observer.told_webhook(status.value, time.perf_counter() - begin)
        if pause is not None:
            raise Waits(pause)

    async def _post(self, outgoing: Outgoing) -> Sent:
        if outgoing.attempts > _MOST_ATTEMPTS:
            return Sent(None, "the process that sent it ended each time before it had recorded an answer")
        headers = signed_headers(outgoing.secret, str(outgoing.order.id), int(time.time()), outgoing.body)
        return await self._poster.post(outgoing.url, headers, outgoing.body)


def _outcome(sent: Sent, attempts: int) -> tuple[DeliveryStatus, float | None]:
    """What becomes of a delivery after so many attempts, and the seconds until it is sent again."""
    if sent.error is None:
        return DeliveryStatus.DELIVERED, None
    if attempts >= _MOST_ATTEMPTS or sent.status == HTTPStatus.GONE:
        return DeliveryStatus.FAILED, None
    # Not all at the same moment when a receiver was away.
    return DeliveryStatus.PENDING, PAUSES[attempts - 1] * random.uniform(0.8, 1.2)  # noqa: S311 - no secret
