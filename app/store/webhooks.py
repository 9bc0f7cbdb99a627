"""Webhooks in Postgres: the ports `WebhookStore` and `Outbox` of `app.services.ports`, and what is told of changes.

What is to be told is written, and put into the queue, in the transaction of what it tells of, so that neither is there
without the other.
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from datetime import timedelta
from http import HTTPStatus
from typing import Final
from uuid import UUID

import orjson
from sqlalchemy import ColumnElement, Uuid, any_, func, literal, literal_column, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.errors import NotFound, TooManyWebhooks
from app.domain.evaluation import Page
from app.domain.members import as_json, rfc3339
from app.domain.operations import (
    Change,
    Delivery,
    DeliveryRetry,
    DeliveryStatus,
    Event,
    Kind,
    Order,
    Outgoing,
    SendResult,
    WebhookEvent,
    WebhookFacts,
    WebhookName,
)
from app.services.known import Known
from app.store import queue
from app.store.audit import note, note_result, remove
from app.store.engine import OnEngine, changing_row, made_of, read_one, read_page, reading, same, take_turn, writing
from app.store.idempotency import keep_result
from app.store.queue import Work
from app.store.tables import webhook_deliveries, webhooks

_hooks, _rows = webhooks.c, webhook_deliveries.c


class Listeners(OnEngine):
    """Pairs of a project and an event that some webhook listens to: most projects have none, and then cost nothing."""

    def __init__(self, engine: AsyncEngine) -> None:
        super().__init__(engine)
        self._known = Known(self._ask)

    async def want(self, project: str, event: Event) -> bool:
        """Is anybody to be told of this?"""
        return (project, event.value) in await self._known.of(None)

    def forget(self) -> None:
        """Read the pairs again at the next question, after a change."""
        self._known.forget(None)

    async def _ask(self, _: None) -> frozenset[tuple[str, str]]:
        async with reading(self._engine) as connection:
            # Of all projects, which a statement that is compiled may not ask.
            rows = await connection.execute(text("SELECT DISTINCT project, unnest(events) FROM webhooks"))
            return frozenset((project, event) for project, event in rows)


class PostgresWebhookStore(OnEngine):
    """The memory of webhooks, and of what they are told."""

    def __init__(self, engine: AsyncEngine, listeners: Listeners, *, limit: int) -> None:
        """Take who is to be told of changes, and how many webhooks a project may have."""
        super().__init__(engine)
        self._listeners = listeners
        self._limit = limit

    # Who wants to be told.

    async def put(
        self, project: str, name: str, url: str, events: Sequence[Event], *, given: str | None, fresh: str
    ) -> tuple[WebhookFacts, bool]:
        changed = {"url": url, "events": [*events]}
        row = {"project": project, "name": name, "secret": given or fresh, **changed}
        asked = insert(webhooks).values(row)
        asked = asked.on_conflict_do_update(
            index_elements=["project", "name"], set_=changed | ({} if given is None else {"secret": given})
        )
        returned = asked.returning(webhooks, literal_column("xmax = 0").label("made"))
        async with changing_row(self._engine, webhooks, project=project, name=name) as connection:
            put = (await connection.execute(returned)).one()
            if put.made:
                await self._require_room(connection, project)
            change, status = (Change.CREATED, HTTPStatus.CREATED) if put.made else (Change.CHANGED, HTTPStatus.OK)
            # What was made with a secret of ours is not answered again.
            shown_once = put.made and given is None
            await keep_result(connection, Kind.WEBHOOK, "" if shown_once else name, status=status)
            await note(connection, project, change, Kind.WEBHOOK, name)
        self._listeners.forget()
        return made_of(WebhookFacts, put), put.made

    async def _require_room(self, connection: AsyncConnection, project: str) -> None:
        """Refuse the webhook that this transaction has made where it is one too many."""
        # Those of one project are made in turn, so that each counts all before it.
        await take_turn(connection, f"webhooks {project}")
        mine = select(func.count()).select_from(webhooks).where(_hooks.project == project)
        if (await connection.scalar(mine) or 0) > self._limit:
            detail = f"expected at most {self._limit} webhooks of the project; delete one first, or put it in its place"
            raise TooManyWebhooks(detail)

    async def get(self, project: str, name: str) -> WebhookFacts:
        found = await read_one(self._engine, select(webhooks).where(*_named(project, name)), WebhookFacts)
        return NotFound.unless(found, f"webhook {name!r}")

    async def page(self, project: str, limit: int, after: str | None = None) -> Page[WebhookFacts, str]:
        mine = select(webhooks).where(_hooks.project == project)
        return await read_page(self._engine, mine, _hooks.name, limit, after, WebhookFacts, latest_first=False)

    async def delete(self, project: str, name: str) -> None:
        gone = await remove(self._engine, webhooks, Kind.WEBHOOK, project, name=name)
        self._listeners.forget()
        NotFound.unless(gone, f"webhook {name!r}")

    # What they are told.

    async def deliveries(
        self, project: str, name: str, status: DeliveryStatus | None, limit: int, before: UUID | None = None
    ) -> Page[Delivery, UUID]:
        await self.get(project, name)
        wanted = select(webhook_deliveries, _rows.next_at.label("next_attempt_at"))
        wanted = wanted.where(*same(webhook_deliveries, project=project, webhook=name))
        if status is not None:
            wanted = wanted.where(_rows.status == status)
        return await read_page(self._engine, wanted, _rows.id, limit, before, Delivery)

    async def retry(self, project: str, name: str, identifier: UUID) -> DeliveryRetry:
        again = {
            "status": DeliveryStatus.PENDING,
            "asked": _rows.asked + 1,
            "attempts": 0,
            "next_at": func.now(),
            "delivered_at": None,
            "response_status": None,
            "error": None,
        }
        changed = update(webhook_deliveries).where(*_one(project, name, identifier)).values(again)
        async with writing(self._engine) as connection:
            found = (await connection.execute(changed.returning(_rows.event, _rows.asked))).one_or_none()
            row = NotFound.unless(found, _delivery(name, identifier))
            await _order(connection, Order(project=project, webhook=name, id=identifier, asked=row.asked))
            accepted = HTTPStatus.ACCEPTED
            await note_result(connection, project, Change.RETRIED, Kind.DELIVERY, identifier, status=accepted)
        return DeliveryRetry(id=identifier, webhook=WebhookName.of(name), event=row.event)

    async def send(self, project: str, name: str, happening: WebhookEvent) -> DeliveryRetry:
        async with writing(self._engine) as connection:
            NotFound.unless(await _tell(connection, happening, *_named(project, name)) == 1, f"webhook {name!r}")
            accepted = HTTPStatus.ACCEPTED
            await note_result(connection, project, Change.CREATED, Kind.DELIVERY, happening.id, status=accepted)
        return DeliveryRetry(id=happening.id, webhook=WebhookName.of(name), event=happening.event)

    async def tell(self, project: str, happening: WebhookEvent) -> None:
        async with writing(self._engine) as connection:
            await announce(connection, project, happening)

    async def retried(self, project: str, name: str, identifier: UUID) -> DeliveryRetry:
        async with reading(self._engine) as connection:
            event = await connection.scalar(select(_rows.event).where(*_one(project, name, identifier)))
        return DeliveryRetry(
            id=identifier, webhook=WebhookName.of(name), event=NotFound.unless(event, _delivery(name, identifier))
        )

    # The telling.

    async def begin(self, order: Order) -> Outgoing | None:
        taken = update(webhook_deliveries).where(*_open(order)).values(attempts=_rows.attempts + 1)
        async with writing(self._engine) as connection:
            row = (await connection.execute(taken.returning(_rows.body, _rows.attempts))).one_or_none()
            if row is None:
                return None
            hook = (await connection.execute(select(webhooks).where(*_named(order.project, order.webhook)))).one()
        return Outgoing(order=order, url=hook.url, secret=hook.secret, body=row.body.encode(), attempts=row.attempts)

    async def settle(
        self, outgoing: Outgoing, status: DeliveryStatus, sent: SendResult, pause: timedelta | None
    ) -> None:
        changed = {
            "status": status,
            "response_status": sent.status,
            "error": sent.error,
            "next_at": None if pause is None else func.now() + pause,
            "delivered_at": func.now() if status is DeliveryStatus.DELIVERED else None,
        }
        async with writing(self._engine) as connection:
            await connection.execute(update(webhook_deliveries).where(*_open(outgoing.order)).values(changed))

    async def purge(self, keep: timedelta) -> None:
        async with writing(self._engine) as connection:
            await connection.execute(
                text(
                    "DELETE FROM webhook_deliveries "
                    "WHERE status <> 'pending' AND created_at < now() - make_interval(secs => :seconds)"
                ),
                {"seconds": keep.total_seconds()},
            )


def work_on_deliveries(
    store: PostgresWebhookStore,
    send: Callable[[Order], Awaitable[None]],
    look: Callable[[str, UUID], Awaitable[None]],
    *,
    keep: timedelta,
) -> Work:
    """Return the work of the delivery queue: what is sent, and evaluations that are looked at for something to tell.
    Finished deliveries are deleted after ``keep``.
    """

    def do(given: queue.Given) -> Awaitable[None]:
        if _LOOKED_AT in given:
            return look(given["project"], UUID(given[_LOOKED_AT]))
        return send(Order(**dict(given) | {"id": UUID(given["id"])}))

    return Work(do=do, forget=lambda: store.purge(keep))


# Who takes one from the queue knows by it that nothing is to be sent yet.
_LOOKED_AT: Final = "looked_at"


async def look_at(connection: AsyncConnection, project: str, evaluation: UUID) -> None:
    """Let somebody look, when this transaction is done, whether an evaluation tells of a change of its model."""
    await queue.add(connection, queue.DELIVERIES, {"project": project, _LOOKED_AT: str(evaluation)})


async def announce(connection: AsyncConnection, project: str, happening: WebhookEvent) -> None:
    """Let the webhooks of a project be told of what this transaction does."""
    await _tell(connection, happening, _hooks.project == project, literal(happening.event.value) == any_(_hooks.events))


async def _tell(connection: AsyncConnection, happening: WebhookEvent, *whom: ColumnElement[bool]) -> int:
    """Let some webhooks be told of something; return how many."""
    said = {
        "type": happening.event.value,
        "timestamp": rfc3339(happening.at),
        "text": happening.text,
        "data": as_json(happening.data),
    }
    event = happening.event.value
    listening = select(
        _hooks.project, _hooks.name, literal(happening.id, Uuid), literal(event), literal(orjson.dumps(said).decode())
    ).where(*whom)
    told = insert(webhook_deliveries).from_select(["project", "webhook", "id", "event", "body"], listening)
    found = (await connection.execute(told.on_conflict_do_nothing().returning(_rows.project, _rows.webhook))).all()
    for project, name in found:
        await _order(connection, Order(project=project, webhook=name, id=happening.id, asked=1))
    return len(found)


async def _order(connection: AsyncConnection, order: Order) -> None:
    await queue.add(connection, queue.DELIVERIES, asdict(order))


def _delivery(name: str, identifier: UUID) -> str:
    return f"delivery {identifier} of a webhook {name!r}"


def _named(project: str, name: str) -> list[ColumnElement[bool]]:
    return same(webhooks, project=project, name=name)


def _one(project: str, name: str, identifier: UUID) -> list[ColumnElement[bool]]:
    return same(webhook_deliveries, project=project, webhook=name, id=identifier)


def _open(order: Order) -> list[ColumnElement[bool]]:
    """The row of a delivery, as long as this is its last order and it is not done."""
    return same(webhook_deliveries, **asdict(order), status=DeliveryStatus.PENDING)
