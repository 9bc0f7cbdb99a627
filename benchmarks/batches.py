"""Matrices in batches beside matrices one by one: `python -m benchmarks.batches [--matrices 2000] [--rounds 3]`.

Matrices of ten classes, kept, each answered with its full report, on one connection: one request after the other, and
in batches of as many as a batch takes. In turns; the table holds medians over the rounds. Client, service (one worker)
and Postgres (the embedded one, fsync on) share the machine.
"""

import argparse
import http.client
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from app.embedded import EmbeddedPostgres
from benchmarks import http as over_http

BATCH = 1000
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
    asked: dict[str, tuple[Ask, list[str]]] = {"one by one": (_post_one, alone), "in batches": (_post_batch, batches)}
    load = os.getloadavg()[1]
    found: dict[str, list[float]] = {name: [] for name in asked}
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="prevail-batches-")))
        server = stack.enter_context(EmbeddedPostgres.start(folder, durable=True))
        server.create_database()
        target = stack.enter_context(over_http.prevail(server.dsn(), some))
        for _ in range(chosen.rounds):
            for name, (ask, sent) in asked.items():
                found[name].append(chosen.matrices / _seconds(target.port, ask, sent))
    rates = {name: statistics.median(each) for name, each in found.items()}
    print("| way | evaluations per second | range |")
    print("| --- | ---: | ---: |")
    for name, each in found.items():
        print(f"| {name} | {rates[name]:,.0f} | {min(each):,.0f} to {max(each):,.0f} |")
    times = rates["in batches"] / rates["one by one"]
    print(f"\nBatches of {BATCH:,}: {times:.1f} times as fast. Load of the machine before: {load:.1f}.")


def _seconds(port: int, ask: Ask, bodies: list[str]) -> float:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=600)
    begun = time.perf_counter()
    for body in bodies:
        ask(connection, body)
    seconds = time.perf_counter() - begun
    connection.close()
    return seconds


def _post_one(connection: http.client.HTTPConnection, body: str) -> None:
    _post(connection, "/v1/evaluations", body, 201)


def _post(connection: http.client.HTTPConnection, path: str, body: str, expected: int) -> bytes:
    connection.request("POST", path, body, {"content-type": "application/json"})
    answer = connection.getresponse()
    content = answer.read()
    if answer.status != expected:
        raise RuntimeError(f"{path} was answered {answer.status}: {content[:300]!r}")
    return content


def _post_batch(connection: http.client.HTTPConnection, body: str) -> None:
    content = _post(connection, "/v1/evaluations/batch", body, 207)
    # Counted and not parsed: alone no answer is parsed either.
    kept, refused = content.count(b'{"status":201,"evaluation":'), content.count(b'"problem":')
    if refused or not kept:
        raise RuntimeError(f"{kept} of a batch were kept, {refused} were refused")


if __name__ == "__main__":
    main()
