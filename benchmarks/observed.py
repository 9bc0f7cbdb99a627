"""What keys, logs and metrics cost: `python -m benchmarks.observed [--rounds 3] [--seconds 4]`.

Stored reports of ten classes per second, with the whole report as the answer, from two services on one Postgres: one
without keys, lines about requests and metrics, and one with all of them, read by a scraper every five seconds. Both
are asked in turn, within each round in another order; ratios are made within each round.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx

from app.embedded import EmbeddedPostgres
from benchmarks.http import CONNECTIONS, WORKERS, Sample, Target, measure, prevail, requests

_SCRAPE_SECONDS = 5.0


def make_key(dsn: str) -> str:
    """An admin key, as an operator makes it."""
    command = [sys.executable, "-m", "app", "keys", "create", "--name", "bench", "--scope", "admin"]
    made = subprocess.run(
        command, env=os.environ | {"PREVAIL_DATABASE_URL": dsn}, check=True, stdout=subprocess.PIPE, text=True
    )
    return made.stdout.strip()


@contextmanager
def scraping(target: Target) -> Iterator[list[int]]:
    """Read the metrics until the end of the block; the sizes of what was read."""
    sizes: list[int] = []
    over = threading.Event()

    def scrape() -> None:
        with httpx.Client(headers={"Authorization": f"Bearer {target.key}"}, timeout=30) as client:
            while not over.wait(_SCRAPE_SECONDS):
                sizes.append(len(client.get(f"http://127.0.0.1:{target.port}/metrics").raise_for_status().content))

    thread = threading.Thread(target=scrape)
    thread.start()
    try:
        yield sizes
    finally:
        over.set()
        thread.join()


def run(rounds: int, seconds: float) -> tuple[dict[int, list[tuple[Sample, Sample]]], list[int]]:
    """Pairs of samples, bare and observed, by number of connections; and the sizes of the metrics that were read."""
    bodies = requests()
    pairs: dict[int, list[tuple[Sample, Sample]]] = {count: [] for count in CONNECTIONS}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prevail-bench-")))
        postgres = stack.enter_context(EmbeddedPostgres.start(folder / "data", durable=True))
        postmaster = int((postgres.home / "cluster" / "postmaster.pid").read_text().split()[0])
        for name in ("bare", "observed"):
            postgres.create_database(name)
        off = {"PREVAIL_AUTHENTICATION": "off", "PREVAIL_METRICS_ACCESS": "off"}
        bare = stack.enter_context(prevail(postgres.dsn("bare"), bodies, "bare", **off))
        dsn = postgres.dsn("observed")
        migrated = {**os.environ, "PREVAIL_DATABASE_URL": dsn}
        subprocess.run([sys.executable, "-m", "app", "migrate"], env=migrated, check=True, stdout=subprocess.DEVNULL)
        on = {"PREVAIL_AUTHENTICATION": "keys", "PREVAIL_ACCESS_LOG": "true"}
        observed = stack.enter_context(prevail(dsn, bodies, "observed", make_key(dsn), **on))
        sizes = stack.enter_context(scraping(observed))
        # Processes that compute are still starting when a service answers.
        for target in (bare, observed):
            measure(target, max(CONNECTIONS), 2 * seconds, postmaster)
        for number in range(rounds):
            for count in CONNECTIONS:
                order = (bare, observed) if number % 2 else (observed, bare)
                found = {target.name: measure(target, count, seconds, postmaster) for target in order}
                for name, sample in found.items():
                    assert not sample.failed, sample.first_failure
                    print(f"round {number + 1} c={count} {name}: {sample}", file=sys.stderr, flush=True)
                pairs[count].append((found["bare"], found["observed"]))
    return pairs, sizes


def table(pairs: dict[int, list[tuple[Sample, Sample]]]) -> list[str]:
    """The medians as markdown."""
    lines = [
        "| connections | stored reports/s, bare | with keys, logs, metrics | share | server CPU ms, bare | with "
        "| share by CPU of everything |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for count, samples in pairs.items():
        rate = statistics.median(observed.rate / bare.rate for bare, observed in samples)
        cpu = statistics.median(bare.all_cpu / observed.all_cpu for bare, observed in samples)
        middle = [
            statistics.median(getattr(pair[place], name) for pair in samples)
            for name in ("rate", "server_cpu")
            for place in (0, 1)
        ]
        lines.append(
            f"| {count} | {middle[0]:.0f} | {middle[1]:.0f} | {100 * rate:.0f} % | {middle[2]:.3f} | {middle[3]:.3f} "
            f"| {100 * cpu:.0f} % |"
        )
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    chosen = parser.parse_args()
    pairs, sizes = run(chosen.rounds, chosen.seconds)
    print(
        f"Medians of {chosen.rounds} rounds of {chosen.seconds:g} s, {WORKERS} workers, {os.cpu_count()} cores for "
        f"everything. The metrics were read {len(sizes)} times, {statistics.median(sizes or [0]) / 1024:.0f} KiB each."
    )
    print()
    print("\n".join(table(pairs)))


if __name__ == "__main__":
    main()
