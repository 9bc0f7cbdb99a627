"""Around everything, so that refusals of all kinds are seen too: what came of each request, for the log and metrics."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Protocol

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.wire.addresses import Addresses
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
