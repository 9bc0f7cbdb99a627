"""Middleware around every route: identity, refusal by headers, limits and unpacking of bodies, and facts for logs.

A browser sends what any page asks of it, with the address of this machine and, under `/ui`, with the cookie. It also
says which page asked (Fetch Metadata, `Origin`) and under which name it knows the service (`Host`), which no page can
change. Bodies in gzip are unpacked as they stream, within a bound. Work for a client who has left is ended.
"""

import asyncio
import logging
import re
import time
import zlib
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from difflib import get_close_matches
from http import HTTPStatus
from typing import Any, Final
from uuid import uuid4

from fastapi import FastAPI
from starlette.datastructures import MutableHeaders
from starlette.middleware.cors import CORSMiddleware
from starlette.middleware.gzip import GZipMiddleware
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.answers import write_json
from app.api.presentation import weighted
from app.api.problems import (
    Problem,
    Refused,
    UnreadableBody,
    internal_error,
    method_not_allowed,
    not_found,
    problem_of,
    response_of,
    send_response,
)
from app.domain.members import rfc3339
from app.domain.operations import Used
from app.services.present import Tally, begin_tally

# Unpacked at once: a millisecond's work, after which others get their turn.
_PIECE: Final = 256 * 1024
_GZIP: Final = 16 + zlib.MAX_WBITS
# Tools that pack pieces one by one make them of 64 KiB; empty ones take twenty bytes and as much time.
_MOST_MEMBERS: Final = 10_000
# Answers from so many bytes on are packed. Level 1 makes a quarter of a report in a fraction of a millisecond.
_LEAST_PACKED: Final = 16 * 1024
_LEVEL: Final = 1


class Packing(GZipMiddleware):
    """Packs large answers. The library takes `gzip;q=0`, which refuses gzip, for a wish."""

    def __init__(self, app: ASGIApp) -> None:
        # Nothing else that is answered is packed already.
        super().__init__(app, _LEAST_PACKED, _LEVEL, exclude_content_types=("image/png",))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        accepted = _values(scope).get(b"accept-encoding", b"") if scope["type"] == "http" else b""
        if b";" in accepted and any(weighted(one) == ("gzip", 0.0) for one in accepted.decode("latin-1").split(",")):
            headers = [(name, value) for name, value in scope["headers"] if name != b"accept-encoding"]
            scope = {**scope, "headers": headers}
        await super().__call__(scope, receive, send)


def _values(scope: Scope) -> dict[bytes, bytes]:
    """The first header of each name, in small letters: look-ups find it at once, the framework goes through all."""
    return dict(reversed(scope["headers"]))


# Of requests, what several lines may say together (RFC 9110, 5.3); of other headers the first counts.
_LISTS: Final = frozenset({b"accept", b"accept-encoding", b"if-match", b"if-none-match", b"prefer"})


def _joined(headers: Sequence[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Headers with the lines of each list as one."""
    lists: dict[bytes, bytes] = {}
    for name, value in headers:
        if name in _LISTS:
            lists[name] = b"%b, %b" % (lists[name], value) if name in lists else value
    return [*lists.items(), *(header for header in headers if header[0] not in _LISTS)]


def unpacked(scope: Scope, receive: Receive) -> tuple[Scope, Receive]:
    """The request with a plain body. Raises Refused when it is compressed in an unknown way."""
    encoding = _values(scope).get(b"content-encoding", b"").decode("latin-1").strip().lower()
    if encoding in ("", "identity"):
        return scope, receive
    if encoding not in ("gzip", "x-gzip"):
        problem = Problem(
            status=HTTPStatus.UNSUPPORTED_MEDIA_TYPE,
            code="unsupported_encoding",
            detail=f"expected a body that is plain or has the Content-Encoding gzip, got {encoding[:60]!r}",
            headers={"Accept-Encoding": "gzip", "Connection": "close"},
        )
        raise Refused(problem)
    # Its length is that of the packed body.
    dropped = (b"content-encoding", b"content-length")
    headers = [(name, value) for name, value in scope["headers"] if name not in dropped]
    return {**scope, "headers": headers}, _Unpacking(receive)


class _Unpacking:
    """The messages of a request with its body unpacked. Members of gzip may come one after another."""

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._member = zlib.decompressobj(_GZIP)
        self._packed = b""
        self._begun = self._full = self._last = False
        self._members = 1

    async def __call__(self) -> Message:
        """The next message.

        Raises:
            UnreadableBody: the body is no gzip, or ends early.
        """
        while True:
            if self._packed or self._full:
                # Nothing is waited for here, and others would wait for all of a body.
                await asyncio.sleep(0)
                if piece := self._unpack():
                    return {"type": "http.request", "body": piece, "more_body": True}
                continue
            if self._last:
                if self._begun and not self._member.eof:
                    raise _malformed("the body ends early")
                self._begun = self._last = False
                return {"type": "http.request", "body": b"", "more_body": False}
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            self._packed = message.get("body", b"")
            self._last = not message.get("more_body", False)

    def _unpack(self) -> bytes:
        """Unpack at most `_PIECE` bytes."""
        if self._member.eof:
            self._members += 1
            if self._members > _MOST_MEMBERS:
                raise _malformed(f"there are more than {_MOST_MEMBERS} files of gzip one after another")
            self._member = zlib.decompressobj(_GZIP)
        self._begun = True
        try:
            piece = self._member.decompress(self._packed, _PIECE)
        except zlib.error as error:
            raise _malformed(str(error)) from None
        self._packed = self._member.unused_data if self._member.eof else self._member.unconsumed_tail
        # What was held back for want of room comes without more input.
        self._full = len(piece) == _PIECE and not self._member.eof
        return piece


def _malformed(reason: str) -> UnreadableBody:
    detail = f"expected a body in gzip, as Content-Encoding says: {reason}"
    return UnreadableBody.at("", "invalid_gzip", detail)


# Shorter requests are over before anybody has looked.
_LOOK_AFTER_SECONDS = 1.0


class DisconnectWatch:
    """Cancels the task that it is made in when the client goes away while it is still at work.

    Until the whole body has come only the application asks what comes next.

    Attributes:
        gone: The client went away, and the task was cancelled for it.
    """

    def __init__(self, receive: Receive, body: "Lease") -> None:
        self._receive, self._body, self._task, self.gone = receive, body, asyncio.current_task(), False
        loop = asyncio.get_running_loop()
        self._watching: asyncio.TimerHandle | asyncio.Task[None] = loop.call_later(_LOOK_AFTER_SECONDS, self._begin)

    def _begin(self) -> None:
        self._watching = asyncio.create_task(self._watch())

    async def _watch(self) -> None:
        while not self._body.complete:
            await asyncio.sleep(_LOOK_AFTER_SECONDS)
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        if self._task is not None:
            self._task.cancel()

    def stop(self) -> None:
        """End the watch, once the request is over."""
        self._watching.cancel()


_HOST: Final = re.compile(r"(\[[0-9a-f:.]+\]|[\w.-]*)(:\d{0,5})?", re.ASCII)
_LOOPBACK: Final = re.compile(r"(.+\.)?localhost|127(\.\d{1,3}){3}|::1")
_LENGTH: Final = re.compile(rb"[0-9]{0,18}")
# They say nothing and do nothing; whoever probes may know the service by an address that it does not know itself.
_PROBES: Final = frozenset({"/healthz", "/readyz"})
# Names of models and of data sets may have a slash, so that an encoded one is part of the name.
_NAMED: Final = (b"/v1/models/", b"/v1/datasets/")
# What is left of the request is not read, so the connection cannot be used again.
_CLOSE: Final = {"Connection": "close"}


class HeaderChecks:
    """Looks at each request once, before anything else does."""

    def __init__(
        self, *, hosts: Iterable[str], origins: Iterable[str], needs_key: Callable[[], Awaitable[bool]]
    ) -> None:
        """Take the names that the service answers to, `*.` for all below a name, and origins whose pages may ask.

        Without names any name is right where a key is needed, and elsewhere those of this machine alone.
        """
        self._hosts, self._origins, self._needs_key = frozenset(hosts), frozenset(origins), needs_key

    async def refusal(self, scope: Scope) -> Problem | None:
        """The problem of a request; None when there is none."""
        headers, given = _values(scope), [value for name, value in scope["headers"] if name == b"host"]
        host = _HOST.fullmatch(b"".join(given).decode("latin-1").lower())
        if host is None or len(given) > 1 or (not given and scope["http_version"] == "1.1"):
            return _bad("expected one header Host, with a name or an address")
        if _LENGTH.fullmatch(headers.get(b"content-length", b"")) is None:
            return _bad("expected a Content-Length of at most 18 digits")
        path: bytes = scope.get("raw_path") or b""
        if b"%2f" in path.lower() and not path.startswith(_NAMED):
            return not_found()
        if scope["method"] not in ("GET", "HEAD", "OPTIONS") and self._is_foreign(headers):
            detail = "a browser sent this for a page of another site: PREVAIL_CORS_ORIGINS names those that may ask"
            return Problem(status=HTTPStatus.FORBIDDEN, code="cross_site", detail=detail, headers=_CLOSE)
        name = host[1].strip("[]").rstrip(".")
        if not given or scope["path"] in _PROBES or self._is_own(name, scope):
            return None
        if self._hosts or not await self._needs_key():
            detail = f"the service does not answer to the name {name[:100]!r}: PREVAIL_ALLOWED_HOSTS names those it has"
            return Problem(status=HTTPStatus.FORBIDDEN, code="unknown_host", detail=detail, headers=_CLOSE)
        return None

    def _is_foreign(self, headers: Mapping[bytes, bytes]) -> bool:
        """Did a page ask for it that is none of the service's, and none that the operator has named?"""
        origin, site = headers.get(b"origin"), headers.get(b"sec-fetch-site")
        if "*" in self._origins or (origin is not None and origin.decode("latin-1") in self._origins):
            return False
        if site is not None:
            return site not in (b"same-origin", b"none")
        # Only the scheme may differ: something in front speaks TLS.
        return origin is not None and origin.partition(b"://")[2] != headers.get(b"host", b"").lower()

    def _is_own(self, name: str, scope: Scope) -> bool:
        """Is it of this machine, the address that the connection was made to, or one that the operator has named?"""
        address = (scope.get("server") or ("",))[0].removeprefix("::ffff:")
        if name in self._hosts or name == address or _LOOPBACK.fullmatch(name):
            return True
        parents = [f"*{name[place:]}" for place, sign in enumerate(name) if sign == "."]
        return "*" in self._hosts or not self._hosts.isdisjoint(parents)


class CrossOrigin(CORSMiddleware):
    """Answers preflights and lets pages of other origins read; a preflight that its headers refuse goes on to be so."""

    def __init__(self, app: ASGIApp, /, *, checks: HeaderChecks, **options: Any) -> None:
        super().__init__(app, **options)
        self._checks = checks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] == "http" and scope["method"] == "OPTIONS" and await self._checks.refusal(scope) is not None:
            await self.app(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


def _bad(detail: str) -> Problem:
    return Problem(status=HTTPStatus.BAD_REQUEST, code="bad_request", detail=detail, headers=_CLOSE)


_LONGEST_PATH, _ALIKE = 200, 0.8
_ORDER = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Addresses:
    """The addresses of the service."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._taken: dict[str, tuple[re.Pattern[str], set[str]]] = {}
        for route in routes:
            own = route.methods or set()
            taken = {"OPTIONS", *own, *({"HEAD"} if "GET" in own else ())}
            self._taken.setdefault(route.path, (route.path_regex, set()))[1].update(taken)

    def refuses(self, path: str, method: str) -> bool:
        """Return True for an address without parameters that does not take this method."""
        return path in self._taken and method not in self._taken[path][1]

    def template(self, path: str) -> str | None:
        """The address as its route has it, with the names of its parameters; None when there is no such address."""
        if path in self._taken:
            return path
        return next((name for name, (pattern, _) in self._taken.items() if pattern.match(path)), None)

    def near(self, path: str) -> tuple[str, ...]:
        """The address that an unknown one most resembles; none where nothing does."""
        return tuple(get_close_matches(path[:_LONGEST_PATH], self._taken, n=1, cutoff=_ALIKE))

    def methods(self, path: str) -> str:
        """The methods that an address takes, as the header Allow lists them; empty when there is no such address."""
        same = [self._taken[path]] if path in self._taken else self._taken.values()
        taken = {method for pattern, methods in same if pattern.match(path) for method in methods}
        return ", ".join(method for method in _ORDER if method in taken)


# Bodies up to here are not counted: there are at most as many as connections.
UNCOUNTED_BYTES = 256 * 1024


class ByteBudget:
    """Bytes that bodies under way may still take, together."""

    def __init__(self, total: int) -> None:
        self.free = total


class Lease:
    """The messages of one request, whose bytes are taken from the budget as they come.

    Attributes:
        complete: Has the whole body come?
    """

    def __init__(self, receive: Receive, budget: ByteBudget, limit: int, *, complete: bool) -> None:
        self._receive, self._budget, self._limit, self.complete = receive, budget, limit, complete
        self._received = self._held = 0

    async def __call__(self) -> Message:
        """The next message. Raises Refused: it is one too many, or there is no room for it."""
        message = await self._receive()
        size = len(message.get("body", b""))
        if self._received + size > self._limit:
            raise Refused(_too_large(self._limit))
        if not self.grow(size):
            raise Refused(_NO_ROOM)
        self.complete = not message.get("more_body", False)
        return message

    def grow(self, size: int) -> bool:
        """Take more bytes; False when there are not enough left."""
        self._received += size
        wanted = self._received - UNCOUNTED_BYTES - self._held
        if wanted > self._budget.free:
            return False
        if wanted > 0:
            self._held += wanted
            self._budget.free -= wanted
        return True

    def end(self) -> None:
        """Return the bytes to the budget."""
        self._budget.free += self._held
        self._held = 0


_ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


class RequestEnvelope:
    """The outermost layer: an id for each request, 405 with the allowed methods, limits on bodies, 500 for our
    faults.

    The id is the caller's ``X-Request-ID`` when that is a sane one.
    """

    def __init__(
        self, app: ASGIApp, *, max_body_bytes: int, max_bodies_bytes: int, addresses: Addresses, checks: HeaderChecks
    ) -> None:
        self._app = Packing(app)
        # One for which there is never room is too large.
        self._limit = min(max_body_bytes, max_bodies_bytes + UNCOUNTED_BYTES)
        self._budget = ByteBudget(max_bodies_bytes)
        self._addresses, self._checks = addresses, checks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        given = _values(scope).get(b"x-request-id", b"").decode("latin-1")
        request_id = given if _ACCEPTABLE_ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
        scope = {**scope, "headers": _joined(scope["headers"])}
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        answer = _Answer(send, scope["state"], without_body=method != scope["method"])
        try:
            await self._answer(scope, receive, method, answer)
        except Exception as error:
            if answer.started:
                raise
            # Answered here and not by the server, which would close the connection under the next request on it.
            await answer.refuse(problem_of(error) or internal_error(error, request_id))

    async def _answer(self, scope: Scope, receive: Receive, method: str, answer: "_Answer") -> None:
        headers = _values(scope)
        refusal = await self._checks.refusal(scope) or self._refusal(scope["path"], method, headers)
        if refusal is not None:
            raise Refused(refusal)
        if method == "OPTIONS" and (methods := self._addresses.methods(scope["path"])):
            await answer.allow(methods)
            return
        request, body = unpacked({**scope, "method": method} if method != scope["method"] else scope, receive)
        complete = not _announced(headers) and b"transfer-encoding" not in headers
        lease = Lease(body, self._budget, self._limit, complete=complete)
        watch = DisconnectWatch(receive, lease)
        try:
            await self._app(request, lease, answer.send)
        except ClientDisconnect:
            # Nobody is there any more to be told anything.
            return
        except asyncio.CancelledError:
            if not watch.gone:
                raise
        finally:
            watch.stop()
            lease.end()

    def _refusal(self, path: str, method: str, headers: Mapping[bytes, bytes]) -> Problem | None:
        announced = _announced(headers)
        if self._addresses.refuses(path, method):
            return method_not_allowed(self._addresses.methods(path))
        if announced > self._limit:
            return _too_large(self._limit)
        return _NO_ROOM if announced - UNCOUNTED_BYTES > self._budget.free else None


def _announced(headers: Mapping[bytes, bytes]) -> int:
    """Bytes that the body is to have; 0 when nothing says so."""
    return int(headers.get(b"content-length") or 0)


class _Answer:
    """Sends the answer of a request, with its id as a header; to HEAD without the body.

    The state of the request may have ``answer_headers``, which whatever is answered has then.
    """

    def __init__(self, send: Send, state: MutableMapping[str, Any], *, without_body: bool) -> None:
        self._send, self._state, self._without_body = send, state, without_body
        self.request_id: str = state["request_id"]
        self.started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            message["headers"] = [*message["headers"], (b"x-request-id", self.request_id.encode())]
            for name, value in self._state.get("answer_headers", {}).items():
                MutableHeaders(scope=message).setdefault(name, value)
        elif self._without_body:
            message = {**message, "body": b""}
        await self._send(message)

    async def allow(self, methods: str) -> None:
        headers = {"Allow": methods, "Content-Length": "0"}
        await send_response(Response(status_code=HTTPStatus.NO_CONTENT, headers=headers), self.send)

    async def refuse(self, problem: Problem) -> None:
        self._state["code"] = problem.code
        await send_response(response_of(problem, self.request_id), self.send)


_NO_ROOM = Problem(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    code="overloaded",
    detail="more large bodies are under way than there is room for; nothing was saved",
    headers={"Retry-After": "5", "Connection": "close"},
)


def _too_large(limit: int) -> Problem:
    return Problem(
        status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        code="body_too_large",
        detail=f"expected a body of at most {limit} bytes",
        # The rest of the body is not read, so the connection cannot be used again.
        headers={"Connection": "close"},
    )


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """A request that is over.

    Attributes:
        seconds: From its coming until its answer was handed to the server.
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


class RequestSink:
    """Observer of requests."""

    def begun(self) -> None:
        """A request has come: nothing is done unless a subclass does something."""

    def ended(self, facts: RequestFacts) -> None:
        """A request is over."""


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


class RequestLog(RequestSink):
    """Writes a line for each request."""

    def ended(self, facts: RequestFacts) -> None:
        """Write the line of a request."""
        if not _log.isEnabledFor(logging.INFO):
            return
        scope, state = facts.scope, facts.state
        # The id of the trace that the caller is part of.
        trace = _TRACE.fullmatch(_values(scope).get(b"traceparent", b"").decode("latin-1"))
        line = {
            "at": rfc3339(facts.at),
            "request": state.get("request_id"),
            "trace": state.get("trace_id") or (trace and trace[1]),
            "key": state.get("key_id"),
            "project": state.get("project"),
            "method": scope["method"],
            "route": facts.template,
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
        _log.info("%s", write_json(line).decode())


class UsageCount(RequestSink):
    """Counts what each request of a project has used."""

    def __init__(self, app: FastAPI) -> None:
        self._app = app

    def ended(self, facts: RequestFacts) -> None:
        """Count a request; its body when something of it is kept, or will be by a job."""
        project = facts.state.get("project")
        if project is not None:
            kept = facts.tally.evaluations > 0 or facts.status == HTTPStatus.ACCEPTED
            size = facts.received if kept and facts.state.get("stores") else 0
            used = Used(facts.tally.evaluations, size, facts.tally.compute)
            self._app.state.services.quotas.note(project, used)
