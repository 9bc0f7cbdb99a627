"""How often 95 % intervals hold the truth, and how often paired tests reject equality, by simulation.

Run ``python -m benchmarks.coverage``; prints Markdown tables. ``--replicates`` sets their precision: 2000 give a
standard error of half a point.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

import numpy as np

from app.kernel.catalogue import catalogue
from app.kernel.comparison import joint as joint_runs
from app.kernel.comparison.auc import delong
from app.kernel.comparison.differences import normal_limits, paired_variance, permutation_p
from app.kernel.comparison.paired import discordance, mcnemar, tango_z
from app.kernel.numerics import Array, silently
from app.kernel.table import Table
from app.kernel.uncertainty.design import Prior, Shares, generator
from app.kernel.uncertainty.draws import evaluate_draws
from app.kernel.uncertainty.headline import headline
from app.kernel.uncertainty.posterior import draw_matrices

KEYS = ("balanced_accuracy", "h_mean", "macro_f1", "mcc")
CLASSES = (2, 3, 10)
SIZES = (25, 100)
DRAWS = 1000
LEVEL = 0.95


def true_rows(n_classes: int) -> Array:
    """Rows P(predicted | actual) with recalls evenly spaced from .80 to .99 and errors spread evenly."""
    recalls = np.linspace(0.80, 0.99, n_classes)
    rows = np.repeat(((1.0 - recalls) / (n_classes - 1))[:, None], n_classes, axis=1)
    np.fill_diagonal(rows, recalls)
    return rows


def functionals(keys: Sequence[str] = KEYS) -> list[Callable[[Table], Array]]:
    return [catalogue().by_name[key].compute for key in keys]


def samples(rows: Array, size: int, replicates: int, random: np.random.Generator, *, fixed: bool) -> Array:
    """Confusion matrices (replicates, K, K) with ``size`` items per class, or that many on average."""
    classes = len(rows)
    if fixed:
        return random.multinomial(size, rows, size=(replicates, classes)).astype(np.float64)
    cells = random.multinomial(size * classes, rows.ravel() / classes, size=replicates)
    return cells.reshape(replicates, classes, classes).astype(np.float64)


def posterior_coverage(
    counts: Array, truth: Sequence[float], *, prior: Prior, shares: Shares, keys: Sequence[str] = KEYS
) -> list[float]:
    """Share of the matrices (replicates, K, K) whose posterior interval holds the truth, per metric."""
    hits = np.zeros(len(keys))
    with silently():
        for start in range(0, len(counts), 50):
            some = counts[start : start + 50]
            batches = draw_matrices(some, draws=DRAWS, random=generator(start), prior=prior, shares=shares)
            for position, values in enumerate(evaluate_draws(batches, functionals(keys))):
                low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
                hits[position] += ((low <= truth[position]) & (truth[position] <= high)).sum()
    return [float(hit) / len(counts) for hit in hits]


def headline_coverage(counts: Array, truth: Sequence[float]) -> list[float]:
    """The same for the closed forms; a matrix without interval counts as a miss."""
    hits = dict.fromkeys(KEYS, 0)
    for matrix in counts:
        for interval in headline(Table(matrix), LEVEL).overall:
            if interval.key in hits:
                hits[interval.key] += interval.low <= truth[KEYS.index(interval.key)] <= interval.high
    return [hits[key] / len(counts) for key in KEYS]


def coverage_table(replicates: int) -> list[tuple[str, int, int, list[float]]]:
    table = []
    for classes in CLASSES:
        rows = true_rows(classes)
        with silently():
            truth = [float(functional(Table(rows))) for functional in functionals()]
        for size in SIZES:
            random = generator(classes * 1000 + size)
            for design, fixed, shares in (("fixed", True, Shares.OBSERVED), ("random", False, Shares.SAMPLED)):
                counts = samples(rows, size, replicates, random, fixed=fixed)
                table.append((f"closed form, {design}", classes, size, headline_coverage(counts, truth)))
                found = posterior_coverage(counts, truth, prior=Prior.EDGE, shares=shares)
                table.append((f"posterior, {design}", classes, size, found))
    return table


def prior_table(replicates: int) -> list[tuple[str, list[float]]]:
    """Coverage of A and H under each prior, for few and for many classes."""
    table = []
    for prior in (Prior.UNIFORM, Prior.JEFFREYS_RECALL, Prior.EDGE):
        shown = []
        for classes, size in ((2, 30), (10, 25), (35, 25)):
            rows = true_rows(classes)
            with silently():
                truth = [float(functional(Table(rows))) for functional in functionals(KEYS[:2])]
            counts = samples(
                rows, size, max(replicates // (1 if classes < 35 else 4), 50), generator(classes), fixed=True
            )
            shown += posterior_coverage(counts, truth, prior=prior, shares=Shares.OBSERVED, keys=KEYS[:2])
        table.append((prior.value, shown))
    return table


def equal_runs(classes: int, size: int, random: np.random.Generator) -> joint_runs.JointCounts:
    """Two runs that are exchangeable and often right and wrong on the same items."""
    truth = np.repeat(np.arange(classes), size)
    hard = random.random(truth.size) < 0.25
    wrong = (truth + random.integers(1, classes, (2, truth.size))) % classes
    right = random.random((2, truth.size)) < np.where(hard, 0.5, 0.98)
    return joint_runs.combine(truth, np.where(right, truth, wrong), classes)


def type_one_errors(classes: int, size: int, replicates: int) -> dict[str, float]:
    """Share of equal pairs that each paired test rejects at 5 %."""
    random = generator(classes + size)
    metrics = functionals(("macro_f1", "h_mean"))
    rejected: dict[str, int] = {}

    def count(name: str, rejects: bool) -> None:
        rejected[name] = rejected.get(name, 0) + int(rejects)

    for replicate in range(replicates):
        runs = equal_runs(classes, size, random)
        found = discordance(runs)
        tests = mcnemar(found.only_first, found.only_second)
        count("McNemar mid-p", float(tests.mid_p) < 0.05)
        count("McNemar exact", float(tests.exact) < 0.05)
        count("Tango", abs(float(tango_z(found.only_first, found.only_second, found.n))) > 1.959964)
        with silently():
            first, second = (metrics[0](Table(matrix)) for matrix in runs.matrices())
        _, _, p = normal_limits(np.atleast_1d(first - second), paired_variance(runs, metrics[0]))
        count("delta, macro F1", float(p[0]) < 0.05)
        permuted = joint_runs.permute(runs, draws=399, random=generator(replicate))
        count("permutation, macro F1", float(permutation_p(runs, metrics[:1], permuted)[0]) < 0.05)
        drawn = evaluate_draws(joint_runs.draw_matrices(runs, draws=DRAWS, random=generator(replicate)), metrics)
        for name, values in zip(("macro F1", "H"), drawn, strict=True):
            low, high = np.quantile(values[:, 0] - values[:, 1], [0.025, 0.975])
            count(f"posterior, {name}", bool(low > 0 or high < 0))
    return {name: hits / replicates for name, hits in rejected.items()}


def delong_error(replicates: int) -> float:
    """Share of equal pairs of scores whose areas DeLong's test calls different at 5 %."""
    random, rejected = generator(9), 0
    positive = np.arange(100) < 40
    for _ in range(replicates):
        shared = positive + random.normal(size=100)
        found = delong(positive, shared + random.normal(size=(2, 100)))
        spread = found.covariance[0, 0] + found.covariance[1, 1] - 2 * found.covariance[0, 1]
        rejected += int(abs(found.areas[0] - found.areas[1]) > 1.959964 * np.sqrt(spread))
    return rejected / replicates


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args(arguments).replicates
    _print_table(
        ["intervals, class counts", "K", "per class", "A", "H", "macro F1", "MCC"],
        [[method, classes, size, *shares] for method, classes, size, shares in coverage_table(replicates)],
    )
    _print_table(
        ["prior", "K=2, 30: A", "H", "K=10, 25: A", "H", "K=35, 25: A", "H"],
        [[name, *shown] for name, shown in prior_table(replicates)],
    )
    tests: list[list[object]] = []
    for classes, size in ((2, 100), (3, 100), (10, 25)):
        found = type_one_errors(classes, size, replicates)
        tests += [[name, classes, size, share] for name, share in found.items()]
    tests.append(["DeLong", 2, "40 and 60", delong_error(replicates)])
    _print_table(["test at 5 %", "K", "per class", "rejects equal runs"], tests)


def _print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows]
    sys.stdout.write("".join(f"| {line} |\n" for line in lines) + "\n")


if __name__ == "__main__":
    main()
