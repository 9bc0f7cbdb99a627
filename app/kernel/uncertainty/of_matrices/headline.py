"""The intervals that every report carries: closed forms only, no sampling, a tenth of a millisecond.

With two or more leading axes a matrix has the same intervals, bit for bit, in any batch (see `numerics.total`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import hypot, isnan, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.gradient import additive_variance, stack
from app.kernel.matrix.table import Table
from app.kernel.metrics.card import AnyMetric, Metric
from app.kernel.metrics.proportion import Rate
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.uncertainty.intervals import Limits, jeffreys, logit_limits, two_sided_z, wilson
from app.kernel.uncertainty.of_matrices import mover
from app.kernel.uncertainty.of_matrices.closed_forms import Given, Method, Refusal, catalogue_rates, headline_metrics


class OverallInterval(NamedTuple):
    """Interval of one overall metric; when ``refusal`` says why there is none, low and high are NaN."""

    key: str
    low: float
    high: float
    method: Method
    given: Given
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class RateIntervals:
    """Wilson intervals of every per-class rate.

    Attributes:
        keys: The R rates in the order of the catalogue.
        given: What each takes as fixed. A rate among the predicted has a random denominator, so its
            interval is conditional.
        low: (R, ..., K), NaN where the denominator is 0.
        high: (R, ..., K).
    """

    keys: tuple[str, ...]
    given: tuple[Given, ...]
    low: Array
    high: Array
    method: Method = Method.WILSON


@dataclass(frozen=True, slots=True)
class Headline:
    """All headline intervals of one matrix; those of the rates are (R, K)."""

    level: float
    overall: tuple[OverallInterval, ...]
    rates: RateIntervals

    def of(self, metric: AnyMetric) -> OverallInterval | None:
        """That of an overall metric, if it is one of these."""
        return next((interval for interval in self.overall if interval.key == metric.key), None)

    def of_rate(self, rate: Rate) -> tuple[float, float]:
        """Limits of a rate, whatever metric it is asked for by: of one class, or accuracy."""
        if rate.of is None:
            share, _ = headline_metrics().shares[0]
            return next((one.low, one.high) for one in self.overall if one.key == share.key)
        place = catalogue_rates().place(rate)
        return float(self.rates.low[place, rate.of]), float(self.rates.high[place, rate.of])


@dataclass(frozen=True, slots=True)
class Headlines:
    """All headline intervals of a batch of B matrices: those of the overall metrics one matrix after another, and the
    limits (..., K) of the recalls that those of their means follow from.
    """

    level: float
    overall: tuple[tuple[OverallInterval, ...], ...]
    rates: RateIntervals
    recalls: Limits


# Which matrices of a batch, as an index of its leading axes.
Selection = tuple[slice, ...]

# From so many samples on the delta method keeps its level with a class at an edge (benchmarks/coverage.py).
FEW = 30
# Cells of the matrices with one row moved each: a few milliseconds.
_MOST_CELLS_MOVED = 1 << 19
_NONE = (nan, nan)


def headline(counts: Array, level: float = 0.95) -> Headline:
    """Those of one matrix (K, K), bit for bit as it has them in a batch. See ``headlines``."""
    found = headlines(Table(counts[None, None]), level)
    rates = replace(found.rates, low=found.rates.low[:, 0, 0], high=found.rates.high[:, 0, 0])
    return Headline(level, found.overall[0], rates)


def headlines(table: Table, level: float = 0.95, *, of: Selection = ()) -> Headlines:
    """Headline intervals of matrices of counts (..., K, K), or of a selection of them that leaves the axes.

    Accuracy and rates by Wilson; balanced accuracy, G and H by MOVER on Jeffreys intervals of the recalls; macro F1,
    MCC and kappa by the delta method for multinomial counts, on the logit and the Fisher-z scale.

    Raises:
        ValueError: the level is not between 0 and 1.
    """
    with silently():
        rates = rate_intervals(table, level, of=of)
        recalls = jeffreys(table.tp[of], table.actual[of], level)
        parts = (*_shares(table, level, of), *_recall_means(table, recalls, of), *_smooth_metrics(table, level, of))
    return Headlines(level, tuple(zip(*parts, strict=True)), rates, recalls)


def rate_intervals(table: Table, level: float = 0.95, *, of: Selection = ()) -> RateIntervals:
    """Wilson intervals of every per-class rate of matrices (..., K, K), in one go."""
    rates = catalogue_rates()
    numerators = np.array([getattr(table, name)[of] for name in rates.numerators])
    denominators = np.array([getattr(table, name)[of] for name in rates.denominators])
    return RateIntervals(rates.keys, rates.given, *rates.limits(*wilson(numerators, denominators, level)))


def _intervals(key: str, low: Array, high: Array, method: Method, given: Given) -> list[OverallInterval]:
    """Intervals of one metric, matrix by matrix."""
    return [
        OverallInterval(key, below, above, method, given, Refusal.UNDEFINED_ESTIMATE if isnan(below + above) else None)
        for below, above in zip(np.ravel(low).tolist(), np.ravel(high).tolist(), strict=True)
    ]


def _shares(table: Table, level: float, of: Selection) -> Iterator[list[OverallInterval]]:
    for metric, proportion in headline_metrics().shares:
        rate = proportion.at(table.n_classes)
        hits, among = rate.counts(table)
        low, high = rate.line.limits(*wilson(hits[of], among[of], level))
        yield _intervals(metric.key, low, high, Method.WILSON, Given.SAMPLES)


def _recall_means(table: Table, recalls: Limits, of: Selection) -> Iterator[list[OverallInterval]]:
    ends = mover.mean_limits(table.recall[of], *recalls)
    for metric, mean in headline_metrics().means:
        low, high = ends[mean]
        yield _intervals(metric.key, low, high, Method.MOVER, Given.ACTUAL)


def _smooth_metrics(table: Table, level: float, of: Selection) -> Iterator[list[OverallInterval]]:
    """By the delta method, which does not see what is unknown of a class without any spread.

    A class of a few samples that are all right or all wrong adds nothing to a variance by derivatives. What the value
    moves by when its recall goes to its Jeffreys limit is added by squares, as MOVER adds parts (Zou & Donner 2008).
    Where nothing varies at all, such as without a mistake, these moves of all classes at an edge are all there is.
    """
    found = _by_derivatives(table, level, of)
    size = table.n_classes
    counts = table.counts[of].reshape(-1, size, size)
    right, actual = (part[of].reshape(-1, size) for part in (table.tp, table.actual))
    at_edge = ((right == 0) | (right == actual)) & (actual > 0)
    few = at_edge & (actual < FEW)
    refused = [any(isnan(one.low - one.value) for one in ends) for ends in zip(*found, strict=True)]
    for place in np.flatnonzero(few.any(axis=-1) | (at_edge.any(axis=-1) & refused)).tolist():
        one = with_edges(
            [ends[place] for ends in found],
            counts[place],
            at_edge[place],
            few[place],
            jeffreys(right[place], actual[place], level),
        )
        for ends, moved in zip(found, one, strict=True):
            ends[place] = moved
    for (metric, _), ends in zip(headline_metrics().smooth, found, strict=True):
        yield [one.interval(metric.key) for one in ends]


def with_edges(found: Sequence["Ends"], counts: Array, at_edge: Mask, few: Mask, limits: Limits) -> list["Ends"]:
    """The smooth metrics of one matrix with what is unknown of the classes (K) at an edge.

    Args:
        found: Their limits by derivatives.
        counts: (K, K).
        at_edge: All right or all wrong (K).
        few: Of these, such as have few samples (K).
        limits: Of the recalls, (K) each.
    """
    refused = any(isnan(one.low - one.value) for one in found)
    rows = np.flatnonzero(at_edge if refused else few)
    if rows.size * counts.size > _MOST_CELLS_MOVED:
        return [*found]
    kept = []
    for ends, moves in zip(found, _moves(counts, rows, limits), strict=True):
        seen = few[rows] if ends.refusal is None else np.isfinite(moves)
        kept.append(ends.with_moves(moves[seen]))
    return kept


class Ends(NamedTuple):
    """A value with its limits, NaN where it has none."""

    value: float
    low: float
    high: float
    method: Method

    @property
    def refusal(self) -> Refusal | None:
        """Why there are no limits."""
        if not isnan(self.low):
            return None
        return Refusal.UNDEFINED_ESTIMATE if isnan(self.value) else Refusal.ZERO_STANDARD_ERROR

    def with_moves(self, moves: Array) -> "Ends":
        """Limits further out by what the value moves by (R) in places that they do not know of."""
        refused = self.refusal is not None
        known = (0.0, 0.0) if refused else (self.value - self.low, self.high - self.value)
        parts = (np.minimum(moves, 0.0), np.maximum(moves, 0.0))
        below, above = (hypot(own, *part.tolist()) for own, part in zip(known, parts, strict=True))
        if not below + above > 0.0:
            return self
        method = Method.MOVER if refused else self.method
        return Ends(self.value, self.value - below, min(self.value + above, 1.0), method)

    def interval(self, key: str) -> OverallInterval:
        """The same with what it is of."""
        given = Given.ACTUAL if self.method is Method.MOVER else Given.SAMPLES
        return OverallInterval(key, self.low, self.high, self.method, given, self.refusal)


def _by_derivatives(table: Table, level: float, of: Selection) -> list[list[Ends]]:
    """Limits value -+ half width, symmetric on the scale of the metric, matrix by matrix."""
    smooth = headline_metrics().smooth
    variances = additive_variance(table, stack([gradient(table) for _, gradient in smooth]))
    half_widths = two_sided_z(level) * np.sqrt(variances)
    found = []
    for (metric, _), widths in zip(smooth, half_widths, strict=True):
        method = Method.DELTA_FISHER_Z if is_signed(metric) else Method.DELTA_LOGIT
        pairs = zip(np.ravel(metric(table)[of]).tolist(), np.ravel(widths[of]).tolist(), strict=True)
        found.append([Ends(value, *(limits_on_scale(metric, value, width) or _NONE), method) for value, width in pairs])
    return found


def _moves(counts: Array, rows: NDArray[np.intp], limits: Limits) -> list[Array]:
    """What recalls of rows (R) of a matrix (K, K), all 0 or 1, move each metric by (R) at their limits, (K) each."""
    size, at = len(counts), np.arange(rows.size)
    right, actual = np.diagonal(counts)[rows], counts.sum(axis=-1)[rows]
    low, high = (ends[rows] for ends in limits)
    missed = right == 0
    # Errors of a class without any may be of all kinds; those of a class without anything else stay as they are.
    errors = np.where(missed[:, None], counts[rows], (actual / (size - 1))[:, None])
    errors[at, rows] = 0.0
    recall = np.where(missed, high, low)
    moved = np.repeat(counts[None].astype(np.float64), rows.size, axis=0)
    moved[at, rows] = (1.0 - recall)[:, None] * errors
    moved[at, rows, rows] = recall * actual
    table, whole = Table(moved), Table(counts)
    return [metric(table) - metric(whole) for metric, _ in headline_metrics().smooth]


def is_signed(metric: Metric[Table]) -> bool:
    """Has it values below 0, as correlations have? On the logit scale of its range that is Fisher's z."""
    low = metric.card.range[0]
    return low is None or low < 0.0


def limits_on_scale(metric: Metric[Table], value: float, half_width: float) -> tuple[float, float] | None:
    """Limits value -+ half_width, symmetric on the logit scale of the range: no end leaves it."""
    low, high = metric.card.range
    if low is None or high is None:
        raise ValueError(f"expected a metric with a range, got {metric.key}")
    return logit_limits(value, half_width, low, high)
