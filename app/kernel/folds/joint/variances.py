"""Sampling variances of averages of areas over more than two classes, of what some rows add to them.

What a row adds follows from its places among all samples, which are exact. How its places in the orders of the classes
go together is known of some rows of each class, and these stand for all of it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from app.kernel.folds.entries import Counts
from app.kernel.folds.joint.rows import Rows
from app.kernel.numerics.arrays import Array


class Placed(NamedTuple):
    """Some rows (m) with their places among all samples.

    Attributes:
        rows: The rows.
        own: (K, m) twice the samples of the other side, members or others, above them in the order of each class.
        among_all: (K, m) the same where the probabilities of all classes are one order.
    """

    rows: Rows
    own: Counts
    among_all: Counts


def of_mean_area(placed: Placed, sizes: Sequence[int], areas: Array, *, weighted: bool) -> float:
    """Of the mean of the areas (K), or of that by the shares of the classes, which are as random as all else.

    Args:
        placed: Some rows.
        sizes: Samples of each class, none of them 0.
        areas: The areas.
        weighted: See above.
    """
    codes, total = placed.rows.codes, sum(sizes)
    shares = np.array(sizes) / total if weighted else np.full(areas.size, 1.0 / areas.size)
    influence = np.zeros(codes.size)
    for code, (own, area, share) in enumerate(zip(placed.own, areas.tolist(), shares.tolist(), strict=True)):
        members, others = sizes[code], total - sizes[code]
        inside = codes == code
        lost = np.where(inside, 1.0 - own / (2 * others), own / (2 * members)) - area
        influence += share * lost / np.where(inside, _spread(members), _spread(others))
    if weighted:
        influence += (areas.take(codes) - float(shares @ areas)) / _spread(total)
    return _total(placed.rows, influence, sizes)


def of_area_of_entries(placed: Placed, sizes: Sequence[int], area: float) -> float:
    """Of the area of all probabilities of all classes in one order (Obuchowski 1997).

    Args:
        placed: Some rows.
        sizes: Samples of each class.
        area: The area.
    """
    codes, total, others = placed.rows.codes, sum(sizes), len(sizes) - 1
    actual = codes == np.arange(len(sizes))[:, None]
    shares = placed.among_all / (2 * total * others)
    sums = np.where(actual, 1.0 - shares, shares).sum(axis=0)
    return _total(placed.rows, (sums - 2.0 * area) / _spread(total), sizes)


def _total(rows: Rows, influence: Array, sizes: Sequence[int]) -> float:
    """Sum of squares over all samples of each class by those that were kept of it."""
    counts = rows.counts.astype(np.float64)
    squares, kept = (np.bincount(rows.codes, each, len(sizes)) for each in (counts * influence * influence, counts))
    there = kept > 0
    return float((np.array(sizes)[there] * (squares[there] / kept[there])).sum())


def _spread(size: int) -> float:
    return float(np.sqrt(float(size) * max(size - 1, 1)))
