"""Sampling errors of folded metrics: influences merge where their squares do, class by class."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from app.kernel.folds.folded import FoldedSamples, FoldedScores
from app.kernel.folds.groups.influence import GroupedLosses, GroupInfluence, mean_of_areas
from app.kernel.folds.joint.variances import Placed, of_area_of_entries, of_mean_area
from app.kernel.numerics.arrays import Array
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.samples.losses import CLIP


class Spread(NamedTuple):
    """Sampling variance of a value, as the influences of the samples would have it.

    Attributes:
        variance: Of the value; NaN where there is none.
        method: How limits are made of it.
        freedom: Its degrees of freedom.
        sizes: Members and others of the class, for an area.
        strata: What it takes as fixed.
        of_groups: What groups add to it, where samples are in some: then this counts, and not the variance.
    """

    variance: float
    method: LinearMethod
    freedom: float = np.inf
    sizes: tuple[float, float] | None = None
    strata: Strata = Strata.WHOLE
    of_groups: Callable[[], GroupInfluence] | None = None


# Of the class that is asked for, None for all of them, and its value.
Error = Callable[[FoldedSamples, int | None, float], Spread | None]


def of_mean(kind: int) -> Error:
    """Of the mean of what is added up."""

    def error(scores: FoldedSamples, _: int | None, __: float) -> Spread:
        size = scores.effective_samples
        variance, freedom = scores.sums.variance(kind) / size, max(size - 1.0, 1.0)
        return Spread(variance, LinearMethod.T, freedom, of_groups=lambda: _losses(scores).mean(kind))

    return error


def of_class_means(kind: int) -> Error:
    """Of the mean over the classes of the mean over their members; the degrees of freedom are those of Welch (1947)."""

    def error(scores: FoldedSamples, _: int | None, __: float) -> Spread | None:
        sizes = scores.effective_members
        if not sizes.all():
            return None
        parts = scores.sums.variances(kind) / (sizes * scores.n_classes**2)
        variance = float(parts.sum())
        per_freedom = float((parts**2 / np.maximum(sizes - 1.0, 1.0)).sum())
        freedom = variance**2 / per_freedom if per_freedom else np.inf
        return Spread(
            variance,
            LinearMethod.T,
            freedom,
            strata=Strata.BY_CLASS,
            of_groups=lambda: _losses(scores).class_means(kind),
        )

    return error


def of_share(*counted: int, rest: bool = False) -> Error:
    """Of the share of the samples that are counted by some of the counts in each group, or by none of them."""

    def error(scores: FoldedSamples, _: int | None, __: float) -> Spread:
        variance = scores.sums.share_variance(counted, rest=rest) / scores.effective_samples
        return Spread(variance, LinearMethod.WILSON, of_groups=lambda: _losses(scores).share(counted, rest=rest))

    return error


def of_constant() -> Error:
    """Of what is the same whatever the samples are."""

    def error(_: FoldedSamples, __: int | None, ___: float) -> Spread:
        return Spread(0.0, LinearMethod.INFLUENCE)

    return error


def of_saved(kind: int, reference: Callable[[Array], tuple[float, Array]]) -> Error:
    """Of the share that is saved of the mean of what is added up, against that of always saying the shares of the
    classes.

    Args:
        kind: What is added up.
        reference: From the shares (K) to their mean, and its derivative (K).
    """

    def error(scores: FoldedSamples, _: int | None, value: float) -> Spread:
        size, (mean, moves) = scores.effective_samples, reference(scores.prevalence)
        variance = scores.sums.variance(kind, (value - 1.0) * moves) / mean**2
        return Spread(
            variance / size,
            LinearMethod.INFLUENCE,
            max(size - 1.0, 1.0),
            of_groups=lambda: _losses(scores).saved(kind, mean, (1.0 - value) * moves),
        )

    return error


def of_members(kind: int) -> Error:
    """Of the mean over the members of a class."""

    def error(scores: FoldedSamples, class_index: int | None, _: float) -> Spread | None:
        if class_index is None or not scores.actual[class_index]:
            return None
        size = float(scores.effective_members[class_index])
        variance = float(scores.sums.variances(kind)[class_index]) / size
        return Spread(
            variance,
            LinearMethod.T,
            max(size - 1.0, 1.0),
            strata=Strata.BY_CLASS,
            of_groups=lambda: _losses(scores).members(kind, class_index),
        )

    return error


def of_area(slope: float = 1.0) -> Error:
    """Of a line of the area of one class by DeLong; of two classes both have the same. None for averages of more."""

    def error(scores: FoldedSamples, class_index: int | None, _: float) -> Spread | None:
        if class_index is None and scores.n_classes > 2:
            return None
        code = 1 if class_index is None else class_index
        ranking, sizes = scores.ranking(code), scores.effective_sides(code)
        variance = slope * slope * ranking.area_variance
        return Spread(
            variance,
            LinearMethod.DELONG_LOGIT,
            sizes=sizes,
            strata=Strata.BY_CLASS,
            of_groups=lambda: _line(ranking.area_of_groups.influence, slope),
        )

    return error


def of_areas(*, weighted: bool = False) -> Error:
    """Of the mean of the areas of all classes, or of that by their shares. Of more than two classes that of groups is
    known, since what is added up is of one group in all orders, and otherwise that of some rows in all of them.
    """
    one_area = of_area()

    def error(scores: FoldedSamples, class_index: int | None, value: float) -> Spread | None:
        if scores.n_classes == 2:
            return one_area(scores, class_index, value)
        if not scores.grouped:
            return _of_rows(
                scores,
                lambda placed, worth, sizes: of_mean_area(placed, worth, sizes, _areas(scores), weighted=weighted),
            )

        def of_groups() -> GroupInfluence:
            placed = [scores.ranking(code).area_of_groups for code in range(scores.n_classes)]
            return mean_of_areas(placed, _areas(scores), weighted=weighted)

        return Spread(np.nan, LinearMethod.INFLUENCE_LOGIT, of_groups=of_groups)

    return error


def of_line(*, sloped: bool) -> Error:
    """Of the slope of logistic recalibration, or of its intercept, by White's variance."""

    def error(scores: FoldedSamples, class_index: int | None, _: float) -> Spread | None:
        if scores.grouped or class_index is None:
            return None
        found = scores.fit(class_index, CLIP, sloped=sloped)
        lost = 2.0 if sloped else 1.0
        return Spread(found.variance, LinearMethod.INFLUENCE, max(scores.n_samples - lost, 1.0))

    return error


def of_all_entries() -> Error:
    """Of the area of all probabilities of all classes in one order. A sample counts by its actual class above others,
    and by actual classes above its others. Of two classes both say the same, and so one of them is known twice.
    """

    def error(scores: FoldedSamples, _: int | None, value: float) -> Spread | None:
        if scores.grouped or not isinstance(scores, FoldedScores):
            return None
        variance = scores.together.variance
        if variance is None:
            return _of_rows(scores, lambda placed, worth, sizes: of_area_of_entries(placed, worth, sizes, value))
        return Spread(4.0 * variance / scores.n_samples, LinearMethod.INFLUENCE_LOGIT)

    return error


def _of_rows(scores: FoldedSamples, variance: Callable[[Placed, Array, Sequence[int]], float]) -> Spread | None:
    """By some rows with their places; None where there are none, as of scores that are no probabilities. NaN where
    they do not say enough of all.
    """
    if not isinstance(scores, FoldedScores) or scores.kept_rows is None or scores.together.placed is None:
        return None
    placed, worth, sizes = scores.together.placed, scores.worth_of_rows, [int(size) for size in scores.actual]
    return Spread(np.nan if worth is None else variance(placed, worth, sizes), LinearMethod.INFLUENCE_LOGIT)


def _areas(scores: FoldedSamples) -> Array:
    return np.array([float(ranking.auc) for ranking in scores.rankings])


def _line(influence: GroupInfluence, slope: float) -> GroupInfluence:
    return influence._replace(sums=slope * influence.sums)


def _losses(scores: FoldedSamples) -> GroupedLosses:
    """What groups hold of probabilities."""
    if scores.sums_of_groups is None:
        raise ValueError("expected probabilities of samples in groups")
    return scores.sums_of_groups
