"""Work that goes on beside other work, and ends with it."""

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from app.domain.errors import StoreError

_log = logging.getLogger("prevail.beside")


@asynccontextmanager
async def beside(work: Coroutine[Any, Any, object], name: str, patience: float = 1.0) -> AsyncIterator[None]:
    """Have work done in a task of that name as long as the context lasts. It is cancelled then, and again after so many
    seconds, until it has ended: what waits for connections can lose a cancellation (the pool's check of one,
    `asyncio.wait_for` before Python 3.12).
    """
    task = asyncio.create_task(work, name=name)
    try:
        yield
    finally:
        while not task.done():
            task.cancel()
            await asyncio.wait([task], timeout=patience)


async def again_and_again(
    work: Callable[[], Awaitable[object]], seconds: float, without: str, *, first: float | None = None
) -> None:
    """Do work every so many seconds, from ``first`` on. What is the case ``without`` it, while the store is away, is
    said in the log.
    """
    await asyncio.sleep(seconds if first is None else first)
    while True:
        try:
            await work()
        except StoreError as error:
            _log.warning("%s: %s", without, error)
        await asyncio.sleep(seconds)
