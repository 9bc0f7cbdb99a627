"""What each sample adds to the sampling error of a metric of probabilities: the forms that cards are made of.

An influence adds up like the metric it belongs to: the mean of metrics has the mean influence, the difference of two
runs on the same samples the difference. It is scaled so that sums of products are variances and covariances.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np

from app.kernel.numerics.arrays import Array, kish_effective_n
from app.kernel.samples.areas import area_influences, centred, centred_by_class
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores


class Strata(StrEnum):
    """What counts as fixed: the numbers of samples per class, or their total alone."""

    BY_CLASS = "by_class"
    WHOLE = "whole"


class LinearMethod(StrEnum):
    """How limits are made."""

    DELONG_LOGIT = "delong_logit"
    NEWCOMBE = "newcombe_5"
    INFLUENCE_LOGIT = "influence_logit"
    INFLUENCE = "influence"
    T = "t"
    WILSON = "wilson"
    CLOPPER_PEARSON = "clopper_pearson"
    JEFFREYS = "jeffreys"
    WALD = "wald"


@dataclass(frozen=True, slots=True, eq=False)
class Influence:
    """What samples add to the sampling error of one value.

    Attributes:
        of_samples: (n) in the order of the samples; the sum of squares is the variance.
        method: How limits are made.
        strata: What the variance takes as fixed.
        freedom: Degrees of freedom of the variance, infinite where it is taken as known.
        sizes: Members and non-members of the class, for an area; of weighted samples, how many these are worth.
    """

    of_samples: Array
    method: LinearMethod
    strata: Strata = Strata.WHOLE
    freedom: float = np.inf
    sizes: tuple[float, float] | None = None


class Sampled:
    """Samples, perhaps with weights, with what the influences of several metrics need computed once.

    Raises:
        ValueError: the scores carry several sets of weights.
    """

    def __init__(self, scores: Scores) -> None:
        if scores.weights is not None and scores.weights.ndim != 1:
            raise ValueError("expected one weight for every sample")
        self.scores = scores

    @cached_property
    def effective_samples(self) -> float:
        """The effective number of samples, Kish's n_eff; their number without weights."""
        return float(self.n_samples if self.scores.weights is None else kish_effective_n(self.scores.weights))

    @cached_property
    def n_samples(self) -> int:
        """Samples that count."""
        weights = self.scores.weights
        return self.scores.n_samples if weights is None else int(np.count_nonzero(weights))

    @cached_property
    def effective_members(self) -> Array:
        """The same (K) for the members of each class."""
        weights, y, size = self.scores.weights, self.scores.y, self.scores.n_classes
        if weights is None:
            return np.bincount(y, minlength=size).astype(np.float64)
        squares = np.bincount(y, weights * weights, size)
        return np.divide(np.bincount(y, weights, size) ** 2, squares, out=np.zeros(size), where=squares > 0)

    def sides(self, code: int) -> tuple[float, float]:
        """How many members and how many others a class has, or their effective numbers."""
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
        """Mean of values (n) in the weights."""
        weights = self.scores.weights
        return float(values.mean() if weights is None else weights @ values / weights.sum())

    @cached_property
    def areas(self) -> tuple[Array, Array]:
        """Areas (K) of the classes against the rest, and the influence (K, n) on them."""
        return area_influences(self.scores)


Parameters = Mapping[str, Any]
# What samples (n) contribute to a metric with these parameters.
Values = Callable[[Scores, Parameters], Array]
# The influence on a metric, of the class it is asked for, with these parameters.
Make = Callable[[Sampled, int | None, Parameters], Influence]


class Over(StrEnum):
    """What a mean is of: all samples, the means of the members of each class, or the members of one class."""

    SAMPLES = "samples"
    CLASS_MEANS = "class_means"
    MEMBERS = "members"


@dataclass(frozen=True, slots=True)
class RowMean:
    """A metric as the mean of what each sample contributes, which depends on nothing but the sample."""

    values: Values
    over: Over


# From the shares (K) of the classes the mean that has to be beaten, and its derivatives (K) by them.
Reference = Callable[[Array], tuple[float, Array]]


@dataclass(frozen=True, slots=True)
class Skill:
    """A metric as 1 less the mean of what each sample contributes over what the shares of the classes say."""

    values: Values
    reference: Reference


class AreaOf(StrEnum):
    """What areas are averaged, and how."""

    ONE_CLASS = "one_class"
    CLASSES = "classes"
    CLASS_SHARES = "class_shares"
    PAIRS = "pairs"
    PAIR_SHARES = "pair_shares"
    ENTRIES = "entries"


@dataclass(frozen=True, slots=True)
class Area:
    """A metric as an area, or an average of some.

    Attributes:
        slope: Of a line of it that is 1 where the area is.
    """

    of: AreaOf
    slope: float = 1.0


@dataclass(frozen=True, slots=True)
class Form:
    """On a card: how influences are made, and the method of limits where no special case has another.

    Attributes:
        of_weighted: Are they those of weighted samples too?
        row_mean: The metric itself, where it is the mean of what it is linearised as.
        skill: The metric itself, where it is such a ratio.
        area: The metric itself, where it is one of areas.
    """

    method: LinearMethod
    make: Make
    of_weighted: bool = True
    row_mean: RowMean | None = None
    skill: Skill | None = None
    area: Area | None = None

    @property
    def is_share(self) -> bool:
        """Is it of a share of the samples, with the limits of a proportion?"""
        return self.method is LinearMethod.WILSON


def mean_of(values: Values, *, is_mean: bool = True) -> Form:
    """The mean over the samples of what they contribute.

    Args:
        values: What they contribute.
        is_mean: Is the metric that very mean, of values that other samples do not change, to the last digit?
    """

    def make(of: Sampled, _: int | None, parameters: Parameters) -> Influence:
        influence = centred(values(of.scores, parameters), of.scores.weights)
        return Influence(influence, LinearMethod.T, freedom=of.freedom)

    return Form(LinearMethod.T, make, row_mean=RowMean(values, Over.SAMPLES) if is_mean else None)


def share_saved(values: Values, reference: Reference) -> Form:
    """1 less the mean over the samples of what they lose, over what is lost by always saying the shares of the classes.

    A ratio: the reference moves with the shares, which are random too.
    """

    def make(of: Sampled, _: int | None, parameters: Parameters) -> Influence:
        losses, (spread, moves) = values(of.scores, parameters), reference(of.scores.prevalence)
        mean = of.mean(losses)
        moved = mean / spread**2 * moves[of.scores.y]
        influence = centred(moved - losses / spread, of.scores.weights, abs(mean) / spread)
        return Influence(influence, LinearMethod.INFLUENCE, freedom=of.freedom)

    return Form(LinearMethod.INFLUENCE, make, skill=Skill(values, reference))


def share_of(counted: Values) -> Form:
    """The share of the samples that count 1 and not 0."""

    def make(of: Sampled, _: int | None, parameters: Parameters) -> Influence:
        return Influence(centred(counted(of.scores, parameters), of.scores.weights), LinearMethod.WILSON)

    return Form(LinearMethod.WILSON, make, row_mean=RowMean(counted, Over.SAMPLES))


def mean_of_class_means(values: Values, *, is_mean: bool = True) -> Form:
    """The mean over the classes of the mean over their members; arguments as `mean_of` has them."""

    def make(of: Sampled, _: int | None, parameters: Parameters) -> Influence:
        y, size = of.scores.y, of.scores.n_classes
        shares = values(of.scores, parameters) / size
        influence = centred_by_class(shares, y, size, of.scores.weights)
        freedom = _welch(influence, y, of.effective_members)
        return Influence(influence, LinearMethod.T, Strata.BY_CLASS, freedom=freedom)

    return Form(LinearMethod.T, make, row_mean=RowMean(values, Over.CLASS_MEANS) if is_mean else None)


def mean_of_members(values: Values) -> Form:
    """The mean over the members of one class."""

    def make(of: Sampled, class_index: int | None, parameters: Parameters) -> Influence:
        members = np.flatnonzero(of.scores.y == class_index)
        influence = np.zeros(of.scores.n_samples)
        weights = None if of.scores.weights is None else of.scores.weights.take(members)
        influence[members] = centred(values(of.scores, parameters).take(members), weights)
        size = members.size if weights is None else float(of.effective_members[class_index])
        return Influence(influence, LinearMethod.T, Strata.BY_CLASS, freedom=max(size - 1.0, 1.0))

    return Form(LinearMethod.T, make, row_mean=RowMean(values, Over.MEMBERS))


def _welch(influence: Array, y: Codes, sizes: Array) -> float:
    """Degrees of freedom of a sum of independent means (Welch 1947) of so many samples each (K); infinite where none of
    them varies.
    """
    parts = np.bincount(y, influence * influence, sizes.size)
    spare = np.maximum(sizes - 1.0, 1.0)
    per_freedom = float((parts**2 / spare).sum())
    return float(parts.sum()) ** 2 / per_freedom if per_freedom else np.inf


def line_of_area(slope: float = 1.0) -> Form:
    """A line of the area under the ROC curve of one class, 1 where the area is; of two classes both have the same."""

    def make(of: Sampled, class_index: int | None, _: Parameters) -> Influence:
        code = 1 if class_index is None else class_index
        sizes = of.sides(code)
        return Influence(slope * of.areas[1][code], LinearMethod.DELONG_LOGIT, Strata.BY_CLASS, sizes=sizes)

    return Form(LinearMethod.DELONG_LOGIT, make, area=Area(AreaOf.ONE_CLASS, slope))


def mean_of_areas(influence: Callable[[Sampled], Array], of: AreaOf) -> Form:
    """Averages of areas over classes or pairs; with two classes all of them are the one area."""
    one_area = line_of_area()

    def make(sampled: Sampled, class_index: int | None, parameters: Parameters) -> Influence:
        if sampled.scores.is_mirrored:
            return one_area.make(sampled, class_index, parameters)
        return Influence(influence(sampled), LinearMethod.INFLUENCE_LOGIT)

    return Form(LinearMethod.INFLUENCE_LOGIT, make, area=Area(of))
