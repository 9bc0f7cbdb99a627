"""Limits and probabilities of differences of two runs on the same samples: a score method for any smooth metric."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.kernel.compare.paired.effects import Effects
from app.kernel.numerics.arrays import Array, Mask, silently, some
from app.kernel.numerics.roots import rising_root
from app.kernel.numerics.special import normal_cdf, normal_quantile
from app.kernel.uncertainty.intervals import two_sided_z

# Logarithms of multipliers that are looked at, for weights of at most 1. A class of which no sample speaks for one of
# the runs begins to lose some at a multiplier of 1/2 or more, so there the steps are small.
_GRID = np.concatenate([np.linspace(-30.0, -1.0, 30), np.linspace(-1.0, 8.0, 145)[1:], np.linspace(8.0, 30.0, 23)[1:]])
# Where they are counted from: roots are found to some parts of their size, of which 0 has none.
_ORIGIN = 50.0
_NEWTON_STEPS = 60
_SETTLED = 1e-14
# Sums that are closer, relative to their size, are equal: more is not known of them by numeric derivatives.
_EQUAL = 1e-9
# A difference and its linear part that are further apart than by this factor are no multiples of each other.
_MOST_SCALED = 2.0
# Parts of the score at 0 that limits which are held at 0 keep away from it.
_MARGIN = 0.02
# Multipliers times values times classes that are looked at in one go: more leave the cache of the processor.
_AT_ONCE = 1 << 16


class PairedScore:
    """The differences that a score test does not reject, for V values.

    Under the hypothesis that the effects add up to d, the shares of better and of worse samples in every class are
    those of maximum likelihood, and z(d) = (S - d) / sd has the deviation that these shares give. For one class that
    is Tango's (1998) score. At 0 there is an exact test besides, by swaps, and p is the larger one of both: few samples
    have too few swaps for what the score says, and swaps take the runs as alike in every class, while one can gain in a
    class of many samples what it loses, unseen, in one of few. Of a single class the exact test alone decides. Limits
    exclude 0 at just the levels at which p rejects it: where the score alone would, they are held at 0.

    Args:
        effects: What the samples contribute.

    Attributes:
        p: (V) two-sided, of no difference.
        score: (V) z at 0, of the run that is ahead.
    """

    def __init__(self, effects: Effects) -> None:
        n_values, n_classes = effects.weights.shape
        step = max(1, _AT_ONCE // (_GRID.size * n_classes))
        self._parts = [_Part(effects.of(slice(start, start + step))) for start in range(0, max(n_values, 1), step)]
        self.p = np.concatenate([part.p for part in self._parts])
        self.score = np.concatenate([part.score for part in self._parts])

    def limits(self, level: float) -> tuple[Array, Array]:
        """Lower and upper limits (V); NaN where the value is undefined or no sample can move it."""
        lows, highs = zip(*(part.limits(level) for part in self._parts), strict=True)
        return np.concatenate(lows), np.concatenate(highs)

    def chance_above(self, threshold: Array | float) -> Array:
        """How sure it is that the differences (V) are larger than thresholds: 1 less the one-sided p of these.

        At 0 that is the exact mid-p.
        """
        ends = np.cumsum([part.p.size for part in self._parts])[:-1]
        thresholds = np.split(np.broadcast_to(threshold, self.p.shape), ends)
        return np.concatenate([part.chance_above(own) for part, own in zip(self._parts, thresholds, strict=True)])


class _Part:
    """``PairedScore`` of as many values as are looked at in one go."""

    def __init__(self, effects: Effects) -> None:
        linear, unit = effects.linear, effects.weights.max(axis=1, initial=0.0)
        ahead = linear >= 0
        used = (effects.sizes > 0).any(axis=0)
        with silently():
            scale = effects.difference / linear
            weights = effects.weights[:, used] / unit[:, None]
            total = np.abs(linear) / unit
        scaled = (scale > 1.0 / _MOST_SCALED) & (scale < _MOST_SCALED)
        # From the sum of the run that is ahead, in units of the largest weight, to the difference.
        self._slope = np.where(ahead, 1.0, -1.0) * unit * np.where(scaled, scale, 1.0)
        self._difference = effects.difference
        better, worse = effects.better[:, used], effects.worse[:, used]
        sides = np.where(ahead[:, None], better, worse), np.where(ahead[:, None], worse, better)
        self._near = _Side(*sides, weights, effects.sizes[:, used], total)
        self._far = _Side(*sides[::-1], weights, effects.sizes[:, used], -total)
        self.score = self._near.score_of(np.zeros(total.shape))
        alone = (effects.weights > 0).sum(axis=1) == 1
        tail = np.where(alone, effects.tail, np.maximum(effects.tail, normal_cdf(-self.score)))
        self.p = np.minimum(2.0 * tail, 1.0)
        self._calibration = _Calibration(-normal_quantile(np.maximum(tail, 1e-300)), self.score)

    def limits(self, level: float) -> tuple[Array, Array]:
        z = np.full(self._slope.shape, two_sided_z(level))
        ends = self._near.at_score(self._calibration.score_at(z)), -self._far.at_score(z)
        first, second = (end * self._slope for end in ends)
        # What is no multiple of the sum lies near it all the same.
        low = np.minimum(np.minimum(first, second), self._difference)
        high = np.maximum(np.maximum(first, second), self._difference)
        # Rounding leaves no limit beside 0.
        within = self.p >= 1.0 - level
        return np.where(within, np.minimum(low, 0.0), low), np.where(within, np.maximum(high, 0.0), high)

    def chance_above(self, threshold: Array) -> Array:
        with silently():
            place = threshold / self._slope
        below = place < self._near.total
        near = self._calibration.level_at(self._near.score_of(np.where(below, place, self._near.total)))
        far = self._far.score_of(np.where(below, self._far.total, -place))
        z = np.where(np.isnan(place), np.nan, np.where(below, near, -far))
        return normal_cdf(np.where(self._slope < 0, -z, z))


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
        self._better, self._worse, self._weights, self._sizes, self.total = better, worse, weights, sizes, total
        # How far the sums could go either way.
        self._reach = (sizes * weights).sum(axis=1)
        logarithms = np.broadcast_to(_GRID[:, None], (_GRID.size, total.size))
        self._scores = self._score(np.exp(logarithms))

    def at_score(self, z: Array) -> Array:
        """The hypotheses (V) with a score z (V) above 0; the sums themselves where nothing lies below these."""

        def above(multiplier: Array) -> tuple[Array, Array]:
            gap, variance, gap_slope, variance_slope = self._fit(multiplier)
            slope = gap_slope / gap - variance_slope / (2.0 * variance)
            return np.log(gap / np.sqrt(variance)) - np.log(z), slope

        lowest = self.total <= -self._reach * (1.0 - _EQUAL)
        places = np.arange(_GRID.size)[:, None]
        with silently():
            last_short = np.where(self._scores < z, places, 0).max(axis=0)
            reached = (self._scores >= z) & (places > last_short)
        low = _GRID[last_short]
        high = np.where(reached.any(axis=0), _GRID[reached.argmax(axis=0)], _GRID[-1])
        gap = self._fit(_solved(above, np.isfinite(self.total) & ~lowest, low, high))[0]
        return np.where(lowest, self.total, self.total - gap)

    def score_of(self, hypothesis: Array) -> Array:
        """The scores (V) of hypotheses (V), infinite where no shares add up to them."""
        distance = self.total - hypothesis
        apart = distance > _EQUAL * np.maximum(np.abs(self.total), 1.0)
        reachable = hypothesis > -self._reach * (1.0 - _EQUAL)

        def above(multiplier: Array) -> tuple[Array, Array]:
            gap, _, slope, _ = self._fit(multiplier)
            return np.log(gap) - np.log(distance), slope / gap

        ends = np.full(distance.shape, _GRID[0]), np.full(distance.shape, _GRID[-1])
        multiplier = _solved(above, reachable & apart, *ends)
        with silently():
            beyond = (np.exp(_GRID)[:, None] > multiplier) & ~np.isnan(self._scores)
            least = np.where(beyond, self._scores, np.inf).min(axis=0)
            scores = np.minimum(distance / np.sqrt(self._fit(multiplier)[1]), least)
        return np.where(apart, np.where(reachable, scores, np.inf), 0.0)

    def _score(self, multipliers: Array) -> Array:
        """The scores (G, V) at multipliers (G, V), NaN where nothing has moved."""
        with silently():
            gap, variance, _, _ = self._fit(multipliers)
            return gap / np.sqrt(variance)

    def _fit(self, multiplier: Array) -> tuple[Array, Array, Array, Array]:
        """How far (..., V) the sum lies above the hypothesis that belongs to a multiplier, the variance there, and the
        derivatives of both by the multiplier (..., V).

        In a class with b better, c worse and r other samples of weight w the shares of maximum likelihood are
        b / (v + q), c / (v - q) and r / v with q = n w multiplier, and v such that they add up to 1. Without worse
        samples v is no less than q, and what is left then is the share of worse ones.
        """
        b, c, w, n = self._better, self._worse, self._weights, self._sizes
        rest, scale = np.maximum(n - b - c, 0.0), n * w
        q = multiplier[..., None] * scale
        with silently():
            left = 1.0 - (b / 2.0 + rest) / q
            edge = (c <= 0.0) & (left >= 0.0)
            v = np.where(edge, q, _scales(b, c, rest, q))
            down = np.where(c > 0.0, v - q, np.inf)
            share_up, share_down = b / (v + q), np.where(edge, left, c / down)
            bends = share_up / (v + q), c / down**2, rest / v**2
            turn = (bends[1] - bends[0]) / (bends[0] + bends[1] + bends[2])
            slope_up = -bends[0] * np.where(edge, 2.0, 1.0 + turn)
            slope_down = np.where(edge, (b / 2.0 + rest) / q**2, bends[1] * (1.0 - turn))
        share, both = share_up - share_down, share_up + share_down
        slope, both_slope = slope_up - slope_down, slope_up + slope_down
        gap = self.total - (scale * share).sum(axis=-1)
        return (
            # What rounding leaves where no share has moved yet is nothing.
            np.where(gap > _SETTLED * self._reach, gap, 0.0),
            (scale * w * (both - share * share)).sum(axis=-1),
            -(scale * scale * slope).sum(axis=-1),
            (scale * scale * w * (both_slope - 2.0 * share * slope)).sum(axis=-1),
        )


def _solved(function: Callable[[Array], tuple[Array, Array]], solvable: Mask, low: Array, high: Array) -> Array:
    """The multipliers (V) at which a function, given with its derivative, is 0, by the ends of their logarithms; NaN
    where there are none.
    """

    def of_logarithm(place: Array) -> tuple[Array, Array]:
        multiplier = np.exp(place - _ORIGIN)
        value, slope = function(multiplier)
        # Where nothing moves yet there is no logarithm.
        missing = np.isnan(value)
        return np.where(missing, -1.0, value), np.where(missing, 0.0, multiplier * slope)

    with silently():
        start = np.where(solvable, _ORIGIN + (low + high) / 2.0, np.nan)
        return np.exp(rising_root(of_logarithm, start, low=_ORIGIN + low, high=_ORIGIN + high) - _ORIGIN)


def _scales(better: Array, worse: Array, rest: Array, pull: Array) -> Array:
    """The v of ``_Side._fit``, by Newton's method from below, where the sum of the shares is above 1 and convex.

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


@dataclass(frozen=True, slots=True, eq=False)
class _Calibration:
    """At which score limits are read, so that they exclude 0 just where p rejects it.

    Between the z of p and the score's at 0 limits are held at 0: just beyond it where p rejects it, just short of it
    where it does not. Elsewhere a level is read at its own z.

    Attributes:
        exact: (V) z of p.
        score: (V) z of the score at 0.
    """

    exact: Array
    score: Array

    @property
    def _end(self) -> Array:
        """Where holding begins or ends, a little off the score at 0 on the other side than the exact z."""
        return self.score * np.where(self.score < self.exact, 1.0 - _MARGIN, 1.0 + _MARGIN)

    def score_at(self, z: Array) -> Array:
        """The score (V) for a level with this z (V)."""
        return self._through(z, self.exact, self.score, z)

    def level_at(self, score: Array) -> Array:
        """The z (V) of the level that is read at this score (V)."""
        held = np.minimum(self.exact, self.score), np.maximum(self.exact, self.score)
        outside = np.where((score > held[0]) & (score < held[1]), self.exact, score)
        return self._through(score, self.score, self.exact, outside)

    def _through(self, values: Array, start: Array, image: Array, outside: Array) -> Array:
        """Values between a start and the end on the line from the image of the start to the end."""
        end = self._end
        inside = (values >= np.minimum(start, end)) & (values <= np.maximum(start, end))
        with silently():
            place = np.where(inside & (end != start), (values - start) / (end - start), 0.0)
        return np.where(inside, image + place * (end - image), outside)
