"""The table of evaluations in one piece and in partitions: `python -m benchmarks.partitions --rows 200000`.

Three shapes, one after the other, each in a database of its own that is dropped afterwards: the table as it is, by a
hash of the project, and by the time in the id. Twenty projects, one of which has half of all evaluations; two classes
and all values of the catalogue. What is asked goes through the store as the service uses it. Postgres is the embedded
one with 2 GB of shared buffers. Prints tables in Markdown; with `--keep FILE` results are added to a file, which is
printed instead with `--show FILE`: ten million rows of one shape take half an hour.
"""

import argparse
import asyncio
import json
import random
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import numpy as np
from pydantic import SecretStr

from app.cli import upgrade
from app.domain.evaluation import DatasetRef, EvaluationQuery, EvaluationRecord, ModelRef
from app.domain.identifiers import first_id_from, new_id
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import IntervalChoice, Options
from app.embedded import EmbeddedPostgres
from app.kernel.metrics.card import Scope
from app.kernel.metrics.catalogue import catalogue
from app.services.evaluate.questions import ask
from app.services.evaluate.sections.matrix import batch_values
from app.services.inventory.inventory import InventoryService
from app.settings import normalize_database_url
from app.store.database.engine import create_engine
from app.store.database.tables import evaluations
from app.store.evaluations.evaluations import PostgresEvaluationStore
from app.store.evaluations.inventory import PostgresInventory
from app.store.evaluations.rows import encode_values
from app.store.evaluations.writer import EvaluationWriter
from benchmarks.processes import tree_seconds

SHAPES = ("one table", "by hash of the project, 16", "by time, 12")
PROJECTS, DATASETS, MODELS, POOL = 20, 50, 200, 1000
# The last project is small, and removed in the end.
GONE = PROJECTS - 1
SPAN = timedelta(days=365)
SETTINGS = {
    "shared_buffers": "2GB",
    "maintenance_work_mem": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "max_parallel_maintenance_workers": "0",
    # What is loaded into a table of the same transaction needs no log.
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "autovacuum": "off",
}
Ask = Callable[[], Awaitable[Any]]
Result = dict[str, Any]


def project(number: int) -> str:
    return f"project-{number:02d}"


def make_pool() -> list[dict[str, float | None]]:
    """The values of some evaluations of two classes."""
    rng = np.random.default_rng(0)
    rates = rng.uniform(0.5, 0.99, (POOL, 2))
    found: list[Any] = []
    for first in range(0, POOL, 100):
        sources = []
        for sensitivity, specificity in rates[first : first + 100]:
            hits, rejections = rng.binomial(100, sensitivity), rng.binomial(900, specificity)
            counts = np.array([[rejections, 900 - rejections], [100 - hits, hits]], dtype=np.int64)
            sources.append(MatrixInput("confusion_matrix", ("no", "yes"), 1, Content.counts, counts))
        found += batch_values([ask(source, Options(intervals=IntervalChoice.NONE)) for source in sources]).values
    return [dict(values) for values in found]


def bounds(rows: int) -> tuple[int, float]:
    """Milliseconds at which the first evaluation is made, and from one to the next."""
    end = datetime.now(UTC) - timedelta(minutes=10)
    return int((end - SPAN).timestamp() * 1000), SPAN.total_seconds() * 1000 / rows


async def load(connection: asyncpg.Connection, shape: str, rows: int, pool: Sequence[str]) -> None:
    """Names, the table in its shape, its rows, then its indexes."""
    begun, step = bounds(rows)
    every = 500 if rows >= 500_000 else 50
    await connection.execute(f"""
        INSERT INTO models (id, project, name, version) OVERRIDING SYSTEM VALUE
        SELECT p * 1000 + m + 1, 'project-' || lpad(p::text, 2, '0'), 'model ' || m % 10, m::text
        FROM generate_series(0, {PROJECTS - 1}) p, generate_series(0, {MODELS - 1}) m;
        INSERT INTO model_names (id, project, name) OVERRIDING SYSTEM VALUE
        SELECT p * 1000 + m + 1, 'project-' || lpad(p::text, 2, '0'), 'model ' || m
        FROM generate_series(0, {PROJECTS - 1}) p, generate_series(0, 9) m;
        INSERT INTO datasets (id, project, name) OVERRIDING SYSTEM VALUE
        SELECT p * 1000 + d + 1, 'project-' || lpad(p::text, 2, '0'), 'dataset ' || d
        FROM generate_series(0, {PROJECTS - 1}) p, generate_series(0, {DATASETS - 1}) d;
        SELECT setval(pg_get_serial_sequence(t, 'id'), 1000000)
        FROM unnest(ARRAY['models', 'model_names', 'datasets']) t;
        CREATE TABLE pool (n int PRIMARY KEY, v float8[]);
    """)
    await connection.executemany("INSERT INTO pool VALUES ($1, $2::text::float8[])", list(enumerate(pool)))
    await connection.execute("ANALYZE pool")
    values = (
        f"(ARRAY[random(), random(), random(), random(), random(), random(), random()]::float8[] || pool.v[8:{1000}])"
    )
    async with connection.transaction():
        await connection.execute("ALTER TABLE evaluations RENAME TO plain")
        await connection.execute(
            "CREATE TABLE evaluations (LIKE plain INCLUDING DEFAULTS INCLUDING COMMENTS)" + _partitioned(shape)
        )
        await connection.execute("DROP TABLE plain")
        for statement in _partitions(shape, begun):
            await connection.execute(statement)
        await connection.execute(f"""
            INSERT INTO evaluations (id, model_id, dataset_id, n_classes, positive, n_samples, project, kind, content,
                revision, counts_type, labels, tags, metric_values, counts, model_name_id, late_at)
            SELECT (lpad(to_hex({begun} + (i * {step})::bigint), 12, '0') || '7' || substr(h, 1, 3) || '8'
                    || substr(h, 4, 15))::uuid,
                p * 1000 + m + 1, p * 1000 + d + 1, 2, 1, 1000, 'project-' || lpad(p::text, 2, '0'),
                'confusion_matrix', 'counts', '1', '<u2', ARRAY['no', 'yes'],
                jsonb_build_object('team', 'team ' || m % 20, 'git', substr(h, 20, 7)), {values},
                '\\x2003640a005a000a'::bytea, p * 1000 + m % 10 + 1, NULL
            FROM (SELECT i, md5(i::text) h, CASE WHEN i % {every} = 1 THEN {GONE} WHEN i % 2 = 0 THEN 0
                    ELSE 1 + (i / 2) % {GONE - 1} END p,
                    (i * 7919 / 2) % {DATASETS} d, (i * 104729 / 2) % {MODELS} m
                  FROM generate_series(0, {rows - 1}::bigint) i) made
            JOIN pool ON pool.n = i % {POOL}
        """)
        said("rows are there")
        await connection.execute("ALTER TABLE evaluations ADD CONSTRAINT pk_evaluations PRIMARY KEY (project, id)")


def _partitioned(shape: str) -> str:
    return {SHAPES[0]: "", SHAPES[1]: " PARTITION BY HASH (project)", SHAPES[2]: " PARTITION BY RANGE (id)"}[shape]


def _partitions(shape: str, begun: int) -> list[str]:
    if shape == SHAPES[1]:
        return [
            f"CREATE TABLE part_{n} PARTITION OF evaluations FOR VALUES WITH (MODULUS 16, REMAINDER {n})"
            for n in range(16)
        ]
    if shape == SHAPES[2]:
        start = datetime.fromtimestamp(begun / 1000, UTC)
        edges = ["MINVALUE", *(f"'{first_id_from(start + SPAN * n / 12)}'" for n in range(1, 12)), "MAXVALUE"]
        return [
            f"CREATE TABLE part_{n} PARTITION OF evaluations FOR VALUES FROM ({low}) TO ({high})"
            for n, (low, high) in enumerate(pairwise(edges))
        ]
    return []


async def index(engine: Any, connection: asyncpg.Connection) -> float:
    """Make the indexes, the largest first; returns seconds."""
    begin = time.perf_counter()
    for one in sorted(evaluations.indexes, key=lambda each: not each.dialect_options["postgresql"]["include"]):
        async with engine.begin() as own:
            await own.run_sync(one.create)
        said(f"{one.name} is there")
    seconds = time.perf_counter() - begin
    await connection.execute("VACUUM ANALYZE evaluations")
    await connection.execute("CHECKPOINT")
    return seconds


async def sizes(connection: asyncpg.Connection) -> Result:
    """Bytes of the table and of its indexes, all partitions together."""
    tree = "SELECT coalesce(sum(pg_table_size(relid)), 0)::bigint FROM pg_partition_tree('{}')"
    single = "SELECT pg_table_size('{}')::bigint"

    async def size(name: str) -> int:
        found = await connection.fetchval(tree.format(name)) or await connection.fetchval(single.format(name))
        return int(found)

    names = [str(one.name) for one in evaluations.indexes]
    found = {name: await size(name) for name in (*names, "pk_evaluations")}
    covering = next(str(o.name) for o in evaluations.indexes if o.dialect_options["postgresql"]["include"])
    return {
        "table": await size("evaluations"),
        "covering index": found.pop(covering),
        "all other indexes": sum(found.values()),
    }


async def measure(ask: Ask, seconds: float) -> list[float]:
    """Milliseconds, the least (other work on the machine only ever adds) and the median; a few times for warmth."""
    for _ in range(5):
        await ask()
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 10 or (time.perf_counter() < end and len(times) < 1000):
        begin = time.perf_counter()
        await ask()
        times.append((time.perf_counter() - begin) * 1e3)
    return [float(value) for value in np.percentile(times, [0, 50])]


async def reads(store: PostgresEvaluationStore, connection: asyncpg.Connection, seconds: float) -> Result:
    chance = random.Random(1)
    large, middle = project(0), project(3)
    picked = await connection.fetch(
        "SELECT id FROM evaluations TABLESAMPLE SYSTEM (0.05) WHERE project = $1 LIMIT 5000", large
    )
    ids = [UUID(int=row["id"].int) for row in picked]

    def page(name: str, **filters: Any) -> Ask:
        return lambda: store.page(name, EvaluationQuery(limit=20, **filters))

    def dataset() -> str:
        return f"dataset {chance.randrange(DATASETS)}"

    def sql(statement: str, name: str) -> Ask:
        return lambda: connection.fetch(statement, name, 1 + chance.randrange(DATASETS))

    newest = "SELECT id FROM evaluations WHERE {} dataset_id = $2 ORDER BY id DESC LIMIT 20"
    asked: dict[str, Ask] = {
        "one by id": lambda: store.get(large, chance.choice(ids)),
        "newest of the large project": page(large),
        "newest of a middle project": page(middle),
        "newest of a dataset": lambda: page(large, dataset=dataset())(),
        "newest of a model": lambda: page(large, model=f"model {chance.randrange(10)}")(),
        "newest with a tag, 1 in 20": page(large, tags=(("team", "team 7"),)),
        "a dataset by a headline metric": page(large, dataset="dataset 7", sort_metric="mcc"),
        "leaderboard of 200 versions": lambda: store.leaderboard(
            large, DatasetRef(dataset()), "h_mean", limit=20, higher_is_better=True
        ),
        "ids of a dataset, SQL without the project": sql(newest.format("$1 <> '' AND"), large),
        "the same with the project": sql(newest.format("project = $1 AND"), large),
    }
    found = {}
    for name, question in asked.items():
        await question()
        await store.rest()
        found[name] = await measure(question, seconds)
        said(f"{name}: {found[name]}")
    return found


async def writes(
    server: EmbeddedPostgres, store: PostgresEvaluationStore, values: dict[str, float | None], seconds: float
) -> Result:
    """Milliseconds of evaluations, and what each of many takes of the processor and of the log of Postgres."""
    chance = random.Random(2)

    def record() -> EvaluationRecord:
        model = chance.randrange(MODELS)
        return EvaluationRecord(
            id=new_id(),
            model=ModelRef(f"model {model % 10}", str(model)),
            dataset=DatasetRef(f"dataset {chance.randrange(DATASETS)}"),
            kind="confusion_matrix",
            labels=("no", "yes"),
            positive=1,
            content=Content.counts,
            counts=np.array([[800, 100], [10, 90]], dtype=np.int64),
            revision="1",
            values=values,
            tags={"team": f"team {model % 20}", "git": f"{chance.getrandbits(28):07x}"},
        )

    def add() -> Awaitable[None]:
        return store.add(project(chance.randrange(GONE) if chance.random() < 0.5 else 0), record())

    found: Result = {"one alone": await measure(add, seconds)}
    together = await measure(lambda: asyncio.gather(*(add() for _ in range(64))), seconds)
    found["64 at once, each"] = [ms / 64 for ms in together]
    position = "SELECT pg_current_wal_insert_lsn() - '0/0'"
    log, cpu = int(server._execute(position)), tree_seconds(server._server.pid)
    for _ in range(32):
        await asyncio.gather(*(add() for _ in range(64)))
    found["processor of Postgres, each"] = [(tree_seconds(server._server.pid) - cpu) * 1e3 / (32 * 64)]
    found["log, kB each"] = [(int(server._execute(position)) - log) / 1e3 / (32 * 64)]
    return found


async def removal(inventory: InventoryService, connection: asyncpg.Connection) -> Result:
    """Remove a project, and what VACUUM has to do afterwards."""
    begin = time.perf_counter()
    removed = await inventory.remove(project(GONE), EvaluationQuery(), dry_run=False)
    seconds = time.perf_counter() - begin
    begin = time.perf_counter()
    await connection.execute("VACUUM evaluations")
    return {"evaluations": removed.evaluations, "seconds": seconds, "vacuum": time.perf_counter() - begin}


async def run(server: EmbeddedPostgres, shape: str, rows: int, seconds: float) -> Result:
    server.create_database("partitions")
    url = normalize_database_url(server.dsn("partitions"))
    upgrade(SecretStr(url), "head")
    engine = create_engine(url, statement_timeout=24 * 3600, connect_timeout=300)
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    keys = [metric.key for metric in catalogue().reported.of_scope(Scope.OVERALL)]
    await store.prepare(keys)
    slots = await store._names.slots_of(keys)
    pool = make_pool()
    connection = await asyncpg.connect(server.dsn("partitions"))
    await connection.execute("SET jit = off; SET plan_cache_mode = force_custom_plan")
    try:
        begin = time.perf_counter()
        await load(connection, shape, rows, [encode_values(values, slots) for values in pool])
        loaded = time.perf_counter() - begin
        result: Result = {
            "shape": shape,
            "rows": rows,
            "loaded": loaded,
            "values": sum(v is not None for v in pool[0].values()),
        }
        result["indexed"] = await index(engine, connection)
        result["sizes"] = await sizes(connection)
        said(str(result))
        result["reads"] = await reads(store, connection, seconds)
        result["writes"] = await writes(server, store, pool[0], seconds)
        result["removal"] = await removal(InventoryService(PostgresInventory(engine)), connection)
        return result
    finally:
        await connection.close()
        await store.close()


def said(text: str) -> None:
    print(f"{datetime.now(UTC):%H:%M:%S} {text}", file=sys.stderr, flush=True)


def report(results: Sequence[Result]) -> None:
    """Markdown, one table for each number of rows."""
    for rows in sorted({one["rows"] for one in results}):
        some = [one for one in results if one["rows"] == rows]
        about = f"{rows:,} evaluations of {some[0]['values']} values"
        print(f"{about}, ms (the least / the median) unless it says otherwise.\n")
        print(f"| | {' | '.join(one['shape'] for one in some)} |\n| --- |{' ---: |' * len(some)}")
        lines: dict[str, list[str]] = {}

        def line(name: str, value: str, lines: dict[str, list[str]] = lines) -> None:
            lines.setdefault(name, []).append(value)

        for one in some:
            for name, times in (*one["reads"].items(), *((f"insert, {k}", v) for k, v in one["writes"].items())):
                line(name, " / ".join(f"{ms:.2f}" for ms in times))
            gone = one["removal"]
            line(f"a project of {gone['evaluations']:,} removed, s", f"{gone['seconds']:.1f}")
            line("VACUUM after it, s", f"{gone['vacuum']:.1f}")
            for name, size in one["sizes"].items():
                line(f"{name}, GiB", f"{size / 2**30:.2f}")
            line("indexes made, s", f"{one['indexed']:.0f}")
        for name, values in lines.items():
            print(f"| {name} | {' | '.join(values)} |")
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--shapes", type=int, nargs="*", default=[0, 1, 2])
    parser.add_argument("--seconds", type=float, default=3.0, help="for each question")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--keep", type=Path)
    parser.add_argument("--show", type=Path)
    chosen = parser.parse_args()
    results: list[Result] = []
    if chosen.show is not None:
        report([json.loads(text) for text in chosen.show.read_text().splitlines()])
        return
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prevail-partitions-", dir=chosen.folder)))
        folder.chmod(0o711)
        with EmbeddedPostgres.start(folder / "data", durable=True) as server:
            for name, value in SETTINGS.items():
                server._execute(f"ALTER SYSTEM SET {name} = '{value}'")
        with EmbeddedPostgres.start(folder / "data", durable=True) as server:
            for number in chosen.shapes:
                results.append(asyncio.run(run(server, SHAPES[number], chosen.rows, chosen.seconds)))
                server._execute("DROP DATABASE partitions WITH (FORCE)")
                if chosen.keep is not None:
                    with chosen.keep.open("a") as file:
                        file.write(json.dumps(results[-1]) + "\n")
    report(results)


if __name__ == "__main__":
    main()
