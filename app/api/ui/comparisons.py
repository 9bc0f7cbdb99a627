"""Comparisons: all of them, and one."""

from functools import partial
from typing import Any
from uuid import UUID

from fastapi import Request
from starlette.responses import Response

from app.api.cursors import Cursor, Pages
from app.api.deps import UseContext
from app.api.documents.comparison import comparison_document
from app.api.documents.reading import run_name, shown
from app.api.plots.registry import Given, Json, Subject, as_answered
from app.api.report import Picture, view
from app.api.ui.routing import page_routes
from app.api.ui.writing import Web, attached, render, respond, write
from app.api.v1.figures.pages import comparison_page as report_page
from app.api.v1.figures.pages import pictures_of
from app.domain.decisions import ComparisonSummary
from app.domain.members import rfc3339

router = page_routes()
_ON_A_PAGE = 25
_MOST_NAMED = 4


@router.get("/comparisons")
async def show_comparisons(request: Request, context: UseContext, cursor: Cursor = None) -> Response:
    """List the comparisons, latest first."""
    pages: Pages[UUID] = Pages({"list": "comparisons"}, (UUID,))
    found = pages.listed(await context.services.comparisons.page(context.project, _ON_A_PAGE, pages.after(cursor)))
    page = {
        "title": "Comparisons",
        "items": [_item(one) for one in found.items],
        "next": found.next_cursor,
    }
    return render(request, "comparisons.html", "comparisons", page=page)


def _item(one: ComparisonSummary) -> dict[str, Any]:
    names = [run_name(model) for model in one.models]
    return {
        "id": str(one.id),
        "names": names[:_MOST_NAMED],
        "more": max(0, len(names) - _MOST_NAMED),
        "kind": one.kind.replace("_", " "),
        "metrics": [shown(metric) for metric in one.metrics],
        "created_at": rfc3339(one.created_at),
    }


@router.get("/comparisons/{identifier}")
async def show_comparison(identifier: UUID, request: Request, context: UseContext) -> Response:
    """Show a comparison: who is better by what, values, differences with intervals."""
    answer = as_answered(await context.services.comparisons.read(context.project, identifier))
    name = "critical_difference" if "average_ranks" in answer else "differences"
    pictures = await pictures_of(context, Subject.COMPARISON, [name], Given(comparison=answer))
    web = Web.of(request, "comparisons")
    return respond(await context.services.compute.run(partial(_written, answer, web, pictures)))


def _written(answer: Json, web: Web, pictures: list[Picture]) -> bytes:
    return write("document.html", web, **view(comparison_document(answer)), pictures=pictures)


@router.get("/comparisons/{identifier}/report")
async def download_report(identifier: UUID, context: UseContext) -> Response:
    """Give the report as one file."""
    return attached(await report_page(context, identifier), identifier)
