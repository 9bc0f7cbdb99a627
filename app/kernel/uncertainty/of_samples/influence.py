"""Metrics of probabilities as sums over the samples: their values, what each sample adds to the sampling error, limits.

What a metric's influence is stands on its card; the forms are those of ``app.kernel.samples.influence``.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from app.kernel.metrics.card import Metric, Scale
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.bisection import last_inside
from app.kernel.numerics.special import student_quantile
from app.kernel.samples.influence import Influence, LinearMethod, Sampled, Strata
from app.kernel.samples.partial_areas import hanley_mcneil_error
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.design import ProportionInterval
from app.kernel.uncertainty.intervals import logit_limits, proportion_limits, two_sided_z
from app.kernel.uncertainty.of_weights.rates import surer, worth_of

Bounds = tuple[float | None, float | None]


@dataclass(frozen=True, slots=True, eq=False)
class Linearisation:
    """A metric with what each sample adds to its sampling error.

    Attributes:
        value: The metric; NaN where it is undefined, and then the influence is too.
        influence: (n) in the order of the samples; the sum of squares is the variance.
        scale: On which limits are symmetric.
        strata: What its variance takes as fixed.
        method: How limits are made.
        bounds: Range of the metric, None where there is no end.
        freedom: Degrees of freedom of the variance, infinite where it is taken as known.
        sizes: Members and non-members of the class, for an area.
        worth: Of weighted samples, how many they are and how many of one weight are worth as much.
        n_samples: How many samples there are, where their influence was added up before.
        about: (G) samples of each group that have any influence, where the influence is that of groups (G).
        design_effect: How many times larger the variance is than that of as many samples of one weight, where the
            influence of weighted samples was added up before.
    """

    value: float
    influence: Array
    scale: Scale
    strata: Strata
    method: LinearMethod
    bounds: Bounds = (0.0, 1.0)
    freedom: float = np.inf
    sizes: tuple[float, float] | None = None
    worth: tuple[int, float] | None = None
    n_samples: int | None = None
    about: Array | None = None
    design_effect: float | None = None

    def widened(self, level: float) -> float:
        """By how much limits of a level are wider since their variance is that of weighted samples."""
        return 1.0 if self.worth is None else surer(level, *self.worth)


@dataclass(frozen=True, slots=True)
class LinearLimits:
    """Ends of an interval, and how they were made."""

    low: float
    high: float
    method: LinearMethod


class Influences(Sampled):
    """Metrics of one set of samples, linearised; what several of them need is computed once."""

    @property
    def n_units(self) -> int:
        """How many samples."""
        return self.scores.n_samples

    @property
    def n_classes(self) -> int:
        """K."""
        return self.scores.n_classes

    def of(
        self, metric: Metric[Scores], class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric of probabilities as a sum over the samples; None where there is no closed form.

        Args:
            metric: Of probabilities.
            class_index: The class, for a metric of one class.
            parameters: Of the metric, its defaults where None.

        Raises:
            ValueError: a metric of one class comes without it.
        """
        card = metric.card
        form = card.inference.influence
        if form is None or not (form.of_weighted or self.scores.weights is None):
            return None
        chosen = {**card.defaults, **(parameters or {})}
        with silently():
            computed = metric.compute(self.scores, **chosen)
            if computed.ndim and class_index is None:
                raise ValueError(f"{metric.key} is a metric of one class")
            value = float(computed[class_index] if computed.ndim else computed)
            if np.isfinite(value):
                return self._linear(metric, value, form.make(self, class_index, chosen))
            return self._linear(metric, value, Influence(np.full(self.scores.n_samples, np.nan), form.method))

    def _linear(self, metric: Metric[Scores], value: float, found: Influence) -> Linearisation:
        worth = None if self.scores.weights is None else (self.n_samples, self.effective_samples)
        return Linearisation(
            value,
            found.of_samples,
            metric.card.inference.scale,
            found.strata,
            found.method,
            metric.card.range,
            found.freedom,
            found.sizes,
            worth,
        )


def variance(linearisation: Linearisation) -> float:
    """Sampling variance of the metric."""
    return covariance(linearisation, linearisation)


def covariance(first: Linearisation, second: Linearisation) -> float:
    """Of two metrics, or of one metric of two runs, on the same samples in the same order."""
    return float(np.vecdot(first.influence, second.influence))


def limits(
    linearisation: Linearisation, level: float = 0.95, share: ProportionInterval = ProportionInterval.WILSON
) -> LinearLimits | None:
    """Ends of the interval of a value; None where it is undefined or has no variance.

    What is a share of the samples has the limits of ``share``. An area of 0 or 1, or without variance, has the limits
    of Newcombe (2006), method 5.
    """
    value, method = linearisation.value, linearisation.method
    error = float(np.sqrt(variance(linearisation)))
    if not np.isfinite(value) or np.isnan(error):
        return None
    if method is LinearMethod.WILSON:
        size = np.asarray(_worth(linearisation, error * error, level))
        below, above = map(float, proportion_limits(value * size, size, level, share))
        return LinearLimits(below, above, LinearMethod(share.value)) if below < above else None
    low, high = linearisation.bounds
    on_logit = linearisation.scale is Scale.LOGIT and low is not None and high is not None
    if error == 0.0 and not on_logit:
        return None
    tail = (1.0 + level) / 2.0
    if on_logit:
        reach = two_sided_z(level) * linearisation.widened(level)
    else:
        reach = float(student_quantile(tail, linearisation.freedom))
        # Degrees of freedom that are known allow for weights themselves.
        reach *= linearisation.widened(level) if np.isinf(linearisation.freedom) else 1.0
    ends = limits_on_scale(linearisation, reach * error)
    if ends is None and linearisation.sizes is not None and low is not None and high is not None:
        width, method = high - low, LinearMethod.NEWCOMBE
        of_area = newcombe_area_limits((value - low) / width, *linearisation.sizes, level)
        ends = low + width * of_area[0], low + width * of_area[1]
    return None if ends is None else LinearLimits(*ends, method)


def _worth(share: Linearisation, variance: float, level: float) -> float:
    """The effective number of samples of a share of the samples."""
    if share.worth is None:
        return float(share.influence.size if share.n_samples is None else share.n_samples)
    samples, effective = share.worth
    linearised = variance * (samples - 1.0) / samples
    of_share = (np.asarray(part) for part in (share.value, linearised, float(samples), effective))
    return float(worth_of(*of_share, level=level))


def limits_on_scale(linearisation: Linearisation, half_width: float) -> tuple[float, float] | None:
    """Ends value -+ half_width on the scale of the metric, within its range; None where the logit scale has none."""
    value, (low, high) = linearisation.value, linearisation.bounds
    if linearisation.scale is Scale.LOGIT and low is not None and high is not None:
        return logit_limits(value, half_width, low, high)
    lowest, highest = -np.inf if low is None else low, np.inf if high is None else high
    return max(value - half_width, lowest), min(value + half_width, highest)


def effective_samples(linearisation: Linearisation) -> float:
    """How many samples carry the variance: (sum of squares)^2 / sum of fourth powers; NaN without variance."""
    squares = np.square(linearisation.influence)
    with silently():
        return float(np.divide(np.sum(squares) ** 2, np.sum(squares * squares)))


def area_limits(
    area: float, variance: float, positives: int, negatives: int, level: float = 0.95
) -> tuple[float, float, LinearMethod]:
    """Limits of one area and the method: DeLong on the logit scale, or Newcombe's where that has no width."""
    ends = logit_limits(area, two_sided_z(level) * float(np.sqrt(variance)))
    if ends is not None:
        return *ends, LinearMethod.DELONG_LOGIT
    return *newcombe_area_limits(area, positives, negatives, level), LinearMethod.NEWCOMBE


def newcombe_area_limits(area: float, positives: float, negatives: float, level: float = 0.95) -> tuple[float, float]:
    """Limits of an area from itself and the class sizes alone, of positive width also at 0 and 1. Newcombe (2006),
    method 5.

    The values t with (area - t)^2 <= z^2 V(t), V(t) = t(1-t) (1 + s (1-t)/(2-t) + s t/(1+t)) / (m n): Hanley &
    McNeil's variance with s = (m + n)/2 - 1 for both class sizes less 1.
    """
    z, size = two_sided_z(level), (positives + negatives) / 2.0 - 1.0

    def inside(t: float) -> bool:
        spread = t * (1 - t) * (1 + size * ((1 - t) / (2 - t) + t / (1 + t))) / (positives * negatives)
        return (area - t) ** 2 <= z * z * spread

    return last_inside(inside, area, 0.0), last_inside(inside, area, 1.0)


def hanley_mcneil_limits(area: float, positives: float, negatives: float, level: float = 0.95) -> tuple[float, float]:
    """Limits area -+ z standard errors from the area and the class sizes alone, cut at 0 and 1. Hanley & McNeil (1982).

    Without width where the area is 0 or 1.
    """
    sizes = np.asarray(area), np.asarray(positives), np.asarray(negatives)
    reach = two_sided_z(level) * float(hanley_mcneil_error(*sizes))
    return max(area - reach, 0.0), min(area + reach, 1.0)
