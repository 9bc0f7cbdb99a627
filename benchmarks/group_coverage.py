"""How often intervals of samples in groups hold the truth, beside those that take the samples as independent.

Run ``python -m benchmarks.group_coverage``; prints a Markdown table. Every group is right with a chance of its own,
Beta(2, 1), so A, H and macro F1 of three classes are 2/3, MCC 1/2. ``--replicates`` sets the precision: 1000 give a
standard error of 0.7 points, a quarter of them is resampled.
"""

import argparse
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import Table
from app.kernel.metrics.catalogue import catalogue
from app.kernel.uncertainty.closed_forms import OverallInterval, headlines
from app.kernel.uncertainty.groups import GroupedRuns, group_headline, group_intervals
from benchmarks.coverage import print_table

TRUTHS = {"accuracy": 2 / 3, "balanced_accuracy": 2 / 3, "h_mean": 2 / 3, "macro_f1": 2 / 3, "mcc": 0.5}
RESAMPLED = {key: catalogue().of_matrices.by_name[key].compute for key in ("h_mean", "macro_f1")}
N_CLASSES, SIZE, DRAWS = 3, 12, 400
GROUPS = (5, 10, 20, 30, 60)


def sizes(design: str, n_groups: int, random: np.random.Generator) -> NDArray[np.int64]:
    """Samples of each group: all the same, 1 to 23, or a few very large ones."""
    match design:
        case "equal":
            return np.full(n_groups, SIZE)
        case "unequal":
            return random.integers(1, 2 * SIZE, n_groups)
    return np.ceil(SIZE * random.pareto(1.5, n_groups) + 1).astype(np.int64)


def runs(design: str, n_groups: int, replicates: int) -> Iterator[GroupedRuns]:
    """Simulated runs."""
    random = np.random.default_rng([n_groups, len(design)])
    for _ in range(replicates):
        groups = np.repeat(np.arange(n_groups), sizes(design, n_groups, random))
        truth = random.integers(0, N_CLASSES, groups.size)
        right = random.random(groups.size) < random.beta(2.0, 1.0, n_groups)[groups]
        wrong = (truth + random.integers(1, N_CLASSES, groups.size)) % N_CLASSES
        yield GroupedRuns.gather(groups, truth, np.where(right, truth, wrong), N_CLASSES)


def held(intervals: tuple[OverallInterval, ...]) -> list[bool]:
    """Which of the truths lie inside."""
    ends = {item.key: (item.low, item.high) for item in intervals}
    return [ends[key][0] <= truth <= ends[key][1] for key, truth in TRUTHS.items()]


def cover(design: str, n_groups: int, replicates: int) -> list[object]:
    """A row of the table."""
    closed, alone, drawn = [], [], []
    for number, run in enumerate(runs(design, n_groups, replicates)):
        closed.append(held(group_headline(run).headline.overall))
        alone.append(held(headlines(Table(run.matrices()[0])).overall[0])[0])
        if number % 4 == 0:
            found = group_intervals(run, list(RESAMPLED.values()), seed=number, draws=DRAWS)
            pairs = zip(found, RESAMPLED, strict=True)
            drawn.append([bool(one.low[0] <= TRUTHS[key] <= one.high[0]) for one, key in pairs])
    return [
        n_groups,
        design,
        float(np.mean(alone)),
        *np.mean(closed, axis=0).tolist(),
        *np.mean(drawn, axis=0).tolist(),
    ]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--replicates", type=int, default=1000)
    replicates = parser.parse_args().replicates
    head = [
        "groups",
        "sizes",
        "accuracy as if independent",
        "accuracy",
        "A",
        "H",
        "macro F1",
        "MCC",
        "H drawn",
        "F1 drawn",
    ]
    designs = ("equal", "unequal", "heavy-tailed")
    print_table(head, [cover(design, count, replicates) for count in GROUPS for design in designs])


if __name__ == "__main__":
    main()
