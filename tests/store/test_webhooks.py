"""Webhooks in Postgres: what is forgotten of what they were told."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.identifiers import new_id
from app.domain.operations import DeliveryStatus, Event, Order, SendResult, WebhookEvent
from app.store.webhooks import Listeners, PostgresWebhookStore

pytestmark = pytest.mark.anyio


async def test_what_is_still_to_be_sent_is_never_forgotten(engine: AsyncEngine, project: str) -> None:
    store = PostgresWebhookStore(engine, Listeners(engine), limit=1)
    await store.put(project, "hook", "https://hooks.example/in", [Event.GATE_CHECKED], given=None, fresh="secret")
    arrived, waits = new_id(), new_id()
    for identifier in (arrived, waits):
        told = WebhookEvent(event=Event.WEBHOOK_TEST, id=identifier, at=datetime.now(UTC), text="", data={})
        await store.send(project, "hook", told)
    outgoing = await store.begin(Order(project=project, webhook="hook", id=arrived, asked=1))
    assert outgoing is not None
    await store.settle(outgoing, DeliveryStatus.DELIVERED, SendResult(204, None), None)
    await store.purge(timedelta(0))
    assert [one.id for one in (await store.deliveries(project, "hook", None, 10)).items] == [waits]
