"""Many runs on one test set: is there any difference, which may be best, and how lucky is the winner?

All draws here are of shape (D, R): D joint draws of one metric for R runs, higher is better.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.paired.drift import ChiSquared
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.special import chi_squared_upper_tail


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
    """How sure the order of R runs is.

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
    ranks = mean_ranks(-draws)
    top = draws == draws.max(axis=1, keepdims=True)
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(ranks, [tail, 1.0 - tail], axis=0, method="inverted_cdf")
    return RankProbabilities((top / top.sum(axis=1, keepdims=True)).mean(axis=0), ranks.mean(axis=0), low, high)


def mean_ranks(values: Array) -> Array:
    """Ranks along the last axis from 1 for the smallest; equal values share the mean of their ranks."""
    order = np.argsort(values, axis=-1, kind="stable")
    ordered = np.take_along_axis(values, order, axis=-1)
    place = np.broadcast_to(np.arange(values.shape[-1]), values.shape)
    edge = np.ones((*values.shape[:-1], 1), dtype=np.bool_)
    differs = ordered[..., 1:] != ordered[..., :-1]
    first = np.where(np.concatenate([edge, differs], axis=-1), place, 0)
    last = np.where(np.concatenate([differs, edge], axis=-1), place, values.shape[-1])
    start = np.maximum.accumulate(first, axis=-1)
    end = np.minimum.accumulate(last[..., ::-1], axis=-1)[..., ::-1]
    ranks = np.empty(values.shape)
    np.put_along_axis(ranks, order, (start + end) / 2.0 + 1.0, axis=-1)
    return ranks


def confidence_set(draws: Array, estimates: Array, level: float = 0.95) -> NDArray[np.bool_]:
    """Which runs (R) may be the best, from joint draws (D, R) of R values (R): multiple comparison with the best.

    In the manner of Hsu (1984) a run leaves the set when the upper limit of its difference to the leader is below 0.
    The limits hold for all runs together: the largest standardised deviation of the draws gives their factor, so
    correlated runs cost less than Bonferroni.
    """
    leader = int(np.nanargmax(estimates))
    gaps, difference = draws - draws[:, [leader]], estimates - estimates[leader]
    deviation = gaps.std(axis=0, ddof=1)
    with silently():
        standardised = np.abs(gaps - gaps.mean(axis=0)) / deviation
    standardised[:, deviation == 0] = 0.0
    factor = float(np.quantile(standardised.max(axis=1), level))
    surely_worse: NDArray[np.bool_] = difference + factor * deviation < 0
    return ~surely_worse


def separable_groups(draws: Array, estimates: Array, level: float = 0.95) -> NDArray[np.int64]:
    """Group number (R) of each run, 0 for the best: those that the best of the group is not surely better than.

    The leader's confidence set is the first group; the next is made of the runs that are left, and so on.
    """
    groups = np.zeros(estimates.size, dtype=np.int64)
    rest = np.arange(estimates.size)
    number = 0
    while rest.size:
        groups[rest] = number
        if rest.size == 1:
            break
        rest = rest[~confidence_set(draws[:, rest], estimates[rest], level)]
        number += 1
    return groups


def winner_optimism(draws: Array, estimates: Array) -> float:
    """By how much the best of R values is expected to overstate the run it belongs to (the winner's curse).

    Every draw, moved to be centered on the estimates, crowns its own winner; the optimism is the mean of the winner's
    value in the draw less its value in the data. Subtract it from the best value.
    """
    moved = draws - draws.mean(axis=0) + estimates
    winner = moved.argmax(axis=1)
    return float((moved[np.arange(len(moved)), winner] - estimates[winner]).mean())


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
