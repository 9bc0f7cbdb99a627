"""Rows beyond memory in files: their limits, what is said when these are reached, and that nobody leaves any."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from app.domain.errors import InvalidInput, SpillFull
from app.outbound.duckdb_rows import DuckEngine, spill_folder
from app.services.processes.worker import progressed, tell_progress

SCHEMA = pa.schema([("p", pa.float64()), ("q", pa.float64())])
BATCH = 1 << 17


def batches(count: int) -> Iterator[pa.RecordBatch]:
    random = np.random.default_rng(0)
    for done in range(count):
        yield pa.record_batch({"p": random.random(BATCH), "q": random.random(BATCH)}, SCHEMA)
        progressed(done + 1, count)


def test_rows_take_no_more_room_than_they_may(tmp_path: Path) -> None:
    with DuckEngine(64 << 20, 16 << 20, 2).opened(tmp_path) as engine, pytest.raises(SpillFull, match="SPILL_BYTES"):
        engine.take(SCHEMA, batches(120))
    assert not [*tmp_path.iterdir()]


@pytest.mark.slow
def test_an_order_takes_no_more_room_than_it_may(tmp_path: Path) -> None:
    with DuckEngine(64 << 20, 64 << 20, 1).opened(tmp_path) as engine:
        rows = engine.take(SCHEMA, batches(24)).having(q="unnest(range(24))::DOUBLE", r="random()", s="random()")
        with pytest.raises(SpillFull):
            [*rows.ordered("p", columns=["p", "q", "r", "s"])]
    assert not [*tmp_path.iterdir()]


def test_orders_that_are_written_take_no_more_room_together_than_they_may(tmp_path: Path) -> None:
    with DuckEngine(64 << 20, 14 << 20, 2).opened(tmp_path) as engine:
        rows = engine.take(SCHEMA, batches(4)).having(r="p")
        first = rows.sorted("p DESC", columns=["p", "q"])
        with pytest.raises(SpillFull):
            rows.sorted("q DESC", columns=["p", "q"])
        # What did not end is gone, and so is what nobody holds any more.
        assert sum(batch["p"].size for batch in first.batches()) == 4 * BATCH
        del first
        rows.sorted("q DESC", columns=["p", "q"])
    assert not [*tmp_path.iterdir()]


def test_what_making_the_rows_raises_is_raised(tmp_path: Path) -> None:
    def failing() -> Iterator[pa.RecordBatch]:
        yield from batches(3)
        raise InvalidInput.at("/data", "bad_weight", "row 7")

    with DuckEngine(64 << 20, threads=2).opened(tmp_path) as engine, pytest.raises(InvalidInput, match="row 7"):
        engine.take(SCHEMA, failing())


def test_progress_of_making_the_rows_is_heard(tmp_path: Path) -> None:
    told: list[float] = []
    tell_progress(told.append)
    try:
        with DuckEngine(64 << 20, threads=2).opened(tmp_path) as engine:
            engine.take(SCHEMA, batches(4))
    finally:
        tell_progress(None)
    assert told == [0.25, 0.5, 0.75, 1.0]


OWNER = """
import sys, time
from pathlib import Path
from app.outbound.duckdb_rows import spill_folder
with spill_folder(Path(sys.argv[1])) as own:
    (own / "rows").write_text("rows")
    print(own, flush=True)
    time.sleep(600)
"""


def test_files_of_a_process_that_was_killed_are_gone_when_another_starts(tmp_path: Path) -> None:
    def started() -> tuple[subprocess.Popen[str], Path]:
        process = subprocess.Popen([sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert process.stdout is not None
        return process, Path(process.stdout.readline().strip())

    (killed, left), (alive, used) = started(), started()
    try:
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        assert (left / "rows").exists()
        with spill_folder(tmp_path) as own:
            assert not left.exists()
            assert (used / "rows").read_text() == "rows"
        assert not own.exists()
    finally:
        for process in (killed, alive):
            process.kill()
            process.communicate()


def test_what_a_lock_leads_to_stays_as_it_is(tmp_path: Path) -> None:
    """Whoever may make folders for temporary files may have been here before."""
    other, folder = tmp_path / "other", tmp_path / "folder"
    other.write_text("another's")
    folder.mkdir()
    (folder / "lock").symlink_to(other)
    with spill_folder(folder) as own:
        assert own.exists()
    assert other.read_text() == "another's"
