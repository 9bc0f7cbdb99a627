"""Cuts of an order of samples in pieces, and what is read off them: precision, points and areas of the ROC curve."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask, silently

# Sums of weights, or whole numbers where every sample counts 1.
Amounts = NDArray[np.floating | np.integer]

# Cuts handled at once: the arrays of a piece fit in the second-level cache.
BLOCK = 8192


class Block(NamedTuple):
    """Some cuts of a ranking; ``held`` are the members of each, None for one each."""

    tp: Array
    fp: Array
    tp_before: Array
    fp_before: Array
    held: Array | None

    def total(self, values: Array) -> Array:
        """Sum of the members times a value, shape (...)."""
        return np.asarray(np.add.reduce(values)) if self.held is None else np.vecdot(self.held, values)


class Sums(NamedTuple):
    """Pairs lost, sum of precision at the members, and the same by trapezoids; each of shape (...)."""

    losses: Array
    precision: Array
    precision_trapezoid: Array


class Row:
    """The cuts of one row of a batch, asked for in pieces."""

    def __init__(
        self,
        block: Callable[[int, int], Block],
        size: int,
        row: tuple[int, ...],
        *,
        positives: float,
        negatives: float,
    ) -> None:
        self._block, self.size, self._row = block, size, row
        self.positives, self.negatives = positives, negatives

    def part(self, start: int, stop: int) -> tuple[Array, Array, Array, Array]:
        """tp, fp, tp_before and fp_before of some cuts."""
        block, row = self._block(start, stop), self._row
        return block.tp[row], block.fp[row], block.tp_before[row], block.fp_before[row]

    def rates(self, cut: int) -> tuple[float, float, float, float]:
        """TPR and FPR at and before a cut."""
        tp, fp, tp_before, fp_before = (float(values[0]) for values in self.part(cut, cut + 1))
        return tp / self.positives, fp / self.negatives, tp_before / self.positives, fp_before / self.negatives

    def first(self, reached: Callable[[float, float], bool]) -> int:
        """First cut whose (TPR, FPR) fulfil a condition that, once true, stays true; ``size`` if none does."""
        low, high = 0, self.size
        while low < high:
            middle = (low + high) // 2
            if reached(*self.rates(middle)[:2]):
                high = middle
            else:
                low = middle + 1
        return low


def counted(members: Mask) -> NDArray[np.int32]:
    """Members among the first 0, 1, ... n: whole numbers add up several times faster than floats."""
    counts = np.zeros(members.size + 1, dtype=np.int32)
    np.cumsum(members, out=counts[1:])
    return counts


def cumulative(values: Array) -> Array:
    """Sums of the first 0, 1, ... n values along the last axis."""
    sums = np.zeros((*values.shape[:-1], values.shape[-1] + 1))
    np.cumsum(values, axis=-1, out=sums[..., 1:])
    return sums


def precision_at(tp: Array, fp: Array) -> Array:
    """Precision along cuts, 1 in front where nothing is predicted yet."""
    return precision_of(tp, tp + fp)


def precision_of(tp: Amounts, predicted: Array) -> Array:
    """The same by how many samples are predicted."""
    with silently():
        values: Array = tp / predicted
    # Only the first cuts can be empty: the one above all, or those of samples that weigh nothing.
    if np.isnan(values[..., :1]).any():
        values[np.isnan(values)] = 1.0
    return values


def precision_anywhere(tp: Amounts, predicted: Amounts) -> Array:
    """Precision, 1 where nothing is predicted."""
    with silently():
        values: Array = np.true_divide(tp, predicted)
    empty = predicted == 0
    if empty.any():
        values[empty] = 1.0
    return values


def equal_error_rate(row: Row) -> float:
    """FPR where it equals FNR on the polygon of the ROC curve."""
    cut = min(row.first(lambda tpr, fpr: fpr + tpr >= 1.0), row.size - 1)
    tpr, fpr, tpr_before, fpr_before = row.rates(cut)
    if fpr_before + tpr_before >= 1.0:
        # Reached on the level stretch before the cut.
        return 1.0 - tpr_before
    share = (1.0 - fpr_before - tpr_before) / (fpr - fpr_before + tpr - tpr_before)
    return fpr_before + share * (fpr - fpr_before)


def partial_auc(row: Row, max_fpr: float) -> float:
    """Area under the ROC curve up to a false positive rate, standardised (McClish 1989)."""
    limit = max_fpr * row.negatives
    inside = row.first(lambda _, fpr: fpr > max_fpr)
    area = 0.0
    for start in range(0, inside, BLOCK):
        tp, fp, tp_before, fp_before = row.part(start, min(start + BLOCK, inside))
        area += float((tp - tp_before).dot(limit - 0.5 * (fp + fp_before)))
    edge = row.part(inside, inside + 1) if inside < row.size else None
    return standardised_partial_area(area, edge, row.positives, row.negatives, max_fpr)


def standardised_partial_area(
    area: float, edge: tuple[Array, Array, Array, Array] | None, positives: float, negatives: float, max_fpr: float
) -> float:
    """The same by the area in pairs of the cuts that lie within the limit, and the first cut beyond it, if any."""
    limit = max_fpr * negatives
    if edge is not None:
        tp, fp, tp_before, fp_before = edge
        if fp_before[0] < limit:
            run, width = limit - float(fp_before[0]), float(fp[0] - fp_before[0])
            area += 0.5 * run * run / width * float(tp[0] - tp_before[0])
    area /= positives * negatives
    lowest, highest = 0.5 * max_fpr * max_fpr, max_fpr
    return 0.5 * (1.0 + (area - lowest) / (highest - lowest))
