"""How often 95 % intervals of rates at rates, net benefit and the calibration slope hold the truth, by simulation.

Run ``python -m benchmarks.operating_points``; prints a Markdown table. The truth of a rate at a rate is that in the
population at the threshold that has the other rate there: the intervals have to count that the threshold is chosen on
the sample. Probabilities are right, so the slope is 1 and the intercept 0. All are of the last class against the rest.
"""

import argparse
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from app.kernel.metrics.card import Inputs, Metric
from app.kernel.metrics.expression import Subject
from app.kernel.metrics.families.calibration import calibration_intercept, calibration_slope, net_benefit_at
from app.kernel.metrics.families.score_ranking import precision_at, recall_at, specificity_at
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.curves import precision_at_recall, recall_at_specificity, specificity_at_recall
from app.kernel.samples.rankings import Ranking
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.draws import ClassCounts, generator
from app.kernel.uncertainty.influence import Influences, limits
from app.kernel.uncertainty.resampling import Plan, Resampled, bootstrap_samples
from app.kernel.uncertainty.units import Run
from benchmarks.coverage import print_table
from benchmarks.probability_coverage import World

LEVEL, DRAWS, MANY = 0.95, 300, 2_000_000
# Entries of the probabilities of a population: what fits in memory.
_MOST_ENTRIES = 10_000_000


@dataclass(frozen=True)
class RateAt:
    """A rate at a rate, as the metric reads it off the order of a class."""

    metric: Metric[Scores]
    given: float
    read: Callable[[Ranking, float], Array]

    def asked(self, code: int) -> Resampled:
        """What is read off every resample for one class: of ten classes the others would take most of the time."""
        if self.metric.card.inference.biased:
            raise ValueError(f"{self.metric.key} has limits that are read in another way")
        return Resampled(lambda subject: self.read(subject.parts[Inputs.PROBABILITIES].ranking(code), self.given))


class OneClass(Run):
    """Samples of which one class is looked at: without the matrices of the resamples, more of them at a time."""

    width = 1

    def subject(self, weights: Array | None = None) -> Subject:
        """The scores alone."""
        return Subject({Inputs.PROBABILITIES: self.scores if weights is None else self.scores.with_weights(weights)})


RATES = (
    RateAt(recall_at, 0.9, recall_at_specificity),
    RateAt(specificity_at, 0.9, specificity_at_recall),
    RateAt(precision_at, 0.8, precision_at_recall),
)
DESIGNS = {
    2: ((0.5, 100), (0.5, 400), (0.1, 300), (0.1, 1000), (0.02, 1000), (0.02, 3000)),
    3: ((0.5, 100), (0.5, 400), (0.1, 300), (0.1, 1000), (0.02, 1000), (0.02, 3000)),
    10: ((0.5, 400), (0.1, 1000), (0.02, 3000)),
}


def shares(classes: int, rarest: float) -> tuple[float, ...]:
    """The last class has a given share, the others are equally frequent."""
    return (*([(1.0 - rarest) / (classes - 1)] * (classes - 1)), rarest)


def coverage(world: World, size: int, replicates: int) -> tuple[list[float], float]:
    """How often the interval of each holds the truth, and how often the least sure of the rates has none."""
    random, last = generator(size), len(world.shares) - 1
    population = world.sample(min(MANY, _MOST_ENTRIES // len(world.shares)), generator(1))
    # Who acts on more than the share of the class gains most from the probabilities.
    threshold = {"threshold": world.shares[last]}
    with silently():
        truth = [float(rate.read(population.ranking(last), rate.given)) for rate in RATES]
        truth += [float(net_benefit_at.compute(population, **threshold)[last]), 1.0, 0.0]
    asked = [rate.asked(last) for rate in RATES]
    linearised: tuple[tuple[Metric[Scores], dict[str, float]], ...]
    linearised = ((net_benefit_at, threshold), (calibration_slope, {}), (calibration_intercept, {}))
    hits, missing = np.zeros(len(truth)), np.zeros(len(asked))
    for number in range(replicates):
        scores = world.sample(size, random)
        found = bootstrap_samples(
            OneClass(scores, scores.predicted),
            asked,
            seed=number,
            made=Plan(DRAWS, size, size),
            level=LEVEL,
            class_counts=ClassCounts.FIXED,
        )
        ends = [(float(one.low[0]), float(one.high[0])) for one in found]
        missing += [not (np.isfinite(low) and low < high) for low, high in ends]
        influences = Influences(scores)
        for metric, given in linearised:
            linear = influences.of(metric, last, parameters=given)
            made = None if linear is None else limits(linear, LEVEL)
            ends.append((np.nan, np.nan) if made is None else (made.low, made.high))
        hits += [low <= true <= high for (low, high), true in zip(ends, truth, strict=True)]
    return (hits / replicates).tolist(), float(missing.max()) / replicates


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=500)
    parser.add_argument("--classes", type=int, choices=tuple(DESIGNS), nargs="*", default=list(DESIGNS))
    options = parser.parse_args(arguments)
    print_table(
        [
            *("K", "share of the class", "n"),
            *("recall at 0.9", "specificity at 0.9", "precision at 0.8"),
            *("net benefit", "calibration slope", "calibration intercept", "without"),
        ],
        [
            [classes, f"{rarest:.0%}", size, *held, none]
            for classes in options.classes
            for rarest, size in DESIGNS[classes]
            for held, none in [coverage(World(shares(classes, rarest)), size, options.replicates)]
        ],
    )


if __name__ == "__main__":
    main()
