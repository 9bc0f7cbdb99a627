"""What metrics are tried on, by what they are computed from: one set of questions for all."""

import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from app.kernel.matrix.contingency import Contingency
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import AnyMetric, Inputs
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.labels.scores import LabelScores
from app.kernel.samples.labels.sets import LabelSets
from app.kernel.samples.points import Points
from app.kernel.samples.scores import Scores
from app.kernel.units.overlaps import Overlaps
from app.kernel.units.queries import Queries
from tests.kernel.closeness import CANCELLING
from tests.kernel.matrices import Counts, dense, matrices, sparse
from tests.kernel.probability.problems import Codes, softmax_problem, tied_problem

# Truth, probabilities, weights.
Samples = tuple[Codes, Array, Array | None]
# Labels that are there, labels that are predicted, scores, weights.
Labelled = tuple[Mask, Mask, Array, Array | None]


class Kind(ABC):
    """Examples for metrics, and what may be done to them. ``size`` of a difference is rounding."""

    rounding: float

    @abstractmethod
    def cases(self, classes: int) -> Sequence[Any]:
        """The same examples for every metric, in which every class occurs."""

    @abstractmethod
    def degenerate(self) -> Mapping[str, Any]:
        """Examples in which something is missing."""

    @abstractmethod
    def data(self, example: Any) -> Any:
        """What the function of a metric takes."""

    @abstractmethod
    def replicated(self, example: Any, times: Sequence[int]) -> Any:
        """Every sample of class k so many times."""

    @abstractmethod
    def relabelled(self, example: Any, order: Sequence[int]) -> Any:
        """The classes listed in another order."""

    @abstractmethod
    def perfect(self, example: Any) -> Any:
        """The same truth, always recognised."""

    @abstractmethod
    def batches(self, classes: int) -> Sequence[tuple[Any, Sequence[Any]]]:
        """Batches with one or two axes in front, and their members one by one."""

    @abstractmethod
    def depends_on_order(self, metric: AnyMetric, example: Any) -> bool:
        """Does the order of the classes decide something in this example, ties for instance?"""

    def values(self, metric: AnyMetric, example: Any, **parameters: Any) -> Array:
        """The metric of an example, warnings as errors."""
        with silently(), warnings.catch_warnings():
            warnings.simplefilter("error")
            return np.asarray(metric.compute(self.data(example), **parameters))


class OfMatrices(Kind):
    """Confusion matrices (..., K, K)."""

    rounding = CANCELLING

    def cases(self, classes: int) -> Sequence[Counts]:
        return _matrices_of(classes)

    def degenerate(self) -> Mapping[str, Counts]:
        return matrices()

    def data(self, example: Counts) -> Table:
        return Table(example)

    def replicated(self, example: Counts, times: Sequence[int]) -> Counts:
        scaled: Counts = example * np.array(times)[:, None]
        return scaled

    def relabelled(self, example: Counts, order: Sequence[int]) -> Counts:
        return example[np.ix_(order, order)]

    def perfect(self, example: Counts) -> Counts:
        return np.diag(example.sum(axis=1))

    def depends_on_order(self, metric: AnyMetric, example: Counts) -> bool:
        return metric.card.ordered

    def batches(self, classes: int) -> Sequence[tuple[Counts, Sequence[Counts]]]:
        alone = [counts for name, counts in matrices().items() if name.split("-")[1] == str(classes)]
        return [(np.stack(alone), alone), (np.stack(alone).reshape(2, -1, classes, classes), alone)]


class OfSamples(Kind):
    """Probabilities (n, K) of samples whose truth is known."""

    rounding = 1e-12
    # Ties go to the class that comes first, which is another one after relabelling.
    decided_by_index = frozenset(
        {
            "top_k_accuracy",
            "au_imcp_trapezoid",
            "expected_calibration_error",
            "adaptive_calibration_error",
            "maximum_calibration_error",
            "l2_calibration_error",
            "minimum_cost",
        }
    )

    def cases(self, classes: int) -> Sequence[Samples]:
        return [(*make(120, classes, classes), None) for make in (softmax_problem, tied_problem)]

    def degenerate(self) -> Mapping[str, Scores]:
        return _missing_something()

    def data(self, example: Samples | Scores) -> Scores:
        if isinstance(example, Scores):
            return example
        arrays = [None if part is None else part.copy() for part in example]
        for part in arrays:
            if part is not None:
                part.flags.writeable = False
        y, p, weights = arrays
        assert y is not None
        assert p is not None
        return Scores(y, p, weights)

    def replicated(self, example: Samples, times: Sequence[int]) -> Samples:
        y, p, _ = example
        index = np.random.default_rng(0).permutation(np.repeat(np.arange(y.size), np.array(times)[y]))
        return y[index], p[index], None

    def relabelled(self, example: Samples, order: Sequence[int]) -> Samples:
        y, p, _ = example
        return np.argsort(order)[y], p[:, order], None

    def perfect(self, example: Samples) -> Samples:
        y, p, _ = example
        return y, np.eye(p.shape[1])[y], None

    def batches(self, classes: int) -> Sequence[tuple[Samples, Sequence[Samples]]]:
        found = []
        for y, p, _ in self.cases(classes):
            weights = np.random.default_rng(2).gamma(1.0, size=(2, 3, y.size))
            weights[1, 2] = np.random.default_rng(3).multinomial(y.size, np.full(y.size, 1 / y.size))
            alone = [(y, p, row) for row in weights.reshape(6, -1)]
            found += [((y, p, weights.reshape(6, -1)), alone), ((y, p, weights), alone)]
        return found

    def depends_on_order(self, metric: AnyMetric, example: Samples) -> bool:
        _, p, _ = example
        ordered = np.sort(p, axis=1)
        return metric.key in self.decided_by_index and bool((ordered[:, 1:] == ordered[:, :-1]).any())


class OfLabels(Kind):
    """Labels (n, L) that samples have, those predicted for them, and scores: what sets or orders of labels take."""

    rounding = 1e-12

    def __init__(self, *, scores: bool) -> None:
        self.scores = scores

    def cases(self, classes: int) -> Sequence[Labelled]:
        return [labelled(60, classes, seed) for seed in (1, 2)]

    def degenerate(self) -> Mapping[str, Labelled]:
        truth, predicted, scores, _ = labelled(30, 3, 4)
        return {
            "no weight at all": (truth, predicted, scores, np.zeros(30)),
            "one sample": (truth[:1], predicted[:1], scores[:1], None),
            "no labels": (np.zeros_like(truth), predicted, scores, None),
            "no labels on either side": (np.zeros_like(truth), np.zeros_like(truth), scores, None),
            "all labels": (np.ones_like(truth), predicted, scores, None),
            "one score": (truth, predicted, np.full_like(scores, 0.5), None),
        }

    def data(self, example: Labelled) -> LabelSets | LabelScores:
        truth, predicted, scores, weights = example
        return LabelScores(truth, scores, weights) if self.scores else LabelSets(truth, predicted, weights)

    def replicated(self, example: Labelled, times: Sequence[int]) -> Labelled:
        truth, predicted, scores, _ = example
        index = np.repeat(np.arange(len(truth)), np.array(times)[truth.argmax(axis=1)])
        return truth[index], predicted[index], scores[index], None

    def relabelled(self, example: Labelled, order: Sequence[int]) -> Labelled:
        truth, predicted, scores, weights = example
        return truth[:, order], predicted[:, order], scores[:, order], weights

    def perfect(self, example: Labelled) -> Labelled:
        truth, _, _, weights = example
        return truth, truth, truth.astype(np.float64), weights

    def batches(self, classes: int) -> Sequence[tuple[Labelled, Sequence[Labelled]]]:
        truth, predicted, scores, _ = labelled(40, classes, 5)
        weights = np.random.default_rng(2).gamma(1.0, size=(2, 3, 40))
        weights[1, 1] = 0.0
        alone = [(truth, predicted, scores, row) for row in weights.reshape(6, -1)]
        flat = (truth, predicted, scores, weights.reshape(6, -1))
        return [(flat, alone), ((truth, predicted, scores, weights), alone)]

    def depends_on_order(self, metric: AnyMetric, example: Labelled) -> bool:
        return False


def labelled(size: int, labels: int, seed: int) -> Labelled:
    """Samples with none, some or all of the labels, with ties among the scores."""
    random = np.random.default_rng(seed)
    truth = random.random((size, labels)) < 0.4
    noise: Array = random.random((size, labels))
    scores: Array = np.round(0.35 * truth.astype(np.float64) + 0.65 * noise, 1)
    return truth, scores >= 0.5, scores, None


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


class OfTables(Kind):
    """Tables (..., R, S), one cluster more than classes."""

    rounding = CANCELLING

    def cases(self, classes: int) -> Sequence[Counts]:
        return [table(classes, classes + 1, seed) for seed in range(4)]

    def degenerate(self) -> Mapping[str, Counts]:
        return {
            "no samples": np.zeros((2, 3)),
            "one sample": np.array([[0.0, 1.0], [0.0, 0.0]]),
            "all together": np.array([[7.0]]),
            "one class": np.array([[2.0, 3.0]]),
            "one cluster": np.array([[2.0], [3.0]]),
            "an empty class and cluster": np.array([[4.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 5.0]]),
            "all alone": np.eye(5),
            "one by one": np.ones((1, 4)),
            "independent": np.outer([2.0, 3.0], [4.0, 5.0, 1.0]),
            "right": np.diag([3.0, 4.0, 5.0]),
        }

    def data(self, example: Counts) -> Contingency:
        return Contingency(example)

    def replicated(self, example: Counts, times: Sequence[int]) -> Counts:
        return np.asarray(example * np.array(times)[:, None])

    def relabelled(self, example: Counts, order: Sequence[int]) -> Counts:
        return example[list(order)]

    def perfect(self, example: Counts) -> Counts:
        return np.diag(example.sum(axis=1))

    def batches(self, classes: int) -> Sequence[tuple[Counts, Sequence[Counts]]]:
        alone = [table(classes, classes + 1, seed) for seed in range(6)]
        alone[2] = np.zeros_like(alone[2])
        return [(np.stack(alone), alone), (np.stack(alone).reshape(2, 3, classes, classes + 1), alone)]

    def depends_on_order(self, metric: AnyMetric, example: Counts) -> bool:
        return False


# Class and cluster of each point, its coordinates, weights.
Placed = tuple[Codes, Codes, Array, Array | None]


class OfDecisions(OfTables):
    """The same, with the rarest decision in front: it is looked at where none is asked for."""

    def degenerate(self) -> Mapping[str, Counts]:
        found = super().degenerate()
        return {name: one[:, np.argsort(one.sum(axis=0), kind="stable")] for name, one in found.items()}


class OfPoints(Kind):
    """Points (n, d) in clusters that follow their classes now and then."""

    rounding = 1e-12

    def cases(self, classes: int) -> Sequence[Placed]:
        return [placed(40, classes, seed) for seed in (1, 2)]

    def degenerate(self) -> Mapping[str, Placed]:
        y, clusters, features, _ = placed(12, 3, 4)
        same = np.full_like(features, 0.1)
        return {
            "one point": (y[:1], np.zeros(1, dtype=np.intp), features[:1], None),
            "one cluster": (y, np.zeros_like(clusters), features, None),
            "all alone": (y, np.arange(12), features, None),
            "in one place": (y, clusters, same, None),
            "clusters in places": (y, clusters, same + clusters[:, None], None),
            "no weight": (y, clusters, features, np.zeros(12)),
            "one centroid": (y[:4], np.array([0, 0, 1, 1]), np.array([[-1.0, 0], [1, 0], [0, -1], [0, 1]]), None),
        }

    def data(self, example: Placed) -> Points:
        _, clusters, features, weights = example
        return Points(clusters, features, weights)

    def replicated(self, example: Placed, times: Sequence[int]) -> Placed:
        y, clusters, features, _ = example
        index = np.repeat(np.arange(y.size), np.array(times)[y])
        return y[index], clusters[index], features[index], None

    def relabelled(self, example: Placed, order: Sequence[int]) -> Placed:
        y, clusters, features, weights = example
        return np.argsort(order)[y], clusters, features, weights

    def perfect(self, example: Placed) -> Placed:
        y, _, features, weights = example
        return y, y, np.repeat(y[:, None].astype(np.float64), features.shape[1], axis=1), weights

    def batches(self, classes: int) -> Sequence[tuple[Placed, Sequence[Placed]]]:
        y, clusters, features, _ = placed(30, classes, 5)
        weights = np.random.default_rng(2).integers(0, 4, (2, 3, 30)).astype(np.float64)
        weights[1, 1] = 0.0
        alone = [(y, clusters, features, row) for row in weights.reshape(6, -1)]
        return [((y, clusters, features, weights.reshape(6, -1)), alone), ((y, clusters, features, weights), alone)]

    def depends_on_order(self, metric: AnyMetric, example: Placed) -> bool:
        return False


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


def table(classes: int, clusters: int, seed: int) -> Counts:
    """Dense ones and ones with empty cells, every class and cluster filled."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, (classes, clusters)) * rng.integers(0 if seed % 2 else 1, 2, (classes, clusters))
    counts[np.arange(classes), np.arange(classes)] += 2 + 5 * np.arange(classes)
    counts[:, -1] += 1
    return np.asarray(counts, dtype=np.float64)


def placed(size: int, classes: int, seed: int) -> Placed:
    """Every class has points in every cluster."""
    rng = np.random.default_rng(seed)
    y = np.arange(size) % classes
    clusters = np.where(rng.random(size) < 0.6, y, rng.integers(0, classes, size))
    return y, clusters, rng.normal(size=(size, 2)) + 1.5 * clusters[:, None] + 0.3 * y[:, None], None


@cache
def _matrices_of(classes: int) -> Sequence[Counts]:
    """Dense ones and ones with empty cells."""
    rng = np.random.default_rng(77 + classes)
    return [make(rng, classes) for _ in range(4) for make in (dense, sparse)]


@cache
def _missing_something() -> Mapping[str, Scores]:
    y, p = softmax_problem(30, 3, 4)
    two, large = softmax_problem(30, 2, 4)[1], softmax_problem(5000, 2, 4)[1]
    y.flags.writeable = p.flags.writeable = two.flags.writeable = False
    return {
        "absent class": Scores(np.minimum(y, 1), p),
        "one class of three": Scores(np.zeros(30, dtype=int), p),
        "one class of two": Scores(np.ones(30, dtype=int), two),
        "one sample": Scores(y[:1], p[:1]),
        "no weight at all": Scores(y, p, np.zeros(30)),
        "a class without weight": Scores(y, p, (y != 1).astype(float)),
        "constant probabilities": Scores(y, np.full((30, 3), 1 / 3)),
        "constant binary": Scores(y % 2, np.full((30, 2), 0.5)),
        "certain and right": Scores(y, np.eye(3)[y]),
        "certain and wrong": Scores(y, np.eye(3)[(y + 1) % 3]),
        "scores": Scores.of_scores(y % 2, np.linspace(-5.0, 40.0, 30)),
        "constant scores": Scores.of_scores(y % 2, np.zeros(30)),
        "scores of one class": Scores.of_scores(np.ones(30, dtype=int), np.linspace(-5.0, 40.0, 30)),
        "one class, folded": Scores(np.zeros(5000, dtype=int), large),
        "one other class, folded": Scores(np.ones(5000, dtype=int), large),
        "all alike, folded": Scores(np.arange(5000) % 2, np.full((5000, 2), 0.5)),
    }


KINDS: Mapping[Inputs, Kind] = {
    Inputs.MATRIX: OfMatrices(),
    Inputs.PROBABILITIES: OfSamples(),
    Inputs.LABELS: OfLabels(scores=False),
    Inputs.LABEL_SCORES: OfLabels(scores=True),
    Inputs.QUERIES: OfQueries(),
    Inputs.CONTINGENCY: OfTables(),
    Inputs.DECISIONS: OfDecisions(),
    Inputs.FEATURES: OfPoints(),
    Inputs.OVERLAPS: OfOverlaps(),
    Inputs.CLASS_OVERLAPS: OfOverlaps(),
}


def kind_of(metric: AnyMetric) -> Kind:
    """What a metric is tried on."""
    return KINDS[metric.card.inputs]
