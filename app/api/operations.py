"""Routes for those who run the service, and the pages that errors point at."""

from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.api.answers import json_response
from app.api.deps import UseServices
from app.api.documentation import PROBLEMS
from app.api.problem_types import PROBLEM_TYPES
from app.api.problems import Problem, respond
from app.domain.errors import NotFound

router = APIRouter()


class AliveResponse(BaseModel):
    """The process answers."""

    status: Literal["alive"]


class ReadyResponse(BaseModel):
    """The database answers, and its schema is the one of this release."""

    status: Literal["ready"]
    reachable: bool
    schema_revision: str | None = Field(alias="schema")
    expected_schema: str


class ProblemTypeResponse(BaseModel):
    """What a code means."""

    code: str
    meaning: str


@router.get(
    "/healthz",
    response_class=Response,
    responses={200: {"model": AliveResponse}},
    operation_id="isAlive",
    tags=["operations"],
)
async def is_alive() -> Response:
    """Answer as long as the process does; asks nothing else."""
    return json_response({"status": "alive"})


@router.get(
    "/readyz",
    response_class=Response,
    responses={200: {"model": ReadyResponse}, 503: PROBLEMS[503]},
    operation_id="isReady",
    tags=["operations"],
)
async def is_ready(request: Request, services: UseServices) -> Response:
    """Tell whether the database answers and its schema is the one of this release."""
    state = await services.readiness.check()
    facts = {"reachable": state.reachable, "schema": state.revision, "expected_schema": state.expected}
    if state.current:
        return json_response({"status": "ready", **facts})
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
        members=tuple(facts.items()),
        headers=(("Retry-After", "5"),),
    )
    return respond(problem, request)


@router.get(
    "/problems/{code}",
    response_class=Response,
    responses={200: {"model": ProblemTypeResponse}, 404: PROBLEMS[404], 422: PROBLEMS[422]},
    operation_id="getProblemType",
    tags=["operations"],
)
async def get_problem_type(code: str) -> Response:
    """Explain a problem type: what it means and what to do."""
    if code not in PROBLEM_TYPES:
        raise NotFound(f"there is no problem type {code[:60]!r}")
    return json_response({"code": code, "meaning": PROBLEM_TYPES[code]})
