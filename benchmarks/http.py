"""Evaluations over HTTP, beside a floor and beside MLflow: `python -m benchmarks.http [--rounds 3] [--seconds 4]`.

`POST /v1/evaluations` with a matrix of ten classes, kept, the full report as the answer. Every round asks all three
servers at every number of connections, one after another; the table holds medians over the rounds. Client, servers and
Postgres share the machine. Postgres is the embedded one with fsync on.

A second table says what one worker takes: its first start on a new data folder, database made, until it is ready, and
its memory after light use, as proportional set sizes. `--against FOLDER ...` puts other checkouts of the service under
the same load in the same rounds: to compare releases, where processor time says more than rates on a busy machine.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import numpy as np

from app.embedded import EmbeddedPostgres
from app.embedded.cluster import free_port
from benchmarks import floor, mlflow_store
from benchmarks.processes import busy_seconds, tree_megabytes, tree_seconds

WORKERS = 2
CONNECTIONS = (1, 16, 64)
CLASSES = 10
_READY_SECONDS = 90.0
_WARM_UP_SECONDS = 1.0
# One evaluation takes MLflow so long that a short window would hold a handful.
_SLOW_PEER = 2.0
# What the service does by itself once it is ready, such as its first compute process, is done by then.
_SETTLE_SECONDS = 12.0
ROOT = str(Path(__file__).resolve().parent.parent)

Conversations = list[list[tuple[str, str]]]


@dataclass(frozen=True)
class Target:
    """A server under load."""

    name: str
    port: int
    process: "subprocess.Popen[bytes]"
    conversations: Conversations
    stretch: float = 1.0
    key: str = ""


@dataclass(frozen=True)
class Sample:
    """What one target did with one number of connections in one round. Times in milliseconds."""

    rate: float
    p50: float
    p99: float
    server_cpu: float
    postgres_cpu: float
    client_cpu: float
    failed: int
    foreign: float
    first_failure: str

    @property
    def all_cpu(self) -> float:
        """Processor time of everything that one evaluation takes: what limits the rate where all share a machine."""
        return self.server_cpu + self.postgres_cpu + self.client_cpu


def requests(count: int = 256) -> list[dict[str, Any]]:
    """Evaluations that differ: matrices of classifiers from poor to good, 16 models, 4 datasets."""
    random = np.random.default_rng(20240229)
    bodies = []
    for index in range(count):
        totals = random.integers(60, 900, CLASSES)
        skill = random.uniform(0.4, 0.97, CLASSES)
        shares = np.diag(skill) + (1 - skill)[:, None] * random.dirichlet(np.full(CLASSES, 0.6), CLASSES)
        matrix = [
            random.multinomial(total, row / row.sum()).tolist() for total, row in zip(totals, shares, strict=True)
        ]
        bodies.append(
            {
                "input": {
                    "kind": "confusion_matrix",
                    "matrix": matrix,
                    "labels": [f"class {k}" for k in range(CLASSES)],
                },
                "model": {"name": f"model-{index % 16}", "version": f"{index % 3}"},
                "dataset": {"name": f"dataset-{index % 4}", "version": "1", "split": "test"},
                "tags": {"commit": f"{index:08x}", "stage": "nightly"},
            }
        )
    return bodies


def wait_for(port: int, path: str, process: "subprocess.Popen[bytes]") -> None:
    """Wait until the server answers."""
    deadline = time.monotonic() + _READY_SECONDS
    while True:
        try:
            httpx.get(f"http://127.0.0.1:{port}{path}", timeout=5).raise_for_status()
            return
        except httpx.HTTPError as error:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"the server of port {port} did not start: {error}") from error
            time.sleep(0.1)


def post_all(port: int, path: str, bodies: Sequence[Any]) -> list[bytes]:
    """Requests outside the measurement."""
    with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
        answers = [client.post(path, json=body) for body in bodies]
    return [answer.raise_for_status().content for answer in answers]


@contextmanager
def serving(command: Sequence[str], folder: str = ROOT, **environment: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Run a server in a folder until the end of the block."""
    process = subprocess.Popen(
        command, cwd=folder, env=os.environ | environment, stdout=subprocess.DEVNULL, start_new_session=True
    )
    with ending(process):
        yield process


@contextmanager
def ending(process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """End a server with the block."""
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


@contextmanager
def prevail(
    dsn: str,
    bodies: list[dict[str, Any]],
    name: str = "Prevail",
    key: str = "",
    folder: str = ROOT,
    **settings: str,
) -> Iterator[Target]:
    """The service of a checkout, migrated and warm."""
    port = free_port()
    environment = {"PREVAIL_DATABASE_URL": dsn, "PREVAIL_PORT": str(port), "PREVAIL_WORKERS": str(WORKERS), **settings}
    environment |= _of_checkout(folder)
    subprocess.run(
        [sys.executable, "-m", "app", "migrate"],
        cwd=folder,
        env=os.environ | environment,
        check=True,
        stdout=subprocess.DEVNULL,
    )
    with serving([sys.executable, "-m", "app", "serve"], folder, **environment) as process:
        wait_for(port, "/readyz", process)
        conversations = [[("/v1/evaluations", json.dumps(body))] for body in bodies]
        yield Target(name, port, process, conversations, key=key)


def _of_checkout(folder: str) -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join((folder, f"{folder}/client/src")), "PREVAIL_LOG_LEVEL": "warning"}


@dataclass(frozen=True)
class Start:
    """What one worker of a checkout took. Processor time without that of Postgres.

    Attributes:
        seconds: From its command on a new data folder until it was ready.
        cpu: Processor time until then.
        megabytes: Proportional set sizes after light use, by process, the largest first.
    """

    seconds: float
    cpu: float
    megabytes: dict[str, float]


def start_once(folder: str, bodies: Sequence[Any]) -> Start:
    """Start a checkout with one worker on a database that does not exist yet, and use it a little."""
    port = free_port()
    with tempfile.TemporaryDirectory(prefix="prevail-bench-") as data:
        settings = {"PREVAIL_DATA_DIR": data, "PREVAIL_PORT": str(port), "PREVAIL_WORKERS": "1"}
        began = time.monotonic()
        with serving([sys.executable, "-m", "app", "serve"], folder, **settings, **_of_checkout(folder)) as process:
            wait_for(port, "/readyz", process)
            seconds, cpu = time.monotonic() - began, tree_seconds(process.pid, leave_out="postgres")
            runs = [json.loads(answer)["id"] for answer in post_all(port, "/v1/evaluations", bodies)]
            post_all(port, "/v1/comparisons", [{"evaluations": runs[:2]}])
            time.sleep(_SETTLE_SECONDS)
            return Start(seconds, cpu, tree_megabytes(process.pid, leave_out="postgres"))


@contextmanager
def floor_server(dsn: str, bodies: list[dict[str, Any]], row_bytes: int, answer_bytes: int) -> Iterator[Target]:
    """The floor on uvicorn as the service has it."""
    port = free_port()
    floor.prepare_sync(dsn)
    command = [sys.executable, "-m", "uvicorn", "--factory", "benchmarks.floor:create", "--port", str(port)]
    command += ["--workers", str(WORKERS), "--loop", "uvloop", "--http", "httptools"]
    command += ["--no-access-log", "--log-level", "warning"]
    environment = {"FLOOR_DSN": dsn, "FLOOR_ROW_BYTES": str(row_bytes), "FLOOR_ANSWER_BYTES": str(answer_bytes)}
    with serving(command, **environment) as process:
        wait_for(port, "/openapi.json", process)
        yield Target("floor", port, process, [[("/evaluations", json.dumps(body))] for body in bodies])


@contextmanager
def mlflow_server(
    dsn: str, python: str, folder: Path, values: list[dict[str, float]], *, tuned: bool
) -> Iterator[Target]:
    """MLflow's tracking server, as it ships or tuned."""
    port = free_port()
    folder.mkdir()
    process = mlflow_store.start(python, dsn, port, folder, workers=WORKERS, tuned=tuned)
    with ending(process):
        wait_for(port, "/health", process)
        experiment = mlflow_store.create_experiment(port)
        conversations = [mlflow_store.conversation(experiment, f"run-{i}", v) for i, v in enumerate(values)]
        name = "MLflow, tuned" if tuned else "MLflow"
        yield Target(name, port, process, conversations, stretch=_SLOW_PEER)


def scalars(answer: bytes) -> dict[str, float]:
    """The first values of a report, as many as MLflow is given."""
    groups = json.loads(answer)["metrics"].values()
    values = [(key, value) for group in groups for key, value in group.items() if value is not None]
    return dict(values[: mlflow_store.METRICS])


async def average_row_bytes(dsn: str, table: str) -> int:
    """Size of a row as Postgres keeps it."""
    connection = await asyncpg.connect(dsn)
    size = await connection.fetchval(f"SELECT avg(pg_column_size({table}.*)) FROM {table}")
    await connection.close()
    return int(size)


def measure(target: Target, connections: int, seconds: float, postmaster: int) -> Sample:
    """Put one target under load."""
    plan = {
        "port": target.port,
        "key": target.key,
        "connections": connections,
        "warm_up": _WARM_UP_SECONDS,
        "seconds": seconds * target.stretch,
        "conversations": target.conversations,
    }
    start = time.monotonic()
    server, postgres, busy = tree_seconds(target.process.pid), tree_seconds(postmaster), busy_seconds()
    answer = subprocess.run(
        [sys.executable, "-m", "benchmarks.client"], input=json.dumps(plan).encode(), stdout=subprocess.PIPE, check=True
    )
    found = json.loads(answer.stdout)
    server, postgres = tree_seconds(target.process.pid) - server, tree_seconds(postmaster) - postgres
    busy = busy_seconds() - busy
    latencies = sorted(found["latencies"]) or [float("nan")]
    done = max(found["completed"], 1)
    # The client's start (its imports) counts as its own here, not as foreign.
    foreign = max(0.0, busy - server - postgres - found["process_cpu"]) / (
        (time.monotonic() - start) * (os.cpu_count() or 1)
    )
    return Sample(
        rate=found["rate"],
        p50=1e3 * latencies[len(latencies) // 2],
        p99=1e3 * latencies[int(0.99 * (len(latencies) - 1))],
        server_cpu=1e3 * server / done,
        postgres_cpu=1e3 * postgres / done,
        client_cpu=1e3 * found["client_cpu"] / done,
        failed=found["failed"],
        foreign=foreign,
        first_failure=found["first_failure"],
    )


Results = dict[tuple[str, int], list[Sample]]


def run(
    rounds: int, seconds: float, connections: Sequence[int], others: Sequence[Path], *, peer: bool
) -> tuple[Results, list[str]]:
    """All rounds; the samples, and what else is to be said."""
    bodies = requests()
    results: Results = {}
    python = mlflow_store.python_with_mlflow() if peer else None
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prevail-bench-")))
        postgres = stack.enter_context(EmbeddedPostgres.start(folder / "data", durable=True))
        postmaster = int((postgres.home / "cluster" / "postmaster.pid").read_text().split()[0])
        for name in ("prevail", "floor", "mlflow", "mlflow_tuned"):
            postgres.create_database(name)
        for index in range(len(others)):
            postgres.create_database(f"prevail_{index}")
        service = stack.enter_context(prevail(postgres.dsn("prevail"), bodies))
        answers = post_all(service.port, "/v1/evaluations", bodies)
        row_bytes = asyncio.run(average_row_bytes(postgres.dsn("prevail"), "evaluations"))
        answer_bytes = round(statistics.mean(map(len, answers)))
        request_bytes = round(statistics.mean(len(json.dumps(body)) for body in bodies))
        notes = [f"Request {request_bytes} bytes, answer {answer_bytes} bytes, row {row_bytes} bytes."]
        # 24 bytes of header, 16 of the id, some of the name: what is left is the payload.
        payload = row_bytes - 24 - 16 - 12
        targets = [service, stack.enter_context(floor_server(postgres.dsn("floor"), bodies, payload, answer_bytes))]
        for index, other in enumerate(others):
            dsn = postgres.dsn(f"prevail_{index}")
            targets.append(stack.enter_context(prevail(dsn, bodies, name=other.name, folder=str(other))))
        if python is None:
            notes.append("MLflow is not installed here (extra `bench`, or MLFLOW_PYTHON): left out.")
        else:
            notes.append(
                f"MLflow {mlflow_store.version(python)}: {mlflow_store.METRICS} scalars per evaluation in create-run, "
                "log-batch and update-run; as it ships, and tuned with uvloop, httptools and a pool of 40; both "
                "without background jobs."
            )
            values = [scalars(answer) for answer in answers]
            for name, tuned in (("mlflow", False), ("mlflow_tuned", True)):
                server = mlflow_server(postgres.dsn(name), python, folder / name, values, tuned=tuned)
                targets.append(stack.enter_context(server))
        _rounds(results, targets, rounds, seconds, connections, postmaster)
    return results, notes


def _rounds(
    results: Results,
    targets: Sequence[Target],
    rounds: int,
    seconds: float,
    connections: Sequence[int],
    postmaster: int,
) -> None:
    for number in range(rounds):
        for count in connections:
            for target in targets:
                sample = measure(target, count, seconds, postmaster)
                results.setdefault((target.name, count), []).append(sample)
                print(f"round {number + 1} c={count} {target.name}: {sample}", file=sys.stderr, flush=True)


def table(results: Results) -> list[str]:
    """The medians as markdown. Ratios are made within each round, since other load comes and goes between them."""
    lines = [
        "| connections | server | evaluations/s | p50 ms | p99 ms | CPU ms: server | Postgres | client | failed "
        "| other load | ours against it | by CPU |",
        "| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- | --- |",
    ]
    for (name, count), samples in sorted(results.items(), key=lambda item: item[0][1]):
        pairs = list(zip(results["Prevail", count], samples, strict=True))
        rate = statistics.median(ours.rate / other.rate if other.rate else float("inf") for ours, other in pairs)
        cpu = statistics.median(other.all_cpu / ours.all_cpu for ours, other in pairs)
        middle = {
            field.name: statistics.median(getattr(sample, field.name) for sample in samples)
            for field in fields(Sample)
            if field.type is not str
        }
        against = {"Prevail": ("", ""), "floor": (f"{100 * rate:.0f} %", f"{100 * cpu:.0f} %")}
        by_rate, by_cpu = against.get(name, (f"{rate:.1f} times", f"{cpu:.1f} times"))
        lines.append(
            f"| {count} | {name} | {middle['rate']:.0f} | {middle['p50']:.2f} | {middle['p99']:.1f} "
            f"| {middle['server_cpu']:.2f} | {middle['postgres_cpu']:.2f} | {middle['client_cpu']:.2f} "
            f"| {middle['failed']:.0f} | {100 * middle['foreign']:.0f} % | {by_rate} | {by_cpu} |"
        )
    return lines


def start_table(starts: dict[str, list[Start]]) -> list[str]:
    """The medians as markdown."""
    lines = [
        "| one worker | first start s | its CPU s | memory MB | of its processes |",
        "| --- | ---: | ---: | ---: | --- |",
    ]
    for name, samples in starts.items():
        middle = sorted(samples, key=lambda sample: sum(sample.megabytes.values()))[len(samples) // 2].megabytes
        lines.append(
            f"| {name} | {statistics.median(sample.seconds for sample in samples):.1f} "
            f"| {statistics.median(sample.cpu for sample in samples):.1f} | {sum(middle.values()):.0f} "
            f"| {', '.join(f'{name} {size:.0f}' for name, size in middle.items())} |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--connections", type=int, nargs="+", default=list(CONNECTIONS))
    parser.add_argument("--no-peer", action="store_true", help="leave MLflow out")
    parser.add_argument(
        "--against", type=Path, nargs="+", default=[], help="checkouts of other releases of the service"
    )
    chosen = parser.parse_args()
    others = [folder.resolve() for folder in chosen.against]
    starts: dict[str, list[Start]] = {}
    for _ in range(min(chosen.rounds, 3)):
        for name, folder in (("Prevail", ROOT), *((other.name, str(other)) for other in others)):
            starts.setdefault(name, []).append(start_once(folder, requests(16)))
            print(f"{name}: {starts[name][-1]}", file=sys.stderr, flush=True)
    results, notes = run(chosen.rounds, chosen.seconds, chosen.connections, others, peer=not chosen.no_peer)
    print(
        f"Medians of {chosen.rounds} rounds, {WORKERS} workers, {os.cpu_count()} cores for everything. "
        + " ".join(notes)
    )
    print()
    print("\n".join(table(results)))
    print()
    print("\n".join(start_table(starts)))
    print()
    print(
        '"Other load" is what else ran on the machine, of all its cores; "by CPU" compares the processor time of one '
        "evaluation, server, Postgres and client together, which other load changes less."
    )


if __name__ == "__main__":
    main()
