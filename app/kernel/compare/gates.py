"""The arithmetic of gates: a bound against a threshold, never a point estimate, with three outcomes."""

import math
from dataclasses import dataclass
from enum import StrEnum

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
    """What is held against the threshold.

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
    """How far a number lies above a threshold; 0 where only rounding keeps them apart."""
    gap = value - threshold
    return 0.0 if abs(gap) <= _ROUNDING * max(1.0, abs(value), abs(threshold)) else gap


def verdict_of(found: ValueWithLimits, threshold: float, bound: Bound = Bound.LOWER) -> Verdict:
    """Hold an interval against a floor. For a ceiling give the mirrored interval and the negative threshold.

    A bound at the floor, up to rounding, clears it. Without estimate or interval the outcome is inconclusive.
    """
    if bound is Bound.VALUE:
        if math.isnan(found.value):
            return Verdict.INCONCLUSIVE
        return Verdict.PASS if beyond(found.value, threshold) >= 0 else Verdict.FAIL
    if math.isnan(found.low) or math.isnan(found.high):
        return Verdict.INCONCLUSIVE
    if beyond(found.high, threshold) < 0:
        return Verdict.FAIL
    clears = beyond(found.low, threshold) >= 0
    return Verdict.PASS if bound is Bound.UPPER or clears else Verdict.INCONCLUSIVE


def superiority(difference: ValueWithLimits, margin: float = 0.0) -> Verdict:
    """Is the candidate better by more than the margin (>= 0)? The bound has to be strictly above."""
    verdict = verdict_of(difference, margin)
    return Verdict.INCONCLUSIVE if verdict is Verdict.PASS and beyond(difference.low, margin) == 0 else verdict


def non_inferiority(difference: ValueWithLimits, margin: float) -> Verdict:
    """Is the candidate worse by less than the margin (>= 0)? The bound has to be strictly above -margin."""
    return superiority(difference, -margin)


def equivalence(difference: ValueWithLimits, margin: float) -> Verdict:
    """Do candidate and baseline differ by less than the margin? Two one-sided tests: give the interval at level 1 - 2
    alpha.
    """
    sides = non_inferiority(difference, margin), non_inferiority(difference.mirrored(), margin)
    if Verdict.FAIL in sides:
        return Verdict.FAIL
    return Verdict.PASS if sides == (Verdict.PASS, Verdict.PASS) else Verdict.INCONCLUSIVE


def guardrail(difference: ValueWithLimits, margin: float) -> Verdict:
    """Has the candidate become worse by more than the margin beyond doubt?"""
    return verdict_of(difference, -margin, Bound.UPPER)


def combine(verdicts: list[Verdict]) -> Verdict:
    """All rules have to pass: one failure fails, else one open rule leaves it open.

    Intersection-union: passing needs no correction for several rules, though each makes it harder. Failing does, and
    has to be decided at a level that allows for all rules that can.
    """
    if Verdict.FAIL in verdicts:
        return Verdict.FAIL
    return Verdict.INCONCLUSIVE if Verdict.INCONCLUSIVE in verdicts else Verdict.PASS


def samples_to_settle(found: ValueWithLimits, threshold: float, samples: float) -> float:
    """Number of samples at which the interval would no longer hold the threshold, were the estimate to stay.

    The distance to the limit on the side of the threshold shrinks with the root of n. Infinite where estimate and
    threshold are the same up to rounding, or where more samples than 2^53 would be needed; NaN where there is no
    interval.
    """
    gap = beyond(found.value, threshold)
    reach = found.value - found.low if gap > 0 else found.high - found.value
    if math.isnan(gap) or math.isnan(reach):
        return math.nan
    needed = math.inf if gap == 0 else max(samples * (reach / gap) ** 2, samples)
    return float(math.ceil(needed)) if needed <= MOST_SAMPLES else math.inf


def paired_sample_size(
    discordant: float, *, difference: float, margin: float, alpha: float = 0.025, power: float = 0.8
) -> float:
    """Items needed to show a paired difference in accuracy above -margin.

    n = (z_{1-alpha} + z_power)^2 (p_disc - d^2) / (d + margin)^2. Infinite where the difference is at -margin or below.

    Args:
        discordant: share of items on which exactly one run is right.
        difference: true difference in accuracy, candidate less baseline.
        margin: what the candidate may be worse by; a negative margin asks for superiority.
        alpha: one-sided.
        power: probability of passing.
    """
    distance = difference + margin
    if distance <= 0:
        return math.inf
    z = one_sided_z(alpha) + one_sided_z(1.0 - power)
    return float(math.ceil(z * z * (discordant - difference * difference) / (distance * distance)))
