"""A run, and its difference to a baseline, looked at once for all rules of a gate."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import isnan, nan

from app.domain.errors import InvalidExpression, NotComparable
from app.domain.evaluation import EvaluationRecord
from app.domain.expressions.check import refuse_about_sample
from app.domain.inputs.content import Content
from app.domain.rules import Definition, Demand, Rule
from app.kernel.compare.gates import Bound, ValueWithLimits
from app.kernel.matrix.table import Table
from app.kernel.metrics.proportion import Rate
from app.kernel.uncertainty.draws import Alternative
from app.services.estimands import Better, Estimand, make_estimand
from app.services.estimates.estimate import Estimates, LimitSettings, NoLimits
from app.services.estimates.estimates import estimate
from app.services.estimates.run_data import RunData, run_data
from app.services.reasons import why_missing
from app.services.runs.aligned import Runs
from app.services.runs.comparison import Comparison
from app.services.runs.draws.resampling import CommonPrevalence, InferenceSettings
from app.services.stored import inputs_of_all


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
