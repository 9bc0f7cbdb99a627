"""The arithmetic of gates: a bound against a threshold, never a point estimate, with three outcomes."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

from app.kernel.numerics.scipy_bridge import normal_cdf
from app.kernel.uncertainty.intervals import one_sided_z

# Relative to the larger of two numbers, or to 1, a gap between them below this is rounding.
_ROUNDING = 1e-12
# More samples than anybody has, and than a float counts one by one.
MOST_SAMPLES = 2.0**53


class Verdict(StrEnum):
    """Outcome of a rule: settled one way or the other, or open."""

    PASS = "pass"  # noqa: S105 - a verdict
    FAIL = "fail"
    INCONCLUSIVE = "inconclusive"


class Bound(StrEnum):
    """The end of the interval that is compared with the threshold.

    LOWER passes when the whole interval is above and fails when it is below. UPPER is a guardrail: it fails only when
    the whole interval is below. VALUE looks at the estimate alone and is as reliable as a coin near the threshold.
    """

    VALUE = "value"
    LOWER = "lower"
    UPPER = "upper"


@dataclass(frozen=True, slots=True)
class ValueWithLimits:
    """An estimate with its limits; limits are NaN where there is no interval."""

    value: float
    low: float
    high: float

    def mirrored(self) -> "ValueWithLimits":
        """The interval of the negative, which turns a ceiling into a floor."""
        return ValueWithLimits(-self.value, -self.high, -self.low)


def beyond(value: float, threshold: float) -> float:
    """Return the distance of a number above a threshold; 0 where only rounding keeps them apart."""
    gap = value - threshold
    return 0.0 if abs(gap) <= _ROUNDING * max(1.0, abs(value), abs(threshold)) else gap


def verdict_of(
    found: ValueWithLimits, threshold: float, bound: Bound = Bound.LOWER, *, strictly: bool = False
) -> Verdict:
    """Hold an interval against a floor. For a ceiling give the mirrored interval and the negative threshold.

    A bound at the floor, up to rounding, clears it, unless it has to be ``strictly`` above, as that of a difference
    has. Without estimate or interval the outcome is inconclusive.
    """
    if bound is Bound.VALUE:
        if math.isnan(found.value):
            return Verdict.INCONCLUSIVE
        return Verdict.PASS if beyond(found.value, threshold) >= 0 else Verdict.FAIL
    if math.isnan(found.low) or math.isnan(found.high):
        return Verdict.INCONCLUSIVE
    if beyond(found.high, threshold) < 0:
        return Verdict.FAIL
    room = beyond(found.low, threshold)
    clears = room > 0 if strictly else room >= 0
    return Verdict.PASS if bound is Bound.UPPER or clears else Verdict.INCONCLUSIVE


def combine(verdicts: list[Verdict]) -> Verdict:
    """All have to pass, rules or the two one-sided tests of an equivalence: one failure fails, else one that is open
    leaves all open.

    Intersection-union: passing needs no correction for several rules, though each makes it harder. Failing does, and
    has to be decided at a level that allows for all rules that can.
    """
    if Verdict.FAIL in verdicts:
        return Verdict.FAIL
    return Verdict.INCONCLUSIVE if Verdict.INCONCLUSIVE in verdicts else Verdict.PASS


def samples_to_settle(
    asked: Sequence[tuple[ValueWithLimits, float]], samples: float, *, error: float, power: float
) -> tuple[float, float]:
    """Return how many samples exclude all thresholds if the estimates are the truth, and how many exclude the first one
    if the limit farther away is.

    One is missed with the chance that z < (z_error s(threshold) - |truth - threshold| sqrt(n)) / s(truth), with the
    standard deviation s of one sample: s^2 is read off both limits and is taken to change in a straight line between
    them, as that of a proportion nearly does. Chances of several add up. Infinite where truth and threshold are the
    same up to rounding, or where more samples than 2^53 would be needed; NaN where there is no interval, or no number
    of samples behind it.

    Args:
        asked: Estimates with their limits, of which an infinite one is left out, and the threshold to be excluded.
        samples: Number of samples behind the limits.
        error: One-sided error of the limits, below 0.5.
        power: Probability of excluding the thresholds.
    """
    if math.isnan(samples) or any(math.isnan(found.low + found.high) for found, _ in asked):
        return math.nan, math.nan
    if any(math.isinf(found.low if found.value > threshold else found.high) for found, threshold in asked):
        return math.inf, math.inf
    z = one_sided_z(error)

    def needed(*truths: float) -> float:
        terms = []
        for (found, threshold), truth in zip(asked, truths, strict=False):
            ends = [one for one in (found.low, found.high) if not math.isinf(one)]
            variances = [((one - found.value) / z) ** 2 for one in ends]
            at, there = np.sqrt(np.interp([threshold, truth], ends, variances))
            terms.append((z * at, abs(beyond(truth, threshold)), max(there, _ROUNDING)))
        reach, gaps, deviations = np.array(terms).T

        def settles(count: float) -> bool:
            return float(normal_cdf((reach - gaps * math.sqrt(count / samples)) / deviations).sum()) <= 1.0 - power

        count = bisect_left(range(int(MOST_SAMPLES)), x=True, lo=math.ceil(samples), key=settles)
        return float(count) if count < MOST_SAMPLES else math.inf

    found, threshold = asked[0]
    return needed(*(one.value for one, _ in asked)), needed(found.high if found.value > threshold else found.low)
