"""What changes when the classes become more or less frequent, and nothing else does (label shift).

A run is known by its rows P(predicted | actual); at shares pi the matrix is diag(pi) times the rows, and every metric
is one of that matrix. Metrics that are insensitive to prevalence stay what they are.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from app.kernel.numerics.arrays import Array, silently


def project(counts: Array, shares: Array) -> Array:
    """Matrices (..., K, K) at other class shares, with the total n of each kept.

    Args:
        counts: (..., K, K); leading axes broadcast against those of shares. Draws of rows give draws of projections.
        shares: (..., K), scaled to sum 1 here.

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
    """By how much (..., K) classes with so many samples (..., K) are weighted for shares (..., K); the total stays.

    A class without samples has the factor 0.
    """
    wanted = shares / shares.sum(axis=-1, keepdims=True) * actual.sum(axis=-1, keepdims=True)
    factors: Array = np.divide(wanted, actual, out=np.zeros_like(wanted + actual), where=actual > 0)
    return factors


def sweep_shares(shares: Array, class_index: int, grid: Array) -> Array:
    """Class shares (G, K) with one class at each value of the grid (G) and the others in their proportions.

    Raises:
        ValueError: the grid leaves [0, 1], or the other classes have no share to scale.
    """
    rest = np.array(shares, dtype=np.float64)
    rest[class_index] = 0.0
    if (grid < 0).any() or (grid > 1).any():
        raise ValueError("shares lie between 0 and 1")
    if rest.sum() == 0:
        raise ValueError("the other classes have no share to scale")
    swept: Array = (1.0 - grid)[:, None] * (rest / rest.sum())
    swept[:, class_index] = grid
    return swept


def draw_shares(concentration: Array, draws: int, random: np.random.Generator) -> Array:
    """Uncertain class shares (draws, K) from a Dirichlet with these parameters: expected shares times how many
    samples they are worth.
    """
    drawn: Array = random.dirichlet(concentration, size=draws)
    return drawn


def crossings(gap: Callable[[Array], Array], *, low: float = 0.0, high: float = 1.0, points: int = 2001) -> list[float]:
    """Shares of one class between low and high at which two runs change places on a metric.

    Sign changes on a grid are refined by bisection to 1e-12; a metric that is equal over a whole stretch has none
    there. Ends at which a metric does not exist are skipped.

    Args:
        gap: from shares (G) of the class to the difference (G) of the two runs, NaN where there is none.
        low: smallest share.
        high: largest share.
        points: of the grid.
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
    """Probabilities (..., K) for new class shares: p'(c|x) proportional to p(c|x) new_c / old_c. Elkan (2001),
    Saerens et al. (2002).

    Only as good as the calibration of the probabilities. A row that allows for no class with a share becomes the new
    shares.

    Raises:
        ValueError: a class has an old share of 0.
    """
    if not (np.asarray(old) > 0).all():
        raise ValueError("every class needs a positive old share")
    weighted = probabilities * (np.asarray(new) / np.asarray(old))
    sums = weighted.sum(axis=-1, keepdims=True)
    scaled: Array = np.divide(weighted, sums, out=np.broadcast_to(new, weighted.shape).copy(), where=sums > 0)
    return scaled


@dataclass(frozen=True, slots=True, eq=False)
class EstimatedShares:
    """Class shares estimated from unlabelled predictions.

    Attributes:
        shares: (K), non-negative, sum 1.
        at_vertex: some share is 0: the likelihood, or the solution before it was cut, runs out of the simplex there.
        converged: the iteration came to rest, or the equations were solved without cutting.
        condition: condition number of the equations, 1 where there are none; large means that errors of the rows blow
            up.
    """

    shares: Array
    at_vertex: bool
    converged: bool
    condition: float = 1.0


def estimate_by_likelihood(
    probabilities: Array, old: Array, *, tolerance: float = 1e-10, iterations: int = 10_000
) -> EstimatedShares:
    """New class shares from predicted probabilities (N, K) of unlabelled items, by EM. Saerens, Latinne &
    Decaestecker (2002).

    Maximises the likelihood of the items when only the shares differ from the old ones (K). Needs calibrated
    probabilities.

    Raises:
        ValueError: a class has an old share of 0.
    """
    if not (old > 0).all():
        raise ValueError("every class needs a positive old share")
    ratio = probabilities / old
    shares = np.array(old, dtype=np.float64) / old.sum()
    converged = False
    for _ in range(iterations):
        weighted = ratio * shares
        following = (weighted / weighted.sum(axis=1, keepdims=True)).mean(axis=0)
        converged = bool(np.abs(following - shares).max() < tolerance)
        shares = following
        if converged:
            break
    return EstimatedShares(shares, bool((shares < _VERTEX).any()), converged)


# EM approaches a share of 0 ever more slowly; below this it is one.
_VERTEX = 1e-4


def estimate_by_confusion(counts: Array, predicted: Array) -> EstimatedShares:
    """New class shares from how often each class is predicted on unlabelled items. Lipton, Wang & Smola (2018), BBSE.

    Solves rows^T pi = predicted shares, rows those of the matrix (K, K) of labelled items; negative parts are cut off.

    Raises:
        ValueError: a class has no labelled samples, or the rows cannot be told apart.
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
