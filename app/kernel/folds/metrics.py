"""Which metrics of probabilities fold, and where their limits come from: sampling errors, or cells drawn again."""

from collections.abc import Container, Mapping
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
from app.kernel.folds.errors import (
    Error,
    Spread,
    of_all_entries,
    of_area,
    of_areas,
    of_class_means,
    of_constant,
    of_line,
    of_mean,
    of_members,
    of_saved,
    of_share,
)
from app.kernel.folds.folded import FoldedSamples
from app.kernel.folds.joint.rows import MOST_CLASSES
from app.kernel.folds.sums.losses import COSINE, LOG_LOSS, PHI, RULED_OUT, SQUARED_ERROR, SURE
from app.kernel.metrics.card import Metric
from app.kernel.metrics.families.probabilities import areas, calibration, imcp, proper, ranking, recalibration
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.chance import Chance
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.of_samples.influence import Linearisation


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
    Folded(proper.log_loss, of_mean(LOG_LOSS)),
    Folded(proper.brier_score, of_mean(SQUARED_ERROR)),
    Folded(proper.spherical_score, of_mean(COSINE)),
    Folded(proper.balanced_log_loss, of_class_means(LOG_LOSS)),
    Folded(proper.balanced_brier_score, of_class_means(SQUARED_ERROR)),
    Folded(proper.brier_skill_score, of_saved(SQUARED_ERROR, proper.brier_of_shares)),
    Folded(proper.d2_log_loss, of_saved(LOG_LOSS, proper.log_loss_of_shares)),
    Folded(imcp.au_imcp, of_class_means(PHI)),
    Folded(imcp.au_mcp, of_mean(PHI)),
    Folded(imcp.au_mcp_trapezoid, of_mean(PHI)),
    Folded(imcp.mean_phi, of_members(PHI)),
    Folded(imcp.median_phi, drawn=NEAR_MEDIAN),
    Folded(imcp.fraction_correct_certain, of_share(SURE)),
    Folded(imcp.fraction_uncertain, of_share(SURE, RULED_OUT, rest=True)),
    Folded(imcp.fraction_incorrect_certain, of_share(RULED_OUT)),
    Folded(ranking.roc_auc, of_area()),
    Folded(ranking.roc_auc_ovr_macro, of_areas()),
    Folded(ranking.roc_auc_ovr_weighted, of_areas(weighted=True)),
    Folded(ranking.roc_auc_ovr_micro, of_all_entries(), most=MOST_CLASSES, again=2, of_weighted=False),
    Folded(ranking.macro_pr_auc, most=MOST_CLASSES, again=2, of_weighted=False),
    Folded(ranking.roc_auc_ovo_macro, of_area(), of_two=True),
    Folded(ranking.roc_auc_ovo_weighted, of_area(), of_two=True),
    Folded(ranking.roc_gini, of_area(2.0)),
    Folded(ranking.partial_roc_auc, drawn=AT_CUTS),
    Folded(ranking.average_precision, drawn=AT_CUTS),
    Folded(ranking.pr_auc_trapezoid, drawn=AT_CUTS),
    Folded(ranking.macro_average_precision, drawn=AT_CUTS),
    Folded(ranking.equal_error_rate, drawn=AT_CUTS),
    Folded(ranking.ks_statistic, drawn=AT_CUTS),
    Folded(ranking.h_measure, drawn=AT_CUTS),
    Folded(ranking.top_k_accuracy, of_constant(), of_two=True),
    Folded(calibration.expected_calibration_error, drawn=IN_BINS_OF_TOP_LABEL),
    Folded(calibration.adaptive_calibration_error, drawn=IN_PARTS_OF_TOP_LABEL),
    Folded(calibration.maximum_calibration_error, drawn=IN_BINS_OF_TOP_LABEL),
    Folded(calibration.l2_calibration_error, drawn=IN_BINS_OF_TOP_LABEL),
    Folded(calibration.classwise_calibration_error, drawn=IN_BINS),
    Folded(calibration.class_calibration_error, drawn=IN_BINS),
    Folded(recalibration.calibration_intercept, of_line(sloped=False), again=np.inf, of_weighted=False),
    Folded(recalibration.calibration_slope, of_line(sloped=True), again=np.inf, of_weighted=False),
    Folded(areas.weighted_average_precision, drawn=AT_CUTS),
    Folded(areas.roc_auc_standard_error),
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


def folded_chance(scores: FoldedSamples, metric: Metric[Scores], draws: int, seed: int) -> Chance | None:
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
