"""One service with everything that pages show, for all tests of pages of a worker."""

from collections.abc import Iterator

import httpx
import pytest
from pydantic import SecretStr

from app.settings import Authentication, Settings
from tests.serving import Served
from tests.ui.world import World, build


@pytest.fixture(scope="module")
def world(database_url: str) -> Iterator[World]:
    settings = Settings(database_url=SecretStr(database_url), authentication=Authentication.off)
    with Served(settings) as url:
        yield build(url)


@pytest.fixture(scope="module")
def web(world: World) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=world.url, timeout=60) as client:
        yield client
