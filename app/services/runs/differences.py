"""The difference of two runs: interval, test, and the probabilities that one is better or both are equivalent."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import isinf, isnan, nan
from typing import Self

import numpy as np

from app.kernel.compare.differences import compare_draws, newcombe_interval, normal_limits, score_z
from app.kernel.compare.linear import LinearRuns
from app.kernel.compare.paired.effects import Effects, PairedScore, rate_effects, weighted_rate_effects
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.tests import pairing_bounds
from app.kernel.matrix.table import WeightedCounts
from app.kernel.metrics.expression import Bounds
from app.kernel.metrics.proportion import Rate
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.scipy_bridge import normal_cdf
from app.kernel.samples.influence import LinearMethod
from app.kernel.uncertainty.draws import Alternative
from app.kernel.uncertainty.weights import WeightedRate
from app.services.estimands import Better, Preference
from app.services.runs.pairing import Pairing, PairingDesign

# What the weights of the samples of each run add to its matrix; None for a run without weights.
Weights = Sequence[WeightedCounts | None]
# The level at whose limits the worth of weighted rates is read for p.
_USUAL_LEVEL = 0.95
NO_VARIANCE = "the difference is not 0 but does not vary over the samples, so no test applies to it"
NO_LOGARITHM = "ratios are tested by their logarithms, which 0 does not have"
NO_LIMITS = "the difference is the same in all resamples, so it has no limits"
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
    """Limits and p of a difference.

    Attributes:
        smallest: The smaller end where the unknown pairing leaves a range of p.
        method: How p was made.
        limits: How the limits were made; None where they are to be read off a simulation.
        larger: How sure it is that the first is larger by more than the region of equivalence; NaN where that is to
            be read off a simulation.
        equivalent: How sure it is that they differ by no more.
        error: Standard error of these two where they are from draws.
        discordant: Samples that exactly one of the runs has right.
        reason: Why there is no test.
    """

    low: float = nan
    high: float = nan
    p: float = nan
    smallest: float | None = None
    method: str = "none"
    limits: str | None = None
    larger: float = nan
    equivalent: float = nan
    error: float = 0.0
    discordant: float | None = None
    reason: str | None = None

    def chances(self, preference: Preference | None) -> tuple[float, float] | None:
        """How sure it is that the first is better, and that both are equivalent; None where a simulation says it."""
        if isnan(self.larger) or (preference is not None and preference.better is Better.NEAREST):
            return None
        falling = preference is not None and preference.better is Better.LOWER
        return 1.0 - self.larger - self.equivalent if falling else self.larger, self.equivalent


@dataclass(frozen=True, slots=True, kw_only=True)
class RunDifference:
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

    def on_side(self, alternative: Alternative, bounds: Bounds) -> "RunDifference":
        """The same with one limit alone and p on its side, from the limits on both at the level that shares it.

        Args:
            alternative: On which side.
            bounds: Ends of the range of differences.
        """
        if alternative is Alternative.TWO_SIDED or isnan(self.value):
            return self
        test = self.test
        low, high = (test.low, test.high) if isnan(test.low) else alternative.opened(test.low, test.high, bounds)
        ends = [alternative.one_sided(p, self.value) for p in (test.p, test.smallest) if p is not None]
        smallest = None if test.smallest is None else min(ends)
        return replace(self, test=replace(test, low=low, high=high, p=max(ends), smallest=smallest))


def gap_bounds(bounds: Bounds) -> Bounds:
    """Ends of the range of differences of values with this range."""
    low, high = bounds
    return (None, None) if low is None or high is None else (low - high, high - low)


def why_no_difference(first: float, second: float, *, reached: bool) -> str:
    """Why two values have no finite difference; ``reached``: could the runs be brought to one prevalence?"""
    if isnan(first) or isnan(second):
        return NO_VALUE if reached else NOT_REACHED
    return BOTH_INFINITE if isinf(first) and isinf(second) else ONE_INFINITE


def score_tests(score: PairedScore, *, level: float, rope: Array | float, method: str, limits: str) -> list[Test]:
    """Tests of paired runs that all follow from one distribution of each difference (V)."""
    low, high = score.limits(level)
    larger = score.chance_above(rope)
    equivalent = score.chance_above(-rope) - larger
    return [
        Test(low=low, high=high, p=p, method=method, limits=limits, larger=larger, equivalent=equivalent)
        for low, high, p, larger, equivalent in zip(
            *(values.tolist() for values in (low, high, score.p, larger, equivalent)), strict=True
        )
    ]


def proportion_tests(
    rate: Rate,
    pairs: Sequence[tuple[int, int]],
    counts: Array,
    pairing: Pairing,
    *,
    level: float,
    rope: float,
    weighted: Weights = (),
) -> list[Test | None]:
    """For each pair of runs, exact or score methods for a rate of the samples, whatever line of it the metric is.

    Metrics that are lines of one rate get the same p, and limits that follow from each other's.

    Args:
        rate: Which samples count, among which.
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
    if pairing.design is not PairingDesign.INDEPENDENT and not rate.by_truth:
        return [None] * len(pairs)
    runs = _RateOfRuns.of(rate, counts, pairing, weighted)
    factors = rate.line.slope * (runs.sizes if rate.counted else np.ones(runs.sizes.size))
    found: dict[tuple[int, int], Test | None] = {}
    for pair in pairs:
        first, second = runs.sizes[[*pair]]
        if not (first and second):
            found[pair] = Test(reason="a run has no samples of the class")
        elif rate.counted and first != second:
            found[pair] = None
    rest = [pair for pair in pairs if pair not in found]
    if rest:
        slopes = factors[[first for first, _ in rest]]
        tests = runs.tests(rest, level=level, ropes=rope / np.abs(slopes))
        found |= {pair: _on_line(test, slope) for pair, test, slope in zip(rest, tests, slopes.tolist(), strict=True)}
    return [found[pair] for pair in pairs]


def _on_line(test: Test, factor: float) -> Test:
    """The test of a rate as that of a line of it with this slope."""
    if factor < 0:
        test = replace(test, low=test.high, high=test.low, larger=1.0 - test.larger - test.equivalent)
    # Adding 0 leaves no minus before one.
    return replace(test, low=factor * test.low + 0.0, high=factor * test.high + 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class _RateOfRuns:
    """A rate of several runs.

    Attributes:
        hits: (R, K) samples that count, by actual class.
        members: (R, K) those that they are among.
    """

    rate: Rate
    hits: Array
    members: Array
    pairing: Pairing
    weighted: Weights

    @classmethod
    def of(cls, rate: Rate, counts: Array, pairing: Pairing, weighted: Weights) -> Self:
        """That of runs with these matrices (R, K, K)."""
        places = np.arange(counts.shape[-1])
        hits, members = (
            np.where(cells.hold(places[:, None], places[None, :], rate.of), counts, 0.0).sum(axis=2)
            for cells in (rate.hits, rate.among)
        )
        return cls(rate, hits, members, pairing, weighted)

    @property
    def sizes(self) -> Array:
        """(R) samples of each run."""
        sizes: Array = self.members.sum(axis=1)
        return sizes

    def tests(self, pairs: Sequence[tuple[int, int]], *, level: float, ropes: Array) -> list[Test]:
        """One for each pair (P) with its own region of equivalence (P)."""
        if self.pairing.joint is not None:
            joint = self.pairing.joint
            effects = [_effects(joint, self.rate, pair, self.members[pair[0]].sum()) for pair in pairs]
            differing = [sum(_discordant(joint, self.rate, *pair)) for pair in pairs]
            found = _scored(effects, level, ropes, method="mcnemar_mid_p", limits="tango")
            return [replace(test, discordant=count) for test, count in zip(found, differing, strict=True)]
        if self.pairing.design is PairingDesign.TEST_SET:
            bounds = [
                pairing_bounds(self.hits[first], self.hits[second], self.members[first]) for first, second in pairs
            ]
            effects = [
                rate_effects(
                    (bound.most + bound.difference) / 2,
                    (bound.most - bound.difference) / 2,
                    self.members[first].sum(),
                )
                for bound, (first, _) in zip(bounds, pairs, strict=True)
            ]
            names = {"method": "mcnemar_mid_p_of_any_pairing", "limits": "tango_of_widest_pairing"}
            found = _scored(effects, level, ropes, **names)
            return [replace(test, smallest=bound.smallest_p) for test, bound in zip(found, bounds, strict=True)]
        return [self._independent(pair, level) for pair in pairs]

    def _independent(self, pair: tuple[int, int], level: float) -> Test:
        hits, members = self.hits[[*pair]], self.members[[*pair]]
        own = tuple(self.weighted[run] for run in pair) if self.weighted else (None, None)
        if any(one is not None for one in own):
            return _weighted_rate_test(self.rate, own, hits, members, level)
        both = (hits[0].sum(), members[0].sum(), hits[1].sum(), members[1].sum())
        low, high = newcombe_interval(*both, level)
        return Test(low=float(low), high=float(high), p=_score_p(*both), method="score", limits="newcombe")


def _scored(effects: Sequence[Effects], level: float, ropes: Array, *, method: str, limits: str) -> list[Test]:
    """Score tests of one value each, looked at together."""
    return score_tests(PairedScore(Effects.stacked(effects)), level=level, rope=ropes, method=method, limits=limits)


def _score_p(*both: float) -> float:
    return float(2 * normal_cdf(-abs(float(score_z(*both)))))


def _weighted_rate_test(rate: Rate, weighted: Weights, hits: Array, members: Array, level: float) -> Test:
    """The same at the effective numbers of samples of the rates; p at those of 95 % limits."""

    def counts(read_at: float) -> tuple[float, float, float, float]:
        first, second = (
            (hits[run].sum(), members[run].sum()) if one is None else WeightedRate.of(rate, one).as_counts(read_at)
            for run, one in enumerate(weighted)
        )
        return float(first[0]), float(first[1]), float(second[0]), float(second[1])

    low, high = newcombe_interval(*counts(level), level)
    p = _score_p(*counts(_USUAL_LEVEL))
    return Test(low=float(low), high=float(high), p=p, method="weighted_score", limits="weighted_newcombe")


def _effects(joint: JointCounts, rate: Rate, pair: tuple[int, int], size: float) -> Effects:
    if joint.weights is None:
        return rate_effects(*_discordant(joint, rate, *pair), size)
    among = rate.among.hold(joint.truth, joint.truth, rate.of)
    one, other = (rate.hits.hold(joint.truth, joint.predictions[run], rate.of) for run in pair)
    differ = one != other
    changes = np.where(one, 1.0, -1.0)[differ] * joint.weights[differ] / size
    usual = float((joint.masses * joint.weights)[among].sum() / joint.masses[among].sum())
    members = float(joint.counts[among].sum())
    return weighted_rate_effects(changes, joint.counts[differ], members=members, unit=usual / size)


def _discordant(joint: JointCounts, rate: Rate, first: int, second: int) -> tuple[float, float]:
    """Items that count for the first run only, and for the second only."""
    one, other = (rate.hits.hold(joint.truth, joint.predictions[run], rate.of) for run in (first, second))
    return float(joint.counts @ (one & ~other)), float(joint.counts @ (other & ~one))


def normal_tests(gaps: Array, variances: Array, method: str = "delta") -> list[Test]:
    """Normal tests of differences (V) with these variances; an infinite one is of a ratio that has no logarithm."""
    _, _, p = normal_limits(gaps, variances)
    reasons = np.where(np.isinf(gaps), NO_LOGARITHM, np.where((variances == 0) & (gaps != 0), NO_VARIANCE, ""))
    return [
        Test(reason=reason) if reason else Test(p=float(value), method=method)
        for value, reason in zip(p, reasons.tolist(), strict=True)
    ]


def range_tests(gaps: Array, smallest: Array, largest: Array, method: str = "delta") -> list[Test]:
    """Normal tests of differences (V) of which only bounds of the variance are known, so p lies in a range."""
    _, _, most = normal_limits(gaps, largest)
    _, _, least = normal_limits(gaps, smallest)
    # Where one pairing leaves no variance at all, a difference would be certain.
    least = np.where(np.isnan(least) & ~np.isnan(most), 0.0, least)
    return [
        Test(reason=NO_LOGARITHM)
        if np.isinf(gap)
        else Test(p=float(upper), smallest=float(lower), method=f"{method}_of_any_pairing")
        for gap, upper, lower in zip(gaps, most, least, strict=True)
    ]


_LINEAR_NAMES = {LinearMethod.DELONG_LOGIT: "delong", LinearMethod.T: "t"}


def linear_test(runs: LinearRuns, first: int, second: int, pairing: Pairing, level: float) -> Test:
    """Tests of a value that is a sum over the samples, from its covariance between the runs."""
    both = {runs.methods[first], runs.methods[second]}
    name = _LINEAR_NAMES.get(both.pop(), "influence") if len(both) == 1 else "influence"
    if name == "t":
        name = "paired_t" if pairing.paired else "welch_t"
    found = runs.test(first, second, level)
    if runs.alike is not None and runs.against is not None:
        name = "t" if name == "welch_t" else name
        ends = [
            runs.test(first, second, level, variance=runs.variance(first, second, covariance)).p
            for covariance in (runs.alike, runs.against)
        ]
        # Where one pairing leaves no variance at all, a difference would be certain.
        smallest = 0.0 if np.isnan(ends[0]) else ends[0]
        return Test(
            low=found.low,
            high=found.high,
            p=ends[1],
            smallest=smallest,
            method=f"{name}_of_any_pairing",
            limits=f"{name}_as_if_independent",
        )
    if np.isnan(found.p):
        return Test(reason=NO_VARIANCE)
    if np.isnan(found.low):
        return Test(p=found.p, method=name, reason=NOTHING_VARIES)
    return Test(low=found.low, high=found.high, p=found.p, method=name, limits=name)


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
