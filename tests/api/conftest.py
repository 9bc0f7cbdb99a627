"""A real server on a real database for each module, spoken to over HTTP."""

from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

import httpx
import pytest
from pydantic import SecretStr

from app.services.processes.compute import ComputePool
from app.settings import Authentication, Settings
from tests.serving import Served


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return Settings(
        database_url=SecretStr(database_url),
        max_body_bytes=16 * 1024 * 1024,
        # Some tests make keys, and none of the others is to need one then.
        authentication=Authentication.off,
    )


@pytest.fixture(scope="module")
def base_url(settings: Settings) -> Iterator[str]:
    with Served(settings) as url:
        yield url


@pytest.fixture(scope="module")
def client(base_url: str) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=base_url, timeout=60) as opened:
        yield opened


@pytest.fixture
def computed_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """What would be computed by another process is computed in this one, where a test can change what it finds."""

    async def here(_: ComputePool, function: Callable[..., Any], file: BinaryIO | None = None) -> Any:
        return function() if file is None else function(file)

    monkeypatch.setattr(ComputePool, "run", here)
