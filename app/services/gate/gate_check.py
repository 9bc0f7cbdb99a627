"""Holding an evaluation against the rules of a gate: a bound against a limit, and a sentence for each outcome."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import inf, isfinite, isnan, nan
from uuid import UUID

import numpy as np

from app.domain.errors import InvalidExpression, NotComparable
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.content import Content
from app.domain.inputs.samples import Samples
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
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import bonferroni_level
from app.services.estimands import EVERYTHING, Better, Estimand, make_estimand
from app.services.estimates.headline_intervals import headline_intervals
from app.services.json_values import Json, plain
from app.services.ports import SampleLabels
from app.services.runs.contest import Terms
from app.services.runs.contests import contest_of
from app.services.runs.pairing import Bond, Pairing, align, pair_runs
from app.services.runs.scored_contest import OwnInterval, ScoredContest
from app.services.runs.scored_runs import scored_run, scored_runs
from app.services.runs.simulation import affordable_draws, draw_run, summarise_run, values_at

EXIT_CODES = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 2}
_WORST_FIRST = (Verdict.FAIL, Verdict.INCONCLUSIVE, Verdict.PASS)


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """What is checked: a run, a baseline if there is one, and what is known of their samples.

    Attributes:
        samples: Of runs that were kept with ids.
        outputs: With their probabilities or scores, where a rule needs them.
    """

    record: EvaluationRecord
    baseline: EvaluationRecord | None
    samples: Mapping[UUID, SampleLabels] = field(default_factory=dict)
    outputs: Mapping[UUID, Samples] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Measured:
    """A value with its interval, or a difference with it and the two values that it is of.

    ``why`` says why limits are missing, where that is known from the run.
    """

    name: str
    interval: Interval
    method: str | None
    samples: float
    of: float = nan
    than: float = nan
    why: str = ""


def check_gate(definition: Definition, candidate: Candidate, *, seed: int) -> tuple[Verdict, list[Json]]:
    """Verdict of all rules together, and what is said of each.

    Raises:
        InvalidExpression: a metric makes no sense for the classes of the run; its pointer is that of the rule.
        IncomparableLabels: candidate and baseline have different classes.
    """
    results = []
    for index, rule in enumerate(definition.rules):
        try:
            estimand = make_estimand(rule.metric, candidate.record.labels, candidate.record.positive, EVERYTHING)
            results.append(_judged(rule, estimand, candidate, seed))
        except InvalidExpression as error:
            error.pointer = f"/rules/{index}/metric"
            raise
    if definition.minimum_samples:
        results.append(_enough(definition.minimum_samples, candidate.record))
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


def _judged(rule: Rule, estimand: Estimand, candidate: Candidate, seed: int) -> Json:
    level = rule.level
    if estimand.is_list and rule.bound is Bound.UPPER:
        # One class that fails fails the rule, so the more classes the surer each has to be.
        level = bonferroni_level(level, len(estimand.names))
    if rule.demand.needs_baseline:
        measured = _differences(estimand, candidate, level, seed)
        sign = -1.0 if estimand.preference is not None and estimand.preference.better is Better.LOWER else 1.0
    else:
        measured = (
            _scored(estimand, candidate, level, seed)
            if estimand.scored
            else _values(estimand, candidate.record, level, seed)
        )
        sign = -1.0 if rule.demand is Demand.MAX else 1.0
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


def _values(estimand: Estimand, record: EvaluationRecord, level: float, seed: int) -> list[_Measured]:
    """Values of a run with the intervals that its report has, and else simulated ones."""
    counts = record.counts.astype(np.float64)
    values = values_at(counts, [estimand])[0]
    if not record.counts_independent:
        return [
            _Measured(
                name=name, interval=Interval(float(value), nan, nan), method=None, samples=nan, why=_why([record])
            )
            for name, value in zip(estimand.names, values.tolist(), strict=True)
        ]
    shown = headline_intervals(Table(counts[None, None]), [record.labels], level)[0]
    if not set(estimand.names) <= set(shown):
        draws = affordable_draws(counts.size)
        if not draws:
            return [
                _Measured(name=name, interval=Interval(float(value), nan, nan), method=None, samples=record.n_samples)
                for name, value in zip(estimand.names, values.tolist(), strict=True)
            ]
        drawn = draw_run(counts, [estimand], draws=draws, seed=seed)[0]
        found = summarise_run(drawn, values, counts, estimand, level=level)
        ends = list(zip(found.low.tolist(), found.high.tolist(), strict=True))
        return [
            _Measured(name=name, interval=Interval(float(value), *end), method="posterior", samples=record.n_samples)
            for name, value, end in zip(estimand.names, values.tolist(), ends, strict=True)
        ]
    measured = []
    for name, value in zip(estimand.names, values.tolist(), strict=True):
        low, high = shown[name]["low"], shown[name]["high"]
        interval = Interval(value, nan if low is None else low, nan if high is None else high)
        measured.append(_Measured(name=name, interval=interval, method=shown[name]["method"], samples=record.n_samples))
    return measured


def _scored(estimand: Estimand, candidate: Candidate, level: float, seed: int) -> list[_Measured]:
    """Values that need the samples of a run, with intervals made as in its report."""
    record = candidate.record
    run = scored_run(record, candidate.outputs[record.id])
    if not record.counts_independent:
        values = [OwnInterval(value) for value in run.values([estimand])[0].tolist()]
    else:
        pairing, terms = Pairing(Bond.NOTHING, "one run"), Terms(level=level, seed=seed)
        counts = record.counts[None].astype(np.float64)
        values = [own for (own,) in ScoredContest([run], counts, [estimand], pairing, terms, [record]).intervals(0)]
    return [
        _Measured(
            name=name,
            interval=Interval(own.value, own.low, own.high),
            method=own.method,
            samples=record.n_samples if record.counts_independent else nan,
            why=_why([record]),
        )
        for name, own in zip(estimand.names, values, strict=True)
    ]


def _differences(estimand: Estimand, candidate: Candidate, level: float, seed: int) -> list[_Measured]:
    """Candidate less baseline."""
    if estimand.preference is None or estimand.preference.better is Better.NEAREST:
        raise NotComparable(f"{estimand.text} cannot say whether a run is better than another")
    assert candidate.baseline is not None  # noqa: S101 - checked before
    records = [candidate.record, candidate.baseline]
    counts = align(records, "/baseline")[0]
    if not all(record.counts_independent for record in records):
        both, why = _both(estimand, records, counts, candidate), _why(records)
        return [
            _Measured(name=name, interval=Interval(a - b, nan, nan), method=None, samples=nan, of=a, than=b, why=why)
            for name, a, b in zip(estimand.names, *both, strict=True)
        ]
    pairing = pair_runs(records, candidate.samples)
    terms = Terms(level=level, rope=0.0, seed=seed)
    contest = contest_of(records, [estimand], pairing, terms, candidate.outputs, pointer="/baseline")
    samples = float(contest.counts[0].sum())
    return [
        _Measured(
            name=name,
            interval=Interval(found.value, found.test.low, found.test.high),
            method=f"{found.limits}, {pairing.bond.value}",
            samples=samples,
            of=float(contest.values[0][0, place]),
            than=float(contest.values[0][1, place]),
        )
        for place, (name, (found,)) in enumerate(zip(estimand.names, contest.differences([(0, 1)])[0], strict=True))
    ]


def _why(records: Sequence[EvaluationRecord]) -> str:
    if any(record.is_grouped for record in records):
        return ", since gates take samples as independent and these come in groups"
    return "" if all(record.content is Content.counts for record in records) else ", which needs numbers of samples"


def _both(
    estimand: Estimand, records: Sequence[EvaluationRecord], counts: Array, candidate: Candidate
) -> list[list[float]]:
    """Values of candidate and baseline."""
    if estimand.scored:
        runs = scored_runs(records, candidate.outputs, "/baseline")
        return [run.values([estimand])[0].tolist() for run in runs]
    return [values_at(one, [estimand])[0].tolist() for one in counts]


def _ends(one: _Measured) -> Json:
    interval = one.interval
    return {"value": plain(interval.value), "low": plain(interval.low), "high": plain(interval.high)}


def _result(rule: Rule, one: _Measured, verdict: Verdict, sign: float) -> Json:
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


def _sentence(rule: Rule, one: _Measured, verdict: Verdict, threshold: float, needed: float) -> str:
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
