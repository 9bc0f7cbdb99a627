"""k models on N data sets: ranks, omnibus tests, and which pairs differ. Scores (N, k), higher is better, rounded as
little as can be.

Ranks of rounded scores have ties that the scores did not have.
"""

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.many.rankings import mean_ranks
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.bisection import last_inside
from app.kernel.numerics.special import chi_squared_upper_tail, f_upper_tail, normal_cdf

# Fewer data sets are refused; up to the second number the approximations are poor.
FEWEST = 5
FEW = 10


def average_ranks(scores: Array) -> Array:
    """Mean rank of each model, 1 is best, ties shared: (k)."""
    ranks: Array = mean_ranks(-scores).mean(axis=0)
    return ranks


@dataclass(frozen=True, slots=True)
class Friedman:
    """Friedman's test of equal models, and Iman and Davenport's F made of it, which is the one to use.

    Attributes:
        chi_squared: Friedman's statistic, k - 1 degrees of freedom.
        p: of it.
        f: (N-1) chi2 / (N(k-1) - chi2), with (k-1, (k-1)(N-1)) degrees of freedom.
        f_p: of it.
        tie_corrected: whether the statistic was divided by 1 - sum(t^3 - t)/(N(k^3 - k)), as libraries do; Demsar
            (2006) does not.
    """

    chi_squared: float
    p: float
    f: float
    f_p: float
    tie_corrected: bool


def friedman(scores: Array, *, tie_corrected: bool = False) -> Friedman:
    """Friedman (1937), Iman & Davenport (1980).

    Raises:
        ValueError: fewer than ``FEWEST`` data sets, fewer than two models, or a missing score.
    """
    check_scores(scores)
    count, models = scores.shape
    ranks = mean_ranks(-scores)
    statistic = 12.0 * count / (models * (models + 1.0)) * float(((ranks.mean(axis=0) - (models + 1) / 2.0) ** 2).sum())
    if tie_corrected:
        # Squared ranks lose (t^3 - t)/12 for every t that are tied.
        lost = models * (models + 1.0) * (2.0 * models + 1.0) / 6.0 - (ranks**2).sum(axis=1)
        left = 1.0 - 12.0 * float(lost.sum()) / (count * models * (models**2 - 1.0))
        statistic = statistic / left if left > 1e-12 else 0.0
    freedom = models - 1
    rest = count * freedom - statistic
    f = (count - 1) * statistic / rest if rest > 1e-9 else float("inf")
    f_p = float(f_upper_tail(f, freedom, freedom * (count - 1.0))) if np.isfinite(f) else 0.0
    return Friedman(statistic, float(chi_squared_upper_tail(statistic, freedom)), f, f_p, tie_corrected)


def check_scores(scores: Array) -> None:
    """Raises ValueError: too few data sets or models, or a missing score, which is never made up."""
    if scores.ndim != 2 or scores.shape[1] < 2:
        raise ValueError("scores are data sets by at least two models")
    if scores.shape[0] < FEWEST:
        raise ValueError(f"{scores.shape[0]} data sets are too few: at least {FEWEST} are needed")
    if np.isnan(scores).any():
        raise ValueError("a score is missing: leave out the data set or the model")


@lru_cache(maxsize=256)
def studentised_range_quantile(models: int, alpha: float = 0.05) -> float:
    """Upper quantile of the range of k independent standard normals (infinite degrees of freedom)."""
    nodes, weights = np.polynomial.legendre.leggauss(200)
    x = 9.0 * nodes
    density = np.exp(-x * x / 2.0) / np.sqrt(2.0 * np.pi) * 9.0 * weights

    def upper_tail(q: float) -> float:
        return float(1.0 - models * (density @ (normal_cdf(x + q) - normal_cdf(x)) ** (models - 1)))

    return last_inside(lambda q: upper_tail(q) > alpha, 0.0, 20.0)


def critical_difference(models: int, datasets: int, alpha: float = 0.05) -> float:
    """Nemenyi's: average ranks farther apart differ. q/sqrt(2) sqrt(k(k+1)/(6N)), q of the studentised range. Demsar
    (2006).

    For the classical diagram only: whether two models differ depends here on which others are in the pool (Benavoli,
    Corani & Mangili 2016).
    """
    spread = math.sqrt(models * (models + 1.0) / (6.0 * datasets))
    return studentised_range_quantile(models, alpha) / math.sqrt(2.0) * spread


def rank_z(ranks: Array, datasets: int, control: int) -> tuple[Array, Array]:
    """Z and two-sided p (k) of the difference of average ranks to a control model; NaN for itself.

    Demsar (2006), section 3.2.2.
    """
    models = ranks.size
    z = (ranks - ranks[control]) / np.sqrt(models * (models + 1.0) / (6.0 * datasets))
    z[control] = np.nan
    return z, 2.0 * normal_cdf(-np.abs(z))


def cliques(indistinct: NDArray[np.bool_]) -> list[tuple[int, ...]]:
    """Maximal groups of at least two models of which no two differ, from a symmetric (k, k) matrix of pairs that do
    not differ.

    Under Nemenyi they are runs of neighbouring ranks; under pairwise tests they need not be. Bron & Kerbosch (1973).
    """
    size = indistinct.shape[0]
    neighbours = [{j for j in range(size) if j != i and indistinct[i, j]} for i in range(size)]
    found: list[tuple[int, ...]] = []

    def extend(group: set[int], candidates: set[int], seen: set[int]) -> None:
        if not candidates and not seen:
            if len(group) > 1:
                found.append(tuple(sorted(group)))
            return
        pivot = max(candidates | seen, key=lambda model: len(neighbours[model] & candidates))
        for model in sorted(candidates - neighbours[pivot]):
            extend(group | {model}, candidates & neighbours[model], seen & neighbours[model])
            candidates = candidates - {model}
            seen = seen | {model}

    extend(set(), set(range(size)), set())
    return sorted(found)
