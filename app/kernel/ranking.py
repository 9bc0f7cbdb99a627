"""Samples ordered by a score: the cumulative counts from which every ranking metric is read."""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kernel.hull import STRETCH, outside, upper_hull
from app.kernel.numerics import Array, Mask, lazy, ratio, silently

Positions = NDArray[np.intp]

# Cuts handled at once: four arrays of them fit in the second-level cache.
_BLOCK = 8192
# From so many cuts on, the hull of some of them is used to drop most others.
_MANY = 8 * _BLOCK
# Relative width within which a cumulative weight stands exactly at a quantile.
_SLACK = 1e-12


class Ranking:
    """Samples by falling score, and the cuts at which members of a class are reached.

    Samples of one score are one cut, never split. Only cuts with members count, because nothing but precision changes
    at the
    others: ``tp`` and ``fp`` (..., c) are the members and the non-members, by count or weight, with a score of at
    least that of the
    cut, ``tp_before`` and ``fp_before`` those above it. Leading axes are a batch of weights over the one order.

    Args:
        values: scores (n,), falling; or numbers of which the scores are the complement to 1, rising.
        members: is the sample a member, shape (n,), in that order.
        weights: shape (..., n) in that order, or None for 1 each.
        distinct: no two scores are equal, which is already known.
        complement: are ``values`` the complement?
    """

    def __init__(
        self,
        values: Array,
        members: Mask,
        weights: Array | None = None,
        *,
        distinct: bool = False,
        complement: bool = False,
    ) -> None:
        self.complement = values if complement else None
        if not complement:
            self.values = values
        self.members = members
        self.weights = weights
        self.ends: Positions | None = None if distinct else last_of_ties(self.values)

    @cached_property
    def values(self) -> Array:
        """Scores (n,), falling."""
        if self.complement is None:
            raise AttributeError("set on construction")
        return 1.0 - self.complement

    @cached_property
    def at(self) -> Positions:
        """Positions of the members, or with ties the last positions of the cuts that hold any."""
        if self.ends is None:
            return np.flatnonzero(self.members)
        reached = np.cumsum(self.members, dtype=np.int64).take(self.ends)
        return self.ends[np.flatnonzero(np.diff(reached, prepend=0))]

    @cached_property
    def thresholds(self) -> Array:
        """Scores of the cuts that hold members, shape (c,), falling."""
        return self.values.take(self.at)

    @cached_property
    def _members_among(self) -> Array:
        """Members among the first 0, 1, ... n samples, shape (..., n + 1), by weight."""
        if self.weights is None:
            return _counted(self.members)
        return _cumulative(self.weights * self.members)

    @cached_property
    def _others_among(self) -> Array:
        """Non-members among the first 0, 1, ... n samples, shape (..., n + 1), by weight."""
        return _cumulative(~self.members * (1.0 if self.weights is None else self.weights))

    @cached_property
    def _samples_among(self) -> Array:
        """The first 0, 1, ... n samples by weight, shape (..., n + 1)."""
        return _cumulative(np.ones(self.members.size) if self.weights is None else self.weights)

    @cached_property
    def _before(self) -> Positions:
        """How many samples stand before each cut that holds members."""
        if self.ends is None:
            return self.at
        starts = np.concatenate([[0], self.ends[:-1] + 1])
        return starts.take(np.searchsorted(self.ends, self.at))

    @lazy
    def tp(self) -> Array:
        """Members up to and with each cut, shape (..., c)."""
        if self.plain:
            return np.arange(1.0, self.at.size + 1.0)
        return self._members_among.take(self.at + 1, axis=-1).astype(np.float64)

    @lazy
    def fp(self) -> Array:
        """Non-members up to and with each cut, shape (..., c)."""
        if self.weights is None:
            return (self.at + 1) - self.tp
        return self._others_among.take(self.at + 1, axis=-1)

    @lazy
    def tp_before(self) -> Array:
        """Members above each cut, shape (..., c)."""
        if self.plain:
            return np.arange(float(self.at.size))
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
        return self._members_among[..., -1]

    @lazy
    def negatives(self) -> Array:
        """Non-members, shape (...)."""
        if self.weights is None:
            return np.asarray(float(self.members.size - np.count_nonzero(self.members)))
        return self._others_among[..., -1]

    @lazy
    def held(self) -> Array:
        """Members of each cut, shape (..., c)."""
        return self.tp - self.tp_before

    @property
    def plain(self) -> bool:
        """Does every member count 1 and stand alone? Then the positions say everything."""
        return self.weights is None and self.ends is None

    def part(self, start: int, stop: int) -> "Block":
        """Some of the cuts, each array of shape (..., stop - start)."""
        if self.plain:
            at = self.at[start:stop]
            before = np.arange(float(start), float(start + at.size))
            fp = at - before
            return Block(before + 1.0, fp, before, fp, None)
        part = slice(start, stop)
        tp, before = self.tp[..., part], self.tp_before[..., part]
        return Block(tp, self.fp[..., part], before, self.fp_before[..., part], tp - before)

    def blocks(self) -> Iterator["Block"]:
        """All cuts in pieces small enough for the cache."""
        for start in range(0, self.at.size, _BLOCK):
            yield self.part(start, start + _BLOCK)

    @cached_property
    def sums(self) -> "Sums":
        """Everything that is added up along the cuts, in one pass."""
        losses = precision = twice = np.zeros(self.positives.shape)
        for block in self.blocks():
            heights = _precision(block.tp, block.fp)
            losses = losses + block.total(block.fp + block.fp_before)
            precision = precision + block.total(heights)
            twice = twice + block.total(heights + _precision(block.tp_before, block.fp_before))
        return Sums(0.5 * losses, precision, 0.5 * twice)

    @lazy
    def losses(self) -> Array:
        """Pairs of a member and a non-member in which the non-member scores higher, ties half, shape (...)."""
        return self.sums.losses

    def precision_along(self, held: "Ranking", crossing: Callable[[Positions], Positions]) -> tuple[Array, Array]:
        """Sums over the members of another ranking: samples here, and precision here, above each of them.

        Args:
            held: a ranking without ties.
            crossing: from rising positions in it to how many samples here have at least the score of that member, which
                rises too.

        Returns:
            Both of shape (...).
        """
        predicted_sum = precision_sum = np.zeros(self.positives.shape)
        tp_here = predicted_here = np.zeros((*self.positives.shape, 1))
        here = 0
        for start in range(0, held.at.size, _BLOCK):
            # The counts rise, so each block goes on where the last one stopped.
            counts = crossing(held.at[start : start + _BLOCK])
            window, inside = slice(here, int(counts[-1])), counts - here
            if self.weights is None:
                tp_there = _counted(self.members[window]) + tp_here
                predicted = counts.astype(np.float64)
            else:
                tp_there = _cumulative(self.weights[..., window] * self.members[window]) + tp_here
                predicted_there = _cumulative(self.weights[..., window]) + predicted_here
                predicted = predicted_there.take(inside, axis=-1)
                predicted_here = predicted_there[..., -1:]
            tp = tp_there.take(inside, axis=-1)
            with silently():
                precision = tp / predicted
            if np.isnan(precision[..., :1]).any():
                precision[np.isnan(precision)] = 1.0
            if held.plain:
                predicted_sum = predicted_sum + np.add.reduce(predicted)
                precision_sum = precision_sum + np.add.reduce(precision)
            else:
                block = held.part(start, start + _BLOCK)
                predicted_sum, precision_sum = (
                    predicted_sum + block.total(predicted),
                    precision_sum + block.total(precision),
                )
            tp_here, here = tp_there[..., -1:], window.stop
        return predicted_sum, precision_sum

    def losses_by_class(self, codes: Positions, n_classes: int) -> Array:
        """``losses`` split by the class of the non-member, shape (..., K). One weighted count replaces a loop over
        classes.
        """
        if self.ends is None:
            upper = lower = self._members_among[..., 1:]
        else:
            bounds = self._members_among.take(np.concatenate([[0], self.ends + 1]), axis=-1)
            sizes = np.diff(self.ends, prepend=-1)
            upper = np.repeat(bounds[..., 1:], sizes, axis=-1)
            lower = np.repeat(bounds[..., :-1], sizes, axis=-1)
        lost = self.positives[..., None] - 0.5 * (upper + lower)
        if self.weights is not None:
            lost = lost * self.weights
        # A non-member loses to the members above it; what is left of the members are those that lose to it.
        rows = lost.reshape(-1, codes.size)
        return np.stack([np.bincount(codes, row, n_classes) for row in rows]).reshape(*lost.shape[:-1], n_classes)

    @lazy
    def wins(self) -> Array:
        """The other pairs, shape (...)."""
        return self.positives * self.negatives - self.losses

    @lazy
    def auc(self) -> Array:
        """P(>) + P(=)/2, shape (...)."""
        return ratio(self.wins, self.positives * self.negatives)

    @lazy
    def average_precision(self) -> Array:
        """Sum (R_i - R_{i-1}) P_i, shape (...)."""
        return ratio(self.sums.precision, self.positives)

    @lazy
    def precision_sum(self) -> Array:
        """Trapezoid under precision over the member counts, from (0, 1), shape (...)."""
        return self.sums.precision_trapezoid

    @lazy
    def ks(self) -> Array:
        """max(TPR - FPR) over all cuts and the empty one, shape (...); NaN without members or non-members."""
        gap = 0.0 * self.auc
        with silently():
            per_member, per_other = 1.0 / self.positives[..., None], 1.0 / self.negatives[..., None]
            for block in self.blocks():
                gap = np.maximum(gap, np.maximum.reduce(block.tp * per_member - block.fp * per_other, axis=-1))
        return gap

    @lazy
    def equal_error_rate(self) -> Array:
        """FPR where it equals FNR on the polygon of the ROC curve, shape (...)."""
        return self.each_row(_equal_error_rate)

    def partial_auc(self, max_fpr: float) -> Array:
        """Standardised area under the ROC curve up to a false positive rate, shape (...) (McClish 1989)."""
        return self.each_row(lambda row: _partial_auc(row, max_fpr))

    def member_quantile(self, quantile: float) -> tuple[Array, Array]:
        """Scores of the members at a quantile, from below and from above, each of shape (...); NaN without members.

        They differ only where the quantile falls exactly between two members.
        """
        lower, upper = np.full(self.positives.shape, np.nan), np.full(self.positives.shape, np.nan)
        for row in np.ndindex(self.positives.shape):
            positives = float(self.positives[row])
            if positives > 0:
                above, slack = (1.0 - quantile) * positives, _SLACK * positives
                if self.plain:
                    first, last = int(np.ceil(above - slack)) - 1, int(np.floor(above + slack))
                else:
                    first = int(np.searchsorted(self.tp[row], above - slack, side="left"))
                    last = int(np.searchsorted(self.tp[row], above + slack, side="right"))
                upper[row] = self.value_at(int(self.at[max(first, 0)]))
                lower[row] = self.value_at(int(self.at[min(last, self.at.size - 1)]))
        return lower, upper

    @cached_property
    def hulls(self) -> list[tuple[Array, Array]]:
        """Vertices (tp, fp) of the upper convex hull of the ROC curve, for every row of the batch in order."""
        return [self._hull(row) for row in np.ndindex(self.positives.shape)]

    def _hull(self, row: tuple[int, ...]) -> tuple[Array, Array]:
        end = float(self.positives[row]), float(self.negatives[row])

        def hull_of(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
            tp = np.concatenate([[0.0], *(part[0] for part in parts), [end[0]]])
            fp = np.concatenate([[0.0], *(part[1] for part in parts), [end[1]]])
            return upper_hull(tp, fp)

        if self.at.size < _MANY:
            return hull_of([(block.tp[row], block.fp[row]) for block in self.blocks()])
        coarse = hull_of([(block.tp[row][::STRETCH], block.fp[row][::STRETCH]) for block in self.blocks()])
        return hull_of([outside(block.tp[row], block.fp[row], coarse) for block in self.blocks()])

    def each_row(self, function: Callable[["Row"], float]) -> Array:
        """A function of every row of the batch, NaN where members or non-members are missing."""
        rows = self.positives.shape
        values = np.full(rows, np.nan)
        for row in np.ndindex(rows):
            positives, negatives = float(self.positives[row]), float(self.negatives[row])
            if positives > 0 and negatives > 0:
                values[row] = function(Row(self, row, positives, negatives))
        return values

    def value_at(self, position: int) -> float:
        """Score of one sample."""
        return float(self.values[position])

    def above(self, limits: Array) -> Positions:
        """How many samples score more than each limit."""
        if self.complement is not None:
            return np.searchsorted(self.complement, 1.0 - limits, side="left")
        return self.members.size - np.searchsorted(self.values[::-1], limits, side="right")

    def slices(self, starts: Positions) -> tuple[Array, Array, Array]:
        """Weight, sum of scores and weight of members in slices of the samples, each of shape (..., b).

        Args:
            starts: b + 1 rising positions that bound the slices.
        """
        source = self.values if self.complement is None else self.complement
        bounds = list(zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True))
        if self.weights is None:
            weight = np.diff(starts).astype(np.float64)
            values = np.array([np.add.reduce(source[a:b]) for a, b in bounds])
            members = np.array([np.count_nonzero(self.members[a:b]) for a, b in bounds], dtype=np.float64)
        else:
            weights = self.weights
            weight = np.stack([np.add.reduce(weights[..., a:b], axis=-1) for a, b in bounds], axis=-1)
            values = np.stack([weights[..., a:b] @ source[a:b] for a, b in bounds], axis=-1)
            members = np.stack([weights[..., a:b] @ self.members[a:b].astype(np.float64) for a, b in bounds], axis=-1)
        return weight, values if self.complement is None else weight - values, members

    def at_thresholds(self, queries: Array, *, besides: Mask) -> tuple[Array, Array]:
        """Samples predicted, and precision, where a threshold passes the queries: the mean of before and after.

        Args:
            queries: thresholds (q,), rising.
            besides: queries that need no answer, shape (q,).

        Returns:
            Both of shape (..., q).
        """
        rising = self.values[::-1]
        below = np.searchsorted(rising, queries, side="left")
        tied = rising.take(below, mode="clip") == queries
        tied &= ~besides
        tp, predicted = self.up_to(rising.size - below)
        heights = _precision_anywhere(tp, predicted)
        if tied.any():
            above_tp, above_predicted = self.up_to(rising.size - np.searchsorted(rising, queries, side="right"))
            heights = 0.5 * (heights + _precision_anywhere(above_tp, above_predicted))
            predicted = 0.5 * (predicted + above_predicted)
        return predicted, heights

    def up_to(self, counts: Positions) -> tuple[Array, Array]:
        """Tp and predicted samples by weight among the first so many samples, shape (..., q)."""
        tp = self._members_among.take(counts, axis=-1)
        return tp, counts if self.weights is None else self._samples_among.take(counts, axis=-1)


class Block(NamedTuple):
    """Some cuts of a ranking; ``held`` are the members of each, None for one each."""

    tp: Array
    fp: Array
    tp_before: Array
    fp_before: Array
    held: Array | None

    def total(self, values: Array) -> Array:
        """Sum of the members times a value, shape (...)."""
        return np.asarray(np.add.reduce(values)) if self.held is None else np.vecdot(self.held, values)


class Sums(NamedTuple):
    """Pairs lost, sum of precision at the members, and the same by trapezoids; each of shape (...)."""

    losses: Array
    precision: Array
    precision_trapezoid: Array


class Mirrored(Ranking):
    """The other side of a ranking without ties: what does not depend on the side is taken from there."""

    def __init__(self, other: Ranking, value_at: Callable[[int], float]) -> None:
        weights = None if other.weights is None else other.weights[..., ::-1]
        super().__init__(other.values[::-1], ~other.members[::-1], weights, distinct=True, complement=True)
        self.other = other
        self._value_at = value_at

    def value_at(self, position: int) -> float:
        """Score at a position, as the probability it was."""
        return self._value_at(position)

    @lazy
    def wins(self) -> Array:
        """As of the other side: exchanging the classes reverses nothing but the order."""
        return self.other.wins

    @lazy
    def ks(self) -> Array:
        """As of the other side."""
        return self.other.ks

    @lazy
    def equal_error_rate(self) -> Array:
        """As of the other side."""
        return self.other.equal_error_rate

    @cached_property
    def hulls(self) -> list[tuple[Array, Array]]:
        """Those of the other side with the classes exchanged."""
        return [(fp[-1] - fp[::-1], tp[-1] - tp[::-1]) for tp, fp in self.other.hulls]


class Row:
    """One row of the batch of a ranking."""

    def __init__(self, ranking: Ranking, row: tuple[int, ...], positives: float, negatives: float) -> None:
        self.ranking, self.row = ranking, row
        self.positives, self.negatives = positives, negatives
        self.size = ranking.at.size

    def part(self, start: int, stop: int) -> tuple[Array, Array, Array, Array]:
        """tp, fp, tp_before and fp_before of some cuts."""
        block = self.ranking.part(start, stop)
        return block.tp[self.row], block.fp[self.row], block.tp_before[self.row], block.fp_before[self.row]

    def rates(self, cut: int) -> tuple[float, float, float, float]:
        """TPR and FPR at and before a cut."""
        tp, fp, tp_before, fp_before = (float(values[0]) for values in self.part(cut, cut + 1))
        return tp / self.positives, fp / self.negatives, tp_before / self.positives, fp_before / self.negatives

    def first(self, reached: Callable[[float, float], bool]) -> int:
        """First cut whose (TPR, FPR) fulfil a condition that, once true, stays true; ``size`` if none does."""
        low, high = 0, self.size
        while low < high:
            middle = (low + high) // 2
            if reached(*self.rates(middle)[:2]):
                high = middle
            else:
                low = middle + 1
        return low


def last_of_ties(ordered: Array) -> Positions | None:
    """Index of the last of each run of equal values, or None when all differ."""
    changes = ordered[1:] != ordered[:-1]
    if changes.all():
        return None
    return np.append(np.flatnonzero(changes), ordered.size - 1)


def _counted(members: Mask) -> NDArray[np.int32]:
    """Members among the first 0, 1, ... n: whole numbers add up several times faster than floats."""
    counts = np.zeros(members.size + 1, dtype=np.int32)
    np.cumsum(members, out=counts[1:])
    return counts


def _cumulative(values: Array) -> Array:
    """Sums of the first 0, 1, ... n values along the last axis."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return sums


def _precision(tp: Array, fp: Array) -> Array:
    predicted = tp + fp
    with silently():
        values = tp / predicted
    # Only the first cuts can be empty: the one above all, or those of samples that weigh nothing.
    if np.isnan(values[..., :1]).any():
        values[np.isnan(values)] = 1.0
    return values


def _equal_error_rate(row: Row) -> float:
    cut = min(row.first(lambda tpr, fpr: fpr + tpr >= 1.0), row.size - 1)
    tpr, fpr, tpr_before, fpr_before = row.rates(cut)
    if fpr_before + tpr_before >= 1.0:
        # Reached on the level stretch before the cut.
        return 1.0 - tpr_before
    share = (1.0 - fpr_before - tpr_before) / (fpr - fpr_before + tpr - tpr_before)
    return fpr_before + share * (fpr - fpr_before)


def _partial_auc(row: Row, max_fpr: float) -> float:
    limit = max_fpr * row.negatives
    inside = row.first(lambda _, fpr: fpr > max_fpr)
    area = 0.0
    for start in range(0, inside, _BLOCK):
        tp, fp, tp_before, fp_before = row.part(start, min(start + _BLOCK, inside))
        area += float((tp - tp_before).dot(limit - 0.5 * (fp + fp_before)))
    if inside < row.size:
        tp, fp, tp_before, fp_before = row.part(inside, inside + 1)
        if fp_before[0] < limit:
            run, width = limit - float(fp_before[0]), float(fp[0] - fp_before[0])
            area += 0.5 * run * run / width * float(tp[0] - tp_before[0])
    area /= row.positives * row.negatives
    lowest, highest = 0.5 * max_fpr * max_fpr, max_fpr
    return 0.5 * (1.0 + (area - lowest) / (highest - lowest))


def _precision_anywhere(tp: Array, predicted: Array) -> Array:
    """Precision, 1 where nothing is predicted."""
    with silently():
        values = tp / predicted
    empty = predicted == 0
    if empty.any():
        values[empty] = 1.0
    return values
