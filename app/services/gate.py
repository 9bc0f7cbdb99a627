"""Gates: rules that an evaluation is held against; stored, read, ended and checked, a sentence for each outcome."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime
from functools import partial
from math import ceil, inf, isfinite, isnan, nan
from typing import Any, Literal
from uuid import UUID

from app.domain.decisions import CheckSummary, Gate, GateCheck, GateVersion
from app.domain.errors import InvalidExpression, InvalidInput, NotComparable, NotFound
from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef, Page
from app.domain.expressions.expressions import refuse_about_sample
from app.domain.findings import Finding
from app.domain.identifiers import time_of
from app.domain.inputs.content import Content
from app.domain.members import LEFT_OUT, as_json
from app.domain.rules import Definition, Demand, Rule, check_rules, definition_of
from app.domain.wording import PLAIN, about, percent, significant, whole
from app.kernel.compare.gates import (
    MOST_SAMPLES,
    Bound,
    ValueWithLimits,
    Verdict,
    combine,
    equivalence,
    guardrail,
    non_inferiority,
    paired_sample_size,
    samples_to_settle,
    superiority,
    verdict_of,
)
from app.kernel.matrix.table import Table
from app.kernel.metrics.proportion import Rate
from app.kernel.uncertainty.draws import Alternative, seed_of
from app.services.acting import made_id
from app.services.admission import Admission
from app.services.estimands import Better, Estimand, make_estimand
from app.services.estimates.estimate import Estimates, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate
from app.services.estimates.run_data import RunData, run_data
from app.services.ports import EvaluationStore, GateStore, PairedLabels
from app.services.processes.compute import ComputePool
from app.services.processes.worker import progressed
from app.services.reasons import why_missing
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison, improper_preferences
from app.services.runs.draws.matrices import CommonPrevalence, InferenceSettings
from app.services.runs.pairing import KeptSamples, PairingMode, read_labels, read_outputs
from app.services.stored import Named, identified, inputs_of_all


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassVerdict:
    """The result of one class under a rule on all classes."""

    verdict: Verdict
    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleResult:
    """What is said of one rule.

    Attributes:
        rule: As it was put.
        value: The metric, or candidate less baseline.
        level: Level of the limits, where it differs from that of the rule: they allow for all values that can fail by
            chance.
        method: How the interval was made.
        needed_samples: What would settle an open rule, if the values stayed.
        power: The chance with which so many samples settle it, where it is not about a half.
        decided_by: The class that decides.
    """

    rule: Mapping[str, Any]
    verdict: Verdict
    quantity: Literal["value", "difference"]
    value: float | None
    low: float | None
    high: float | None
    level: float | None = field(default=None, metadata=LEFT_OUT)
    method: str | None
    needed_samples: int | None
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
class CheckedGate:
    """Which gate it was."""

    name: str
    version: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedRun:
    """Which run it was.

    Attributes:
        matrix_digest: Digest of its matrix, which tells what was judged apart from what was sent later.
    """

    id: UUID
    model: ModelRef
    dataset: DatasetRef
    matrix_digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckAnswer:
    """What a version of a gate says of an evaluation.

    Attributes:
        exit_code: pass 0, fail 1, inconclusive 2: for scripts.
        findings: Warnings where a rule uses a score that is not proper, and a proper score prefers the other run.
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


@dataclass(frozen=True, slots=True)
class PairedRate:
    """A rate of paired runs.

    Attributes:
        discordant: Share of the samples it is among that count for exactly one of the runs.
        share: Of all samples, those that it is among.
    """

    discordant: float
    share: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RuleEstimate:
    """A value with its interval, or a difference with it and the two values that it is of.

    Attributes:
        level: Of the interval.
        samples: How many the interval is from; NaN without one.
        candidate: The candidate's value, of a difference.
        baseline: The baseline's.
        paired: Of the difference of a rate of paired runs.
        why: Why limits are missing, where that is known from the run.
        undefined: Why the value itself is missing.
    """

    name: str
    interval: ValueWithLimits
    level: float = nan
    method: str | None = None
    samples: float = nan
    candidate: float = nan
    baseline: float = nan
    paired: PairedRate | None = None
    why: str = ""
    undefined: str = ""


def rule_estimands(definition: Definition, runs: Runs) -> list[Estimand]:
    """What each rule is about.

    Raises:
        InvalidExpression: a metric makes no sense for the classes of the run, or describes the sample; its pointer is
            that of the rule.
    """
    known: dict[str, Estimand] = {}
    inputs = inputs_of_all(runs.records)
    for index, rule in enumerate(definition.rules):
        try:
            if rule.metric not in known:
                known[rule.metric] = make_estimand(rule.metric, runs.labels, runs.positive, inputs, *runs.judged)
                refuse_about_sample(known[rule.metric].expression, rule.metric)
        except InvalidExpression as error:
            error.pointer = f"/rules/{index}/metric"
            raise
    return [known[rule.metric] for rule in definition.rules]


class RuleEstimates:
    """What is measured for the rules of one check. Every rule sees the same draws, which follow from the runs alone.

    Args:
        definition: The rules.
        estimands: What each of them is about.
        runs: The candidate, and after it the baseline if there is one, paired.

    Attributes:
        settings: For the limits of each rule.
    """

    def __init__(self, definition: Definition, estimands: Sequence[Estimand], runs: Runs) -> None:
        self._runs = runs
        self._independent = all(record.samples_independent for record in runs.records)
        self._independent &= runs.lacking_weights is None
        asked = list(zip(definition.rules, estimands, strict=True))
        record = runs.records[0]
        self.settings = RuleSettings(definition, estimands)
        self._candidate = run_data(record, runs.kept.samples(record.id))
        self._alone = _of_the_candidate(asked, self.settings, self._candidate)
        self._both = Comparison(
            runs,
            _distinct(estimand for rule, estimand in asked if rule.demand.needs_baseline),
            InferenceSettings(seed=runs.seed(), rope=0.0),
            pairs=[(0, 1)] if len(runs) > 1 else [],
            # Runs with weights or groups are compared by their values as they are.
            prevalence=None if self._independent else CommonPrevalence(),
        )

    @property
    def findings(self) -> list[Finding]:
        """Why limits of differences are rough."""
        return self._both.findings if self._both.estimands else []

    def values(self, estimand: Estimand, settings: LimitSettings) -> list[RuleEstimate]:
        """The values of the candidate, with limits by one of the settings for the rule."""
        record = self._runs.records[0]
        if (settings, estimand.text) not in self._alone:
            self._alone[settings, estimand.text] = estimate([estimand], self._candidate, settings)[0]
        found = self._alone[settings, estimand.text]
        if not record.samples_independent:
            return [
                RuleEstimate(name=name, interval=ValueWithLimits(one.value, nan, nan), why=_why([record]))
                for name, one in zip(estimand.names, found, strict=True)
            ]
        return [
            RuleEstimate(
                name=name,
                interval=ValueWithLimits(one.value, one.low, one.high),
                level=settings.stated_level_of_each,
                method=one.method,
                samples=record.n_rows,
                why="" if one.reason is None else f", since {one.reason}",
                undefined=self._why_undefined(estimand, place, one.value),
            )
            for place, (name, one) in enumerate(zip(estimand.names, found, strict=True))
        ]

    def _why_undefined(self, estimand: Estimand, place: int, value: float) -> str:
        """Why a value of the candidate is missing; nothing where it is there."""
        if not isnan(value):
            return ""
        subject = self._candidate.subject if estimand.scored else self._candidate.table
        return f": {why_missing(estimand.expression, subject, self._runs.labels, place)}"

    def _why_incomparable(self, estimand: Estimand, place: int, values: Sequence[float]) -> str:
        """Of which run a value is missing that a difference needs, and why; nothing where both are there."""
        missing = next((index for index, value in enumerate(values) if isnan(value)), None)
        if missing is None:
            return ""
        runs = self._runs
        subject = runs.scored[missing].run.subject() if estimand.scored else Table(runs.counts[missing])
        reason = why_missing(estimand.expression, subject, self._runs.labels, place)
        return f" as that of the {('candidate', 'baseline')[missing]} is: {reason}"

    def differences(self, estimand: Estimand, settings: LimitSettings) -> list[RuleEstimate]:
        """Candidate less baseline, with limits by these settings.

        Raises:
            NotComparable: they cannot be compared on the metric.
        """
        if estimand.preference is None or estimand.preference.better is Better.NEAREST:
            raise NotComparable(f"{estimand.text} cannot say whether a run is better than another")
        both = self._both
        index = both.estimands.index(estimand)
        values = both.values[index].T.tolist()
        if not self._independent:
            why = _why(self._runs.records)
            return [
                RuleEstimate(name=name, interval=ValueWithLimits(a - b, nan, nan), candidate=a, baseline=b, why=why)
                for name, (a, b) in zip(estimand.names, values, strict=True)
            ]
        samples = self._runs.n_common
        rates = estimand.rates or [None] * len(estimand.names)
        return [
            RuleEstimate(
                name=name,
                interval=ValueWithLimits(found.value, found.test.low, found.test.high),
                level=settings.stated_level_of_each,
                method=f"{found.limits}, {self._runs.pairing.design.value}",
                samples=samples,
                candidate=a,
                baseline=b,
                paired=self._paired(rate, found.test.discordant, samples),
                why=f", since {found.test.reason}" if found.test.reason and isnan(found.test.low) else "",
                undefined=self._why_incomparable(estimand, place, (a, b)),
            )
            for place, (name, (a, b), rate, (found,)) in enumerate(
                zip(
                    estimand.names,
                    values,
                    rates,
                    both.differences(index, settings.stated_level_of_each, settings.alternative),
                    strict=True,
                )
            )
        ]

    def _paired(self, rate: Rate | None, discordant: float | None, samples: float) -> PairedRate | None:
        """What decides how many samples the difference of a rate takes; None for all else."""
        if rate is None or discordant is None or rate.counted or abs(rate.line.slope) != 1.0:
            return None
        if self._runs.pairing.weights is not None:
            return None
        members = float(rate.counts(Table(self._runs.counts[0]))[1])
        return PairedRate(discordant / members, members / samples)


class RuleSettings:
    """How the limits of a rule are made: those that pass it, and those that fail it.

    Every rule has to pass, and every class of it, so each may have its own error of passing by chance (intersection and
    union). One that fails is enough, so those of failing by chance add up, and each value that could has its share
    (Bonferroni): the chance that a gate fails without a reason is at most the largest one-sided error of its rules.
    """

    def __init__(self, definition: Definition, estimands: Sequence[Estimand]) -> None:
        asked = zip(definition.rules, estimands, strict=True)
        self.chances = sum(_chances(rule, estimand) for rule, estimand in asked)

    def passing(self, rule: Rule) -> LimitSettings:
        """For the end that passes it. A guardrail passes where it does not fail."""
        return self.failing(rule) if rule.bound is Bound.UPPER else _settings(rule)

    def failing(self, rule: Rule) -> LimitSettings:
        """For the end that fails it."""
        return replace(_settings(rule), together=max(self.chances, 1))


def _settings(rule: Rule) -> LimitSettings:
    return LimitSettings(level=rule.level, proportions=rule.proportion_interval, alternative=rule.alternative)


def less_is_better(rule: Rule, estimand: Estimand) -> bool:
    """Does a rule ask for small values, or for differences to a baseline below 0?"""
    if not rule.demand.needs_baseline:
        return rule.demand is Demand.MAX
    return estimand.preference is not None and estimand.preference.better is Better.LOWER


def _fails_never(rule: Rule, estimand: Estimand) -> bool:
    """Is the end open that would fail it?"""
    passing = Alternative.LESS if less_is_better(rule, estimand) else Alternative.GREATER
    return rule.bound is Bound.VALUE or rule.alternative is passing


def _chances(rule: Rule, estimand: Estimand) -> int:
    """How many ends of intervals can fail a rule by chance; an estimate that is held against a limit has none."""
    if _fails_never(rule, estimand):
        return 0
    return len(estimand.names) * (2 if rule.demand is Demand.EQUIVALENT else 1)


def _of_the_candidate(
    asked: Iterable[tuple[Rule, Estimand]], settings_of: RuleSettings, candidate: RunData
) -> dict[tuple[LimitSettings, str], Estimates]:
    """What the rules without a baseline are about; all with the same settings see the same draws."""
    alike: dict[LimitSettings, dict[str, Estimand]] = {}
    for rule, estimand in asked:
        if not rule.demand.needs_baseline:
            alike.setdefault(settings_of.passing(rule), {})[estimand.text] = estimand
    return {
        (settings, text): found
        for settings, estimands in alike.items()
        for text, found in zip(estimands, estimate([*estimands.values()], candidate, settings), strict=True)
    }


def _distinct(estimands: Iterable[Estimand]) -> list[Estimand]:
    return [*{id(estimand): estimand for estimand in estimands}.values()]


def _why(records: Sequence[EvaluationRecord]) -> str:
    if any(record.is_grouped for record in records):
        return ", since gates take samples as independent and these come in groups"
    if any(record.is_weighted for record in records):
        return f", since {NoLimits.NO_WEIGHTS}"
    return "" if all(record.content is Content.counts for record in records) else ", which needs numbers of samples"


EXIT_CODES: dict[Verdict, Literal[0, 1, 2]] = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 2}
# The chance that as many samples as are named for a paired rate settle a rule.
_POWER = 0.8


@dataclass(frozen=True, slots=True)
class Checked:
    """Verdict of all rules together, what is said of each, and of scores that are not proper."""

    verdict: Verdict
    results: Sequence[RuleResult | SamplesResult]
    findings: Sequence[Finding]


def check_gate(definition: Definition, estimands: Sequence[Estimand], runs: Runs) -> Checked:
    """Hold a run against all rules.

    Args:
        definition: The rules.
        estimands: What each of them is about.
        runs: The candidate, and after it the baseline if there is one, paired.

    Raises:
        NotComparable: candidate and baseline cannot be compared on a metric.
    """
    estimates = RuleEstimates(definition, estimands, runs)
    results: list[RuleResult | SamplesResult] = []
    for rule, estimand in zip(definition.rules, estimands, strict=True):
        results.append(_judged(rule, estimand, estimates))
        progressed(len(results), len(estimands))
    if definition.minimum_samples:
        results.append(_enough(definition.minimum_samples, runs.records[0]))
    compared = [one for one, rule in zip(estimands, definition.rules, strict=True) if rule.demand.needs_baseline]
    pairs = [(0, 1)] if len(runs) > 1 else []
    findings = [*improper_preferences(runs, compared, pairs, CommonPrevalence.of_runs(runs)), *estimates.findings]
    return Checked(combine([result.verdict for result in results]), results, findings)


def _enough(minimum: int, record: EvaluationRecord) -> SamplesResult:
    counted = record.content is Content.counts or record.is_weighted
    enough = counted and record.n_rows >= minimum
    return SamplesResult(
        rule=MinimumSamples(minimum_samples=minimum),
        verdict=Verdict.PASS if enough else Verdict.INCONCLUSIVE,
        value=record.n_rows if counted else None,
        needed_samples=None if enough else minimum,
        message=f"{minimum} samples are asked for" + ("" if enough else ", and there are fewer") + ".",
    )


def _judged(rule: Rule, estimand: Estimand, estimates: RuleEstimates) -> RuleResult:
    def measured(settings: LimitSettings) -> list[RuleEstimate]:
        if rule.demand.needs_baseline:
            return estimates.differences(estimand, settings)
        return estimates.values(estimand, settings)

    sign = -1.0 if less_is_better(rule, estimand) else 1.0
    passing, failing = estimates.settings.passing(rule), estimates.settings.failing(rule)
    found = [
        _Judged(one, _verdict(rule, one.interval if sign > 0 else one.interval.mirrored())) for one in measured(passing)
    ]
    if rule.bound is Bound.LOWER and failing != passing and any(one.verdict is Verdict.FAIL for one in found):
        found = [
            _confirmed(rule, surer, sign) if one.verdict is Verdict.FAIL else one
            for one, surer in zip(found, measured(failing), strict=True)
        ]
    verdict = combine([one.verdict for one in found])
    # The class that decides: the worst verdict, and among equals the one nearest to failing.
    decisive = min((one for one in found if one.verdict is verdict), key=lambda one: _room(one.measured.interval, sign))
    result = _result(rule, decisive, estimates.settings.chances, sign)
    if not estimand.is_list:
        return result
    return replace(
        result,
        decided_by=decisive.measured.name,
        each={
            one.measured.name: ClassVerdict(
                verdict=one.verdict,
                value=one.measured.interval.value,
                low=one.measured.interval.low,
                high=one.measured.interval.high,
            )
            for one in found
        },
    )


@dataclass(frozen=True, slots=True)
class _Judged:
    """What decides about a value, and how. ``unsure``: beyond the limit, which among so many values can be chance."""

    measured: RuleEstimate
    verdict: Verdict
    unsure: bool = False


def _confirmed(rule: Rule, surer: RuleEstimate, sign: float) -> _Judged:
    """A failure as the limits see it that allow for all values that can fail by chance."""
    verdict = _verdict(rule, surer.interval if sign > 0 else surer.interval.mirrored())
    return _Judged(surer, verdict, unsure=verdict is not Verdict.FAIL)


def _room(interval: ValueWithLimits, sign: float) -> float:
    value = sign * interval.value
    return -inf if isnan(value) else value


def _verdict(rule: Rule, interval: ValueWithLimits) -> Verdict:
    """The verdict on an interval of which more is better."""
    match rule.demand:
        case Demand.MIN:
            return verdict_of(interval, rule.limit, rule.bound)
        case Demand.MAX:
            return verdict_of(interval, -rule.limit, rule.bound)
    if rule.bound is Bound.VALUE:
        least = rule.limit if rule.demand is Demand.BETTER else -rule.limit
        mirrored_too = (
            rule.demand is not Demand.EQUIVALENT or verdict_of(interval.mirrored(), least, Bound.VALUE) is Verdict.PASS
        )
        found = verdict_of(interval, least, Bound.VALUE)
        return found if mirrored_too or found is Verdict.INCONCLUSIVE else Verdict.FAIL
    match rule.demand:
        case Demand.BETTER:
            return superiority(interval, rule.limit)
        case Demand.EQUIVALENT:
            return equivalence(interval, rule.limit)
    return guardrail(interval, rule.limit) if rule.bound is Bound.UPPER else non_inferiority(interval, rule.limit)


def _result(rule: Rule, judged: _Judged, chances: int, sign: float) -> RuleResult:
    one, verdict = judged.measured, judged.verdict
    threshold = _threshold(rule, one.interval, sign)
    needed, power = _needed(one, threshold, rule.alternative) if verdict is Verdict.INCONCLUSIVE else (nan, None)
    result = RuleResult(
        rule=rule.stated,
        verdict=verdict,
        quantity="difference" if rule.demand.needs_baseline else "value",
        value=one.interval.value,
        low=one.interval.low,
        high=one.interval.high,
        method=one.method,
        needed_samples=int(needed) if isfinite(needed) else None,
        power=power,
        message=_sentence(rule, judged, chances, threshold, needed, power),
    )
    if one.level != rule.level and isfinite(one.level):
        result = replace(result, level=one.level)
    return (
        replace(result, candidate_value=one.candidate, baseline_value=one.baseline)
        if rule.demand.needs_baseline
        else result
    )


def _needed(one: RuleEstimate, threshold: float, alternative: Alternative) -> tuple[float, float | None]:
    """Samples that would settle an open rule if the values stayed, and the chance of that where it is not a half."""
    if alternative is (Alternative.LESS if one.interval.value > threshold else Alternative.GREATER):
        # The end on the side of the limit is open, and stays where it is.
        return inf, None
    settling = samples_to_settle(one.interval, threshold, one.samples)
    if one.paired is None or not isfinite(settling):
        return settling, None
    # Beyond the limit it is the failure that is to be shown, which is the mirror image.
    away = 1.0 if one.interval.value > threshold else -1.0
    members = paired_sample_size(
        one.paired.discordant,
        difference=away * one.interval.value,
        margin=-away * threshold,
        alpha=(1.0 - one.level) / (2.0 if alternative is Alternative.TWO_SIDED else 1.0),
        power=_POWER,
    )
    needed = ceil(members / one.paired.share)
    return (needed, _POWER) if settling <= needed <= MOST_SAMPLES else (settling, None)


def _threshold(rule: Rule, interval: ValueWithLimits, sign: float) -> float:
    """The limit in the unit of the interval; of equivalence the one that is nearer."""
    match rule.demand:
        case Demand.MIN | Demand.MAX:
            return rule.limit
        case Demand.BETTER:
            return sign * rule.limit
        case Demand.NOT_WORSE:
            return -sign * rule.limit
    return rule.limit if interval.value > 0 else -rule.limit


def _limits(alternative: Alternative, ends: str, level: float) -> str:
    """Return the limits that were asked for in words; ``ends`` are both of them as they are written."""
    covered, (low, high) = percent(round(level, 5), None), ends.split(" to ")
    match alternative:
        case Alternative.GREATER:
            return f"a lower {covered} limit of {low}"
        case Alternative.LESS:
            return f"an upper {covered} limit of {high}"
    return f"{covered} limits {low} and {high}"


def _sentence(rule: Rule, judged: _Judged, chances: int, threshold: float, needed: float, power: float | None) -> str:
    one, verdict = judged.measured, judged.verdict
    what = f"The difference in {one.name}, candidate less baseline," if rule.demand.needs_baseline else one.name
    interval, limit = one.interval, significant(threshold)
    if isnan(interval.value):
        run = "" if rule.demand.needs_baseline else " for this run"
        return f"{what} is undefined{run}{one.undefined or ', so nothing can be said'}."
    limited = isfinite(interval.low)
    value, ends = PLAIN.estimate(
        interval.value,
        interval.low if limited else None,
        interval.high if limited else None,
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
    chance = "" if power is None else f", with a chance of {percent(power, None)}"
    return (
        f"{shown}: {limit} cannot be excluded. About {about(needed)} samples instead of {whole(one.samples)} would "
        f"settle it if the values stayed{chance}."
    )


@dataclass(frozen=True, slots=True)
class GateService:
    """Use cases of gates."""

    store: EvaluationStore
    gates: GateStore
    _: KW_ONLY
    labels: PairedLabels
    compute: ComputePool
    admission: Admission

    async def put(self, project: str, name: str, stated: Mapping[str, Any]) -> tuple[GateVersion, bool]:
        """Make the definition the latest version; True when there was no such gate.

        Raises:
            InvalidInput: a metric makes no sense.
        """
        check_rules(definition_of(stated))
        async with self.admission:
            gate, made = await self.gates.put(project, name, stated)
        return gate.shown, made

    async def read(self, project: str, name: str, version: int | None = None) -> GateVersion:
        """A version, the latest by default."""
        return (await self._get(project, name, version)).shown

    async def _get(self, project: str, name: str, version: int | None = None) -> Gate:
        gate = await self.gates.get(project, name, version)
        if gate is None:
            raise _missing(name, version)
        return gate

    async def versions(self, project: str, name: str) -> Sequence[GateVersion]:
        """All versions, latest first, also of a gate that was deleted."""
        found = await self.gates.versions(project, name)
        if not found:
            raise _missing(name)
        return [gate.shown for gate in found]

    async def delete(self, project: str, name: str) -> None:
        """End a gate. Its versions and checks can still be read."""
        async with self.admission:
            if not await self.gates.delete(project, name):
                raise _missing(name)

    async def page(self, project: str, limit: int, after: str | None) -> Page[GateVersion, str]:
        """The latest versions by name."""
        page = await self.gates.page(project, limit, after)
        return Page(tuple(gate.shown for gate in page.items), page.next_position)

    async def check(self, project: str, name: str, evaluation: Named, baseline: Named | None) -> CheckAnswer:
        """Hold an evaluation against the latest version, and keep what was found.

        Raises:
            NotFound: no such gate or evaluation.
            InvalidInput: a rule needs a baseline and there is none.
            InvalidExpression: a metric makes no sense for the classes of the run.
            IncomparableLabels: the baseline has other classes.
            IncomparableRuns: a rule needs probabilities that a run has not.
            OutOfReach: there are too many of them.
        """
        gate = await self._get(project, name)
        definition = definition_of(gate.definition)
        if definition.needs_baseline and baseline is None:
            raise InvalidInput.at("/baseline", "missing", f"expected a baseline, with which a rule of {name} compares")
        candidate, other = await self._identified(project, evaluation, baseline if definition.needs_baseline else None)
        aligned = await self._runs(project, candidate, other)
        estimands = rule_estimands(definition, aligned)
        runs = await self._paired(project, definition, estimands, aligned)

        found = await self.compute.run(partial(check_gate, definition, estimands, runs))
        identifier = made_id()
        checked, *others = (_run(record) for record in runs.records)
        answer = CheckAnswer(
            id=identifier,
            created_at=time_of(identifier),
            gate=CheckedGate(name=gate.name, version=gate.version),
            evaluation=checked,
            baseline=others[0] if others else None,
            verdict=found.verdict,
            exit_code=EXIT_CODES[found.verdict],
            results=found.results,
            findings=found.findings or None,
        )
        check = GateCheck(
            id=answer.id,
            gate=gate.name,
            version=gate.version,
            evaluation=candidate,
            baseline=other,
            verdict=answer.verdict,
            answer=as_json(answer),
        )
        async with self.admission:
            await self.gates.add_check(project, check)
        return answer

    async def read_check(self, project: str, name: str, identifier: UUID) -> Mapping[str, Any]:
        """A check as it was answered."""
        check = await self.gates.get_check(project, name, identifier)
        if check is None:
            raise NotFound(f"there is no check {identifier} of the gate {name!r}")
        return check.answer

    async def checks(self, project: str, name: str, limit: int, before: UUID | None) -> Page[CheckSummary, UUID]:
        """The checks of a gate, latest first, also of one that was deleted."""
        await self.versions(project, name)
        page = await self.gates.checks(project, name, limit, before)
        return Page(tuple(check.shown for check in page.items), page.next_position)

    async def last_checks(self, project: str, names: Sequence[str]) -> Mapping[str, CheckSummary]:
        """The latest check of each of the gates that have one."""
        found = await self.gates.last_checks(project, names)
        return {name: check.shown for name, check in found.items()}

    async def _identified(self, project: str, evaluation: Named, baseline: Named | None) -> tuple[UUID, UUID | None]:
        named = [evaluation] if baseline is None else [evaluation, baseline]
        found = await identified(self.store, project, named, ("/evaluation", "/baseline")[: len(named)])
        return found[0], found[1] if len(found) > 1 else None

    async def _runs(self, project: str, evaluation: UUID, baseline: UUID | None) -> Runs:
        """The candidate, and the baseline if there is one."""
        wanted = [("/evaluation", evaluation)] + ([] if baseline is None else [("/baseline", baseline)])
        found = await self.store.get_many(project, [identifier for _, identifier in wanted])
        for pointer, identifier in wanted:
            if identifier not in found:
                raise NotFound(f"there is no evaluation {identifier}", pointer=pointer)
        return Runs.align([found[identifier] for _, identifier in wanted], "/baseline")

    async def _paired(self, project: str, definition: Definition, estimands: Sequence[Estimand], runs: Runs) -> Runs:
        """The runs with what the rules need of their samples."""
        # What is a matrix of weights or comes in groups is looked at as it is.
        independent = all(record.samples_independent for record in runs.records)
        mode = PairingMode.AUTO if independent else PairingMode.FALSE
        scored = [
            (estimand.text, rule.demand.needs_baseline)
            for rule, estimand in zip(definition.rules, estimands, strict=True)
            if estimand.scored
        ]
        if not scored:
            return runs.pair(await read_labels(self.labels, project, runs.records), mode)
        # The baseline's are needed only where it is compared by them.
        metric, compared = next((one for one in scored if one[1]), scored[0])
        looked_at = runs.records if compared else runs.records[:1]
        kept = await read_outputs(self.labels, project, looked_at, metric, pointers=("/evaluation", "/baseline"))
        if len(looked_at) < len(runs):
            kept = KeptSamples((await read_labels(self.labels, project, runs.records)).labels, kept.outputs)
        return runs.pair(kept, mode)


def _run(record: EvaluationRecord) -> CheckedRun:
    return CheckedRun(
        id=record.id,
        model=record.model,
        dataset=record.dataset,
        matrix_digest=f"{seed_of(record.labels, record.counts):016x}",
    )


def _missing(name: str, version: int | None = None) -> NotFound:
    return NotFound(f"there is no gate {name!r}" + ("" if version is None else f" with version {version}"))
