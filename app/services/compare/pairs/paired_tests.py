"""What tests of counts say of two runs on the same samples, beside the differences of metrics."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Final
from uuid import UUID

import numpy as np

from app.domain.errors import OutOfReach
from app.domain.members import LEFT_OUT
from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.tests import (
    ChiSquared,
    GroupedPair,
    PredictiveCounts,
    PredictiveValues,
    bhapkar,
    bowker,
    discordant,
    equal_recalls,
    p_of,
    prediction_table,
    predictive_values,
    stuart_maxwell,
)
from app.kernel.uncertainty.draws import Alternative
from app.services.json_values import number
from app.services.runs.comparison import Comparison
from app.services.runs.draws.resampling import ChiSquaredTest, OmnibusTest

# Pairs times classes that are tested without being asked for: more would make answers long.
_MOST_UNASKED: Final = 100
# And pairs times classes cubed when asked for, since tests of margins solve equations in the classes: some seconds.
_MOST_WORK: Final = 2_000_000_000
# Where samples come in groups: pairs times samples times classes, some seconds and a minute.
_MOST_GROUPED_UNASKED: Final = 20_000_000
_MOST_GROUPED: Final = 300_000_000
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
    """How often predictions of a class are right.

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
    if comparison.runs.pairing.joint is None or asked is False:
        return False
    pairs, size = len(comparison.pairs), comparison.runs.n_classes
    grouped = 0 if comparison.groups is None else pairs * comparison.groups.n_samples * size
    if asked and (pairs * max(size**3, 1000 * size) > _MOST_WORK or grouped > _MOST_GROUPED):
        raise OutOfReach(
            f"tests of counts of {pairs} pairs of runs with {size} classes take too long; name a baseline, or compare "
            "fewer runs"
        )
    return asked or (pairs * size <= _MOST_UNASKED and grouped <= _MOST_GROUPED_UNASKED)


def paired_tests(comparison: Comparison) -> list[PairedTests]:
    """Of every pair of runs on the same samples."""
    joint, records, groups = comparison.runs.pairing.joint, comparison.runs.records, comparison.groups
    assert joint is not None  # noqa: S101 - what this is called for
    found = []
    for pair in comparison.pairs:
        both = joint.pair(*pair) if groups is None else groups.pair(*pair)
        a, b = (records[one].id for one in pair)
        tests, values = label_tests(both), _predictive(comparison, both)
        found.append(PairedTests(a=a, b=b, tests=tests, predictive_values=values))
    return found


def label_tests(pair: JointCounts | GroupedPair) -> list[OmnibusTest]:
    """McNemar's test for several classes, in what forms there are."""
    if isinstance(pair, GroupedPair):
        statistics, unknown = _between_groups(pair), _FEW_GROUPS
    else:
        statistics, unknown = _of_counts(pair), _NO_VARIANCE
    return [
        OmnibusTest(test=name, of=of, found=_found(statistic, unknown))
        for (name, of), statistic in zip(_OF_LABELS, statistics, strict=True)
    ]


def _of_counts(joint: JointCounts) -> tuple[ChiSquared, ...]:
    table, (better, worse) = prediction_table(joint), discordant(joint)
    squares, spread = None, None
    if joint.weights is not None:
        squares, spread = prediction_table(joint, squares=True), np.add(*discordant(joint, squares=True))
    return (
        equal_recalls(better, worse, spread),
        stuart_maxwell(table, squares),
        bhapkar(table, squares),
        bowker(table, squares),
    )


def _between_groups(pair: GroupedPair) -> tuple[ChiSquared, ...]:
    return pair.equal_recalls(), pair.stuart_maxwell(), pair.bhapkar(), pair.bowker()


def _found(statistic: ChiSquared, unknown: str) -> ChiSquaredTest:
    if statistic.freedom == 0:
        return ChiSquaredTest.of(statistic, _SAME)
    return ChiSquaredTest.of(statistic, unknown if isnan(statistic.p) else None)


def _predictive(comparison: Comparison, pair: JointCounts | GroupedPair) -> dict[str, PredictiveComparison]:
    runs, settings = comparison.runs, comparison.settings
    classes: Sequence[int] = range(runs.n_classes)
    if runs.n_classes == 2:
        classes = [1 if runs.positive is None else runs.positive]
    ppv: list[ComparedPredictiveValue] = []
    npv: list[ComparedPredictiveValue] = []
    in_groups = isinstance(pair, GroupedPair)
    for present, absent in pair.predictive_values() if isinstance(pair, GroupedPair) else [_of_samples(pair)]:
        for values, (counts, found) in ((ppv, present), (npv, absent)):
            values += _values(counts, found, settings.level, settings.alternative, in_groups=in_groups)
    return {runs.labels[k]: PredictiveComparison(ppv=ppv[k], npv=npv[k]) for k in classes}


def _of_samples(joint: JointCounts) -> list[tuple[PredictiveCounts, PredictiveValues]]:
    """Predictions that a sample is of a class, and that it is not, of all classes at once."""
    kinds = [_of_both(joint, squares=False)]
    if joint.weights is not None:
        kinds.append(_of_both(joint, squares=True))
    return [(kind[0], predictive_values(*kind)) for kind in zip(*kinds, strict=True)]


def _of_both(joint: JointCounts, *, squares: bool) -> tuple[PredictiveCounts, PredictiveCounts]:
    """Predictions that a sample is of a class, and that it is not."""
    present = PredictiveCounts.of(joint, squares=squares)
    return present, present.of_absence(joint.squares() if squares else joint.actual())


def _values(
    counts: PredictiveCounts, found: PredictiveValues, level: float, side: Alternative, *, in_groups: bool
) -> list[ComparedPredictiveValue]:
    """By class."""
    low, high = found.ratio_limits(side.two_sided_level(level))
    statistics = (found.score, found.weighted_score, found.relative)
    alone = np.minimum(counts.first_right + counts.second_right, counts.first_wrong + counts.second_wrong)
    values = (found.first, found.second, np.exp(found.log_ratio), low, high, alone)
    columns = (*values, *statistics, p_of(found.score), p_of(found.weighted_score), found.relative_p)
    unweighted = _OF_NO_GROUPS if in_groups else _OF_ONE_WEIGHT
    return [_value(side, unweighted, *row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def _value(
    side: Alternative,
    unweighted: str,
    first: float,
    second: float,
    ratio: float,
    low: float,
    high: float,
    alone: float,
    *tests: float,
) -> ComparedPredictiveValue:
    reason = None
    if isnan(first) or isnan(second):
        reason = _NEVER
    elif isnan(ratio):
        reason = _NO_RATIO
    elif tests[0] == 0.0 and tests[2] == 0.0 and low == high:
        reason = _NOTHING_VARIES
    elif isnan(tests[1]):
        reason = _OF_ONE_GROUP if isnan(low) else unweighted
    elif alone < _FEW:
        reason = _TOO_FEW
    half = len(_STATISTICS)
    if not isnan(ratio):
        low, high = side.opened(low, high, (0.0, None))
    chances = [side.one_sided(p, first - second) for p in tests[half:]]
    return ComparedPredictiveValue(
        values=(number(first), number(second)),
        difference=number(first - second),
        ratio=number(ratio),
        ratio_low=number(low),
        ratio_high=number(high),
        tests=[
            OmnibusTest(test=name, of=of, found=ChiSquaredTest(statistic=number(statistic), df=1, p_value=number(p)))
            for (name, of), statistic, p in zip(_STATISTICS, tests[:half], chances, strict=True)
        ],
        reason=reason,
    )
