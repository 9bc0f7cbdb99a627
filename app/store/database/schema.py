"""Whether the schema in the database is the one this release was written for."""

import ast
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.services.ports import StoreState, StoreUnavailableError
from app.store.database.engine import translated, watch_of

MIGRATIONS = Path(__file__).resolve().parents[3] / "alembic"


@cache
def expected_revision() -> str:
    """Return the newest revision of this release's migrations."""
    followed = _migrations()
    heads = followed.keys() - followed.values()
    if len(heads) != 1:
        raise RuntimeError(f"expected one newest migration in {MIGRATIONS}, found {sorted(heads)}")
    return heads.pop()


@cache
def known_revisions() -> frozenset[str]:
    """Return every revision that this release has a migration for."""
    return frozenset(_migrations())


@cache
def _migrations() -> Mapping[str, str | None]:
    """By revision, the one that it follows.

    Read as text: importing alembic costs every worker 80 ms, and none needs more of it than this.
    """
    found = {}
    for path in (MIGRATIONS / "versions").glob("*.py"):
        assigned = {
            node.targets[0].id: node.value
            for node in ast.parse(path.read_text()).body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        found[ast.literal_eval(assigned["revision"])] = ast.literal_eval(assigned["down_revision"])
    return found


class SchemaReadiness:
    """The port `app.services.ports.Readiness` for Postgres."""

    def __init__(self, engine: AsyncEngine) -> None:
        self._engine = engine

    async def check(self) -> StoreState:
        """Ask the database for its revision now; an unreachable one is an answer, not an error."""
        expected = expected_revision()
        try:
            with watch_of(self._engine).use("read"), translated():
                revision = await self._read_revision()
                newer = revision is not None and revision not in known_revisions()
                return StoreState(reachable=True, revision=revision, expected=expected, newer=newer)
        except StoreUnavailableError:
            return StoreState(reachable=False, revision=None, expected=expected)

    async def _read_revision(self) -> str | None:
        async with self._engine.connect() as connection:
            # Asked first: a SELECT from a table that is not there would fail the transaction.
            if await connection.scalar(text("SELECT to_regclass('alembic_version')")) is None:
                return None
            revision = await connection.scalar(text("SELECT version_num FROM alembic_version"))
            return None if revision is None else str(revision)
