"""Any real scores folded: their order, and nothing else.

The bits of float64 leave none free for membership, so members and others go into runs of their own, and are brought
together where the order is read. Of two classes, scores that are higher for class 0 are the same with the other sign:
the same runs, read from the other end.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Counts, Entries, Groups, in_order, joined, starts_of
from app.kernel.folds.fold import Fold
from app.kernel.folds.folded import FoldedOrder
from app.kernel.folds.keys import Keys
from app.kernel.folds.orders.runs import Reader, Run, SortedRuns
from app.kernel.folds.orders.stretches import Cuts, InGroups, InOrder, InWeights, Taken, floors_of, taken_from
from app.kernel.numerics.arrays import Array

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
