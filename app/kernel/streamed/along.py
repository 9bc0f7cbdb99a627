"""One pass along one order of streamed rows: areas, their variances, precision, thinned points of the curve.

Samples that weigh the same have weights of 1; there is no other way for them.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np

from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.hull import upper_hull
from app.kernel.samples.rankings import DistinctCuts, Positions, precision_at
from app.kernel.samples.scores import Side
from app.kernel.streamed.rows import Table
from app.kernel.streamed.spool import BLOCK

_MOST_STEPS, _FEWEST_STEPS = 500, 20
# Steps over all classes together, about.
_STEPS = 1000
# Steps of the rates that a step of the number predicted is wide, as a share of that number.
_WIDTH = 10
# Standard errors between two kept ranks next to a median, and how far out these go.
_STEP, _REACH = 0.125, 5.0
# Relative width within which a cumulative weight stands exactly at a quantile, as in memory.
_SLACK = 1e-12
# Variances below it, relative to the mean square, are rounding.
_ROUNDING = 1e-14
MAX_FPR = 0.1
_BEYOND = float(np.nextafter(MAX_FPR, 1.0))
_NONE = np.zeros(0)
QUANTILES = (0.25, 0.5, 0.75)


class Cuts(NamedTuple):
    """Distinct scores (c), falling; weight (c) of the members with each and of the others, and sums (2, c) of their
    squared weights.
    """

    scores: Array
    members: Array
    others: Array
    squares: Array

    def part(self, rows: slice) -> Self:
        """Some of them."""
        return self._replace(
            scores=self.scores[rows],
            members=self.members[rows],
            others=self.others[rows],
            squares=self.squares[:, rows],
        )


def cuts_of(batches: Iterable[Table], most: int = BLOCK) -> Iterator[Cuts]:
    """The cuts of batches with falling scores ``s``, members ``m`` and perhaps weights ``w``, of so many samples at a
    time. No score is in two.
    """
    return cuts_of_sums(map(_summed, pieces(batches, most)))


def pieces(batches: Iterable[Table], most: int = BLOCK) -> Iterator[Table]:
    """Yield batches in parts that stay in the cache."""
    for batch in batches:
        for start in range(0, next(iter(batch.values())).size, most):
            yield {name: column[start : start + most] for name, column in batch.items()}


def _summed(batch: Table) -> tuple[Array, list[Array]]:
    inside, weight = batch["m"].astype(np.float64), batch.get("w")
    columns = [inside, 1.0 - inside]
    if weight is not None:
        columns = [side * weight for side in columns]
        columns += [side * weight for side in columns]
    return batch["s"], columns


def cuts_of_sums(parts: Iterable[tuple[Array, list[Array]]]) -> Iterator[Cuts]:
    """The cuts of falling scores (n), and of members, others, and their squares where weights are not 1 (n)."""
    last: Array | None = None
    for scores, rows in parts:
        changes = scores[1:] != scores[:-1]
        if not changes.all():
            starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
            scores, rows = scores.take(starts), [np.add.reduceat(row, starts) for row in rows]
        found = np.stack([scores, *rows])
        if last is not None and last[0, 0] == found[0, 0]:
            found[1:, 0] += last[1:, 0]
        elif last is not None:
            found = np.concatenate([last, found], axis=1)
        # What comes next may have the last score too.
        last = found[:, -1:].copy()
        if found.shape[1] > 1:
            yield _cuts(found[:, :-1])
    if last is not None:
        yield _cuts(last)


def _cuts(found: Array) -> Cuts:
    scores, members, others = found[:3]
    # Where all weights are 1 so are their squares.
    return Cuts(scores, members, others, found[-2:])


class Levels:
    """Rising levels of a sum, reached one after the other."""

    def __init__(self, levels: Array) -> None:
        self._left = levels

    def reached(self, sums: Array) -> Positions:
        """Positions in the next rising sums (c) at which levels are reached first."""
        there = int(np.searchsorted(self._left, sums[-1], side="right"))
        found, self._left = self._left[:there], self._left[there:]
        return np.searchsorted(sums, found, side="left")


class _Kept:
    """The first cuts at which rising levels of some sums are reached."""

    def __init__(self, *levels: Array) -> None:
        self._levels, self._found = [*map(Levels, levels)], list[Array]()

    def add(self, sums: Sequence[Array], rows: Sequence[Array]) -> Positions:
        """Go on with the next cuts (c), which have such sums and rows; return the places of those that are kept."""
        at = np.unique(np.concatenate([level.reached(one) for level, one in zip(self._levels, sums, strict=True)]))
        self._found.append(np.stack([row.take(at) for row in rows]))
        return at

    @cached_property
    def found(self) -> Array:
        """The rows (r, c) of the kept cuts."""
        return np.concatenate(self._found, axis=1)


class Reduced(NamedTuple):
    """Samples between cuts of an order, from the highest score down: lowest score (c) of each cell, weight (2, c) of
    others and of members, sums (2, c) of squared weights, and mean score (c).
    """

    lowest: Array
    weights: Array
    squares: Array
    scores: Array


class Reduction:
    """Sums over cells of samples, while cuts come from the highest score down. A cell ends at each of some rising
    limits, whatever its size: scores above a limit are in another one.
    """

    def __init__(self, limits: Array) -> None:
        # Lowest score so far, and sums; the same at the end of each cell.
        self._limits, self._last, self._ends = Levels(-limits[::-1]), np.zeros((6, 1)), list[Array]()

    def add(self, cuts: Cuts, last: Positions) -> None:
        """Go on with the next lower scores (c); cells end at some of them, whose places rise."""
        rows = (cuts.others, cuts.members, *cuts.squares[::-1], (cuts.members + cuts.others) * cuts.scores)
        found = np.stack(
            [cuts.scores, *(before + np.cumsum(row) for before, row in zip(self._last[1:], rows, strict=True))]
        )
        found = np.concatenate([self._last, found], axis=1)
        # The cut before the first one that is not above a limit is the last of its cell.
        self._ends.append(found.take(np.union1d(last + 1, self._limits.reached(-cuts.scores)), axis=1))
        self._last = found[:, -1:].copy()

    @cached_property
    def cells(self) -> Reduced:
        """The cells, once all cuts were there."""
        lowest, *ends = np.concatenate([*self._ends, self._last], axis=1)
        sums = np.diff(ends, prepend=0.0)
        held = np.flatnonzero(sums[0] + sums[1])
        others, members, *squares, scores = sums.take(held, axis=1)
        weights = np.stack([others, members])
        lowest = lowest.take(held)
        # A rounding of the sums may move a mean out of its cell, and so below 0.
        return Reduced(lowest, weights, np.stack(squares), np.maximum(scores / weights.sum(axis=0), lowest))


def _levels(members: Side, others: Side, n_classes: int) -> list[Array]:
    """Levels between which neither rate changes by more than a step, unless it does so in one cut, nor does the number
    predicted by more than 1 in 50; nearer to each other about the median of the members.
    """
    steps = min(max(_STEPS // n_classes, _FEWEST_STEPS), _MOST_STEPS)
    rates = [_up_to(side.weight, steps) for side in (members, others)]
    size, total = members.used + others.used, members.weight + others.weight
    predicted = [1]
    while predicted[-1] < size:
        predicted.append(predicted[-1] + max(predicted[-1] * _WIDTH // steps, 1))
    shares = np.array(predicted) / max(size, 1)
    if n_classes == 2:
        # One order is that of both classes.
        shares = np.concatenate([shares, 1.0 - shares[shares < 1.0]])
    rates[0] = np.concatenate([rates[0], _near_median(members, steps)])
    return [np.unique(one) for one in (*rates, shares * total)]


def _up_to(size: float, steps: int) -> Array:
    levels: Array = np.arange(1, steps + 1) * size / steps
    # Sums along the order end a rounding below.
    levels[-1] = size * (1.0 - _SLACK)
    return levels


def _near_median(members: Side, steps: int) -> Array:
    """Levels of members by parts of the standard error of their median, as far as resamples go."""
    count = min(int(2.0 * _REACH / _STEP), steps)
    ranks = 0.5 + 0.5 * np.linspace(-_REACH, _REACH, count + 1) / max(members.effective, 1.0) ** 0.5
    unit = members.weight / max(members.used, 1)
    found: Array = np.ceil(ranks * members.used).clip(min(members.used, 1), members.used) * unit * (1.0 - _SLACK)
    return found


def _variance(side: Side, sums: Sequence[float]) -> float:
    """Variance of the weighted mean of values, drawn with replacement, times n / (n - 1); 0 where it is rounding. The
    sums are of weights times values, of squared weights times values, and of squared weights times squared values.
    """
    if not side.weight:
        return float("nan")
    first, own, square = sums
    mean = first / side.weight
    excess = square - 2.0 * mean * own + mean * mean * side.squares
    if excess <= _ROUNDING * max(square, mean * mean * side.squares):
        return 0.0
    return excess * side.scale_of_mean**2


class Along:
    """Everything that adds up along the cuts of one ranking. K classes share the points of their curves; cells end at
    rising limits. ``hull`` are the vertices (tp, fp) of the upper convex hull of the ROC curve.
    """

    def __init__(self, members: Side, others: Side, n_classes: int = 2, limits: Array = _NONE) -> None:
        self.members, self.others, self.whole, self.n_cuts = members, others, Side.summed([members, others]), 0
        self._kept, self.reduction = _Kept(*_levels(members, others, n_classes)), Reduction(limits)
        levels, slack = (1.0 - np.array(QUANTILES)) * members.weight, _SLACK * members.weight
        # At a quantile lies the first cut that reaches one level, and the first that exceeds another.
        ends = np.sort(np.concatenate([levels - slack, np.nextafter(levels + slack, np.inf)]))
        self._marks = _Kept(ends, np.array([_BEYOND]), np.array([1.0]))
        # Of members, others, both slopes of the precision (see `average_precision_variance`), and pairs lost by share.
        self._reached = np.zeros((5, 1))
        self._sums = np.zeros(13)
        self.hull = np.array([0.0, members.weight]), np.array([0.0, others.weight])

    def add(self, cuts: Cuts) -> None:
        """Go on with the next lower scores."""
        for start in range(0, cuts.scores.size, BLOCK):
            self._add(cuts.part(slice(start, start + BLOCK)))

    def _add(self, cuts: Cuts) -> None:
        held, others = cuts.members, cuts.others
        tp, tp_before = self._cumulative(0, held)
        fp, fp_before = self._cumulative(1, others)
        # Shares of the other side above, ties half; without a side they are 0.
        lost, won = (fp + fp_before) / (2.0 * self._sizes[1]), (tp + tp_before) / (2.0 * self._sizes[0])
        moves = held / (tp + fp) ** 2
        gained, gained_before = self._cumulative(2, fp * moves)
        moved, moved_before = self._cumulative(3, tp * moves)
        _, pairs_before = self._cumulative(4, held * lost)
        rows = cuts.scores, tp, fp, tp_before, fp_before, gained, moved, gained_before, moved_before
        self.n_cuts += tp.size
        self.reduction.add(cuts, self._kept.add((tp, fp, tp + fp), rows))
        tpr, fpr = tp / self._sizes[0], fp / self._sizes[1]
        self._marks.add((tp, fpr, tpr + fpr), (*rows[:5], pairs_before))
        if self.has_both:
            self._add_to_hull(tp, fp)
        weighed = cuts.squares[0] * lost, cuts.squares[1] * won
        sums = [held @ lost, weighed[0].sum(), weighed[0] @ lost, others @ won, weighed[1].sum(), weighed[1] @ won]
        at = np.flatnonzero(held)
        of_members = held.take(at)
        heights = precision_at(tp.take(at), fp.take(at))
        twice = heights + precision_at(tp_before.take(at), fp_before.take(at))
        sums += [heights @ of_members, twice @ of_members]
        own = tp / (tp + fp) - gained_before
        for squares, values in zip(cuts.squares, (own, moved_before), strict=True):
            weighed_values = squares * values
            sums += [weighed_values.sum(), weighed_values @ values]
        both = held + others
        away = held / both - self.members.weight / self.whole.weight
        sums.append(both @ (away * away))
        self._sums += sums

    @property
    def _sizes(self) -> tuple[float, float]:
        """Weights of members and others, or 1 where there are none."""
        return self.members.weight or 1.0, self.others.weight or 1.0

    def _cumulative(self, place: int, values: Array) -> tuple[Array, Array]:
        """Sums (c) with each of the next cuts, and before it."""
        sums = np.concatenate([[0.0], np.cumsum(values)]) + self._reached[place]
        self._reached[place] = sums[-1]
        return sums[1:], sums[:-1]

    def _add_to_hull(self, tp: Array, fp: Array) -> None:
        both = zip(self.hull, (tp, fp), strict=True)
        sides = [np.concatenate([side[:-1], np.minimum(more, side[-1]), side[-1:]]) for side, more in both]
        self.hull = upper_hull(*sides)

    @property
    def _totals(self) -> list[float]:
        found: list[float] = self._sums.tolist()
        return found

    @property
    def has_both(self) -> bool:
        """Are there members and others?"""
        return bool(self.members.weight and self.others.weight)

    @property
    def lost(self) -> float:
        """Weight of the pairs in which the other one has the higher score, ties half."""
        return self._totals[0] * self.others.weight

    @property
    def area(self) -> float:
        """Area under the ROC curve; NaN without members or others."""
        return 1.0 - self._totals[0] / self.members.weight if self.has_both else float("nan")

    @cached_property
    def variances(self) -> tuple[float, float]:
        """Parts of DeLong's variance of the area that members and others add; NaN without either.

        Of weighted samples it is linearised: both are parts of one sample drawn with replacement (Yao, Li & Graubard
        2015).
        """
        if not self.has_both:
            return float("nan"), float("nan")
        found = self._totals
        return _variance(self.members, found[0:3]), _variance(self.others, found[3:6])

    @property
    def precision(self) -> float:
        """Sum of the precision at the members."""
        return self._totals[6]

    @property
    def precision_trapezoid(self) -> float:
        """Sum of the precision at the members, by trapezoids."""
        return 0.5 * self._totals[7]

    @property
    def resolution(self) -> float:
        """Variance of the frequency of the members over the distinct scores."""
        return self._totals[12] / self.whole.weight

    @cached_property
    def average_precision_variance(self) -> float:
        """Variance of the average precision, as of the influences that `precision_placements` gives; NaN without
        members.
        """
        if not self.members.weight:
            return float("nan")
        of_members, members_twice, of_others, others_twice = self._totals[8:12]
        gained, lost = self.precision_slopes
        squares = self.members.squares, self.others.squares
        spread = members_twice + 2.0 * gained * of_members + gained * gained * squares[0]
        spread += others_twice - 2.0 * lost * of_others + lost * lost * squares[1]
        # What is a rounding of its parts is none.
        size = members_twice + gained * gained * squares[0] + others_twice + lost * lost * squares[1]
        return 0.0 if spread <= _ROUNDING * size else spread * (self.whole.scale / self.members.weight) ** 2

    @property
    def precision_slopes(self) -> tuple[float, float]:
        """Slopes of all members less the average precision, and of all others."""
        gained, lost = self._reached[2:4, 0].tolist()
        return gained - self.precision / self.members.weight, lost

    @property
    def marks(self) -> Array:
        """Scores, tp, fp, tp_before, fp_before (5, c) of the cuts at which values are read: the quantiles of the
        members, the first beyond the largest false positive rate, and the first with TPR + FPR >= 1; and the share of
        the pairs that is lost above each.
        """
        return self._marks.found

    @property
    def gap(self) -> float:
        """The largest TPR - FPR, which a vertex of the hull has."""
        tp, fp = self.hull
        return float((tp * (1.0 / self.members.weight) - fp * (1.0 / self.others.weight)).max())

    @property
    def points(self) -> DistinctCuts:
        """Some of the cuts."""
        return DistinctCuts(*self._kept.found[:3])

    @cached_property
    def places(self) -> tuple[Array, Array]:
        """Scores (3 c) just below, at and just above the kept cuts, rising, and (4, 3 c) what is known there: the share
        of the others above and of the members above, ties half; the precision of a member less what members above
        have added to its slope; and what these lose together by one more sample that is none.

        Between them it is interpolated. Variances made of it are off by some 1e-6 of themselves.
        """
        scores, tp, fp, tp_before, fp_before, gained, moved, gained_before, moved_before = self._kept.found[:, ::-1]
        height, height_before = precision_at(tp, fp), precision_at(tp_before, fp_before)
        rows = [
            # Neighbours may touch where scores are next to each other.
            (np.nextafter(scores, -np.inf), scores, np.nextafter(scores, np.inf)),
            [part / self._sizes[1] for part in (fp, 0.5 * (fp + fp_before), fp_before)],
            [part / self._sizes[0] for part in (tp, 0.5 * (tp + tp_before), tp_before)],
            (height - gained, height - gained_before, height_before - gained_before),
            (moved, moved_before, moved_before),
        ]
        found = np.stack([np.stack(row, axis=1).ravel() for row in rows])
        return np.maximum.accumulate(found[0]), found[1:]


def between(scores: Array, known: Array, values: Array) -> Array:
    """Values (n) at scores, linear between known ones; in order places are found sooner than sorting takes."""
    if (scores[1:] <= scores[:-1]).all():
        return np.interp(scores, known, values)
    found, order = np.empty(scores.size), np.argsort(scores)
    found[order] = np.interp(scores.take(order), known, values)
    return found


def placements(curve: Along, scores: Array, members: Mask, scales: tuple[float, float] | None = None) -> Array:
    """Influence (n) on the area of a ranking of some of its samples in any order, in each unit of weight.

    Without weights the sum of squares over all samples is DeLong's variance. Influences of one sample on several areas
    add up: those of all classes for an average, those of two runs with opposite signs for a difference, those of the
    samples of a group for clustered data (Obuchowski 1997). ``scales`` are factors of the deviations of members and of
    others; None: by which squares add up to the variance.
    """
    (known, (lost, won, *_)), area, away = curve.places, curve.area, np.zeros(scores.size)
    scales = scales or (curve.members.scale_of_mean, curve.others.scale_of_mean)
    of_members, of_others = curve.variances
    # Where all places are equal they are so without a rounding.
    if of_members:
        at = np.flatnonzero(members)
        away[at] = (1.0 - between(scores.take(at), known, lost) - area) * scales[0]
    if of_others:
        at = np.flatnonzero(~members)
        away[at] = (between(scores.take(at), known, won) - area) * scales[1]
    return away


def precision_placements(curve: Along, scores: Array, members: Mask) -> Array:
    """Influence (n) on the average precision of a ranking, in each unit of weight, of some of its samples in any order;
    as `app.kernel.samples.areas.precision_influence`.
    """
    (known, (*_, terms, moved)), away, (gained, lost) = curve.places, np.zeros(scores.size), curve.precision_slopes
    if curve.average_precision_variance:
        at, others = np.flatnonzero(members), np.flatnonzero(~members)
        away[at] = between(scores.take(at), known, terms) + gained
        away[others] = between(scores.take(others), known, moved) - lost
    return away * (curve.whole.scale / curve.members.weight)
