"""Probabilities of labels folded: the order of the samples by each label, and that of the labels of each sample.

A label is there or not, so the samples by its probability are an order of two classes of its own. How a sample orders
its labels is known when it goes by: what metrics say of it is added up, with its squares.
"""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Final, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Groups
from app.kernel.folds.fold import Fold
from app.kernel.folds.folded import FoldedSamples
from app.kernel.folds.labels.groups import ValuesInGroups
from app.kernel.folds.labels.means import FoldedMeans, SumOfSamples, said_of_samples
from app.kernel.folds.orders.runs import SortedRuns
from app.kernel.folds.orders.stretches import InOrder, Stretch, stretches
from app.kernel.metrics.card import Metric
from app.kernel.metrics.families.labels.rankings import (
    coverage_error,
    label_ranking_average_precision,
    label_ranking_loss,
    one_error,
)
from app.kernel.numerics.arrays import Array, Mask, each, lazy
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, total_of
from app.kernel.samples.labels.scores import LabelScores

# What is said of the order of the labels of a sample: means over the samples, of values that all of them have.
OF_SAMPLES: Final[tuple[Metric[LabelScores], ...]] = (
    label_ranking_average_precision,
    label_ranking_loss,
    coverage_error,
    one_error,
)
# Probabilities that are looked at at once, so that what is made of them stays in the cache.
_ENTRIES: Final = 1 << 17


class LabelScoresFold(Fold):
    """Probabilities of L labels of samples that go by in batches. States merge in any order and give the same answers,
    bit for bit.

    Args:
        n_labels: L, at least 2.
        budget: Bytes of memory, about, that the orders of all labels may take; more goes into files.
        folder: Where files are made; None: everything stays in memory, and goes with a pickled state.
        grouped: Do samples have groups?

    Raises:
        ValueError: there are fewer than two labels.
    """

    def __init__(self, n_labels: int, budget: int, folder: Path | None, *, grouped: bool = False) -> None:
        super().__init__(n_labels, budget, grouped=grouped)
        self._rows = 0
        self._members: NDArray[np.int64] = np.zeros(n_labels, dtype=np.int64)
        self._sums = ExactSums((2, len(OF_SAMPLES)))
        self._orders = [SortedRuns(budget // n_labels, folder, grouped=grouped) for _ in range(n_labels)]
        self._in_groups = ValuesInGroups(OF_SAMPLES) if grouped else None

    @property
    def rows(self) -> int:
        """Samples so far."""
        return self._rows

    @property
    def bytes_of_groups(self) -> int:
        """Bytes in memory for sums within groups, as of when they were looked at last."""
        return 0 if self._in_groups is None else self._in_groups.nbytes

    def add(self, truth: Mask, probabilities: Array, groups: Groups | None = None) -> Self:
        """Add samples.

        Args:
            truth: Labels that they have (n, L).
            probabilities: Of the labels (n, L), in [0, 1].
            groups: A number for the group of each (n).

        Raises:
            ValueError: there are groups where there are to be none, or the other way round, the shapes do not fit, or a
                probability is no number in [0, 1]. Nothing was added then.
        """
        self._check_groups(groups, len(truth))
        if truth.shape != probabilities.shape or truth.shape[1:] != (self.classes,):
            expected = f"expected two tables (n, {self.classes})"
            raise ValueError(f"{expected}, got {truth.shape} and {probabilities.shape}")
        if probabilities.size and not (probabilities.min() >= 0.0 and probabilities.max() <= 1.0):
            raise ValueError("probabilities must be numbers in [0, 1]")
        self._rows += len(truth)
        self._members += truth.sum(axis=0)
        size = min(max(_ENTRIES // self.classes, 1), BLOCK)
        for start in range(0, len(truth), size):
            part = slice(start, start + size)
            values = said_of_samples(OF_SAMPLES, LabelScores(truth[part], probabilities[part]))
            if self._in_groups is not None and groups is not None:
                self._in_groups.add(groups[part], values)
            self._sums.add(np.stack([values, values * values]), total_of)
        for label, order in enumerate(self._orders):
            order.add(np.ascontiguousarray(probabilities[:, label]), truth[:, label], groups)
        return self

    def merge(self, other: Self) -> Self:
        """Take in another state of the same labels, which is not to be used any more.

        Raises:
            ValueError: it has another number of labels, or one of them alone has groups.
        """
        self._check_mergeable(other)
        self._rows += other._rows
        self._members = self._members + other._members
        self._sums.merge(other._sums)
        if self._in_groups is not None and other._in_groups is not None:
            self._in_groups.merge(other._in_groups)
        for own, theirs in zip(self._orders, other._orders, strict=True):
            own.merge(theirs)
        return self

    def finish(self, in_order: InOrder = map) -> "FoldedLabelScores":
        """Everything that the probabilities say; the state stays as it is, and can go on.

        Args:
            in_order: Has stretches of the orders looked at, here or in other processes.

        Raises:
            ValueError: there is no sample.
        """
        self._release()
        exact, size = self._sums.exact(), len(OF_SAMPLES)
        sums = {
            metric.key: SumOfSamples(total, squares, self._rows)
            for metric, total, squares in zip(OF_SAMPLES, exact[:size], exact[size:], strict=True)
        }

        def stretches_of(label: int) -> Iterable[Stretch]:
            return stretches(self._orders[label].runs, [], self._reading_budget)

        left = FoldedMeans(sums, self._in_groups)
        return FoldedLabelScores(self._rows, self._members.tolist(), stretches_of, in_order, left)

    @property
    def _stores(self) -> Sequence[SortedRuns]:
        return self._orders


class FoldedLabelScores(FoldedSamples):
    """Probabilities of labels, without the samples: metrics of the order take it as they take `LabelScores`.

    Attributes:
        in_samples: What is left of the order of the labels of each sample.

    Args:
        n_samples: n.
        counts: Samples (L) with each label.
        stretches: All samples by falling probability of a label.
        in_order: Has stretches looked at, here or elsewhere, and gives what comes of them in turn.
        in_samples: See above.
    """

    _binned = False

    def __init__(
        self,
        n_samples: int,
        counts: Sequence[int],
        stretches: Callable[[int], Iterable[Stretch]],
        in_order: InOrder,
        in_samples: FoldedMeans,
    ) -> None:
        super().__init__(counts, stretches, in_order, grouped=in_samples.in_groups is not None)
        # A sample can have several labels, or none.
        self.n_samples, self.in_samples = n_samples, in_samples

    @property
    def is_mirrored(self) -> bool:
        """Never: two labels have an order each."""
        return False

    @lazy
    def n(self) -> Array:
        """All samples, shape ()."""
        return np.asarray(float(self.n_samples))

    @lazy
    def rest(self) -> Array:
        """Samples without each label, shape (L)."""
        return each(self.n) - self.actual
