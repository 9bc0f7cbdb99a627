"""Streamed probabilities and scores."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Counts, Entries, Groups, Keys, Probabilities, in_order, joined, starts_of
from app.kernel.folds.folded import Fold, FoldedOrder, FoldedScores, Order
from app.kernel.folds.joint import RowSample
from app.kernel.folds.runs import (
    Cuts,
    InGroups,
    InOrder,
    InWeights,
    Reader,
    Run,
    SortedRuns,
    Taken,
    floors_of,
    taken_from,
)
from app.kernel.folds.sums import BinSums, LossSums, WeightedBins, WeightedLossSums
from app.kernel.matrix.table import confusion_counts
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.samples.losses import Codes

_LOWEST = np.int64(np.iinfo(np.int64).min)
_SIGN = np.int64(63)


class OrderFold(Fold):
    """Scores folded: one of two classes, higher for class 1, or one for each of more classes, higher for it. What is
    left are all metrics of their order that need no sample twice.

    Args:
        classes: K, at least 2.
        budget: Bytes of memory, about, that the order may take; more goes into files.
        folder: Where files are made; None: everything stays in memory.
        grouped: Do samples have groups?
        weighted: Do they have weights?

    Raises:
        ValueError: there are fewer than two classes, or samples have groups and weights.
    """

    def __init__(
        self, classes: int, budget: int, folder: Path | None, *, grouped: bool = False, weighted: bool = False
    ) -> None:
        super().__init__(classes, budget, grouped=grouped, weighted=weighted)
        self._counts: Counts = np.zeros(classes, dtype=np.int64)
        orders = 1 if classes == 2 else classes
        share = budget // (2 * orders)
        # Others and members of each order.
        made = partial(SortedRuns, share, folder, grouped=grouped, weighted=weighted)
        self._orders = [(made(), made()) for _ in range(orders)]

    @property
    def rows(self) -> int:
        """Samples so far."""
        return int(self._counts.sum())

    def add(
        self, actual: NDArray[Any], scores: Array, groups: Groups | None = None, weights: Array | None = None
    ) -> Self:
        """Add samples.

        Args:
            actual: Codes 0..K-1, shape (n,).
            scores: Finite, shape (n,) of two classes and (n, K) of more.
            groups: A number for the group of each sample, shape (n,).
            weights: Of the samples, 0 or more, shape (n,).

        Raises:
            ValueError: the shapes do not fit, a code is out of range, a score is not finite, or a weight none of 0 or
                more. Nothing was added then.
        """
        self._check_groups(groups, actual.size)
        weights = self._weights(weights, actual.size)
        values = np.asarray(scores, dtype=np.float64)
        shape = (actual.size,) if self.classes == 2 else (actual.size, self.classes)
        if actual.ndim != 1 or values.shape != shape:
            raise ValueError(f"expected scores of shape {shape}, got {values.shape}")
        codes = self._codes(actual)
        if not np.isfinite(values).all():
            raise ValueError("scores must be finite")
        self._counts += np.bincount(codes, minlength=self.classes)
        self._weigh(codes, weights)
        columns = [(1, values)] if self.classes == 2 else [*enumerate(values.T)]
        for (code, column), sides in zip(columns, self._orders, strict=True):
            members = codes == code
            for side, inside in zip(sides, (~members, members), strict=True):
                beside = None if groups is None else groups[inside], None if weights is None else weights[inside]
                side.add_keys(sortable(column[inside]), *beside)
        return self

    def merge(self, other: Self) -> Self:
        """Take in another state of the same classes, which is not to be used any more.

        Raises:
            ValueError: it has another number of classes.
        """
        self._check_mergeable(other)
        self._counts = self._counts + other._counts
        self._merge_weights(other)
        for own, theirs in zip(self._stores, other._stores, strict=True):
            own.merge(theirs)
        return self

    def finish(self, in_order: InOrder = map) -> FoldedOrder:
        """Everything that the samples say; the state stays as it is, and can go on.

        Args:
            in_order: Has stretches of the order looked at, here or in other processes.

        Raises:
            ValueError: there is no sample.
        """
        self._release()
        runs = [([*others.runs], [*members.runs]) for others, members in self._orders]

        def stretches(code: int) -> Iterator[_Between]:
            if self.classes == 2:
                return _stretches(runs[0][code], runs[0][1 - code], self._reading_budget, flip=code == 0)
            others, members = runs[code]
            return _stretches(members, others, self._reading_budget, flip=False)

        return FoldedOrder(self._counts.tolist(), stretches, in_order, grouped=self.grouped, totals=self._totals)

    @property
    def _stores(self) -> Sequence[SortedRuns]:
        return [*chain(*self._orders)]


def sortable(scores: Array) -> NDArray[np.uint64]:
    """Whole numbers that rise with finite scores."""
    # Adding 0 makes 0 of -0.
    bits = (scores + 0.0).view(np.int64)
    return (bits ^ ((bits >> _SIGN) | _LOWEST)).view(np.uint64)


def scores_of(keys: NDArray[np.uint64]) -> Array:
    """The scores of whole numbers."""
    bits = keys.view(np.int64)
    scores: Array = (bits ^ (~(bits >> _SIGN) | _LOWEST)).view(np.float64) + 0.0
    return scores


def _negated(keys: Keys) -> NDArray[np.uint64]:
    """Of rising keys those of the same scores with the other sign, rising."""
    negated: NDArray[np.uint64] = ~keys.view(np.uint64)[::-1]
    return negated


class _Between(NamedTuple):
    """A stretch of scores."""

    members: Taken
    others: Taken

    def cuts(self) -> Cuts:
        """The cuts between them."""
        sides = [in_order(taken) if taken else None for taken in self]
        keys = np.concatenate([side.keys for side in sides if side is not None]).view(np.uint64)
        keys.sort()
        keys = keys.take(starts_of(keys))
        return Cuts(scores_of(keys)[::-1], *(_counted(side, keys)[::-1] for side in sides))

    def sizes(self) -> tuple[int, int]:
        """How many members and others they are."""
        members, others = (sum(entries.n_samples for entries in taken) for taken in self)
        return members, others

    def in_groups(self) -> InGroups:
        """The samples with their groups."""
        entries, sizes = joined([*self.members, *self.others]), [sum(e.keys.size for e in taken) for taken in self]
        if entries.groups is None:
            raise ValueError("expected samples in groups")
        scores = scores_of(entries.keys.view(np.uint64))
        return InGroups(scores, np.repeat([True, False], sizes), entries.groups, entries.times)

    def in_weights(self) -> InWeights:
        """The samples with their weights."""
        entries, sizes = joined([*self.members, *self.others]), [sum(e.keys.size for e in taken) for taken in self]
        scores = scores_of(entries.keys.view(np.uint64))
        return InWeights(scores, np.repeat([True, False], sizes), *entries.weighed)


def _stretches(members: Sequence[Run], others: Sequence[Run], budget: int, *, flip: bool) -> Iterator[_Between]:
    """All samples by falling score, in stretches of bounded size; a score is in one of them only."""
    sides = [[Reader(run, _negated if flip else None) for run in side] for side in (members, others)]
    for floor in floors_of([*sides[0], *sides[1]], budget, _distinct):
        taken = [taken_from(side, floor, budget) for side in sides]
        if any(taken):
            yield _Between(*taken)


def _distinct(marks: NDArray[np.uint64]) -> Iterator[np.uint64]:
    yield from np.unique(marks)[::-1]


def _counted(side: Entries | None, distinct: NDArray[np.uint64]) -> Counts:
    """How many samples of one side each of the distinct keys has."""
    if side is None:
        return np.zeros(distinct.size, dtype=np.int64)
    reached = np.concatenate([[0], np.cumsum(side.times)])
    return np.diff(reached.take(np.searchsorted(side.keys, distinct, side="right")), prepend=0)


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
