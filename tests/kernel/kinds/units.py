"""Examples of units: ranked items of queries, and items with sizes of sets."""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from app.kernel.metrics.card import AnyMetric
from app.kernel.numerics.arrays import Array
from app.kernel.units.overlaps import Overlaps
from app.kernel.units.queries import Queries
from tests.kernel.kinds.kind import Kind
from tests.kernel.probability.problems import Codes

# Query, relevance and score of each item, weights of the queries.
Items = tuple[Codes, Array, Array, Array | None]


class OfQueries(Kind):
    """Ranked items of queries. The first class are irrelevant items, the others relevant ones."""

    rounding = 1e-12

    def cases(self, classes: int) -> Sequence[Items]:
        return [_ranked(classes, levels, pull) for levels, pull in ((1_000_000, 0.3), (6, 0.3), (20, -0.4))]

    def degenerate(self) -> Mapping[str, Items]:
        query, scores = np.array([0, 0, 1, 1, 1]), np.array([0.3, 0.2, 0.5, 0.5, 0.1])
        none, mixed = np.zeros(5), np.array([0.0, 2.0, 1.0, 0.0, 0.0])
        second = np.array([0.0, 0.0, 1.0, 0.0, 3.0])
        return {
            "nothing relevant": (query, none, scores, None),
            "everything relevant": (query, none + 1.0, scores, None),
            "one query with nothing relevant": (query, second, scores, None),
            "only that query weighs something": (query, second, scores, np.array([1.0, 0.0])),
            "no weight at all": (query, mixed, scores, np.zeros(2)),
            "one item": (query[:1], none[:1] + 1.0, scores[:1], None),
            "all tied": (query, mixed, none, None),
        }

    def data(self, example: Items) -> Queries:
        return Queries(*example)

    def replicated(self, example: Items, times: Sequence[int]) -> Items:
        query, relevance, scores, _ = example
        if len(set(times)) == 1:
            # Queries are what is sampled: as many times the same data are as many times the same queries.
            copies = [query + number * (query.max() + 1) for number in range(times[0])]
            return np.concatenate(copies), np.tile(relevance, times[0]), np.tile(scores, times[0]), None
        index = np.repeat(np.arange(query.size), np.where(relevance > 0, times[1], times[0]))
        return query[index], relevance[index], scores[index], None

    def relabelled(self, example: Items, order: Sequence[int]) -> Items:
        query, relevance, scores, _ = example
        index = np.random.default_rng(1).permutation(query.size)
        return query.max() - query[index], relevance[index], scores[index], None

    def perfect(self, example: Items) -> Items:
        query, relevance, _, _ = example
        return query, relevance, relevance, None

    def batches(self, classes: int) -> Sequence[tuple[Items, Sequence[Items]]]:
        found = []
        for query, relevance, scores, _ in self.cases(classes):
            weights = np.random.default_rng(2).gamma(1.0, size=(2, 3, int(query.max()) + 1))
            alone = [(query, relevance, scores, row) for row in weights.reshape(6, -1)]
            found += [((query, relevance, scores, weights.reshape(6, -1)), alone)]
            found += [((query, relevance, scores, weights), alone)]
        return found

    def depends_on_order(self, metric: AnyMetric, example: Items) -> bool:
        return False


@cache
def _ranked(classes: int, levels: int, pull: float) -> Items:
    """Eight queries of 25 items, of which as many are relevant as there are places by default."""
    rng = np.random.default_rng(classes)
    relevance = np.concatenate([np.append(rng.integers(1, classes, 10), np.zeros(15)) for _ in range(8)])
    scores = np.floor((pull * relevance + rng.random(relevance.size)) * levels) / levels
    return np.repeat(np.arange(8), 25), relevance, scores, None


# Class of each item, how much is there, was predicted, is common; weights.
Sized = tuple[Codes, Array, Array, Array, Array | None]


class OfOverlaps(Kind):
    """Items with the sizes of two sets, among them some in which nothing is there, or nothing was predicted."""

    rounding = 1e-12

    def cases(self, classes: int) -> Sequence[Sized]:
        return [sized(40, classes, seed) for seed in (1, 2)]

    def degenerate(self) -> Mapping[str, Sized]:
        codes, there, said, common, _ = sized(12, 3, 4)
        none = np.zeros(12)
        return {
            "one item": (codes[:1], there[:1], said[:1], common[:1], None),
            "nothing anywhere": (codes, none, none, none, None),
            "nothing there": (codes, none, said, none, None),
            "nothing predicted": (codes, there, none, none, None),
            "nothing in common": (codes, there, said, none, None),
            "a class with nothing": (codes, there * (codes > 0), said * (codes > 0), common * (codes > 0), None),
            "no weight": (codes, there, said, common, none),
        }

    def data(self, example: Sized) -> Overlaps:
        codes, there, said, common, weights = example
        return Overlaps(there, said, common, codes=codes, n_classes=int(codes.max()) + 1, weights=weights)

    def replicated(self, example: Sized, times: Sequence[int]) -> Sized:
        index = np.repeat(np.arange(example[0].size), np.array(times)[example[0]])
        codes, there, said, common, _ = example
        return codes[index], there[index], said[index], common[index], None

    def relabelled(self, example: Sized, order: Sequence[int]) -> Sized:
        return np.argsort(order)[example[0]], *example[1:]

    def perfect(self, example: Sized) -> Sized:
        codes, there, _, _, weights = example
        return codes, there, there, there, weights

    def batches(self, classes: int) -> Sequence[tuple[Sized, Sequence[Sized]]]:
        codes, there, said, common, _ = sized(30, classes, 5)
        weights = np.random.default_rng(2).gamma(1.0, size=(2, 3, 30))
        weights[1, 1] = 0.0
        alone = [(codes, there, said, common, row) for row in weights.reshape(6, -1)]
        flat = (codes, there, said, common, weights.reshape(6, -1))
        return [(flat, alone), ((codes, there, said, common, weights), alone)]

    def depends_on_order(self, metric: AnyMetric, example: Sized) -> bool:
        return False


def sized(size: int, classes: int, seed: int) -> Sized:
    """Classes in which predictions are more and less good."""
    random = np.random.default_rng(seed)
    codes = np.arange(size) % classes
    there = random.integers(0, 9, size) * random.integers(0, 2, size) + 3 * (np.arange(size) % 3)
    found = random.binomial(there, 0.4 + 0.5 * codes / classes)
    said = found + random.integers(0, 5, size) * random.integers(0, 2, size)
    return codes, there.astype(np.float64), said.astype(np.float64), found.astype(np.float64), None
