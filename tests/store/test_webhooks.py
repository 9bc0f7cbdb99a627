"""Webhooks in Postgres: what is forgotten of what they were told."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.identifiers import new_id
from app.domain.operations import DeliveryStatus, Event, Order, SendResult, WebhookEvent
from app.store.webhooks import Listeners, PostgresWebhookStore

pytestmark = pytest.mark.anyio


async def ordered(store: PostgresWebhookStore, project: str) -> Order:
    """A test of a webhook that is to be sent."""
    identifier = new_id()
    told = WebhookEvent(event=Event.WEBHOOK_TEST, id=identifier, at=datetime.now(UTC), text="", data={})
    await store.send(project, "hook", told)
    return Order(project=project, webhook="hook", id=identifier, asked=1)


async def arrive(store: PostgresWebhookStore, order: Order) -> None:
    outgoing = await store.begin(order)
    assert outgoing is not None
    await store.settle(outgoing, DeliveryStatus.DELIVERED, SendResult(204, None), None)


@pytest.fixture
async def store(engine: AsyncEngine, project: str) -> PostgresWebhookStore:
    """With one webhook."""
    store = PostgresWebhookStore(engine, Listeners(engine), limit=1)
    await store.put(project, "hook", "https://hooks.example/in", [Event.GATE_CHECKED], given=None, fresh="secret")
    return store


async def test_what_has_arrived_is_sent_again_only_when_that_is_asked_for(
    store: PostgresWebhookStore, project: str
) -> None:
    order = await ordered(store, project)
    await arrive(store, order)
    # Whoever sent it ended before the queue had heard so.
    assert await store.begin(order) is None
    await store.retry(project, "hook", order.id)
    (waiting,) = (await store.deliveries(project, "hook", DeliveryStatus.PENDING, 10)).items
    assert (waiting.attempts, waiting.delivered_at, waiting.response_status) == (0, None, None)
    assert await store.begin(order) is None
    again = await store.begin(replace(order, asked=2))
    assert again is not None
    assert again.attempts == 1


async def test_what_is_still_to_be_sent_is_never_forgotten(store: PostgresWebhookStore, project: str) -> None:
    arrived, waits = [await ordered(store, project) for _ in range(2)]
    await arrive(store, arrived)
    await store.purge(timedelta(0))
    assert [one.id for one in (await store.deliveries(project, "hook", None, 10)).items] == [waits.id]


async def test_a_webhook_that_is_changed_keeps_its_secret_unless_it_gets_another(
    store: PostgresWebhookStore, project: str
) -> None:
    for given, expected in ((None, "secret"), ("own", "own"), (None, "own")):
        await store.put(project, "hook", "https://hooks.example/", [Event.JOB_FINISHED], given=given, fresh="fresh")
        assert (await store.get(project, "hook")).secret == expected
        outgoing = await store.begin(await ordered(store, project))
        assert outgoing is not None
        assert outgoing.secret == expected
