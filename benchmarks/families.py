"""How often one of the differences of a request is called one: by each p, by Holm over all, and by max-T.

Run ``python -m benchmarks.families``; prints a Markdown table. 2000 replicates give a standard error of half a point.
"""

import argparse
from collections.abc import Sequence
from itertools import starmap

import numpy as np
from numpy.typing import NDArray

from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.kernel.compare.rankings import Adjustment, adjust
from app.kernel.matrix.table import confusion_counts
from app.kernel.uncertainty.draws import generator
from app.services.compare.comparisons import AskedComparison, NewComparison, compare, understood
from app.services.ports.evaluations import SampleLabels
from app.services.runs.aligned import Runs
from app.services.runs.pairing import PairingMode
from app.services.runs.reading import KeptSamples
from benchmarks.coverage import print_table

Codes = NDArray[np.int64]
ALPHA = 0.05
METRICS = ("accuracy", "balanced_accuracy", "macro_f1", "mcc", "cohen_kappa", "recall@*")
CLASSES, SIZE, DRAWS = 3, 300, 1000


def kept(name: str, truth: Codes, predicted: Codes) -> tuple[EvaluationRecord, SampleLabels]:
    """A run with its labels."""
    record = EvaluationRecord(
        id=new_id(),
        model=ModelRef(name),
        dataset=DatasetRef("d"),
        kind="predictions",
        labels=tuple(map(str, range(CLASSES))),
        content=Content.counts,
        counts=confusion_counts(truth, predicted, CLASSES),
        revision="",
        values={},
    )
    return record, SampleLabels(np.arange(SIZE), truth, predicted)


def found(accuracies: Sequence[float], paired: PairingMode, replicate: int) -> tuple[bool, bool, bool]:
    """Is any difference found by its own p, by Holm over all of them, by max-T?"""
    random = generator(replicate)
    truth = np.arange(SIZE) % CLASSES
    # Samples are hard or easy for all runs, unless each has samples of its own.
    ease = random.random(SIZE)
    runs = []
    for number, accuracy in enumerate(accuracies):
        if paired is PairingMode.FALSE:
            ease = random.random(SIZE)
        right = 0.6 * ease + 0.4 * random.random(SIZE) < accuracy
        others = (truth + random.integers(1, CLASSES, SIZE)) % CLASSES
        runs.append(kept(f"m{number}", truth, np.where(right, truth, others)))
    aligned = Runs.align([record for record, _ in runs])
    new = NewComparison(
        evaluations=tuple(record.id for record, _ in runs),
        metrics=METRICS,
        paired=paired,
        multiplicity=Adjustment.MAX_T,
        seed=replicate,
        draws=DRAWS,
    )
    labels = KeptSamples({record.id: samples for record, samples in runs})
    answer = compare(AskedComparison(new, aligned, understood(new, aligned)), labels, identifier=new_id())
    pairs = [one for metric in answer.metrics.values() for one in metric.differences]
    p, jointly = (np.array([getattr(one, name) for one in pairs]) for name in ("p_value", "p_adjusted"))
    low = (p, adjust(p), jointly)
    return low[0].min() < ALPHA, low[1].min() < ALPHA, low[2].min() < ALPHA


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args(arguments).replicates
    equal, better = (0.6, 0.6, 0.6), (0.6, 0.6, 0.65)
    rows = []
    for paired, runs in (
        (PairingMode.AUTO, equal), (PairingMode.FALSE, equal), (PairingMode.AUTO, better), (PairingMode.FALSE, better),
    ):  # fmt: skip
        shares = np.mean([*starmap(found, ((runs, paired, number) for number in range(replicates)))], axis=0)
        rows.append(
            ["equal" if runs is equal else "one is better", "yes" if paired is PairingMode.AUTO else "no", *shares]
        )
    print(
        f"Three runs, {SIZE} samples of {CLASSES} classes, {len(METRICS) + CLASSES - 1} values, so "
        f"{3 * (len(METRICS) + CLASSES - 1)} differences; {replicates} replicates, level {ALPHA}.\n"
    )
    print_table(["runs", "paired", "some p < .05", "Holm over all", "max-T"], rows)


if __name__ == "__main__":
    main()
