"""The routes of the history of a model: as an answer, and as a figure."""

from dataclasses import replace
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import Depends, Query, Request
from starlette.responses import Response

from app.api.answers import json_response
from app.api.cursors import Paging, listed, paging_of, place_in
from app.api.deps import Context, UseContext, routes
from app.api.documentation import NOT_INSTALLED
from app.api.plots.registry import FigureData, Subject, as_answered
from app.api.presentation import AS_USUAL, HISTORY, FormatOfHistory, Media, kept_members, view_of, written_as
from app.api.problems import InvalidQuery
from app.api.v1.figures import FIGURE, Drawing, drawing_of, pictures_of_answer
from app.api.v1.listing import AskedDataset, NounName, in_utc
from app.api.v1.requests.fields import Moment, SoughtExpression
from app.domain.errors import IncomparableRuns, InvalidExpression, OutOfReach
from app.domain.evaluation import Page
from app.domain.members import members
from app.services.history import HistoryItem, HistoryPage, HistoryQuery

router = routes("evaluations")
# Evaluations of a figure and of a page, the newest ones.
_DRAWN: Final = 200


async def asked_history(
    dataset: AskedDataset,
    metric: Annotated[
        list[SoughtExpression] | None,
        Query(max_length=10, description="Expressions with one value; that of leaderboards when left out."),
    ] = None,
    created_after: Annotated[Moment | None, Query(description="The series begins at this moment.")] = None,
) -> HistoryQuery:
    """The series that a request asks for, its newest part, without the name of the model."""
    return HistoryQuery(
        model="",
        dataset=dataset,
        metrics=tuple(metric or ()),
        created_after=in_utc(created_after),
        limit=_DRAWN,
        newest=True,
    )


AskedHistory = Annotated[HistoryQuery, Depends(asked_history)]


@router.get("/models/{name:path}/history", responses=written_as(HISTORY))
async def get_history(
    name: NounName,
    request: Request,
    context: UseContext,
    paging: Annotated[Paging, paging_of(HistoryItem)],
    asked: AskedHistory,
    form: FormatOfHistory = AS_USUAL,
) -> Response:
    """Read the evaluations of a model on a dataset, the oldest first, with where each value was expected had nothing
    changed, and the changes of the whole series, claimed with one error rate of 5 %. At most 10,000 evaluations.
    """
    view = view_of(request, HISTORY, form)
    if paging.members is not None and view.media is not Media.JSON:
        raise InvalidQuery.at("fields", "not_json", f"fields chooses members of JSON, and {view.media} was asked for")
    filters: dict[str, Any] = {
        "list": "history",
        "model": name,
        "dataset": asked.dataset,
        "metric": asked.metrics,
        "after": asked.created_after,
    }
    after: UUID | None = place_in(paging.cursor, filters, (UUID,))
    found = await read_history(context, replace(asked, model=name, limit=paging.limit, after=after, newest=False))
    answer = replace(found, next_cursor=listed(Page((), found.next_position), filters).next_cursor)
    if view.media is Media.PAGE:
        written = as_answered(answer)
        return view.response(HISTORY.page(written, await pictures_of_answer(context, Subject.HISTORY, written)))
    if paging.members is None:
        return view.answer(answer)
    items = [kept_members(one, paging.members) for one in found.items]
    return json_response({**members(answer), "items": items})


@router.get("/models/{model:path}/history/plots/{name}.{form}", responses=FIGURE | NOT_INSTALLED)
async def get_history_plot(
    model: NounName,
    context: UseContext,
    drawing: Annotated[Drawing, drawing_of(Subject.HISTORY)],
    asked: AskedHistory,
) -> Response:
    """Read a figure of a history."""
    answer = await read_history(context, replace(asked, model=model))
    return await drawing.answer(context, FigureData(answer=as_answered(answer)))


async def read_history(context: Context, query: HistoryQuery) -> HistoryPage:
    """Return a page of a series.

    Raises:
        InvalidQuery: there is no such metric, or the series is none.
    """
    try:
        return await context.services.history.read(context.project, query)
    except (OutOfReach, IncomparableRuns) as error:
        where = error.pointer if isinstance(error.pointer, str) else "created_after"
        raise InvalidQuery.at(where, error.code, error.detail) from None
    except InvalidExpression as error:
        error.pointer = "metric"
        raise
