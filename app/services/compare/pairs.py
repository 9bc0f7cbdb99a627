"""Statements about pairs of runs beside differences of metrics: tests of counts, cross-validation folds, costs,
recalls.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from math import isnan
from typing import Annotated, Final
from uuid import UUID

import numpy as np

from app.domain.asked import Limits
from app.domain.errors import InvalidInput, OutOfReach
from app.domain.findings import Finding
from app.domain.members import LEFT_OUT
from app.kernel.compare.cost_ratios import (
    CostRatioRange,
    RateGaps,
    certain_cost_ranges,
    cost_ranges,
    curve_cost_ranges,
    independent_gap,
    lorenz_order,
)
from app.kernel.compare.over_datasets import five_by_two_f, over_folds
from app.kernel.compare.paired.tests import ChiSquared, PredictiveValue, RunPair, p_of
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.draws import Alternative
from app.services.estimands import Better, Preference
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison
from app.services.runs.matrix_draws import ChiSquaredTest, InferenceSettings, OmnibusTest
from app.services.runs.pairing import PairingDesign


class Preferred(StrEnum):
    """The run of a pair that all means prefer, if there is one."""

    A = "a"
    B = "b"
    EQUAL = "equal"
    NEITHER = "neither"


_PREFERRED: Final = {1: Preferred.A, -1: Preferred.B, 0: Preferred.EQUAL, None: Preferred.NEITHER}


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallOrder:
    """The order of the recalls of two runs, as observed, without limits or tests.

    Attributes:
        preferred: `a` when its k smallest recalls add up to at least as much as those of b for every k: then every mean
            that rises with the recalls and falls with their inequality (arithmetic, geometric, harmonic, the smallest)
            finds a at least as good. `neither`: it depends on the mean.
    """

    a: UUID
    b: UUID
    preferred: Preferred


def recall_orders(comparison: Comparison) -> Sequence[RecallOrder] | None:
    """The order of every pair; None where a run has a class without actual samples, or has no
    classes.
    """
    if comparison.runs.task is not None:
        return None
    with silently():
        recalls = Table(comparison.runs.counts).recall
    if np.isnan(recalls).any():
        return None
    records = comparison.runs.records
    return [
        RecallOrder(a=records[i].id, b=records[j].id, preferred=_PREFERRED[lorenz_order(recalls[i], recalls[j])])
        for i, j in comparison.pairs
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class FiveByTwo:
    """Alpaydin's (1999) combined F test, with 10 and 5 degrees of freedom; `null` where no pair of folds differs."""

    statistic: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FoldTest:
    """a less b over the folds.

    Attributes:
        df: Degrees of freedom of the statistic.
        probability_a_better: Probability that a is better by more than the region of equivalence.
        repeats: How often the cross-validation was repeated; null where that is not known, and 1 is assumed.
        five_by_two: Alpaydin's combined F test, of five repetitions of two folds; it has no sides.
    """

    mean_difference: float
    low: float | None
    high: float | None
    statistic: float | None
    df: int
    p_value: float | None
    probability_a_better: float
    probability_equivalent: float
    probability_b_better: float
    repeats: int | None
    five_by_two: FiveByTwo | None = field(default=None, metadata=LEFT_OUT)
    method: str = "corrected_resampled_t, bayesian_correlated_t"


def fold_test(
    gaps: Array, better: Preference | None, settings: InferenceSettings, *, repeats: int | None, mixed: bool
) -> FoldTest | None:
    """Tests from the differences (F) of the values of two runs; None where a fold has no value.

    The test share is that of the folds of one repetition, one over their number. Where the folds of repetitions are
    ``mixed`` nothing is said that has to know which belong together.
    """
    rope, alternative = settings.rope, settings.alternative
    if not np.isfinite(gaps).all():
        return None
    found = over_folds(gaps, (repeats or 1) / gaps.size)
    (low,), (high,) = (end.tolist() for end in found.limits(alternative.two_sided_level(settings.level)))
    low, high = alternative.opened(low, high, (None, None))
    mean, error, freedom = (float(one[0]) for one in (found.gaps, found.errors, found.freedom))
    if error > 0.0:
        larger, not_smaller = (float(found.chance_above(end)[0]) for end in (rope, -rope))
    else:
        # Folds without spread leave no doubt.
        larger, not_smaller = float(mean > rope), float(mean >= -rope)
    smaller = 1.0 - not_smaller
    lower = better is not None and better.better is Better.LOWER
    combined = None
    if repeats == 5 and gaps.size == 10 and not mixed:
        statistic, p = five_by_two_f(gaps.reshape(5, 2))
        combined = FiveByTwo(statistic=statistic, p_value=p)
    return FoldTest(
        mean_difference=mean,
        low=low,
        high=high,
        statistic=float(found.distance()[0]),
        df=int(freedom),
        p_value=alternative.one_sided(float(found.p[0]), mean),
        probability_a_better=smaller if lower else larger,
        probability_equivalent=max(not_smaller - larger, 0.0),
        probability_b_better=larger if lower else smaller,
        repeats=repeats,
        five_by_two=combined,
    )


def fold_findings(comparison: Comparison) -> list[Finding]:
    """Return a caution about cross-validation folds of unknown repetition, on which runs are compared."""
    if comparison.runs.fold_counts is None or comparison.runs.repeats:
        return []
    number = comparison.runs.fold_counts.shape[1]
    return [
        Finding.warning(
            "fold_repeats_unknown",
            f"The {number} folds are taken as those of one cross-validation. If it was repeated, the tests over the "
            "folds are surer than they should be. Send `repeats` with the input, or `sample_ids`.",
            folds=number,
        )
    ]


# Pairs times classes that are tested without being asked for: more would make answers long.
_MOST_TESTED_PAIRS: Final = 100
# And pairs times classes cubed when asked for, since tests of margins solve equations in the classes: some seconds.
_MOST_WORK: Final = 2_000_000_000
# Pairs times classes times samples that differ, some seconds and a minute.
_MOST_SAMPLES_UNASKED: Final = 20_000_000
_MOST_SAMPLES: Final = 300_000_000
LEFT_OUT_UNASKED: Final = (
    "Tests of counts and predictive values of pairs are left out, since there are many of them: `paired_tests: true` "
    "asks for them."
)
_SAME = "the runs never differ in this, so there is no evidence of a difference"
_NO_VARIANCE = "every sample moves the margins in the same way, so that their variance by Wald's method is 0"
_NOTHING_VARIES = "the values are equal and do not vary over the samples, so there is no evidence of a difference"
_NEVER = "a run never predicts this"
# Right or wrong samples that one run only predicts; with fewer the weighted score is known to reject too often.
_FEW: Final = 5
_TOO_FEW = (
    f"of the samples that only one of the runs predicts as this class, fewer than {_FEW} are right, or fewer than "
    f"{_FEW} wrong: the weighted score test then rejects equal values too often"
)
_OF_ONE_WEIGHT = "the samples have weights, and the weighted score test needs equal weights"
_OF_NO_GROUPS = "the samples come in groups, and the weighted score statistic takes samples as independent"
_OF_ONE_GROUP = "all that is predicted so is in one group, so how groups differ is not known"
_FEW_GROUPS = (
    "the variance between the groups is not known: the runs differ in too few of them for so many classes, or finding "
    "it would take too long"
)
_NO_RATIO = "a value of 0 has no logarithm"
_OF_LABELS: Final = (
    ("generalized_mcnemar", "equal recalls in every class"),
    ("stuart_maxwell", "classes predicted equally often"),
    ("bhapkar", "classes predicted equally often"),
    ("bowker", "each class exchanged for each other equally often both ways"),
)
_STATISTICS: Final = (
    ("generalized_score", "equal predictive values"),
    ("weighted_generalized_score", "equal predictive values"),
    ("relative_predictive_value", "a ratio of 1"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPredictiveValue:
    """Predictive values of two runs, a less b and a over b.

    Attributes:
        ratio: a over b, the relative predictive value of Moskowitz and Pepe (2006), with limits at the level of the
            comparison.
        tests: That both values are equal, unadjusted; with `design.alternative` p is on that side. The generalised
            score statistic of Leisenring, Alonzo and Pepe (2000), the weighted one of Kosinski (2013), and that of
            the ratio.
        reason: Why something is not there, or says little.
    """

    values: tuple[float | None, float | None]
    difference: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    tests: Sequence[OmnibusTest]
    reason: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictiveComparison:
    """Predictive values of a class, compared.

    Attributes:
        ppv: Share of the samples predicted as the class that are of it: its precision.
        npv: Share of the samples predicted as another class that are not of it.
    """

    ppv: ComparedPredictiveValue
    npv: ComparedPredictiveValue


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedTests:
    """Two runs on the same samples, tested by counts.

    Attributes:
        tests: Unadjusted; of samples with weights by their linearised variance, of samples in groups by that between
            the groups. `generalized_mcnemar` is about who is right, class by class; the others are about how often
            classes are predicted, and say nothing about who is right.
        predictive_values: By class; of two classes the positive one only.
    """

    a: UUID
    b: UUID
    tests: Sequence[OmnibusTest]
    predictive_values: Mapping[str, PredictiveComparison]


def tests_counts(comparison: Comparison, *, asked: bool | None) -> bool:
    """Are pairs tested by counts? Where asked for, and else where they are few.

    Raises:
        OutOfReach: it would take too long.
    """
    joint = comparison.runs.pairing.joint
    if joint is None or asked is False:
        return False
    pairs, size, grouped = len(comparison.pairs), comparison.runs.n_classes, joint.grouping is not None
    # Samples that say the same are one, so without weights and groups there are few.
    alike = joint.counts.size if grouped or joint.weights is not None else min(joint.counts.size, size**3)
    work = pairs * size * alike
    if asked and (pairs * max(size**3, 1000 * size) > _MOST_WORK or (grouped and work > _MOST_SAMPLES)):
        raise OutOfReach(
            f"tests of counts of {pairs} pairs of runs with {size} classes take too long; name a baseline, or compare "
            "fewer runs"
        )
    return asked or (pairs * size <= _MOST_TESTED_PAIRS and work <= _MOST_SAMPLES_UNASKED)


def paired_tests(comparison: Comparison) -> list[PairedTests]:
    """Test the counts of every pair of runs on the same samples."""
    joint, records = comparison.runs.pairing.joint, comparison.runs.records
    assert joint is not None  # noqa: S101 - what this is called for
    found = []
    for pair in comparison.pairs:
        both = RunPair(joint.pair(*pair))
        a, b = (records[one].id for one in pair)
        tests, values = label_tests(both), _predictive(comparison, both)
        found.append(PairedTests(a=a, b=b, tests=tests, predictive_values=values))
    return found


def label_tests(pair: RunPair) -> list[OmnibusTest]:
    """McNemar's test for several classes, in what forms there are."""
    statistics = pair.equal_recalls(), pair.stuart_maxwell(), pair.bhapkar(), pair.bowker()
    unknown = _FEW_GROUPS if pair.grouped else _NO_VARIANCE
    return [
        OmnibusTest(test=name, of=of, found=_found(statistic, unknown))
        for (name, of), statistic in zip(_OF_LABELS, statistics, strict=True)
    ]


def _found(statistic: ChiSquared, unknown: str) -> ChiSquaredTest:
    if statistic.freedom == 0:
        return ChiSquaredTest.of(statistic, _SAME)
    return ChiSquaredTest.of(statistic, unknown if isnan(statistic.p) else None)


def _predictive(comparison: Comparison, pair: RunPair) -> dict[str, PredictiveComparison]:
    runs, settings = comparison.runs, comparison.settings
    classes: Sequence[int] = range(runs.n_classes)
    if runs.n_classes == 2:
        classes = [1 if runs.positive is None else runs.positive]

    def compared(k: int, *, absent: bool) -> ComparedPredictiveValue:
        found = pair.predictive_value(k, absent=absent)
        return _value(found, settings.level, settings.alternative, in_groups=pair.grouped)

    return {
        runs.labels[k]: PredictiveComparison(ppv=compared(k, absent=False), npv=compared(k, absent=True))
        for k in classes
    }


def _value(found: PredictiveValue, level: float, side: Alternative, *, in_groups: bool) -> ComparedPredictiveValue:
    gap, odds = found.first - found.second, float(np.exp(found.log_ratio))
    low, high = found.ratio_limits(side.two_sided_level(level))
    reason = None
    if isnan(gap):
        reason = _NEVER
    elif isnan(odds):
        reason = _NO_RATIO
    elif found.score == 0.0 and found.relative == 0.0 and low == high:
        reason = _NOTHING_VARIES
    elif isnan(found.weighted_score):
        reason = _OF_ONE_GROUP if isnan(low) else _OF_NO_GROUPS if in_groups else _OF_ONE_WEIGHT
    elif found.alone < _FEW:
        reason = _TOO_FEW
    if not isnan(odds):
        low, high = side.opened(low, high, (0.0, None))
    tested = (
        (found.score, p_of(found.score)),
        (found.weighted_score, p_of(found.weighted_score)),
        (found.relative, found.relative_p),
    )
    return ComparedPredictiveValue(
        values=(found.first, found.second),
        difference=gap,
        ratio=odds,
        ratio_low=low,
        ratio_high=high,
        tests=[
            OmnibusTest(test=name, of=of, found=ChiSquaredTest.of(ChiSquared(statistic, 1, side.one_sided(p, gap))))
            for (name, of), (statistic, p) in zip(_STATISTICS, tested, strict=True)
        ],
        reason=reason,
    )


# Pairs of which it is said without being asked for.
_MOST_COSTED_PAIRS: Final = 50
_NO_CLASS: Final = "a run has no samples of one of the classes, so one of its error rates is not known"
_ONE_GROUP: Final = "the samples of a class are all in one group, so how groups differ is not known"
_UNPAIRED_GROUPS: Final = "the samples come in groups and are not the same in both runs: only values are compared"

_METHODS: Final = {
    PairingDesign.SAMPLES: "fieller, bonett_price",
    PairingDesign.TEST_SET: "fieller, agresti_caffo_as_if_independent",
    PairingDesign.INDEPENDENT: "fieller, agresti_caffo",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class CostQuestion:
    """Options of a comparison of costs.

    Attributes:
        prevalence: Share of the positive class; that of the comparison when left out.
        best_thresholds: Look at the runs also with the thresholds that are best for each cost, along their ROC curves.
            Needs the probabilities or scores of the samples.
    """

    prevalence: Annotated[float, Limits({"gt": 0, "lt": 1})] | None = None
    best_thresholds: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CostComparison:
    """The cheaper of two runs, for every cost of a miss from 0 on.

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
    """Compare the costs of every pair of runs on two classes; None for others, and for many pairs unless they are asked
    for.
    """
    if not _of_two_classes(comparison.runs) or (question is None and len(comparison.pairs) > _MOST_COSTED_PAIRS):
        return None
    asked = question or CostQuestion()
    return [_compared(comparison, pair, asked) for pair in comparison.pairs]


def _compared(comparison: Comparison, pair: tuple[int, int], asked: CostQuestion) -> CostComparison:
    runs = comparison.runs
    positive = 1 if runs.positive is None else runs.positive
    prevalence = _prevalence(comparison, positive) if asked.prevalence is None else asked.prevalence
    known = bool((runs.counts[[*pair]].sum(axis=2) > 0).all())
    ranges, certain, curves, gaps = None, None, None, None
    unknown = _ONE_GROUP if runs.pairing.paired else _UNPAIRED_GROUPS
    if known:
        ranges = cost_ranges(_observed(runs, pair, positive), prevalence)
        curves = _of_curves(runs, pair, positive, prevalence) if asked.best_thresholds else None
        gaps = _estimated(comparison, pair, positive)
    if gaps is not None:
        certain = certain_cost_ranges(gaps, prevalence, comparison.settings.level)
    return CostComparison(
        a=runs.records[pair[0]].id,
        b=runs.records[pair[1]].id,
        positive=runs.labels[positive],
        prevalence=prevalence,
        ranges=ranges,
        beyond_doubt=certain,
        method=None if gaps is None else _method(comparison),
        best_thresholds=curves,
        reason=None if gaps is not None else _NO_CLASS if not known else unknown,
    )


def _method(comparison: Comparison) -> str:
    plain = _METHODS[comparison.runs.pairing.design]
    if comparison.runs.grouped:
        return plain.replace(", ", ", grouped_")
    return plain.replace(", ", ", weighted_") if comparison.weighted else plain


def _prevalence(comparison: Comparison, positive: int) -> float:
    """Return the share of the positive class that the runs are compared at: theirs, or the mean of theirs."""
    shares = comparison.prevalence.shares
    if shares is None:
        actual = comparison.runs.counts[0].sum(axis=1)
        shares = actual / actual.sum()
    return float(shares[positive])


def _observed(runs: Runs, pair: tuple[int, int], positive: int) -> RateGaps:
    rows = runs.counts[[*pair]][:, [positive, 1 - positive]]
    wrong = rows[:, [0, 1], [1 - positive, positive]] / rows.sum(axis=2)
    return RateGaps(*np.subtract(*wrong).tolist())


def _worth(runs: Runs, run: int, actual: int, level: float) -> tuple[float, float]:
    """Return wrong samples and all samples of a class in a run; with weights, the effective numbers of the rate."""
    right, worth = (float(one[actual]) for one in runs.data[run].design.recalls(level))
    return worth - right, worth


def _estimated(comparison: Comparison, pair: tuple[int, int], positive: int) -> RateGaps | None:
    """The gaps with their variances; None where these are not known."""
    runs, level = comparison.runs, comparison.settings.level
    classes, joint = (positive, 1 - positive), runs.pairing.joint
    if joint is not None:
        both = RunPair(joint.pair(*pair))
        return _between(*(both.error_gap(k, level) for k in classes))
    if runs.grouped:
        return None
    (misses, misses_variance), (alarms, alarms_variance) = (
        independent_gap(*(_worth(runs, run, k, level) for run in pair)) for k in classes
    )
    return RateGaps(misses, alarms, misses_variance, alarms_variance)


def _between(misses: tuple[float, float, Array] | None, alarms: tuple[float, float, Array] | None) -> RateGaps | None:
    """The gaps of both classes, with what the errors of a group have to do with each other; None without one."""
    if misses is None or alarms is None:
        return None
    (missed, variance, moves), (alarmed, other, others) = misses, alarms
    of_both = float(np.linalg.norm(moves) * np.linalg.norm(others))
    together = float(moves @ others) / of_both if of_both > 0.0 else 0.0
    return RateGaps(missed, alarmed, variance, other, together * (variance * other) ** 0.5)


def _of_curves(runs: Runs, pair: tuple[int, int], positive: int, prevalence: float) -> list[CostRatioRange]:
    scores = [one.scores for one in runs.scored] if runs.streamed is None else runs.streamed.scores
    first, second = (scores[run].ranking(positive).hulls[0] for run in pair)
    return curve_cost_ranges(first, second, prevalence)
