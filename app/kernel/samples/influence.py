"""Influence of each sample on a metric of probabilities: the forms that cards are made of.

Influences add up like their metrics: the mean of metrics has the mean influence, the difference of two runs on the same
samples the difference. They are scaled so that sums of products are variances and covariances.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from math import fsum
from typing import NamedTuple

import numpy as np

from app.kernel.numerics.arrays import Array, kept, silently
from app.kernel.samples.areas import (
    ROUNDING,
    area_influence,
    centred,
    micro_influence,
    pair_influence,
    precision_influence,
)
from app.kernel.samples.losses import sums_by_code
from app.kernel.samples.scores import Parameters, Scores, Side, Values


class Strata(StrEnum):
    """Numbers that the variance takes as fixed: samples per class, or their total alone."""

    BY_CLASS = "by_class"
    WHOLE = "whole"


class LinearMethod(StrEnum):
    """Method by which limits are made from influences."""

    DELONG_LOGIT = "delong_logit"
    NEWCOMBE = "newcombe_5"
    INFLUENCE_LOGIT = "influence_logit"
    INFLUENCE = "influence"
    JACKKNIFE = "jackknife"
    HALL_T = "hall_t"
    WILSON = "wilson"
    CLOPPER_PEARSON = "clopper_pearson"
    JEFFREYS = "jeffreys"
    WALD = "wald"


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """Influences of the samples on one value.

    Attributes:
        of_samples: (n) in the order of the samples; the sum of squares is the variance.
        method: Method of the limits.
        strata: Numbers that the variance takes as fixed.
        freedom: Degrees of freedom of the variance, infinite where it is taken as known.
        sizes: Members and non-members of the class, for an area; effective numbers of weighted samples.
    """

    of_samples: Array
    method: LinearMethod
    strata: Strata = Strata.WHOLE
    freedom: float = np.inf
    sizes: tuple[float, float] | None = None


class ClassSums(NamedTuple):
    """Sums of one value of the samples, by class.

    Attributes:
        sides: (K) samples of each class.
        means: (K) in the weights; NaN without samples.
        away: (K) the mean of the class less that of all samples; 0 without samples.
        spreads: (K) sums of squared weights times squared deviations from the mean of the class.
        overall: Mean of all samples in the weights.
    """

    sides: Sequence[Side]
    means: Array
    away: Array
    spreads: Array
    overall: float

    @property
    def whole(self) -> Side:
        """All samples."""
        return Side.summed(self.sides)


class Made(NamedTuple):
    """A metric that is made of one value of each sample, and the influence of these in each unit of weight: slopes (K)
    by the deviations of samples from the mean of their class, and levels (K) that are the same for all of a class.
    """

    value: float
    slopes: Array
    levels: Array
    freedom: float = np.inf


class WeightedSamples:
    """Samples, perhaps weighted, with all that the influences of several metrics share.

    Raises:
        ValueError: the scores carry several sets of weights.
    """

    def __init__(self, scores: Scores) -> None:
        if scores.weights is not None and scores.weights.ndim != 1:
            raise ValueError("expected one weight for every sample")
        self.scores = scores

    def sides(self, code: int) -> tuple[float, float]:
        """Effective numbers of members and of non-members of a class."""
        members, others = self.scores.both_sides(code)
        return members.effective, others.effective

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the variance of a mean."""
        return self.scores.whole.freedom

    def by_class(self, values: Array) -> ClassSums:
        """Return the sums of values (n) by class."""
        y, size, each = self.scores.y, self.scores.n_classes, self.scores.each
        weights, squares, used = (np.bincount(y, one, size) for one in (each, each * each, each > 0))
        sides = [*map(Side, weights.tolist(), squares.tolist(), used.astype(np.intp).tolist())]
        with silently():
            means = sums_by_code(y, each * values, size) / weights
            # What is left of a rounding of the sums.
            means += sums_by_code(y, each * (values - means[y]), size) / weights
        overall = fsum(weights * np.nan_to_num(means)) / fsum(weights)
        moved = each * (values - means[y])
        away = np.where(weights > 0, means - overall, 0.0)
        return ClassSums(sides, means, away, sums_by_code(y, moved * moved, size), overall)

    @cached_property
    def areas(self) -> tuple[Array, Array]:
        """Areas (K) of the classes against the rest, and the influence (K, n) on them."""
        codes = range(self.scores.n_classes)
        with silently():
            areas = np.array([float(self.scores.ranking(code).auc) for code in codes])
        return areas, np.stack([self.area(code) for code in codes])

    @cached_property
    def precisions(self) -> tuple[Array, Array]:
        """Average precision (K) of the classes, and the influence (K, n) on it; every class has members."""
        codes = range(self.scores.n_classes)
        values = np.array([float(self.scores.ranking(code).average_precision) for code in codes])
        return values, np.stack([self.precision(code) for code in codes])

    @kept
    def area(self, code: int) -> Array:
        """Influence (n) on the area of a class."""
        return area_influence(self.scores, code)

    @kept
    def precision(self, code: int) -> Array:
        """Influence (n) on the average precision of a class."""
        return precision_influence(self.scores, code)

    def pairs(self, weights: Array) -> tuple[Array, Array]:
        """Areas (K, K) of pairs of classes, and the influence (n) on their sum in weights (K, K)."""
        return pair_influence(self.scores, weights)

    def entries(self, *, of_precision: bool) -> Array:
        """Influence (n) on the area, or the average precision, of all scores in one order."""
        return precision_influence(self.scores, None) if of_precision else micro_influence(self.scores)

    def shares(self, values: Array) -> Array:
        """Influence (n) of how frequent the classes are on the mean of values (K) by it."""
        scores = self.scores
        away = scores.of_members(values - scores.frequencies @ values) * float(scores.n / scores.actual.sum())
        return centred(away, scores.weights, 1.0)

    @cached_property
    def variances_of_precision(self) -> Array:
        """Variances (K) of the average precision of the classes."""
        return np.asarray(np.square(self.precisions[1]).sum(axis=1))

    def freedom_of(self, weights: Array) -> float:
        """Degrees of freedom of a sum of average precisions in weights (K): of each class the smaller of both sides
        carries the variance.
        """
        smaller = [min(self.sides(code)) for code in range(self.scores.n_classes)]
        return welch(weights**2 * self.variances_of_precision, np.array(smaller))


# Gives the influence on a metric, of one class or overall, for these parameters.
Make = Callable[[WeightedSamples, int | None, Parameters], Influence]


# Gives a metric, of one class or overall, from what is known of the values of the samples.
Linear = Callable[[ClassSums, int | None], Made]
# Gives the reference mean and its derivatives (K) from the class shares (K).
Reference = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True, slots=True)
class OfRows:
    """Metric that is made of one value per sample, computed from this sample alone."""

    values: Values
    linear: Linear
    strata: Strata


class AreaOf(StrEnum):
    """Areas that are averaged, and their weights."""

    ONE_CLASS = "one_class"
    CLASSES = "classes"
    CLASS_SHARES = "class_shares"
    PAIRS = "pairs"
    PAIR_SHARES = "pair_shares"
    ENTRIES = "entries"


@dataclass(frozen=True, slots=True)
class Area:
    """Metric that is an area, or an average of areas.

    Attributes:
        slope: Slope of the metric as a line of the area that is 1 where the area is 1.
        of_precision: Areas are those under the steps of precision over recall, not under ROC curves.
    """

    of: AreaOf
    slope: float = 1.0
    of_precision: bool = False


@dataclass(frozen=True, slots=True)
class InfluenceForm:
    """Declaration on a card of how influences are made, and the method of limits unless a special case has another.

    Attributes:
        of_weighted: It holds for weighted samples too.
        of_rows: The metric itself, if it is made of one value per sample.
        area: The metric itself, if it is made of areas.
    """

    method: LinearMethod
    make: Make
    of_weighted: bool = True
    of_rows: OfRows | None = None
    area: Area | None = None

    def is_of_classes(self, found: Influence) -> bool:
        """True if each class counts by its own samples, however many they are."""
        return found.strata is Strata.BY_CLASS or (self.area is not None and self.area.of is not AreaOf.ENTRIES)

    @property
    def is_share(self) -> bool:
        """True if it is a share of the samples, with the limits of a proportion."""
        return self.method is LinearMethod.WILSON


def _form_of_rows(
    method: LinearMethod, values: Values, linear: Linear, strata: Strata = Strata.WHOLE, *, is_exact: bool = True
) -> InfluenceForm:
    """Form of what is made of one value per sample; unless it ``is_exact`` of something near to the metric."""

    def make(of: WeightedSamples, class_index: int | None, parameters: Parameters) -> Influence:
        each = of.scores.each
        found = np.where(each > 0, of.scores.row_values(values, parameters), 0.0)
        sums, y = of.by_class(found), of.scores.y
        made = linear(sums, class_index)
        away = made.slopes[y] * (found - sums.means[y]) + made.levels[y]
        influence = np.where(each > 0, each * away, 0.0)
        varies = float(influence @ influence) > rounding_of(made.value, sums.whole)
        return Influence(influence * varies, method, strata, made.freedom)

    return InfluenceForm(method, make, of_rows=OfRows(values, linear, strata) if is_exact else None)


def rounding_of(value: float, whole: Side) -> float:
    """Variance of a metric of one value per sample below which it is rounding."""
    # Of a skill score the loss is what is left of 1.
    size = ROUNDING * max(abs(value), abs(1.0 - value))
    return size * size * whole.squares / whole.weight**2


def _mean(sums: ClassSums, _: int | None) -> Made:
    each = sums.whole.scale_of_mean
    return Made(sums.overall, np.full(len(sums.sides), each), each * sums.away, sums.whole.freedom)


def mean_of(values: Values, *, is_mean: bool = True) -> InfluenceForm:
    """Form of the mean over the samples of their values.

    Args:
        values: Value of each sample.
        is_mean: The metric is exactly this mean, of values that do not depend on other samples.
    """
    return _form_of_rows(LinearMethod.HALL_T, values, _mean, is_exact=is_mean)


def share_saved(values: Values, reference: Reference) -> InfluenceForm:
    """Form of 1 less the mean loss over the loss of always stating the class shares.

    It is a ratio: the reference moves with the shares, which are random too.
    """

    def linear(sums: ClassSums, _: int | None) -> Made:
        each, mean = sums.whole.scale_of_mean, sums.overall
        shares = np.array([side.weight for side in sums.sides]) / sums.whole.weight
        with silently():
            spread, moves = reference(shares)
        if not spread > 0.0:
            return Made(np.nan, np.zeros(shares.size), np.zeros(shares.size))
        moves = np.where(shares > 0.0, moves, 0.0)
        moved = mean / spread**2 * (moves - float(shares @ moves))
        slopes, levels = np.full(shares.size, -each / spread), -sums.away / spread + moved
        return Made(1.0 - mean / spread, slopes, each * levels, sums.whole.freedom)

    return _form_of_rows(LinearMethod.INFLUENCE, values, linear)


def share_of(counted: Values) -> InfluenceForm:
    """Form of the share of the samples that count 1 and not 0."""
    return _form_of_rows(LinearMethod.WILSON, counted, lambda sums, of: _mean(sums, of)._replace(freedom=np.inf))


def _class_means(sums: ClassSums, of: int | None) -> Made:
    """The mean of one class, or that of all classes."""
    codes = [*range(len(sums.sides))] if of is None else [of]
    # Of a class without variance all of it is rounding.
    weighed = np.array([side.squares for side in sums.sides])
    varies = sums.spreads > weighed * (ROUNDING * sums.means) ** 2
    slopes = np.zeros(len(sums.sides))
    slopes[codes] = [sums.sides[code].scale_of_mean / len(codes) for code in codes]
    slopes = np.where(varies, slopes, 0.0)
    if of is not None:
        freedom = sums.sides[of].freedom
    else:
        parts = np.where(varies, slopes**2 * sums.spreads, 0.0)
        freedom = welch(parts, np.array([side.effective for side in sums.sides]))
    return Made(float(sums.means[codes].mean()), slopes, np.zeros(slopes.size), freedom)


def mean_of_class_means(values: Values, *, is_mean: bool = True) -> InfluenceForm:
    """Form of the mean over the classes of the mean over their members; the arguments are those of `mean_of`."""
    return _form_of_rows(LinearMethod.HALL_T, values, _class_means, Strata.BY_CLASS, is_exact=is_mean)


def mean_of_members(values: Values) -> InfluenceForm:
    """Form of the mean over the members of one class."""
    return _form_of_rows(LinearMethod.HALL_T, values, _class_means, Strata.BY_CLASS)


def welch(parts: Array, sizes: Array) -> float:
    """Degrees of freedom of a sum of means (Welch 1947) with these variances (K), of these numbers of samples (K);
    infinite where none of them varies.
    """
    per_freedom = float((parts**2 / np.maximum(sizes - 1.0, 1.0)).sum())
    return float(parts.sum()) ** 2 / per_freedom if per_freedom else np.inf


def of_areas(of: AreaOf, *, slope: float = 1.0, of_precision: bool = False) -> InfluenceForm:
    """Form of an area, or of an average of areas; the arguments are those of `Area`. With two classes all averages of
    areas under ROC curves are the one area that both share.
    """
    is_line = of is AreaOf.ONE_CLASS and not of_precision

    def make(sampled: WeightedSamples, class_index: int | None, _: Parameters) -> Influence:
        alone = of is not AreaOf.ENTRIES and sampled.scores.is_mirrored and not of_precision
        if alone or of is AreaOf.ONE_CLASS:
            return _of_one_area(sampled, 1 if class_index is None else class_index, slope, of_precision=of_precision)
        if of is AreaOf.ENTRIES:
            freedom = sampled.freedom if of_precision else np.inf
            return Influence(sampled.entries(of_precision=of_precision), LinearMethod.INFLUENCE_LOGIT, freedom=freedom)
        if of in (AreaOf.PAIRS, AreaOf.PAIR_SHARES):
            influence = _of_pairs(sampled, by_share=of is AreaOf.PAIR_SHARES)
            return Influence(influence, LinearMethod.INFLUENCE_LOGIT)
        return _of_all_areas(sampled, by_share=of is AreaOf.CLASS_SHARES, of_precision=of_precision)

    method = LinearMethod.DELONG_LOGIT if is_line else LinearMethod.INFLUENCE_LOGIT
    return InfluenceForm(method, make, area=Area(of, slope, of_precision))


def _of_one_area(sampled: WeightedSamples, code: int, slope: float, *, of_precision: bool) -> Influence:
    sizes = sampled.sides(code)
    if of_precision:
        # The smaller of both sides of the class carries the variance.
        freedom = max(min(sizes) - 1.0, 1.0)
        return Influence(sampled.precision(code), LinearMethod.INFLUENCE_LOGIT, freedom=freedom)
    return Influence(slope * sampled.area(code), LinearMethod.DELONG_LOGIT, Strata.BY_CLASS, sizes=sizes)


def _of_all_areas(sampled: WeightedSamples, *, by_share: bool, of_precision: bool) -> Influence:
    """Influence on the mean over the classes, or on that by how frequent they are, which is random too."""
    values, influence = sampled.precisions if of_precision else sampled.areas
    weights = sampled.scores.frequencies if by_share else np.full(len(values), 1.0 / len(values))
    average = weights @ influence + (sampled.shares(values) if by_share else 0.0)
    if not of_precision:
        return Influence(average, LinearMethod.INFLUENCE_LOGIT)
    # Of equal scores the precisions of two classes make up 1, but for a rounding.
    largest = np.abs(weights[:, None] * influence).max(initial=0.0)
    varies = np.abs(average).max(initial=0.0) > ROUNDING * largest
    return Influence(average * varies, LinearMethod.INFLUENCE_LOGIT, freedom=sampled.freedom_of(weights))


def _of_pairs(sampled: WeightedSamples, *, by_share: bool) -> Array:
    size = sampled.scores.n_classes
    if not by_share:
        return sampled.pairs(np.full((size, size), 1.0 / (size * (size - 1))))[1]
    # Weights (pi_i + pi_j) / (2 (K - 1)), whose shares are random too.
    shares, pairs = sampled.scores.prevalence, 2.0 * (size - 1)
    areas, influence = sampled.pairs((shares[:, None] + shares) / pairs)
    return influence + sampled.shares((areas.sum(axis=0) + areas.sum(axis=1)) / pairs)
