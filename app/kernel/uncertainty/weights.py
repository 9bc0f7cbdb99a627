"""Closed-form intervals for weighted samples, from effective sample sizes and linearised variances."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from app.kernel.matrix.table import AdditiveGradient, Table, WeightedCounts, additive_variance, stack
from app.kernel.metrics.proportion import Rate
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.scipy_bridge import student_quantile
from app.kernel.uncertainty import intervals
from app.kernel.uncertainty.closed_forms import (
    FEW,
    Ends,
    Given,
    Headline,
    Method,
    OverallInterval,
    RateIntervals,
    Refusal,
    catalogue_rates,
    headline_metrics,
    is_signed,
    limits_on_scale,
    with_edges,
)
from app.kernel.uncertainty.intervals import Limits, jeffreys, two_sided_z, wilson


def worth_of(rate: Array, variance: Array, samples: Array, effective: Array, *, level: float) -> Array:
    """The effective numbers of samples of rates (...) of weighted samples.

    n over the design effect, which is the linearised variance over r(1-r)/n and counts as 1 at least (Korn & Graubard
    1998, Kott & Carr 1997). What that comes to, m, is multiplied with (t(m-1) / t(n_eff-1))^2 where it exceeds Kish's
    n_eff, since the variance is uncertain itself. A rate of 0 or 1 shows no design effect and is worth n_eff. Samples
    of one weight are worth their number.

    Args:
        rate: (...).
        variance: sum w^2 (y - r)^2 / (sum w)^2, (...).
        samples: n, (...).
        effective: n_eff, (...).
        level: of the interval to be.
    """
    tail = (1.0 + level) / 2.0
    with silently():
        binomial = rate * (1.0 - rate) / samples
        worth = samples / np.maximum(variance / binomial, 1.0)
        own, known = (student_quantile(tail, np.maximum(size - 1.0, 1.0)) for size in (worth, effective))
        return np.where(binomial > 0, worth * np.minimum(own / known, 1.0) ** 2, effective)


def surer(level: float, samples: float, effective: float) -> float:
    """By how much an interval is wider since the variance comes from n_eff samples and not from n, t / t; 1 for equal
    weights.
    """
    tail = (1.0 + level) / 2.0
    ends = [float(student_quantile(tail, max(size - 1.0, 1.0))) for size in (effective, samples)]
    return max(ends[0] / ends[1], 1.0)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedRate:
    """Rates of weighted samples.

    Attributes:
        rate: (...), NaN where there are no samples.
        variance: sum w^2 (y - r)^2 / (sum w)^2, (...): linearised, with replacement. R's `svyratio` has n/(n-1) times
            this.
        samples: n, (...).
        effective: Kish's n_eff, (...).
    """

    rate: Array
    variance: Array
    samples: Array
    effective: Array

    @classmethod
    def of_sums(cls, hits: Array, among: Array, samples: Array) -> Self:
        """From sums of weights and of squared weights (2, ...) of what counts and of all, and how many all are."""
        with silently():
            rate = hits[0] / among[0]
            misses = np.maximum(among[1] - hits[1], 0.0)
            variance = ((1.0 - rate) ** 2 * hits[1] + rate**2 * misses) / among[0] ** 2
            return cls(rate, variance, samples, among[0] ** 2 / among[1])

    @classmethod
    def of(cls, rate: Rate, weighted: WeightedCounts) -> Self:
        """Of one rate of a matrix."""
        sums, squares, samples = (
            rate.counts(Table(part)) for part in (weighted.counts, weighted.squares, weighted.samples)
        )
        hits, among = (np.array(pair) for pair in zip(sums, squares, strict=True))
        return cls.of_sums(hits, among, np.asarray(samples[1]))

    def worth(self, level: float) -> Array:
        """The effective numbers of samples (...)."""
        return worth_of(self.rate, self.variance, self.samples, self.effective, level=level)

    def as_counts(self, level: float) -> tuple[Array, Array]:
        """Hits and samples (...) for intervals of proportions."""
        worth = self.worth(level)
        return self.rate * worth, worth


# What rounding leaves of a variance of 0, relative to the squares that it is the rest of.
_ROUNDING = 1e-13
_NAMES = {
    Method.MOVER: Method.WEIGHTED_MOVER,
    Method.DELTA_LOGIT: Method.WEIGHTED_DELTA_LOGIT,
    Method.DELTA_FISHER_Z: Method.WEIGHTED_DELTA_FISHER_Z,
}


def weighted_headline(weighted: WeightedCounts, level: float = 0.95) -> Headline:
    """Headline intervals of one matrix of weighted samples.

    Accuracy and rates by Wilson at the numbers of samples that they are worth; balanced accuracy, G and H by MOVER on
    Jeffreys intervals of the recalls at theirs; macro F1, MCC and kappa by the delta method with the linearised
    variance.
    """
    with silently():
        table = Table(weighted.counts)
        of_recalls = _recalls(weighted, table, level)
        overall = (
            *_shares(weighted, table, level),
            *_recall_means(table, of_recalls),
            *_smooth(weighted, table, of_recalls, level),
        )
        return Headline(level, overall, _rates(weighted, level))


def gradient_variance(weighted: WeightedCounts, gradient: AdditiveGradient) -> float:
    """Linearised variance of a metric with this gradient (K) in the cell shares: sum w^2 (g - g_)^2 / (sum w)^2.

    g_ is the weighted mean of the gradient over the samples. R's `survey` has n/(n-1) times this.
    """
    slopes = gradient.rows[:, None] + gradient.columns + np.diag(gradient.diagonal)
    filled, total = weighted.counts > 0, float(weighted.counts.sum())
    # Where a class has no samples a derivative need not exist.
    slopes = np.where(filled, slopes, 0.0)
    away = np.where(filled, slopes - float((weighted.counts * slopes).sum()) / total, 0.0)
    found = float((weighted.squares * away * away).sum())
    size = float((weighted.squares * slopes * slopes).sum())
    return 0.0 if found <= _ROUNDING * size else found / total**2


def design_effects(weighted: WeightedCounts) -> dict[str, float]:
    """By overall metric how many times larger its variance is than that of as many samples of one weight; NaN where
    that is 0.
    """
    with silently():
        table = Table(weighted.counts)
        known = headline_metrics().gradients
        alone = additive_variance(table, stack([gradient(table) for _, gradient in known]))
        # The same shares with as many samples.
        alone = alone * float(weighted.counts.sum()) / float(weighted.samples.sum())
        found = np.array([gradient_variance(weighted, gradient(table)) for _, gradient in known])
        effects = np.where(alone > 0, found / alone, np.nan)
    return dict(zip((metric.key for metric, _ in known), effects.tolist(), strict=True))


def _interval(key: str, value: float, ends: tuple[float, float], method: Method) -> OverallInterval:
    refusal = None
    if np.isnan(ends[0] + ends[1]):
        refusal = Refusal.UNDEFINED_ESTIMATE if np.isnan(value) else Refusal.ZERO_STANDARD_ERROR
    return OverallInterval(key, *ends, method, Given.SAMPLES, refusal)


def _shares(weighted: WeightedCounts, table: Table, level: float) -> Iterator[OverallInterval]:
    for metric, proportion in headline_metrics().shares:
        rate = proportion.at(table.n_classes)
        low, high = rate.line.limits(*wilson(*WeightedRate.of(rate, weighted).as_counts(level), level))
        yield _interval(metric.key, float(metric(table)), (float(low), float(high)), Method.WEIGHTED_WILSON)


def _recalls(weighted: WeightedCounts, table: Table, level: float) -> tuple[Limits, Array]:
    """Jeffreys limits of the recalls, (K) each, and the effective number of samples of each (K)."""
    squares, samples = Table(weighted.squares), Table(weighted.samples)
    found = WeightedRate.of_sums(
        np.array([table.tp, squares.tp]), np.array([table.actual, squares.actual]), samples.actual
    )
    hits, worth = found.as_counts(level)
    return jeffreys(hits, worth, level), worth


def _recall_means(table: Table, of_recalls: tuple[Limits, Array]) -> Iterator[OverallInterval]:
    ends = intervals.mean_limits(table.recall, *of_recalls[0])
    for metric, mean in headline_metrics().means:
        low, high = ends[mean]
        yield _interval(metric.key, float(metric(table)), (float(low), float(high)), Method.WEIGHTED_MOVER)


def _smooth(
    weighted: WeightedCounts, table: Table, of_recalls: tuple[Limits, Array], level: float
) -> Iterator[OverallInterval]:
    """With what is unknown of classes at an edge, as for samples without weights."""
    reach = two_sided_z(level) * surer(level, float(weighted.samples.sum()), weighted.effective_samples)
    found = []
    for metric, gradient in headline_metrics().smooth:
        value = float(metric(table))
        half_width = reach * gradient_variance(weighted, gradient(table)) ** 0.5
        method = Method.DELTA_FISHER_Z if is_signed(metric) else Method.DELTA_LOGIT
        found.append(Ends(value, *(limits_on_scale(metric, value, half_width) or (np.nan, np.nan)), method))
    samples = Table(weighted.samples)
    at_edge = ((samples.tp == 0) | (samples.tp == samples.actual)) & (samples.actual > 0)
    limits, worth = of_recalls
    found = with_edges(found, weighted.counts, at_edge, at_edge & (worth < FEW), limits)
    for (metric, _), ends in zip(headline_metrics().smooth, found, strict=True):
        named = ends._replace(method=_NAMES[ends.method])
        yield _interval(metric.key, named.value, (named.low, named.high), named.method)


def _rates(weighted: WeightedCounts, level: float) -> RateIntervals:
    rates = catalogue_rates()
    sums, squares, samples = (Table(part) for part in (weighted.counts, weighted.squares, weighted.samples))
    hits = np.array([[getattr(table, name) for name in rates.numerators] for table in (sums, squares)])
    among = np.array([[getattr(table, name) for name in rates.denominators] for table in (sums, squares)])
    found = WeightedRate.of_sums(hits, among, np.array([getattr(samples, name) for name in rates.denominators]))
    limits = rates.limits(*wilson(*found.as_counts(level), level))
    return RateIntervals(rates.keys, (Given.SAMPLES,) * len(rates.keys), *limits, Method.WEIGHTED_WILSON)
