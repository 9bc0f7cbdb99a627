"""Closed-form intervals of the metrics of matrices: rates, their means, smooth functions by the delta method; no
sampling.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import isnan, nan
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import AdditiveGradient, Table
from app.kernel.metrics.card import AnyMetric, Mean, Metric, Scale
from app.kernel.numerics.arrays import Array, Mask, every, inner, ones, ratio, silently, some, total
from app.kernel.uncertainty import intervals
from app.kernel.uncertainty.designs import (
    Design,
    Given,
    Independent,
    NoLimits,
    catalogue_rates,
    gradients_of,
    headline_metrics,
    spread_of_slopes,
)
from app.kernel.uncertainty.draws import Functional, Prior, Shares, Summary, pseudo_counts
from app.kernel.uncertainty.intervals import Limits, jeffreys, limits_around, two_sided_z, wilson


class Method(StrEnum):
    """Methods of intervals."""

    WILSON = "wilson"
    SIMULTANEOUS = "simultaneous"
    ORDER_STATISTICS = "order_statistics"
    MOVER = "mover"
    MOVER_BEST_CUT = "mover_best_cut"
    DELTA_LOGIT = "delta_logit"
    DELTA_FISHER_Z = "delta_fisher_z"
    CLUSTER_BOOTSTRAP = "cluster_bootstrap"


# Relative step of a numeric derivative: its truncation and its rounding are both near 1e-10.
_STEP = 1e-5
NUMERIC_NOISE = 1e-9
_CELLS_PER_BATCH = 1 << 20


def moved_both_ways(counts: Array, function: Callable[[Array], Array], step: float) -> tuple[Array, NDArray[np.intp]]:
    """Values (2, C, ..., V) with one cell of tables (..., M, N) after another made larger and smaller by a part of what
    it holds, in batches, and the C cells (C, 2) that are not empty in all of them.
    """
    batched = counts.shape[:-2]
    cells = np.argwhere((counts > 0).reshape(-1, *counts.shape[-2:]).any(axis=0))
    batch = max(1, _CELLS_PER_BATCH // (2 * counts.size))
    parts = []
    with silently():
        for start in range(0, len(cells), batch):
            rows, columns = cells[start : start + batch].T
            here = np.arange(rows.size)
            moved = np.tile(counts, (2, rows.size, *[1] * counts.ndim))
            moved[0, here, ..., rows, columns] *= 1.0 + step
            moved[1, here, ..., rows, columns] *= 1.0 - step
            parts.append(function(moved).reshape(2, rows.size, *batched, -1))
    return np.concatenate(parts, axis=1), cells


def moves_in_cells(counts: Array, functional: Functional) -> Array:
    """Return c dM/dc of V values in the cells of matrices (..., K, K), 0 in empty ones: (V, ..., K, K).

    Central differences with a relative step of 1e-5.
    """
    (up, down), cells = moved_both_ways(counts, lambda moved: functional(Table(moved)), _STEP)
    moves = np.zeros((up.shape[-1], *counts.shape))
    with silently():
        moves[..., cells[:, 0], cells[:, 1]] = np.moveaxis((up - down) / (2.0 * _STEP), (-1, 0), (0, -1))
    return moves


def cell_slopes(counts: Array, functional: Functional) -> Array:
    """Derivatives (V, ..., K, K) of V values of matrices (..., K, K) by the count of each cell; 0 of an empty one."""
    moves = moves_in_cells(counts, functional)
    return np.divide(moves, counts, out=np.zeros_like(moves), where=counts > 0)


def cell_influences(counts: Array, functional: Functional) -> Array:
    """Influence of a sample in each cell of matrices (..., K, K) on V values, in its unit of weight: (V, ..., K, K), 0
    in empty cells.

    The derivative by the share of the cell less the mean of all, over the number of samples.
    """
    slopes = cell_slopes(counts, functional)
    means = (counts * slopes).sum(axis=(-2, -1), keepdims=True) / counts.sum(axis=(-2, -1), keepdims=True)
    return np.where(counts > 0, slopes - means, 0.0)


def variance(
    counts: Array,
    functional: Functional,
    *,
    shares: Shares = Shares.SAMPLED,
    squares: Array | None = None,
) -> Array:
    """Delta-method variances (V) of any functional of one matrix (K, K) that is smooth there.

    With G = dM/dC it is sum s (G - G_)^2, where s are the counts, or the sums of squared weights of weighted samples
    (linearised, of sampling with replacement), and G_ the weighted mean of all, or of the row where class counts are
    fixed. What rounding leaves of a variance of 0 is given as 0.
    """
    used, moves = counts > 0, moves_in_cells(counts, functional)
    masses, own = counts[used], (counts if squares is None else squares)[used]
    strata = None if shares is Shares.SAMPLED else used.nonzero()[0]
    rest, gross = spread_of_slopes(moves[:, used].T / masses[:, None], masses, own, strata)
    smallest = _STEP**2 * own.sum() / counts.sum() ** 2
    return np.where(rest <= NUMERIC_NOISE * np.maximum(gross, smallest), 0.0, rest)


def scale_for(low: float | None, high: float | None) -> Scale:
    """The scale that keeps an interval inside the range of its metric; None is unbounded."""
    if low is not None and high is not None:
        return Scale.LOGIT
    return Scale.LOG if low == 0 else Scale.LINEAR


def delta_interval(
    counts: Array,
    functional: Functional,
    *,
    bounds: tuple[float | None, float | None] = (None, None),
    level: float = 0.95,
    shares: Shares = Shares.SAMPLED,
    squares: Array | None = None,
) -> Summary:
    """Delta-method interval of a functional that is smooth at the counts (K, K); without any draws.

    Args:
        counts: whole or real counts.
        functional: the metric.
        bounds: its range, None where unbounded.
        level: of the interval.
        shares: of the classes, fixed as observed or sampled.
        squares: sums of squared weights (K, K) of weighted samples.
    """
    with silently():
        estimate = np.atleast_1d(functional(Table(counts)))
    error = np.sqrt(variance(counts, functional, shares=shares, squares=squares))
    low, high = limits_around(estimate, two_sided_z(level) * error, scale_for(*bounds), *bounds)
    none = np.zeros(estimate.shape)
    return Summary(estimate, low, high, error, none, none, none.astype(np.bool_))


class OverallInterval(NamedTuple):
    """Value and interval of one overall metric; when ``refusal`` says why there is none, low and high are NaN."""

    key: str
    value: float
    low: float
    high: float
    method: str
    given: Given
    refusal: NoLimits | None = None


# From so many samples on the delta method keeps its level with a class at an edge (benchmarks/coverage.py).
FEW = 30
# Cells of the matrices with one row moved each: a few milliseconds.
_MOST_CELLS_MOVED = 1 << 19
# Recalls from which on those that come again are looked for.
_MANY_RECALLS = 1000
# Its square is a whole number that a float64 holds.
_LARGEST_BASE = 2.0**26


class Headlines:
    """Headline intervals of the matrices (...) of a design, each made at first use.

    Accuracy and rates by Wilson at the numbers of samples that they are worth; balanced accuracy, G and H by MOVER on
    Jeffreys intervals of the recalls at theirs; macro F1, MCC and kappa by the delta method, on the logit and the
    Fisher-z scale. What is asked of a level that is not between 0 and 1 raises ValueError.
    """

    def __init__(self, design: Design, level: float = 0.95, known: Mapping[str, Array] | None = None) -> None:
        self.design, self.level, self._known = design, level, known or {}

    @classmethod
    def of_pairs(cls, table: Table, level: float = 0.95, known: Mapping[str, Array] | None = None) -> Self:
        """Limits of the first matrix of each pair (B, 2, K, K) of independent samples, of which the second may have its
        rows scaled to equal totals; ``known`` are values (B, 2) of overall metrics that are computed already, by key.
        """
        return cls(Independent(table, (slice(None), slice(1))), level, known)

    def _values(self, metric: Metric[Table]) -> Array:
        """Values of a metric, of every matrix of the table."""
        known = self._known.get(metric.key)
        return metric(self.design.table) if known is None else known

    @cached_property
    def rates(self) -> Limits:
        """Limits (R, ..., K) of the rates of each class (`catalogue_rates`), NaN where the denominator is 0."""
        with silently():
            return catalogue_rates().limits(*wilson(*self.design.rates(self.level), self.level))

    @cached_property
    def recalls(self) -> Limits:
        """Limits (..., K) of the recalls, which those of their means follow from."""
        hits, worth = self.design.recalls(self.level)
        base = 1.0 + worth.max(initial=0.0)
        many = hits.size >= _MANY_RECALLS and base < _LARGEST_BASE
        if many and all((each == np.round(each)).all() for each in (hits, worth)):
            # Most recalls come again then, and quantiles are what takes long: a pair is one whole number.
            pairs, places = np.unique(worth * base + hits, return_inverse=True)
            below, above = jeffreys(pairs % base, pairs // base, self.level)
            return below[places], above[places]
        return jeffreys(hits, worth, self.level)

    @cached_property
    def _means(self) -> Array:
        """Limits (3, 2, ...) of the means of the recalls."""
        design, (_, worth) = self.design, self.design.recalls(self.level)
        rates = design.table.recall[design.of]
        return intervals.mean_limits(rates, *self.recalls, worth, level=self.level, spread=design.spread)

    def _values_and_gradients(self, smooth: Sequence[Metric[Table]]) -> "_Smooth":
        values = np.array([self._values(metric) for metric in smooth])
        return _Smooth(values, gradients_of(smooth, self.design.table))

    @cached_property
    def _smooth(self) -> "_Smooth":
        """All metrics that have limits by the delta method."""
        return self._values_and_gradients(headline_metrics().smooth)

    @cached_property
    def overall(self) -> tuple[tuple[OverallInterval, ...], ...]:
        """Intervals of the overall metrics, one matrix after another."""
        return tuple(zip(*self._each(*headline_metrics()), strict=True))

    def of(self, metric: AnyMetric) -> list[OverallInterval] | None:
        """Return the intervals of an overall metric, matrix by matrix, or None if it is not one of these."""
        return next(iter(self._each(*_which(metric))), None)

    def many(self, metric: AnyMetric) -> tuple[Array, Array, Array] | None:
        """Return the values of an overall metric with their limits (B), NaN where there are none, or None if it is not
        one of these: what `of` says of each, without a form for each of ten thousand matrices.
        """
        (rates, smooth), design = _which(metric), self.design
        with silently():
            if rates:
                values, (low, high) = self._values(rates[0])[design.of], self._limits_of_rate(rates[0])[0]
            elif smooth:
                found = _smooth_ends(design, smooth, self._values_and_gradients(smooth), self.level)
                values, low, high = found.values[0], found.low[0], found.high[0]
                low = np.where(self._empty & smooth[0].card.inference.over_classes, nan, low)
            else:
                return None
        known = low < high
        return values, np.where(known, low, nan), np.where(known, high, nan)

    def _each(self, rates: Sequence[Metric[Table]], smooth: Sequence[Metric[Table]]) -> list[list[OverallInterval]]:
        """Intervals of one metric after the other."""
        with silently():
            return [*map(self._by_rates, rates), *(self._by_gradients(smooth) if smooth else ())]

    def _limits_of_rate(self, metric: Metric[Table]) -> tuple[Limits, tuple[str, Given]]:
        """Limits of a rate of all samples, or of a mean of the recalls, and how they are made."""
        design, fact = self.design, metric.card.inference
        if fact.proportion is not None:
            rate = fact.proportion.at(design.table.n_classes)
            ends = rate.line.limits(*wilson(*design.counts(rate, self.level), self.level))
            return ends, (design.sampled.named(Method.WILSON), design.given or Given.SAMPLES)
        assert fact.mean_of_recalls is not None  # noqa: S101 - others have limits by their gradient
        low, high = self._means[fact.mean_of_recalls]
        return (low, high), (design.sampled.named(Method.MOVER), design.given or Given.ACTUAL)

    @property
    def _empty(self) -> Mask:
        """Mask (B) of the matrices that lack a class."""
        table = self.design.table
        lacking: Mask = (table.actual[self.design.of].reshape(-1, table.n_classes) == 0).any(axis=-1)
        return lacking

    def _by_rates(self, metric: Metric[Table]) -> list[OverallInterval]:
        design, (ends, form) = self.design, self._limits_of_rate(metric)
        why = NoLimits.ONE_GROUP if design.given is Given.GROUPS else NoLimits.UNDEFINED
        return [*_intervals(metric, self._values(metric)[design.of], ends, *form, why)]

    def _by_gradients(self, smooth: Sequence[Metric[Table]]) -> Iterator[list[OverallInterval]]:
        design = self.design
        named, given = design.sampled.named, design.given
        known = self._smooth if smooth is headline_metrics().smooth else self._values_and_gradients(smooth)
        found, empty = _smooth_ends(design, smooth, known, self.level), self._empty.tolist()
        for metric, values, low, high, moved, varies in zip(
            smooth, found.values, found.low, found.high, found.moved, found.known, strict=True
        ):
            lowest = metric.card.range[0]
            # Of values below 0, as correlations have, the logit scale of the range is Fisher's z.
            plain = Method.DELTA_FISHER_Z if lowest is None or lowest < 0.0 else Method.DELTA_LOGIT
            why = NoLimits.DEGENERATE if varies.all() or given is not Given.GROUPS else NoLimits.ONE_GROUP
            forms = _intervals(metric, values, (low, high), named(plain), given or Given.SAMPLES, why)
            made = []
            for form, by_moves, lacks in zip(forms, moved, empty, strict=True):
                one = form._replace(method=named(Method.MOVER), given=given or Given.ACTUAL) if by_moves else form
                if lacks and metric.card.inference.over_classes and one.refusal is None:
                    one = one._replace(low=nan, high=nan, refusal=NoLimits.EMPTY_CLASS)
                made.append(one)
            yield made

    def at_equal_shares(self) -> tuple[tuple[OverallInterval, ...], ...]:
        """Intervals of the metrics that prevalence moves, of the second matrix of each pair (see `of_pairs`).

        Accuracy is there the mean of the recalls and has its limits. The others have MOVER too (Zou & Donner 2008):
        what the value moves by when a recall goes to its Jeffreys limit, and what it spreads by as errors fall among
        the other classes, added by squares, both by the gradient. Symmetric limits do not do here, since a rare class
        weighs as much as a frequent one: with 950 and 50 samples those by the delta method held the truth 88 times in
        100.
        """
        table, (rates, smooth) = self.design.table, headline_metrics()
        with silently():
            facts = [(one.key, one.card.inference) for one in rates]
            (place,) = (at for at, (_, fact) in enumerate(facts) if fact.mean_of_recalls is Mean.ARITHMETIC)
            shares = [key for key, fact in facts if fact.proportion is not None]
            parts = [[own[place]._replace(key=key) for own in self.overall] for key in shares]
            low, high = (ends[:, 0] for ends in self.recalls)
            below, above = _reach(table, self._smooth.gradients, (low, high), two_sided_z(self.level))
            values = self._smooth.values
            # What has no value as it is has none in its twin: what rounding leaves of 0/0 there is none.
            twins = np.where(np.isfinite(values[..., 0]), values[..., 1], nan)
            bottom, top = _ranges(smooth)
            ends = zip(np.maximum(twins - below, bottom), np.minimum(twins + above, top), strict=True)
            form = Method.MOVER.value, Given.ACTUAL, NoLimits.DEGENERATE
            for metric, own, limits in zip(smooth, twins, ends, strict=True):
                parts.append([*_intervals(metric, own, limits, *form)])
        return tuple(zip(*parts, strict=True))


def _which(metric: AnyMetric) -> tuple[list[Metric[Table]], list[Metric[Table]]]:
    """The metric alone, of the two kinds of `headline_metrics`; nothing if it is none of these."""
    rates, smooth = ([one for one in some if one is metric] for some in headline_metrics())
    return rates, smooth


def _intervals(
    metric: Metric[Table], values: Array, ends: Limits | Array, method: str, given: Given, why: NoLimits
) -> Iterator[OverallInterval]:
    """Intervals of one metric, matrix by matrix; ``why`` says why a value has none."""
    for value, low, high in zip(*(part.ravel().tolist() for part in (values, *ends)), strict=True):
        if low < high:
            yield OverallInterval(metric.key, value, low, high, method, given)
        else:
            reason = NoLimits.UNDEFINED if isnan(value) else why
            yield OverallInterval(metric.key, value, nan, nan, method, given, reason)


class _Smooth(NamedTuple):
    """Values (M, ...) and gradients of metrics that have limits by the delta method, of every matrix of a table."""

    values: Array
    gradients: AdditiveGradient


@dataclass(frozen=True, slots=True, eq=False)
class _Ends:
    """Values of metrics (M, B) with their limits, NaN where they have none.

    Attributes:
        moved: Limits are all from moves of classes at an edge.
        known: Is the variance known?
    """

    values: Array
    low: Array
    high: Array
    moved: Mask
    known: Mask


def _smooth_ends(design: Design, smooth: Sequence[Metric[Table]], known: _Smooth, level: float) -> _Ends:
    """By the delta method, which does not see what is unknown of a class without any spread.

    A class of a few samples that are all right or all wrong adds nothing to a variance by derivatives. What the value
    moves by when its recall goes to its Jeffreys limit is added by squares, as MOVER adds parts (Zou & Donner 2008).
    Where nothing varies at all, such as without a mistake, these moves of all classes at an edge are all there is.
    """
    table, of, size = design.table, design.of, design.table.n_classes
    found = _by_derivatives(design, smooth, known, level)
    right, actual = (part[of].reshape(-1, size) for part in (table.tp, table.actual))
    at_edge = ((right == 0) | (right == actual)) & (actual > 0)
    if not some(at_edge):
        return found
    hits, worth = (part.reshape(-1, size) for part in design.recalls(level))
    refused, few = np.isnan(found.low), at_edge & (worth < FEW)
    looked_at = np.where(np.any(refused, axis=0, keepdims=True).T, at_edge, few)
    looked_at &= (looked_at.sum(axis=-1) * size**2 <= _MOST_CELLS_MOVED)[:, None]
    places, rows = looked_at.nonzero()
    if not places.size:
        return found
    counts = table.counts[of].reshape(-1, size, size)
    recalls = jeffreys(hits[places, rows], worth[places, rows], level)
    # Groups that are equal by chance leave no variance where other classes have mistakes: nothing is known then.
    nothing_varies = (at_edge | (actual == 0)).all(axis=-1)
    below, above = np.zeros((2, *found.values.shape))
    for start in range(0, places.size, step := max(1, _MOST_CELLS_MOVED // size**2)):
        part = slice(start, start + step)
        here, own = places[part], rows[part]
        recall = np.where(right[here, own] == 0, recalls[1][part], recalls[0][part])
        table = at_recalls(counts[here], own)(recall)
        moves = np.stack([metric(table) for metric in smooth]) - found.values[:, here]
        alone = np.isfinite(moves) & nothing_varies[here] & found.known[:, here]
        seen = np.where(refused[:, here], alone, few[here, own])
        for squares, parts in ((below, np.minimum(moves, 0.0)), (above, np.maximum(moves, 0.0))):
            np.add.at(squares.T, here, np.where(seen, parts * parts, 0.0).T)
    # What nothing is added to is, to the last bit, what it would be without the matrices beside it.
    moved = below + above > 0.0
    reached = [np.where(refused, 0.0, one) for one in (found.values - found.low, found.high - found.values)]
    below, above = (np.sqrt(own * own + more) for own, more in zip(reached, (below, above), strict=True))
    # Sums of squares do not know where the range of a metric ends.
    bottom, top = _ranges(smooth)
    return _Ends(
        found.values,
        np.where(moved, np.maximum(found.values - below, bottom), found.low),
        np.where(moved, np.minimum(found.values + above, top), found.high),
        moved & refused,
        found.known,
    )


def _by_derivatives(design: Design, smooth: Sequence[Metric[Table]], known: _Smooth, level: float) -> _Ends:
    """Limits value -+ half width, symmetric on the logit scale of the range of each metric: no end leaves it."""
    of, shape = (slice(None), *design.of), (len(smooth), -1)
    half_widths = (design.reach(level) * np.sqrt(design.variances_of(smooth, known.gradients)))[of].reshape(shape)
    values = known.values[of].reshape(shape)
    low, high = limits_around(values, half_widths, Scale.LOGIT, *_ranges(smooth))
    return _Ends(values, low, high, np.zeros(values.shape, np.bool_), ~np.isnan(half_widths))


def _ranges(smooth: Sequence[Metric[Table]]) -> Array:
    """Both ends of the range of each metric (2, M, 1)."""
    return np.array([metric.card.range for metric in smooth]).T[..., None]


def at_recalls(counts: Array, rows: NDArray[np.intp]) -> Callable[[Array], Table]:
    """Return a function of recalls (..., P) of P classes that gives matrices (..., P, K, K), in each of which one class
    has its recall, its errors spread as they are.

    Args:
        counts: The matrix (K, K), or one for each class (P, K, K).
        rows: The classes (P).
    """
    base, at = Table(counts), np.arange(rows.size)
    own = counts[rows] if counts.ndim == 2 else counts[at, rows]
    sizes = own.sum(axis=-1)
    errors = sizes[:, None] * spread_of_errors(own, rows)

    def tables(recalls: Array) -> Table:
        moved = (1.0 - recalls)[..., None] * errors
        moved[..., at, rows] = recalls * sizes
        tp, actual = (np.broadcast_to(one, moved.shape).copy() for one in (base.tp, base.actual))
        tp[..., at, rows] = moved[..., at, rows]

        def matrices() -> Array:
            whole = np.broadcast_to(counts, (*moved.shape, moved.shape[-1])).copy()
            whole[..., at, rows, :] = moved
            return whole

        return Table.of_sums(tp, actual, base.predicted - own + moved, matrices)

    return tables


def spread_of_errors(counts: Array, classes: NDArray[np.intp]) -> Array:
    """Shares (..., P, K) in which errors of classes (P), from their rows of a matrix (..., P, K), fall on the others.

    Errors of a class without any may be of all kinds.
    """
    errors, at = counts.astype(np.float64, order="C"), np.arange(classes.size)
    errors[..., at, classes] = 0.0
    wrong: Mask = np.any(errors, axis=-1, keepdims=True)
    if not every(wrong):
        errors = np.where(wrong, errors, np.where(np.arange(counts.shape[-1]) == classes[:, None], 0.0, 1.0))
    # Row by row, so that a row has the same sum, bit for bit, in any batch.
    shares: Array = errors / inner(errors, ones(errors.shape[-1]))[..., None]
    return shares


def _reach(table: Table, gradients: AdditiveGradient, recalls: Limits, z: float) -> tuple[Array, Array]:
    """Distances of limits (M, B) of metrics below and above the values at equal shares.

    A row with recall r whose errors fall on the others with shares e moves a value by dr (g_ii - sum_j e_j g_ij) / K.
    """
    size = table.n_classes
    slopes, right = _slopes(gradients, size)
    recall, actual = table.recall[:, 0], table.actual[:, 0]
    errors = spread_of_errors(table.counts[:, 0], np.arange(size))
    astray = inner(slopes, errors)
    steps = (right - astray) / size
    scatter = inner((slopes - astray[..., None]) ** 2, errors) * (1.0 - recall) / actual
    known = z * z / size**2 * total(scatter)
    down, up = recall - recalls[0], recalls[1] - recall
    rising = steps > 0
    below = total((steps * np.where(rising, down, up)) ** 2)
    above = total((steps * np.where(rising, up, down)) ** 2)
    return np.sqrt(below + known), np.sqrt(above + known)


def _slopes(gradients: AdditiveGradient, size: int) -> tuple[Array, Array]:
    """Derivatives at the twins in every cell (M, B, K, K), 0 on the diagonal, and those of the diagonal (M, B, K)."""
    diagonal, rows, columns = (part[:, :, 1] for part in (gradients.diagonal, gradients.rows, gradients.columns))
    slopes = rows[..., None] + columns[..., None, :]
    slopes.reshape(*rows.shape[:-1], -1)[..., :: size + 1] = 0.0
    return slopes, diagonal + rows + columns


def curvature(counts: Array) -> float:
    """Bias of the mean of 1/recall over its standard error, for one matrix (K, K).

    By the delta method, for a recall r of n samples, E[1/r^] - 1/r = (1-r)/(n r^2) and Var[1/r^] = (1-r)/(n r^3). Both
    are summed over the classes, so the ratio grows with the square root of their number. Classes with a recall of 0,
    for which no such expansion exists, are left out.
    """
    actual = counts.sum(axis=-1)
    with silently():
        recall = ratio(np.diagonal(counts), actual)
        missed = np.where(recall > 0, (1.0 - recall) / (actual * recall**2), 0.0)
        spread = np.sqrt(np.sum(np.where(recall > 0, missed / recall, 0.0)))
    return float(missed.sum() / spread) if spread > 0 else 0.0


def edge_pull(counts: Array) -> float:
    """Return the shift of balanced accuracy by the edge prior, in standard deviations of its posterior, for one matrix
    (K, K).

    Each recall of 1 of n samples is taken for (n + 1/2)/(n + 1): right for one class, too pessimistic for many.
    """
    parameters = counts + pseudo_counts(counts, Prior.EDGE)
    right, both = np.diagonal(parameters), parameters.sum(axis=-1)
    with silently():
        expected = ratio(right, both)
        variance = expected * (1.0 - expected) / (both + 1.0)
        moved = expected - ratio(np.diagonal(counts), counts.sum(axis=-1))
    return float(abs(np.nansum(moved)) / np.sqrt(np.nansum(variance))) if np.nansum(variance) > 0 else 0.0
