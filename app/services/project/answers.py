"""What is answered about metrics at other class shares."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from app.domain.members import LEFT_OUT, named
from app.kernel.uncertainty.draws import Alternative

# At one point, or at every point of a grid.
Values = float | None | Sequence[float | None]


@dataclass(frozen=True, slots=True)
class ProjectedValue:
    """A metric at other class shares: one value, or lists over the grid of a sweep.

    Attributes:
        value: At these shares.
        low: Lower limit; null where there is no interval.
        high: Upper limit.
        observed: The value as it is.
        method: How the limits were made. What prevalence does not move has those of the report.
        reason: Why there are no limits at any share.
    """

    value: Values
    low: Values
    high: Values
    observed: float | None
    method: str | None = field(default=None, metadata=LEFT_OUT)
    reason: str | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True)
class Lowest:
    """The lowest value in a range of class shares, its lower limit there, and where that is."""

    value: float | None
    low: float | None
    prevalence: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Highest:
    """The highest value in a range of class shares, its upper limit there, and where that is."""

    value: float | None
    high: float | None
    prevalence: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class ExtremeValues:
    """A metric over a range of class shares; null where it has no value anywhere.

    Attributes:
        observed: The value as it is.
    """

    observed: float | None
    lowest: Lowest | None
    highest: Highest | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweptClass:
    """One class from a rare to a frequent one.

    Attributes:
        observed: Its share in the data.
        equal: Its share where all classes that have samples are equally frequent.
    """

    label: str = field(metadata=named("class"))
    start: float = field(metadata=named("from"))
    end: float = field(metadata=named("to"))
    steps: int
    observed: float
    equal: float


@dataclass(frozen=True, slots=True)
class SampleDesign:
    """How intervals of metrics of probabilities come about, beside those of the matrix."""

    method: str | None
    draws: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectionDesign:
    """How intervals of what prevalence moves come about.

    Attributes:
        draws: Simulated or resampled data sets; 0 where there are no intervals.
        class_counts: `fixed`: those of the run are taken as chosen.
        prior: Prior of the rows of the matrix.
        prevalence: `given` exactly, `uncertain`, or in a `range`.
        samples: The design for metrics of probabilities, where there are others too.
        alternative: Where limits are on one side: `greater` has lower ones, `less` upper ones, and the other end is
            that of the range of the metric, null where it has none.
    """

    level: float
    draws: int
    method: str | None = field(default=None, metadata=LEFT_OUT)
    class_counts: str | None = field(default=None, metadata=LEFT_OUT)
    prior: str | None = field(default=None, metadata=LEFT_OUT)
    seed: int | None = field(default=None, metadata=LEFT_OUT)
    prevalence: str = "given"
    samples: SampleDesign | None = field(default=None, metadata=LEFT_OUT)
    alternative: Alternative | None = field(default=None, metadata=LEFT_OUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projection:
    """Metrics at other class shares: single values, lists over the grid of a sweep, or the extremes of a range.

    Attributes:
        evaluation: `null` for an input that is not kept.
        prevalence: The shares of all classes.
        prevalence_samples: How many samples the shares are worth.
        prevalence_range: Lowest and highest share of some classes.
        grid: Shares of the class that is swept, with those that were asked for besides.
        metrics: By metric: value, low, high and observed, the value as it is; or lowest, highest and observed.
        against: The run that is compared with.
        crossings: Shares at which the two runs change places.
        notes: What is assumed, and what to be careful about.
    """

    evaluation: UUID | None
    prevalence: Mapping[str, float] | None = field(default=None, metadata=LEFT_OUT)
    prevalence_samples: float | None = field(default=None, metadata=LEFT_OUT)
    prevalence_range: Mapping[str, Sequence[float]] | None = field(default=None, metadata=LEFT_OUT)
    sweep: SweptClass | None = field(default=None, metadata=LEFT_OUT)
    grid: Sequence[float] | None = field(default=None, metadata=LEFT_OUT)
    metrics: Mapping[str, ProjectedValue | ExtremeValues]
    against: UUID | None = field(default=None, metadata=LEFT_OUT)
    crossings: Mapping[str, Sequence[float]] | None = field(default=None, metadata=LEFT_OUT)
    design: ProjectionDesign
    notes: Sequence[str]
