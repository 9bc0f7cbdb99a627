"""Restarts a server that ended unexpectedly: at once the first time, with longer pauses when it keeps ending."""

import logging
import signal
import threading
import time
from collections.abc import Callable
from typing import Final

from app.embedded.installation import EmbeddedPostgresError

LOOK_SECONDS: Final = 0.2
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 2.0
# A server that has run for so long is taken for well: should it end, it is started again at once.
WELL_SECONDS: Final = 10.0

_log = logging.getLogger("prevail.embedded")


class Supervisor:
    """A thread that looks after one server until it is told to stop."""

    def __init__(
        self, *, ended: Callable[[], int | None], start_again: Callable[[], None], meanwhile: Callable[[], None]
    ) -> None:
        """Take what to ask and what to do; nothing happens before `start`.

        Args:
            ended: exit code of the server, None while it runs.
            start_again: bring up a server in the place of one that ended; raises EmbeddedPostgresError or OSError.
            meanwhile: done at every look at a server that runs.
        """
        self._ended, self._start_again, self._meanwhile = ended, start_again, meanwhile
        self._trouble = ""
        self._stopping = threading.Event()
        # As a daemon: a process whose main thread ended otherwise must not stay because of it.
        self._thread = threading.Thread(target=self._run, name="embedded-postgres", daemon=True)

    def start(self) -> None:
        """Start watching."""
        self._thread.start()

    def stop(self) -> None:
        """Start nothing any more; returns when nothing is being started."""
        self._stopping.set()
        self._thread.join()

    @property
    def stopping(self) -> bool:
        """True once the server is to stop."""
        return self._stopping.is_set()

    def _run(self) -> None:
        pause, since = 0.0, time.monotonic()
        while not self._stopping.wait(LOOK_SECONDS):
            code = self._ended()
            if code is None:
                self._look_after()
                continue
            _log.error("the embedded Postgres ended (%s), it is started again", describe_end(code))
            if time.monotonic() - since > WELL_SECONDS:
                pause = 0.0
            pause = self._bring_back(pause)
            since = time.monotonic()

    def _look_after(self) -> None:
        try:
            self._meanwhile()
            self._trouble = ""
        except OSError as error:
            # Said once, not at every look.
            if str(error) != self._trouble:
                _log.warning("the reserve beside the embedded Postgres cannot be taken: %s", error)
            self._trouble = str(error)

    def _bring_back(self, pause: float) -> float:
        """Try until it runs; returns the pause before the next attempt, should it end soon."""
        begin = time.monotonic()
        while not self._stopping.wait(pause):
            pause = min(max(2 * pause, FIRST_PAUSE), LONGEST_PAUSE)
            try:
                self._start_again()
            except (EmbeddedPostgresError, OSError) as error:
                if not self.stopping:
                    _log.error("the embedded Postgres is not back yet, next attempt in %g s: %s", pause, error)
            else:
                _log.warning("the embedded Postgres is back after %.1f s", time.monotonic() - begin)
                break
        return pause


def describe_end(code: int) -> str:
    """Describe the end of a process by its exit code."""
    if code >= 0:
        return f"exit code {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"
