"""Measures of clusterings against scikit-learn: run with ``python -m benchmarks.clustering``.

CPU time, medians of rounds in which every contender runs once, one BLAS thread, one process. Ours starts from the same
two arrays of labels and computes every measure of a contingency table, the adjusted mutual information among them.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import gc
import time
from collections.abc import Callable
from statistics import median

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from app.domain.inputs.labels import encode
from app.kernel.matrix.contingency import Contingency, cross_tabulated
from app.kernel.metrics.card import Metric
from app.kernel.metrics.engine import evaluate_table
from app.kernel.metrics.families import clusterings
from app.kernel.metrics.families.agreement import adjusted_rand

ROUNDS = 5
Labels = NDArray[np.int64]
MEASURES = [
    *(value for family in (clusterings, clusterings) for value in vars(family).values() if isinstance(value, Metric)),
    adjusted_rand,
]


def labelled(n: int, classes: int, clusters: int) -> tuple[Labels, Labels]:
    """Clusters that follow the classes half of the time."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, n)
    return y, np.where(rng.random(n) < 0.5, y % clusters, rng.integers(0, clusters, n))


def ours(y: Labels, p: Labels) -> None:
    classes, clusters = (encode({"labels": column}, None, "") for column in (y, p))
    size, width = len(classes.labels), len(clusters.labels)
    table = cross_tabulated(classes.codes["labels"], clusters.codes["labels"], size, width)
    evaluate_table(Contingency(table), MEASURES)


def compare(y: Labels, p: Labels, theirs: Callable[[Labels, Labels], object]) -> tuple[float, float]:
    """Median CPU seconds of both, interleaved."""
    seconds: dict[Callable[[Labels, Labels], object], list[float]] = {ours: [], theirs: []}
    for number in range(ROUNDS + 1):
        for run, taken in seconds.items():
            gc.collect()
            start = time.process_time()
            run(y, p)
            if number:
                taken.append(time.process_time() - start)
    return median(seconds[ours]), median(seconds[theirs])


def main() -> None:
    print("| ours: every measure of a table | against | ours, ms | theirs, ms | ratio |")
    print("| --- | --- | ---: | ---: | ---: |")
    for n, classes, clusters in ((10**6, 10, 10), (10**6, 50, 50), (10**5, 10, 1000)):
        y, p = labelled(n, classes, clusters)
        mine, theirs = compare(y, p, sk.adjusted_mutual_info_score)
        what = f"n = {n:.0e}, {classes} classes, {clusters} clusters".replace("e+0", "e")
        print(
            f"| {what} | scikit-learn's adjusted mutual information | {mine * 1e3:.1f} | {theirs * 1e3:.1f} | "
            f"{theirs / mine:.1f} |"
        )


if __name__ == "__main__":
    main()
