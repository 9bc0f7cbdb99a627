"""The difference of two runs: interval, test, and the probabilities that one is better or both are equivalent."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from math import isfinite, isinf, isnan, nan, sqrt
from typing import NamedTuple

import numpy as np

from app.kernel.compare.differences import Differences, HybridDifferences, Reach
from app.kernel.compare.linear import LinearRuns
from app.kernel.compare.paired.effects import Effects, PairedScore, rate_effects, weighted_rate_effects
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.tests import discordant_bounds
from app.kernel.matrix.table import WeightedCounts
from app.kernel.metrics.expression import Bounds
from app.kernel.metrics.proportion import Rate
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.scipy_bridge import normal_cdf
from app.kernel.samples.influence import LinearMethod
from app.kernel.uncertainty.designs import DesignedRate
from app.kernel.uncertainty.draws import Alternative
from app.kernel.uncertainty.intervals import Limits, two_sided_z, wilson_at
from app.services.estimands import Better, Preference
from app.services.estimates.estimate import Estimate
from app.services.runs.pairing import Pairing, PairingDesign

# What the weights of the samples of each run add to its matrix; None for a run without weights.
Weights = Sequence[WeightedCounts | None]
# The level at whose limits the worth of weighted rates is read.
_USUAL_LEVEL = 0.95
NO_VARIANCE = "the difference is not 0 but does not vary over the samples, so no test applies to it"
NO_LOGARITHM = "ratios are tested by their logarithms, which 0 does not have"
NO_LIMITS = "the difference is the same in all draws, or undefined in too many, so it has no limits"
NO_VALUE = "a run has no value of the metric"
NOT_REACHED = "the runs cannot be compared on the metric at one prevalence"
BOTH_INFINITE = "both values are infinite, so their difference is undefined"
ONE_INFINITE = "one of the values is infinite, and so is the difference"
NOT_FOLDED = (
    "the samples were too many to be looked at together, and not all metrics are added up sample by sample (not_folded)"
)
NOTHING_VARIES = "neither value varies over the samples, so the test cannot tell how sure their equality is"


@dataclass(frozen=True, slots=True, kw_only=True)
class Test:
    """A difference of two runs, first less second in the unit of the metric, with its limits and p; NaN where nothing
    can be said.

    Attributes:
        value: The difference; NaN until it is known whether it is one.
        smallest: The smaller end where the unknown pairing leaves a range of p.
        method: How p was made.
        limits: How the limits were made.
        larger: How sure it is that the first is larger by more than the region of equivalence.
        first_better: How sure it is that it is better by more than that.
        equivalent: How sure it is that they differ by no more.
        error: Standard error of these where they are from draws.
        discordant: Samples that exactly one of the runs has right.
        identical: Do the runs say the same of every sample?
        reason: Why there is no test.
    """

    value: float = nan
    low: float = nan
    high: float = nan
    p: float = nan
    smallest: float | None = None
    method: str = "none"
    limits: str = "none"
    larger: float = nan
    first_better: float = nan
    equivalent: float = nan
    error: float = 0.0
    discordant: float | None = None
    identical: bool = False
    reason: str | None = None

    def of(self, value: float, preference: Preference | None, *, identical: bool) -> "Test":
        """Return it with the difference, and how sure it is that the first run is better. Where values near an ideal
        are better a difference does not say which of two values is nearer.
        """
        better = self.larger
        if preference is not None and preference.better is Better.LOWER:
            better = 1.0 - self.larger - self.equivalent
        found = replace(self, value=value, first_better=better, identical=identical)
        if preference is not None and preference.better is Better.NEAREST:
            found = replace(found, first_better=nan, equivalent=nan)
        return replace(found, error=nan) if isnan(found.first_better) else found

    def on_side(self, alternative: Alternative, bounds: Bounds) -> "Test":
        """Return the difference with a one-sided limit and p, from the two-sided limits at the level that shares it."""
        if alternative is Alternative.TWO_SIDED or isnan(self.value):
            return self
        low, high = (self.low, self.high) if isnan(self.low) else alternative.opened(self.low, self.high, bounds)
        ends = [alternative.one_sided(p, self.value) for p in (self.p, self.smallest) if p is not None]
        smallest = None if self.smallest is None else min(ends)
        return replace(self, low=low, high=high, p=max(ends), smallest=smallest)


def gap_bounds(bounds: Bounds) -> Bounds:
    """Ends of the range of differences of values with this range."""
    low, high = bounds
    return (None, None) if low is None or high is None else (low - high, high - low)


def why_no_difference(first: float, second: float, *, reached: bool) -> str:
    """Why two values have no finite difference; ``reached``: could the runs be brought to one prevalence?"""
    if isnan(first) or isnan(second):
        return NO_VALUE if reached else NOT_REACHED
    return BOTH_INFINITE if isinf(first) and isinf(second) else ONE_INFINITE


def read_off(
    found: Differences, *, level: float, rope: Array | float, method: str, limits: str | None = None
) -> list[Test]:
    """Return all that follows from the confidence distributions of V differences.

    ``rope`` is half the width of the region of equivalence; ``method`` says how p was made, and limits too unless these
    have a name of their own.
    """
    low, high = found.limits(level)
    larger = found.chance_above(rope)
    equivalent = found.chance_above(-rope) - larger
    columns = np.broadcast_arrays(low, high, found.p, larger, equivalent)
    return [
        Test(low=low, high=high, p=p, method=method, limits=limits or method, larger=larger, equivalent=equivalent)
        for low, high, p, larger, equivalent in zip(*(column.tolist() for column in columns), strict=True)
    ]


def proportion_tests(
    rates: Sequence[Rate],
    pairs: Sequence[tuple[int, int]],
    counts: Array,
    pairing: Pairing,
    *,
    level: float,
    rope: float,
    weighted: Weights = (),
) -> list[list[Test | None]]:
    """For each rate of the samples and each pair of runs, exact or score methods, whatever line of it the metric is.

    Metrics that are lines of one rate get the same p, and limits that follow from each other's.

    Args:
        rates: Which samples count, among which.
        pairs: Indices of two runs each.
        counts: (R, K, K).
        pairing: How the runs belong together.
        level: Of the limits.
        rope: Half width of the region of equivalence, in units of the metric.
        weighted: What the weights of their samples add to the matrices, where runs are not paired.

    Returns:
        None where there is no such method: runs on the same samples need a rate among samples that the truth decides,
        and a number of samples runs with equally many.
    """
    together = pairing.design is not PairingDesign.INDEPENDENT
    asked = [_RateOfRuns(rate, pairs, counts) for rate in rates if rate.by_truth or not together]
    if not any(one.testable for one in asked):
        tests = []
    elif pairing.joint is not None:
        tests = _of_pairs(asked, pairing.joint, level=level, rope=rope)
    elif together:
        tests = _of_any_pairing(asked, level=level, rope=rope)
    else:
        tests = [test for one in asked for test in _of_independent(one, weighted, level=level, rope=rope)]
    left, told = iter(tests), iter(asked)
    return [next(told).tests(pairs, left) if rate.by_truth or not together else [None] * len(pairs) for rate in rates]


class _RateOfRuns:
    """A rate of R runs.

    Attributes:
        hits: (R, K) samples that count, by actual or predicted class.
        members: (R, K) samples among which they do.
        sizes: (R) of these in all.
        testable: Pairs that both have any, equally many where the metric is their number.
        slopes: Of the line that the metric is, for each of these.
    """

    def __init__(self, rate: Rate, pairs: Sequence[tuple[int, int]], counts: Array) -> None:
        places, self.rate = np.arange(counts.shape[-1]), rate
        self.hits, self.members = (
            np.where(cells.hold(places[:, None], places[None, :], rate.of), counts, 0.0).sum(axis=2)
            for cells in (rate.hits, rate.among)
        )
        self.sizes = sizes = self.members.sum(axis=1)
        self.testable = [
            pair for pair in pairs if sizes[[*pair]].all() and (not rate.counted or sizes[pair[0]] == sizes[pair[1]])
        ]
        self.slopes = rate.line.slope * (self.own if rate.counted else np.ones(len(self.testable)))

    @property
    def own(self) -> Array:
        """Sizes of the first run of each pair."""
        return np.asarray(self.sizes[[first for first, _ in self.testable]])

    def tests(self, pairs: Sequence[tuple[int, int]], left: Iterator[Test]) -> list[Test | None]:
        """Take the tests of the testable pairs, and say of each pair what there is."""
        found = {
            pair: _on_line(next(left), slope) for pair, slope in zip(self.testable, self.slopes.tolist(), strict=True)
        }
        return [found.get(pair, None if self.sizes[[*pair]].all() else _NO_SAMPLES) for pair in pairs]


_NO_SAMPLES = Test(reason="a run has no samples of the class")


def _on_line(test: Test, factor: float) -> Test:
    """The test of a rate as that of a line of it with this slope."""
    if factor < 0:
        test = replace(test, low=test.high, high=test.low, larger=1.0 - test.larger - test.equivalent)
    # Adding 0 leaves no minus before one.
    return replace(test, low=factor * test.low + 0.0, high=factor * test.high + 0.0)


def _ropes(asked: Sequence[_RateOfRuns], rope: float) -> Array:
    """The region of equivalence in units of the rates."""
    ropes: Array = rope / np.abs(np.concatenate([one.slopes for one in asked]))
    return ropes


def _of_pairs(asked: Sequence[_RateOfRuns], joint: JointCounts, *, level: float, rope: float) -> list[Test]:
    """Tango's limits and McNemar's mid-p, of weighted samples those of the effects that these have."""
    effects, discordant = [], list[float]()
    for one in asked:
        rate = one.rate
        counts_for = [rate.hits.hold(joint.truth, predicted, rate.of) for predicted in joint.predictions]
        sides = [(counts_for[first], counts_for[second]) for first, second in one.testable]
        better, worse = (
            np.array([float(joint.counts @ (both[place] & ~both[1 - place])) for both in sides]) for place in (0, 1)
        )
        discordant += (better + worse).tolist()
        if joint.weights is None:
            effects.append(rate_effects(better, worse, one.own))
            continue
        among = rate.among.hold(joint.truth, joint.truth, rate.of)
        usual = float((joint.masses * joint.weights)[among].sum() / joint.masses[among].sum())
        members = float(joint.counts[among].sum())
        for (first, second), size in zip(sides, one.own.tolist(), strict=True):
            differ = first != second
            changes = np.where(first, 1.0, -1.0)[differ] * joint.weights[differ] / size
            effects.append(weighted_rate_effects(changes, joint.counts[differ], members=members, unit=usual / size))
    score = PairedScore(Effects.stacked(effects))
    tests = read_off(score, level=level, rope=_ropes(asked, rope), method="mcnemar_mid_p", limits="tango")
    return [replace(test, discordant=count) for test, count in zip(tests, discordant, strict=True)]


def _of_any_pairing(asked: Sequence[_RateOfRuns], *, level: float, rope: float) -> list[Test]:
    """Limits and p at the pairing with the most discordant samples, and p at that with the fewest."""
    first, second = (
        np.concatenate([one.hits[[pair[side] for pair in one.testable]] for one in asked]) for side in (0, 1)
    )
    members = np.concatenate([one.members[[pair[0] for pair in one.testable]] for one in asked])
    difference, size = (first - second).sum(axis=1), members.sum(axis=1)
    closest, widest = (
        rate_effects((discordant + difference) / 2, (discordant - difference) / 2, size)
        for discordant in discordant_bounds(first, second, members)
    )
    names = {"method": "mcnemar_mid_p_of_any_pairing", "limits": "tango_of_widest_pairing"}
    tests = read_off(PairedScore(widest), level=level, rope=_ropes(asked, rope), **names)
    return [replace(test, smallest=least) for test, least in zip(tests, (2.0 * closest.tail).tolist(), strict=True)]


def _of_independent(one: _RateOfRuns, weighted: Weights, *, level: float, rope: float) -> list[Test]:
    """Newcombe's limits, and p at which they reach 0, by the hits and samples that the runs are worth."""
    of_weights = weighted or [None] * len(one.sizes)
    worth = np.array(
        [
            (one.hits[run].sum(), one.sizes[run])
            if own is None
            else DesignedRate.of(one.rate, own).as_counts(_USUAL_LEVEL)
            for run, own in enumerate(of_weights)
        ],
        dtype=np.float64,
    ).T
    with silently():
        rates = worth[0] / worth[1]
        reach = Reach.of(partial(wilson_at, *worth), rates, level)
    first, second = ([pair[side] for pair in one.testable] for side in (0, 1))
    found = HybridDifferences(rates[first] - rates[second], reach.take(first), reach.take(second))
    tests = read_off(found, level=level, rope=_ropes([one], rope), method="newcombe")
    names = [
        "newcombe" if all(of_weights[run] is None for run in pair) else "weighted_newcombe" for pair in one.testable
    ]
    return [replace(test, method=name, limits=name) for test, name in zip(tests, names, strict=True)]


# The deviate up to which limits are extended that are known at one level.
_FURTHEST = 40.0


def mover_tests(
    own: Sequence[Estimate],
    pairs: Sequence[tuple[int, int]],
    gaps: Sequence[Array],
    *,
    level: float,
    rope: float,
    paired: Sequence[tuple[float, Limits]] | None = None,
) -> list[Test]:
    """Tests of one value by MOVER over the limits of each run (Zou & Donner 2008).

    Args:
        own: The value of each run (R) with its limits at the level.
        pairs: Places of two runs each.
        gaps: For each pair the difference (1).
        level: Of the limits.
        rope: Half width of the region of equivalence.
        paired: For each pair the correlation of its values, and limits of the difference that need not be exceeded;
            without, paired runs are taken as independent, which makes limits wider than they need be.
    """
    # Known at one level; at others in proportion to the deviate.
    deviates = np.array([two_sided_z(level), _FURTHEST])
    scale = (deviates / deviates[0])[:, None]
    reaches = [Reach(deviates, scale * (one.value - one.low), scale * (one.high - one.value)) for one in own]
    found = []
    free = 0.0, (np.full(1, nan), np.full(1, nan))
    for pair, gap, (rho, (low, high)) in zip(pairs, gaps, paired or [free] * len(pairs), strict=True):
        reason = next((own[run].reason for run in pair if own[run].reason is not None), None)
        if reason is not None:
            found.append(Test(reason=reason))
        else:
            # Runs that say the same in all of these slices have none.
            within = Reach(deviates, scale * (gap - low), scale * (high - gap)) if (high > low).all() else None
            difference = HybridDifferences(gap, *(reaches[run] for run in pair), correlation=rho, within=within)
            found += read_off(difference, level=level, rope=rope, method="mover")
    return found


class SameRuns(NamedTuple):
    """Two runs that say the same of every unit.

    Attributes:
        units: How many there are, n.
        width: Of the range of the values, by which a unit moves their mean at most; infinite where it has no end.
    """

    units: float
    width: float

    def test(self, *, level: float, rope: float, method: str) -> Test:
        """The share of units that the runs can differ on is at most z^2 / (n + z^2) at a deviate z (Tango 1998)."""
        if not isfinite(self.width):
            return Test(p=1.0, method=method, limits="tango", identical=True)
        square, share = two_sided_z(level) ** 2, min(rope / self.width, 1.0)
        reach = self.width * square / (self.units + square)
        larger = float(normal_cdf(-sqrt(self.units * share / (1.0 - share)))) if share < 1.0 else 0.0
        found = Test(low=-reach, high=reach, p=1.0, method=method, limits="tango", identical=True)
        return replace(found, larger=larger, equivalent=1.0 - 2.0 * larger)


_LINEAR_NAMES = {LinearMethod.DELONG_LOGIT: "delong", LinearMethod.T: "t", LinearMethod.JACKKNIFE: "jackknife_t"}


def linear_test(
    runs: LinearRuns,
    first: int,
    second: int,
    pairing: Pairing,
    *,
    level: float,
    rope: float,
    grouped: bool = False,
    same: SameRuns | None = None,
) -> Test:
    """Return the test of a value that is a sum over the samples, from its covariance between the runs.

    ``same`` says what is known where the runs say the same of every sample.
    """
    both = {runs.methods[first], runs.methods[second]}
    name = _LINEAR_NAMES.get(both.pop(), "influence") if len(both) == 1 else "influence"
    if grouped:
        name = "grouped_t"
    elif name == "t" and pairing.design is not PairingDesign.TEST_SET:
        name = "paired_t" if pairing.paired else "welch_t"
    if runs.against is not None:
        name = f"{name}_of_any_pairing"
    if same is not None:
        return same.test(level=level, rope=rope, method=name)
    found = runs.difference(first, second)
    (test,) = read_off(found, level=level, rope=rope, method=name)
    if np.isnan(test.p):
        return Test(reason=NO_VARIANCE)
    if np.isnan(test.low):
        return Test(p=test.p, method=name, reason=NOTHING_VARIES)
    if runs.alike is None:
        return test
    least = runs.difference(first, second, runs.alike).p
    # Where one pairing leaves no variance at all, a difference would be certain.
    return replace(test, smallest=0.0 if np.isnan(least[0]) else float(least[0]))
