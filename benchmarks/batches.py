"""Matrices in batches beside matrices one by one: `python -m benchmarks.batches [--matrices 2000] [--rounds 3]`.

Matrices of ten classes, kept, on one connection: one request after the other, and in batches of as many as a batch
takes; each answered with its full report, or with its headline (`Prefer: return=minimal`). In turns; the table holds
medians over the rounds. Client, service (one worker) and Postgres (the embedded one, fsync on) share the machine.
"""

import argparse
import http.client
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from app.embedded import EmbeddedPostgres
from benchmarks import http as over_http
from benchmarks.processes import busy_seconds, tree_seconds

BATCH = 1000
BRIEF = {"prefer": "return=minimal"}
Ask = Callable[[http.client.HTTPConnection, str], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--matrices", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    over_http.WORKERS = 1
    some = over_http.requests()
    bodies = [some[number % len(some)] for number in range(chosen.matrices)]
    alone = [json.dumps(body) for body in bodies]
    batches = [json.dumps({"evaluations": bodies[first : first + BATCH]}) for first in range(0, len(bodies), BATCH)]
    asked: dict[str, tuple[Ask, list[str]]] = {
        "one by one": (_post_one({}), alone),
        "in batches": (_post_batch({}), batches),
        "one by one, headlines": (_post_one(BRIEF), alone),
        "in batches, headlines": (_post_batch(BRIEF), batches),
    }
    found: dict[str, list[Turn]] = {name: [] for name in asked}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prevail-batches-")))
        server = stack.enter_context(EmbeddedPostgres.start(folder, durable=True))
        postmaster = int((server.home / "cluster" / "postmaster.pid").read_text().split()[0])
        server.create_database()
        target = stack.enter_context(over_http.prevail(server.dsn(), some))
        for _ in range(chosen.rounds):
            for name, (ask, sent) in asked.items():
                found[name].append(_turn(target, postmaster, ask, sent, chosen.matrices))
    middle = {
        name: Turn(*(statistics.median(column) for column in zip(*each, strict=True))) for name, each in found.items()
    }
    print("| way | evaluations per second | range | CPU ms of one: service | Postgres | other load |")
    print("| --- | ---: | ---: | ---: | ---: | ---: |")
    for name, each in found.items():
        rates, one = [turn.rate for turn in each], middle[name]
        print(f"| {name} | {one.rate:,.0f} | {min(rates):,.0f} to {max(rates):,.0f} | {one.service:.2f} ", end="")
        print(f"| {one.postgres:.2f} | {100 * one.others:.0f} % |")
    print(f"\nHow many times as fast batches of {BATCH:,} are, and by processor time (which other load changes less):")
    for first, second in (("one by one", "in batches"), tuple(asked)[2:], ("one by one", "in batches, headlines")):
        times = middle[second].rate / middle[first].rate
        by_cpu = middle[first].cpu / middle[second].cpu
        print(f"{second} against {first}: {times:.1f}, {by_cpu:.1f}.")


class Turn(NamedTuple):
    """What one way did in one round.

    Attributes:
        rate: Evaluations per second.
        service: Processor time of one, in milliseconds.
        postgres: The same of Postgres.
        others: What else ran on the machine, of all its cores.
    """

    rate: float
    service: float
    postgres: float
    others: float

    @property
    def cpu(self) -> float:
        return self.service + self.postgres


def _turn(target: over_http.Target, postmaster: int, ask: Ask, bodies: list[str], number: int) -> Turn:
    roots = (target.process.pid, postmaster)
    before, own, busy = [tree_seconds(root) for root in roots], time.process_time(), busy_seconds()
    connection = http.client.HTTPConnection("127.0.0.1", target.port, timeout=600)
    begun = time.perf_counter()
    for body in bodies:
        ask(connection, body)
    seconds = time.perf_counter() - begun
    connection.close()
    busy, own = busy_seconds() - busy, time.process_time() - own
    service, postgres = (tree_seconds(root) - known for root, known in zip(roots, before, strict=True))
    others = max(0.0, busy - own - service - postgres) / (seconds * (os.cpu_count() or 1))
    return Turn(number / seconds, 1e3 * service / number, 1e3 * postgres / number, others)


def _post_one(headers: Mapping[str, str]) -> Ask:
    def ask(connection: http.client.HTTPConnection, body: str) -> None:
        _post(connection, "/v1/evaluations", body, headers, 201)

    return ask


def _post(
    connection: http.client.HTTPConnection, path: str, body: str, headers: Mapping[str, str], expected: int
) -> bytes:
    connection.request("POST", path, body, {"content-type": "application/json", **headers})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != expected:
        raise RuntimeError(f"{path} was answered {answer.status}: {content[:300]!r}")
    return content


def _post_batch(headers: Mapping[str, str]) -> Ask:
    def ask(connection: http.client.HTTPConnection, body: str) -> None:
        content = _post(connection, "/v1/evaluations/batch", body, headers, 207)
        # Counted and not parsed: alone no answer is parsed either.
        kept, refused = content.count(b'{"status":201,"evaluation":'), content.count(b'"problem":')
        if refused or not kept:
            raise RuntimeError(f"{kept} of a batch were kept, {refused} were refused")

    return ask


if __name__ == "__main__":
    main()
