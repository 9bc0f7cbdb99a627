"""Addresses under `/ui` that there are not."""

from starlette.responses import Response

from app.api.ui.routing import page_routes
from app.domain.errors import NotFound

router = page_routes()


@router.get("/{rest:path}")
async def show_missing(rest: str) -> Response:
    """Say that there is no such page."""
    raise NotFound(f"there is no page {rest[:100]!r}")
