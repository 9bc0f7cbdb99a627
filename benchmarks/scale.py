"""A million stored evaluations on Postgres: what lists, leaderboards and histories cost, asked without HTTP.

    python -m benchmarks.scale --rows 1000000 [--folder DIR]

An embedded Postgres is started in a folder that is removed afterwards; one that is named is kept, and what an earlier
run filled is used again. The processor's time is that of this process and of Postgres together: where the machine has
other work, it says more than the clock. Datasets differ in size as in life: one with a tenth of all evaluations and
2,000 model versions, one with a fiftieth and 200, one with a thousandth and 10, and 500 more.
"""

import argparse
import asyncio
import random
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import SecretStr
from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.cli import upgrade
from app.domain.evaluation import Bound, DatasetRef, EvaluationQuery, Position, ValueCondition
from app.domain.identifiers import first_id_from
from app.domain.named_metrics import HEADLINE
from app.embedded import EmbeddedPostgres
from app.services.history import HistoryQuery, HistoryService
from app.settings import normalize_database_url
from app.store.engine import create_engine
from app.store.evaluations import PostgresEvaluationStore
from app.store.names import Names
from app.store.tables import evaluations
from app.store.writer import EvaluationWriter
from benchmarks.processes import tree_seconds

PROJECT = "default"
METRICS = (*HEADLINE, *(f"metric_{number}" for number in range(len(HEADLINE) + 1, 86)))
START, STEP = datetime(2024, 1, 1, tzinfo=UTC), timedelta(seconds=20)
Ask = Callable[[], Awaitable[Any]]
# (dataset, share of all evaluations, versions of its model, name of the model)
NAMED = (
    ("large", 0.1, 2000, "daily"),
    ("medium", 0.02, 200, "weekly"),
    ("small", 0.001, 10, "yearly"),
)
# Evaluations of 10 classes, with 0 to 7 samples in a cell, and 85 metrics, 2 % of the values undefined, in the order of
# their time.
FILL = """
INSERT INTO evaluations (id, model_id, dataset_id, n_classes, n_samples, project, kind, content, revision, counts_type,
    labels, tags, metric_values, counts, model_name_id)
SELECT id, model_id, dataset_id, 10, 1000, :project, 'confusion_matrix', 'counts', '1', '<u2', :labels,
    jsonb_build_object('stage', CASE WHEN chance < 0.1 THEN 'production' ELSE 'candidate' END,
        'team', 'team ' || floor(20 * random()), 'git', substr(md5(id::text), 1, 7)),
    (SELECT array_agg(CASE WHEN random() < 0.02 THEN 'NaN' ELSE random() END)
        FROM generate_series(1, :metrics) WHERE id IS NOT NULL),
    decode(regexp_replace(substr(translate(md5(id::text) || md5(id || 'b') || md5(id || 'c') || md5(id || 'd'),
        '89abcdef', '34343434'), 1, 100), '(.)', '0\\100', 'g'), 'hex'), name_id
FROM (
    SELECT (lpad(to_hex(:begin + floor(:rows * random())::bigint * :step), 12, '0') || '7'
            || substr(h, 1, 3) || '8' || substr(h, 4, 15))::uuid AS id,
        dataset_id, name_id, random() AS chance, first_model + floor(versions * random())::int AS model_id
    FROM shares, generate_series(1, size) i, md5(dataset_id || ' ' || i) h
    ORDER BY 1
) made
"""


async def load(engine: AsyncEngine, rows: int) -> None:
    """Fill the database; the secondary indexes are made afterwards."""
    await Names(engine).slots_of(METRICS)
    indexes = sorted(evaluations.indexes, key=lambda index: str(index.name))
    weights = np.arange(1, 501) ** -0.7
    left = rows - sum(int(rows * share) for _, share, _, _ in NAMED)
    others = [
        (f"dataset {place}", size, min(60, max(1, size // 20)), f"model {place}")
        for place, size in enumerate((weights / weights.sum() * left).astype(int).tolist())
    ]
    shares = [(name, int(rows * share), versions, model) for name, share, versions, model in NAMED] + others
    async with engine.begin() as connection:
        driver: Any = (await connection.get_raw_connection()).driver_connection
        await driver.execute(
            "CREATE TABLE shares (dataset text, size int, versions int, model text, "
            "dataset_id int, name_id int, first_model int)"
        )
        columns = ["dataset", "size", "versions", "model"]
        await driver.copy_records_to_table("shares", records=shares, columns=columns)
        await driver.execute(f"""
            INSERT INTO datasets (project, name) SELECT '{PROJECT}', dataset FROM shares;
            INSERT INTO model_names (project, name) SELECT '{PROJECT}', model FROM shares;
            INSERT INTO models (project, name, version)
                SELECT '{PROJECT}', model, v::text FROM shares, generate_series(0, versions - 1) v ORDER BY model, v;
            UPDATE shares SET dataset_id = (SELECT id FROM datasets d WHERE d.name = dataset),
                name_id = (SELECT id FROM model_names n WHERE n.name = model),
                first_model = (SELECT min(id) FROM models m WHERE m.name = model);
            ANALYZE
        """)
        for index in indexes:
            await connection.run_sync(index.drop)
        values = {"begin": int(START.timestamp() * 1000), "step": int(STEP.total_seconds() * 1000), "rows": rows}
        named = {"project": PROJECT, "labels": [f"class {number}" for number in range(10)], "metrics": len(METRICS)}
        await connection.execute(text(FILL), values | named)
        await connection.execute(text("SET LOCAL maintenance_work_mem = '512MB'"))
        for index in indexes:
            await connection.run_sync(index.create)
    async with engine.connect() as connection:
        await connection.execution_options(isolation_level="AUTOCOMMIT")
        await connection.execute(text("VACUUM ANALYZE"))
        await connection.execute(text("CHECKPOINT"))


async def measure(ask: Ask, server: EmbeddedPostgres, *, seconds: float) -> tuple[float, float, float]:
    """Ask for some seconds, ten times at least, after a few times for warmth.

    Returns:
        p50 and p95, and the mean of the processor's time, in milliseconds.
    """
    for _ in range(3):
        await ask()
    times: list[float] = []
    used = time.process_time() + tree_seconds(server._server.pid)
    end = time.perf_counter() + seconds
    while len(times) < 10 or (time.perf_counter() < end and len(times) < 300):
        begin = time.perf_counter()
        await ask()
        times.append((time.perf_counter() - begin) * 1e3)
    used = time.process_time() + tree_seconds(server._server.pid) - used
    low, high = np.percentile(times, [50, 95])
    return float(low), float(high), used / len(times) * 1e3


class _Here:
    """Computes where it is asked."""

    async def run(self, work: Callable[[], Any]) -> Any:
        """Return what the work gives."""
        return work()


def histories(store: PostgresEvaluationStore, rows: int) -> list[tuple[str, Ask]]:
    """Nearly 10,000 evaluations of a model on a dataset, all of them or the newest."""
    number = min(9_900, int(rows * NAMED[1][1]))
    compute: Any = _Here()
    service = HistoryService(store, compute=compute)
    since = START + rows * STEP * (1.0 - number / (rows * NAMED[1][1]))

    def asked(*metrics: str) -> Ask:
        query = HistoryQuery(model="weekly", dataset=DatasetRef("medium"), created_after=since, newest=True)
        return lambda: service.read(PROJECT, replace(query, metrics=metrics))

    stored: Ask = lambda: store.series(  # noqa: E731 - one of a list of them
        PROJECT, EvaluationQuery(model="weekly", dataset="medium", created_after=since, descending=False, limit=10_001)
    )
    name = f"history of {number:,} evaluations"
    metrics = ('recall@"class 1"', 'precision@"class 1"', "h_mean", "macro_f1")
    return [(f"{name}, read alone", stored), *((f"{name}, {metric}", asked(metric)) for metric in metrics)]


def questions(store: PostgresEvaluationStore, rows: int) -> list[tuple[str, Ask]]:
    """What is asked, with its name."""
    chance = random.Random(1)
    other = METRICS[len(HEADLINE) :]

    def board(dataset: str) -> Ask:
        return lambda: store.leaderboard(
            PROJECT, DatasetRef(dataset), chance.choice(METRICS), limit=20, higher_is_better=chance.random() < 0.5
        )

    def page(metrics: tuple[str, ...] = (), after: Position | None = None, **filters: Any) -> Ask:
        query = EvaluationQuery(**filters, limit=20, after=after)
        return lambda: store.page(PROJECT, replace(query, sort_metric=chance.choice(metrics) if metrics else None))

    def above(metric: str, number: float) -> tuple[ValueCondition, ...]:
        return (ValueCondition(metric, Bound.AT_LEAST, number),)

    middle = Position(first_id_from(START + rows // 2 * STEP))
    end = START + rows * STEP
    span: dict[str, Any] = {"created_after": end - timedelta(days=30), "created_before": end - timedelta(days=20)}
    production, team = ("stage", "production"), ("team", "team 10")
    version: dict[str, Any] = {"model": "daily", "model_version": "7"}
    found: list[tuple[str, Ask]] = [
        *(
            (f"leaderboard by any metric, {board_versions:,} model versions", board(name))
            for name, _, board_versions, _ in NAMED
        ),
        ("newest", page()),
        ("newest of a dataset, 1 in 10", page(dataset="large")),
        ("newest of a model, 1 in 10", page(model="daily")),
        ("newest with two tags, 1 in 200", page(tags=(production, team))),
        ("page after half of them", page(after=middle)),
        ("models, a page", lambda: store.models(PROJECT, 50)),
    ]
    for which, metrics in (("a headline metric", HEADLINE), ("another metric", other)):
        found += [
            (f"by {which}, everything", page(metrics)),
            (f"by {which}, everything, deep", page(metrics, Position(middle.id, 0.5))),
            (f"by {which}, of a dataset, 1 in 50", page(metrics, dataset="medium")),
            (f"by {which}, of a dataset, 1 in 10", page(metrics, dataset="large")),
            (f"by {which}, of a dataset, 1 in 10, deep", page(metrics, Position(middle.id, 0.5), dataset="large")),
            (f"by {which}, of a model, 1 in 10", page(metrics, model="daily")),
            (f"by {which}, of a model on a dataset, 1 in 10", page(metrics, dataset="large", model="daily")),
            (f"by {which}, of a model version", page(metrics, **version)),
            (f"by {which}, within ten days", page(metrics, **span)),
            (f"by {which}, with a tag, 1 in 10", page(metrics, tags=(production,))),
            (f"by {which}, with two tags, 1 in 200", page(metrics, tags=(production, team))),
        ]
        for share in (0.5, 0.01, 0.0001):
            where = above(metrics[0], 1.0 - share)
            found += [
                (f"where {which} is high, 1 in {1 / share:,.0f}, newest", page(where=where)),
                (f"where {which} is high, 1 in {1 / share:,.0f}, by it", page(metrics[:1], where=where)),
                (f"where {which} is high, 1 in {1 / share:,.0f}, of a dataset", page(where=where, dataset="large")),
            ]
    return found


async def show_sizes(engine: AsyncEngine) -> None:
    sizes = text(
        "SELECT relname, pg_relation_size(oid) FROM pg_class WHERE relname ~ '(ix|pk)_evaluations|^evaluations$' "
        "UNION ALL SELECT 'evaluations, all of it', pg_total_relation_size('evaluations') ORDER BY 1"
    )
    print("\n| on disk | MiB |\n| --- | ---: |")
    async with engine.connect() as connection:
        for name, size in (await connection.execute(sizes)).all():
            print(f"| {name} | {size / 2**20:,.0f} |")


async def run(server: EmbeddedPostgres, chosen: argparse.Namespace, *, loaded: bool) -> None:
    url = normalize_database_url(server.dsn("scale"))
    await asyncio.to_thread(upgrade, SecretStr(url), "head")
    engine = create_engine(url, statement_timeout=3600)
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    if not loaded:
        begin = time.perf_counter()
        await load(engine, chosen.rows)
        print(f"{chosen.rows:,} evaluations of {len(METRICS)} metrics, loaded in {time.perf_counter() - begin:.0f} s\n")
    print("| query | p50 ms | p95 ms | processor ms |\n| --- | ---: | ---: | ---: |")
    for name, ask in (*questions(store, chosen.rows), *histories(store, chosen.rows)):
        if chosen.only in name:
            # The best of some rounds: other work on the machine only ever adds.
            rounds = [await measure(ask, server, seconds=1.0) for _ in range(chosen.rounds)]
            print(f"| {name} | {' | '.join(f'{min(each):.1f}' for each in zip(*rounds, strict=True))} |", flush=True)
    await show_sizes(engine)
    await store.close()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--folder", type=Path, help="of an embedded Postgres that is kept")
    parser.add_argument("--rounds", type=int, default=4)
    parser.add_argument("--only", default="", help="questions whose name has this in it")
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = chosen.folder
        if folder is None:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prevail-scale-")))
            folder.chmod(0o711)
        loaded = (folder / "data").exists()
        server = stack.enter_context(EmbeddedPostgres.start(folder / "data", durable=True))
        if not loaded:
            server.create_database("scale")
        asyncio.run(run(server, chosen, loaded=loaded))


if __name__ == "__main__":
    main()
