"""How often 95 % intervals hold the truth, by simulation. How often tests reject equality: ``benchmarks.type_one``.

Run ``python -m benchmarks.coverage``; prints Markdown tables. ``--replicates`` sets their precision: 2000 give a
standard error of half a point.
"""

import argparse
import sys
from collections.abc import Callable, Sequence

import numpy as np

from app.kernel.matrix.table import Table, at_equal_prevalence
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.closed_forms import Caution, Refusal, cautions, equal_share_headlines, headlines
from app.kernel.uncertainty.draws import Prior, Shares, evaluate_draws, generator, summarise
from app.kernel.uncertainty.intervals import undercovers
from app.kernel.uncertainty.simulation import CURVED_CLASSES, draw_matrices, mean_matrix

KEYS = ("balanced_accuracy", "h_mean", "macro_f1", "mcc")
CLASSES = (2, 3, 10)
SIZES = (25, 100)
DRAWS = 1000
LEVEL = 0.95


def even_recalls(n_classes: int) -> Array:
    """Recalls evenly spaced from .80 to .99."""
    return np.linspace(0.80, 0.99, n_classes)


# Recalls that intervals find harder: low and alike, nearly perfect, one class far below the rest, spread far out.
HARD: dict[str, Callable[[int], Array]] = {
    ".80 to .99": even_recalls,
    "all .60": lambda n_classes: np.full(n_classes, 0.60),
    "all .97": lambda n_classes: np.full(n_classes, 0.97),
    "one .30, rest .95": lambda n_classes: np.where(np.arange(n_classes) == 0, 0.30, 0.95),
    ".20 to .99": lambda n_classes: np.linspace(0.20, 0.99, n_classes),
}
HARD_SIZES = ((3, 25), (5, 25), (10, 10), (10, 25), (10, 100), (20, 100), (35, 25), (35, 100))
FEW_CLASSES = (2, 3, 10)
FEW_RECALLS = ((0.8, 0.5), (0.95, 0.6), (0.9, 0.2), (0.99, 0.8))
FEW_SIZES = ((50, 2), (50, 4), (500, 4), (100, 8), (20, 20))
# Samples of the classes, the first of which is the frequent one.
UNEVEN = (
    (500, 500),
    (950, 50),
    (980, 20),
    (500, 100, 25),
    (400, 400, 10),
    (400, 300, 200, 150, 100, 80, 60, 40, 30, 20),
)
FAILING = {Caution.MANY_SMALL_CLASSES, Caution.PERFECT_SMALL_CLASSES, Caution.FEWER_THAN_FIVE}


def true_rows(recalls: Array) -> Array:
    """Rows P(predicted | actual) with these recalls (K) and errors spread evenly."""
    classes = len(recalls)
    rows = np.repeat(((1.0 - recalls) / (classes - 1))[:, None], classes, axis=1)
    np.fill_diagonal(rows, recalls)
    return rows


def functionals(keys: Sequence[str] = KEYS) -> list[Callable[[Table], Array]]:
    return [catalogue().of_matrices.by_name[key].compute for key in keys]


def values(counts: Array, keys: Sequence[str] = KEYS) -> list[Array]:
    with silently():
        table = Table(counts)
        return [functional(table) for functional in functionals(keys)]


def samples(rows: Array, size: int, replicates: int, random: np.random.Generator, *, fixed: bool) -> Array:
    """Confusion matrices (replicates, K, K) with ``size`` items per class, or that many on average."""
    classes = len(rows)
    if fixed:
        return random.multinomial(size, rows, size=(replicates, classes)).astype(np.float64)
    cells = random.multinomial(size * classes, rows.ravel() / classes, size=replicates)
    return cells.reshape(replicates, classes, classes).astype(np.float64)


def posterior_coverage(
    counts: Array, truth: Sequence[Array], *, prior: Prior, shares: Shares, keys: Sequence[str] = KEYS
) -> list[float]:
    """Share of the matrices (replicates, K, K) whose posterior interval holds the truth, per metric where it exists.

    What ``estimation.posterior_intervals`` does for one matrix, for many at once.
    """
    hits, defined, curved = np.zeros(len(keys)), np.zeros(len(keys)), counts.shape[-1] >= CURVED_CLASSES
    with silently():
        for start in range(0, len(counts), 50):
            some = counts[start : start + 50]
            batches = draw_matrices(some, draws=DRAWS, random=generator(start), prior=prior, shares=shares)
            drawn, found = evaluate_draws(batches, functionals(keys)), values(some, keys)
            centers = values(mean_matrix(some, prior=prior, shares=shares), keys)
            for position, (draws, estimate, center) in enumerate(zip(drawn, found, centers, strict=True)):
                interval = summarise(draws, estimate, LEVEL, center=center if curved else None)
                hits[position] += ((interval.low <= truth[position]) & (truth[position] <= interval.high)).sum()
                defined[position] += np.isfinite(estimate).sum()
    return [float(hit) for hit in hits / defined]


def headline_coverage(counts: Array, truth: Sequence[Array], keys: Sequence[str] = KEYS) -> list[float]:
    """The same for the closed forms; where a value exists and has no interval it counts as a miss."""
    hits, defined = dict.fromkeys(keys, 0.0), dict.fromkeys(keys, 0)
    for overall in headlines(Table(counts[:, None]), LEVEL).overall:
        for interval in overall:
            if interval.key in hits and interval.refusal is not Refusal.UNDEFINED_ESTIMATE:
                defined[interval.key] += 1
                hits[interval.key] += float(interval.low <= truth[keys.index(interval.key)] <= interval.high)
    return [hits[key] / defined[key] for key in keys]


def headline_warnings(counts: Array) -> float:
    """Share of the matrices whose closed forms come with a note that they are too narrow."""
    return float(np.mean([undercovers(actual) for actual in counts.sum(axis=-1)]))


def posterior_warnings(counts: Array) -> float:
    """Share of the matrices whose posterior intervals come with a warning that they may miss their level."""
    return float(np.mean([not FAILING.isdisjoint(cautions(matrix)) for matrix in counts]))


def coverage_table(replicates: int) -> list[list[object]]:
    table: list[list[object]] = []
    for classes in CLASSES:
        rows = true_rows(even_recalls(classes))
        truth = values(rows)
        for size in SIZES:
            random = generator(classes * 1000 + size)
            for design, fixed, shares in (("fixed", True, Shares.OBSERVED), ("random", False, Shares.SAMPLED)):
                counts = samples(rows, size, replicates, random, fixed=fixed)
                closed = [*headline_coverage(counts, truth), headline_warnings(counts)]
                table.append([f"closed form, {design}", classes, size, *closed])
                drawn = posterior_coverage(counts, truth, prior=Prior.EDGE, shares=shares)
                table.append([f"posterior, {design}", classes, size, *drawn, posterior_warnings(counts)])
    return table


def hard_table(replicates: int) -> list[list[object]]:
    """Both kinds, class counts fixed, where recalls make it harder; fewer replicates for many classes.

    The closed forms of A and H come last: those of macro F1 and MCC do not get harder.
    """
    table: list[list[object]] = []
    for classes, size in HARD_SIZES:
        for name, recalls in HARD.items():
            rows = true_rows(recalls(classes))
            few = max(replicates // (2 if classes <= max(CLASSES) else 8), 50)
            counts = samples(rows, size, few, generator(classes * 1000 + size), fixed=True)
            truth = values(rows)
            found = posterior_coverage(counts, truth, prior=Prior.EDGE, shares=Shares.OBSERVED)
            closed = headline_coverage(counts, truth)[:2]
            warned, noted = posterior_warnings(counts), headline_warnings(counts)
            table.append([name, classes, size, *found, warned, *closed, noted])
    return table


def prior_table(replicates: int) -> list[tuple[str, list[float]]]:
    """Coverage of A and H under each prior, for few and for many classes."""
    table = []
    for prior in (Prior.UNIFORM, Prior.JEFFREYS_RECALL, Prior.EDGE):
        shown = []
        for classes, size in ((2, 30), (10, 25), (35, 25)):
            rows, few = true_rows(even_recalls(classes)), max(replicates // (2 if classes < 35 else 8), 50)
            counts = samples(rows, size, few, generator(classes), fixed=True)
            truth = values(rows, KEYS[:2])
            shown += posterior_coverage(counts, truth, prior=prior, shares=Shares.OBSERVED, keys=KEYS[:2])
        table.append((prior.value, shown))
    return table


def few_table(replicates: int) -> list[list[object]]:
    """Metrics of which the delta method sees no spread where a class has a few samples; class counts fixed."""
    keys, table = ("macro_f1", "mcc", "cohen_kappa"), list[list[object]]()
    for classes in FEW_CLASSES:
        for many, few in FEW_RECALLS:
            rows = true_rows(np.where(np.arange(classes) == 0, few, many))
            for sizes in FEW_SIZES:
                counted = np.where(np.arange(classes) == 0, sizes[1], sizes[0])
                random = generator(classes * 1000 + sizes[0] + sizes[1])
                counts = random.multinomial(counted, rows, size=(replicates, classes)).astype(np.float64)
                truth = values(rows * counted[:, None], keys)
                closed = headline_coverage(counts, truth, keys)
                drawn = posterior_coverage(counts, truth, prior=Prior.EDGE, shares=Shares.OBSERVED, keys=keys)
                table.append([classes, f"{many:.2f}, one {few:.2f}", f"{sizes[0]}, one {sizes[1]}", *closed, *drawn])
    return table


def equal_shares_table(replicates: int) -> list[list[object]]:
    """Closed forms at equal class shares, of data with uneven ones; class counts fixed."""
    keys, table = ("macro_f1", "mcc", "cohen_kappa"), list[list[object]]()
    for actual in UNEVEN:
        for name in (".80 to .99", "one .30, rest .95"):
            rows = true_rows(HARD[name](len(actual)))
            random = generator(sum(actual))
            counts = random.multinomial(actual, rows, size=(replicates, len(actual))).astype(np.float64)[:, None]
            truth = values(rows, keys)
            pairs = Table(np.concatenate([counts, at_equal_prevalence(counts)], axis=1))
            found = equal_share_headlines(pairs, headlines(pairs, LEVEL, of=(slice(None), slice(1))))
            hits = dict.fromkeys(keys, 0)
            for own in found:
                for one in own:
                    if one.key in hits:
                        hits[one.key] += bool(one.low <= truth[keys.index(one.key)] <= one.high)
            sizes = f"{actual[0]:,} to {actual[-1]:,}"
            table.append([len(actual), sizes, name, *(hits[key] / replicates for key in keys)])
    return table


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args(arguments).replicates
    metrics = ["K", "per class", "A", "H", "macro F1", "MCC", "warned"]
    print_table(["intervals, class counts", *metrics], coverage_table(replicates))
    print_table(["true recalls", *metrics, "closed A", "closed H", "warned"], hard_table(replicates))
    drawn = [f"{name} drawn" for name in ("macro F1", "MCC", "kappa")]
    print_table(["K", "true recalls", "per class", "macro F1", "MCC", "kappa", *drawn], few_table(replicates))
    head = ["K", "samples of each class", "true recalls", "macro F1", "MCC", "kappa"]
    print_table(head, equal_shares_table(replicates))
    print_table(
        ["prior", "K=2, 30: A", "H", "K=10, 25: A", "H", "K=35, 25: A", "H"],
        [[name, *shown] for name, shown in prior_table(replicates)],
    )


def print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows]
    sys.stdout.write("".join(f"| {line} |\n" for line in lines) + "\n")


if __name__ == "__main__":
    main()
