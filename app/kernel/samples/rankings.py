"""Samples in the order of a score: cumulative counts at every cut, and the areas, hulls, quantiles and sums derived
from them.

Cuts are processed in pieces that fit in the cache.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask, lazy, ratio, silently
from app.kernel.numerics.hull import upper_hull

Positions = NDArray[np.intp]
Places = NDArray[np.integer]
# Sums of weights, or integers where every sample counts 1: these add up several times faster.
Amounts = NDArray[np.floating | np.integer]
# Ends x1, x2 of edges and the heights y1, y2 there, x rising, each (e).
Edges = tuple[Array, Array, Array, Array]

# Relative tolerance within which a cumulative weight equals a quantile.
_SLACK = 1e-12


class Row(NamedTuple):
    """Cuts (c) of one row of a batch, with the members and the non-members of all."""

    tp: Array
    fp: Array
    tp_before: Array
    fp_before: Array
    positives: float
    negatives: float

    def area_up_to(self, fpr: float) -> float:
        """Area under recall up to a false positive rate: a member counts by how far it lies before that."""
        limit = fpr * self.negatives
        cut = int(np.searchsorted(self.fp, limit, side="right"))
        tp, fp, tp_before, fp_before = (side[:cut] for side in self[:4])
        area = float((tp - tp_before) @ (limit - 0.5 * (fp + fp_before)))
        if cut < self.fp.size and self.fp_before[cut] < limit:
            run, width = limit - float(self.fp_before[cut]), float(self.fp[cut] - self.fp_before[cut])
            area += 0.5 * run * run / width * float(self.tp[cut] - self.tp_before[cut])
        return area / (self.positives * self.negatives)

    @property
    def along_fpr(self) -> Edges:
        """Recall over the false positive rate."""
        # Level up to each cut, then the edge of the cut; level to the end after the last.
        x = np.concatenate([[0.0], np.stack([self.fp_before, self.fp], axis=-1).ravel() / self.negatives, [1.0]])
        y = np.concatenate([[0.0], np.stack([self.tp_before, self.tp], axis=-1).ravel() / self.positives, [1.0]])
        return x[:-1], x[1:], y[:-1], y[1:]

    @property
    def along_recall(self) -> Edges:
        """Specificity over recall."""
        x1, x2 = self.tp_before / self.positives, self.tp / self.positives
        return x1, x2, 1.0 - self.fp_before / self.negatives, 1.0 - self.fp / self.negatives


def _linear(start: Array, end: Array, x: Array, y: Array, slope: Array) -> Array:
    """Integrals (e) of y + slope (u - x) over u from start to end, each (e)."""
    middle: Array = 0.5 * (start + end) - x
    return (end - start) * (y + slope * middle)


def under(
    edges: Edges, low: float, high: float, integral: Callable[[Array, Array, Array, Array, Array], Array] = _linear
) -> float:
    """Integral of the heights between two abscissae."""
    x1, x2, y1, y2 = edges
    start, end = np.maximum(x1, low), np.minimum(x2, high)
    held = start < end
    x1, x2, y1, y2 = x1[held], x2[held], y1[held], y2[held]
    return float(integral(start[held], end[held], x1, y1, (y2 - y1) / (x2 - x1)).sum())


def cumulative(values: Array) -> Array:
    """Sums of the first 0, 1, ... n values along the last axis."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return sums


def sums_between(values: Array, starts: Positions) -> Array:
    """Sums (..., b) of values (..., n) between b + 1 rising positions."""
    filled, found = np.flatnonzero(np.diff(starts)), np.zeros((*values.shape[:-1], starts.size - 1))
    found[..., filled] = np.add.reduceat(values[..., : starts[-1]], starts.take(filled), axis=-1)
    return found


def precision_at(tp: Amounts, fp: Amounts) -> Array:
    """Precision along cuts; 1 where nothing is predicted."""
    return precision_of(tp, tp + fp)


def precision_of(tp: Amounts, predicted: Amounts) -> Array:
    """Precision from members and samples predicted, of one shape; 1 where nothing is predicted."""
    with silently():
        values: Array = np.true_divide(tp, predicted)
    empty = predicted == 0
    if empty.any():
        values[empty] = 1.0
    return values


def equal_error_rate(row: Row) -> float:
    """False positive rate at which it equals the false negative rate, on the polygon of the ROC curve."""
    cut = min(int(np.searchsorted(row.fp / row.negatives + row.tp / row.positives, 1.0)), row.fp.size - 1)
    tpr, tpr_before = (float(side[cut]) / row.positives for side in (row.tp, row.tp_before))
    fpr, fpr_before = (float(side[cut]) / row.negatives for side in (row.fp, row.fp_before))
    if fpr_before + tpr_before >= 1.0:
        # It lies on the level segment before the cut.
        return 1.0 - tpr_before
    share = (1.0 - fpr_before - tpr_before) / (fpr - fpr_before + tpr - tpr_before)
    return fpr_before + share * (fpr - fpr_before)


def standardised(area: Array, low: float, high: float) -> Array:
    """Area in McClish's (1989) form: 1/2 for the diagonal, 1 for the largest possible."""
    chance, largest = 0.5 * (high - low) * (high + low), high - low
    return 0.5 * (1.0 + (area - chance) / (largest - chance))


@dataclass(frozen=True, slots=True)
class DistinctCuts:
    """All distinct cuts of a ranking, the empty one first. Samples with scores of at least the threshold (NaN: none)
    are predicted.
    """

    thresholds: Array
    tp: Array
    fp: Array

    @property
    def positives(self) -> float:
        """Weight of all members."""
        return float(self.tp[-1])

    @property
    def negatives(self) -> float:
        """Weight of all non-members."""
        return float(self.fp[-1])


@dataclass(frozen=True, slots=True)
class Bins:
    """Weight, summed scores and weight of the members of each bin, from the highest down, each of shape (..., b)."""

    weight: Array
    expected: Array
    observed: Array

    @property
    def gaps(self) -> Array:
        """Observed less expected frequency of each bin, times its share of the weight, shape (..., b); the error is the
        sum of their sizes.
        """
        return ratio(self.observed - self.expected, self.weight.sum(axis=-1, keepdims=True))

    @property
    def gaps_within(self) -> Array:
        """Observed less expected frequency of each bin, 0 where it is empty, shape (..., b)."""
        return ratio(self.observed - self.expected, np.where(self.weight > 0, self.weight, 1.0))

    def gaps_of(self, norm: str) -> Array:
        """Gaps (..., b) whose norm is a calibration error: l1 the mean, l2 the root mean square, max the largest."""
        if norm == "l1":
            return self.gaps
        shares = ratio(self.weight, self.weight.sum(axis=-1, keepdims=True))
        return self.gaps_within * np.sqrt(shares) if norm == "l2" else self.gaps_within

    @property
    def error(self) -> Array:
        """Weighted mean of |observed - expected| frequency, shape (...)."""
        return np.asarray(np.abs(self.gaps).sum(axis=-1))


def _of_ranking(meaning: str, compute: "Callable[[Ranking], Array]") -> "lazy[Ranking, Array]":
    return lazy(compute, meaning)


class Ranking:
    """Samples by falling score, with cumulative counts and statistics at the cuts that hold members of a class.

    Samples of one score are one cut, never split. Cuts without members are left out, because only precision changes
    there. ``tp`` and ``fp`` (..., c) are the members and the non-members, by count or weight, with a score of at least
    that of the cut; ``tp_before`` and ``fp_before`` those above it. Leading axes are a batch of weights over the one
    order.

    Args:
        values: Scores (n,), falling.
        members: Mask (n,) of the members, in that order.
        weights: Shape (..., n) in that order, or None for 1 each.
        places: Places (n) of the samples in the order in which they came; None where that is this one.
    """

    def __init__(
        self, values: Array, members: Mask, weights: Array | None = None, places: Places | None = None
    ) -> None:
        self.values, self.members, self.weights = values, members, weights
        self.places = np.arange(members.size) if places is None else places

    def in_place(self, values: Array) -> Array:
        """Values (n) of the samples in the order in which they came."""
        found = np.empty(values.size)
        found[self.places] = values
        return found

    @cached_property
    def each(self) -> Array:
        """Weight of each sample, shape (..., n)."""
        return np.ones(self.members.size) if self.weights is None else self.weights

    @cached_property
    def _falls(self) -> Mask:
        """Mask (n - 1) of the samples after which the score falls."""
        falls: Mask = self.values[1:] != self.values[:-1]
        return falls

    @cached_property
    def starts(self) -> Positions:
        """First positions of all cuts, with members or without."""
        if not self.has_ties:
            return np.arange(self.members.size)
        return np.append(0, np.flatnonzero(self._falls) + 1)

    @cached_property
    def last(self) -> Positions:
        """Last positions of all cuts."""
        return np.append(self.starts[1:], self.members.size) - 1

    @cached_property
    def has_ties(self) -> bool:
        """Do several samples have one score?"""
        return not self._falls.all()

    @cached_property
    def _ends(self) -> tuple[Positions, Positions]:
        """Number of samples before each cut that holds members, and up to it."""
        at = np.flatnonzero(self.members)
        if not self.has_ties:
            return at, at + 1
        holds = np.zeros(self.starts.size, dtype=np.bool_)
        holds[np.searchsorted(self.last, at)] = True
        held = np.flatnonzero(holds)
        return self.starts.take(held), self.last.take(held) + 1

    @cached_property
    def members_among(self) -> Amounts:
        """Members among the first 0, 1, ... n samples, by weight, shape (..., n + 1)."""
        return self._among(self.members)

    @cached_property
    def others_among(self) -> Amounts:
        """Non-members among the first 0, 1, ... n samples, by weight, shape (..., n + 1)."""
        return self._among(~self.members)

    def _among(self, side: Mask) -> Amounts:
        """Samples of a side (n) among the first 0, 1, ... n, by weight, shape (..., n + 1)."""
        if self.weights is not None:
            return cumulative(self.weights * side)
        # Squares of sums of them have to fit too.
        counts = np.zeros(side.size + 1, dtype=np.int64)
        np.cumsum(side, out=counts[1:])
        return counts

    def _members_of(self, counts: Positions) -> Array:
        """Members among the first ``counts`` (q) samples, by weight, shape (..., q)."""
        return self.members_among.take(counts, axis=-1).astype(np.float64, copy=False)

    def _others_of(self, counts: Positions, members: Array) -> Array:
        """Non-members among the first ``counts`` (q) samples, by weight, beside the members (..., q) among them."""
        if self.weights is None:
            return counts - members
        return self.others_among.take(counts, axis=-1).astype(np.float64, copy=False)

    @property
    def _size(self) -> Positions:
        """Number () of all samples."""
        return np.array(self.members.size)

    @lazy
    def fp_before(self) -> Array:
        """Non-members above each cut, shape (..., c)."""
        return self._others_of(self._ends[0], self.tp_before) if self.has_ties else self.fp

    tp = _of_ranking("Members up to and with each cut, shape (..., c).", lambda r: r._members_of(r._ends[1]))
    fp = _of_ranking("Non-members up to and with each cut, shape (..., c).", lambda r: r._others_of(r._ends[1], r.tp))
    tp_before = _of_ranking("Members above each cut, shape (..., c).", lambda r: r._members_of(r._ends[0]))
    positives = _of_ranking("Members, shape (...).", lambda r: r._members_of(r._size))
    negatives = _of_ranking("Non-members, shape (...).", lambda r: r._others_of(r._size, r.positives))
    thresholds = _of_ranking("Scores (c) of the cuts.", lambda r: r.values.take(r._ends[0]))

    @property
    def held(self) -> Array:
        """Members of each cut, shape (..., c)."""
        held: Array = self.tp - self.tp_before
        return held

    @cached_property
    def simulated(self) -> dict[tuple[bytes, int, int], Array]:
        """Cache of simulated calibration deviations (b, draws) by positions, number of draws and seed."""
        return {}

    @cached_property
    def _precisions(self) -> tuple[Array, Array]:
        """Sums (...) of the precision at the members, and of the same by trapezoids, in one pass."""
        held, heights = self.held, precision_at(self.tp, self.fp)
        twice = np.vecdot(held, heights + precision_at(self.tp_before, self.fp_before))
        return np.vecdot(held, heights), 0.5 * twice

    @lazy
    def resolution(self) -> Array:
        """Variance (...) of the frequency of the members over the distinct scores, about their share (Murphy 1973)."""
        everyone = self.positives + self.negatives
        share = ratio(self.positives, everyone)
        if not self.has_ties:
            # Where all scores differ it is the variance of the outcomes.
            return share * ratio(self.negatives, everyone)
        weight = np.add.reduceat(self.each, self.starts, axis=-1)
        hits = np.add.reduceat(self.each * self.members, self.starts, axis=-1)
        frequency = np.where(weight > 0, ratio(hits, np.where(weight > 0, weight, 1.0)), 0.0)
        return ratio(np.vecdot(weight, (frequency - share[..., None]) ** 2), everyone)

    @lazy
    def losses(self) -> Array:
        """Pairs of a member and a non-member in which the non-member scores higher, ties half, shape (...)."""
        return np.asarray(0.5 * np.vecdot(self.held, self.fp + self.fp_before))

    def sums_above(self, sums: Amounts) -> tuple[Amounts, Amounts]:
        """Sums (..., n) of a mass of the samples that score more than each, and of those that score as much too, from
        that of the first 0, 1, ... n samples (..., n + 1).
        """
        if not self.has_ties:
            return sums[..., :-1], sums[..., 1:]
        sizes = np.diff(self.starts, append=self.members.size)
        above, with_ties = (
            np.repeat(sums.take(ends, axis=-1), sizes, axis=-1) for ends in (self.starts, self.last + 1)
        )
        return above, with_ties

    def above_each(self, sums: Amounts) -> Array:
        """Sum (..., n) of a mass of the samples above each, ties half, from that of the first ones."""
        above, with_ties = self.sums_above(sums)
        halved: Array = np.multiply(0.5, above + with_ties)
        return halved

    @lazy
    def auc(self) -> Array:
        """Area under the ROC curve, P(>) + P(=)/2, shape (...)."""
        pairs = self.positives * self.negatives
        return ratio(pairs - self.losses, pairs)

    @lazy
    def average_precision(self) -> Array:
        """Sum (R_i - R_{i-1}) P_i, shape (...)."""
        return ratio(self._precisions[0], self.positives)

    @lazy
    def precision_sum(self) -> Array:
        """Trapezoid under precision over the member counts, from (0, 1), shape (...)."""
        return self._precisions[1]

    @lazy
    def ks(self) -> Array:
        """max(TPR - FPR) over all cuts and the empty one, shape (...); NaN without members or non-members."""
        with silently():
            gaps = self.tp / self.positives[..., None] - self.fp / self.negatives[..., None]
        found: Array = np.maximum.reduce(gaps, axis=-1, initial=0.0) + 0.0 * self.auc
        return found

    @lazy
    def equal_error_rate(self) -> Array:
        """False positive rate at which it equals the false negative rate, on the polygon of the ROC
        curve, shape (...).
        """
        return self.each_row(equal_error_rate)

    def area_between(self, low: float, high: float) -> Array:
        """Area (...) under recall between two false positive rates; NaN without members or others."""
        return self.each_row(lambda row: row.area_up_to(high) - row.area_up_to(low))

    def member_quantile(self, quantile: float) -> tuple[Array, Array]:
        """Scores of the members at a quantile, from below and from above, each of shape (...); NaN without members.

        They differ only where the quantile falls exactly between two members.
        """
        lower, upper = np.full(self.positives.shape, np.nan), np.full(self.positives.shape, np.nan)
        for row in np.ndindex(self.positives.shape):
            positives = float(self.positives[row])
            if positives > 0:
                above, slack = (1.0 - quantile) * positives, _SLACK * positives
                first = int(np.searchsorted(self.tp[row], above - slack, side="left"))
                last = int(np.searchsorted(self.tp[row], above + slack, side="right"))
                upper[row], lower[row] = self.thresholds[first], self.thresholds[min(last, self.thresholds.size - 1)]
        return lower, upper

    @cached_property
    def hulls(self) -> list[tuple[Array, Array]]:
        """Vertices (tp, fp) of the upper convex hull of the ROC curve, for every row of the batch in order."""
        return [self._hull(row) for row in np.ndindex(self.positives.shape)]

    def _hull(self, row: tuple[int, ...]) -> tuple[Array, Array]:
        end = float(self.positives[row]), float(self.negatives[row])
        tp, fp = (
            np.concatenate([[0.0], side[row], [last]]) for side, last in zip((self.tp, self.fp), end, strict=True)
        )
        return upper_hull(tp, fp)

    def each_row(self, function: Callable[[Row], float]) -> Array:
        """Values of a function for every row of the batch, NaN where members or non-members are missing."""
        rows = self.positives.shape
        values = np.full(rows, np.nan)
        for row in np.ndindex(rows):
            positives, negatives = float(self.positives[row]), float(self.negatives[row])
            if positives > 0 and negatives > 0:
                cuts = self.tp[row], self.fp[row], self.tp_before[row], self.fp_before[row]
                values[row] = function(Row(*cuts, positives, negatives))
        return values

    def between(self, limits: Array) -> Bins:
        """The samples between falling limits (l), in l + 1 bins. A score equal to a limit lies below it."""
        return self.slices(self.starts_between(limits))

    def starts_between(self, limits: Array) -> Positions:
        """Positions (l + 2) that bound the samples between falling limits."""
        size = self.members.size
        return np.concatenate([[0], size - np.searchsorted(self.values[::-1], limits, side="right"), [size]])

    def in_parts(self, parts: int) -> Bins:
        """Bins of equal weight. Samples of one score stay together, in the bin of the middle of their weight."""
        if self.weights is None:
            return self.slices(self.starts_of_parts(parts))
        rows = self.weights.reshape(-1, self.members.size)
        found = [self._sums(row, self._starts_of_parts(row, parts)) for row in rows]
        return Bins(*np.stack(found, axis=1).reshape(3, *self.weights.shape[:-1], parts))

    def starts_of_parts(self, parts: int) -> Positions:
        """Positions (parts + 1) that bound parts of equal weight; one vector of weights at most."""
        return self._starts_of_parts(self.weights, parts)

    def _starts_of_parts(self, weights: Array | None, parts: int) -> Positions:
        reached = self.last + 1.0 if weights is None else np.cumsum(weights).take(self.last)
        middle = reached - 0.5 * np.diff(reached, prepend=0.0)
        cuts = np.searchsorted(middle * parts, np.arange(1, parts) * reached[-1], side="left")
        ends = np.append(self.starts, self.members.size)
        return np.concatenate([[0], ends.take(cuts), [self.members.size]])

    def slices(self, starts: Positions) -> Bins:
        """Slices of the samples between b + 1 rising positions."""
        if self.weights is not None:
            return Bins(*self._sums(self.weights, starts))
        weight, members = (np.diff(sums).astype(np.float64) for sums in (starts, self.members_among.take(starts)))
        return Bins(weight, sums_between(self.values, starts), members)

    def _sums(self, weights: Array, starts: Positions) -> Array:
        """Sums of weights (..., n), of scores and of members (3, ..., b) between b + 1 rising positions."""
        facts = weights, weights * self.values, weights * self.members
        return np.stack([sums_between(fact, starts) for fact in facts])

    def cuts(self) -> DistinctCuts:
        """Every distinct cut, with or without members, of one vector of weights."""
        thresholds = np.append(np.nan, self.values.take(self.starts))
        ends = np.append(0, self.last + 1)
        tp = self._members_of(ends)
        return DistinctCuts(thresholds, tp, self._others_of(ends, tp))

    def above_best_cut(self) -> Mask:
        """Mask (n), in the order in which they came, of the samples above the cut where informedness is largest; of
        several the one where both rates are most alike.
        """
        cuts = self.cuts()
        with silently():
            recall, fpr = cuts.tp / cuts.positives, cuts.fp / cuts.negatives
        # What differs by rounding is one cut, whichever of two classes is asked.
        best = np.lexsort((np.abs(recall + fpr - 1.0).round(12), (fpr - recall).round(12)))[0]
        above: Mask = self.in_place(np.arange(self.members.size, dtype=np.float64)) < np.append(0, self.last + 1)[best]
        return above

    def about(self, thresholds: Array, *, besides: Mask) -> tuple[Amounts, Array]:
        """Samples predicted, and precision, at thresholds: the mean of just before and just after each.

        Args:
            thresholds: Rising, shape (q,).
            besides: Mask (q,) of thresholds that need no answer.

        Returns:
            Both of shape (..., q).
        """
        rising = self.values[::-1]
        below = np.searchsorted(rising, thresholds)
        tied = np.flatnonzero((rising.take(below, mode="clip") == thresholds) & ~besides)
        predicted, heights = self._after(rising.size - below)
        if tied.size:
            above, before = self._after(rising.size - np.searchsorted(rising, thresholds.take(tied), side="right"))
            predicted = predicted.astype(np.float64, copy=False)
            predicted[..., tied] = 0.5 * (predicted[..., tied] + above)
            heights[..., tied] = 0.5 * (heights[..., tied] + before)
        return predicted, heights

    def _after(self, counts: Positions) -> tuple[Amounts, Array]:
        """Weight of the first ``counts`` samples, and their precision, each of shape (..., q)."""
        tp = self.members_among.take(counts, axis=-1)
        predicted = counts if self.weights is None else tp + self.others_among.take(counts, axis=-1)
        return predicted, precision_of(tp, predicted)
