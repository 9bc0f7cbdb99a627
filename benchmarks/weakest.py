"""How often 95 % limits of the smallest recall hold the truth, by simulation; class counts fixed.

Run ``python -m benchmarks.weakest``; prints a Markdown table. ``--replicates`` sets its precision: 2000 give a
standard error of half a point.
"""

import argparse
from collections.abc import Callable, Sequence

import numpy as np

from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Prior, Shares, generator
from app.services.estimands import make_estimand
from app.services.estimates.estimates import estimate
from app.services.estimates.run_data import RunData
from benchmarks.coverage import CLASSES, SIZES, even_recalls, posterior_coverage, print_table, samples, true_rows

RECALLS: dict[str, Callable[[int], Array]] = {
    "all .90": lambda n_classes: np.full(n_classes, 0.90),
    "one .70, rest .90": lambda n_classes: np.where(np.arange(n_classes) == 0, 0.70, 0.90),
    ".80 to .99": even_recalls,
}


def limits(counts: Array) -> tuple[float, float]:
    """Of the smallest recall, as reports, gates and leaderboards have them."""
    labels = tuple(map(str, range(len(counts))))
    run = RunData(MatrixInput("confusion_matrix", labels, None, Content.counts, counts.astype(np.int64)))
    ((found,),) = estimate([make_estimand("min(recall@*)", labels, None)], run)
    return found.low, found.high


def table(replicates: int) -> list[list[object]]:
    """Limits from those of all recalls, shares of truths below and above them, and posterior draws of the smallest."""
    rows: list[list[object]] = []
    for classes in CLASSES:
        for name, recalls in RECALLS.items():
            truth = float(recalls(classes).min())
            for size in SIZES:
                random = generator(classes * 1000 + size)
                counts = samples(true_rows(recalls(classes)), size, replicates, random, fixed=True)
                low, high = np.array([limits(matrix) for matrix in counts]).T
                below, above = float((truth < low).mean()), float((truth > high).mean())
                drawn = posterior_coverage(
                    counts, [np.array(truth)], prior=Prior.EDGE, shares=Shares.OBSERVED, keys=("min_recall",)
                )
                rows.append([classes, name, size, 1.0 - below - above, below, above, *drawn])
    return rows


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    head = ["K", "true recalls", "per class", "simultaneous", "truth below", "truth above", "draws of the smallest"]
    print_table(head, table(parser.parse_args(arguments).replicates))


if __name__ == "__main__":
    main()
