"""Where arithmetic runs: small pieces at once, large ones in a pool of threads so that the event loop stays free."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.domain.errors import Overloaded

Result = TypeVar("Result")
# Work that waits per thread before more is refused.
_WAITING_PER_THREAD = 8


class ComputePool:
    """Runs pure functions. numpy lets other threads run while it works on large arrays."""

    def __init__(self, threads: int) -> None:
        self._pool = ThreadPoolExecutor(max_workers=threads, thread_name_prefix="compute")
        self._most = threads * (1 + _WAITING_PER_THREAD)
        self._under_way = 0

    async def run(self, function: Callable[[], Result], *, heavy: bool) -> Result:
        """Result of the function, computed in a thread when it is heavy.

        Raises:
            Overloaded: too many heavy computations wait already.
        """
        if not heavy:
            return function()
        if self._under_way >= self._most:
            raise Overloaded("too many large computations are under way; try again shortly", retry_after=5)
        self._under_way += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, function)
        finally:
            self._under_way -= 1

    def close(self) -> None:
        """Let running computations finish and take no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)
