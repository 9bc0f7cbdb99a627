"""Holding an evaluation against the rules of a gate: a bound against a limit, and a sentence for each outcome."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite, isnan, nan
from typing import Literal

from app.domain.evaluation import EvaluationRecord
from app.domain.findings import Finding
from app.domain.inputs.content import Content
from app.domain.rules import Definition, Demand, Rule
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
from app.kernel.uncertainty.draws import Alternative
from app.services.estimands import Estimand
from app.services.estimates.estimate import LimitSettings
from app.services.gate.answers import ClassVerdict, MinimumSamples, RuleResult, SamplesResult
from app.services.gate.rule_estimates import RuleEstimate, RuleEstimates, less_is_better
from app.services.processes.progress import progressed
from app.services.runs.aligned import Runs
from app.services.runs.draws.resampling import CommonPrevalence
from app.services.runs.propriety import improper_preferences

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
    findings = improper_preferences(runs, compared, pairs, CommonPrevalence.of_runs(runs))
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
