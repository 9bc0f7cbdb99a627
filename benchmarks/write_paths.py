"""Ways to store one evaluation, one commit each or shared: what the write path was chosen by.

    python -m benchmarks.write_paths [--url postgresql://user:password@host/database] [--seconds 1] [--rounds 5]

Everything is durable: a caller goes on when its row is on disk. Without a URL an embedded Postgres is started in a
folder that is removed afterwards. Prints the best round of each as a table in Markdown; CPU is that of this process,
per evaluation.
"""

import argparse
import asyncio
import json
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import asyncpg
import numpy as np
import uvloop
from pydantic import SecretStr
from sqlalchemy import insert, text
from sqlalchemy.ext.asyncio import AsyncEngine, async_sessionmaker
from sqlalchemy.orm import registry

from app.cli import upgrade
from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.domain.named_metrics import HEADLINE
from app.embedded import EmbeddedPostgres
from app.settings import normalize_database_url
from app.store.database.engine import create_engine
from app.store.database.tables import evaluations
from app.store.evaluations.rows import encode_record
from app.store.evaluations.writer import INSERT, EvaluationWriter
from app.store.names import NameIds

POOL = 16
CONCURRENCY = (1, 16, 64)
SLOTS = {f"metric_{slot}": slot for slot in range(len(HEADLINE) + 1, 86)} | {
    key: slot for slot, key in enumerate(HEADLINE, start=1)
}
VALUES = dict(zip(SLOTS, np.random.default_rng(0).random(len(SLOTS)).tolist(), strict=True))
COUNTS = np.random.default_rng(1).integers(0, 300, (10, 10))
LABELS = tuple(f"class {number}" for number in range(10))

FOREIGN_KEYS = (
    "INSERT INTO models (id, project, name) OVERRIDING SYSTEM VALUE SELECT i, 'x', i FROM generate_series(0, 499) i",
    "INSERT INTO datasets (id, project, name) OVERRIDING SYSTEM VALUE SELECT i, 'x', i FROM generate_series(0, 49) i",
    "ALTER TABLE evaluations ADD FOREIGN KEY (model_id) REFERENCES models",
    "ALTER TABLE evaluations ADD FOREIGN KEY (dataset_id) REFERENCES datasets",
)

Write = Callable[[dict[str, Any]], Awaitable[None]]


class Evaluation:
    """What the ORM maps the table to."""

    def __init__(self, **columns: Any) -> None:
        for name, value in columns.items():
            setattr(self, name, value)


registry(metadata=evaluations.metadata).map_imperatively(Evaluation, evaluations)


def make_row(number: int) -> dict[str, Any]:
    """A row such as a training run of one of fifty datasets leaves: 10 classes, 85 metrics, three tags."""
    identifier = new_id()
    spread = (number * 0.618034) % 1.0
    record = EvaluationRecord(
        id=identifier,
        model=ModelRef("m"),
        dataset=DatasetRef("d"),
        kind="confusion_matrix",
        labels=LABELS,
        content=Content.counts,
        counts=COUNTS,
        revision="1",
        values=VALUES | dict.fromkeys(HEADLINE, spread),
        tags={"stage": "candidate", "team": f"team {number % 20}", "git": identifier.hex[-7:]},
    )
    return encode_record("default", record, names=NameIds(number % 500, number % 500, number % 50), slots=SLOTS)


def decode_json(row: dict[str, Any]) -> dict[str, Any]:
    """The same row as SQLAlchemy itself wants it, which serialises JSON columns once more."""
    return row | {"tags": json.loads(row["tags"])}


@asynccontextmanager
async def orm(engine: AsyncEngine) -> AsyncIterator[Write]:
    sessions = async_sessionmaker(engine, expire_on_commit=False)

    async def write(row: dict[str, Any]) -> None:
        async with sessions.begin() as session:
            session.add(Evaluation(**decode_json(row)))

    yield write


@asynccontextmanager
async def core(engine: AsyncEngine) -> AsyncIterator[Write]:
    statement = insert(evaluations)

    async def write(row: dict[str, Any]) -> None:
        async with engine.begin() as connection:
            await connection.execute(statement, decode_json(row))

    yield write


@asynccontextmanager
async def driver(engine: AsyncEngine) -> AsyncIterator[Write]:
    url = engine.url.set(drivername="postgresql").render_as_string(hide_password=False)
    async with asyncpg.create_pool(url, min_size=POOL, max_size=POOL) as pool:

        async def write(row: dict[str, Any]) -> None:
            async with pool.acquire() as connection:
                await connection.execute(INSERT.sql, *(row[name] for name in INSERT.columns))

        yield write


@asynccontextmanager
async def group(engine: AsyncEngine) -> AsyncIterator[Write]:
    writer = EvaluationWriter(engine)
    yield writer.add
    await writer.close()


PATHS = {
    "ORM session": orm,
    "Core": core,
    "compiled once, on the driver's pool": driver,
    "compiled once, group commit": group,
}


@dataclass(frozen=True, slots=True)
class Result:
    rate: float
    p50: float
    p99: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.rate:,.0f} /s, {self.p50:.1f} / {self.p99:.1f} ms, {self.cpu:.2f} ms"


async def measure(write: Write, concurrency: int, seconds: float) -> Result:
    """Let some callers write one row after another for a while."""
    times: list[float] = []
    number = 0

    async def call(end: float) -> None:
        nonlocal number
        while (begin := time.perf_counter()) < end:
            number += 1
            await write(make_row(number))
            times.append(time.perf_counter() - begin)

    await asyncio.gather(*(call(time.perf_counter() + 0.2) for _ in range(concurrency)))
    times.clear()
    cpu, begin = time.process_time(), time.perf_counter()
    await asyncio.gather(*(call(begin + seconds) for _ in range(concurrency)))
    elapsed, cpu = time.perf_counter() - begin, time.process_time() - cpu
    p50, p99 = np.percentile(times, [50, 99]) * 1e3
    return Result(len(times) / elapsed, float(p50), float(p99), cpu / len(times) * 1e3)


async def run(url: str, *, seconds: float, rounds: int) -> None:
    engine = create_engine(url, pool_size=POOL)
    print("| write path | 1 caller: rate, p50 / p99, CPU | 16 callers | 64 callers |\n| --- | --- | --- | --- |")
    for note, statements in (("", ()), (", with foreign keys", FOREIGN_KEYS)):
        async with engine.begin() as connection:
            for statement in ("TRUNCATE evaluations", *statements):
                await connection.execute(text(statement))
        paths = {name: path for name, path in PATHS.items() if not statements or path in (driver, group)}
        best: dict[tuple[str, int], Result] = {}
        # Round by round, so that a busy moment of the machine does not hit one path alone.
        for _ in range(rounds):
            for name, path in paths.items():
                async with path(engine) as write:
                    for concurrency in CONCURRENCY:
                        result = await measure(write, concurrency, seconds)
                        if (name, concurrency) not in best or result.rate > best[name, concurrency].rate:
                            best[name, concurrency] = result
        for name in paths:
            print(f"| {name}{note} | {' | '.join(str(best[name, count]) for count in CONCURRENCY)} |", flush=True)
    await engine.dispose()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.write_paths")
    parser.add_argument("--seconds", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--url", help="an empty database; without it an embedded Postgres")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        url = arguments.url
        if url is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prevail-writes-")))
            folder.chmod(0o711)
            server = stack.enter_context(EmbeddedPostgres.start(folder / "data", durable=True))
            server.create_database("writes")
            url = server.dsn("writes")
        url = normalize_database_url(url)
        upgrade(SecretStr(url), "head")
        uvloop.run(run(url, seconds=arguments.seconds, rounds=arguments.rounds))


if __name__ == "__main__":
    main()
