"""Large probability matrices on their way in: python -m benchmarks.ingest.

Against FastAPI's default reading of a body (json.loads, then pydantic on nested lists), in CPU time; peak memory over
that of the process before; the CPU time of a whole request against scikit-learn's metrics alone; and whether other
requests are answered while such requests run on one worker. With --large also one request near the limit of a body
of JSON (64 MiB): memory and the waits of others.
"""

import argparse
import asyncio
import io
import json
import multiprocessing
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import httpx
import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet
from pydantic import BaseModel, SecretStr
from sklearn import metrics as sk

from app.api.answers import write_json
from app.api.bodies.parsing import parse_large_body
from app.api.bodies.uploads import read_columns
from app.api.v1.requests.evaluations import EvaluationRequest
from app.domain.inputs.classified import Probabilities
from app.domain.inputs.matrices import MatrixInput
from app.services.evaluate.evaluations import Evaluation
from app.services.evaluate.reports import evaluate
from app.settings import normalize_database_url

ROWS, CLASSES, ROUNDS = 100_000, 10, 9
SECONDS = 12
# Rows of a body just below the limit.
LARGE_ROWS = 700_000
_DEFAULT = "FastAPI's default"


class PlainInput(BaseModel):
    """What one would write first."""

    kind: str
    y_true: list[int]
    probabilities: list[list[float]]


class PlainRequest(BaseModel):
    """A body with that."""

    input: PlainInput


def make(rows: int = ROWS) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, CLASSES, rows)
    logits = rng.normal(0, 1, (rows, CLASSES)) + 2.0 * np.eye(CLASSES)[truth]
    weights = np.exp(logits)
    # Six decimals, as files of predictions have.
    whole = np.floor(weights / weights.sum(axis=1, keepdims=True) * 1e6)
    whole[:, 0] += 1e6 - whole.sum(axis=1)
    return truth, whole / 1e6


def make_body(truth: np.ndarray[Any, Any], matrix: np.ndarray[Any, Any]) -> bytes:
    source = {"kind": "probabilities", "y_true": truth, "probabilities": matrix}
    return orjson.dumps({"input": source}, option=orjson.OPT_SERIALIZE_NUMPY)


def read_default(body: bytes) -> np.ndarray[Any, Any]:
    return np.array(PlainRequest.model_validate(json.loads(body)).input.probabilities)


def read_ours(body: bytes) -> MatrixInput:
    source: MatrixInput = parse_large_body(body, EvaluationRequest).input.to_domain("/input")
    return source


def read_parquet(data: bytes) -> MatrixInput:
    return Probabilities(**read_columns(io.BytesIO(data), "probabilities", None)).read("/input")


def answer(body: bytes) -> bytes:
    new = parse_large_body(body, EvaluationRequest).to_domain()
    return write_json(Evaluation(report=evaluate(new.source, new.options)))


def judge_elsewhere(truth: np.ndarray[Any, Any], matrix: np.ndarray[Any, Any]) -> None:
    for scheme in ("ovr", "ovo"):
        sk.roc_auc_score(truth, matrix, multi_class=scheme)
    sk.average_precision_score(np.eye(CLASSES)[truth], matrix)
    sk.log_loss(truth, matrix)
    sk.classification_report(truth, matrix.argmax(axis=1))


def measure(candidates: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Median CPU seconds, in turns so that all meet the same machine."""
    times: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(ROUNDS):
        for name, run in candidates.items():
            start = time.process_time()
            run()
            times[name].append(time.process_time() - start)
    return {name: statistics.median(found) for name, found in times.items()}


def _peak(path: Path, results: Any) -> None:
    # What is imported and built at first use is no memory of this body.
    read_ours(make_body(*make(4000)))
    body = path.read_bytes()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    read_ours(body)
    results.put((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024)


def peak_memory(body: bytes) -> float:
    """Bytes beyond what the process had, the body not counted, in a process of its own.

    It gets the body as a file: unpickling would leave a higher peak than reading.
    """
    context = multiprocessing.get_context("forkserver")
    with tempfile.TemporaryDirectory(prefix="prevail-bench-") as folder:
        path = Path(folder) / "body.json"
        path.write_bytes(body)
        results = context.Queue()
        process = context.Process(target=_peak, args=(path, results))
        process.start()
        found: float = results.get(timeout=300)
        process.join()
    return found


class Waits(NamedTuple):
    """Of other requests, in seconds, and how many large ones were answered meanwhile."""

    median: float
    tail: float
    longest: float
    answered: int


def _send(path: Path, url: str, seconds: float | None, answered: Any) -> None:
    body = path.read_bytes()
    end = None if seconds is None else time.perf_counter() + seconds
    with httpx.Client(base_url=url, timeout=600, trust_env=False) as client:
        while True:
            reply = client.post("/v1/metrics/compute", content=body, headers={"Content-Type": "application/json"})
            reply.raise_for_status()
            with answered.get_lock():
                answered.value += 1
            if end is None or time.perf_counter() > end:
                return


def wait_of_others(body: bytes, url: str, *, senders: int, seconds: float | None) -> Waits:
    """Waits for /healthz while senders send the body, for some seconds or, without, until each is answered once.

    The senders are processes of their own, so that what is waited for is the server.
    """
    waits: list[float] = []
    context = multiprocessing.get_context("spawn")
    answered = context.Value("i", 0)

    async def ask(processes: list[multiprocessing.process.BaseProcess]) -> None:
        async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60) as client:
            while any(process.is_alive() for process in processes):
                start = time.perf_counter()
                (await client.get("/healthz")).raise_for_status()
                waits.append(time.perf_counter() - start)
                await asyncio.sleep(0.005)

    with tempfile.TemporaryDirectory(prefix="prevail-bench-") as folder:
        path = Path(folder) / "body.json"
        path.write_bytes(body)
        processes = [context.Process(target=_send, args=(path, url, seconds, answered)) for _ in range(senders)]
        for process in processes:
            process.start()
        # Until they have imported what they need.
        time.sleep(2)
        asyncio.run(ask([*processes]))
        for process in processes:
            process.join()
    waits.sort()
    return Waits(waits[len(waits) // 2], waits[int(len(waits) * 0.99)], waits[-1], answered.value)


@contextmanager
def served() -> Iterator[tuple[str, int]]:
    """Address and process id of the service as it is started, on an embedded Postgres."""
    from app.cli import upgrade
    from app.embedded import EmbeddedPostgres
    from app.embedded.cluster import free_port

    with tempfile.TemporaryDirectory(prefix="prevail-bench-", ignore_cleanup_errors=True) as folder:
        Path(folder).chmod(0o711)
        with EmbeddedPostgres.start(Path(folder) / "data", durable=False) as postgres:
            url = normalize_database_url(postgres.dsn("postgres"))
            upgrade(SecretStr(url), "head")
            port = free_port()
            settings = {"PREVAIL_DATABASE_URL": url, "PREVAIL_PORT": str(port)}
            command = [sys.executable, "-m", "app", "serve"]
            process = subprocess.Popen(command, env=os.environ | settings, stdout=subprocess.DEVNULL)
            address = f"http://127.0.0.1:{port}"
            try:
                _wait_until_alive(address)
                yield address, process.pid
            finally:
                process.terminate()
                process.wait()


def _wait_until_alive(address: str) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            httpx.get(f"{address}/healthz", trust_env=False)
        except httpx.TransportError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
        else:
            return


def family(process: int) -> list[int]:
    """A process and those that descend from it; Linux only."""
    found = [process]
    for one in found:
        for task in Path(f"/proc/{one}/task").glob("*/children"):
            with suppress(FileNotFoundError):
                found += map(int, task.read_text().split())
    return found


def memory_of(process: int) -> int:
    """Bytes that a process and its descendants hold, shared ones counted once."""
    total = 0
    for one in family(process):
        with suppress(OSError):
            (held,) = re.findall(r"^Pss:\s+(\d+) kB", Path(f"/proc/{one}/smaps_rollup").read_text(), re.MULTILINE)
            total += int(held) * 1024
    return total


def _cpu_seconds(process: int) -> float:
    """Of a process and its descendants, those that have ended included."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own = sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")
    return own + sum(_cpu_seconds(one) for one in family(process)[1:] if _parent(one) == process)


def _parent(process: int) -> int:
    return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])


class Peak:
    """The most memory that a family of processes holds while a block runs, beyond what it held before."""

    def __init__(self, process: int) -> None:
        self._process, self.before = process, memory_of(process)
        self.beyond = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def _look(self) -> None:
        while not self._over.wait(0.05):
            self.beyond = max(self.beyond, memory_of(self._process) - self.before)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def measure_large() -> None:
    """One request near the limit of a body."""
    body = make_body(*make(LARGE_ROWS))
    peak = peak_memory(body)
    print(f"{LARGE_ROWS:,} x {CLASSES}: JSON of {len(body) / 1e6:.0f} MB.\n")
    print(f"Read to a validated matrix: peak memory beyond the body {peak / len(body):.1f} times the body.")
    with served() as (url, process):
        small = make_body(*make(4000))
        httpx.post(f"{url}/v1/metrics/compute", content=small, headers={"Content-Type": "application/json"})
        start = _cpu_seconds(process)
        with Peak(process) as peak_of_all:
            waits = wait_of_others(body, url, senders=1, seconds=None)
        took = _cpu_seconds(process) - start
    print(
        f"Whole request, full report: {took:.1f} s of CPU, peak memory of all its processes beyond what they held "
        f"before {peak_of_all.beyond / 1e6:.0f} MB, {peak_of_all.beyond / len(body):.1f} times the body."
    )
    print(
        f"`/healthz` on the same worker meanwhile: median {1000 * waits.median:.1f} ms, "
        f"p99 {1000 * waits.tail:.1f} ms, longest {1000 * waits.longest:.0f} ms."
    )


def _post(client: httpx.Client, body: bytes) -> float:
    start = time.perf_counter()
    client.post("/v1/metrics/compute", content=body, headers={"Content-Type": "application/json"}).raise_for_status()
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--large", action="store_true", help="one request near the limit of a body too")
    large = parser.parse_args().large
    measure_usual()
    if large:
        print()
        measure_large()


def measure_usual() -> None:
    """A hundred thousand rows, against others."""
    truth, matrix = make()
    body = make_body(truth, matrix)
    sink = io.BytesIO()
    table = pa.table({"y_true": truth, **{str(code): matrix[:, code] for code in range(CLASSES)}})
    pa.parquet.write_table(table, sink, compression="zstd")
    data = sink.getvalue()
    found = measure(
        {
            _DEFAULT: lambda: read_default(body),
            "JSON": lambda: read_ours(body),
            "Parquet": lambda: read_parquet(data),
            "whole request": lambda: answer(body),
            "scikit-learn's metrics alone": lambda: judge_elsewhere(truth, matrix),
        }
    )
    print(f"{ROWS:,} x {CLASSES}: JSON of {len(body) / 1e6:.1f} MB, Parquet of {len(data) / 1e6:.1f} MB.\n")
    print(f"| bytes to a validated matrix, and more | CPU ms, median of {ROUNDS} |\n| --- | ---: |")
    for name, seconds in found.items():
        print(f"| {name} | {1000 * seconds:.1f} |")
    print(f"\nJSON is read {found[_DEFAULT] / found['JSON']:.1f} times faster than by the default.")
    peak = peak_memory(body)
    print(f"Peak memory beyond the body: {peak / 1e6:.1f} MB, {peak / len(body):.1f} times the body.")
    with served() as (url, _):
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as client:
            times = [_post(client, body) for _ in range(ROUNDS + 1)][1:]
        print(f"One such request to the idle service: {1000 * statistics.median(times):.0f} ms, median of {ROUNDS}.")
        waits = wait_of_others(body, url, senders=2, seconds=SECONDS)
    print(f"`/healthz` on the same worker while {waits.answered} such requests were answered in {SECONDS} s:")
    print(f"median {1000 * waits.median:.1f} ms, p99 {1000 * waits.tail:.1f} ms.")


if __name__ == "__main__":
    main()
