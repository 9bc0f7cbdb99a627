"""Routes for those who run the service, and the pages that errors point at."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Final, Literal

from fastapi import APIRouter, Request
from starlette.responses import RedirectResponse, Response

from app.api.access import MetricsDoor
from app.api.answers import Documented, answers, json_response
from app.api.deps import NamedRoute, UseContext, let_pass
from app.api.documentation import PROBLEMS
from app.api.presentation import prefers_page
from app.api.problems import PROBLEM_TYPES, Problem, respond
from app.domain.errors import NotFound
from app.domain.members import SPREAD, members
from app.domain.operations import Scope
from app.services.ports import StoreState

# Of Prometheus: text, and the version of its format.
METRICS_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_EXPOSITION: Final[Documented] = {
    200: {
        "description": "In the text format of Prometheus, over all workers of this machine.",
        "content": {"text/plain": {"schema": {"type": "string"}}},
    }
}

router = APIRouter(default_response_class=Response, route_class=NamedRoute, tags=["operations"])


@dataclass(frozen=True, slots=True)
class Alive:
    """The process answers."""

    status: Literal["alive"] = "alive"


@dataclass(frozen=True, slots=True)
class Ready:
    """The database answers, and its schema is the one of this release."""

    facts: StoreState = field(metadata=SPREAD)
    status: Literal["ready"] = "ready"


@dataclass(frozen=True, slots=True)
class ProblemType:
    """The meaning of an error code."""

    code: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Version:
    """The running version.

    Attributes:
        version: Version of the service.
    """

    version: str


@dataclass(frozen=True, slots=True)
class Index:
    """The addresses of the service.

    Attributes:
        links: Addresses by what is there.
    """

    service: Literal["prevail"]
    version: str
    links: Mapping[str, str]


_LINKS: Final = {
    "evaluations": "/v1/evaluations",
    "batch": "/v1/evaluations/batch",
    "compute": "/v1/metrics/compute",
    "metrics": "/v1/metrics",
    "models": "/v1/models",
    "datasets": "/v1/datasets",
    "comparisons": "/v1/comparisons",
    "leaderboard": "/v1/leaderboard",
    "gates": "/v1/gates",
    "jobs": "/v1/jobs",
    "webhooks": "/v1/webhooks",
    "keys": "/v1/keys",
    "usage": "/v1/usage",
    "pages": "/ui",
    "documentation": "/docs",
    "openapi": "/openapi.json",
    "health": "/healthz",
}


@router.get("/v1", responses=answers(Index))
async def get_index(request: Request) -> Response:
    """List the addresses from which everything else is found."""
    return json_response(Index("prevail", request.app.version, _LINKS))


@router.get("/", responses=answers(Index))
async def get_root(request: Request) -> Response:
    """List the addresses from which everything else is found; a browser is led to the pages."""
    if prefers_page(request):
        return RedirectResponse("ui", HTTPStatus.SEE_OTHER)
    return await get_index(request)


@router.get("/version", responses=answers(Version))
async def get_version(request: Request) -> Response:
    """Tell which release of the service this is."""
    return json_response(Version(request.app.version))


@router.get("/healthz", responses=answers(Alive))
async def is_alive() -> Response:
    """Answer as long as the process runs, without asking the database."""
    return json_response(Alive())


@router.get("/readyz", responses=answers(Ready) | {503: PROBLEMS[503]})
async def is_ready(request: Request, context: UseContext) -> Response:
    """Tell whether the database answers and its schema is the one of this release."""
    state = await context.services.readiness()
    if state.current:
        return json_response(Ready(state))
    code, detail = (
        (
            "schema_outdated",
            f"the database has schema {state.revision}, this release needs {state.expected}: run `prevail migrate`",
        )
        if state.reachable
        else ("database_unavailable", "the database does not answer")
    )
    problem = Problem(
        status=HTTPStatus.SERVICE_UNAVAILABLE,
        code=code,
        detail=detail,
        members=members(state),
        headers={"Retry-After": "5"},
    )
    return respond(problem, request)


@router.get("/metrics", responses=_EXPOSITION | {status: PROBLEMS[status] for status in (401, 403, 404, 429, 503)})
async def get_service_metrics(request: Request, context: UseContext) -> Response:
    """Read metrics of the service: requests, computations, queues, the database, memory. Nothing of any project."""
    exposition = context.services.exposition
    if exposition is None:
        raise NotFound("metrics are off: PREVAIL_METRICS_ACCESS")
    door: MetricsDoor = request.app.state.metrics_door
    if not door.lets_pass(request.headers.get("authorization")):
        await let_pass(request, Scope.ADMIN)
    return Response(await exposition(), media_type=METRICS_TYPE)


@router.get("/problems/{code}", responses=answers(ProblemType) | {404: PROBLEMS[404], 422: PROBLEMS[422]})
async def get_problem_type(code: str) -> Response:
    """Explain a problem type: what it means and what to do."""
    if code not in PROBLEM_TYPES:
        raise NotFound(f"there is no problem type {code[:60]!r}")
    return json_response(ProblemType(code, PROBLEM_TYPES[code]))
