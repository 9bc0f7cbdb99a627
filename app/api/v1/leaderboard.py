"""The route of the leaderboard."""

from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from app.api.deps import UseContext, routes
from app.api.presentation import AS_USUAL, LEADERBOARD, FormatOfLeaderboard, view_of, written_as
from app.api.problems import InvalidQuery
from app.api.v1.listing import AskedDataset, Conditions, value_conditions
from app.api.v1.requests.fields import (
    SOUGHT,
    AlternativeName,
    Level,
    ProportionIntervalName,
    SoughtExpression,
)
from app.domain.errors import InvalidExpression, OutOfReach
from app.domain.options import Alternative, ProportionInterval, check_one_sided
from app.services.rank import LeaderboardQuery

router = routes("comparisons")


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
