"""What is answered about one evaluation. None stands for a value that does not exist; ``undefined`` says why."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NotRequired, TypedDict

from app.domain.findings import Finding
from app.domain.inputs.matrices import MatrixInput
from app.kernel.uncertainty.design import Prior as Prior
from app.kernel.uncertainty.design import Shares as Shares
from app.kernel.uncertainty.estimation import DRAWS as DRAWS
from app.kernel.uncertainty.resampling import FEWEST_DRAWS as FEWEST_DRAWS

Value = float | None
# Group of prevalence sensitivity -> metric key -> value.
Grouped = Mapping[str, Mapping[str, Value]]
Groups = dict[str, dict[str, Value]]


class Group(StrEnum):
    """The groups that metrics are reported in."""

    INSENSITIVE = "prevalence_insensitive"
    SENSITIVE = "prevalence_sensitive"
    BALANCED = "at_balanced_prevalence"


class IntervalChoice(StrEnum):
    """Which intervals are computed."""

    HEADLINE = "headline"
    ALL = "all"
    NONE = "none"


class Retain(StrEnum):
    """What is kept of the samples of an input."""

    FULL = "full"
    NONE = "none"


class IntervalMethod(StrEnum):
    """How the intervals of ``all`` are made of what is no plain rate."""

    POSTERIOR = "posterior"
    DELTA = "delta"
    BOOTSTRAP = "bootstrap"
    BCA = "bca"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """What is assumed of the sample when intervals of everything are asked for.

    Attributes:
        prior: Of every row of the matrix; ``pseudo_counts`` (K x K, rows actual) belong to a custom one.
        shares: Class counts taken as fixed (observed), or as random too (sampled).
        draws: Simulated matrices.
    """

    method: IntervalMethod = IntervalMethod.POSTERIOR
    prior: Prior = Prior.EDGE
    pseudo_counts: tuple[tuple[float, ...], ...] | None = None
    shares: Shares = Shares.OBSERVED
    draws: int = DRAWS


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What is computed beyond the report that everyone gets.

    Attributes:
        metrics: Metric expressions; their values stand in ``requested``.
        level: Coverage of the intervals, between 0 and 1.
        seed: Of everything random; None derives it from the input.
        interpretation: Whether verbal scales of the literature are answered too.
        sampling: How intervals of everything are made.
        retain: What is kept of the samples, for curves, thresholds and paired comparisons.
    """

    metrics: tuple[str, ...] = ()
    level: float = 0.95
    seed: int | None = None
    intervals: IntervalChoice = IntervalChoice.HEADLINE
    interpretation: bool = False
    sampling: Sampling = Sampling()
    retain: Retain = Retain.FULL


@dataclass(frozen=True, slots=True)
class Undefined:
    """A value that does not exist. ``metric`` is a key, an expression, or ``*`` for every metric of the group."""

    metric: str
    code: str
    reason: str
    label: str | None = None
    group: Group | None = None


class Interval(TypedDict):
    """Ends of an interval; None with a reason where there is none. ``given`` are the counts it takes as fixed.

    What was simulated says from which seed, with how many draws, and the standard error that an end has from that.
    A dict as it is answered, since a report has more than a hundred and every other form costs more to make.
    """

    low: Value
    high: Value
    level: float
    method: str
    given: str
    prior: NotRequired[str]
    seed: NotRequired[int]
    draws: NotRequired[int]
    monte_carlo_error: NotRequired[Value]
    undefined_draws: NotRequired[int]
    reason: NotRequired[str]


@dataclass(frozen=True, slots=True)
class FoldValues:
    """A metric over the folds: values, mean and standard deviation (n - 1). These are None when a fold has no value."""

    values: tuple[Value, ...]
    mean: Value
    sd: Value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ProbabilityPart:
    """The part of a report that needs the samples. Where they are not kept, this is.

    Attributes:
        metrics: Overall values by group; for two classes with those of the positive class.
        per_class: By label.
        values: Overall values by key, as they are stored for lists.
        requested: Of the metric expressions that need probabilities.
        folds: Over the folds, where there are some.
        intervals: By expression.
        details: What belongs to the values but is no metric, as JSON.
    """

    metrics: Groups
    per_class: dict[str, Groups]
    values: dict[str, Value]
    requested: Mapping[str, Value | Mapping[str, Value]]
    undefined: tuple[Undefined, ...]
    findings: tuple[Finding, ...]
    folds: dict[str, FoldValues] | None = None
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupPart:
    """The part of a report on the matrix that needs to know which samples belong together. Kept where they are not.

    Attributes:
        design: How many groups, of which sizes, and how many times larger the variances are for them.
        intervals: Of the metrics of the matrix, by expression.
    """

    design: Mapping[str, Any]
    intervals: Mapping[str, Interval]
    findings: tuple[Finding, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SampleParts:
    """What was said of the samples: of their probabilities or scores, where there are some, and of their groups."""

    probabilities: ProbabilityPart | None = None
    groups: GroupPart | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """Everything that is answered about one input. ``parts`` are what needs the samples."""

    input: MatrixInput
    metrics: Grouped
    per_class: Mapping[str, Grouped]
    values: Mapping[str, Value]
    requested: Mapping[str, Value | Mapping[str, Value]] = field(default_factory=dict)
    intervals: Mapping[str, Interval] = field(default_factory=dict)
    undefined: tuple[Undefined, ...] = ()
    findings: tuple[Finding, ...] = ()
    folds: Mapping[str, FoldValues] | None = None
    interpretation: Mapping[str, Mapping[str, str]] | None = None
    parts: SampleParts = SampleParts()
