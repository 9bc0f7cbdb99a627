"""Calibration errors: how far stated probabilities and observed frequencies lie apart in bins."""

from functools import partial

import numpy as np

from app.kernel.metrics.card import Gaps, Inputs, Orientation, Prevalence, Scope, metric
from app.kernel.metrics.conditions import NO_WEIGHT, NOT_PROBABILITIES
from app.kernel.metrics.parameters import Choice, Number
from app.kernel.numerics.arrays import Array, mean
from app.kernel.samples.calibration import Bins, equal_mass, equal_width
from app.kernel.samples.chance import expected_by_chance, expected_by_chance_of_classes, largest_by_chance
from app.kernel.samples.scores import Scores

_BINS = (Number("bins", 15.0, "how many bins", minimum=1.0, maximum=10_000.0, integral=True),)
_error = partial(
    metric,
    scope=Scope.OVERALL,
    inputs=Inputs.PROBABILITIES,
    prevalence=Prevalence.SENSITIVE,
    orientation=Orientation.LOWER,
    ideal=0.0,
    parameters=_BINS,
    undefined=(NOT_PROBABILITIES, NO_WEIGHT),
    biased=True,
)


def _top_label(s: Scores, bins: float) -> Bins:
    return equal_width(s.top_label, int(bins))


def _of_classes(s: Scores, bins: float) -> list[Bins]:
    return [equal_width(ranking, int(bins)) for ranking in s.rankings]


def _gaps_of_classes(s: Scores, bins: float) -> Array:
    return np.concatenate([one.gaps for one in _of_classes(s, bins)], axis=-1) / s.n_classes


def _missing(s: Scores) -> Array:
    return np.full(s.n.shape, np.nan)


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
    gaps=Gaps(lambda s, bins: _top_label(s, bins).gaps),
    references=("naeini2015", "guo2017"),
    by_chance=expected_by_chance,
)
def expected_calibration_error(s: Scores, bins: float = 15.0) -> Array:
    return _top_label(s, bins).error if s.are_probabilities else _missing(s)


@_error(
    name="adaptive calibration error",
    symbol="ACE",
    formula=r"\frac{1}{B} \sum_b |\mathrm{acc}_b - \mathrm{conf}_b|, \quad n_b \approx n / B",
    sentence="Mean gap between the confidence in the predicted class and how often it is right, over bins of equally many samples.",
    aliases=("ace",),
    gaps=Gaps(lambda s, bins: equal_mass(s.top_label, int(bins)).gaps),
    references=("nixon2019",),
    by_chance=partial(expected_by_chance, adaptive=True),
)
def adaptive_calibration_error(s: Scores, bins: float = 15.0) -> Array:
    return equal_mass(s.top_label, int(bins)).error if s.are_probabilities else _missing(s)


@_error(
    name="maximum calibration error",
    symbol="MCE",
    formula=r"\max_b |\mathrm{acc}_b - \mathrm{conf}_b|",
    sentence="Largest gap of a bin between the confidence in the predicted class and how often it is right.",
    aliases=("mce",),
    elsewhere={"torchmetrics": "MulticlassCalibrationError(norm=max)"},
    differs={
        "torchmetrics": "its BinaryCalibrationError looks at the probability of class 1, not of the predicted class"
    },
    gaps=Gaps(lambda s, bins: _top_label(s, bins).gaps_within, norm="max"),
    references=("naeini2015",),
    by_chance=largest_by_chance,
)
def maximum_calibration_error(s: Scores, bins: float = 15.0) -> Array:
    return _top_label(s, bins).largest if s.are_probabilities else _missing(s)


@_error(
    name="class-wise calibration error",
    symbol="cwECE",
    formula=r"\frac{1}{K} \sum_k \sum_b \frac{n_{bk}}{n} |\mathrm{freq}_{bk} - \bar p_{bk}|",
    sentence="Mean over the classes of the gap between the probability of the class and how often it occurs, over bins of equal width.",
    aliases=("cwece",),
    elsewhere={"torchmetrics": "BinaryCalibrationError(norm=l1)"},
    differs={"torchmetrics": "of two classes only; its MulticlassCalibrationError is expected_calibration_error"},
    gaps=Gaps(_gaps_of_classes),
    references=("kull2019",),
    by_chance=expected_by_chance_of_classes,
)
def classwise_calibration_error(s: Scores, bins: float = 15.0) -> Array:
    if not s.are_probabilities:
        return _missing(s)
    return mean(np.stack([one.error for one in _of_classes(s, bins)], axis=-1))


@_error(
    name="root mean square calibration error",
    symbol="RMSCE",
    formula=r"\sqrt{\sum_b \frac{n_b}{n} (\mathrm{acc}_b - \mathrm{conf}_b)^2}, \quad b = (lo, hi]",
    sentence="Root of the mean squared gap between the confidence in the predicted class and how often it is right, over "
    "bins of equal width.",
    aliases=("rmsce",),
    elsewhere={"torchmetrics": "MulticlassCalibrationError(norm=l2)"},
    gaps=Gaps(lambda s, bins: _top_label(s, bins).gaps_of("l2"), norm="l2"),
    on_request=True,
    references=("kumar2019",),
)
def l2_calibration_error(s: Scores, bins: float = 15.0) -> Array:
    return _top_label(s, bins).root_mean_square if s.are_probabilities else _missing(s)


@_error(
    name="calibration error of a class",
    scope=Scope.CLASS,
    formula=r"\left(\sum_b \frac{n_b}{n} |\mathrm{freq}_b - \bar p_b|^q\right)^{1/q}, \quad q = 1, 2, \infty",
    sentence="Gap between the probability of the class and how often it occurs, over bins of equal width: the mean (l1), "
    "the root of the mean square (l2) or the largest (max).",
    elsewhere={"torchmetrics": "BinaryCalibrationError"},
    gaps=Gaps(lambda s, bins, norm: np.stack([one.gaps_of(norm) for one in _of_classes(s, bins)], axis=-2)),
    parameters=(*_BINS, Choice("norm", "l1", "mean, root mean square or largest", ("l1", "l2", "max"))),
    on_request=True,
    references=("kumar2019", "naeini2015"),
)
def class_calibration_error(s: Scores, bins: float = 15.0, norm: str = "l1") -> Array:
    if not s.are_probabilities:
        return np.full(s.actual.shape, np.nan)
    read = {"l1": "error", "l2": "root_mean_square", "max": "largest"}[norm]
    return np.stack([getattr(one, read) for one in _of_classes(s, bins)], axis=-1)
