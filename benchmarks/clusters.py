"""Clusterings of many clusters: values and limits of all measures of tables, beside scikit-learn.

    python -m benchmarks.clusters [--samples 1000000]

The processor's time of this process; the largest memory is that of a process of its own for each size.
"""

import argparse
import multiprocessing
import resource
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import metrics as sk

from app.domain.inputs.clustering import Clustering
from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Options
from app.kernel.metrics.card import Inputs, Task
from app.kernel.metrics.catalogue import catalogue
from app.kernel.uncertainty.influence import UnitInfluences, limits
from app.services.evaluate.reports import evaluate

Codes = NDArray[np.int64]
# Clusters for so many samples, and the share of samples in a cluster by chance.
SIZES = ((1_000, 0.3), (100_000, 0.1), (100_000, 0.5), (100_000, 1.0))
OF_TABLES = [one for one in catalogue().metrics if one.card.inference.sums]


def drawn(samples: int, clusters: int, by_chance: float) -> tuple[Codes, Codes]:
    random = np.random.default_rng(clusters)
    classes = random.integers(0, clusters, samples)
    found = np.where(random.random(samples) < by_chance, random.integers(0, clusters, samples), classes)
    return classes, found


def uneven(samples: int) -> tuple[Codes, Codes]:
    """As many different sizes as there can be, 1, 2, 3, ...: the worst that the expected information can meet."""
    largest = int((2 * samples) ** 0.5)
    classes = np.repeat(np.arange(largest), np.arange(1, largest + 1))[:samples]
    return classes, np.random.default_rng(1).permutation(classes)


def measured(function: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = function()
    return found, time.process_time() - start


def everything(source: MatrixInput) -> int:
    """How many measures have a value; with the limits of each."""
    kind = UNIT_KINDS[Task.CLUSTERING]
    units = kind.units(source)
    influences = UnitInfluences(units.subject(), units.n_units, len(source.labels))
    found = [influences.of(metric) for metric in OF_TABLES]
    return sum(1 for one in found if one is not None and np.isfinite(one.value) and (limits(one) or True))


def line(classes: Codes, found: Codes, told: str, queue: Any) -> None:
    source, reading = measured(lambda: Clustering(y_true=classes, y_pred=found).read("/input"))
    report, whole = measured(lambda: evaluate(source, Options()))
    valued, every = measured(lambda: everything(source))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10
    (theirs, _), of_theirs = measured(
        lambda: (sk.v_measure_score(classes, found), sk.adjusted_rand_score(classes, found))
    )
    apart = abs((report.values["v_measure"] or 0.0) - theirs)
    queue.put(
        f"| {told} | {len(source.counts):,} | {reading:.2f} | {whole:.2f} | {every:.2f} ({valued} of {len(OF_TABLES)}) "
        f"| {peak:.0f} | {of_theirs:.2f} | {apart:.0e} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    samples = parser.parse_args().samples
    assert Inputs.CONTINGENCY in {one.card.inputs for one in OF_TABLES}
    print(
        f"{samples:,} samples; seconds of the processor. A report is the usual one with its limits; every measure of "
        "tables has its value and limits, or no value where a matching would take too long. scikit-learn has no "
        "limits; its adjusted mutual information goes through all pairs of a class and a cluster, which took 11 s for "
        "3,000 of each.\n"
    )
    heads = ("clusters", "filled cells", "read", "report", "every measure", "memory, MB")
    print(f"| {' | '.join(heads)} | scikit-learn: v_measure, adjusted_rand | v_measure apart |")
    print("| --- |" + " ---: |" * 7)
    designs = [(*drawn(samples, clusters, part), f"{clusters:,}, {part:.0%} by chance") for clusters, part in SIZES]
    designs.append((*uneven(samples), "sizes 1, 2, 3, ..., all by chance"))
    context = multiprocessing.get_context("spawn")
    for classes, found, told in designs:
        queue = context.Queue()
        process = context.Process(target=line, args=(classes, found, told, queue))
        process.start()
        print(queue.get(), flush=True)
        process.join()


if __name__ == "__main__":
    main()
