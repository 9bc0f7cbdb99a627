"""Examples of tables of classes by clusters or decisions, and of points in clusters."""

from collections.abc import Mapping, Sequence

import numpy as np

from app.kernel.metrics.card import AnyMetric
from app.kernel.numerics.arrays import Array
from app.kernel.samples.contingency import Contingency, DecisionTable
from app.kernel.samples.points import ClusteredPoints
from tests.kernel.closeness import CANCELLING
from tests.kernel.kinds.kind import Kind
from tests.kernel.matrices import Counts
from tests.kernel.probability.problems import Codes


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

    def data(self, example: Counts) -> Contingency | DecisionTable:
        return Contingency.of_table(example)

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


class OfDecisions(OfTables):
    """The same, with the rarest decision in front: it is looked at where none is asked for."""

    def data(self, example: Counts) -> DecisionTable:
        return DecisionTable(example)

    def degenerate(self) -> Mapping[str, Counts]:
        found = super().degenerate()
        return {name: one[:, np.argsort(one.sum(axis=0), kind="stable")] for name, one in found.items()}


def table(classes: int, clusters: int, seed: int) -> Counts:
    """Dense ones and ones with empty cells, every class and cluster filled."""
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 9, (classes, clusters)) * rng.integers(0 if seed % 2 else 1, 2, (classes, clusters))
    counts[np.arange(classes), np.arange(classes)] += 2 + 5 * np.arange(classes)
    counts[:, -1] += 1
    return np.asarray(counts, dtype=np.float64)


# Class and cluster of each point, its coordinates, weights.
Placed = tuple[Codes, Codes, Array, Array | None]


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

    def data(self, example: Placed) -> ClusteredPoints:
        _, clusters, features, weights = example
        return ClusteredPoints(clusters, features, weights)

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


def placed(size: int, classes: int, seed: int) -> Placed:
    """Every class has points in every cluster."""
    rng = np.random.default_rng(seed)
    y = np.arange(size) % classes
    clusters = np.where(rng.random(size) < 0.6, y, rng.integers(0, classes, size))
    return y, clusters, rng.normal(size=(size, 2)) + 1.5 * clusters[:, None] + 0.3 * y[:, None], None
