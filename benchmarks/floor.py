"""The least a service of this kind can do: check the same body, insert a row of the same size, answer as many bytes.

FastAPI the usual way: a typed body, a pool of asyncpg, one INSERT and one commit per request, nothing computed.
"""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from uuid import UUID

import asyncpg
from fastapi import FastAPI, Response

from app.api.v1.requests.evaluations import EvaluationRequest
from app.domain.identifiers import new_id

_CREATE = """
CREATE TABLE floor (id uuid PRIMARY KEY, model text NOT NULL, body bytea NOT NULL);
CREATE INDEX ix_floor_model ON floor (model, id);
"""
_INSERT = "INSERT INTO floor (id, model, body) VALUES ($1, $2, $3)"
_POOL_SIZE = 8


async def prepare(dsn: str) -> None:
    """Create the table."""
    connection = await asyncpg.connect(dsn)
    await connection.execute(_CREATE)
    await connection.close()


def create() -> FastAPI:
    """Make the application: database, size of the row's payload and size of the answer come from the environment."""
    payload = os.urandom(int(os.environ["FLOOR_ROW_BYTES"]))
    answer = b"x" * int(os.environ["FLOOR_ANSWER_BYTES"])

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        async with asyncpg.create_pool(os.environ["FLOOR_DSN"], min_size=_POOL_SIZE, max_size=_POOL_SIZE) as pool:
            app.state.pool = pool
            yield

    app = FastAPI(lifespan=lifespan)

    @app.post("/evaluations", status_code=201)
    async def add(evaluation: EvaluationRequest) -> Response:
        identifier: UUID = new_id()
        assert evaluation.model is not None
        await app.state.pool.execute(_INSERT, identifier, evaluation.model.name, payload)
        return Response(answer, status_code=201, media_type="application/json")

    return app


def prepare_sync(dsn: str) -> None:
    """Create the table from a program without a loop."""
    asyncio.run(prepare(dsn))
