"""Routes of reports: what was answered as one page that loads nothing."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from starlette.responses import Response

from app.api.deps import UseContext, routes
from app.api.documentation import fixed_headers
from app.api.plots.look import Theme
from app.api.presentation import Media
from app.api.report import HEADERS
from app.api.v1.figures.pages import comparison_page, evaluation_page

router = routes("plots")
_REPORT: dict[int | str, dict[str, Any]] = {
    200: {
        "description": "One page of HTML, its styles and pictures inside.",
        "content": {Media.PAGE.value: {"schema": {"type": "string"}}},
        "headers": fixed_headers(HEADERS),
    }
}
AskedTheme = Annotated[Theme | None, Query(description="Colours; those of the reader's system when left out.")]


@router.get("/evaluations/{identifier}/report", responses=_REPORT, operation_id="getEvaluationReport")
async def get_evaluation_report(identifier: UUID, context: UseContext, theme: AskedTheme = None) -> Response:
    """Read an evaluation as a page: findings, metrics with limits, classes, figures. It loads nothing."""
    return await evaluation_page(context, identifier, theme)


@router.get("/comparisons/{identifier}/report", responses=_REPORT, operation_id="getComparisonReport")
async def get_comparison_report(identifier: UUID, context: UseContext, theme: AskedTheme = None) -> Response:
    """Read a comparison as a page: who is better by what, values, differences, a figure. It loads nothing."""
    return await comparison_page(context, identifier, theme)
