"""The intervals that every report on samples in groups carries: closed forms, with the variance between the groups."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from app.kernel.matrix.gradient import AdditiveGradient, additive_variance, of_recalls, stack
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import Metric
from app.kernel.metrics.families.per_class.rates import recall
from app.kernel.metrics.proportion import Proportion
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.special import student_quantile
from app.kernel.samples.areas import ROUNDING
from app.kernel.samples.losses import sums_by_code
from app.kernel.uncertainty.of_groups.clusters import Codes, GroupedRuns, Groups, group_variance, wilson_of_variance
from app.kernel.uncertainty.of_matrices import mover
from app.kernel.uncertainty.of_matrices.closed_forms import Given, Method, Refusal, catalogue_rates, headline_metrics
from app.kernel.uncertainty.of_matrices.headline import (
    Headline,
    OverallInterval,
    RateIntervals,
    is_signed,
    limits_on_scale,
)

# Cells of a class against the rest: the basis that all counts of one class are sums in.
_TP, _FN, _FP, _TN = range(4)
_BASIS = np.zeros((4, 2, 2))
_BASIS[_TP, 1, 1] = _BASIS[_FN, 1, 0] = _BASIS[_FP, 0, 1] = _BASIS[_TN, 0, 0] = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class GroupedHeadline:
    """Headline intervals of one matrix whose samples come in groups.

    Attributes:
        headline: The intervals.
        design_effects: By overall metric how many times larger its variance is than that of independent samples; NaN
            where that is 0.
    """

    headline: Headline
    design_effects: Mapping[str, float]


def group_headline(runs: GroupedRuns, level: float = 0.95) -> GroupedHeadline:
    """Headline intervals of one run on samples in groups.

    Accuracy and rates by Wilson at the sample size they are worth; balanced accuracy, G and H by MOVER on these
    intervals of the recalls and their correlation; macro F1, MCC and kappa by the delta method with Student's quantile.

    Raises:
        ValueError: there are several runs.
    """
    if runs.n_runs != 1:
        raise ValueError(f"expected one run, got {runs.n_runs}")
    with silently():
        table = Table(runs.matrices()[0])
        variances, effects = _variances(runs, table)
        rates, recall_variances = _rates(runs, level)
        chosen, worth = headline_metrics(), runs.effective_groups
        overall = (
            *(_share(runs, rate, table, variances[rate[0].key], level) for rate in chosen.shares),
            *_recall_means(runs, table, rates, recall_variances),
            *(_smooth(metric, table, variances[metric.key], worth, level) for metric, _ in chosen.smooth),
        )
    return GroupedHeadline(Headline(level, overall, rates), effects)


def additive_influences(runs: GroupedRuns, gradient: AdditiveGradient) -> Array:
    """How much each group (G) of one run moves a metric with this gradient (K) in the cell shares; 0 where all of it is
    rounding, which would depend on the order of the samples.
    """
    actual, predicted = np.divmod(runs.cell, runs.n_classes)
    moves = gradient.rows[actual] + gradient.columns[predicted]
    moves = moves + np.where(actual == predicted, gradient.diagonal[actual], 0.0)
    total = runs.count.sum()
    centred = runs.count * (moves - runs.count @ moves / total) / total
    influences = sums_by_code(runs.group, centred, runs.n_groups)
    sizes = sums_by_code(runs.group, runs.count * np.abs(moves) / total, runs.n_groups)
    is_rounding = bool((np.abs(influences) <= ROUNDING * sizes.max()).all())
    return np.zeros_like(influences) if is_rounding else influences


def _variances(runs: GroupedRuns, table: Table) -> tuple[dict[str, float], dict[str, float]]:
    """Variances by the delta method, and how many times they are those of independent samples."""
    known = headline_metrics().gradients
    gradients = stack([gradient(table) for _, gradient in known])
    rows = zip(gradients.diagonal, gradients.rows, gradients.columns, strict=True)
    grouped = [float(group_variance(additive_influences(runs, AdditiveGradient(*row)))) for row in rows]
    alone = additive_variance(table, gradients) / runs.samples_per_weight
    effects = np.where(alone > 0, np.array(grouped) / alone, np.nan)
    keys = [metric.key for metric, _ in known]
    return dict(zip(keys, grouped, strict=True)), dict(zip(keys, effects.tolist(), strict=True))


def _interval(key: str, value: float, ends: tuple[float, float] | None, method: Method) -> OverallInterval:
    if np.isnan(value):
        return OverallInterval(key, np.nan, np.nan, method, Given.GROUPS, Refusal.UNDEFINED_ESTIMATE)
    if ends is None:
        return OverallInterval(key, np.nan, np.nan, method, Given.GROUPS, Refusal.ZERO_STANDARD_ERROR)
    refusal = Refusal.ONE_GROUP if np.isnan(ends).any() else None
    return OverallInterval(key, *ends, method, Given.GROUPS, refusal)


def _share(
    runs: GroupedRuns, share: tuple[Metric[Table], Proportion], table: Table, variance: float, level: float
) -> OverallInterval:
    metric, proportion = share
    rate = proportion.at(table.n_classes)
    hits, total = rate.counts(table)
    groups = Groups(np.asarray(runs.n_groups), np.asarray(runs.effective_groups))
    size = total * runs.samples_per_weight
    low, high = rate.line.limits(*wilson_of_variance(hits / total, size, np.asarray(variance), groups, level))
    return _interval(metric.key, float(metric(table)), (float(low), float(high)), Method.GROUPED_WILSON)


def _recall_means(runs: GroupedRuns, table: Table, rates: RateIntervals, variances: Array) -> Iterator[OverallInterval]:
    """MOVER with correlated rates (Zou 2008): a recall that does not vary between groups has no correlation."""
    place = rates.keys.index(recall.key)
    error = np.sqrt(variances)

    def spread(moved: Array) -> Array:
        """For two sides (2, K): the variance of moves in standard errors is that of the sum of all of them."""
        varies = error > 0
        shares = np.where(varies, moved / error, 0.0)
        together = [float(group_variance(additive_influences(runs, of_recalls(table, row)))) for row in shares]
        alone = np.where(varies, 0.0, moved)
        found: Array = np.sqrt(np.array(together) + (alone * alone).sum(axis=-1))
        return found

    ends = mover.mean_limits(table.recall, rates.low[place], rates.high[place], spread=spread)
    for metric, mean in headline_metrics().means:
        low, high = ends[mean]
        yield _interval(metric.key, float(metric(table)), (float(low), float(high)), Method.GROUPED_MOVER)


def _smooth(metric: Metric[Table], table: Table, variance: float, n_groups: float, level: float) -> OverallInterval:
    method = Method.CLUSTER_DELTA_FISHER_Z if is_signed(metric) else Method.CLUSTER_DELTA_LOGIT
    value = float(metric(table))
    half_width = float(student_quantile((1.0 + level) / 2.0, n_groups - 1.0)) * variance**0.5
    return _interval(metric.key, value, limits_on_scale(metric, value, half_width), method)


def _rates(runs: GroupedRuns, level: float) -> tuple[RateIntervals, Array]:
    """Intervals of all rates (R, K), and the variances (K) of the recalls.

    A rate h/s of one class is a ratio of sums over the groups of their four counts against the rest, so the sum of the
    squares (h - r s)^2 follows from the products of these counts, added up over the groups.
    """
    rates = catalogue_rates()
    basis = Table(_BASIS)
    hits, among = (
        np.array([getattr(basis, name)[:, 1] for name in names]) for names in (rates.numerators, rates.denominators)
    )
    counts = _Counts.of(runs)
    totals = among @ counts.sums
    found = (hits @ counts.sums) / totals
    differences = hits[:, None] - found[..., None] * among[:, None]
    squares = np.einsum("rki,kij,rkj->rk", differences, counts.products, differences)
    present = counts.present(among)
    variances = np.maximum(squares, 0.0) / totals**2 * present / (present - 1.0)
    effective = totals**2 / np.einsum("ri,kij,rj->rk", among, counts.products, among)
    sizes = totals * runs.samples_per_weight
    limits = rates.limits(*wilson_of_variance(found, sizes, variances, Groups(present, effective), level))
    given = (Given.GROUPS,) * len(rates.keys)
    of_recall = rates.places[rates.keys.index(recall.key)]
    return RateIntervals(rates.keys, given, *limits, Method.GROUPED_WILSON), variances[of_recall]


@dataclass(frozen=True, slots=True, eq=False)
class _Counts:
    """What groups hold of each class against the rest, for the E pairs of a group and a class that it has.

    Attributes:
        of_class: (E).
        parts: (4, E), in the order of the basis.
        sizes: (G) samples of each group.
        sums: (4, K) over all groups.
        products: (K, 4, 4), of two of the four counts, over all groups.
    """

    of_class: Codes
    parts: Array
    sizes: Array
    sums: Array
    products: Array

    @classmethod
    def of(cls, runs: GroupedRuns) -> Self:
        """From the cells of the groups."""
        size = runs.n_classes
        actual, predicted = np.divmod(runs.cell, size)
        wrong = actual != predicted
        keys = np.concatenate([runs.group * size + actual, (runs.group * size + predicted)[wrong]])
        kinds = np.concatenate([np.where(wrong, _FN, _TP), np.full(np.count_nonzero(wrong), _FP)])
        mass = np.concatenate([runs.count, runs.count[wrong]])
        found, places = np.unique(keys, return_inverse=True)
        parts = sums_by_code(kinds * found.size + places, mass, 4 * found.size).reshape(4, -1)
        sizes = runs.sizes()
        own = sizes[found // size]
        parts[_TN] = own - parts.sum(axis=0)
        of_class = found % size
        sums = sums_by_code(of_class, parts, size)
        sums[_TN] = sizes.sum() - sums[:_TN].sum(axis=0)
        products = np.array([[np.bincount(of_class, one * other, size) for other in parts] for one in parts]).transpose(
            2, 0, 1
        )
        # Groups without the class have negatives only, all of them right.
        products[:, _TN, _TN] += (sizes @ sizes) - np.bincount(of_class, own * own, size)
        return cls(of_class, parts, sizes, sums, products)

    def present(self, among: Array) -> Array:
        """In how many groups there are any of R kinds of samples (R, 4) of each class: (R, K)."""
        size = self.sums.shape[1]
        with_class = np.bincount(self.of_class, minlength=size)
        return np.array(
            [
                np.bincount(self.of_class, row @ self.parts > 0, size) + (self.sizes.size - with_class) * (row[_TN] > 0)
                for row in among
            ]
        )
