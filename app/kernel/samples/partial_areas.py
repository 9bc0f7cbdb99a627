"""Areas under a part of the ROC curve, which is a polygon: samples of one score are one straight edge."""

from collections.abc import Callable
from math import log

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.samples.rankings.cuts import Row
from app.kernel.samples.rankings.ranking import Ranking

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
    tp, fp, tp_before, fp_before = row.part(0, row.size)
    # Level up to each cut, then its edge, and level to the end.
    x = np.concatenate([[0.0], np.stack([fp_before, fp], axis=-1).ravel() / row.negatives, [1.0]])
    y = np.concatenate([[0.0], np.stack([tp_before, tp], axis=-1).ravel() / row.positives, [1.0]])
    return x[:-1], x[1:], y[:-1], y[1:]


def _along_recall(row: Row) -> Edges:
    tp, fp, tp_before, fp_before = row.part(0, row.size)
    return (
        tp_before / row.positives,
        tp / row.positives,
        1.0 - fp_before / row.negatives,
        1.0 - fp / row.negatives,
    )


def _under(
    edges: Edges, low: float, high: float, integral: Callable[[Array, Array, Array, Array, Array], Array]
) -> float:
    """Integral of the heights between two places."""
    x1, x2, y1, y2 = edges
    start, end = np.maximum(x1, low), np.minimum(x2, high)
    held = start < end
    x1, x2, y1, y2 = x1[held], x2[held], y1[held], y2[held]
    return float(integral(start[held], end[held], x1, y1, (y2 - y1) / (x2 - x1)).sum())


def _plain(start: Array, end: Array, x: Array, y: Array, slope: Array) -> Array:
    """Of y + slope (u - x) over u."""
    middle: Array = 0.5 * (start + end) - x
    return (end - start) * (y + slope * middle)


def _logarithmic(start: Array, end: Array, x: Array, y: Array, slope: Array) -> Array:
    """Of the same over ln u."""
    width: Array = np.log(end / start)
    return y * width + slope * ((end - start) - x * width)


def standardised(area: Array, low: float, high: float) -> Array:
    """McClish's (1989) form of an area: 1/2 is that of the diagonal, 1 the largest that there is."""
    chance, largest = 0.5 * (high - low) * (high + low), high - low
    return 0.5 * (1.0 + (area - chance) / (largest - chance))


def standardised_of_recalls(area: Array, low: float, high: float) -> Array:
    """The same of an area over recalls, where the diagonal falls."""
    return standardised(area, 1.0 - high, 1.0 - low)


def hanley_mcneil_error(area: Array, positives: Array, negatives: Array) -> Array:
    """Standard error of an area from itself and the class sizes, as if the scores were exponential. Hanley & McNeil
    (1982), equations 1 and 2.
    """
    square = area * area
    of_members = area / (2.0 - area) - square
    of_others = 2.0 * square / (1.0 + area) - square
    variance = area * (1.0 - area) + (positives - 1.0) * of_members + (negatives - 1.0) * of_others
    root: Array = np.sqrt(variance / (positives * negatives))
    return root
