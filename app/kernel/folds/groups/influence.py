"""What groups add to the sampling errors of folded metrics: sums within each group of the influences of its samples.

Deviations from means are whole numbers until they are divided, so values that are all equal have none.
"""

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np

from app.kernel.folds.entries import Counts
from app.kernel.folds.groups.sums import GroupSums, GroupTotals
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import Whole
from app.kernel.samples.losses import sums_by_code


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
