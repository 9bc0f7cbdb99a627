"""One evaluation: the page, its figures, and what it would be at other class shares."""

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import Query, Request
from starlette.responses import Response

from app.api.deps import UseContext
from app.api.plots.registry import Json, as_answered
from app.api.report.evaluation_page import evaluation_page
from app.api.texts.names import dataset_name, run_name
from app.api.ui.routing import page_routes
from app.api.ui.what_if import what_if_page
from app.api.ui.writing import Web, attached, render, respond, write
from app.api.v1.figures.pages import evaluation_page as report_page
from app.api.v1.figures.pages import pictures_of_evaluation
from app.api.v1.requests.fields import SOUGHT

router = page_routes()


@router.get("/evaluations/{identifier}")
async def show_evaluation(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show an evaluation: what was found, metrics with limits, the matrix, classes."""
    answer = as_answered(await context.services.evaluations.read(context.project, identifier))
    # A page of many classes takes longer to write than a loop should wait.
    web = Web.of(request, "runs")
    return respond(await context.services.compute.run(partial(_written, answer, web)))


def _written(answer: Json, web: Web) -> bytes:
    return write("evaluation.html", web, page=evaluation_page(answer))


@router.get("/evaluations/{identifier}/figures")
async def show_figures(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show the figures of an evaluation. Its page loads them behind everything else."""
    answer = as_answered(await context.services.evaluations.read(context.project, identifier))
    pictures = await pictures_of_evaluation(context, identifier, answer)
    page = {"id": str(identifier), "title": run_name(answer["model"]), "on": dataset_name(answer["dataset"])}
    drawn = any(one.svg is not None for one in pictures)
    return render(request, "figures.html", "runs", page=page, pictures=pictures, drawn=drawn)


@router.get("/evaluations/{identifier}/what-if")
async def show_what_if(
    identifier: UUID,
    request: Request,
    context: UseContext,
    label: Annotated[str | None, Query(alias="class", max_length=256), SOUGHT] = None,
) -> Response:
    """Show metrics at other shares of one class: a table of some, and a slider for all."""
    page, pictures = await what_if_page(context, identifier, label)
    return render(request, "what_if.html", "runs", page=page, pictures=pictures)


@router.get("/evaluations/{identifier}/report")
async def download_report(identifier: UUID, context: UseContext) -> Response:
    """Give the report as one file, which can be attached to a ticket."""
    return attached(await report_page(context, identifier), identifier)
