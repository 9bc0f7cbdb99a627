"""Cost ratios for which one of two decision rules of two classes is better than the other, and the Lorenz order of
recalls.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from math import inf, isinf

import numpy as np

from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.intervals import two_sided_z

# Relative width up to which a range is what rounding leaves between two ends that are one.
_ROUNDING = 1e-12


class Cheaper(StrEnum):
    """The run with the lower expected cost. `undecided`: either may be."""

    A = "a"
    B = "b"
    EQUAL = "equal"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class CostRatioRange:
    """A range of what a miss costs, in false alarms: the cost of a false negative over that of a false positive.

    Attributes:
        high: `null` where there is no end.
    """

    low: float
    high: float | None
    cheaper: Cheaper


@dataclass(frozen=True, slots=True)
class RateGaps:
    """Miss rate and false alarm rate of the first run less those of the second, with the variances of both.

    They are independent, since the one is about positives and the other about negatives, but where groups hold both.
    """

    misses: float
    false_alarms: float
    misses_variance: float = 0.0
    false_alarms_variance: float = 0.0
    covariance: float = 0.0

    def variance(self, ratio: float) -> float:
        """Return the variance of the difference of the costs, in false alarms, at a ratio of costs and equal
        classes.
        """
        return (self.misses_variance * ratio + 2.0 * self.covariance) * ratio + self.false_alarms_variance


def independent_gap(first: tuple[float, float], second: tuple[float, float]) -> tuple[float, float]:
    """Return the difference of two error rates on different samples and its variance, with one right and one wrong
    sample more in each.

    Agresti & Caffo (2000).
    """
    (p, n), (q, m) = (((wrong + 1.0) / (size + 2.0), size + 2.0) for wrong, size in (first, second))
    return p - q, p * (1.0 - p) / n + q * (1.0 - q) / m


def cost_ranges(gaps: RateGaps, prevalence: float) -> list[CostRatioRange]:
    """Ranges of the cost ratio from 0 to infinity, in order, by which run is cheaper."""
    ends = [-gaps.false_alarms / gaps.misses] if gaps.misses * gaps.false_alarms < 0.0 else []
    return _ranges(ends, lambda ratio: _cheaper(gaps.misses * ratio + gaps.false_alarms), prevalence)


def certain_cost_ranges(gaps: RateGaps, prevalence: float, level: float) -> list[CostRatioRange]:
    """Ranges in which the difference of costs is not 0 beyond doubt, and in between those where it is undecided.

    The ratios at which the difference is within z of its deviation are those between or beyond the roots of a square
    function. Fieller (1954). The prevalence is taken as known.
    """
    z = two_sided_z(level)
    square = gaps.misses**2 - z**2 * gaps.misses_variance
    middle = 2.0 * (gaps.misses * gaps.false_alarms - z**2 * gaps.covariance)
    constant = gaps.false_alarms**2 - z**2 * gaps.false_alarms_variance

    def sure(ratio: float) -> Cheaper:
        gap = gaps.misses * ratio + gaps.false_alarms
        # Rounding may leave a variance of 0 below it, where no gap is beyond doubt all the same.
        return _cheaper(gap) if gap * gap > z * z * max(gaps.variance(ratio), 0.0) else Cheaper.UNDECIDED

    return _ranges(_positive_roots(square, middle, constant), sure, prevalence)


def _cheaper(gap: float) -> Cheaper:
    """The run that costs less, from the cost of the first less that of the second."""
    return Cheaper.A if gap < 0.0 else Cheaper.B if gap > 0.0 else Cheaper.EQUAL


def _ranges(ends: Iterable[float], cheaper: Callable[[float], Cheaper], prevalence: float) -> list[CostRatioRange]:
    """The ranges between some ends, 0 and infinity, those of one kind that touch as one, moved to a prevalence."""
    odds, start = (1.0 - prevalence) / prevalence, 0.0
    found: list[CostRatioRange] = []
    for low, high in pairwise([0.0, *sorted(ends), inf]):
        if high - low <= _ROUNDING * low or isinf(start):
            continue
        kind, end = cheaper(float(_inside(low, high))), high * odds
        if found and found[-1].cheaper is kind:
            start = found.pop().low
        found.append(CostRatioRange(start, None if isinf(end) else end, kind))
        start = end
    return found


def _positive_roots(square: float, middle: float, constant: float) -> list[float]:
    """Return the positive roots of s x^2 + m x + c, without cancellation."""
    within = middle**2 - 4.0 * square * constant
    if within <= 0.0:
        return []
    far = -(middle + np.copysign(np.sqrt(within), middle)) / 2.0
    roots = [far / square if square else inf, constant / far if far else 0.0]
    return sorted(float(root) for root in roots if 0.0 < root < inf)


def curve_cost_ranges(
    first: tuple[Array, Array], second: tuple[Array, Array], prevalence: float
) -> list[CostRatioRange]:
    """Ranges by which run is cheaper where each has the threshold that is best for the ratio.

    Such a threshold is a vertex of the upper hull of the ROC curve, and the lowest cost as a function of the ratio is
    made of straight lines (Provost & Fawcett 2001). Between the ends of the lines of both runs there is at most one
    change.

    Args:
        first: Hits and false alarms at the vertices, both in counts that rise from 0 to all.
        second: The same of the second run.
        prevalence: Share of positives.
    """
    hulls = [_lines(one) for one in (first, second)]
    ends = np.unique(np.concatenate([[0.0], *(turns for _, _, turns in hulls), [inf]]))
    at = [np.searchsorted(turns, _inside(ends[:-1], ends[1:])) for _, _, turns in hulls]
    slope, start = (np.subtract(*(one[which][place] for one, place in zip(hulls, at, strict=True))) for which in (0, 1))
    with silently():
        crossings = np.where(slope * start < 0.0, -start / slope, np.nan)
        crossings = crossings[(crossings > ends[:-1]) & (crossings < ends[1:])]

    def cheaper(ratio: float) -> Cheaper:
        at = int(np.searchsorted(ends, ratio)) - 1
        return _cheaper(float(slope[at]) * ratio + float(start[at]))

    return _ranges([*ends[1:-1].tolist(), *crossings.tolist()], cheaper, prevalence)


def _lines(ends: tuple[Array, Array]) -> tuple[Array, Array, Array]:
    """The vertices of a hull by their miss and false alarm rates, and the ratios at which one takes over from the one
    before.
    """
    tp, fp = ends
    with silently():
        turns = np.diff(fp) * tp[-1] / (np.diff(tp) * fp[-1])
    return 1.0 - tp / tp[-1], fp / fp[-1], turns


def _inside(low: Array | float, high: Array | float) -> Array:
    """A ratio inside of each range; the last range has no end."""
    return np.asarray((low + np.minimum(high, 2.0 * low + 1.0)) / 2.0)


def lorenz_order(first: Array, second: Array) -> int | None:
    """Generalised Lorenz order of two vectors (K) (Shorrocks 1983): weak majorisation.

    1 when the k smallest of ``first`` add up to at least as much as those of ``second`` for every k, and to more for
    some; then no mean that rises with every rate and is Schur-concave prefers ``second`` (Marshall, Olkin & Arnold
    2011, 3.A.8). -1 the other way round, 0 when all sums are equal, None when neither holds.
    """
    gap = np.cumsum(np.sort(first)) - np.cumsum(np.sort(second))
    above, below = bool((gap > _ROUNDING).any()), bool((gap < -_ROUNDING).any())
    return None if above and below else int(above) - int(below)
