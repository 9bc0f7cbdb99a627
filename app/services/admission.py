"""A limit on writes under way: what cannot be taken soon is refused soon, instead of hanging until a timeout."""

import asyncio
from collections import deque
from types import TracebackType

from app.domain.errors import Overloaded


class Admission:
    """At most ``limit`` holders at a time, each ``async with admission:``; others wait ``wait_seconds`` for a place.

    Raises:
        Overloaded: no place became free in time.
    """

    def __init__(self, *, limit: int, wait_seconds: float) -> None:
        self._free = limit
        self._wait_seconds = wait_seconds
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        # Who waits is handed the place of one who leaves. A timer of the loop costs a tenth of `asyncio.timeout`.
        loop = asyncio.get_running_loop()
        place = loop.create_future()
        timer = loop.call_later(self._wait_seconds, _refuse, place)
        self._waiting.append(place)
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled() and place.exception() is None:
                self._leave()
            raise
        finally:
            timer.cancel()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._leave()

    def _leave(self) -> None:
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                return
        self._free += 1


def _refuse(place: "asyncio.Future[None]") -> None:
    if not place.done():
        place.set_exception(Overloaded("too many writes are under way; nothing was kept, try again shortly"))
