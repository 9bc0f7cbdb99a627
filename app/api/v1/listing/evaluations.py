"""Routes of many evaluations: listed, and removed by filter."""

from dataclasses import replace
from typing import Annotated
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.cursors import Cursor, Limit, Listing, Pages
from app.api.deps import Context, UseContext, routes
from app.api.problems import InvalidQuery
from app.api.v1.listing.filters import Filters, UseFilters, selected_metrics, stored_metric
from app.domain.evaluation import EvaluationSummary, Position
from app.domain.inventory import Removal

router = routes("evaluations")
DryRun = Annotated[bool, Query(description="true: count what would be removed, and remove nothing.")]


@router.get(
    "/evaluations",
    responses=answers(Listing[EvaluationSummary], name="EvaluationPage"),
    operation_id="listEvaluations",
)
async def list_evaluations(
    context: UseContext,
    filters: UseFilters,
    sort: Annotated[
        str, Query(description="created_at or an overall metric; a leading - sorts from high to low.", max_length=128)
    ] = "-created_at",
    select: Annotated[
        str | None,
        Query(
            description="Overall metrics, separated by commas: `metrics` then has only their values. All when left "
            "out.",
            max_length=4000,
        ),
    ] = None,
    limit: Limit = 50,
    cursor: Cursor = None,
    *,
    findings: Annotated[
        bool,
        Query(
            description="true: code, severity and class of what there is to say of each matrix, as its report says it."
        ),
    ] = False,
) -> Response:
    """List evaluations, newest first unless sorted otherwise. Undefined values come last."""
    wanted = selected_metrics(select)
    found = await listed_evaluations(context, filters, sort, limit, cursor)
    if findings:
        found = replace(found, items=await context.services.evaluations.with_findings(context.project, found.items))
    return json_response(found if wanted is None else _with_metrics(found, wanted))


async def listed_evaluations(
    context: Context, filters: Filters, sort: str, limit: int, cursor: str | None
) -> Listing[EvaluationSummary]:
    """A page of evaluations.

    Raises:
        InvalidQuery: a filter, the order or the cursor is none.
    """
    metric, descending = _sort(sort)
    pages = Pages({**filters.given, "sort": sort}, (UUID, float | int | None), _position)
    query = filters.query(sort_metric=metric, descending=descending, limit=limit, after=pages.after(cursor))
    return pages.listed(await context.services.evaluations.page(context.project, query))


@router.delete(
    "/evaluations",
    responses=answers(Removal),
    operation_id="deleteEvaluations",
)
async def delete_evaluations(context: UseContext, filters: UseFilters, *, dry_run: DryRun = False) -> Response:
    """Remove all evaluations that pass the filters; at least one filter is needed. Comparisons and checks that were
    made of them are kept.
    """
    if not any(filters.given.values()):
        detail = "expected a filter: without one everything would be removed"
        raise InvalidQuery.at("model", "no_filter", detail)
    query = filters.query()
    return json_response(await context.services.inventory.remove(context.project, query, dry_run=dry_run))


def _with_metrics(found: Listing[EvaluationSummary], wanted: frozenset[str]) -> Listing[EvaluationSummary]:
    items = (
        replace(item, metrics={key: value for key, value in item.metrics.items() if key in wanted})
        for item in found.items
    )
    return Listing(tuple(items), found.next_cursor)


def _sort(text: str) -> tuple[str | None, bool]:
    name = text.removeprefix("-")
    descending = text.startswith("-")
    return (None if name == "created_at" else stored_metric(name, "sort", "created_at")), descending


def _position(identifier: UUID, value: float | None) -> Position:
    return Position(identifier, None if value is None else float(value))
