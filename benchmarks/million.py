"""A million stored evaluations on Postgres: what the leaderboard and the list cost, asked through the store itself.

    python -m benchmarks.million --rows 1000000 [--url postgresql://user:password@host/database]

Without a URL an embedded Postgres is started in a folder that is removed afterwards. The database must be empty. Its
datasets differ in size as in life: one with a tenth of all evaluations and 2,000 model versions, one with 200, one with
10, and 500 more. Prints a table in Markdown.
"""

import argparse
import asyncio
import json
import random
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from numpy.typing import NDArray
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.cli import upgrade
from app.domain.evaluation import DatasetRef, EvaluationQuery, EvaluationRecord, ModelRef, Position
from app.domain.identifiers import first_id_from
from app.domain.inputs.content import Content
from app.domain.named_metrics import HEADLINE
from app.embedded import EmbeddedPostgres
from app.settings import normalize_database_url
from app.store.database.engine import create_engine
from app.store.database.tables import evaluations
from app.store.evaluations.evaluations import PostgresEvaluationStore
from app.store.evaluations.rows import encode_record
from app.store.evaluations.writer import INSERT, EvaluationWriter
from app.store.names import Names

PROJECT = "default"
METRICS = (*HEADLINE, *(f"metric_{number}" for number in range(len(HEADLINE) + 1, 86)))
START = datetime(2024, 1, 1, tzinfo=UTC)
STEP = timedelta(seconds=20)
CHUNK = 10_000
ROUNDS = 4
Ask = Callable[[], Awaitable[Any]]
CLASSES = tuple(f"class {number}" for number in range(10))


@dataclass(frozen=True, slots=True)
class Share:
    """A dataset, its number of evaluations and of model versions, and the name of its models."""

    dataset: DatasetRef
    rows: int
    versions: int
    model: str


def plan_shares(rows: int) -> list[Share]:
    named = [
        Share(DatasetRef("large", "1", "test"), rows // 10, 2000, "daily"),
        Share(DatasetRef("medium", "1", "test"), rows // 50, 200, "weekly"),
        Share(DatasetRef("small", "1", "test"), rows // 1000, 10, "yearly"),
    ]
    weights = np.arange(1, 501) ** -0.7
    counts = np.floor(weights / weights.sum() * (rows - sum(share.rows for share in named))).astype(int)
    others = [
        Share(DatasetRef(f"dataset {number}"), int(count), min(60, max(1, count // 20)), f"model {number}")
        for number, count in enumerate(counts)
    ]
    return named + others


def make_records(
    rng: np.random.Generator, shares: list[Share], owners: NDArray[np.int64], first: int
) -> Iterator[EvaluationRecord]:
    """Make one chunk of evaluations of 10 classes and 85 metrics, 2 % of the values undefined."""
    size = len(owners)
    values = rng.random((size, len(METRICS))).round(6)
    values[rng.random((size, len(METRICS))) < 0.02] = np.nan
    counts = rng.integers(0, 300, (size, 10, 10))
    versions = rng.random(size)
    noise = rng.integers(0, 1 << 62, size)
    for row in range(size):
        share = shares[owners[row]]
        number = first + row
        stage = "production" if number % 10 == 0 else "candidate"
        yield EvaluationRecord(
            id=UUID(int=first_id_from(START + number * STEP).int | 0x7 << 76 | 0b10 << 62 | int(noise[row])),
            model=ModelRef(share.model, str(int(versions[row] * share.versions))),
            dataset=share.dataset,
            kind="confusion_matrix",
            labels=CLASSES,
            content=Content.counts,
            counts=counts[row],
            revision="1",
            values=dict(zip(METRICS, values[row].tolist(), strict=True)),
            tags={"stage": stage, "team": f"team {number // 10 % 20}", "git": f"{int(noise[row]) % (1 << 28):07x}"},
        )


def _as_list(array: str) -> list[float | None]:
    return [None if entry is None else float(entry) for entry in json.loads(f"[{array[1:-1]}]")]


async def load(engine: AsyncEngine, rows: int) -> None:
    """Fill the database by COPY, its secondary indexes made afterwards."""
    rng = np.random.default_rng(0)
    shares = plan_shares(rows)
    owners = np.repeat(np.arange(len(shares)), [share.rows for share in shares])
    rng.shuffle(owners)
    names = Names(engine)
    slots = await names.slots_of(METRICS)
    # The statement has an entry in the trail of changes too, which is left out here.
    columns = [column.name for column in evaluations.c if column.name in INSERT.columns]
    indexes = sorted(evaluations.indexes, key=lambda index: str(index.name))
    async with engine.begin() as connection:
        for index in indexes:
            await connection.run_sync(index.drop)
    async with engine.connect() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
        for first in range(0, len(owners), CHUNK):
            chunk = []
            for record in make_records(rng, shares, owners[first : first + CHUNK], first):
                ids = await names.resolve(PROJECT, record.model, record.dataset)
                row = encode_record(PROJECT, record, names=ids, slots=slots)
                # The statement takes an array as text, COPY as a list.
                row["metric_values"] = _as_list(row["metric_values"])
                chunk.append(tuple(row[name] for name in columns))
            await driver.copy_records_to_table(evaluations.name, records=chunk, columns=columns)
    async with engine.begin() as connection:
        await connection.execute(text("SET LOCAL statement_timeout = 0"))
        await connection.execute(text("SET LOCAL maintenance_work_mem = '512MB'"))
        for index in indexes:
            await connection.run_sync(index.create)
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text("SET statement_timeout = 0"))
        await connection.execute(text("VACUUM ANALYZE"))
        await connection.execute(text("CHECKPOINT"))


async def measure(ask: Ask, *, seconds: float) -> tuple[float, float]:
    """Ask for some seconds, ten times at least, after a few times for warmth; returns p50 and p95 in milliseconds."""
    for _ in range(3):
        await ask()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 10 or (time.perf_counter() < end and len(times) < 300):
        begin = time.perf_counter()
        await ask()
        times.append((time.perf_counter() - begin) * 1e3)
    low, high = np.percentile(times, [50, 95])
    return float(low), float(high)


async def ask_all(store: PostgresEvaluationStore, shares: list[Share], rows: int) -> None:
    chance = random.Random(1)
    other = METRICS[len(HEADLINE) :]
    end = START + rows * STEP

    def board(share: Share) -> Ask:
        return lambda: store.leaderboard(
            PROJECT, share.dataset, chance.choice(METRICS), limit=20, higher_is_better=chance.random() < 0.5
        )

    def page(metrics: tuple[str, ...] = (), after: Position | None = None, **filters: Any) -> Ask:
        query = EvaluationQuery(**filters, limit=20, after=after)
        return lambda: store.page(PROJECT, replace(query, sort_metric=chance.choice(metrics) if metrics else None))

    middle = Position(first_id_from(START + rows // 2 * STEP))
    some = (await store.page(PROJECT, EvaluationQuery(limit=100))).items[-1]
    span: dict[str, Any] = {"created_after": end - timedelta(days=30), "created_before": end - timedelta(days=20)}
    production, team, git = ("stage", "production"), ("team", "team 10"), ("git", some.tags["git"])
    version: dict[str, Any] = {"model": "daily", "model_version": "7"}
    asked: list[tuple[str, Ask]] = [
        *(
            (f"leaderboard by any metric, {share.versions:,} model versions, {share.rows:,} evaluations", board(share))
            for share in shares[2::-1]
        ),
        ("one evaluation by id", lambda: store.get(PROJECT, some.id)),
        ("newest", page()),
        ("newest of a dataset, 100,000", page(dataset="large")),
        ("newest of a model, 60 versions", page(model="model 0")),
        ("newest of a model, 2,000 versions", page(model="daily")),
        ("newest of a model version", page(**version)),
        ("newest of a model version on a dataset", page(dataset="large", **version)),
        ("newest of a model, 2,000 versions, on a dataset", page(dataset="large", model="daily")),
        ("newest with a tag, 1 in 10", page(tags=(production,))),
        ("newest with a tag, 1 in a million", page(tags=(git,))),
        ("newest with two tags, 1 in 200", page(tags=(production, team))),
        ("newest with a tag, of a dataset", page(tags=(production,), dataset="medium")),
        ("within ten days", page(**span)),
        ("within ten days, of a dataset", page(dataset="large", **span)),
        ("page after 500,000", page(after=middle)),
        ("page after 50,000 of a dataset", page(after=middle, dataset="large")),
        *(
            (f"by {which} metric, of a dataset, {share.rows:,}", page(metrics, dataset=share.dataset.name))
            for share in (shares[2], shares[1], shares[3], shares[0])
            for which, metrics in (("headline", HEADLINE), ("another", other))
        ),
        ("by headline metric, page after 50,000", page(HEADLINE, Position(middle.id, 0.5), dataset="large")),
        ("by another metric, page after 50,000", page(other, Position(middle.id, 0.5), dataset="large")),
        ("by any metric, of a model version", page(METRICS, **version)),
        ("by any metric, of a model version on a dataset", page(METRICS, dataset="large", **version)),
        ("by any metric, of a model, 700 evaluations", page(METRICS, model="model 450")),
        ("by any metric, of a model, 100,000 evaluations", page(METRICS, model="daily")),
        ("by any metric, of a model on a dataset, 100,000", page(METRICS, dataset="large", model="daily")),
        ("by any metric, within ten days of a dataset, 100,000", page(METRICS, dataset="large", **span)),
        ("by any metric, with a tag, 1 in 10", page(METRICS, tags=(production,))),
        ("by any metric, with a tag, 1 in a million", page(METRICS, tags=(git,))),
        (
            "by any metric, with a tag, 1 in 10, of a dataset, 100,000",
            page(METRICS, tags=(production,), dataset="large"),
        ),
        ("by any metric, with two tags, 1 in 200", page(METRICS, tags=(production, team))),
        ("by headline metric, everything", page(HEADLINE)),
        ("by another metric, everything", page(other)),
        ("models, a page", lambda: store.models(PROJECT, 50)),
        ("datasets, a page", lambda: store.datasets(PROJECT, 50)),
    ]
    # What large parts are sorted by is made in the background once somebody asked.
    begin = time.perf_counter()
    for _, ask in asked:
        await ask()
    await store.rest()
    seconds = time.perf_counter() - begin
    print(f"Every line asked for once, and what that made the service do in the background: {seconds:.0f} s\n")
    print("| query | p50 ms | p95 ms |\n| --- | ---: | ---: |")
    for name, ask in asked:
        # The best of some rounds: other work on the machine only ever adds.
        low, high = min([await measure(ask, seconds=1.0) for _ in range(ROUNDS)], key=lambda times: times[1])
        print(f"| {name} | {low:.1f} | {high:.1f} |", flush=True)


async def show_sizes(engine: AsyncEngine) -> None:
    sizes = text(
        "SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relname ~ '(ix|pk)_evaluations|^evaluations$' "
        "UNION ALL SELECT 'extreme_values', pg_total_relation_size('extreme_values') "
        "UNION ALL SELECT 'evaluations, all of it', pg_total_relation_size('evaluations') ORDER BY 1"
    )
    print("\n| on disk | MiB |\n| --- | ---: |")
    async with engine.connect() as connection:
        for name, size in (await connection.execute(sizes)).all():
            print(f"| {name} | {size / 2**20:,.0f} |")


async def run(url: str, rows: int, *, loaded: bool) -> None:
    engine = create_engine(url, statement_timeout=3600)
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    if not loaded:
        begin = time.perf_counter()
        await load(engine, rows)
        print(f"{rows:,} evaluations of {len(METRICS)} metrics, loaded in {time.perf_counter() - begin:.0f} s\n")
    await ask_all(store, plan_shares(rows), rows)
    await show_sizes(engine)
    await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.million")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--url", help="an empty database; without it an embedded Postgres")
    parser.add_argument("--loaded", action="store_true", help="the database was filled by an earlier run")
    arguments = parser.parse_args()
    with ExitStack() as stack:
        url = arguments.url
        if url is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prevail-million-")))
            folder.chmod(0o711)
            server = stack.enter_context(EmbeddedPostgres.start(folder / "data", durable=True))
            server.create_database("million")
            url = server.dsn("million")
        url = normalize_database_url(url)
        upgrade(SecretStr(url), "head")
        asyncio.run(run(url, arguments.rows, loaded=arguments.loaded))


if __name__ == "__main__":
    main()
