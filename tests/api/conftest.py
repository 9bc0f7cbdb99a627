"""A real server on a real database, spoken to over HTTP: one for all modules, and a project for each.

A module that needs a server or a database of its own has a fixture `settings`.
"""

import asyncio
import secrets
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import httpx
import pytest
from pydantic import SecretStr

from app.services.processes.compute import ComputePool, _on_loop
from app.services.processes.worker import listener, tell_progress
from app.settings import Authentication, Settings
from tests.conftest import Template, empty_database
from tests.serving import Served


def usual_settings(database_url: str) -> Settings:
    """Those of a server on which some tests make keys, and none of the others is to need one then."""
    return Settings(
        database_url=SecretStr(database_url),
        max_body_bytes=16 * 1024 * 1024,
        authentication=Authentication.off,
    )


@pytest.fixture(scope="session")
def shared_url(template_database: Template) -> Iterator[str]:
    """The server of all modules that have no settings."""
    with empty_database(template_database) as database, Served(usual_settings(database)) as url:
        yield url


@pytest.fixture(scope="module")
def settings() -> Settings | None:
    """Of a server for this module alone; None for that of all."""
    return None


@pytest.fixture(scope="module")
def base_url(settings: Settings | None, request: pytest.FixtureRequest) -> Iterator[str]:
    if settings is None:
        yield request.getfixturevalue("shared_url")
        return
    with Served(settings) as url:
        yield url


@pytest.fixture(scope="module")
def client(base_url: str, settings: Settings | None) -> Iterator[httpx.Client]:
    """Of a project for this module alone, where it shares its server with others."""
    headers = {"X-Prevail-Project": f"module-{secrets.token_hex(6)}"} if settings is None else {}
    with httpx.Client(base_url=base_url, timeout=60, headers=headers) as opened:
        yield opened


@pytest.fixture
def computed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be computed by another process is computed in this one, where a test can change what it finds."""

    async def here(_: ComputePool, function: Callable[..., Any], file: BinaryIO | None = None) -> Any:
        # How far it is may be told by threads of an engine.
        tell_progress(_on_loop(asyncio.get_running_loop(), listener()))
        return function() if file is None else function(file)

    monkeypatch.setattr(ComputePool, "run", here)
