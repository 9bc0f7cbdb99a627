"""Sums within groups of streamed samples, and their contribution to sampling errors."""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Counts, Groups
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import Whole
from app.kernel.samples.losses import sums_by_code

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


class GroupArea(NamedTuple):
    """What groups add to the sampling error of the area of one class.

    Attributes:
        influence: On the area.
        members: (G) of the class.
    """

    influence: "GroupInfluence"
    members: Array


class GroupInfluence(NamedTuple):
    """What groups add to the sampling error of one value.

    Attributes:
        sums: (G) of the influences of the samples of each group.
        about: (G) samples that have any.
    """

    sums: Array
    about: Array


class GroupedLosses:
    """Losses of samples in groups.

    Args:
        sums: By group and class.
        n_classes: K.
        units: (v) of each number that is added up, what 1 of it stands for.
    """

    def __init__(self, sums: GroupSums, n_classes: int, units: Array) -> None:
        self._totals, self._n_classes, self._units = sums.read(), n_classes, units
        self._codes, self._n_groups = _codes_of(self._totals)

    def mean(self, value: int) -> GroupInfluence:
        """On the mean over all samples."""
        found = self._away(value)
        return GroupInfluence(self._by_group(found) / _spread(self._size), self._by_group(self._totals.counts))

    def saved(self, value: int, reference: float, moves: Array) -> GroupInfluence:
        """On the share that is saved of a mean.

        Args:
            value: Of which mean.
            reference: What it is saved of.
            moves: (K) of how much the share of each class adds to what is saved, in units of the reference.
        """
        counts, by_class = self._totals.counts, moves.take(self._totals.cells)
        centre = float(counts @ by_class) / self._size
        found = (counts * (by_class - centre) - self._away(value)) / reference
        return GroupInfluence(self._by_group(found) / _spread(self._size), self._by_group(counts))

    def class_means(self, value: int) -> GroupInfluence:
        """On the mean over the classes of the mean over their members."""
        cells, sizes = self._totals.cells, self._sizes
        found = self._away_in_class(value) / (self._n_classes * _spread(sizes)).take(cells)
        return GroupInfluence(self._by_group(found), self._by_group(self._totals.counts))

    def members(self, value: int, code: int) -> GroupInfluence:
        """On the mean over the members of a class."""
        inside = self._totals.cells == code
        found = np.where(inside, self._away_in_class(value), 0.0) / _spread(self._sizes[code])
        return GroupInfluence(self._by_group(found), self._by_group(np.where(inside, self._totals.counts, 0)))

    def share(self, values: Sequence[int], *, rest: bool = False) -> GroupInfluence:
        """On the share of the samples that are counted by some of the numbers, or by none of them."""
        counts = self._totals.counts
        counted = sum(map(self._totals.total, values), start=np.zeros(self._codes.size, dtype=object))
        if rest:
            counted = counts.astype(object) - counted
        found = _deviations(counted, counts)
        # Where all samples are counted, or none, none is away from the mean.
        about = counts if 0 < counted.sum() < self._size else np.zeros_like(counts)
        return GroupInfluence(self._by_group(found) / _spread(self._size), self._by_group(about))

    @property
    def _size(self) -> int:
        return int(self._totals.counts.sum())

    @cached_property
    def _sizes(self) -> Counts:
        """Samples (K) of each class."""
        sizes = np.zeros(self._n_classes, dtype=np.int64)
        np.add.at(sizes, self._totals.cells, self._totals.counts)
        return sizes

    def _away(self, value: int) -> Array:
        """How far the samples of each entry are from the mean, together."""
        return _deviations(self._totals.total(value), self._totals.counts) * float(self._units[value])

    def _away_in_class(self, value: int) -> Array:
        """The same from the mean of their class."""
        totals, away = self._totals.total(value), np.zeros(self._totals.cells.size)
        for code in np.unique(self._totals.cells).tolist():
            inside = np.flatnonzero(self._totals.cells == code)
            away[inside] = _deviations(totals.take(inside), self._totals.counts.take(inside))
        return away * float(self._units[value])

    def _by_group(self, values: Array | Counts) -> Array:
        return sums_by_code(self._codes, values.astype(np.float64), self._n_groups)


def area_of_groups(placed: GroupSums, varied: tuple[bool, bool]) -> GroupArea:
    """On the area of one class against the rest (Obuchowski 1997).

    Args:
        placed: Of others and members (0 and 1) in each group, twice the samples of the other side above them, ties
            once. There are both.
        varied: Do the places of others differ among themselves, and those of members?
    """
    totals = placed.read()
    codes, n_groups = _codes_of(totals)
    influence, about = np.zeros(codes.size), np.zeros(codes.size)
    lost = totals.total(0)
    sides = [np.flatnonzero(totals.cells == side) for side in (0, 1)]
    sizes = [int(totals.counts.take(rows).sum()) for rows in sides]
    # A member is worse off with others above it, others are where members are above them.
    for side, sign in ((0, 1.0), (1, -1.0)):
        rows = sides[side]
        away = _deviations(lost.take(rows), totals.counts.take(rows)) / (2.0 * sizes[1 - side])
        influence[rows] = sign * away / _spread(sizes[side])
        if varied[side]:
            about[rows] = totals.counts.take(rows)
    members = np.where(totals.cells == 1, totals.counts, 0).astype(np.float64)
    found = GroupInfluence(sums_by_code(codes, influence, n_groups), sums_by_code(codes, about, n_groups))
    return GroupArea(found, sums_by_code(codes, members, n_groups))


def mean_of_areas(areas: Sequence[GroupArea], values: Array, *, weighted: bool) -> GroupInfluence:
    """On the mean of the areas of all classes.

    Args:
        areas: Of each class.
        values: (K) of the areas.
        weighted: Does each count by the share of its class, which is as random as all else?
    """
    members = np.stack([area.members for area in areas])
    sizes, about = members.sum(axis=1), members.sum(axis=0)
    shares = sizes / sizes.sum() if weighted else np.full(sizes.size, 1.0 / sizes.size)
    sums = sum((share * area.influence.sums for share, area in zip(shares, areas, strict=True)), np.zeros(about.size))
    if weighted:
        away = values - float(shares @ values)
        moved = sum((one * own for one, own in zip(away, members, strict=True)), np.zeros(about.size))
        sums = sums + moved / _spread(int(sizes.sum()))
    return GroupInfluence(sums, about)


def _codes_of(totals: GroupTotals) -> tuple[Counts, int]:
    """The place of the group of each entry among all groups, and how many these are."""
    groups = totals.groups
    codes = np.concatenate([[0], np.cumsum(groups[1:] != groups[:-1])]).astype(np.intp)
    return codes, int(codes[-1]) + 1


def _deviations(totals: Whole, counts: Counts) -> Array:
    """Of entries with these totals of so many samples, how far they are from what the mean would give."""
    size, whole = int(counts.sum()), int(totals.sum())
    away: Array = ((totals * size - counts.astype(object) * whole) / size).astype(np.float64)
    return away


def _spread(size: Counts | int) -> Array:
    """What deviations are divided by, such that squares add up to the variance of a mean."""
    sizes = np.asarray(size, dtype=np.float64)
    return np.asarray(np.sqrt(sizes * np.maximum(sizes - 1.0, 1.0)))
