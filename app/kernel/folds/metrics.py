"""Which metrics of probabilities fold, with their sampling errors where these fold too."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from app.kernel.folds.errors import Error, Spread, of_area, of_class_means, of_mean, of_members
from app.kernel.folds.folded import FoldedSamples
from app.kernel.folds.losses import COSINE, LOG_LOSS, PHI, SQUARED_ERROR
from app.kernel.metrics.card import Metric, Scope
from app.kernel.metrics.families.probabilities import areas, calibration, imcp, proper, ranking
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.influence import LinearMethod, Strata
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.design import ProportionInterval
from app.kernel.uncertainty.intervals import proportion_limits
from app.kernel.uncertainty.of_samples.influence import Linearisation, LinearLimits, limits


class Folded(NamedTuple):
    """A metric that folds at its default parameters.

    Attributes:
        error: How its sampling error is made, None where it does not fold.
        of_two: Does it fold for two classes only?
        is_share: Is it a share of the samples, which needs no more than its value?
    """

    metric: Metric[Scores]
    error: Error | None = None
    of_two: bool = False
    is_share: bool = False


FOLDED = (
    Folded(proper.log_loss, of_mean(LOG_LOSS)),
    Folded(proper.brier_score, of_mean(SQUARED_ERROR)),
    Folded(proper.spherical_score, of_mean(COSINE)),
    Folded(proper.balanced_log_loss, of_class_means(LOG_LOSS)),
    Folded(proper.balanced_brier_score, of_class_means(SQUARED_ERROR)),
    Folded(proper.brier_skill_score),
    Folded(proper.d2_log_loss),
    Folded(imcp.au_imcp, of_class_means(PHI)),
    Folded(imcp.au_mcp, of_mean(PHI)),
    Folded(imcp.au_mcp_trapezoid, of_mean(PHI)),
    Folded(imcp.mean_phi, of_members(PHI)),
    Folded(imcp.median_phi),
    Folded(imcp.fraction_correct_certain, is_share=True),
    Folded(imcp.fraction_uncertain, is_share=True),
    Folded(imcp.fraction_incorrect_certain, is_share=True),
    Folded(ranking.roc_auc, of_area()),
    Folded(ranking.roc_auc_ovr_macro, of_area()),
    Folded(ranking.roc_auc_ovr_weighted, of_area()),
    Folded(ranking.roc_auc_ovo_macro, of_area(), of_two=True),
    Folded(ranking.roc_auc_ovo_weighted, of_area(), of_two=True),
    Folded(ranking.roc_gini, of_area(2.0)),
    Folded(ranking.partial_roc_auc),
    Folded(ranking.average_precision),
    Folded(ranking.pr_auc_trapezoid),
    Folded(ranking.macro_average_precision),
    Folded(ranking.equal_error_rate),
    Folded(ranking.ks_statistic),
    Folded(ranking.h_measure),
    Folded(ranking.top_k_accuracy, of_two=True),
    Folded(calibration.expected_calibration_error),
    Folded(calibration.maximum_calibration_error),
    Folded(calibration.l2_calibration_error),
    Folded(calibration.classwise_calibration_error),
    Folded(calibration.class_calibration_error),
    Folded(areas.weighted_average_precision),
    Folded(areas.roc_auc_standard_error),
)


class FoldedEstimate(NamedTuple):
    """A value with what is known of its sampling error.

    Attributes:
        value: NaN where it is undefined.
        error: Standard error, None where it does not fold or there is none.
        limits: Ends of the interval, and how they were made.
    """

    value: float
    error: float | None
    limits: LinearLimits | None


def folded_metrics(n_classes: int) -> tuple[Folded, ...]:
    """Those that fold for so many classes."""
    return tuple(one for one in FOLDED if n_classes == 2 or not one.of_two)


def folded_values(scores: FoldedSamples) -> Mapping[str, Array]:
    """Values by key: (K) of a metric of one class, () of the others; NaN where one is undefined."""
    with silently():
        return {one.metric.key: one.metric.compute(scores) for one in folded_metrics(scores.n_classes)}


def folded_estimates(scores: FoldedSamples, level: float = 0.95) -> Mapping[str, tuple[FoldedEstimate, ...]]:
    """The same with standard errors and limits: one estimate for each class, or one in all."""
    made = {}
    for one in folded_metrics(scores.n_classes):
        with silently():
            values = np.atleast_1d(one.metric.compute(scores)).tolist()
        of_class = one.metric.card.scope is Scope.CLASS
        made[one.metric.key] = tuple(
            _estimate(scores, one, value, code if of_class else None, level) for code, value in enumerate(values)
        )
    return made


def _estimate(
    scores: FoldedSamples, one: Folded, value: float, class_index: int | None, level: float
) -> FoldedEstimate:
    if not np.isfinite(value):
        return FoldedEstimate(value, None, None)
    if one.is_share:
        return _share(value, scores.n_samples, level)
    spread = None if one.error is None else one.error(scores, class_index)
    if spread is None or np.isnan(spread.variance):
        return FoldedEstimate(value, None, None)
    return FoldedEstimate(value, float(np.sqrt(spread.variance)), limits(_linear(one.metric, value, spread), level))


def _linear(metric: Metric[Scores], value: float, spread: Spread) -> Linearisation:
    """As if one sample had all the influence."""
    card = metric.card
    return Linearisation(
        value,
        np.array([np.sqrt(spread.variance)]),
        card.inference.scale,
        Strata.WHOLE,
        spread.method,
        card.range,
        spread.freedom,
        spread.sizes,
    )


def _share(value: float, size: int, level: float) -> FoldedEstimate:
    ends = proportion_limits(np.asarray(value * size), np.asarray(float(size)), level, ProportionInterval.WILSON)
    error = float(np.sqrt(value * (1.0 - value) / max(size - 1, 1)))
    return FoldedEstimate(value, error, LinearLimits(float(ends[0]), float(ends[1]), LinearMethod.WILSON))
