"""The write path: evaluations that arrive while a commit is under way share the next one.

One task per process owns one connection. It never waits for company: alone, an evaluation is committed at once. Under
load the commits get larger instead of more. Why, with numbers: docs/adr/0002-driver-and-write-path.md.
"""

import asyncio
import time
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

import asyncpg
from sqlalchemy import Text, bindparam, cast, literal_column
from sqlalchemy.dialects.postgresql.asyncpg import dialect
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine

from app.domain.errors import Overloaded, StoreError, StoreUnavailableError
from app.domain.operations import Change, Kind
from app.services.ports import KeyTakenError
from app.store.audit import WHO_PARAMETERS
from app.store.engine import DRIVER_ERRORS, is_unavailable, translated, watch_of
from app.store.idempotency import MARKED, PRIMARY_KEY, beside_evaluation
from app.store.tables import audit_entries, evaluations

# Evaluations in one commit at most.
_GROUP_LIMIT: Final = 128
_ENDING: Final = "the service is shutting down; try again shortly"
# The id of the entry in the audit log: its time is when it was written, whenever the evaluation was made.
ENTRY_ID: Final = "entry_id"


@dataclass(frozen=True, slots=True, eq=False)
class _Statement:
    sql: str
    columns: tuple[str, ...]


def compile_insert(*, keyed: bool = False) -> _Statement:
    """Compile the INSERT of an evaluation from its table: SQL as the driver wants it, and the order of the values.

    Who made it is written by the same statement, so that it costs no round trip and neither is there without the other;
    so is, of a request with an Idempotency-Key, what was saved under it.
    """
    given: dict[str, Any] = {column.name: bindparam(column.name, type_=column.type) for column in evaluations.c}
    # They come as text: `rows.encode_values`.
    values = evaluations.c.metric_values
    given[values.name] = cast(bindparam(values.name, type_=Text), values.type)
    kept = evaluations.insert().values(given).cte("kept")
    told = {
        "id": bindparam(ENTRY_ID, type_=audit_entries.c.id.type),
        "project": given["project"],
        "object": cast(given["id"], Text),
        "action": literal_column(f"'{Change.CREATED.value}'"),
        "kind": literal_column(f"'{Kind.EVALUATION.value}'"),
    }
    statement = audit_entries.insert().values(told | WHO_PARAMETERS).add_cte(kept)
    if keyed:
        statement = statement.add_cte(*beside_evaluation(given["id"]))
    compiled = statement.compile(dialect=dialect())  # type: ignore[no-untyped-call]  # SQLAlchemy leaves it untyped
    return _Statement(str(compiled), tuple(compiled.positiontup or ()))


INSERT, KEYED_INSERT = compile_insert(), compile_insert(keyed=True)
_KEY_OF = itemgetter(*(KEYED_INSERT.columns.index(name) for name in ("mark_project", "mark_key", "mark_item")))


@dataclass(frozen=True, slots=True, eq=False)
class _Waiting:
    statement: _Statement
    row: tuple[Any, ...]
    size: int
    done: asyncio.Future[None]


class EvaluationWriter:
    """Commits evaluations in groups; each caller is answered after its own commit.

    A row that Postgres refuses fails its own caller only. When the connection breaks during a commit the callers of
    that group get StoreUnavailableError (kept or not is unknown) and the next group gets a new connection.
    """

    def __init__(self, engine: AsyncEngine, *, queue_limit: int = 1024, group_bytes: int = 8 << 20) -> None:
        """Take how many may wait, and how many bytes of matrices share one commit at most."""
        self._engine = engine
        self._watch = watch_of(engine)
        self._queue_limit = queue_limit
        self._group_bytes = group_bytes
        self._queue: deque[_Waiting] = deque()
        self._arrived = asyncio.Event()
        self._closing = False
        self._task: asyncio.Task[None] | None = None
        self._connection: AsyncConnection | None = None
        self._driver: asyncpg.Connection | None = None

    async def add(self, row: Mapping[str, Any]) -> None:
        """Commit one row of `evaluations`. A caller that is cancelled before its commit began leaves nothing.

        A row that has what `mark_values` gives too is kept under the key of a request.

        Raises:
            KeyTakenError: something was saved under that key already.
            Overloaded: too many are waiting.
            StoreUnavailableError: no connection, it broke, or the writer is closed.
            StoreFullError: the disk of the database is full.
        """
        if self._closing:
            raise StoreUnavailableError(_ENDING)
        if len(self._queue) >= self._queue_limit:
            raise Overloaded("more writes are waiting than the service takes; nothing was saved")
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="evaluation-writer")
        done = asyncio.get_running_loop().create_future()
        size = len(row["counts"]) + len(row["fold_counts"] or b"")
        statement = KEYED_INSERT if MARKED in row else INSERT
        self._queue.append(_Waiting(statement, tuple(map(row.__getitem__, statement.columns)), size, done))
        self._arrived.set()
        begin = time.perf_counter()
        try:
            await done
        finally:
            self._watch.observers.observed("database_seconds", time.perf_counter() - begin, work="insert")

    @property
    def waiting(self) -> int:
        """Evaluations that wait for a commit to begin."""
        return len(self._queue)

    async def close(self) -> None:
        """Refuse new evaluations, commit those that wait, let the connection go."""
        self._closing = True
        self._arrived.set()
        if self._task is not None:
            await self._task
        await self._disconnect()

    async def _run(self) -> None:
        try:
            while self._queue or not self._closing:
                group = self._take_group()
                if group:
                    await self._commit(group)
                elif not self._closing:
                    self._arrived.clear()
                    await self._arrived.wait()
        finally:
            # Only when this task itself is cancelled, with the loop: nobody may wait for ever.
            self._closing = True
            _fail(self._queue, StoreUnavailableError(_ENDING))

    def _take_group(self) -> list[_Waiting]:
        group: list[_Waiting] = []
        size = 0
        while self._queue and len(group) < _GROUP_LIMIT and size < self._group_bytes:
            waiting = self._queue.popleft()
            if not waiting.done.done():
                group.append(waiting)
                size += waiting.size
        return group

    async def _commit(self, group: Sequence[_Waiting]) -> None:
        """Commit a group, one by one if it fails as a whole, and answer every caller."""
        begin = time.perf_counter()
        try:
            await self._insert(group)
        except StoreError as error:
            if isinstance(error, StoreUnavailableError):
                self._watch.failed(error)
            _fail(group, error)
        except asyncio.CancelledError:
            _fail(group, StoreUnavailableError(_ENDING))
            raise
        except Exception as error:  # noqa: BLE001 - it belongs to the callers, and the task must live on for the others
            if len(group) == 1:
                _answer(group[0].done, error)
            else:
                for waiting in group:
                    await self._commit([waiting])
        else:
            self._watch.answered()
            self._watch.observers.observed("commit_rows", len(group))
            self._watch.observers.observed("commit_seconds", time.perf_counter() - begin)
            for waiting in group:
                _answer(waiting.done)

    async def _insert(self, group: Sequence[_Waiting]) -> None:
        """Insert rows in one transaction."""
        with translated():
            connection = await self._connect()
            try:
                await _execute(connection, group)
            except DRIVER_ERRORS as error:
                if is_unavailable(error):
                    await self._disconnect()
                if getattr(error, "constraint_name", None) == PRIMARY_KEY:
                    raise KeyTakenError(str(error)) from error
                raise

    async def _connect(self) -> asyncpg.Connection:
        if self._driver is None or self._driver.is_closed():
            await self._disconnect()
            self._connection = await self._engine.connect()
            raw = await self._connection.get_raw_connection()
            driver: asyncpg.Connection = raw.driver_connection
            # Out of the pool for good: reads never wait for it, and it does not count among theirs.
            raw.detach()
            # What is inserted depends on no statistics: planned once, not for each row.
            await driver.execute("SET plan_cache_mode = force_generic_plan")
            self._driver = driver
        return self._driver

    async def _disconnect(self) -> None:
        driver, self._driver = self._driver, None
        connection, self._connection = self._connection, None
        if driver is not None:
            driver.terminate()
        if connection is not None:
            await connection.invalidate()
            await connection.close()


async def _execute(connection: asyncpg.Connection, group: Sequence[_Waiting]) -> None:
    """Insert rows: those of one statement in one round trip, since `executemany` is atomic by itself."""
    rows: dict[_Statement, list[tuple[Any, ...]]] = {}
    for one in group:
        rows.setdefault(one.statement, []).append(one.row)
    if KEYED_INSERT in rows:
        # In one order everywhere, so that two replicas with the same keys never wait for each other.
        rows[KEYED_INSERT].sort(key=_KEY_OF)
    if len(rows) == 1:
        statement, those = rows.popitem()
        await connection.executemany(statement.sql, those)
        return
    async with connection.transaction():
        for statement, those in rows.items():
            await connection.executemany(statement.sql, those)


def _answer(done: asyncio.Future[None], error: Exception | None = None) -> None:
    """Answer a caller, unless it was cancelled in the meantime."""
    if done.done():
        return
    if error is None:
        done.set_result(None)
    else:
        done.set_exception(error)


def _fail(group: Iterable[_Waiting], error: StoreError) -> None:
    for waiting in group:
        # One for each: an error that several raise gathers all their tracebacks.
        _answer(waiting.done, type(error)(str(error)))
