"""How often 95 % intervals of metrics of probabilities hold the truth, by simulation.

Run ``python -m benchmarks.probability_coverage``; prints Markdown tables. ``--replicates`` sets their precision: 400
give a standard error of one point.
"""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from app.kernel.metrics.card import Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.expression import Measure
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.calibration import (
    ErrorByChance,
    expected_by_chance,
    expected_by_chance_of_classes,
    largest_by_chance,
)
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.draws import generator
from app.kernel.uncertainty.influence import Influences, limits
from app.kernel.uncertainty.resampling import Plan, Resampled, bootstrap_samples, resampled
from app.kernel.uncertainty.units import Run

CLOSED = (
    "roc_auc",
    "roc_auc_ovr_macro",
    "roc_auc_ovo_macro",
    "log_loss",
    "brier_score",
    "brier_skill_score",
    "au_imcp",
)
RESAMPLED = (
    "average_precision",
    "pr_auc_trapezoid",
    "partial_roc_auc",
    "equal_error_rate",
    "median_phi",
    "ks_statistic",
    "h_measure",
    "expected_calibration_error",
)
LEVEL = 0.95
DRAWS = 300
SIMULATED = 200
BY_CHANCE: dict[str, Callable[[Scores], ErrorByChance]] = {
    "expected_calibration_error": partial(expected_by_chance, draws=SIMULATED),
    "adaptive_calibration_error": partial(expected_by_chance, adaptive=True, draws=SIMULATED),
    "maximum_calibration_error": partial(largest_by_chance, draws=SIMULATED),
    "classwise_calibration_error": partial(expected_by_chance_of_classes, draws=SIMULATED),
}
# Probabilities of samples that stand for the whole population.
MANY = 4_000_000


@dataclass(frozen=True)
class World:
    """Where samples come from: scores of the actual class are shifted, and stated with some confidence.

    Attributes:
        shares: Of the classes; values of one class are those of the last.
        apart: How well classes can be told apart; 1.2 gives AUCs of .88, 2.5 of .99.
        confidence: 1 states the true probabilities, more is overconfident.
    """

    shares: tuple[float, ...]
    apart: float = 1.2
    confidence: float = 1.0

    def sample(self, size: int, random: np.random.Generator) -> Scores:
        shares = np.array(self.shares)
        classes = shares.size
        y: NDArray[np.intp] = random.choice(classes, size, p=shares)
        logits = random.normal(size=(size, classes)) * self.apart
        logits[np.arange(size), y] += self.apart**2
        logits = (logits + np.log(shares)) * self.confidence
        p = np.exp(logits - logits.max(axis=1, keepdims=True))
        return Scores(y, p / p.sum(axis=1, keepdims=True))

    def truth(self, keys: Sequence[str]) -> list[float]:
        scores = self.sample(MANY // len(self.shares), generator(1))
        with silently():
            return [last_class(catalogue().of_probabilities.by_name[key].compute(scores)) for key in keys]

    def __str__(self) -> str:
        rare = "" if min(self.shares) == max(self.shares) else f", rarest {min(self.shares):.0%}"
        return f"{len(self.shares)}{rare}"


def even(classes: int) -> tuple[float, ...]:
    return (1.0 / classes,) * classes


def last_class(values: Array) -> float:
    return float(values if not values.ndim else values[-1])


WORLDS = (
    (World(even(2)), 50),
    (World(even(2)), 200),
    (World(even(2)), 1000),
    (World((0.95, 0.05)), 200),
    (World((0.95, 0.05)), 1000),
    (World(even(2), apart=2.5), 200),
    (World(even(2), confidence=2.0), 200),
    (World(even(2), confidence=2.0), 1000),
    (World(even(3)), 75),
    (World(even(3)), 300),
    (World(even(10)), 250),
    (World(even(10)), 1000),
)


def closed_coverage(world: World, size: int, replicates: int) -> list[float]:
    """Share of samples whose closed-form interval holds the truth; one without interval counts as a miss."""
    truth, random, hits = world.truth(CLOSED), generator(size), np.zeros(len(CLOSED))
    for _ in range(replicates):
        influences = Influences(world.sample(size, random))
        for position, key in enumerate(CLOSED):
            of_class = catalogue().of_probabilities.by_name[key].card.scope is Scope.CLASS
            linear = influences.of(
                catalogue().of_probabilities.by_name[key], len(world.shares) - 1 if of_class else None
            )
            found = None if linear is None else limits(linear, LEVEL)
            hits[position] += found is not None and found.low <= truth[position] <= found.high
    return [float(hit) / replicates for hit in hits]


def asked_of(keys: Sequence[str], classes: int) -> list[Resampled]:
    made = []
    for key in keys:
        metric = catalogue().of_probabilities.by_name[key]
        of = classes - 1 if metric.card.scope is Scope.CLASS else None
        made.append(resampled(Measure(metric, metric.card.defaults, of), metric.card.range))
    return made


def resampled_coverage(
    world: World, size: int, replicates: int, subset: int | None = None, keys: Sequence[str] = RESAMPLED
) -> list[float]:
    """The same for the bootstrap, of all samples or of subsets."""
    truth, random, hits = world.truth(keys), generator(size), np.zeros(len(keys))
    asked, made = asked_of(keys, len(world.shares)), Plan(DRAWS, subset or size, size)
    for replicate in range(replicates):
        scores = world.sample(size, random)
        found = bootstrap_samples(Run(scores, scores.predicted), asked, seed=replicate, made=made, level=LEVEL)
        for position, (key, summary) in enumerate(zip(keys, found, strict=True)):
            # As a report has them: errors that perfect probabilities might show too reach down to 0.
            by_chance = key in BY_CHANCE and BY_CHANCE[key](scores).p_value > 1.0 - LEVEL
            low = 0.0 if by_chance else float(summary.low[0])
            hits[position] += low <= truth[position] <= float(summary.high[0])
    return [float(hit) / replicates for hit in hits]


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=400)
    replicates = parser.parse_args(arguments).replicates
    head = ["K", "n", "apart", "confidence"]
    _print_table([*head, *CLOSED], [[*_facts(w, n), *closed_coverage(w, n, replicates)] for w, n in WORLDS])
    rows = [[*_facts(w, n), *resampled_coverage(w, n, replicates)] for w, n in WORLDS if len(w.shares) < 10]
    world = World(even(3), confidence=2.0)
    rows.append([*_facts(world, 30_000), *resampled_coverage(world, 30_000, replicates // 2, subset=2000)])
    _print_table([*head, *RESAMPLED], rows)


def _facts(world: World, size: int) -> list[object]:
    return [str(world), size, f"{world.apart:.1f}", f"{world.confidence:.1f}"]


def _print_table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    lines = [" | ".join(head), " | ".join("---" for _ in head)]
    lines += [" | ".join(f"{cell:.3f}" if isinstance(cell, float) else str(cell) for cell in row) for row in rows]
    sys.stdout.write("".join(f"| {line} |\n" for line in lines) + "\n")


if __name__ == "__main__":
    main()
