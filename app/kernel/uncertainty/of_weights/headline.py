"""The intervals that every report on weighted samples carries: closed forms, with the linearised variance.

For equal weights they are those of `of_matrices.headline`.
"""

from collections.abc import Iterator

import numpy as np

from app.kernel.matrix.gradient import AdditiveGradient, additive_variance, stack
from app.kernel.matrix.table import Table
from app.kernel.matrix.weighted import WeightedCounts
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.intervals import Limits, jeffreys, two_sided_z, wilson
from app.kernel.uncertainty.of_matrices import mover
from app.kernel.uncertainty.of_matrices.closed_forms import Given, Method, Refusal, catalogue_rates, headline_metrics
from app.kernel.uncertainty.of_matrices.headline import (
    FEW,
    Ends,
    Headline,
    OverallInterval,
    RateIntervals,
    is_signed,
    limits_on_scale,
    with_edges,
)
from app.kernel.uncertainty.of_weights.rates import WeightedRate, surer

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
    ends = mover.mean_limits(table.recall, *of_recalls[0])
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
