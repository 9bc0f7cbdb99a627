"""The queue of jobs: taken in their turn by workers, by means of procrastinate."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl, urlencode, urlsplit

import orjson
import psycopg
from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.connector import Notify
from procrastinate.exceptions import ConnectorException, JobAborted
from procrastinate.job_context import AbortReason
from procrastinate.jobs import DeleteJobCondition, Job, Status
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.errors import StoreError
from app.services.beside import beside
from app.services.ports import Waits

SCHEMA: Final = "procrastinate"
Given = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Queue:
    """A queue of its own for one kind of work: its name, and that of what is done."""

    name: str
    task: str


JOBS: Final = Queue("prevail", "prevail.job")
DELIVERIES: Final = Queue("prevail-deliveries", "prevail.delivery")


async def add(connection: AsyncConnection, queue: Queue, given: Given) -> int:
    """Put something at the end of a queue, whose workers are told when the transaction is done; returns its id there.

    ``given`` is what they are to know of it, as JSON.
    """
    await _enter(connection)
    add = text(
        "SELECT (procrastinate_defer_jobs_v1(ARRAY[ROW(CAST(:queue AS varchar), CAST(:task AS varchar), 0, NULL, NULL, "
        "CAST(:given AS jsonb), NULL)]::procrastinate_job_to_defer_v1[]))[1]"
    )
    values = {"queue": queue.name, "task": queue.task, "given": orjson.dumps(given).decode()}
    added: int = (await connection.scalars(add, values)).one()
    return added


async def cancel(connection: AsyncConnection, queue_id: int) -> bool:
    """Take something out of its queue, True, or have whoever works on it told, False."""
    await _enter(connection)
    await connection.execute(text("SELECT procrastinate_cancel_job_v1(:id, true, true)"), {"id": queue_id})
    left = await connection.scalar(
        text("SELECT EXISTS (SELECT FROM procrastinate_jobs WHERE id = :id AND status = 'doing')"), {"id": queue_id}
    )
    return not left


async def _enter(connection: AsyncConnection) -> None:
    """Let the functions find their tables, beside ours, until the transaction ends."""
    await connection.execute(
        text("SELECT set_config('search_path', :schema || ',' || current_setting('search_path'), true)"),
        {"schema": SCHEMA},
    )


_log = logging.getLogger("prevail.queue")

_AGAIN_SECONDS: Final = 1
# Between two looks for what nobody told of.
_POLL_SECONDS: Final = 2.0
_CONNECT_SECONDS: Final = 5
# Then it is tried anew for whoever needs a connection; else pauses would grow with the time that the database is away.
_RECONNECT_SECONDS: Final = 2.0
# Beside one that listens: taking one and saying that it is done are short.
_MOST_CONNECTIONS: Final = 4
_OF_SQLALCHEMY: Final = "prepared_statement_cache_size"
_UNREACHABLE: Final = (ConnectorException, psycopg.Error, StoreError, OSError)


async def _nothing(_: Given) -> None:
    """Do nothing: nobody cancels it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work on one queue.

    Attributes:
        do: With one of them, in a task of its own that may be cancelled: then it waits again. So it does when this
            raises; `Waits` says for how long.
        end_cancelled: Makes an end of one that somebody worked on, if it was to be cancelled.
        forget: Removes what ended long ago, all there is of it; called now and then.
    """

    do: Callable[[Given], Awaitable[None]]
    end_cancelled: Callable[[Given], Awaitable[object]] = _nothing
    forget: Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class QueueWorker:
    """One worker of a queue.

    Attributes:
        url: Of the database, in SQLAlchemy's form.
        at_once: How many this process has in hand at most.
        grace_seconds: What one in hand may still take when the process is to end; then it waits again.
        lost_seconds: After so long without a sign of life a worker is taken for lost.
    """

    url: str
    queue: Queue
    at_once: int
    grace_seconds: float
    lost_seconds: float

    def at_work(self, work: Work) -> AbstractAsyncContextManager[None]:
        """Work on what waits until the end of the context. A database that is away is waited for."""
        work_on = self._whatever_happens(partial(self._work, work), "worked on", _AGAIN_SECONDS)
        return beside(work_on, "queue", self.grace_seconds + 1.0)

    async def _work(self, work: Work) -> None:
        queue = self.queue
        app = App(connector=_connector(libpq_url(self.url), self.at_once))

        @app.task(name=queue.task, queue=queue.name, pass_context=True, retry=_Again())
        async def one(context: JobContext, /, **given: Any) -> None:
            await _one(work, context, given)

        try:
            # Not as a context: that leaves what connects behind where its beginning is cancelled.
            await app.open_async()
            tidy = self._whatever_happens(partial(self._tidy, app, work), "tidied up", self.lost_seconds / 4)
            async with beside(tidy, "tidying"):
                await app.run_worker_async(
                    queues=[queue.name],
                    concurrency=self.at_once,
                    fetch_job_polling_interval=_POLL_SECONDS,
                    abort_job_polling_interval=_POLL_SECONDS,
                    shutdown_graceful_timeout=self.grace_seconds,
                    delete_jobs=DeleteJobCondition.ALWAYS,
                    install_signal_handlers=False,
                    update_heartbeat_interval=self.lost_seconds / 4,
                    stalled_worker_timeout=self.lost_seconds,
                )
        finally:
            await app.close_async()

    async def _tidy(self, app: App, work: Work) -> None:
        """Let wait again what is in the hand of a worker that is lost, end what was given up, forget what is old."""
        manager = app.job_manager
        for job in await manager.get_stalled_jobs(queue=self.queue.name, seconds_since_heartbeat=self.lost_seconds):
            await _retry(app, work, job)
        # The queue gives up what was to be cancelled in the moment in which it was to wait again, and tells nobody.
        for job in await manager.list_jobs_async(queue=self.queue.name, status=Status.FAILED.value):
            await work.end_cancelled(job.task_kwargs)
        await manager.delete_old_jobs(nb_hours=1, queue=self.queue.name, include_failed=True)
        await work.forget()

    async def _whatever_happens(self, do: Callable[[], Awaitable[object]], what: str, pause: float) -> NoReturn:
        """Do something again and again."""
        while True:
            try:
                await do()
            except _UNREACHABLE as error:
                _log.warning("the queue %s cannot be %s: %s", self.queue.name, what, error.__cause__ or error)
            except Exception:  # noqa: BLE001 - a fault of ours or of the library; the work is to go on
                _log.exception("the queue %s cannot be %s", self.queue.name, what)
            await asyncio.sleep(pause)


async def _one(work: Work, context: JobContext, given: Given) -> None:
    try:
        await work.do(given)
    except asyncio.CancelledError:
        if context.abort_reason() is AbortReason.USER_REQUEST:
            await work.end_cancelled(given)
            raise JobAborted from None
        raise


async def _retry(app: App, work: Work, job: Job) -> None:
    """Let a lost one wait again. Of several that look at once, one is first, and the others find nothing to do."""
    _log.warning("the worker of %s %s is lost", job.task_name, job.task_kwargs)
    # The queue itself would give up what was to be cancelled.
    await work.end_cancelled(job.task_kwargs)
    with contextlib.suppress(ConnectorException):
        await app.job_manager.retry_job(job)


class _Again(BaseRetryStrategy):
    """Puts work back into the queue whatever ended it early; our own table counts the attempts."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision:  # noqa: ARG002 - its signature
        match exception:
            case Waits():
                seconds = exception.seconds
            case asyncio.CancelledError():
                seconds = 0.0
            case _:
                seconds = _AGAIN_SECONDS
        return RetryDecision(retry_in={"seconds": int(seconds)})


class _Connector(PsycopgConnector):
    """Outlives a database that is away for a moment, where the library's own ends the worker."""

    async def execute_query_async(self, query: Any, **arguments: Any) -> None:
        """Signs of life, and ends of work: said again until the database has heard them, for a while."""
        for _ in range(10):
            try:
                await super().execute_query_async(query, **arguments)
            except ConnectorException as error:
                if not isinstance(error.__cause__, psycopg.OperationalError):
                    raise
            else:
                return
            await asyncio.sleep(_AGAIN_SECONDS)
        await super().execute_query_async(query, **arguments)

    async def listen_notify(self, on_notification: Notify, channels: Iterable[str]) -> None:
        """Hear of what is new, on a new connection whenever the one before broke."""
        while True:
            with contextlib.suppress(ConnectorException, OSError):
                await super().listen_notify(on_notification, channels)
            await asyncio.sleep(_AGAIN_SECONDS)


def _connector(url: str, at_once: int) -> PsycopgConnector:
    kwargs = {
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "prevail-queue",
        "options": f"-c search_path={SCHEMA}",
    }
    size = 1 + min(at_once, _MOST_CONNECTIONS)
    return _Connector(
        conninfo=url,
        kwargs=kwargs,
        min_size=1,
        max_size=size,
        timeout=10.0,
        reconnect_timeout=_RECONNECT_SECONDS,
    )


def libpq_url(url: str) -> str:
    """The URL of a database in the form of libpq, from that of SQLAlchemy's asyncpg dialect."""
    parts = urlsplit(url)
    names = {"ssl": "sslmode"}
    query = [(names.get(name, name), value) for name, value in parse_qsl(parts.query) if name != _OF_SQLALCHEMY]
    return f"postgresql://{parts.netloc}{parts.path}" + (f"?{urlencode(query)}" if query else "")
