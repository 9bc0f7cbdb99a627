"""Curves of probabilities and scores, thinning that keeps their shape, and rates at a required value of another rate.

Areas are those of the full data. Samples of one score are never split, and rates are not interpolated: a threshold on
these samples reaches them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import heappop, heappush
from typing import Self

import numpy as np

from app.kernel.numerics.arrays import Array, Mask, ratio
from app.kernel.numerics.hull import upper_hull
from app.kernel.samples.calibration import equal_width
from app.kernel.samples.losses import phi_of, threshold_correct, threshold_incorrect
from app.kernel.samples.rankings import DistinctCuts, Ranking, precision_at
from app.kernel.samples.scores import Codes, Scores


class CurveName(StrEnum):
    """Curves by name."""

    ROC = "roc"
    PR = "pr"
    DET = "det"
    MCP = "mcp"
    IMCP = "imcp"
    CALIBRATION = "calibration"
    DECISION = "decision"
    COST = "cost"
    GAIN = "gain"
    LIFT = "lift"


class UndefinedCurve(Exception):
    """The curve does not exist for these data. ``code`` and the message give the reason, as conditions
    of metrics do.
    """

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code


@dataclass(frozen=True, slots=True)
class Curve:
    """Points of a curve in drawing order.

    ``thresholds`` belong to the points, NaN where a point has none. ``area`` is that of the full data, however few
    points are kept, or None where it has no meaning. ``references`` are named companion curves over the same x, and
    ``levels`` named heights that are the same everywhere.
    ``codes`` and ``widths`` are the classes and widths of points that are bars, -1 and NaN for the two end points.
    """

    x: Array
    y: Array
    thresholds: Array
    area: float | None
    axes: tuple[str, str]
    references: tuple[tuple[str, Array], ...] = ()
    weights: Array | None = None
    codes: Codes | None = None
    widths: Array | None = None
    levels: tuple[tuple[str, float], ...] = ()

    def at(self, kept: Codes) -> Self:
        """Curve with a selection of its points, by index."""
        of_points = "x", "y", "thresholds", "weights", "codes", "widths"
        chosen = {name: values[kept] for name in of_points if (values := getattr(self, name)) is not None}
        return replace(self, **chosen, references=tuple((name, values[kept]) for name, values in self.references))


def _cuts(scores: Scores, code: int, *, others: bool = True) -> DistinctCuts:
    cuts = scores.ranking(code).cuts()
    if cuts.positives == 0:
        raise UndefinedCurve("no_actual_samples", "the class has no actual samples")
    if others and cuts.negatives == 0:
        raise UndefinedCurve("no_other_samples", "every sample belongs to the class")
    return cuts


def _need_probabilities(scores: Scores) -> None:
    if not scores.are_probabilities:
        raise UndefinedCurve("not_probabilities", "the input holds scores that are no probabilities")


def roc(scores: Scores, code: int) -> Curve:
    """True against false positive rate, from (0, 0) to (1, 1); the area is P(>) + P(=)/2."""
    cuts = _cuts(scores, code)
    x, y = cuts.fp / cuts.negatives, cuts.tp / cuts.positives
    area = float(scores.ranking(code).auc)
    return Curve(x, y, cuts.thresholds, area, ("false positive rate", "true positive rate"))


def precision_recall(scores: Scores, code: int) -> Curve:
    """Precision against recall from (0, 1). The area is by trapezoids; the reference is the precision of a random
    order.
    """
    cuts = _cuts(scores, code, others=False)
    area = float(scores.ranking(code).precision_sum / cuts.positives)
    share = cuts.positives / (cuts.positives + cuts.negatives)
    reference = (("prevalence", np.full(cuts.tp.size, share)),)
    recall, precision = cuts.tp / cuts.positives, precision_at(cuts.tp, cuts.fp)
    return Curve(recall, precision, cuts.thresholds, area, ("recall", "precision"), reference)


def detection_error(scores: Scores, code: int) -> Curve:
    """False negative against false positive rate; the area is 1 - AUC."""
    return _missed(roc(scores, code), "false negative rate")


def _missed(curve: Curve, axis: str) -> Curve:
    """A ROC curve by what is missed in place of what is found."""
    area = None if curve.area is None else 1.0 - curve.area
    return replace(curve, y=1.0 - curve.y, area=area, axes=(curve.axes[0], axis))


def performance(scores: Scores, code: int | None = None) -> Curve:
    """MCP: phi of the samples in rising order, each a bar of width 1/n (or its weight); the area is the mean.

    With a class, the conditional curve of its members only.
    """
    _need_probabilities(scores)
    values, codes, widths = scores.by_p_true
    if code is not None:
        widths = widths * (codes == code)
        if not widths.any():
            raise UndefinedCurve("no_actual_samples", "the class has no actual samples")
    return _bars(values, codes, widths / widths.sum(), scores.n_classes, "share of samples")


def imbalanced_performance(scores: Scores, code: int | None = None) -> Curve:
    """IMCP: phi of the samples in rising order, as bars of width 1/(K n_class), so that every class has the same total
    width.

    With a class, its bars only, at their places among all; the area is their part of the whole.
    """
    _need_probabilities(scores)
    if (scores.actual == 0).any():
        raise UndefinedCurve("no_actual_samples", "a class has no actual samples")
    values, codes, weights = scores.by_p_true
    widths = (1.0 / (scores.n_classes * scores.actual)).take(codes) * weights
    axis = "share, every class counting the same"
    whole = _bars(values, codes, widths, scores.n_classes, axis)
    if code is None:
        return whole
    own = codes == code
    part = float(widths[own] @ phi_of(values[own]))
    return replace(whole.at(np.flatnonzero(whole.codes == code)), area=part)


def _bars(p_true: Array, codes: Codes, widths: Array, n_classes: int, axis: str) -> Curve:
    """Points at the middle of bars of height phi, and the two ends; the area is that of the bars. The levels are
    the heights above or below which p_true implies a right or wrong prediction.
    """
    present = widths > 0
    p_true, codes, widths = p_true[present], codes[present], widths[present]
    phi = phi_of(p_true)
    middle = np.cumsum(widths) - 0.5 * widths
    x = np.concatenate([[0.0], middle, [1.0]])
    y = np.concatenate([phi[:1], phi, phi[-1:]])
    thresholds = np.concatenate([[np.nan], p_true, [np.nan]])
    right, wrong = threshold_correct(), threshold_incorrect(n_classes)
    return Curve(
        x,
        y,
        thresholds,
        float(widths @ phi),
        (axis, "closeness to the truth (phi)"),
        levels=(("certainly_right_above", right), ("certainly_wrong_below", wrong)),
        codes=np.concatenate([[-1], codes, [-1]]),
        widths=np.concatenate([[np.nan], widths, [np.nan]]),
    )


def calibration(scores: Scores, code: int | None = None, *, bins: int = 15) -> Curve:
    """Reliability diagram: observed frequency against mean probability of each non-empty bin, rising.

    It is that of a class or, without one, of the top label. ``weights`` are the shares of the bins; the area is the
    calibration error.
    """
    _need_probabilities(scores)
    ranking = scores.top_label if code is None else scores.ranking(code)
    binned = equal_width(ranking, bins)
    filled = np.flatnonzero(binned.weight > 0)[::-1]
    weight = binned.weight[filled]
    x, y = binned.expected[filled] / weight, binned.observed[filled] / weight
    axes = ("mean confidence", "accuracy") if code is None else ("mean probability", "observed frequency")
    return Curve(
        x,
        y,
        np.full(x.size, np.nan),
        float(binned.error),
        axes,
        (("perfect", x),),
        weight / weight.sum(),
    )


def isotonic(scores: Scores, code: int | None = None) -> Curve:
    """Reliability without bins: the isotonic regression of the outcomes on the probability, as steps (Dimitriadis,
    Gneiting & Jordan 2021).

    It is that of a class or, without one, of the top label. The area is the mean distance from the stated probability,
    a calibration error without bins. ``weights`` are the shares of the samples with each probability.
    """
    _need_probabilities(scores)
    cuts = (scores.top_label if code is None else scores.ranking(code)).cuts()
    weight = np.diff(cuts.tp + cuts.fp)
    some = np.concatenate([[True], weight > 0])
    tp, fp = upper_hull(cuts.tp[some], cuts.fp[some])
    up, right = np.diff(tp), np.diff(fp)
    level = np.searchsorted(tp + fp, (cuts.tp + cuts.fp)[1:], side="left") - 1
    x, y = cuts.thresholds[:0:-1], (up / (up + right)).take(level)[::-1]
    share = weight[::-1] / weight.sum()
    axes = ("confidence", "calibrated confidence") if code is None else ("probability", "calibrated probability")
    return Curve(x, y, x, float(share @ np.abs(y - x)), axes, (("perfect", x),), share)


def decision(scores: Scores, code: int, *, prevalence: float | None = None) -> Curve:
    """Net benefit TP/n - FP/n t/(1-t) over the threshold probability t (Vickers & Elkin 2006).

    Args:
        scores: Probabilities.
        code: The class for which one acts.
        prevalence: Share of the class where decisions are taken; None for the observed one.
    """
    _need_probabilities(scores)
    cuts = _cuts(scores, code)
    share = cuts.positives / (cuts.positives + cuts.negatives) if prevalence is None else prevalence
    state = np.flatnonzero((cuts.thresholds > 0) & (cuts.thresholds < 1))[::-1]
    t = cuts.thresholds[state]
    odds = t / (1.0 - t)
    tpr, fpr = cuts.tp[state] / cuts.positives, cuts.fp[state] / cuts.negatives
    benefit = share * tpr - (1.0 - share) * fpr * odds
    everyone = share - (1.0 - share) * odds
    references = (("treat all", everyone), ("treat none", np.zeros(t.size)))
    return Curve(t, benefit, t, None, ("threshold probability", "net benefit"), references)


def cost(scores: Scores, code: int) -> Curve:
    """Lower envelope of the normalised expected cost FNR PC + FPR (1 - PC) over the probability cost PC.

    PC = pi c_FN / (pi c_FN + (1 - pi) c_FP) (Drummond & Holte 2006). Each threshold is that of the cheapest cut.
    """
    cuts = _cuts(scores, code)
    tp, fp = upper_hull(cuts.tp, cuts.fp)
    fnr, fpr = 1.0 - tp / cuts.positives, fp / cuts.negatives
    # Neighbouring cuts cost the same where FNR_1 PC + FPR_1 (1 - PC) = FNR_2 PC + FPR_2 (1 - PC).
    saved, spent = fnr[:-1] - fnr[1:], fpr[1:] - fpr[:-1]
    x = np.concatenate([[0.0], spent / (saved + spent), [1.0]])
    y = np.concatenate([fnr * x[:-1] + fpr * (1.0 - x[:-1]), fnr[-1:]])
    where = np.searchsorted(cuts.tp + cuts.fp, tp + fp, side="left")
    thresholds = np.append(cuts.thresholds[where], cuts.thresholds[where[-1]])
    references = (("always negative", x), ("always positive", 1.0 - x))
    return Curve(
        x, y, thresholds, float(np.trapezoid(y, x)), ("probability cost", "normalised expected cost"), references
    )


def gain(scores: Scores, code: int) -> Curve:
    """Recall against the share of samples predicted."""
    cuts = _cuts(scores, code, others=False)
    everyone = cuts.positives + cuts.negatives
    x, y = (cuts.tp + cuts.fp) / everyone, cuts.tp / cuts.positives
    share = cuts.positives / everyone
    references = (("random", x), ("perfect", np.minimum(x / share, 1.0)))
    return Curve(x, y, cuts.thresholds, float(np.trapezoid(y, x)), ("share predicted", "recall"), references)


def lift(scores: Scores, code: int) -> Curve:
    """Precision over prevalence against the share of samples predicted."""
    cuts = _cuts(scores, code, others=False)
    predicted, everyone = cuts.tp + cuts.fp, cuts.positives + cuts.negatives
    some = np.flatnonzero(predicted > 0)
    x = predicted[some] / everyone
    y = ratio(cuts.tp[some] / predicted[some], np.asarray(cuts.positives / everyone))
    references = (("random", np.ones(x.size)),)
    return Curve(x, y, cuts.thresholds[some], None, ("share predicted", "lift"), references)


# Curves of one class. Three are in both tables: without a class the calibration curve is that of the top label.
CLASS_CURVES: dict[CurveName, Callable[[Scores, int], Curve]] = {
    CurveName.ROC: roc,
    CurveName.PR: precision_recall,
    CurveName.DET: detection_error,
    CurveName.MCP: performance,
    CurveName.IMCP: imbalanced_performance,
    CurveName.CALIBRATION: calibration,
    CurveName.DECISION: decision,
    CurveName.COST: cost,
    CurveName.GAIN: gain,
    CurveName.LIFT: lift,
}
OVERALL_CURVES: dict[CurveName, Callable[[Scores], Curve]] = {
    CurveName.MCP: performance,
    CurveName.IMCP: imbalanced_performance,
    CurveName.CALIBRATION: calibration,
}


def thin(curve: Curve, max_points: int) -> Curve:
    """Curve with at most ``max_points`` points, chosen by their visible effect; the area stays that of the full
    curve.
    """
    return curve.at(outstanding(curve.x, curve.y, max_points))


def _unit(values: Array) -> Array:
    low, high = values.min(), values.max()
    return (values - low) / (high - low) if high > low else np.zeros(values.size)


def outstanding(x: Array, y: Array, most: int) -> Codes:
    """Rising indices of the points, ``most`` of them at most, that a polygon needs most; two or more.

    Points on straight lines are dropped without loss. Beyond that the polygon is split, again and again, at the point
    furthest from the line that would replace it (Ramer 1972, Douglas & Peucker 1973), in units of its extent.
    """
    if x.size <= most:
        return np.arange(x.size)
    x, y = _unit(x), _unit(y)
    kept = [0, x.size - 1]
    waiting: list[tuple[float, int, int, int]] = []

    def consider(first: int, last: int) -> None:
        if last - first < 2:
            return
        run, rise = x[last] - x[first], y[last] - y[first]
        length = float(np.hypot(run, rise)) or 1.0
        # Distance from the line through the ends.
        apart = (y[first + 1 : last] - y[first]) * (run / length)
        apart -= (x[first + 1 : last] - x[first]) * (rise / length)
        np.abs(apart, out=apart)
        furthest = int(apart.argmax())
        if apart[furthest] > 0.0:
            heappush(waiting, (-float(apart[furthest]), first, first + 1 + furthest, last))

    consider(0, x.size - 1)
    while waiting and len(kept) < most:
        _, first, middle, last = heappop(waiting)
        kept.append(middle)
        consider(first, middle)
        consider(middle, last)
    return np.array(sorted(kept), dtype=np.intp)


def pooled(scores: Scores) -> Scores:
    """One-vs-rest scores of all classes pooled into one problem of n K samples (micro average), with class 1 for
    members, by their order.
    """
    weights = None if scores.weights is None else np.repeat(scores.weights, scores.n_classes)
    return Scores.of_scores(scores.members(None), scores.probabilities.ravel(), weights)


def macro_roc(scores: Scores) -> Curve:
    """Mean true positive rate of all classes at every false positive rate; the area is the mean of their areas.

    Raises:
        UndefinedCurve: a class has no samples, or there is no other.
    """
    curves = []
    for code in range(scores.n_classes):
        cuts = scores.ranking(code).cuts()
        if not cuts.positives or not cuts.negatives:
            raise UndefinedCurve("no_actual_samples", "a class has no actual samples, or all of them")
        curves.append((cuts.fp / cuts.negatives, cuts.tp / cuts.positives))
    x = np.unique(np.concatenate([fpr for fpr, _ in curves]))
    # A step has two ends at one x.
    lower = np.mean([np.interp(-x, -fpr[::-1], tpr[::-1]) for fpr, tpr in curves], axis=0)
    upper = np.mean([np.interp(x, fpr, tpr) for fpr, tpr in curves], axis=0)
    points = np.stack([np.repeat(x, 2), np.column_stack([lower, upper]).ravel()])
    moves = np.append(True, (np.diff(points, axis=1) != 0).any(axis=0))
    x, y = points[:, moves]
    area = float(np.mean([scores.ranking(code).auc for code in range(scores.n_classes)]))
    return Curve(x, y, np.full(x.size, np.nan), area, ("false positive rate", "mean true positive rate"))


def macro_det(scores: Scores) -> Curve:
    """Mean false negative rate of all classes at every false positive rate. Raises as `macro_roc` does."""
    return _missed(macro_roc(scores), "mean false negative rate")


# Relative tolerance for a sum of weights to reach a limit: 0.9 of 10 samples are 9 of them.
_SLACK = 1e-12


def recall_at_specificity(ranking: Ranking, specificity: float) -> Array:
    """Highest recall (...) of the thresholds with at least this specificity; NaN without members or non-members."""
    allowed = ((1.0 - specificity + _SLACK) * ranking.negatives)[..., None]
    members = np.where(ranking.fp <= allowed, ranking.tp, 0.0).max(axis=-1, initial=0.0)
    return _where_both(ranking, ratio(members, ranking.positives))


def specificity_at_recall(ranking: Ranking, recall: float) -> Array:
    """Highest specificity (...) of the thresholds with at least this recall; NaN without members or non-members."""
    others = np.where(_has_recall(ranking, recall), ranking.fp, np.inf).min(
        axis=-1, initial=0.0 if recall <= 0.0 else np.inf
    )
    return _where_both(ranking, ratio(ranking.negatives - others, ranking.negatives))


def precision_at_recall(ranking: Ranking, recall: float) -> Array:
    """Highest precision (...) of the thresholds with at least this recall, which is above 0; NaN without members."""
    heights = np.where(_has_recall(ranking, recall), precision_at(ranking.tp, ranking.fp), 0.0)
    return np.where(ranking.positives > 0, heights.max(axis=-1, initial=0.0), np.nan)


def _has_recall(ranking: Ranking, recall: float) -> Mask:
    """Mask (..., c) of the cuts with at least this recall."""
    return ranking.tp >= ((recall - _SLACK) * ranking.positives)[..., None]


def _where_both(ranking: Ranking, values: Array) -> Array:
    return np.where((ranking.positives > 0) & (ranking.negatives > 0), values, np.nan)
