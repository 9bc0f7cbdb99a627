"""Three services, two workers and a cluster of Dask on one Postgres: `python -m benchmarks.replicas --rows 2000000`.

Each is a process of its own; the services stand behind one address, which sends each connection to the next of them
that is there. One reference to data is evaluated by a job, again and again, and each time something else is killed
while it is read: the service that accepted it, the worker that carries it, a worker of the cluster, its scheduler.
Every answer has to be the first one bit for bit, and stored once. Prints a table in Markdown.
"""

import argparse
import asyncio
import contextlib
import http.client
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from uuid import UUID, uuid4

import asyncpg
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from app.embedded import EmbeddedPostgres
from app.embedded.cluster import wait_until
from benchmarks.http import free_port
from benchmarks.processes import tree_seconds

SERVICES, WORKERS, CLUSTER = 3, 2, 2
PART: Final = 1_000_000
# By default it is thirty, since a worker may also be slow; here nobody is to wait for that.
LOST_SECONDS: Final = 15
MEMORY: Final = 16 << 20
PATIENCE: Final = 600.0
# How far the data is read when something is killed.
UNDER_WAY: Final = 0.02
ROOT: Final = Path(__file__).resolve().parents[1]


@dataclass
class Part:
    """A process of the installation; what it says goes into a file."""

    name: str
    command: list[str]
    environment: dict[str, str]
    log: Path
    process: "subprocess.Popen[bytes]" = field(init=False)

    def __post_init__(self) -> None:
        self.start()

    def start(self) -> None:
        """Run it, again if need be."""
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, *self.command], env=self.environment, stdout=log, stderr=log, cwd=ROOT
            )

    def kill(self) -> None:
        """As by a machine that loses power."""
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it, one way or the other."""
        self.process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(20)
        self.kill()

    def wait_for(self, text: bytes, since: int = 0) -> None:
        """Until it has said something."""
        assert wait_until(lambda: text in self.log.read_bytes()[since:], 120), self.log.read_text()[-3000:]

    def start_again(self, said: bytes) -> None:
        """Start it, and wait until it says that it is there."""
        before = self.log.stat().st_size
        self.start()
        self.wait_for(said, before)


class Address:
    """One address for several services: each connection goes to the next that takes it."""

    def __init__(self, ports: list[int]) -> None:
        self.port = free_port()
        # Which took the last.
        self.last = 0
        self._turn = itertools.cycle(ports)
        self._count = len(ports)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, daemon=True).start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", self.port))
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(self._count):
            port = next(self._turn)
            with contextlib.suppress(OSError):
                there = await asyncio.open_connection("127.0.0.1", port)
                self.last = port
                await asyncio.gather(_pass(reader, there[1]), _pass(there[0], writer))
                return
        writer.close()


async def _pass(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await source.read(1 << 16):
            target.write(piece)
            await target.drain()
    with contextlib.suppress(OSError):
        target.close()


class Client:
    """Asks the address, and asks again when there is no answer."""

    def __init__(self, address: Address) -> None:
        self.address, self.again = address, 0

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """What is answered, as JSON."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": str(uuid4())}
        deadline = time.monotonic() + 60
        while True:
            connection = http.client.HTTPConnection("127.0.0.1", self.address.port, timeout=30)
            try:
                connection.request(method, path, None if body is None else json.dumps(body), headers)
                answer = connection.getresponse()
                text = answer.read()
                if answer.status < http.HTTPStatus.INTERNAL_SERVER_ERROR:
                    assert answer.status < http.HTTPStatus.BAD_REQUEST, text
                    return json.loads(text)
            except (OSError, http.client.HTTPException):
                pass
            finally:
                connection.close()
            self.again += 1
            assert time.monotonic() < deadline, f"{method} {path} is not answered"
            time.sleep(0.1)


@dataclass
class Installation:
    """All of it."""

    client: Client
    dsn: str
    services: dict[int, Part]
    workers: list[Part]
    scheduler: Part | None
    cluster: list[Part]

    def accepted(self, port: int) -> Part:
        return self.services[port]

    def carrier(self) -> Part:
        """The worker that has used most of a processor for a moment."""
        before = [tree_seconds(one.process.pid) for one in self.workers]
        time.sleep(1.0)
        used = [tree_seconds(one.process.pid) - then for one, then in zip(self.workers, before, strict=True)]
        return self.workers[int(np.argmax(used))]

    def start_cluster(self) -> None:
        """Start the scheduler and its workers again."""
        assert self.scheduler is not None
        for one in self.cluster:
            one.stop()
        self.scheduler.start_again(b"Scheduler at")
        for one in self.cluster:
            one.start_again(b"Registered to")


# Does the damage while a job is read, given the port that accepted it; returns what puts it right afterwards.
Fault = Callable[[Installation, int], Callable[[], None]]


def nothing(_: Installation, __: int) -> Callable[[], None]:
    return lambda: None


def kill_service(installation: Installation, port: int) -> Callable[[], None]:
    part = installation.accepted(port)
    part.kill()
    return lambda: part.start_again(b"stop     Ctrl-C")


def kill_worker(installation: Installation, _: int) -> Callable[[], None]:
    part = installation.carrier()
    part.kill()
    return lambda: part.start_again(b"works on up to")


def kill_of_cluster(installation: Installation, _: int) -> Callable[[], None]:
    part = random.choice(installation.cluster)
    part.kill()
    return lambda: part.start_again(b"Registered to")


def kill_scheduler(installation: Installation, _: int) -> Callable[[], None]:
    assert installation.scheduler is not None
    # What they have in hand is not done before it is gone.
    for one in installation.cluster:
        one.process.send_signal(signal.SIGSTOP)
    installation.scheduler.kill()
    for one in installation.cluster:
        one.kill()
    return installation.start_cluster


@dataclass
class Outcome:
    """One job.

    Attributes:
        killed: What was, while it was read.
        began: How often a worker began it.
        stored: Evaluations and entries in the trail of changes that came of it.
    """

    killed: str
    seconds: float
    status: str
    began: int
    stored: tuple[int, int]
    same: bool | None

    def row(self) -> str:
        same = {None: "", True: "yes", False: "**NO**"}[self.same]
        evaluations, entries = self.stored
        return (
            f"| {self.killed} | {self.seconds:.1f} | {self.status} | {self.began} | {evaluations}, {entries} | {same} |"
        )


def write(folder: Path, rows: int) -> None:
    """Parts of Parquet: classes and probabilities of both."""
    for number, start in enumerate(range(0, rows, PART)):
        chance = np.random.default_rng(number)
        one = chance.beta(0.8, 2.0, min(PART, rows - start))
        label = np.where(chance.random(one.size) < one, "yes", "no")
        pq.write_table(pa.table({"label": label, "no": 1.0 - one, "yes": one}), folder / f"part-{number:05}.parquet")


def evaluate(installation: Installation, folder: Path, killed: str, fault: Fault, first: Any) -> tuple[Outcome, Any]:
    """Send the reference, do the damage, wait for the end and look at what is there."""
    client, model = installation.client, f"model-{uuid4().hex[:8]}"
    data = {"uri": str(folder), "columns": {"y_true": "label", "probabilities": ["no", "yes"]}}
    source = {"kind": "probabilities", "labels": ["no", "yes"], "data": {**data, "format": "parquet"}}
    begin = time.monotonic()
    taken = client.ask("POST", "/v1/evaluations", {"model": {"name": model}, "dataset": {"name": "d"}, "input": source})
    port = client.address.last
    path = f"/v1/jobs/{taken['id']}"

    def job() -> Any:
        return client.ask("GET", path)

    under_way = wait_until(lambda: ((now := job())["progress"] or 0) >= UNDER_WAY or _ended(now), PATIENCE)
    assert under_way, "the job was never under way"
    assert not _ended(job()), f"the job had ended before anything could be killed: {job()}"
    put_right = fault(installation, port)
    assert wait_until(lambda: _ended(job()), PATIENCE), f"the job did not end: {job()}"
    seconds = time.monotonic() - begin
    end = job()
    answer = None
    if end["status"] == "succeeded":
        answer = client.ask("GET", end["result"])
    put_right()
    status = end["status"] if end["problem"] is None else f"{end['status']}: `{end['problem']['code']}`"
    began, evaluations, entries = asyncio.run(_kept(installation.dsn, UUID(taken["id"]), model))
    same = None if answer is None else _said(answer) == _said(answer if first is None else first)
    outcome = Outcome(killed, seconds, status, began, (evaluations, entries), same)
    print(outcome.row(), file=sys.stderr, flush=True)
    return outcome, answer


def _ended(job: Any) -> bool:
    return job["status"] not in ("queued", "running")


def _said(answer: Any) -> str:
    """Everything but what tells one evaluation from another."""
    return json.dumps({k: v for k, v in answer.items() if k not in ("id", "created_at", "model", "links")})


async def _kept(dsn: str, job: UUID, model: str) -> tuple[int, int, int]:
    connection = await asyncpg.connect(dsn)
    try:
        row = await connection.fetchrow("SELECT runs, makes FROM jobs WHERE id = $1", job)
        named = "SELECT count(*) FROM evaluations e JOIN models m ON m.id = e.model_id WHERE m.name = $1"
        entries = "SELECT count(*) FROM audit_entries WHERE kind = 'evaluation' AND object = $1"
        return (
            row["runs"],
            await connection.fetchval(named, model),
            await connection.fetchval(entries, str(row["makes"])),
        )
    finally:
        await connection.close()


@contextlib.contextmanager
def installed(folder: Path, data: Path, *, dask: bool) -> Iterator[Installation]:
    """Everything started, each in a process of its own, and ended afterwards."""
    with ExitStack() as stack:
        postgres = stack.enter_context(EmbeddedPostgres.start(folder / "postgres", durable=True))
        postgres.create_database()
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PREVAIL_")}
        settings = {
            "PREVAIL_DATABASE_URL": postgres.dsn(),
            "PREVAIL_DATA_PREFIXES": str(data),
            "PREVAIL_JOB_LOST_SECONDS": str(LOST_SECONDS),
            # More rows than that are folded, piece by piece, to the end by the cluster.
            "PREVAIL_DATA_MEMORY_BYTES": str(MEMORY),
            # Services answer, workers work.
            "PREVAIL_JOB_CONCURRENCY": "0",
        }

        def part(name: str, *command: str, **more: str) -> Part:
            made = Part(name, ["-m", *command], environment | settings | more, folder / f"{name}.log")
            stack.callback(made.stop)
            return made

        scheduler, cluster = None, []
        if dask:
            port = free_port()
            settings["PREVAIL_DASK_ADDRESS"] = address = f"tcp://127.0.0.1:{port}"
            ours = ("--host", "127.0.0.1", "--no-dashboard")
            scheduler = part("scheduler", "distributed.cli.dask_scheduler", "--port", str(port), *ours)
            scheduler.wait_for(b"Scheduler at")
            of_cluster = ("distributed.cli.dask_worker", address, "--nthreads", "1", "--no-nanny", *ours)
            cluster = [part(f"dask-worker-{number}", *of_cluster) for number in range(CLUSTER)]
        subprocess.run([sys.executable, "-m", "app", "migrate"], env=environment | settings, check=True, cwd=ROOT)
        ports = [free_port() for _ in range(SERVICES)]
        services = {one: part(f"service-{one}", "app", "serve", PREVAIL_PORT=str(one)) for one in ports}
        workers = [part(f"worker-{n}", "app", "worker", PREVAIL_JOB_CONCURRENCY="1") for n in range(WORKERS)]
        for service in services.values():
            service.wait_for(b"stop     Ctrl-C")
        for one in workers:
            one.wait_for(b"works on up to")
        for one in cluster:
            one.wait_for(b"Registered to")
        yield Installation(Client(Address(ports)), postgres.dsn(), services, workers, scheduler, cluster)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2 * PART)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--without-dask", action="store_true")
    parser.add_argument("--last", type=int, help="only so many of the faults, from the end")
    chosen = parser.parse_args()
    faults: list[tuple[str, Fault]] = [
        ("the service that accepted it", kill_service),
        ("the worker that carries it", kill_worker),
    ]
    if not chosen.without_dask:
        faults += [
            ("a worker of the cluster", kill_of_cluster),
            ("the scheduler of the cluster, then its workers", kill_scheduler),
        ]
    faults = faults[-chosen.last :] if chosen.last else faults
    with tempfile.TemporaryDirectory(prefix="prevail-replicas-") as name:
        folder = Path(name)
        folder.chmod(0o711)
        data = folder / "data"
        data.mkdir()
        write(data, chosen.rows)
        with installed(folder, data, dask=not chosen.without_dask) as installation:
            alone, first = evaluate(installation, data, "nobody", nothing, None)
            outcomes = [alone]
            for _ in range(chosen.rounds):
                for killed, fault in faults:
                    outcome, _ = evaluate(installation, data, killed, fault, first)
                    outcomes.append(outcome)
                    if outcome.same is None:
                        again, _ = evaluate(installation, data, "nobody: the same sent again", nothing, first)
                        outcomes.append(again)
            asked_again = installation.client.again
    cluster = "no cluster" if chosen.without_dask else f"a scheduler of Dask and {CLUSTER} of its workers"
    print(f"{chosen.rows:,} rows of probabilities in {-(-chosen.rows // PART)} files; {SERVICES} services behind one")
    print(
        f"address, {WORKERS} workers, {cluster}, one Postgres. A worker is taken for lost after {LOST_SECONDS} s here"
    )
    print(f"(30 by default). Requests that had to be sent again: {asked_again}. Load: {os.getloadavg()[1]:.0f}.\n")
    print("| killed | seconds | the job | begun | evaluations, entries of the trail | same answer |")
    print("| --- | ---: | --- | ---: | ---: | --- |")
    for outcome in outcomes:
        print(outcome.row())
    bad = [one for one in outcomes if one.same is False or one.stored != ((0, 0) if one.same is None else (1, 1))]
    if bad:
        raise SystemExit(f"not as it has to be: {bad}")


if __name__ == "__main__":
    main()
