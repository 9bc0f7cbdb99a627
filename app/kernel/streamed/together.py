"""The orders of several classes as one, by the scores of members alone."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.samples.rankings import precision_at
from app.kernel.streamed.along import Along, Cuts, cuts_of, cuts_of_sums
from app.kernel.streamed.rows import Table, side_by_side

# Samples of all orders together, and of one at least and at most, that are looked at at once.
_TOGETHER, _FEWEST, _MOST = 1 << 20, 1 << 12, 1 << 16
_NONE = np.zeros(0)


class AllClasses:
    """All scores of K classes, from the highest down, in batches of each class. Others between the scores of two
    members are one cut, since nothing is said at their scores.

    Attributes:
        curve: Of all of them; it is given, and cuts are added to it.
        precision: Entry [k, l] (K, K) is the precision of class l along the members of class k, by trapezoids.
    """

    def __init__(self, curve: Along, orders: Sequence[Iterable[Table]], threads: int) -> None:
        self.curve, self.precision = curve, np.zeros((len(orders), len(orders)))
        self._threads = threads
        # Of each class so far: weight of others, the squares of it, and weight of members.
        self._above = np.zeros((len(orders), 3))
        # The first two of all classes with the score of the last member, and that score; none is below the lowest.
        self._reached, self._last, self._lowest = np.zeros((2, 1)), np.nan, np.nan
        for some in beside(orders, threads):
            self._add(some)
        rest = self._above[:, :2].sum(axis=0)[:, None] - self._reached
        self._add_cuts(np.array([self._lowest]), np.zeros((2, 1)), rest)

    def _add_cuts(self, scores: Array, members: Array, others: Array) -> None:
        """Go on with scores (c), and weights and their squares (2, c) of both sides, where there are some."""
        held = members[0] + others[0] > 0.0
        own, rest = members[:, held], others[:, held]
        self.curve.add(Cuts(scores[held], own[0], rest[0], np.stack([own[1], rest[1]])))

    def _add(self, some: Sequence[Cuts]) -> None:
        ends = [one.scores[[0, -1]] for one in some if one.scores.size]
        highest, self._lowest = float(max(one[0] for one in ends)), float(min(one[1] for one in ends))
        self._last = highest if np.isnan(self._last) else self._last
        there = [np.flatnonzero(one.members) for one in some]
        rows = [np.stack([one.scores, one.members, one.squares[0]])[:, at] for one, at in zip(some, there, strict=True)]
        found, held = np.concatenate(rows, axis=1), np.repeat(np.arange(len(some)), [at.size for at in there])
        if not held.size:
            for code, cuts in enumerate(some):
                self._above[code, :2] += cuts.others.sum(), cuts.squares[1].sum()
            return
        order = np.argsort(-found[0])
        (falling, *members), held = found[:, order], held.take(order)
        changes = np.concatenate([[True], falling[1:] != falling[:-1]])
        starts, places, halves = np.flatnonzero(changes), np.cumsum(changes) - 1, 0.5 * members[0]
        scores = falling.take(starts)

        def along(code: int) -> Array:
            """Weight and squares of others before each score and with it (2, 2, c)."""
            cuts, above = some[code], self._above[code]
            columns = cuts.others, cuts.squares[1], cuts.members
            sums = [start + np.concatenate([[0.0], np.cumsum(one)]) for start, one in zip(above, columns, strict=True)]
            self._above[code] = [one[-1] for one in sums]
            below = cuts.scores.size - np.searchsorted(cuts.scores[::-1], scores, side="left")
            before = below - (np.append(cuts.scores, np.nan).take(below - 1) == scores)
            made, heights = np.empty((2, 2, scores.size)), np.zeros(scores.size)
            for into, at in zip(made, (before, below), strict=True):
                into[0], into[1], tp = (one.take(at) for one in sums)
                heights += precision_at(tp, into[0])
            self.precision[:, code] += np.bincount(held, halves * heights.take(places), len(some))
            return made

        before, below = sum(side_by_side(along, range(len(some)), self._threads), np.zeros((2, 2, scores.size)))
        # One after the other: others between the scores of members, and all with a score.
        above = np.concatenate([[self._last], scores[:-1]])
        others = np.stack([before - np.concatenate([self._reached, below[:, :-1]], axis=1), below - before], axis=2)
        own = np.add.reduceat(np.stack(members), starts, axis=1)
        both = np.stack([0.5 * above + 0.5 * scores, scores], axis=1).ravel()
        self._add_cuts(both, np.stack([0.0 * own, own], axis=2).reshape(2, -1), others.reshape(2, -1).clip(0.0))
        self._reached, self._last = below[:, -1:], float(scores[-1])


def joined(orders: Sequence[Iterable[Table]], *, weighted: bool, threads: int) -> Iterator[Cuts]:
    """The cuts of several orders as those of one. No score is in two."""

    def summed(some: Sequence[Cuts]) -> tuple[Array, list[Array]]:
        scores = np.concatenate([one.scores for one in some])
        columns = [[one.members for one in some], [one.others for one in some]]
        columns += [[one.squares[side] for one in some] for side in (0, 1)] * weighted
        order = np.argsort(-scores)
        return scores.take(order), [np.concatenate(column).take(order) for column in columns]

    return cuts_of_sums(map(summed, beside(orders, threads)))


def beside(orders: Sequence[Iterable[Table]], threads: int) -> Iterator[list[Cuts]]:
    """Cuts of several orders down to one score, one part after another."""
    size = min(max(_TOGETHER // len(orders), _FEWEST), _MOST)
    left = [cuts_of(order, size) for order in orders]
    held = [Cuts(_NONE, _NONE, _NONE, np.stack([_NONE, _NONE]))] * len(left)

    def filled(place: int) -> Cuts:
        own = held[place]
        more = next(left[place], None) if 2 * own.scores.size < size else None
        return own if more is None else Cuts(*(np.concatenate(pair, axis=-1) for pair in zip(own, more, strict=True)))

    while True:
        held = list(side_by_side(filled, range(len(left)), threads))
        there = [one.scores[-1] for one in held if one.scores.size]
        if not there:
            return
        stops = [one.scores.size - int(np.searchsorted(one.scores[::-1], max(there), side="left")) for one in held]
        yield [one.part(slice(0, stop)) for one, stop in zip(held, stops, strict=True)]
        held = [one.part(slice(stop, None)) for one, stop in zip(held, stops, strict=True)]
