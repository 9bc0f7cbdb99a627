"""How often 95 % intervals of a rate at a rate hold the truth, by simulation.

Run ``python -m benchmarks.operating_points``; prints a Markdown table. The truth is the rate in the population at the
threshold that has the other rate there: the intervals have to count that the threshold is chosen on the sample.
"""

import argparse
from collections.abc import Mapping, Sequence

import numpy as np

from app.kernel.metrics.card import Metric
from app.kernel.metrics.expression import Measure
from app.kernel.metrics.families.probabilities.operating_points import precision_at, recall_at, specificity_at
from app.kernel.numerics.arrays import silently
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.design import ClassCounts, generator
from app.kernel.uncertainty.of_samples.resampling import Plan, bootstrap_samples, resampled
from app.kernel.uncertainty.of_samples.units import Run
from benchmarks.probability_coverage import World

LEVEL, DRAWS, MANY = 0.95, 300, 3_000_000
ASKED: tuple[tuple[Metric[Scores], Mapping[str, float]], ...] = (
    (recall_at, {"specificity": 0.9}),
    (specificity_at, {"recall": 0.9}),
    (precision_at, {"recall": 0.8}),
)


def shares(classes: int, rarest: float) -> tuple[float, ...]:
    """The last class has a given share, the others are equally frequent."""
    return (*([(1.0 - rarest) / (classes - 1)] * (classes - 1)), rarest)


def coverage(world: World, size: int, replicates: int) -> list[tuple[float, float]]:
    """Of each metric how often its interval holds the truth, and how often there is none."""
    random, last = generator(size), len(world.shares) - 1
    population = world.sample(MANY // len(world.shares), generator(1))
    with silently():
        truth = [float(metric.compute(population, **given)[last]) for metric, given in ASKED]
    asked = [resampled(Measure(metric, given, last), metric.card.range) for metric, given in ASKED]
    hits, missing = np.zeros(len(asked)), np.zeros(len(asked))
    for number in range(replicates):
        scores = world.sample(size, random)
        made = Plan(DRAWS, size, size)
        found = bootstrap_samples(
            Run(scores, scores.predicted), asked, seed=number, made=made, level=LEVEL, class_counts=ClassCounts.FIXED
        )
        for place, (one, true) in enumerate(zip(found, truth, strict=True)):
            low, high = float(one.low[0]), float(one.high[0])
            missing[place] += not (np.isfinite(low) and low < high)
            hits[place] += low <= true <= high
    return [(float(hit) / replicates, float(none) / replicates) for hit, none in zip(hits, missing, strict=True)]


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=500)
    options = parser.parse_args(arguments)
    print("| K | share of the class | n | recall at 0.9 | specificity at 0.9 | precision at 0.8 | without |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for classes in (2, 3):
        for rarest, size in ((0.5, 100), (0.5, 400), (0.1, 300), (0.1, 1000), (0.02, 1000), (0.02, 3000)):
            found = coverage(World(shares(classes, rarest)), size, options.replicates)
            cells = " | ".join(f"{hit:.3f}" for hit, _ in found)
            print(f"| {classes} | {rarest:g} | {size} | {cells} | {max(none for _, none in found):.3f} |", flush=True)


if __name__ == "__main__":
    main()
