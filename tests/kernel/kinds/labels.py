"""Examples of samples with any number of labels."""

from collections.abc import Mapping, Sequence

import numpy as np

from app.kernel.metrics.card import AnyMetric
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.label_units import LabelScores, LabelSets
from tests.kernel.kinds.kind import Kind

# Labels that are there, labels that are predicted, scores, weights.
Labelled = tuple[Mask, Mask, Array, Array | None]


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
