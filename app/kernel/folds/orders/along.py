"""What adds up along the cuts of a ranking, from the highest score down.

Counts are whole numbers, and sums of what is no whole number are exact until the end, so nothing here depends on where
one block ends and the next begins.
"""

from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import chain
from typing import Literal, NamedTuple, Self

import numpy as np

from app.kernel.folds.entries import Counts
from app.kernel.folds.groups.sums import GroupSums
from app.kernel.folds.orders.placements import placements
from app.kernel.folds.orders.points import KeptPoints, levels_near_median, levels_of_curves
from app.kernel.folds.orders.stretches import Cuts, Stretch
from app.kernel.folds.sums.bins import BinSums
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.exact_sums import BLOCK, ExactSums
from app.kernel.numerics.hull import STRETCH, Amounts, outside, upper_hull
from app.kernel.samples.rankings.cuts import Block, precision_at

# Halves of whole numbers, such that their products with counts add up to less than 2^63.
_HALF = 20
_LOW = (1 << _HALF) - 1
# Relative width within which a cumulative count stands exactly at a quantile, as in memory.
_SLACK = 1e-12
# Products of counts below it are exact in 64 bits.
_EXACT = 1 << 62
# So few samples that counts and twice the counts have 31 and 32 bits.
FEW = 1 << 31
_BITS, _LOW_BITS = np.uint64(32), np.uint64((1 << 32) - 1)
# Points that are brought to the hull at once.
_POINTS = 1 << 18


class _Part(NamedTuple):
    """Distinct scores (c), falling; members and others with each, and with at least each."""

    scores: Array
    members: Counts
    others: Counts
    tp: Counts
    fp: Counts


class Along:
    """The cuts of one ranking.

    Attributes:
        twice_lost: Twice the pairs in which the other one has the higher score, ties once.
        crossing: The first cut with TPR + FPR >= 1.
        edge: The first cut beyond the largest false positive rate.
        bins: Of scores that are probabilities.
        points: Some of the cuts.
        medians: Some of those at which the median member is likely to lie.
        placed: Where the samples of groups stand, if they are in some.

    Args:
        positives: Members of all samples.
        negatives: Others.
        max_fpr: Where the partial area ends.
        quantiles: Of the scores of the members.
        n_classes: How many classes there are, which share the points of their curves.
        binned: Are scores probabilities, which have bins?
        grouped: Do samples have groups?
        above: Members and others with higher scores than those that are added here.
    """

    def __init__(
        self,
        positives: int,
        negatives: int,
        max_fpr: float,
        quantiles: tuple[float, ...],
        n_classes: int = 2,
        *,
        binned: bool = True,
        grouped: bool = False,
        above: tuple[int, int] = (0, 0),
    ) -> None:
        self.positives, self.negatives = positives, negatives
        self.twice_lost = 0
        # Nothing is predicted yet.
        self.crossing = Block(*np.zeros((5, 1)))
        self.edge: Block | None = None
        self.bins = BinSums() if binned else None
        self.points = KeptPoints(levels_of_curves(positives, negatives, n_classes), above)
        self.medians = KeptPoints(levels_near_median(positives), above)
        self.placed = GroupSums(1) if grouped else None
        slack = _SLACK * positives
        self._sought = {
            quantile: (
                _Sought((1.0 - quantile) * positives + slack, "right"),
                _Sought((1.0 - quantile) * positives - slack, "left"),
            )
            for quantile in quantiles
        }
        self._max_fpr = max_fpr
        self._reached = above
        # Members within the largest rate, and twice the pairs that they lose there.
        self._inside = 0, 0
        # Over the members: precision and twice its trapezoid.
        self._precision = ExactSums((2,))
        # Sums of squares: over the members of twice the others above, over the others of twice the members above.
        self._squares = 0, 0
        self._few = positives + negatives < FEW
        exact = np.int64 if positives * negatives < _EXACT else object
        self._hull: tuple[Amounts, Amounts] = np.array([0, positives], exact), np.array([0, negatives], exact)

    @property
    def hull(self) -> tuple[Array, Array]:
        """Vertices (tp, fp) of the upper convex hull of the ROC curve."""
        tp, fp = self._hull
        return tp.astype(np.float64), fp.astype(np.float64)

    @property
    def area_inside(self) -> float:
        """Area in pairs under the cuts up to the largest false positive rate."""
        members, lost = self._inside
        return float(members * Fraction(self._max_fpr * self.negatives) - Fraction(lost, 2))

    @property
    def quantiles(self) -> dict[float, tuple[float, float]]:
        """Scores of the members at each quantile, from below and from above."""
        return {quantile: (below.score, above.score) for quantile, (below, above) in self._sought.items()}

    def precision(self) -> tuple[float, float]:
        """Sum of precision at the members, and the same by trapezoids."""
        sums = self._precision.rounded()
        return float(sums[0]), float(0.5 * sums[1])

    def area_variance(self) -> float:
        """DeLong's variance of the area; NaN without members or others."""
        if not self.positives or not self.negatives:
            return float("nan")
        won = 2 * self.positives * self.negatives - self.twice_lost
        of_members = variance_of(self.twice_lost, self._squares[0], self.positives) / (2 * self.negatives) ** 2
        of_others = variance_of(won, self._squares[1], self.negatives) / (2 * self.positives) ** 2
        return float(of_members / self.positives + of_others / self.negatives)

    @property
    def varied(self) -> tuple[bool, bool]:
        """Do the places of others differ among themselves, and those of members?"""
        won = 2 * self.positives * self.negatives - self.twice_lost
        of_members, of_others = self._squares
        return of_others * self.negatives != won * won, of_members * self.positives != self.twice_lost**2

    @property
    def gap(self) -> float:
        """The largest TPR - FPR, which a vertex of the hull has."""
        tp, fp = self.hull
        return float((tp * (1.0 / self.positives) - fp * (1.0 / self.negatives)).max())

    def add(self, cuts: Cuts) -> None:
        """Go on with the next lower scores."""
        tp, fp = np.cumsum(cuts.members), np.cumsum(cuts.others)
        tp += self._reached[0]
        fp += self._reached[1]
        self._reached = int(tp[-1]), int(fp[-1])
        if self.bins is not None:
            self.bins.add_cuts(*cuts)
        for points in (self.points, self.medians):
            points.add(cuts.scores, tp, fp)
        for start in range(0, tp.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._add(_Part(cuts.scores[part], cuts.members[part], cuts.others[part], tp[part], fp[part]))
        if self.positives and self.negatives:
            for start in range(0, tp.size, _POINTS):
                part = slice(start, start + _POINTS)
                self._add_to_hull(tp[part], fp[part])

    def merge(self, other: Self) -> None:
        """Go on with the next lower scores, which went by another."""
        self._reached = other._reached
        if self.bins is not None and other.bins is not None:
            self.bins.merge(other.bins)
        self.points.merge(other.points)
        self.medians.merge(other.medians)
        if self.placed is not None and other.placed is not None:
            self.placed.merge(other.placed)
        self.twice_lost += other.twice_lost
        self._precision.merge(other._precision)
        self._add_squares(*other._squares)
        for quantile, both in self._sought.items():
            for own, theirs in zip(both, other._sought[quantile], strict=True):
                own.merge(theirs)
        # Where there was a cut with members, there is one.
        if other.crossing.tp.any() and not self._crossed(self.crossing).any():
            self.crossing = other.crossing
        if self.edge is None:
            (members, lost), (more, also_lost) = self._inside, other._inside
            self._inside, self.edge = (members + more, lost + also_lost), other.edge
        self._hull = upper_hull(*_inserted(self._hull, *(side[1:-1] for side in other._hull)))

    def _add(self, part: _Part) -> None:
        at = np.flatnonzero(part.members)
        if at.size:
            held, others, tp, fp = (values.take(at) for values in part[1:])
            fp_before = fp - others
            block = Block(*(values.astype(np.float64) for values in (tp, fp, tp - held, fp_before, held)))
            twice = fp + fp_before
            self.twice_lost += exact_dot(held, twice)
            self._add_squares(exact_squares(held, twice, few=self._few), 0)
            self._add_precision(block, held)
            for sought in chain.from_iterable(self._sought.values()):
                sought.look(part.scores.take(at), block)
            if self.negatives:
                self._add_rates(block, held, twice)
        if self.positives and self.negatives:
            at = np.flatnonzero(part.others)
            twice = (2 * part.tp - part.members).take(at)
            self._add_squares(0, exact_squares(part.others.take(at), twice, few=self._few))

    def _add_precision(self, block: Block, held: Counts) -> None:
        heights = precision_at(block.tp, block.fp)
        values = np.stack([heights, heights + precision_at(block.tp_before, block.fp_before)])
        self._precision.add(values * held, _total)

    def _add_squares(self, of_members: int, of_others: int) -> None:
        self._squares = self._squares[0] + of_members, self._squares[1] + of_others

    def _add_rates(self, block: Block, held: Counts, twice: Counts) -> None:
        if not self._crossed(self.crossing).any():
            there = self._crossed(block)
            self.crossing = _cut(block, int(there.argmax()) if there.any() else there.size - 1)
        if self.edge is None:
            fpr = block.fp / self.negatives
            inside = int(np.searchsorted(fpr, self._max_fpr, side="right"))
            members, lost = self._inside
            self._inside = members + int(held[:inside].sum()), lost + exact_dot(held[:inside], twice[:inside])
            self.edge = _cut(block, inside) if inside < fpr.size else None

    def _crossed(self, block: Block) -> Mask:
        crossed: Mask = block.fp / self.negatives + block.tp / self.positives >= 1.0
        return crossed

    def _add_to_hull(self, tp: Counts, fp: Counts) -> None:
        # What lies inside a hull of some of the points goes by rounded numbers; of what is left whole numbers tell.
        some = slice(None, None, STRETCH)
        coarse = upper_hull(*_inserted(self.hull, tp[some], fp[some]))
        self._hull = upper_hull(*_inserted(self._hull, *outside(tp, fp, coarse)))


class _Sought:
    """The score of the first cut with at least so many members, or with more; of the last cut if there is none."""

    def __init__(self, members: float, side: Literal["left", "right"]) -> None:
        self.score = np.nan
        self._members, self._side, self._found = members, side, False

    def look(self, scores: Array, block: Block) -> None:
        if not self._found:
            at = int(np.searchsorted(block.tp, self._members, side=self._side))
            self._found = at < scores.size
            self.score = float(scores[min(at, scores.size - 1)])

    def merge(self, other: "_Sought") -> None:
        """Go on with the next lower scores, at which another has looked."""
        if not self._found and not np.isnan(other.score):
            self.score, self._found = other.score, other._found


def along_stretch(begun: Callable[..., Along], part: tuple[Stretch, tuple[int, int]]) -> Along:
    """What adds up along a stretch of the order, in any process.

    Args:
        begun: Makes it, told how many members and others are above.
        part: The stretch, and these numbers.
    """
    stretch, above = part
    along, cuts = begun(above=above), stretch.cuts()
    along.add(cuts)
    if along.placed is not None:
        along.placed.merge(placements(stretch.in_groups(), cuts, above))
    return along


def _inserted(hull: tuple[Amounts, Amounts], tp: Amounts, fp: Amounts) -> Iterator[Amounts]:
    """Points of the hull that ends at the last of all samples, with others before that one."""
    for side, new in zip(hull, (tp, fp), strict=True):
        yield np.concatenate([side[:-1], new.astype(side.dtype), side[-1:]])


def exact_dot(first: Counts, second: Counts) -> int:
    """Sum of products of counts, of any size."""
    return (int(first @ (second >> _HALF)) << _HALF) + int(first @ (second & _LOW))


def exact_squares(counts: Counts, values: Counts, *, few: bool) -> int:
    """Sum of counts times squares of values below twice the number of samples."""
    if not few:
        return int((counts.astype(object) * values.astype(object) ** 2).sum())
    # Squares below 2^64, and halves of them.
    squares = (values * values).view(np.uint64)
    given = counts.view(np.uint64)
    return (int(given @ (squares >> _BITS)) << 32) + int(given @ (squares & _LOW_BITS))


def variance_of(total: int, squares: int, size: int) -> Fraction:
    """Variance over n - 1 of whole numbers."""
    return Fraction(squares * size - total * total, size * max(size - 1, 1))


def _cut(block: Block, at: int) -> Block:
    return Block(*(side[at : at + 1] for side in block if side is not None))


def _total(values: Array) -> Array:
    summed: Array = values.sum(axis=-1)
    return summed
