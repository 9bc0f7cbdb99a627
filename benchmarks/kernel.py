"""Metrics beside PyCM, scikit-learn and, where it is installed, ranx: `python -m benchmarks.kernel`.

CPU time of this process, medians, both sides in turn in the same process, one BLAS thread. Freed memory is kept, as in
the processes of the service: else the batch takes twice as long, or not, depending on what ran before it.
"""

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from itertools import chain
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.domain.inputs.clustering import Clustering
from app.domain.inputs.kind import Input
from app.domain.inputs.multilabel import Multilabel
from app.domain.options import Options
from app.kernel.matrix.table import Table, confusion_counts
from app.kernel.metrics.card import Inputs, Scope, evaluate_table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families.retrieval import mean_average_precision, mean_reciprocal_rank, ndcg_at_k
from app.kernel.units.queries import Queries
from app.services.evaluate.reports import evaluate
from app.services.processes.worker import keep_freed_memory

METRICS = [metric for metric in catalogue().of_matrices.reported.metrics if metric.card.inputs is Inputs.MATRIX]
CLASS = [metric for metric in METRICS if metric.card.scope is Scope.CLASS]
OVERALL = [metric for metric in METRICS if metric.card.scope is Scope.OVERALL]


@dataclass(frozen=True, slots=True)
class Duel:
    """Two ways to the same, and how many times faster ours has to be."""

    name: str
    ours: Callable[[], object]
    theirs: Callable[[], object]
    times: float | None
    rounds: int
    peer_runs: int = 1


def full_report(counts: NDArray[Any]) -> tuple[NDArray[np.float64], ...]:
    """Every class metric and every overall metric, from one table."""
    table = Table(counts)
    return evaluate_table(table, CLASS), evaluate_table(table, OVERALL)


def random_matrix(rng: np.random.Generator, classes: int, n: int) -> NDArray[np.int64]:
    """A classifier with 70 % recall and more on classes of uneven size."""
    shares = rng.dirichlet(np.full(classes, 2.0))
    cells = 0.3 * shares[:, None] * rng.dirichlet(np.ones(classes), classes) + 0.7 * np.diag(shares)
    return rng.multinomial(n, cells.ravel() / cells.sum()).reshape(classes, classes)


def cpu_seconds(work: Callable[[], object], repeats: int) -> float:
    start = time.process_time_ns()
    for _ in range(repeats):
        work()
    return (time.process_time_ns() - start) / repeats / 1e9


def measured(duel: Duel) -> tuple[float, float]:
    """Median CPU seconds of ours and theirs, in turn."""
    duel.ours()
    duel.theirs()
    pairs = [(cpu_seconds(duel.ours, 5), cpu_seconds(duel.theirs, 1)) for _ in range(duel.rounds)]
    return median(ours for ours, _ in pairs), median(theirs for _, theirs in pairs) * duel.peer_runs


def duels(rng: np.random.Generator) -> Iterator[Duel]:
    import pycm
    from sklearn import metrics as sk

    # PyCM adds binomial terms for its p-value until they overflow: most up to n = 1,000, still half its time at 10,000.
    sizes = (
        (2, 1_000_000, 1, 200),
        (10, 10_000, 5, 100),
        (10, 1_000_000, None, 100),
        (35, 100_000, 10, 40),
        (100, 1_000_000, 50, 15),
    )
    for classes, n, times, rounds in sizes:
        counts = random_matrix(rng, classes, n)
        yield Duel(
            f"full report, K = {classes}, n = {n:,} against PyCM",
            lambda counts=counts: full_report(counts),  # type: ignore[misc]
            lambda counts=counts: pycm.ConfusionMatrix(matrix=counts.tolist()),  # type: ignore[misc]
            times,
            rounds,
        )
    batch = np.stack([random_matrix(rng, 10, 100_000) for _ in range(1000)])
    yield Duel(
        "1,000 full reports, K = 10, in one batch against PyCM one by one",
        lambda: full_report(batch),
        lambda: [pycm.ConfusionMatrix(matrix=counts.tolist()) for counts in batch[:20]],
        100,
        7,
        peer_runs=50,
    )
    actual = rng.integers(0, 10, 1_000_000)
    predicted = np.where(rng.random(actual.size) < 0.8, actual, rng.integers(0, 10, actual.size))

    def scikit_learn() -> None:
        sk.classification_report(actual, predicted)
        sk.matthews_corrcoef(actual, predicted)
        sk.cohen_kappa_score(actual, predicted)
        sk.balanced_accuracy_score(actual, predicted)

    yield Duel(
        "1,000,000 integer labels to full report, K = 10, against scikit-learn's report, MCC, kappa, balanced accuracy",
        lambda: full_report(confusion_counts(actual, predicted, 10)),
        scikit_learn,
        100,
        7,
    )


def report_of(source: Input) -> object:
    """The report of an input with limits and findings, from its columns."""
    return evaluate(source.read(""), Options())


def duels_of_kinds(rng: np.random.Generator) -> Iterator[Duel]:
    from sklearn import metrics as sk

    for n, labels in ((100_000, 50), (100_000, 10), (10_000, 200)):
        truth = rng.random((n, labels)) < 0.1
        said = truth ^ (rng.random(truth.shape) < 0.02)
        yield Duel(
            f"whole report of labels, n = {n:,}, L = {labels}, against scikit-learn's classification report",
            lambda truth=truth, said=said: report_of(Multilabel(y_true=truth, y_pred=said)),  # type: ignore[misc]
            lambda truth=truth, said=said: sk.classification_report(truth, said, zero_division=0),  # type: ignore[misc]
            None,
            5,
        )
    for n, groups in ((1_000_000, 10), (1_000_000, 50)):
        classes = rng.integers(0, groups, n)
        found = np.where(rng.random(n) < 0.7, classes, rng.integers(0, groups, n))
        yield Duel(
            f"whole report of clusterings, n = {n:,}, {groups} x {groups}, against scikit-learn's adjusted information",
            lambda classes=classes, found=found: report_of(Clustering(y_true=classes, y_pred=found)),  # type: ignore[misc]
            lambda classes=classes, found=found: sk.adjusted_mutual_info_score(classes, found),  # type: ignore[misc]
            None,
            5,
        )
    if find_spec("ranx") is not None:
        yield from duels_of_rankings(rng)


def duels_of_rankings(rng: np.random.Generator) -> Iterator[Duel]:
    """Ours from arrays, ranx from data that it has in its own form already. Every query has the same value."""
    ranx: Any = import_module("ranx")
    n, items = 10_000, 100
    query, relevance = np.repeat(np.arange(n), items), rng.integers(0, 4, n * items) * (rng.random(n * items) < 0.3)
    exact = rng.permutation(n * items) / (n * items)
    names, documents = [f"q{one}" for one in range(n)], [f"d{one}" for one in range(items)]
    tables: list[list[list[Any]]] = [relevance.reshape(n, items).tolist(), exact.reshape(n, items).tolist()]
    judged, ranked = (
        {name: dict(zip(documents, row, strict=True)) for name, row in zip(names, table, strict=True)}
        for table in tables
    )
    qrels, run = ranx.Qrels(judged), ranx.Run(ranked)
    asked = {"nDCG@10": (ndcg_at_k, "ndcg@10"), "MAP": (mean_average_precision, "map")}
    asked |= {"MRR": (mean_reciprocal_rank, "mrr")}
    several = {name: ([metric], [theirs]) for name, (metric, theirs) in asked.items()}
    several["all three"] = ([metric for metric, _ in asked.values()], [theirs for _, theirs in asked.values()])

    def values(metrics: list[Any], scores: NDArray[Any]) -> list[float]:
        queries = Queries(query, relevance, scores)
        return [float(metric(queries, **({"k": 10} if metric is ndcg_at_k else {}))) for metric in metrics]

    for name, (metrics, theirs) in several.items():
        said = ranx.evaluate(qrels, run, theirs)
        np.testing.assert_allclose(values(metrics, exact), [*said.values()] if theirs[1:] else said, rtol=1e-12)
        for scores, ties in ((exact, ""), (exact.round(2), ", scores with ties")):
            yield Duel(
                f"{name} of {n:,} queries x {items} items from arrays{ties}, against ranx from its own data",
                lambda metrics=metrics, scores=scores: values(metrics, scores),  # type: ignore[misc]
                lambda theirs=theirs: ranx.evaluate(qrels, run, theirs),  # type: ignore[misc]
                None,
                5,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="run the comparisons whose name contains this")
    only = parser.parse_args().only
    warnings.simplefilter("ignore")
    keep_freed_memory()
    print(f"{len(CLASS)} class metrics and {len(OVERALL)} overall metrics per report\n")
    print("| what | ours | theirs | ratio | asked for |\n|---|---|---|---|---|")
    rng = np.random.default_rng(1)
    for duel in chain(duels(rng), duels_of_kinds(rng)):
        if only in duel.name:
            ours, theirs = measured(duel)
            times = f"{ours * 1e6:,.0f} us | {theirs * 1e6:,.0f} us"
            print(f"| {duel.name} | {times} | {theirs / ours:.1f} | {duel.times or ''} |")


if __name__ == "__main__":
    main()
