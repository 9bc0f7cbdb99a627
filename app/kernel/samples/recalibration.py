"""How stated and actual chances of a class go together: logistic recalibration, and a smooth curve between the two."""

import numpy as np

from app.kernel.numerics.arrays import Array, Mask

# The smooth curve is fitted at so many points between the lowest and the highest probability, straight between them.
GRID = 51
# The share of the samples, by weight, that a fit at one point looks at.
SPAN = 0.75
# More distinct probabilities are put together with their neighbours.
_MOST_POINTS = 1000
_MOST_STEPS = 100
_CLOSE_ENOUGH = 1e-13


def log_odds(probability: Array, clip: float) -> Array:
    """Logarithm of p / (1 - p) with p at least ``clip`` away from 0 and 1, any shape; infinite at the ends without."""
    inside = np.clip(probability, clip, 1.0 - clip)
    return np.asarray(np.log(inside) - np.log1p(-inside))


def expit(values: Array) -> Array:
    """1 / (1 + exp(-x)), any shape."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * values)))


def intercept(odds: Array, hit: Mask, weights: Array | None = None) -> float:
    """The a of logit P(hit) = a + log odds, by maximum likelihood; NaN where all hit or none.

    Args:
        odds: (n), finite.
        hit: (n).
        weights: (n), or None for 1 each.
    """
    weight = np.ones(odds.size) if weights is None else weights
    hits = float(weight[hit].sum())
    if not 0.0 < hits < float(weight.sum()):
        return float("nan")
    found = 0.0
    for _ in range(_MOST_STEPS):
        chance = expit(odds + found)
        slope = float((weight * chance * (1.0 - chance)).sum())
        # Far away the curve is flat and a step of Newton's would overshoot.
        step = float(np.clip((hits - float(weight @ chance)) / max(slope, np.finfo(float).tiny), -2.0, 2.0))
        found += step
        if abs(step) <= _CLOSE_ENOUGH * max(1.0, abs(found)):
            break
    return found


def line(odds: Array, hit: Mask, weights: Array | None = None) -> tuple[float, float]:
    """The a and b of logit P(hit) = a + b log odds, by maximum likelihood.

    NaN twice where all hit or none, or where all odds are equal; b is infinite, and a NaN, where a threshold separates
    hits from others, so that no finite b is the most likely one. Arguments as of ``intercept``.
    """
    weight = np.ones(odds.size) if weights is None else weights
    there = weight > 0
    mine, rest = odds[there & hit], odds[there & ~hit]
    if not mine.size or not rest.size or (lowest := min(mine.min(), rest.min())) == max(mine.max(), rest.max()):
        return float("nan"), float("nan")
    if mine.min() >= rest.max() or mine.max() <= rest.min():
        return float("nan"), float("inf" if mine.max() > lowest and mine.min() >= rest.max() else "-inf")
    total = float(weight.sum())
    middle = float(weight @ odds) / total
    spread = float(np.sqrt(weight @ (odds - middle) ** 2 / total))
    columns = np.stack([np.ones(odds.size), (odds - middle) / spread])
    share = float(weight[hit].sum()) / total
    found = _newton(columns, hit.astype(np.float64), weight, np.array([np.log(share / (1.0 - share)), 0.0]))
    b = float(found[1]) / spread
    return float(found[0]) - b * middle, b


def lines_of(stated: Array, hit: Mask, weights: Array | None, clip: float, *, sloped: bool) -> Array:
    """The a and b (..., 2) of stated chances (n), for every row of weights (..., n); b is 1 where it is not fitted."""
    rows = () if weights is None else weights.shape[:-1]
    odds, found = log_odds(stated, clip), np.full((*rows, 2), np.nan)
    if np.isfinite(odds).all():
        for row in np.ndindex(rows):
            own = None if weights is None else weights[row]
            found[row] = line(odds, hit, own) if sloped else (intercept(odds, hit, own), 1.0)
    return found


def _newton(columns: Array, hit: Array, weight: Array, found: Array) -> Array:
    """Coefficients (2) of a logistic regression on columns (2, n); halved steps, so that the likelihood never falls."""
    height = _likelihood(columns, hit, weight, found)
    for _ in range(_MOST_STEPS):
        chance = expit(found @ columns)
        slope = columns @ (weight * (hit - chance))
        curvature = (columns * (weight * chance * (1.0 - chance))) @ columns.T
        step = np.linalg.solve(curvature, slope)
        rounding = 1e-11 * abs(height)
        while (higher := _likelihood(columns, hit, weight, found + step)) < height - rounding:
            step *= 0.5
        found, height = found + step, higher
        if np.abs(step).max() <= _CLOSE_ENOUGH * max(1.0, float(np.abs(found).max())):
            break
    return found


def _likelihood(columns: Array, hit: Array, weight: Array, found: Array) -> float:
    odds = found @ columns
    return float(weight @ (hit * odds - np.logaddexp(0.0, odds)))


def intercept_influence(odds: Array, hit: Mask, found: float) -> Array:
    """What each sample (n) adds to the sampling error of the intercept: the square root of White's variance (HC1)."""
    chance = expit(odds + found)
    size = odds.size
    influence: Array = (hit - chance) / (chance * (1.0 - chance)).sum() * np.sqrt(size / max(size - 1, 1))
    return influence


def slope_influence(odds: Array, hit: Mask, found: tuple[float, float]) -> Array:
    """The same of the slope."""
    chance = expit(found[0] + found[1] * odds)
    size, curvature = odds.size, chance * (1.0 - chance)
    middle = float(curvature @ odds) / float(curvature.sum())
    away = odds - middle
    influence: Array = (hit - chance) * away / (curvature @ away**2) * np.sqrt(size / max(size - 2, 1))
    return influence


def points_of(probability: Array) -> tuple[Array, np.ndarray]:
    """Rising points (g) that stand for probabilities (n), and the point of each: all distinct ones up to 1,000."""
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

    Cleveland (1979), as ``lowess`` of R and statsmodels with no iterations. A fit looks at the nearest samples that
    make up three quarters of the weight. Chances below 0 and above 1 are 0 and 1.

    Args:
        points: (g), rising.
        weight: (g) of the samples at each point.
        hits: (g) weight of the hits among them.
    """
    there = weight > 0
    inside, mass, shares = points[there], weight[there], hits[there] / weight[there]
    grid = np.linspace(inside[0], inside[-1], GRID)
    distances, radii = np.abs(grid[:, None] - inside), _radii(grid, inside, mass)[:, None]
    weights = _cubed(np.maximum(1.0 - _cubed(distances / radii), 0.0)) * mass
    # Where all stand on the rim tricube weights leave nothing.
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
    """How far from each of the grid one has to go for the span of the mass."""
    reached = np.concatenate([[0.0], np.cumsum(mass)])
    needed = SPAN * reached[-1] * (1.0 - 1e-12)
    # The shortest run of points from each on that has it: the nearest of these runs is what has to be reached.
    ends = np.searchsorted(reached[1:], reached[:-1] + needed)
    first, last = points[ends < points.size], points[ends[ends < points.size]]
    radii = np.maximum(grid[:, None] - first, last - grid[:, None]).min(axis=1)
    # 0 where all that is needed stands at one point.
    return np.asarray(np.maximum(radii, np.finfo(float).tiny))


def _cubed(values: Array) -> Array:
    """Many times as fast as the power of numpy."""
    return values * values * values


def share_quantile(values: Array, weight: Array, share: float) -> float:
    """Smallest of the values (g) that is not exceeded by this share of the weight (g)."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    return float(values[order[np.searchsorted(reached, share * reached[-1] * (1.0 - 1e-12))]])
