"""What an unknown pairing can do to the difference of two runs on the same items, for any smooth metric."""

import numpy as np

from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Functional
from app.kernel.uncertainty.of_matrices.delta import cell_sensitivities


def difference_variance_bounds(first: Array, second: Array, functional: Functional) -> tuple[Array, Array]:
    """Smallest and largest delta-method variance (V) of the difference of a functional over every pairing of two
    matrices (K, K) of the same items, class counts fixed.

    The variance is that of the sum of g_a(t, a) - g_b(t, b) over the items, g the derivative of the functional by the
    count of a cell. Within a class the sum of products g_a g_b is greatest when both are sorted alike and smallest when
    they are sorted against each other (Hoeffding 1940).

    Raises:
        ValueError: the row sums differ: these are not the same items.
    """
    if not np.array_equal(first.sum(axis=1), second.sum(axis=1)):
        raise ValueError("the two matrices have different class counts, so they are not of the same items")
    slopes = [_slopes(matrix, functional) for matrix in (first, second)]
    count = slopes[0].shape[-1]
    bounds = np.zeros((2, count))
    for actual in np.flatnonzero(first.sum(axis=1)):
        weights = first[actual], second[actual]
        for value in range(count):
            bounds[:, value] += _class_bounds(slopes[0][actual, :, value], slopes[1][actual, :, value], *weights)
    return bounds[0], bounds[1]


def _slopes(matrix: Array, functional: Functional) -> Array:
    """Derivatives (K, K, V) by the counts; 0 for empty cells, which no item is in."""
    moves, cells = cell_sensitivities(matrix, functional)
    slopes = np.zeros((*matrix.shape, moves.shape[1]))
    slopes[cells[:, 0], cells[:, 1]] = moves / matrix[cells[:, 0], cells[:, 1]][:, None]
    return slopes


def _class_bounds(first: Array, second: Array, first_counts: Array, second_counts: Array) -> tuple[float, float]:
    """Smallest and largest sum of squares around its mean of first - second over the items of one class."""
    total = first_counts.sum()
    gap = float(first @ first_counts - second @ second_counts)
    squares = float(first**2 @ first_counts + second**2 @ second_counts) - gap * gap / total
    alike = _products(first, second, first_counts, second_counts)
    against = -_products(first, -second, first_counts, second_counts)
    return max(squares - 2.0 * alike, 0.0), max(squares - 2.0 * against, 0.0)


def _products(first: Array, second: Array, first_counts: Array, second_counts: Array) -> float:
    """Sum of products over items when both sides are sorted alike."""
    one, other = np.argsort(first, kind="stable"), np.argsort(second, kind="stable")
    ends = np.cumsum(first_counts[one]), np.cumsum(second_counts[other])
    cuts = np.unique(np.concatenate([[0.0], *ends]))
    middles, widths = (cuts[1:] + cuts[:-1]) / 2.0, np.diff(cuts)
    left = first[one][np.searchsorted(ends[0], middles)]
    right = second[other][np.searchsorted(ends[1], middles)]
    return float((left * right) @ widths)
