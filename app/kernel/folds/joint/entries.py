"""All n K probabilities of n samples in one order: members are those of actual classes, one of each sample.

One threshold falls for all classes together. Their orders go by once more, side by side between the same scores.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat, tee
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Counts, starts_of
from app.kernel.folds.joint.places import Found, RowsInOrder, Sought
from app.kernel.folds.joint.rows import Rows
from app.kernel.folds.joint.variances import Placed
from app.kernel.folds.keys import score_of
from app.kernel.folds.orders.along import FEW, exact_dot, exact_squares, variance_of
from app.kernel.folds.orders.runs import Reader
from app.kernel.folds.orders.stretches import Between, Cuts, InOrder, floors_of, floors_of_scores, taken_from
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, total_of
from app.kernel.samples.rankings.cuts import precision_anywhere

_TWO = 2
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
_NONE = Cuts(np.empty(0), *np.zeros((2, 0), dtype=np.int64))
# Of each class how many members and others are above (K, 2).
Above = NDArray[np.int64]


class Together(NamedTuple):
    """What one threshold for all classes says.

    Attributes:
        twice_lost: Twice the pairs of an actual class and a class that is not, of any two samples or one, in which the
            other one has the higher probability, ties once.
        precision: Entry [k, l] (K, K) is the precision of class l along the members of class k, by trapezoids.
        variance: Of two classes, over n - 1, of the share of the others above the actual class of each sample.
        placed: Where some rows stand, None where there are none.
    """

    twice_lost: int
    precision: Array
    variance: float | None
    placed: Placed | None = None


class EntrySums:
    """The same while the orders of K classes go by; states of stretches merge from the highest scores down.

    Attributes:
        found: Of each stretch where the rows stand that were looked for, in each class.

    Args:
        n_classes: K.
        n_samples: All of them.
    """

    def __init__(self, n_classes: int, n_samples: int) -> None:
        self._n_samples, self._others = n_samples, n_samples * (n_classes - 1)
        self._twice_lost = 0
        self._precision = [ExactSums((n_classes,)) for _ in range(n_classes)]
        # Of each sample the square of twice the others above its actual class.
        self._squares = 0
        self._few = n_samples < FEW
        self.found: list[Sequence[Found]] = []

    def add(self, cuts: Sequence[Cuts], above: Above, sought: Sequence[Sought] | None = None) -> Self:
        """Add all between two scores.

        Args:
            cuts: Of each class.
            above: Of each class, of higher scores.
            sought: Of each class scores that are looked for.
        """
        columns = [_Column.of(own, *higher) for own, higher in zip(cuts, above, strict=True)]
        for code, own in enumerate(cuts):
            # Rising, as columns are.
            at = np.flatnonzero(own.members[::-1])
            for start in range(0, at.size, BLOCK):
                part = at[start : start + BLOCK]
                thresholds, held = own.scores[::-1].take(part), own.members[::-1].take(part)
                passed = [
                    column.at(part) if other == code else column.passed(thresholds)
                    for other, column in enumerate(columns)
                ]
                self._add(code, passed, held)
        if sought is not None:
            self.found.append(_found(columns, _members_of(cuts, above), sought))
        return self

    def _add(self, code: int, passed: Sequence["_Passed"], held: Counts) -> None:
        twice, heights = (np.stack(side) for side in zip(*passed, strict=True))
        lost = twice.sum(axis=0)
        self._twice_lost += exact_dot(held, lost)
        self._precision[code].add(heights * held, total_of)
        if len(passed) == _TWO:
            self._squares += exact_squares(held, lost, few=self._few)

    def merge(self, other: Self) -> None:
        """Take in what another has looked at."""
        self._twice_lost += other._twice_lost
        self._squares += other._squares
        self.found += other.found
        for own, more in zip(self._precision, other._precision, strict=True):
            own.merge(more)

    def read(self) -> Together:
        """What there is so far."""
        precision = np.stack([sums.rounded() for sums in self._precision])
        variance = variance_of(self._twice_lost, self._squares, self._n_samples) / (2 * self._others) ** 2
        return Together(self._twice_lost, precision, float(variance) if len(precision) == _TWO else None)


class _Column(NamedTuple):
    """One class between two scores.

    Attributes:
        rising: Distinct scores (c).
        tp: (c + 1) members with scores above the last 0, 1, ... of these.
        fp: Others.
    """

    rising: Array
    tp: Counts
    fp: Counts

    @classmethod
    def of(cls, cuts: Cuts, members: int, others: int) -> Self:
        """From how many members and others are above."""
        counts = zip((cuts.members, cuts.others), (members, others), strict=True)
        tp, fp = (np.concatenate([[0], np.cumsum(held)])[::-1] + more for held, more in counts)
        return cls(cuts.scores[::-1], tp, fp)

    def passed(self, thresholds: Array) -> "_Passed":
        """As rising thresholds (t) are passed."""
        # Few of its scores lie between them, and stay in the cache.
        low = int(np.searchsorted(self.rising, thresholds[0], "left"))
        high = int(np.searchsorted(self.rising, thresholds[-1], "right"))
        scores = self.rising[low:high]
        at = np.searchsorted(scores, thresholds)
        tied = scores.take(at, mode="clip") == thresholds if scores.size else np.zeros(at.size, dtype=bool)
        at += low
        return self._between(at, at + tied) if tied.any() else self._above(at)

    def above(self, thresholds: Array) -> tuple[Counts, Counts]:
        """Twice the members and twice the others above thresholds (t), ties once."""
        before, after = (np.searchsorted(self.rising, thresholds, side=side) for side in _SIDES)
        members, others = (counts.take(before) + counts.take(after) for counts in (self.tp, self.fp))
        return members, others

    def at(self, places: Counts) -> "_Passed":
        """As some of the scores themselves are passed."""
        return self._between(places, places + 1)

    def _between(self, before: Counts, after: Counts) -> "_Passed":
        (with_them, low), (without, high) = self._above(before), self._above(after)
        return _Passed((with_them + without) // 2, 0.5 * (low + high))

    def _above(self, places: Counts) -> "_Passed":
        tp, fp = self.tp.take(places), self.fp.take(places)
        return _Passed(2 * fp, precision_anywhere(tp, tp + fp))


class _Passed(NamedTuple):
    """What a class says as thresholds (t) are passed: the mean of before and after, where they are among its scores.

    Attributes:
        twice: Twice the others above.
        heights: Precision.
    """

    twice: Counts
    heights: Array


def _members_of(cuts: Sequence[Cuts], above: Above) -> _Column:
    """The members of all classes in one order, each by the probability of its own."""
    held = [np.flatnonzero(own.members) for own in cuts]
    scores = np.concatenate([own.scores.take(at) for own, at in zip(cuts, held, strict=True)])
    if not scores.size:
        return _Column.of(_NONE, int(above[:, 0].sum()), 0)
    order = np.argsort(scores, kind="stable")
    starts = starts_of(scores.take(order))
    members = np.concatenate([own.members.take(at) for own, at in zip(cuts, held, strict=True)]).take(order)
    counts = np.add.reduceat(members, starts)[::-1]
    falling = scores.take(order.take(starts))[::-1]
    return _Column.of(Cuts(falling, counts, np.zeros_like(counts)), int(above[:, 0].sum()), 0)


def _found(columns: Sequence[_Column], members: _Column, sought: Sequence[Sought]) -> Sequence[Found]:
    """Where scores of each class stand.

    Args:
        columns: Of each class.
        members: Of all classes, in one order.
        sought: Of each class.
    """
    found = []
    for column, (scores, inside) in zip(columns, sought, strict=True):
        of_members, of_others = column.above(scores)
        among_all, actual = members.above(scores)[0], np.flatnonzero(inside)
        own = scores.take(actual)
        among_all[actual] = sum((each.above(own)[1] for each in columns), start=np.zeros(own.size, dtype=np.int64))
        found.append(Found(np.where(inside, of_others, of_members), among_all))
    return found


def together(
    readers: Sequence[Sequence[Reader]], n_samples: int, budget: int, in_order: InOrder, rows: Rows | None = None
) -> Together:
    """What one threshold for all classes says.

    Args:
        readers: Of the runs of each class.
        n_samples: How many they have, each.
        budget: Bytes of memory, about.
        in_order: Has stretches looked at, here or elsewhere, and gives what comes of them in turn.
        rows: Some, of which the places are looked for.
    """
    whole, asked = EntrySums(len(readers), n_samples), None if rows is None else RowsInOrder(rows)
    for sums in in_order(partial(_of_stretch, n_samples), _side_by_side(readers, budget, asked)):
        whole.merge(sums)
    placed = None if rows is None or asked is None else Placed(rows, *asked.placed(whole.found))
    return whole.read()._replace(placed=placed)


# The stretches of all classes between the same scores, what is above them, and what is looked for in them.
_Task = tuple[Sequence[Between], Above, Sequence[Sought] | None]


def _side_by_side(readers: Sequence[Sequence[Reader]], budget: int, asked: RowsInOrder | None) -> Iterator[_Task]:
    above: Above = np.zeros((len(readers), 2), dtype=np.int64)
    floors, scores = tee(floors_of([reader for own in readers for reader in own], budget, floors_of_scores))
    sought = repeat(None) if asked is None else asked.above(score_of(floor) for floor in scores)
    for floor, own_sought in zip(floors, sought, strict=False):
        stretches = [Between(taken_from(own, floor, budget)) for own in readers]
        yield stretches, above.copy(), own_sought
        above += [stretch.sizes() for stretch in stretches]


def _of_stretch(n_samples: int, task: _Task) -> EntrySums:
    stretches, above, sought = task
    cuts = [stretch.cuts() if stretch.taken else _NONE for stretch in stretches]
    return EntrySums(len(cuts), n_samples).add(cuts, above, sought)
