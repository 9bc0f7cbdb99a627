"""Thresholds under a constraint: how often the population keeps to it, what is said of that, what a guarantee costs.

Run ``python -m benchmarks.thresholds``; prints a Markdown table. 2000 replicates give a standard error of a point.
Scores are normal, 1.5 standard deviations apart.
"""

import argparse
from collections.abc import Sequence

import numpy as np
from scipy.stats import norm

from app.domain.expressions.expressions import parse
from app.kernel.decide.rules import Constraint, NoFeasibleRule, constraint_probabilities, scalar
from app.kernel.decide.thresholds import search_threshold
from app.kernel.matrix.table import Table
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.draws import generator
from benchmarks.coverage import print_table

APART = 1.5
LABELS = ("0", "1")
SIZES = (80, 300, 2000)
GUARANTEE = 0.95
RESAMPLES = 50
# Share of positives, objective, constraint and its least value.
TASKS = (
    (0.5, "recall", "specificity", 0.9),
    (0.5, "balanced_accuracy", "specificity", 0.9),
    (0.2, "f1", "specificity", 0.9),
    (0.2, "f1", "precision", 0.6),
    (0.5, "f1", "mcc", 0.5),
)


def population(threshold: float, share: float) -> Table:
    fpr, tpr = norm.sf(threshold), norm.sf(threshold - APART)
    return Table(np.array([[(1 - share) * (1 - fpr), (1 - share) * fpr], [share * (1 - tpr), share * tpr]]))


def row(task: tuple[float, str, str, float], size: int, guarantee: float | None, replicates: int) -> list[object]:
    share, objective, constrained, least = task
    expression = parse(objective, LABELS, 1)
    constraint = Constraint(parse(constrained, LABELS, 1), least)
    random, found = generator(size), []
    for seed in range(replicates):
        y = (random.random(size) < share).astype(int)
        scores = Scores.of_scores(y, random.normal(size=size) + APART * y)
        try:
            rule = search_threshold(
                scores, expression, constraints=[constraint], resamples=RESAMPLES, seed=seed, guarantee=guarantee
            )
        except NoFeasibleRule:
            continue
        assert rule.optimism is not None
        assert rule.corrected is not None
        truth = population(rule.threshold, share)
        found.append(
            [
                float(constraint.met(truth)),
                constraint_probabilities(rule.counts, [constraint], rule.optimism, seed).all,
                float(scalar(expression, truth)),
                rule.objective,
                rule.corrected.value,
            ]
        )
    means: list[object] = [float(mean) for mean in np.mean(found, axis=0)] if found else ["-"] * 5
    return [
        f"{objective}, {constrained} >= {least:g}",
        f"{share:.0%}",
        size,
        "-" if guarantee is None else f"{guarantee:.0%}",
        1.0 - len(found) / replicates,
        *means,
    ]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=2000)
    replicates = parser.parse_args(arguments).replicates
    print_table(
        [
            "best for, keeping to",
            "positive",
            "n",
            "guarantee",
            "no rule",
            "population keeps to it",
            "probability stated",
            "objective in the population",
            "on the data",
            "corrected",
        ],
        [row(task, size, guarantee, replicates) for task in TASKS for guarantee in (None, GUARANTEE) for size in SIZES],
    )


if __name__ == "__main__":
    main()
