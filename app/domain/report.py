"""The answer about one evaluation. None stands for a value that does not exist; ``undefined`` says why."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Literal, NotRequired, Self, TypedDict

from numpy.typing import NDArray

from app.domain.evaluation import SummarisedInput
from app.domain.findings import Finding
from app.domain.inputs.confusion import DecisionRates
from app.domain.inputs.content import Content, InputFacts
from app.domain.inputs.kind import GroupedMetrics as GroupedMetrics
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.ranking import QueryValues
from app.domain.members import HIDDEN, LEFT_OUT, SPREAD, named, typed

Value = float | None
# By the text of a metric expression: one value, or one per class.
Requested = Mapping[str, Value | Mapping[str, Value]]


class Group(StrEnum):
    """The groups that metrics are reported in."""

    INSENSITIVE = "prevalence_insensitive"
    SENSITIVE = "prevalence_sensitive"
    BALANCED = "at_balanced_prevalence"


def no_metrics() -> GroupedMetrics:
    """Return groups without values."""
    return {"prevalence_insensitive": {}, "prevalence_sensitive": {}, "at_balanced_prevalence": {}}


def merged_metrics(first: GroupedMetrics, second: GroupedMetrics) -> GroupedMetrics:
    """Return the values of both."""
    merged = no_metrics()
    for group in Group:
        merged[group.value] = {**first[group.value], **second[group.value]}
    return merged


@dataclass(frozen=True, slots=True)
class Undefined:
    """Why a value is null.

    Attributes:
        metric: A key, an expression as it was asked, or `*` for every metric of the group.
        label: The class, for a value of one class.
        group: Given when only the values of this group are meant.
    """

    metric: str
    code: str
    reason: str
    label: str | None = field(default=None, metadata=named("class") | LEFT_OUT)
    group: Group | None = field(default=None, metadata=LEFT_OUT)


class Interval(TypedDict):
    """An interval for a metric; its ends are null, with a reason, where there is none.

    A dict as it is answered, since a report has more than a hundred and every other form costs more to make.

    Attributes:
        given: The counts that it takes as fixed.
        alternative: Of limits on one side: `greater` has a lower limit, `less` an upper one, and the other end is that
            of the range of the metric, null where it has none.
        prior: What every row of the matrix was given before its counts.
        seed: Of the simulation: the same seed gives the same interval.
        draws: Simulated matrices, or resamples of the samples.
        monte_carlo_error: Standard error of an end that comes from the finite number of draws.
        undefined_draws: Resamples in which the metric did not exist, when there were some; they are left out.
        reason: Why there is no interval.
        note: What has to be known to read it beside other intervals.
    """

    low: Value
    high: Value
    level: float
    method: str
    given: str
    alternative: NotRequired[str]
    prior: NotRequired[str]
    seed: NotRequired[int]
    draws: NotRequired[int]
    monte_carlo_error: NotRequired[Value]
    undefined_draws: NotRequired[int]
    reason: NotRequired[str]
    note: NotRequired[str]


@dataclass(frozen=True, slots=True)
class FoldValues:
    """A metric over the folds.

    Attributes:
        mean: `null` when a fold has no value.
        sd: Standard deviation (n - 1), `null` likewise.
        cv: Coefficient of variation, sd over the mean; `null` also where the mean is not above 0.
    """

    values: Sequence[Value]
    mean: Value
    sd: Value
    cv: Value

    @classmethod
    def of(cls, values: Sequence[Value], mean: Value, sd: Value) -> Self:
        """Make it from mean and standard deviation; the coefficient of variation follows."""
        return cls(tuple(values), mean, sd, None if mean is None or sd is None or mean <= 0 else sd / mean)


class GroupDesign(TypedDict):
    """The groups that samples came in.

    Attributes:
        smallest: Samples of the smallest group.
        largest: Samples of the largest group.
        effective_groups: How many groups of equal size would be worth as much.
        design_effects: By metric, how many times larger its variance is than that of as many independent samples; left
            out for samples whose weights are not known, and for those of more than classes.
    """

    n_groups: int
    smallest: int
    largest: int
    effective_groups: float
    design_effects: NotRequired[Mapping[str, Value]]


class WeightDesign(TypedDict):
    """The weights of samples.

    Attributes:
        n_samples: Samples with a weight above 0.
        smallest: The smallest weight above 0.
        largest: The largest weight.
        effective_samples: How many samples of equal weight would be worth as much for a mean: Kish's (sum w)^2 / sum
            w^2.
        design_effects: By metric, how many times larger its variance is than that of as many samples of one weight.
    """

    n_samples: int
    smallest: float
    largest: float
    effective_samples: float
    design_effects: Mapping[str, Value]


class SectionName(StrEnum):
    """Sections of a report that need more than the matrix."""

    PROBABILITIES = "probabilities"
    GROUPS = "groups"
    UNITS = "units"
    WEIGHTS = "weights"
    SLICES = "slices"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Section:
    """A section of a report: of the matrix, of probabilities, or of groups.

    Attributes:
        metrics: Overall values by group; for two classes with those of the positive class.
        per_class: By label.
        values: Overall values by key, as they are stored for lists.
        requested: Values of metric expressions by their text.
        intervals: By expression.
        balanced_intervals: The same of values at balanced prevalence.
        folds: Over the folds, where there are some.
        interpretation: Verbal scales, where they are asked for.
        details: What belongs to the values but is no metric, as JSON.
        curves: Of streamed samples: what is saved of their curves, as JSON.
    """

    metrics: GroupedMetrics = field(default_factory=no_metrics)
    per_class: Mapping[str, GroupedMetrics] = field(default_factory=dict)
    values: Mapping[str, Value] = field(default_factory=dict)
    requested: Requested = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    balanced_intervals: Mapping[str, Interval] = field(default_factory=dict)
    undefined: tuple[Undefined, ...] = ()
    findings: tuple[Finding, ...] = ()
    folds: Mapping[str, FoldValues] | None = None
    interpretation: Mapping[str, Mapping[str, str]] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    curves: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class InputSummary(SummarisedInput):
    """The input of an evaluation, with rows for actual classes."""

    orientation: Literal["actual_rows"] = "actual_rows"
    confusion_matrix: NDArray[Any] | None = field(default=None, metadata=LEFT_OUT | typed(list[list[float]]))
    prevalence: Mapping[str, Value] = field(metadata=typed(Mapping[str, float]))
    facts: Mapping[str, Any] = field(metadata=SPREAD | typed(InputFacts))

    @classmethod
    def of(
        cls, source: MatrixInput, per_class: Mapping[str, GroupedMetrics], counts: Mapping[str, Any] | None = None
    ) -> Self:
        """Summarise an input whose classes have these values; ``counts`` are shown in place of a matrix."""
        return cls(
            kind=source.kind,
            content=source.content,
            n_samples=None if source.content is Content.rates else source.n_samples,
            n_classes=len(source.labels),
            labels=source.labels,
            positive=None if source.positive is None else source.labels[source.positive],
            confusion_matrix=source.counts if counts is None else None,
            prevalence={
                label: groups["prevalence_sensitive"]["prevalence"]
                for label, groups in per_class.items()
                if "prevalence" in groups["prevalence_sensitive"]
            }
            if source.decisions is None
            else dict(zip(source.labels, (source.counts.sum(axis=1) / source.counts.sum()).tolist(), strict=True)),
            facts={**source.facts, **(counts or {})},
        )


class HeadlineValue(TypedDict):
    """A value with its limits, `null` where there are none.

    Attributes:
        reason: Why there are none, of a value that was asked for.
    """

    value: Value
    low: Value
    high: Value
    reason: NotRequired[str]


@dataclass(frozen=True, slots=True)
class WeakestClass:
    """The class of the lowest recall.

    Attributes:
        n: Samples of the class, or their weight; None of a matrix of rates.
    """

    label: str
    recall: float
    n: float | None


class Headline(TypedDict):
    """The leading values of a report, small for any number of classes.

    Attributes:
        requested: Expressions of one value that were asked for, as many as there is room for.
        weakest_class: `null` where no class has a recall.
        n_samples: `null` when the entries are rates.
    """

    metrics: Mapping[str, HeadlineValue]
    requested: Mapping[str, HeadlineValue]
    weakest_class: WeakestClass | None
    n_samples: float | None
    n_classes: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """The answer about one input.

    Attributes:
        headline: The usual metrics and what was requested, value and limits side by side.
        values: Overall metrics by key, as they are kept for lists.
        balanced_intervals: Intervals of the values in `at_balanced_prevalence`, by metric or as `precision@D`: those of
            the headline, or of all with `intervals: all`.
        of_samples: What needs the samples, apart: kept where the samples are not.
        probabilities: For probabilities and scores: what belongs to their metrics and is none itself.
        groups: For samples with group_ids.
        weights: For samples with sample_weight and without group_ids.
        queries: For rankings: how the values are spread over the queries, and which are lowest.
        decisions: For matrices of classes and decisions: how often each is taken, and with `options.costs` what they
            cost.
    """

    input: InputSummary
    headline: Headline
    metrics: GroupedMetrics
    per_class: Mapping[str, GroupedMetrics]
    values: Mapping[str, Value] = field(metadata=HIDDEN)
    requested: Mapping[str, Value | Mapping[str, Value]] = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    balanced_intervals: Mapping[str, Interval] = field(
        default_factory=dict, metadata=named("intervals_at_balanced_prevalence")
    )
    undefined: Sequence[Undefined] = ()
    findings: Sequence[Finding] = ()
    of_samples: Mapping[SectionName, Section] = field(default_factory=dict, metadata=HIDDEN)
    probabilities: Mapping[str, Any] | None = field(default=None, metadata=LEFT_OUT)
    groups: GroupDesign | None = field(default=None, metadata=LEFT_OUT)
    weights: WeightDesign | None = field(default=None, metadata=LEFT_OUT)
    queries: QueryValues | None = field(default=None, metadata=LEFT_OUT)
    decisions: DecisionRates | None = field(default=None, metadata=LEFT_OUT)
    folds: Mapping[str, FoldValues] | None = field(default=None, metadata=LEFT_OUT)
    interpretation: Mapping[str, Mapping[str, str]] | None = field(default=None, metadata=LEFT_OUT)
