"""All pages, and what they load."""

from typing import Final

from fastapi import FastAPI

from app.api.ui import catalogue, comparisons, evaluations, gates, missing, runs, signing, writing

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
    for router in (*ROUTERS, missing.router):
        app.include_router(router)
