"""The difference of two runs: interval, test, and the probabilities that one is better or both are equivalent."""

from dataclasses import dataclass, field, replace
from math import isfinite, isinf, isnan, nan, sqrt

import numpy as np

from app.domain.members import HIDDEN, LEFT_OUT, typed
from app.kernel.compare.differences import Differences
from app.kernel.metrics.expression import Bounds
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.scipy_bridge import normal_cdf
from app.kernel.uncertainty.draws import Alternative, within
from app.kernel.uncertainty.intervals import two_sided_z
from app.services.estimands import Better, Preference

NO_LIMITS = "the difference is the same in all draws, or undefined in too many, so it has no limits"
NO_VALUE = "a run has no value of the metric"
NOT_REACHED = "the runs cannot be compared on the metric at one prevalence"
OF_SIZES = "the metric moves with the number of samples, and the runs have different numbers of them"
BOTH_INFINITE = "both values are infinite, so their difference is undefined"
ONE_INFINITE = "one of the values is infinite, and so is the difference"

# NaN is `null`.
_NUMBER = typed(float | None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A difference of two runs, first less second in the unit of the metric, with its limits and p; NaN where nothing
    can be said.

    Attributes:
        p_value: Two-sided unless `design.alternative` names a side. With `p_range` its upper end, which holds whatever
            the pairing.
        smallest: The smaller end where the unknown pairing leaves a range of p.
        probability_a_better: Probability that a is better by more than the region of equivalence.
        probability_error: Monte-Carlo standard error of the probabilities at most.
        method: How p was made; in answers it comes after how the limits were made, and a comma.
        limits: How the limits alone were made.
        larger: How sure it is that the first is larger by more than the region of equivalence.
        discordant: Samples that count for exactly one of the two.
        identical: `true` where both runs say the same of every sample.
        reason: Why there is no test, or one that says little.
    """

    difference: float = field(default=nan, metadata=_NUMBER)
    low: float = field(default=nan, metadata=_NUMBER)
    high: float = field(default=nan, metadata=_NUMBER)
    p_value: float = field(default=nan, metadata=_NUMBER)
    smallest: float | None = field(default=None, metadata=HIDDEN)
    method: str = "none"
    limits: str = field(default="none", metadata=HIDDEN)
    larger: float = field(default=nan, metadata=HIDDEN)
    probability_a_better: float = field(default=nan, metadata=_NUMBER)
    probability_equivalent: float = field(default=nan, metadata=_NUMBER)
    probability_error: float = field(default=0.0, metadata=_NUMBER)
    discordant: int | None = field(default=None, metadata=LEFT_OUT)
    identical: bool | None = field(default=None, metadata=LEFT_OUT)
    reason: str | None = field(default=None, metadata=LEFT_OUT)

    def of(
        self,
        value: float,
        preference: Preference | None,
        side: Alternative = Alternative.TWO_SIDED,
        bounds: Bounds = (None, None),
        *,
        identical: bool = False,
    ) -> "Test":
        """Return it with the difference, how sure it is that the first run is better, and limits within the range of
        differences. Where values near an ideal are better a difference does not say which of two values is nearer. A
        one-sided limit and p are those from the two-sided limits at the level that shares it.
        """
        better, equivalent = self.larger, self.probability_equivalent
        if preference is not None and preference.better is Better.LOWER:
            better = 1.0 - better - equivalent
        if preference is not None and preference.better is Better.NEAREST:
            better = equivalent = nan
        low, high = self.low, self.high
        if not isnan(low):
            # Student's t and sums of squares do not know where the range ends.
            low, high = side.opened(*within(low, high, bounds), bounds)
        ends = [side.one_sided(p, value) for p in (self.p_value, self.smallest) if p is not None]
        return replace(
            self,
            difference=value,
            low=low,
            high=high,
            p_value=max(ends),
            smallest=None if self.smallest is None else min(ends),
            probability_a_better=better,
            probability_equivalent=equivalent,
            probability_error=nan if isnan(better) else self.probability_error,
            identical=identical or None,
        )


def gap_bounds(bounds: Bounds) -> Bounds:
    """Ends of the range of differences of values with this range."""
    low, high = bounds
    return (None, None) if low is None or high is None else (low - high, high - low)


def why_no_difference(first: float, second: float) -> str:
    """Why two values have no finite difference."""
    if isnan(first) or isnan(second):
        return NO_VALUE
    return BOTH_INFINITE if isinf(first) and isinf(second) else ONE_INFINITE


def read_off(
    found: Differences, *, level: float, rope: Array | float, method: str, limits: str | None = None
) -> list[Test]:
    """Return all that follows from the confidence distributions of V differences.

    ``rope`` is half the width of the region of equivalence; ``method`` says how p was made, and limits too unless these
    have a name of their own.
    """
    larger = found.chance_above(rope)
    columns = np.broadcast_arrays(*found.limits(level), found.p, larger, found.chance_above(-rope) - larger)
    names = "low", "high", "p_value", "larger", "probability_equivalent"
    return [
        Test(**dict(zip(names, row, strict=True)), method=method, limits=limits or method)
        for row in zip(*(column.tolist() for column in columns), strict=True)
    ]


def same_runs(units: float, width: float, *, level: float, rope: float, method: str) -> Test:
    """The test of two runs that say the same of every unit: the share of n units that they can differ on is at most
    z^2 / (n + z^2) at a deviate z (Tango 1998).

    Args:
        units: How many there are, n.
        width: Of the range of the values, by which a unit moves their mean at most; infinite where it has no end.
        level: Of the limits.
        rope: Half width of the region of equivalence.
        method: How p was made.
    """
    found = Test(p_value=1.0, method=method, limits="tango", identical=True)
    if not isfinite(width):
        return found
    square, share = two_sided_z(level) ** 2, rope / width
    reach = width * square / (units + square)
    larger = float(normal_cdf(-sqrt(units * share / (1.0 - share)))) if share < 1.0 else 0.0
    return replace(found, low=-reach, high=reach, larger=larger, probability_equivalent=1.0 - 2.0 * larger)
