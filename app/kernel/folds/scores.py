"""Probabilities of samples folded: parts come in any order and number, and what is left is small."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Groups
from app.kernel.folds.fold import Fold
from app.kernel.folds.folded import FoldedScores, Order
from app.kernel.folds.joint.rows import RowSample
from app.kernel.folds.keys import Probabilities
from app.kernel.folds.orders.runs import SortedRuns
from app.kernel.folds.orders.stretches import InOrder
from app.kernel.folds.sums.bins import BinSums
from app.kernel.folds.sums.losses import LossSums
from app.kernel.folds.sums.weighted_bins import WeightedBins
from app.kernel.folds.sums.weighted_losses import WeightedLossSums
from app.kernel.matrix.labels import confusion_counts
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.losses import Codes

# Rows looked at at once, so that what is made of them stays in the cache.
_BLOCK = 1 << 15


class ScoresFold(Fold):
    """What a model said about samples of K classes, folded: all metrics that need no sample twice.

    Answers are the same, bit for bit, as long as logarithms are computed by the same code: machines with other
    instructions may differ in their last digit.

    Args:
        classes: K, at least 2.
        budget: Bytes of memory, about, that the order of the samples may take; more goes into files, of which a key
            in sqrt(budget / 64) stays in memory.
        folder: Where files are made; None: everything stays in memory, and goes with a pickled state.
        grouped: Do samples have groups?
        weighted: Do they have weights?

    Raises:
        ValueError: there are fewer than two classes, or samples have groups and weights.
    """

    def __init__(
        self, classes: int, budget: int, folder: Path | None, *, grouped: bool = False, weighted: bool = False
    ) -> None:
        super().__init__(classes, budget, grouped=grouped, weighted=weighted)
        self.folder = folder
        self.confusion: NDArray[np.int64] = np.zeros((classes, classes), dtype=np.int64)
        self.ties = 0
        totals = self._totals
        self._losses = LossSums(classes, grouped=grouped) if totals is None else WeightedLossSums(classes, totals)
        self._top_label = BinSums() if totals is None else WeightedBins()
        # Rows p, 1 - p of two classes need one order, all others one for each class and for the highest probability.
        beside = {"grouped": grouped, "weighted": weighted}
        self._paired = SortedRuns(budget, folder, **beside) if classes == 2 else None
        self._columns: list[SortedRuns] = []
        self._highest: SortedRuns | None = None
        # Of two classes one order says how both belong together; groups say what they add to all orders.
        self._rows = None if classes == 2 or grouped or weighted else RowSample(classes)

    @property
    def rows(self) -> int:
        """Samples so far."""
        return int(self.confusion.sum())

    @property
    def bytes_of_groups(self) -> int:
        """Bytes in memory for sums within groups, as of when they were looked at last."""
        return self._losses.bytes_of_groups

    def add(
        self,
        actual: NDArray[Any],
        probabilities: NDArray[Any],
        groups: Groups | None = None,
        weights: Array | None = None,
    ) -> Self:
        """Add samples.

        Args:
            actual: Codes 0..K-1, shape (n,).
            probabilities: Float32 or float64 in [0, 1], shape (n, K); of two classes (n,), that of class 1, does, and
                that of class 0 is 1 minus it in float64.
            groups: A number for the group of each sample, shape (n,).
            weights: Of the samples, 0 or more, shape (n,).

        Raises:
            ValueError: the shapes do not fit, a code is out of range, an entry is no number in [0, 1], or a weight none
                of 0 or more. Nothing was added then.
        """
        self._check_groups(groups, actual.size)
        weights = self._weights(weights, actual.size)
        given, codes = self._checked(actual, probabilities)
        for start in range(0, codes.size, _BLOCK):
            part = slice(start, start + _BLOCK)
            beside = None if groups is None else groups[part], None if weights is None else weights[part]
            self._add(codes[part], given[part], *beside)
        return self

    def merge(self, other: Self) -> Self:
        """Take in another state of the same classes, which is not to be used any more.

        Raises:
            ValueError: it has another number of classes.
        """
        self._check_mergeable(other)
        self.confusion = self.confusion + other.confusion
        self.ties += other.ties
        self._merge_weights(other)
        self._losses.merge(other._losses)
        self._top_label.merge(other._top_label)  # type: ignore[arg-type]  # both have weights, or none
        if self._rows is not None and other._rows is not None:
            self._rows.merge(other._rows)
        if self._paired is not None and other._paired is not None:
            self._paired.merge(other._paired)
        if other._highest is not None:
            for own, others in zip(self._own_columns(), [*other._columns, other._highest], strict=True):
                own.merge(others)
        return self

    def finish(self, in_order: InOrder = map) -> FoldedScores:
        """Everything that the samples say; the state stays as it is, and can go on.

        Args:
            in_order: Has stretches of the order looked at, here or in other processes.

        Raises:
            ValueError: there is no sample.
        """
        self._release()
        orders = []
        for code in range(self.classes):
            own = self._columns[code].runs if self._columns else []
            paired = [] if self._paired is None else self._paired.runs
            orders.append(Order([*own, *paired], []) if code else Order(own, paired))
        highest = Order([] if self._highest is None else self._highest.runs, paired)
        return FoldedScores(
            self.confusion,
            self.ties,
            self._losses,
            self._top_label.read(),
            orders,
            highest,
            self._reading_budget,
            in_order,
            self._totals,
            rows=None if self._rows is None else self._rows.read(),
        )

    @property
    def _stores(self) -> Sequence[SortedRuns]:
        return [store for store in (self._paired, *self._columns, self._highest) if store is not None]

    def _own_columns(self) -> list[SortedRuns]:
        """Those of the classes, and that of the highest probability."""
        if self._highest is None:
            share = self.budget // (self.classes + (1 if self._paired is None else 2))
            beside = {"grouped": self.grouped, "weighted": self.weighted}
            self._columns = [SortedRuns(share, self.folder, **beside) for _ in range(self.classes)]
            self._highest = SortedRuns(share, self.folder, weighted=self.weighted)
            if self._paired is not None:
                self._paired.budget = share
        return [*self._columns, self._highest]

    def _add(self, codes: Codes, given: Probabilities, groups: Groups | None, weights: Array | None) -> None:
        predicted, highest, ties = _decided(given)
        self._weigh(codes, weights)
        self._add_top_label(highest.astype(np.float64, copy=False), predicted == codes, weights)
        self.confusion += confusion_counts(codes, predicted, self.classes)
        self.ties += ties
        self._losses.add(given, codes, groups, weights)
        if self._rows is not None:
            self._rows.add(codes, given)
        if self._paired is not None and given.ndim == 1:
            self._paired.add(given, codes == 1, groups, weights)
            return
        if self._paired is not None:
            zero, one = (column.astype(np.float64, copy=False) for column in given.T)
            if (zero == 1.0 - one).all():
                self._paired.add(np.ascontiguousarray(given[:, 1]), codes == 1, groups, weights)
                return
        *columns, top = self._own_columns()
        for code, store in enumerate(columns):
            store.add(np.ascontiguousarray(given[:, code]), codes == code, groups, weights)
        top.add(highest, predicted == codes, weights=weights)

    def _add_top_label(self, scores: Array, members: Mask, weights: Array | None) -> None:
        if isinstance(self._top_label, WeightedBins) and weights is not None:
            self._top_label.add(scores, np.stack([weights * ~members, weights * members]))
        elif isinstance(self._top_label, BinSums):
            self._top_label.add(scores, members)

    def _checked(self, actual: NDArray[Any], probabilities: NDArray[Any]) -> tuple[Probabilities, Codes]:
        narrow = probabilities.dtype == np.float32
        given: Probabilities = probabilities if narrow else np.asarray(probabilities, dtype=np.float64)
        shapes = [(actual.size, self.classes), *([(actual.size,)] if self.classes == 2 else [])]
        if actual.ndim != 1 or given.shape not in shapes:
            expected = f"expected probabilities of shape {shapes[-1]} beside {actual.size} codes"
            raise ValueError(f"{expected}, got {given.shape}")
        codes = self._codes(actual)
        if given.size and not (given.min() >= 0.0 and given.max() <= 1.0):
            raise ValueError("probabilities must be numbers in [0, 1]")
        return given, codes


def _decided(given: Probabilities) -> tuple[Codes, Probabilities, int]:
    """The most probable classes, the first of equals, their probabilities, and in how many rows there are equals."""
    if given.ndim == 1:
        one = given.astype(np.float64, copy=False)
        zero = 1.0 - one
        return (one > zero).astype(np.intp), np.maximum(one, zero), int(np.count_nonzero(one == zero))
    best, codes = given[:, 0].copy(), np.zeros(len(given), dtype=np.intp)
    for code in range(1, given.shape[1]):
        column = given[:, code]
        np.putmask(codes, column > best, code)
        np.maximum(best, column, out=best)
    at_top = np.count_nonzero(given == best[:, None], axis=1)
    return codes, best, int(np.count_nonzero(at_top > 1))
