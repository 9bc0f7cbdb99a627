"""Samples ordered by a score: the cumulative counts at every cut."""

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask, lazy
from app.kernel.samples.rankings.cuts import (
    BLOCK,
    Amounts,
    Block,
    counted,
    cumulative,
)

Positions = NDArray[np.intp]


class CumulativeCounts:
    """Samples by falling score, and the cuts at which members of a class are reached.

    Samples of one score are one cut, never split. Only cuts with members count, because nothing but precision changes
    at the others: ``tp`` and ``fp`` (..., c) are the members and the non-members, by count or weight, with a score of
    at least that of the cut, ``tp_before`` and ``fp_before`` those above it. Leading axes are a batch of weights over
    the one order.

    Args:
        values: scores (n,), falling.
        members: is the sample a member, shape (n,), in that order.
        weights: shape (..., n) in that order, or None for 1 each.
        distinct: no two scores are equal, which is already known.
    """

    def __init__(
        self,
        values: Array,
        members: Mask,
        weights: Array | None = None,
        *,
        distinct: bool = False,
    ) -> None:
        self.values = values
        self.members = members
        self.weights = weights
        self.ends: Positions | None = None if distinct else last_of_ties(self.values)

    @cached_property
    def at(self) -> Positions:
        """Positions of the members, or with ties the last positions of the cuts that hold any."""
        if self.ends is None:
            return np.flatnonzero(self.members)
        reached = np.cumsum(self.members, dtype=np.int64).take(self.ends)
        return self.ends[np.flatnonzero(np.diff(reached, prepend=0))]

    @property
    def last(self) -> Positions:
        """Last positions of all cuts, with members or without."""
        return np.arange(self.members.size) if self.ends is None else self.ends

    @cached_property
    def _members_among(self) -> Amounts:
        """Members among the first 0, 1, ... n samples, shape (..., n + 1), by weight."""
        if self.weights is None:
            return counted(self.members)
        return cumulative(self.weights * self.members)

    @cached_property
    def _others_among(self) -> Array:
        """Non-members among the first 0, 1, ... n samples, shape (..., n + 1), by weight."""
        others = ~self.members
        return cumulative(others.astype(np.float64) if self.weights is None else others * self.weights)

    @cached_property
    def _samples_among(self) -> Array:
        """The first 0, 1, ... n samples by weight, shape (..., n + 1)."""
        return cumulative(np.ones(self.members.size) if self.weights is None else self.weights)

    @cached_property
    def _before(self) -> Positions:
        """How many samples stand before each cut that holds members."""
        if self.ends is None:
            return self.at
        starts = np.concatenate([[0], self.ends[:-1] + 1])
        return starts.take(np.searchsorted(self.ends, self.at))

    @lazy
    def tp(self) -> Array:
        """Members up to and with each cut, shape (..., c)."""
        if self.plain:
            return np.arange(1.0, self.at.size + 1.0)
        return self._members_among.take(self.at + 1, axis=-1).astype(np.float64)

    @lazy
    def fp(self) -> Array:
        """Non-members up to and with each cut, shape (..., c)."""
        if self.weights is None:
            return (self.at + 1) - self.tp
        return self._others_among.take(self.at + 1, axis=-1)

    @lazy
    def tp_before(self) -> Array:
        """Members above each cut, shape (..., c)."""
        if self.plain:
            return np.arange(float(self.at.size))
        before = np.zeros_like(self.tp)
        before[..., 1:] = self.tp[..., :-1]
        return before

    @lazy
    def fp_before(self) -> Array:
        """Non-members above each cut, shape (..., c)."""
        if self.weights is None:
            return self.fp if self.ends is None else self._before - self.tp_before
        return self._others_among.take(self._before, axis=-1)

    @lazy
    def positives(self) -> Array:
        """Members, shape (...)."""
        if self.weights is None:
            return np.asarray(float(np.count_nonzero(self.members)))
        return self._members_among[..., -1].astype(np.float64, copy=False)

    @lazy
    def negatives(self) -> Array:
        """Non-members, shape (...)."""
        if self.weights is None:
            return np.asarray(float(self.members.size - np.count_nonzero(self.members)))
        return self._others_among[..., -1]

    @property
    def plain(self) -> bool:
        """Does every member count 1 and stand alone? Then the positions say everything."""
        return self.weights is None and self.ends is None

    def part(self, start: int, stop: int) -> Block:
        """Some of the cuts, each array of shape (..., stop - start)."""
        if self.plain:
            at = self.at[start:stop]
            before = np.arange(float(start), float(start + at.size))
            fp = at - before
            return Block(before + 1.0, fp, before, fp, None)
        part = slice(start, stop)
        tp, before = self.tp[..., part], self.tp_before[..., part]
        return Block(tp, self.fp[..., part], before, self.fp_before[..., part], tp - before)

    def blocks(self) -> Iterator[Block]:
        """All cuts in pieces small enough for the cache."""
        for start in range(0, self.at.size, BLOCK):
            yield self.part(start, start + BLOCK)

    def above(self, limits: Array) -> Positions:
        """How many samples score more than each limit."""
        return self.members.size - np.searchsorted(self.values[::-1], limits, side="right")

    def up_to(self, counts: Positions) -> tuple[Amounts, Amounts]:
        """Tp and predicted samples by weight among the first so many samples, shape (..., q)."""
        tp = self._members_among.take(counts, axis=-1)
        return tp, counts if self.weights is None else self._samples_among.take(counts, axis=-1)


def last_of_ties(ordered: Array) -> Positions | None:
    """Index of the last of each run of equal values, or None when all differ."""
    changes = ordered[1:] != ordered[:-1]
    if changes.all():
        return None
    return np.append(np.flatnonzero(changes), ordered.size - 1)
