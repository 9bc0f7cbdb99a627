"""What is read off the cuts of a ranking, from the highest score down, whether samples add up along them or weights."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from fractions import Fraction
from itertools import chain
from typing import Literal, Self

import numpy as np

from app.kernel.folds.groups.sums import GroupSums
from app.kernel.folds.orders.points import KeptPoints
from app.kernel.folds.sums.bins import FoldedBins
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.exact_sums import ExactSums, total_of
from app.kernel.numerics.hull import Amounts, upper_hull
from app.kernel.samples.rankings.cuts import Block, precision_at

# Relative width within which a cumulative count stands exactly at a quantile, as in memory.
_SLACK = 1e-12


class CutByCut(ABC):
    """The cuts of one ranking.

    Attributes:
        positives: Members of all samples, or what they weigh.
        negatives: Others.
        crossing: The first cut with TPR + FPR >= 1.
        edge: The first cut beyond the largest false positive rate.
        points: Some of the cuts.
        medians: Some of those at which the median member is likely to lie.
        placed: Where the samples of groups stand, if they are in some.

    Args:
        positives: See above.
        negatives: See above.
        sizes: Both as they are rounded along the cuts.
        max_fpr: Where the partial area ends.
        quantiles: Of the scores of the members.
        points: Of those that are kept.
        medians: The same.
    """

    placed: GroupSums | None = None
    _hull: tuple[Amounts, Amounts]

    def __init__(
        self,
        positives: int | Fraction,
        negatives: int | Fraction,
        sizes: tuple[float, float],
        max_fpr: float,
        quantiles: tuple[float, ...],
        points: KeptPoints,
        medians: KeptPoints,
    ) -> None:
        self.positives, self.negatives, self._sizes = positives, negatives, sizes
        # Nothing is predicted yet.
        self.crossing = Block(*np.zeros((5, 1)))
        self.edge: Block | None = None
        self.points, self.medians = points, medians
        slack = _SLACK * sizes[0]
        self._sought = {
            quantile: (
                _Sought((1.0 - quantile) * sizes[0] + slack, "right"),
                _Sought((1.0 - quantile) * sizes[0] - slack, "left"),
            )
            for quantile in quantiles
        }
        self._max_fpr = max_fpr
        # Over the members: precision and twice its trapezoid.
        self._precision = ExactSums((2,))

    @property
    @abstractmethod
    def twice_lost(self) -> int | Fraction:
        """Twice the pairs in which the other one has the higher score, ties once."""

    @property
    @abstractmethod
    def area_inside(self) -> float:
        """Area in pairs under the cuts up to the largest false positive rate."""

    @property
    @abstractmethod
    def hull(self) -> tuple[Array, Array]:
        """Vertices (tp, fp) of the upper convex hull of the ROC curve."""

    @abstractmethod
    def area_variance(self) -> float:
        """DeLong's variance of the area; NaN without members or others."""

    @abstractmethod
    def binned(self) -> FoldedBins | None:
        """Bins of equal width, of probabilities."""

    @abstractmethod
    def _take(self, other: Self) -> None:
        """Add what was added up by another, in any order."""

    @abstractmethod
    def _take_inside(self, other: Self) -> None:
        """The same of the cuts within the largest false positive rate."""

    @property
    def quantiles(self) -> dict[float, tuple[float, float]]:
        """Scores of the members at each quantile, from below and from above."""
        return {quantile: (below.score, above.score) for quantile, (below, above) in self._sought.items()}

    def precision(self) -> tuple[float, float]:
        """Sum of precision at the members, and the same by trapezoids."""
        sums = self._precision.rounded()
        return float(sums[0]), float(0.5 * sums[1])

    @property
    def gap(self) -> float:
        """The largest TPR - FPR, which a vertex of the hull has."""
        tp, fp = self.hull
        return float((tp * (1.0 / self._sizes[0]) - fp * (1.0 / self._sizes[1])).max())

    def merge(self, other: Self) -> None:
        """Go on with the next lower scores, which went by another."""
        self._take(other)
        self.points.merge(other.points)
        self.medians.merge(other.medians)
        if self.placed is not None and other.placed is not None:
            self.placed.merge(other.placed)
        self._precision.merge(other._precision)
        for quantile, both in self._sought.items():
            for own, theirs in zip(both, other._sought[quantile], strict=True):
                own.merge(theirs)
        # Where there was a cut with members, there is one.
        if other.crossing.tp.any() and not self._crossed(self.crossing).any():
            self.crossing = other.crossing
        if self.edge is None:
            self._take_inside(other)
            self.edge = other.edge
        self._hull = upper_hull(*inserted(self._hull, *(side[1:-1] for side in other._hull)))

    def _look(self, scores: Array, block: Block, held: Amounts) -> int:
        """Look at the next cuts (c) with members, of which so many are held. Tells how many cuts lie within the largest
        false positive rate.
        """
        heights = precision_at(block.tp, block.fp)
        values = np.stack([heights, heights + precision_at(block.tp_before, block.fp_before)])
        self._precision.add(values * held, total_of)
        for sought in chain.from_iterable(self._sought.values()):
            sought.look(scores, block)
        if not self.negatives:
            return 0
        if not self._crossed(self.crossing).any():
            there = self._crossed(block)
            self.crossing = _cut(block, int(there.argmax()) if there.any() else there.size - 1)
        if self.edge is not None:
            return 0
        fpr = block.fp / self._sizes[1]
        inside = int(np.searchsorted(fpr, self._max_fpr, side="right"))
        self.edge = _cut(block, inside) if inside < fpr.size else None
        return inside

    def _crossed(self, block: Block) -> Mask:
        crossed: Mask = block.fp / self._sizes[1] + block.tp / self._sizes[0] >= 1.0
        return crossed


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


def inserted(hull: tuple[Amounts, Amounts], tp: Amounts, fp: Amounts) -> Iterator[Amounts]:
    """Points of the hull that ends at the last of all samples, with others before that one."""
    for side, new in zip(hull, (tp, fp), strict=True):
        yield np.concatenate([side[:-1], new.astype(side.dtype), side[-1:]])


def _cut(block: Block, at: int) -> Block:
    return Block(*(side[at : at + 1] for side in block if side is not None))
