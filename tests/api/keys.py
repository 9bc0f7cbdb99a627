"""Keys for tests, made in the database itself as `prevail keys` makes them."""

from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import text

from app.domain.operations import KeyMade, Scope
from app.services.access import KeyService
from app.store.engine import create_engine
from app.store.keys import PostgresKeyStore
from tests.conftest import run_coroutine


def make_key(url: str, project: str, *scopes: str, **members: Any) -> KeyMade:
    """A key on the database at `url`."""
    made: list[KeyMade] = []

    async def make() -> None:
        engine = create_engine(url, pool_size=1)
        service = KeyService(PostgresKeyStore(engine))
        new: dict[str, Any] = {"name": "tests", "project": project, "scopes": [Scope(one) for one in scopes]}
        made.append(await service.create(**new | members))
        await engine.dispose()

    run_coroutine(make())
    return made[0]


def execute(url: str, statement: str, **values: Any) -> None:
    """Run one statement on the database at `url`."""

    async def run() -> None:
        engine = create_engine(url, pool_size=1)
        async with engine.begin() as connection:
            await connection.execute(text(statement), values)
        await engine.dispose()

    run_coroutine(run())


def expire(url: str, key: KeyMade) -> None:
    """Let the end of a key have come a moment ago."""
    moment = datetime.now(UTC) - timedelta(seconds=1)
    execute(url, "UPDATE api_keys SET expires_at = :moment WHERE id = :id", moment=moment, id=key.facts.id)


def bearer(key: KeyMade | str) -> dict[str, str]:
    """The header of a request with a key."""
    return {"Authorization": f"Bearer {key if isinstance(key, str) else key.key}"}
