"""An engine of small batches, so that cuts and ties lie in several of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from app.outbound import batches
from app.services.ports import OpenEngine
from tests.engine import ENGINE


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "BATCH_ROWS", 700)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[OpenEngine]:
    """An open engine, of which nothing is left in the end."""
    with ENGINE.opened(tmp_path) as opened:
        yield opened
    assert not [*tmp_path.iterdir()]
