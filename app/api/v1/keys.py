"""Routes of API keys, and of the audit log."""

from functools import partial
from http import HTTPStatus
from typing import Annotated, Final
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.bodies.parsing import parse_body, read_body
from app.api.cursors import Listing, Paging, paging_of
from app.api.deps import UseContext, routes
from app.api.documentation import body_schema, made
from app.api.v1.requests import administration as requests
from app.domain.operations import AuditEntry, KeyFacts, KeyMade

router = routes("keys")
_USES = (["getKey", "rotateKey", "revokeKey"], {"identifier": "$response.body#/id"})

_MADE: Final = made(KeyMade, *_USES, once="the key is shown this once.")


def _shown_once(key: KeyMade) -> Response:
    headers = {"Location": f"/v1/keys/{key.facts.id}", "Cache-Control": "no-store"}
    return json_response(key, HTTPStatus.CREATED, headers)


@router.post("/keys", responses=_MADE, openapi_extra=body_schema(requests.KeyRequest))
async def create_key(request: Request, context: UseContext) -> Response:
    """Make an API key. The answer is the only place where it is shown."""
    asked = parse_body(await read_body(request), requests.KeyRequest)
    given = asked.model_dump() | {"project": asked.project or context.project}
    return _shown_once(await context.services.keys.create(**given))


@router.get("/keys", responses=answers(Listing[KeyFacts], name="KeyPage"))
async def list_keys(context: UseContext, paging: Annotated[Paging, paging_of(KeyFacts)]) -> Response:
    """List the keys of the project, latest first, revoked ones too."""
    return await paging.page(partial(context.services.keys.store.page, context.project), {"list": "keys"}, UUID)


@router.get("/keys/{identifier}", responses=answers(KeyFacts))
async def get_key(identifier: UUID, context: UseContext) -> Response:
    """Read what is known of a key, without its secret."""
    return json_response(await context.services.keys.store.get(context.project, identifier))


@router.post("/keys/{identifier}/rotations", responses=_MADE, openapi_extra=body_schema(requests.RotationRequest))
async def rotate_key(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Give a key a new secret, which is shown only in this answer. What the key may do stays."""
    asked = parse_body(await read_body(request), requests.RotationRequest)
    made = await context.services.keys.rotate(context.project, identifier, asked.overlap_seconds)
    context.services.guard.forget(identifier)
    return _shown_once(made)


@router.delete("/keys/{identifier}")
async def revoke_key(identifier: UUID, context: UseContext) -> None:
    """Revoke a key: in this worker at once, in others within two seconds. It stays in the list."""
    await context.services.keys.store.revoke(context.project, identifier)
    context.services.guard.forget(identifier)


@router.get("/audit", responses=answers(Listing[AuditEntry], name="AuditPage"))
async def list_audit_entries(context: UseContext, paging: Annotated[Paging, paging_of(AuditEntry)]) -> Response:
    """List who created, changed and deleted what in the project, latest first."""
    return await paging.page(partial(context.services.keys.store.audit, context.project), {"list": "audit"}, UUID)
