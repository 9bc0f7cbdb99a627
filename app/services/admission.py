"""A limit on work under way: what cannot be taken soon is refused soon, instead of hanging until a timeout."""

import asyncio
from collections import deque
from types import TracebackType

from app.domain.errors import Overloaded


class Admission:
    """At most ``limit`` holders at a time, each ``async with admission:``; others wait ``wait_seconds`` for a place.

    Args:
        what: That there is too much of, as messages name it.
        retry_after: Seconds after which one who is refused may try again.

    Raises:
        Overloaded: no place became free in time.
    """

    def __init__(self, *, limit: int, wait_seconds: float, what: str = "writes", retry_after: int = 1) -> None:
        self._limit = self._free = limit
        self._wait_seconds = wait_seconds
        self._what, self._retry_after = what, retry_after
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def held(self) -> int:
        """Places that are taken."""
        return self._limit - self._free

    @property
    def waiting(self) -> int:
        """Number of tasks that wait for a place."""
        return sum(not place.done() for place in self._waiting)

    async def __aenter__(self) -> None:
        if self._free:
            self._free -= 1
            return
        # Who waits is handed the place of one who leaves. A timer of the loop costs a tenth of `asyncio.timeout`.
        loop = asyncio.get_running_loop()
        place = loop.create_future()
        timer = loop.call_later(self._wait_seconds, self._refuse, place)
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

    def _refuse(self, place: "asyncio.Future[None]") -> None:
        if not place.done():
            detail = f"too many {self._what} are under way; nothing was saved, try again shortly"
            place.set_exception(Overloaded(detail, retry_after=self._retry_after))
