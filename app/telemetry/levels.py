"""How high queues and connections stand, for the metrics."""

from typing import Any

from sqlalchemy.ext.asyncio import AsyncEngine

from app.services.admission import Admission
from app.services.processes.compute import ComputePool
from app.store.evaluations.writer import EvaluationWriter
from app.telemetry.metrics import ServiceMetrics
from app.telemetry.sampling import Level


def levels(
    metrics: ServiceMetrics,
    admission: Admission,
    compute: ComputePool,
    writer: EvaluationWriter,
    engine: AsyncEngine,
) -> list[Level]:
    """What metrics show of queues and connections."""
    # No overflow is allowed, so it has no other kind.
    pool: Any = engine.pool
    writes, jobs, connections = "Writes by state.", "Large computations by state.", "Connections of the pool by state."
    return [
        Level("http_requests_in_flight", "Requests that are not over.", lambda: metrics.in_flight),
        Level("writes", writes, lambda: admission.held, ("state", "admitted")),
        Level("writes", writes, lambda: admission.waiting, ("state", "waiting")),
        Level("compute_jobs", jobs, lambda: compute.running, ("state", "running")),
        Level("compute_jobs", jobs, lambda: compute.waiting, ("state", "waiting")),
        Level("commit_queue", "Evaluations that wait for a commit to begin.", lambda: writer.waiting),
        Level("database_connections", connections, pool.checkedout, ("state", "in_use")),
        Level("database_connections", connections, pool.checkedin, ("state", "idle")),
        Level("database_pool_size", "Connections that the pool may have.", pool.size),
    ]
