"""Groups of samples that several runs have in common, of which no names are kept but one of each."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.domain.data import MOST_GROUPS
from app.domain.errors import TooLarge
from app.kernel.compare.paired.tests import GroupedCounts
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.sorting import Hashes
from app.services.runs.joins.keys import as_column, numbers_of, together


class GroupNames:
    """The names of the groups of one run: they say in which order groups stand.

    Args:
        budget: Bytes that they may take.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._numbers: Hashes = np.zeros(0, dtype=np.uint64)
        self._names: list[pa.Array] = []

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        of_names: int = sum(one.nbytes for one in self._names)
        return self._numbers.nbytes + of_names

    def add(self, names: NDArray[Any]) -> Hashes:
        """Take in the names (n) of samples; the number (n) of each.

        Raises:
            TooLarge: there are too many, or they are too long.
        """
        numbers = numbers_of(names)
        found, places = np.unique(numbers, return_index=True)
        new = ~np.isin(found, self._numbers, assume_unique=True)
        self._numbers = np.concatenate([self._numbers, found[new]])
        self._names.append(as_column(names[places[new]]))
        if self._numbers.size > MOST_GROUPS:
            raise TooLarge(f"expected at most {MOST_GROUPS} groups, got {self._numbers.size} or more", pointer="/data")
        if self.nbytes > self._budget:
            raise TooLarge(
                f"expected names of groups of at most {self._budget} bytes (a quarter of PREVAIL_DATA_MEMORY_BYTES), "
                f"got {self.nbytes} or more",
                pointer="/data",
            )
        return numbers

    def codes(self, numbers: Hashes) -> tuple[NDArray[np.intp], int]:
        """The place (n) of each number among those that are there, in the order of their names; how many there are."""
        present, codes = np.unique(numbers, return_inverse=True)
        order = np.argsort(self._numbers)
        known = together(self._names).take(pa.array(order[np.searchsorted(self._numbers[order], present)]))
        places = np.empty(present.size, dtype=np.intp)
        places[pc.sort_indices(known).to_numpy()] = np.arange(present.size)
        return places[codes], present.size


class GroupedJoin:
    """Samples that all runs have with their groups. Merges in any order."""

    def __init__(self) -> None:
        self._same = True
        self._counts: list[GroupedCounts] = []
        # Of each run with groups but the first, which of its groups meet which of the first: (2, P) each.
        self._met: list[list[Hashes]] = []

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
        self._meet([[np.stack([groups[0], other])] for other in groups[1:]])

    def merge(self, other: Self) -> None:
        """Take in those of other parts."""
        self._counts.extend(other._counts)
        self._same = self._same and other._same
        self._meet(other._met)

    def add_up(self) -> None:
        """What says the same becomes one."""
        if len(self._counts) > 1:
            self._counts = [GroupedCounts.merged(self._counts)]
        met = [_one_to_one(np.concatenate(pairs, axis=1)) for pairs in self._met]
        self._met = [[pairs] for pairs in met if pairs is not None]
        # Groups of a run that meet two of another do so whatever comes.
        self._same = self._same and len(self._met) == len(met)

    @property
    def same(self) -> bool:
        """Do the runs divide the samples alike, as far as is known?"""
        self.add_up()
        return self._same

    @property
    def counts(self) -> GroupedCounts:
        """What was added, at least one sample."""
        self.add_up()
        return self._counts[0]

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        met = sum(one.nbytes for pairs in self._met for one in pairs)
        return met + sum(one.nbytes for one in self._counts)

    def _meet(self, met: Sequence[Sequence[Hashes]]) -> None:
        if not self._same:
            self._met = []
            return
        self._met = self._met or [[] for _ in met]
        # Of a part without samples there are none.
        for own, pairs in zip(self._met, met, strict=False):
            own.extend(pairs)


def _one_to_one(pairs: Hashes) -> Hashes | None:
    """Pairs (2, n) that differ; None where a number meets two others."""
    first, places, codes = np.unique(pairs[0], return_index=True, return_inverse=True)
    second = pairs[1, places]
    if not np.array_equal(second[codes], pairs[1]) or np.unique(second).size < second.size:
        return None
    return np.stack([first, second])
