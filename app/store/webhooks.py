"""Webhooks in Postgres: the ports `WebhookStore` and `Outbox` of `app.services.ports`, and what is told of changes.

What is to be told is written, and put into the queue, in the transaction of what it tells of, so that neither is there
without the other.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from http import HTTPStatus
from typing import Any, Final
from uuid import UUID

import orjson
from sqlalchemy import ColumnElement, Row, Uuid, any_, delete, func, literal, literal_column, select, text, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.errors import TooManyWebhooks
from app.domain.evaluation import Page
from app.domain.members import as_json, rfc3339
from app.domain.operations import (
    Change,
    Delivery,
    DeliveryStatus,
    Event,
    Kind,
    Order,
    Outgoing,
    SendResult,
    WebhookEvent,
    WebhookFacts,
)
from app.store import queue
from app.store.audit import note
from app.store.engine import made_of, read_one, read_page, reading, writing
from app.store.idempotency import keep_result
from app.store.queue import Work
from app.store.tables import webhook_deliveries, webhooks

_hooks, _rows = webhooks.c, webhook_deliveries.c
# How long it is known who wants to be told of what.
KNOWN_SECONDS: Final = 2.0


class Listeners:
    """Pairs of a project and an event that some webhook listens to, read at most every `KNOWN_SECONDS`: most projects
    have none, and then cost nothing.
    """

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine
        self._wanted: frozenset[tuple[str, str]] = frozenset()
        self._known_until = 0.0
        self._asking = asyncio.Lock()

    async def want(self, project: str, event: Event) -> bool:
        """Is anybody to be told?"""
        if time.monotonic() >= self._known_until:
            async with self._asking:
                if time.monotonic() >= self._known_until:
                    await self._ask()
        return (project, event.value) in self._wanted

    def forget(self) -> None:
        """Read the pairs again at the next question, after a change."""
        self._known_until = 0.0

    async def _ask(self) -> None:
        until = time.monotonic() + KNOWN_SECONDS
        async with reading(self._engine) as connection:
            # Of all projects, which a statement that is compiled may not ask.
            rows = await connection.execute(text("SELECT DISTINCT project, unnest(events) FROM webhooks"))
            self._wanted = frozenset((project, event) for project, event in rows)
        self._known_until = until


class PostgresWebhookStore:
    """The memory of webhooks, and of what they are told."""

    def __init__(self, engine: AsyncEngine, listeners: Listeners, *, limit: int) -> None:
        """Take who is to be told of changes, and how many webhooks a project may have."""
        self._engine = engine
        self._listeners = listeners
        self._limit = limit

    # Who wants to be told.

    async def put(
        self, project: str, name: str, url: str, events: Sequence[Event], *, given: str | None, fresh: str
    ) -> tuple[WebhookFacts, bool]:
        changed = {"url": url, "events": [one.value for one in events]}
        row = {"project": project, "name": name, "secret": given or fresh, **changed}
        asked = insert(webhooks).values(row)
        asked = asked.on_conflict_do_update(
            index_elements=["project", "name"], set_=changed | ({} if given is None else {"secret": given})
        )
        returned = asked.returning(webhooks, literal_column("xmax = 0").label("made"))
        async with writing(self._engine) as connection:
            put = (await connection.execute(returned)).one()
            if put.made:
                await self._require_room(connection, project)
            status = HTTPStatus.CREATED if put.made else HTTPStatus.OK
            await keep_result(connection, Kind.WEBHOOK, name, status=status)
            await note(connection, project, Change.CREATED if put.made else Change.CHANGED, Kind.WEBHOOK, name)
        self._listeners.forget()
        return _webhook(put), put.made

    async def _require_room(self, connection: AsyncConnection, project: str) -> None:
        """Refuse the webhook that this transaction has made where it is one too many."""
        # Those of one project are made in turn, so that each counts all before it.
        lock = func.hashtextextended(f"webhooks {project}", 0)
        await connection.execute(select(func.pg_advisory_xact_lock(lock)))
        mine = select(func.count()).select_from(webhooks).where(_hooks.project == project)
        if (await connection.scalar(mine) or 0) > self._limit:
            detail = f"expected at most {self._limit} webhooks of the project; delete one first, or put it in its place"
            raise TooManyWebhooks(detail)

    async def get(self, project: str, name: str) -> WebhookFacts | None:
        return await read_one(self._engine, select(webhooks).where(*_named(project, name)), _webhook)

    async def page(self, project: str, limit: int, after: str | None = None) -> Page[WebhookFacts, str]:
        mine = select(webhooks).where(_hooks.project == project)
        return await read_page(self._engine, mine, _hooks.name, limit, after, _webhook, latest_first=False)

    async def delete(self, project: str, name: str) -> bool:
        async with writing(self._engine) as connection:
            gone = (await connection.execute(delete(webhooks).where(*_named(project, name)))).rowcount == 1
            if gone:
                await note(connection, project, Change.DELETED, Kind.WEBHOOK, name)
        self._listeners.forget()
        return gone

    # What they are told.

    async def deliveries(
        self, project: str, name: str, status: DeliveryStatus | None, limit: int, before: UUID | None = None
    ) -> Page[Delivery, UUID]:
        wanted = select(webhook_deliveries).where(_rows.project == project, _rows.webhook == name)
        if status is not None:
            wanted = wanted.where(_rows.status == status.value)
        return await read_page(self._engine, wanted, _rows.id, limit, before, _delivery)

    async def retry(self, project: str, name: str, identifier: UUID) -> Event | None:
        again = {
            "status": DeliveryStatus.PENDING.value,
            "asked": _rows.asked + 1,
            "attempts": 0,
            "next_at": func.now(),
            "delivered_at": None,
            "response_status": None,
            "error": None,
        }
        changed = update(webhook_deliveries).where(*_one(project, name, identifier)).values(again)
        async with writing(self._engine) as connection:
            row = (await connection.execute(changed.returning(_rows.event, _rows.asked))).one_or_none()
            if row is None:
                return None
            await _order(connection, Order(project=project, webhook=name, id=identifier, asked=row.asked))
            await keep_result(connection, Kind.DELIVERY, identifier, status=HTTPStatus.ACCEPTED)
            await note(connection, project, Change.RETRIED, Kind.DELIVERY, identifier)
        return Event(row.event)

    async def send(self, project: str, name: str, happening: WebhookEvent) -> bool:
        async with writing(self._engine) as connection:
            told = await _tell(connection, happening, *_named(project, name))
            if told:
                await keep_result(connection, Kind.DELIVERY, happening.id, status=HTTPStatus.ACCEPTED)
                await note(connection, project, Change.CREATED, Kind.DELIVERY, happening.id)
        return told > 0

    async def tell(self, project: str, happening: WebhookEvent) -> None:
        async with writing(self._engine) as connection:
            await announce(connection, project, happening)

    async def event_of(self, project: str, name: str, identifier: UUID) -> Event | None:
        async with reading(self._engine) as connection:
            event = await connection.scalar(select(_rows.event).where(*_one(project, name, identifier)))
        return None if event is None else Event(event)

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
            "status": status.value,
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

    Args:
        store: Finished deliveries are deleted from it after ``keep``.
        send: Sends one.
        look: Looks at an evaluation of a project.
        keep: How long finished deliveries are kept.
    """

    async def do(given: queue.Given) -> None:
        if _LOOKED_AT in given:
            await look(given["project"], UUID(given[_LOOKED_AT]))
            return
        await send(Order(**dict(given) | {"id": UUID(given["id"])}))

    async def forget() -> None:
        await store.purge(keep)

    return Work(do=do, forget=forget)


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
    given = {"project": order.project, "webhook": order.webhook, "id": order.id, "asked": order.asked}
    await queue.add(connection, queue.DELIVERIES, given)


def _named(project: str, name: str) -> tuple[ColumnElement[bool], ...]:
    return (_hooks.project == project, _hooks.name == name)


def _one(project: str, name: str, identifier: UUID) -> tuple[ColumnElement[bool], ...]:
    return (_rows.project == project, _rows.webhook == name, _rows.id == identifier)


def _open(order: Order) -> tuple[ColumnElement[bool], ...]:
    """The row of a delivery, as long as this is its last order and it is not done."""
    mine = _one(order.project, order.webhook, order.id)
    return (*mine, _rows.asked == order.asked, _rows.status == DeliveryStatus.PENDING.value)


def _webhook(row: Row[Any]) -> WebhookFacts:
    return made_of(WebhookFacts, row, events=tuple(Event(one) for one in row.events))


def _delivery(row: Row[Any]) -> Delivery:
    event, status = Event(row.event), DeliveryStatus(row.status)
    return made_of(Delivery, row, event=event, status=status, next_attempt_at=row.next_at)
