"""What is said of runs that are compared: per metric, between metrics, and how it was found out."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

import numpy as np

from app.domain.evaluation import EvaluationRecord
from app.kernel.compare.rankings import Adjustment, adjust, cochran_q, confidence_set, kendall_tau, rank_runs
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Alternative
from app.services.compare.answers import (
    ComparedMetric,
    ComparedPair,
    ComparedRun,
    ComparisonDesign,
    Multiplicity,
    PredictionDrift,
    RankAgreement,
    Ranking,
    RunComparison,
)
from app.services.compare.disagreements import ComparedValue, compared_values, disagreements
from app.services.compare.joint_adjustment import ALL_DIFFERENCES, joint_adjustment
from app.services.compare.pairs.cost_ranges import CostQuestion, cost_comparisons
from app.services.compare.pairs.fold_tests import FoldTest, fold_findings, fold_test
from app.services.compare.pairs.paired_tests import LEFT_OUT_UNASKED, label_tests, paired_tests, tests_counts
from app.services.compare.pairs.recall_order import recall_orders
from app.services.processes.progress import progressed
from app.services.runs.comparison import Comparison
from app.services.runs.differences import RunDifference
from app.services.runs.draws.resampling import ChiSquaredTest, OmnibusTest
from app.services.runs.propriety import improper_preferences

# With a smaller share of draws in which every run has a value, nothing is said about who may be best.
_FEWEST_DEFINED = 0.95
_OF_ONE_METRIC = "all pairs of one metric, and its classes for a list"


@dataclass(frozen=True, slots=True, kw_only=True)
class Besides:
    """What is asked beside differences of metrics; None leaves it to what there is to say.

    Attributes:
        costs: What else about costs than what is said of any two classes.
        paired_tests: Are the tests of counts of runs on the same samples wanted?
    """

    costs: CostQuestion | None = None
    paired_tests: bool | None = None


def comparison_answer(
    comparison: Comparison,
    identifier: UUID,
    *,
    baseline: int | None,
    adjustment: Adjustment,
    asked: Besides,
) -> RunComparison:
    """Everything that is said about runs.

    Raises:
        OutOfReach: tests of counts are asked for and would take too long.
    """
    records, counted = comparison.runs.records, tests_counts(comparison, asked=asked.paired_tests)
    values = compared_values(comparison)
    folds = comparison.runs.fold_values(comparison.estimands)
    metrics: dict[str, ComparedMetric] = {}
    differences = []
    for index in range(len(comparison.estimands)):
        differences.append(comparison.differences(index))
        # What is said of all of them together is a step too.
        progressed(index + 1, len(comparison.estimands) + 1)
    adjusted = _adjusted(comparison, differences, adjustment)
    for value in values:
        index, place = value.estimand, value.place
        of_folds = None if folds is None else folds[index][:, :, place]
        pairs = _pairs(comparison, value, differences[index][place], adjusted[index][place], of_folds)
        metrics[value.name] = _metric(comparison, value, pairs)
    improper = improper_preferences(comparison.runs, comparison.estimands, comparison.pairs, comparison.prevalence)
    return RunComparison(
        id=identifier,
        evaluations=[_run(record) for record in records],
        baseline=None if baseline is None else records[baseline].id,
        design=_design(comparison, adjustment),
        metrics=metrics,
        rank_agreement=_agreement(values),
        disagreements=disagreements(comparison, values),
        omnibus=_omnibus(comparison),
        prediction_drift=_drift(comparison),
        recall_orders=recall_orders(comparison),
        paired_tests=paired_tests(comparison) if counted else None,
        cost_ranges=cost_comparisons(comparison, asked.costs),
        findings=[*improper, *fold_findings(folds, known=bool(comparison.runs.repeats))] or None,
        notes=[*_notes(comparison), *_unasked(comparison, asked, counted=counted)],
    )


def _adjusted(
    comparison: Comparison, differences: Sequence[Sequence[Sequence[RunDifference]]], adjustment: Adjustment
) -> list[Array]:
    """By estimand, adjusted p (V, P) of the differences of its values."""
    if adjustment is Adjustment.MAX_T:
        return joint_adjustment(comparison, differences)
    found = [np.array([[one.test.p for one in of_value] for of_value in by_value]) for by_value in differences]
    return [adjust(p.ravel(), adjustment).reshape(p.shape) for p in found]


def _run(record: EvaluationRecord) -> ComparedRun:
    return ComparedRun(id=record.id, model=record.model, dataset=record.dataset, n_samples=int(record.n_rows))


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
    records, prevalence = comparison.runs.records, comparison.prevalence
    estimand = comparison.estimands[value.estimand]
    assert estimand.preference is not None  # noqa: S101 - others are refused
    ranks, moved = ranks_of(value.scores), prevalence.moves(estimand)
    compared_at = "insensitive" if estimand.insensitive else "observed"
    if moved:
        compared_at = "reprojected" if prevalence.reaches(estimand) else "incomparable"
    return ComparedMetric(
        values=value.values.tolist(),
        ranks=ranks,
        best=records[ranks.index(1)].id if 1 in ranks else None,
        better=estimand.preference.better,
        prevalence=compared_at,
        ranking=_ranking(comparison, value),
        differences=pairs,
        observed_values=comparison.observed[value.estimand][:, value.place].tolist() if moved else None,
        omnibus=comparison.omnibus(value.estimand, value.place),
    )


def ranks_of(scores: Array) -> list[int | None]:
    """Ranks (R) from 1 for the highest, equal scores sharing one; None without a score."""
    return [None if np.isnan(score) else int((scores > score).sum()) + 1 for score in scores.tolist()]


def _ranking(comparison: Comparison, value: ComparedValue) -> Ranking:
    """Who may be best, from joint draws."""
    better = comparison.estimands[value.estimand].preference
    found = comparison.drawn(value.estimand)
    if found is None or better is None or np.isnan(value.scores).any():
        return Ranking()
    drawn = better.score(found[:, :, value.place])
    kept = drawn[np.isfinite(drawn).all(axis=1)]
    if len(kept) < _FEWEST_DEFINED * len(drawn):
        return Ranking()
    level = comparison.settings.level
    ranking = rank_runs(kept, level)
    possible = confidence_set(kept, value.scores, level).tolist()
    return Ranking(
        probability_best=ranking.best.tolist(),
        expected_ranks=ranking.expected_rank.tolist(),
        rank_intervals=[*zip(ranking.low.tolist(), ranking.high.tolist(), strict=True)],
        may_be_best=[record.id for record, may in zip(comparison.runs.records, possible, strict=True) if may],
    )


def _pairs(
    comparison: Comparison,
    value: ComparedValue,
    differences: Sequence[RunDifference],
    adjusted: Array,
    of_folds: Array | None,
) -> list[ComparedPair]:
    """The differences of the pairs in order; values (R, F) on the folds where all runs have the same."""
    estimand, settings = comparison.estimands[value.estimand], comparison.settings
    found = []
    for one, p in zip(differences, adjusted.tolist(), strict=True):
        folds = None
        if of_folds is not None:
            first, second = of_folds[one.first], of_folds[one.second]
            repeats = next(iter(comparison.runs.repeats), None)
            folds = fold_test(
                first,
                second,
                estimand.preference,
                repeats=repeats,
                mixed=comparison.runs.repeats_mixed,
                level=settings.level,
                alternative=settings.alternative,
                rope=settings.rope,
            )
        found.append(_pair(comparison.runs.records, one, p, folds))
    return found


def _pair(
    records: Sequence[EvaluationRecord], found: RunDifference, adjusted: float, folds: FoldTest | None
) -> ComparedPair:
    test = found.test
    return ComparedPair(
        a=records[found.first].id,
        b=records[found.second].id,
        difference=found.value,
        low=test.low,
        high=test.high,
        p_value=test.p,
        p_adjusted=adjusted,
        probability_a_better=found.first_better,
        probability_equivalent=found.equivalent,
        probability_error=found.probability_error,
        method=f"{found.limits}, {test.method}",
        p_range=None if test.smallest is None else (test.smallest, test.p),
        reason=test.reason,
        discordant=None if test.discordant is None else int(test.discordant),
        folds=folds,
    )


def _agreement(values: Sequence[ComparedValue]) -> RankAgreement:
    table = kendall_tau(np.stack([value.scores for value in values]))
    return RankAgreement(metrics=[value.name for value in values], kendall_tau=table.tolist())


def _omnibus(comparison: Comparison) -> OmnibusTest | None:
    """Have three or more paired runs the same accuracy?"""
    joint = comparison.runs.pairing.joint
    if joint is None or not comparison.independent or joint.n_runs < 3:
        return None
    return OmnibusTest(test="cochran_q", of="equal accuracy", found=ChiSquaredTest.of(cochran_q(joint)))


def _drift(comparison: Comparison) -> PredictionDrift | None:
    """Do two paired runs predict the classes equally often?"""
    joint = comparison.runs.pairing.joint
    if joint is None or joint.n_runs != 2:
        return None
    pair = joint if comparison.groups is None else comparison.groups.pair(0, 1)
    found = {one.test: one.found for one in label_tests(pair)}
    return PredictionDrift(
        message="Do the runs predict the classes equally often? This says nothing about which is right more often.",
        stuart_maxwell=found["stuart_maxwell"],
        bhapkar=found["bhapkar"],
        bowker=found["bowker"],
    )


def _unasked(comparison: Comparison, asked: Besides, *, counted: bool) -> list[str]:
    """What is left out unless it is asked for."""
    there = comparison.runs.pairing.joint is not None
    return [LEFT_OUT_UNASKED] if there and not counted and asked.paired_tests is None else []


def _notes(comparison: Comparison) -> list[str]:
    records, notes = comparison.runs.records, []
    prevalence = comparison.prevalence
    moved = [estimand for estimand in comparison.estimands if prevalence.moves(estimand)]
    reached = ", ".join(estimand.text for estimand in moved if prevalence.reaches(estimand))
    others = ", ".join(estimand.text for estimand in moved if not prevalence.reaches(estimand))
    if reached:
        notes.append(
            "The runs have different class mixes. Metrics that prevalence does not move are compared as they are; "
            f"{reached} at one prevalence, the mean of the runs' (design.common_prevalence), assuming that "
            "how each class is predicted does not depend on how frequent it is. The values as they were are in "
            "observed_values."
        )
    if others and prevalence.reachable:
        notes.append(
            f"The runs have different class mixes. Not compared: {others}. These depend on the number of samples, "
            "which runs brought to one prevalence no longer have."
        )
    elif others:
        notes.append(
            f"The runs have different class mixes. Not compared: {others}. Some run has no samples of a class, so the "
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
