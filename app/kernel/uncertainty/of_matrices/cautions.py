"""Circumstances in which the intervals of one matrix are known to miss their level, read off the matrix itself."""

from enum import StrEnum

import numpy as np

from app.kernel.numerics.arrays import Array, Mask, ratio, silently
from app.kernel.uncertainty.design import Prior
from app.kernel.uncertainty.of_matrices.posterior import pseudo_counts


class Caution(StrEnum):
    """What intervals of one matrix may suffer from, whatever the metric."""

    EMPTY_CLASS = "empty_class"
    FEWER_THAN_FIVE = "fewer_than_five_samples"
    MANY_SMALL_CLASSES = "many_small_classes"
    PERFECT_SMALL_CLASSES = "perfect_small_classes"
    INFORMATIVE_PRIOR = "informative_prior"


_FEW = 5
# Beyond these, 95 % intervals of G, H or A held the truth less than 93 times in 100 in most of the settings simulated:
# 2 to 100 classes of 5 to 100 samples, recalls alike, spread out, or weak in one class (benchmarks/coverage.py).
_CURVATURE = 0.6
_PULL = 0.6
_SEVERAL_CLASSES = 8


def cautions(counts: Array, prior: Prior = Prior.EDGE) -> tuple[Caution, ...]:
    """What to be careful about with one matrix (K, K), whatever the metric."""
    actual = counts.sum(axis=-1)
    size, present = counts.shape[-1], actual > 0
    several = np.count_nonzero(present) >= _SEVERAL_CLASSES
    tests = {
        Caution.EMPTY_CLASS: not present.all(),
        Caution.FEWER_THAN_FIVE: bool(few_samples(actual).any()),
        Caution.MANY_SMALL_CLASSES: several and curvature(counts) > _CURVATURE,
        Caution.PERFECT_SMALL_CLASSES: several and prior is Prior.EDGE and edge_pull(counts) > _PULL,
        Caution.INFORMATIVE_PRIOR: prior in (Prior.UNIFORM, Prior.JEFFREYS_RECALL) and size > 2,
    }
    return tuple(caution for caution, holds in tests.items() if holds)


def few_samples(actual: Array) -> Mask:
    """Which classes (K) have some samples, and fewer than five, of these numbers of samples (K)."""
    few: Mask = (actual > 0) & (actual < _FEW)
    return few


def curvature(counts: Array) -> float:
    """Bias of the mean of 1/recall over its standard error, for one matrix (K, K).

    By the delta method, for a recall r of n samples, E[1/r^] - 1/r = (1-r)/(n r^2) and Var[1/r^] = (1-r)/(n r^3). Both
    are summed over the classes, so the ratio grows with the square root of their number. Classes with a recall of 0,
    for which no such expansion exists, are left out.
    """
    actual = counts.sum(axis=-1)
    with silently():
        recall = ratio(np.diagonal(counts), actual)
        missed = np.where(recall > 0, (1.0 - recall) / (actual * recall**2), 0.0)
        spread = np.sqrt(np.sum(np.where(recall > 0, missed / recall, 0.0)))
    return float(missed.sum() / spread) if spread > 0 else 0.0


def edge_pull(counts: Array) -> float:
    """How far the edge prior moves balanced accuracy, in standard deviations of its posterior, for one matrix (K, K).

    Each recall of 1 of n samples is taken for (n + 1/2)/(n + 1): right for one class, too pessimistic for many.
    """
    parameters = counts + pseudo_counts(counts, Prior.EDGE)
    right, both = np.diagonal(parameters), parameters.sum(axis=-1)
    with silently():
        expected = ratio(right, both)
        variance = expected * (1.0 - expected) / (both + 1.0)
        moved = expected - ratio(np.diagonal(counts), counts.sum(axis=-1))
    return float(abs(np.nansum(moved)) / np.sqrt(np.nansum(variance))) if np.nansum(variance) > 0 else 0.0
