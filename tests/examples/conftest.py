"""A service as it is without settings, for each module that asks."""

from collections.abc import Iterator

import pytest
from pydantic import SecretStr

from app.settings import Settings
from tests.serving import Served


@pytest.fixture(scope="module")
def base_url(database_url: str) -> Iterator[str]:
    with Served(Settings(database_url=SecretStr(database_url))) as url:
        yield url
