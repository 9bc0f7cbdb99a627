"""Quantities read off the cuts of a streamed ranking, from the highest score down: areas, curves, thresholds."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from itertools import chain
from typing import Any, Literal, NamedTuple, Self

import numpy as np

from app.kernel.folds.entries import Counts, Digits, Grid, NotFolded, WeightTotals, floor_key, mirrored, starts_of
from app.kernel.folds.groups import GroupArea, GroupSums, area_of_groups
from app.kernel.folds.runs import Between, Cuts, InGroups, InOrder, Reader, Run, Stretch, between, placed
from app.kernel.folds.sums import SMALL, BinSums, FoldedBins, MassSums, WeightedBins, WeightedMass
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, row_sums, weighted_spread
from app.kernel.numerics.monotone import STRETCH, Amounts, outside, rows_outside, upper_hull
from app.kernel.samples.rankings import (
    CutBlock,
    Ranking,
    Row,
    equal_error_rate,
    precision_at,
    standardised_partial_area,
)
from app.kernel.samples.scores import Codes, Scores


def placements(samples: InGroups, cuts: Cuts, above: tuple[int, int]) -> GroupSums:
    """Of others and members (0 and 1) in each group, twice the samples of the other side above them, ties once.

    Args:
        samples: Of a stretch.
        cuts: All of the stretch.
        above: Members and others with higher scores.
    """
    tp, fp = above[0] + np.cumsum(cuts.members), above[1] + np.cumsum(cuts.others)
    at = cuts.scores.size - 1 - np.searchsorted(cuts.scores[::-1], samples.scores)
    twice = np.where(samples.members, (2 * fp - cuts.others).take(at), (2 * tp - cuts.members).take(at))
    return GroupSums(1).add(samples.groups, samples.members.astype(np.int64), twice[None], samples.times)


_MOST_STEPS, _FEWEST_STEPS = 500, 20
# Steps over all classes together, about.
_STEPS = 1000
# How many steps of the rates a step of the number predicted is wide, as a share of that number.
_WIDTH = 10
# Standard errors between two kept ranks next to a median, and how far out these go.
_STEP, _REACH = 0.125, 5.0


class Points(NamedTuple):
    """Some cuts of a ranking from the highest score down, and how many there are in all."""

    thresholds: Sequence[float]
    tp: Sequence[float]
    fp: Sequence[float]
    n_cuts: int


# Numbers of members, of others and of both together, or what these weigh; each rising.
Levels = Sequence[Counts | Array]


def levels_of_curves(positives: int, negatives: int, n_classes: int) -> Levels:
    """Members and others have equal steps, 500 of them for two classes; of both together a step is 1 in 50 of their
    number. Between two cuts at these levels neither rate changes by more than a step, unless it does so in one cut, nor
    does the number predicted.

    Args:
        positives: Members of all samples.
        negatives: Others.
        n_classes: K, which share the points: each class has steps of 1 in 1000 / K, from 20 to 500.
    """
    steps = _steps(n_classes)
    rates = [[-(-size * step // steps) for step in range(1, steps + 1)] for size in (positives, negatives)]
    predicted = _growing(positives + negatives, steps)
    return [np.unique(np.array(levels, dtype=np.int64)) for levels in (*rates, predicted)]


def levels_of_weights(positives: float, negatives: float, n_samples: int, n_classes: int) -> Levels:
    """The same of what members and others weigh, where so many samples of the mean weight are as much together."""
    steps = _steps(n_classes)
    rates = [np.arange(1, steps + 1) * size / steps for size in (positives, negatives)]
    for levels, size in zip(rates, (positives, negatives), strict=True):
        levels[-1] = size
    predicted = np.array(_growing(n_samples, steps)) * ((positives + negatives) / n_samples)
    return [np.unique(levels) for levels in (*rates, predicted)]


def _steps(n_classes: int) -> int:
    return min(max(_STEPS // n_classes, _FEWEST_STEPS), _MOST_STEPS)


def _growing(size: int, steps: int) -> list[int]:
    found = [1]
    while found[-1] < size:
        found.append(found[-1] + max(found[-1] * _WIDTH // steps, 1))
    return found


def levels_near_median(positives: int) -> Levels:
    """Members by steps of a part of the standard error of their median, in ranks, as far as resamples go."""
    error = 0.5 * positives**0.5
    ranks = np.ceil(0.5 * positives + error * np.arange(-_REACH, _REACH + _STEP, _STEP))
    ranks = np.append(ranks.clip(min(positives, 1), positives), positives)
    none = np.zeros(0, dtype=np.int64)
    return [np.unique(ranks.astype(np.int64)), none, none]


class KeptPoints:
    """The first cut at which the members, the others or both together reach the next of some numbers. Which cuts are
    kept depends on these counts only.
    """

    def __init__(self, levels: Levels, above: tuple[float, float] = (0, 0)) -> None:
        """Begin above all cuts, or below some.

        Args:
            levels: The numbers.
            above: Members and others of higher cuts, at which others look.
        """
        passed = (*above, sum(above))
        self._levels = [one[np.searchsorted(one, low, "right") :] for one, low in zip(levels, passed, strict=True)]
        self._thresholds: list[float] = []
        self._counts: tuple[list[float], list[float]] = [], []
        self._n_cuts = 0

    def add(self, scores: Array, tp: Counts | Array, fp: Counts | Array) -> None:
        """Go on with the next lower scores (c), falling, and how many members and others have at least each."""
        self._n_cuts += scores.size
        kept = np.unique(np.concatenate([self._reached(0, tp), self._reached(1, fp), self._reached(2, tp + fp)]))
        self._thresholds += scores.take(kept).tolist()
        for side, counts in zip(self._counts, (tp, fp), strict=True):
            side += counts.take(kept).tolist()

    def _reached(self, which: int, counts: Counts | Array) -> Counts:
        levels = self._levels[which]
        there = int(np.searchsorted(levels, counts[-1], side="right"))
        self._levels[which] = levels[there:]
        return np.searchsorted(counts, levels[:there], side="left").astype(np.int64)

    def merge(self, other: Self) -> None:
        """Go on with the next lower scores, at which another has looked."""
        self._n_cuts += other._n_cuts
        self._thresholds += other._thresholds
        for own, more in zip(self._counts, other._counts, strict=True):
            own += more
        self._levels = other._levels

    def read(self) -> Points:
        """What there is so far."""
        return Points(self._thresholds, *self._counts, self._n_cuts)


class KeptRanking(Ranking):
    """A ranking of which some cuts are known, and what curves say of all of them.

    Args:
        points: The cuts.
        auc: Area under the ROC curve, NaN where there is none.
        precision_sum: Trapezoid under precision over the members.
        bins: Of equal width, of probabilities.
    """

    def __init__(self, points: Points, auc: float, precision_sum: float, bins: FoldedBins | None) -> None:
        self.weights = None
        self._points, self._bins = points, bins
        self.__dict__.update(auc=np.asarray(auc), precision_sum=np.asarray(precision_sum))

    @property
    def left_out(self) -> int:
        """Cuts that are not known."""
        return self._points.n_cuts - len(self._points.thresholds)

    def cuts(self) -> tuple[Array, Array, Array]:
        """Those that are known, with the empty one in front."""
        points = self._points
        first, rest = ([np.nan], [0.0], [0.0]), (points.thresholds, points.tp, points.fp)
        thresholds, tp, fp = (
            np.concatenate([one, np.array(more, float)]) for one, more in zip(first, rest, strict=True)
        )
        return thresholds, tp, fp

    def between(self, limits: Array) -> tuple[Array, Array, Array]:
        """Weight, sum of scores and weight of members in bins of equal width."""
        if self._bins is None:
            raise NotFolded("scores that are no probabilities have no bins")
        return self._bins.between(limits)

    def __getattr__(self, name: str) -> Any:
        raise NotFolded(f"{name} needs the samples of a ranking, which were folded")


class KeptScores(Scores):
    """Scores of which curves are kept, and nothing else."""

    def __init__(self, rankings: Sequence[KeptRanking], top_label: FoldedBins | None) -> None:
        self.weights = None
        self.are_probabilities = top_label is not None
        self.n_classes = len(rankings)
        self._kept = rankings
        self.__dict__["top_label"] = KeptRanking(Points((), (), (), 0), np.nan, np.nan, top_label)

    def ranking(self, code: int) -> KeptRanking:
        """That of a class."""
        return self._kept[code]

    def falling(self, code: int | None) -> tuple[Ranking, Codes]:
        """That of a class, or of the top label; the order of the samples is not known."""
        return self.top_label if code is None else self._kept[code], np.empty(0, dtype=np.intp)

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Self:
        """From what `curves_as_json` made."""
        made = []
        for one in stored["classes"]:
            auc, area = (np.nan if one[name] is None else one[name] for name in ("auc", "precision_sum"))
            points = Points(*(one[name] for name in Points._fields))
            made.append(KeptRanking(points, auc, area, _bins(one["bins"])))
        return cls(made, _bins(stored["top_label"]))

    def __getattr__(self, name: str) -> Any:
        raise NotFolded(f"{name} needs the samples, which were folded")


def _bins(stored: Sequence[Sequence[float]] | None) -> FoldedBins | None:
    if stored is None:
        return None
    weight, scores, members = map(np.array, stored)
    return FoldedBins(weight, scores, members)


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
        self.crossing = CutBlock(*np.zeros((5, 1)))
        self.edge: CutBlock | None = None
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

    def _look(self, scores: Array, block: CutBlock, held: Amounts) -> int:
        """Look at the next cuts (c) with members, of which so many are held. Tells how many cuts lie within the largest
        false positive rate.
        """
        heights = precision_at(block.tp, block.fp)
        values = np.stack([heights, heights + precision_at(block.tp_before, block.fp_before)])
        self._precision.add(values * held, row_sums)
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

    def _crossed(self, block: CutBlock) -> Mask:
        crossed: Mask = block.fp / self._sizes[1] + block.tp / self._sizes[0] >= 1.0
        return crossed


class _Sought:
    """The score of the first cut with at least so many members, or with more; of the last cut if there is none."""

    def __init__(self, members: float, side: Literal["left", "right"]) -> None:
        self.score = np.nan
        self._members, self._side, self._found = members, side, False

    def look(self, scores: Array, block: CutBlock) -> None:
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


def _cut(block: CutBlock, at: int) -> CutBlock:
    return CutBlock(*(side[at : at + 1] for side in block if side is not None))


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
            block = CutBlock(*(values.astype(np.float64) for values in (tp, fp, tp - held, fp_before, held)))
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


# Cuts whose sums are in memory together.
_PART = 1 << 16


class WeightedSide(NamedTuple):
    """Members of a class, or all others.

    Attributes:
        weight: In whole numbers.
        used: Samples with a weight above 0.
    """

    weight: int
    used: int


class WeightedCuts(NamedTuple):
    """Distinct scores (c), falling, and what members and others with each weigh (d, c); sums of the squared weights of
    members and of others (2, c).
    """

    scores: Array
    members: Digits
    others: Digits
    squares: Array

    def part(self, rows: slice) -> Self:
        """Some of them."""
        return self.__class__(self.scores[rows], self.members[:, rows], self.others[:, rows], self.squares[:, rows])


class Weighed(NamedTuple):
    """A stretch of samples with weights.

    Attributes:
        grids: For sums of weights, and of their squares.
    """

    stretch: Stretch
    grids: tuple[Grid, Grid]

    def sizes(self) -> tuple[int, int]:
        """What members and others weigh, in whole numbers."""
        found, grid = self.stretch.in_weights(), self.grids[0]
        digits = grid.digits(found.weights)
        members, whole = grid.total(digits[:, found.members]), grid.total(digits)
        return members, whole - members

    def cuts(self) -> WeightedCuts:
        """The cuts between them."""
        found, (grid, of_squares) = self.stretch.in_weights(), self.grids
        order = np.argsort(found.scores)[::-1]
        scores, members = found.scores.take(order), found.members.take(order)
        starts = starts_of(scores)
        weights = grid.digits(found.weights.take(order))
        squares = of_squares.digits(found.squares.take(order))
        sides = members, ~members
        return WeightedCuts(
            scores.take(starts),
            grid.added(weights * members, starts),
            grid.added(weights * ~members, starts),
            np.stack([of_squares.rounded(of_squares.added(squares * side, starts)) for side in sides]),
        )


class AlongWeights(CutByCut):
    """The cuts of one ranking of samples with weights.

    Args:
        grid: Of the weights.
        sides: Members and others.
        max_fpr: Where the partial area ends.
        quantiles: Of the scores of the members.
        n_classes: How many classes there are, which share the points of their curves.
        n_samples: All of them.
        binned: Are scores probabilities, which have bins?
        above: What members and others with higher scores than those that are added here weigh.
    """

    positives: Fraction
    negatives: Fraction

    def __init__(
        self,
        grid: Grid,
        sides: tuple[WeightedSide, WeightedSide],
        max_fpr: float,
        quantiles: tuple[float, ...],
        n_classes: int,
        n_samples: int,
        *,
        binned: bool = True,
        above: tuple[int, int] = (0, 0),
    ) -> None:
        weights = sides[0].weight, sides[1].weight
        sizes = grid.rounded_units(weights[0]), grid.rounded_units(weights[1])
        passed = grid.rounded_units(above[0]), grid.rounded_units(above[1])
        super().__init__(
            grid.fraction(weights[0]),
            grid.fraction(weights[1]),
            sizes,
            max_fpr,
            quantiles,
            KeptPoints(levels_of_weights(*sizes, n_samples, n_classes), passed),
            KeptPoints([np.zeros(0)] * 3),
        )
        self._grid, self._sides = grid, sides
        self._bins = WeightedBins() if binned else None
        self._reached = above
        # Of members, and of others: squared weights, and their products with twice the weight of the other side above
        # each, and with its square. In front the weight of members with twice that of the others above them.
        self._sums = ExactSums((7,))
        # Weight of the members within the largest rate, and the same products.
        self._inside = ExactSums((2,))
        self._hull = np.array([0, weights[0]], object), np.array([0, weights[1]], object)

    @property
    def twice_lost(self) -> Fraction:
        """Twice the weight of the pairs in which the other one has the higher score, ties once."""
        return self._sums.exact()[0]

    @property
    def area_inside(self) -> float:
        """Area in pairs under the cuts up to the largest false positive rate."""
        members, lost = self._inside.exact()
        return float(members * Fraction(self._max_fpr * self._sizes[1]) - lost / 2)

    @property
    def hull(self) -> tuple[Array, Array]:
        """Vertices (tp, fp) of the upper convex hull of the ROC curve."""
        tp, fp = (np.array([self._grid.rounded_units(units) for units in side.tolist()]) for side in self._hull)
        # Vertices that differ by less than is left of them are one.
        tp, fp = upper_hull(tp, fp)
        return np.ascontiguousarray(tp), np.ascontiguousarray(fp)

    def area_variance(self) -> float:
        """DeLong's variance of the area, linearised: members and others are parts of one sample drawn with replacement
        (Yao, Li & Graubard 2015). NaN without members or others.
        """
        if not self.positives or not self.negatives:
            return float("nan")
        lost, *sums = self._sums.exact()
        won = 2 * self.positives * self.negatives - lost
        sides = (lost, self.positives, self.negatives, sums[:3]), (won, self.negatives, self.positives, sums[3:])
        return float(
            sum(
                weighted_spread(total / own, squares, side.used) / (own * 2 * other) ** 2
                for (total, own, other, squares), side in zip(sides, self._sides, strict=True)
            )
        )

    def binned(self) -> FoldedBins | None:
        """Bins of equal width, of probabilities."""
        return None if self._bins is None else self._bins.read()

    def add(self, cuts: WeightedCuts) -> None:
        """Go on with the next lower scores."""
        for start in range(0, cuts.scores.size, _PART):
            self._add(cuts.part(slice(start, start + _PART)))

    def _take(self, other: Self) -> None:
        self._reached = other._reached
        if self._bins is not None and other._bins is not None:
            self._bins.merge(other._bins)
        self._sums.merge(other._sums)

    def _take_inside(self, other: Self) -> None:
        self._inside.merge(other._inside)

    def _add(self, cuts: WeightedCuts) -> None:
        grid = self._grid
        digits = [grid.cumulated(own, above) for own, above in zip(cuts[1:3], self._reached, strict=True)]
        before = [grid.rounded_units(above) for above in self._reached]
        self._reached = int(grid.units(digits[0][:, -1:])[0]), int(grid.units(digits[1][:, -1:])[0])
        reached = [np.concatenate([[first], grid.rounded(side)]) for first, side in zip(before, digits, strict=True)]
        tp, fp = reached[0][1:], reached[1][1:]
        held, others = grid.rounded(cuts.members), grid.rounded(cuts.others)
        self.points.add(cuts.scores, tp, fp)
        for start in range(0, tp.size, BLOCK):
            part = slice(start, start + BLOCK)
            if self._bins is not None:
                self._bins.add(cuts.scores[part], np.stack([others[part], held[part]]))
            above = reached[0][start : start + BLOCK + 1], reached[1][start : start + BLOCK + 1]
            self._add_block(cuts.scores[part], *above, held[part], cuts.squares[:, part])
        if self.positives and self.negatives:
            # What lies inside a hull of some of the points goes by rounded numbers; of what is left whole numbers tell.
            some = slice(None, None, STRETCH)
            kept = rows_outside(tp, fp, upper_hull(*inserted(self.hull, tp[some], fp[some])))
            left = (grid.units(side[:, kept]) for side in digits)
            self._hull = upper_hull(*inserted(self._hull, *left))

    def _add_block(self, scores: Array, tp: Array, fp: Array, held: Array, squares: Array) -> None:
        """Cuts (c) with what there is above them and above each next one (c + 1)."""
        twice = fp[1:] + fp[:-1], tp[1:] + tp[:-1]
        with_held = held * twice[0]
        rows = [with_held]
        for own, above in zip(squares, twice, strict=True):
            rows += [own, own * above, own * above * above]
        self._sums.add(np.stack(rows), row_sums)
        at = np.flatnonzero(held)
        if at.size:
            # What is before a cut with members is what is after the last one.
            block = CutBlock(*(side.take(at) for side in (tp[1:], fp[1:], tp[:-1], fp[:-1], held)))
            inside = self._look(scores.take(at), block, held.take(at))
            self._inside.add(np.stack([held, with_held]).take(at[:inside], axis=1), row_sums)


def along_weighed(begun: Callable[..., AlongWeights], part: tuple[Weighed, tuple[int, int]]) -> AlongWeights:
    """What adds up along a stretch of the order, in any process.

    Args:
        begun: Makes it, told what members and others above weigh.
        part: The stretch, and these numbers.
    """
    stretch, above = part
    along = begun(above=above)
    along.add(stretch.cuts())
    return along


# Of equals the first class is predicted: those of exactly 1/2 count from the other end.
_HALF_OF_KEY, _ABOVE = floor_key(0.5), floor_key(float(np.nextafter(0.5, 1.0)))


def top_label_stretches(own: Sequence[Run], paired: Sequence[Run], budget: int) -> Iterator[Between]:
    """All samples by falling highest probability, members being those that are right, in stretches of bounded size.

    Args:
        own: Runs of highest probabilities.
        paired: Runs of the probabilities of class 1 of two, where that of class 0 is 1 minus it.
        budget: Bytes of memory, about.
    """
    readers = [Reader(run) for run in own]
    readers += [Reader(run, lowest=_ABOVE) for run in paired]
    readers += [Reader(run, mirrored, lowest=_HALF_OF_KEY) for run in paired]
    return between(readers, budget)


def parts_of(stretches: Iterable[Between], n_samples: int, in_order: InOrder) -> FoldedBins:
    """Bins of equally many of so many samples along their order."""
    whole = MassSums(n_samples)
    for sums in in_order(partial(_of_stretch, n_samples), placed(stretches)):
        whole.merge(sums)
    return whole.read()


def weighted_parts_of(stretches: Iterable[Between], totals: WeightTotals, in_order: InOrder) -> FoldedBins:
    """Bins of equal weight along the order of samples that weigh so much."""
    grids = totals.grids()
    total = sum(grids[0].whole(weight) for weight in totals.by_class()[0])
    whole = WeightedMass(grids[0].rounded_units(total))
    weighed = (Weighed(stretch, grids) for stretch in stretches)
    for sums in in_order(partial(_of_weighed, grids[0], total), placed(weighed)):
        whole.merge(sums)
    return whole.read()


def _of_weighed(grid: Grid, total: int, part: tuple[Weighed, tuple[int, int]]) -> WeightedMass:
    stretch, above = part
    sums, cuts = WeightedMass(grid.rounded_units(total)), stretch.cuts()
    reached = grid.rounded(grid.cumulated(cuts.members + cuts.others, sum(above)))
    sides = np.stack([grid.rounded(side) for side in (cuts.others, cuts.members)])
    sums.add_cuts(cuts.scores, sides, np.concatenate([[grid.rounded_units(sum(above))], reached]))
    return sums


def _of_stretch(n_samples: int, part: tuple[Between, tuple[int, int]]) -> MassSums:
    stretch, above = part
    sums = MassSums(n_samples, sum(above))
    place = sums.place_of(sum(stretch.sizes()))
    found = None if place is None else stretch.in_any_order()
    if place is None or found is None or found.scores.min() < SMALL:
        sums.add_cuts(*stretch.cuts())
    else:
        # Nothing has to be sorted.
        sums.add_to(place, *found)
    return sums


class FoldedRanking(Ranking):
    """What metrics read off a ranking, at their default parameters. What needs the samples again is ``NotFolded``.

    Attributes:
        area_variance: DeLong's variance of the area.
        area_variances: What members and others add to it; None of samples with weights, and without members or others.
        bins: Of equal width, of probabilities.
        points: The cuts that are kept.
        medians: Those at which the median member is likely to lie.

    Args:
        along: What all of them came to.
        max_fpr: Where the partial area ends.
    """

    def __init__(self, along: CutByCut, max_fpr: float) -> None:
        positives, negatives = along.positives, along.negatives
        pairs, lost = positives * negatives, along.twice_lost
        self.weights = None
        self.area_variance = along.area_variance()
        self.area_variances = along.area_variances() if pairs and isinstance(along, Along) else None
        self._along, self._max_fpr = along, max_fpr
        self.bins = along.binned()
        self.points, self.medians = along.points.read(), along.medians.read()
        # Where they stand takes several times as much memory as what comes of it.
        placed, along.placed = along.placed, None
        self._groups: GroupArea | None = None
        if placed is not None and isinstance(along, Along) and pairs:
            self._groups = area_of_groups(placed, along.varied)
        precision, trapezoid = along.precision()
        # Whole numbers of any size are divided once.
        self._read(
            positives=float(positives),
            negatives=float(negatives),
            losses=lost / 2,
            wins=(2 * pairs - lost) / 2,
            auc=(2 * pairs - lost) / (2 * pairs) if pairs else np.nan,
            average_precision=precision / positives if positives else np.nan,
            precision_sum=trapezoid,
            ks=along.gap if pairs else np.nan,
            equal_error_rate=self._equal_error_rate() if pairs else np.nan,
        )
        self.__dict__.update(hulls=[along.hull])

    @property
    def area_of_groups(self) -> GroupArea:
        """What groups add to the sampling error of the area."""
        if self._groups is None:
            raise ValueError("expected samples in groups, with members and others")
        return self._groups

    def _read(self, **attributes: float | Fraction) -> None:
        """Attributes that are computed at first use are there already."""
        self.__dict__.update({name: np.asarray(float(value)) for name, value in attributes.items()})

    def curves_as_json(self) -> dict[str, Any]:
        """What is kept of its curves."""
        known = {name: float(getattr(self, name)) for name in ("auc", "precision_sum")}
        areas = {name: None if np.isnan(area) else area for name, area in known.items()}
        return {
            **self.points._asdict(),
            **areas,
            "bins": None if self.bins is None else self.bins.as_lists(),
        }

    def between(self, limits: Array) -> tuple[Array, Array, Array]:
        """Weight, sum of scores and weight of members in bins of equal width."""
        if self.bins is None:
            raise NotFolded("scores that are no probabilities have no bins")
        return self.bins.between(limits)

    def partial_auc(self, max_fpr: float) -> Array:
        """Standardised area up to the false positive rate that was looked at."""
        along = self._along
        if max_fpr != self._max_fpr:
            raise NotFolded(f"the area was folded up to {self._max_fpr}, not {max_fpr}")
        if not along.positives or not along.negatives:
            return np.asarray(np.nan)
        edge = None if along.edge is None else along.edge[:4]
        sizes = float(along.positives), float(along.negatives)
        return np.asarray(standardised_partial_area(along.area_inside, edge, *sizes, max_fpr))

    def member_quantile(self, quantile: float) -> tuple[Array, Array]:
        """Scores of the members at one of the quantiles that were looked at."""
        if quantile not in self._along.quantiles:
            raise NotFolded(f"a quantile of {quantile} was not folded")
        lower, upper = self._along.quantiles[quantile]
        return np.asarray(lower), np.asarray(upper)

    def _equal_error_rate(self) -> float:
        """The one cut at which the rates meet is all that is looked at."""
        along = self._along
        sizes = {"positives": float(along.positives), "negatives": float(along.negatives)}
        return equal_error_rate(Row(lambda *_: along.crossing, 1, **sizes))

    def __getattr__(self, name: str) -> Any:
        raise NotFolded(f"{name} needs the samples of a ranking, which were folded")
