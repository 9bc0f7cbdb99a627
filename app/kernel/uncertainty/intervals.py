"""Intervals of binomial proportions and of means of them: Wilson, Jeffreys, MOVER; limits around values with a
standard error. All functions are elementwise.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from math import hypot, nan
from typing import Final

import numpy as np

from app.kernel.metrics.card import Mean, Scale
from app.kernel.numerics.arrays import Array, last_inside, ones, silently, some
from app.kernel.numerics.scipy_bridge import beta_quantile, binomial_upper_tail, normal_cdf, normal_quantile


class ProportionInterval(StrEnum):
    """Methods of the limits of a proportion; see ``intervals``."""

    WILSON = "wilson"
    CLOPPER_PEARSON = "clopper_pearson"
    JEFFREYS = "jeffreys"
    WALD = "wald"


Limits = tuple[Array, Array]


# The last double before 1.
_HIGHEST_LEVEL = 1.0 - 2.0**-53


def below_one(level: float) -> float:
    """A level of one of many, which may round to 1 where the level of all is near it."""
    return min(level, _HIGHEST_LEVEL)


@lru_cache(maxsize=256)
def two_sided_z(level: float) -> float:
    """Normal quantile that leaves (1 - level)/2 on each side. Raises ValueError unless 0 < level < 1."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"a level must lie between 0 and 1, not {level}")
    return one_sided_z((1.0 - level) / 2.0)


@lru_cache(maxsize=256)
def one_sided_z(alpha: float) -> float:
    """Normal quantile with alpha above it. Raises ValueError unless 0 < alpha < 1."""
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha must lie between 0 and 1, not {alpha}")
    return -float(normal_quantile(alpha))


# Points of the integral over the smallest of several normals, and where these end.
_POINTS, _FAR = 2001, 9.0


def range_cdf(q: float, count: int) -> float:
    """P that the range of ``count`` standard normals is at most q."""
    x = np.linspace(-_FAR, _FAR, _POINTS)
    density = np.exp(-x * x / 2.0) / np.sqrt(2.0 * np.pi)
    # The trapezoid rule has all its digits for what dies down at both ends.
    inside = (normal_cdf(x + q) - normal_cdf(x)) ** (count - 1)
    return float(count * (density * inside).sum() * (x[1] - x[0]))


@lru_cache(maxsize=256)
def range_quantile(count: int, level: float) -> float:
    """Quantile of the range of ``count`` standard normals: the studentised range with infinite degrees of freedom."""
    return last_inside(lambda q: range_cdf(q, count) < level, 0.0, 4.0 * _FAR)


def wilson(x: Array, n: Array, level: float = 0.95) -> Limits:
    """Score interval (x + z^2/2 -+ z sqrt(x(n-x)/n + z^2/4)) / (n + z^2). Wilson (1927).

    The closed ends are exactly 0 at x = 0 and 1 at x = n. Real-valued x and n are allowed.
    """
    return wilson_at(x, n, two_sided_z(level))


def wilson_at(x: Array, n: Array, z: Array | float) -> Limits:
    """Wilson's interval at normal deviates z (...)."""
    square = z * z
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = x / n
        spread = z * np.sqrt(rate * (n - x) + square / 4.0)
        center = x + square / 2.0
        scale = n + square
        # At x = 0 the difference is exactly 0 in floating point; at x = n rounding would leave something below 1.
        return (center - spread) / scale, np.where(rate == 1.0, 1.0, (center + spread) / scale)


# Values with their lower and their upper limits, each (...).
ValueWithEnds = tuple[Array, Array, Array]


def ratio_limits(above: ValueWithEnds, below: ValueWithEnds) -> Limits:
    """Return limits of the ratios of two independent values of at least 0, from the limits of each: MOVER-R.

    Donner & Zou (2012), equation 9. The upper limit is infinite where the denominator may be 0.
    """
    (b, b_low, b_high), (a, a_low, a_high) = above, below

    def end(numerator: Array, denominator: Array, sign: float) -> Array:
        scale = denominator * (2.0 * a - denominator)
        with silently():
            root = np.maximum((a * b) ** 2 - numerator * (2.0 * b - numerator) * scale, 0.0)
            # Where the quadratic has no root, so far out are they: both at their ends.
            far = np.where(denominator == 0.0, np.inf, numerator / denominator)
            return np.where(scale <= 0.0, far, (a * b + sign * np.sqrt(root)) / scale)

    return end(b_low, a_high, -1.0), end(b_high, a_low, 1.0)


def clopper_pearson(x: Array, n: Array, level: float = 0.95) -> Limits:
    """Interval by inversion of the binomial test, never below its level. Clopper & Pearson (1934).

    Its ends are quantiles of Beta(x, n-x+1) and Beta(x+1, n-x).
    """
    tail = (1.0 - level) / 2.0
    x, n = np.broadcast_arrays(np.asarray(x, dtype=np.float64), np.asarray(n, dtype=np.float64))
    misses = n - x
    low = beta_quantile(np.where(x > 0, x, 1.0), misses + 1.0, tail)
    high = beta_quantile(x + 1.0, np.where(misses > 0, misses, 1.0), 1.0 - tail)
    return _closed(low, high, x, n)


def jeffreys(x: Array, n: Array, level: Array | float = 0.95) -> Limits:
    """Equal-tailed interval of Beta(x + 1/2, n - x + 1/2), forced to 0 at x = 0 and to 1 at x = n; all broadcast."""
    tail = (1.0 - level) / 2.0
    a, b = x + 0.5, (n - x) + 0.5
    return _closed(beta_quantile(a, b, tail), beta_quantile(a, b, 1.0 - tail), x, n)


def wald(x: Array, n: Array, level: float = 0.95) -> Limits:
    """Normal interval p -+ z sqrt(p(1-p)/n); what reaches beyond 0 and 1 is cut there. Laplace (1812).

    For comparison with what others report: it misses its level for few samples and near 0 and 1, and has no width at
    all at x = 0 and x = n (Brown, Cai & DasGupta 2001).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = x / n
        half_width = two_sided_z(level) * np.sqrt(rate * (1.0 - rate) / n)
    return np.maximum(rate - half_width, 0.0), np.minimum(rate + half_width, 1.0)


_FORMS = {
    ProportionInterval.WILSON: wilson,
    ProportionInterval.CLOPPER_PEARSON: clopper_pearson,
    ProportionInterval.JEFFREYS: jeffreys,
    ProportionInterval.WALD: wald,
}


def proportion_limits(x: Array, n: Array, level: float, interval: ProportionInterval) -> Limits:
    """Limits of a proportion by the method that is asked for."""
    return _FORMS[interval](x, n, level)


def _closed(low: Array, high: Array, x: Array, n: Array) -> Limits:
    """Force the ends that belong to x = 0 and x = n, and NaN where there is no trial."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rate = x / n
    # Where the rate is 0 or 1 or NaN, the end is the rate itself.
    return np.where(rate > 0, low, rate), np.where(rate < 1, high, rate)


def limits_around(
    values: Array, half_widths: Array, scale: Scale, low: Array | float | None = None, high: Array | float | None = None
) -> Limits:
    """Limits (...) of values (...) by the delta method; NaN where these have no width or lie at an end of the scale.

    Args:
        values: The estimates.
        half_widths: Of intervals around them, as far as the metric is linear.
        scale: On which limits are symmetric. The logit maps the range to the whole line and back, which of correlations
            is Fisher's z; the logarithm maps what is above 0. Linear limits, those of Wald, are cut to the range.
        low: End of the range; None where there is none.
        high: The other end.
    """
    bottom, top = -np.inf if low is None else low, np.inf if high is None else high
    with silently():
        if scale is Scale.LOGIT:
            width = top - bottom
            share = (values - bottom) / width
            odds, spread = (1.0 - share) / share, half_widths / width / (share * (1.0 - share))
            ends = bottom + width / (1.0 + odds * np.exp(spread)), bottom + width / (1.0 + odds * np.exp(-spread))
        elif scale is Scale.LOG:
            factor = np.exp(half_widths / values)
            ends = values / factor, values * factor
        else:
            ends = np.maximum(values - half_widths, bottom), np.minimum(values + half_widths, top)
        known = (half_widths > 0.0) & np.isfinite(ends[0]) & np.isfinite(ends[1])
    return np.where(known, ends[0], nan), np.where(known, ends[1], nan)


# From so many rates on the corrections of `_moves_of_sum` outweigh how few values the mean of two takes.
_MANY = 3
# From moves (N, K) to how far their sums move (N).
Spread = Callable[[Array], Array]


def independent(moved: Array) -> Array:
    """Root of the sum of squares (N) of moves (N, K)."""
    root: Array = np.sqrt((moved * moved).dot(ones(moved.shape[-1])))
    return root


def correlated(errors: Array, variances: Callable[[Array], Array]) -> Spread:
    """Return how far sums move whose parts have errors that go together: in standard errors moves weigh these (Zou
    2008). A part that does not vary has no correlation.

    Args:
        errors: Standard errors (K) of the parts.
        variances: From weights (N, K) of the parts to the variances (N) of their sums.
    """

    def spread(moved: Array) -> Array:
        varies = errors > 0
        with silently():
            weights = np.where(varies, moved / errors, 0.0)
        found: Array = np.sqrt(variances(weights) + np.where(varies, 0.0, moved * moved).sum(axis=-1))
        return found

    return spread


@dataclass(frozen=True, slots=True)
class _Scale:
    """The scale on which a mean of rates is a sum of parts in a range, and what of x hits among n has next to no bias
    on it, with its variance. All are elementwise.
    """

    part: np.ufunc
    inverse: np.ufunc
    range: tuple[float, float]
    estimate: Callable[[Array, Array], Array]
    variance: Callable[[Array, Array], Array]


_SCALES: Final[Mapping[Mean, _Scale]] = {
    Mean.ARITHMETIC: _Scale(
        np.positive,
        np.positive,
        (0.0, 1.0),
        lambda x, n: x / n,
        lambda x, n: x * (n - x) / (n * n * np.maximum(n - 1.0, 1.0)),
    ),
    # Haldane (1956).
    Mean.GEOMETRIC: _Scale(
        np.log,
        np.exp,
        (-np.inf, 0.0),
        lambda x, n: np.log((x + 0.5) / (n + 0.5)),
        lambda x, n: (n - x) / (n * (x + 0.5)),
    ),
    # Chapman (1951).
    Mean.HARMONIC: _Scale(
        np.reciprocal,
        np.reciprocal,
        (1.0, np.inf),
        lambda x, n: (n + 1.0) / (x + 1.0),
        lambda x, n: (n + 1.0) * (n - x) / ((x + 1.0) ** 2 * (x + 2.0)),
    ),
}


def mean_limits(
    rates: Array,
    low: Array,
    high: Array,
    sizes: Array,
    *,
    level: float = 0.95,
    spread: Spread = independent,
) -> Array:
    """Limits of the arithmetic, the geometric and the harmonic mean of rates, by MOVER (Zou & Donner 2008).

    Args:
        rates: (..., K), NaN where undefined.
        low: Lower limits of each, (..., K).
        high: Upper limits of each, (..., K).
        sizes: Samples of each, or what they are worth, (..., K).
        level: Of the limits.
        spread: How far the sum moves when every rate moves to its limit: for correlated rates the root of the sum of
            all products of two moves and their correlation.

    Returns:
        (3, 2, ...): mean by mean, low and high. NaN where a rate is.
    """
    weights = ones(rates.shape[-1])
    with silently():
        limits = np.array([low, high])
        zero = rates == 0
        degenerate = some(zero)
        positive = np.where(zero, high, rates) if degenerate else rates
        kinds = (len(_SCALES), *rates.shape)
        moved, variances, bias, sums = np.empty((2, *kinds)), np.empty(kinds), np.empty(kinds), np.empty(kinds[:-1])
        for mean, scale in _SCALES.items():
            own = rates if mean is Mean.ARITHMETIC else positive
            parts, hits = scale.part(own), own * sizes
            moved[:, mean], sums[mean] = scale.part(limits) - parts, parts.dot(weights)
            variances[mean], bias[mean] = scale.variance(hits, sizes), parts - scale.estimate(hits, sizes)
            if degenerate and mean is not Mean.ARITHMETIC:
                # Of H and G only the upper limit is asked for then, at which these stand already.
                moved[:, mean, zero] = bias[mean, zero] = 0.0
        found = sums + _moves_of_sum(moved, variances, bias, weights.size, level, spread)
        ends = np.empty((len(_SCALES), 2, *rates.shape[:-1]))
        for mean, scale in _SCALES.items():
            lowest, highest = scale.range
            ends[mean] = scale.inverse(np.minimum(np.maximum(found[:, mean] / weights.size, lowest), highest))
        if degenerate:
            with_zero = zero.any(axis=-1) & ~np.isnan(rates.dot(weights))
            for mean in (Mean.GEOMETRIC, Mean.HARMONIC):
                ends[mean, 0] = np.where(with_zero, 0.0, ends[mean, 0])
    return ends


def share_limits(
    rates: Array, low: Array, high: Array, sizes: Array, shares: Array, level: float, spread: Spread
) -> Array:
    """Limits (2) of the arithmetic mean of rates in shares, as `mean_limits` makes them of equal shares.

    Args:
        rates: (K), undefined where their share is 0.
        low: Lower limits (K) of each.
        high: Upper limits (K) of each.
        sizes: Samples (K) of each, or what they are worth.
        shares: (K), at least 0, with a sum of 1.
        level: Of the limits.
        spread: How far the sum moves when every rate moves to its limit.
    """
    present = shares > 0
    with silently():
        rates = np.where(present, rates, 0.0)
        moved = np.where(present, (np.array([low, high]) - rates) * shares, 0.0)
        variances = np.where(present, shares**2 * _SCALES[Mean.ARITHMETIC].variance(rates * sizes, sizes), 0.0)
        moves = _moves_of_sum(moved, variances, np.zeros_like(rates), int(present.sum()), level, spread)
        return np.clip(shares @ rates + moves, 0.0, 1.0)


def _moves_of_sum(moved: Array, variances: Array, bias: Array, number: int, level: float, spread: Spread) -> Array:
    """Moves (2, ...) of a sum of parts to its limits, from those of each part (2, ..., K).

    MOVER adds the skewness and the bias of each part, by which its limits lie to one side of it, as if they were error.
    Over K parts skewness fades with the root of K, and bias adds up. So half the widths are added by squares, the
    skewness of each part counts by its share of the variance (Cornish & Fisher 1938), and the bias is taken off. Of few
    samples half the width of Jeffreys' limits is less than the standard error, which one part makes up for by its
    centre. Of one part all of this gives its own limits. Coverage: benchmarks/coverage.py.

    Args:
        moved: Of the parts.
        variances: Of the parts (..., K).
        bias: Of the parts (..., K).
        number: Of the parts; of fewer than `_MANY` MOVER is taken as it is.
        level: Of the limits.
        spread: How far a sum moves by moves of its parts.
    """
    weights = ones(moved.shape[-1])
    apart = moved[1] - moved[0]
    # The limits of one side move a sum all the same way, up or down with the direction of its scale.
    way = np.sign(apart.dot(weights))
    towards = np.array([-way, way])
    if number < _MANY:
        return towards * _each_spread(moved, spread)
    half, aside = np.abs(apart) / 2.0, (moved[0] + moved[1]) / 2.0
    squares, varies = half**2, half > 0.0
    lacking = np.where(varies, np.maximum(two_sided_z(level) ** 2 * variances - squares, 0.0), 0.0)
    squares += lacking * (1.0 - 1.0 / np.maximum(varies.dot(weights), 1.0))[..., None]
    # Where nothing varies all squares are 0.
    total = squares.dot(weights)[..., None]
    shares = squares / np.where(total > 0.0, total, 1.0)
    centre = (shares * (aside + bias) - bias).dot(weights)
    # Errors that cancel leave less of the sum than of its skewness: limits hold what they are of all the same.
    moves: Array = towards * np.maximum(_each_spread(np.sqrt(squares), spread) + towards * centre, 0.0)
    return moves


def _each_spread(moves: Array, spread: Spread) -> Array:
    """Return how far sums (...) move by moves (..., K)."""
    return spread(moves.reshape(-1, moves.shape[-1])).reshape(moves.shape[:-1])


def limits_at_rate(value: float, rate: float, fixed: Array, other: Array, level: float = 0.95) -> tuple[float, float]:
    """Limits of the share of other samples below the cut at which a rate of the fixed ones lies above it.

    The cut of the population lies between order statistics of the fixed samples (Wilks 1941): X_(j) with the largest j
    with P(Bin(m, 1 - rate) < j) <= (1 - level)/2, and its mirror. What the share moves by at these is added by squares
    to the limits of Clopper & Pearson at the cut of the samples, as MOVER adds parts (Zou & Donner 2008). Ties with the
    cut count against the limit.

    Args:
        value: The share itself.
        rate: Share of the fixed samples at or above the cut, 0 to 1.
        fixed: Scores (m), rising.
        other: Scores (n), rising.
        level: Of the limits.

    Returns:
        Low and high; NaN where no order statistic bounds the cut, as below at .95 and a rate of .9 with less than 36.
    """
    size, error = fixed.size, (1.0 - level) / 2.0
    places, trials = np.arange(1.0, size + 1.0), np.full(size, float(size))
    below = 1.0 - binomial_upper_tail(places, trials, np.full(size, 1.0 - rate), np.full(size, rate))
    first, last = (int(np.searchsorted(below, *at)) for at in ((error, "right"), (1.0 - error, "left")))
    count = float(other.size)
    low, high = (float(end) for end in clopper_pearson(np.asarray(value * count), np.asarray(count), level))
    ends = [nan, nan]
    if first > 0:
        lowest = float(np.searchsorted(other, fixed[first - 1], "left")) / count
        ends[0] = max(value - hypot(value - lowest, value - low), 0.0)
    if last < size:
        highest = float(np.searchsorted(other, fixed[last], "right")) / count
        ends[1] = min(value + hypot(highest - value, high - value), 1.0)
    return ends[0], ends[1]
