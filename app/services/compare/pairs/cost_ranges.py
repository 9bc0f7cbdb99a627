"""For which costs of a miss, in false alarms, one of two runs on two classes is cheaper than the other."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import isinf, isnan
from typing import Final
from uuid import UUID

import numpy as np

from app.domain.errors import InvalidInput
from app.domain.members import LEFT_OUT
from app.kernel.compare.cost_ratios import (
    CostRange,
    RateGaps,
    certain_cost_ranges,
    cost_ranges,
    curve_cost_ranges,
    independent_gap,
    paired_gap,
    worth_in_groups,
    worth_of_pairs,
)
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.tests import GroupedPair, discordant
from app.kernel.matrix.table import Table
from app.kernel.uncertainty.weights import WeightedRate
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison
from app.services.runs.pairing import PairingDesign

# Pairs of which it is said without being asked for.
_MOST_UNASKED: Final = 50
_NO_CLASS: Final = "a run has no samples of one of the classes, so one of its error rates is not known"
_ONE_GROUP: Final = "the samples of a class are all in one group, so how groups differ is not known"
_WEIGHTED: Final = "the samples have weights, and these are not known here"

_METHODS: Final = {
    PairingDesign.SAMPLES: "fieller, bonett_price",
    PairingDesign.TEST_SET: "fieller, agresti_caffo_as_if_independent",
    PairingDesign.INDEPENDENT: "fieller, agresti_caffo",
}


class Cheaper(StrEnum):
    """The run with the lower expected cost. `undecided`: either may be."""

    A = "a"
    B = "b"
    EQUAL = "equal"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostQuestion:
    """What is asked about costs.

    Attributes:
        prevalence: Share of the positive class; that of the comparison where None.
        best_thresholds: Look at the runs also with the thresholds that are best for each cost.
    """

    prevalence: float | None = None
    best_thresholds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CostRatioRange:
    """A range of what a miss costs, in false alarms: the cost of a false negative over that of a false positive.

    Attributes:
        high: `null` where there is no end.
    """

    low: float
    high: float | None
    cheaper: Cheaper


@dataclass(frozen=True, slots=True, kw_only=True)
class CostComparison:
    """Which of two runs is cheaper, for every cost of a miss from 0 on.

    Attributes:
        prevalence: Share of the positive class, taken as known.
        ranges: As observed, for the decisions as they are. Exact, from two straight lines.
        beyond_doubt: The same where the difference of the expected costs is not 0 at the level of the comparison,
            cost by cost, and `undecided` elsewhere: Fieller's limits of the ratio.
        method: How `beyond_doubt` was made, and the differences of the error rates that it is made of.
        best_thresholds: Of decisions by the threshold that is best for each cost on these very samples, which makes
            either run look cheaper than it will be. There are no limits.
    """

    a: UUID
    b: UUID
    positive: str
    prevalence: float
    ranges: Sequence[CostRatioRange] | None
    beyond_doubt: Sequence[CostRatioRange] | None
    method: str | None
    best_thresholds: Sequence[CostRatioRange] | None = field(default=None, metadata=LEFT_OUT)
    reason: str | None = field(default=None, metadata=LEFT_OUT)


def check_costs(question: CostQuestion | None, runs: Runs) -> None:
    """Raises InvalidInput when costs are asked of anything but two classes."""
    if question is not None and not _of_two_classes(runs):
        what = f"the runs have {runs.n_classes}" if runs.task is None else f"the runs are about {runs.task}"
        raise InvalidInput.at(
            "/cost_ranges",
            "two_classes_expected",
            f"expected two classes, {what}: a miss and a false alarm are the mistakes of two; of more "
            "`expected_cost(costs=...)` compares runs at given costs",
        )


def _of_two_classes(runs: Runs) -> bool:
    return runs.task is None and runs.n_classes == 2


def cost_comparisons(comparison: Comparison, question: CostQuestion | None) -> list[CostComparison] | None:
    """Of every pair of runs on two classes; None for others, and for many pairs unless they are asked for."""
    if not _of_two_classes(comparison.runs) or (question is None and len(comparison.pairs) > _MOST_UNASKED):
        return None
    asked = question or CostQuestion()
    return [_compared(comparison, pair, asked) for pair in comparison.pairs]


def _compared(comparison: Comparison, pair: tuple[int, int], asked: CostQuestion) -> CostComparison:
    runs = comparison.runs
    positive = 1 if runs.positive is None else runs.positive
    prevalence = _prevalence(comparison, positive) if asked.prevalence is None else asked.prevalence
    known = bool((runs.counts[[*pair]].sum(axis=2) > 0).all())
    ranges, certain, curves, gaps = None, None, None, None
    if known:
        ranges = _listed(cost_ranges(_observed(runs, pair, positive), prevalence), Cheaper.EQUAL)
        curves = _of_curves(runs, pair, positive, prevalence) if asked.best_thresholds else None
        gaps = _estimated(comparison, pair, positive)
    if gaps is not None:
        certain = _listed(certain_cost_ranges(gaps, prevalence, comparison.settings.level), Cheaper.UNDECIDED)
    return CostComparison(
        a=runs.records[pair[0]].id,
        b=runs.records[pair[1]].id,
        positive=runs.labels[positive],
        prevalence=prevalence,
        ranges=ranges,
        beyond_doubt=certain,
        method=None if gaps is None else _method(comparison),
        best_thresholds=curves,
        reason=None if gaps is not None else _why(comparison) if known else _NO_CLASS,
    )


def _method(comparison: Comparison) -> str:
    plain = _METHODS[comparison.runs.pairing.design]
    if comparison.grouped:
        return plain.replace(", ", ", grouped_")
    return plain.replace(", ", ", weighted_") if comparison.weighted else plain


def _why(comparison: Comparison) -> str:
    return _ONE_GROUP if comparison.grouped else _WEIGHTED


def _prevalence(comparison: Comparison, positive: int) -> float:
    """Where the runs are compared: their share, or the mean of theirs."""
    shares = comparison.prevalence.shares
    if shares is None:
        actual = comparison.runs.counts[0].sum(axis=1)
        shares = actual / actual.sum()
    return float(shares[positive])


def _wrong(runs: Runs, run: int, actual: int) -> tuple[float, float]:
    """Wrong samples of a class, and all of them."""
    row = runs.counts[run, actual]
    return float(row[1 - actual]), float(row.sum())


def _observed(runs: Runs, pair: tuple[int, int], positive: int) -> RateGaps:
    rates = [[wrong / size for wrong, size in (_wrong(runs, run, k) for run in pair)] for k in (positive, 1 - positive)]
    return RateGaps(*(first - second for first, second in rates))


def _worth(runs: Runs, run: int, actual: int, level: float) -> tuple[float, float]:
    """The same; of samples with weights the effective number of samples of the rate."""
    weighted = runs.weighted[run]
    if weighted is None:
        return _wrong(runs, run, actual)
    sums = [Table(part) for part in (weighted.counts, weighted.squares, weighted.samples)]
    hits, among = (np.array([getattr(one, name)[actual] for one in sums[:2]]) for name in ("tp", "actual"))
    right, worth = WeightedRate.of_sums(hits, among, sums[2].actual[actual]).as_counts(level)
    return float(worth - right), float(worth)


def _of_pair(joint: JointCounts, k: int) -> tuple[float, float]:
    """Gap of the error rates of two runs on the samples of a class, and its variance."""
    sums = np.array([one[k] for one in (*discordant(joint), joint.actual())])
    if joint.weights is not None:
        squares = np.array([one[k] for one in (*discordant(joint, squares=True), joint.squares())])
        sums *= worth_of_pairs(sums, squares, float(joint.members()[k])) / sums[2]
    better, worse, size = sums.tolist()
    return paired_gap(better, worse, size)


def _estimated(comparison: Comparison, pair: tuple[int, int], positive: int) -> RateGaps | None:
    """The gaps with their variances; None where these are not known."""
    runs, level = comparison.runs, comparison.settings.level
    classes = positive, 1 - positive
    if comparison.groups is not None:
        return between_groups(comparison.groups.pair(*pair), classes, level)
    if runs.lacking_weights is not None:
        return None
    joint, found = runs.pairing.joint, []
    for k in classes:
        if joint is None:
            found.append(independent_gap(_worth(runs, pair[0], k, level), _worth(runs, pair[1], k, level)))
        else:
            found.append(_of_pair(joint.pair(*pair), k))
    (misses, misses_variance), (alarms, alarms_variance) = found
    return RateGaps(misses, alarms, misses_variance, alarms_variance)


def between_groups(pair: GroupedPair, classes: tuple[int, int], level: float) -> RateGaps | None:
    """The gaps of both classes, the positive one first, with what the errors of a group have to do with each other."""
    gaps, moves = [], []
    for k in classes:
        sums, members = pair.of_class(k)
        worth, added = worth_in_groups(sums, members, level)
        if isnan(worth):
            return None
        better, worse, size = (sums.sum(axis=1) * worth / sums[2].sum()).tolist()
        gaps.append(paired_gap(better, worse, size))
        moves.append(added)
    (misses, misses_variance), (alarms, alarms_variance) = gaps
    of_both = float(np.linalg.norm(moves[0]) * np.linalg.norm(moves[1]))
    together = float(moves[0] @ moves[1]) / of_both if of_both > 0.0 else 0.0
    covariance = together * (misses_variance * alarms_variance) ** 0.5
    return RateGaps(misses, alarms, misses_variance, alarms_variance, covariance)


def _of_curves(runs: Runs, pair: tuple[int, int], positive: int, prevalence: float) -> list[CostRatioRange]:
    first, second = (runs.scored[run].scores.rankings[positive].hulls[0] for run in pair)
    return _listed(curve_cost_ranges(first, second, prevalence), Cheaper.EQUAL)


def _listed(ranges: Iterable[CostRange], neither: Cheaper) -> list[CostRatioRange]:
    cheaper = {1: Cheaper.A, -1: Cheaper.B, 0: neither}
    return [
        CostRatioRange(low=one.low, high=None if isinf(one.high) else one.high, cheaper=cheaper[one.better])
        for one in ranges
    ]
