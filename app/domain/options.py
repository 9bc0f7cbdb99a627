"""Options of a report."""

from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Annotated, Self

from app.domain.asked import ExpressionText, LabelText, Level, Limits, NonNegative, Seed
from app.domain.inputs.labels import MOST_CLASSES
from app.domain.members import HIDDEN, SPREAD, named
from app.kernel.uncertainty.draws import Alternative as Alternative
from app.kernel.uncertainty.draws import AreaInterval as AreaInterval
from app.kernel.uncertainty.draws import Prior as Prior
from app.kernel.uncertainty.draws import Shares as Shares
from app.kernel.uncertainty.intervals import ProportionInterval as ProportionInterval
from app.kernel.uncertainty.resampling import FEWEST_DRAWS as FEWEST_DRAWS
from app.kernel.uncertainty.simulation import DRAWS as DRAWS

_CLASSES = {"min_length": 2, "max_length": MOST_CLASSES}
# Of simulated matrices.
Draws = Annotated[int, Limits({"ge": FEWEST_DRAWS, "le": 20_000})]


def check_one_sided(level: float, alternative: str | None) -> None:
    """A limit on one side needs a level above a half.

    Raises:
        ValueError: it has none.
    """
    if alternative in ("greater", "less") and level <= 0.5:
        raise ValueError(f"expected a level above 0.5 with the alternative {alternative}")


class IntervalChoice(StrEnum):
    """The values that get intervals: headline metrics, all metrics, or none."""

    HEADLINE = "headline"
    ALL = "all"
    NONE = "none"


class Retain(StrEnum):
    """The part of an input's samples that is stored."""

    FULL = "full"
    NONE = "none"


class IntervalMethod(StrEnum):
    """Method of the intervals of ``all``, but for plain proportions."""

    POSTERIOR = "posterior"
    DELTA = "delta"
    BOOTSTRAP = "bootstrap"
    BCA = "bca"


# Amounts of one actual class. Of a large matrix of nothing that is allowed the first fault of a row is said.
Amounts = Annotated[tuple[NonNegative, ...], Limits({"max_length": MOST_CLASSES, "fail_fast": True})]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Assumptions about the sampling, for intervals of all metrics.

    Attributes:
        method: With `all`, for what is no plain rate: row-wise Dirichlet posterior, delta method, bootstrap with
            percentile limits or with bias-corrected and accelerated ones. When left out `posterior`; with `group_ids`
            `bootstrap`, of whole groups, and nothing else.
        prior: With `posterior`: what every row is given before its counts. `edge`: nothing, except where a recall is 0
            or 1. `custom`: `pseudo_counts`.
        pseudo_counts: K x K, rows actual; with the prior `custom` only.
        shares: With `all`: were the numbers of samples per class chosen (`observed`), or are they random too
            (`sampled`)? Whole groups are drawn, so with `group_ids` they are random whatever is given here.
        draws: Simulated matrices.
    """

    method: IntervalMethod | None = field(default=None, metadata=named("interval_method"))
    prior: Prior = Prior.EDGE
    pseudo_counts: Annotated[tuple[Amounts, ...], Limits({"max_length": MOST_CLASSES})] | None = None
    shares: Shares = field(default=Shares.OBSERVED, metadata=named("prevalence_design"))
    draws: int = field(default=DRAWS, metadata=HIDDEN)

    @property
    def of_matrices(self) -> IntervalMethod:
        """The method for a matrix of samples that are in no groups."""
        return self.method or IntervalMethod.POSTERIOR


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of decisions.

    Attributes:
        matrix: Rows are actual classes, columns what is decided.
        decisions: Names of the columns; the classes in their order when left out. Where they are not the classes,
            probabilities are needed: what is decided is what costs least by them.
    """

    matrix: Annotated[tuple[Amounts, ...], Limits(_CLASSES)]
    decisions: Annotated[tuple[LabelText, ...], Limits(_CLASSES)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a report, beyond the values that every report has.

    Attributes:
        metrics: Metric expressions, such as `f_beta(beta=2)@D`; their values stand in `requested`.
        level: Coverage of the intervals.
        seed: Seed of everything random; derived from the input when left out.
        intervals: `headline`: the usual metrics, every rate and what `metrics` asks for. `all`: every metric and every
            expression, by simulation where there is no closed form; needs counts. `none`: no intervals.
        interpretation: Answer the verbal scales of the literature too.
        retain: What is saved of the samples: `full` for curves, thresholds and paired comparisons later; `none` saves
            the values only.
        costs: For metrics of costs that name none; `requested` then has `expected_cost`, `normalized_cost` and
            `cost_savings`, and with probabilities `minimum_cost`.
        proportion_interval: Limits of every rate that is a proportion of the samples, such as accuracy and recall; the
            method of an interval says which it is. `wald` has no width where a rate is 0 or 1, and is left out there.
            Limits that have to hold for several rates together are always those of Clopper and Pearson.
        area_interval: Limits of the area under the ROC curve of a class. `hanley_mcneil`: the area -+ z standard errors
            that follow from it and the class sizes alone, as in older reports; it has no width where the area is 1.
        alternative: `greater`: intervals have a lower limit at the level, `less` an upper one; the other end is that of
            the range of the metric, `null` where it has none. One-sided levels lie above 0.5.
        details: Are there limits, details and metrics of the probabilities of each class, which pages do not show?
            Not saved.
    """

    metrics: Annotated[tuple[ExpressionText, ...], Limits({"max_length": 200})] = ()
    level: Level = 0.95
    seed: Seed | None = None
    intervals: IntervalChoice = IntervalChoice.HEADLINE
    interpretation: bool = False
    retain: Retain = Retain.FULL
    sampling: Sampling = field(default=Sampling(), metadata=SPREAD)
    costs: Costs | None = None
    proportion_interval: ProportionInterval = ProportionInterval.WILSON
    area_interval: AreaInterval = AreaInterval.DELONG
    alternative: Alternative = Alternative.TWO_SIDED
    details: bool = field(default=True, metadata=HIDDEN)

    @property
    def without_intervals(self) -> Self:
        """Options of the same report without intervals, which has no use for options of theirs."""
        usual = Options(intervals=IntervalChoice.NONE)
        names = ("intervals", "proportion_interval", "area_interval", "alternative")
        return replace(self, **{name: getattr(usual, name) for name in names})

    def check(self) -> None:
        """Refuse a one-sided limit at a level of a half or less, by ValueError."""
        check_one_sided(self.level, self.alternative)
