"""The route of the leaderboard."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from app.api.answers import json_response
from app.api.deps import Project, StrictRoute, UseServices
from app.api.documentation import PROBLEMS
from app.api.problems import InvalidQuery
from app.api.v1.present import present_dataset, present_model, present_time
from app.domain.errors import Fault, InvalidExpression, OutOfReach
from app.domain.evaluation import DatasetRef
from app.services.rank.ranking import Leaderboard, LeaderboardQuery, Line

router = APIRouter(prefix="/v1", responses=PROBLEMS, route_class=StrictRoute)
Name = Annotated[str, Query(min_length=1, max_length=256)]


class LeaderboardLine(BaseModel):
    """The latest evaluation of one model version."""

    rank: int | None = Field(description="1 is best; equal values share a rank; null without a value.")
    evaluation: UUID
    model: dict[str, str | None]
    dataset: dict[str, str | None]
    created_at: str
    n_samples: float | None
    value: float | None
    low: float | None
    high: float | None
    method: str | None = Field(description="How the interval was made.")
    separable_from_best: bool | None = Field(
        description="Is it worse than the first beyond doubt, all runs considered together? null: cannot be said."
    )
    group: int | None = Field(description="Runs of one group cannot be told apart from the best of it; 1 is the first.")
    reason: str | None = Field(description="Why there is no value or no interval.")


class LeaderboardWinner(BaseModel):
    """The winner's curse: the best of many is partly the luckiest."""

    value: float
    expected_optimism: float
    corrected_value: float
    message: str


class LeaderboardResponse(BaseModel):
    """A leaderboard."""

    dataset: dict[str, str | None]
    metric: str
    better: str
    level: float
    items: list[LeaderboardLine]
    winner: LeaderboardWinner | None
    design: dict[str, Any]
    notes: list[str]


@router.get(
    "/leaderboard",
    response_class=Response,
    responses={200: {"model": LeaderboardResponse}},
    operation_id="getLeaderboard",
    tags=["comparisons"],
)
async def get_leaderboard(
    services: UseServices,
    project: Project,
    dataset: Annotated[Name, Query(description="Name of the dataset.")],
    dataset_version: Annotated[str | None, Query(max_length=256, description="All versions when left out.")] = None,
    split: Annotated[str | None, Query(max_length=256, description="All splits when left out.")] = None,
    metric: Annotated[
        str,
        Query(
            max_length=2000,
            description="An overall metric, at any size of the dataset; any other expression up to 300 model versions.",
        ),
    ] = "h_mean",
    limit: Annotated[int, Query(ge=1, le=100, description="Lines at most.")] = 20,
    level: Annotated[float, Query(gt=0, lt=1, description="Of the intervals and the groups.")] = 0.95,
    seed: Annotated[int | None, Query(ge=0, lt=2**63, description="Derived from the runs when left out.")] = None,
) -> Response:
    """Rank the latest evaluation of each model version on a dataset, with intervals and groups."""
    query = LeaderboardQuery(
        dataset=DatasetRef(dataset, dataset_version, split), metric=metric, limit=limit, level=level, seed=seed
    )
    try:
        board = await services.leaderboards.rank(project, query)
    except (InvalidExpression, OutOfReach) as error:
        raise InvalidQuery([Fault("metric", error.code, error.detail)]) from None
    return json_response(_presented(board))


def _presented(board: Leaderboard) -> dict[str, Any]:
    winner = board.winner
    return {
        "dataset": present_dataset(board.query.dataset),
        "metric": board.query.metric,
        "better": board.better.value,
        "level": board.query.level,
        "items": [_line(line) for line in board.lines],
        "winner": None
        if winner is None
        else {
            "value": winner.value,
            "expected_optimism": winner.optimism,
            "corrected_value": winner.value - winner.optimism,
            "message": winner.message,
        },
        "design": dict(board.design),
        "notes": list(board.notes),
    }


def _line(line: Line) -> dict[str, Any]:
    record = line.record
    return {
        "rank": line.rank,
        "evaluation": str(record.id),
        "model": present_model(record.model),
        "dataset": present_dataset(record.dataset),
        "created_at": present_time(record.created_at),
        "n_samples": record.counts.sum().item(),
        "value": line.value,
        "low": line.low,
        "high": line.high,
        "method": line.method,
        "separable_from_best": line.separable_from_best,
        "group": line.group,
        "reason": line.reason,
    }
