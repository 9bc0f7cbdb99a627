"""Gates: rules that an evaluation is held against; stored, read, ended and checked, a sentence for each outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from functools import partial
from math import inf, isfinite, isnan, nan
from typing import Any, Literal
from uuid import UUID

from app.domain.decisions import CheckedGate, CheckFilter, CheckSummary, GateCheck, GateVersion
from app.domain.errors import (
    GateIsForOtherData,
    IncomparableLabels,
    IncomparableRuns,
    InvalidExpression,
    InvalidInput,
    NotComparable,
    NotFound,
    OutOfReach,
)
from app.domain.evaluation import EvaluationName, EvaluationRecord, Named, Page, Reference
from app.domain.expressions.expressions import refuse_about_sample
from app.domain.findings import Finding
from app.domain.identifiers import time_of
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import UNIT_KINDS
from app.domain.members import LEFT_OUT, as_json, members
from app.domain.rules import Definition, Demand, Rule, check_rules, definition_of
from app.domain.wording import PLAIN, about, numbered, percent, significant, whole
from app.kernel.compare.gates import (
    Bound,
    ValueWithLimits,
    Verdict,
    combine,
    samples_to_settle,
    verdict_of,
)
from app.kernel.metrics.expression import grows
from app.kernel.numerics.arrays import kept
from app.kernel.uncertainty.draws import Alternative, seed_of
from app.services.admission import Admission
from app.services.estimands import Better, Estimand, make_estimand
from app.services.estimates.estimate import Estimates, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate
from app.services.estimates.report_intervals import limit_findings
from app.services.history import LEVEL, HistoryService, Watched
from app.services.ports import EvaluationStore, GateStore
from app.services.present import made_id
from app.services.processes.compute import ComputePool
from app.services.processes.worker import progressed
from app.services.rank import LeaderboardQuery, LeaderboardService
from app.services.reasons import slice_findings, why_undefined
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison, improper_preferences
from app.services.runs.matrix_draws import InferenceSettings
from app.services.runs.pairing import KeptSamples, read_labels, read_outputs
from app.services.stored import identified, inputs_of_all, query_of, records_of


@dataclass(frozen=True, slots=True, kw_only=True)
class DecidedOn:
    """The limits that a verdict was decided on.

    Attributes:
        reason: Why they are not those of the report; `null` where they are.
    """

    low: float | None
    high: float | None
    level: float
    reason: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassVerdict:
    """The result of one class under a rule on all classes; `low` and `high` are the limits of the report."""

    verdict: Verdict
    value: float | None
    low: float | None
    high: float | None
    decided_on: DecidedOn


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """Result of one rule.

    Attributes:
        rule: As it was put.
        value: The metric, or candidate less baseline.
        low: Lower limit, as a report or a comparison has it at the level of the rule.
        high: Upper limit.
        level: Level of the limits.
        decided_on: The limits that decided.
        method: How the interval was made.
        needed_samples: How many samples would settle an open rule, if the value stayed.
        needed_at_least: How many would, if the true value were that limit which is farther from what the rule asks.
        power: The probability with which so many samples settle it.
        decided_by: The class that decides.
    """

    rule: Mapping[str, Any]
    verdict: Verdict
    quantity: Literal["value", "difference"]
    value: float | None
    low: float | None
    high: float | None
    level: float
    decided_on: DecidedOn
    method: str | None
    needed_samples: int | None
    needed_at_least: int | None = field(default=None, metadata=LEFT_OUT)
    power: float | None = field(default=None, metadata=LEFT_OUT)
    message: str
    candidate_value: float | None = field(default=None, metadata=LEFT_OUT)
    baseline_value: float | None = field(default=None, metadata=LEFT_OUT)
    decided_by: str | None = field(default=None, metadata=LEFT_OUT)
    each: Mapping[str, ClassVerdict] | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinimumSamples:
    """The demand for a number of samples."""

    minimum_samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplesResult:
    """Are there as many samples as the gate asks for?

    Attributes:
        value: How many there are; `null` for weights and rates.
    """

    rule: MinimumSamples
    verdict: Verdict
    value: float | None
    low: float | None = None
    high: float | None = None
    needed_samples: int | None
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRun(EvaluationName):
    """The checked run, or the baseline.

    Attributes:
        matrix_digest: Digest of its matrix, which tells what was judged apart from what was sent later.
    """

    matrix_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAnswer:
    """Result of checking an evaluation against a version of a gate.

    Attributes:
        exit_code: pass 0, fail 1, inconclusive 2: for scripts.
        findings: Warnings that bear on the rules: limits that are rough, and scores that are not proper where a proper
            score prefers the other run; of the best run on its data what to expect on new samples.
    """

    id: UUID
    created_at: datetime
    gate: CheckedGate
    evaluation: CheckedRun
    baseline: CheckedRun | None
    verdict: Verdict
    exit_code: Literal[0, 1, 2]
    results: Sequence[RuleResult | SamplesResult]
    findings: Sequence[Finding] | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialVerdict:
    """The verdict that rules would have given on an evaluation.

    Attributes:
        verdict: `null` where they cannot be held against it.
        reason: Why not.
    """

    verdict: Verdict | None
    results: Sequence[RuleResult | SamplesResult] = ()
    findings: Sequence[Finding] | None = field(default=None, metadata=LEFT_OUT)
    reason: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class TriedRun:
    """One evaluation under the rules of a trial.

    Attributes:
        saved: What the rules of the gate that was named say.
    """

    evaluation: CheckedRun
    created_at: datetime
    tried: TrialVerdict
    saved: TrialVerdict | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateTrial:
    """The verdicts that rules would have given on stored evaluations, the latest first.

    Attributes:
        gate: The gate whose rules were tried beside them.
    """

    gate: CheckedGate | None = field(default=None, metadata=LEFT_OUT)
    items: Sequence[TriedRun]


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEstimate(ValueWithLimits):
    """A value with its limits, or a difference with them and the two values that it is of.

    Attributes:
        samples: How many the limits are from; NaN without any, and where more of them move the value itself.
        units: What these are called.
        why: Why limits are missing, where that is known from the run.
        undefined: Why the value itself is missing.
    """

    name: str
    level: float = nan
    method: str | None = None
    samples: float = nan
    units: str = "samples"
    candidate: float = nan
    baseline: float = nan
    why: str = ""
    undefined: str = ""


def rule_estimands(definition: Definition, runs: Runs) -> list[Estimand]:
    """Return the estimand of each rule.

    Raises:
        InvalidExpression: a metric makes no sense for the classes of the run, or describes the sample; its pointer is
            that of the rule.
    """
    known: dict[str, Estimand] = {}
    inputs = inputs_of_all(runs.records)
    for index, rule in enumerate(definition.rules):
        try:
            if rule.metric not in known:
                known[rule.metric] = make_estimand(
                    rule.metric, runs.labels, runs.positive, inputs, *runs.judged, sliceable=True
                )
                refuse_about_sample(known[rule.metric].expression, rule.metric)
        except InvalidExpression as error:
            error.pointer = f"/rules/{index}/metric"
            raise
    return [known[rule.metric] for rule in definition.rules]


class RuleEstimates:
    """Estimates for the rules of one check. Every rule sees the same draws, which follow from the runs alone.

    The first of the runs is the candidate, the second the baseline, if there is one.

    Every rule has to pass, and every class of it, so each may have its own error of passing by chance (intersection and
    union). One that fails is enough, so those of failing by chance add up, and each value that could has its share
    (Bonferroni): the chance that a gate fails without a reason is at most the largest one-sided error of its rules.
    ``chances`` counts the ends of intervals that can fail a rule by chance.
    """

    def __init__(self, definition: Definition, estimands: Sequence[Estimand], runs: Runs) -> None:
        self._runs, self._candidate = runs, runs.data[0]
        task = runs.records[0].task
        self._units = (None if task is None else UNIT_KINDS[task].unit) or "samples"
        asked = list(zip(definition.rules, estimands, strict=True))
        self.chances = sum(_chances(rule, estimand) for rule, estimand in asked)
        alone = [one for one in asked if not one[0].demand.needs_baseline and one[0].demand is not Demand.UNCHANGED]
        self._alone: dict[LimitSettings, dict[str, Estimand]] = {}
        for rule, estimand in alone:
            self._alone.setdefault(_reported(rule), {})[estimand.text] = estimand
        self._measured = {
            estimand: self._estimates(_reported(rule), _reported(rule))[estimand.text] for rule, estimand in alone
        }
        compared = {id(estimand): estimand for rule, estimand in asked if rule.demand.needs_baseline}
        self._without_limits = _without_limits(runs) if len(runs) > 1 and compared else ""
        self._both = Comparison(
            runs,
            [*compared.values()],
            InferenceSettings(seed=runs.seed(), rope=0.0),
            pairs=[(0, 1)] if len(runs) > 1 else [],
        )

    @property
    def findings(self) -> list[Finding]:
        """Scores that are not proper where a proper one prefers the other run, and why limits are rough."""
        return [
            *improper_preferences(self._both),
            *self._both.findings,
            *limit_findings(self._measured, self._candidate),
            *slice_findings(self._measured, self._candidate),
        ]

    @kept
    def _estimates(self, reported: LimitSettings, settings: LimitSettings) -> dict[str, Estimates]:
        """Estimates of the candidate by metric, of those that are reported alike: all of them see the same draws."""
        alike = self._alone[reported]
        return dict(zip(alike, estimate([*alike.values()], self._candidate, settings), strict=True))

    def of(self, rule: Rule, estimand: Estimand, *, failing: bool = False) -> list[RuleEstimate]:
        """The values of the candidate, or candidate less baseline, with the limits of a report, which pass a rule, or
        with those that fail it. A guardrail passes where it does not fail.

        Raises:
            NotComparable: both cannot be compared on the metric.
        """
        reported = _reported(rule)
        settings = replace(reported, together=max(self.chances, 1)) if failing else reported
        if rule.demand.needs_baseline:
            return self._differences(estimand, settings)
        return [
            RuleEstimate(
                one.value,
                one.low,
                one.high,
                name=name,
                level=settings.stated_level_of_each,
                method=one.method,
                samples=nan if grows(estimand.expression) else self._runs.records[0].n_rows,
                units=self._units,
                why="" if one.reason is None else f", since {one.reason}",
                undefined=f": {why_undefined(estimand.expression, self._candidate, place)[1]}"
                if isnan(one.value)
                else "",
            )
            for place, (name, one) in enumerate(
                zip(estimand.names, self._estimates(reported, settings)[estimand.text], strict=True)
            )
        ]

    def _differences(self, estimand: Estimand, settings: LimitSettings) -> list[RuleEstimate]:
        if estimand.preference is None or estimand.preference.better is Better.NEAREST:
            raise NotComparable(f"{estimand.text} cannot say whether a run is better than another")
        both, found = self._both, list[RuleEstimate]()
        index, level = both.estimands.index(estimand), settings.stated_level_of_each
        tests = None if self._without_limits else both.differences(index, level, settings.alternative)
        for place, (name, values) in enumerate(zip(estimand.names, both.values[index].T.tolist(), strict=True)):
            a, b = values
            one = RuleEstimate(a - b, nan, nan, name=name, units=self._units, candidate=a, baseline=b)
            if tests is None:
                found.append(replace(one, why=f", since {self._without_limits}"))
                continue
            (test,), without = tests[place], both.without(index)
            undefined = f": {without}" if without else ""
            if not without and (missing := [run for run, value in enumerate(values) if isnan(value)]):
                lacking = (self._runs.data if estimand.is_of_slices else self._runs.scored)[missing[0]]
                _, reason = why_undefined(estimand.expression, lacking, place)
                undefined = f" as that of the {('candidate', 'baseline')[missing[0]]} is: {reason}"
            found.append(
                replace(
                    one,
                    value=test.difference,
                    low=test.low,
                    high=test.high,
                    level=level,
                    method=f"{test.limits}, {self._runs.pairing.design.value}",
                    samples=nan if grows(estimand.expression) else self._runs.n_common,
                    why=f", since {test.reason}" if test.reason and isnan(test.low) else "",
                    undefined=undefined,
                )
            )
        return found


def _without_limits(runs: Runs) -> str:
    """Return why differences of candidate and baseline have no limits; nothing where they have some."""
    if any(record.content is not Content.counts and not record.is_weighted for record in runs.records):
        return NoLimits.NO_COUNTS
    if runs.lacking_weights is not None:
        return NoLimits.NO_WEIGHTS
    try:
        _ = runs.groupings
    except IncomparableRuns as error:
        return error.detail
    return ""


def _reported(rule: Rule) -> LimitSettings:
    """Settings of a report's limits."""
    return LimitSettings(level=rule.level, proportions=rule.proportion_interval, alternative=rule.alternative)


def less_is_better(rule: Rule, estimand: Estimand) -> bool:
    """Does a rule ask for small values, or for differences to a baseline below 0?"""
    if not rule.demand.needs_baseline:
        return rule.demand is Demand.MAX
    return estimand.preference is not None and estimand.preference.better is Better.LOWER


def _chances(rule: Rule, estimand: Estimand) -> int:
    """Return the number of ends of intervals that can fail a rule by chance; 0 for an estimate without limits, and
    where the end is open that would fail it.
    """
    passing = Alternative.LESS if less_is_better(rule, estimand) else Alternative.GREATER
    if rule.demand is Demand.UNCHANGED or rule.bound is Bound.VALUE or rule.alternative is passing:
        # Claims of a change have an error rate of their own.
        return 0
    return len(estimand.names) * (2 if rule.demand is Demand.EQUIVALENT else 1)


EXIT_CODES: dict[Verdict, Literal[0, 1, 2]] = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 2}
# The probability that as many samples as are named settle a rule.
_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Checked:
    """Verdict of all rules together, what is said of each, and of scores that are not proper."""

    verdict: Verdict
    results: Sequence[RuleResult | SamplesResult]
    findings: Sequence[Finding]


def check_gate(
    definition: Definition, estimands: Sequence[Estimand], runs: Runs, held: Sequence[Watched] = ()
) -> Checked:
    """Hold a run against all rules.

    The first of the runs is the candidate, the second the baseline, if there is one; ``held`` is what the history says
    for each rule on it.

    Raises:
        NotComparable: candidate and baseline cannot be compared on a metric.
        InvalidExpression: a metric is of slices that a run does not have.
    """
    for index, (rule, estimand) in enumerate(zip(definition.rules, estimands, strict=True)):
        if estimand.is_of_slices:
            looked_at = runs if rule.demand.needs_baseline else runs.alone(0)
            looked_at.refuse_unknown_slices(estimand.expression, f"/rules/{index}/metric")
    estimates, watched = RuleEstimates(definition, estimands, runs), iter(held)
    results: list[RuleResult | SamplesResult] = []
    for rule, estimand in zip(definition.rules, estimands, strict=True):
        unchanged = rule.demand is Demand.UNCHANGED
        results.append(_watched(rule, next(watched)) if unchanged else _judged(rule, estimand, estimates))
        progressed(len(results), len(estimands))
    if definition.minimum_samples:
        results.append(_enough(definition.minimum_samples, runs.records[0]))
    return Checked(combine([result.verdict for result in results]), results, estimates.findings)


def _enough(minimum: int, record: EvaluationRecord) -> SamplesResult:
    counted = record.n_counted
    enough = counted is not None and counted >= minimum
    lacking = ", and there are fewer" if counted is not None else ", and how many there are is not known"
    return SamplesResult(
        rule=MinimumSamples(minimum_samples=minimum),
        verdict=Verdict.PASS if enough else Verdict.INCONCLUSIVE,
        value=counted,
        needed_samples=None if enough else minimum,
        message=f"{numbered(minimum)} {'is' if minimum == 1 else 'are'} asked for{'' if enough else lacking}.",
    )


_EXPECTED = "where the value was expected had nothing changed since the last change"


def _watched(rule: Rule, held: Watched) -> RuleResult:
    """Judge a rule on the history: it fails where a change is claimed, and that is where a value is unexpected."""
    one, band = held.value, held.value.expected
    verdict = Verdict.INCONCLUSIVE if band is None else Verdict.PASS if held.change is None else Verdict.FAIL
    low, high = (None, None) if band is None else (band.low, band.high)
    value, ends = PLAIN.estimate(one.value, low, high)
    said = f"{rule.metric} is {value}"
    if held.change is not None:
        message = f"{said}, and {ends} was expected had nothing changed. {held.change.message}"
    elif band is not None:
        message = f"{said}, within the {ends} that was expected had nothing changed since the last change."
    elif one.reason is not None:
        message = f"{said}, of which no change can be told: {one.reason}."
    else:
        message = f"{said}, the first value since the last change: there is nothing yet to hold it against."
    return RuleResult(
        rule=rule.stated,
        verdict=verdict,
        quantity="value",
        value=one.value,
        low=one.low,
        high=one.high,
        level=LEVEL,
        decided_on=DecidedOn(low=low, high=high, level=rule.level, reason=_EXPECTED),
        method=None,
        needed_samples=None,
        message=message,
    )


def _judged(rule: Rule, estimand: Estimand, estimates: RuleEstimates) -> RuleResult:
    sign, chances = -1.0 if less_is_better(rule, estimand) else 1.0, estimates.chances
    reported = surer = estimates.of(rule, estimand)
    open_or_failed = any(_verdict(rule, one, sign) is not Verdict.PASS for one in reported)
    if rule.bound is Bound.UPPER or (rule.bound is Bound.LOWER and open_or_failed):
        surer = estimates.of(rule, estimand, failing=True)
    found = [_one_judged(rule, *pair, sign) for pair in zip(reported, surer, strict=True)]
    verdict = combine([one.verdict for one in found])
    # The class that decides: the worst verdict, and among equals the one nearest to failing.
    worst = [one for one in found if one.verdict is verdict]
    decisive = min(worst, key=lambda one: -inf if isnan(one.reported.value) else _held(rule, one.reported, sign))
    result = _result(rule, decisive, [one for one in found if one is not decisive], chances, sign)
    if not estimand.is_list:
        return result
    return replace(
        result,
        decided_by=decisive.reported.name,
        each={
            one.reported.name: ClassVerdict(
                verdict=one.verdict,
                value=one.reported.value,
                low=one.reported.low,
                high=one.reported.high,
                decided_on=_decided_on(rule, one, chances),
            )
            for one in found
        },
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """A verdict with the estimate that decides it.

    Attributes:
        reported: With the limits of a report.
        decided: With the limits that decided.
        unsure: Beyond the limit, which among so many values can be chance.
        settling: With the limits that have to exclude the limit of the rule, where the verdict is open.
    """

    reported: RuleEstimate
    decided: RuleEstimate
    verdict: Verdict
    unsure: bool
    settling: RuleEstimate


def _one_judged(rule: Rule, reported: RuleEstimate, surer: RuleEstimate, sign: float) -> _Judged:
    """Judge one value. The limits that allow for all values that can fail by chance decide about failures and
    guardrails. Of an open rule they say how many samples show a failure.
    """
    verdict = _verdict(rule, reported, sign)
    if rule.bound is Bound.UPPER or (rule.bound is Bound.LOWER and verdict is Verdict.FAIL):
        surely = _verdict(rule, surer, sign)
        unsure = rule.bound is Bound.LOWER and surely is not Verdict.FAIL
        return _Judged(reported, surer, surely, unsure=unsure, settling=surer)
    wrong = _held(rule, reported, sign) < _floor(rule)
    return _Judged(reported, reported, verdict, unsure=False, settling=surer if wrong else reported)


def _decided_on(rule: Rule, judged: _Judged, chances: int) -> DecidedOn:
    one, reason = judged.decided, None
    if rule.bound is Bound.VALUE:
        reason = "the rule compares the value alone"
    elif one.level != judged.reported.level:
        reason = f"they allow for {chances} values that can fail by chance"
    return DecidedOn(low=one.low, high=one.high, level=rule.level if isnan(one.level) else one.level, reason=reason)


def _verdict(rule: Rule, limits: ValueWithLimits, sign: float) -> Verdict:
    """Return the verdict on an interval; ``sign`` is -1 where less is better."""
    interval = limits if sign > 0 else limits.mirrored()
    sides = [interval, interval.mirrored()] if rule.demand is Demand.EQUIVALENT else [interval]
    strictly = rule.demand.needs_baseline
    return combine([verdict_of(side, _floor(rule), rule.bound, strictly=strictly) for side in sides])


def _held(rule: Rule, one: RuleEstimate, sign: float) -> float:
    """A value in the unit of what is better the higher it is."""
    return -abs(one.value) if rule.demand is Demand.EQUIVALENT else sign * one.value


def _floor(rule: Rule) -> float:
    """The limit in the unit of what is better the higher it is."""
    return rule.limit if rule.demand in (Demand.MIN, Demand.BETTER) else -rule.limit


def _result(rule: Rule, judged: _Judged, others: Sequence[_Judged], chances: int, sign: float) -> RuleResult:
    one, verdict = judged.reported, judged.verdict
    threshold = sign * _floor(rule)
    if rule.demand is Demand.EQUIVALENT:
        # Of two limits the one that is nearer.
        threshold = rule.limit if one.value > 0 else -rule.limit
    needed = at_least = nan
    if verdict is Verdict.INCONCLUSIVE:
        asked = [(judged.settling, threshold)]
        if _held(rule, one, sign) >= _floor(rule):
            # It fails by one value beyond one limit; to pass, all have to be on the right side.
            sides = (threshold, -threshold) if rule.demand is Demand.EQUIVALENT else (threshold,)
            asked = [(each.settling, side) for each in (judged, *others) for side in sides]
        needed, at_least = _needed(asked, rule.alternative)
    compared = rule.demand.needs_baseline
    return RuleResult(
        rule=rule.stated,
        verdict=verdict,
        quantity="difference" if compared else "value",
        value=one.value,
        low=one.low,
        high=one.high,
        level=rule.level,
        decided_on=_decided_on(rule, judged, chances),
        method=one.method,
        needed_samples=int(needed) if isfinite(needed) else None,
        needed_at_least=int(at_least) if isfinite(needed) and isfinite(at_least) else None,
        power=_POWER if isfinite(needed) else None,
        message=_sentence(rule, judged, chances, threshold, needed, at_least),
        candidate_value=one.candidate if compared else None,
        baseline_value=one.baseline if compared else None,
    )


def _needed(asked: Sequence[tuple[RuleEstimate, float]], alternative: Alternative) -> tuple[float, float]:
    """Return how many samples settle an open rule if the values stay, and if the first is the limit farther away."""
    one, _ = asked[0]
    error = (1.0 - one.level) / (2.0 if alternative is Alternative.TWO_SIDED else 1.0)
    # Limits on one side say nothing of how far the value may be on the other, where they stand at the end of its range.
    held = [
        (ValueWithLimits(each.value, *alternative.opened(each.low, each.high, (None, None))), threshold)
        for each, threshold in asked
    ]
    settled, at_least = samples_to_settle(held, one.samples, error=error, power=_POWER)
    return settled, at_least if alternative is Alternative.TWO_SIDED else inf


def _limits(alternative: Alternative, ends: str, level: float) -> str:
    """Return the limits that were asked for in words; ``ends`` are both of them as they are written."""
    covered, (low, high) = percent(round(level, 5), None), ends.split(" to ")
    match alternative:
        case Alternative.GREATER:
            return f"a lower {covered} limit of {low}"
        case Alternative.LESS:
            return f"an upper {covered} limit of {high}"
    return f"{covered} limits {low} and {high}"


def _sentence(rule: Rule, judged: _Judged, chances: int, threshold: float, needed: float, at_least: float) -> str:
    one, verdict = judged.decided, judged.verdict
    what = f"The difference in {one.name}, candidate less baseline," if rule.demand.needs_baseline else one.name
    limit = significant(threshold)
    if isnan(one.value):
        run = "" if rule.demand.needs_baseline else " for this run"
        return f"{what} is undefined{run}{one.undefined or ', so nothing can be said'}."
    limited = not isnan(one.low + one.high)
    value, ends = PLAIN.estimate(
        one.value,
        one.low if limited else None,
        one.high if limited else None,
        sign=rule.demand.needs_baseline,
        near=(threshold,),
    )
    shown = f"{what} is {value}"
    if rule.bound is Bound.VALUE:
        relation = "on the right side of" if verdict is Verdict.PASS else "on the wrong side of"
        return f"{shown}, {relation} {limit}; the uncertainty of the value was not considered."
    if not limited:
        return f"{shown}, without an interval{one.why}: no bound can be compared with {limit}."
    shown += f" with {_limits(rule.alternative, ends, one.level)}"
    match verdict:
        case Verdict.PASS if rule.bound is Bound.UPPER:
            return f"{shown}: not beyond {limit} for certain."
        case Verdict.PASS:
            return f"{shown}: on the right side of {limit} even at the worse end."
        case Verdict.FAIL:
            return f"{shown}: on the wrong side of {limit} even at the better end."
    if judged.unsure:
        shown += f", which allow for {chances} values that can fail by chance"
    if not isfinite(needed):
        return f"{shown}: {limit} cannot be excluded, and no number of samples settles it if the values stay."
    fewest = (
        f", and about {about(at_least)} if it were as far from the limit as these limits allow"
        if at_least < needed
        else ""
    )
    return (
        f"{shown}: {limit} cannot be excluded. About {about(needed)} {one.units} instead of {whole(one.samples)} would "
        f"settle it with a chance of {percent(_POWER, None)} if the value stayed{fewest}."
    )


@dataclass(frozen=True, slots=True)
class GateService:
    """Use cases of gates."""

    store: EvaluationStore
    gates: GateStore
    _: KW_ONLY
    history_of: HistoryService
    boards: LeaderboardService
    compute: ComputePool
    admission: Admission

    async def put(self, project: str, name: str, stated: Mapping[str, Any]) -> tuple[GateVersion, bool]:
        """Make the definition the latest version; True when there was no such gate.

        Raises:
            InvalidInput: a metric makes no sense.
        """
        check_rules(definition_of(stated))
        async with self.admission:
            return await self.gates.put(project, name, stated)

    async def read(self, project: str, name: str, version: int | None = None) -> GateVersion:
        """A version, the latest by default."""
        return NotFound.unless(await self.gates.get(project, name, version), _named(name, version))

    async def versions(self, project: str, name: str) -> Sequence[GateVersion]:
        """All versions, latest first, also of a gate that was deleted."""
        return NotFound.unless(await self.gates.versions(project, name) or None, _named(name))

    async def delete(self, project: str, name: str) -> None:
        """End a gate. Its versions and checks can still be read."""
        async with self.admission:
            NotFound.unless(await self.gates.delete(project, name), _named(name))

    async def page(self, project: str, limit: int, after: str | None) -> Page[GateVersion, str]:
        """The latest versions by name."""
        return await self.gates.page(project, limit, after)

    async def check(self, project: str, name: str, evaluation: Named, baseline: Named | None) -> CheckAnswer:
        """Hold an evaluation against the latest version, and keep what was found.

        Raises:
            NotFound: no such gate or evaluation.
            InvalidInput: a rule needs a baseline and there is none.
            InvalidExpression: a metric makes no sense for the classes of the run.
            IncomparableLabels: the baseline has other classes.
            IncomparableRuns: a rule needs probabilities that a run has not.
            OutOfReach: there are too many of them.
            GateIsForOtherData: the gate does not apply to the evaluation, or to the data of the baseline.
        """
        gate = await self.read(project, name)
        definition = definition_of(members(gate))
        records, found = await self._checked(project, definition, evaluation, baseline)
        findings = [*found.findings, *await self._chosen(project, definition, records[0])]
        identifier = made_id()
        checked, *others = (_run(record) for record in records)
        answer = CheckAnswer(
            id=identifier,
            created_at=time_of(identifier),
            gate=CheckedGate.of(gate.name, gate.version),
            evaluation=checked,
            baseline=others[0] if others else None,
            verdict=found.verdict,
            exit_code=EXIT_CODES[found.verdict],
            results=found.results,
            findings=findings or None,
        )
        check = GateCheck(
            id=answer.id,
            gate=gate.name,
            version=int(gate.version),
            evaluation=checked.id,
            baseline=others[0].id if others else None,
            verdict=answer.verdict,
            answer=as_json(answer),
        )
        async with self.admission:
            await self.gates.add_check(project, check)
        return answer

    async def _chosen(self, project: str, definition: Definition, record: EvaluationRecord) -> list[Finding]:
        """Say how much of a value is owed to the run being the best of those on its data, by the first rule on a value
        that is stored with runs.
        """
        values = [one for one in definition.rules if one.demand in (Demand.MIN, Demand.MAX)]
        for query in (LeaderboardQuery(dataset=record.dataset, metric=one.metric, level=one.level) for one in values):
            try:
                leader = await self.boards.leader(project, query)
                if leader is None:
                    continue
                # Of all runs but the best nothing else is computed.
                luck = (await self.boards.rank(project, query)).winner if leader == record.id else None
            except (OutOfReach, IncomparableRuns, InvalidExpression):
                # What ranks no runs chose none of them.
                continue
            if luck is None:
                return []
            said = f"{query.metric}: {luck.message}"
            told = ("among", "corrected_value", "expected_optimism", "low", "high", "fresh_low", "fresh_high")
            facts = {name: getattr(luck, name) for name in told}
            return [Finding.note("best_of_many", said, metric=query.metric, level=query.level, **facts)]
        return []

    async def trial(
        self,
        project: str,
        stated: Mapping[str, Any],
        among: Reference,
        *,
        latest: int,
        alone: UUID | None = None,
        baseline: Named | None,
        beside: str | None,
    ) -> GateTrial:
        """Check rules against the latest evaluations, or one ``alone``; nothing is stored.

        Raises:
            NotFound: there is no such gate or evaluation.
            InvalidInput: a metric makes no sense.
        """
        definitions = [definition_of(stated)]
        check_rules(definitions[0])
        gate = None if beside is None else await self.read(project, beside)
        if gate is not None:
            definitions.append(definition_of(members(gate)))
        identifiers = [alone] if alone is not None else []
        if alone is None:
            page = await self.store.page(project, replace(query_of(among), limit=latest))
            identifiers = [one.id for one in page.items]
        records = await self.store.get_many(project, identifiers)
        if alone is not None and not records:
            raise NotFound(f"there is no evaluation {alone}", pointer="/evaluations/id")
        items = []
        for record in (records[one] for one in identifiers if one in records):
            tried, *saved = [await self._tried(project, one, record, baseline) for one in definitions]
            items.append(
                TriedRun(
                    evaluation=_run(record),
                    created_at=record.created_at,
                    tried=tried,
                    saved=saved[0] if saved else None,
                )
            )
        return GateTrial(gate=None if gate is None else CheckedGate.of(gate.name, gate.version), items=items)

    async def _tried(
        self, project: str, definition: Definition, record: EvaluationRecord, baseline: Named | None
    ) -> TrialVerdict:
        try:
            _, found = await self._checked(project, definition, record.id, baseline)
        except (GateIsForOtherData, IncomparableLabels, IncomparableRuns, InvalidExpression, OutOfReach) as error:
            return TrialVerdict(verdict=None, reason=error.detail)
        return TrialVerdict(verdict=found.verdict, results=found.results, findings=found.findings or None)

    async def _checked(
        self, project: str, definition: Definition, evaluation: Named, baseline: Named | None
    ) -> tuple[Sequence[EvaluationRecord], Checked]:
        """The evaluations as they are stored, and what the rules say of them."""
        if definition.needs_baseline and baseline is None:
            raise InvalidInput.at("/baseline", "missing_field", "expected a baseline, with which a rule compares")
        named = [evaluation] if baseline is None or not definition.needs_baseline else [evaluation, baseline]
        pointers = _POINTERS[: len(named)]
        place = definition.applies_to or Reference()
        # The baseline may be another model on the same data.
        places = [place, Reference(dataset=place.dataset)][: len(named)]
        looked = [one.within(at) if isinstance(one, Reference) else one for one, at in zip(named, places, strict=True)]
        identifiers = await identified(self.store, project, looked, pointers)
        aligned = Runs.align(await records_of(self.store, project, identifiers, pointers), "/baseline")
        for record, at, pointer in zip(aligned.records, places, pointers, strict=True):
            if not at.is_of(record):
                own = Reference(record.model, record.dataset)
                raise GateIsForOtherData(f"the gate is for {at}; {record.id} is of {own}", pointer=pointer)
        estimands = rule_estimands(definition, aligned)
        runs = await self._paired(project, definition, estimands, aligned)
        levels = [(rule.metric, rule.level) for rule in definition.watched]
        try:
            held = await self.history_of.held(project, aligned.records[0], levels) if levels else ()
        except (IncomparableRuns, OutOfReach) as error:
            error.pointer = pointers[0]
            raise
        return aligned.records, await self.compute.run(partial(check_gate, definition, estimands, runs, held))

    async def read_check(self, project: str, name: str, identifier: UUID) -> Mapping[str, Any]:
        """A check as it was answered."""
        check = await self.gates.get_check(project, name, identifier)
        return NotFound.unless(check, f"check {identifier} of the gate {name!r}").answer

    async def checks(
        self, project: str, asked: CheckFilter, limit: int, before: UUID | None
    ) -> Page[CheckSummary, UUID]:
        """The checks of a gate or of all, latest first, also of gates that were deleted.

        Raises:
            NotFound: there was never a gate of that name.
        """
        if asked.gate is not None:
            await self.versions(project, asked.gate)
        page = await self.gates.checks(project, asked, limit, before)
        return Page(tuple(check.shown for check in page.items), page.next_position)

    async def history(self, project: str, name: str, limit: int) -> Sequence[Mapping[str, Any]]:
        """The latest checks of a gate as they were answered, latest first."""
        page = await self.gates.checks(project, CheckFilter(gate=name), limit, None)
        return [check.answer for check in page.items]

    async def last_checks(self, project: str, names: Sequence[str]) -> Mapping[str, CheckSummary]:
        """The latest check of each of the gates that have one."""
        found = await self.gates.last_checks(project, names)
        return {name: check.shown for name, check in found.items()}

    async def _paired(self, project: str, definition: Definition, estimands: Sequence[Estimand], runs: Runs) -> Runs:
        """The runs with what the rules need of their samples."""
        needing = [
            (rule.demand.needs_baseline, estimand.scored, estimand.text)
            for rule, estimand in zip(definition.rules, estimands, strict=True)
            if estimand.scored or estimand.is_of_slices
        ]
        if not needing:
            return runs.pair(await read_labels(self.store, project, runs.records))
        compared, scored, metric = max(needing, key=lambda one: one[:2])
        # The baseline's are needed only where it is compared by them.
        looked_at = runs.records if compared else runs.records[:1]
        kept = await read_outputs(self.store, project, looked_at, metric, scored=scored, pointers=_POINTERS)
        if len(looked_at) < len(runs):
            kept = KeptSamples({**(await read_labels(self.store, project, runs.records)).samples, **kept.samples})
        return runs.pair(kept)


# Of the candidate and the baseline.
_POINTERS = "/evaluation", "/baseline"


def _run(record: EvaluationRecord) -> CheckedRun:
    return CheckedRun.of(record, matrix_digest=f"{seed_of(record.labels, record.counts):016x}")


def _named(name: str, version: int | None = None) -> str:
    return f"gate {name!r}" + ("" if version is None else f" with version {version}")
