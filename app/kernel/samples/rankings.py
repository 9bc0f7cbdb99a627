"""Samples in the order of a score: cumulative counts at every cut, and the areas, hulls, quantiles and sums derived
from them.

Cuts are processed in pieces that fit in the cache.
"""

from collections.abc import Callable
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask, lazy, ratio, silently
from app.kernel.numerics.monotone import upper_hull
from app.kernel.samples.losses import sums_by_code

# Sums of weights, or integers where every sample counts 1.
Amounts = NDArray[np.floating | np.integer]

_Area = TypeVar("_Area", float, Array)

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

    def beyond(self, max_fpr: float) -> int:
        """First cut with a higher false positive rate."""
        return int(np.searchsorted(self.fp / self.negatives, max_fpr, side="right"))


def counted(members: Mask) -> NDArray[np.int32]:
    """Members among the first 0, 1, ... n, as int32: integers add up several times faster than floats."""
    counts = np.zeros(members.size + 1, dtype=np.int32)
    np.cumsum(members, out=counts[1:])
    return counts


def cumulative(values: Array) -> Array:
    """Sums of the first 0, 1, ... n values along the last axis."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return sums


def amounts_between(before: NDArray[Any], upto: NDArray[Any], whole: ArrayLike) -> NDArray[Any]:
    """Amounts (2 c + 1) between two cuts, at a cut, and below all, from those (c) before and up to each, and of all."""
    ends = np.zeros(2 * before.size + 2, dtype=before.dtype)
    ends[1:-1:2], ends[2:-1:2], ends[-1] = before, upto, whole
    return ends[1:] - ends[:-1]


def precision_at(tp: Array, fp: Array) -> Array:
    """Precision along cuts; 1 at the start, where nothing is predicted."""
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


def partial_auc(row: Row, max_fpr: float) -> float:
    """Area under the ROC curve up to a false positive rate, standardised (McClish 1989)."""
    inside = row.beyond(max_fpr)
    tp, fp, tp_before, fp_before = (side[:inside] for side in row[:4])
    area = float((tp - tp_before).dot(max_fpr * row.negatives - 0.5 * (fp + fp_before)))
    return standardised_partial_area(area, row, inside, max_fpr)


def standardised_partial_area(area: float, row: Row, cut: int, max_fpr: float) -> float:
    """McClish-standardised area up to a false positive rate, from the area in pairs of the cuts within the limit and
    the first cut beyond it, if any.
    """
    limit = max_fpr * row.negatives
    if cut < row.fp.size and row.fp_before[cut] < limit:
        run, width = limit - float(row.fp_before[cut]), float(row.fp[cut] - row.fp_before[cut])
        area += 0.5 * run * run / width * float(row.tp[cut] - row.tp_before[cut])
    return standardised(area / (row.positives * row.negatives), 0.0, max_fpr)


def standardised(area: _Area, low: float, high: float) -> _Area:
    """Area in McClish's (1989) form: 1/2 for the diagonal, 1 for the largest possible."""
    chance, largest = 0.5 * (high - low) * (high + low), high - low
    return 0.5 * (1.0 + (area - chance) / (largest - chance))


Positions = NDArray[np.intp]


def last_of_ties(ordered: Array) -> Positions | None:
    """Last index of each run of equal values, or None when all differ."""
    last = np.ones(ordered.size, dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=last[:-1])
    return None if last.all() else np.flatnonzero(last)


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
        distinct: True if no two scores are known to be equal.
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
        """Positions of the members; with ties, the last positions of the cuts that hold members."""
        return np.flatnonzero(self.members) if self.ends is None else self.ends.take(self._tied[0])

    @cached_property
    def _tied(self) -> tuple[Positions, Positions]:
        """Runs of ties that hold members, and the number of members up to and with each."""
        places = np.searchsorted(self.last, np.flatnonzero(self.members))
        final = np.flatnonzero(np.append(places[1:] != places[:-1], True)[: places.size])
        return places.take(final), final + 1

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
        """Number of samples before each cut that holds members."""
        if self.ends is None:
            return self.at
        runs, _ = self._tied
        return np.where(runs > 0, self.ends.take(runs - 1) + 1, 0)

    @lazy
    def tp(self) -> Array:
        """Members up to and with each cut, shape (..., c)."""
        if self.weights is None:
            return (np.arange(1, self.at.size + 1) if self.ends is None else self._tied[1]).astype(np.float64)
        return self._members_among.take(self.at + 1, axis=-1).astype(np.float64, copy=False)

    @lazy
    def fp(self) -> Array:
        """Non-members up to and with each cut, shape (..., c)."""
        if self.weights is None:
            return (self.at + 1) - self.tp
        return self._others_among.take(self.at + 1, axis=-1)

    @lazy
    def tp_before(self) -> Array:
        """Members above each cut, shape (..., c)."""
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
    def held(self) -> Array:
        """Members of each cut, shape (..., c)."""
        held: Array = self.tp - self.tp_before
        return held

    def above(self, limits: Array) -> Positions:
        """Number of samples that score more than each limit."""
        return self.members.size - np.searchsorted(self.values[::-1], limits, side="right")

    def up_to(self, counts: Positions) -> tuple[Amounts, Amounts]:
        """Members and samples, by weight, among the first ``counts`` samples, each of shape (..., q)."""
        tp = self._members_among.take(counts, axis=-1)
        return tp, counts if self.weights is None else self._samples_among.take(counts, axis=-1)

    @cached_property
    def _slices(self) -> dict[bytes, tuple[Array, Array, Array]]:
        return {}

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
        if self.ends is None:
            # Where all scores differ it is the variance of the outcomes.
            return share * ratio(self.negatives, everyone)
        starts = np.concatenate([[0], self.last[:-1] + 1])
        weights = np.ones(self.values.size) if self.weights is None else self.weights
        weight = np.add.reduceat(weights, starts, axis=-1)
        hits = np.add.reduceat(weights * self.members, starts, axis=-1)
        frequency = np.where(weight > 0, ratio(hits, np.where(weight > 0, weight, 1.0)), 0.0)
        return ratio(np.vecdot(weight, (frequency - share[..., None]) ** 2), everyone)

    @lazy
    def losses(self) -> Array:
        """Pairs of a member and a non-member in which the non-member scores higher, ties half, shape (...)."""
        return np.asarray(0.5 * np.vecdot(self.held, self.fp + self.fp_before))

    @property
    def members_above(self) -> Amounts:
        """Members above each sample, ties half, shape (..., n); of members themselves it says nothing."""
        if self.ends is None:
            return self._members_among[..., 1:]
        above = self._members_among[..., 1:].astype(np.float64)
        # Between two cuts that hold members all samples have as many above them.
        sizes = self.at + 1 - self._before
        tied = np.repeat(self.at + 1 - np.cumsum(sizes), sizes) + np.arange(sizes.sum())
        above[..., tied] = np.repeat(0.5 * (self.tp_before + self.tp), sizes, axis=-1)
        return above

    def stepwise(self, values: Array) -> Array:
        """Values (n) of all samples from those (2 c + 1) between two cuts, at a cut, and below all."""
        return values.repeat(amounts_between(self._before, self.at + 1, self.members.size))

    @property
    def others_above(self) -> Array:
        """Non-members above each member, ties half, shape (..., m)."""
        cuts = np.searchsorted(self.at, np.flatnonzero(self.members))
        return (0.5 * (self.fp_before + self.fp)).take(cuts, axis=-1)

    def losses_by_class(self, codes: Positions, n_classes: int) -> Array:
        """``losses`` split by the class of the non-member, shape (..., K): one weighted count for all classes."""
        lost = self.positives[..., None] - self.members_above
        if self.weights is not None:
            lost = lost * self.weights
        # Members not above a non-member lose to it.
        return sums_by_code(codes, lost, n_classes)

    @lazy
    def wins(self) -> Array:
        """Pairs of a member and a non-member in which the member scores higher, ties half, shape (...)."""
        return self.positives * self.negatives - self.losses

    @lazy
    def auc(self) -> Array:
        """Area under the ROC curve, P(>) + P(=)/2, shape (...)."""
        return ratio(self.wins, self.positives * self.negatives)

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

    def partial_auc(self, max_fpr: float) -> Array:
        """Standardised area under the ROC curve up to a false positive rate, shape (...) (McClish 1989)."""
        return self.each_row(lambda row: partial_auc(row, max_fpr))

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
                upper[row] = self._value_of(max(first, 0))
                lower[row] = self._value_of(min(last, self.at.size - 1))
        return lower, upper

    def _value_of(self, cut: int) -> float:
        position = int(self.at[cut])
        return float(self.values[position])

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

    def between(self, limits: Array) -> tuple[Array, Array, Array]:
        """Weight, sum of scores and weight of members between falling limits (l), each of shape (..., l + 1). A score
        equal to a limit lies below it.
        """
        return self.slices(self.starts_between(limits))

    def starts_between(self, limits: Array) -> Positions:
        """Positions (l + 2) that bound the samples between falling limits."""
        return np.concatenate([[0], self.above(limits), [self.members.size]])

    def in_parts(self, parts: int) -> tuple[Array, Array, Array]:
        """Weight, sum of scores and weight of members in parts of equal weight, each of shape (..., parts). Samples of
        one score stay together, in the part that holds the middle of their weight.
        """
        if self.weights is None or self.weights.ndim == 1:
            return self.slices(self.starts_of_parts(parts))
        return self._parts_of_batch(self.weights, parts)

    def starts_of_parts(self, parts: int) -> Positions:
        """Positions (parts + 1) that bound parts of equal weight; one vector of weights at most."""
        ends, size = self.last, self.members.size
        reached = ends + 1.0 if self.weights is None else np.cumsum(self.weights).take(ends)
        middle = reached - 0.5 * np.diff(reached, prepend=0.0)
        cuts = np.searchsorted(middle * parts, np.arange(1, parts) * reached[-1], side="left")
        firsts = np.append(np.concatenate([[0], ends[:-1] + 1]), size)
        return np.concatenate([[0], firsts.take(cuts), [size]])

    def _parts_of_batch(self, weights: Array, parts: int) -> tuple[Array, Array, Array]:
        """Weight, sum of scores and weight of members in parts of equal weight, for a batch of weights (..., n), each
        row with its own parts.
        """
        rows, ends, size = weights.reshape(-1, weights.shape[-1]), self.last, self.members.size
        # Cumulative weights of the first 0, 1, ... samples.
        sums = [cumulative(rows * each) for each in (1.0, self.values, self.members)]
        reached = sums[0].take(ends + 1, axis=1)
        middle = (reached - 0.5 * np.diff(reached, prepend=0.0, axis=1)) * parts
        wanted = np.arange(1, parts) * reached[:, -1:]
        cuts = np.stack([np.searchsorted(*row, side="left") for row in zip(middle, wanted, strict=True)])
        firsts = np.append(np.concatenate([[0], ends[:-1] + 1]), size)
        starts = np.pad(firsts.take(cuts), ((0, 0), (1, 1)), constant_values=((0, 0), (0, size)))
        shape = (*weights.shape[:-1], parts)
        weight, scores, members = (
            np.diff(np.take_along_axis(one, starts, axis=1), axis=1).reshape(shape) for one in sums
        )
        return weight, scores, members

    def cuts(self) -> tuple[Array, Array, Array]:
        """Thresholds, members and others predicted at every distinct cut, with or without members. Samples with scores
        of at least the threshold are predicted. The empty cut comes first, with threshold NaN.

        Raises:
            ValueError: the ranking carries a batch of weights.
        """
        if self.weights is not None and self.weights.ndim > 1:
            raise ValueError("one vector of weights at a time")
        ends = self.last
        weights = 1.0 if self.weights is None else self.weights
        tp = np.cumsum(self.members * weights, dtype=np.float64).take(ends)
        fp = np.cumsum(~self.members * weights, dtype=np.float64).take(ends)
        thresholds = np.concatenate([[np.nan], self.values.take(ends)])
        return thresholds, np.concatenate([[0.0], tp]), np.concatenate([[0.0], fp])

    def slices(self, starts: Positions) -> tuple[Array, Array, Array]:
        """Weight, sum of scores and weight of members in slices of the samples, each of shape (..., b).

        Args:
            starts: b + 1 rising positions that bound the slices.
        """
        key = starts.tobytes()
        if key not in self._slices:
            if self.weights is None:
                held = self._members_among.take(starts)
                weight, members = ((sums[1:] - sums[:-1]).astype(np.float64) for sums in (starts, held))
                filled, scores = weight.nonzero()[0], np.zeros(weight.size)
                scores[filled] = np.add.reduceat(self.values[: starts[-1]], starts.take(filled))
                self._slices[key] = weight, scores, members
            else:
                parts = [slice(*ends) for ends in pairwise(starts.tolist())]
                sums = [self._slice(self.weights[..., part], part) for part in parts]
                weight, values, members = (np.stack(column, axis=-1) for column in zip(*sums, strict=True))
                self._slices[key] = weight, values, members
        return self._slices[key]

    def _slice(self, weights: Array, part: slice) -> tuple[Array, Array, Array]:
        return (
            np.add.reduce(weights, axis=-1),
            weights @ self.values[part],
            weights @ self.members[part].astype(np.float64),
        )

    def at_thresholds(self, queries: Array, *, besides: Mask) -> tuple[Amounts, Array]:
        """Samples predicted, and precision, at thresholds: the mean of just before and just after each.

        Args:
            queries: Thresholds (q,), rising.
            besides: Mask (q,) of queries that need no answer.

        Returns:
            Both of shape (..., q).
        """
        rising = self.values[::-1]
        below = np.searchsorted(rising, queries, side="left")
        tied = rising.take(below, mode="clip") == queries
        tied &= ~besides
        tp, predicted = self.up_to(rising.size - below)
        heights = precision_of(tp, predicted)
        if tied.any():
            at, predicted = np.flatnonzero(tied), predicted.astype(np.float64)
            above_tp, above_predicted = self.up_to(rising.size - np.searchsorted(rising, queries[at], side="right"))
            heights[..., at] = 0.5 * (heights[..., at] + precision_of(above_tp, above_predicted))
            predicted[..., at] = 0.5 * (predicted[..., at] + above_predicted)
        return predicted, heights
