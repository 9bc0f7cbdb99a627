"""The ASGI application: `uvicorn --factory app.main:create`."""

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from uuid import UUID

from fastapi import FastAPI
from starlette.routing import Route

from app.api import documentation, operations, pages, problems
from app.api.access import IDEMPOTENCY_KEY, PROJECT_HEADER, MetricsDoor
from app.api.bodies.keyed import REPLAYED, Replay
from app.api.jobs import DeferredRequests
from app.api.middleware import Addresses, CrossOrigin, HeaderChecks, Observed, RequestEnvelope, UsageCount
from app.api.ui import pages as ui
from app.api.v1 import (
    comparisons,
    curves,
    figures,
    gates,
    history,
    jobs,
    keys,
    leaderboard,
    listing,
    metrics,
    projections,
    slices,
    usage,
    webhooks,
)
from app.api.v1.evaluations import batches, evaluations
from app.api.v1.replays import replay
from app.domain.operations import DEFAULT_PROJECT, Actor, KeptRequest, Task
from app.protocol import LIMITS, REFUSED, ConnectionLimits
from app.services.beside import beside
from app.services.evaluate.reports import warm_up
from app.settings import MetricsAccess, Settings
from app.telemetry import Telemetry
from app.wiring import build_services, build_telemetry

DESCRIPTION = """
Judges classifiers and cannot be fooled by prevalence: a confusion matrix in, every metric out, stored and read back.
Every value says whether it moves with the mix of the classes, and what does not exist is null with a reason.
"""
ROUTERS = (
    batches.router,
    evaluations.router,
    evaluations.of_metrics,
    history.router,
    listing.router,
    curves.router,
    comparisons.router,
    gates.router,
    leaderboard.router,
    projections.router,
    slices.router,
    metrics.router,
    figures.router,
    jobs.router,
    keys.router,
    usage.router,
    webhooks.router,
    operations.router,
)
_FIRST_PAGE_AFTER_SECONDS = 1.0
_GARBAGE_THRESHOLDS = (10_000, 20, 20)


def create() -> FastAPI:
    """Make the application from the environment, in a process that does nothing else."""
    return create_app(Settings(), alone=True)


def create_app(
    settings: Settings, telemetry: Telemetry | None = None, *, job_grace_seconds: float = 0.0, alone: bool = False
) -> FastAPI:
    """Make the application from settings; ``alone`` in a process that does nothing else, whose garbage collector is set
    for it. Jobs in hand may still take ``job_grace_seconds`` at its end.
    """
    telemetry = telemetry or build_telemetry(settings, _version())

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[dict[str, Any]]:
        requests = partial(DeferredRequests, app)
        built = build_services(settings, telemetry, requests, job_grace_seconds=job_grace_seconds)
        async with built as services, _settled() if alone else nullcontext():
            app.state.services = services
            if alone:
                warm_up()
            async with beside(_first_page(requests(services)), "first-page") if alone else nullcontext():
                yield {LIMITS: limits, **({REFUSED: counted.refused} if counted is not None else {})}

    counted = telemetry.metrics
    limits = ConnectionLimits(settings.header_seconds, settings.body_seconds, settings.connection_limit)
    app = FastAPI(
        title="Prevail",
        version=_version(),
        summary="Evaluation as a service",
        description=DESCRIPTION,
        license_info={"name": "Apache-2.0", "identifier": "Apache-2.0"},
        lifespan=lifespan,
        # Served by `app.api.pages`, without anything from elsewhere.
        docs_url=None,
        redoc_url=None,
        # An address with a slash too many is a 404 like any other, not a redirect that clients forget to follow.
        redirect_slashes=False,
        # The service traces and counts by itself, when it is told to; the framework would ask at every request.
        telemetry={"tracing": False, "metrics": False, "logs": False},
    )
    # Each route is complete as it is. `include_router` would build all of them once more, at the first request.
    for router in ROUTERS:
        app.router.routes.extend(router.routes)
    problems.install(app)
    app.add_exception_handler(Replay, replay)
    documentation.install(app)
    pages.install(app)
    ui.install(app)
    routes = [
        route for router in (app.router, *ROUTERS, ui.router) for route in router.routes if isinstance(route, Route)
    ]
    addresses = Addresses(routes)
    app.state.addresses = addresses
    token = settings.metrics_token
    app.state.metrics_door = MetricsDoor(
        open=settings.metrics_access is MetricsAccess.open,
        token=None if token is None else token.get_secret_value(),
    )
    checks = HeaderChecks(
        hosts=settings.allowed_hosts,
        origins=settings.cors_origins,
        needs_key=lambda: app.state.services.guard.needs_key(),
    )
    app.add_middleware(
        RequestEnvelope,
        checks=checks,
        max_body_bytes=settings.max_body_bytes,
        max_bodies_bytes=settings.max_bodies_bytes,
        addresses=addresses,
    )
    app.add_middleware(Observed, sinks=[*telemetry.sinks, UsageCount(app)], addresses=addresses)
    if telemetry.provider is not None:
        # Only when it is asked for: OpenTelemetry is an extra.
        from app.telemetry.tracing import Traced

        app.add_middleware(Traced, provider=telemetry.provider, addresses=addresses)
    if settings.cors_origins:
        # Around everything: a page may read why it was refused.
        app.add_middleware(
            CrossOrigin,
            checks=checks,
            allow_origins=settings.cors_origins,
            allow_methods=["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
            allow_headers=[
                *("Authorization", "Content-Type", "If-Match", "If-None-Match", IDEMPOTENCY_KEY, "Prefer"),
                *(PROJECT_HEADER, "X-Request-ID"),
            ],
            expose_headers=[
                *("ETag", "Location", "Preference-Applied", "RateLimit", "RateLimit-Policy", "Retry-After"),
                *("X-Request-ID", *REPLAYED),
            ],
            max_age=3600,
        )
    return app


async def _first_page(requests: DeferredRequests) -> None:
    """Read the home page for nobody, once the first requests can be answered: statements, templates and connections are
    made at first use, and take longer than the page.
    """
    await asyncio.sleep(_FIRST_PAGE_AFTER_SECONDS)
    home, nobody = KeptRequest(kind="", method="GET", path="/ui", query="", headers={}), UUID(int=0)
    task = Task(id=nobody, project=DEFAULT_PROJECT, makes=nobody, actor=Actor("start"), request=home, run=1, lost=0)
    await requests.messages(task)


@asynccontextmanager
async def _settled() -> AsyncIterator[None]:
    """Take what the start has made, which stays, out of the garbage collector's rounds, and make them rarer.

    A report is a thousand objects, so that under load every few dozen requests brought a full round: a third of their
    time went into looking at the same modules, routes and metrics again.
    """
    usual = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE_THRESHOLDS)
    yield
    gc.set_threshold(*usual)
    gc.unfreeze()


def _version() -> str:
    try:
        return version("prevail-server")
    except PackageNotFoundError:
        return "0.1.0"
