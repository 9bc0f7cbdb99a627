"""Many runs and many tests: omnibus tests, adjusted p-values, and the luck of the winner."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from math import hypot

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.tests import ChiSquared
from app.kernel.matrix.table import Table, additive_variance, stack
from app.kernel.metrics.families.agreement import cohen_kappa
from app.kernel.numerics.arrays import Array, inner, silently
from app.kernel.numerics.scipy_bridge import chi_squared_upper_tail, normal_cdf, normal_quantile
from app.kernel.uncertainty.draws import generator

# Draws of the largest of several normals: its quantile has an error of about 0.01.
_NORMALS, _ALL_NORMALS = 50_000, 1_000_000


def cochran_q(joint: JointCounts) -> ChiSquared:
    """Cochran's Q: do R >= 2 runs have equal accuracy on the same items? Cochran (1950).

    Q = (R-1) (R sum G_r^2 - T^2) / (R T - sum L_i^2) with G_r the hits of a run, L_i the runs that are right on an
    item, T all hits. Without an item that divides the runs, Q is 0 and p is 1.
    """
    right = joint.correct()
    runs = joint.n_runs
    hits = right @ joint.counts
    per_item = right.sum(axis=0)
    divided = runs * hits.sum() - (joint.counts * per_item**2).sum()
    if divided == 0 or runs < 2:
        return ChiSquared(0.0, max(runs - 1, 0), 1.0)
    q = float((runs - 1) * (runs * (hits**2).sum() - hits.sum() ** 2) / divided)
    return ChiSquared(q, runs - 1, float(chi_squared_upper_tail(q, runs - 1)))


@dataclass(frozen=True, slots=True, eq=False)
class RankProbabilities:
    """Certainty of the order of R runs.

    Attributes:
        best: Probability of being the best, ties shared, (R).
        expected_rank: 1 is best, tied runs share the mean of their ranks, (R).
        low: Lower (better) end of the interval of ranks, (R).
        high: Upper end, (R).
    """

    best: Array
    expected_rank: Array
    low: Array
    high: Array


def rank_runs(draws: Array, level: float = 0.95) -> RankProbabilities:
    """Ranks of R runs over joint draws (D, R) without NaN."""
    # Run by run: few runs side by side are slow to sort and to sum over.
    runs = np.ascontiguousarray(draws.T)
    ranks, top = _ranks(-runs), runs == np.maximum.reduce(runs, axis=0)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(ranks, [tail, 1.0 - tail], axis=1, method="inverted_cdf")
    return RankProbabilities((top / np.add.reduce(top, axis=0)).mean(axis=1), ranks.mean(axis=1), low, high)


def mean_ranks(values: Array) -> Array:
    """Ranks along the last axis from 1 for the smallest; equal values share the mean of their ranks."""
    return np.moveaxis(_ranks(np.ascontiguousarray(np.moveaxis(values, -1, 0))), 0, -1)


def _ranks(values: Array) -> Array:
    """Ranks (R, ...) along the first axis: halfway between how many are smaller and how many are no larger. Each is
    compared with each, so R is some hundreds at most.
    """
    smaller, no_larger = (
        np.array([np.add.reduce(compare(values, own), axis=0, dtype=np.int32) for own in values])
        for compare in (np.less, np.less_equal)
    )
    ranks: Array = (smaller + no_larger + 1.0) / 2.0
    return ranks


def may_be_best(draws: Array, estimates: Array, level: float = 0.95) -> NDArray[np.bool_]:
    """Return which runs (R) may be the best, from joint draws (D, R) of R values (R): with the level the best is in it.

    Hsu (1984): a run leaves the set where some other is better by more than the largest standardised difference of all
    others to it reaches with the level, on one side (Dunnett 1955). None leaves beside an infinite value.
    """
    # Run by run: few runs side by side are slow to sum over.
    deviations = np.ascontiguousarray((draws - draws.mean(axis=0)).T)
    spreads, largest = np.empty((estimates.size, estimates.size)), np.empty(deviations.shape)
    for run, own in enumerate(deviations):
        gaps = deviations - own
        spreads[run] = spread = np.sqrt(inner(gaps, gaps) / (own.size - 1))
        gaps *= np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)[:, None]
        np.maximum.reduce(gaps, axis=0, out=largest[run])
    reach = np.quantile(largest, level, axis=1)[:, None] * spreads
    with silently():
        behind = estimates - estimates[:, None]
    return np.asarray(~((behind > reach) & np.isfinite(behind)).any(axis=1))


def level_of_largest(draws: Array, level: float = 0.95) -> float:
    """Return the level at which the limits of the run that came out best hold, from joint draws (D, R).

    The best of R values is about its own value plus the largest of R deviations. So its limit on that side is c
    standard errors away, c the quantile of the largest of normals with the correlations of the runs.
    """
    with silently():
        correlation: Array = np.nan_to_num(np.atleast_2d(np.corrcoef(draws, rowvar=False)))
    np.fill_diagonal(correlation, 1.0)
    values, vectors = np.linalg.eigh(correlation)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    size = len(correlation)
    normals = generator(0).standard_normal((min(_NORMALS, _ALL_NORMALS // size), size)) @ root.T
    largest = float(np.quantile(normals.max(axis=1), 0.5 + level / 2.0))
    return 2.0 * float(normal_cdf(largest)) - 1.0


def with_others(draws: Array, others: int, seed: int) -> Array:
    """Return joint draws (D, R + M) of R runs and of M others, of which nothing was drawn: they have the mean standard
    error of these, and their mean correlation with each of them and with one another.
    """
    n, size = draws.shape
    deviations = draws.std(axis=0)
    with silently():
        correlation = np.nan_to_num(np.corrcoef(draws, rowvar=False))
        common = np.nan_to_num((draws - draws.mean(axis=0)) / deviations).mean(axis=1)
    shared = float(np.clip((correlation.sum() - np.trace(correlation)) / (size * (size - 1)), 0.0, 1.0))
    # The mean of these runs has a part of what is shared; the others have the rest of it beside that.
    part = shared / (shared + (1.0 - shared) / size) if shared else 0.0
    random = generator(seed)
    beside = np.sqrt(max(shared - shared * part, 0.0)) * random.standard_normal(n)
    alone = np.sqrt(1.0 - shared) * random.standard_normal((n, others))
    moved = deviations.mean() * ((part * common + beside)[:, None] + alone)
    return np.concatenate([draws, moved], axis=1)


def winner_optimism(draws: Array, estimates: Array) -> float:
    """By how much the best of R values is expected to overstate the run it belongs to (the winner's curse).

    Every draw, moved to be centered on the estimates, crowns its own winner; the optimism is the mean of the winner's
    value in the draw less its value in the data. Subtract it from the best value.
    """
    moved = draws - draws.mean(axis=0) + estimates
    winner = moved.argmax(axis=1)
    return float((moved[np.arange(len(moved)), winner] - estimates[winner]).mean())


def fresh_limits(expected: float, limits: tuple[float, float], reach: tuple[float, float]) -> tuple[float, float]:
    """Return limits of what a run shows on a fresh test set: what is unknown of the run, and chance there, in squares.

    Args:
        expected: What it is expected to show.
        limits: Of the run.
        reach: How far below and above its own value a run lies on such a test set.
    """
    low, high = limits
    return expected - hypot(expected - low, reach[0]), expected + hypot(high - expected, reach[1])


def kendall_tau(values: Array) -> Array:
    """Kendall's tau-b between the orders that M metrics give R runs, from values (M, R): (M, M).

    NaN where a metric does not tell any two runs apart, or fewer than two runs have both values.
    """
    rows, columns = np.triu_indices(values.shape[1], 1)
    with silently():
        signs = np.sign(values[:, rows] - values[:, columns])
        present = ~np.isnan(signs)
        both = present.astype(np.float64)
        signs = np.where(present, signs, 0.0)
        untied = (signs * signs) @ both.T
        tau: Array = signs @ signs.T / np.sqrt(untied * untied.T)
    return tau


def equal_kappas(counts: Array) -> ChiSquared | None:
    """The chi-squared test that independent runs (R, K, K) have one kappa; of two runs the square of their z test.

    Sum of (kappa_i - mean)^2 / v_i with the mean weighted by 1 / v_i (Fleiss, Levin & Paik 2003, section 18.1); v_i is
    the variance of Fleiss, Cohen & Everitt (1969).

    Returns:
        None where a kappa does not exist, or has no variance.
    """
    gradient = cohen_kappa.card.inference.gradient
    assert gradient is not None  # noqa: S101 - it is smooth
    table = Table(counts)
    with silently():
        kappas = np.asarray(cohen_kappa(table))
        (variances,) = additive_variance(table, stack([gradient(table)]))
        weights = 1.0 / variances
        statistic = float(weights @ np.square(kappas - weights @ kappas / weights.sum()))
    if not np.isfinite(statistic):
        return None
    freedom = len(counts) - 1
    return ChiSquared(statistic, freedom, float(chi_squared_upper_tail(statistic, freedom)))


# Smaller ones have no quantile.
_SMALLEST = 1e-300


class Adjustment(StrEnum):
    """Holm is the default; Hochberg needs positive dependence; BH and BY bound the share of false discoveries
    instead. Max-T uses how the differences vary together, which takes draws of them: see ``adjust_jointly``.
    """

    NONE = "none"
    BONFERRONI = "bonferroni"
    HOLM = "holm"
    HOCHBERG = "hochberg"
    BENJAMINI_HOCHBERG = "benjamini_hochberg"
    BENJAMINI_YEKUTIELI = "benjamini_yekutieli"
    MAX_T = "max_t"


# What p in order are multiplied by, from their ranks (n), and the methods that step up from the largest then.
_FACTORS: dict[Adjustment, Callable[[Array], Array]] = {
    Adjustment.NONE: np.ones_like,
    Adjustment.BONFERRONI: lambda ranks: np.full_like(ranks, ranks.size),
    Adjustment.HOLM: lambda ranks: ranks[::-1],
    Adjustment.HOCHBERG: lambda ranks: ranks[::-1],
    Adjustment.BENJAMINI_HOCHBERG: lambda ranks: ranks.size / ranks,
    Adjustment.BENJAMINI_YEKUTIELI: lambda ranks: ranks.size / ranks * (1.0 / ranks).sum(),
}
_STEP_UP = (Adjustment.HOCHBERG, Adjustment.BENJAMINI_HOCHBERG, Adjustment.BENJAMINI_YEKUTIELI)


def adjust(p_values: Array, method: Adjustment = Adjustment.HOLM) -> Array:
    """Adjusted p-values, at most 1, to be compared with the level of the whole family; not for MAX_T."""
    p = np.asarray(p_values, dtype=np.float64)
    present = np.flatnonzero(~np.isnan(p))
    adjusted = np.full(p.shape, np.nan)
    if present.size:
        order = present[np.argsort(p[present], kind="stable")]
        scaled = p[order] * _FACTORS[method](np.arange(1.0, order.size + 1.0))
        up = method in _STEP_UP
        stepped = np.minimum.accumulate(scaled[::-1])[::-1] if up else np.maximum.accumulate(scaled)
        adjusted[order] = np.minimum(stepped, 1.0)
    return adjusted


def adjust_jointly(p_values: Array, deviations: Array) -> Array:
    """Max-T adjusted p-values (m): never above Holm's, whose bound needs no draws, and never below p itself.

    Args:
        p_values: (m), two-sided.
        deviations: (B, m) joint draws of what was tested, about their means in standard deviations.
    """
    present = np.flatnonzero(~np.isnan(p_values))
    adjusted = np.full(p_values.shape, np.nan)
    if present.size:
        p = p_values[present]
        statistics = -normal_quantile(np.maximum(p, _SMALLEST) / 2.0)
        found = max_t_adjust(statistics, np.abs(deviations[:, present]))
        adjusted[present] = np.clip(found, p, adjust(p))
    return adjusted


def max_t_adjust(statistics: Array, null_draws: Array) -> Array:
    """Step-down max-T adjusted p-values (m) from joint draws under the null. Westfall & Young (1993), algorithm 2.8.

    Sharper than Holm where the statistics are correlated, as those of runs on one test set are.

    Args:
        statistics: (m), larger is more extreme, no NaN.
        null_draws: (B, m) draws of the same statistics when no hypothesis is false: permutations, or bootstrap
            deviations.
    """
    order = np.argsort(-statistics, kind="stable")
    # Largest draw among this hypothesis and all that come after it.
    rivals = np.maximum.accumulate(null_draws[:, order[::-1]], axis=1)[:, ::-1]
    extreme = (rivals >= statistics[order] * (1.0 - 1e-12)).sum(axis=0)
    adjusted = np.empty(statistics.shape)
    adjusted[order] = np.maximum.accumulate((1.0 + extreme) / (1.0 + null_draws.shape[0]))
    return adjusted
