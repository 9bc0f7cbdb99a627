"""Runs compared on metrics of probabilities in closed form: every sample's influence, and what runs share of it.

Influences add up like the values they belong to, so the difference of two runs on the same samples has the difference
of their influences: for an area that is DeLong's test, for a mean loss the paired t test.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import Any, NamedTuple, Protocol

import numpy as np

from app.kernel.compare.paired.tests import ChiSquared
from app.kernel.metrics.card import Scale
from app.kernel.metrics.expression import Every, Expression, Measure
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.scipy_bridge import chi_squared_upper_tail, student_cdf, student_quantile
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.influence import Bounds, Linearisation, limits
from app.kernel.uncertainty.intervals import two_sided_z

# Relative to those of the two runs, a variance of their difference below this is rounding.
_ROUNDING = 1e-14
# Relative to the values, a deviation below this is too.
_NO_DIFFERENCE = 1e-12


class Linear(Protocol):
    """Metrics of something as sums over its units."""

    @property
    def n_units(self) -> int:
        """How many."""

    @property
    def n_classes(self) -> int:
        """K."""

    def of(
        self, metric: Any, class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """One value of a metric; None where there is no closed form."""


def linearised(expression: Expression, of: Linear) -> list[Linearisation] | None:
    """The V values of an expression as sums over the samples; None where one of them has no closed form.

    Means of metrics have the mean of their influences, by the derivatives of the mean. None where influences were added
    up before, sample by sample of each metric: how these go together is not known then.
    """
    if isinstance(expression, Measure):
        metric = expression.metric
        classes = range(of.n_classes) if isinstance(expression.of, Every) else (expression.of,)
        found = [of.of(metric, code, parameters=expression.parameters) for code in classes]
        known = [one for one in found if one is not None]
        return known if len(known) == len(found) else None
    slopes = expression.card.slopes
    if slopes is None:
        return None
    parts: list[Linearisation] = []
    for part in expression.parts:
        some = linearised(part, of)
        if some is None:
            return None
        parts.extend(some)
    if any(part.n_samples is not None for part in parts):
        return None
    values = np.array([part.value for part in parts])
    with silently():
        value, weights = (
            float(expression.card.compute(values, **expression.parameters)),
            slopes(values, **expression.parameters),
        )
    if np.isfinite(value) and not np.isfinite(weights).all():
        # At a part of 0 the mean has no derivative.
        return None
    influence = np.zeros(of.n_units)
    for weight, one in zip(weights.tolist(), parts, strict=True):
        influence += weight * one.influence
    return [_combined(value, influence, parts)]


def _combined(value: float, influence: Array, parts: Sequence[Linearisation]) -> Linearisation:
    on_logit = all(part.scale is Scale.LOGIT and part.bounds == parts[0].bounds for part in parts)
    by_class = all(part.strata is Strata.BY_CLASS for part in parts)
    return Linearisation(
        value,
        influence,
        Scale.LOGIT if on_logit else Scale.LINEAR,
        Strata.BY_CLASS if by_class else Strata.WHOLE,
        LinearMethod.INFLUENCE_LOGIT if on_logit else LinearMethod.INFLUENCE,
        _hull([part.bounds for part in parts]),
        freedom=float(np.min([part.freedom for part in parts])),
        worth=parts[0].worth,
    )


def _hull(bounds: Sequence[Bounds]) -> Bounds:
    lows, highs = [low for low, _ in bounds if low is not None], [high for _, high in bounds if high is not None]
    return min(lows) if len(lows) == len(bounds) else None, max(highs) if len(highs) == len(bounds) else None


class LinearTest(NamedTuple):
    """Limits and two-sided p of a difference. All NaN where no test applies; without variance p alone may be 1."""

    low: float
    high: float
    p: float


@dataclass(frozen=True, slots=True, eq=False)
class LinearRuns:
    """One value of R runs with its sampling covariance.

    Attributes:
        values: (R), NaN where undefined.
        covariance: (R, R), 0 between runs on different samples.
        freedom: (R), of the variances.
        methods: (R), how the limits of each run alone are made.
        guards: (R), deviations to draw areas with that have no variance, such as 1: those of Newcombe's interval.
        at_end: (R), 1 at the upper end of the range, -1 at the lower, else 0.
        alike: (R, R), the largest covariance that an unknown pairing leaves possible; None where the pairing is known.
        against: The smallest.
    """

    values: Array
    covariance: Array
    freedom: Array
    methods: tuple[LinearMethod, ...]
    guards: Array
    at_end: Array
    alike: Array | None = None
    against: Array | None = None

    def variance(self, first: int, second: int, covariance: Array | None = None) -> float:
        """Of the difference of two runs; with other covariances between them where these are given."""
        between = (self.covariance if covariance is None else covariance)[first, second]
        own = float(self.covariance[first, first] + self.covariance[second, second])
        found = own - 2.0 * float(between)
        exact = _NO_DIFFERENCE * float(np.abs(self.values[[first, second]]).max())
        return 0.0 if found <= max(_ROUNDING * own, exact * exact) else found

    def test(self, first: int, second: int, level: float, *, variance: float | None = None) -> LinearTest:
        """First less second: limits by Student's t, whose degrees of freedom are infinite for areas, and p.

        Without variance p is 1 for a difference of 0; what varies for each run but not for the difference has it at 0
        for certain. A difference without variance that is not 0 has no test.
        """
        if not np.isfinite(self.values[[first, second]]).all():
            return LinearTest(nan, nan, nan)
        gap = float(self.values[first] - self.values[second])
        spread = self.variance(first, second) if variance is None else variance
        if spread == 0.0:
            if abs(gap) > _NO_DIFFERENCE:
                return LinearTest(nan, nan, nan)
            end = 0.0 if self.varies(first) else nan
            return LinearTest(end, end, 1.0)
        error, freedom = float(np.sqrt(spread)), self.pair_freedom(first, second)
        reach = float(student_quantile((1.0 + level) / 2.0, freedom)) * error
        return LinearTest(gap - reach, gap + reach, float(2.0 * student_cdf(-abs(gap) / error, freedom)))

    def varies(self, run: int) -> bool:
        """Has the value of a run a sampling error?"""
        return bool(self.covariance[run, run] > (_NO_DIFFERENCE * self.values[run]) ** 2)

    def pair_freedom(self, first: int, second: int) -> float:
        """Degrees of freedom of the difference: those of Welch (1947) for independent runs, else the fewer."""
        both = self.freedom[[first, second]]
        if self.covariance[first, second] != 0.0 or not np.isfinite(both).all():
            return float(both.min())
        own = self.covariance[[first, second], [first, second]]
        with silently():
            found = float(own.sum() ** 2 / (own**2 / both).sum())
        return found if np.isfinite(found) else float(both.min())

    def equality(self) -> ChiSquared:
        """Wald's test that all R values are the same."""
        contrasts = np.eye(self.values.size)[:-1] - np.eye(self.values.size)[1:]
        gaps, spread = contrasts @ self.values, contrasts @ self.covariance @ contrasts.T
        freedom = int(np.linalg.matrix_rank(spread, hermitian=True))
        if freedom == 0:
            return ChiSquared(0.0, 0, 1.0)
        statistic = float(gaps @ np.linalg.pinv(spread, hermitian=True) @ gaps)
        return ChiSquared(statistic, freedom, float(chi_squared_upper_tail(statistic, freedom)))

    def draw(self, draws: int, random: np.random.Generator) -> Array:
        """Joint draws (D, R) around the values with the covariance; NaN for a run without a value."""
        drawn = np.full((draws, self.values.size), np.nan)
        known = np.flatnonzero(np.isfinite(self.values))
        if not known.size:
            return drawn
        sizes, axes = np.linalg.eigh(self.covariance[np.ix_(known, known)])
        # Identical runs leave directions without variance.
        root = axes * np.sqrt(np.where(sizes > _ROUNDING * max(sizes[-1], 0.0), sizes, 0.0))
        away = random.standard_normal((draws, known.size)) @ root.T
        freedom = float(self.freedom[known].min())
        if np.isfinite(freedom):
            away *= np.sqrt(freedom / random.chisquare(freedom, draws))[:, None]
        drawn[:, known] = self.values[known] + away
        for run in np.flatnonzero(self.guards):
            noise = self.guards[run] * random.standard_normal(draws)
            if self.at_end[run]:
                # From the end of the range there is one way only.
                noise = -self.at_end[run] * np.abs(noise)
            drawn[:, run] = self.values[run] + noise
        return drawn


def join_runs(parts: Sequence[Linearisation], truths: Sequence[Codes], *, paired: bool, same_items: bool) -> LinearRuns:
    """One value of R runs together.

    Args:
        parts: (R) of samples in one order when they are paired.
        truths: (R) class codes of the samples of each.
        paired: The samples of all runs are the same, in the same order.
        same_items: They are the same in an unknown order.
    """
    if paired:
        influences = np.stack([part.influence for part in parts])
        return runs_of(parts, influences @ influences.T)
    covariance = np.diag([float(np.vecdot(part.influence, part.influence)) for part in parts])
    if not same_items:
        return runs_of(parts, covariance)
    # Within a class the sum of products is greatest when both are sorted alike (Hoeffding 1940).
    rising = np.stack([_sorted_by_class(part.influence, y) for part, y in zip(parts, truths, strict=True)])
    falling = np.stack([-_sorted_by_class(-part.influence, y) for part, y in zip(parts, truths, strict=True)])
    return replace(runs_of(parts, covariance), alike=rising @ rising.T, against=rising @ falling.T)


def runs_of(parts: Sequence[Linearisation], covariance: Array) -> LinearRuns:
    """One value of R runs with a covariance (R, R) that is known."""
    return LinearRuns(
        np.array([part.value for part in parts]),
        covariance,
        np.array([part.freedom for part in parts]),
        tuple(part.method for part in parts),
        np.array([_guard(part) for part in parts]),
        np.array([_end(part) for part in parts]),
    )


def _guard(part: Linearisation) -> float:
    """The deviation of an area without variance, from the limits that it is given instead; 0 for all else."""
    found = limits(part)
    if found is None or found.method is not LinearMethod.NEWCOMBE:
        return 0.0
    return max(part.value - found.low, found.high - part.value) / two_sided_z(0.95)


def _end(part: Linearisation) -> float:
    low, high = part.bounds
    return float(part.value == high) - float(part.value == low)


def _sorted_by_class(influence: Array, y: Codes) -> Array:
    ordered: Array = influence[np.lexsort((influence, y))]
    return ordered


def hits_of(share: Linearisation) -> Array:
    """Which samples (n) count for a share of samples, from their influence on it."""
    size = share.influence.size
    counted: Array = np.round(share.influence * np.sqrt(size * max(size - 1, 1)) + share.value)
    return counted
