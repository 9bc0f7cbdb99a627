"""How often 95 % intervals hold the truth at other class shares, by simulation.

Run ``python -m benchmarks.projections``; prints a Markdown table. 2000 replicates give a standard error of half a
point. What prevalence does not move has the limits of the report; beside them those that simulated rows would give it.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.options import Sampling
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import generator
from app.services.estimands import parse_estimands
from app.services.estimates.class_shares import ClassShares
from app.services.estimates.estimate import Estimates, LimitSettings
from app.services.estimates.estimates import estimate_at, values_at_shares
from app.services.estimates.methods.shifted_matrix import simulated
from app.services.estimates.run_data import RunData
from benchmarks.coverage import print_table

DRAWS = 1000
METRICS = (
    "recall@1",
    "balanced_accuracy",
    "h_mean",
    "min(recall@*)",
    "accuracy",
    "precision@1",
    "mcc",
    "min(precision@*)",
)
ROWS = {
    2: np.array([[0.9, 0.1], [0.2, 0.8]]),
    3: np.array([[0.85, 0.1, 0.05], [0.15, 0.8, 0.05], [0.1, 0.2, 0.7]]),
}


@dataclass(frozen=True)
class Case:
    """Data with so many samples and this share of class 1, projected to a share of it of 10 %."""

    n_classes: int
    prevalence: float
    n_samples: int = 500

    def shares(self, prevalence: float) -> Array:
        shares = np.full(self.n_classes, (1.0 - prevalence) / (self.n_classes - 1))
        shares[1] = prevalence
        return shares

    @property
    def target(self) -> Array:
        return self.shares(0.1)

    def draw(self, random: np.random.Generator) -> RunData:
        rows = ROWS[self.n_classes]
        while True:
            actual = random.multinomial(self.n_samples, self.shares(self.prevalence))
            if actual.all():
                break
        counts = np.array([random.multinomial(size, row) for size, row in zip(actual, rows, strict=True)])
        return run_of(counts, Content.counts)


CASES = tuple(Case(n_classes, prevalence) for n_classes in ROWS for prevalence in (0.02, 0.1, 0.5))


def run_of(counts: Array, content: Content) -> RunData:
    labels = tuple(map(str, range(len(counts))))
    return RunData(MatrixInput("confusion_matrix", labels, 1 if len(labels) == 2 else None, content, counts))


def coverage(case: Case, replicates: int) -> list[list[object]]:
    random = generator(case.n_classes * 1000 + int(100 * case.prevalence))
    estimands = parse_estimands(METRICS, tuple(map(str, range(case.n_classes))), None)
    shares = ClassShares(case.target[None])
    truth = [
        float(values_at_shares(one, run_of(ROWS[case.n_classes], Content.rates), shares)[0, 0]) for one in estimands
    ]
    hits, width = np.zeros((2, len(estimands))), np.zeros((2, len(estimands)))
    for replicate in range(replicates):
        run = case.draw(random)
        settings = LimitSettings(seed=replicate, sampling=Sampling(draws=DRAWS))
        for row, found in enumerate(
            (estimate_at(estimands, run, shares, settings), simulated(estimands, run, shares, settings))
        ):
            limits = ends_of([at[0] for at in found])
            hits[row] += (limits[:, 0] <= truth) & (truth <= limits[:, 1])
            width[row] += limits[:, 1] - limits[:, 0]
    return [
        [metric, case.n_classes, case.prevalence, *(figure / replicates for figure in (*hits[:, i], *width[:, i]))]
        for i, metric in enumerate(METRICS)
    ]


def ends_of(found: Sequence[Estimates]) -> Array:
    return np.array([(one.low, one.high) for (one,) in found])


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args(arguments).replicates
    rows = [row for case in CASES for row in coverage(case, replicates)]
    print_table(
        ["metric", "classes", "share of class 1 in the data", "holds", "simulated holds", "width", "simulated width"],
        sorted(rows, key=lambda row: (METRICS.index(str(row[0])), str(row[1]), str(row[2]))),
    )


if __name__ == "__main__":
    main()
