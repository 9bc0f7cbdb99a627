"""One reference folded by one process and by workers of Dask: run with ``python -m benchmarks.cluster``.

Rows of two classes with probabilities lie in files of Parquet, a million in each. They are evaluated as a job does it,
from the files to the report, in a process of its own; the scheduler and the workers are processes of this machine too,
and have their imports behind them when the time begins. Every answer has to be that of one process, bit for bit.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import operator
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pyarrow as pa
import pyarrow.parquet

from app.api.answers import write_json
from app.api.bodies.referenced import Asked, PartsOfData
from app.api.v1.requests.referenced import folded_apart, with_parts
from app.domain.data import DataFormat, DataReference
from app.outbound.cluster.dask_cluster import DaskCluster
from app.outbound.cluster.local import local_scheduler
from app.outbound.data.places import DataPlaces
from app.services.evaluate.apart import evaluate_alone
from app.services.ports.cluster import Workers
from benchmarks.folds import calibrated

LABELS = ["0", "1"]
COLUMNS = {"y_true": "y", "probabilities": ["p0", "p1"]}


class Found(NamedTuple):
    """The answer, seconds, seconds of all processors, and bytes that the process took where all comes together."""

    answer: Any
    seconds: float
    cpu: float
    memory: int


def write(folder: Path, rows: int) -> None:
    """Parts of Parquet: classes and calibrated probabilities."""
    for number, (y, one) in enumerate(calibrated(rows)):
        pyarrow.parquet.write_table(pa.table({"y": y, "p0": 1.0 - one, "p1": one}), folder / f"{number:05}.parquet")


def evaluated(folder: Path, memory: int, workers: int) -> Found:
    """The report of all rows; 0 workers: this process alone."""
    asked = Asked(DataReference(str(folder), DataFormat.PARQUET, COLUMNS), "probabilities", LABELS, memory)
    data = {"uri": str(folder), "format": "parquet", "columns": COLUMNS}
    body = json.dumps({"input": {"kind": "probabilities", "labels": LABELS, "data": data}}).encode()
    places = DataPlaces((str(folder),))
    with ExitStack() as stack, tempfile.TemporaryDirectory(dir=folder.parent) as spilled:
        chosen: Workers | None = None
        if workers:
            chosen = stack.enter_context(DaskCluster(stack.enter_context(local_scheduler(workers))).connected())
            first = PartsOfData(places, asked)
            warm = partial(folded_apart, body, first.reading, first.pieces[0])
            for _ in chosen.in_order(operator.call, [warm] * 2 * workers):
                pass
        cpu, start = used(), time.perf_counter()
        parts = PartsOfData(places, asked)
        new = with_parts(body, parts, chosen, budget=memory // 2, folder=Path(spilled))
        answer = json.loads(write_json(evaluate_alone(new, None)[0]))
        seconds = time.perf_counter() - start
        status = Path("/proc/self/status").read_text()
        return Found(answer, seconds, used() - cpu, int(status.partition("VmHWM:")[2].split()[0]) * 1024)


def used() -> float:
    """Seconds of the processor of this process and all that it has started."""
    this = psutil.Process()
    times = [one.cpu_times() for one in [this, *this.children(recursive=True)]]
    return float(sum(one.user + one.system for one in times))


def alone(folder: Path, memory: int, workers: int) -> Found:
    """The same in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(evaluated, folder, memory, workers).result()


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--memory", type=int, default=1024, help="MiB, PREVAIL_DATA_MEMORY_BYTES")
    parser.add_argument("--folder", type=Path, help="where files are made; a temporary one of the system otherwise")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as root:
        folder = Path(root) / "parts"
        folder.mkdir()
        write(folder, given.rows)
        print(f"{given.rows:,} rows, two classes; {os.cpu_count()} processors for all processes together.\n")
        print("| | seconds | of the processors | million rows a second | times one process | memory, MiB | same bits |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | --- |")
        first: Found | None = None
        same = True
        for name, workers in (("one process", 0), ("2 workers", 2), ("4 workers", 4)):
            found = alone(folder, given.memory << 20, workers)
            first = first or found
            equal = found.answer == first.answer
            same = same and equal
            speed, times = given.rows / found.seconds / 1e6, first.seconds / found.seconds
            print(
                f"| {name} | {found.seconds:.1f} | {found.cpu:.1f} | {speed:.2f} | {times:.2f} | "
                f"{found.memory / 2**20:,.0f} | {'yes' if equal else 'no'} |",
                flush=True,
            )
    if not same:
        print("answers differ", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
