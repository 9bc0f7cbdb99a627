"""Data beyond memory: python -m benchmarks.beyond_memory --rows 20000000.

Whole reports of Parquet files by reference, as jobs make them, with one engine of 600 MiB: plain, with weights, in
100,000 groups, of ten classes (a twentieth of the rows), and two runs compared by id (a quarter of the rows); scores in
a file for each of 30 days, reported one by one, read as one, and merged. Beside them the area alone by polars, by SQL
in DuckDB, and by scikit-learn. Each in a process of its own, one after the other,
in rounds; medians. Where the machine has other work, compare seconds of the processor.
"""

import argparse
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from multiprocessing.queues import Queue
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.api.bodies.referenced import Asked, NamedRows, Reading
from app.api.v1.evaluations.referenced import each_part_again, new_evaluation
from app.api.v1.requests.referenced import each_part, streamed
from app.api.v1.reread import DataAgain
from app.domain.data import DataFormat, DataReference
from app.domain.identifiers import new_id
from app.outbound.data import DataPlaces
from app.outbound.duckdb_rows import DuckEngine
from app.services.compare.comparisons import AskedComparison, NewComparison, compare_again, understood
from app.services.compare.elsewhere import Rereading
from app.services.evaluate.evaluations import evaluate_alone
from app.services.runs.aligned import Runs
from app.services.runs.pairing import KeptSamples, PairingMode
from app.services.stored import unkept_record

MEMORY, GROUPS, DAYS = 600 << 20, 100_000, 30
_TOGETHER = 1 << 20
METRICS = ("accuracy", "log_loss", "brier_score", "roc_auc@1")


def write(place: Path, rows: int, classes: int, seed: int) -> None:
    """A file of probabilities that know something, with weights, groups and ids."""
    truth, random = np.random.default_rng(1), np.random.default_rng(seed)
    writer = None
    for start in range(0, rows, _TOGETHER):
        size = min(_TOGETHER, rows - start)
        y = truth.integers(0, classes, size)
        logits = random.normal(size=(size, classes)) + 1.2 * np.eye(classes)[y]
        shares = np.exp(logits)
        shares /= shares.sum(axis=1, keepdims=True)
        shares[:, 0] = 1.0 - shares[:, 1:].sum(axis=1)
        table = pa.table(
            {
                "y": y.astype(np.int8),
                **{f"p{code}": column for code, column in enumerate(shares.clip(0.0, 1.0).T)},
                "w": random.exponential(size=size),
                "g": random.integers(0, GROUPS, size),
                "id": np.arange(start, start + size),
            }
        )
        writer = writer or pq.ParquetWriter(place, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def _asked(file: Path, classes: int, **beside: str) -> tuple[DataPlaces, Asked]:
    outputs = {"probabilities": [f"p{code}" for code in range(classes)]}
    kind, named = ("scores", {"score": "p1"}) if classes == 1 else ("probabilities", outputs)
    columns = {"y_true": "y", **named, **beside}
    labels = [str(code) for code in range(max(classes, 2))]
    data = {"uri": str(file), "format": "parquet", "columns": columns}
    request = {"input": {"kind": kind, "labels": labels, "data": data}}
    reference = DataReference(str(file), DataFormat.PARQUET, columns)
    return DataPlaces((str(file.parent),)), Asked(reference, kind, labels, 1 << 30, request=request)


def _new(file: Path, classes: int, folder: Path, **beside: str) -> Any:
    source, asked = _asked(file, classes, **beside)
    return new_evaluation(Reading(source, DuckEngine(MEMORY), folder / "rows"), asked)


def report(file: Path, classes: int, folder: Path, **beside: str) -> None:
    """The default report."""
    evaluate_alone(_new(file, classes, folder, **beside), None)


def records(files: tuple[Path, Path], folder: Path) -> tuple[Any, ...]:
    """What is kept of two runs."""
    sources = [_new(file, 2, folder, sample_id="id").source for file in files]
    return tuple(replace(unkept_record(source), id=new_id()) for source in sources)


def pairs(kept: tuple[Any, ...], folder: Path) -> None:
    """Two runs compared by id; both are read again."""
    runs = Runs.align(kept)
    new = NewComparison(evaluations=tuple(one.id for one in kept), metrics=METRICS, paired=PairingMode.TRUE)
    asked = AskedComparison(new, runs, understood(new, runs), kept)
    source = DataPlaces((str(folder),))
    again = DataAgain(source, DuckEngine(MEMORY), folder / "rows")
    reading = Rereading(again, 128 << 20, folder / "rows", DuckEngine(MEMORY))
    compare_again(asked, KeptSamples(), reading, identifier=new_id())


def days(place: Path, folder: Path) -> tuple[Any, ...]:
    """What is kept of each day."""
    return tuple(unkept_record(_new(file, 1, folder).source) for file in sorted(place.iterdir()))


def each_day(place: Path, folder: Path) -> None:
    """The default report of each."""
    for file in sorted(place.iterdir()):
        report(file, 1, folder)


def read_alone(place: Path) -> None:
    """All rows of all days as the engine would take them, and nothing else."""
    for _ in each_part(NamedRows(*_asked(place / "*.parquet", 1))):
        pass


def merge(kept: tuple[Any, ...], place: Path, folder: Path) -> None:
    """The default report of all days; they are read again."""
    engine = DuckEngine(MEMORY)
    again = DataAgain(DataPlaces((str(place),)), engine, folder / "rows")
    evaluate_alone(streamed("scores", each_part_again(kept, again, {}), lambda _: {}, again, 1 << 29), None)


def by_polars(file: Path) -> None:
    """The area alone."""
    import polars as pl

    ranks = pl.scan_parquet(file).select(pl.col("p1").rank("average").alias("r"), "y").filter(y=1)
    ranks.select(pl.col("r").sum(), pl.len()).collect(engine="streaming")


def by_sql(file: Path) -> None:
    """The area alone."""
    import duckdb

    connection = duckdb.connect(config={"memory_limit": "8GB"})
    connection.sql(
        "SELECT sum(below + ties / 2.0) FILTER (y = 1) FROM (SELECT y, rank() OVER (ORDER BY p1) - 1 AS below, "
        f"count(*) OVER (PARTITION BY p1) - 1 AS ties FROM '{file}')"
    ).fetchall()


def by_scikit_learn(file: Path) -> None:
    """The area alone."""
    from sklearn.metrics import roc_auc_score

    table = pq.read_table(file, columns=["y", "p1"])
    roc_auc_score(table["y"].to_numpy(), table["p1"].to_numpy())


def _measured(work: Callable[[], None], found: "Queue[tuple[float, float, float]]") -> None:
    wall, own = time.perf_counter(), time.process_time()
    work()
    status = Path("/proc/self/status").read_text()
    peak = int(status.split("VmHWM:")[1].split()[0]) / 1024
    found.put((time.perf_counter() - wall, time.process_time() - own, peak))


def measure(work: Callable[[], None]) -> tuple[float, float, float] | None:
    """Seconds, those of the processor, and MiB at most, in a process of its own; None where it did not survive."""
    context = multiprocessing.get_context("spawn")
    found: Queue[tuple[float, float, float]] = context.Queue()
    process = context.Process(target=_measured, args=(work, found))
    process.start()
    process.join()
    return None if process.exitcode else found.get()


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="*")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="beyond-") as name:
        folder = Path(name)
        two, ten = folder / "two.parquet", folder / "ten.parquet"
        runs = (folder / "a.parquet", folder / "b.parquet")
        write(two, chosen.rows, 2, 2)
        write(ten, chosen.rows // 20, 10, 3)
        for seed, file in enumerate(runs):
            write(file, chosen.rows // 4, 2, 4 + seed)
        (month := folder / "month").mkdir()
        for day in range(DAYS):
            write(month / f"{day:02}.parquet", chosen.rows // DAYS, 2, 10 + day)
        cases: Mapping[str, tuple[int, Callable[[], None]]] = {
            "plain": (chosen.rows, partial(report, two, 2, folder)),
            "weights": (chosen.rows, partial(report, two, 2, folder, sample_weight="w")),
            "100,000 groups": (chosen.rows, partial(report, two, 2, folder, group_id="g")),
            "10 classes": (chosen.rows // 20, partial(report, ten, 10, folder)),
            "two runs by id": (chosen.rows // 4, partial(pairs, records(runs, folder), folder)),
            "30 days, one by one": (chosen.rows, partial(each_day, month, folder)),
            "30 days, read as one": (chosen.rows, partial(report, month / "*.parquet", 1, folder)),
            "30 days, merged": (chosen.rows, partial(merge, days(month, folder), month, folder)),
            "30 days, their reading alone": (chosen.rows, partial(read_alone, month)),
            "polars, area alone": (chosen.rows, partial(by_polars, two)),
            "DuckDB, area alone": (chosen.rows, partial(by_sql, two)),
            "scikit-learn, area alone": (chosen.rows, partial(by_scikit_learn, two)),
        }
        cases = {case: one for case, one in cases.items() if not chosen.only or case in chosen.only}
        measured: dict[str, list[tuple[float, float, float]]] = {case: [] for case in cases}
        for _ in range(chosen.rounds):
            for case, (_, work) in cases.items():
                found = measure(work)
                measured[case] += [] if found is None else [found]
        print("| | rows | seconds | of the processor | most memory, MiB |\n| --- | ---: | ---: | ---: | ---: |")
        for case, (rows, _) in cases.items():
            if not measured[case]:
                print(f"| {case} | {rows:,} | did not survive | | |")
                continue
            wall, own, peak = (statistics.median(one) for one in zip(*measured[case], strict=True))
            print(f"| {case} | {rows:,} | {wall:.1f} | {own:.1f} | {peak:,.0f} |")


if __name__ == "__main__":
    main()
