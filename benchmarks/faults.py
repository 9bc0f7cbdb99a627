"""What is kept when something breaks: `python -m benchmarks.faults [--rounds 2]`.

Clients post without a pause to a service of two workers, on this machine, while its processes are killed and its disk
is filled. Afterwards everything that was acknowledged has to be there, whole and once, and after each fault the service
has to be back by itself within ten seconds of what it needs being back. The full disk is a small file system in memory,
which takes root to mount.
"""

import argparse
import contextlib
import functools
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from app.embedded import EmbeddedPostgres
from app.embedded.cluster import free_port, processes_of, wait_until
from benchmarks.posting import CLIENTS, Count, Posting, check
from benchmarks.processes import tree_seconds

WORKERS = 2
BACK_SECONDS = 10.0
_START_SECONDS = 120.0
# How long a fault lasts that somebody has to end, and the quiet between two.
_LASTS, _QUIET = 3.0, 1.0
_DISK = "600m"


class Service:
    """`prevail serve` as its operator has it: started again by whoever looks after it, here."""

    def __init__(self, folder: Path, database_url: str | None = None) -> None:
        self.port = free_port()
        self.data = folder / "data"
        self.log = folder / "service.log"
        self.start_cpu: list[float] = []
        own = {"PREVAIL_PORT": str(self.port), "PREVAIL_DATA_DIR": str(self.data), "PREVAIL_WORKERS": str(WORKERS)}
        if database_url is not None:
            own["PREVAIL_DATABASE_URL"] = database_url
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("PREVAIL_")} | own
        self.process = self._start()

    def _start(self) -> "subprocess.Popen[bytes]":
        with self.log.open("ab") as log:
            return subprocess.Popen(
                [sys.executable, "-m", "app", "serve"], env=self._environment, stdout=log, stderr=log
            )

    def migrate(self) -> None:
        subprocess.run(
            [sys.executable, "-m", "app", "migrate"], env=self._environment, check=True, stdout=subprocess.DEVNULL
        )

    def start_until_it_stays(self) -> None:
        """As systemd does it: the port may still be held by workers of the killed one that are about to end."""
        deadline = time.monotonic() + _START_SECONDS
        while True:
            said = self.log.stat().st_size
            self.process = self._start()
            assert wait_until(functools.partial(self._decided, said), _START_SECONDS), self.log.read_text()[-2000:]
            if self.process.poll() is None:
                return
            assert time.monotonic() < deadline, self.log.read_text()[-2000:]

    def _decided(self, said: int) -> bool:
        """Whether the process has ended, or has said that it serves."""
        return self.process.poll() is not None or b"stop     Ctrl-C" in self._said(said)

    def _said(self, begin: int = 0) -> bytes:
        return self.log.read_bytes()[begin:]

    def wait_for_workers(self) -> None:
        """Until each of them serves."""

        def serve() -> bool:
            said = self._said()
            started = [b"Started server process [%d]" % each in said for each in self.workers()]
            begun, ready = said.count(b"Waiting for application startup"), said.count(b"Application startup complete")
            return started == [True] * WORKERS and begun == ready

        assert wait_until(serve, _START_SECONDS), self.log.read_text()[-2000:]

    def workers(self) -> list[int]:
        """Ids of the worker processes."""
        children = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split()
        return [int(each) for each in children if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]

    def postmaster(self) -> int | None:
        """Id of the embedded Postgres, when it takes connections."""
        with contextlib.suppress(OSError, IndexError, ValueError):
            lines = (self.data / "cluster" / "postmaster.pid").read_text().splitlines()
            return int(lines[0]) if lines[7].strip() == "ready" else None
        return None

    def dsn(self) -> str:
        """The embedded database, once it takes connections."""
        assert wait_until(lambda: self.postmaster() is not None, _START_SECONDS)
        port = (self.data / "cluster" / "postmaster.pid").read_text().splitlines()[3]
        return f"postgresql://prevail:{(self.data / 'password').read_text()}@127.0.0.1:{port}/prevail"

    def stop(self) -> None:
        self.process.terminate()
        code = self.process.wait(60)
        assert code == 0, f"exit code {code}: {self.log.read_text()[-2000:]}"


@dataclass
class Outcome:
    """One fault, all its rounds.

    Attributes:
        back: Seconds until a write was acknowledged again, from the moment that what it needs was back.
        load: Processes that wanted a processor, on average over the last minute, in each round.
    """

    fault: str
    back: list[float] = field(default_factory=list)
    load: list[float] = field(default_factory=list)
    answers: Counter[str] = field(default_factory=Counter)
    reads: Counter[str] = field(default_factory=Counter)

    def row(self) -> str:
        good = self.answers["201"] + self.answers["202"]
        others = {said: number for said, number in sorted(self.answers.items()) if said not in ("201", "202")}
        refused = [f"{number:,} × {said}" for said, number in others.items()]
        reads = [f"{number:,} × {said}" for said, number in sorted(self.reads.items())]
        median = statistics.median(self.back)
        return (
            f"| {self.fault} | {len(self.back)} | {good:,} | {', '.join(refused) or 'none'} "
            f"| {', '.join(reads)} | {median:.1f} / {max(self.back):.1f} "
            f"| {statistics.median(self.load):.0f} |"
        )


# Does the damage, waits until what the service needs is back, and returns that moment.
Fault = Callable[[], float]


def run_fault(name: str, fault: Fault, posting: Posting, rounds: int) -> Outcome:
    """All rounds of a fault, under load."""
    outcome = Outcome(name)
    for number in range(rounds):
        before, reads_before = posting.answers.copy(), posting.reads.copy()
        moment = fault()
        acknowledged = posting.wait_for_post(moment, _START_SECONDS)
        outcome.back.append(acknowledged - moment)
        outcome.load.append(os.getloadavg()[0])
        time.sleep(_QUIET)
        outcome.answers += posting.answers - before
        outcome.reads += posting.reads - reads_before
        print(f"{name}, round {number + 1}: back after {outcome.back[-1]:.2f} s", file=sys.stderr, flush=True)
    return outcome


# --- faults ----------------------------------------------------------------------------------------------------------


def kill_service(service: Service) -> float:
    service.wait_for_workers()
    service.process.kill()
    service.process.wait()
    moment = time.monotonic()
    service.start_until_it_stays()
    service.wait_for_workers()
    service.start_cpu.append(tree_seconds(service.process.pid))
    return moment


def kill_worker(service: Service) -> float:
    service.wait_for_workers()
    os.kill(random.choice(service.workers()), signal.SIGKILL)
    return time.monotonic()


def kill_embedded(service: Service) -> float:
    service.wait_for_workers()
    before = service.postmaster()
    assert before is not None
    os.kill(before, signal.SIGKILL)
    moment = time.monotonic()
    assert wait_until(lambda: service.postmaster() not in (None, before), BACK_SECONDS), service.log.read_text()[-2000:]
    return moment


def kill_backend(service: Service) -> float:
    found: list[int] = []

    def find() -> bool:
        found[:] = [each for each in processes_of(service.data / "cluster") if _is_backend(each)]
        return bool(found)

    assert wait_until(find, _START_SECONDS)
    os.kill(random.choice(found), signal.SIGKILL)
    return time.monotonic()


def _is_backend(process_id: int) -> bool:
    with contextlib.suppress(OSError):
        return b"prevail prevail" in Path(f"/proc/{process_id}/cmdline").read_bytes()
    return False


def end_external(postgres: EmbeddedPostgres, number: signal.Signals) -> float:
    """End a Postgres that nobody supervises, and start it some seconds later."""
    os.kill(int((postgres.home / "cluster" / "postmaster.pid").read_text().split()[0]), number)
    time.sleep(_LASTS)
    postgres.start_again()
    return time.monotonic()


def fill_disk(service: Service, disk: Path, posting: Posting, *, kill: bool) -> float:
    """Fill the disk, perhaps kill Postgres on it, look whether reads go on, and free it."""
    filling = disk / "filling"
    with filling.open("ab", buffering=0) as file:
        for size in (1 << 20, 1 << 12):
            with contextlib.suppress(OSError):
                while file.write(bytes(size)):
                    pass
        if kill:
            kill_embedded(service)
    time.sleep(_LASTS)
    status, text = posting.ask("GET", f"/v1/evaluations/{next(iter(posting.acknowledged))}")
    assert status == 200, text
    status, text = posting.ask(
        "POST", "/v1/evaluations", {"model": {"name": "m"}, "dataset": {"name": "d"}, "input": _SMALL}
    )
    assert status == 507, text
    filling.unlink()
    return time.monotonic()


_SMALL = {"kind": "confusion_matrix", "matrix": [[1, 0], [0, 1]]}


# --- groups ----------------------------------------------------------------------------------------------------------


@dataclass
class Group:
    """Faults of one service, and what was kept in the end."""

    name: str
    outcomes: list[Outcome]
    count: Count
    posting: Posting
    start_cpu: list[float]

    @property
    def good(self) -> bool:
        posting = self.posting
        return self.count.good and not (posting.never or posting.different or posting.unfinished)


def embedded(folder: Path, rounds: int) -> Group:
    """Faults of processes, with the embedded Postgres on the machine's disk."""
    service = Service(folder)

    def faults(_: Posting) -> Iterator[tuple[str, Fault]]:
        yield "service killed, started again", lambda: kill_service(service)
        yield "worker killed", lambda: kill_worker(service)
        yield "embedded Postgres killed", lambda: kill_embedded(service)
        yield "a process of Postgres killed", lambda: kill_backend(service)

    return under_load("embedded Postgres", service, faults, rounds, service.dsn)


def external(folder: Path, rounds: int) -> Group:
    """Faults of a Postgres that the service only knows by its URL."""
    with EmbeddedPostgres.start(folder / "postgres", durable=True) as postgres:
        postgres.create_database()
        service = Service(folder, postgres.dsn())
        service.process.wait()
        service.migrate()
        service.start_until_it_stays()

        def faults(_: Posting) -> Iterator[tuple[str, Fault]]:
            yield "Postgres of one's own stopped, started", lambda: end_external(postgres, signal.SIGINT)
            yield "Postgres of one's own killed, started", lambda: end_external(postgres, signal.SIGKILL)

        return under_load("Postgres of one's own", service, faults, rounds, postgres.dsn)


def full_disk(folder: Path, rounds: int) -> Group:
    """A disk that fills up and is freed."""
    disk = folder / "disk"
    disk.mkdir()
    subprocess.run(["/bin/mount", "-t", "tmpfs", "-o", f"size={_DISK},mode=755", "prevail", disk], check=True)
    try:
        service = Service(disk)

        def faults(posting: Posting) -> Iterator[tuple[str, Fault]]:
            yield "disk full, freed", lambda: fill_disk(service, disk, posting, kill=False)
            yield "disk full and Postgres killed, freed", lambda: fill_disk(service, disk, posting, kill=True)

        return under_load("full disk", service, faults, rounds, service.dsn)
    finally:
        subprocess.run(["/bin/umount", "-l", disk], check=True)


def replicas(folder: Path, rounds: int) -> Group:
    """Two services on one Postgres, and clients that send everything again, with its key, until it is acknowledged."""
    with EmbeddedPostgres.start(folder / "postgres", durable=True) as postgres:
        postgres.create_database()
        services = []
        for name in ("one", "two"):
            (folder / name).mkdir()
            services.append(Service(folder / name, postgres.dsn()))
            services[-1].process.wait()
        services[0].migrate()
        for service in services:
            service.start_until_it_stays()

        def faults(_: Posting) -> Iterator[tuple[str, Fault]]:
            yield "a replica killed, started again", lambda: kill_service(random.choice(services))
            yield "a worker of a replica killed", lambda: kill_worker(random.choice(services))
            yield "Postgres killed, started", lambda: end_external(postgres, signal.SIGKILL)

        return under_load("two replicas, clients with keys", services[0], faults, rounds, postgres.dsn, services[1:])


def under_load(
    name: str,
    service: Service,
    faults: Callable[[Posting], Iterator[tuple[str, Fault]]],
    rounds: int,
    dsn: Callable[[], str],
    others: Sequence[Service] = (),
) -> Group:
    """Run faults while clients post, then count."""
    posting = Posting(service.port, [other.port for other in others])
    try:
        with posting:
            assert posting.wait_for_post(0.0, _START_SECONDS) < float("inf"), service.log.read_text()[-2000:]
            outcomes = [run_fault(name, fault, posting, rounds) for name, fault in faults(posting)]
        posting.wait_for_jobs()
        found = check(dsn(), posting)
    finally:
        for each in (service, *others):
            each.stop()
    return Group(name, outcomes, found, posting, service.start_cpu)


# 409: with a key, while the same request is under way at a replica, or at one that was killed a moment ago.
EXPECTED = {"200", "201", "202", "409", "503", "507", "no answer"}
GROUPS = (embedded, external, full_disk, replicas)


def report(groups: Sequence[Group], rounds: int) -> Iterator[str]:
    """Markdown."""
    yield (
        f"{rounds} rounds of each, {WORKERS} workers, {CLIENTS} clients that post one after another (each fifth with "
        "samples) and one that reads what was acknowledged."
    )
    yield ""
    yield "| fault | rounds | writes acknowledged | other answers | reads | back after, s: median / most | load |"
    yield "| --- | ---: | ---: | --- | --- | ---: | ---: |"
    for group in groups:
        yield from (outcome.row() for outcome in group.outcomes)
    yield ""
    yield (
        "| | acknowledged | kept | lost | twice | half there | given up | repeated answers | others than the first "
        "| jobs | jobs without an end |"
    )
    yield "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"
    for group in groups:
        found, posting = group.count, group.posting
        kept = f"| {group.name} | {len(posting.acknowledged):,} | {found.kept:,} |"
        repeated = "| | | | |"
        if posting.others:
            jobs = f"{len(posting.jobs):,} | {posting.unfinished} |"
            repeated = f"{posting.never} | {posting.replayed:,} | {posting.different} | {jobs}"
        yield f"{kept} {found.lost} | {found.twice} | {found.half} | {repeated}"
    yield ""
    yield (
        "“Kept” is more than acknowledged where an answer was lost after the commit. A fault that somebody has to end "
        "lasts 3 s; “back” counts from its end, else from the fault itself. 503 and 507 carry `Retry-After`. “Load” "
        f"is how many processes wanted one of the {os.cpu_count()} processors, on average, those of others included."
    )
    slow = [
        f"{o.fault} ({sum(seconds > BACK_SECONDS for seconds in o.back)} of {len(o.back)})"
        for group in groups
        for o in group.outcomes
        if max(o.back) > BACK_SECONDS
    ]
    yield ""
    yield f"Later than {BACK_SECONDS:g} s: {', '.join(slow) or 'none'}."
    cpu = [seconds for group in groups for seconds in group.start_cpu]
    if cpu:
        yield ""
        yield f"A start of the service, with Postgres and workers, takes {statistics.median(cpu):.1f} s of a processor."


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", choices=[run.__name__ for run in GROUPS], help="one service's faults")
    chosen = parser.parse_args()
    groups: list[Group] = []
    for run in GROUPS:
        if chosen.only not in (None, run.__name__):
            continue
        with tempfile.TemporaryDirectory(prefix="prevail-faults-", ignore_cleanup_errors=True) as name:
            folder = Path(name)
            folder.chmod(0o755)
            if run is full_disk and os.geteuid() != 0:
                print("the full disk was left out: it takes root to mount one", file=sys.stderr)
                continue
            groups.append(run(folder, chosen.rounds))
    print("\n".join(report(groups, chosen.rounds)))
    strange = {said for g in groups for o in g.outcomes for said in (*o.answers, *o.reads)} - EXPECTED
    if strange:
        print(f"answers that nothing explains: {', '.join(strange)}", file=sys.stderr)
    return 0 if all(group.good for group in groups) and not strange else 1


if __name__ == "__main__":
    sys.exit(main())
