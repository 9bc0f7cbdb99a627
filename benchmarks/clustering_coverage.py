"""How often limits of the adjusted Rand index hold what they are about: ``python -m benchmarks.clustering_coverage``.

Tables of n samples are drawn from cells with known shares; the truth is the index of those shares, that is of
infinitely many samples. Limits are those of a report: resampled cell by cell, 1,000 times.
"""

import argparse
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.contingency import Contingency
from app.kernel.metrics.card import Metric
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.families.agreement import adjusted_rand
from app.kernel.metrics.families.clusterings import pair_fowlkes_mallows, purity, v_measure
from app.kernel.numerics.arrays import silently
from app.kernel.uncertainty.resampling import bootstrap_samples, plan, resampled
from app.kernel.uncertainty.units import CellUnits

MEASURES: tuple[Metric[Any], ...] = (adjusted_rand, pair_fowlkes_mallows, purity, v_measure)
SIZES = (50, 200, 1000)
# Of so many samples the index is that of the shares, to the digits that are shown.
_INFINITE = 1e9


def shares(classes: int, right: float) -> NDArray[np.float64]:
    """Classes of unequal size, each mostly in a cluster of its own."""
    sizes = np.arange(1.0, classes + 1.0)
    spread = np.full((classes, classes), (1.0 - right) / (classes - 1))
    np.fill_diagonal(spread, right)
    return np.asarray(spread * (sizes / sizes.sum())[:, None])


def truth(metric: Metric[Any], of: NDArray[np.float64]) -> float:
    with silently():
        return float(metric.compute(Contingency(np.round(of * _INFINITE))))


def covered(of: NDArray[np.float64], size: int, replicates: int) -> NDArray[np.float64]:
    """Shares of the limits of each measure that lie below, around and above the truth (M, 3)."""
    random = np.random.default_rng(size)
    wanted = [truth(metric, of) for metric in MEASURES]
    counts = np.zeros((len(MEASURES), 3))
    asked = [resampled(Measure(metric, metric.card.defaults, None), metric.card.range) for metric in MEASURES]
    for number in range(replicates):
        units = CellUnits(random.multinomial(size, of.ravel()).reshape(of.shape).astype(np.float64))
        made = plan(units.n_units, units.width)
        if made is None:
            raise ValueError("expected a table that can be resampled")
        for row, (found, right) in enumerate(
            zip(bootstrap_samples(units, asked, seed=number, made=made), wanted, strict=True)
        ):
            low, high = float(found.low[0]), float(found.high[0])
            counts[row, 0 if high < right else 2 if low > right else 1] += 1
    return counts / replicates


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=200)
    replicates = parser.parse_args().replicates
    print(f"{replicates} replicates, limits at 95 %.\n")
    print("| measure | classes | right | n | held | below | above |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for classes, right in ((3, 0.6), (3, 0.9), (6, 0.8)):
        of = shares(classes, right)
        for size in SIZES:
            for metric, (below, held, above) in zip(MEASURES, covered(of, size, replicates), strict=True):
                print(f"| {metric.key} | {classes} | {right} | {size} | {held:.3f} | {below:.3f} | {above:.3f} |")


if __name__ == "__main__":
    main()
