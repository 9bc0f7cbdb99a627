"""Two runs of predictions in Parquet joined by sample id: run with ``python -m benchmarks.pairs``.

The rows of the second run stand in another order than those of the first; ids are whole numbers, or texts like UUIDs.
Each way has a process of its own, and its most memory is what the system says (VmHWM). Beside what joins in parts
with the memory that it is given: pyarrow's hash join of both tables in memory, and reading the columns alone. Joint
counts have to agree.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import pickle
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet

from app.api.bodies.referenced import Asked, read_data
from app.api.v1.reread import DataAgain
from app.domain.data import DataFormat, DataReference
from app.domain.evaluation import EvaluationRecord
from app.domain.identifiers import new_id
from app.domain.inputs.confusion import BinaryCounts
from app.outbound.data.places import DataPlaces
from app.services.compare.elsewhere import Rereading
from app.services.compare.in_parts import pair_in_parts
from app.services.runs.aligned import Runs
from app.services.runs.reading import KeptSamples
from app.services.stored import unkept_record

PART = 1_000_000
_COLUMNS = {"y_true": "truth", "y_pred": "guess", "sample_id": "id"}
_COUNTED = {name: column for name, column in _COLUMNS.items() if name != "sample_id"}
Counts = list[list[int]]


class Found(NamedTuple):
    """Counts of truth and both predictions, with seconds of the processor and bytes."""

    counts: Counts | None
    seconds: float
    memory: int


def write(folder: Path, rows: int, *, texts: bool) -> None:
    """Two runs in parts, the second from the last id to the first, and within a part in any order."""
    random = np.random.default_rng(15)
    starts = [*range(0, rows, PART)]
    for run in range(2):
        (folder / str(run)).mkdir()
        for number, start in enumerate(starts if run == 0 else reversed(starts)):
            ids = np.arange(start, min(start + PART, rows))
            noise = np.random.default_rng([start, run]).random(ids.size)
            # What is true of an id is the same in both.
            truth = np.random.default_rng([start, 2]).integers(0, 2, ids.size)
            guess = np.where(noise < 0.8 + 0.05 * run, truth, 1 - truth)
            order = random.permutation(ids.size) if run else np.arange(ids.size)
            named = pa.array([f"00000000-0000-4000-8000-{one:012x}" for one in ids]) if texts else pa.array(ids)
            table = pa.table({"truth": truth, "guess": guess, "id": named}).take(pa.array(order))
            pa.parquet.write_table(table, folder / str(run) / f"{number:05}.parquet")


def record_of(folder: Path) -> EvaluationRecord:
    """What is kept of a run."""
    reference = DataReference(f"{folder}/*.parquet", DataFormat.PARQUET, _COUNTED)
    read = read_data(places(folder), Asked(reference, "predictions", None, 1 << 30))
    assert read.tally is not None
    cells = np.zeros((2, 2), dtype=np.int64)
    np.add.at(cells, (np.asarray(read.columns["y_true"]), np.asarray(read.columns["y_pred"])), read.tally.times)
    tn, fp, fn, tp = cells.ravel().tolist()
    source = BinaryCounts(tp=tp, fn=fn, fp=fp, tn=tn, negative="0", positive="1").read("")
    facts: Any = {"data": {**read.facts, "columns": _COLUMNS}}
    return replace(unkept_record(replace(source, kind="predictions", facts=facts)), id=new_id())


def places(folder: Path) -> DataPlaces:
    return DataPlaces((str(folder),))


def in_parts(folder: Path, memory: int) -> Counts:
    records = pickle.loads((folder / "records").read_bytes())  # noqa: S301 - written below
    with tempfile.TemporaryDirectory(dir=folder) as spilled:
        reading = Rereading(DataAgain(places(folder)), memory, Path(spilled))
        joint = pair_in_parts(reading, Runs.align(records), KeptSamples(), 1.0).pairing.joint
    assert joint is not None
    counts: Counts = np.column_stack([joint.truth, joint.predictions.T, joint.counts]).astype(np.int64).tolist()
    return counts


def by_arrow(folder: Path, _: int) -> Counts:
    first, second = (pa.dataset.dataset(folder / str(run)).to_table() for run in range(2))
    joined = first.join(second, keys="id", join_type="inner", right_suffix="_b", use_threads=False)
    names = ["truth", "guess", "guess_b"]
    counted = joined.group_by(names, use_threads=False).aggregate([([], "count_all")])
    found: Counts = np.column_stack([counted[name] for name in [*names, "count_all"]]).tolist()
    return sorted(found)


def read_alone(folder: Path, _: int) -> None:
    for run in range(2):
        for _batch in pa.dataset.dataset(folder / str(run)).to_batches(use_threads=False):
            pass


def measured(way: Callable[[Path, int], Counts | None], folder: Path, memory: int) -> Found:
    begun = time.process_time()
    counts = way(folder, memory)
    status = Path("/proc/self/status").read_text(encoding="ascii")
    most = next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]
    return Found(counts, time.process_time() - begun, int(most) << 10)


def apart(way: Callable[[Path, int], Counts | None], folder: Path, memory: int) -> Found:
    """In a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(measured, way, folder, memory).result()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--memory", type=int, default=64, help="MiB")
    asked = parser.parse_args(arguments)
    print(f"{asked.rows:,} rows a run; joined in parts with `PREVAIL_DATA_MEMORY_BYTES` of {asked.memory} MiB.\n")
    print("| ids | way | seconds of the processor | rows of both per second | most memory, MiB |")
    print("| --- | --- | ---: | ---: | ---: |")
    for texts in (False, True):
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name).resolve()
            write(folder, asked.rows, texts=texts)
            (folder / "records").write_bytes(pickle.dumps([record_of(folder / str(run)) for run in range(2)]))
            answers = []
            for title, way in (("reading alone", read_alone), ("in parts", in_parts), ("join of pyarrow", by_arrow)):
                found = apart(way, folder, asked.memory << 20)
                answers += [found.counts] if found.counts is not None else []
                kind = "texts of 36 characters" if texts else "integers"
                speed = 2 * asked.rows / found.seconds
                print(f"| {kind} | {title} | {found.seconds:.1f} | {speed:,.0f} | {found.memory / 2**20:,.0f} |")
            if answers[0] != answers[1]:
                sys.exit("joint counts differ")


if __name__ == "__main__":
    main()
