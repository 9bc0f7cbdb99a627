"""Answers of the store that are good for a moment, so that not every request asks for them."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Final, Generic, TypeVar

KNOWN_SECONDS: Final = 2.0
_MOST_KNOWN: Final = 10_000

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Known(Generic[Key, Value]):
    """Answers of ``read``, which is asked once in `KNOWN_SECONDS` at most for each key."""

    def __init__(self, read: Callable[[Key], Coroutine[Any, Any, Value]]) -> None:
        self._read = read
        self._asked: dict[Key, tuple[float, asyncio.Task[Value]]] = {}

    async def of(self, key: Key) -> Value:
        """Return it. Raises what reading does: then it is read again for the next who asks."""
        until, task = self._asked.get(key, (0.0, None))
        if task is None or (task.done() and (time.monotonic() >= until or task.cancelled() or task.exception())):
            if len(self._asked) >= _MOST_KNOWN:
                self._asked.clear()
            task = asyncio.create_task(self._read(key))
            # From before it is read: what is changed meanwhile counts as not known.
            self._asked[key] = time.monotonic() + KNOWN_SECONDS, task
        # Others wait for the same answer: who goes away does not take it from them.
        return await asyncio.shield(task)

    def forget(self, key: Key) -> None:
        """Read it again for the next who asks, after a change."""
        self._asked.pop(key, None)
