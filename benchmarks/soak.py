"""Mixed traffic for a long time: `python -m benchmarks.soak [--minutes 2]`.

A service of two workers and its embedded Postgres first show how much of the mixture they can do when every connection
asks again at once. Then requests come by chance at 70 % of that rate, whether earlier ones are answered or not; the
time of each counts from the moment it was due. Client, service and Postgres share the machine.
"""

import argparse
import asyncio
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import asyncpg
import httpx
import psutil

from benchmarks.faults import WORKERS, Service

SHARE = 0.7
CONNECTIONS = 32
_CAPACITY_SECONDS = 30.0
_MEMORY_EVERY = 5.0
_MB = 1 << 20
_LARGE_SAMPLES = 100_000
_MODELS, _DATASETS = 20, 5


@dataclass(frozen=True)
class Ask:
    """One request, and the status that answers it."""

    method: str
    path: str
    body: bytes | None = None
    status: int = 200


@dataclass
class Known:
    """What requests may refer to: evaluations that are there for good, and the newest ones."""

    matrices: list[str] = field(default_factory=list)
    samples: list[str] = field(default_factory=list)
    newest: list[str] = field(default_factory=list)


Make = Callable[[random.Random, Known], Ask]


def _evaluation(chance: random.Random, value: object) -> bytes:
    body = {
        "model": {"name": f"model-{chance.randrange(_MODELS)}", "version": str(chance.randrange(1000))},
        "dataset": {"name": f"dataset-{chance.randrange(_DATASETS)}"},
        "input": value,
    }
    return json.dumps(body).encode()


def _matrix(chance: random.Random) -> dict[str, object]:
    rows = [[chance.randint(1, 30) + (60 if row == column else 0) for column in "abcd"] for row in "abcd"]
    return {"kind": "confusion_matrix", "matrix": rows, "labels": [*"abcd"]}


def _predictions(chance: random.Random, size: int) -> dict[str, object]:
    truth = chance.choices("abcd", k=size)
    predicted = [label if chance.random() < 0.8 else chance.choice("abcd") for label in truth]
    return {"kind": "predictions", "y_true": truth, "y_pred": predicted, "sample_ids": [*range(size)]}


def _probabilities(chance: random.Random, size: int) -> dict[str, object]:
    truth = [chance.randrange(3) for _ in range(size)]
    rows = []
    for label in truth:
        weights = [chance.random() + (1.5 if place == label else 0) for place in range(3)]
        rows.append([weight / sum(weights) for weight in weights])
    return {"kind": "probabilities", "labels": [0, 1, 2], "y_true": truth, "probabilities": rows}


def _post_matrix(chance: random.Random, _: Known) -> Ask:
    return Ask("POST", "/v1/evaluations", _evaluation(chance, _matrix(chance)), 201)


def _post_predictions(chance: random.Random, _: Known) -> Ask:
    return Ask("POST", "/v1/evaluations", _evaluation(chance, _predictions(chance, 200)), 201)


def _post_probabilities(chance: random.Random, _: Known) -> Ask:
    return Ask("POST", "/v1/evaluations", _evaluation(chance, _probabilities(chance, 200)), 201)


def _compute_large(chance: random.Random, _: Known) -> Ask:
    digits = chance.choices(b"01", k=_LARGE_SAMPLES)
    column = b",".join(bytes([digit]) for digit in digits)
    body = b'{"input": {"kind": "predictions", "y_true": [%b], "y_pred": [%b]}}' % (column, column[::-1])
    return Ask("POST", "/v1/metrics/compute", body)


def _read(chance: random.Random, known: Known) -> Ask:
    return Ask("GET", f"/v1/evaluations/{chance.choice(known.newest or known.matrices)}")


def _list(chance: random.Random, _: Known) -> Ask:
    return Ask("GET", f"/v1/evaluations?model=model-{chance.randrange(_MODELS)}&limit=20")


def _leaderboard(chance: random.Random, _: Known) -> Ask:
    return Ask("GET", f"/v1/leaderboard?dataset=dataset-{chance.randrange(_DATASETS)}&metric=h_mean&limit=10")


def _compare(chance: random.Random, known: Known) -> Ask:
    body = {"evaluations": chance.sample(known.samples, 2)}
    return Ask("POST", "/v1/comparisons", json.dumps(body).encode(), 201)


def _gate(chance: random.Random, known: Known) -> Ask:
    candidate, baseline = chance.sample(known.matrices, 2)
    body = {"evaluation": candidate, "baseline": baseline}
    return Ask("POST", "/v1/gates/soak/checks", json.dumps(body).encode(), 201)


def _project(chance: random.Random, known: Known) -> Ask:
    body = {"prevalence": {"a": 0.7, "b": 0.1, "c": 0.1, "d": 0.1}}
    return Ask("POST", f"/v1/evaluations/{chance.choice(known.matrices)}/projections", json.dumps(body).encode())


def _refused(_: random.Random, __: Known) -> Ask:
    body = {"input": {"kind": "confusion_matrix", "matrix": [[1, 2], [3]]}}
    return Ask("POST", "/v1/metrics/compute", json.dumps(body).encode(), 422)


# What is asked, how often of a hundred.
MIXTURE: dict[str, tuple[float, Make]] = {
    "matrix kept": (30, _post_matrix),
    "200 predictions kept": (12, _post_predictions),
    "200 × 3 probabilities kept": (4, _post_probabilities),
    "evaluation read": (25, _read),
    "list of 20": (14, _list),
    "leaderboard": (6, _leaderboard),
    "comparison of two, paired": (2, _compare),
    "gate checked": (2, _gate),
    "projection": (2, _project),
    "matrix refused": (2, _refused),
    "100,000 predictions": (1, _compute_large),
}


@dataclass
class Traffic:
    """Requests to one service, and how they were answered."""

    client: httpx.AsyncClient
    chance: random.Random
    known: Known = field(default_factory=Known)
    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    wrong: Counter[str] = field(default_factory=Counter)
    under_way: dict[int, float] = field(default_factory=dict)
    answered: list[tuple[float, float]] = field(default_factory=list)

    @property
    def longest_wait(self) -> float:
        """Seconds since the oldest request that has no answer yet was sent."""
        return time.perf_counter() - min(self.under_way.values(), default=time.perf_counter())

    async def send(self, name: str, due: float) -> None:
        """One request of a kind; the time of its answer counts from ``due``."""
        ask = MIXTURE[name][1](self.chance, self.known)
        number = len(self.answered) + len(self.under_way) + self.wrong.total()
        self.under_way[number] = due
        try:
            answer = await self.client.request(ask.method, ask.path, content=ask.body)
        except httpx.HTTPError as error:
            self.wrong[f"{name}: {error!r}"] += 1
            return
        finally:
            self.under_way.pop(number, None)
        self.seconds[name].append(time.perf_counter() - due)
        self.answered.append((due, time.perf_counter() - due))
        if answer.status_code != ask.status:
            self.wrong[f"{name}: {answer.status_code} {answer.text[:200]}"] += 1
        elif ask.path == "/v1/evaluations" and ask.method == "POST":
            self.known.newest = [*self.known.newest[-99:], answer.json()["id"]]

    def draw(self) -> str:
        """The kind of the next request."""
        return self.chance.choices([*MIXTURE], [share for share, _ in MIXTURE.values()])[0]

    async def prepare(self) -> None:
        """Evaluations on one set of samples, and a gate."""
        for _ in range(10):
            for value, kept in ((_matrix, self.known.matrices), (_same_samples, self.known.samples)):
                answer = await self.client.post("/v1/evaluations", content=_evaluation(self.chance, value(self.chance)))
                kept.append(answer.raise_for_status().json()["id"])
        rules = [
            {"metric": "min(recall@*)", "min": 0.3},
            {"metric": "h_mean", "not_worse_than": "baseline", "margin": 0.05},
        ]
        (await self.client.put("/v1/gates/soak", json={"rules": rules})).raise_for_status()

    async def capacity(self, seconds: float) -> float:
        """Requests a second when every connection asks again as soon as it is answered."""
        end = time.perf_counter() + seconds

        async def ask_on() -> int:
            answered = 0
            while (now := time.perf_counter()) < end:
                await self.send(self.draw(), now)
                answered += 1
            return answered

        return sum(await asyncio.gather(*(ask_on() for _ in range(CONNECTIONS)))) / seconds

    async def come(self, rate: float, seconds: float) -> None:
        """Requests at random moments, on average ``rate`` a second."""
        due = time.perf_counter()
        end = due + seconds
        async with asyncio.TaskGroup() as tasks:
            while (due := due + self.chance.expovariate(rate)) < end:
                await asyncio.sleep(max(0.0, due - time.perf_counter()))
                tasks.create_task(self.send(self.draw(), due))


def _same_samples(chance: random.Random) -> dict[str, object]:
    """Predictions of samples that have the same truth each time."""
    truth = random.Random(5).choices("abcd", k=500)
    predicted = [label if chance.random() < 0.8 else chance.choice("abcd") for label in truth]
    return {"kind": "predictions", "y_true": truth, "y_pred": predicted, "sample_ids": [*range(500)]}


def memory_of(root: psutil.Process) -> int:
    """Bytes that the service, its workers and compute processes hold for themselves; Postgres is not among them."""
    total = 0
    for process in (root, *root.children(recursive=True)):
        try:
            if not process.name().startswith("postgres"):
                total += process.memory_full_info().uss
        except psutil.NoSuchProcess:
            continue
    return total


async def watch_memory(root: psutil.Process, found: list[int]) -> None:
    """Look at the memory every few seconds until it is cancelled."""
    while True:
        found.append(await asyncio.to_thread(memory_of, root))
        await asyncio.sleep(_MEMORY_EVERY)


async def watch_stalls(traffic: Traffic, dsn: str, found: list[str]) -> None:
    """Look at what the database does when nothing has been answered for seconds, until it is cancelled."""
    start = time.perf_counter()
    while True:
        await asyncio.sleep(1)
        if traffic.longest_wait < _STALLED_SECONDS or len(found) >= _MOST_LOOKED_AT:
            continue
        connection = await asyncpg.connect(dsn, timeout=_STALLED_SECONDS)
        try:
            busy = await connection.fetch(_BUSY)
        finally:
            await connection.close()
        said = "; ".join(" ".join(str(value) for value in row.values()) for row in busy)
        found.append(
            f"after {time.perf_counter() - start:.0f} s, waited {traffic.longest_wait:.0f} s: {said or 'idle'}"
        )
        await asyncio.sleep(_STALLED_SECONDS)


_STALLED_SECONDS, _MOST_LOOKED_AT = 5.0, 20
_BUSY = """
SELECT count(*), state, wait_event_type, wait_event, max(now() - query_start)::text AS since, left(query, 60) AS query
FROM pg_stat_activity WHERE state <> 'idle' AND pid <> pg_backend_pid() GROUP BY 2, 3, 4, 6 ORDER BY 1 DESC LIMIT 8
"""


async def run(service: Service, minutes: float) -> Iterable[str]:
    """The whole measurement, as lines of Markdown."""
    base = f"http://127.0.0.1:{service.port}"
    limits = httpx.Limits(max_connections=4 * CONNECTIONS, max_keepalive_connections=4 * CONNECTIONS)
    headers = {"Content-Type": "application/json"}
    async with httpx.AsyncClient(base_url=base, headers=headers, timeout=60, limits=limits) as client:
        traffic = Traffic(client, random.Random(1))
        await traffic.prepare()
        await traffic.capacity(_CAPACITY_SECONDS / 3)
        most = await traffic.capacity(_CAPACITY_SECONDS)
        traffic.seconds.clear()
        traffic.answered.clear()
        memory: list[int] = []
        stalls: list[str] = []
        watching = asyncio.create_task(watch_memory(psutil.Process(service.process.pid), memory))
        looking = asyncio.create_task(watch_stalls(traffic, service.dsn(), stalls))
        await traffic.come(SHARE * most, minutes * 60)
        watching.cancel()
        looking.cancel()
    return (*report(traffic, most, memory, minutes), *(f"\nStalled {said}" for said in stalls))


def report(traffic: Traffic, most: float, memory: Sequence[int], minutes: float) -> Iterator[str]:
    """Markdown."""
    total = sum(map(len, traffic.seconds.values()))
    yield (
        f"{WORKERS} workers did {most:.0f} requests a second of this mixture with {CONNECTIONS} connections that never "
        f"pause. Then {minutes:g} minutes at {SHARE:.0%} of that, at random moments: {total:,} requests, "
        f"{sum(traffic.wrong.values())} of them answered otherwise than they should be."
    )
    yield ""
    yield "| request | number | median, ms | p99, ms | longest, ms |"
    yield "| --- | ---: | ---: | ---: | ---: |"
    for name in MIXTURE:
        yield _row(name, traffic.seconds[name])
    yield _row("all", [seconds for each in traffic.seconds.values() for seconds in each])
    yield ""
    parts = [memory[place * len(memory) // 6 : (place + 1) * len(memory) // 6] for place in range(6)]
    means = ", ".join(f"{statistics.mean(part) / _MB:.0f}" for part in parts)
    yield (
        f"Memory of the service and its processes without Postgres, mean over each sixth of the time, MB: {means}; "
        f"most {max(memory) / _MB:.0f}."
    )
    yield ""
    yield _by_minute(traffic.answered)
    for said, number in traffic.wrong.most_common(10):
        yield f"\n{number} × {said}"


def _by_minute(answered: Sequence[tuple[float, float]]) -> str:
    """In which minutes anybody waited."""
    begin = min(due for due, _ in answered)
    minutes: dict[int, list[float]] = defaultdict(list)
    for due, seconds in answered:
        minutes[int((due - begin) // 60)].append(seconds)
    slow = [minute for minute, seconds in minutes.items() if max(seconds) > 1.0]
    p99 = sorted(1e3 * statistics.quantiles(seconds, n=100)[98] for seconds in minutes.values() if len(seconds) > 1)
    late = sum(seconds > 1.0 for _, seconds in answered)
    where = f": {slow[:10]}" if slow else ""
    return (
        f"p99 of single minutes, ms: {p99[0]:.0f} to {p99[-1]:.0f}, median {statistics.median(p99):.0f}; {late} took "
        f"more than a second, in {len(slow)} of {len(minutes)} minutes{where}."
    )


def _row(name: str, seconds: Sequence[float]) -> str:
    if len(seconds) < 2:
        return f"| {name} | {len(seconds)} | | | |"
    cuts = statistics.quantiles(seconds, n=100)
    return f"| {name} | {len(seconds):,} | {1e3 * cuts[49]:.1f} | {1e3 * cuts[98]:.1f} | {1e3 * max(seconds):.0f} |"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2)
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="prevail-soak-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        folder.chmod(0o755)
        service = Service(folder)
        try:
            service.dsn()
            service.wait_for_workers()
            lines = [*asyncio.run(run(service, chosen.minutes))]
        finally:
            service.stop()
    print("\n".join(lines))
    print(f"load of the machine: {os.getloadavg()[2]:.1f}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
