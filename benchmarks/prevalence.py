"""How often 95 % intervals of estimated class shares hold the truth, by simulation.

Run ``python -m benchmarks.prevalence``; prints Markdown tables. 2000 replicates give a standard error of half a point.
Labelled samples give the old shares and the confusion matrix; samples without labels have the new shares.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.kernel.matrix.table import confusion_counts
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.draws import generator
from app.services.project.prevalence_estimate import (
    PrevalenceEstimate,
    estimate_from_labels,
    estimate_from_probabilities,
)
from benchmarks.coverage import print_table

LEVEL = 0.95


@dataclass(frozen=True)
class Shift:
    """Shares of labelled samples and of those without labels; logits of the actual class are shifted."""

    old: tuple[float, ...]
    new: tuple[float, ...]
    labelled: int
    unlabelled: int
    apart: float = 1.2

    def probabilities(self, shares: tuple[float, ...], size: int, random: np.random.Generator) -> tuple[Codes, Array]:
        y: Codes = random.choice(len(shares), size, p=shares)
        logits = random.normal(size=(size, len(shares))) * self.apart + np.log(self.old)
        logits[np.arange(size), y] += self.apart**2
        mass = np.exp(logits - logits.max(axis=1, keepdims=True))
        rows: Array = mass / mass.sum(axis=1, keepdims=True)
        return y, rows


SHIFTS = (
    Shift((0.5, 0.5), (0.8, 0.2), 100, 500),
    Shift((0.5, 0.5), (0.8, 0.2), 100, 5000),
    Shift((0.5, 0.5), (0.8, 0.2), 1000, 500),
    Shift((0.8, 0.2), (0.98, 0.02), 200, 300),
    Shift((0.8, 0.2), (0.98, 0.02), 200, 3000),
    Shift((0.5, 0.5), (1.0, 0.0), 200, 300, apart=2.5),
    Shift((0.5, 0.3, 0.2), (0.2, 0.3, 0.5), 150, 500),
    Shift((0.5, 0.3, 0.2), (0.6, 0.38, 0.02), 300, 300),
    Shift((0.2,) * 5, (0.5, 0.3, 0.1, 0.1, 0.0), 300, 400),
)


def record_of(shift: Shift, random: np.random.Generator) -> EvaluationRecord:
    classes = len(shift.old)
    while True:
        y, p = shift.probabilities(shift.old, shift.labelled, random)
        counts = confusion_counts(y, p.argmax(axis=1), classes)
        if counts.sum(axis=1).all():
            break
    return EvaluationRecord(
        id=new_id(),
        model=ModelRef("m"),
        dataset=DatasetRef("d"),
        kind="confusion_matrix",
        labels=tuple(map(str, range(classes))),
        content=Content.counts,
        counts=counts,
        revision="",
        values={},
    )


def held(found: PrevalenceEstimate, shift: Shift) -> tuple[Array, float]:
    """Which classes have their share within limits, and the narrowest width."""
    limits = found.intervals.values()
    ends = [(end.low, end.high) for end in limits if end.low is not None and end.high is not None]
    inside = np.array([low <= share <= high for (low, high), share in zip(ends, shift.new, strict=True)], dtype=float)
    return inside, min(high - low for low, high in ends)


def coverage(shift: Shift, replicates: int) -> list[list[object]]:
    random, classes = generator(shift.labelled + shift.unlabelled), len(shift.old)
    hits, narrowest = np.zeros((3, classes)), np.ones(3)
    for replicate in range(replicates):
        record = record_of(shift, random)
        _, p = shift.probabilities(shift.new, shift.unlabelled, random)
        old = record.counts.sum(axis=1) / record.counts.sum()
        given = dict(zip(record.labels, shift.old, strict=True))
        found = (
            estimate_from_probabilities(record, p, old, given=None, level=LEVEL, seed=0, recalibrated=False),
            estimate_from_probabilities(
                record, p, np.array(shift.old), given=given, level=LEVEL, seed=0, recalibrated=False
            ),
            estimate_from_labels(
                record, np.bincount(p.argmax(axis=1), minlength=classes).astype(float), level=LEVEL, seed=replicate
            ),
        )
        for row, answer in enumerate(found):
            inside, width = held(answer, shift)
            hits[row] += inside
            narrowest[row] = min(narrowest[row], width)
    facts = [_shares(shift.old), _shares(shift.new), shift.labelled, shift.unlabelled]
    names = ("EM, old shares counted", "EM, old shares given", "BBSE")
    return [
        [name, *facts, float(row.min()) / replicates, float(row.mean()) / replicates, f"{width:.1e}"]
        for name, row, width in zip(names, hits, narrowest, strict=True)
    ]


def _shares(shares: Sequence[float]) -> str:
    return " ".join(f"{share:g}" for share in shares)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args(arguments).replicates
    print_table(
        ["method", "old shares", "new shares", "labelled", "without labels", "worst class", "mean", "narrowest"],
        sorted((row for shift in SHIFTS for row in coverage(shift, replicates)), key=lambda row: str(row[0])),
    )


if __name__ == "__main__":
    main()
