"""What is there when generated requests come, and one connection for them."""

from collections.abc import Iterator

import pytest
import requests

from app.settings import Settings
from tests.api.conftest import usual_settings
from tests.api.generated.kept import Kept, keep_everything


@pytest.fixture(scope="module")
def settings(database_url: str) -> Settings:
    return usual_settings(database_url)


@pytest.fixture(scope="module")
def session() -> Iterator[requests.Session]:
    with requests.Session() as opened:
        yield opened


@pytest.fixture(scope="module")
def kept(base_url: str) -> Kept:
    return keep_everything(base_url)
