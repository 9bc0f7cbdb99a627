"""A project exported, dropped and imported while another one is used: `python -m benchmarks.transfer --rows 5000`.

Of one evaluation in `--samples-every` the probabilities of its samples are kept. The commands run as processes of their
own, as an operator runs them; a neighbour in another project stores and lists through the store meanwhile, and what he
waits is compared with what he waits when nothing else runs. Postgres is the embedded one with fsync on. Prints a table
in Markdown.
"""

import argparse
import asyncio
import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from pydantic import SecretStr
from sqlalchemy.ext.asyncio import AsyncEngine

from app.cli import upgrade
from app.domain.evaluation import (
    Bound,
    DatasetRef,
    EvaluationQuery,
    EvaluationRecord,
    EvaluationSummary,
    ModelRef,
    Position,
    ValueCondition,
)
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.options import IntervalChoice, Options
from app.embedded import EmbeddedPostgres
from app.kernel.metrics.card import Scope
from app.kernel.metrics.catalogue import catalogue
from app.services.evaluate.questions import ask
from app.services.evaluate.reports import evaluate
from app.services.evaluate.sections.matrix import batch_values
from app.services.inventory.inventory import InventoryService
from app.settings import normalize_database_url
from app.store.database.engine import create_engine
from app.store.evaluations.evaluations import PostgresEvaluationStore
from app.store.evaluations.inventory import PostgresInventory
from app.store.evaluations.writer import EvaluationWriter

MOVED, NEIGHBOUR = "moved", "neighbour"
LABELS = tuple(f"class {number}" for number in range(10))
SAMPLES, TOGETHER = 500, 32
PAUSE = 0.02
IDLE = "nothing, for ten seconds"
OPTIONS = Options(intervals=IntervalChoice.NONE)
# Larger pages than the service gives: what is compared is what stands in them.
PAGE = 2000
LISTS = {
    **{f"by {metric}": EvaluationQuery(sort_metric=metric) for metric in ("h_mean", "mcc", "chi_squared", "log_loss")},
    "of a model": EvaluationQuery(model="model 3", descending=False),
    "with a tag": EvaluationQuery(tags=(("i", "7"),)),
    "above a value": EvaluationQuery(where=(ValueCondition("mcc", Bound.ABOVE, 0.3),)),
}


def make_records(rows: int, samples_every: int) -> Iterator[EvaluationRecord]:
    """Evaluations of ten classes with all their values; of some the probabilities of 500 samples are kept."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 10, SAMPLES)
    for first in range(0, rows, TOGETHER):
        counts = rng.multinomial(300, rng.dirichlet(np.full(10, 0.4), (min(TOGETHER, rows - first), 10)))
        counts = counts.astype(np.int64)
        sources = [MatrixInput("confusion_matrix", LABELS, None, Content.counts, one) for one in counts]
        found = batch_values([ask(source, OPTIONS) for source in sources]).values
        for place, (source, values) in enumerate(zip(sources, found, strict=True)):
            number = first + place
            if number % samples_every == 0:
                yield _of_probabilities(rng, truth, number)
                continue
            yield EvaluationRecord(
                id=new_id(),
                model=ModelRef(f"model {number % 20}", str(number // 1000)),
                dataset=DatasetRef(f"dataset {number % 7}", "1", "test"),
                kind=source.kind,
                labels=LABELS,
                content=source.content,
                counts=source.counts,
                revision=catalogue().of_matrices.revision,
                values=values,
                tags={"i": str(number % 100)},
            )


def _of_probabilities(rng: np.random.Generator, truth: Any, number: int) -> EvaluationRecord:
    outputs = rng.dirichlet(np.full(10, 0.5), SAMPLES).round(4)
    outputs[:, 9] = 1 - outputs[:, :9].sum(axis=1)
    outputs = np.abs(outputs) / np.abs(outputs).sum(axis=1, keepdims=True)
    predicted = outputs.argmax(axis=1)
    counts = np.zeros((10, 10), dtype=np.int64)
    np.add.at(counts, (truth, predicted), 1)
    samples = Samples(truth, predicted, outputs, ids=np.arange(SAMPLES))
    source = MatrixInput("probabilities", LABELS, None, Content.counts, counts, samples=samples)
    return EvaluationRecord(
        id=new_id(),
        model=ModelRef(f"soft {number % 20}", "1"),
        dataset=DatasetRef("soft"),
        kind=source.kind,
        labels=LABELS,
        content=source.content,
        counts=counts,
        revision=catalogue().revision,
        values=evaluate(source, OPTIONS).values,
        samples=samples,
    )


@dataclass
class Neighbour:
    """Somebody in another project, who stores one and lists some, again and again."""

    store: PostgresEvaluationStore
    waits: list[float] = field(default_factory=list)

    @asynccontextmanager
    async def at_work(self) -> AsyncIterator[None]:
        self.waits = []
        task = asyncio.create_task(self._work())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.wait([task])

    async def _work(self) -> None:
        record = next(record for record in make_records(2, 2) if record.samples is None)
        while True:
            begun = time.perf_counter()
            await self.store.add(NEIGHBOUR, replace(record, id=new_id()))
            await self.store.page(NEIGHBOUR, EvaluationQuery(sort_metric="h_mean", limit=20))
            self.waits.append(time.perf_counter() - begun)
            await asyncio.sleep(PAUSE)

    def told(self) -> str:
        waits = sorted(self.waits)
        p50, p99, most = (1e3 * waits[int(share * (len(waits) - 1))] for share in (0.5, 0.99, 1.0))
        return f"{p50:.1f} / {p99:.1f} / {most:.0f}"


async def prevail(url: str, *arguments: str) -> str:
    """Run a command as a process of its own."""
    environment = os.environ | {"PREVAIL_DATABASE_URL": url}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "app", *arguments),
        env=environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await process.communicate()
    if process.returncode:
        raise RuntimeError(f"prevail {arguments[0]} ended with {process.returncode}: {out.decode()}{err.decode()}")
    return out.decode().strip()


async def digests(store: PostgresEvaluationStore) -> dict[str, str]:
    """Of every list, page by page: all evaluations with all that lists say of them, their order by some metrics, what
    filters let pass, models, datasets, leaderboards; and of the samples of every hundredth evaluation.
    """
    found: dict[str, str] = {}
    identifiers: list[UUID] = []
    whole = sha256()
    async for item in _listed(store, EvaluationQuery()):
        whole.update(repr(item).encode())
        identifiers.append(item.id)
    found["all"] = whole.hexdigest()
    for name, query in LISTS.items():
        order = sha256()
        async for item in _listed(store, query):
            order.update(item.id.bytes + repr(item.metrics.get(query.sort_metric or "")).encode())
        found[name] = order.hexdigest()
    for name, noun in (("models", store.models), ("datasets", store.datasets)):
        listed = sha256()
        place: Any = None
        while True:
            page: Any = await noun(MOVED, 200, place)
            listed.update(repr(page.items).encode())
            place = page.next_position
            if place is None:
                break
        found[name] = listed.hexdigest()
    boards = sha256()
    for number in range(7):
        dataset = DatasetRef(f"dataset {number}")
        board = await store.leaderboard(MOVED, dataset, "h_mean", limit=100, higher_is_better=True)
        boards.update(repr([(one.rank, one.value, one.evaluation.id) for one in board]).encode())
    found["leaderboards"] = boards.hexdigest()
    samples = sha256()
    for identifier in identifiers[::100]:
        kept = await store.read_samples(MOVED, identifier)
        if kept is not None:
            samples.update(kept.truth.tobytes() + kept.predicted.tobytes())
            samples.update(b"" if kept.outputs is None else kept.outputs.tobytes())
    found["samples"] = samples.hexdigest()
    return found


async def _listed(store: PostgresEvaluationStore, query: EvaluationQuery) -> AsyncIterator[EvaluationSummary]:
    after: Position | None = None
    while True:
        page = await store.page(MOVED, replace(query, limit=PAGE, after=after))
        for item in page.items:
            yield item
        after = page.next_position
        if after is None:
            return


async def run(rows: int, samples_every: int, url: str, folder: Path) -> None:
    load = os.getloadavg()[1]
    engine: AsyncEngine = create_engine(url, pool_size=6)
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    await store.prepare([metric.key for metric in catalogue().reported.of_scope(Scope.OVERALL)])
    begun = time.perf_counter()
    waiting: list[Awaitable[None]] = []
    for record in make_records(rows, samples_every):
        waiting.append(store.add(MOVED, record))
        if len(waiting) == 64:
            await asyncio.gather(*waiting)
            waiting = []
    await asyncio.gather(*waiting)
    loaded = time.perf_counter() - begun
    begun = time.perf_counter()
    before = await digests(store)
    listing = time.perf_counter() - begun
    neighbour = Neighbour(store)
    lines = []

    async def timed(name: str, work: Awaitable[Any]) -> Any:
        async with neighbour.at_work():
            start = time.perf_counter()
            found = await work
            seconds = time.perf_counter() - start
        rate = f"{rows / seconds:,.0f}" if name != IDLE else ""
        lines.append(f"| {name} | {seconds:.1f} | {rate} | {neighbour.told()} |")
        return found

    await timed(IDLE, asyncio.sleep(10))
    await timed("export", prevail(url, "export", str(folder), "--project", MOVED))
    inventory = InventoryService(PostgresInventory(engine))
    removed = await timed("drop", inventory.remove(MOVED, EvaluationQuery(), dry_run=False))
    assert removed.evaluations == rows, removed
    assert (await store.page(MOVED, EvaluationQuery())).items == ()
    await timed("import", prevail(url, "import", str(folder)))
    await timed("import again", prevail(url, "import", str(folder)))
    verdict = await timed("check", prevail(url, "check", "--project", MOVED))
    after = await digests(store)
    others = [name for name, found in before.items() if after[name] != found]
    await store.close()
    size = sum(path.stat().st_size for path in folder.iterdir())
    files = len(list(folder.iterdir()))
    most = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(
        f"{rows:,} evaluations, one in {samples_every} with samples; made and stored in {loaded:.0f} s, listed in all"
    )
    print(f"{len(before)} ways in {listing:.0f} s. The export has {size / 1e6:.0f} MB in {files} files;")
    print(f"the largest process took {most:.0f} MB. Load of the machine before: {load:.1f}.\n")
    print("| what runs | seconds | evaluations per second | a neighbour waits, ms p50 / p99 / most |")
    print("| --- | ---: | ---: | ---: |")
    print("\n".join(lines))
    print(f"\nEvery list as before: {f'NO: {others}' if others else 'yes'}. {verdict}")
    if others:
        raise SystemExit(1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--samples-every", type=int, default=10)
    chosen = parser.parse_args()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prevail-transfer-")))
        server = stack.enter_context(EmbeddedPostgres.start(folder / "data", durable=True))
        server.create_database()
        url = normalize_database_url(server.dsn())
        upgrade(SecretStr(url), "head")
        asyncio.run(run(chosen.rows, chosen.samples_every, url, folder / "export"))


if __name__ == "__main__":
    main()
