"""nDCG@10 of many queries, from arrays to the value: the kernel beside ranx, and everything that a report has of them.

ranx is no part of the bench environment unless it is installed there (`pip install ranx`); its compiled functions run
once before they are timed. It takes its data as dictionaries, whose making is timed by itself.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from app.domain.inputs.units.rankings import CUTOFFS
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.units.at_cutoffs import ndcg_at_k
from app.kernel.units.queries import Queries


def measured(function: Callable[[], Any], rounds: int) -> float:
    """Median seconds."""
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def everything(data: Queries) -> list[float]:
    """Every metric of rankings at every cutoff."""
    found = []
    for metric in catalogue().of_rankings.metrics:
        cutoffs = CUTOFFS if "k" in metric.card.defaults else (None,)
        found += [float(metric(data) if k is None else metric(data, k=float(k))) for k in cutoffs]
    return found


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    random = np.random.default_rng(0)
    shape = (asked.queries, asked.items)
    relevance = random.integers(0, 4, shape) * (random.random(shape) < 0.2)
    relevance[:, 0] = 1
    scores = random.random(shape)
    query = np.repeat(np.arange(asked.queries), asked.items)

    def alone() -> float:
        return float(ndcg_at_k(Queries(query, relevance.ravel(), scores.ravel()), k=10.0))

    def whole() -> list[float]:
        return everything(Queries(query, relevance.ravel(), scores.ravel()))

    print(f"{asked.queries} queries of {asked.items} items, median of {asked.rounds}")
    print(f"  kernel, nDCG@10 from arrays          {measured(alone, asked.rounds) * 1e3:9.1f} ms")
    print(f"  kernel, all metrics at all cutoffs   {measured(whole, asked.rounds) * 1e3:9.1f} ms")
    try:
        ranx: Any = import_module("ranx")
    except ImportError:
        print("  ranx is not installed")
        return
    names = [f"d{number}" for number in range(asked.items)]

    def made() -> tuple[Any, Any]:
        qrels = {f"q{row}": dict(zip(names, grades, strict=True)) for row, grades in enumerate(relevance.tolist())}
        run = {f"q{row}": dict(zip(names, values, strict=True)) for row, values in enumerate(scores.tolist())}
        return ranx.Qrels(qrels), ranx.Run(run)

    def evaluated() -> float:
        return float(ranx.evaluate(*data, "ndcg@10"))

    data = made()
    expected = evaluated()
    if abs(expected - alone()) > 1e-12:
        raise SystemExit(f"ranx says {expected}, the kernel {alone()}")
    print(f"  ranx, its data from arrays           {measured(made, 1) * 1e3:9.1f} ms")
    print(f"  ranx, nDCG@10 of its data            {measured(evaluated, asked.rounds) * 1e3:9.1f} ms")


if __name__ == "__main__":
    main()
