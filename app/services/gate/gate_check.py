"""Holding an evaluation against the rules of a gate: a bound against a limit, and a sentence for each outcome."""

from collections.abc import Sequence
from math import inf, isfinite, isnan, nan

from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import Content
from app.domain.rules import Definition, Demand, Rule
from app.kernel.compare.gates import (
    Bound,
    Interval,
    Verdict,
    combine,
    equivalence,
    guardrail,
    judge,
    non_inferiority,
    samples_to_settle,
    superiority,
)
from app.kernel.uncertainty.draws import bonferroni_level
from app.services.estimands import Better, Estimand
from app.services.gate.examination import Examination, Measured
from app.services.json_values import Json, plain
from app.services.runs.aligned import Runs

EXIT_CODES = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 2}


def check_gate(definition: Definition, estimands: Sequence[Estimand], runs: Runs) -> tuple[Verdict, list[Json]]:
    """Verdict of all rules together, and what is said of each.

    Args:
        definition: The rules.
        estimands: What each of them is about.
        runs: The candidate, and after it the baseline if there is one, paired.

    Raises:
        NotComparable: candidate and baseline cannot be compared on a metric.
    """
    examination = Examination(definition, estimands, runs)
    asked = zip(definition.rules, estimands, strict=True)
    results = [_judged(rule, estimand, examination) for rule, estimand in asked]
    if definition.minimum_samples:
        results.append(_enough(definition.minimum_samples, runs.records[0]))
    return combine([Verdict(result["verdict"]) for result in results]), results


def _enough(minimum: int, record: EvaluationRecord) -> Json:
    enough = record.content is Content.counts and record.n_samples >= minimum
    return {
        "rule": {"minimum_samples": minimum},
        "verdict": (Verdict.PASS if enough else Verdict.INCONCLUSIVE).value,
        "value": record.n_samples if record.content is Content.counts else None,
        "low": None,
        "high": None,
        "needed_samples": None if enough else minimum,
        "message": f"{minimum} samples are asked for" + ("" if enough else ", and there are fewer") + ".",
    }


def _judged(rule: Rule, estimand: Estimand, examination: Examination) -> Json:
    level = rule.level
    if estimand.is_list and rule.bound is Bound.UPPER:
        # One class that fails fails the rule, so the more classes the surer each has to be.
        level = bonferroni_level(level, len(estimand.names))
    measured = examination.measure(rule, estimand, level)
    less_is_better = rule.demand is Demand.MAX
    if rule.demand.needs_baseline:
        less_is_better = estimand.preference is not None and estimand.preference.better is Better.LOWER
    sign = -1.0 if less_is_better else 1.0
    verdicts = [_verdict(rule, one.interval if sign > 0 else one.interval.mirrored()) for one in measured]
    verdict = combine(verdicts)
    # The class that decides: the worst verdict, and among equals the one nearest to failing.
    place = min(
        (index for index, one in enumerate(verdicts) if one is verdict),
        key=lambda index: _room(measured[index].interval, sign),
    )
    result = _result(rule, measured[place], verdict, sign)
    if estimand.is_list:
        result["decided_by"] = measured[place].name
        result["each"] = {
            one.name: {"verdict": found.value, **_ends(one)} for one, found in zip(measured, verdicts, strict=True)
        }
    return result


def _room(interval: Interval, sign: float) -> float:
    value = sign * interval.value
    return -inf if isnan(value) else value


def _verdict(rule: Rule, interval: Interval) -> Verdict:
    """The verdict on an interval of which more is better."""
    match rule.demand:
        case Demand.MIN:
            return judge(interval, rule.limit, rule.bound)
        case Demand.MAX:
            return judge(interval, -rule.limit, rule.bound)
    if rule.bound is Bound.VALUE:
        least = rule.limit if rule.demand is Demand.BETTER else -rule.limit
        mirrored_too = (
            rule.demand is not Demand.EQUIVALENT or judge(interval.mirrored(), least, Bound.VALUE) is Verdict.PASS
        )
        found = judge(interval, least, Bound.VALUE)
        return found if mirrored_too or found is Verdict.INCONCLUSIVE else Verdict.FAIL
    match rule.demand:
        case Demand.BETTER:
            return superiority(interval, rule.limit)
        case Demand.EQUIVALENT:
            return equivalence(interval, rule.limit)
    return guardrail(interval, rule.limit) if rule.bound is Bound.UPPER else non_inferiority(interval, rule.limit)


def _ends(one: Measured) -> Json:
    interval = one.interval
    return {"value": plain(interval.value), "low": plain(interval.low), "high": plain(interval.high)}


def _result(rule: Rule, one: Measured, verdict: Verdict, sign: float) -> Json:
    threshold = _threshold(rule, one.interval, sign)
    needed = samples_to_settle(one.interval, threshold, one.samples) if verdict is Verdict.INCONCLUSIVE else nan
    result: Json = {
        "rule": dict(rule.stated),
        "verdict": verdict.value,
        "quantity": "difference" if rule.demand.needs_baseline else "value",
        **_ends(one),
        "method": one.method,
        "needed_samples": int(needed) if isfinite(needed) else None,
        "message": _sentence(rule, one, verdict, threshold, needed),
    }
    if rule.demand.needs_baseline:
        result["candidate_value"], result["baseline_value"] = plain(one.of), plain(one.than)
    return result


def _threshold(rule: Rule, interval: Interval, sign: float) -> float:
    """The limit in the unit of the interval; of equivalence the one that is nearer."""
    match rule.demand:
        case Demand.MIN | Demand.MAX:
            return rule.limit
        case Demand.BETTER:
            return sign * rule.limit
        case Demand.NOT_WORSE:
            return -sign * rule.limit
    return rule.limit if interval.value > 0 else -rule.limit


def _sentence(rule: Rule, one: Measured, verdict: Verdict, threshold: float, needed: float) -> str:
    what = f"The difference in {one.name}, candidate less baseline," if rule.demand.needs_baseline else one.name
    interval = one.interval
    if isnan(interval.value):
        return f"{what} is undefined for this run, so nothing can be said."
    shown = f"{what} is {interval.value:.4g}"
    if rule.bound is Bound.VALUE:
        relation = "on the right side of" if verdict is Verdict.PASS else "on the wrong side of"
        return f"{shown}, {relation} {threshold:.4g}; the uncertainty of the value was not looked at."
    if isnan(interval.low):
        return f"{shown}, without an interval{one.why}: a bound cannot be held against {threshold:.4g}."
    shown += f" with {rule.level:.0%} limits {interval.low:.4g} and {interval.high:.4g}"
    match verdict:
        case Verdict.PASS if rule.bound is Bound.UPPER:
            return f"{shown}: not beyond {threshold:.4g} for certain."
        case Verdict.PASS:
            return f"{shown}: on the right side of {threshold:.4g} even at the worse end."
        case Verdict.FAIL:
            return f"{shown}: on the wrong side of {threshold:.4g} even at the better end."
    if isfinite(needed):
        return (
            f"{shown}: {threshold:.4g} cannot be excluded. About {int(needed)} samples instead of {int(one.samples)} "
            "would settle it if the values stayed."
        )
    return f"{shown}: {threshold:.4g} cannot be excluded, and no number of samples settles it if the values stay."
