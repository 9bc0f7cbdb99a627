"""A limit on writes under way: what cannot be taken soon is refused soon, instead of hanging until a timeout."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.domain.errors import Overloaded


class Admission:
    """At most ``limit`` holders at a time; others wait ``wait_seconds`` for a place."""

    def __init__(self, *, limit: int, wait_seconds: float) -> None:
        self._places = asyncio.Semaphore(limit)
        self._wait_seconds = wait_seconds

    @asynccontextmanager
    async def place(self) -> AsyncIterator[None]:
        """Hold a place.

        Raises:
            Overloaded: no place became free in time.
        """
        try:
            await self._take()
        except TimeoutError:
            raise Overloaded("too many writes are under way; nothing was kept, try again shortly") from None
        try:
            yield
        finally:
            self._places.release()

    async def _take(self) -> None:
        if not self._places.locked():
            await self._places.acquire()
            return
        if self._wait_seconds == 0:
            # A waiter that times out at once would take each freed place with it.
            raise TimeoutError
        async with asyncio.timeout(self._wait_seconds):
            await self._places.acquire()
