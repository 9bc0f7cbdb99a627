"""Composition of the service: all parts are built and joined here."""

import asyncio
import contextlib
import logging
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from app.api.deps import NamedData, Services
from app.api.middleware import RequestLog, RequestSink
from app.api.problems import PROBLEM_TYPES
from app.api.ui.web import load_pages
from app.domain.errors import SchemaOutdated
from app.domain.operations import SendResult
from app.kernel.metrics.card import Scope
from app.kernel.metrics.catalogue import catalogue
from app.outbound.addresses import can_be_reached
from app.outbound.data import DataPlaces
from app.outbound.duckdb_rows import DuckEngine, spill_folder
from app.outbound.spark_rows import SparkEngine
from app.services.access import Guard, KeyService, Quotas
from app.services.admission import Admission
from app.services.beside import beside
from app.services.compare.across_datasets import TournamentService
from app.services.compare.comparisons import ComparisonService
from app.services.evaluate.evaluations import EvaluationService
from app.services.gate import GateService
from app.services.history import HistoryService, look_for_change
from app.services.idempotency import IdempotencyService
from app.services.inventory import InventoryService, Retention
from app.services.jobs import JobRunner, JobService, Requests
from app.services.ports import Engine, StoreState
from app.services.present import UNOBSERVED, Observer, Observers
from app.services.processes.compute import ComputePool
from app.services.processes.rendering import Renderer
from app.services.processes.worker import Limits
from app.services.project.what_if import WhatIfService
from app.services.rank import LeaderboardService
from app.services.webhooks import Sender, WebhookService
from app.settings import Authentication, MetricsAccess, Settings
from app.store.audit import PostgresTrail
from app.store.comparisons import PostgresComparisonStore
from app.store.engine import DatabaseWatch, Disk, create_engine, schema_state
from app.store.evaluations import PostgresEvaluationStore
from app.store.gates import PostgresGateStore
from app.store.idempotency import PostgresIdempotencyStore
from app.store.jobs import PostgresJobStore, work_on_jobs
from app.store.keys import PostgresKeyStore, PostgresUsageStore
from app.store.queue import DELIVERIES, JOBS, Queue, QueueWorker
from app.store.webhooks import Listeners, PostgresWebhookStore, work_on_deliveries
from app.store.writer import EvaluationWriter
from app.telemetry import Telemetry
from app.telemetry.metrics import DatabaseLog, Sampler, ServiceMetrics, levels

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

_log = logging.getLogger("prevail.wiring")

_WARM_UP_AFTER_SECONDS = 1.0
# Webhooks that a process tells at once: it only waits for them.
_DELIVERIES_AT_ONCE = 8
# Whether a request needs a key; None: as soon as there is one.
_REQUIRED = {Authentication.auto: None, Authentication.keys: True, Authentication.off: False}


@asynccontextmanager
async def build_services(
    settings: Settings,
    telemetry: Telemetry,
    requests: Callable[[Services], Requests] | None = None,
    *,
    job_grace_seconds: float = 0.0,
) -> AsyncIterator[Services]:
    """Services on the database of the settings, closed at the end.

    Args:
        settings: Of the process.
        telemetry: Is told what they take.
        requests: Makes what carries out the requests of jobs; without it nobody works on jobs here.
        job_grace_seconds: What jobs in hand may still take at the end; then they wait again for somebody else.

    Raises:
        ValueError: the settings name no database.
        SchemaOutdated: the database has not the schema of this release. One that does not answer is no reason not to
            start: a worker that is replaced meanwhile would else end the whole service.
    """
    if settings.database_url is None:
        raise ValueError("expected PREVAIL_DATABASE_URL; `prevail serve` sets it when it starts the embedded Postgres")
    url = settings.database_url.get_secret_value()
    watch = DatabaseWatch(telemetry.observers)
    engine = create_engine(
        url,
        pool_size=settings.pool_size,
        statement_timeout=settings.statement_timeout_seconds,
        disk=Disk(settings.database_dir, settings.min_free_bytes),
        watch=watch,
    )
    readiness = partial(schema_state, engine)

    async def post(url: str, headers: Mapping[str, str], body: bytes) -> SendResult:
        # The client of HTTP and its certificates are loaded for the first one: most services have none.
        from app.outbound import posting

        return await posting.post(url, headers, body, private=settings.webhook_private_addresses)

    def pool(
        processes: int, seconds: float, wait_seconds: float, more_memory: int = 0, observers: Observers = UNOBSERVED
    ) -> ComputePool:
        limits = Limits(seconds, settings.compute_memory_bytes + more_memory)
        return ComputePool(processes, limits, wait_seconds=wait_seconds, observers=observers)

    compute = pool(
        settings.compute_processes,
        settings.compute_seconds,
        settings.compute_wait_seconds,
        observers=telemetry.observers,
    )
    writer = EvaluationWriter(engine)
    listeners = Listeners(engine)
    webhooks = PostgresWebhookStore(engine, listeners, limit=settings.webhook_limit_per_project)
    store = PostgresEvaluationStore(engine, writer, listeners)
    admission = Admission(limit=settings.pool_size, wait_seconds=settings.admission_wait_seconds)
    comparisons = PostgresComparisonStore(engine)
    gates = PostgresGateStore(engine)
    jobs = PostgresJobStore(engine, overall=settings.job_limit, per_project=settings.job_limit_per_project)
    keys = PostgresKeyStore(engine)
    remembered = timedelta(seconds=settings.idempotency_seconds)
    idempotency = IdempotencyService(PostgresIdempotencyStore(engine), keep=remembered)
    renderer = Renderer(settings.figure_seconds, wait_seconds=settings.compute_wait_seconds)
    inventory = InventoryService(store)
    trail = PostgresTrail(engine)
    retention = Retention(inventory, trail, settings.retention or {}, trail_days=settings.audit_days)
    guard = Guard(keys, required=_REQUIRED[settings.authentication], rate=settings.key_rate)
    quotas = Quotas(
        PostgresUsageStore(engine),
        {
            "evaluations": settings.quota_evaluations,
            "bytes": settings.quota_bytes,
            "compute_seconds": settings.quota_compute_seconds,
        },
    )
    sampler = None
    if telemetry.metrics is not None:
        shown = levels(telemetry.metrics, admission, compute, writer, engine)
        sampler = Sampler(telemetry.metrics, shown, lost=lambda: watch.lost, ask=readiness)

    reached = partial(can_be_reached, private=settings.webhook_private_addresses)
    places = DataPlaces(settings.data_prefixes, settings.data_s3_endpoint)
    rows_beyond: Engine = DuckEngine(
        settings.data_memory_bytes // 2, settings.spill_bytes, settings.data_threads or None
    )
    if settings.spark is not None:
        rows_beyond = SparkEngine(settings.spark, settings.spark_folder)

    def services_with(
        compute: ComputePool, admission: Admission, data: ComputePool, folder: Path | None = None
    ) -> Services:
        history = HistoryService(store, compute=compute)
        boards = LeaderboardService(store, compute=compute)
        return Services(
            inventory=inventory,
            evaluations=EvaluationService(store, compute=compute, admission=admission),
            leaderboards=boards,
            history=history,
            comparisons=ComparisonService(store, comparisons, compute=compute, admission=admission),
            tournaments=TournamentService(store, comparisons, compute=compute, admission=admission),
            gates=GateService(store, gates, history_of=history, boards=boards, compute=compute, admission=admission),
            what_if=WhatIfService(store, compute=compute),
            jobs=JobService(jobs),
            webhooks=WebhookService(webhooks, reached),
            keys=KeyService(keys),
            idempotency=idempotency,
            guard=guard,
            quotas=quotas,
            compute=compute,
            data=NamedData(places, data, settings.data_memory_bytes, rows_beyond, folder, settings.spill_bytes),
            renderer=renderer,
            readiness=readiness,
            exposition=None if sampler is None else sampler.text,
        )

    try:
        if _is_current(await readiness()):
            await store.prepare([metric.key for metric in catalogue().reported.of_scope(Scope.OVERALL)])
        # Once the first requests can be answered: a start is not to wait for it.
        asyncio.get_running_loop().call_later(_WARM_UP_AFTER_SECONDS, compute.warm_up, load_pages)
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(beside(retention.run(), "retention"))
            await stack.enter_async_context(beside(idempotency.purge_again_and_again(), "idempotency-purge"))
            if sampler is not None:
                await stack.enter_async_context(beside(sampler.run(), "metrics-sampler"))
            if requests is not None and settings.job_concurrency:
                # Processes of their own, so that jobs never delay requests; nobody holds a connection meanwhile.
                processes = max(settings.job_concurrency, settings.compute_processes)
                compute_apart = pool(processes, settings.job_seconds, settings.job_seconds)
                # Others for columns, and what is computed of them: as many as jobs, none of which waits for another.
                columns = 2 * settings.data_memory_bytes
                compute_data = pool(settings.job_concurrency, settings.data_seconds, settings.data_seconds, columns)
                place = settings.spill_dir or Path(tempfile.gettempdir()) / f"prevail-{os.getuid()}"
                folder = stack.enter_context(spill_folder(place))
                # Half of the places for writes, which jobs wait for: they have no part in refusals of requests.
                half = Admission(limit=max(settings.pool_size // 2, 1), wait_seconds=settings.job_seconds)
                apart = services_with(compute_apart, half, compute_data, folder)
                runner = JobRunner(jobs, requests(apart), attempts=settings.job_attempts, note=quotas.note)
                stack.callback(compute_apart.close)
                stack.callback(compute_data.close)
                keep_seconds = settings.job_keep_hours * 3600.0
                on_jobs = work_on_jobs(jobs, runner.run, keep_seconds=keep_seconds)
                worker = _worker(url, settings, JOBS, settings.job_concurrency, job_grace_seconds)
                await stack.enter_async_context(worker.at_work(on_jobs))
                sender = Sender(webhooks, post, telemetry.observers)
                keep = timedelta(days=settings.webhook_keep_days)
                on_deliveries = work_on_deliveries(
                    webhooks, sender.send, partial(look_for_change, apart.history, webhooks.tell), keep=keep
                )
                worker = _worker(url, settings, DELIVERIES, _DELIVERIES_AT_ONCE, job_grace_seconds)
                await stack.enter_async_context(worker.at_work(on_deliveries))
            # Data that is named is read by jobs only.
            yield services_with(compute, admission, compute)
    finally:
        compute.close()
        renderer.close()
        await guard.used.close()
        await quotas.used.close()
        await store.close()


def _worker(url: str, settings: Settings, queue: Queue, at_once: int, grace_seconds: float) -> QueueWorker:
    return QueueWorker(url, queue, at_once, grace_seconds, lost_seconds=settings.job_lost_seconds)


def build_telemetry(settings: Settings, version: str, provider: "TracerProvider | None" = None) -> Telemetry:
    """Make the observers that the settings switch on; traces go to ``provider`` if there is one."""
    observers: list[Observer] = []
    sinks: list[RequestSink] = []
    metrics = None
    if settings.metrics_access is not MetricsAccess.off:
        metrics = ServiceMetrics(PROBLEM_TYPES.keys(), version)
        observers.append(metrics)
        sinks.append(metrics)
    if settings.access_log:
        observers.append(DatabaseLog())
        sinks.append(RequestLog())
    if settings.otel or provider is not None:
        # Only when it is asked for: OpenTelemetry is an extra.
        from app.telemetry.tracing import SpanObserver, exporting_provider

        provider = provider or exporting_provider(version)
        observers.append(SpanObserver(provider))
    return Telemetry(Observers(observers), sinks, metrics, provider)


def _is_current(state: StoreState) -> bool:
    """Return True if the database has the schema of this release; False if it does not answer."""
    if not state.reachable:
        _log.warning("the database does not answer; requests get 503 until it does")
        return False
    if not state.current:
        raise SchemaOutdated(
            f"the database has schema {state.revision}, this release needs {state.expected}: run `prevail migrate`"
        )
    return True
