"""How the database is: how long it takes, and when it was lost and came back."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from app.services.observing import UNOBSERVED, Observers
from app.services.ports import StoreUnavailableError
from app.store.database.failures import state_of

_log = logging.getLogger("prevail.database")
# A statement that was cancelled because it took too long.
_CANCELLED: Final = "57014"


class DatabaseWatch:
    """One per process: looks on while the database is used."""

    def __init__(self, observers: Observers = UNOBSERVED) -> None:
        self.observers = observers
        self._lost_at: float | None = None

    @property
    def lost(self) -> bool:
        """The last that was heard of the database is that it does not answer."""
        return self._lost_at is not None

    @contextmanager
    def use(self, work: str) -> Iterator[None]:
        """Around what the database is asked: times it, and sees whether it answered."""
        begin = time.perf_counter()
        try:
            yield
        except StoreUnavailableError as error:
            self.failed(error)
            raise
        else:
            self.answered()
        finally:
            self.observers.asked_database(work, time.perf_counter() - begin)

    def answered(self) -> None:
        """It did."""
        if self._lost_at is not None:
            seconds, self._lost_at = time.monotonic() - self._lost_at, None
            _log.warning("the database answers again, after %.1f s", seconds)
            self.observers.database_back(seconds)

    def failed(self, error: StoreUnavailableError) -> None:
        """It did not: was it lost, or is it only slow or full?"""
        cause = error.__cause__
        # All connections were in use, or one statement took too long: it is there all the same.
        if self._lost_at is not None or cause is None or isinstance(cause, PoolTimeoutError):
            return
        if state_of(cause) == _CANCELLED:
            return
        self._lost_at = time.monotonic()
        reason = type(getattr(cause, "orig", None) or cause).__name__
        _log.warning("the database does not answer any more: %s", reason)
        self.observers.database_lost(reason)
