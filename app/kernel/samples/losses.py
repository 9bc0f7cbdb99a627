"""Sums over samples of phi, proper losses and counts, in pieces that fit in the cache."""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, silently

Codes = NDArray[np.intp]

# Probabilities below this are raised to it, as in scikit-learn.
CLIP = float(np.finfo(np.float64).eps)
# Tolerance of limits such as 1/3, which have no exact binary form.
TOLERANCE = 1e-12
# Entries per piece: the arrays of a piece fit in the second-level cache.
_BLOCK = 32768


class Losses(NamedTuple):
    """Sums over the samples of each class, shape (..., K), and the extremes of p_true.

    ``log_loss`` is -ln p_true, clipped. The squared error is (y - p)^2 for two classes and the sum over all classes for
    more. ``cosine`` is p_true / ||p||. ``sure`` counts p_true > 1/2 and ``ruled_out`` p_true < 1/K. ``undecided``
    counts the others by itself: a difference of sums of weights would not be exactly 0.
    """

    log_loss: Array
    squared_error: Array
    cosine: Array
    sure: Array
    ruled_out: Array
    undecided: Array
    lowest: float
    highest: float


def phi_of(p_true: Array) -> Array:
    """1 - sqrt(1 - sqrt(p)), any shape: 1 minus the Hellinger distance between a row and the truth."""
    values: Array = np.sqrt(p_true)
    np.subtract(1.0, values, out=values)
    with silently():
        np.sqrt(values, out=values)
    return np.subtract(1.0, values, out=values)


def threshold_correct() -> float:
    """1 - eta = 1 - sqrt(1 - sqrt(1/2)): a phi above it means p_true > 1/2, so the prediction is right."""
    return 1.0 - sqrt(1.0 - sqrt(0.5))


def threshold_incorrect(n_classes: int) -> float:
    """1 - theta = 1 - sqrt(1 - 1/sqrt(K)): a phi below it means p_true < 1/K, so the prediction is wrong."""
    return 1.0 - sqrt(1.0 - 1.0 / sqrt(n_classes))


def true_probabilities(probabilities: Array, y: Codes) -> Array:
    """p_true (n,): the entry of the actual class in each row (n, K)."""
    size, n_classes = probabilities.shape
    entries = np.arange(0, size * n_classes, n_classes)
    entries += y
    return probabilities.ravel().take(entries)


def sums_by_code(
    codes: NDArray[np.intp | np.bool_], values: NDArray[np.floating | np.integer], n_classes: int
) -> Array:
    """Sum of values (..., n) over the samples of each class, shape (..., K)."""
    rows = values.reshape(-1, codes.size)
    counted = np.stack([np.bincount(codes, row, n_classes) for row in rows]).astype(np.float64, copy=False)
    return counted.reshape(*values.shape[:-1], n_classes)


def losses_by_class(probabilities: Array, y: Codes, weights: Array | None) -> Losses:
    """All sums over rows (n, K) with codes (n,) and weights (..., n)."""
    n_classes = probabilities.shape[1]
    sums = np.zeros((*(() if weights is None else weights.shape[:-1]), 6, n_classes))
    one_hot = np.eye(n_classes)
    low, high = 1.0 / n_classes - TOLERANCE, 0.5 + TOLERANCE
    lowest, highest = np.inf, -np.inf
    size = max(_BLOCK // n_classes, 1)
    for start in range(0, y.size, size):
        part = slice(start, start + size)
        columns = np.array(probabilities[part].T, order="C", copy=True)
        truth = one_hot.take(y[part], axis=0)
        p_true = true_probabilities(probabilities[part], y[part])
        lowest, highest = min(lowest, float(p_true.min())), max(highest, float(p_true.max()))
        values = np.empty((6, p_true.size))
        np.log(np.maximum(p_true, CLIP), out=values[0])
        np.divide(p_true, np.sqrt(np.einsum("kn,kn->n", columns, columns)), out=values[2])
        columns -= truth.T
        error = columns[-1:] if n_classes == 2 else columns
        np.einsum("kn,kn->n", error, error, out=values[1])
        values[3], values[4] = p_true > high, p_true < low
        values[5] = 1.0 - values[3] - values[4]
        sums += (values if weights is None else weights[..., None, part] * values) @ truth
    log_p, squared_error, cosine, sure, ruled_out, undecided = (sums[..., row, :] for row in range(6))
    return Losses(-log_p, squared_error, cosine, sure, ruled_out, undecided, lowest, highest)
