"""Routes of webhooks, and of what they are told."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Final
from uuid import UUID

from fastapi import Path, Query, Request
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.bodies.keyed import received
from app.api.bodies.parsing import parse_body, read_body
from app.api.cursors import Listing, Paging, paging_of
from app.api.deps import UseContext, routes
from app.api.documentation import body_schema, made
from app.api.v1.requests import administration as requests
from app.domain.operations import Delivery, DeliveryRetry, DeliveryStatus, Event, WebhookFacts, WebhookPut

router = routes("webhooks")
WebhookName = Annotated[str, Path(min_length=1, max_length=128, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")]

_MADE: Final = made(
    WebhookPut,
    ("getWebhook", "deleteWebhook", "listDeliveries"),
    {"name": "$response.body#/name"},
    "The webhook is new.",
    once="a secret that was made is shown only here.",
)


@router.put(
    "/webhooks/{name}", responses=answers(WebhookPut) | _MADE, openapi_extra=body_schema(requests.WebhookRequest)
)
async def put_webhook(name: WebhookName, request: Request, context: UseContext) -> Response:
    """Make or change a webhook: events of the project are sent to its address by POST. A secret that the service makes
    is shown only in this answer. The number of webhooks of a project is limited (409, `too_many_webhooks`).
    """
    asked = parse_body(await read_body(request), requests.WebhookRequest)
    events = tuple(map(Event, dict.fromkeys(asked.events)))
    webhook, created = await context.services.webhooks.put(context.project, name, asked.url, events, asked.secret)
    headers = {"Location": f"/v1/webhooks/{name}"} if created else {}
    if webhook.secret is not None:
        headers["Cache-Control"] = "no-store"
    return json_response(webhook, HTTPStatus.CREATED if created else HTTPStatus.OK, headers)


@router.get("/webhooks", responses=answers(Listing[WebhookFacts], name="WebhookPage"))
async def list_webhooks(context: UseContext, paging: Annotated[Paging, paging_of(WebhookFacts)]) -> Response:
    """List the webhooks of the project, by name."""
    return await paging.page(partial(context.services.webhooks.store.page, context.project), {"list": "webhooks"}, str)


@router.get("/webhooks/{name}", responses=answers(WebhookFacts))
async def get_webhook(name: WebhookName, context: UseContext) -> Response:
    """Read a webhook, without its secret."""
    return json_response(await context.services.webhooks.store.get(context.project, name))


@router.delete("/webhooks/{name}")
async def delete_webhook(name: WebhookName, context: UseContext) -> None:
    """Delete a webhook. Deliveries that are pending are not sent."""
    await context.services.webhooks.store.delete(context.project, name)


@router.get("/webhooks/{name}/deliveries", responses=answers(Listing[Delivery], name="DeliveryPage"))
async def list_deliveries(
    name: WebhookName,
    context: UseContext,
    paging: Annotated[Paging, paging_of(Delivery)],
    status: Annotated[DeliveryStatus | None, Query(description="Only deliveries with this status.")] = None,
) -> Response:
    """List the deliveries of a webhook, sent and pending, latest first."""
    read = partial(context.services.webhooks.store.deliveries, context.project, name, status)
    return await paging.page(read, {"list": "deliveries", "webhook": name, "status": status}, UUID)


@router.post("/webhooks/{name}/tests", responses=answers(DeliveryRetry, status=HTTPStatus.ACCEPTED))
async def test_webhook(name: WebhookName, request: Request, context: UseContext) -> Response:
    """Send a test message (`webhook.test`), whatever events the webhook has; its delivery says whether it arrived."""
    # It has no body that anybody reads.
    await received(request)
    return json_response(await context.services.webhooks.test(context.project, name), HTTPStatus.ACCEPTED)


@router.post(
    "/webhooks/{name}/deliveries/{identifier}/retries", responses=answers(DeliveryRetry, status=HTTPStatus.ACCEPTED)
)
async def retry_delivery(name: WebhookName, identifier: UUID, request: Request, context: UseContext) -> Response:
    """Send a delivery again, whatever became of it before."""
    # It has no body that anybody reads.
    await received(request)
    return json_response(
        await context.services.webhooks.store.retry(context.project, name, identifier), HTTPStatus.ACCEPTED
    )
