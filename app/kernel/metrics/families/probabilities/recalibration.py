"""Do stated chances of a class come true? Logistic recalibration, a smooth curve, and what decisions gain by them."""

from collections.abc import Callable
from functools import partial

import numpy as np

from app.kernel.metrics.card import Inputs, Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import (
    CERTAIN,
    CONSTANT,
    NO_ACTUAL,
    NO_REST,
    NO_WEIGHT,
    NOT_PROBABILITIES,
    SEPARATED,
    UNFITTED,
)
from app.kernel.metrics.parameters import Choice, Number
from app.kernel.numerics.arrays import Array, Mask, ratio
from app.kernel.samples import recalibration
from app.kernel.samples.areas import centred
from app.kernel.samples.influence import Form, Influence, LinearMethod, Parameters, Sampled
from app.kernel.samples.losses import CLIP
from app.kernel.samples.scores import Scores

_CLIP = Number("clip", CLIP, "how near to 0 and 1 probabilities are believed; 0 for any", minimum=0.0, below=0.5)
_of_class = partial(
    metric,
    scope=Scope.CLASS,
    inputs=Inputs.PROBABILITIES,
    prevalence=Prevalence.SENSITIVE,
    range=(None, None),
    orientation=Orientation.NEAREST,
    on_request=True,
)
_QUANTILES = {"median": 0.5, "e90": 0.9, "maximum": 1.0}


def _lines(s: Scores, clip: float, *, sloped: bool) -> Array:
    """The a and b of every class, shape (..., K, 2)."""
    if not s.are_probabilities:
        return np.full((*s.actual.shape, 2), np.nan)
    return np.stack([s.recalibrated(code, clip, sloped=sloped) for code in range(s.n_classes)], axis=-2)


def _linear(of: Callable[[Array, Mask], Array], lost: int) -> Form:
    def make(data: Sampled, class_index: int | None, parameters: Parameters) -> Influence:
        code = 1 if class_index is None else class_index
        odds = recalibration.log_odds(data.scores.columns[code], parameters["clip"])
        freedom = float(max(data.scores.n_samples - lost, 1))
        return Influence(of(odds, data.scores.y == code), LinearMethod.INFLUENCE, freedom=freedom)

    return Form(LinearMethod.INFLUENCE, make, of_weighted=False)


def _of_intercept(odds: Array, hit: Mask) -> Array:
    return recalibration.intercept_influence(odds, hit, recalibration.intercept(odds, hit))


def _of_slope(odds: Array, hit: Mask) -> Array:
    return recalibration.slope_influence(odds, hit, recalibration.line(odds, hit))


@_of_class(
    name="calibration intercept",
    symbol=r"\alpha",
    formula=r"\mathrm{logit}\, P(y_i = k) = \alpha + \mathrm{logit}\, p_{ik}",
    sentence="Calibration in the large on the scale of log odds: above 0 the class is more frequent than stated, below 0 less.",
    ideal=0.0,
    parameters=(_CLIP,),
    undefined=(NOT_PROBABILITIES, NO_ACTUAL, NO_REST, CERTAIN, UNFITTED),
    references=("cox1958", "vancalster2019"),
    influence=_linear(_of_intercept, 1),
)
def calibration_intercept(s: Scores, clip: float = CLIP) -> Array:
    return _lines(s, clip, sloped=False)[..., 0]


@_of_class(
    name="calibration slope",
    symbol=r"\beta",
    formula=r"\mathrm{logit}\, P(y_i = k) = \alpha + \beta\, \mathrm{logit}\, p_{ik}",
    sentence="Below 1 the probabilities of the class are too extreme, above 1 not extreme enough.",
    ideal=1.0,
    parameters=(_CLIP,),
    undefined=(NOT_PROBABILITIES, NO_ACTUAL, NO_REST, CERTAIN, CONSTANT, SEPARATED, UNFITTED),
    references=("cox1958", "vancalster2019"),
    influence=_linear(_of_slope, 2),
)
def calibration_slope(s: Scores, clip: float = CLIP) -> Array:
    return _lines(s, clip, sloped=True)[..., 1]


@_of_class(
    name="integrated calibration index",
    symbol="ICI",
    formula=r"\frac{1}{n} \sum_i |\hat c_k(p_{ik}) - p_{ik}|",
    sentence="Mean distance of the probability of the class from how often it occurs by a smooth curve: locally linear regression over the nearest three quarters of the samples.",
    aliases=("ici",),
    range=(0.0, 1.0),
    ideal=0.0,
    orientation=Orientation.LOWER,
    parameters=(
        Choice(
            "statistic",
            "mean",
            "of the distances: their mean, median (E50), 90 % quantile (E90) or maximum (Emax)",
            ("mean", *_QUANTILES),
        ),
    ),
    undefined=(NOT_PROBABILITIES, NO_WEIGHT),
    references=("austin2019", "cleveland1979"),
    biased=True,
)
def integrated_calibration_index(s: Scores, statistic: str = "mean") -> Array:
    found = np.full(s.actual.shape, np.nan)
    if not s.are_probabilities:
        return found
    for code in range(1 if s.n_classes == 2 else 0, s.n_classes):
        points, at = recalibration.points_of(s.columns[code])
        hit = (s.y == code).astype(np.float64)
        for row in np.ndindex(s.n.shape):
            each = np.ones(s.n_samples) if s.weights is None else s.weights[row]
            weight: Array = np.bincount(at, each, points.size).astype(np.float64)
            if weight.sum() > 0:
                hits: Array = np.bincount(at, each * hit, points.size).astype(np.float64)
                distances = np.abs(recalibration.smoothed(points, weight, hits) - points)
                found[(*row, code)] = _summary(distances, weight, statistic)
    if s.n_classes == 2:
        # What is off for one of two classes is off as much for the other.
        found[..., 0] = found[..., 1]
    return found


def _summary(distances: Array, weight: Array, statistic: str) -> float:
    if statistic in _QUANTILES:
        return recalibration.share_quantile(distances[weight > 0], weight[weight > 0], _QUANTILES[statistic])
    return float(weight @ distances / weight.sum())


def _gains(s: Scores, code: int, threshold: float) -> Array:
    """What each sample adds to the net benefit: 1 for a hit, the odds of the threshold less for a false alarm."""
    worth = np.where(s.y == code, 1.0, -threshold / (1.0 - threshold))
    gains: Array = worth * (s.columns[code] >= threshold)
    return gains


def _mean_gain(of: Sampled, class_index: int | None, parameters: Parameters) -> Influence:
    code = 1 if class_index is None else class_index
    gains = _gains(of.scores, code, parameters["threshold"])
    return Influence(centred(gains, of.scores.weights), LinearMethod.T, freedom=of.freedom)


@_of_class(
    name="net benefit at a threshold",
    formula=r"\frac{TP(t)}{n} - \frac{FP(t)}{n} \frac{t}{1 - t}",
    sentence="Hits less false alarms per sample where everyone with at least probability t of the class is treated, a false alarm weighing t/(1-t) of a hit.",
    range=(None, 1.0),
    ideal=None,
    orientation=Orientation.HIGHER,
    parameters=(Number("threshold", 0.5, "probability from which on one acts", above=0.0, below=1.0),),
    undefined=(NOT_PROBABILITIES, NO_WEIGHT),
    references=("vickers2006",),
    influence=Form(LinearMethod.T, _mean_gain),
)
def net_benefit_at(s: Scores, threshold: float = 0.5) -> Array:
    if not s.are_probabilities:
        return np.full(s.actual.shape, np.nan)
    sums = [s.sums_of(_gains(s, code, threshold)).sum(axis=-1) for code in range(s.n_classes)]
    return np.stack([ratio(np.asarray(one), s.n) for one in sums], axis=-1)
