"""The arithmetic of gates: a bound against a threshold, never a point estimate, with three outcomes."""

import math
from dataclasses import dataclass
from enum import StrEnum

import numpy as np

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
    found: ValueWithLimits, threshold: float, samples: float, *, error: float, power: float
) -> tuple[float, float]:
    """Return how many samples exclude the threshold if the estimate is the truth, and if the limit farther away is.

    n = ((z_error s(threshold) + z_power s(truth)) / (truth - threshold))^2 with the standard deviation s of one sample:
    s^2 is read off both limits and is taken to change in a straight line between them, as that of a proportion nearly
    does. Infinite where truth and threshold are the same up to rounding, or where more samples than 2^53 would be
    needed; NaN where there is no interval.

    Args:
        found: The estimate with its limits; an infinite one is left out.
        threshold: What is to be excluded.
        samples: Number of samples behind the limits.
        error: One-sided error of the limits, below 0.5.
        power: Probability of excluding the threshold.
    """
    if math.isnan(found.low + found.high):
        return math.nan, math.nan
    above = found.value > threshold
    if math.isinf(found.low if above else found.high):
        return math.inf, math.inf
    z, z_power = one_sided_z(error), one_sided_z(1.0 - power)
    ends = [one for one in (found.low, found.high) if not math.isinf(one)]
    variances = [samples * ((one - found.value) / z) ** 2 for one in ends]

    def deviation(at: float) -> float:
        return math.sqrt(float(np.interp(at, ends, variances)))

    def needed(truth: float) -> float:
        gap = beyond(truth, threshold)
        if gap == 0:
            return math.inf
        count = max(((z * deviation(threshold) + z_power * deviation(truth)) / gap) ** 2, samples)
        return float(math.ceil(count)) if count <= MOST_SAMPLES else math.inf

    return needed(found.value), needed(found.high if above else found.low)
