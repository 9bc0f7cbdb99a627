"""The service inside the process: the same client and the same numbers, without a server and without a network."""

import asyncio
import threading
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

import httpx

from prevail.client import AsyncClient, Client
from prevail.errors import MissingPackage, PrevailError
from prevail.wire.exchange import Retries

R = TypeVar("R")
_INSIDE = "http://prevail.inside"
_PACKED = frozenset({"content-encoding", "content-length"})


def local(folder: str | Path | None = None) -> Client:
    """A client of a service of its own, which ends with the client.

    Args:
        folder: Where evaluations are saved; without it they go with the client.

    Raises:
        MissingPackage: the service is not installed beside the client.
        PrevailError: the service does not start.
    """
    service = _Service(folder)
    return _LocalClient(service)


def local_async(folder: str | Path | None = None) -> AsyncClient:
    """Make the same service for programs with an event loop."""
    return _LocalAsyncClient(_Service(folder))


class _Service:
    """The application in an event loop of a thread of its own, on an embedded Postgres."""

    def __init__(self, folder: str | Path | None) -> None:
        try:
            from app.inside import started
        except ImportError as error:
            raise MissingPackage(
                "prevail.local() computes with the service itself, which is not installed here "
                f"({error}). Install it: pip install 'prevail-server[embedded]', in a clone -e '.[embedded]'",
                code="missing_package",
            ) from error
        self._undo = ExitStack()
        try:
            self.app = self._undo.enter_context(started(None if folder is None else Path(folder)))
            self._begin()
        except Exception as error:
            self._undo.close()
            raise PrevailError(f"the service does not start: {error}", code="not_started") from error

    def _begin(self) -> None:
        begun: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()

        async def stay() -> None:
            end = asyncio.Event()
            begun.set_result((asyncio.get_running_loop(), end))
            await end.wait()

        # At its end it cancels what still runs, and waits for it.
        thread = threading.Thread(target=lambda: asyncio.run(stay()), name="prevail-local", daemon=True)
        thread.start()
        self.loop, end = begun.result()
        self._undo.callback(thread.join, 10)
        self._undo.callback(self.loop.call_soon_threadsafe, end.set)
        lifespan = self.app.router.lifespan_context(self.app)
        self.run(lifespan.__aenter__())
        self._undo.callback(lambda: self.run(lifespan.__aexit__(None, None, None)))
        self.transport = httpx.ASGITransport(self.app)

    def run(self, coroutine: Coroutine[Any, Any, R]) -> R:
        """Carry out a coroutine in the service's loop."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()

    async def answer(self, request: httpx.Request) -> httpx.Response:
        """Hand a request to the application, in the service's loop."""
        stream = request.stream
        if not isinstance(stream, httpx.AsyncByteStream):
            stream = _Stream(stream)
        inside = httpx.Request(request.method, request.url, headers=request.headers, stream=stream)
        try:
            response = await self.transport.handle_async_request(inside)
        finally:
            # The service knows only that no more comes; why the data cannot be sent, the client says.
            if isinstance(stream, _Stream) and stream.error is not None:
                raise stream.error
        content = await response.aread()
        # It is unpacked already.
        headers = [(name, value) for name, value in response.headers.items() if name not in _PACKED]
        return httpx.Response(response.status_code, headers=headers, content=content, request=request)

    def close(self) -> None:
        """End the service."""
        self._undo.close()


class _Stream(httpx.AsyncByteStream):
    def __init__(self, parts: httpx.SyncByteStream) -> None:
        self._parts = parts
        self.error: PrevailError | None = None

    async def __aiter__(self) -> AsyncIterator[bytes]:
        try:
            for part in self._parts:
                yield part
        except PrevailError as error:
            from starlette.requests import ClientDisconnect  # of the service

            self.error = error
            raise ClientDisconnect from error


class _Transport(httpx.BaseTransport):
    def __init__(self, service: _Service) -> None:
        self._service = service

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        return self._service.run(self._service.answer(request))


class _AsyncTransport(httpx.AsyncBaseTransport):
    def __init__(self, service: _Service) -> None:
        self._service = service

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        future = asyncio.run_coroutine_threadsafe(self._service.answer(request), self._service.loop)
        return await asyncio.wrap_future(future)


class _LocalClient(Client):
    def __init__(self, service: _Service) -> None:
        super().__init__(_INSIDE, retries=Retries(0), transport=_Transport(service))
        self._service = service

    def close(self) -> None:
        super().close()
        self._service.close()


class _LocalAsyncClient(AsyncClient):
    def __init__(self, service: _Service) -> None:
        super().__init__(_INSIDE, retries=Retries(0), transport=_AsyncTransport(service))
        self._service = service

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(self._service.close)
