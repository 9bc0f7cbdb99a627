"""Metrics of streamed probabilities, and the source of their limits: sampling errors or resampled cells."""

from collections.abc import Callable, Container, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from app.kernel.folds.cells import (
    AT_CUTS,
    IN_BINS,
    IN_BINS_OF_TOP_LABEL,
    IN_PARTS_OF_TOP_LABEL,
    NEAR_MEDIAN,
    Draw,
    simulated_by_chance,
)
from app.kernel.folds.folded import FoldedSamples, FoldedScores
from app.kernel.folds.groups import GroupedLosses, GroupInfluence, mean_of_areas
from app.kernel.folds.joint import MOST_CLASSES, Placed, of_area_of_entries, of_mean_area
from app.kernel.folds.sums import COSINE, LOG_LOSS, PHI, RULED_OUT, SQUARED_ERROR, SURE
from app.kernel.metrics.card import Metric
from app.kernel.metrics.families import calibration, imcp, proper_scores, score_ranking
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.calibration import ErrorByChance
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.samples.losses import CLIP
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.influence import Linearisation


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
        score_ranking, sizes = scores.ranking(code), scores.effective_sides(code)
        variance = slope * slope * score_ranking.area_variance
        return Spread(
            variance,
            LinearMethod.DELONG_LOGIT,
            sizes=sizes,
            strata=Strata.BY_CLASS,
            of_groups=lambda: _line(score_ranking.area_of_groups.influence, slope),
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
    return np.array([float(score_ranking.auc) for score_ranking in scores.rankings])


def _line(influence: GroupInfluence, slope: float) -> GroupInfluence:
    return influence._replace(sums=slope * influence.sums)


def _losses(scores: FoldedSamples) -> GroupedLosses:
    """What groups hold of probabilities."""
    if scores.sums_of_groups is None:
        raise ValueError("expected probabilities of samples in groups")
    return scores.sums_of_groups


class Folded(NamedTuple):
    """A metric that folds at its default parameters.

    Attributes:
        error: How its sampling error is made, None where it does not fold.
        drawn: What it is computed of in resamples, None where there is an error, or nothing is.
        of_two: Does it fold for two classes only?
        most: For how many classes does it fold at most?
        again: Up to how many classes do the samples go by again for it alone, so that it is computed only where it is
            asked for? Of more they go by for limits of areas anyway.
        of_weighted: Does it fold for samples with weights?
    """

    metric: Metric[Scores]
    error: Error | None = None
    drawn: Draw | None = None
    of_two: bool = False
    most: float = np.inf
    again: float = 0
    of_weighted: bool = True

    def takes(self, n_classes: int, *, weighted: bool) -> bool:
        """Does it fold for so many classes?"""
        return (n_classes == 2 or not self.of_two) and n_classes <= self.most and (self.of_weighted or not weighted)


FOLDED = (
    Folded(proper_scores.log_loss, of_mean(LOG_LOSS)),
    Folded(proper_scores.brier_score, of_mean(SQUARED_ERROR)),
    Folded(proper_scores.spherical_score, of_mean(COSINE)),
    Folded(proper_scores.balanced_log_loss, of_class_means(LOG_LOSS)),
    Folded(proper_scores.balanced_brier_score, of_class_means(SQUARED_ERROR)),
    Folded(proper_scores.brier_skill_score, of_saved(SQUARED_ERROR, proper_scores.brier_of_shares)),
    Folded(proper_scores.d2_log_loss, of_saved(LOG_LOSS, proper_scores.log_loss_of_shares)),
    Folded(imcp.au_imcp, of_class_means(PHI)),
    Folded(imcp.au_mcp, of_mean(PHI)),
    Folded(imcp.au_mcp_trapezoid, of_mean(PHI)),
    Folded(imcp.mean_phi, of_members(PHI)),
    Folded(imcp.median_phi, drawn=NEAR_MEDIAN),
    Folded(imcp.fraction_correct_certain, of_share(SURE)),
    Folded(imcp.fraction_uncertain, of_share(SURE, RULED_OUT, rest=True)),
    Folded(imcp.fraction_incorrect_certain, of_share(RULED_OUT)),
    Folded(score_ranking.roc_auc, of_area()),
    Folded(score_ranking.roc_auc_ovr_macro, of_areas()),
    Folded(score_ranking.roc_auc_ovr_weighted, of_areas(weighted=True)),
    Folded(score_ranking.roc_auc_ovr_micro, of_all_entries(), most=MOST_CLASSES, again=2, of_weighted=False),
    Folded(score_ranking.macro_pr_auc, most=MOST_CLASSES, again=2, of_weighted=False),
    Folded(score_ranking.roc_auc_ovo_macro, of_area(), of_two=True),
    Folded(score_ranking.roc_auc_ovo_weighted, of_area(), of_two=True),
    Folded(score_ranking.roc_gini, of_area(2.0)),
    Folded(score_ranking.partial_roc_auc, drawn=AT_CUTS),
    Folded(score_ranking.average_precision, drawn=AT_CUTS),
    Folded(score_ranking.pr_auc_trapezoid, drawn=AT_CUTS),
    Folded(score_ranking.macro_average_precision, drawn=AT_CUTS),
    Folded(score_ranking.equal_error_rate, drawn=AT_CUTS),
    Folded(score_ranking.ks_statistic, drawn=AT_CUTS),
    Folded(score_ranking.h_measure, drawn=AT_CUTS),
    Folded(score_ranking.top_k_accuracy, of_constant(), of_two=True),
    Folded(calibration.expected_calibration_error, drawn=IN_BINS_OF_TOP_LABEL),
    Folded(calibration.adaptive_calibration_error, drawn=IN_PARTS_OF_TOP_LABEL),
    Folded(calibration.maximum_calibration_error, drawn=IN_BINS_OF_TOP_LABEL),
    Folded(calibration.l2_calibration_error, drawn=IN_BINS_OF_TOP_LABEL),
    Folded(calibration.classwise_calibration_error, drawn=IN_BINS),
    Folded(calibration.class_calibration_error, drawn=IN_BINS),
    Folded(calibration.calibration_intercept, of_line(sloped=False), again=np.inf, of_weighted=False),
    Folded(calibration.calibration_slope, of_line(sloped=True), again=np.inf, of_weighted=False),
    Folded(score_ranking.weighted_average_precision, drawn=AT_CUTS),
    Folded(score_ranking.roc_auc_standard_error),
)


_BY_KEY = {one.metric.key: one for one in FOLDED}


def folded_metrics(n_classes: int, *, weighted: bool = False) -> tuple[Folded, ...]:
    """Those that fold for so many classes, of samples with weights or without."""
    return tuple(one for one in FOLDED if one.takes(n_classes, weighted=weighted))


def folded_values(scores: FoldedSamples, asked: Container[str] = ()) -> Mapping[str, Array]:
    """Values by key: (K) of a metric of one class, () of the others; NaN where one is undefined. Those for which
    samples go by again are left out, unless their key is asked for.
    """
    known = [
        one
        for one in folded_metrics(scores.n_classes, weighted=scores.worth is not None)
        if scores.n_classes > one.again or one.metric.key in asked
    ]
    with silently():
        return {one.metric.key: one.metric.compute(scores) for one in known}


def folds(metric: Metric[Scores], scores: FoldedSamples) -> bool:
    """Does it?"""
    one = _BY_KEY.get(metric.key)
    return one is not None and one.takes(scores.n_classes, weighted=scores.worth is not None)


def draw_of(metric: Metric[Scores]) -> Draw | None:
    """What a metric that folds is computed of in resamples; None where it cannot be."""
    return _BY_KEY[metric.key].drawn


def folded_chance(scores: FoldedSamples, metric: Metric[Scores], draws: int, seed: int) -> ErrorByChance | None:
    """A calibration error at its default parameters beside that of perfect probabilities; None where classes have no
    joint draw.
    """
    draw = draw_of(metric)
    at = None if draw is None else draw.at(scores.n_classes, None)
    if draw is None or at is None:
        return None
    return simulated_by_chance(metric, float(metric.compute(scores)), draw.cells(scores, at[0]), draws, seed)


def linearised(scores: FoldedSamples, metric: Metric[Scores], class_index: int | None = None) -> Linearisation | None:
    """A metric that folds, as if one sample had all the influence, or with that of groups; None where that is not
    known.
    """
    make, card = _BY_KEY[metric.key].error, metric.card
    form = card.inference.influence
    if make is None or form is None:
        return None
    with silently():
        computed = metric.compute(scores)
    value = float(computed if class_index is None else computed[class_index])
    spread = make(scores, class_index, value) if np.isfinite(value) else Spread(np.nan, form.method)
    if spread is None:
        return None
    influence, about = np.array([np.sqrt(spread.variance)]), None
    if scores.grouped:
        # What has no influence of groups is undefined, or the same whatever they are.
        influence, about = (influence, np.zeros(1)) if spread.of_groups is None else spread.of_groups()
    return Linearisation(
        value,
        influence,
        card.inference.scale,
        spread.strata,
        spread.method,
        card.range,
        spread.freedom,
        spread.sizes,
        worth=scores.worth,
        n_samples=scores.n_samples,
        about=about,
    )
