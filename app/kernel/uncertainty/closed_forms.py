"""Closed-form intervals of the metrics of one matrix: rates, their means, smooth functions by the delta method; no
sampling.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache
from math import hypot, isnan, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kernel.matrix.table import AdditiveGradient, Table, additive_variance, stack
from app.kernel.metrics.card import AnyMetric, Gradient, Mean, Metric, Scale, Scope
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.proportion import ConfusionCells, Proportion, Rate
from app.kernel.numerics.arrays import Array, Mask, inner, ratio, silently, total
from app.kernel.uncertainty import intervals
from app.kernel.uncertainty.draws import ClassCounts, Functional, Prior, pseudo_counts
from app.kernel.uncertainty.intervals import Limits, jeffreys, logit_limits, two_sided_z, wilson


class Method(StrEnum):
    """How an interval was made."""

    WILSON = "wilson"
    CLOPPER_PEARSON = "clopper_pearson"
    JEFFREYS = "jeffreys"
    WALD = "wald"
    SIMULTANEOUS = "simultaneous"
    MOVER = "mover"
    DELTA_LOGIT = "delta_logit"
    DELTA_FISHER_Z = "delta_fisher_z"
    GROUPED_WILSON = "grouped_wilson"
    GROUPED_MOVER = "grouped_mover"
    CLUSTER_DELTA_LOGIT = "cluster_delta_logit"
    CLUSTER_DELTA_FISHER_Z = "cluster_delta_fisher_z"
    CLUSTER_BOOTSTRAP = "cluster_bootstrap"
    WEIGHTED_WILSON = "weighted_wilson"
    WEIGHTED_MOVER = "weighted_mover"
    WEIGHTED_DELTA_LOGIT = "weighted_delta_logit"
    WEIGHTED_DELTA_FISHER_Z = "weighted_delta_fisher_z"


class Given(StrEnum):
    """The counts that an interval takes as fixed."""

    SAMPLES = "n"
    ACTUAL = "actual_counts"
    PREDICTED = "predicted_counts"
    GROUPS = "groups"


class Refusal(StrEnum):
    """Why there is no interval."""

    UNDEFINED_ESTIMATE = "undefined_estimate"
    ZERO_STANDARD_ERROR = "zero_standard_error"
    ONE_GROUP = "one_group"


# What limits of a rate among such samples take as fixed.
GIVEN = {
    ConfusionCells.ALL: Given.SAMPLES,
    ConfusionCells.ACTUAL: Given.ACTUAL,
    ConfusionCells.REST: Given.ACTUAL,
    ConfusionCells.PREDICTED: Given.PREDICTED,
    ConfusionCells.PREDICTED_REST: Given.PREDICTED,
}


@dataclass(frozen=True, slots=True)
class CatalogueRates:
    """The rates of the catalogue, and the F quantities that they are: a rate, or what is missing of it to 1.

    Attributes:
        keys: R of them.
        given: What limits of each take as fixed.
        numerators: Of each quantity, a property of a table.
        denominators: The same.
        places: Which quantity each rate is (R).
        turned: Is it what is missing of that (R)?
    """

    keys: tuple[str, ...]
    given: tuple[Given, ...]
    numerators: tuple[str, ...]
    denominators: tuple[str, ...]
    places: tuple[int, ...]
    turned: tuple[bool, ...]

    def place(self, rate: Rate) -> int:
        """Where a quantity of one class stands among the rates.

        Raises:
            ValueError: no metric of the catalogue is that rate.
        """
        pairs = list(zip(self.numerators, self.denominators, strict=True))
        found = pairs.index((rate.hits.column, rate.among.column))
        return list(zip(self.places, self.turned, strict=True)).index((found, False))

    def limits(self, low: Array, high: Array) -> tuple[Array, Array]:
        """Limits (R, ...) of the rates from those of the quantities (F, ...): complements have mirrored ones."""
        places = list(self.places)
        turned = np.array(self.turned).reshape(-1, *(1,) * (low.ndim - 1))
        low, high = low[places], high[places]
        return np.where(turned, 1.0 - high, low), np.where(turned, 1.0 - low, high)


@cache
def catalogue_rates() -> CatalogueRates:
    """The rates of the catalogue."""
    declared = (
        (metric.key, metric.card.inference.proportion) for metric in catalogue().of_matrices.of_scope(Scope.CLASS)
    )
    # Of more classes than two: with two, rates of different classes are one quantity, with the same counts.
    rates = {key: each.at(3, 0) for key, each in declared if each is not None and each.is_plain}
    pairs = [(rate.hits.column, rate.among.column) for rate in rates.values()]
    distinct = list(dict.fromkeys(pairs))
    return CatalogueRates(
        keys=tuple(rates),
        given=tuple(GIVEN[rate.among] for rate in rates.values()),
        numerators=tuple(numerator for numerator, _ in distinct),
        denominators=tuple(denominator for _, denominator in distinct),
        places=tuple(distinct.index(pair) for pair in pairs),
        turned=tuple(rate.line.slope < 0.0 for rate in rates.values()),
    )


@dataclass(frozen=True, slots=True)
class HeadlineMetrics:
    """The headline metrics of a matrix as a whole, by what gives them limits in closed form.

    Attributes:
        shares: Rates of the samples.
        means: Means of the recalls.
        smooth: What has limits by its gradient.
        gradients: Of all of them, one kind after another.
    """

    shares: tuple[tuple[Metric[Table], Proportion], ...]
    means: tuple[tuple[Metric[Table], Mean], ...]
    smooth: tuple[tuple[Metric[Table], Gradient], ...]
    gradients: tuple[tuple[Metric[Table], Gradient], ...]


@cache
def headline_metrics() -> HeadlineMetrics:
    """Those whose cards say so."""
    chosen = [metric for metric in catalogue().of_matrices.of_scope(Scope.OVERALL) if metric.card.inference.headline]
    facts = [(metric, metric.card.inference) for metric in chosen]
    shares = tuple((metric, fact.proportion) for metric, fact in facts if fact.proportion is not None)
    means = tuple((metric, fact.mean_of_recalls) for metric, fact in facts if fact.mean_of_recalls is not None)
    gradients = {metric.key: (metric, fact.gradient) for metric, fact in facts if fact.gradient is not None}
    others = [metric.key for metric, _ in (*shares, *means)]
    smooth = tuple(pair for key, pair in gradients.items() if key not in others)
    return HeadlineMetrics(shares, means, smooth, (*(gradients[key] for key in others), *smooth))


# Relative step of a numeric derivative: its truncation and its rounding are both near 1e-10.
_STEP = 1e-5
NUMERIC_NOISE = 1e-9
_CELLS_PER_BATCH = 1 << 20


def cell_sensitivities(counts: Array, functional: Functional) -> tuple[Array, NDArray[np.intp]]:
    """How values move with the counts: (cells, V) of c dM/dc for the C non-empty cells of one matrix, and those cells
    (C, 2).

    Central differences with a relative step of 1e-5, in batches. Empty cells contribute nothing to a variance.
    """
    cells = np.argwhere(counts > 0)
    batch = max(1, _CELLS_PER_BATCH // (2 * counts.size))
    parts = []
    with silently():
        for start in range(0, len(cells), batch):
            rows, columns = cells[start : start + batch].T
            here = np.arange(rows.size)
            moved = np.repeat(counts[None, None], 2 * rows.size, axis=0).reshape(2, rows.size, *counts.shape)
            moved[0, here, rows, columns] *= 1.0 + _STEP
            moved[1, here, rows, columns] *= 1.0 - _STEP
            up, down = functional(Table(moved)).reshape(2, rows.size, -1)
            parts.append((up - down) / (2.0 * _STEP))
    return np.concatenate(parts), cells


def variance(
    counts: Array,
    functional: Functional,
    *,
    class_counts: ClassCounts = ClassCounts.RANDOM,
    squares: Array | None = None,
) -> Array:
    """Delta-method variances (V) of any functional of one matrix (K, K) that is smooth there.

    With G = dM/dC: multinomial counts sum c G^2 - (sum c G)^2 / n; fixed class counts the same within every row,
    summed. What rounding leaves of a variance of 0 is given as 0. Of weighted samples with sums of squares s the
    linearised variance of sampling with replacement, sum s (G - G_)^2 with the weighted mean G_ of all or of the row.
    """
    moves, cells = cell_sensitivities(counts, functional)
    if squares is not None:
        return _weighted_variance(counts, moves, cells, class_counts, squares)
    weights = counts[cells[:, 0], cells[:, 1]][:, None]
    square = moves * moves / weights
    if class_counts is ClassCounts.RANDOM:
        gross, explained = square.sum(axis=0), moves.sum(axis=0) ** 2 / counts.sum()
    else:
        rows = np.zeros((counts.shape[0], moves.shape[1]))
        np.add.at(rows, cells[:, 0], moves)
        actual = np.maximum(counts.sum(axis=-1), 1.0)[:, None]
        gross, explained = square.sum(axis=0), (rows**2 / actual).sum(axis=0)
    rest = gross - explained
    return np.where(rest <= NUMERIC_NOISE * np.maximum(gross, _STEP**2 / counts.sum()), 0.0, rest)


def _weighted_variance(
    counts: Array, moves: Array, cells: NDArray[np.intp], class_counts: ClassCounts, squares: Array
) -> Array:
    rows, columns = cells.T
    own = squares[rows, columns][:, None]
    slopes = moves / counts[rows, columns][:, None]
    if class_counts is ClassCounts.RANDOM:
        means = moves.sum(axis=0) / counts.sum()
    else:
        sums = np.zeros((counts.shape[0], moves.shape[1]))
        np.add.at(sums, rows, moves)
        means = (sums / np.maximum(counts.sum(axis=-1), np.finfo(float).tiny)[:, None])[rows]
    gross, rest = (own * slopes**2).sum(axis=0), (own * (slopes - means) ** 2).sum(axis=0)
    smallest = _STEP**2 * squares.sum() / counts.sum() ** 2
    return np.where(rest <= NUMERIC_NOISE * np.maximum(gross, smallest), 0.0, rest)


def scale_for(low: float | None, high: float | None) -> Scale:
    """The scale that keeps an interval inside the range of its metric; None is unbounded."""
    if low is not None and high is not None:
        return Scale.LOGIT
    return Scale.LOG if low == 0 else Scale.LINEAR


def limits(
    estimate: Array,
    error: Array,
    *,
    scale: Scale,
    level: float = 0.95,
    low: float | None = None,
    high: float | None = None,
) -> tuple[Array, Array]:
    """Delta-method limits (V) around estimates (V) with standard errors (V); NaN where the error is 0 or the value at
    an end.

    The logit maps the range [low, high] to the whole line and back, which for correlations is Fisher's z; the logarithm
    maps [0, inf]. Linear limits, those of Wald, are cut to the range.
    """
    z = two_sided_z(level)
    with silently():
        if scale is Scale.LINEAR:
            ends = estimate - z * error, estimate + z * error
            bottom, top = -np.inf if low is None else low, np.inf if high is None else high
            ends = np.maximum(ends[0], bottom), np.minimum(ends[1], top)
        elif scale is Scale.LOG:
            factor = np.exp(z * error / estimate)
            ends = estimate / factor, estimate * factor
        else:
            start, width = (0.0, 1.0) if low is None or high is None else (low, high - low)
            share = (estimate - start) / width
            odds, spread = share / (1.0 - share), z * error / width / (share * (1.0 - share))
            ends = _from_odds(odds * np.exp(-spread), start, width), _from_odds(odds * np.exp(spread), start, width)
        absent = ~(error > 0) | ~np.isfinite(ends[0]) | ~np.isfinite(ends[1])
    return np.where(absent, np.nan, ends[0]), np.where(absent, np.nan, ends[1])


def _from_odds(odds: Array, start: float, width: float) -> Array:
    return start + width * (1.0 - 1.0 / (1.0 + odds))


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
    """All headline intervals of a batch of B matrices.

    Attributes:
        level: Of the intervals.
        overall: Those of the overall metrics, one matrix after another.
        rates: Those of the rates of each class.
        recalls: Limits (..., K) of the recalls, which those of their means follow from.
        gradients: Of the metrics that have limits by the delta method, of every matrix of the table.
    """

    level: float
    overall: tuple[tuple[OverallInterval, ...], ...]
    rates: RateIntervals
    recalls: Limits
    gradients: AdditiveGradient


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
        gradients = stack([gradient(table) for _, gradient in headline_metrics().smooth])
        smooth = _smooth_metrics(table, gradients, level, of)
        parts = (*_shares(table, level, of), *_recall_means(table, recalls, of), *smooth)
    return Headlines(level, tuple(zip(*parts, strict=True)), rates, recalls, gradients)


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
    ends = intervals.mean_limits(table.recall[of], *recalls)
    for metric, mean in headline_metrics().means:
        low, high = ends[mean]
        yield _intervals(metric.key, low, high, Method.MOVER, Given.ACTUAL)


def _smooth_metrics(
    table: Table, gradients: AdditiveGradient, level: float, of: Selection
) -> Iterator[list[OverallInterval]]:
    """By the delta method, which does not see what is unknown of a class without any spread.

    A class of a few samples that are all right or all wrong adds nothing to a variance by derivatives. What the value
    moves by when its recall goes to its Jeffreys limit is added by squares, as MOVER adds parts (Zou & Donner 2008).
    Where nothing varies at all, such as without a mistake, these moves of all classes at an edge are all there is.
    """
    found = _by_derivatives(table, gradients, level, of)
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


def _by_derivatives(table: Table, gradients: AdditiveGradient, level: float, of: Selection) -> list[list[Ends]]:
    """Limits value -+ half width, symmetric on the scale of the metric, matrix by matrix."""
    smooth = headline_metrics().smooth
    variances = additive_variance(table, gradients)
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


def equal_share_headlines(table: Table, found: Headlines) -> tuple[tuple[OverallInterval, ...], ...]:
    """For each pair of matrices (B, 2, K, K), the second with its rows scaled to equal totals, the intervals of the
    headline metrics that prevalence moves, of the second.

    Accuracy is there the mean of the recalls and has its limits. The others have MOVER too (Zou & Donner 2008): what
    the value moves by when a recall goes to its Jeffreys limit, and what it spreads by as errors fall among the other
    classes, added by squares, both by the gradient. Symmetric limits do not do here, since a rare class weighs as much
    as a frequent one: with 950 and 50 samples those by the delta method held the truth 88 times in 100.

    Args:
        table: The pairs.
        found: Headline intervals of the first of each pair.
    """
    metrics = headline_metrics()
    mean = next(metric.key for metric, kind in metrics.means if kind is Mean.ARITHMETIC)
    of_mean = [next(one for one in own if one.key == mean) for own in found.overall]
    parts = [[one._replace(key=metric.key) for one in of_mean] for metric, _ in metrics.shares]
    with silently():
        low, high = (ends[:, 0] for ends in found.recalls)
        below, above = _reach(table, found.gradients, (low, high), two_sided_z(found.level))
        for (metric, _), down, up in zip(metrics.smooth, below.tolist(), above.tolist(), strict=True):
            both = metric(table)
            # What has no value as it is has none in its twin: what rounding leaves of 0/0 there is none.
            values = np.where(np.isfinite(both[:, 0]), both[:, 1], np.nan).tolist()
            parts.append([_interval(metric, *ends) for ends in zip(values, down, up, strict=True)])
    return tuple(zip(*parts, strict=True))


def _reach(table: Table, gradients: AdditiveGradient, recalls: Limits, z: float) -> tuple[Array, Array]:
    """How far limits (M, B) of metrics lie below and above the values at equal shares.

    A row with recall r whose errors fall on the others with shares e moves a value by dr (g_ii - sum_j e_j g_ij) / K.
    """
    size = table.n_classes
    slopes, right = _slopes(gradients, size)
    recall, actual = table.recall[:, 0], table.actual[:, 0]
    errors = table.counts[:, 0] / actual[..., None]
    errors[..., range(size), range(size)] = 0.0
    # Of a class without errors it is not known where they would fall.
    flawless = (recall == 1.0)[..., None]
    spread = (1.0 - np.eye(size)) / max(size - 1, 1)
    errors = np.where(flawless, spread, errors / (1.0 - recall)[..., None])
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
    slopes[..., range(size), range(size)] = 0.0
    return slopes, diagonal + rows + columns


def _interval(metric: Metric[Table], value: float, below: float, above: float) -> OverallInterval:
    lowest, highest = metric.card.range
    low = value - below if lowest is None else max(value - below, lowest)
    high = value + above if highest is None else min(value + above, highest)
    refusal = None
    if isnan(value):
        refusal = Refusal.UNDEFINED_ESTIMATE
    elif not low < high:
        low = high = float("nan")
        refusal = Refusal.ZERO_STANDARD_ERROR
    return OverallInterval(metric.key, low, high, Method.MOVER, Given.ACTUAL, refusal)


class Caution(StrEnum):
    """What intervals of one matrix may suffer from, whatever the metric."""

    EMPTY_CLASS = "empty_class"
    FEWER_THAN_FIVE = "fewer_than_five_samples"
    MANY_SMALL_CLASSES = "many_small_classes"
    PERFECT_SMALL_CLASSES = "perfect_small_classes"
    INFORMATIVE_PRIOR = "informative_prior"


_FEW = 5
# Beyond these, 95 % intervals of G, H or A held the truth less than 93 times in 100 in most of the settings simulated:
# 2 to 100 classes of 5 to 100 samples, recalls alike, spread out, or weak in one class (benchmarks/coverage.py).
_CURVATURE = 0.6
_PULL = 0.6
_SEVERAL_CLASSES = 8


def cautions(counts: Array, prior: Prior = Prior.EDGE) -> tuple[Caution, ...]:
    """What to be careful about with one matrix (K, K), whatever the metric."""
    actual = counts.sum(axis=-1)
    size, present = counts.shape[-1], actual > 0
    several = np.count_nonzero(present) >= _SEVERAL_CLASSES
    tests = {
        Caution.EMPTY_CLASS: not present.all(),
        Caution.FEWER_THAN_FIVE: bool(few_samples(actual).any()),
        Caution.MANY_SMALL_CLASSES: several and curvature(counts) > _CURVATURE,
        Caution.PERFECT_SMALL_CLASSES: several and prior is Prior.EDGE and edge_pull(counts) > _PULL,
        Caution.INFORMATIVE_PRIOR: prior in (Prior.UNIFORM, Prior.JEFFREYS_RECALL) and size > 2,
    }
    return tuple(caution for caution, holds in tests.items() if holds)


def few_samples(actual: Array) -> Mask:
    """Which classes (K) have some samples, and fewer than five, of these numbers of samples (K)."""
    few: Mask = (actual > 0) & (actual < _FEW)
    return few


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
    """How far the edge prior moves balanced accuracy, in standard deviations of its posterior, for one matrix (K, K).

    Each recall of 1 of n samples is taken for (n + 1/2)/(n + 1): right for one class, too pessimistic for many.
    """
    parameters = counts + pseudo_counts(counts, Prior.EDGE)
    right, both = np.diagonal(parameters), parameters.sum(axis=-1)
    with silently():
        expected = ratio(right, both)
        variance = expected * (1.0 - expected) / (both + 1.0)
        moved = expected - ratio(np.diagonal(counts), counts.sum(axis=-1))
    return float(abs(np.nansum(moved)) / np.sqrt(np.nansum(variance))) if np.nansum(variance) > 0 else 0.0
