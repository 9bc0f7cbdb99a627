"""Samples with labels and weights of their own that go by: sums of weights and of their squares take the place of
counts.
"""

from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.labels.folded import FoldedLabels
from app.kernel.folds.labels.means import FoldedMeans, SumOfWeighted, Weighed, said_of_samples
from app.kernel.folds.labels.moments import KINDS, WeightedMoments
from app.kernel.folds.labels.sets import OF_SETS
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.exact_products import weighted_powers
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, total_of
from app.kernel.samples.labels.pairs import CELLS, LabelPairs
from app.kernel.samples.labels.sets import LabelSets

# Sums of what metrics say: of w v, w v^2, w^2 v and w^2 v^2, and what rounding took from these.
_PRODUCTS: Final = 4


class WeightedLabelFold:
    """Samples of L labels with weights. States of parts are merged in any order and give the same answers, bit for bit.

    Samples of weight 0 are left out.

    Args:
        n_labels: L.
    """

    def __init__(self, n_labels: int) -> None:
        size = (CELLS - 1) * n_labels
        self._counts: NDArray[np.int64] = np.zeros((n_labels, CELLS), dtype=np.int64)
        self._used = 0
        self._ends = np.inf, -np.inf
        self._totals, self._pairs = ExactSums((KINDS,)), ExactSums((KINDS, size, size))
        self._values = ExactSums((2 * _PRODUCTS, len(OF_SETS)))

    @property
    def used(self) -> int:
        """Samples so far with a weight above 0."""
        return self._used

    def add(self, truth: Mask, predicted: Mask, weights: Array) -> None:
        """Add samples: labels that they have (n, L), those that were predicted (n, L), and weights (n), 0 or more."""
        used = weights > 0
        truth, predicted, weights = truth[used], predicted[used], weights[used]
        if not weights.size:
            return
        self._used += weights.size
        self._ends = min(self._ends[0], float(weights.min())), max(self._ends[1], float(weights.max()))
        self._counts += LabelPairs(truth, predicted).counts
        for start in range(0, weights.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._add(truth[part], predicted[part], weights[part])

    def merge(self, other: "WeightedLabelFold") -> None:
        """Take in another state, of the same labels."""
        self._used += other._used
        self._ends = min(self._ends[0], other._ends[0]), max(self._ends[1], other._ends[1])
        self._counts = self._counts + other._counts
        for own, theirs in ((self._totals, other._totals), (self._pairs, other._pairs), (self._values, other._values)):
            own.merge(theirs)

    def finish(self) -> FoldedLabels[WeightedMoments]:
        """What is left of the samples.

        Raises:
            ValueError: there is no sample of a weight above 0.
        """
        if not self._used:
            raise ValueError("expected at least one sample")
        total, squares = self._totals.exact()
        weighed = Weighed(total, squares, self._used)
        exact, size = self._values.exact(), _PRODUCTS * len(OF_SETS)
        values = [rounded + rest for rounded, rest in zip(exact[:size], exact[size:], strict=True)]
        sums = {
            metric.key: SumOfWeighted(values[place :: len(OF_SETS)], weighed) for place, metric in enumerate(OF_SETS)
        }
        moments = WeightedMoments(self._counts, self._pairs.exact(), weighed, self._ends)
        return FoldedLabels(moments, FoldedMeans(sums))

    def _add(self, truth: Mask, predicted: Mask, weights: Array) -> None:
        both = np.stack([weights, weights * weights])
        self._totals.add(both.copy(), total_of)
        cells = np.concatenate([predicted & ~truth, truth & ~predicted, truth & predicted], axis=1).astype(np.float64)
        self._pairs.add(both, partial(_in_pairs, cells))
        values = said_of_samples(OF_SETS, LabelSets(truth, predicted))
        # By weights and by their squares; what rounding took stands last.
        parts = zip(weighted_powers(weights, values), weighted_powers(weights * weights, values), strict=True)
        rows = np.concatenate([own for part in parts for own in part])
        self._values.add(rows.reshape(2 * _PRODUCTS, len(OF_SETS), -1), total_of)


def _in_pairs(cells: Array, rows: Array) -> Array:
    """Sums (k, 3 L, 3 L) of rows (k, n) over the samples in two cells at once."""
    return np.stack([(cells * row[:, None]).T @ cells for row in rows])
