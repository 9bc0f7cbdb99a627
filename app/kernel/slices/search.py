"""A search through all slices of some columns for those with more events than chance gives, such as misses.

The chance that any slice is named where there is only noise is held over everything looked at (family-wise): each
depth has an equal part of it, and within it each slice.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.hypergeometric import hypergeometric_tails

Codes = NDArray[np.intp]
# A column (place) and one of its values.
Condition = tuple[int, int]
# Codes are counted in a table that is at most so many times as long as the samples, else sorted.
_SPARSE = 4


@dataclass(frozen=True, slots=True)
class WeakSlice:
    """A slice with more events than chance gives.

    Attributes:
        conditions: All of them hold, one for each column.
        size: Samples in it, as they were when it was found: those of slices found before are taken out.
        events: Events among them.
        p: One-sided, of an exact test against all other samples that were left (hypergeometric).
        p_adjusted: Holds for everything that was looked at.
    """

    conditions: tuple[Condition, ...]
    size: int
    events: int
    p: float
    p_adjusted: float


@dataclass(frozen=True, slots=True)
class Search:
    """Weak slices that a search found.

    Attributes:
        found: The weak slices, in the order in which they were found: the clearest first.
        looked_at: Slices with enough samples, by the number of their conditions.
    """

    found: tuple[WeakSlice, ...]
    looked_at: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Table:
    """Slices of so many conditions with enough samples.

    Attributes:
        columns: (S, d).
        values: (S, d).
        sizes: (S).
        events: (S).
    """

    columns: Codes
    values: Codes
    sizes: Array
    events: Array


def find_weak(
    columns: Sequence[Codes], events: Mask, *, depth: int = 3, fewest: int = 30, level: float = 0.05
) -> Search:
    """Find slices with more events than chance gives.

    The clearest slice is taken first. A condition is dropped while the wider slice is a find itself and the narrower is
    not worse within it. Then the samples of the slice are taken out, and the rest is looked through again.

    Args:
        columns: (n) codes of the values of each; a sample with a code below 0 is in no slice of the column.
        events: (n) of which samples; the rate of all is their mean.
        depth: Most conditions of a slice, at least 1.
        fewest: Samples of the smallest slice.
        level: Chance of any false find, at most.
    """
    left = np.ones(events.size, dtype=np.bool_)
    counts: tuple[int, ...] = ()
    found: list[WeakSlice] = []
    while True:
        tables = _tables([column[left] for column in columns], events[left], depth, fewest)
        # What is left holds fewer slices; those looked at first count throughout.
        counts = counts or tuple(table.sizes.size for table in tables)
        best = _clearest(tables, counts, events[left])
        if best is None or best.p_adjusted > level:
            return Search(tuple(found), counts)
        best = _widened(best, [column[left] for column in columns], events[left], counts, level)
        found.append(best)
        left &= ~_members(best.conditions, columns)


def _members(conditions: Sequence[Condition], columns: Sequence[Codes]) -> Mask:
    """Samples (n) for which all conditions hold."""
    members: Mask = np.logical_and.reduce([columns[column] == value for column, value in conditions])
    return members


def _clearest(tables: Sequence[_Table], counts: Sequence[int], events: Mask) -> WeakSlice | None:
    """The slice with the smallest adjusted p; None where there is none."""
    best: WeakSlice | None = None
    total, all_events = np.asarray(float(events.size)), np.asarray(float(events.sum()))
    for table, count in zip(tables, counts, strict=True):
        if not table.sizes.size:
            continue
        p, _ = hypergeometric_tails(table.events, table.sizes, all_events, total)
        place = int(p.argmin())
        adjusted = min(float(p[place]) * len(counts) * count, 1.0)
        if best is None or adjusted < best.p_adjusted:
            conditions = tuple(zip(table.columns[place].tolist(), table.values[place].tolist(), strict=True))
            best = WeakSlice(conditions, int(table.sizes[place]), int(table.events[place]), float(p[place]), adjusted)
    return best


def _slice(
    conditions: tuple[Condition, ...], columns: Sequence[Codes], events: Mask, counts: Sequence[int]
) -> WeakSlice:
    members = _members(conditions, columns)
    size, among = int(members.sum()), int(events[members].sum())
    p = _upper_tail(among, size, int(events.sum()), events.size)
    return WeakSlice(conditions, size, among, p, min(p * len(counts) * counts[len(conditions) - 1], 1.0))


def _upper_tail(events: int, size: int, all_events: int, total: int) -> float:
    found, _ = hypergeometric_tails(*(np.asarray(float(one)) for one in (events, size, all_events, total)))
    return float(found)


def _widened(best: WeakSlice, columns: Sequence[Codes], events: Mask, counts: Sequence[int], level: float) -> WeakSlice:
    """The slice without the conditions that it does not need."""
    while len(best.conditions) > 1:
        wider = [
            _slice(tuple(one for one in best.conditions if one != dropped), columns, events, counts)
            for dropped in best.conditions
        ]
        enough = [
            one
            for one in wider
            if one.p_adjusted <= level
            and _upper_tail(best.events, best.size, one.events, one.size) * len(best.conditions) > level
        ]
        if not enough:
            break
        best = min(enough, key=lambda one: one.p_adjusted)
    return best


def _tables(columns: Sequence[Codes], events: Mask, depth: int, fewest: int) -> list[_Table]:
    """Slices with enough samples, by the number of their conditions."""
    found: list[list[_Table]] = [[] for _ in range(depth)]
    everything = np.zeros(events.size, dtype=np.intp)
    _extend((), np.zeros((1, 0), dtype=np.intp), everything, columns, events, fewest, found)
    return [_joined(parts, conditions) for conditions, parts in enumerate(found, start=1)]


def _joined(parts: Sequence[_Table], conditions: int) -> _Table:
    none = np.zeros((0, conditions), dtype=np.intp)
    whole = [_Table(none, none, np.zeros(0), np.zeros(0)), *parts]
    return _Table(
        np.concatenate([one.columns for one in whole]),
        np.concatenate([one.values for one in whole]),
        np.concatenate([one.sizes for one in whole]),
        np.concatenate([one.events for one in whole]),
    )


def _extend(
    chosen: tuple[int, ...],
    values: Codes,
    slices: Codes,
    columns: Sequence[Codes],
    events: Mask,
    fewest: int,
    found: Sequence[list[_Table]],
) -> None:
    """Add the slices that a further column divides these into.

    Args:
        chosen: Columns of the slices so far, rising.
        values: (S, d) their values in these.
        slices: (n) slice of each sample.
        columns: (n) codes of each column.
        events: (n).
        fewest: Samples of a slice. Smaller ones hold no larger ones, so nothing is made of them.
        found: By the number of conditions, what is added to.
    """
    for place in range(chosen[-1] + 1 if chosen else 0, len(columns)):
        inside = columns[place] >= 0
        own = columns[place][inside]
        n_values = int(own.max(initial=-1)) + 1
        cells, among = slices[inside] * n_values + own, events[inside]
        if len(values) * n_values > _SPARSE * cells.size:
            names, cells = np.unique(cells, return_inverse=True)
        else:
            names = np.arange(len(values) * n_values)
        sizes = np.bincount(cells, minlength=names.size)
        kept = np.flatnonzero(sizes >= fewest)
        if not kept.size:
            continue
        of_cells = np.column_stack([values[names[kept] // n_values], names[kept] % n_values])
        both = (*chosen, place)
        hits = np.bincount(cells[among], minlength=names.size)[kept]
        found[len(chosen)].append(
            _Table(np.tile(both, (kept.size, 1)), of_cells, sizes[kept].astype(np.float64), hits.astype(np.float64))
        )
        if len(both) < len(found):
            renamed = np.full(names.size, -1, dtype=np.intp)
            renamed[kept] = np.arange(kept.size)
            large = renamed[cells]
            stay = large >= 0
            rows = np.flatnonzero(inside)[stay]
            later = [*columns[: place + 1], *(column[rows] for column in columns[place + 1 :])]
            _extend(both, of_cells, large[stay], later, events[rows], fewest, found)
