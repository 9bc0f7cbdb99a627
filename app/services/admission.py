"""A limit on work under way: what cannot be taken soon is refused soon, instead of hanging until a timeout."""

import asyncio
from types import TracebackType

from app.domain.errors import Overloaded


class Admission:
    """At most ``limit`` holders at a time, each ``async with admission:``; others wait ``wait_seconds`` for a place.

    Raises Overloaded where none became free: too many of ``what``, as the message says, and to be tried again after
    ``retry_after`` seconds. ``held`` places are taken, and ``waiting`` tasks wait for one.
    """

    def __init__(self, *, limit: int, wait_seconds: float, what: str = "writes", retry_after: int = 1) -> None:
        self._places, self._wait_seconds = asyncio.Semaphore(limit), wait_seconds
        self._what, self._retry_after = what, retry_after
        self.held = self.waiting = 0

    async def __aenter__(self) -> None:
        self.waiting += 1
        try:
            async with asyncio.timeout(self._wait_seconds):
                await self._places.acquire()
        except TimeoutError:
            detail = f"too many {self._what} are under way; nothing was saved, try again shortly"
            raise Overloaded(detail, retry_after=self._retry_after) from None
        finally:
            self.waiting -= 1
        self.held += 1

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.held -= 1
        self._places.release()
