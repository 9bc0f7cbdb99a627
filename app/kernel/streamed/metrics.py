"""Metrics of streamed probabilities, and the source of their limits: sampling errors or resampled cells."""

from collections.abc import Container, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from app.kernel.metrics.card import Metric, is_of_probabilities
from app.kernel.metrics.catalogue import catalogue
from app.kernel.metrics.families import calibration, imcp, score_ranking
from app.kernel.numerics.arrays import Array, silently
from app.kernel.samples.calibration import ErrorByChance
from app.kernel.samples.influence import Area, AreaOf, LinearMethod, Strata
from app.kernel.samples.losses import CLIP, sums_by_code
from app.kernel.samples.scores import Scores
from app.kernel.streamed.cells import cells_of, simulated_by_chance
from app.kernel.streamed.influences import Leaf, RunInfluences
from app.kernel.streamed.rows import NotStreamed
from app.kernel.streamed.scores import MOST_CLASSES, StreamedScores
from app.kernel.uncertainty.influence import ROUNDING_OF_SUMS, Influences, Linearisation

_LINES = (calibration.calibration_intercept, calibration.calibration_slope)


def _of_line(scores: StreamedScores, metric: Metric[Scores], code: int, value: float) -> Linearisation | None:
    """The slope of logistic recalibration of a class, or its intercept, by White's variance of samples of one weight;
    None with weights.
    """
    if scores.worth is not None:
        return None
    sloped, n_groups = metric is calibration.calibration_slope, scores.n_groups
    moved = scores.fit(code, CLIP, sloped=sloped).moved
    influence, about = np.full(max(n_groups, 1), np.nan), np.ones((1, n_groups)) if scores.grouped else None
    skewness = None
    if moved is not None and scores.grouped:
        table = moved.sums("g", x="x", size="abs(x)", n="1")
        # As `by_groups` has it.
        sums = np.where(np.abs(table["x"]) <= ROUNDING_OF_SUMS * table["size"], 0.0, table["x"])
        influence, held = (sums_by_code(table["g"].astype(np.intp), one, n_groups) for one in (sums, table["n"]))
        about = held[None]
    elif moved is not None:
        powers = moved.sums(squares="x * x", cubes="x * x * x")
        influence = np.sqrt(powers["squares"])
        with silently():
            skewness = float(powers["cubes"][0] / powers["squares"][0] ** 1.5)
    freedom = max(scores.n_samples - 1.0 - sloped, 1.0)
    return replace(
        _known(scores, metric, value),
        influence=influence,
        about=about,
        freedom=freedom,
        skewness=skewness,
        method=LinearMethod.INFLUENCE,
    )


# Computed from resampled cells of the order of a class, or of the highest probability, where they have no closed form.
_OF_CLASSES: Container[Metric[Scores]] = (
    score_ranking.partial_roc_auc,
    score_ranking.pr_auc_trapezoid,
    score_ranking.equal_error_rate,
    score_ranking.ks_statistic,
    score_ranking.h_measure,
    imcp.median_phi,
    calibration.classwise_calibration_error,
    calibration.class_calibration_error,
    *_LINES,
)
_OF_TOP: Container[Metric[Scores]] = (
    calibration.expected_calibration_error,
    calibration.adaptive_calibration_error,
    calibration.maximum_calibration_error,
    calibration.l2_calibration_error,
)


def streamed_values(scores: StreamedScores, asked: Container[str] = ()) -> Mapping[str, Array]:
    """Values by key: (K) of a metric of one class, () of the others; NaN where one is undefined.

    Those that need all samples are left out, and those for which samples are read again unless their key is asked for.
    """
    known = catalogue().of_probabilities.metrics
    # Orders that are made of what was asked for are there before samples are read for their influences. Lines of
    # recalibration need what is read then.
    dear = sorted((metric for metric in known if is_dear(metric, scores.n_classes)), key=_LINES.__contains__)
    chosen = [*(metric for metric in dear if metric.key in asked), *(metric for metric in known if metric not in dear)]
    found = {metric.key: _computed(scores, metric) for metric in chosen}
    return {key: value for key, value in found.items() if value is not None}


def is_dear(metric: Metric[Scores], n_classes: int) -> bool:
    """Are samples of so many classes put in another order for it alone, or read again many times?"""
    form = metric.card.inference.influence
    of = None if form is None or form.area is None else form.area.of
    if n_classes == 2:
        return metric in _LINES or metric is score_ranking.macro_pr_auc or of is AreaOf.ENTRIES
    return metric in _LINES or (of in (AreaOf.PAIRS, AreaOf.PAIR_SHARES) and n_classes <= MOST_CLASSES)


def _computed(scores: StreamedScores, metric: Metric[Scores]) -> Array | None:
    """A metric at its default parameters; None where it needs all samples at once."""
    try:
        with silently():
            return metric.compute(scores)
    except NotStreamed:
        return None


def streams(metric: Metric[Scores], scores: StreamedScores) -> bool:
    """Can it be streamed?"""
    return _computed(scores, metric) is not None


def is_drawn(metric: Metric[Scores], n_classes: int, of: int | None) -> bool:
    """Can a metric of a class, or of all, be computed from resampled cells of one order? Nobody knows how the orders of
    more than two classes belong together.
    """
    return metric in _OF_TOP or (metric in _OF_CLASSES and (of is not None or n_classes == 2))


def order_of(metric: Metric[Scores], of: int | None) -> int | None:
    """Return the class by whose order samples are drawn for a metric; None is their highest probability."""
    return None if metric in _OF_TOP else 1 if of is None else of


def error_of_chance(scores: StreamedScores, metric: Metric[Scores], draws: int, seed: int) -> ErrorByChance | None:
    """A calibration error at its default parameters beside that of perfect probabilities; None where classes have no
    joint draw.
    """
    if not is_drawn(metric, scores.n_classes, None):
        return None
    cells = cells_of(scores, order_of(metric, None))
    return simulated_by_chance(metric, float(metric.compute(scores)), cells, draws, seed)


class StreamedInfluences(Influences):
    """Metrics of streamed samples as sums over these."""

    scores: StreamedScores

    def of(
        self, metric: Metric[Any], class_index: int | None = None, *, parameters: Mapping[str, Any] | None = None
    ) -> Linearisation | None:
        """A metric of probabilities at its default parameters as a sum; None where there is no closed form."""
        usual = {**metric.card.defaults, **(parameters or {})} == metric.card.defaults
        return linearised(self.scores, metric, class_index) if usual and is_of_probabilities(metric) else None


def linearised(scores: StreamedScores, metric: Metric[Scores], class_index: int | None = None) -> Linearisation | None:
    """A metric that can be streamed, as if one sample had all the influence, or with that of groups; None where
    that is not known.
    """
    form, computed = metric.card.inference.influence, _computed(scores, metric)
    if form is None or computed is None:
        return None
    value = float(computed if class_index is None else computed[class_index])
    if metric in _LINES and class_index is not None:
        return _of_line(scores, metric, class_index, value)
    if not np.isfinite(value):
        return _known(scores, metric, value)
    # By trapezoids it has the sampling error of the same area without.
    of = imcp.au_mcp if metric is imcp.au_mcp_trapezoid else metric
    leaf = Leaf.made(of, class_index)
    if leaf is None:
        # All are right.
        return replace(_known(scores, metric, value), method=LinearMethod.INFLUENCE)
    if leaf.form.area is not None and not scores.grouped:
        # The order of one class says the variance.
        made, curve = scores.made(leaf), scores.ranking(1 if class_index is None else class_index).curve
        if made.sizes is not None:
            known = _known(scores, metric, value, leaf.form.area.slope * sum(curve.variances) ** 0.5)
            return replace(known, sizes=made.sizes, strata=made.strata, method=made.method)
        if leaf.form.area == Area(AreaOf.ONE_CLASS, of_precision=True):
            known = _known(scores, metric, value, curve.average_precision_variance**0.5)
            return replace(known, freedom=made.freedom)
    read = scores.reading(leaf)
    part = None if read is None else RunInfluences(read, 0).of(of, class_index)
    return None if read is None or part is None else replace(read.alone(part, scores.n_samples), value=value)


def _known(scores: StreamedScores, metric: Metric[Scores], value: float, error: float = 0.0) -> Linearisation:
    """A value whose standard error is known, and no more of its distribution; NaN where there is no value."""
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
        about=np.zeros((1, 1)) if scores.grouped else None,
        skewness=0.0,
    )
