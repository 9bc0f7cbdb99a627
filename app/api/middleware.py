"""What happens to every request before and after its route: a request id and a limit on its size."""

import re
from http import HTTPStatus
from uuid import uuid4

import orjson
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.problems import MEDIA_TYPE, Problem, internal_error

_ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


class BodyTooLarge(Exception):
    """More bytes came than a request may have."""


class RequestEnvelope:
    """Around everything: an id for each request, 413 for large bodies, 500 for faults of ours.

    The id is the caller's ``X-Request-ID`` when that is a sane one.
    """

    def __init__(self, app: ASGIApp, *, max_body_bytes: int) -> None:
        self._app = app
        self._limit = max_body_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _ACCEPTABLE_ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        started = False

        async def send_with_id(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                MutableHeaders(scope=message)["X-Request-ID"] = request_id
            await send(message)

        length = headers.get("content-length", "")
        if length.isascii() and length.isdecimal() and int(length) > self._limit:
            await self._refuse(send_with_id, request_id)
            return
        received = 0

        async def receive_within_limit() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._limit:
                raise BodyTooLarge
            return message

        try:
            await self._app(scope, receive_within_limit, send_with_id)
        except BodyTooLarge:
            if started:
                raise
            await self._refuse(send_with_id, request_id)
        except ClientDisconnect:
            # Nobody is there any more to be told anything.
            return
        except Exception as error:
            if started:
                raise
            # Answered here and not by the server, which would close the connection under the next request on it.
            await _send_problem(send_with_id, internal_error(error, request_id), request_id)

    async def _refuse(self, send: Send, request_id: str) -> None:
        problem = Problem(
            status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
            code="body_too_large",
            detail=f"expected a body of at most {self._limit} bytes",
            # The rest of the body is not read, so the connection cannot be used again.
            headers=(("Connection", "close"),),
        )
        await _send_problem(send, problem, request_id)


async def _send_problem(send: Send, problem: Problem, request_id: str) -> None:
    body = orjson.dumps(problem.body(request_id))
    headers = (("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(body))), *problem.headers)
    start: Message = {
        "type": "http.response.start",
        "status": problem.status.value,
        "headers": [(name.lower().encode(), value.encode()) for name, value in headers],
    }
    await send(start)
    await send({"type": "http.response.body", "body": body})
