"""The two clients. What they ask is in `prevail.operations`, once for both; here is how a step is carried out."""

import asyncio
import math
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from importlib.metadata import PackageNotFoundError, version
from types import TracebackType
from typing import Any, Final, Self, TypeVar

import httpx

from prevail.errors import InvalidInput
from prevail.operations.deciding import Deciding
from prevail.operations.drawing import Drawing
from prevail.operations.evaluating import Evaluating
from prevail.operations.looking import Looking
from prevail.operations.wondering import Wondering
from prevail.settings import DEFAULT_URL, found
from prevail.uploads.bodies import compact
from prevail.wire.exchange import Retries, completed
from prevail.wire.steps import Asynchronous, Call, Flow, Lost, Pause, Reply, Step, Synchronous

R = TypeVar("R")
_CONNECT_SECONDS: Final = 10.0
# Errors after which another try would end in the same way.
_LASTING: Final = (httpx.LocalProtocolError,)
# The request has not been sent then.
_UNSENT: Final = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout, *_LASTING)


class Operations(Evaluating, Deciding, Wondering, Drawing, Looking):
    """All operations of the service, for an address and a key.

    Args:
        url: Address of the service; ``PREVAIL_URL`` when left out, else that of `prevail login`, else
            http://127.0.0.1:8000.
        api_key: ``PREVAIL_API_KEY`` when left out, else what `prevail login` has kept for this very address.
        project: Of an admin key, the project to act in; ``PREVAIL_PROJECT`` when left out.
        timeout: Seconds without any sign of the service; ``PREVAIL_TIMEOUT`` when left out, else 60.
        retries: How often a request that was lost or refused for now is sent again.

    Raises:
        InvalidInput: the address, the key, the project or the seconds cannot be meant.
        NotAllowed: others can read the file with the key.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        project: str | None = None,
        timeout: float | None = None,
        retries: int | Retries = 4,
    ) -> None:
        self.settings = found(url, api_key)
        self.url = self.settings.url
        _check_url(self.url, self.settings.url_from)
        self.timeout = _seconds(os.environ.get("PREVAIL_TIMEOUT") or 60 if timeout is None else timeout)
        self.retries = retries if isinstance(retries, Retries) else Retries(retries)
        key = self.settings.key
        project = project or os.environ.get("PREVAIL_PROJECT")
        for what, text in (("the API key", key), ("the project", project)):
            if text and not (text.isascii() and text.isprintable()):
                raise InvalidInput(f"{what}: expected printable ASCII alone, without a line break", code="config")
        self.headers = {"User-Agent": f"prevail/{_version()}", "Accept": "application/json"}
        self.headers |= {"Authorization": f"Bearer {key}"} if key else {}
        self.headers |= {"X-Prevail-Project": project} if project else {}

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.url}>"

    def _settings(self) -> dict[str, Any]:
        return {"headers": self.headers, "timeout": self._timeout(None), "follow_redirects": False}

    def _timeout(self, patience: float | None) -> httpx.Timeout:
        seconds = max(self.timeout, patience or 0.0)
        return httpx.Timeout(seconds, connect=min(seconds, _CONNECT_SECONDS))

    def _request(self, call: Call, build: Callable[..., httpx.Request], *, streamed: Any) -> httpx.Request:
        headers = dict(call.headers)
        content: Any = streamed
        if call.json is not None:
            content = compact(call.json)
            headers.setdefault("Content-Type", "application/json")
        return build(
            call.method,
            self.url + call.path,
            params=call.query() or None,
            content=content,
            headers=headers,
            timeout=self._timeout(call.patience),
        )

    def _lost(self, error: httpx.TransportError) -> Lost:
        reason = str(error) or type(error).__name__
        if isinstance(error, httpx.TimeoutException):
            reason = (
                f"nothing came for {self.timeout:g} s" if not isinstance(error, _UNSENT) else "no connection in time"
            )
        lasting = isinstance(error, _LASTING) or _has_certificate_fault(error)
        return Lost(reason, self.url, lasting=lasting, unsent=isinstance(error, _UNSENT))


def _check_url(url: str, origin: str) -> None:
    try:
        parts = httpx.URL(url)
        # As what looks up the address will.
        is_one = parts.scheme in ("http", "https") and bool(parts.host.encode("idna"))
    except (httpx.InvalidURL, UnicodeError):
        is_one = False
    if not is_one:
        raise InvalidInput(f"url: expected an address such as {DEFAULT_URL}, got {url!r} ({origin})", code="config")


def _seconds(given: float | str) -> float:
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise InvalidInput(f"timeout: expected seconds, more than 0, got {given!r}", code="config")
    return found


def _version() -> str:
    try:
        return version("prevail")
    except PackageNotFoundError:
        return "0"


def _has_certificate_fault(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError) or "CERTIFICATE_VERIFY_FAILED" in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


def _reply(response: httpx.Response, content: bytes) -> Reply:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Reply(response.status_code, headers, content, str(response.url))


class Client(Operations, Synchronous):
    """The service, for programs that wait for it; see `Operations` for the arguments."""

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        project: str | None = None,
        timeout: float | None = None,
        retries: int | Retries = 4,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        super().__init__(url, api_key=api_key, project=project, timeout=timeout, retries=retries)
        self._http = httpx.Client(transport=transport, **self._settings())
        self.ask = self._asked

    def _asked(self, call: Call) -> str:
        return self.drive(completed(call, self.retries)).text

    def drive(self, flow: Flow[R]) -> R:
        """Carry out a flow; returns what it returns."""
        outcome: Reply | Lost | None = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as end:
                found: R = end.value
                return found
            outcome = self._done(step)

    def _done(self, step: Step) -> Reply | Lost | None:
        if isinstance(step, Pause):
            time.sleep(step.seconds)
            return None
        streamed = None if step.parts is None else step.parts()
        try:
            response = self._http.send(self._request(step, self._http.build_request, streamed=streamed))
        except httpx.TransportError as error:
            return self._lost(error)
        return _reply(response, response.content)

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class AsyncClient(Operations, Asynchronous):
    """The service, for programs with an event loop: every method of `Client` as a coroutine."""

    def __init__(
        self,
        url: str | None = None,
        *,
        api_key: str | None = None,
        project: str | None = None,
        timeout: float | None = None,
        retries: int | Retries = 4,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        super().__init__(url, api_key=api_key, project=project, timeout=timeout, retries=retries)
        self._http = httpx.AsyncClient(transport=transport, **self._settings())

    async def drive(self, flow: Flow[R]) -> R:
        """Carry out a flow; returns what it returns."""
        outcome: Reply | Lost | None = None
        while True:
            try:
                step = flow.send(outcome)
            except StopIteration as end:
                found: R = end.value
                return found
            outcome = await self._done(step)

    async def _done(self, step: Step) -> Reply | Lost | None:
        if isinstance(step, Pause):
            await asyncio.sleep(step.seconds)
            return None
        streamed = None if step.parts is None else _in_loop(step.parts())
        try:
            response = await self._http.send(self._request(step, self._http.build_request, streamed=streamed))
        except httpx.TransportError as error:
            return self._lost(error)
        return _reply(response, response.content)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def _in_loop(parts: Iterator[bytes]) -> AsyncIterator[bytes]:
    for part in parts:
        yield part
        # Others have their turn between two parts.
        await asyncio.sleep(0)
