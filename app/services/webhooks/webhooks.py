"""Webhooks as those know them who put them."""

from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlsplit
from uuid import UUID

from app.domain.errors import InvalidInput, NotFound
from app.domain.evaluation import Page
from app.domain.operations.webhooks import Delivery, DeliveryRetry, DeliveryStatus, Event, WebhookFacts, WebhookPut
from app.services.ports.messages import WebhookStore
from app.services.webhooks.signing import make_secret


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
        return WebhookPut(facts=webhook.shown, secret=fresh if made and secret is None else None), made

    async def read(self, project: str, name: str) -> WebhookFacts:
        """One webhook."""
        webhook = await self.store.get(project, name)
        if webhook is None:
            raise _missing(name)
        return webhook.shown

    async def page(self, project: str, limit: int, after: str | None) -> Page[WebhookFacts, str]:
        """The webhooks of a project by name."""
        page = await self.store.page(project, limit, after)
        return Page(tuple(one.shown for one in page.items), page.next_position)

    async def delete(self, project: str, name: str) -> None:
        """End a webhook; what it was still to be told is not sent."""
        if not await self.store.delete(project, name):
            raise _missing(name)

    async def deliveries(
        self, project: str, name: str, status: DeliveryStatus | None, limit: int, before: UUID | None
    ) -> Page[Delivery, UUID]:
        """What a webhook was told or is to be told, latest first."""
        await self.read(project, name)
        return await self.store.deliveries(project, name, status, limit, before)

    async def retry(self, project: str, name: str, identifier: UUID) -> DeliveryRetry:
        """Send a delivery again, whatever became of it."""
        return _retry(name, identifier, await self.store.retry(project, name, identifier))

    async def retried(self, project: str, name: str, identifier: UUID) -> DeliveryRetry:
        """A delivery that was asked for again."""
        return _retry(name, identifier, await self.store.event_of(project, name, identifier))


def _retry(name: str, identifier: UUID, event: Event | None) -> DeliveryRetry:
    if event is None:
        raise NotFound(f"there is no delivery {identifier} of a webhook {name!r}")
    return DeliveryRetry(id=identifier, webhook=name, event=event)


def _missing(name: str) -> NotFound:
    return NotFound(f"there is no webhook {name!r}")
