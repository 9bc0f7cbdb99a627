"""DeLong's covariance of areas by structural components: the oracle for what the service makes of influences."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2, norm, rankdata

from app.kernel.numerics.arrays import Array


class DeLong(NamedTuple):
    """Areas (R) of runs on the same items with their covariance (R, R). DeLong, DeLong & Clarke-Pearson (1988)."""

    areas: Array
    covariance: Array


class AreaTest(NamedTuple):
    """A difference of two areas with its limits and two-sided p."""

    difference: float
    low: float
    high: float
    p: float


def placements(positive: NDArray[np.bool_], scores: Array) -> tuple[Array, Array]:
    """Structural components of R areas: (R, m) for the positives and (R, n) for the negatives. Sun & Xu (2014).

    V10 = (T_all(positive) - T_positive) / n is the share of negatives below a positive, ties counting half; V01
    likewise.
    """
    scores = np.atleast_2d(scores)
    m, n = int(positive.sum()), int((~positive).sum())
    ranks = rankdata(scores, axis=1)
    above = (ranks[:, positive] - rankdata(scores[:, positive], axis=1)) / n
    below = 1.0 - (ranks[:, ~positive] - rankdata(scores[:, ~positive], axis=1)) / m
    return above, below


def delong(positive: NDArray[np.bool_], scores: Array) -> DeLong:
    """Areas and their covariance from labels (N) and scores (R, N) or (N)."""
    areas, influence = area_influence(positive, scores)
    return DeLong(areas, influence @ influence.T)


def area_influence(positive: NDArray[np.bool_], scores: Array) -> tuple[Array, Array]:
    """Areas (R) and the influence (R, N) of every item on them: sums of products are DeLong's covariances."""
    above, below = placements(positive, scores)
    m, n = above.shape[1], below.shape[1]
    areas = above.mean(axis=1)
    influence = np.empty((areas.size, positive.size))
    influence[:, positive] = (above - areas[:, None]) / np.sqrt(m * (m - 1))
    influence[:, ~positive] = (below - areas[:, None]) / np.sqrt(n * (n - 1))
    return areas, influence


def macro_area(truth: NDArray[np.int64], probabilities: Array) -> tuple[Array, Array]:
    """Mean one-vs-rest areas (R) of probabilities (R, N, K), and the influence (R, N) of every item on them."""
    size = probabilities.shape[-1]
    parts = [area_influence(truth == k, probabilities[..., k]) for k in range(size)]
    return np.mean([areas for areas, _ in parts], axis=0), np.mean([influence for _, influence in parts], axis=0)


def area_difference(found: DeLong, first: int, second: int, level: float = 0.95) -> AreaTest:
    """Area of one run less that of another, paired."""
    gap, contrast = float(found.areas[first] - found.areas[second]), np.zeros(found.areas.size)
    contrast[[first, second]] = 1.0, -1.0
    error = float(np.sqrt(contrast @ found.covariance @ contrast))
    spread = float(norm.ppf((1.0 + level) / 2.0)) * error
    return AreaTest(gap, gap - spread, gap + spread, float(2.0 * norm.sf(abs(gap) / error)))


def equal_areas(found: DeLong) -> tuple[float, int, float]:
    """Chi-squared, degrees of freedom and p of all areas being equal."""
    contrasts = np.eye(found.areas.size)[:-1] - np.eye(found.areas.size)[1:]
    gaps = contrasts @ found.areas
    statistic = float(gaps @ np.linalg.solve(contrasts @ found.covariance @ contrasts.T, gaps))
    return statistic, gaps.size, float(chi2.sf(statistic, gaps.size))
