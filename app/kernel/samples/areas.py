"""Influences of samples on areas under ROC curves and their averages, and partial areas.

One sort per class serves its members and all others (Sun & Xu 2014); ties count half. A ROC curve is a polygon: samples
of one score are one straight edge.
"""

from collections.abc import Callable
from math import log

import numpy as np

from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.losses import Codes
from app.kernel.samples.rankings import Ranking, Row, amounts_between, cumulative, last_of_ties, standardised
from app.kernel.samples.scores import Places, Scores

# Differences below this, relative to the values, are rounding.
ROUNDING = 1e-12


def centred(values: Array, weights: Array | None = None, size: float = 0.0) -> Array:
    """Influence of samples on the mean of values (n): their deviations over sqrt(n (n - 1)).

    With weights (n) it is w (v - v_) / sum w, times sqrt(n / (n - 1)): linearised, under sampling with replacement. 0
    where values differ by no more than rounding, relative to their size or to ``size``.
    """
    if weights is not None:
        return centred_by_class(values, np.zeros(values.size, dtype=np.intp), 1, weights, size)
    low, high, count = values.min(), values.max(), values.size
    if _is_rounding(low, high, size):
        return np.zeros(count)
    scaled: Array = (values - values.mean()) / np.sqrt(count * max(count - 1, 1))
    return scaled


def centred_by_class(values: Array, y: Codes, n_classes: int, weights: Array | None = None, size: float = 0.0) -> Array:
    """Influence on the sum over the classes of their mean of values (n), with weights (n) or without.

    0 in classes whose values differ by rounding only, as in `centred`. Values of samples of weight 0 have no effect.
    """
    if weights is not None:
        used = weights > 0
        same = _same(values[used], y[used], n_classes, size)
        values = np.where(used, values, 0.0)
        totals, sizes = np.bincount(y, weights, n_classes), np.bincount(y, used, n_classes)
        means = np.bincount(y, weights * values, n_classes) / totals
        more = np.sqrt(sizes / np.maximum(sizes - 1.0, 1.0))
        away: Array = weights * (values - means[y]) * (more / totals)[y]
        return np.where(same[y], 0.0, away)
    sizes = np.bincount(y, minlength=n_classes)
    means = np.bincount(y, values, n_classes) / sizes
    scaled: Array = (values - means[y]) / np.sqrt(sizes * np.maximum(sizes - 1, 1))[y]
    return np.where(_same(values, y, n_classes, size)[y], 0.0, scaled)


def _same(values: Array, y: Codes, n_classes: int, size: float) -> Mask:
    """Mask (K) of the classes in which values (n) differ by no more than rounding."""
    low, high = np.full(n_classes, np.inf), np.full(n_classes, -np.inf)
    np.minimum.at(low, y, values)
    np.maximum.at(high, y, values)
    return _is_rounding(low, high, size)


def _is_rounding(low: Array, high: Array, size: float) -> Mask:
    within: Mask = high - low <= ROUNDING * np.maximum(np.maximum(np.abs(low), np.abs(high)), size)
    return within


def area_influences(scores: Scores) -> tuple[Array, Array]:
    """Areas (K) of the classes against the rest, and the influence (K, n) of every sample on them.

    DeLong, DeLong & Clarke-Pearson (1988): members and non-members are centred separately. NaN for a class without
    either. With weights each side counts by its weights, and both sides are parts of one sample drawn with replacement
    (Yao, Li & Graubard 2015).
    """
    size = scores.n_classes
    areas, influence = np.full(size, np.nan), np.full((size, scores.n_samples), np.nan)
    for code in np.flatnonzero((scores.actual > 0) & (scores.rest > 0)).tolist():
        ranking = scores.ranking(code)
        members, weights, negatives = ranking.members, ranking.weights, float(ranking.negatives)
        areas[code] = ranking.auc
        above, others = _above_others(ranking)
        away = above - float(others @ above) / negatives
        count = int(np.count_nonzero(~members if weights is None else weights[~members]))
        away *= (np.abs(away) > ROUNDING) * (count / max(count - 1, 1)) ** 0.5 / negatives
        moved = ranking.stepwise(away) * (1.0 if weights is None else weights)
        below = 1.0 - ranking.others_above / negatives
        moved[members] = centred(below, None if weights is None else weights[members], 1.0)
        influence[code][scores.ordered(code)[0][::-1].astype(np.intp)] = moved
    return areas, influence


def _above_others(ranking: Ranking) -> tuple[Array, Array]:
    """Share (2 c + 1) of the members above the others that stand between two cuts, at a cut, or below all, ties half;
    and the weight (2 c + 1) of these others.
    """
    tp, before, all_members = ranking.tp, ranking.tp_before, ranking.positives
    above = np.append(np.stack([before, 0.5 * (before + tp)], axis=1), all_members) / all_members
    return above, amounts_between(ranking.fp_before, ranking.fp, ranking.negatives)


def _mass(scores: Scores, code: int | None) -> Array:
    """Weights (n) of the samples, 1 each where they have none; without a class (n K) of all entries."""
    each = np.ones(scores.n_samples) if scores.weights is None else scores.weights
    return each if code is not None else np.repeat(each, scores.n_classes)


def precision_influence(scores: Scores, code: int | None) -> Array:
    """Influence (n) of every sample on the average precision of a class, or of all n K entries without one; the shares
    of the members are random too.

    A member counts by the precision at its own cut, and every sample moves the precision at all cuts that it is among:
    the derivatives of AP = sum_i w_i TP_i / (TP_i + FP_i) / P over the members by the weights, times these (the
    infinitesimal jackknife; the same linearisation as in Boyd, Eng & Page 2013), and sqrt(n / (n - 1)).
    """
    order, rising = scores.ordered(code)
    members, weights = scores.members(code).take(order), _mass(scores, code).take(order)
    ends = last_of_ties(rising)
    ends = np.arange(order.size) if ends is None else ends
    sizes = np.diff(ends, prepend=-1)
    held, others = np.where(members, weights, 0.0), np.where(members, 0.0, weights)
    tp, fp = (np.repeat(mass.sum() - cumulative(mass).take(ends + 1 - sizes), sizes) for mass in (held, others))
    count = float(held.sum())
    with silently():
        # Above all samples that weigh anything nothing is predicted: no member stands there.
        precision, steps = (np.where(held > 0.0, part, 0.0) for part in (tp / (tp + fp), held / (tp + fp) ** 2))
    gained, lost = (np.repeat(np.cumsum(steps * mass).take(ends), sizes) for mass in (fp, tp))
    mean = float(held @ precision) / count
    moved = np.empty(order.size)
    moved[order] = np.where(members, precision - mean + gained, -lost) / count
    each = _mass(scores, 0)
    used = int(np.count_nonzero(each))
    influence: Array = each * moved.reshape(each.size, -1).sum(axis=1) * float(np.sqrt(used / max(used - 1, 1)))
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
    each = np.ones(scores.n_samples) if scores.weights is None else scores.weights
    placed, areas = np.zeros(scores.n_samples), np.zeros((size, size))
    for code in range(size):
        order, below = _ordered(scores, code)
        codes = scores.y.take(order)
        members = codes == code
        mass = each.take(order)
        beaten = below(np.where(members, 0.0, (weights[code] / counts).take(codes) * mass))
        lost_to = 1.0 - below(np.where(members, mass, 0.0) / counts[code])
        placed[order] += np.where(members, beaten, weights[code].take(codes) * lost_to)
        areas[code] = np.bincount(codes, lost_to * mass, size) / counts
        areas[code, code] = 0.0
    return areas, centred_by_class(placed, scores.y, size, scores.weights, float(weights.max()))


def micro_influence(scores: Scores) -> Array:
    """Influence (n) on the area of all n K entries against the actual classes.

    Every sample is a cluster of its entries (Obuchowski 1997). For two classes these are p and 1 - p, so the place of
    one follows from that of the other, except for ties that the rounding of 1 - p makes or breaks.
    """
    members, others = float(scores.actual.sum()), float(scores.rest.sum())
    entries, order, inside = scores.entries, scores.ordered(None)[0][::-1], scores.members(None)
    # Share of the others below each actual class and of the actual classes above each other entry, ties half.
    placed = np.empty(order.size)
    placed[order] = entries.members_above / members
    placed[order[entries.members]] = 1.0 - entries.others_above / others
    if scores.is_mirrored:
        return centred(2.0 * placed[inside], scores.weights, 1.0)
    # Of labels the numbers on both sides are random too.
    away = (placed - float(scores.area_of_entries)) * float(scores.n) / np.where(inside, members, others)
    return centred(away.reshape(scores.n_samples, -1).sum(axis=1), scores.weights, 1.0)


def _ordered(scores: Scores, code: int | None) -> tuple[Places, Callable[[Array], Array]]:
    """Rising order of the scores (n) of a class, and a function that sums a mass (n) in that order below each score,
    ties half.
    """
    order, ordered = scores.ordered(code)
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    ends = np.append(starts[1:], order.size)

    def below(mass: Array) -> Array:
        sums = cumulative(mass)
        if starts.size == order.size:
            return sums[:-1] + 0.5 * mass
        return np.repeat(0.5 * (sums.take(starts) + sums.take(ends)), ends - starts)

    return order, below


def area_variance(ranking: Ranking) -> float:
    """DeLong's variance of the area of one class from the counts along its cuts, without another sort.

    Args:
        ranking: Unweighted, with members and non-members.
    """
    members, others = float(ranking.positives), float(ranking.negatives)
    lost = 0.5 * (ranking.fp + ranking.fp_before) / others
    of_members = _spread(lost, ranking.tp - ranking.tp_before)
    return of_members / members + _spread(*_above_others(ranking)) / others


def _spread(values: Array, counts: Array) -> float:
    """Variance over n - 1 of values with multiplicities."""
    size = float(counts.sum())
    away = values - float(counts @ values) / size
    return float(counts @ (away * away)) / max(size - 1.0, 1.0)


# Ends x1, x2 of edges and the heights y1, y2 there, x rising, each (e).
Edges = tuple[Array, Array, Array, Array]


def area_between(ranking: Ranking, low: float, high: float) -> Array:
    """Area (...) under recall over the false positive rate from ``low`` to ``high``; NaN without members or others."""
    return ranking.each_row(lambda row: _under(_along_fpr(row), low, high, _plain))


def area_between_recalls(ranking: Ranking, low: float, high: float) -> Array:
    """Area (...) under specificity over recall from ``low`` to ``high``; NaN without members or others."""
    return ranking.each_row(lambda row: _under(_along_recall(row), low, high, _plain))


def mean_over_log_fpr(ranking: Ranking, low: float, high: float) -> Array:
    """Mean recall (...) over the logarithm of the false positive rate from ``low``, above 0, to ``high``."""
    return ranking.each_row(lambda row: _under(_along_fpr(row), low, high, _logarithmic) / log(high / low))


def _along_fpr(row: Row) -> Edges:
    tp, fp, tp_before, fp_before, *_ = row
    # Level up to each cut, then the edge of the cut; level to the end after the last.
    x = np.concatenate([[0.0], np.stack([fp_before, fp], axis=-1).ravel() / row.negatives, [1.0]])
    y = np.concatenate([[0.0], np.stack([tp_before, tp], axis=-1).ravel() / row.positives, [1.0]])
    return x[:-1], x[1:], y[:-1], y[1:]


def _along_recall(row: Row) -> Edges:
    tp, fp, tp_before, fp_before, *_ = row
    return (
        tp_before / row.positives,
        tp / row.positives,
        1.0 - fp_before / row.negatives,
        1.0 - fp / row.negatives,
    )


def _under(
    edges: Edges, low: float, high: float, integral: Callable[[Array, Array, Array, Array, Array], Array]
) -> float:
    """Integral of the heights between two abscissae."""
    x1, x2, y1, y2 = edges
    start, end = np.maximum(x1, low), np.minimum(x2, high)
    held = start < end
    x1, x2, y1, y2 = x1[held], x2[held], y1[held], y2[held]
    return float(integral(start[held], end[held], x1, y1, (y2 - y1) / (x2 - x1)).sum())


def _plain(start: Array, end: Array, x: Array, y: Array, slope: Array) -> Array:
    """Integral of y + slope (u - x) over u from start to end."""
    middle: Array = 0.5 * (start + end) - x
    return (end - start) * (y + slope * middle)


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
