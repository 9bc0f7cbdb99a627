"""Metrics of streamed probabilities, and the source of their limits: sampling errors or resampled cells."""

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from app.kernel.metrics.card import Metric
from app.kernel.metrics.families import calibration, imcp, proper_scores, score_ranking
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.calibration import ErrorByChance
from app.kernel.samples.influence import Area, AreaOf, LinearMethod, Strata
from app.kernel.samples.losses import CLIP, sums_by_code
from app.kernel.samples.scores import Scores
from app.kernel.streamed.cells import Draw, at_class, at_cuts, at_top, cells_of, simulated_by_chance
from app.kernel.streamed.influences import Leaf, RunInfluences
from app.kernel.streamed.scores import MOST_CLASSES, StreamedScores
from app.kernel.uncertainty.influence import Linearisation


def _of_line(scores: StreamedScores, metric: Metric[Scores], code: int, value: float) -> Linearisation | None:
    """The slope of logistic recalibration of a class, or its intercept, by White's variance of samples of one weight;
    None with weights.
    """
    if scores.worth is not None:
        return None
    sloped = metric is calibration.calibration_slope
    found = scores.fit(code, CLIP, sloped=sloped)
    influence, about = np.array([np.sqrt(found.variance)]), None
    if scores.grouped:
        influence, about = np.full(scores.n_groups, np.nan), np.ones(scores.n_groups)
        if found.moved is not None:
            table = found.moved.sums("g", x="x", n="1")
            codes = table["g"].astype(np.intp)
            influence, about = (sums_by_code(codes, table[name], scores.n_groups) for name in "xn")
    freedom = max(scores.n_samples - 1.0 - sloped, 1.0)
    known = _known(scores, metric, value)
    return replace(known, influence=influence, about=about, freedom=freedom, method=LinearMethod.INFLUENCE)


class Streamed(NamedTuple):
    """A metric that can be streamed at its default parameters.

    Attributes:
        drawn: What it is computed of in resamples, None where it has a closed form, or nothing is.
        like: Has the sampling error of another one; None: of itself.
        most: For how many classes it can be at most.
        again: For how many classes, from and to, the samples are put in another order for it alone, so that it is
            computed only where it is asked for.
    """

    metric: Metric[Scores]
    drawn: Draw | None = None
    like: Metric[Scores] | None = None
    most: float = np.inf
    again: tuple[float, float] = (0, 0)

    def is_dear(self, n_classes: int) -> bool:
        """Is it computed only where it is asked for?"""
        return self.again[0] <= n_classes <= self.again[1]


STREAMED = (
    Streamed(proper_scores.log_loss),
    Streamed(proper_scores.brier_score),
    Streamed(proper_scores.spherical_score),
    Streamed(proper_scores.balanced_log_loss),
    Streamed(proper_scores.balanced_brier_score),
    Streamed(proper_scores.brier_skill_score),
    Streamed(proper_scores.d2_log_loss),
    Streamed(imcp.au_imcp),
    Streamed(imcp.au_mcp),
    Streamed(imcp.au_mcp_trapezoid, like=imcp.au_mcp),
    Streamed(imcp.mean_phi),
    Streamed(imcp.median_phi, at_class),
    Streamed(imcp.fraction_correct_certain),
    Streamed(imcp.fraction_uncertain),
    Streamed(imcp.fraction_incorrect_certain),
    Streamed(score_ranking.roc_auc),
    Streamed(score_ranking.roc_auc_ovr_macro),
    Streamed(score_ranking.roc_auc_ovr_weighted),
    Streamed(score_ranking.roc_auc_ovr_micro, most=MOST_CLASSES, again=(2, 2)),
    Streamed(score_ranking.macro_pr_auc, most=MOST_CLASSES, again=(2, 2)),
    Streamed(score_ranking.roc_auc_ovo_macro, most=MOST_CLASSES, again=(3, np.inf)),
    Streamed(score_ranking.roc_auc_ovo_weighted, most=MOST_CLASSES, again=(3, np.inf)),
    Streamed(score_ranking.roc_gini),
    Streamed(score_ranking.partial_roc_auc, at_cuts),
    Streamed(score_ranking.average_precision, at_cuts),
    Streamed(score_ranking.pr_auc_trapezoid, at_cuts),
    Streamed(score_ranking.macro_average_precision),
    Streamed(score_ranking.equal_error_rate, at_cuts),
    Streamed(score_ranking.ks_statistic, at_cuts),
    Streamed(score_ranking.h_measure, at_cuts),
    Streamed(score_ranking.top_k_accuracy, most=2),
    Streamed(calibration.expected_calibration_error, at_top),
    Streamed(calibration.adaptive_calibration_error, at_top),
    Streamed(calibration.maximum_calibration_error, at_top),
    Streamed(calibration.l2_calibration_error, at_top),
    Streamed(calibration.classwise_calibration_error, at_class),
    Streamed(calibration.class_calibration_error, at_class),
    Streamed(calibration.calibration_intercept, at_class, again=(2, np.inf)),
    Streamed(calibration.calibration_slope, at_class, again=(2, np.inf)),
    Streamed(score_ranking.weighted_average_precision),
    Streamed(score_ranking.micro_average_precision, most=MOST_CLASSES, again=(2, 2)),
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
        if scores.n_classes <= one.most and (one.metric.key in asked or not one.is_dear(scores.n_classes))
    ]
    # Orders that are made of what was asked for are there before samples are read for their influences.
    known.sort(key=lambda one: not one.is_dear(scores.n_classes))
    with silently():
        return {one.metric.key: one.metric.compute(scores) for one in known}


def streams(metric: Metric[Scores], scores: StreamedScores) -> bool:
    """Can it be streamed?"""
    one = _BY_KEY.get(metric.key)
    return one is not None and scores.n_classes <= one.most


def draw_of(metric: Metric[Scores]) -> Draw | None:
    """Return the cells that a streamed metric is computed from in resamples; None where it cannot be resampled."""
    return _BY_KEY[metric.key].drawn


def error_of_chance(scores: StreamedScores, metric: Metric[Scores], draws: int, seed: int) -> ErrorByChance | None:
    """A calibration error at its default parameters beside that of perfect probabilities; None where classes have no
    joint draw.
    """
    draw = draw_of(metric)
    at = None if draw is None else draw(scores.n_classes, None)
    if at is None:
        return None
    return simulated_by_chance(metric, float(metric.compute(scores)), cells_of(scores, at[0]), draws, seed)


def linearised(scores: StreamedScores, metric: Metric[Scores], class_index: int | None = None) -> Linearisation | None:
    """A metric that can be streamed, as if one sample had all the influence, or with that of groups; None where
    that is not known.
    """
    form, of = metric.card.inference.influence, _BY_KEY[metric.key].like or metric
    if form is None:
        return None
    with silently():
        computed = metric.compute(scores)
    value = float(computed if class_index is None else computed[class_index])
    if metric in (calibration.calibration_slope, calibration.calibration_intercept) and class_index is not None:
        return _of_line(scores, metric, class_index, value)
    leaf = Leaf.made(of, class_index)
    if leaf is None:
        known = replace(_known(scores, metric, value), method=LinearMethod.INFLUENCE)
        return known if metric is score_ranking.top_k_accuracy else None
    if not np.isfinite(value):
        return _known(scores, metric, value)
    if leaf.form.area is not None and not scores.grouped and scores.area_sizes(leaf) is not None:
        # The order says the variance.
        code = 1 if class_index is None else class_index
        error = leaf.form.area.slope * scores.ranking(code).area_variance ** 0.5
        known, sizes = _known(scores, metric, value, error), scores.area_sizes(leaf)
        return replace(known, sizes=sizes, strata=Strata.BY_CLASS, method=LinearMethod.DELONG_LOGIT)
    if leaf.form.area == Area(AreaOf.ONE_CLASS, of_precision=True) and not scores.grouped:
        error = scores.ranking(1 if class_index is None else class_index).curve.average_precision_variance ** 0.5
        return replace(_known(scores, metric, value, error), freedom=scores.freedom_of(leaf))
    read = scores.reading(leaf)
    part = None if read is None else RunInfluences(read, 0).of(of, class_index)
    return None if read is None or part is None else replace(read.alone(part, scores.n_samples), value=value)


def _known(scores: StreamedScores, metric: Metric[Scores], value: float, error: float = 0.0) -> Linearisation:
    """A value whose standard error is known; NaN where there is no value."""
    card, form = metric.card, metric.card.inference.influence
    return Linearisation(
        value,
        np.array([error if np.isfinite(value) else np.nan]),
        card.inference.scale,
        Strata.WHOLE,
        LinearMethod.INFLUENCE if form is None else form.method,
        card.range,
        worth=scores.worth,
        n_samples=scores.n_samples,
        about=np.zeros(1) if scores.grouped else None,
    )
