"""Whole numbers added up within groups: as much memory as there are groups, however many samples go by."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Counts, Groups
from app.kernel.numerics.exact_sums import Whole

# Numbers are added up in two parts, so that no sum of either leaves 64 bits: the lower one has so many bits.
_BITS = 26
_LOW = (1 << _BITS) - 1
# Entries that are gathered before those of one group become one.
_GATHERED = 1 << 18


class GroupTotals(NamedTuple):
    """What groups hold, in an order that does not depend on how samples came.

    Attributes:
        groups: (r) rising.
        cells: (r) what of the group is meant, rising within it.
        counts: (r) samples.
        high: (v, r) the upper parts of what was added up.
        low: (v, r) the lower parts.
    """

    groups: Groups
    cells: Counts
    counts: Counts
    high: NDArray[np.int64]
    low: NDArray[np.int64]

    def total(self, value: int) -> Whole:
        """One of the sums (r), of any size."""
        whole: Whole = (self.high[value].astype(object) << _BITS) + self.low[value]
        return whole


class GroupSums:
    """Samples and sums of whole numbers, by group and by a number that says what of it is meant, such as a class.

    States merge in any order and can be pickled.

    Attributes:
        n_groups: How many different groups there were when they were looked at last: a state that was read, sent, or
            has grown to twice its size since.

    Args:
        n_values: How many numbers each sample has.
    """

    def __init__(self, n_values: int) -> None:
        self.n_groups = 0
        self._n_values = n_values
        self._table = _Table(
            np.empty(0, np.uint64), np.empty(0, np.int64), np.empty((1 + 2 * n_values, 0), dtype=np.int64)
        )
        self._parts: list[_Table] = []

    def add(
        self, groups: Groups, cells: Counts, values: NDArray[np.int64] | None = None, times: Counts | None = None
    ) -> Self:
        """Add samples.

        Args:
            groups: (n).
            cells: (n).
            values: (v, n) from 0 to below 2^62; None where there are none.
            times: (n) how many samples each entry is; None is 1.
        """
        sums = np.ones((1 + 2 * self._n_values, groups.size), dtype=np.int64)
        if values is not None:
            np.right_shift(values, _BITS, out=sums[1 : 1 + self._n_values])
            np.bitwise_and(values, _LOW, out=sums[1 + self._n_values :])
        if times is not None:
            sums *= times
        if groups.size:
            self._gather([_together([_Table(groups, cells, sums)], self._n_values)])
        return self

    def merge(self, other: Self) -> Self:
        """Take in the sums of others."""
        self._gather([other._table, *other._parts])
        return self

    @property
    def nbytes(self) -> int:
        """Bytes of the entries, as of when they were looked at last: what has come since is as much at most, or little
        at all.
        """
        return sum(part.nbytes for part in self._table)

    def read(self) -> GroupTotals:
        """What there is so far."""
        self._compact()
        groups, cells, sums = self._table
        high, low = np.split(sums[1:], 2)
        return GroupTotals(groups, cells, sums[0], high, low)

    def __getstate__(self) -> dict[str, object]:
        self._compact()
        return self.__dict__

    def _gather(self, tables: list["_Table"]) -> None:
        self._parts += tables
        if sum(part.groups.size for part in self._parts) > max(_GATHERED, self._table.groups.size):
            self._compact()

    def _compact(self) -> None:
        if self._parts:
            self._table, self._parts = _together([self._table, *self._parts], self._n_values), []
            groups = self._table.groups
            self.n_groups = int(groups.size and 1 + np.count_nonzero(groups[1:] != groups[:-1]))


class _Table(NamedTuple):
    """Groups (r), cells (r), and (1 + 2 v, r) counts and the upper and lower parts of sums."""

    groups: Groups
    cells: Counts
    sums: NDArray[np.int64]


def _together(tables: list[_Table], n_values: int) -> _Table:
    groups = np.concatenate([table.groups for table in tables])
    cells = np.concatenate([table.cells for table in tables])
    if not groups.size:
        return tables[0]
    order = np.lexsort((cells, groups))
    groups, cells = groups.take(order), cells.take(order)
    starts = np.concatenate([[0], np.flatnonzero((groups[1:] != groups[:-1]) | (cells[1:] != cells[:-1])) + 1])
    sums = np.empty((1 + 2 * n_values, starts.size), dtype=np.int64)
    for row, found in enumerate(sums):
        np.add.reduceat(np.concatenate([table.sums[row] for table in tables]).take(order), starts, out=found)
    high, low = sums[1 : 1 + n_values], sums[1 + n_values :]
    high += low >> _BITS
    low &= _LOW
    return _Table(groups.take(starts), cells.take(starts), sums)
