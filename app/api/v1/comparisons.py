"""Routes of comparisons: of runs, of models across datasets, and of all model versions on a dataset."""

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
from app.api.presentation import (
    AS_USUAL,
    COMPARISON,
    LEADERBOARD,
    FormatOfComparison,
    FormatOfLeaderboard,
    prefers_page,
    view_of,
    written_as,
)
from app.api.problems import InvalidQuery
from app.api.v1.figures import comparison_page
from app.api.v1.listing import AskedDataset, Conditions, value_conditions
from app.api.v1.requests import decisions as requests
from app.api.v1.requests.fields import (
    SOUGHT,
    AlternativeName,
    Level,
    OfModel,
    ProportionIntervalName,
    SoughtExpression,
    check_one_sided,
)
from app.api.v1.reread import compare_elsewhere
from app.domain.decisions import ComparisonFilter, ComparisonSummary
from app.domain.errors import InvalidExpression, OutOfReach
from app.domain.options import Alternative, ProportionInterval
from app.services.compare.answers import ModelComparison, RunComparison
from app.services.rank import LeaderboardQuery

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


@router.get("/leaderboard", responses=written_as(LEADERBOARD))
async def get_leaderboard(
    request: Request,
    context: UseContext,
    dataset: AskedDataset,
    metric: Annotated[
        SoughtExpression | None,
        Query(
            max_length=2000,
            description="An overall metric, at any size of the dataset; any other expression up to 300 model versions. "
            "When left out it follows from the kind of the latest run: `h_mean` of classes and labels, "
            "`ndcg_at_k(k=10)` of rankings, `adjusted_rand` of clusterings (`silhouette` without classes), "
            "`samples_f1` of sets.",
        ),
        SOUGHT,
    ] = None,
    where: Conditions = None,
    limit: Annotated[int, Query(ge=1, le=100, description="How many model versions at most.")] = 20,
    level: Annotated[Level, Query(description="Level of the intervals and the groups.")] = 0.95,
    proportion_interval: Annotated[
        ProportionIntervalName, Query(description="Limits of a metric that is a proportion of the samples.")
    ] = "wilson",
    alternative: Annotated[
        AlternativeName,
        Query(description="Two-sided limits, or one limit at this level: `greater` gives a lower limit."),
    ] = "two-sided",
    seed: Annotated[int | None, Query(ge=0, lt=2**63, description="Seed; derived from the runs when left out.")] = None,
    asked: FormatOfLeaderboard = AS_USUAL,
) -> Response:
    """Rank the latest evaluation of each model version on a dataset, with intervals and groups. One that does not
    satisfy `where` is left out; no older one takes its place.
    """
    view = view_of(request, LEADERBOARD, asked)
    try:
        check_one_sided(level, alternative)
    except ValueError as error:
        raise InvalidQuery.at("level", "value_error", str(error)) from None
    leaderboards = context.services.leaderboards
    query = LeaderboardQuery(
        dataset=dataset,
        metric=await leaderboards.usual_metric(context.project, dataset) if metric is None else metric,
        where=value_conditions(where),
        limit=limit,
        level=level,
        proportion_interval=ProportionInterval(proportion_interval),
        alternative=Alternative(alternative),
        seed=seed,
    )
    try:
        board = await leaderboards.rank(context.project, query)
    except OutOfReach as error:
        raise InvalidQuery.at("metric", error.code, error.detail) from None
    except InvalidExpression as error:
        error.pointer = "metric"
        raise
    return view.answer(board)
