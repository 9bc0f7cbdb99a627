"""Influence of each sample on a metric of probabilities: the forms that cards are made of.

Influences add up like their metrics: the mean of metrics has the mean influence, the difference of two runs on the same
samples the difference. They are scaled so that sums of products are variances and covariances.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from app.kernel.numerics.arrays import Array, kish_effective_n
from app.kernel.samples.areas import (
    area_influences,
    centred,
    centred_by_class,
    micro_influence,
    pair_influence,
    precision_influence,
)
from app.kernel.samples.losses import sums_by_code
from app.kernel.samples.scores import Scores


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
    T = "t"
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


class WeightedSamples:
    """Samples, perhaps weighted, with all that the influences of several metrics share.

    Raises:
        ValueError: the scores carry several sets of weights.
    """

    def __init__(self, scores: Scores) -> None:
        if scores.weights is not None and scores.weights.ndim != 1:
            raise ValueError("expected one weight for every sample")
        self.scores = scores

    @cached_property
    def effective_samples(self) -> float:
        """Effective number of samples, Kish's n_eff; their number without weights."""
        return float(self.n_samples if self.scores.weights is None else kish_effective_n(self.scores.weights))

    @cached_property
    def n_samples(self) -> int:
        """Number of samples that have a weight."""
        weights = self.scores.weights
        return self.scores.n_samples if weights is None else int(np.count_nonzero(weights))

    @cached_property
    def effective_members(self) -> Array:
        """Effective numbers (K) of the members of each class."""
        weights, y, size = self.scores.weights, self.scores.y, self.scores.n_classes
        if weights is None:
            return np.bincount(y, minlength=size).astype(np.float64)
        squares = np.bincount(y, weights * weights, size)
        return np.divide(np.bincount(y, weights, size) ** 2, squares, out=np.zeros(size), where=squares > 0)

    def sides(self, code: int) -> tuple[float, float]:
        """Numbers of members and of non-members of a class, effective ones with weights."""
        weights, members = self.scores.weights, self.scores.members(code)
        if weights is None:
            positives = int(np.count_nonzero(members))
            return positives, self.scores.n_samples - positives
        return kish_effective_n(weights[members]), kish_effective_n(weights[~members])

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the variance of a mean."""
        return max(self.effective_samples - 1.0, 1.0)

    def mean(self, values: Array) -> float:
        """Weighted mean of values (n)."""
        weights = self.scores.weights
        return float(values.mean() if weights is None else weights @ values / weights.sum())

    @cached_property
    def areas(self) -> tuple[Array, Array]:
        """Areas (K) of the classes against the rest, and the influence (K, n) on them."""
        return area_influences(self.scores)

    @cached_property
    def precisions(self) -> tuple[Array, Array]:
        """Average precision (K) of the classes, and the influence (K, n) on it; every class has members."""
        codes = range(self.scores.n_classes)
        values = np.array([float(self.scores.ranking(code).average_precision) for code in codes])
        return values, np.stack([self.precision(code) for code in codes])

    def area(self, code: int) -> Array:
        """Influence (n) on the area of a class."""
        return self.areas[1][code]

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
        return np.square(self.precisions[1]).sum(axis=1)

    def freedom_of(self, weights: Array) -> float:
        """Degrees of freedom of a sum of average precisions in weights (K): of each class the smaller of both sides
        carries the variance.
        """
        smaller = [min(self.sides(code)) for code in range(self.scores.n_classes)]
        return welch(weights**2 * self.variances_of_precision, np.array(smaller))


Parameters = Mapping[str, Any]
# Gives the values (n) of the samples whose mean a metric is, for these parameters.
Values = Callable[[Scores, Parameters], Array]
# Gives the influence on a metric, of one class or overall, for these parameters.
Make = Callable[[WeightedSamples, int | None, Parameters], Influence]


class Over(StrEnum):
    """Scope of a mean: all samples, the class means of their members, or the members of one class."""

    SAMPLES = "samples"
    CLASS_MEANS = "class_means"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class RowMean:
    """Metric that is a mean of one value per sample, computed from this sample alone."""

    values: Values
    over: Over


# Gives the reference mean and its derivatives (K) from the class shares (K).
Reference = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True, slots=True)
class Skill:
    """Metric that is 1 less a mean of one value per sample over a reference computed from the class shares."""

    values: Values
    reference: Reference


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
        row_mean: The metric itself, if its linearisation is exact and a mean over samples.
        skill: The metric itself, if it is such a ratio.
        area: The metric itself, if it is made of areas.
    """

    method: LinearMethod
    make: Make
    of_weighted: bool = True
    row_mean: RowMean | None = None
    skill: Skill | None = None
    area: Area | None = None

    @property
    def is_share(self) -> bool:
        """True if it is a share of the samples, with the limits of a proportion."""
        return self.method is LinearMethod.WILSON


def mean_of(values: Values, *, is_mean: bool = True) -> InfluenceForm:
    """Form of the mean over the samples of their values.

    Args:
        values: Value of each sample.
        is_mean: The metric is exactly this mean, of values that do not depend on other samples.
    """

    def make(of: WeightedSamples, _: int | None, parameters: Parameters) -> Influence:
        influence = centred(values(of.scores, parameters), of.scores.weights)
        return Influence(influence, LinearMethod.T, freedom=of.freedom)

    return InfluenceForm(LinearMethod.T, make, row_mean=RowMean(values, Over.SAMPLES) if is_mean else None)


def share_saved(values: Values, reference: Reference) -> InfluenceForm:
    """Form of 1 less the mean loss over the loss of always stating the class shares.

    It is a ratio: the reference moves with the shares, which are random too.
    """

    def make(of: WeightedSamples, _: int | None, parameters: Parameters) -> Influence:
        losses, (spread, moves) = values(of.scores, parameters), reference(of.scores.prevalence)
        mean = of.mean(losses)
        moved = mean / spread**2 * moves[of.scores.y]
        influence = centred(moved - losses / spread, of.scores.weights, abs(mean) / spread)
        return Influence(influence, LinearMethod.INFLUENCE, freedom=of.freedom)

    return InfluenceForm(LinearMethod.INFLUENCE, make, skill=Skill(values, reference))


def share_of(counted: Values) -> InfluenceForm:
    """Form of the share of the samples that count 1 and not 0."""

    def make(of: WeightedSamples, _: int | None, parameters: Parameters) -> Influence:
        return Influence(centred(counted(of.scores, parameters), of.scores.weights), LinearMethod.WILSON)

    return InfluenceForm(LinearMethod.WILSON, make, row_mean=RowMean(counted, Over.SAMPLES))


def mean_of_class_means(values: Values, *, is_mean: bool = True) -> InfluenceForm:
    """Form of the mean over the classes of the mean over their members; the arguments are those of `mean_of`."""

    def make(of: WeightedSamples, _: int | None, parameters: Parameters) -> Influence:
        y, size = of.scores.y, of.scores.n_classes
        shares = values(of.scores, parameters) / size
        influence = centred_by_class(shares, y, size, of.scores.weights)
        freedom = welch(sums_by_code(y, influence * influence, size), of.effective_members)
        return Influence(influence, LinearMethod.T, Strata.BY_CLASS, freedom=freedom)

    return InfluenceForm(LinearMethod.T, make, row_mean=RowMean(values, Over.CLASS_MEANS) if is_mean else None)


def mean_of_members(values: Values) -> InfluenceForm:
    """Form of the mean over the members of one class."""

    def make(of: WeightedSamples, class_index: int | None, parameters: Parameters) -> Influence:
        members = np.flatnonzero(of.scores.y == class_index)
        influence = np.zeros(of.scores.n_samples)
        weights = None if of.scores.weights is None else of.scores.weights.take(members)
        influence[members] = centred(values(of.scores, parameters).take(members), weights)
        size = members.size if weights is None else float(of.effective_members[class_index])
        return Influence(influence, LinearMethod.T, Strata.BY_CLASS, freedom=max(size - 1.0, 1.0))

    return InfluenceForm(LinearMethod.T, make, row_mean=RowMean(values, Over.MEMBERS))


def welch(parts: Array, sizes: Array) -> float:
    """Degrees of freedom of a sum of means (Welch 1947) with these variances (K), of these numbers of samples (K);
    infinite where none of them varies.
    """
    per_freedom = float((parts**2 / np.maximum(sizes - 1.0, 1.0)).sum())
    return float(parts.sum()) ** 2 / per_freedom if per_freedom else np.inf


def line_of_area(slope: float = 1.0) -> InfluenceForm:
    """Form of a line of the area under the ROC curve of one class, 1 where the area is 1; both of two classes share
    one.
    """

    def make(of: WeightedSamples, class_index: int | None, _: Parameters) -> Influence:
        code = 1 if class_index is None else class_index
        sizes = of.sides(code)
        return Influence(slope * of.area(code), LinearMethod.DELONG_LOGIT, Strata.BY_CLASS, sizes=sizes)

    return InfluenceForm(LinearMethod.DELONG_LOGIT, make, area=Area(AreaOf.ONE_CLASS, slope))


def mean_of_areas(influence: Callable[[WeightedSamples], Array], of: AreaOf) -> InfluenceForm:
    """Form of an average of areas over classes or pairs; with two classes all are the one area."""
    one_area = line_of_area()

    def make(sampled: WeightedSamples, class_index: int | None, parameters: Parameters) -> Influence:
        if sampled.scores.is_mirrored:
            return one_area.make(sampled, class_index, parameters)
        return Influence(influence(sampled), LinearMethod.INFLUENCE_LOGIT)

    return InfluenceForm(LinearMethod.INFLUENCE_LOGIT, make, area=Area(of))
