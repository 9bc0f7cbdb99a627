"""Differences of smooth metrics between runs on the same samples: effects of samples, sign flips, limits, unknown
pairing.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache, partial

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.tests import mcnemar_mid_p
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, Mask, silently, some
from app.kernel.numerics.scipy_bridge import fair_binomial_mass, normal_cdf
from app.kernel.uncertainty.closed_forms import at_recalls, cell_slopes
from app.kernel.uncertainty.draws import Functional
from app.kernel.uncertainty.intervals import two_sided_z

# With up to so many outcomes all of them are looked at.
_MOST_OUTCOMES = 1 << 14
# Relative to the largest sum, outcomes that are closer are equal, reached by other additions.
_TIE = 1e-9
# Beyond so many deviations the inversion has no digits left. The normal tail stands in, which is at most 3.2 times too
# small for any such sum (Bentkus & Dzindzalieta 2015).
_FAR = 5.5
# Steps in the frequency, of a sum with variance 1: images of the distribution then stand 16 deviations away.
_STEP = 2.0 * math.pi / 16.0
# Terms with a smaller share of the variance are many, and together as good as normal: their first two cumulants do.
_SMALL = 1e-4
_MOST_TERMS = 512
# Frequencies times terms, and frequencies looked at in one go.
_MOST_FACTORS = 1 << 18
_STEPS_AT_ONCE = 128
# A characteristic function that stays below this for half a batch has died down.
_NOTHING = 1e-12
# How the sum over the frequencies is ended: by exp(-(w / end)^6), which leaves the first five cumulants as they are.
_END = 6
# Parts of the last frequency where that is: what is cut off is below 1e-9.
_FADING = 0.6


def upper_mid_p(statistic: float, sizes: Array, counts: Array) -> float:
    """P(S > s) + P(S = s) / 2 of S = sum over j of a_j (2 X_j - m_j), X_j binomial with m_j fair trials.

    The one-sided mid-p of a sign-flip test; for equal sizes it is that of McNemar's test. All outcomes are enumerated
    where they are few, else the characteristic function prod cos(a_j w)^m_j is inverted, which gives the mean of the
    distribution function from both sides (Gil-Pelaez 1951; on a grid of frequencies Davies 1973).

    Args:
        statistic: s.
        sizes: a (J), positive.
        counts: m (J), whole numbers.

    Returns:
        The probability; 1/2 without any term.
    """
    deviation = math.sqrt(float(counts @ sizes**2))
    if deviation == 0.0:
        return 0.5
    place = abs(statistic) / deviation
    if float(np.log2(counts + 1.0).sum()) <= math.log2(_MOST_OUTCOMES):
        tail = _enumerated(abs(statistic), sizes, counts)
    elif place > _FAR:
        tail = float(normal_cdf(-place))
    else:
        tail = _inverted(place, sizes / deviation, counts)
    return tail if statistic > 0 else 1.0 - tail


def _enumerated(statistic: float, sizes: Array, counts: Array) -> float:
    sums, chances = np.zeros(1), np.ones(1)
    for size, count in zip(sizes.tolist(), counts.tolist(), strict=True):
        up = np.arange(count + 1.0)
        sums = (sums[:, None] + size * (2.0 * up - count)).ravel()
        chances = (chances[:, None] * fair_binomial_mass(up, count)).ravel()
    away = sums - statistic
    tie = np.abs(away) <= _TIE * float(counts @ sizes)
    return float(chances[(away > 0) & ~tie].sum() + 0.5 * chances[tie].sum())


def _inverted(place: float, sizes: Array, counts: Array) -> float:
    """Invert the characteristic function of a sum with variance 1; ties and gaps below about a hundredth of its
    deviation are blurred.
    """
    order = np.argsort(-sizes, kind="stable")
    sizes, counts = sizes[order], counts[order]
    kept = min(int(np.count_nonzero(sizes**2 >= _SMALL)), _MOST_TERMS)
    rest_square = float(counts[kept:] @ sizes[kept:] ** 2)
    rest_fourth = float(counts[kept:] @ sizes[kept:] ** 4)
    sizes, counts = sizes[:kept], counts[:kept]
    odd = counts % 2.0
    steps = _MOST_FACTORS // max(kept, 64)
    end = _FADING * steps * _STEP
    tail = 0.5
    for start in range(0, steps, _STEPS_AT_ONCE):
        halves = np.arange(start, start + _STEPS_AT_ONCE) + 0.5
        frequency = _STEP * halves
        square = frequency * frequency
        cosines = np.cos(frequency[:, None] * sizes)
        # log cos(x) = -x^2/2 - x^4/12 - ...
        exponent = np.log(np.maximum(np.abs(cosines), 1e-300)) @ counts - rest_fourth * square * square / 12.0
        exponent -= rest_square * square / 2.0 + (frequency / end) ** _END
        negative = ((cosines < 0) @ odd) % 2.0
        found = np.exp(exponent) * (1.0 - 2.0 * negative)
        tail -= float((np.sin(frequency * place) / halves) @ found) / math.pi
        if np.abs(found[_STEPS_AT_ONCE // 2 :]).max() < _NOTHING:
            break
    # A tail below the rest of the sum is the normal one as well.
    return tail if tail > 1e-8 else float(normal_cdf(-place))


# Parts of the largest effect on a value: effects that differ by less are equal, and smaller ones are rounding.
_EQUAL = 1e-6
# Relative to each other, weights of samples by numeric derivatives that differ by less are equal.
_EQUAL_WEIGHTS = 1e-5
# Parts of a difference, or of its deviation, by which it may lie beside the sum that stands for it.
_NEAR = 0.25
# A difference and its linear part that are further apart than by this factor are no multiples of each other.
_MOST_SCALED = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """Differences of V values between two runs on the same samples, as sums over the samples.

    Around the matrix halfway between those of the runs M(A) - M(B) is the sum of g(t, a) - g(t, b), g the derivative by
    the count of a cell, up to terms of third order: those of second order cancel. Swapping the two predictions of a
    sample does not move that matrix, so the sum is the statistic of an exact test by swaps.

    Within each class the samples on which the runs differ count as ``better`` and ``worse`` ones of one weight, the
    root mean square of what they contribute; for means of recalls that is what they do contribute. In a class where no
    sample is right in one run only, one weighs at least what such a sample would.

    Attributes:
        difference: (V) first less second.
        linear: (V) the sums.
        tail: (V) P(S > |s|) + P(S = |s|) / 2 of the sums when every sample is swapped or not by a fair coin.
        better: (V, K) samples for the first run; they need not be whole.
        worse: (V, K) samples for the second.
        weights: (V, K) what one of them adds to the value.
        sizes: (V, K) all samples of the class.
    """

    difference: Array
    linear: Array
    tail: Array
    better: Array
    worse: Array
    weights: Array
    sizes: Array

    @classmethod
    def stacked(cls, parts: Sequence["Effects"]) -> "Effects":
        """Join the effects on several sets of values, all of equally many classes."""
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))

    @property
    def faithful(self) -> NDArray[np.bool_]:
        """Mask (V) of the values whose sums are near the differences, as they are for metrics that are smooth between
        the runs.
        """
        deviation = np.sqrt((self.weights**2 * (self.better + self.worse)).sum(axis=1))
        off = np.abs(self.difference - self.linear)
        near: NDArray[np.bool_] = off <= _NEAR * np.maximum(np.abs(self.difference), deviation)
        return near


@dataclass(frozen=True, slots=True, eq=False)
class PairSlopes:
    """Differences of V values of two runs on the same items, and their derivatives at the matrix halfway between both.

    Swapping the two predictions of an item does not move that matrix, and neither does another pairing.

    Attributes:
        difference: (V) first less second.
        slopes: (V, T, C) derivatives by the count of a cell, of items of T classes that are taken for one of C.
        unseen: Gives (V, T) how much one more right item in place of a wrong one changes; 0 for a class without items.
        noise: Parts of the largest effect on a value by which effects that are equal may differ.
    """

    difference: Array
    slopes: Array
    unseen: Callable[[], Array]
    noise: float = 0.0

    @classmethod
    def numeric(cls, matrices: Array, functional: Functional, scales: Array) -> "PairSlopes":
        """Numeric derivatives of smooth metrics.

        Args:
            matrices: (2, K, K) of the runs.
            functional: V values of a table.
            scales: (K) what an item of each class weighs on average.
        """
        middle = matrices.mean(axis=0)
        with silently():
            difference = np.subtract(*functional(Table(matrices)))
        unseen = cache(partial(_unseen, middle, functional, scales))
        return cls(difference, cell_slopes(middle, functional), unseen, _EQUAL)

    def of(self, some: slice) -> "PairSlopes":
        """Select some of the values."""
        return PairSlopes(self.difference[some], self.slopes[some], lambda: self.unseen()[some], self.noise)

    def effects(self, joint: JointCounts) -> Effects:
        """Effects of paired items, whole numbers of them; NaN where a value or a derivative does not exist."""
        differing = np.flatnonzero(joint.predictions[0] != joint.predictions[1])
        truth, (first, second) = joint.truth[differing], joint.predictions[:, differing]
        counts = joint.counts[differing]
        changes = (self.slopes[:, truth, first] - self.slopes[:, truth, second]).T
        if joint.weights is not None:
            changes = changes * joint.weights[differing][:, None]
        right = joint.correct()[:, differing]
        turned = right[0] != right[1]
        absent = ~np.isfinite(self.difference) | ~np.isfinite(changes).all(axis=0)
        changes = _rounded(np.where(absent, 0.0, changes), self.noise)
        # Summed value by value, so that none depends on how many there are.
        linear = np.ascontiguousarray((counts[:, None] * changes).T).sum(axis=1)
        tail = [_tail(abs(float(total)), column, counts) for total, column in zip(linear, changes.T, strict=True)]

        def by_class(values: Array) -> Array:
            """Sums (V, T) of what is known of every combination (P, V)."""
            sums = np.zeros((joint.n_classes, values.shape[1]))
            np.add.at(sums, truth, counts[:, None] * values)
            return sums.T

        square, present = by_class(changes**2), changes != 0.0
        seen = by_class(present * turned[:, None]) > 0
        with silently():
            weights = np.sqrt(square / by_class(present.astype(np.float64)))
        if not seen.all():
            weights = np.fmax(np.nan_to_num(weights), np.where(seen | absent[:, None], 0.0, self.unseen()))
        with silently():
            surplus = np.where(weights > 0, by_class(changes) / weights, 0.0)
            both = np.where(weights > 0, np.maximum(square / weights**2, np.abs(surplus)), 0.0)
        better, worse = (
            np.where(side > _EQUAL, side, 0.0) for side in ((both + surplus) / 2.0, (both - surplus) / 2.0)
        )
        linear, tails = (np.where(absent, np.nan, one) for one in (linear, np.array(tail)))
        sizes = np.broadcast_to(joint.members(), weights.shape)
        return _pooled(Effects(self.difference, linear, tails, better, worse, weights, sizes))


def _pooled(effects: Effects) -> Effects:
    """Pool the classes whose samples weigh the same into the first of them, so that with classes of equal size the mean
    of the recalls equals accuracy.
    """
    shape = n_values, size = effects.weights.shape
    if size == 1:
        return effects
    order = np.argsort(effects.weights, axis=1, kind="stable")
    ordered = np.take_along_axis(effects.weights, order, axis=1)
    apart: Mask = np.asarray(np.diff(ordered, axis=1, prepend=-1.0) > _EQUAL_WEIGHTS * ordered)
    if apart.all():
        return effects
    own = np.zeros(order.shape, dtype=np.intp)
    np.put_along_axis(own, order, np.cumsum(apart, axis=1) - 1, axis=1)
    places = (size * np.arange(n_values)[:, None] + own).ravel()
    used = effects.weights > 0

    def summed(values: Array) -> Array:
        return np.bincount(places, values.ravel(), n_values * size).astype(np.float64).reshape(shape)

    better, worse, sizes = (summed(np.where(used, one, 0.0)) for one in (effects.better, effects.worse, effects.sizes))
    weights = summed(effects.weights) / np.maximum(summed(used.astype(np.float64)), 1.0)
    # A class whose samples went to another takes no part, having no weight.
    return replace(effects, better=better, worse=worse, weights=weights, sizes=np.where(sizes > 0, sizes, 1.0))


def coupled(first: Array, second: Array, slopes: Array, *, opposed: bool) -> JointCounts:
    """The pairing of two matrices (T, C) of the same items at which a difference with these slopes (T, C) varies least,
    or, where items are ``opposed``, most.

    Within a class the sum of products is greatest when both are sorted alike and smallest when they are sorted against
    each other (Hoeffding 1940).
    """
    orders = [np.argsort(side, axis=1, kind="stable") for side in (slopes, -slopes if opposed else slopes)]
    ends = [
        np.take_along_axis(one, order, axis=1).ravel().cumsum()
        for one, order in zip((first, second), orders, strict=True)
    ]
    cuts = np.unique(np.concatenate([[0.0], *ends]))
    middles, items = (cuts[1:] + cuts[:-1]) / 2.0, np.diff(cuts)
    left, right = (np.searchsorted(end, middles) for end in ends)
    predictions = np.stack([orders[0].ravel()[left], orders[1].ravel()[right]])
    return JointCounts(len(first), left // first.shape[1], predictions, items)


def _rounded(changes: Array, noise: float) -> Array:
    """Effects (P, V) without what numeric derivatives leave of equal ones."""
    if noise == 0.0:
        return changes
    unit = noise * np.abs(changes).max(axis=0, initial=0.0)
    steps = np.divide(changes, unit, out=np.zeros_like(changes), where=unit > 0)
    rounded: Array = np.round(steps) * unit
    return rounded


def _tail(statistic: float, changes: Array, counts: Array) -> float:
    sizes, members = np.unique(np.abs(changes), return_inverse=True)
    items = np.bincount(members, weights=counts, minlength=sizes.size).astype(np.float64)
    some = sizes > 0
    if np.count_nonzero(some) == 1:
        (size,), (count,) = sizes[some], items[some]
        ahead = np.round(statistic / size)
        return float(mcnemar_mid_p((count + ahead) / 2.0, (count - ahead) / 2.0)) / 2.0
    return upper_mid_p(statistic, sizes[some], items[some])


def _unseen(middle: Array, functional: Functional, scales: Array) -> Array:
    """Return the absolute effect of one more right sample in place of a wrong one on values (V, K); 0 for a class
    without samples.

    By half a sample either way, where there is half a one; what becomes wrong is spread as what is wrong. A sample
    weighs what is usual in its class (K).
    """
    classes = np.flatnonzero(middle.sum(axis=1) > 0)
    right, sizes = middle[classes, classes], middle[classes].sum(axis=1)
    half = 0.5 * scales[classes]
    ways = np.clip(np.stack([sizes - right, -right]), -half, half)
    with silently():
        up, down = functional(at_recalls(middle, classes)((right + ways) / sizes))
        slopes = (up - down) / (ways[0] - ways[1])[:, None] * scales[classes][:, None]
    found = np.zeros((slopes.shape[1], len(middle)))
    found[:, classes] = np.nan_to_num(np.abs(slopes).T, posinf=0.0)
    return found


# Logarithms of multipliers that are looked at, for weights of at most 1. A class of which no sample speaks for one of
# the runs begins to lose some at a multiplier of 1/2 or more, so there the steps are small.
_GRID = np.concatenate([np.linspace(-16.0, -1.0, 61), np.linspace(-1.0, 8.0, 145)[1:], np.linspace(8.0, 30.0, 23)[1:]])
# Multipliers times values times classes that are looked at in one go: more leave the cache of the processor.
_AT_ONCE = 1 << 16
# Into how many parts, and how often, a step of it is divided for what has to be exact.
_PARTS, _DIVISIONS = np.linspace(0.0, 1.0, 9), 6
_NEWTON_STEPS = 60
_SETTLED = 1e-14
# Parts of a difference that its limit stays above 0 where the exact test rejects and the score does not yet.
_BARELY = 1e-3


class PairedDifferences:
    """Confidence distributions of V differences on the same samples, from the effects of these: what a score test does
    not reject.

    Under the hypothesis that the effects add up to d, the shares of better and of worse samples in every class are
    those of maximum likelihood, and z(d) = (S - d) / sd has the deviation that these shares give. For one class that
    is Tango's (1998) score. At 0 there is an exact test besides, by swaps, and p is the larger one of both: few samples
    have too few swaps for what the score says, and swaps take the runs as alike in every class, while one can gain in a
    class of many samples what it loses, unseen, in one of few. Of a single class the exact test alone decides. Limits
    exclude 0 at just the levels at which p rejects it: where the score alone would, they are held at 0.

    Attributes:
        p: (V) two-sided, of no difference.
    """

    def __init__(self, effects: Effects) -> None:
        unit, ahead = effects.weights.max(axis=1, initial=0.0), effects.linear >= 0.0
        with silently():
            scale, weights = effects.difference / effects.linear, effects.weights / unit[:, None]
            self._total = np.abs(effects.linear) / unit
        scale = np.where((scale > 1.0 / _MOST_SCALED) & (scale < _MOST_SCALED), scale, 1.0)
        # From the sum of the run that is ahead, in units of the largest weight, to the difference.
        self._difference, self._slope = effects.difference, np.where(ahead, 1.0, -1.0) * unit * scale
        better, worse = (
            np.where(ahead[:, None], *sides)
            for sides in ((effects.better, effects.worse), (effects.worse, effects.better))
        )
        self._near = _Side(better, worse, weights, effects.sizes, self._total)
        self._far = _Side(worse, better, weights, effects.sizes, -self._total)
        alone, score = np.count_nonzero(effects.weights, axis=1) == 1, self._near.score(self._total)
        tail = np.where(alone, effects.tail, np.maximum(effects.tail, normal_cdf(-score)))
        self.p: Array = np.minimum(2.0 * tail, 1.0)

    def limits(self, level: float) -> tuple[Array, Array]:
        """Lower and upper limits (V); NaN where the value is undefined or no sample can move it."""
        z, rejected, barely = two_sided_z(level), self.p < 1.0 - level, _BARELY * self._difference
        ends = np.stack([self._total - self._near.reach(z), self._total + self._far.reach(z)]) * self._slope
        # What is no multiple of the sum lies near it all the same.
        low, high = np.minimum(ends.min(axis=0), self._difference), np.maximum(ends.max(axis=0), self._difference)
        low, high = (
            np.where(rejected, np.where((end <= 0.0) != (barely <= 0.0), barely, end), held)
            for end, held in ((low, np.minimum(low, 0.0)), (high, np.maximum(high, 0.0)))
        )
        return low, high

    def chance_above(self, threshold: Array | float) -> Array:
        """Confidence (V) that the differences are larger than a threshold: neither sign is surer than 1 - p/2, and at 0
        the one that was found is as sure.
        """
        threshold = np.asarray(threshold)
        with silently():
            away = self._total - threshold / self._slope
        z = np.where(away > 0.0, self._near.score(np.maximum(away, 0.0)), -self._far.score(np.maximum(-away, 0.0)))
        share, most = normal_cdf(np.where(self._slope < 0.0, -z, z)), 1.0 - self.p / 2.0
        share = np.where(threshold >= 0.0, np.minimum(share, most), share)
        share = np.where(threshold <= 0.0, np.maximum(share, 1.0 - most), share)
        return np.where(threshold == 0.0, np.where(self._difference >= 0.0, most, 1.0 - most), share)


class _Side:
    """The samples of V values seen from one run, hypotheses being below the sum.

    A hypothesis is found by its Lagrange multiplier, the larger the farther below. Its score need not grow all the way:
    where a class begins to lose samples of which it had none, the variance may grow faster than the distance. So a
    score counts as no larger than those farther below, as looked at on a grid.

    Args:
        better: (V, K).
        worse: (V, K).
        weights: (V, K), at most 1.
        sizes: (V, K).
        total: (V) the sum.
    """

    def __init__(self, better: Array, worse: Array, weights: Array, sizes: Array, total: Array) -> None:
        self._better, self._worse, self._weights, self._sizes, self._total = better, worse, weights, sizes, total
        step = max(1, _AT_ONCE // (_GRID.size * better.shape[1]))
        starts = range(0, max(total.size, 1), step)
        found = [self._at(np.tile(_GRID[:, None], min(step, total.size - at)), slice(at, at + step)) for at in starts]
        self._distances, scores = (np.concatenate(one, axis=1) for one in zip(*found, strict=True))
        self._scores = np.fmin.accumulate(np.where(self._distances == 0.0, 0.0, scores)[::-1])[::-1]

    def reach(self, z: float) -> Array:
        """Distances (V) of the hypotheses with a score."""
        return self._where(np.full(self._total.shape, z), 1)[0]

    def score(self, distance: Array) -> Array:
        """The scores (V) of hypotheses at distances (V)."""
        beyond = np.where(self._distances >= distance, self._scores, np.inf).min(axis=0)
        found = np.fmin(self._where(distance, 0)[1], beyond)
        # No shares add up to what is farther away than all samples could move the sum.
        found = np.where(distance > self._total + (self._sizes * self._weights).sum(axis=1), np.inf, found)
        return np.where(np.isnan(self._total), np.nan, np.where(distance > 0.0, found, 0.0))

    def _where(self, wanted: Array, which: int) -> tuple[Array, Array]:
        """Distances and scores (V) where the one or the other (``which``) is as large as wanted, from then on; the last
        ones where it never is. Steps on the grid are divided some times over.
        """
        places, found = np.broadcast_to(_GRID[:, None], self._scores.shape), (self._distances, self._scores)
        for left in range(_DIVISIONS, -1, -1):
            reached = found[which] >= wanted
            last = np.where(reached.any(axis=0), reached.argmax(axis=0), len(places) - 1)
            ends = np.stack([np.maximum(last - 1, 0), last])
            if left:
                low, high = np.take_along_axis(places, ends, axis=0)
                places = low + (high - low) * _PARTS[:, None]
                found = self._at(places)
        distances, scores = (np.take_along_axis(one, ends, axis=0) for one in found)
        with silently():
            low, high = (distances, scores)[which]
            part = np.where(high > low, np.clip((wanted - low) / (high - low), 0.0, 1.0), 1.0)
            return distances[0] + part * (distances[1] - distances[0]), scores[0] + part * (scores[1] - scores[0])

    def _at(self, place: Array, some: slice = slice(None)) -> tuple[Array, Array]:
        """Distance (..., V) of the sum above the hypothesis that belongs to a multiplier, by its logarithm, and score.

        In a class with b better, c worse and r other samples of weight w the shares of maximum likelihood are
        b / (v + q), c / (v - q) and r / v with q = n w multiplier, and v such that they add up to 1. Without worse
        samples v is no less than q, and what is left then is the share of worse ones.
        """
        b, c, w, n = (one[some] for one in (self._better, self._worse, self._weights, self._sizes))
        rest, scale = np.maximum(n - b - c, 0.0), n * w
        q = np.exp(place)[..., None] * scale
        with silently():
            left = 1.0 - (b / 2.0 + rest) / q
            edge = (c <= 0.0) & (left >= 0.0)
            v = np.where(edge, q, _scales(b, c, rest, q))
            better = b / (v + q)
            worse = np.where(edge, left, c / np.where(c > 0.0, v - q, np.inf))
            distance = self._total[some] - (scale * (better - worse)).sum(axis=-1)
            # What rounding leaves where no share has moved yet is nothing.
            distance = np.where(distance > _SETTLED * scale.sum(axis=-1), distance, 0.0)
            variance = (scale * w * (better + worse - np.square(better - worse))).sum(axis=-1)
            return distance, distance / np.sqrt(variance)


def _scales(better: Array, worse: Array, rest: Array, pull: Array) -> Array:
    """The v of ``_Side._at``, by Newton's method from below, where the sum of the shares is above 1 and convex.

    What has settled no longer moves, so that it is the same whatever else is looked at.
    """
    v = np.maximum(np.maximum(pull + worse, rest), better - pull)
    for _ in range(_NEWTON_STEPS):
        down = np.where(worse > 0.0, v - pull, np.inf)
        up = v + pull
        shares = better / up, worse / down, rest / v
        step = (shares[0] + shares[1] + shares[2] - 1.0) / (shares[0] / up + shares[1] / down + shares[2] / v)
        moving = step > _SETTLED * v
        if not some(moving):
            break
        v = np.where(moving, v + step, v)
    return v
