"""The difference of two runs: interval, test, and the probabilities that one is better or both are equivalent."""

from dataclasses import dataclass
from math import nan

import numpy as np

from app.kernel.comparison.differences import compare_draws, normal_limits
from app.kernel.comparison.joint import JointCounts
from app.kernel.comparison.paired import mcnemar, pairing_bounds, tango_interval
from app.kernel.comparison.proportions import newcombe_interval, score_z
from app.kernel.numerics import Array
from app.kernel.special import normal_cdf
from app.services.pairing import Bond, Pairing
from app.services.targets import Preference, Share


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """Limits and p of a difference; ``smallest`` is given too when the unknown pairing leaves a range of p."""

    low: float = nan
    high: float = nan
    p: float = nan
    smallest: float | None = None
    method: str = ""
    discordant: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """First less second in the unit of the metric; NaN where nothing can be said.

    Attributes:
        first_better: Probability that the first is better by more than the region of equivalence.
        equivalent: That the two differ by no more than it.
        test: Limits and p.
        limits: How the limits were made, which need not be how p was.
    """

    first: int
    second: int
    value: float
    test: Test
    limits: str
    first_better: float = nan
    equivalent: float = nan
    probability_error: float = nan


def share_test(
    share: Share, of: int | None, first: int, second: int, counts: Array, pairing: Pairing, level: float
) -> Test:
    """Exact or score methods for a share of right answers: accuracy, or the recall of one class.

    Args:
        share: Which of them.
        of: The class of a recall.
        first: Index of the run.
        second: Index of the other.
        counts: (R, K, K).
        pairing: How the runs belong together.
        level: Of the limits.
    """
    members = counts if share is Share.ACCURACY else _only(counts, of)
    hits, sizes = np.trace(members, axis1=1, axis2=2), members.sum(axis=(1, 2))
    if not sizes[first] or not sizes[second]:
        return Test(method="none")
    if pairing.joint is not None:
        only_first, only_second = _discordant(pairing.joint, first, second, None if share is Share.ACCURACY else of)
        low, high = tango_interval(only_first, only_second, sizes[first], level)
        p = float(mcnemar(only_first, only_second).mid_p)
        found = only_first + only_second
        return Test(low=float(low), high=float(high), p=p, method="mcnemar_mid_p", discordant=found)
    if pairing.bond is Bond.TEST_SET:
        bounds = pairing_bounds(members[first], members[second])
        most, gap = bounds.most, bounds.difference
        low, high = tango_interval((most + gap) / 2, (most - gap) / 2, sizes[first], level)
        return Test(
            low=float(low),
            high=float(high),
            p=float(bounds.largest.mid_p),
            smallest=float(bounds.smallest.mid_p),
            method="mcnemar_mid_p_of_any_pairing",
        )
    both = (hits[first], sizes[first], hits[second], sizes[second])
    low, high = newcombe_interval(*both, level)
    z = float(score_z(*both))
    return Test(low=float(low), high=float(high), p=float(2 * normal_cdf(-abs(z))), method="score")


SHARE_LIMITS = {
    "mcnemar_mid_p": "tango",
    "mcnemar_mid_p_of_any_pairing": "tango_of_widest_pairing",
    "score": "newcombe",
}


def _only(counts: Array, of: int | None) -> Array:
    """The matrices with the members of one class alone."""
    kept = np.zeros_like(counts)
    kept[:, of] = counts[:, of]
    return kept


def _discordant(joint: JointCounts, first: int, second: int, of: int | None) -> tuple[float, float]:
    """Items that only the first, and that only the second, has right; of one class or of all."""
    right = joint.correct()
    counts = joint.counts if of is None else np.where(joint.truth == of, joint.counts, 0.0)
    return float(counts @ (right[first] & ~right[second])), float(counts @ (right[second] & ~right[first]))


def delta_tests(gaps: Array, variances: Array) -> list[Test]:
    """Normal tests of differences (V) with these variances."""
    _, _, p = normal_limits(gaps, variances)
    return [Test(p=float(value), method="delta") for value in p]


def range_tests(gaps: Array, smallest: Array, largest: Array) -> list[Test]:
    """Normal tests of differences (V) of which only bounds of the variance are known, so p lies in a range."""
    _, _, most = normal_limits(gaps, largest)
    _, _, least = normal_limits(gaps, smallest)
    # Where one pairing leaves no variance at all, a difference would be certain.
    least = np.where(np.isnan(least) & ~np.isnan(most), 0.0, least)
    return [
        Test(p=float(upper), smallest=float(lower), method="delta_of_any_pairing")
        for upper, lower in zip(most, least, strict=True)
    ]


def simulated(
    values: Array, draws: Array, first: int, second: int, *, better: Preference | None, level: float, rope: float
) -> list[tuple[Array, float, float, float]]:
    """For V values: limits of the difference, probability that the first is better, of equivalence, and their error.

    Args:
        values: (R, V).
        draws: (D, R, V).
        first: Index of the run.
        second: Index of the other.
        better: Which values are better.
        level: Of the limits.
        rope: Half width of the region of equivalence.
    """
    raw = compare_draws(draws[:, first], draws[:, second], values[first] - values[second], level=level, rope=rope)
    scored = raw
    if better is not None:
        scores = better.score(values)
        scored = compare_draws(
            better.score(draws[:, first]),
            better.score(draws[:, second]),
            scores[first] - scores[second],
            level=level,
            rope=rope,
        )
    ends = np.stack([raw.interval.low, raw.interval.high], axis=1)
    return [
        (ends[index], float(scored.first_larger[index]), float(scored.equivalent[index]), float(error))
        for index, error in enumerate(scored.probability_error)
    ]
