"""Work for a client who is gone is ended."""

import asyncio

from starlette.types import Receive

# Shorter requests are over before anybody has looked.
_LOOK_AFTER_SECONDS = 1.0


class DisconnectWatch:
    """Cancels the task that it is made in when the client goes away while it is still at work.

    Attributes:
        body_complete: Set once the whole body was received. Until then only the application asks what comes next.
        gone: The client went away, and the task was cancelled for it.
    """

    def __init__(self, receive: Receive, *, body_complete: bool) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - it is made in a request
        self._task, self._receive = task, receive
        self.body_complete = body_complete
        self.gone = False
        self._watching: asyncio.Task[None] | None = None
        self._look_again()

    def _look_again(self) -> None:
        self._timer = asyncio.get_running_loop().call_later(_LOOK_AFTER_SECONDS, self._look)

    def _look(self) -> None:
        if self.body_complete:
            self._watching = asyncio.create_task(self._watch())
        else:
            self._look_again()

    async def _watch(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self.gone = True
        self._task.cancel()

    def stop(self) -> None:
        """The request is over."""
        self._timer.cancel()
        if self._watching is not None:
            self._watching.cancel()
