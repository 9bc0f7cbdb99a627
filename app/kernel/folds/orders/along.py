"""What adds up along the cuts of a ranking, from the highest score down.

Counts are whole numbers, and sums of what is no whole number are exact until the end, so nothing here depends on where
one block ends and the next begins.
"""

from collections.abc import Callable
from fractions import Fraction
from typing import NamedTuple, Self

import numpy as np

from app.kernel.folds.entries import Counts
from app.kernel.folds.groups.sums import GroupSums
from app.kernel.folds.orders.cut_by_cut import CutByCut, inserted
from app.kernel.folds.orders.placements import placements
from app.kernel.folds.orders.points import KeptPoints, levels_near_median, levels_of_curves
from app.kernel.folds.orders.stretches import Cuts, Stretch
from app.kernel.folds.sums.bins import BinSums, FoldedBins
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import BLOCK
from app.kernel.numerics.hull import STRETCH, outside, upper_hull
from app.kernel.samples.rankings.cuts import Block

# Halves of whole numbers, such that their products with counts add up to less than 2^63.
_HALF = 20
_LOW = (1 << _HALF) - 1
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


class Along(CutByCut):
    """The cuts of one ranking of samples that count 1 each.

    Attributes:
        bins: Of scores that are probabilities.

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

    positives: int
    negatives: int
    twice_lost: int = 0

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
        super().__init__(
            positives,
            negatives,
            (float(positives), float(negatives)),
            max_fpr,
            quantiles,
            KeptPoints(levels_of_curves(positives, negatives, n_classes), above),
            KeptPoints(levels_near_median(positives), above),
        )
        self.bins = BinSums() if binned else None
        self.placed = GroupSums(1) if grouped else None
        self._reached = above
        # Members within the largest rate, and twice the pairs that they lose there.
        self._inside = 0, 0
        # Sums of squares: over the members of twice the others above, over the others of twice the members above.
        self._squares = 0, 0
        self._few = positives + negatives < FEW
        exact = np.int64 if positives * negatives < _EXACT else object
        self._hull = np.array([0, positives], exact), np.array([0, negatives], exact)

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

    def area_variance(self) -> float:
        """DeLong's variance of the area; NaN without members or others."""
        return float(sum(self._area_variances())) if self.positives and self.negatives else float("nan")

    def area_variances(self) -> tuple[float, float]:
        """What members and others add to it, where there are some of both."""
        of_members, of_others = self._area_variances()
        return float(of_members), float(of_others)

    def _area_variances(self) -> tuple[Fraction, Fraction]:
        won = 2 * self.positives * self.negatives - self.twice_lost
        of_members = variance_of(self.twice_lost, self._squares[0], self.positives) / (2 * self.negatives) ** 2
        of_others = variance_of(won, self._squares[1], self.negatives) / (2 * self.positives) ** 2
        return of_members / self.positives, of_others / self.negatives

    @property
    def varied(self) -> tuple[bool, bool]:
        """Do the places of others differ among themselves, and those of members?"""
        won = 2 * self.positives * self.negatives - self.twice_lost
        of_members, of_others = self._squares
        return of_others * self.negatives != won * won, of_members * self.positives != self.twice_lost**2

    def binned(self) -> FoldedBins | None:
        """Bins of equal width, of probabilities."""
        return None if self.bins is None else self.bins.read()

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

    def _take(self, other: Self) -> None:
        self._reached = other._reached
        if self.bins is not None and other.bins is not None:
            self.bins.merge(other.bins)
        self.twice_lost += other.twice_lost
        self._add_squares(*other._squares)

    def _take_inside(self, other: Self) -> None:
        (members, lost), (more, also_lost) = self._inside, other._inside
        self._inside = members + more, lost + also_lost

    def _add(self, part: _Part) -> None:
        at = np.flatnonzero(part.members)
        if at.size:
            held, others, tp, fp = (values.take(at) for values in part[1:])
            fp_before = fp - others
            block = Block(*(values.astype(np.float64) for values in (tp, fp, tp - held, fp_before, held)))
            twice = fp + fp_before
            self.twice_lost += exact_dot(held, twice)
            self._add_squares(exact_squares(held, twice, few=self._few), 0)
            inside = self._look(part.scores.take(at), block, held)
            members, lost = self._inside
            self._inside = members + int(held[:inside].sum()), lost + exact_dot(held[:inside], twice[:inside])
        if self.positives and self.negatives:
            at = np.flatnonzero(part.others)
            twice = (2 * part.tp - part.members).take(at)
            self._add_squares(0, exact_squares(part.others.take(at), twice, few=self._few))

    def _add_squares(self, of_members: int, of_others: int) -> None:
        self._squares = self._squares[0] + of_members, self._squares[1] + of_others

    def _add_to_hull(self, tp: Counts, fp: Counts) -> None:
        # What lies inside a hull of some of the points goes by rounded numbers; of what is left whole numbers tell.
        some = slice(None, None, STRETCH)
        coarse = upper_hull(*inserted(self.hull, tp[some], fp[some]))
        self._hull = upper_hull(*inserted(self._hull, *outside(tp, fp, coarse)))


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
