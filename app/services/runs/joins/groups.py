"""Groups of samples that several runs have in common, of which no names are kept but one of each."""

from collections.abc import Sequence
from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from app.domain.data import MOST_GROUPS
from app.domain.errors import TooLarge
from app.kernel.compare.paired.grouped import GroupedCounts
from app.kernel.numerics.arrays import Array
from app.services.runs.joins.keys import Hashes, numbers_of

# Entries that are gathered before they are added up.
_MANY: Final = 1 << 20


class GroupNames:
    """The names of the groups of one run: they say in which order groups stand."""

    def __init__(self) -> None:
        self._numbers: Hashes = np.zeros(0, dtype=np.uint64)
        self._names: list[NDArray[Any]] = []

    def add(self, names: NDArray[Any]) -> Hashes:
        """Take in the names (n) of samples; the number (n) of each.

        Raises:
            TooLarge: there are too many.
        """
        numbers = numbers_of(names)
        found, places = np.unique(numbers, return_index=True)
        new = ~np.isin(found, self._numbers, assume_unique=True)
        self._numbers = np.concatenate([self._numbers, found[new]])
        self._names.append(names[places[new]])
        if self._numbers.size > MOST_GROUPS:
            raise TooLarge(f"expected at most {MOST_GROUPS} groups, got {self._numbers.size} or more", pointer="/data")
        return numbers

    def codes(self, numbers: Hashes) -> tuple[NDArray[np.intp], int]:
        """The place (n) of each number among those that are there, in the order of their names; how many there are."""
        present, codes = np.unique(numbers, return_inverse=True)
        texts = any(one.dtype.kind == "U" for one in self._names)
        names = np.concatenate([one.astype(np.str_) if texts else one for one in self._names])
        order = np.argsort(self._numbers)
        known = names[order[np.searchsorted(self._numbers[order], present)]]
        return np.argsort(np.argsort(known))[codes], present.size


class GroupedJoin:
    """Samples that all runs have with their groups. Merges in any order.

    Attributes:
        same: Do the runs divide the samples alike, as far as is known?
    """

    def __init__(self) -> None:
        self.same = True
        self._counts: list[GroupedCounts] = []
        # Of each run with groups but the first, which of its groups meets which of the first: (2, P).
        self._met: list[Hashes] = []

    def add(
        self,
        groups: Sequence[Hashes],
        truth: NDArray[np.int64],
        predictions: NDArray[np.int64],
        n_classes: int,
        weights: Array | None = None,
    ) -> None:
        """Add samples (n): their groups in each run that has groups, classes, predictions (R, n), and weights."""
        self._counts.append(GroupedCounts.of(groups[0], truth, predictions, n_classes, weights=weights))
        self._met = [_distinct(np.stack([groups[0], other])) for other in groups[1:]]

    def merge(self, other: Self) -> None:
        """Take in those of other parts."""
        self._counts.extend(other._counts)
        if sum(one.joint.counts.size for one in self._counts[1:]) > _MANY:
            self._counts = [self.counts]
        if other._met:
            own = self._met or [np.zeros((2, 0), dtype=np.uint64)] * len(other._met)
            both = [np.concatenate(pair, axis=1) for pair in zip(own, other._met, strict=True)]
            self._met = [_distinct(one) for one in both]
        # Groups of a run that meet two of another do so whatever comes.
        self.same = self.same and other.same and all(map(_is_one_to_one, self._met))
        if not self.same:
            self._met = []

    @property
    def counts(self) -> GroupedCounts:
        """What was added, at least one sample."""
        if len(self._counts) > 1:
            self._counts = [GroupedCounts.merged(self._counts)]
        return self._counts[0]

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(one.nbytes for one in self._counts) + sum(one.nbytes for one in self._met)


def _distinct(pairs: Hashes) -> Hashes:
    """Pairs (2, n) that differ."""
    order = np.lexsort(pairs[::-1])
    rows = pairs[:, order]
    new = np.ones(order.size, dtype=np.bool_)
    new[1:] = (rows[:, 1:] != rows[:, :-1]).any(axis=0)
    return rows[:, new]


def _is_one_to_one(pairs: Hashes) -> bool:
    return all(np.unique(side).size == side.size for side in pairs)
