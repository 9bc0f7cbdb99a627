import secrets
from collections.abc import AsyncIterator, Callable
from typing import Any

import numpy as np
import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.store.engine import create_engine
from app.store.evaluations import PostgresEvaluationStore
from app.store.writer import EvaluationWriter

MakeRecord = Callable[..., EvaluationRecord]


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def project() -> str:
    """A project of its own for each test: what other tests of the module store must never show."""
    return f"project-{secrets.token_hex(4)}"


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(database_url, pool_size=4)
    yield engine
    await engine.dispose()


@pytest.fixture
async def store(engine: AsyncEngine) -> AsyncIterator[PostgresEvaluationStore]:
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    yield store
    await store.close()


@pytest.fixture
def make_record() -> MakeRecord:
    """Makes a small valid record; keyword arguments replace its fields."""

    def make(**fields: Any) -> EvaluationRecord:
        record: dict[str, Any] = {
            "id": new_id(),
            "model": ModelRef("forest", "1"),
            "dataset": DatasetRef("digits", "2024", "test"),
            "kind": "confusion_matrix",
            "labels": ("a", "b"),
            "positive": None,
            "content": Content.counts,
            "counts": np.array([[5, 1], [2, 4]], dtype=np.int64),
            "revision": "1",
            "values": {"accuracy": 0.75, "h_mean": 0.7},
        }
        return EvaluationRecord(**(record | fields))

    return make
