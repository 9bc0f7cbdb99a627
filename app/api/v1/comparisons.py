"""Routes of comparisons: of runs, and of models across datasets."""

from http import HTTPStatus
from typing import Any, Literal
from uuid import UUID

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.api.answers import json_response
from app.api.bodies.parsing import parse_body, read_body
from app.api.deps import Project, StrictRoute, UseServices
from app.api.documentation import PROBLEMS, body_schema
from app.api.v1.requests import comparisons as requests

router = APIRouter(prefix="/v1", responses=PROBLEMS, tags=["comparisons"], route_class=StrictRoute)


class DifferenceValue(BaseModel):
    """a less b in the unit of the metric."""

    a: UUID
    b: UUID
    difference: float | None
    low: float | None
    high: float | None
    p_value: float | None = Field(
        description="Two-sided. With p_range its upper end, which holds whatever the pairing."
    )
    p_adjusted: float | None
    probability_a_better: float | None = Field(description="By more than the region of equivalence.")
    probability_equivalent: float | None
    probability_error: float | None = Field(description="Monte-Carlo standard error of the probabilities at most.")
    method: str = Field(description="Of the limits, and of p.")
    p_range: list[float | None] | None = Field(None, description="What the unknown pairing of one test set allows.")
    discordant: int | None = Field(None, description="Samples that exactly one of the two has right.")
    reason: str | None = Field(None, description="Why there is no test, or one that says little.")
    folds: dict[str, Any] | None = Field(
        None, description="For runs on the same folds: corrected t and the Bayesian correlated t over them."
    )


class ComparedMetric(BaseModel):
    """What is said of the runs by one metric; lists are in the order of the evaluations."""

    values: list[float | None]
    ranks: list[int | None]
    best: UUID | None
    better: Literal["higher", "lower", "nearest"]
    prevalence: Literal["insensitive", "observed", "reprojected", "incomparable"]
    observed_values: list[float | None] | None = None
    probability_best: list[float | None] | None
    expected_ranks: list[float | None] | None
    rank_intervals: list[list[float]] | None
    may_be_best: list[UUID] | None = Field(description="The runs that are not worse than the best beyond doubt.")
    omnibus: dict[str, Any] | None = Field(
        None, description="For three or more paired runs and values with a covariance: do all have the same?"
    )
    differences: list[DifferenceValue]


class RankAgreement(BaseModel):
    """Kendall's tau-b between the orders that the metrics give."""

    metrics: list[str]
    kendall_tau: list[list[float | None]]


class Disagreement(BaseModel):
    """Two metrics that prefer different runs."""

    metrics: list[str]
    prefer: list[UUID]
    message: str


class ComparisonResponse(BaseModel):
    """A comparison of runs."""

    id: UUID
    evaluations: list[dict[str, Any]]
    baseline: UUID | None
    design: dict[str, Any]
    metrics: dict[str, ComparedMetric]
    rank_agreement: RankAgreement
    disagreements: list[Disagreement]
    omnibus: dict[str, Any] | None = None
    prediction_drift: dict[str, Any] | None = None
    findings: list[dict[str, Any]] | None = Field(
        None, description="Where a score that is not proper prefers the run that a proper one finds worse."
    )
    notes: list[str]


class TournamentResponse(BaseModel):
    """Models across datasets; models are named by their place in `models`."""

    id: UUID
    metric: str
    better: str
    models: list[dict[str, str | None]]
    datasets: list[dict[str, str | None]]
    evaluations: list[list[UUID]]
    values: list[list[float | None]] = Field(description="By dataset, the value of each model.")
    average_ranks: list[float]
    friedman: dict[str, Any]
    pairwise: list[dict[str, Any]]
    cliques: list[list[int]] = Field(
        description="Maximal groups of models of which no two differ, by the pairwise tests."
    )
    nemenyi: dict[str, Any]
    control: list[dict[str, Any]] | None = None
    design: dict[str, Any]
    notes: list[str]


@router.post(
    "/comparisons",
    status_code=HTTPStatus.CREATED,
    response_class=Response,
    responses={201: {"model": ComparisonResponse}},
    openapi_extra=body_schema(requests.ComparisonRequest, requests.COMPARISONS),
    operation_id="createComparison",
)
async def create_comparison(request: Request, services: UseServices, project: Project) -> Response:
    """Compare runs on any metrics: differences with intervals and tests, who may be best, where metrics disagree."""
    asked = parse_body(await read_body(request), requests.ComparisonRequest)
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
    openapi_extra=body_schema(requests.TournamentRequest, requests.TOURNAMENTS),
    operation_id="compareAcrossDatasets",
)
async def compare_across_datasets(request: Request, services: UseServices, project: Project) -> Response:
    """Compare models over datasets: average ranks, Friedman, Wilcoxon and Nemenyi, Bayesian signed rank with a ROPE."""
    asked = parse_body(await read_body(request), requests.TournamentRequest)
    answer = await services.tournaments.create(project, asked.to_domain())
    return json_response(answer, HTTPStatus.CREATED, {"Location": f"/v1/comparisons/{answer['id']}"})
