"""Actual against stated chances of a class: logistic recalibration, and a smooth curve."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask

# Number of points at which the smooth curve is fitted; it is linear between them.
GRID = 51
# Share of the samples, by weight, that a fit at one point uses.
SPAN = 0.75
# Most distinct probabilities; beyond, neighbours are merged.
_MOST_POINTS = 1000
_MOST_STEPS = 100
# Steps of Newton's method become quadratically smaller: after one of this size what is left is rounding.
_LAST_STEP = 1e-10
# Mean logarithm of chances that separate the classes: what a slope without bounds comes to.
_ALL_RIGHT = -1e-7


def log_odds(probability: Array, clip: float) -> Array:
    """Logarithm of p / (1 - p), any shape, with p at least ``clip`` away from 0 and 1; infinite at the ends if ``clip``
    is 0.
    """
    inside = np.clip(probability, clip, 1.0 - clip)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def expit(values: Array) -> Array:
    """1 / (1 + exp(-x)), any shape."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))


def line(odds: Array, hit: Mask, weights: Array | None = None, *, sloped: bool = True) -> tuple[float, float]:
    """Maximum likelihood estimates of a and b in logit P(hit) = a + b log odds; b is 1 unless it is fitted.

    NaN twice if all or none hit, or if b is fitted and all odds are equal. Where a threshold separates hits from
    others, b is infinite and a NaN: no finite b is the most likely one.

    Args:
        odds: (n), finite.
        hit: (n).
        weights: (n), or None for 1 each.
        sloped: Is b fitted?
    """
    weight = np.ones(odds.size) if weights is None else weights
    there = weight > 0
    mine, rest = odds[there & hit], odds[there & ~hit]
    if not mine.size or not rest.size:
        return float("nan"), float("nan")
    ends = (float(rest.min()), float(rest.max())), (float(mine.min()), float(mine.max()))
    if sloped and (none := slope_of_ends(*ends)) is not None:
        return float("nan"), none
    hits, middle, spread, columns, begun = hit.astype(np.float64), 0.0, 1.0, np.ones((1, odds.size)), np.zeros(1)
    if sloped:
        total, share = float(weight.sum()), float(weight[hit].sum() / weight.sum())
        middle = float(weight @ odds) / total
        spread = float(np.sqrt(weight @ (odds - middle) ** 2 / total))
        columns = np.stack([columns[0], (odds - middle) / spread])
        begun = np.array([np.log(share / (1.0 - share)), 0.0])

    def at(found: Array) -> Likelihood:
        at_line = found @ columns + (0.0 if sloped else odds)
        chance = expit(at_line)
        height = float(weight @ (hits * at_line - np.logaddexp(0.0, at_line)))
        return Likelihood(
            height, columns @ (weight * (hits - chance)), (columns * (weight * chance * (1.0 - chance))) @ columns.T
        )

    found = newton(at, begun)
    if found is None:
        return float("nan"), float("nan")
    b = float(found[1]) / spread if sloped else 1.0
    return float(found[0]) - b * middle, b


def slope_of_ends(others: Sequence[float], members: Sequence[float]) -> float | None:
    """Slope where the lowest and the highest odds of others and of members rule a finite one out: NaN where all are
    equal, infinite where a threshold separates them; None where there is one.
    """
    (low, high), (lowest, highest) = others, members
    if min(low, lowest) == max(high, highest):
        return float("nan")
    if lowest >= high:
        return float("inf")
    return float("-inf") if highest <= low else None


def lines_of(stated: Array, hit: Mask, weights: Array, clip: float, *, sloped: bool) -> Array:
    """Coefficients a and b (..., 2) for stated chances (n), for every row of weights (..., n); b is 1 unless it is
    fitted.
    """
    rows = weights.shape[:-1]
    odds, found = log_odds(stated, clip), np.full((*rows, 2), np.nan)
    for row in np.ndindex(rows):
        there = weights[row] > 0
        if np.isfinite(odds[there]).all():
            found[row] = line(odds[there], hit[there], weights[row][there], sloped=sloped)
    return found


class Likelihood(NamedTuple):
    """Logarithm of a likelihood, its slope (c) by the coefficients and its curvature (c, c), above 0."""

    height: float
    slope: Array
    curvature: Array


def newton(at: Callable[[Array], Likelihood], found: Array, highest: float = np.inf) -> Array | None:
    """Most likely coefficients (c), from others on; steps are halved so that the likelihood never falls. None where
    one has no direction, or the likelihood rises beyond the highest that one may have.
    """
    here = at(found)
    for _ in range(_MOST_STEPS):
        try:
            step = np.linalg.solve(here.curvature, here.slope)
        except np.linalg.LinAlgError:
            return None
        rounding = 1e-11 * abs(here.height)
        while (there := at(found + step)).height < here.height - rounding:
            step *= 0.5
        found, here = found + step, there
        if here.height > highest:
            return None
        if np.abs(step).max() <= _LAST_STEP * max(1.0, float(np.abs(found).max())):
            break
    return found


def tempered(logs: Array, y: NDArray[np.intp], weights: Array) -> Array | None:
    """Logarithms (n) of the recalibrated chance of what happened: of the most likely chances that are proportional to
    exp(a_k + b log p_k), temperature scaling with a bias for each class (Alexandari, Kundaje & Shrikumar 2020). None
    where no finite b is the most likely one, or all samples state the same.

    Args:
        logs: (K, n) logarithms of the stated chances, finite.
        y: (n) classes, all of which have some weight.
        weights: (n).
    """
    size, n = logs.shape
    columns, weight, at = logs - logs.mean(axis=0), weights / weights.sum(), np.arange(n)
    spread = float(np.sqrt(weight @ np.square(columns).mean(axis=0)))
    if not spread > 0.0:
        return None
    columns /= spread
    # The number of the first class is 0, and b comes last.
    own = columns[y, at]
    wanted = np.append(np.bincount(y, weight, size)[1:], weight @ own)

    def chances(found: Array) -> tuple[Array, Array]:
        numbers = np.append(0.0, found[:-1])
        odds = columns * found[-1] + numbers[:, None]
        most = odds.max(axis=0)
        np.exp(np.subtract(odds, most, out=odds), out=odds)
        total = odds.sum(axis=0)
        odds /= total
        return odds, own * found[-1] + numbers[y] - most - np.log(total)

    def likelihood(found: Array) -> Likelihood:
        chance, logs_of_truth = chances(found)
        stated = chance * columns
        means, weighted = stated.sum(axis=0), chance * weight
        mass = weighted.sum(axis=1)
        curvature = np.diag(np.append(mass[1:], 0.0))
        curvature[:-1, :-1] -= weighted[1:] @ chance[1:].T
        curvature[-1, -1] = float(weight @ ((stated * columns).sum(axis=0) - np.square(means)))
        curvature[:-1, -1] = curvature[-1, :-1] = (stated @ weight - weighted @ means)[1:]
        slope = wanted - np.append(mass[1:], weight @ means)
        return Likelihood(float(weight @ logs_of_truth), slope, curvature)

    found = newton(likelihood, np.append(np.zeros(size - 1), spread), _ALL_RIGHT)
    return None if found is None else chances(found)[1]


def influence_on_line(odds: Array, hit: Mask, found: tuple[float, float], *, sloped: bool) -> Array:
    """Influence of each sample (n) on b, or on a where b is 1; its sum of squares is White's variance (HC1)."""
    chance = expit(found[0] + found[1] * odds)
    size, curvature = odds.size, chance * (1.0 - chance)
    away = odds - float(curvature @ odds) / float(curvature.sum()) if sloped else np.ones(size)
    influence: Array = (hit - chance) * away / (curvature @ away**2) * np.sqrt(size / max(size - 1 - sloped, 1))
    return influence


def points_of(probability: Array) -> tuple[Array, np.ndarray]:
    """Rising points (g) that represent probabilities (n), and the point of each sample: all distinct values up to
    1,000.
    """
    points, at = np.unique(probability, return_inverse=True)
    if points.size <= _MOST_POINTS:
        return points, at
    low, high = points[0], points[-1]
    cells = np.minimum(((probability - low) / (high - low) * _MOST_POINTS).astype(np.intp), _MOST_POINTS - 1)
    counts = np.bincount(cells, minlength=_MOST_POINTS)
    filled = np.flatnonzero(counts)
    place = np.cumsum(counts > 0) - 1
    means: Array = np.bincount(cells, probability, _MOST_POINTS)[filled] / counts[filled]
    return means, place[cells]


def smoothed(points: Array, weight: Array, hits: Array) -> Array:
    """Actual chances (g) at points: locally linear regression with tricube weights, without robustness steps.

    Cleveland (1979), as ``lowess`` of R and statsmodels with no iterations. Each fit uses the nearest samples that make
    up three quarters of the weight. Chances are clipped to [0, 1].

    Args:
        points: (g), rising.
        weight: (g) total weight of the samples at each point.
        hits: (g) weight of the hits among them.
    """
    there = weight > 0
    inside, mass, shares = points[there], weight[there], hits[there] / weight[there]
    grid = np.linspace(inside[0], inside[-1], GRID)
    distances, radii = np.abs(grid[:, None] - inside), _radii(grid, inside, mass)[:, None]
    weights = _cubed(np.maximum(1.0 - _cubed(distances / radii), 0.0)) * mass
    # If all points lie on the rim, all tricube weights are 0.
    empty = weights.sum(axis=1) <= 1e-15 * mass.sum()
    weights[empty] = (distances[empty] <= radii[empty] * (1.0 + 1e-9)) * mass
    weights /= weights.sum(axis=1, keepdims=True)
    centers = weights @ inside
    away = inside - centers[:, None]
    leaning = weights * away
    spreads = np.maximum((leaning * away).sum(axis=1), 1e-12)
    fits = weights @ shares + (grid - centers) * (leaning @ shares) / spreads
    return np.asarray(np.clip(np.interp(points, grid, fits), 0.0, 1.0))


def _radii(grid: Array, points: Array, mass: Array) -> Array:
    """Distance from each grid point within which the span of the mass lies."""
    reached = np.concatenate([[0.0], np.cumsum(mass)])
    needed = SPAN * reached[-1] * (1.0 - 1e-12)
    # Shortest run of points from each one that has the span; the nearest of these runs sets the radius.
    ends = np.searchsorted(reached[1:], reached[:-1] + needed)
    first, last = points[ends < points.size], points[ends[ends < points.size]]
    radii = np.maximum(grid[:, None] - first, last - grid[:, None]).min(axis=1)
    # 0 where one point has the whole span.
    return np.asarray(np.maximum(radii, np.finfo(float).tiny))


def _cubed(values: Array) -> Array:
    """Cubes; many times as fast as the power of numpy."""
    return values * values * values


def share_quantile(values: Array, weight: Array, share: float) -> float:
    """Smallest of the values (g) that this share of the weight (g) does not exceed."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-12))]])
