"""Engines of the database: made, watched, and held to one project at a time.

Every read, change and deletion of a table that has a column `project` must hold it to one project, or hold its rows by
an id that belongs to one project alone. The check looks at the statement when it is compiled, which happens once for
each shape of statement; afterwards it costs nothing. Why not row-level security: docs/adr/0007-sealed-projects.md.
"""

import ast
import errno
import logging
import os
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import dataclass, fields
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, TypeVar

import asyncpg
import orjson
from sqlalchemy import (
    ARRAY,
    Alias,
    BinaryExpression,
    BooleanClauseList,
    Column,
    ColumnElement,
    FromClause,
    Join,
    Row,
    Select,
    Table,
    func,
    literal,
    literal_column,
    select,
    text,
)
from sqlalchemy.engine import Dialect
from sqlalchemy.exc import DBAPIError
from sqlalchemy.exc import TimeoutError as PoolTimeoutError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.sql import operators
from sqlalchemy.sql.elements import Grouping

from app import MIGRATIONS
from app.domain.errors import PreconditionFailed, StoreFullError, StoreUnavailableError
from app.domain.evaluation import Page
from app.domain.identifiers import time_of
from app.services.ports import StoreState
from app.services.present import UNOBSERVED, Observers, present_change
from app.store.tables import api_keys, datasets, evaluations, model_names, models

# Ids that are given to names within one project, and found through it (`app/store/names.py`).
_OWN_IDS: Final[Mapping[Table, frozenset[str]]] = {
    evaluations: frozenset({"model_id", "dataset_id", "model_name_id"}),
    models: frozenset({"id"}),
    model_names: frozenset({"id"}),
    datasets: frozenset({"id"}),
    # A key is found before anybody knows its project, by an id that comes with a secret. Lists name the project.
    api_keys: frozenset({"id"}),
}
_HOLDING: Final = (operators.eq, operators.in_op)


class UnsealedStatement(RuntimeError):
    """A statement reaches beyond one project: a fault of ours, found before the database sees it."""


def seal(dialect: Dialect) -> None:
    """Let a dialect compile sealed statements only."""
    compiler: Any = dialect.statement_compiler

    class SealedCompiler(compiler):  # type: ignore[misc]  # of the dialect, whatever it is
        def visit_select(self, select_stmt: Any, *args: Any, **options: Any) -> Any:
            # It compiles the statement once more.
            froms = select_stmt.get_final_froms()
            _check(list(_tables(froms)), [*_conjuncts(select_stmt.whereclause), *_joined(froms)])
            return super().visit_select(select_stmt, *args, **options)

        def visit_update(self, update_stmt: Any, *args: Any, **options: Any) -> Any:
            _check([update_stmt.table], _conjuncts(update_stmt.whereclause))
            return super().visit_update(update_stmt, *args, **options)

        def visit_delete(self, delete_stmt: Any, *args: Any, **options: Any) -> Any:
            _check([delete_stmt.table], _conjuncts(delete_stmt.whereclause))
            return super().visit_delete(delete_stmt, *args, **options)

    dialect.statement_compiler = SealedCompiler


def _tables(sources: Any) -> Iterator[FromClause]:
    """Tables read here; subqueries are statements of their own, which are looked at when their turn comes."""
    for source in sources:
        if isinstance(source, Join):
            yield from _tables((source.left, source.right))
        elif isinstance(source, Table) or (isinstance(source, Alias) and isinstance(source.element, Table)):
            yield source


def _joined(sources: Any) -> Iterator[ColumnElement[Any]]:
    for source in sources:
        if isinstance(source, Join):
            yield from _joined((source.left, source.right))
            # What an outer join says of its second table says nothing of the first.
            yield from _conjuncts(source.onclause)


def _conjuncts(condition: Any) -> Iterator[ColumnElement[Any]]:
    """The conditions that all hold together."""
    if isinstance(condition, Grouping):
        yield from _conjuncts(condition.element)
    elif isinstance(condition, BooleanClauseList) and condition.operator is operators.and_:
        for one in condition.clauses:
            yield from _conjuncts(one)
    elif condition is not None:
        yield condition


def _check(sources: list[Any], conditions: Any) -> None:
    held = {column for condition in conditions for column in _held(condition)}
    for source in sources:
        table: Any = source.element if isinstance(source, Alias) else source
        if "project" in source.c and not any(source.c[name] in held for name in {"project", *_OWN_IDS.get(table, ())}):
            raise UnsealedStatement(f"expected a statement that holds {table.name} to one project")


def _held(condition: ColumnElement[Any]) -> Iterator[Column[Any]]:
    """The columns that a condition holds to values, or to columns of another table."""
    if isinstance(condition, BinaryExpression) and condition.operator in _HOLDING:
        for side in (condition.left, condition.right):
            if isinstance(side, Column):
                yield side


# Beginnings of SQLSTATE: connection lost, out of resources, stopped by an operator or a timeout, failure outside
# Postgres; wrong password, no such role or database; nothing may be written.
_UNAVAILABLE = ("08", "53", "57", "58", "28", "3D", "25006")
_DISK_FULL = "53100"
# Of a quota that is used up Postgres knows no state of its own, only what the system says.
_INTERNAL, _QUOTA = "XX000", os.strerror(errno.EDQUOT)
DRIVER_ERRORS: Final = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError)


def is_unavailable(error: BaseException) -> bool:
    """Tell whether an error comes from a database that cannot be worked with right now."""
    # The last is what the driver raises when a connection broke between two messages.
    if isinstance(error, (OSError, PoolTimeoutError, asyncpg.InternalClientError)):
        return True
    if isinstance(error, DBAPIError):
        return error.connection_invalidated or (error.orig is not None and is_unavailable(error.orig))
    if isinstance(error, asyncpg.InterfaceError):
        return not isinstance(error, asyncpg.DataError)
    state = state_of(error)
    if state is not None:
        return state.startswith(_UNAVAILABLE)
    return error.__cause__ is not None and is_unavailable(error.__cause__)


def is_full(error: BaseException) -> bool:
    """Tell whether an error says that the disk of the database, or what it may use of it, is full: the transaction left
    nothing.
    """
    state = state_of(error)
    return state == _DISK_FULL or (state == _INTERNAL and _QUOTA in str(error))


def state_of(error: BaseException) -> str | None:
    """The SQLSTATE of an error of the driver, or of one that SQLAlchemy has made of it."""
    driver = error.orig if isinstance(error, DBAPIError) and error.orig is not None else error
    state = getattr(driver, "sqlstate", None)
    return state if isinstance(state, str) else None


@contextmanager
def translated() -> Iterator[None]:
    """Raise StoreFullError and StoreUnavailableError in the place of errors that mean so; others pass unchanged."""
    try:
        yield
    except (PoolTimeoutError, DBAPIError, *DRIVER_ERRORS) as error:
        if is_full(error):
            raise StoreFullError from error
        if is_unavailable(error):
            raise StoreUnavailableError from error
        raise


_log = logging.getLogger("prevail.database")
# A statement that was cancelled because it took too long, and one that writes where only reading is allowed.
_OF_STATEMENTS: Final = ("57014", "25006")


class DatabaseWatch:
    """Watch of the database's use, one for each process."""

    def __init__(self, observers: Observers = UNOBSERVED) -> None:
        self.observers = observers
        self._lost_at: float | None = None

    @property
    def lost(self) -> bool:
        """The last that was heard of the database is that it does not answer."""
        return self._lost_at is not None

    @contextmanager
    def use(self, work: str) -> Iterator[None]:
        """Time a use of the database, and note whether it answered."""
        begin = time.perf_counter()
        try:
            yield
        except StoreUnavailableError as error:
            self.failed(error)
            raise
        else:
            self.answered()
        finally:
            self.observers.observed("database_seconds", time.perf_counter() - begin, work=work)

    def answered(self) -> None:
        """Note that the database answered."""
        if self._lost_at is not None:
            seconds, self._lost_at = time.monotonic() - self._lost_at, None
            _log.warning("the database answers again, after %.1f s", seconds)
            self.observers.observed("database_back", 1)
            self.observers.observed("database_lost_seconds", seconds)

    def failed(self, error: StoreUnavailableError) -> None:
        """Note that the database did not answer; a slow, full or read-only one is not lost."""
        cause = error.__cause__
        # All connections were in use, or it refused one statement: it is there all the same.
        if self._lost_at is not None or cause is None or isinstance(cause, PoolTimeoutError):
            return
        if state_of(cause) in _OF_STATEMENTS:
            return
        self._lost_at = time.monotonic()
        reason = type(getattr(cause, "orig", None) or cause).__name__
        _log.warning("the database does not answer any more: %s", reason)
        self.observers.observed("database_lost", 1, reason=reason)


@dataclass(frozen=True, slots=True)
class Disk:
    """The file system of the database, as far as it is one of this machine's.

    Attributes:
        folder: One on it; None when the database lies elsewhere.
        least: Bytes that have to stay free: Postgres ends when it cannot write its log any more, reads included.
    """

    folder: Path | None = None
    least: int = 0

    def has_room(self, size: int = 0) -> bool:
        """Return True if so many bytes may be written. Asks the system, which takes two microseconds."""
        if self.folder is None:
            return True
        state = os.statvfs(self.folder)
        return state.f_bavail * state.f_frsize - size >= self.least


def create_engine(
    url: str,
    *,
    pool_size: int = 8,
    statement_timeout: float = 30.0,
    connect_timeout: float = 5.0,
    disk: Disk = Disk(),
    watch: DatabaseWatch | None = None,
) -> AsyncEngine:
    """Create the engine of one process; nothing is connected yet.

    Args:
        url: With the scheme `postgresql+asyncpg`.
        pool_size: Connections at most; there is no overflow. The write path keeps one more of its own.
        statement_timeout: Seconds after which Postgres cancels a statement.
        connect_timeout: Seconds to wait for a connection, from the server as from the pool.
        disk: Where the database lies: `writing` and `require_room` ask it.
        watch: Looks on; one that tells nobody when it is left out.
    """
    engine = create_async_engine(
        url,
        pool_size=pool_size,
        max_overflow=0,
        pool_timeout=connect_timeout,
        pool_pre_ping=True,
        # Each connection has a process of Postgres, which reads its catalogue and our statements at first use: one that
        # knows them already goes first.
        pool_use_lifo=True,
        json_serializer=write_json,
        json_deserializer=orjson.loads,
        execution_options={"disk": disk, "watch": watch or DatabaseWatch()},
        connect_args={
            "timeout": connect_timeout,
            "server_settings": {
                "application_name": "prevail",
                "statement_timeout": str(int(statement_timeout * 1000)),
                "idle_in_transaction_session_timeout": "60000",
                # Compiling a query costs 100 ms and more; none of ours runs that long.
                "jit": "off",
                # Datasets hold ten evaluations or a hundred thousand: a plan for the average one fits neither.
                "plan_cache_mode": "force_custom_plan",
            },
        },
    )
    seal(engine.dialect)
    return engine


def write_json(value: Any) -> str:
    """Serialise for a JSON column."""
    return orjson.dumps(value).decode()


def watch_of(engine: AsyncEngine) -> DatabaseWatch:
    """Return the watch of an engine's use."""
    watch: DatabaseWatch = engine.get_execution_options()["watch"]
    return watch


@asynccontextmanager
async def reading(engine: AsyncEngine) -> AsyncIterator[AsyncConnection]:
    """A connection to read with. Raises StoreUnavailableError when the database cannot be worked with."""
    with watch_of(engine).use("read"), translated():
        async with engine.connect() as connection:
            yield connection


Item = TypeVar("Item")


async def read_rows(engine: AsyncEngine, statement: Select[Any]) -> Sequence[Row[Any]]:
    """All rows of a statement, read over a connection of its own. Raises as `reading` does."""
    async with reading(engine) as connection:
        rows: Sequence[Any] = (await connection.execute(statement)).all()
        return rows


def same(table: Table, **values: Any) -> list[ColumnElement[bool]]:
    """Conditions that columns of a table have these values."""
    return [table.c[name] == value for name, value in values.items()]


def among(column: ColumnElement[Any], values: Iterable[Any]) -> ColumnElement[bool]:
    """Condition that a column has one of some values."""
    return column == func.any(literal([*values], ARRAY(column.type)))


async def take_turn(connection: AsyncConnection, what: str) -> None:
    """Wait until nobody else is at something, and keep others from it until the transaction ends."""
    await connection.execute(select(func.pg_advisory_xact_lock(func.hashtextextended(what, 0))))


def made_of(kind: type[Item], row: Row[Any], /, **others: Any) -> Item:
    """A dataclass of a row: of its columns those that a field is called after, and what is given besides.

    The moment of creation is part of an id.
    """
    names = {one.name for one in fields(kind) if one.init}  # type: ignore[arg-type]  # of dataclasses
    moments = {name: time_of(row.id) for name in (names & {"at", "created_at"}) - {*row._fields}}
    found = {name: getattr(row, name) for name in names & {*row._fields} - others.keys()}
    return kind(**found | moments | others)


async def read_one(engine: AsyncEngine, statement: Select[Any], kind: type[Item]) -> Item | None:
    """Read one row and make a dataclass of it; None where there is none. Raises as `reading` does."""
    rows = await read_rows(engine, statement)
    return made_of(kind, *rows) if rows else None


async def read_page(
    engine: AsyncEngine,
    statement: Select[Any],
    key: ColumnElement[Any],
    limit: int,
    beyond: Any,
    kind: type[Item],
    others: Callable[[Row[Any]], Mapping[str, Any]] = lambda _: {},
    *,
    latest_first: bool = True,
) -> Page[Item, Any]:
    """Read one page of rows, at most ``limit``, in the order of a key column, after the key ``beyond`` of the last row
    of the page before (None: the first page).

    Every row becomes a dataclass of this kind, whose fields are called after columns, but for ``others``. Raises as
    `reading` does.
    """
    ordered = statement.order_by(key.desc() if latest_first else key).limit(limit + 1)
    if beyond is not None:
        ordered = ordered.where(key < beyond if latest_first else key > beyond)
    rows = await read_rows(engine, ordered)
    items = tuple(made_of(kind, row, **others(row)) for row in rows[:limit])
    return Page(items, getattr(items[-1], str(key.key)) if len(rows) > limit else None)


class OnEngine:
    """A part of the store."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine


def require_room(engine: AsyncEngine, size: int = 0) -> None:
    """Refuse to write when there is no space for it.

    Raises:
        StoreFullError: there is not; nothing was tried, so that Postgres itself does not run out of it.
    """
    disk: Disk = engine.get_execution_options()["disk"]
    with translated():
        if not disk.has_room(size):
            raise StoreFullError


@asynccontextmanager
async def writing(engine: AsyncEngine, size: int = 0) -> AsyncIterator[AsyncConnection]:
    """A connection in a transaction that is committed at the end; `size` bytes, if they are many.

    Raises StoreUnavailableError as ``reading``, and StoreFullError when there is no space.
    """
    # Twice: in the table, and before in the log.
    require_room(engine, 2 * size)
    with watch_of(engine).use("write"), translated():
        async with engine.begin() as connection:
            yield connection


@asynccontextmanager
async def changing(
    engine: AsyncEngine, what: str, read_state: Callable[[AsyncConnection], Awaitable[object]]
) -> AsyncIterator[AsyncConnection]:
    """`writing`, for the change of the one object that a request is about: those who change it take turns.

    What the preconditions of the request are held against has to take connections of its own. So they are held before
    the transaction, and the state that was read before them has to be there in it still.

    Raises PreconditionFailed when they are not met, or the state is another by then.
    """
    change, before = present_change(), None
    if held := change.require is not None:
        async with reading(engine) as connection:
            before = await read_state(connection)
        await change.meet()
    async with writing(engine) as connection:
        await take_turn(connection, what)
        if held and await read_state(connection) != before:
            raise PreconditionFailed("what is there was changed by another request at the same time")
        yield connection
        left = await read_state(connection)

    async def stands() -> bool:
        async with reading(engine) as connection:
            return await read_state(connection) == left

    change.stands = stands


def changing_row(engine: AsyncEngine, table: Table, **named: Any) -> AbstractAsyncContextManager[AsyncConnection]:
    """`changing`, of the last row that has this name: its state is the transaction that wrote it."""
    last = (column.desc() for column in table.primary_key)
    writer: Select[Any] = select(literal_column("xmin::text")).select_from(table).where(*same(table, **named))
    locked = writer.order_by(*last).limit(1).with_for_update()
    return changing(engine, f"{table.name} {named}", partial(AsyncConnection.scalar, statement=locked))


@cache
def expected_revision() -> str:
    """Return the newest revision of this release's migrations."""
    followed = _migrations()
    heads = followed.keys() - followed.values()
    if len(heads) != 1:
        raise RuntimeError(f"expected one newest migration in {MIGRATIONS}, found {sorted(heads)}")
    return heads.pop()


@cache
def known_revisions() -> frozenset[str]:
    """Return every revision that this release has a migration for."""
    return frozenset(_migrations())


@cache
def _migrations() -> Mapping[str, str | None]:
    """Return the preceding revision of each revision.

    Read as text: importing alembic costs every worker 80 ms, and none needs more of it than this.
    """
    found = {}
    for path in (MIGRATIONS / "versions").glob("*.py"):
        said = dict(re.findall(r"^(revision|down_revision) = (.+)$", path.read_text(), re.MULTILINE))
        found[ast.literal_eval(said["revision"])] = ast.literal_eval(said["down_revision"])
    return found


async def revision_at(connection: AsyncConnection) -> str | None:
    """Return the revision of the schema that is there, if there is one."""
    # Asked first: a SELECT from a table that is not there would fail the transaction.
    if await connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
        return None
    revision: str | None = await connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


async def schema_state(engine: AsyncEngine) -> StoreState:
    """Ask the database now; an unreachable one is an answer, not an error."""
    expected = expected_revision()
    try:
        with watch_of(engine).use("read"), translated():
            async with engine.connect() as connection:
                revision = await revision_at(connection)
    except StoreUnavailableError:
        return StoreState(reachable=False, revision=None, expected=expected)
    newer = revision is not None and revision not in known_revisions()
    return StoreState(reachable=True, revision=revision, expected=expected, newer=newer)
