"""HTTP/1.1 for untrusted clients: uvicorn's protocol with deadlines, limits, and errors that look like all others.

uvicorn waits for ever for the rest of a header or of a body, keeps headers of any size, and answers what is no HTTP in
plain text. Every connection here has one timer that asks, when it is due, whether what is awaited has come.
"""

import sys
from asyncio import AbstractEventLoop, Transport
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum, auto
from functools import partial
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

from starlette.responses import Response
from uvicorn._types import ASGI3Application, ASGIReceiveCallable, ASGISendCallable, Scope
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

from app.api.problems import Problem, internal_error, response_of, send_response

# Where the application puts the limits for this protocol to find: in the state of its lifespan.
LIMITS: Final = "connection_limits"
# And what is told the codes of problems that are answered here.
REFUSED: Final = "refused"
LARGEST_HEADERS: Final = 64 * 1024
# A body has to come at this rate on the whole, whatever the pauses.
LEAST_RATE: Final = 4096


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """Limits of a connection.

    Attributes:
        header_seconds: For the line and the headers of a request, from their first byte or the start of the connection.
        body_seconds: Longest pause in a body, and in the taking of an answer.
        connections: At once; further ones are answered 503.
    """

    header_seconds: float = 10.0
    body_seconds: float = 20.0
    connections: int = 1000


class _Awaited(Enum):
    headers = auto()
    body = auto()


class GuardedProtocol(HttpToolsProtocol):
    """An HTTP/1.1 connection with deadlines and limits."""

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._limits: ConnectionLimits = app_state.get(LIMITS) or ConnectionLimits()
        self._tell_refused: Callable[[str], None] | None = app_state.get(REFUSED)
        self._awaited: _Awaited | None = None
        self._deadline = 0.0
        # Bytes of the headers under way, and when a body began and how much of it has come.
        self._header_bytes = 0
        self._body_start = 0.0
        self._body_bytes = 0
        self._refusal: Problem | None = None
        # Of the requests that came one after another the one whose turn it is.
        self._answered: RequestResponseCycle | None = None
        self._unsent = 0

    # What uvicorn and its parser call.

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]  # as uvicorn does
        """Expect a request; far beyond the limit there is not even an answer."""
        super().connection_made(transport)
        if len(self.connections) > 2 * self._limits.connections:
            transport.abort()
            return
        self._expect_headers()
        self._timer = self.loop.call_later(self._limits.header_seconds, self._look)

    def connection_lost(self, exc: Exception | None) -> None:
        """End the deadlines and the answer under way."""
        super().connection_lost(exc)
        # uvicorn tells the last request alone.
        if self._answered is not None and not self._answered.response_complete:
            self._answered.disconnected = True
            self._answered.message_event.set()
        self._timer.cancel()

    def data_received(self, data: bytes) -> None:
        """Parse what has come."""
        cycle: RequestResponseCycle | None = self.cycle
        if self._awaited is None and (cycle is None or cycle.response_complete):
            # The next request, or what is none: empty lines, which the parser passes over.
            self._expect_headers()
        self._header_bytes += len(data)
        super().data_received(data)
        if self._awaited is not None and self._header_bytes > LARGEST_HEADERS:
            self._refuse(_headers_too_large())

    def on_message_begin(self) -> None:
        """The first byte of a request."""
        super().on_message_begin()
        self._expect_headers()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header; one behind the body (a trailer) is dropped, since who may ask was decided without it."""
        if self._awaited is _Awaited.headers:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """The headers of a request are there, and it goes to the application unless there are too many."""
        if self._header_bytes > LARGEST_HEADERS:
            size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
            if size > LARGEST_HEADERS:
                self._refusal = _headers_too_large()
                raise ValueError(self._refusal.detail)
        if self.parser.get_http_version() not in ("1.0", "1.1"):
            raise ValueError("a version that is not spoken")
        upgrade = self.parser.should_upgrade()
        if upgrade and {b"content-length", b"transfer-encoding"}.intersection(name for name, _ in self.headers):
            # The parser takes what follows for another protocol, and the body with it.
            self._refusal = _bad_request("expected no Upgrade of a request with a body: the service speaks HTTP/1.1")
            raise ValueError(self._refusal.detail)
        self._awaited = _Awaited.body
        self._header_bytes = 0
        self._body_bytes = 0
        self._body_start = self.loop.time()
        self._deadline = self._body_start + self._limits.body_seconds
        crowded = len(self.connections) > self._limits.connections
        self.app = partial(_refused, _TOO_MANY_CONNECTIONS) if crowded else self.config.loaded_app
        super().on_headers_complete()
        self.cycle.keep_alive = self.cycle.keep_alive and not upgrade
        answer = partial(_internal_error, self.cycle)
        self.cycle.send_500_response = answer  # type: ignore[method-assign]  # uvicorn's is plain text that nobody counts

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: ASGI3Application) -> None:
        self._answered = cycle
        super()._start_asgi_task(cycle, app)

    def on_body(self, body: bytes) -> None:
        """A piece of a body."""
        super().on_body(body)
        # What comes beside the body counts as headers do: trailers, and what chunks say of themselves.
        self._header_bytes = 0
        self._body_bytes += len(body)
        allowed = self._body_start + self._body_bytes / LEAST_RATE
        self._deadline = min(self.loop.time(), allowed) + self._limits.body_seconds

    def on_message_complete(self) -> None:
        """Note that a request has come whole."""
        super().on_message_complete()
        self._awaited = None

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's words
        """Answer what the parser has refused, or had no memory for."""
        cause = getattr(sys.exception(), "__context__", None)
        if isinstance(cause, MemoryError):
            self._refuse(internal_error(cause, "unknown"))
            return
        detail = "expected a request of HTTP/1.1: its first line, its headers or the pieces of its body are not"
        self._refuse(self._refusal or _bad_request(detail))

    def _should_upgrade(self) -> bool:
        return False

    # Deadlines.

    def _expect_headers(self) -> None:
        if self._awaited is not _Awaited.headers:
            self._awaited = _Awaited.headers
            self._header_bytes = 0
            self._deadline = self.loop.time() + self._limits.header_seconds

    def _look(self) -> None:
        """The timer: end the connection when what is awaited is late."""
        limits = self._limits
        now, again = self.loop.time(), min(limits.header_seconds, limits.body_seconds)
        if self.transport.is_closing() or self.flow.write_paused:
            unsent = self.transport.get_write_buffer_size()
            if unsent == self._unsent:
                # Nobody has taken any of the answer since the last look.
                self.transport.abort()
                return
            self._unsent, again = unsent, limits.body_seconds
        elif self._awaited is not None:
            if self.flow.read_paused:
                # It is we who do not read.
                self._deadline = now + again
            again = self._deadline - now
            if again <= 0:
                self._give_up()
                again = limits.body_seconds
        self._timer = self.loop.call_later(max(again, 0.01), self._look)

    def _give_up(self) -> None:
        if self._awaited is _Awaited.headers and not self._header_bytes:
            # A connection that nothing was sent on: there is no request to be answered.
            self.transport.close()
            return
        part = "headers" if self._awaited is _Awaited.headers else "body"
        self._refuse(
            Problem(
                status=HTTPStatus.REQUEST_TIMEOUT,
                code="request_timeout",
                detail=f"expected the rest of the {part} sooner; nothing was saved",
            )
        )

    def _refuse(self, problem: Problem) -> None:
        """Answer a request that the application will not answer, and end the connection."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is not None and not cycle.response_complete:
            if self._awaited is not _Awaited.body:
                # An earlier request is still being answered: after that the connection ends.
                cycle.keep_alive = False
                self._awaited = None
                self.flow.pause_reading()
                return
            if self.pipeline:
                # Its turn has not come: the requests before it are answered first.
                self.pipeline[0] = (cycle, partial(_refused, problem))
                self._awaited = None
                return
            cycle.disconnected = True
            cycle.message_event.set()
            if cycle.response_started:
                self.transport.close()
                return
        elif cycle is not None and self._awaited is _Awaited.body:
            # It is answered already; what does not come any more is the rest of its body.
            self.transport.close()
            return
        self._write(problem)
        self.transport.close()

    def _write(self, problem: Problem) -> None:
        if self.transport.is_closing():
            # More of what was refused already.
            return
        if self._tell_refused is not None:
            self._tell_refused(problem.code)
        # Before the first request there is no scope, whatever its type says.
        scope: Any = self.scope
        request_id = scope["state"].get("request_id", uuid4().hex) if scope else uuid4().hex
        answer = _last_answer(problem, request_id)
        lines = [b"%b: %b\r\n" % header for header in (*self.server_state.default_headers, *answer.raw_headers)]
        self.transport.write(b"".join([STATUS_LINE[problem.status], *lines, b"\r\n", answer.body]))


def _bad_request(detail: str) -> Problem:
    return Problem(status=HTTPStatus.BAD_REQUEST, code="bad_request", detail=detail)


def _headers_too_large() -> Problem:
    return Problem(
        status=HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE,
        code="headers_too_large",
        detail=f"expected the first line and the headers to have at most {LARGEST_HEADERS} bytes",
    )


async def _internal_error(cycle: RequestResponseCycle) -> None:
    state: Any = cycle.scope["state"]
    problem = internal_error(sys.exception(), state.setdefault("request_id", uuid4().hex))
    await _answer(problem, state, cycle.send)


_TOO_MANY_CONNECTIONS: Final = Problem(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    code="overloaded",
    detail="too many connections are open; nothing was saved, try again shortly",
    headers={"retry-after": "1"},
)


async def _refused(problem: Problem, scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:  # noqa: ARG001 - an ASGI application
    await _answer(problem, scope.get("state", {}), send)


async def _answer(problem: Problem, state: Any, send: Any) -> None:
    """Answer in place of the application, and end the connection."""
    if REFUSED in state:
        state[REFUSED](problem.code)
    await send_response(_last_answer(problem, state.get("request_id", uuid4().hex)), send)


def _last_answer(problem: Problem, request_id: str) -> Response:
    """An answer that ends its connection."""
    return response_of(problem, request_id, {"Connection": "close", "X-Request-ID": request_id})
