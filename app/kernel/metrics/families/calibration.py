"""Calibration errors: how far stated probabilities and observed frequencies lie apart in bins.

Do stated chances of a class come true? Logistic recalibration, a smooth curve, and what decisions gain by them.
"""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, Concatenate

import numpy as np

from app.kernel.metrics.card import Choice, Gaps, Inputs, Metric, Number, Orientation, Prevalence, Scope, metric
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
from app.kernel.numerics.arrays import Array, ratio
from app.kernel.samples import recalibration
from app.kernel.samples.areas import centred
from app.kernel.samples.calibration import (
    equal_width,
    expected_by_chance,
    expected_by_chance_of_classes,
    largest_by_chance,
)
from app.kernel.samples.influence import Influence, InfluenceForm, LinearMethod, WeightedSamples
from app.kernel.samples.losses import CLIP
from app.kernel.samples.rankings import Bins
from app.kernel.samples.scores import Parameters, Scores

_BINS = (Number("bins", 15.0, "how many bins", minimum=1.0, maximum=10_000.0, integral=True),)
_of_gaps = partial(
    metric,
    inputs=Inputs.PROBABILITIES,
    prevalence=Prevalence.SENSITIVE,
    orientation=Orientation.LOWER,
    undefined=(NOT_PROBABILITIES, NO_WEIGHT),
    biased=True,
)
_Signed = Callable[Concatenate[Scores, ...], Array]


def _error(norm: str = "l1", **facts: Any) -> Callable[[_Signed], Metric[Scores]]:
    """Turn a function of the gaps between observed and stated frequencies into a metric, their norm."""

    def declare(of: _Signed) -> Metric[Scores]:
        gaps = Gaps(of, norm)

        @wraps(of)
        def compute(s: Scores, **parameters: Any) -> Array:
            found = gaps.combined(of(s, **parameters), parameters)
            n = s.n if found.ndim == s.n.ndim else s.n[..., None]
            return np.where(s.are_probabilities & (n > 0), found, np.nan)

        return _of_gaps(gaps=gaps, **{"scope": Scope.OVERALL, "parameters": _BINS, **facts})(compute)

    return declare


def _of_classes(s: Scores, bins: float) -> list[Bins]:
    return [equal_width(ranking, int(bins)) for ranking in s.rankings]


@_error(
    name="expected calibration error",
    symbol="ECE",
    formula=r"\sum_b \frac{n_b}{n} |\mathrm{acc}_b - \mathrm{conf}_b|, \quad b = (lo, hi]",
    sentence="Mean gap between the confidence in the predicted class and how often it is right, over bins of equal width.",
    aliases=("ece",),
    elsewhere={"torchmetrics": "MulticlassCalibrationError(norm=l1)"},
    differs={
        "torchmetrics": "its BinaryCalibrationError is another metric, classwise_calibration_error of two classes"
    },
    references=("naeini2015", "guo2017"),
    by_chance=expected_by_chance,
)
def expected_calibration_error(s: Scores, bins: float = 15.0) -> Array:
    return equal_width(s.top_label, int(bins)).gaps


@_error(
    name="adaptive calibration error",
    symbol="ACE",
    formula=r"\frac{1}{B} \sum_b |\mathrm{acc}_b - \mathrm{conf}_b|, \quad n_b \approx n / B",
    sentence="Mean gap between the confidence in the predicted class and how often it is right, over bins of equally many samples.",
    aliases=("ace",),
    references=("nixon2019",),
    by_chance=partial(expected_by_chance, adaptive=True),
)
def adaptive_calibration_error(s: Scores, bins: float = 15.0) -> Array:
    return s.top_label.in_parts(int(bins)).gaps


@_error(
    "max",
    name="maximum calibration error",
    symbol="MCE",
    formula=r"\max_b |\mathrm{acc}_b - \mathrm{conf}_b|",
    sentence="Largest gap of a bin between the confidence in the predicted class and how often it is right.",
    aliases=("mce",),
    elsewhere={"torchmetrics": "MulticlassCalibrationError(norm=max)"},
    differs={
        "torchmetrics": "its BinaryCalibrationError looks at the probability of class 1, not of the predicted class"
    },
    references=("naeini2015",),
    by_chance=largest_by_chance,
)
def maximum_calibration_error(s: Scores, bins: float = 15.0) -> Array:
    return equal_width(s.top_label, int(bins)).gaps_within


@_error(
    name="class-wise calibration error",
    symbol="cwECE",
    formula=r"\frac{1}{K} \sum_k \sum_b \frac{n_{bk}}{n} |\mathrm{freq}_{bk} - \bar p_{bk}|",
    sentence="Mean over the classes of the gap between the probability of the class and how often it occurs, over bins of equal width.",
    aliases=("cwece",),
    elsewhere={"torchmetrics": "BinaryCalibrationError(norm=l1)"},
    differs={"torchmetrics": "of two classes only; its MulticlassCalibrationError is expected_calibration_error"},
    references=("kull2019",),
    by_chance=expected_by_chance_of_classes,
)
def classwise_calibration_error(s: Scores, bins: float = 15.0) -> Array:
    return np.concatenate([one.gaps for one in _of_classes(s, bins)], axis=-1) / s.n_classes


@_error(
    "l2",
    name="root mean square calibration error",
    symbol="RMSCE",
    formula=r"\sqrt{\sum_b \frac{n_b}{n} (\mathrm{acc}_b - \mathrm{conf}_b)^2}, \quad b = (lo, hi]",
    sentence="Root of the mean squared gap between the confidence in the predicted class and how often it is right, over "
    "bins of equal width.",
    aliases=("rmsce",),
    elsewhere={"torchmetrics": "MulticlassCalibrationError(norm=l2)"},
    on_request=True,
    references=("kumar2019",),
)
def l2_calibration_error(s: Scores, bins: float = 15.0) -> Array:
    return equal_width(s.top_label, int(bins)).gaps_of("l2")


@_error(
    name="calibration error of a class",
    scope=Scope.CLASS,
    formula=r"\left(\sum_b \frac{n_b}{n} |\mathrm{freq}_b - \bar p_b|^q\right)^{1/q}, \quad q = 1, 2, \infty",
    sentence="Gap between the probability of the class and how often it occurs, over bins of equal width: the mean (l1), "
    "the root of the mean square (l2) or the largest (max).",
    elsewhere={"torchmetrics": "BinaryCalibrationError"},
    parameters=(*_BINS, Choice("norm", "l1", "mean, root mean square or largest", ("l1", "l2", "max"))),
    on_request=True,
    references=("kumar2019", "naeini2015"),
)
def class_calibration_error(s: Scores, bins: float = 15.0, norm: str = "l1") -> Array:
    return np.stack([one.gaps_of(norm) for one in _of_classes(s, bins)], axis=-2)


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


def _linear(*, sloped: bool) -> InfluenceForm:
    def make(data: WeightedSamples, class_index: int | None, parameters: Parameters) -> Influence:
        code = 1 if class_index is None else class_index
        odds, hit = recalibration.log_odds(data.scores.columns[code], parameters["clip"]), data.scores.y == code
        line = recalibration.line(odds, hit, sloped=sloped)
        influence = recalibration.influence_on_line(odds, hit, line, sloped=sloped)
        return Influence(influence, LinearMethod.INFLUENCE, freedom=float(max(odds.size - 1 - sloped, 1)))

    return InfluenceForm(LinearMethod.INFLUENCE, make, of_weighted=False)


@_of_class(
    name="calibration intercept",
    symbol=r"\alpha",
    formula=r"\mathrm{logit}\, P(y_i = k) = \alpha + \mathrm{logit}\, p_{ik}",
    sentence="Calibration in the large on the scale of log odds: above 0 the class is more frequent than stated, below 0 less.",
    parameters=(_CLIP,),
    undefined=(NOT_PROBABILITIES, NO_ACTUAL, NO_REST, CERTAIN, UNFITTED),
    references=("cox1958", "vancalster2019"),
    influence=_linear(sloped=False),
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
    influence=_linear(sloped=True),
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
            each = s.each[row]
            weight: Array = np.bincount(at, each, points.size).astype(np.float64)
            if weight.sum() > 0:
                hits: Array = np.bincount(at, each * hit, points.size).astype(np.float64)
                distances = np.abs(recalibration.smoothed(points, weight, hits) - points)
                found[(*row, code)] = _summary(distances, weight, statistic)
    if s.n_classes == 2:
        # Both of two classes have the same error.
        found[..., 0] = found[..., 1]
    return found


def _summary(distances: Array, weight: Array, statistic: str) -> float:
    if statistic in _QUANTILES:
        return recalibration.share_quantile(distances[weight > 0], weight[weight > 0], _QUANTILES[statistic])
    return float(weight @ distances / weight.sum())


def _gains(s: Scores, code: int, threshold: float) -> Array:
    """Contribution of each sample to the net benefit: 1 for a hit, minus the odds of the threshold for
    a false alarm.
    """
    worth = np.where(s.y == code, 1.0, -threshold / (1.0 - threshold))
    gains: Array = worth * (s.columns[code] >= threshold)
    return gains


def _mean_gain(of: WeightedSamples, class_index: int | None, parameters: Parameters) -> Influence:
    code = 1 if class_index is None else class_index
    gains = _gains(of.scores, code, parameters["threshold"])
    return Influence(centred(gains, of.scores.weights), LinearMethod.HALL_T, freedom=of.freedom)


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
    influence=InfluenceForm(LinearMethod.HALL_T, _mean_gain),
)
def net_benefit_at(s: Scores, threshold: float = 0.5) -> Array:
    if not s.are_probabilities:
        return np.full(s.actual.shape, np.nan)
    sums = [s.sums_of(_gains(s, code, threshold)).sum(axis=-1) for code in range(s.n_classes)]
    return np.stack([ratio(np.asarray(one), s.n) for one in sums], axis=-1)
