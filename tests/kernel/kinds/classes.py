"""Examples of classes: matrices, and samples with probabilities."""

from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np

from app.kernel.matrix.table import Table
from app.kernel.metrics.card import AnyMetric
from app.kernel.numerics.arrays import Array
from app.kernel.samples.scores import Scores
from tests.kernel.closeness import CANCELLING
from tests.kernel.kinds.kind import Kind
from tests.kernel.matrices import Counts, dense, matrices, sparse
from tests.kernel.probability.problems import Codes, softmax_problem, tied_problem

# Truth, probabilities, weights.
Samples = tuple[Codes, Array, Array | None]


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
