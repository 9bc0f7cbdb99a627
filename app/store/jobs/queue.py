"""Who works on which job: procrastinate's worker on its own connections, and what it leaves to be tidied up.

It takes jobs in order, each once, hears at once of new ones and of those to be cancelled, and says now and then that
it is alive. A job whose worker has not been heard of for a while waits again: `PostgresJobStore.begin` counts that.
"""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final, NoReturn
from urllib.parse import parse_qsl, urlencode, urlsplit
from uuid import UUID

import psycopg
from procrastinate import App, BaseRetryStrategy, JobContext, PsycopgConnector, RetryDecision
from procrastinate.connector import Notify
from procrastinate.exceptions import ConnectorException, JobAborted
from procrastinate.job_context import AbortReason
from procrastinate.jobs import DeleteJobCondition, Job

from app.services.jobs.running import Waits
from app.services.ports import StoreFullError, StoreUnavailableError
from app.store.jobs.jobs import PostgresJobStore
from app.store.jobs.waiting import QUEUE, SCHEMA, TASK

Work = Callable[[str, UUID], Awaitable[None]]
_log = logging.getLogger("prevail.jobs")

_AGAIN_SECONDS: Final = 1
# Between two looks for what nobody told of.
_POLL_SECONDS: Final = 2.0
_CONNECT_SECONDS: Final = 5
_OF_SQLALCHEMY: Final = "prepared_statement_cache_size"
_UNREACHABLE: Final = (ConnectorException, psycopg.Error, StoreUnavailableError, StoreFullError, OSError)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSettings:
    """How jobs are worked on.

    Attributes:
        at_once: Jobs that this process has in hand at most.
        grace_seconds: What a job in hand may still take when the process is to end; then it waits again.
        lost_seconds: After so long without a sign of life a worker is taken for lost.
        keep_seconds: How long jobs are remembered that have ended.
    """

    at_once: int
    grace_seconds: float
    lost_seconds: float
    keep_seconds: float


class JobQueue:
    """One worker of the queue; `work` is its life."""

    def __init__(self, url: str, store: PostgresJobStore, settings: QueueSettings) -> None:
        """``url`` is that of the database, in SQLAlchemy's form."""
        self._store = store
        self._settings = settings
        self._url = libpq_url(url)

    async def work(self, work: Work) -> NoReturn:
        """Work on jobs until this is cancelled. A database that is away is waited for."""
        while True:
            try:
                await self._work(work)
            except _UNREACHABLE as error:
                _log.warning("the queue of jobs cannot be worked on: %s", error.__cause__ or error)
            except Exception:  # noqa: BLE001 - a fault of ours or of the library; jobs are to go on
                _log.exception("the queue of jobs is begun anew")
            await asyncio.sleep(_AGAIN_SECONDS)

    async def _work(self, work: Work) -> None:
        settings = self._settings
        app = App(connector=_connector(self._url, settings.at_once))

        @app.task(name=TASK, queue=QUEUE, pass_context=True, retry=_Again())
        async def job(context: JobContext, *, project: str, identifier: str) -> None:
            await self._one(work, context, project, UUID(identifier))

        async with app.open_async():
            tidying = asyncio.create_task(self._tidy(app))
            try:
                await app.run_worker_async(
                    queues=[QUEUE],
                    concurrency=settings.at_once,
                    fetch_job_polling_interval=_POLL_SECONDS,
                    abort_job_polling_interval=_POLL_SECONDS,
                    shutdown_graceful_timeout=settings.grace_seconds,
                    delete_jobs=DeleteJobCondition.ALWAYS,
                    install_signal_handlers=False,
                    update_heartbeat_interval=settings.lost_seconds / 4,
                    stalled_worker_timeout=settings.lost_seconds,
                )
            finally:
                tidying.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await tidying

    async def _one(self, work: Work, context: JobContext, project: str, identifier: UUID) -> None:
        try:
            await work(project, identifier)
        except asyncio.CancelledError:
            if context.abort_reason() is AbortReason.USER_REQUEST:
                await self._store.end_if_cancelled(project, identifier)
                raise JobAborted from None
            raise

    async def _tidy(self, app: App) -> None:
        """Let jobs wait again whose worker is lost, and forget old ones, again and again."""
        while True:
            try:
                lost = await app.job_manager.get_stalled_jobs(
                    queue=QUEUE, seconds_since_heartbeat=self._settings.lost_seconds
                )
                for job in lost:
                    await self._retry(app, job)
                await self._store.purge(self._settings.keep_seconds)
            except _UNREACHABLE as error:
                _log.warning("the queue of jobs cannot be tidied up: %s", error.__cause__ or error)
            await asyncio.sleep(self._settings.lost_seconds / 4)

    async def _retry(self, app: App, job: Job) -> None:
        """Let a lost job wait again. Of several that look at once, one is first, and the others find nothing to do."""
        _log.warning("whoever worked on the job %s is lost", job.task_kwargs["identifier"])
        # The queue itself would give up what was to be cancelled.
        given = job.task_kwargs
        await self._store.end_if_cancelled(str(given["project"]), UUID(str(given["identifier"])))
        with contextlib.suppress(ConnectorException):
            await app.job_manager.retry_job(job)


class _Again(BaseRetryStrategy):
    """Whatever ends the work on a job but its own end lets it wait again; how often, our own row counts."""

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
        """Signs of life, and the ends of jobs: said again until the database has heard them, for a while."""
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
        """Hear of new jobs, on a new connection whenever the one before broke."""
        while True:
            with contextlib.suppress(ConnectorException, OSError):
                await super().listen_notify(on_notification, channels)
            await asyncio.sleep(_AGAIN_SECONDS)


def _connector(url: str, at_once: int) -> PsycopgConnector:
    kwargs = {
        "connect_timeout": _CONNECT_SECONDS,
        "application_name": "prevail-jobs",
        "options": f"-c search_path={SCHEMA}",
    }
    return _Connector(conninfo=url, kwargs=kwargs, min_size=1, max_size=1 + at_once, timeout=10.0)


def libpq_url(url: str) -> str:
    """The URL of a database in the form of libpq, from that of SQLAlchemy's asyncpg dialect."""
    parts = urlsplit(url)
    names = {"ssl": "sslmode"}
    query = [(names.get(name, name), value) for name, value in parse_qsl(parts.query) if name != _OF_SQLALCHEMY]
    return f"postgresql://{parts.netloc}{parts.path}" + (f"?{urlencode(query)}" if query else "")
