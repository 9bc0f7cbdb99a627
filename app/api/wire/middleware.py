"""Middleware around every route: identity, limits of bodies, addresses of callers."""

import asyncio
import logging
import re
from collections.abc import Iterable, MutableMapping
from http import HTTPStatus
from typing import Any, TextIO
from uuid import uuid4

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.answers import write_json
from app.api.problems import MEDIA_TYPE, Problem, internal_error, method_not_allowed, problem_of
from app.api.wire.compression import Packing, unpacked
from app.api.wire.disconnects import DisconnectWatch
from app.api.wire.same_site import HeaderChecks


class LineHandler(logging.StreamHandler[TextIO]):
    """Writes what is logged as it is, line by line.

    A line that is whole already need not become a record: that goes through fifteen functions, which the processor has
    forgotten again from one report to the next.
    """

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.setFormatter(logging.Formatter("%(message)s"))

    def write_line(self, logger: str, text: str) -> None:
        """Write a line of a logger; what keeps it from being written is told as the library tells it."""
        self.acquire()
        try:
            self.stream.write(text + self.terminator)
            self.flush()
        except Exception:  # noqa: BLE001 - as `logging` does: no request fails for its line
            self.handleError(logging.LogRecord(logger, logging.INFO, __file__, 0, text, None, None))
        finally:
            self.release()


_ORDER = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


class Addresses:
    """The addresses of the service."""

    def __init__(self, routes: Iterable[Route]) -> None:
        self._plain: dict[str, set[str]] = {}
        self._patterns: dict[str, tuple[re.Pattern[str], set[str]]] = {}
        for route in routes:
            own = route.methods or set()
            taken = {"OPTIONS", *own, *({"HEAD"} if "GET" in own else ())}
            if "{" in route.path:
                self._patterns.setdefault(route.path, (route.path_regex, set()))[1].update(taken)
            else:
                self._plain.setdefault(route.path, set()).update(taken)

    def refuses(self, path: str, method: str) -> bool:
        """Whether it is plain and does not take the method, so that no route with a parameter is to be asked."""
        taken = self._plain.get(path)
        return taken is not None and method not in taken

    def template(self, path: str) -> str | None:
        """The address as its route has it, with the names of its parameters; None when there is no such address."""
        if path in self._plain:
            return path
        return next((name for name, (pattern, _) in self._patterns.items() if pattern.match(path)), None)

    def methods(self, path: str) -> str:
        """The methods that an address takes, as the header Allow lists them; empty when there is no such address."""
        taken = self._plain.get(path) or {
            method for pattern, methods in self._patterns.values() if pattern.match(path) for method in methods
        }
        return ", ".join(method for method in _ORDER if method in taken)


# Bodies up to here are not counted: there are at most as many as connections.
UNCOUNTED_BYTES = 256 * 1024


class ByteBudget:
    """What is left for bodies under way."""

    def __init__(self, total: int) -> None:
        self.free = total


class Lease:
    """What one request holds of the budget."""

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._received = self._held = 0

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
        """Give everything back."""
        self._budget.free += self._held
        self._held = 0


_ACCEPTABLE_ID = re.compile(r"[A-Za-z0-9._:/+=@-]{1,128}")


class BodyRefused(Exception):
    """More bytes came than this request may have, or than there is room for."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.detail)
        self.problem = problem


class RequestEnvelope:
    """Around everything: an id for each request, 405 with what an address takes, limits on bodies, 500 for our faults.

    The id is the caller's ``X-Request-ID`` when that is a sane one.
    """

    def __init__(
        self, app: ASGIApp, *, max_body_bytes: int, max_bodies_bytes: int, addresses: Addresses, checks: HeaderChecks
    ) -> None:
        self._app = Packing(app)
        self._limit = max_body_bytes
        self._budget = ByteBudget(max_bodies_bytes)
        self._addresses, self._checks = addresses, checks

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one ASGI connection."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        given = headers.get("x-request-id", "")
        request_id = given if _ACCEPTABLE_ID.fullmatch(given) else uuid4().hex
        scope.setdefault("state", {})["request_id"] = request_id
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
        refusal = await self._checks.refusal(scope)
        if refusal is not None:
            await answer.refuse(refusal)
            return
        headers = Headers(scope=scope)
        announced = int(headers.get("content-length") or 0)
        refusal = self._refusal(scope["path"], method, announced)
        if refusal is not None:
            await answer.refuse(refusal)
            return
        if method == "OPTIONS" and (methods := self._addresses.methods(scope["path"])):
            await answer.allow(methods)
            return
        request = unpacked({**scope, "method": method} if method != scope["method"] else scope, receive)
        if isinstance(request, Problem):
            await answer.refuse(request)
            return
        watch = DisconnectWatch(receive, body_complete=not announced and "transfer-encoding" not in headers)
        await self._handle(*request, answer, watch)

    async def _handle(self, scope: Scope, receive: Receive, answer: "_Answer", watch: DisconnectWatch) -> None:
        """Have the application answer, as long as there is room for the body and somebody waits for the answer."""
        lease = Lease(self._budget)
        try:
            await self._app(scope, _within(self._limit, receive, lease, watch), answer.send)
        except ClientDisconnect:
            # Nobody is there any more to be told anything.
            return
        except asyncio.CancelledError:
            if not watch.gone:
                raise
        except BodyRefused as error:
            if answer.started:
                raise
            await answer.refuse(error.problem)
        finally:
            watch.stop()
            lease.end()

    def _refusal(self, path: str, method: str, announced: int) -> Problem | None:
        if self._addresses.refuses(path, method):
            return method_not_allowed(self._addresses.methods(path))
        if announced > self._limit:
            return _too_large(self._limit)
        return _NO_ROOM if announced - UNCOUNTED_BYTES > self._budget.free else None


class _Answer:
    """What is sent, with the id of the request among its headers; to HEAD everything but the body.

    The state of the request may have ``answer_headers``, which whatever is answered has then.
    """

    def __init__(self, send: Send, state: MutableMapping[str, Any], *, without_body: bool) -> None:
        self._send, self._state, self._without_body = send, state, without_body
        self.request_id: str = state["request_id"]
        self.started = False

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.started = True
            headers = MutableHeaders(scope=message)
            headers["X-Request-ID"] = self.request_id
            for name, value in self._state.get("answer_headers", {}).items():
                headers.setdefault(name, value)
        elif self._without_body:
            message = {**message, "body": b""}
        await self._send(message)

    async def allow(self, methods: str) -> None:
        headers = [(b"allow", methods.encode()), (b"content-length", b"0")]
        await self.send({"type": "http.response.start", "status": HTTPStatus.NO_CONTENT.value, "headers": headers})
        await self.send({"type": "http.response.body", "body": b""})

    async def refuse(self, problem: Problem) -> None:
        self._state["code"] = problem.code
        body = write_json(problem.of_request(self.request_id))
        headers = {"Content-Type": MEDIA_TYPE, "Content-Length": str(len(body)), **problem.headers}
        start: Message = {
            "type": "http.response.start",
            "status": problem.status.value,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
        await self.send(start)
        await self.send({"type": "http.response.body", "body": body})


def _within(limit: int, receive: Receive, lease: Lease, watch: DisconnectWatch) -> Receive:
    """The messages of a request, as long as they are not too large together and there is room for them."""
    received = 0

    async def receive_within_limit() -> Message:
        nonlocal received
        message = await receive()
        size = len(message.get("body", b""))
        received += size
        if received > limit:
            raise BodyRefused(_too_large(limit))
        if not lease.grow(size):
            raise BodyRefused(_NO_ROOM)
        watch.body_complete = not message.get("more_body", False)
        return message

    return receive_within_limit


_NO_ROOM = Problem(
    status=HTTPStatus.SERVICE_UNAVAILABLE,
    code="overloaded",
    detail="more large bodies are under way than there is room for; nothing was kept",
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
