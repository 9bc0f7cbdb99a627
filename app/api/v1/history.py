"""The route of the history of a model on a dataset."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import Annotated
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from app.api.answers import answers, json_response
from app.api.cursors import Pages, Paging, kept_members, paging_of
from app.api.deps import UseContext, routes
from app.api.problems import InvalidQuery
from app.api.v1.listing import NounName
from app.api.v1.requests.fields import SOUGHT, Moment, SoughtExpression
from app.domain.errors import IncomparableRuns, InvalidExpression, OutOfReach
from app.domain.evaluation import DatasetRef, Page
from app.domain.members import members
from app.services.history import HistoryChange, HistoryItem, HistoryQuery

router = routes("evaluations")
Name = Annotated[str, Query(min_length=1, max_length=256), SOUGHT]


@dataclass(frozen=True, slots=True)
class HistoryPage:
    """A page of a series, and the changes of all of it; `next_cursor` is null on the last page."""

    items: Sequence[HistoryItem]
    changes: Sequence[HistoryChange]
    next_cursor: str | None


@router.get("/models/{name:path}/history", responses=answers(HistoryPage), operation_id="getHistory")
async def get_history(
    name: NounName,
    context: UseContext,
    paging: Annotated[Paging, paging_of(HistoryItem)],
    dataset: Annotated[Name, Query(description="Name of the dataset.")],
    dataset_version: Annotated[
        str | None, Query(max_length=256, description="All versions when left out."), SOUGHT
    ] = None,
    split: Annotated[str | None, Query(max_length=256, description="All splits when left out."), SOUGHT] = None,
    metric: Annotated[
        list[SoughtExpression] | None,
        Query(max_length=10, description="Expressions with one value; that of leaderboards when left out."),
    ] = None,
    created_after: Annotated[Moment | None, Query(description="The series begins at this moment.")] = None,
) -> Response:
    """Read the evaluations of a model on a dataset, the oldest first, with where each value was expected had nothing
    changed, and the changes of the whole series, claimed with one error rate of 5 %. At most 1,000 evaluations.
    """
    ranked = DatasetRef(dataset, dataset_version, split)
    moment = None if created_after is None else created_after.astimezone(UTC)
    filters = {"list": "history", "model": name, "dataset": ranked, "metric": metric, "after": moment}
    pages: Pages[UUID] = Pages(filters, (UUID,))
    query = HistoryQuery(
        model=name,
        dataset=ranked,
        metrics=tuple(metric or ()),
        created_after=moment,
        limit=paging.limit,
        after=pages.after(paging.cursor),
    )
    try:
        found = await context.services.history.read(context.project, query)
    except (OutOfReach, IncomparableRuns) as error:
        where = error.pointer if isinstance(error.pointer, str) else "created_after"
        raise InvalidQuery.at(where, error.code, error.detail) from None
    except InvalidExpression as error:
        error.pointer = "metric"
        raise
    listed = pages.listed(Page(tuple(found.items), found.next_position))
    answer = HistoryPage(found.items, found.changes, listed.next_cursor)
    if paging.members is None:
        return json_response(answer)
    items = [kept_members(one, paging.members) for one in found.items]
    return json_response({**members(answer), "items": items})
