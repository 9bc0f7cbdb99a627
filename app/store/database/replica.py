"""A read replica: a standby of the database that answers what may be a moment old, as long as it keeps up.

How far it is behind is measured by the log of the database: which place the primary had reached at which moment, and
which place the standby has replayed by now. docs/adr/0014-read-replicas.md says why so, and what is never read here.
"""

import asyncio
import contextlib
import logging
import time
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final, TypeVar

from sqlalchemy import Row, Select, TextClause, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.services.observing import UNOBSERVED, Observers
from app.services.ports.state import StoreUnavailableError
from app.services.recency import may_be_old, read_now
from app.store.database.engine import reading
from app.store.database.failures import DRIVER_ERRORS, state_of, translated

LOOK_SECONDS: Final = 1.0
# A look that takes longer found nobody.
_PATIENCE: Final = 5.0
# Between two warnings that single reads failed.
_SILENT: Final = 10.0
# A statement that took too long, or that the replay of the log was in the way of.
_OF_THE_STATEMENT: Final = ("57014", "40001", "40P01", "42501")
_MOST_MARKS: Final = 4096
_WHICH: Final = "SELECT (pg_control_system()).system_identifier, current_database()"
_REACHED: Final = text(f"{_WHICH}, pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')")
# A transaction that changes nothing. A record that no commit follows may be written in part only, for 15 s: a standby
# waits for the rest of it, though it has all there is.
_NUDGE: Final = text("SELECT pg_logical_emit_message(true, 'prevail', '')")
_REPLAYED: Final = text(f"{_WHICH}, pg_is_in_recovery(), pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')")

T = TypeVar("T")
Question = Callable[[AsyncConnection], Awaitable[T]]
_log = logging.getLogger("prevail.database")


class Replica:
    """A standby, and what is known of it; one per process, on the loop that uses it."""

    def __init__(
        self,
        engine: AsyncEngine,
        primary: AsyncEngine,
        *,
        most_seconds: float,
        observers: Observers = UNOBSERVED,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Take both sides, and how many seconds the standby may be behind; nothing is asked before `start` or `look`.

        Args:
            engine: Of the standby.
            primary: With a connection for this alone: when the primary is busy, lists are not to be sent there.
            most_seconds: A standby that is further behind is not read until it has caught up.
            observers: Are told when it is lost and when it is back.
            clock: Seconds, from any moment on.
        """
        self.engine, self.observers = engine, observers
        self._primary, self._most, self._clock = primary, most_seconds, clock
        # Places in the log that the standby had not reached yet, each with the moment before which it was the present.
        self._marks: deque[tuple[int, float]] = deque(maxlen=_MOST_MARKS)
        self._identity: tuple[int, str] | None = None
        self._as_of = float("-inf")
        # Since when it is not read; None while it is.
        self._lost_at: float | None = clock()
        self._reason: str | None = None
        self._under_way: set[asyncio.Timeout] = set()
        self._silent_until = float("-inf")
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Look at it from now on."""
        self._task = asyncio.create_task(self._run(), name="read-replica")

    async def close(self) -> None:
        """End, and close the connections to both."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
        await self.engine.dispose()
        await self._primary.dispose()

    async def _run(self) -> None:
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    @property
    def age(self) -> float:
        """How many seconds old what it answers may be at most, as far as is known; infinite before that is known."""
        return self._clock() - self._as_of

    @property
    def keeps_up(self) -> bool:
        """Whether it may be read."""
        return self._lost_at is None and self.age <= self._most

    async def look(self) -> None:
        """Ask both where they are."""
        before = self._clock()
        try:
            system, name, reached = await _ask(self._primary, _REACHED)
        except DBAPIError as error:
            self._leave(f"the database does not say how far it is: {_name(error)}")
            return
        except (StoreUnavailableError, TimeoutError):
            # Somebody else's to tell of; meanwhile what is known of the standby gets older.
            pass
        else:
            self._identity = (system, name)
            self._marks.append((int(reached), before))
        try:
            system, name, standby, replayed = await _ask(self.engine, _REPLAYED)
        except (StoreUnavailableError, DBAPIError, TimeoutError) as error:
            self._leave(f"it does not answer: {_name(error)}")
            self._give_up_reads()
            return
        if self._identity is None:
            return
        if (system, name) != self._identity or not standby or replayed is None:
            self._leave("it is no standby of this database")
            return
        while self._marks and self._marks[0][0] <= replayed:
            self._as_of = self._marks.popleft()[1]
        if len(self._marks) > 1 and self._marks[-1][0] == self._marks[-2][0]:
            await self._nudge()
        if self.age > self._most:
            self._leave(f"it is more than {self._most:g} s behind")
        else:
            self._come_back()

    async def _nudge(self) -> None:
        """Have the primary write to the end what it has begun, where nobody else does."""
        with contextlib.suppress(StoreUnavailableError, DBAPIError, TimeoutError):
            await _ask(self._primary, _NUDGE)

    async def read(self, question: Question[T]) -> T:
        """Ask it.

        Raises:
            StoreUnavailableError: it did not answer; whether another would is to be seen.
        """
        begin = time.perf_counter()
        try:
            # Without an end, until the standby is found to be gone: then nobody waits for its network.
            async with asyncio.timeout(None) as limit:
                self._under_way.add(limit)
                try:
                    with translated():
                        async with self.engine.connect() as connection:
                            return await question(connection)
                finally:
                    self._under_way.discard(limit)
        except (StoreUnavailableError, DBAPIError, TimeoutError, *DRIVER_ERRORS) as error:
            self._failed(error)
            raise StoreUnavailableError(f"expected an answer from the read replica, got {_name(error)}") from error
        finally:
            self.observers.asked_database("read", time.perf_counter() - begin)

    def _failed(self, error: BaseException) -> None:
        """A read did not succeed: is the standby lost, or was it this read?"""
        cause = error.__cause__ if isinstance(error, StoreUnavailableError) else error
        alone = isinstance(cause, PoolTimeoutError) or (cause is not None and state_of(cause) in _OF_THE_STATEMENT)
        if isinstance(error, StoreUnavailableError) and not alone:
            self._leave(f"it does not answer: {_name(error)}")
        elif self._lost_at is None and self._clock() >= self._silent_until:
            self._silent_until = self._clock() + _SILENT
            _log.warning("a read at the replica failed and went to the primary: %s", _name(error))

    def _leave(self, reason: str) -> None:
        known, self._reason = self._reason, reason
        if self._lost_at is None:
            self._lost_at = self._clock()
        elif known is not None:
            return
        _log.warning("the read replica is not used: %s; lists are read from the primary", reason)
        self.observers.replica_lost(reason)

    def _come_back(self) -> None:
        lost_at, told = self._lost_at, self._reason is not None
        self._lost_at = self._reason = None
        if lost_at is not None and told:
            seconds = self._clock() - lost_at
            _log.warning("lists are read from the replica again, after %.1f s", seconds)
            self.observers.replica_back(seconds)

    def _give_up_reads(self) -> None:
        now = asyncio.get_running_loop().time()
        for limit in self._under_way:
            limit.reschedule(now)


class Reader:
    """Answers what lists ask: at the replica where the request lets that be, or else at the primary."""

    def __init__(self, primary: AsyncEngine, replica: Replica | None = None) -> None:
        self._primary, self._replica = primary, replica

    async def read(self, question: Question[T], *, nothing: object = None) -> T:
        """Ask one of them. It may be asked twice, so it changes nothing.

        Args:
            question: Reads over the connection that it is given.
            nothing: An answer that says that there is nothing: what was written last may be all there is, so it is the
                primary that says so.

        Raises:
            StoreUnavailableError: the primary was asked, and cannot be worked with.
        """
        replica = self._replica
        if replica is not None and may_be_old():
            if replica.keeps_up:
                with contextlib.suppress(StoreUnavailableError):
                    found = await replica.read(question)
                    if nothing is None or found != nothing:
                        replica.observers.read_list("replica")
                        return found
            replica.observers.read_list("primary")
            read_now()
        async with reading(self._primary) as connection:
            return await question(connection)

    async def rows(self, statement: Select[Any]) -> Sequence[Row[Any]]:
        """The rows of a list, as `read` does it."""

        async def fetch(connection: AsyncConnection) -> Sequence[Row[Any]]:
            rows: Sequence[Any] = (await connection.execute(statement)).all()
            return rows

        return await self.read(fetch, nothing=[])


async def _ask(engine: AsyncEngine, statement: TextClause) -> Any:
    """Raises StoreUnavailableError, TimeoutError, or the error of a statement that makes no sense there."""
    async with asyncio.timeout(_PATIENCE):
        with translated():
            async with engine.connect() as connection:
                row = (await connection.execute(statement)).one()
                await connection.commit()
                return row


def _name(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error, StoreUnavailableError) and error.__cause__ else error
    orig = getattr(cause, "orig", None)
    # SQLAlchemy's own name for an error of the driver says less than the driver's.
    return type(getattr(orig, "__cause__", None) or orig or cause).__name__
