"""Label shift: class shares change, and the distribution of predictions within each class does not.

A run is described by its rows P(predicted | actual). At shares pi its matrix is diag(pi) times the rows, and every
metric is computed on that matrix. Metrics that are insensitive to prevalence do not change.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, silently


def project(counts: Array, shares: Array) -> Array:
    """Matrices (..., K, K) at another class prevalence, with the total n of each kept.

    Args:
        counts: (..., K, K); leading axes broadcast against those of shares, so draws of rows give draws of projections.
        shares: (..., K), scaled here to sum to 1.

    Raises:
        ValueError: a class without samples is given a share, or a share is negative.
    """
    counts, shares = np.asarray(counts, dtype=np.float64), np.asarray(shares, dtype=np.float64)
    if (shares < 0).any() or not (shares.sum(axis=-1) > 0).all():
        raise ValueError("shares must be non-negative and not all 0")
    actual = counts.sum(axis=-1)
    if ((shares > 0) & (actual == 0)).any():
        raise ValueError("a class without samples is given a share: nothing is known of how it is predicted")
    projected: Array = counts * class_factors(actual, shares)[..., None]
    return projected


def class_factors(actual: Array, shares: Array) -> Array:
    """Factors (..., K) by which classes with these numbers of samples (..., K) are weighted to have these shares (...,
    K); the total stays.

    A class without samples has the factor 0.
    """
    wanted = shares / shares.sum(axis=-1, keepdims=True) * actual.sum(axis=-1, keepdims=True)
    factors: Array = np.divide(wanted, actual, out=np.zeros_like(wanted + actual), where=actual > 0)
    return factors


def sweep_shares(shares: Array, class_index: int, grid: Array) -> Array:
    """Class shares (G, K) with one class at each value of the grid (G), from 0 to 1, and the others, which have some,
    in their proportions.
    """
    rest = np.array(shares, dtype=np.float64)
    rest[class_index] = 0.0
    swept: Array = (1.0 - grid)[:, None] * (rest / rest.sum())
    swept[:, class_index] = grid
    return swept


def crossings(gap: Callable[[Array], Array], *, low: float = 0.0, high: float = 1.0, points: int = 2001) -> list[float]:
    """Shares of one class between ``low`` and ``high`` at which two runs change places on a metric.

    Sign changes on a grid are refined by bisection to 1e-12. Runs that are equal over a whole interval do not cross
    there. Shares at which the metric does not exist are skipped.

    Args:
        gap: Maps shares (G) of the class to the difference (G) of the two runs, NaN where there is none.
        low: Smallest share.
        high: Largest share.
        points: Number of points of the grid.
    """

    def signs_at(grid: Array) -> Array:
        with silently():
            difference = gap(grid)
        return np.sign(np.where(np.abs(difference) < 1e-13, 0.0, difference))

    grid = np.linspace(low, high, points)
    signs = signs_at(grid)
    grid, signs = grid[~np.isnan(signs)], signs[~np.isnan(signs)]
    nonzero = np.flatnonzero(signs)
    changes = nonzero[:-1][signs[nonzero[:-1]] != signs[nonzero[1:]]]
    following = nonzero[1:][signs[nonzero[:-1]] != signs[nonzero[1:]]]
    left, right, sign = grid[changes], grid[following], signs[changes]
    for _ in range(40 if changes.size else 0):
        middle = (left + right) / 2.0
        same = signs_at(middle) == sign
        left, right = np.where(same, middle, left), np.where(same, right, middle)
    return [float(share) for share in (left + right) / 2.0]


def recalibrate(probabilities: Array, old: Array, new: Array) -> Array:
    """Probabilities (..., K) for new class shares: p'(c|x) proportional to p(c|x) new_c / old_c. Elkan (2001), Saerens
    et al. (2002).

    The result is only as good as the calibration of the probabilities. A row that rules out every class with a share
    becomes the new shares. Every class has an old share.
    """
    weighted = probabilities * (np.asarray(new) / np.asarray(old))
    sums = weighted.sum(axis=-1, keepdims=True)
    scaled: Array = np.divide(weighted, sums, out=np.broadcast_to(new, weighted.shape).copy(), where=sums > 0)
    return scaled


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedShares:
    """Class shares estimated from unlabelled predictions.

    Attributes:
        shares: (K), non-negative, sum 1.
        at_vertex: Some share is 0: the maximum of the likelihood, or the uncut solution, lies outside the simplex.
        converged: The iteration converged, or the equations were solved without cutting.
        condition: Condition number of the equations, 1 where there are none; if large, errors of the rows are
            magnified.
    """

    shares: Array
    at_vertex: bool
    converged: bool
    condition: float = 1.0


# EM ends where no share moves further, and here where it does not converge.
_AT_REST, _ITERATIONS = 1e-10, 10_000


def estimate_by_likelihood(probabilities: Array, old: Array) -> EstimatedShares:
    """New class shares from predicted probabilities (N, K) of unlabelled items, by EM. Saerens, Latinne &
    Decaestecker (2002).

    Maximises the likelihood of the items when only the shares differ from the old ones (K), which every class has.
    Needs calibrated probabilities.
    """
    ratio = probabilities / old
    shares = np.array(old, dtype=np.float64) / old.sum()
    converged = False
    for _ in range(_ITERATIONS):
        weighted = ratio * shares
        following = (weighted / weighted.sum(axis=1, keepdims=True)).mean(axis=0)
        converged = bool(np.abs(following - shares).max() < _AT_REST)
        shares = following
        if converged:
            break
    return EstimatedShares(shares, bool((shares < _VERTEX).any()), converged)


# EM approaches a share of 0 ever more slowly; a share below this counts as 0.
_VERTEX = 1e-4


def estimate_by_confusion(counts: Array, predicted: Array) -> EstimatedShares:
    """New class shares from the numbers of predictions (K) of each class on unlabelled items. Lipton, Wang & Smola
    (2018), BBSE.

    Solves rows^T pi = predicted shares, with the rows of the matrix (K, K) of labelled items; negative shares are cut
    to 0.

    Raises:
        ValueError: a class has no labelled samples, or the rows are linearly dependent.
    """
    actual = counts.sum(axis=1)
    if (actual == 0).any():
        raise ValueError("every class needs labelled samples")
    rows = counts / actual[:, None]
    condition = float(np.linalg.cond(rows.T))
    if not condition < 1e12:
        raise ValueError("two classes are predicted alike, so their shares cannot be told apart")
    solved = np.linalg.solve(rows.T, predicted / predicted.sum())
    cut = np.maximum(solved, 0.0)
    outside = bool((solved < 0).any())
    return EstimatedShares(cut / cut.sum(), bool((cut == 0).any()), not outside, condition)


_ROUNDING = 1e-12
# First and last step of the refinement, relative to the widest range. A smooth value is exact at the last.
_FIRST_STEP, _LAST_STEP = 1 / 20, 1e-9
_ROUNDS = 400
# Number of points from which the refinement starts, and their least distance relative to the widest range.
_STARTS, _APART = 4, 0.25
# Relative gain by which a value must improve, above rounding.
_NO_GAIN = 1e-15


@dataclass(frozen=True, slots=True, eq=False)
class ShareRanges:
    """Ranges of class shares (d + 1), between ``low`` and ``high``, some of which sum to 1. A point (d) leaves out the
    last share.
    """

    low: Array
    high: Array

    def points(self, per_axis: int) -> Array:
        """Grid (G, d) of the points within the ranges, with their corners, at which ratios of linear functions are
        extreme.
        """
        axes = [np.linspace(*ends, per_axis) for ends in zip(self.low[:-1], self.high[:-1], strict=True)]
        grid = np.array([*itertools.product(*axes)]).reshape(-1, self.low.size - 1)
        last = 1.0 - grid.sum(axis=1)
        inside = (last >= self.low[-1] - _ROUNDING) & (last <= self.high[-1] + _ROUNDING)
        return np.concatenate([self.corners()[:, :-1], grid[inside]])

    def corners(self) -> Array:
        """Corners (C, d + 1) of the ranges: all shares but one are at a bound. Meant for up to a dozen classes."""
        size, corners = self.low.size, set()
        for free in range(size):
            others = [k for k in range(size) if k != free]
            for ends in itertools.product(*((float(self.low[k]), float(self.high[k])) for k in others)):
                left = 1.0 - sum(ends)
                if self.low[free] - _ROUNDING <= left <= self.high[free] + _ROUNDING:
                    corner = np.empty(size)
                    corner[others], corner[free] = ends, left
                    corners.add(tuple(np.round(corner, 12).tolist()))
        return np.array(sorted(corners))

    def moved(self, points: Array, directions: Array, steps: Array) -> Array:
        """Points (S, D, d) by steps (S) from points (S, d) in directions (D, d), cut at the bounds of the ranges."""
        turned = np.column_stack([directions, -directions.sum(axis=1)])
        here = np.column_stack([points, 1.0 - points.sum(axis=1)])
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(turned > 0, (self.high - here[:, None]) / turned, (self.low - here[:, None]) / turned)
        room = np.where(turned == 0, np.inf, np.maximum(room, 0.0)).min(axis=-1)
        reach = np.minimum(room, steps[:, None])
        found: Array = np.clip(points[:, None] + reach[..., None] * directions, self.low[:-1], self.high[:-1])
        return found


@dataclass(frozen=True, slots=True, eq=False)
class ShareExtremes:
    """Points (2, V, d) at which V values are lowest and highest, and the values (2, V) there; NaN where there are none.

    ``settled`` is False when the search reached its limit of points before it converged.
    """

    points: Array
    values: Array
    settled: bool


def extremes(
    ranges: ShareRanges, function: Callable[[Array], Array], points: Array, values: Array, *, most: int
) -> ShareExtremes:
    """Refine the lowest and the highest of values found at some points: pattern search from several of them.

    Steps go in all directions along the axes and between them, and are halved where none improves (Hooke & Jeeves 1961;
    Torczon 1997). Meant for a few classes and values that are smooth in the shares.

    Args:
        ranges: Ranges of the shares.
        function: Maps points (G, d) to values (G, V), NaN where there is none.
        points: (G, d) evaluated already.
        values: (G, V) at these.
        most: Largest number of further evaluations.
    """
    count, width = values.shape[1], float((ranges.high - ranges.low)[:-1].max())
    signs = np.repeat([-1.0, 1.0], count)
    places = np.tile(np.arange(count), 2)
    starts = [_starts(points, sign * values[:, place], width) for sign, place in zip(signs, places, strict=True)]
    owner = np.repeat(np.arange(2 * count), [len(chosen) for chosen in starts])
    best = points[np.concatenate(starts)]
    height = signs[owner] * values[np.concatenate(starts), places[owner]]
    directions = np.array([step for step in itertools.product((-1.0, 0.0, 1.0), repeat=points.shape[1]) if any(step)])
    steps, spent = np.full(len(best), _FIRST_STEP * width), 0
    for _ in range(_ROUNDS):
        active = np.flatnonzero(steps > _LAST_STEP * width)
        if not active.size or spent + active.size * len(directions) > most:
            break
        spent += active.size * len(directions)
        tried = ranges.moved(best[active], directions, steps[active])
        found = function(tried.reshape(-1, points.shape[1])).reshape(*tried.shape[:2], count)
        own = signs[owner[active], None] * np.take_along_axis(found, places[owner[active], None, None], axis=2)[..., 0]
        own = np.where(np.isnan(own), -np.inf, own)
        chosen = own.argmax(axis=1)
        highest = own[np.arange(active.size), chosen]
        better = highest > height[active] + _NO_GAIN * np.abs(height[active])
        risen = active[better]
        best[risen], height[risen] = tried[better, chosen[better]], highest[better]
        steps[active[~better]] *= 0.5
    settled = not (steps > _LAST_STEP * width).any()
    where, what = np.full((2 * count, points.shape[1]), np.nan), np.full(2 * count, np.nan)
    for index in range(2 * count):
        own_starts = np.flatnonzero(owner == index)
        if own_starts.size:
            top = own_starts[height[own_starts].argmax()]
            where[index], what[index] = best[top], signs[index] * height[top]
    return ShareExtremes(where.reshape(2, count, -1), what.reshape(2, count), settled)


def _starts(points: Array, heights: Array, width: float) -> NDArray[np.intp]:
    """Indices of the highest points that lie apart from each other; empty where there is no value."""
    left = np.where(np.isnan(heights), -np.inf, heights)
    chosen: list[int] = []
    while len(chosen) < _STARTS and np.isfinite(left).any():
        chosen.append(int(left.argmax()))
        left = np.where(np.abs(points - points[chosen[-1]]).max(axis=1) <= _APART * width, -np.inf, left)
    return np.array(chosen, dtype=np.intp)
