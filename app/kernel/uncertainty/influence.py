"""Metrics of probabilities as sums over the samples: what each sample adds to the sampling error, in closed form.

An influence adds up like the metric it belongs to: the mean of metrics has the mean influence, the difference of two
runs on the same samples the difference. It is scaled so that sums of products are variances and covariances.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial
from typing import Any

import numpy as np

from app.kernel.metrics.catalogue import probability_catalogue
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.special import student_quantile
from app.kernel.samples.losses import CLIP, TOLERANCE, Codes
from app.kernel.samples.scores import Scores
from app.kernel.uncertainty.areas import area_influences, centred, centred_by_class, micro_influence, pair_influence
from app.kernel.uncertainty.auc import newcombe_area_limits
from app.kernel.uncertainty.headline import logit_limits
from app.kernel.uncertainty.intervals import two_sided_z, wilson

Bounds = tuple[float | None, float | None]


class Scale(StrEnum):
    """On which limits are symmetric; the logit is that of the place within the bounds."""

    LOGIT = "logit"
    LINEAR = "linear"


class Strata(StrEnum):
    """What counts as fixed: the numbers of samples per class, or their total alone."""

    BY_CLASS = "by_class"
    WHOLE = "whole"


class Method(StrEnum):
    """How limits are made."""

    DELONG_LOGIT = "delong_logit"
    NEWCOMBE = "newcombe_5"
    INFLUENCE_LOGIT = "influence_logit"
    INFLUENCE = "influence"
    T = "t"
    WILSON = "wilson"


@dataclass(frozen=True, slots=True, eq=False)
class Linearisation:
    """A metric with what each sample adds to its sampling error.

    Attributes:
        value: The metric; NaN where it is undefined, and then the influence is too.
        influence: (n) in the order of the samples; the sum of squares is the variance.
        scale: On which limits are symmetric.
        strata: What its variance takes as fixed.
        method: How limits are made.
        bounds: Range of the metric, None where there is no end.
        freedom: Degrees of freedom of the variance, infinite where it is taken as known.
        sizes: Members and non-members of the class, for an area.
    """

    value: float
    influence: Array
    scale: Scale
    strata: Strata
    method: Method
    bounds: Bounds = (0.0, 1.0)
    freedom: float = np.inf
    sizes: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True)
class Limits:
    """Ends of an interval, and how they were made."""

    low: float
    high: float
    method: Method


class Influences:
    """Metrics of one set of samples, linearised; what several of them need is computed once.

    Args:
        scores: Without weights.

    Raises:
        ValueError: the scores carry weights.
    """

    def __init__(self, scores: Scores) -> None:
        if scores.weights is not None:
            raise ValueError("the sampling error of weighted samples is not known")
        self.scores = scores

    def of(
        self, metric_key: str, class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric as a sum over the samples; None where there is no closed form. See ``linearise``."""
        known = _FORMS.get(metric_key)
        if known is None:
            return None
        method, form = known
        metric = probability_catalogue().by_name[metric_key]
        chosen = {**metric.card.defaults, **(parameters or {})}
        with silently():
            computed = metric.compute(self.scores, **chosen)
            if computed.ndim and class_index is None:
                raise ValueError(f"{metric_key} is a metric of one class")
            value = float(computed[class_index] if computed.ndim else computed)
            if not np.isfinite(value):
                nothing = np.full(self.scores.n_samples, np.nan)
                return replace(_found(nothing, method, Strata.WHOLE), value=value, bounds=metric.card.range)
            return replace(form(self, class_index, chosen), value=value, bounds=metric.card.range)

    @cached_property
    def areas(self) -> tuple[Array, Array]:
        """Areas (K) of the classes against the rest, and the influence (K, n) on them."""
        return area_influences(self.scores)


def linearise(
    scores: Scores, metric_key: str, class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
) -> Linearisation | None:
    """A metric of the catalogue as a sum over the samples; None where there is no closed form.

    Args:
        scores: Without weights.
        metric_key: Key of a metric of probabilities.
        class_index: The class, for a metric of one class.
        parameters: Of the metric, its defaults where None.

    Raises:
        ValueError: the scores carry weights, or a metric of one class comes without it.
    """
    return Influences(scores).of(metric_key, class_index, parameters=parameters)


def variance(linearisation: Linearisation) -> float:
    """Sampling variance of the metric."""
    return covariance(linearisation, linearisation)


def covariance(first: Linearisation, second: Linearisation) -> float:
    """Of two metrics, or of one metric of two runs, on the same samples in the same order."""
    return float(np.vecdot(first.influence, second.influence))


def limits(linearisation: Linearisation, level: float = 0.95) -> Limits | None:
    """Ends of the interval of a value; None where it is undefined or has no variance.

    An area of 0 or 1, or without variance, has the limits of Newcombe (2006), method 5.
    """
    value, method = linearisation.value, linearisation.method
    error = float(np.sqrt(variance(linearisation)))
    if not np.isfinite(value) or np.isnan(error):
        return None
    if method is Method.WILSON:
        size = float(linearisation.influence.size)
        low, high = wilson(np.asarray(value * size), np.asarray(size), level)
        return Limits(float(low), float(high), method)
    below, above = linearisation.bounds
    if linearisation.scale is Scale.LOGIT and below is not None and above is not None:
        width = above - below
        place = (value - below) / width
        ends = logit_limits(place, two_sided_z(level) * error / width)
        if ends is None and linearisation.sizes is not None:
            ends, method = newcombe_area_limits(place, *linearisation.sizes, level), Method.NEWCOMBE
        return None if ends is None else Limits(below + width * ends[0], below + width * ends[1], method)
    if error == 0.0:
        return None
    spread = float(student_quantile((1.0 + level) / 2.0, linearisation.freedom)) * error
    lowest, highest = -np.inf if below is None else below, np.inf if above is None else above
    return Limits(max(value - spread, lowest), min(value + spread, highest), method)


def effective_samples(linearisation: Linearisation) -> float:
    """How many samples carry the variance: (sum of squares)^2 / sum of fourth powers; NaN without variance."""
    squares = np.square(linearisation.influence)
    with silently():
        return float(np.divide(np.sum(squares) ** 2, np.sum(squares * squares)))


# Means of what the samples contribute.


def _welch(influence: Array, y: Codes, n_classes: int) -> float:
    """Degrees of freedom of a sum of independent means (Welch 1947)."""
    parts = np.bincount(y, influence * influence, n_classes)
    spare = np.maximum(np.bincount(y, minlength=n_classes) - 1, 1)
    return float(parts.sum() ** 2 / (parts**2 / spare).sum())


Parameters = Mapping[str, Any]
Values = Callable[[Scores, Parameters], Array]
Form = Callable[[Influences, int | None, Parameters], Linearisation]


def _found(
    influence: Array, method: Method, strata: Strata, *, freedom: float = np.inf, sizes: tuple[int, int] | None = None
) -> Linearisation:
    logit = method in (Method.DELONG_LOGIT, Method.INFLUENCE_LOGIT)
    scale = Scale.LOGIT if logit else Scale.LINEAR
    return Linearisation(np.nan, influence, scale, strata, method, freedom=freedom, sizes=sizes)


def _mean(of: Influences, _: int | None, parameters: Parameters, *, values: Values) -> Linearisation:
    freedom = float(max(of.scores.n_samples - 1, 1))
    return _found(centred(values(of.scores, parameters)), Method.T, Strata.WHOLE, freedom=freedom)


def _share(of: Influences, _: int | None, parameters: Parameters, *, values: Values) -> Linearisation:
    return _found(centred(values(of.scores, parameters)), Method.WILSON, Strata.WHOLE)


def _among_first(of: Influences, class_index: int | None, parameters: Parameters) -> Linearisation:
    if parameters["k"] >= of.scores.n_classes:
        # By definition 1: there is nothing to be unsure of.
        return _found(np.zeros(of.scores.n_samples), Method.INFLUENCE, Strata.WHOLE)
    return _share(of, class_index, parameters, values=lambda s, p: (s.ahead < p["k"]).astype(np.float64))


def _mean_of_means(of: Influences, _: int | None, parameters: Parameters, *, values: Values) -> Linearisation:
    y, size = of.scores.y, of.scores.n_classes
    influence = centred_by_class(values(of.scores, parameters) / size, y, size)
    return _found(influence, Method.T, Strata.BY_CLASS, freedom=_welch(influence, y, size))


def _mean_of_class(of: Influences, class_index: int | None, _: Parameters) -> Linearisation:
    members = np.flatnonzero(of.scores.y == class_index)
    influence = np.zeros(of.scores.n_samples)
    influence[members] = centred(of.scores.phi.take(members))
    return _found(influence, Method.T, Strata.BY_CLASS, freedom=float(max(members.size - 1, 1)))


def _skill(of: Influences, _: int | None, parameters: Parameters) -> Linearisation:
    """1 - B/R, a ratio of the Brier score to that of the shares, R = sum pi (1 - pi), half of it for two classes."""
    scores = of.scores
    losses, share = _squared_error(scores, parameters), scores.prevalence
    half = 0.5 if scores.n_classes == 2 else 1.0
    spread = half * float(np.sum(share * (1.0 - share)))
    # The derivative of R by the share of a class is 1 - 2 pi.
    moves = half * (1.0 - 2.0 * share)[scores.y]
    influence = centred(-losses / spread + losses.mean() / spread**2 * moves)
    return _found(influence, Method.INFLUENCE, Strata.WHOLE, freedom=float(max(scores.n_samples - 1, 1)))


def _surprise(scores: Scores, parameters: Parameters) -> Array:
    losses: Array = -np.log(np.maximum(scores.p_true, parameters.get("clip", CLIP)))
    return losses


def _squared_error(scores: Scores, _: Parameters) -> Array:
    squared: Array
    if scores.n_classes == 2:
        squared = np.square(scores.columns[1] - scores.y)
    else:
        squared = np.einsum("kn,kn->n", scores.columns, scores.columns) - 2.0 * scores.p_true + 1.0
    return squared


def _phi(scores: Scores, _: Parameters) -> Array:
    return scores.phi


def _cosine(scores: Scores, _: Parameters) -> Array:
    values: Array = scores.p_true / np.sqrt(np.einsum("kn,kn->n", scores.columns, scores.columns))
    return values


def _sure(scores: Scores, _: Parameters) -> Array:
    return (scores.p_true > 0.5 + TOLERANCE).astype(np.float64)


def _ruled_out(scores: Scores, _: Parameters) -> Array:
    return (scores.p_true < 1.0 / scores.n_classes - TOLERANCE).astype(np.float64)


def _undecided(scores: Scores, parameters: Parameters) -> Array:
    return 1.0 - _sure(scores, parameters) - _ruled_out(scores, parameters)


# Areas.


def _area(of: Influences, class_index: int | None, _: Parameters, *, times: float = 1.0) -> Linearisation:
    code = 1 if class_index is None else class_index
    positives = int(of.scores.class_weight[code])
    sizes = (positives, of.scores.n_samples - positives)
    return _found(times * of.areas[1][code], Method.DELONG_LOGIT, Strata.BY_CLASS, sizes=sizes)


def _mean_of_areas(
    of: Influences, class_index: int | None, parameters: Parameters, *, influence: Callable[[Influences], Array]
) -> Linearisation:
    """Averages of areas over classes or pairs; with two classes all of them are the one area."""
    if of.scores.n_classes == 2:
        return _area(of, class_index, parameters)
    return _found(influence(of), Method.INFLUENCE_LOGIT, Strata.WHOLE)


def _macro(of: Influences) -> Array:
    influence: Array = of.areas[1].mean(axis=0)
    return influence


def _weighted(of: Influences) -> Array:
    areas, influence = of.areas
    # The shares of the classes are random too.
    weighted: Array = of.scores.prevalence @ influence + centred(areas[of.scores.y])
    return weighted


def _micro(of: Influences, _class: int | None, _: Parameters) -> Linearisation:
    return _found(micro_influence(of.scores), Method.INFLUENCE_LOGIT, Strata.WHOLE)


def _pairs(of: Influences) -> Array:
    """All ordered pairs of classes count the same."""
    size = of.scores.n_classes
    return pair_influence(of.scores, np.full((size, size), 1.0 / (size * (size - 1))))[1]


def _weighted_pairs(of: Influences) -> Array:
    """Weights (pi_i + pi_j) / (2 (K - 1)), whose shares are random too."""
    scores, pairs = of.scores, 2.0 * (of.scores.n_classes - 1)
    areas, influence = pair_influence(scores, (scores.prevalence[:, None] + scores.prevalence) / pairs)
    slope = (areas.sum(axis=0) + areas.sum(axis=1)) / pairs
    return influence + centred(slope[scores.y])


# How limits are made, unless the numbers of samples or classes ask for something else.
_FORMS: dict[str, tuple[Method, Form]] = {
    "roc_auc": (Method.DELONG_LOGIT, _area),
    "roc_gini": (Method.DELONG_LOGIT, partial(_area, times=2.0)),
    "roc_auc_ovr_macro": (Method.INFLUENCE_LOGIT, partial(_mean_of_areas, influence=_macro)),
    "roc_auc_ovr_weighted": (Method.INFLUENCE_LOGIT, partial(_mean_of_areas, influence=_weighted)),
    "roc_auc_ovr_micro": (Method.INFLUENCE_LOGIT, _micro),
    "roc_auc_ovo_macro": (Method.INFLUENCE_LOGIT, partial(_mean_of_areas, influence=_pairs)),
    "roc_auc_ovo_weighted": (Method.INFLUENCE_LOGIT, partial(_mean_of_areas, influence=_weighted_pairs)),
    "top_k_accuracy": (Method.WILSON, _among_first),
    "au_imcp": (Method.T, partial(_mean_of_means, values=_phi)),
    # The trapezoids move the area by less than 1/n.
    "au_imcp_trapezoid": (Method.T, partial(_mean_of_means, values=_phi)),
    "au_mcp": (Method.T, partial(_mean, values=_phi)),
    "au_mcp_trapezoid": (Method.T, partial(_mean, values=_phi)),
    "mean_phi": (Method.T, _mean_of_class),
    "fraction_correct_certain": (Method.WILSON, partial(_share, values=_sure)),
    "fraction_uncertain": (Method.WILSON, partial(_share, values=_undecided)),
    "fraction_incorrect_certain": (Method.WILSON, partial(_share, values=_ruled_out)),
    "log_loss": (Method.T, partial(_mean, values=_surprise)),
    "brier_score": (Method.T, partial(_mean, values=_squared_error)),
    "balanced_log_loss": (Method.T, partial(_mean_of_means, values=_surprise)),
    "balanced_brier_score": (Method.T, partial(_mean_of_means, values=_squared_error)),
    "brier_skill_score": (Method.INFLUENCE, _skill),
    "spherical_score": (Method.T, partial(_mean, values=_cosine)),
}
