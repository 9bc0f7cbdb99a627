"""Work in processes of their own: what ends one costs its own request, and nothing else."""

import asyncio
import io
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO
from uuid import UUID

import numpy as np
import pyarrow.parquet
import pytest

from app.domain.errors import DeadlinePassed, Fault, InvalidInput, NotEnoughMemory, Overloaded, ProcessLost
from app.domain.operations import Actor
from app.services.present import act_as
from app.services.processes.compute import ComputePool
from app.services.processes.worker import Limits, Worker, progressed, tell_progress

SECONDS = 3.0


def pool_of(processes: int, limits: Limits, *, wait_seconds: float = 60.0) -> ComputePool:
    """With the modules of the service: all pools of a test run share the process that theirs are forked from."""
    return ComputePool(processes, limits, wait_seconds=wait_seconds)


@pytest.fixture(scope="module")
def pool() -> Iterator[ComputePool]:
    made = pool_of(2, Limits(seconds=SECONDS, memory_bytes=256 * 1024 * 1024))
    yield made
    made.close()


def run(work: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
    return asyncio.run(work())


def size_of(file: BinaryIO) -> int:
    file.seek(0)
    return len(file.read())


def refuse() -> None:
    raise InvalidInput([Fault("/input/matrix/0", "not_square", "expected 2"), Fault("/b", "c", "d")])


def take(n_bytes: int) -> int:
    # Written to, or no memory would be taken.
    return int(np.ones(n_bytes, dtype=np.uint8).sum())


def reserved_by_arrow() -> int:
    """Bytes that count towards the limit, and that columns of a few texts take."""
    before = _counted_bytes()
    pyarrow.parquet.write_table(pyarrow.table({"y_true": ["a", "b"]}), io.BytesIO())
    return _counted_bytes() - before


def _counted_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[5]) * os.sysconf("SC_PAGE_SIZE")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def in_steps() -> str:
    for done in range(5):
        progressed(done, 4)
    return "done"


_FORKED_FROM_HERE = """
import json, os, pickle, string, sys, tempfile
from pathlib import Path
from app.services.processes.worker import Limits, Worker, fork_from_here

def in_compute():
    return string.marked, sorted(str(each.resolve()) for each in Path("/proc/self/fd").iterdir())

if __name__ == "__main__":
    string.marked = "imported once"
    with tempfile.NamedTemporaryFile() as held:
        fork_from_here()
        for _ in range(2):
            worker = Worker(Limits(10, 1 << 28))
            marked, opened = worker.call(pickle.dumps(in_compute), None)
            worker.close()
            print(json.dumps([marked, held.name in opened]))
"""


def test_compute_processes_share_what_their_service_has_imported_and_hold_none_of_its_files(tmp_path: Path) -> None:
    script = tmp_path / "service.py"
    script.write_text(_FORKED_FROM_HERE)
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60)
    assert (ran.stdout.splitlines(), ran.stderr) == (['["imported once", false]'] * 2, "")


_BEGUN = """
import multiprocessing, os
from app.services.processes.worker import begin_forking

if __name__ == "__main__":
    begin_forking()
    process = multiprocessing.get_context("forkserver").Process(target=os.system, args=("echo $OPENBLAS_NUM_THREADS",))
    process.start()
    process.join()
    print(os.environ.get("OPENBLAS_NUM_THREADS"))
"""


@pytest.mark.slow
def test_compute_processes_have_one_thread_of_numpy_each_and_their_owner_keeps_its_own(tmp_path: Path) -> None:
    script = tmp_path / "owner.py"
    script.write_text(_BEGUN)
    free = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    ran = subprocess.run([sys.executable, script], capture_output=True, text=True, check=True, timeout=60, env=free)
    assert ran.stdout.split() == ["1", "None"]


def test_how_far_it_is_is_told_to_who_wants_to_know(pool: ComputePool) -> None:
    told: list[float] = []

    async def watched() -> str:
        tell_progress(told.append)
        return await pool.run(in_steps)

    assert run(watched) == "done"
    # Not every step, but what is told comes in order.
    assert told[0] == 0.0
    assert told == sorted(told)
    assert run(lambda: pool.run(in_steps)) == "done"


def test_a_result_is_that_of_the_function(pool: ComputePool) -> None:
    values = np.arange(1_000_000.0)
    assert run(lambda: pool.run(partial(np.sum, values))) == values.sum()
    assert run(lambda: pool.run(os.getpid)) != os.getpid()


def test_a_file_without_a_name_is_read_there(pool: ComputePool) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(b"x" * 300_000)
        file.flush()
        assert run(lambda: pool.run(size_of, file)) == 300_000


def test_what_is_raised_there_is_raised_here(pool: ComputePool) -> None:
    with pytest.raises(InvalidInput) as caught:
        run(lambda: pool.run(refuse))
    assert [fault.pointer for fault in caught.value.faults] == ["/input/matrix/0", "/b"]
    assert caught.value.pointer == "/input/matrix/0"
    assert "in refuse" in "".join(caught.value.__notes__)


def test_nobody_waits_for_ever_for_an_iterator_that_ends(pool: ComputePool) -> None:
    with pytest.raises(RuntimeError, match="StopIteration"):
        run(lambda: asyncio.wait_for(pool.run(partial(next, iter(()))), 10 * SECONDS))


def test_reading_a_small_file_leaves_the_memory_for_others(pool: ComputePool) -> None:
    assert run(lambda: pool.run(reserved_by_arrow)) < 128 * 1024 * 1024


def test_too_much_memory_is_the_fault_of_the_request(pool: ComputePool) -> None:
    with pytest.raises(NotEnoughMemory, match="256 MiB"):
        run(lambda: pool.run(partial(take, 400_000_000)))
    assert run(lambda: pool.run(partial(take, 100_000_000))) == 100_000_000


def test_a_process_that_has_grown_is_not_used_again() -> None:
    alone = pool_of(1, Limits(seconds=60, memory_bytes=512 * 1024 * 1024))
    try:
        first = run(lambda: alone.run(os.getpid))
        assert run(lambda: alone.run(os.getpid)) == first
        run(lambda: alone.run(partial(take, 200_000_000)))
        assert run(lambda: alone.run(os.getpid)) != first
    finally:
        alone.close()


@pytest.mark.slow
def test_too_long_is_ended(pool: ComputePool) -> None:
    before = time.monotonic()
    with pytest.raises(DeadlinePassed, match="3 seconds"):
        run(lambda: pool.run(partial(time.sleep, 60)))
    assert SECONDS <= time.monotonic() - before < 20


def test_a_process_that_ends_costs_nobody_else(pool: ComputePool, caplog: pytest.LogCaptureFixture) -> None:
    async def work() -> list[Any]:
        jobs = [pool.run(partial(time.sleep, 0.5)), pool.run(die), pool.run(os.getpid)]
        return list(await asyncio.gather(*jobs, return_exceptions=True))

    slept, died, answered = run(work)
    assert slept is None
    assert isinstance(died, ProcessLost)
    assert isinstance(answered, int)
    assert "exit code -9" in caplog.text


def test_nobody_computes_for_one_who_is_gone(pool: ComputePool) -> None:
    with tempfile.NamedTemporaryFile() as mark:

        async def work() -> int:
            job = asyncio.ensure_future(pool.run(partial(_note_and_sleep, mark.name)))
            while not (noted := Path(mark.name).read_text()):
                await asyncio.sleep(0.01)
            job.cancel()
            with pytest.raises(asyncio.CancelledError):
                await job
            return int(noted)

        process = run(work)
        _wait_for(lambda: not _is_alive(process))


@pytest.mark.parametrize(("wait_seconds", "refused"), [(0.0, 29), (60.0, 0)])
def test_work_is_refused_for_the_time_it_waits_and_not_for_how_much_waits(wait_seconds: float, refused: int) -> None:
    alone = pool_of(1, Limits(seconds=60, memory_bytes=2**28), wait_seconds=wait_seconds)

    async def work() -> list[Any]:
        return await asyncio.gather(*(alone.run(partial(time.sleep, 0.02)) for _ in range(30)), return_exceptions=True)

    try:
        ends = run(work)
    finally:
        alone.close()
    assert sum(isinstance(end, Overloaded) and end.retry_after == 5 for end in ends) == refused
    assert ends.count(None) == 30 - refused


def test_a_pool_that_is_closed_leaves_no_process() -> None:
    alone = pool_of(1, Limits(seconds=60, memory_bytes=2**28))
    process = run(lambda: alone.run(os.getpid))
    thread = threading.Thread(target=alone.close)
    thread.start()
    thread.join(5)
    assert not thread.is_alive()
    _wait_for(lambda: not _is_alive(process))


def test_a_pool_that_is_closed_ends_what_is_at_work() -> None:
    alone = pool_of(1, Limits(seconds=60, memory_bytes=2**28))
    with tempfile.NamedTemporaryFile() as mark:

        async def work() -> int:
            job = asyncio.ensure_future(alone.run(partial(_note_and_sleep, mark.name)))
            while not (noted := Path(mark.name).read_text()):
                await asyncio.sleep(0.01)
            alone.close()
            with pytest.raises(ProcessLost):
                await job
            return int(noted)

        before = time.monotonic()
        process = run(work)
        _wait_for(lambda: not _is_alive(process))
    assert time.monotonic() - before < 30


def _note_and_sleep(path: str) -> None:
    Path(path).write_text(str(os.getpid()))
    time.sleep(60)


def _is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_many_pieces_of_one_request_wait_for_each_other_and_leave_room() -> None:
    pool = pool_of(2, Limits(seconds=20, memory_bytes=2**28))

    async def work() -> tuple[list[int], list[int]]:
        ends: list[int] = []

        async def piece(index: int) -> int:
            found = await pool.run_in_turn(partial(_after, 0.05, index))
            ends.append(found)
            return found

        # More than may wait in the pool at once.
        pieces = asyncio.gather(*(piece(index) for index in range(30)))
        await asyncio.sleep(0.1)
        ends.append(await pool.run(partial(_after, 0.0, -1)))
        return await pieces, ends

    with closing(pool):
        pieces, ends = run(work)
    assert pieces == list(range(30))
    assert ends.index(-1) < 29


def test_a_piece_has_the_process_that_is_left_for_others_and_nobody_waits_for_it(tmp_path: Path) -> None:
    pool = pool_of(2, Limits(seconds=20, memory_bytes=2**28))

    async def work() -> list[int]:
        # They end when all three are at work side by side.
        pieces = [asyncio.create_task(pool.run_piece(partial(_meet, tmp_path, name))) for name in "ab"]
        third = asyncio.create_task(pool.run_piece(partial(_after, 0.0, 1)))
        while pool.running < 2:
            await asyncio.sleep(0.01)
        before = [pool.running]
        await pool.run(partial(_meet, tmp_path, "c"))
        await asyncio.gather(*pieces, third)
        return [*before, pool.running]

    with closing(pool):
        assert run(work) == [2, 0]


def _meet(folder: Path, name: str) -> None:
    (folder / name).touch()
    _wait_for(lambda: {one.name for one in folder.iterdir()} == {"a", "b", "c"})


def _after(seconds: float, value: int) -> int:
    time.sleep(seconds)
    return value


def test_work_ends_with_the_service_that_wanted_it() -> None:
    worker = Worker(Limits(seconds=600, memory_bytes=1 << 30))
    worker._line.send_bytes(pickle.dumps(partial(time.sleep, 600)))
    worker._line.send((False, False))
    # As when the service is killed.
    worker._line.close()
    worker._process.join(120)
    assert worker._process.exitcode == -signal.SIGKILL


@pytest.mark.parametrize("processes", [1, 2])
def test_no_project_takes_the_processes_of_all(processes: int, tmp_path: Path) -> None:
    gate = tmp_path / "open"

    async def of(project: str, work: Callable[[], Any]) -> Any:
        act_as(Actor("key", UUID(int=1)), project)
        return await made.run(work)

    async def crowd() -> tuple[int, str]:
        many = [asyncio.create_task(of("many", partial(wait_for, gate))) for _ in range(8)]
        while made.running == 0:
            await asyncio.sleep(0.01)
        one = asyncio.create_task(of("one", in_steps))
        if processes == 1:
            # Its turn comes after the computation that runs, before the seven others.
            while made.waiting < 8:
                await asyncio.sleep(0.01)
            gate.touch()
        answer = await one
        left = sum(not task.done() for task in many)
        gate.touch()
        assert await asyncio.gather(*many) == [True] * 8
        return left, answer

    with closing(pool_of(processes, Limits(60.0, 256 * 1024 * 1024))) as made:
        left, answer = run(crowd)
    assert answer == "done"
    assert left >= 6


def wait_for(gate: Path) -> bool:
    while not gate.exists():
        time.sleep(0.01)
    return True
