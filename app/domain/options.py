"""Options of a report."""

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from app.kernel.uncertainty.draws import Alternative as Alternative
from app.kernel.uncertainty.draws import AreaInterval as AreaInterval
from app.kernel.uncertainty.draws import Prior as Prior
from app.kernel.uncertainty.draws import Shares as Shares
from app.kernel.uncertainty.intervals import ProportionInterval as ProportionInterval
from app.kernel.uncertainty.resampling import FEWEST_DRAWS as FEWEST_DRAWS
from app.kernel.uncertainty.simulation import DRAWS as DRAWS


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """Assumptions about the sampling, for intervals of all metrics.

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


@dataclass(frozen=True, slots=True)
class Costs:
    """Costs of decisions: ``matrix`` has actual classes as rows, ``decisions`` as columns; None are the classes."""

    matrix: tuple[tuple[float, ...], ...]
    decisions: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of a report, beyond the values that every report has.

    Attributes:
        metrics: Metric expressions; their values stand in ``requested``.
        level: Coverage of the intervals, between 0 and 1.
        seed: Of everything random; None derives it from the input.
        interpretation: Whether verbal scales of the literature are answered too.
        sampling: How intervals of everything are made.
        costs: Of decisions, for metrics of costs that name none.
        proportion_interval: Limits of what is a proportion of the samples.
        area_interval: Limits of the area under the ROC curve of a class.
        alternative: Limits on both sides, or one of them alone.
        retain: What is saved of the samples, for curves, thresholds and paired comparisons.
        details: Are there limits, details and metrics of the probabilities of each class, which pages do not show?
            Not saved.
        first: Where several classes have no details, the overall metrics of their probabilities that are made alone;
            None: all. Not saved.
    """

    metrics: tuple[str, ...] = ()
    level: float = 0.95
    seed: int | None = None
    intervals: IntervalChoice = IntervalChoice.HEADLINE
    interpretation: bool = False
    sampling: Sampling = Sampling()
    costs: Costs | None = None
    proportion_interval: ProportionInterval = ProportionInterval.WILSON
    area_interval: AreaInterval = AreaInterval.DELONG
    alternative: Alternative = Alternative.TWO_SIDED
    retain: Retain = Retain.FULL
    details: bool = True
    first: Collection[str] | None = None
