"""The answer of one comparison: values and differences per metric, adjusted p-values, disagreements of metrics."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Final
from uuid import UUID

import numpy as np

from app.domain.asked import Level, Limits, NameText, NonNegative, Seed
from app.domain.decisions import PairVerdict
from app.domain.evaluation import Named
from app.domain.findings import Finding
from app.domain.options import DRAWS, Draws, check_one_sided
from app.domain.wording import number
from app.kernel.compare.paired.tests import RunPair
from app.kernel.compare.rankings import (
    Adjustment,
    adjust,
    cochran_q,
    kendall_tau,
    may_be_best,
    rank_runs,
)
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Alternative
from app.services.compare.answers import (
    ComparedMetric,
    ComparedPair,
    ComparedRun,
    ComparisonDesign,
    ComparisonHeadline,
    Disagreement,
    Multiplicity,
    PredictionDrift,
    Preferring,
    RankAgreement,
    Ranking,
    RunComparison,
)
from app.services.compare.pairs import (
    LEFT_OUT_UNASKED,
    CostQuestion,
    cost_comparisons,
    fold_findings,
    fold_test,
    label_tests,
    paired_tests,
    recall_orders,
    tests_counts,
)
from app.services.estimands import Better
from app.services.processes.worker import progressed
from app.services.runs.causes import causes_of, kind_of_causes, said_causes
from app.services.runs.comparison import (
    ComparedValue,
    Comparison,
    improper_preferences,
    joint_adjustment,
    ranks_of,
)
from app.services.runs.differences import NOT_REACHED, OF_SIZES, Test
from app.services.runs.matrix_draws import ChiSquaredTest, OmnibusTest
from app.services.runs.pairing import PairingMode

ALL_DIFFERENCES = "all differences of the request"


@dataclass(frozen=True, slots=True, kw_only=True)
class NewComparison:
    """A request to compare runs.

    Attributes:
        evaluations: Ids, or references to the latest of a model, dataset or tag; all different.
        baseline: Compare all others with this one only, not every pair.
        level: Level of intervals and of the set of runs that may be best.
        rope: Differences up to this are practically none, in units of the metric.
        paired: auto: by sample ids where they are known. `true` refuses what cannot be paired; samples of data that was
            named by a reference are read again where it has a column `sample_id`, which is always a job.
        minimum_matched: Share of the largest run's sample ids that all runs must have in common.
        multiplicity: How p is adjusted over pairs and classes. `max_t`: over all differences of the request, by how
            they vary together.
        alternative: `greater`: limits and p of a less b above 0, with a lower limit at the level and the other end that
            of the range, `null` where it has none; `less` is the mirror image.
        seed: Derived from the request when left out.
        draws: Simulated matrices per run.
        paired_tests: Tests of counts and predictive values of every pair of runs on the same samples. Left out: where
            pairs and classes are few.
        cost_ranges: Of two classes: at which ratios of costs which run is cheaper; said as it is when left out.
        explain: Split differences of metrics that prevalence moves by their causes.
        by: Attributes of samples, in whose slices runs are compared too.
    """

    evaluations: Annotated[tuple[Named, ...], Limits({"min_length": 2, "max_length": 50})]
    metrics: tuple[str, ...] = ()
    baseline: Named | None = None
    level: Level = 0.95
    rope: NonNegative = 0.01
    paired: PairingMode = PairingMode.AUTO
    minimum_matched: Annotated[float, Limits({"gt": 0, "le": 1})] = 1.0
    multiplicity: Adjustment = Adjustment.HOLM
    alternative: Alternative = Alternative.TWO_SIDED
    seed: Seed | None = None
    draws: Draws = DRAWS
    paired_tests: bool | None = None
    cost_ranges: CostQuestion | None = None
    explain: bool = False
    by: Annotated[tuple[NameText, ...], Limits({"max_length": 10})] = ()

    def check(self) -> None:
        """Different runs, and the baseline one of them, as far as that is known from the names.

        Raises:
            ValueError: it is not so, or the options contradict each other.
        """
        all_ids = all(isinstance(one, UUID) for one in (*self.evaluations, self.baseline))
        if self.baseline is not None and all_ids and self.baseline not in self.evaluations:
            raise ValueError("expected the baseline to be one of the evaluations")
        check_one_sided(self.level, self.alternative)
        if self.multiplicity is Adjustment.MAX_T and self.alternative is not Alternative.TWO_SIDED:
            raise ValueError("expected another multiplicity: max_t adjusts two-sided p")
        if self.multiplicity is Adjustment.MAX_T and self.by:
            raise ValueError("expected another multiplicity: max_t is not known over slices")


_MOST = 50
# Metrics of a group that a sentence names.
_NAMED = 5


def compared_values(comparison: Comparison) -> list[ComparedValue]:
    """Every value of every estimand."""
    return [
        ComparedValue(name, comparison.values[index][:, place], comparison.scores(index)[:, place], index, place)
        for index, estimand in enumerate(comparison.estimands)
        for place, name in enumerate(estimand.names)
    ]


def disagreements(comparison: Comparison, values: Sequence[ComparedValue]) -> list[Disagreement]:
    """For each two runs that metrics find the best, those that prefer the one and those that prefer the other."""
    crowned: dict[int, list[ComparedValue]] = {}
    for value in values:
        if not np.isnan(value.scores).any():
            crowned.setdefault(int(value.scores.argmax()), []).append(value)
    records, found = comparison.runs.records, []
    for best, other in itertools.combinations(crowned, 2):
        first = [value for value in crowned[best] if value.prefers(best, other)]
        second = [value for value in crowned[other] if value.prefers(other, best)]
        if not (first and second):
            continue
        groups = ((best, first), (other, second))
        prefers = [
            Preferring(evaluation_id=records[run].id, metrics=[value.name for value in group]) for run, group in groups
        ]
        found.append(
            Disagreement(
                metrics=[value.name for value in (*first, *second)],
                prefer=(records[best].id, records[other].id),
                prefers=(prefers[0], prefers[1]),
                message=f"{_preference(comparison, first, best, other)}, but "
                f"{_preference(comparison, second, other, best)}.",
            )
        )
    return found[:_MOST]


def _preference(comparison: Comparison, group: Sequence[ComparedValue], best: int, rival: int) -> str:
    runs = comparison.runs
    if len(group) == 1:
        (one,) = group
        return (
            f"{one.name} prefers {runs.name(best)} ({number(one.values[best])}) to {runs.name(rival)} "
            f"({number(one.values[rival])})"
        )
    named = [f"{one.name} ({number(one.values[best])} against {number(one.values[rival])})" for one in group[:_NAMED]]
    rest = len(group) - len(named)
    last = f"{rest} more" if rest else named.pop()
    return f"{', '.join(named)} and {last} prefer {runs.name(best)} to {runs.name(rival)}"


_OF_ONE_METRIC = "all pairs of one metric, and its classes for a list"


def compared_metrics(
    comparison: Comparison, adjustment: Adjustment, *, explain: bool = False
) -> dict[str, ComparedMetric]:
    """Return the answer about each value of each metric, with the causes of differences where these are wanted."""
    differences = []
    for index in range(len(comparison.estimands)):
        differences.append(comparison.differences(index))
        # What is said of all of them together is a step too.
        progressed(index + 1, len(comparison.estimands) + 1)
    if adjustment is Adjustment.MAX_T:
        adjusted = joint_adjustment(comparison, differences)
    else:
        adjusted = [adjusted_p(tests, adjustment) for tests in differences]
    return answered(comparison, differences, adjusted, explain=explain)


def answered(
    comparison: Comparison,
    differences: Sequence[Sequence[Sequence[Test]]],
    adjusted: Sequence[Array],
    *,
    explain: bool = False,
) -> dict[str, ComparedMetric]:
    """Return the answer about each value of each metric, whose differences and adjusted p are known by estimand."""
    found = {}
    for value in compared_values(comparison):
        index, place = value.estimand, value.place
        pairs = _pairs(comparison, value, differences[index][place], adjusted[index][place])
        if explain and kind_of_causes(comparison.estimands[index]) is not None:
            pairs = [
                replace(one, causes=causes_of(comparison.runs, pair, comparison.estimands[index], place, one.level))
                for pair, one in zip(comparison.pairs, pairs, strict=True)
            ]
        found[value.name] = _metric(comparison, value, pairs)
    return found


def comparison_answer(comparison: Comparison, identifier: UUID, asked: NewComparison) -> RunComparison:
    """Everything that is said about runs.

    Raises:
        OutOfReach: tests of counts are asked for and would take too long.
    """
    records, counted = comparison.runs.records, tests_counts(comparison, asked=asked.paired_tests)
    unasked = comparison.runs.pairing.joint is not None and not counted and asked.paired_tests is None
    values = compared_values(comparison)
    metrics = compared_metrics(comparison, asked.multiplicity, explain=asked.explain)
    return RunComparison(
        id=identifier,
        evaluations=[ComparedRun.of(record, n_samples=int(record.n_rows)) for record in records],
        headline=_headline(metrics),
        baseline_id=None if asked.baseline is None else records[comparison.pairs[0][1]].id,
        design=_design(comparison, asked.multiplicity),
        metrics=metrics,
        rank_agreement=RankAgreement(
            metrics=[value.name for value in values],
            kendall_tau=kendall_tau(np.stack([value.scores for value in values])).tolist(),
        ),
        disagreements=disagreements(comparison, values),
        omnibus=_omnibus(comparison),
        prediction_drift=_drift(comparison),
        recall_orders=recall_orders(comparison),
        paired_tests=paired_tests(comparison) if counted else None,
        cost_ranges=cost_comparisons(comparison, asked.cost_ranges),
        findings=[
            *improper_preferences(comparison),
            *comparison.findings,
            *fold_findings(comparison),
            *_explained(comparison, metrics),
        ]
        or None,
        notes=[*_notes(comparison), *[LEFT_OUT_UNASKED] * unasked],
    )


def _explained(comparison: Comparison, metrics: Mapping[str, ComparedMetric]) -> list[Finding]:
    """Return the main cause of each difference whose limits exclude 0."""
    runs, found = comparison.runs, []
    for name, metric in metrics.items():
        for (first, second), one in zip(comparison.pairs, metric.differences, strict=True):
            between = f" from {runs.name(second)} to {runs.name(first)}"
            said = None if one.causes is None else said_causes(one.causes, name, between)
            if said is not None:
                found.append(Finding.note("cause_of_difference", said, metric=name, a=one.a, b=one.b))
    return found[:_MOST]


def _headline(metrics: Mapping[str, ComparedMetric]) -> ComparisonHeadline:
    name, first = next(iter(metrics.items()))
    if len(first.differences) != 1:
        return ComparisonHeadline(metric=name, best=first.best, verdict=None)
    of_pair = {key: metric.differences[0] for key, metric in metrics.items()}
    by_verdict = {
        verdict.value: [key for key, pair in of_pair.items() if pair.verdict is verdict] for verdict in PairVerdict
    }
    return ComparisonHeadline(
        metric=name,
        best=first.best,
        verdict=of_pair[name].verdict,
        too_little_to_matter=[key for key, pair in of_pair.items() if pair.too_little_to_matter],
        **by_verdict,
    )


# How likely a difference within the region of equivalence has to be for runs to be called the same.
_SAME: Final = 0.95
# Of a difference beyond doubt: how likely it has to be within the region of equivalence to matter too little.
_LITTLE: Final = 0.5


def _verdict_on(test: Test, better: Better, *, by_chance: bool) -> tuple[PairVerdict, bool]:
    """Return the verdict on the difference of a pair, and whether one beyond doubt matters too little; ``by_chance``:
    among so many differences one as large is no surprise.
    """
    # Limits and chances that do not exist are NaN, which is on neither side.
    above, below = test.low > 0.0, test.high < 0.0
    if better is Better.NEAREST or by_chance or not (above or below):
        same = test.probability_equivalent >= _SAME or test.identical
        return PairVerdict.SAME if same else PairVerdict.UNDECIDED, False
    first = above == (better is Better.HIGHER)
    return PairVerdict.BETTER if first else PairVerdict.WORSE, test.probability_equivalent > _LITTLE


def adjusted_p(differences: Sequence[Sequence[Test]], adjustment: Adjustment) -> Array:
    """Return p (V, P) of the differences of some values, adjusted together."""
    p = np.array([[one.p_value for one in of_value] for of_value in differences])
    return adjust(p.ravel(), adjustment).reshape(p.shape)


def _design(comparison: Comparison, adjustment: Adjustment) -> ComparisonDesign:
    settings, pairing, shares = comparison.settings, comparison.runs.pairing, comparison.prevalence.shares
    return ComparisonDesign(
        paired=pairing.paired,
        bond=pairing.design,
        reason=pairing.reason,
        resampling=comparison.design,
        level=settings.level,
        rope=settings.rope,
        seed=settings.seed,
        multiplicity=Multiplicity(
            method=adjustment, family=ALL_DIFFERENCES if adjustment is Adjustment.MAX_T else _OF_ONE_METRIC
        ),
        common_prevalence=None if shares is None else shares.tolist(),
        alternative=None if settings.alternative is Alternative.TWO_SIDED else settings.alternative,
    )


def _metric(comparison: Comparison, value: ComparedValue, pairs: Sequence[ComparedPair]) -> ComparedMetric:
    records, estimand = comparison.runs.records, comparison.estimands[value.estimand]
    assert estimand.preference is not None  # noqa: S101 - others are refused
    ranks, without = ranks_of(value.scores), comparison.without(value.estimand)
    compared_at, moved = "insensitive" if estimand.insensitive else "observed", comparison.moves(value.estimand)
    if moved or without is not None:
        compared_at = "reprojected" if without is None else "incomparable"
    return ComparedMetric(
        values=value.values.tolist(),
        ranks=ranks,
        best=records[ranks.index(1)].id if 1 in ranks else None,
        better=estimand.preference.better,
        prevalence=compared_at,
        ranking=_ranking(comparison, value),
        differences=pairs,
        observed_values=comparison.observed(value.estimand)[:, value.place].tolist() if moved or without else None,
        omnibus=comparison.omnibus(value.estimand, value.place),
    )


def _ranking(comparison: Comparison, value: ComparedValue) -> Ranking:
    """Rank the runs on a metric, from joint draws."""
    kept = comparison.drawn_scores(value.estimand, value.place)
    if kept is None or np.isnan(value.scores).any():
        return Ranking()
    level = comparison.settings.level
    possible = may_be_best(kept, value.scores, level).tolist()
    ranking = rank_runs(kept, level)
    return Ranking(
        probability_best=ranking.best.tolist(),
        expected_ranks=ranking.expected_rank.tolist(),
        rank_intervals=[*zip(ranking.low.tolist(), ranking.high.tolist(), strict=True)],
        may_be_best=[record.id for record, may in zip(comparison.runs.records, possible, strict=True) if may],
    )


def _pairs(
    comparison: Comparison, value: ComparedValue, differences: Sequence[Test], adjusted: Array
) -> list[ComparedPair]:
    """The differences of the pairs in order."""
    estimand, settings = comparison.estimands[value.estimand], comparison.settings
    runs, found, of_folds = comparison.runs, [], comparison.runs.fold_values(estimand)
    for (first, second), test, p in zip(comparison.pairs, differences, adjusted.tolist(), strict=True):
        folds = None
        if of_folds is not None:
            gaps = of_folds[first, :, value.place] - of_folds[second, :, value.place]
            repeats = next(iter(runs.repeats), None)
            folds = fold_test(gaps, estimand.preference, settings, repeats=repeats, mixed=runs.repeats_mixed)
        assert estimand.preference is not None  # noqa: S101 - others are refused
        verdict, little = _verdict_on(test, estimand.preference.better, by_chance=p >= 1.0 - settings.level)
        known = {one.name: getattr(test, one.name) for one in fields(test)}
        compared = ComparedPair(
            **known | {"method": f"{test.limits}, {test.method}"},
            a=runs.records[first].id,
            b=runs.records[second].id,
            level=settings.level,
            p_adjusted=p,
            verdict=verdict,
            too_little_to_matter=little or None,
            p_range=None if test.smallest is None else (test.smallest, test.p_value),
            folds=folds,
        )
        found.append(compared)
    return found


def _omnibus(comparison: Comparison) -> OmnibusTest | None:
    """Have three or more paired runs the same accuracy?"""
    joint = comparison.runs.pairing.joint
    if joint is None or comparison.runs.grouped or comparison.weighted or joint.n_runs < 3:
        return None
    return OmnibusTest(test="cochran_q", of="equal accuracy", found=ChiSquaredTest.of(cochran_q(joint)))


def _drift(comparison: Comparison) -> PredictionDrift | None:
    """Do two paired runs predict the classes equally often?"""
    joint = comparison.runs.pairing.joint
    if joint is None or joint.n_runs != 2:
        return None
    found = {one.test: one.found for one in label_tests(RunPair(joint.pair(0, 1)))}
    return PredictionDrift(
        message="Do the runs predict the classes equally often? This says nothing about which is right more often.",
        stuart_maxwell=found["stuart_maxwell"],
        bhapkar=found["bhapkar"],
        bowker=found["bowker"],
    )


def _notes(comparison: Comparison) -> list[str]:
    records, notes = comparison.runs.records, []
    estimands = [*enumerate(comparison.estimands)]
    at_others = [one for index, one in estimands if comparison.without(index) is None and comparison.moves(index)]

    def without(reason: str) -> str:
        return ", ".join(one.text for index, one in estimands if comparison.without(index) == reason)

    prevalence, others = comparison.prevalence, without(NOT_REACHED)
    inside, reached = (", ".join(one.text for one in at_others if one.is_of_slices is some) for some in (True, False))
    if inside:
        notes.append(
            f"In slices the runs differ in class prevalence. Compared at the mean of theirs in each slice: {inside}. "
            "The values as they were are in observed_values."
        )
    if sized := without(OF_SIZES):
        notes.append(f"The runs have different numbers of samples. Not compared: {sized}, which move with them.")
    if reached:
        notes.append(
            "The runs differ in class prevalence. Metrics that prevalence does not move are compared as they are; "
            f"{reached} at one prevalence, the mean of the runs' (design.common_prevalence), assuming that "
            "how each class is predicted does not depend on how frequent it is. The values as they were are in "
            "observed_values."
        )
    if others and prevalence.reachable:
        notes.append(
            f"The runs differ in class prevalence. Not compared: {others}. These depend on the number of samples, "
            "which runs brought to one prevalence no longer have."
        )
    elif others:
        notes.append(
            f"The runs differ in class prevalence. Not compared: {others}. Some run has no samples of a class, so the "
            "runs cannot be brought to one prevalence."
        )
    common = comparison.runs.pairing.n_common
    if common is not None and any(record.n_rows != common for record in records):
        notes.append(
            "Only the samples that all runs have in common are compared; values can differ from the evaluations'."
        )
    positives = {record.labels[record.positive] for record in records if record.positive is not None}
    if len(positives) > 1:
        notes.append("The runs name different positive classes; that of the first is meant throughout.")
    if comparison.weighted and comparison.runs.pairing.joint is not None and len(records) > 2:
        notes.append(
            "The samples have weights: Cochran's test that all runs have the same accuracy is left out, since it "
            "assumes equal weights."
        )
    return notes + comparison.notes
