"""The difference of any metric between two runs: from draws, by the delta method, and by permutation.

For paired runs the draws come from ``joint``, both runs from the same draw; for unpaired ones from two independent
calls of ``posterior.draw_matrices``. Two intervals are never compared by overlap.

Difference of two independent proportions: x1 of n1 less x2 of n2. Everything is elementwise.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.compare.paired.joint import JointCounts
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Scale
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.scipy_bridge import normal_cdf
from app.kernel.uncertainty.draws import MOST_UNDEFINED, Functional, Summary, summarise
from app.kernel.uncertainty.intervals import two_sided_z, wilson


@dataclass(frozen=True, slots=True, eq=False)
class Difference:
    """First less second of V values. Arrays (V).

    Attributes:
        interval: The difference with its limits.
        first_larger: Posterior probability that the first is larger by more than the region of equivalence.
        equivalent: That the two differ by no more than it.
        probability_error: Largest Monte-Carlo standard error of these two and of the rest.
    """

    interval: Summary
    first_larger: Array
    equivalent: Array
    probability_error: Array


def compare_draws(
    first: Array, second: Array, estimate: Array, *, level: float = 0.95, rope: float = 0.0
) -> Difference:
    """Difference of V values from draws (D, V) of both, taken draw by draw.

    Args:
        first: draws of the first run.
        second: draws of the second run, of the same joint draws when the runs are paired.
        estimate: (V) the difference in the data.
        level: of the interval.
        rope: half width of the region of practical equivalence, in units of the metric. With 0, exact ties count as
            equivalent.
    """
    with silently():
        gaps = first - second
    interval = summarise(gaps, estimate, level)
    draws = gaps.shape[0]
    present = draws - interval.undefined
    with silently():
        larger = (gaps > rope).sum(axis=0) / present
        smaller = (gaps < -rope).sum(axis=0) / present
        equivalent = (np.abs(gaps) <= rope).sum(axis=0) / present
        error = np.sqrt(np.maximum.reduce([p * (1.0 - p) for p in (larger, smaller, equivalent)]) / present)
    absent = np.isnan(estimate) | (interval.undefined > MOST_UNDEFINED * draws)
    return Difference(interval, *(np.where(absent, np.nan, value) for value in (larger, equivalent, error)))


def on_scale(values: Array, scale: Scale) -> Array:
    """Values as they are tested and compared: ratios by their logarithms, of which equal steps are equal factors.

    So a ratio and a monotone function of it on the same scale, such as the odds ratio and discriminant power, have
    one p.
    """
    with silently():
        return np.log(values) if scale is Scale.LOG else values


def off_scale(gaps: Array, values: Array, scale: Scale) -> Array:
    """Differences (V) on a scale as differences of values around those (2, V) of two runs.

    Of a ratio the geometric mean of both is held: a - b = 2 sqrt(a b) sinh((log a - log b) / 2).
    """
    with silently():
        return 2.0 * np.sqrt(values[0] * values[1]) * np.sinh(gaps / 2.0) if scale is Scale.LOG else gaps


def to_scale(gap: float, values: Array, scale: Scale) -> Array:
    """The inverse (V) of ``off_scale`` for one difference."""
    gaps = np.full(values.shape[1:], gap)
    with silently():
        return 2.0 * np.arcsinh(gaps / (2.0 * np.sqrt(values[0] * values[1]))) if scale is Scale.LOG else gaps


@dataclass(frozen=True, slots=True)
class Agreed:
    """Limits, p and probabilities of a difference that say the same."""

    low: float
    high: float
    p: float
    larger: float
    equivalent: float
    error: float


def agreed(gaps: Array, estimate: float, p: float, *, level: float, rope: float) -> Agreed:
    """Draws (D) of a difference and the p of a permutation test, brought together.

    Rejected is what both reject: p is the larger one, that of the draws being twice the share of them on the other side
    of 0; limits hold 0 unless p is below 1 - level, and nothing is surer than 1 - p / 2.
    """
    interval = summarise(gaps[:, None], np.array([estimate]), level)
    drawn = gaps[np.isfinite(gaps)]
    beyond = min(int((drawn <= 0).sum()), int((drawn >= 0).sum()))
    found = float(max(p, min(2.0 * (1.0 + beyond) / (1.0 + drawn.size), 1.0)))
    low, high = float(interval.low[0]), float(interval.high[0])
    if found >= 1.0 - level:
        low, high = min(low, 0.0), max(high, 0.0)
    surest = 1.0 - found / 2.0
    larger, smaller = (min(float((side > rope).mean()), surest) for side in (drawn, -drawn))
    shares = np.array([larger, smaller, 1.0 - larger - smaller])
    error = float(np.sqrt((shares * (1.0 - shares)).max() / drawn.size))
    return Agreed(low, high, found, larger, float(shares[2]), error)


def normal_limits(estimate: Array, variance: Array) -> tuple[Array, Array, Array]:
    """Limits at 95 % and two-sided p (V) of differences with these variances.

    Without variance there is no interval, and p is 1 for a difference of 0 and NaN otherwise: nothing can be said.
    """
    error = np.sqrt(variance)
    spread = two_sided_z(0.95) * np.where(error > 0, error, np.nan)
    with silently():
        p = 2.0 * normal_cdf(-np.abs(estimate) / error)
    p = np.where(error > 0, p, np.where(estimate == 0, 1.0, np.nan))
    return estimate - spread, estimate + spread, p


def permutation_p(joint: JointCounts, functionals: Sequence[Functional], permuted: Iterable[Array]) -> list[Array]:
    """Two-sided permutation p-values of the difference, one array () or (K) per functional.

    p = (1 + permutations with a difference as large as observed) / (1 + permutations), so never 0. Where the metric
    is undefined for a permutation, that one counts as extreme; where it is undefined for the data, p is NaN.

    Args:
        joint: two runs.
        functionals: the metrics.
        permuted: batches (d, 2, K, K) of ``joint.permute``.
    """
    with silently():
        table = Table(joint.matrices())
        observed = [np.subtract(*functional(table)) for functional in functionals]
        extreme = [np.zeros(np.shape(value)) for value in observed]
        draws = 0
        for batch in permuted:
            draws += batch.shape[0]
            shuffled = Table(batch)
            for count, value, functional in zip(extreme, observed, functionals, strict=True):
                values = functional(shuffled)
                gaps = np.abs(values[:, 0] - values[:, 1])
                # Equal values reached by other sums differ by rounding; they are as extreme.
                np.add(count, (~(gaps < np.abs(value) * (1.0 - 1e-12))).sum(axis=0), out=count)
    return [
        np.where(np.isnan(value), np.nan, (1.0 + count) / (1.0 + draws))
        for count, value in zip(extreme, observed, strict=True)
    ]


def _floats(*values: ArrayLike) -> list[Array]:
    return [np.asarray(value, dtype=np.float64) for value in values]


def newcombe_interval(
    x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, level: float = 0.95
) -> tuple[Array, Array]:
    """Hybrid score interval: the distances to the Wilson limits of both, combined as a hypotenuse.

    Newcombe (1998b), method 10.
    """
    x1, n1, x2, n2 = _floats(x1, n1, x2, n2)
    low1, high1 = wilson(x1, n1, level)
    low2, high2 = wilson(x2, n2, level)
    with silently():
        p1, p2 = x1 / n1, x2 / n2
    difference = p1 - p2
    return difference - np.hypot(p1 - low1, high2 - p2), difference + np.hypot(high1 - p1, p2 - low2)


def restricted_shares(
    x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, difference: ArrayLike
) -> tuple[Array, Array]:
    """Maximum-likelihood proportions under p1 - p2 = difference. Miettinen & Nurminen (1985), appendix; Farrington &
    Manning (1990).

    p2 is the root in the feasible interval of (n1 + n2) p^3 + l2 p^2 + l1 p + l0 = 0 with
    l2 = (n1 + 2 n2) d - n1 - n2 - x1 - x2, l1 = (n2 d - n1 - n2 - 2 x2) d + x1 + x2, l0 = x2 d (1 - d), found by
    trigonometry.
    """
    x1, n1, x2, n2, d = _floats(x1, n1, x2, n2, difference)
    n, x = n1 + n2, x1 + x2
    l2 = (n1 + 2.0 * n2) * d - n - x
    l1 = (n2 * d - n - 2.0 * x2) * d + x
    l0 = x2 * d * (1.0 - d)
    with silently():
        v = l2**3 / (3.0 * n) ** 3 - l1 * l2 / (6.0 * n * n) + l0 / (2.0 * n)
        u = np.copysign(np.sqrt(np.maximum(l2 * l2 / (3.0 * n) ** 2 - l1 / (3.0 * n), 0.0)), v)
        angle = (np.pi + np.arccos(np.clip(v / u**3, -1.0, 1.0))) / 3.0
        p2 = 2.0 * u * np.cos(angle) - l2 / (3.0 * n)
    p2 = np.where(u == 0, -l2 / (3.0 * n), p2)
    p2 = np.clip(p2, np.maximum(0.0, -d), np.minimum(1.0, 1.0 - d))
    return p2 + d, p2


def score_z(x1: ArrayLike, n1: ArrayLike, x2: ArrayLike, n2: ArrayLike, difference: ArrayLike = 0.0) -> Array:
    """Score statistic of p1 - p2 = difference with the variance at ``restricted_shares``. Farrington & Manning (1990).

    0 where the gap is 0.
    """
    x1, n1, x2, n2, d = _floats(x1, n1, x2, n2, difference)
    p1, p2 = restricted_shares(x1, n1, x2, n2, d)
    variance = p1 * (1.0 - p1) / n1 + p2 * (1.0 - p2) / n2
    gap = x1 / n1 - x2 / n2 - d
    with silently():
        z = gap / np.sqrt(np.maximum(variance, 0.0))
    return np.where(gap == 0, 0.0, z)
