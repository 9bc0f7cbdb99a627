"""Influences of samples on areas under ROC curves and their averages, and partial areas.

One sort per class serves its members and all others (Sun & Xu 2014); ties count half. A ROC curve is a polygon: samples
of one score are one straight edge.
"""

from math import log

import numpy as np

from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.losses import Codes
from app.kernel.samples.rankings import Ranking, cumulative, standardised, under
from app.kernel.samples.scores import Scores

# Differences below this, relative to the values, are rounding.
ROUNDING = 1e-12


def centred(values: Array, weights: Array | None = None, size: float = 0.0) -> Array:
    """Influence of samples on the mean of values (n): their deviations over sqrt(n (n - 1)).

    With weights (n) it is w (v - v_) / sum w, times sqrt(n / (n - 1)): linearised, under sampling with replacement. 0
    where values differ by no more than rounding, relative to their size or to ``size``.
    """
    return centred_by_class(values, np.zeros(values.size, dtype=np.intp), 1, weights, size)


def centred_by_class(values: Array, y: Codes, n_classes: int, weights: Array | None = None, size: float = 0.0) -> Array:
    """Influence on the sum over the classes of their mean of values (n), with weights (n) or without.

    0 in classes whose values differ by rounding only, as in `centred`. Values of samples of weight 0 have no effect.
    """
    each = np.ones(values.size) if weights is None else weights
    used = each > 0
    same = _same(values[used], y[used], n_classes, size)
    values = np.where(used, values, 0.0)
    totals, sizes = np.bincount(y, each, n_classes), np.bincount(y, used, n_classes)
    means = np.bincount(y, each * values, n_classes) / totals
    more = np.sqrt(sizes / np.maximum(sizes - 1.0, 1.0))
    away: Array = each * (values - means[y]) * (more / totals)[y]
    return np.where(same[y], 0.0, away)


def _same(values: Array, y: Codes, n_classes: int, size: float) -> Mask:
    """Mask (K) of the classes in which values (n) differ by no more than rounding."""
    low, high = np.full(n_classes, np.inf), np.full(n_classes, -np.inf)
    np.minimum.at(low, y, values)
    np.maximum.at(high, y, values)
    within: Mask = high - low <= ROUNDING * np.maximum(np.maximum(np.abs(low), np.abs(high)), size)
    return within


def _placements(ranking: Ranking) -> Array:
    """Share (n) of the others below each member, and of the members above each other one, ties half."""
    lost = ranking.above_each(ranking.others_among) / ranking.negatives
    return np.where(ranking.members, 1.0 - lost, ranking.above_each(ranking.members_among) / ranking.positives)


def _in_order(ranking: Ranking) -> Array:
    """Influence (n) of the samples of a ranking with members and others on its area."""
    return centred_by_class(_placements(ranking), ranking.members.astype(np.intp), 2, ranking.weights, 1.0)


def area_variance(ranking: Ranking) -> float:
    """DeLong's variance of the area of a ranking with members and others, in one vector of weights at most."""
    influence = _in_order(ranking)
    return float(influence @ influence)


def area_influence(scores: Scores, code: int) -> Array:
    """Influence (n) of every sample on the area of a class against the rest; NaN without either.

    DeLong, DeLong & Clarke-Pearson (1988): members and non-members are centred separately. With weights each side
    counts by its weights, and both sides are parts of one sample drawn with replacement (Yao, Li & Graubard 2015).
    """
    if not (scores.actual[code] > 0 and scores.rest[code] > 0):
        return np.full(scores.n_samples, np.nan)
    ranking = scores.ranking(code)
    return ranking.in_place(_in_order(ranking))


def precision_influence(scores: Scores, code: int | None) -> Array:
    """Influence (n) of every sample on the average precision of a class, or of all n K entries without one; the shares
    of the members are random too.

    A member counts by the precision at its own cut, and every sample moves the precision at all cuts that it is among:
    the derivatives of AP = sum_i w_i TP_i / (TP_i + FP_i) / P over the members by the weights, times these (the
    infinitesimal jackknife; the same linearisation as in Boyd, Eng & Page 2013), and sqrt(n / (n - 1)).
    """
    ranking = scores.ranking(code)
    members, count = ranking.members, float(ranking.positives)
    held = ranking.each * members
    (_, tp), (_, fp) = ranking.sums_above(ranking.members_among), ranking.sums_above(ranking.others_among)
    with silently():
        # Above all samples that weigh anything nothing is predicted: no member stands there.
        precision, steps = (np.where(held > 0.0, part, 0.0) for part in (tp / (tp + fp), held / (tp + fp) ** 2))
    sums = cumulative(steps * fp), cumulative(steps * tp)
    gained, lost = (upto[-1] - above for above, upto in map(ranking.sums_above, sums))
    away = precision - float(held @ precision) / count
    # A precision is 1 at most: where there are members alone all else is rounding.
    away = np.where(np.abs(away) <= ROUNDING, 0.0, away)
    moved = np.where(members, away + gained, -lost) / count
    of_samples = ranking.in_place(moved).reshape(scores.n_samples, -1).sum(axis=1)
    influence: Array = scores.each * of_samples * scores.whole.scale
    return influence


def pair_influence(scores: Scores, weights: Array) -> tuple[Array, Array]:
    """Areas A(i|j) (K, K) of pairs of classes, 0 on the diagonal, and the influence (n) on sum w_ij A(i|j).

    Hand & Till (2001). A member of i wins in column i against the samples of j below it, a sample of j loses to the
    members of i above it.

    Args:
        scores: Every class has samples.
        weights: (K, K).
    """
    size, counts = scores.n_classes, scores.actual
    placed, areas = np.zeros(scores.n_samples), np.zeros((size, size))
    for code in range(size):
        ranking = scores.ranking(code)
        codes, members, each = scores.y.take(ranking.places), ranking.members, ranking.each
        lost_to = ranking.above_each(ranking.members_among) / counts[code]
        others = np.where(members, 0.0, (weights[code] / counts).take(codes) * each)
        above, upto = ranking.sums_above(cumulative(others))
        beaten = upto[-1] - 0.5 * (above + upto)
        placed[ranking.places] += np.where(members, beaten, weights[code].take(codes) * lost_to)
        areas[code] = np.bincount(codes, lost_to * each, size) / counts
        areas[code, code] = 0.0
    return areas, centred_by_class(placed, scores.y, size, scores.weights, float(weights.max()))


def micro_influence(scores: Scores) -> Array:
    """Influence (n) on the area of all n K entries against the actual classes.

    Every sample is a cluster of its entries (Obuchowski 1997). For two classes these are p and 1 - p, so the place of
    one follows from that of the other, except for ties that the rounding of 1 - p makes or breaks. NaN for scores
    whose entries cannot be put in one order.
    """
    if not scores.have_entries:
        return np.full(scores.n_samples, np.nan)
    members, others = float(scores.actual.sum()), float(scores.rest.sum())
    ranking, inside = scores.ranking(None), scores.members(None)
    placed = ranking.in_place(_placements(ranking))
    if scores.is_mirrored:
        return centred(2.0 * placed[inside], scores.weights, 1.0)
    # Of labels the numbers on both sides are random too.
    away = (placed - float(ranking.auc)) * float(scores.n) / np.where(inside, members, others)
    return centred(away.reshape(scores.n_samples, -1).sum(axis=1), scores.weights, 1.0)


def area_between_recalls(ranking: Ranking, low: float, high: float) -> Array:
    """Area (...) under specificity over recall from ``low`` to ``high``; NaN without members or others."""
    return ranking.each_row(lambda row: under(row.along_recall, low, high))


def mean_over_log_fpr(ranking: Ranking, low: float, high: float) -> Array:
    """Mean recall (...) over the logarithm of the false positive rate from ``low``, above 0, to ``high``."""
    return ranking.each_row(lambda row: under(row.along_fpr, low, high, _logarithmic) / log(high / low))


def _logarithmic(start: Array, end: Array, x: Array, y: Array, slope: Array) -> Array:
    """Integral of y + slope (u - x) over ln u from start to end."""
    width: Array = np.log(end / start)
    return y * width + slope * ((end - start) - x * width)


def standardised_of_recalls(area: Array, low: float, high: float) -> Array:
    """Area over recalls in McClish's (1989) form; the diagonal falls there."""
    return standardised(area, 1.0 - high, 1.0 - low)


def hanley_mcneil_error(area: Array, positives: Array, negatives: Array) -> Array:
    """Standard error of an area from itself and the class sizes, for exponential scores. Hanley & McNeil (1982),
    equations 1 and 2.
    """
    square = area * area
    of_members = area / (2.0 - area) - square
    of_others = 2.0 * square / (1.0 + area) - square
    variance = area * (1.0 - area) + (positives - 1.0) * of_members + (negatives - 1.0) * of_others
    root: Array = np.sqrt(variance / (positives * negatives))
    return root
