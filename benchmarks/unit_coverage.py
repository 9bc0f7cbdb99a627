"""How often limits of labels and rankings hold what they are about: ``python -m benchmarks.unit_coverage``.

Of labels the truth follows from the shares of a world in which a hidden trait makes labels, hits and false alarms go
together; of rankings it is the mean over a large pool of queries, from which queries are drawn. Limits are those that
every report has. Those of clusterings are in ``clustering_coverage``.
"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np

from app.kernel.metrics.card import Inputs, Mean
from app.kernel.metrics.expression import Measure, Subject
from app.kernel.metrics.families.averages import macro_f1
from app.kernel.metrics.families.retrieval import ndcg_at_k
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.influence import LabelInfluences, UnitInfluences, limits
from app.kernel.uncertainty.units import LabelUnits
from app.kernel.units.queries import Queries

LEVEL = 0.95
POOL, ITEMS = 20_000, 20
Limits = tuple[float, float]
Draw = Callable[[np.random.Generator], dict[str, Limits | None]]


class World(NamedTuple):
    """Chances (2, L) of a label, of finding it where it is, and of a false alarm, without and with the hidden trait."""

    common: float
    labels: Array
    hits: Array
    false: Array

    @classmethod
    def of(cls, n_labels: int) -> "World":
        """From frequent labels to rare ones; with the trait there are more of them, and they are found more often."""
        shares, recalls = np.geomspace(0.4, 0.05, n_labels), np.linspace(0.9, 0.6, n_labels)
        labels = np.stack([0.7 * shares, np.minimum(1.7 * shares, 0.9)])
        return cls(0.3, labels, np.stack([recalls - 0.1, recalls + 0.08]), np.stack([0.2 * shares, 0.4 * shares]))

    def sample(self, size: int, random: np.random.Generator) -> LabelUnits:
        """So many samples."""
        trait = (random.random(size) < self.common).astype(int)
        truth = random.random((size, self.labels.shape[1])) < self.labels[trait]
        chance = np.where(truth, self.hits[trait], self.false[trait])
        return LabelUnits(truth, random.random(truth.shape) < chance)

    def truths(self) -> dict[str, float]:
        """H and macro F1 of infinitely many samples."""
        mix = np.array([[1.0 - self.common], [self.common]])
        there = (mix * self.labels).sum(axis=0)
        found = (mix * self.labels * self.hits).sum(axis=0)
        said = found + (mix * (1.0 - self.labels) * self.false).sum(axis=0)
        return {"h_mean": float(1.0 / np.mean(there / found)), macro_f1.key: float(np.mean(2 * found / (there + said)))}


def of_labels(units: LabelUnits) -> dict[str, Limits | None]:
    """Limits of H and of macro F1."""
    n_labels = units.members.shape[1]
    influences = LabelInfluences(units.subject(), units.n_units, n_labels, units.pairs)
    linear = influences.of_tables(Measure(macro_f1, macro_f1.card.defaults, None))
    found = None if linear is None else limits(linear, LEVEL)
    return {
        "h_mean": influences.recall_means(LEVEL)[Mean.HARMONIC],
        macro_f1.key: None if found is None else (found.low, found.high),
    }


def _labels_of(world: World, size: int, random: np.random.Generator) -> dict[str, Limits | None]:
    return of_labels(world.sample(size, random))


def rankings() -> tuple[Array, Array]:
    """Grades and scores (POOL, ITEMS); some queries are much harder than others."""
    random = np.random.default_rng(0)
    levels = random.integers(0, 4, (POOL, ITEMS)) * (random.random((POOL, ITEMS)) < 0.3)
    grades = levels.astype(np.float64)
    grades[:, 0] = 1
    return grades, grades + random.gamma(1.0, 1.5, (POOL, 1)) * random.normal(size=grades.shape)


def queries_of(grades: Array, scores: Array) -> Queries:
    return Queries(np.repeat(np.arange(len(grades)), ITEMS), grades.ravel(), scores.ravel())


def of_queries(queries: Queries) -> dict[str, Limits | None]:
    """Limits of nDCG@10."""
    influences = UnitInfluences(Subject({Inputs.QUERIES: queries}), queries.n_units, 0)
    linear = influences.of(ndcg_at_k, parameters={"k": 10.0})
    found = None if linear is None else limits(linear, LEVEL)
    return {ndcg_at_k.key: None if found is None else (found.low, found.high)}


def settings() -> Iterator[tuple[str, int, dict[str, float], Draw]]:
    """What is drawn, how many of it, the truth, and limits of a draw."""
    for n_labels in (5, 20):
        world = World.of(n_labels)
        for size in (200, 500, 2000):
            yield f"{n_labels} labels", size, world.truths(), partial(_labels_of, world, size)
    grades, scores = rankings()
    truth = {ndcg_at_k.key: float(ndcg_at_k(queries_of(grades, scores), k=10.0))}
    for size in (15, 50, 200):

        def drawn(random: np.random.Generator, size: int = size) -> dict[str, Limits | None]:
            chosen = random.integers(0, POOL, size)
            return of_queries(queries_of(grades[chosen], scores[chosen]))

        yield "queries", size, truth, drawn


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replicates", type=int, default=200)
    replicates = parser.parse_args().replicates
    print(f"{replicates} replicates, limits at 95 %.\n")
    print("| of | n | metric | held | below | above | none |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for what, size, truths, draw in settings():
        random = np.random.default_rng(size)
        counts = {key: np.zeros(4) for key in truths}
        for _ in range(replicates):
            with silently():
                found = draw(random)
            for key, truth in truths.items():
                ends = found[key]
                place = (
                    3 if ends is None or np.isnan(sum(ends)) else 1 if ends[1] < truth else 2 if ends[0] > truth else 0
                )
                counts[key][place] += 1
        for key, number in counts.items():
            held, below, above, none = number / replicates
            print(f"| {what} | {size} | {key} | {held:.3f} | {below:.3f} | {above:.3f} | {none:.3f} |")


if __name__ == "__main__":
    main()
