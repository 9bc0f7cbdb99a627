"""The page of the history of a model on a dataset."""

from dataclasses import replace
from functools import partial
from typing import Annotated

from fastapi import Depends, Query, Request
from starlette.responses import Response

from app.api.deps import Context, UseContext
from app.api.documents.document import Json
from app.api.documents.history import history_document
from app.api.plots.registry import as_answered
from app.api.report import Picture, view
from app.api.ui.web import Web, page_routes, respond, write
from app.api.v1.history import asked_history, newest_of, pictures_of_history
from app.api.v1.requests.fields import SOUGHT
from app.domain.evaluation import EvaluationQuery
from app.domain.expressions.syntax import write_label
from app.domain.named_metrics import PRECISION, RECALL, SHARE
from app.services.history import HistoryQuery

router = page_routes()


@router.get("/history")
async def show_history(
    request: Request,
    context: UseContext,
    model: Annotated[str, Query(min_length=1, max_length=256), SOUGHT],
    asked: Annotated[HistoryQuery, Depends(asked_history)],
) -> Response:
    """Show a model over time: did it change, when, and is it the model or the world?"""
    metrics = asked.metrics or await _usual(context, model, asked)
    answer = as_answered(await newest_of(context, replace(asked, model=model, metrics=metrics)))
    pictures = await pictures_of_history(context, answer)
    return respond(await context.services.compute.run(partial(_written, answer, pictures, Web.of(request, "runs"))))


async def _usual(context: Context, model: str, asked: HistoryQuery) -> tuple[str, ...]:
    """Return what is shown where nobody says: of two classes what is found, what alerts are worth, and the share."""
    wanted = EvaluationQuery(model=model, dataset=asked.dataset.name, limit=1)
    found = (await context.services.evaluations.page(context.project, wanted)).items
    positive = found[0].input.positive if found else None
    return () if positive is None else tuple(f"{key}@{write_label(positive)}" for key in (RECALL, PRECISION, SHARE))


def _written(answer: Json, pictures: list[Picture], web: Web) -> bytes:
    drawn = any(one.svg is not None for one in pictures)
    document = history_document(answer)
    return write(
        "history.html",
        web,
        **view(document, web.at),
        pictures=pictures,
        drawn=drawn,
        answer=answer,
        asked=list(answer["items"][0]["metrics"]),
    )
