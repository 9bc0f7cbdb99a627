"""Sampling errors of folded metrics: influences merge where their squares do, class by class."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from app.kernel.folds.folded import FoldedSamples
from app.kernel.samples.influence import LinearMethod


class Spread(NamedTuple):
    """Sampling variance of a value, as the influences of the samples would have it.

    Attributes:
        variance: Of the value; NaN where there is none.
        method: How limits are made of it.
        freedom: Its degrees of freedom.
        sizes: Members and others of the class, for an area.
    """

    variance: float
    method: LinearMethod
    freedom: float = np.inf
    sizes: tuple[float, float] | None = None


# Of the class that is asked for, None for all of them.
Error = Callable[[FoldedSamples, int | None], Spread | None]


def of_mean(kind: int) -> Error:
    """Of the mean of what is added up."""

    def error(scores: FoldedSamples, _: int | None) -> Spread:
        size = scores.n_samples
        return Spread(scores.sums.variance(kind) / size, LinearMethod.T, max(size - 1.0, 1.0))

    return error


def of_class_means(kind: int) -> Error:
    """Of the mean over the classes of the mean over their members; the degrees of freedom are those of Welch (1947)."""

    def error(scores: FoldedSamples, _: int | None) -> Spread | None:
        sizes = scores.actual
        if not sizes.all():
            return None
        parts = scores.sums.variances(kind) / (sizes * scores.n_classes**2)
        variance = float(parts.sum())
        per_freedom = float((parts**2 / np.maximum(sizes - 1.0, 1.0)).sum())
        return Spread(variance, LinearMethod.T, variance**2 / per_freedom if per_freedom else np.inf)

    return error


def of_members(kind: int) -> Error:
    """Of the mean over the members of a class."""

    def error(scores: FoldedSamples, class_index: int | None) -> Spread | None:
        if class_index is None or not scores.actual[class_index]:
            return None
        size = float(scores.actual[class_index])
        return Spread(float(scores.sums.variances(kind)[class_index]) / size, LinearMethod.T, max(size - 1.0, 1.0))

    return error


def of_area(slope: float = 1.0) -> Error:
    """Of a line of the area of one class by DeLong; of two classes both have the same. None for averages of more."""

    def error(scores: FoldedSamples, class_index: int | None) -> Spread | None:
        if class_index is None and scores.n_classes > 2:
            return None
        ranking = scores.ranking(1 if class_index is None else class_index)
        sizes = float(ranking.positives), float(ranking.negatives)
        return Spread(slope * slope * ranking.area_variance, LinearMethod.DELONG_LOGIT, sizes=sizes)

    return error
