"""One service for all cases of a module."""

from collections.abc import Iterator

import pytest

from tests.hostile.harness import Service


@pytest.fixture(scope="module")
def service(database_url: str) -> Iterator[Service]:
    with Service(database_url) as running:
        yield running
