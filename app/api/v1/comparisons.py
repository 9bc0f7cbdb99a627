"""Routes of comparisons: of runs, and of models across datasets."""

from dataclasses import asdict
from functools import partial
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from app.api.answers import answers
from app.api.bodies.parsing import parse_body, read_body
from app.api.cursors import Listing, Paging, paging_of
from app.api.deps import UseContext, routes
from app.api.documentation import made
from app.api.jobs import deferrable
from app.api.presentation import AS_USUAL, COMPARISON, FormatOfComparison, prefers_page, view_of, written_as
from app.api.v1.figures import comparison_page
from app.api.v1.requests import decisions as requests
from app.api.v1.requests.fields import OfModel
from app.api.v1.reread import compare_elsewhere
from app.domain.decisions import ComparisonFilter, ComparisonSummary
from app.services.compare.answers import ModelComparison, RunComparison

router = routes("comparisons")
_READ = (["getComparison"], {"identifier": "$response.body#/id"})


@router.post("/comparisons", responses=written_as(COMPARISON, made(RunComparison, *_READ)))
@deferrable(requests.ComparisonRequest, COMPARISON)
async def create_comparison(request: Request, context: UseContext, asked: FormatOfComparison = AS_USUAL) -> Response:
    """Compare runs on any metrics: differences with intervals and tests, who may be best, where metrics disagree."""
    view = view_of(request, COMPARISON, asked)
    body = await read_body(request)
    new = parse_body(body, requests.ComparisonRequest).to_domain()
    prepared = await context.services.comparisons.prepare(context.project, new)
    if prepared.elsewhere:
        return await compare_elsewhere(request, context, body, prepared, view)
    answer = await context.services.comparisons.answer(context.project, prepared)
    return view.answer(answer, HTTPStatus.CREATED, {"Location": f"/v1/comparisons/{answer.id}"})


@router.get("/comparisons", responses=answers(Listing[ComparisonSummary], name="ComparisonPage"))
async def list_comparisons(
    context: UseContext,
    paging: Annotated[Paging, paging_of(ComparisonSummary)],
    evaluation: Annotated[UUID | None, Query(description="Only those of this evaluation.")] = None,
    model: OfModel = None,
) -> Response:
    """List the comparisons of the project, latest first."""
    wanted = ComparisonFilter(evaluation, model)
    read = partial(context.services.comparisons.page, context.project, wanted)
    return await paging.page(read, {"list": "comparisons", **asdict(wanted)}, UUID)


@router.get("/comparisons/{identifier}", responses=written_as(COMPARISON))
async def get_comparison(
    identifier: UUID, request: Request, context: UseContext, asked: FormatOfComparison = AS_USUAL
) -> Response:
    """Read a comparison as it was answered."""
    if prefers_page(request):
        return await comparison_page(context, identifier)
    view = view_of(request, COMPARISON, asked)
    return view.answer(await context.services.comparisons.read(context.project, identifier))


@router.delete("/comparisons/{identifier}")
async def delete_comparison(identifier: UUID, context: UseContext) -> None:
    """Remove a comparison for good. The evaluations that it compares stay."""
    await context.services.comparisons.delete(context.project, identifier)


@router.post("/comparisons/across-datasets", responses=written_as(COMPARISON, made(ModelComparison, *_READ)))
@deferrable(requests.TournamentRequest, COMPARISON)
async def compare_across_datasets(
    request: Request, context: UseContext, asked: FormatOfComparison = AS_USUAL
) -> Response:
    """Compare models over datasets: average ranks, Friedman, Wilcoxon and Nemenyi, Bayesian signed rank with a ROPE."""
    view = view_of(request, COMPARISON, asked)
    body = parse_body(await read_body(request), requests.TournamentRequest)
    answer = await context.services.tournaments.create(context.project, body.to_domain())
    return view.answer(answer, HTTPStatus.CREATED, {"Location": f"/v1/comparisons/{answer.id}"})
