"""A search through all slices of some columns for those in which more is lost than by chance, such as misses.

The chance that any slice is named where there is only noise is held over everything looked at (family-wise): each
depth has an equal part of it, and within it each slice.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.numerics.hypergeometric import hypergeometric_tails
from app.kernel.numerics.scipy_bridge import student_cdf
from app.kernel.samples.losses import sums_by_code

Codes = NDArray[np.intp]
# A column (place) and one of its values.
Condition = tuple[int, int]
# Codes are counted in a table that is at most so many times as long as the samples, else sorted.
_SPARSE = 4
# Tails of means are those of Student's t from so many samples, or groups, of one weight on.
_FEWEST_UNITS = 100


class SampleLosses(ABC):
    """Losses of n samples, of which slices have means."""

    size: int

    @abstractmethod
    def taken(self, mask: Mask) -> "SampleLosses":
        """Return the losses of some samples."""

    @abstractmethod
    def table(self, rows: Codes, cells: Codes, size: int) -> Array:
        """Facts (size, c) of slices, by the cell of each of some samples; the first are numbers of samples."""

    def enough(self, table: Array, fewest: int) -> Mask:
        """Mark the slices (S) that have so many samples."""
        found: Mask = table[:, 0] >= fewest
        return found

    @abstractmethod
    def p(self, table: Array) -> Array:
        """One-sided p (S) that no more is lost in them than in all other samples."""


def sample_losses(values: Array, weights: Array | None = None, groups: Codes | None = None) -> SampleLosses:
    """Losses of samples.

    Args:
        values: (n) 0 or 1, or numbers.
        weights: (n) of the samples; None is 1 each.
        groups: (n) codes of groups of dependent samples; None where they are independent.
    """
    if weights is None and groups is None and bool(np.isin(values, (0.0, 1.0)).all()):
        return EventLosses(values)
    return MeanLosses(values, weights, groups)


class EventLosses(SampleLosses):
    """Events (n) in independent samples of one weight: samples and events of each slice, exact tails."""

    def __init__(self, events: Array) -> None:
        self.events, self.size = events, events.size

    def taken(self, mask: Mask) -> SampleLosses:
        """Return the losses of some samples."""
        return EventLosses(self.events[mask])

    def table(self, rows: Codes, cells: Codes, size: int) -> Array:
        """Samples and events (size, 2)."""
        hits = np.bincount(cells[self.events[rows] > 0], minlength=size)
        return np.stack([np.bincount(cells, minlength=size), hits], axis=1).astype(np.float64)

    def p(self, table: Array) -> Array:
        """Hypergeometric tails."""
        total = np.asarray(float(self.size)), np.asarray(float(self.events.sum()))
        return hypergeometric_tails(table[:, 1], table[:, 0], total[1], total[0])[0]


class MeanLosses(SampleLosses):
    """Weighted means of losses of groups, each of which may be a single sample: Welch's t against all other samples.

    The variance in a slice is at least what the variance of all makes of it: a slice of few different losses, such as
    of misses alone, knows its own too little. It has two parts, by the moments of samples and of groups: ``between``
    and ``within`` are the variance of a sample of weight 1 that its group has, and what it has beside that.
    """

    def __init__(self, values: Array, weights: Array | None = None, groups: Codes | None = None) -> None:
        self._given, self.size = (values, weights, groups), values.size
        self.weights = np.ones(values.size) if weights is None else weights
        self.units = None if groups is None else np.unique(groups, return_inverse=True)[1]
        self.losses = self.weights * values
        sums = np.stack([self.losses, self.weights])
        if self.units is not None:
            sums = sums_by_code(self.units, sums, int(self.units.max(initial=-1)) + 1)
        alone = self.weights @ self.weights
        with silently():
            mean = self.losses.sum() / self.weights.sum()
            own, moves = self.losses - mean * self.weights, sums[0] - mean * sums[1]
            variance, more = (own @ own) / alone, sums[1] @ sums[1] - alone
            part = ((moves @ moves) / variance - alone) / more if more > 0 and variance > 0 else 0.0
        self.sums, self.between = sums, variance * min(max(float(part), 0.0), 1.0)
        self.within = variance - self.between

    def taken(self, mask: Mask) -> SampleLosses:
        """Return the losses of some samples."""
        values, weights, groups = self._given
        return sample_losses(
            values[mask],
            None if weights is None else weights[mask],
            None if groups is None else groups[mask],
        )

    def table(self, rows: Codes, cells: Codes, size: int) -> Array:
        """Samples, weighted losses, t, and units of one weight that the slices are worth (size, 4)."""
        of, units, parts = cells, rows, [self.losses[rows], self.weights[rows]]
        if self.units is not None:
            count = self.sums.shape[1]
            pairs, places = np.unique(cells * count + self.units[rows], return_inverse=True)
            of, units = np.divmod(pairs, count)
            parts = [sums_by_code(places, one, pairs.size) for one in parts]
        lost, weight = parts

        def by_slice(values: Array) -> Array:
            return sums_by_code(of, values, size)

        (all_lost, all_weight), (group_lost, group_weight) = self.sums.sum(axis=1), self.sums
        a, w = by_slice(lost), by_slice(weight)
        with silently():
            mean, rest = a / w, (all_lost - a) / (all_weight - w)
            left = (group_lost[units] - rest[of] * group_weight[units]) / (all_weight - w)[of]
            own = (lost - mean[of] * weight) / w[of]
            other = left - (lost - rest[of] * weight) / (all_weight - w)[of]
            # Groups without samples in a slice add to the variance of the rest alone.
            squares = group_lost @ group_lost - 2.0 * rest * (group_lost @ group_weight)
            squares = (squares + rest**2 * (group_weight @ group_weight)) / (all_weight - w) ** 2
            together, alone = by_slice(weight**2), sums_by_code(cells, self.weights[rows] ** 2, size)
            pooled = (self.between * together + self.within * alone) / w**2
            worth = w**2 / together
            variance = by_slice((own - other) ** 2) + np.maximum(pooled - by_slice(own**2), 0.0)
            variance = variance * worth / (worth - 1.0) + np.maximum(squares - by_slice(left**2), 0.0)
            t = (mean - rest) / np.sqrt(variance)
        return np.stack([np.bincount(cells, minlength=size), a, t, worth], axis=1)

    def enough(self, table: Array, fewest: int) -> Mask:
        """Mark those of so many samples that are worth enough."""
        found: Mask = (table[:, 0] >= fewest) & (table[:, 3] >= _FEWEST_UNITS)
        return found

    def p(self, table: Array) -> Array:
        """Tails of Student's t."""
        _, _, t, worth = table.T
        return np.where(np.isfinite(t), student_cdf(-np.nan_to_num(t), np.maximum(worth - 1.0, 1.0)), 1.0)


@dataclass(frozen=True, slots=True)
class WeakSlice:
    """A slice in which more is lost than by chance.

    Attributes:
        conditions: All of them hold, one for each column.
        size: Samples in it, as they were when it was found: those of slices found before are taken out.
        lost: In them, in all.
        p: One-sided, against all other samples that were left.
        p_adjusted: Holds for everything that was looked at.
    """

    conditions: tuple[Condition, ...]
    size: int
    lost: float
    p: float
    p_adjusted: float


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Slices of so many conditions with enough samples.

    Attributes:
        columns: (S, d).
        values: (S, d).
        facts: (S, c).
    """

    columns: Codes
    values: Codes
    facts: Array


def find_weak(
    columns: Sequence[Codes], losses: SampleLosses, *, depth: int = 3, fewest: int = 30, level: float = 0.05
) -> tuple[list[WeakSlice], tuple[int, ...]]:
    """Find slices in which more is lost than by chance, the clearest first, and how many slices with enough samples
    were looked at, by the number of their conditions.

    The clearest slice is taken first. A condition is dropped while the wider slice is a find itself and the narrower is
    not worse within it. Then the samples of the slice are taken out, and the rest is looked through again.

    Args:
        columns: (n) codes of the values of each; a sample with a code below 0 is in no slice of the column.
        losses: Of n samples.
        depth: Most conditions of a slice, at least 1.
        fewest: Samples of the smallest slice.
        level: Chance of any false find, at most.
    """
    left = np.ones(losses.size, dtype=np.bool_)
    numbers: tuple[int, ...] = ()
    found: list[WeakSlice] = []
    while left.any():
        some, own = [column[left] for column in columns], losses.taken(left)
        tables = [_joined(parts, size) for size, parts in enumerate(_slices(some, own, depth, fewest), start=1)]
        # What is left holds fewer slices; those looked at first count throughout.
        numbers = numbers or tuple(len(table.facts) for table in tables)
        best = _clearest(tables, numbers, own)
        if best is None or best.p_adjusted > level:
            break
        best = _widened(best, some, own, numbers, level)
        found.append(best)
        left &= ~_members(best.conditions, columns)
    return found, numbers


def _members(conditions: Sequence[Condition], columns: Sequence[Codes]) -> Mask:
    """Samples (n) for which all conditions hold."""
    members: Mask = np.logical_and.reduce([columns[column] == value for column, value in conditions])
    return members


def _clearest(tables: Sequence[_Table], numbers: Sequence[int], losses: SampleLosses) -> WeakSlice | None:
    """The slice with the smallest adjusted p; None where there is none."""
    best: WeakSlice | None = None
    for table, number in zip(tables, numbers, strict=True):
        if not len(table.facts):
            continue
        p = losses.p(table.facts)
        place = int(p.argmin())
        adjusted = min(float(p[place]) * len(numbers) * number, 1.0)
        if best is None or adjusted < best.p_adjusted:
            conditions = tuple(zip(table.columns[place].tolist(), table.values[place].tolist(), strict=True))
            size, lost = table.facts[place, :2].tolist()
            best = WeakSlice(conditions, int(size), lost, float(p[place]), adjusted)
    return best


def _slice(conditions: tuple[Condition, ...], members: Mask, losses: SampleLosses, numbers: Sequence[int]) -> WeakSlice:
    """A slice of some samples (n), as one of so many by the number of their conditions."""
    facts = losses.table(np.arange(members.size), members.astype(np.intp), 2)[1:]
    p = float(losses.p(facts)[0])
    adjusted = min(p * len(numbers) * numbers[len(conditions) - 1], 1.0)
    return WeakSlice(conditions, int(facts[0, 0]), float(facts[0, 1]), p, adjusted)


def _widened(
    best: WeakSlice, columns: Sequence[Codes], losses: SampleLosses, numbers: Sequence[int], level: float
) -> WeakSlice:
    """The slice without the conditions that it does not need."""
    while len(best.conditions) > 1:
        enough = []
        narrow = _members(best.conditions, columns)
        for dropped in best.conditions:
            conditions = tuple(one for one in best.conditions if one != dropped)
            members = _members(conditions, columns)
            wider = _slice(conditions, members, losses, numbers)
            within = _slice(best.conditions, narrow[members], losses.taken(members), numbers)
            if wider.p_adjusted <= level and within.p * len(best.conditions) > level:
                enough.append(wider)
        if not enough:
            break
        best = min(enough, key=lambda one: one.p_adjusted)
    return best


def _joined(parts: Sequence[_Table], conditions: int) -> _Table:
    none = np.zeros((0, conditions), dtype=np.intp)
    if not parts:
        return _Table(none, none, np.zeros((0, 2)))
    return _Table(*(np.concatenate([getattr(one, name) for one in parts]) for name in ("columns", "values", "facts")))


def _slices(columns: Sequence[Codes], losses: SampleLosses, depth: int, fewest: int) -> list[list[_Table]]:
    """Slices with enough samples, by the number of their conditions. Smaller ones hold no larger ones, so nothing is
    made of them.
    """
    found: list[list[_Table]] = [[] for _ in range(depth)]

    def extend(chosen: tuple[int, ...], values: Codes, slices: Codes, rows: Codes) -> None:
        """Add what a further column divides slices into: of ``chosen`` columns, rising, with values (S, d) in these,
        and the slice (m) of each of some samples (m).
        """
        for place in range(chosen[-1] + 1 if chosen else 0, len(columns)):
            own = columns[place][rows]
            inside = own >= 0
            own, here = own[inside], rows[inside]
            n_values = int(own.max(initial=-1)) + 1
            cells = slices[inside] * n_values + own
            if len(values) * n_values > _SPARSE * cells.size:
                names, cells = np.unique(cells, return_inverse=True)
            else:
                names = np.arange(len(values) * n_values)
            facts = losses.table(here, cells, names.size)
            kept = np.flatnonzero(losses.enough(facts, fewest))
            if not kept.size:
                continue
            of_cells = np.column_stack([values[names[kept] // n_values], names[kept] % n_values])
            both = (*chosen, place)
            found[len(chosen)].append(_Table(np.tile(both, (kept.size, 1)), of_cells, facts[kept]))
            if len(both) < depth:
                renamed = np.full(names.size, -1, dtype=np.intp)
                renamed[kept] = np.arange(kept.size)
                large = renamed[cells]
                extend(both, of_cells, large[large >= 0], here[large >= 0])

    rows = np.arange(columns[0].size if columns else 0)
    extend((), np.zeros((1, 0), dtype=np.intp), np.zeros_like(rows), rows)
    return found
