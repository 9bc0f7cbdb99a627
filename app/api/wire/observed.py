"""Facts of each request, handed to logs and metrics."""

import logging
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Final, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.answers import write_json
from app.api.wire.middleware import Addresses, LineHandler
from app.domain.members import rfc3339
from app.services.observing import Tally, begin_tally


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """A request that is over.

    Attributes:
        at: When it came.
        seconds: From then until its answer was handed to the server.
        template: The address as the route has it; None when there is no such address.
        state: What the layers inside have noted: id, key, project, route, code of a problem.
        status: None when the client went away before there was an answer.
        received: Bytes of its body, as they came.
        sent: Bytes of the body of the answer.
        tally: What it took of processes and of the database.
    """

    at: datetime
    seconds: float
    scope: Scope
    template: str | None
    state: Mapping[str, Any]
    status: int | None
    received: int
    sent: int
    tally: Tally


class RequestSink(Protocol):
    """Is told of every request."""

    def begun(self) -> None:
        """One has come."""
        ...

    def ended(self, facts: RequestFacts) -> None:
        """One is over."""
        ...


class Observed:
    """The outermost layer but for CORS and traces."""

    def __init__(self, app: ASGIApp, *, sinks: Sequence[RequestSink], addresses: Addresses) -> None:
        self._app, self._sinks, self._addresses = app, tuple(sinks), addresses

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        begin, at, tally = time.perf_counter(), datetime.now(UTC), begin_tally()
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

        for sink in self._sinks:
            sink.begun()
        try:
            await self._app(scope, receive_counted, send_counted)
        except BaseException:
            # The server answers it.
            status = status or HTTPStatus.INTERNAL_SERVER_ERROR.value
            raise
        finally:
            seconds = time.perf_counter() - begin
            template = state.get("route") or self._addresses.template(scope["path"])
            facts = RequestFacts(at, seconds, scope, template, state, status, received, sent, tally)
            for sink in self._sinks:
                sink.ended(facts)


LOGGER: Final = "prevail.requests"
_log = logging.getLogger(LOGGER)
# W3C Trace Context: version, trace, parent, flags. Later versions may have more behind it.
_TRACE = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_LONGEST_PATH = 200


class RequestLog:
    """Writes the lines."""

    def begun(self) -> None:
        """Nothing is written yet."""

    def ended(self, facts: RequestFacts) -> None:
        """Write the line of a request."""
        if not _log.isEnabledFor(logging.INFO):
            return
        scope, state = facts.scope, facts.state
        line = {
            "at": rfc3339(facts.at),
            "request": state.get("request_id"),
            "trace": state.get("trace_id") or _trace_of(scope["headers"]),
            "key": state.get("key_id"),
            "project": state.get("project"),
            "method": scope["method"],
            "route": state.get("route"),
            "path": scope["path"][:_LONGEST_PATH],
            # None when the client went away before there was an answer.
            "status": facts.status,
            "code": state.get("code"),
            "milliseconds": round(facts.seconds * 1000, 3),
            "compute_milliseconds": round(facts.tally.compute * 1000, 3),
            "database_milliseconds": round(facts.tally.database * 1000, 3),
            "bytes_in": facts.received,
            "bytes_out": facts.sent,
        }
        text = write_json(line).decode()
        match _log.handlers:
            case [LineHandler() as lines] if not _log.propagate:
                lines.write_line(LOGGER, text)
            case _:
                # `info` would look for the line of code that calls it.
                _log.handle(logging.LogRecord(LOGGER, logging.INFO, __file__, 0, text, None, None))


def _trace_of(headers: Iterable[tuple[bytes, bytes]]) -> str | None:
    """The id of the trace that the caller is part of."""
    for name, value in headers:
        if name == b"traceparent":
            found = _TRACE.fullmatch(value.decode("latin-1"))
            return found and found[1]
    return None
