"""nDCG@10 of many queries against ranx: run with ``python -m benchmarks.rankings``.

CPU time, medians of rounds in which everything runs once, one thread, one process. Ours starts from arrays: nDCG@10
alone, and every metric of rankings at every cutoff. ranx starts from its own data (`Qrels`, `Run`), whose making from
the same arrays is timed by itself, and so is its first call, which compiles. ranx is no part of the bench environment:
where it is not installed (`pip install ranx`), it is left out, and the output says so. The values have to agree.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

import argparse
import gc
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.inputs.ranking import CUTOFFS
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.retrieval import ndcg_at_k
from app.kernel.units.queries import Queries

_K = 10.0
# Relative: what both define in the same way differs by no more.
_SAME = 1e-12
Table = NDArray[np.float64]


def everything(data: Queries) -> list[float]:
    """Every metric of rankings at every cutoff."""
    found = []
    for metric in catalogue().of_rankings.metrics:
        cutoffs = CUTOFFS if "k" in metric.card.defaults else (None,)
        found += [float(metric(data) if k is None else metric(data, k=float(k))) for k in cutoffs]
    return found


class Theirs:
    """ranx on the same queries."""

    def __init__(self, ranx: Any, relevance: Table, scores: Table) -> None:
        self._ranx, self._relevance, self._scores = ranx, relevance, scores
        self._names = [f"d{number}" for number in range(relevance.shape[1])]
        self._data = self.made()

    def made(self) -> tuple[Any, Any]:
        """Its data from arrays."""
        tables = (self._relevance.astype(np.int64).tolist(), self._scores.tolist())
        # Names of one length: ranx brings queries into the order of their names.
        qrels, run = (
            {f"q{row:09}": dict(zip(self._names, values, strict=True)) for row, values in enumerate(table)}
            for table in tables
        )
        return self._ranx.Qrels(qrels), self._ranx.Run(run)

    def evaluated(self, *, return_mean: bool = True) -> Any:
        """nDCG@10, of all or of each query."""
        return self._ranx.evaluate(*self._data, f"ndcg@{_K:.0f}", return_mean=return_mean)


def medians(parts: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Median seconds of each; the first round is left out."""
    taken: dict[str, list[float]] = {name: [] for name in parts}
    for number in range(rounds + 1):
        for name, run in parts.items():
            gc.collect()
            start = time.process_time()
            run()
            if number:
                taken[name].append(time.process_time() - start)
    return {name: median(found) for name, found in taken.items()}


def check_same(data: Queries, theirs: Theirs) -> None:
    """Values of each query and their mean agree.

    Raises:
        SystemExit: they do not.
    """
    terms = ndcg_at_k.card.inference.terms
    if terms is None:
        raise TypeError("expected a mean over queries")
    own: Table = terms(data, **{**ndcg_at_k.card.defaults, "k": _K}).of_units
    pairs = ((own, np.asarray(theirs.evaluated(return_mean=False))), (ndcg_at_k(data, k=_K), theirs.evaluated()))
    for mine, other in pairs:
        if not np.allclose(mine, other, rtol=_SAME, atol=0.0):
            raise SystemExit("ranx and the kernel do not agree")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--queries", type=int, default=10_000)
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    random, shape = np.random.default_rng(0), (asked.queries, asked.items)
    relevance: Table = (random.integers(0, 4, shape) * (random.random(shape) < 0.2)).astype(np.float64)
    # Every query has a relevant item, so that both mean over the same queries.
    relevance[:, 0] = 1.0
    scores = random.random(shape)
    query = np.repeat(np.arange(asked.queries), asked.items)

    def data() -> Queries:
        return Queries(query, relevance.ravel(), scores.ravel())

    alone, all_of_ours = "nDCG@10", "every metric at every cutoff"
    parts: dict[str, Callable[[], object]] = {
        alone: lambda: ndcg_at_k(data(), k=_K),
        all_of_ours: lambda: everything(data()),
    }
    try:
        ranx: Any = import_module("ranx")
    except ImportError:
        print("ranx is not installed")
        print(*(f"{name}: {taken * 1e3:.1f} ms" for name, taken in medians(parts, asked.rounds).items()), sep="\n")
        return
    start = time.process_time()
    theirs = Theirs(ranx, relevance, scores)
    check_same(data(), theirs)
    first = time.process_time() - start
    found = medians({**parts, "made": theirs.made, "evaluated": theirs.evaluated}, asked.rounds)
    print("| ours, from arrays | against | ours, ms | theirs, ms | ratio |")
    print("| --- | --- | ---: | ---: | ---: |")
    with_data = found["made"] + found["evaluated"]
    for what, other in (("nDCG@10 of its own data", found["evaluated"]), ("nDCG@10 from arrays", with_data)):
        for name in (alone, all_of_ours):
            mine = found[name]
            print(f"| {name} | ranx, {what} | {mine * 1e3:.1f} | {other * 1e3:.1f} | {other / mine:.1f} |")
    print(f"\nranx's first data and values, compiled on the way: {first:.1f} s.")


if __name__ == "__main__":
    main()
