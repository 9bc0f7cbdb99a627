"""How often intervals of weighted samples hold the truth, and how often equal paired runs are told apart.

Run ``python -m benchmarks.weighted_coverage``; prints two Markdown tables. 1,000 samples of K classes, one of them with
a share of 2, 10 or 50 %, recalls evenly from 0.8 to 0.95. Weights are gamma variates with shape 2 that have nothing to
do with the outcome, or twice as large for what is right, where wrong predictions are drawn twice as often. ``counts``
are the limits of samples without weights on the same matrices, their total brought to the number of samples. 2,000
replicates give a standard error of 0.5 points; a tenth of them is compared in pairs.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.paired.effects import PairedScore, paired_effects
from app.kernel.compare.paired.joint import combine
from app.kernel.matrix.table import Table, WeightedCounts
from app.kernel.metrics.catalogue import catalogue
from app.kernel.uncertainty.closed_forms import Headline, headline
from app.kernel.uncertainty.weights import weighted_headline
from benchmarks.coverage import print_table

SIZE, SHAPE, PAIRED = 1000, 2.0, 10
OVERALL = ("accuracy", "balanced_accuracy", "h_mean", "macro_f1", "mcc")
RATES = ("recall", "precision")
COMPARED = ("accuracy", "balanced_accuracy", "macro_f1")
Codes = NDArray[np.int64]


def population(n_classes: int, share: float) -> NDArray[np.float64]:
    """Shares of the cells (K, K); the first class is the one with this share."""
    actual = np.full(n_classes, (1.0 - share) / (n_classes - 1))
    actual[0] = share
    recalls = np.linspace(0.8, 0.95, n_classes)
    cells = np.repeat(((1.0 - recalls) / (n_classes - 1))[:, None], n_classes, axis=1)
    np.fill_diagonal(cells, recalls)
    shares: NDArray[np.float64] = actual[:, None] * cells
    return shares


def samples(
    cells: NDArray[np.float64], random: np.random.Generator, *, informative: bool
) -> tuple[Codes, Codes, NDArray[np.float64]]:
    """Truth, prediction and weight of each."""
    means = np.where(np.eye(len(cells), dtype=bool), 2.0, 1.0) if informative else np.ones(cells.shape)
    chances = (cells / means).ravel()
    drawn = random.choice(cells.size, SIZE, p=chances / chances.sum())
    truth, predicted = np.divmod(drawn, len(cells))
    return truth, predicted, means.ravel()[drawn] * random.gamma(SHAPE, 1.0 / SHAPE, SIZE)


def limits(found: Headline) -> Iterator[tuple[str, float, float]]:
    """Of the overall metrics and of the rates of the first class."""
    for one in found.overall:
        if one.key in OVERALL:
            yield one.key, one.low, one.high
    for key in RATES:
        place = found.rates.keys.index(key)
        yield f"{key}@0", float(found.rates.low[place, 0]), float(found.rates.high[place, 0])


def covered(n_classes: int, share: float, replicates: int, *, informative: bool) -> list[list[str]]:
    """Rows of the first table: with the weights, and as if they were counts."""
    random, cells = np.random.default_rng([n_classes, int(100 * share), informative]), population(n_classes, share)
    table, metrics = Table(cells * SIZE), catalogue().of_matrices.by_name
    truths = {key: float(metrics[key](table)) for key in OVERALL}
    truths |= {f"{key}@0": float(metrics[key](table)[0]) for key in RATES}
    held = {form: dict.fromkeys(truths, 0) for form in ("weights", "counts")}
    for _ in range(replicates):
        weighted = WeightedCounts.of(*samples(cells, random, informative=informative), n_classes)
        as_counts = headline(weighted.counts * (SIZE / weighted.counts.sum()))
        for form, found in (("weights", weighted_headline(weighted)), ("counts", as_counts)):
            for key, low, high in limits(found):
                held[form][key] += low <= truths[key] <= high
    design = "informative" if informative else "unrelated"
    return [
        [str(n_classes), f"{share:.0%}", design, form, *(f"{100 * found[key] / replicates:.1f}" for key in truths)]
        for form, found in held.items()
    ]


def told_apart(n_classes: int, share: float, replicates: int) -> list[str]:
    """A row of the second table: shares of p below 0.05 for two runs with equal recalls."""
    random, cells = np.random.default_rng([n_classes, int(100 * share), 7]), population(n_classes, share)
    metrics = [catalogue().of_matrices.by_name[key] for key in COMPARED]
    rejected = np.zeros(len(metrics))
    for _ in range(replicates):
        truth, first, weights = samples(cells, random, informative=False)
        rows = cells[truth] / cells[truth].sum(axis=1, keepdims=True)
        anew = (rows.cumsum(axis=1) > random.random(SIZE)[:, None]).argmax(axis=1)
        # A third of the predictions is made anew, so that the runs have much in common.
        second = np.where(random.random(SIZE) < 1.0 / 3.0, anew, first)
        joint = combine(truth, np.stack([first, second]), n_classes, weights=weights)
        rejected += PairedScore(paired_effects(joint, metrics)).p < 0.05
    return [str(n_classes), f"{share:.0%}", *(f"{100 * part / replicates:.1f}" for part in rejected)]


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args().replicates
    places = [(n_classes, share) for n_classes in (2, 3, 10) for share in (0.02, 0.1, 0.5)]
    head = ["classes", "first class", "weights", "limits of", *OVERALL, *(f"{key}@0" for key in RATES)]
    print(f"Share (%) of 95 % intervals that hold the truth, {replicates} replicates.\n")
    rows = [row for place in places for told in (False, True) for row in covered(*place, replicates, informative=told)]
    print_table(head, rows)
    print(f"\nShare (%) of equal paired runs with p below 0.05, {replicates // PAIRED} replicates.\n")
    print_table(["classes", "first class", *COMPARED], [told_apart(*place, replicates // PAIRED) for place in places])


if __name__ == "__main__":
    main()
