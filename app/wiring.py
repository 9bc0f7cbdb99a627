"""The one place where things are built and joined."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from app.api.deps import Services
from app.kernel.card import Scope
from app.kernel.catalogue import catalogue
from app.services.admission import Admission
from app.services.compute import ComputePool
from app.services.evaluations import EvaluationService
from app.settings import Settings
from app.store.engine import create_engine
from app.store.evaluations import PostgresEvaluationStore
from app.store.schema import SchemaReadiness
from app.store.writer import EvaluationWriter


@asynccontextmanager
async def build_services(settings: Settings) -> AsyncIterator[Services]:
    """Services on the database of the settings, closed at the end.

    Raises:
        ValueError: the settings name no database.
    """
    if settings.database_url is None:
        raise ValueError("expected PREVAIL_DATABASE_URL; `prevail serve` sets it when it starts the embedded Postgres")
    engine = create_engine(
        settings.database_url.get_secret_value(),
        pool_size=settings.pool_size,
        statement_timeout=settings.statement_timeout_seconds,
    )
    compute = ComputePool(settings.compute_threads)
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    try:
        await store.prepare([metric.key for metric in catalogue().of_scope(Scope.OVERALL)])
        yield Services(
            evaluations=EvaluationService(
                store,
                compute=compute,
                admission=Admission(limit=settings.admission_limit, wait_seconds=settings.admission_wait_seconds),
            ),
            compute=compute,
            readiness=SchemaReadiness(engine),
        )
    finally:
        compute.close()
        await store.close()
        await engine.dispose()
