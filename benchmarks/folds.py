"""Probabilities of two classes folded from Parquet: run with ``python -m benchmarks.folds``.

Rows are written once, in parts of a million, and streamed by ``pyarrow.dataset`` in one or several passes; every pass
but the first multiplies the probabilities by another number, so that all scores differ and the order has as many. Each
way has a process of its own, and its most memory is what the system says (VmHWM). Beside the fold: reading alone, and
the AUC of scikit-learn (log loss too), polars and DuckDB of the rows that are in files, in memory up to a limit; who
does not survive that is asked for half of them, and half again. The last two are no part of the bench environment:
where they are not installed, they are left out. Areas of the same rows have to agree.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import resource
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet
from numpy.typing import NDArray

from app.kernel.folds.metrics import folded_values
from app.kernel.folds.scores import ScoresFold
from app.kernel.metrics.families.score_ranking import roc_auc

PART = 1_000_000
_SAME = 1e-11
_TOO_MUCH = "did not survive"
# Between the factors of two passes.
_STEP = 1e-6
Columns = tuple[NDArray[np.int8], NDArray[np.float64]]


class Asked(NamedTuple):
    """What is folded, and with how much memory."""

    folder: Path
    rows: int
    passes: int
    budget: int
    limit: int


class Found(NamedTuple):
    """An area, or None, with seconds, seconds of the processor, and bytes."""

    area: float | None
    seconds: float
    cpu: float
    memory: int


def calibrated(rows: int) -> Iterator[Columns]:
    """Classes and probabilities of class 1 that are right, a part after another."""
    for number, start in enumerate(range(0, rows, PART)):
        random = np.random.default_rng(number)
        one = random.beta(0.8, 2.0, min(PART, rows - start))
        yield (random.random(one.size) < one).astype(np.int8), one


def write(folder: Path, rows: int) -> None:
    """Parts of Parquet."""
    for number, (y, one) in enumerate(calibrated(rows)):
        pyarrow.parquet.write_table(pa.table({"y": y, "p": one}), folder / f"part-{number:05}.parquet")


def parts_of(asked: Asked) -> list[str]:
    """The first of the files, as many as it takes."""
    return [str(path) for path in sorted(asked.folder.iterdir())[: -(-asked.rows // PART)]]


def batches(asked: Asked) -> Iterator[Columns]:
    """All rows of all passes."""
    parts = pyarrow.dataset.dataset(parts_of(asked), format="parquet")
    for number in range(asked.passes):
        for batch in parts.to_batches(columns=["y", "p"]):
            one = batch.column("p").to_numpy()
            yield batch.column("y").to_numpy(), one if number == 0 else one * (1.0 - number * _STEP)


def read(asked: Asked) -> None:
    """Reading alone."""
    for _ in batches(asked):
        pass


def folded(asked: Asked) -> float:
    """Every metric that folds; what limits and curves are made of is gathered with them."""
    with (
        tempfile.TemporaryDirectory(dir=asked.folder.parent) as folder,
        ScoresFold(2, asked.budget, Path(folder)) as fold,
    ):
        for y, one in batches(asked):
            fold.add(y, one)
        return float(folded_values(fold.finish())[roc_auc.key][1])


def by_sklearn(asked: Asked) -> float:
    """AUC and log loss of everything in memory."""
    metrics: Any = import_module("sklearn.metrics")
    _limit(asked)
    y, one = (np.concatenate(column) for column in zip(*batches(asked), strict=True))
    metrics.log_loss(y, one)
    return float(metrics.roc_auc_score(y, one))


def by_polars(asked: Asked) -> float:
    """AUC by mean ranks."""
    polars: Any = import_module("polars")
    _limit(asked)
    rows = polars.scan_parquet(parts_of(asked)).with_columns(rank=polars.col("p").rank("average"))
    member = polars.col("y") == 1
    query = rows.select(polars.col("rank").filter(member).sum(), members=member.sum(), n=polars.len())
    total, members, n = query.collect().row(0)
    return float((total - members * (members + 1) / 2) / (members * (n - members)))


def by_duckdb(asked: Asked) -> float:
    """AUC by counts along the scores, which it sorts on disk where memory ends."""
    duckdb: Any = import_module("duckdb")
    with duckdb.connect(asked.folder.parent / "scores.duckdb") as connection:
        connection.sql(f"SET memory_limit = '{asked.limit // 2**20}MiB'; SET threads = {os.cpu_count()}")
        won, members, others = connection.sql(
            f"""
            WITH scores AS (
                SELECT p, sum(y) AS m, count(*) - sum(y) AS o FROM read_parquet({parts_of(asked)}) GROUP BY p
            ),
            along AS (SELECT m, o, sum(o) OVER (ORDER BY p ROWS UNBOUNDED PRECEDING) AS below FROM scores)
            SELECT sum(m * (below - o / 2.0)), sum(m), sum(o) FROM along
            """
        ).fetchall()[0]
    return float(won) / (float(members) * float(others))


def _limit(asked: Asked) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (asked.limit, asked.limit))


def measured(way: Callable[[Asked], float | None], asked: Asked) -> Found:
    """One way, in this process."""
    start, cpu = time.perf_counter(), time.process_time()
    area = way(asked)
    taken = time.perf_counter() - start, time.process_time() - cpu
    status = Path("/proc/self/status").read_text()
    return Found(area, *taken, int(status.partition("VmHWM:")[2].split()[0]) * 1024)


def alone(way: Callable[[Asked], float | None], asked: Asked) -> Found | str:
    """The same in a process of its own; a word where it did not come to an end."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        try:
            return pool.submit(measured, way, asked).result()
        except (MemoryError, BrokenProcessPool):
            return _TOO_MUCH
        except ModuleNotFoundError as missing:
            return f"{missing.name} is not installed"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000, help="in files")
    parser.add_argument("--passes", type=int, default=1, help="how often they are streamed")
    parser.add_argument("--budget", type=int, default=512, help="MiB for the order of the scores")
    parser.add_argument("--limit", type=int, default=8192, help="MiB for each of the others")
    parser.add_argument("--folder", type=Path, help="where files are made; a temporary one of the system otherwise")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        asked = Asked(Path(folder) / "parts", given.rows, 1, given.budget << 20, given.limit << 20)
        asked.folder.mkdir()
        write(asked.folder, given.rows)
        ways = [("reading alone", read, asked), ("fold", folded, asked)]
        if given.passes > 1:
            many = asked._replace(passes=given.passes)
            ways += [("reading alone", read, many), ("fold", folded, many)]
        ways += [
            ("scikit-learn, AUC and log loss", by_sklearn, asked),
            ("polars, AUC", by_polars, asked),
            ("DuckDB, AUC", by_duckdb, asked),
        ]
        print(f"Budget of the order of the scores {given.budget} MiB; the others have {given.limit} MiB.\n")
        print("| | rows | seconds | of the processor | million rows a second | most memory, MiB |")
        print("| --- | ---: | ---: | ---: | ---: | ---: |")
        areas = []
        while ways:
            name, way, one = ways.pop(0)
            rows, found = one.rows * one.passes, alone(way, one)
            if isinstance(found, str):
                print(f"| {name} | {rows:,} | {found} | | | |", flush=True)
                if found == _TOO_MUCH and one.rows > PART:
                    ways.insert(0, (name, way, one._replace(rows=max(one.rows // 2 // PART, 1) * PART)))
                continue
            speed, memory = rows / found.seconds / 1e6, found.memory / 2**20
            times = f"{found.seconds:.1f} | {found.cpu:.1f}"
            print(f"| {name} | {rows:,} | {times} | {speed:.2f} | {memory:,.0f} |", flush=True)
            if found.area is not None and one == asked:
                areas.append(found.area)
    if max(areas) - min(areas) > _SAME:
        print(f"areas differ: {areas}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
