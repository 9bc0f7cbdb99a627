"""Areas under ROC curves and means of losses: their sampling errors and the differences between runs on the same
items.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array
from app.kernel.numerics.special import chi_squared_upper_tail, normal_cdf, student_cdf, student_quantile
from app.kernel.uncertainty.intervals import two_sided_z


@dataclass(frozen=True, slots=True, eq=False)
class DeLong:
    """Areas of R runs on the same items with their covariance. DeLong, DeLong & Clarke-Pearson (1988).

    Attributes:
        areas: (R).
        covariance: (R, R).
        positives: number of positive items.
        negatives: number of negative items.
    """

    areas: Array
    covariance: Array
    positives: int
    negatives: int


def midranks(values: Array) -> Array:
    """Ranks from 1 along the last axis, equal values sharing the mean of theirs, in double precision. O(N log N)."""
    if values.ndim > 1:
        return np.array([midranks(row) for row in values])
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    ends = np.append(starts[1:], values.size)
    ranks = np.empty(values.size)
    ranks[order] = np.repeat((starts + ends + 1) / 2.0, ends - starts)
    return ranks


def placements(positive: NDArray[np.bool_], scores: Array) -> tuple[Array, Array]:
    """Structural components of R areas: (R, m) for the positives and (R, n) for the negatives. Sun & Xu (2014).

    V10 = (T_all(positive) - T_positive) / n is the share of negatives below a positive, ties counting half; V01
    likewise.

    Args:
        positive: (N) which items are positive.
        scores: (R, N), higher is more positive, no NaN.

    Raises:
        ValueError: one of the two classes is missing, or a score is NaN.
    """
    scores = np.atleast_2d(np.asarray(scores, dtype=np.float64))
    m, n = int(positive.sum()), int((~positive).sum())
    if not m or not n:
        raise ValueError("an area needs positive and negative items")
    if np.isnan(scores).any():
        raise ValueError("scores must be numbers")
    ranks = midranks(scores)
    above = (ranks[:, positive] - midranks(scores[:, positive])) / n
    below = 1.0 - (ranks[:, ~positive] - midranks(scores[:, ~positive])) / m
    return above, below


def delong(positive: NDArray[np.bool_], scores: Array) -> DeLong:
    """Areas and their covariance from labels (N) and scores (R, N): var(V10)/m + var(V01)/n with n - 1 in the
    denominators.

    Raises:
        ValueError: as ``placements``.
    """
    above, below = placements(positive, scores)
    m, n = above.shape[1], below.shape[1]
    return DeLong(above.mean(axis=1), _covariance(above) / m + _covariance(below) / n, m, n)


def _covariance(components: Array) -> Array:
    centered = components - components.mean(axis=1, keepdims=True)
    products: Array = centered @ centered.T / max(components.shape[1] - 1, 1)
    return products


def area_limits(
    area: float, variance: float, positives: int, negatives: int, level: float = 0.95
) -> tuple[float, float, str]:
    """Limits of one area and the name of the method: DeLong on the logit scale, or Newcombe's where that has no
    width.
    """
    if 0.0 < area < 1.0 and variance > 0.0:
        spread = two_sided_z(level) * np.sqrt(variance) / (area * (1.0 - area))
        center = np.log(area / (1.0 - area))
        return float(1 / (1 + np.exp(spread - center))), float(1 / (1 + np.exp(-spread - center))), "delong_logit"
    return *newcombe_area_limits(area, positives, negatives, level), "newcombe_5"


def newcombe_area_limits(area: float, positives: int, negatives: int, level: float = 0.95) -> tuple[float, float]:
    """Limits of an area from itself and the class sizes alone, of positive width also at 0 and 1. Newcombe (2006),
    method 5.

    The values t with (area - t)^2 <= z^2 V(t), V(t) = t(1-t) (1 + s (1-t)/(2-t) + s t/(1+t)) / (m n): Hanley &
    McNeil's variance with s = (m + n)/2 - 1 for both class sizes less 1.
    """
    z, size = two_sided_z(level), (positives + negatives) / 2.0 - 1.0

    def inside(t: float) -> bool:
        spread = t * (1 - t) * (1 + size * ((1 - t) / (2 - t) + t / (1 + t))) / (positives * negatives)
        return (area - t) ** 2 <= z * z * spread

    return _farthest(inside, area, 0.0), _farthest(inside, area, 1.0)


def _farthest(inside: Callable[[float], bool], start: float, end: float) -> float:
    """The point farthest from start towards end that is still inside, by bisection."""
    if start == end:
        return end
    for _ in range(60):
        middle = (start + end) / 2.0
        start, end = (middle, end) if inside(middle) else (start, middle)
    return start


@dataclass(frozen=True, slots=True)
class NormalTest:
    """A difference with its limits, z and two-sided p. Limits are NaN and z is 0 where there is no variance."""

    difference: float
    low: float
    high: float
    statistic: float
    p: float


def area_difference(found: DeLong, first: int, second: int, level: float = 0.95) -> NormalTest:
    """Area of one run less that of another, paired.

    Not for nested models that were fitted on these items.

    Raises:
        ValueError: the difference is not 0 but has no variance, as with two perfect separations: DeLong's test does
        not apply.
    """
    variance = found.covariance[first, first] + found.covariance[second, second] - 2 * found.covariance[first, second]
    scale = found.covariance[first, first] + found.covariance[second, second]
    return difference_test(float(found.areas[first] - found.areas[second]), float(variance), float(scale), level)


def difference_test(difference: float, variance: float, scale: float, level: float = 0.95) -> NormalTest:
    """Normal test of a difference; a variance below rounding of ``scale`` is 0.

    Raises:
        ValueError: the difference is not 0 but has no variance.
    """
    if variance <= 1e-14 * scale or variance == 0.0:
        if abs(difference) > 1e-12:
            raise ValueError("the difference has no variance, so no test applies to it")
        return NormalTest(difference, float("nan"), float("nan"), 0.0, 1.0)
    error = float(np.sqrt(variance))
    z, spread = difference / error, two_sided_z(level) * error
    return NormalTest(difference, difference - spread, difference + spread, z, float(2.0 * normal_cdf(-abs(z))))


def equal_areas(found: DeLong, contrasts: Array | None = None) -> tuple[float, int, float]:
    """Chi-squared, degrees of freedom and p of L areas = 0; by default that all areas are equal."""
    return chi_squared_of(found.areas, found.covariance, contrasts)


def chi_squared_of(values: Array, covariance: Array, contrasts: Array | None = None) -> tuple[float, int, float]:
    """Chi-squared, degrees of freedom and p of ``contrasts`` (L, R) of values (R) with covariance (R, R) being 0.

    By default that all R are equal.
    """
    runs = values.size
    matrix = contrasts if contrasts is not None else np.eye(runs)[:-1] - np.eye(runs)[1:]
    gaps, spread = matrix @ values, matrix @ covariance @ matrix.T
    freedom = int(np.linalg.matrix_rank(spread, hermitian=True))
    if freedom == 0:
        return 0.0, 0, 1.0
    statistic = float(gaps @ np.linalg.pinv(spread, hermitian=True) @ gaps)
    return statistic, freedom, float(chi_squared_upper_tail(statistic, freedom))


def area_influence(positive: NDArray[np.bool_], scores: Array) -> tuple[Array, Array]:
    """Areas (R) and the influence (R, N) of every item on them, scaled so that sums of products are DeLong's
    covariances.

    Influences add up like the areas they belong to: the mean over the classes of a one-vs-rest area has the mean
    influence, the difference between two runs the difference.
    """
    above, below = placements(positive, scores)
    m, n = above.shape[1], below.shape[1]
    areas = above.mean(axis=1)
    influence = np.empty((areas.size, positive.size))
    influence[:, positive] = (above - areas[:, None]) / np.sqrt(m * max(m - 1, 1))
    influence[:, ~positive] = (below - areas[:, None]) / np.sqrt(n * max(n - 1, 1))
    return areas, influence


def macro_area(truth: NDArray[np.int64], probabilities: Array, weights: Array | None = None) -> tuple[Array, Array]:
    """Mean one-vs-rest areas (R) of R runs and the influence (R, N) of every item on them.

    Args:
        truth: (N) codes 0..K-1, every class present.
        probabilities: (R, N, K).
        weights: (K) weights of the classes; equal when None.
    """
    size = probabilities.shape[-1]
    shares = np.full(size, 1.0 / size) if weights is None else weights / weights.sum()
    parts = [area_influence(truth == k, probabilities[..., k]) for k in range(size)]
    areas = sum(share * part[0] for share, part in zip(shares, parts, strict=True))
    influence = sum(share * part[1] for share, part in zip(shares, parts, strict=True))
    return np.asarray(areas), np.asarray(influence)


@dataclass(frozen=True, slots=True)
class MeanEstimate:
    """A mean with its t limits, and the t test of a mean of 0, two-sided."""

    mean: float
    low: float
    high: float
    statistic: float
    freedom: int
    p: float


def mean_limits(values: Array, level: float = 0.95) -> MeanEstimate:
    """Mean of per-item losses (N), or of their paired differences, with mean -+ t s/sqrt(N).

    Fewer than two values or no spread leave no interval; p is then 1 for a mean of 0 and NaN otherwise.
    """
    count = values.size
    mean = float(values.mean()) if count else float("nan")
    error = float(values.std(ddof=1) / np.sqrt(count)) if count > 1 else float("nan")
    if not error > 0:
        nothing = float("nan")
        return MeanEstimate(mean, nothing, nothing, nothing, max(count - 1, 0), 1.0 if mean == 0 else nothing)
    spread = float(student_quantile((1.0 + level) / 2.0, count - 1)) * error
    t = mean / error
    p = float(2.0 * student_cdf(-abs(t), count - 1))
    return MeanEstimate(mean, mean - spread, mean + spread, t, count - 1, p)
