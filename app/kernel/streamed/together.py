"""The orders of several classes as one, by the scores of members alone."""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.samples.rankings import precision_of
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

    def __init__(self, curve: Along, orders: Sequence[Iterable[Table]], *, weighted: bool, threads: int) -> None:
        self.curve, self.precision = curve, np.zeros((len(orders), len(orders)))
        self._weighted, self._threads = weighted, threads
        # Of each class so far: number of cuts, weight of others, the squares of it, and weight of members.
        self._above = np.zeros((len(orders), 4))
        # The first three of all classes with the score of the last member, and that score; none is below the lowest.
        self._reached, self._last, self._lowest = np.zeros(3), np.nan, np.nan
        for some in beside(orders, threads):
            self._add(some)
        rest = self._above[:, :3].sum(axis=0) - self._reached
        if rest[0]:
            nothing, others, squares = np.zeros(1), rest[1:2], rest[2:]
            curve.add(Cuts(np.array([self._lowest]), nothing, others, np.stack([nothing, squares])))

    def _add(self, some: Sequence[Cuts]) -> None:
        ends = [one.scores[[0, -1]] for one in some if one.scores.size]
        highest, self._lowest = float(max(one[0] for one in ends)), float(min(one[1] for one in ends))
        self._last = highest if np.isnan(self._last) else self._last
        there = [np.flatnonzero(one.members) for one in some]
        found = np.concatenate([one.scores.take(at) for one, at in zip(some, there, strict=True)])
        order = np.argsort(-found)
        found = found.take(order)
        columns = (
            [np.full(at.size, code) for code, at in enumerate(there)],
            [one.members.take(at) for one, at in zip(some, there, strict=True)],
            [one.squares[0].take(at) for one, at in zip(some, there, strict=True)],
        )
        held, weights, squares = (np.concatenate(column).take(order) for column in columns)
        changes = np.concatenate([[True], found[1:] != found[:-1]])[: found.size]
        starts = np.flatnonzero(changes)
        # Mostly no score comes twice.
        places = None if starts.size == found.size else np.cumsum(changes) - 1
        scores, halves = found.take(starts), 0.5 * weights

        def along(code: int) -> Array:
            """Number, weight and squares of others before each score and with it (2, 3, c)."""
            cuts, (number, *above) = some[code], self._above[code]
            own = [(above[0], cuts.others), (above[2], cuts.members)]
            # Without weights squares are the same.
            own[1:1] = [(above[1], cuts.squares[1])] * self._weighted
            sums = [np.concatenate([[start], start + np.cumsum(column)]) for start, column in own]
            self._above[code] = number + cuts.scores.size, sums[0][-1], sums[-2][-1], sums[-1][-1]
            below = cuts.scores.size - np.searchsorted(cuts.scores[::-1], scores, side="left")
            before = below - (np.append(cuts.scores, np.nan).take(below - 1) == scores)
            made, heights = np.empty((2, 3, scores.size)), np.zeros(scores.size)
            for into, at in zip(made, (before, below), strict=True):
                others, tp = sums[0].take(at), sums[-1].take(at)
                into[0], into[1], into[2] = number + at, others, sums[1].take(at) if self._weighted else others
                heights += precision_of(tp, tp + others)
            heights = heights if places is None else heights.take(places)
            self.precision[:, code] += np.bincount(held, halves * heights, len(some))
            return made

        totals = np.zeros((2, 3, scores.size))
        for one in side_by_side(along, range(len(some)), self._threads):
            totals += one
        if not scores.size:
            return
        before, below = totals
        between = before - np.concatenate([self._reached[:, None], below[:, :-1]], axis=1)
        above = np.concatenate([[self._last], scores[:-1]])
        self._reached, self._last = below[:, -1], float(scores[-1])
        sides = [0.5 * above + 0.5 * scores, scores], [between, below - before]
        members = np.add.reduceat(np.stack([weights, squares]), starts, axis=1)
        # One after the other: others between two scores, where there are some, and those with a score.
        chosen = np.stack([between[0] > 0, np.ones(scores.size, np.bool_)], axis=1).ravel()

        def alternating(first: Array, second: Array) -> Array:
            both: Array = np.stack([first, second], axis=1).ravel()
            found: Array = both[chosen]
            return found

        (_, others, other_squares) = (alternating(*pair).clip(0.0) for pair in zip(*sides[1], strict=True))
        own, own_squares = (alternating(np.zeros(scores.size), one) for one in members)
        self.curve.add(Cuts(alternating(*sides[0]), own, others, np.stack([own_squares, other_squares])))


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
