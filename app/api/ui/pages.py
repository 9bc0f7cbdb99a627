"""All pages, and the files that they load."""

from typing import Final

from fastapi import FastAPI
from starlette.responses import Response

from app.api.ui import catalogue, comparisons, evaluations, gates, runs, signing, writing
from app.api.ui.routing import page_routes
from app.domain.errors import NotFound

router = page_routes()


@router.get("/{rest:path}")
async def show_missing(rest: str) -> Response:
    """Say that there is no such page."""
    raise NotFound(f"there is no page {rest[:100]!r}")


# What nothing else is at comes last.
ROUTERS: Final = (
    runs.router,
    evaluations.router,
    comparisons.router,
    gates.router,
    catalogue.router,
)


def install(app: FastAPI) -> None:
    """Serve the pages."""
    writing.install(app)
    signing.install(app)
    for routes in (*ROUTERS, router):
        app.include_router(routes)
