import secrets
from collections.abc import AsyncIterator

import pytest
from sqlalchemy.ext.asyncio import AsyncEngine

from app.store.engine import create_engine


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def project() -> str:
    return f"transfer-{secrets.token_hex(4)}"


@pytest.fixture
async def engine(database_url: str) -> AsyncIterator[AsyncEngine]:
    engine = create_engine(database_url, pool_size=4)
    yield engine
    await engine.dispose()
