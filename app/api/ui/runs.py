"""Runs and the leaderboard of a dataset, filtered."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import Query, Request
from starlette.responses import Response

from app.api.cursors import Cursor
from app.api.deps import Context, UseContext
from app.api.documents.leaderboard import leaderboard_table
from app.api.documents.reading import dataset_name, run_name, sentence, shown
from app.api.plots.registry import as_answered
from app.api.problems import InvalidQuery
from app.api.report import table_view
from app.api.ui.routing import page_routes
from app.api.ui.writing import render
from app.api.v1.listing.evaluations import listed_evaluations
from app.api.v1.listing.filters import Filters, UseFilters
from app.api.v1.requests.fields import SOUGHT
from app.domain.catalogue import describe_metric, metric_by_name
from app.domain.errors import InvalidExpression, OutOfReach
from app.domain.evaluation import DatasetRef
from app.domain.named_metrics import ACCURACY, BALANCED, HEADLINE, RANKED
from app.domain.wording import PAGE, percent, whole
from app.services.rank import LeaderboardQuery

router = page_routes()
_ON_A_PAGE: Final = 25
_IN_A_LEADERBOARD: Final = 50
_DATASETS: Final = 100
Json = Mapping[str, Any]


@router.get("")
async def show_runs(
    request: Request,
    context: UseContext,
    filters: UseFilters,
    metric: Annotated[str, Query(max_length=2000), SOUGHT] = RANKED,
    sort: Annotated[str, Query(max_length=128)] = "-created_at",
    cursor: Cursor = None,
) -> Response:
    """List the runs, and rank those of a dataset."""
    found = as_answered(await listed_evaluations(context, filters, sort, _ON_A_PAGE, cursor))
    page = {
        "title": "Runs",
        "on": _on(filters),
        "filters": filters,
        "given": (given := _given(filters, metric)),
        "address": given if sort == "-created_at" else {**given, "sort": sort},
        "metric": metric,
        "metrics": [(key, _label(key)) for key in HEADLINE],
        "known_metric": metric in HEADLINE,
        "datasets": await _datasets(context),
        "runs": [_run(one) for one in found["items"]],
        "next": found["next_cursor"],
        "sort": sort,
        "first": cursor is None,
        "board": await _board(context, filters, metric) if filters.dataset and cursor is None else None,
        "ranked": RANKED,
    }
    return render(request, "runs.html", "runs", page=page)


def _on(filters: Filters) -> str:
    if filters.dataset is None:
        return ""
    version = f" {filters.dataset_version}" if filters.dataset_version else ""
    return dataset_name({"name": filters.dataset + version, "split": filters.split})


def _given(filters: Filters, metric: str) -> dict[str, Any]:
    """The filters as parameters of an address."""
    given = {
        "model": filters.model,
        "model_version": filters.model_version,
        "dataset": filters.dataset,
        "dataset_version": filters.dataset_version,
        "split": filters.split,
        "tag": filters.tag,
        "where": filters.where,
        "created_after": None if filters.created_after is None else filters.created_after.isoformat(),
        "created_before": None if filters.created_before is None else filters.created_before.isoformat(),
        "metric": None if metric == RANKED else metric,
    }
    return {name: value for name, value in given.items() if value}


def _label(key: str) -> str:
    card = describe_metric(metric_by_name(key))
    moves = "" if card.prevalence == "insensitive" else " (moves with prevalence)"
    return f"{card.name[:1].upper()}{card.name[1:]}{moves}"


async def _datasets(context: Context) -> list[str]:
    page = await context.services.evaluations.datasets(context.project, _DATASETS, None)
    return list(dict.fromkeys(one.name for one in page.items))


def _run(item: Json) -> dict[str, Any]:
    metrics, given = item["metrics"], item["input"]
    version = item["dataset"].get("version")
    return {
        "id": item["id"],
        "name": run_name(item["model"]),
        "model": item["model"]["name"],
        "on": dataset_name({**item["dataset"], "name": " ".join(filter(None, (item["dataset"]["name"], version)))}),
        "dataset": item["dataset"],
        "classes": whole(given["n_classes"]) if given["n_classes"] else "",
        "n": "" if given["n_samples"] is None else whole(given["n_samples"]),
        "ranked": _value(metrics, RANKED),
        "observed": _value(metrics, ACCURACY),
        "balanced": _value(metrics, BALANCED),
        "kind": given["kind"].replace("_", " "),
        "tags": [(shown(name), shown(value)) for name, value in item["tags"].items()],
        "created_at": item["created_at"],
    }


def _value(metrics: Json, key: str) -> str:
    """A value without an interval; empty for a kind of input that has not the metric."""
    return PAGE.value(metrics[key]) if key in metrics else ""


async def _board(context: Context, filters: Filters, metric: str) -> dict[str, Any]:
    dataset = DatasetRef(filters.dataset or "", filters.dataset_version, filters.split)
    conditions = filters.query().where
    query = LeaderboardQuery(dataset=dataset, metric=metric, where=conditions, limit=_IN_A_LEADERBOARD)
    try:
        board = as_answered(await context.services.leaderboards.rank(context.project, query))
    except (InvalidExpression, OutOfReach) as error:
        raise InvalidQuery.at("metric", error.code, error.detail) from None
    notes = [f"{sentence(note)}." for note in board["notes"]]
    if board.get("winner") is not None:
        notes.insert(0, board["winner"]["message"])
    return {
        "metric": shown(metric),
        "better": board["better"],
        "level": percent(board["level"], None).replace(" ", "\u00a0"),
        "table": table_view(leaderboard_table(board)),
        "notes": [shown(note) for note in notes],
    }
