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

from app.kernel.numerics.arrays import Array
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
        sizes: Members and non-members of the class, for an area.
    """

    of_samples: Array
    method: LinearMethod
    strata: Strata = Strata.WHOLE
    freedom: float = np.inf
    sizes: tuple[int, int] | None = None


class Unweighted:
    """Samples without weights, with what the influences of several metrics need computed once.

    Raises:
        ValueError: the scores carry weights.
    """

    def __init__(self, scores: Scores) -> None:
        if scores.weights is not None:
            raise ValueError("the sampling error of weighted samples is not known")
        self.scores = scores

    @cached_property
    def areas(self) -> tuple[Array, Array]:
        """Areas (K) of the classes against the rest, and the influence (K, n) on them."""
        return area_influences(self.scores)


Parameters = Mapping[str, Any]
# What samples (n) contribute to a metric with these parameters.
Values = Callable[[Scores, Parameters], Array]
# The influence on a metric, of the class it is asked for, with these parameters.
Make = Callable[[Unweighted, int | None, Parameters], Influence]


@dataclass(frozen=True, slots=True)
class Form:
    """On a card: how influences are made, and the method of limits where no special case has another."""

    method: LinearMethod
    make: Make

    @property
    def is_share(self) -> bool:
        """Is it of a share of the samples, with the limits of a proportion?"""
        return self.method is LinearMethod.WILSON


def mean_of(values: Values) -> Form:
    """The mean over the samples of what they contribute."""

    def make(of: Unweighted, _: int | None, parameters: Parameters) -> Influence:
        freedom = float(max(of.scores.n_samples - 1, 1))
        return Influence(centred(values(of.scores, parameters)), LinearMethod.T, freedom=freedom)

    return Form(LinearMethod.T, make)


def share_of(counted: Values) -> Form:
    """The share of the samples that count 1 and not 0."""

    def make(of: Unweighted, _: int | None, parameters: Parameters) -> Influence:
        return Influence(centred(counted(of.scores, parameters)), LinearMethod.WILSON)

    return Form(LinearMethod.WILSON, make)


def mean_of_class_means(values: Values) -> Form:
    """The mean over the classes of the mean over their members."""

    def make(of: Unweighted, _: int | None, parameters: Parameters) -> Influence:
        y, size = of.scores.y, of.scores.n_classes
        influence = centred_by_class(values(of.scores, parameters) / size, y, size)
        return Influence(influence, LinearMethod.T, Strata.BY_CLASS, freedom=_welch(influence, y, size))

    return Form(LinearMethod.T, make)


def mean_of_members(values: Values) -> Form:
    """The mean over the members of one class."""

    def make(of: Unweighted, class_index: int | None, parameters: Parameters) -> Influence:
        members = np.flatnonzero(of.scores.y == class_index)
        influence = np.zeros(of.scores.n_samples)
        influence[members] = centred(values(of.scores, parameters).take(members))
        return Influence(influence, LinearMethod.T, Strata.BY_CLASS, freedom=float(max(members.size - 1, 1)))

    return Form(LinearMethod.T, make)


def _welch(influence: Array, y: Codes, n_classes: int) -> float:
    """Degrees of freedom of a sum of independent means (Welch 1947)."""
    parts = np.bincount(y, influence * influence, n_classes)
    spare = np.maximum(np.bincount(y, minlength=n_classes) - 1, 1)
    return float(parts.sum() ** 2 / (parts**2 / spare).sum())


def line_of_area(slope: float = 1.0) -> Form:
    """A line of the area under the ROC curve of one class; of two classes both have the same."""

    def make(of: Unweighted, class_index: int | None, _: Parameters) -> Influence:
        code = 1 if class_index is None else class_index
        positives = int(of.scores.actual[code])
        sizes = (positives, of.scores.n_samples - positives)
        return Influence(slope * of.areas[1][code], LinearMethod.DELONG_LOGIT, Strata.BY_CLASS, sizes=sizes)

    return Form(LinearMethod.DELONG_LOGIT, make)


def mean_of_areas(influence: Callable[[Unweighted], Array]) -> Form:
    """Averages of areas over classes or pairs; with two classes all of them are the one area."""
    one_area = line_of_area()

    def make(of: Unweighted, class_index: int | None, parameters: Parameters) -> Influence:
        if of.scores.n_classes == 2:
            return one_area.make(of, class_index, parameters)
        return Influence(influence(of), LinearMethod.INFLUENCE_LOGIT)

    return Form(LinearMethod.INFLUENCE_LOGIT, make)
