"""Metrics of streamed probabilities, and the source of their limits: sampling errors or resampled cells."""

from collections.abc import Callable, Container, Mapping
from typing import NamedTuple

import numpy as np

from app.kernel.metrics.card import Metric
from app.kernel.metrics.families import calibration, imcp, proper_scores, score_ranking
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.calibration import ErrorByChance
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.samples.losses import CLIP
from app.kernel.samples.scores import Scores
from app.kernel.streamed.cells import (
    AT_CUTS,
    IN_BINS,
    IN_BINS_OF_TOP_LABEL,
    IN_PARTS_OF_TOP_LABEL,
    NEAR_MEDIAN,
    Draw,
    simulated_by_chance,
)
from app.kernel.streamed.scores import (
    COSINE,
    LOG_LOSS,
    MOST_CLASSES,
    PHI,
    RULED_OUT,
    SQUARED_ERROR,
    SURE,
    GroupInfluence,
    StreamedScores,
)
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
Error = Callable[[StreamedScores, int | None, float], Spread | None]


def of_mean(kind: int) -> Error:
    """Of the mean of what is added up."""

    def error(scores: StreamedScores, _: int | None, __: float) -> Spread:
        sums, freedom = scores.loss_sums, max(scores.effective_samples - 1.0, 1.0)
        return Spread(sums.variance(kind), LinearMethod.T, freedom, of_groups=lambda: sums.mean(kind))

    return error


def of_class_means(kind: int) -> Error:
    """Of the mean over the classes of the mean over their members; the degrees of freedom are those of Welch (1947)."""

    def error(scores: StreamedScores, _: int | None, __: float) -> Spread | None:
        sizes = scores.effective_members
        if not sizes.all():
            return None
        sums = scores.loss_sums
        parts = sums.variances(kind) / scores.n_classes**2
        variance = float(parts.sum())
        per_freedom = float((parts**2 / np.maximum(sizes - 1.0, 1.0)).sum())
        freedom = variance**2 / per_freedom if per_freedom else np.inf
        return Spread(
            variance,
            LinearMethod.T,
            freedom,
            strata=Strata.BY_CLASS,
            of_groups=lambda: sums.class_means(kind),
        )

    return error


def of_share(*counted: int, rest: bool = False) -> Error:
    """Of the share of the samples that are counted by some of the counts in each group, or by none of them."""

    def error(scores: StreamedScores, _: int | None, __: float) -> Spread:
        sums = scores.loss_sums
        variance = sums.share_variance(counted, rest=rest)
        return Spread(variance, LinearMethod.WILSON, of_groups=lambda: sums.share(counted, rest=rest))

    return error


def of_constant() -> Error:
    """Of what is the same whatever the samples are."""

    def error(_: StreamedScores, __: int | None, ___: float) -> Spread:
        return Spread(0.0, LinearMethod.INFLUENCE)

    return error


def of_saved(kind: int, reference: Callable[[Array], tuple[float, Array]]) -> Error:
    """Of the share that is saved of the mean of what is added up, against that of always saying the shares of the
    classes.

    Args:
        kind: What is added up.
        reference: From the shares (K) to their mean, and its derivative (K).
    """

    def error(scores: StreamedScores, _: int | None, value: float) -> Spread:
        sums, (mean, moves) = scores.loss_sums, reference(scores.prevalence)
        # The mean loss.
        size = abs((1.0 - value) * mean)
        return Spread(
            sums.variance(kind, (value - 1.0) * moves, size) / mean**2,
            LinearMethod.INFLUENCE,
            max(scores.effective_samples - 1.0, 1.0),
            of_groups=lambda: sums.saved(kind, mean, (1.0 - value) * moves, size),
        )

    return error


def of_members(kind: int) -> Error:
    """Of the mean over the members of a class."""

    def error(scores: StreamedScores, class_index: int | None, _: float) -> Spread | None:
        if class_index is None or not scores.actual[class_index]:
            return None
        sums = scores.loss_sums
        return Spread(
            float(sums.variances(kind)[class_index]),
            LinearMethod.T,
            max(float(scores.effective_members[class_index]) - 1.0, 1.0),
            strata=Strata.BY_CLASS,
            of_groups=lambda: sums.members(kind, class_index),
        )

    return error


def of_area(slope: float = 1.0) -> Error:
    """Of a line of the area of one class by DeLong; of two classes both have the same. None for averages of more."""

    def error(scores: StreamedScores, class_index: int | None, _: float) -> Spread | None:
        if class_index is None and scores.n_classes > 2:
            return None
        code = 1 if class_index is None else class_index
        members, others = scores.both_sides(code)
        return Spread(
            slope * slope * scores.ranking(code).area_variance,
            LinearMethod.DELONG_LOGIT,
            sizes=(members.effective, others.effective),
            strata=Strata.BY_CLASS,
            of_groups=lambda: _line(scores.area_influences.of_class(code), slope),
        )

    return error


def of_areas(*, weighted: bool = False) -> Error:
    """Of the mean of the areas of all classes, or of that by their shares."""
    one_area = of_area()

    def error(scores: StreamedScores, class_index: int | None, value: float) -> Spread | None:
        if scores.n_classes == 2:
            return one_area(scores, class_index, value)
        found = scores.area_influences
        if not scores.grouped:
            return Spread(found.variance(weighted=weighted), LinearMethod.INFLUENCE_LOGIT)
        return Spread(np.nan, LinearMethod.INFLUENCE_LOGIT, of_groups=lambda: found.of_mean(weighted=weighted))

    return error


def of_line(*, sloped: bool) -> Error:
    """Of the slope of logistic recalibration, or of its intercept, by White's variance of samples of one weight."""

    def error(scores: StreamedScores, class_index: int | None, _: float) -> Spread | None:
        if scores.grouped or scores.worth is not None or class_index is None:
            return None
        found = scores.fit(class_index, CLIP, sloped=sloped)
        lost = 2.0 if sloped else 1.0
        return Spread(found.variance, LinearMethod.INFLUENCE, max(scores.n_samples - lost, 1.0))

    return error


def of_all_entries() -> Error:
    """Of the area of all probabilities of all classes in one order."""

    def error(scores: StreamedScores, _: int | None, __: float) -> Spread | None:
        found = scores.area_influences
        if not scores.grouped:
            return Spread(found.variance_of_entries, LinearMethod.INFLUENCE_LOGIT)
        return Spread(np.nan, LinearMethod.INFLUENCE_LOGIT, of_groups=lambda: found.of_entries)

    return error


def _line(influence: GroupInfluence, slope: float) -> GroupInfluence:
    return influence._replace(sums=slope * influence.sums)


class Streamed(NamedTuple):
    """A metric that can be streamed at its default parameters.

    Attributes:
        error: How its sampling error is made, None where it has none.
        drawn: What it is computed of in resamples, None where there is an error, or nothing is.
        most: For how many classes it can be at most.
        again: Up to how many classes the samples are put in another order for it alone, so that it is computed only
            where it is asked for.
    """

    metric: Metric[Scores]
    error: Error | None = None
    drawn: Draw | None = None
    most: float = np.inf
    again: float = 0


STREAMED = (
    Streamed(proper_scores.log_loss, of_mean(LOG_LOSS)),
    Streamed(proper_scores.brier_score, of_mean(SQUARED_ERROR)),
    Streamed(proper_scores.spherical_score, of_mean(COSINE)),
    Streamed(proper_scores.balanced_log_loss, of_class_means(LOG_LOSS)),
    Streamed(proper_scores.balanced_brier_score, of_class_means(SQUARED_ERROR)),
    Streamed(proper_scores.brier_skill_score, of_saved(SQUARED_ERROR, proper_scores.brier_of_shares)),
    Streamed(proper_scores.d2_log_loss, of_saved(LOG_LOSS, proper_scores.log_loss_of_shares)),
    Streamed(imcp.au_imcp, of_class_means(PHI)),
    Streamed(imcp.au_mcp, of_mean(PHI)),
    Streamed(imcp.au_mcp_trapezoid, of_mean(PHI)),
    Streamed(imcp.mean_phi, of_members(PHI)),
    Streamed(imcp.median_phi, drawn=NEAR_MEDIAN),
    Streamed(imcp.fraction_correct_certain, of_share(SURE)),
    Streamed(imcp.fraction_uncertain, of_share(SURE, RULED_OUT, rest=True)),
    Streamed(imcp.fraction_incorrect_certain, of_share(RULED_OUT)),
    Streamed(score_ranking.roc_auc, of_area()),
    Streamed(score_ranking.roc_auc_ovr_macro, of_areas()),
    Streamed(score_ranking.roc_auc_ovr_weighted, of_areas(weighted=True)),
    Streamed(score_ranking.roc_auc_ovr_micro, of_all_entries(), most=MOST_CLASSES, again=2),
    Streamed(score_ranking.macro_pr_auc, most=MOST_CLASSES, again=2),
    Streamed(score_ranking.roc_auc_ovo_macro, of_area(), most=2),
    Streamed(score_ranking.roc_auc_ovo_weighted, of_area(), most=2),
    Streamed(score_ranking.roc_gini, of_area(2.0)),
    Streamed(score_ranking.partial_roc_auc, drawn=AT_CUTS),
    Streamed(score_ranking.average_precision, drawn=AT_CUTS),
    Streamed(score_ranking.pr_auc_trapezoid, drawn=AT_CUTS),
    Streamed(score_ranking.macro_average_precision, drawn=AT_CUTS),
    Streamed(score_ranking.equal_error_rate, drawn=AT_CUTS),
    Streamed(score_ranking.ks_statistic, drawn=AT_CUTS),
    Streamed(score_ranking.h_measure, drawn=AT_CUTS),
    Streamed(score_ranking.top_k_accuracy, of_constant(), most=2),
    Streamed(calibration.expected_calibration_error, drawn=IN_BINS_OF_TOP_LABEL),
    Streamed(calibration.adaptive_calibration_error, drawn=IN_PARTS_OF_TOP_LABEL),
    Streamed(calibration.maximum_calibration_error, drawn=IN_BINS_OF_TOP_LABEL),
    Streamed(calibration.l2_calibration_error, drawn=IN_BINS_OF_TOP_LABEL),
    Streamed(calibration.classwise_calibration_error, drawn=IN_BINS),
    Streamed(calibration.class_calibration_error, drawn=IN_BINS),
    Streamed(calibration.calibration_intercept, of_line(sloped=False), again=np.inf),
    Streamed(calibration.calibration_slope, of_line(sloped=True), again=np.inf),
    Streamed(score_ranking.weighted_average_precision, drawn=AT_CUTS),
    Streamed(score_ranking.roc_auc_standard_error),
)


_BY_KEY = {one.metric.key: one for one in STREAMED}


def streamed_values(scores: StreamedScores, asked: Container[str] = ()) -> Mapping[str, Array]:
    """Values by key: (K) of a metric of one class, () of the others; NaN where one is undefined.

    Those for which samples are read again are left out, unless their key is asked for.
    """
    known = [
        one
        for one in STREAMED
        if scores.n_classes <= one.most and (scores.n_classes > one.again or one.metric.key in asked)
    ]
    with silently():
        return {one.metric.key: one.metric.compute(scores) for one in known}


def streams(metric: Metric[Scores], scores: StreamedScores) -> bool:
    """Can it be streamed?"""
    one = _BY_KEY.get(metric.key)
    return one is not None and scores.n_classes <= one.most


def draw_of(metric: Metric[Scores]) -> Draw | None:
    """What a metric that can be streamed is computed of in resamples; None where it cannot be."""
    return _BY_KEY[metric.key].drawn


def error_of_chance(scores: StreamedScores, metric: Metric[Scores], draws: int, seed: int) -> ErrorByChance | None:
    """A calibration error at its default parameters beside that of perfect probabilities; None where classes have no
    joint draw.
    """
    draw = draw_of(metric)
    at = None if draw is None else draw.at(scores.n_classes, None)
    if draw is None or at is None:
        return None
    return simulated_by_chance(metric, float(metric.compute(scores)), draw.cells(scores, at[0]), draws, seed)


def linearised(scores: StreamedScores, metric: Metric[Scores], class_index: int | None = None) -> Linearisation | None:
    """A metric that can be streamed, as if one sample had all the influence, or with that of groups; None where
    that is not known.
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
