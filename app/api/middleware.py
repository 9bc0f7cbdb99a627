"""What happens to every request before and after its route: a request id and a limit on its size."""

import re
from http import HTTPStatus
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.answers import write_json
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
        answer = _Answer(send, request_id)
        if _announced_length(headers) > self._limit:
            await answer.refuse(_too_large(self._limit))
            return
        try:
            await self._app(scope, _within(self._limit, receive), answer.send)
        except ClientDisconnect:
            # Nobody is there any more to be told anything.
            return
        except Exception as error:
            if answer.started:
                raise
            # Answered here and not by the server, which would close the connection under the next request on it.
            problem = _too_large(self._limit) if isinstance(error, BodyTooLarge) else internal_error(error, request_id)
            await answer.refuse(problem)


class _Answer:
    """What is sent, with the id of the request among its headers."""

    def __init__(self, send: Send, request_id: str) -> None:
        self._send, self._request_id = send, request_id
        self.started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            MutableHeaders(scope=message)["X-Request-ID"] = self._request_id
        await self._send(message)

    async def refuse(self, problem: Problem) -> None:
        body = write_json(problem.of_request(self._request_id))
        headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), **problem.headers}
        start: Message = {
            "type": "http.response.start",
            "status": problem.status.value,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body})


def _announced_length(headers: Headers) -> int:
    length = headers.get("content-length", "")
    return int(length) if length.isascii() and length.isdecimal() else 0


def _within(limit: int, receive: Receive) -> Receive:
    """The messages of a request, as long as they are not too large together."""
    received = 0

    async def receive_within_limit() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise BodyTooLarge
        return message

    return receive_within_limit


def _too_large(limit: int) -> Problem:
    return Problem(
        status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        code="body_too_large",
        detail=f"expected a body of at most {limit} bytes",
        # The rest of the body is not read, so the connection cannot be used again.
        headers={"Connection": "close"},
    )
