"""Routes of comparisons: of runs, and of models across datasets."""

from http import HTTPStatus
from uuid import UUID

from fastapi import APIRouter, Request
from starlette.responses import Response

from app.api.body import parse_body, read_body
from app.api.deps import Project, StrictRoute, UseServices
from app.api.documentation import PROBLEMS, body_schema
from app.api.v1 import decision_examples as examples
from app.api.v1.comparison_models import (
    ComparisonRequest,
    ComparisonResponse,
    TournamentRequest,
    TournamentResponse,
)
from app.api.v1.present import json_response

router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["comparisons"], route_class=StrictRoute)


@router.post(
    "/comparisons",
    status_code=HTTPStatus.CREATED,
    response_class=Response,
    responses={201: {"model": ComparisonResponse}},
    openapi_extra=body_schema("ComparisonRequest", examples.COMPARISONS),
    operation_id="createComparison",
)
async def create_comparison(request: Request, services: UseServices, project: Project) -> Response:
    """Compare runs on any metrics: differences with intervals and tests, who may be best, where metrics disagree."""
    asked = parse_body(await read_body(request), ComparisonRequest)
    answer = await services.comparisons.create(project, asked.to_domain())
    return json_response(answer, HTTPStatus.CREATED, {"Location": f"/v1/comparisons/{answer['id']}"})


@router.get(
    "/comparisons/{identifier}",
    response_class=Response,
    responses={200: {"model": ComparisonResponse | TournamentResponse}},
    operation_id="getComparison",
)
async def get_comparison(identifier: UUID, services: UseServices, project: Project) -> Response:
    """Read a comparison as it was answered."""
    return json_response(await services.comparisons.read(project, identifier))


@router.post(
    "/comparisons/across-datasets",
    status_code=HTTPStatus.CREATED,
    response_class=Response,
    responses={201: {"model": TournamentResponse}},
    openapi_extra=body_schema("TournamentRequest", examples.TOURNAMENTS),
    operation_id="compareAcrossDatasets",
)
async def compare_across_datasets(request: Request, services: UseServices, project: Project) -> Response:
    """Compare models over datasets: average ranks, Friedman, Wilcoxon and Nemenyi, Bayesian signed rank with a ROPE."""
    asked = parse_body(await read_body(request), TournamentRequest)
    answer = await services.tournaments.create(project, asked.to_domain())
    return json_response(answer, HTTPStatus.CREATED, {"Location": f"/v1/comparisons/{answer['id']}"})
