"""One line of JSON per request, when the operator asks for it: who, what, how long; nothing of a body, no key."""

import logging
import re
import time
from datetime import UTC, datetime
from typing import Final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.answers import write_json
from app.domain.members import rfc3339

LOGGER: Final = "prevail.requests"
_log = logging.getLogger(LOGGER)
# W3C Trace Context: version, trace, parent, flags. Later versions may have more behind it.
_TRACE = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_LONGEST_PATH = 200


class RequestLog:
    """Around everything, so that refusals of all kinds are there too."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, at = time.perf_counter(), datetime.now(UTC)
        state = scope.setdefault("state", {})
        status: int | None = None
        received = sent = 0

        async def receive_counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            return message

        async def send_counted(message: Message) -> None:
            nonlocal status, sent
            if message["type"] == "http.response.start":
                status = message["status"]
            sent += len(message.get("body", b""))
            await send(message)

        try:
            await self._app(scope, receive_counted, send_counted)
        finally:
            line = {
                "at": rfc3339(at),
                "request": state.get("request_id"),
                "trace": _trace(Headers(scope=scope).get("traceparent", "")),
                "key": state.get("key_id"),
                "project": state.get("project"),
                "method": scope["method"],
                "route": state.get("route"),
                "path": scope["path"][:_LONGEST_PATH],
                # None when the client went away before there was an answer.
                "status": status,
                "code": state.get("code"),
                "milliseconds": round((time.perf_counter() - begin) * 1000, 3),
                "bytes_in": received,
                "bytes_out": sent,
            }
            _log.info("%s", write_json(line).decode())


def _trace(parent: str) -> str | None:
    match = _TRACE.fullmatch(parent)
    return None if match is None else match[1]
