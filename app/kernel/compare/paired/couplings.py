"""What an unknown pairing can do to the difference of two runs on the same items, for any smooth metric."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.draws import Functional
from app.kernel.uncertainty.of_matrices.delta import cell_sensitivities


@dataclass(frozen=True, slots=True, eq=False)
class SortedSlopes:
    """How V values move with the items of one matrix, those of each class sorted by it.

    Attributes:
        sizes: (K) items of each class.
        values: (V, K, K) derivatives by the counts, rising within a class; 0 for empty cells, which no item is in.
        counts: (V, K, K) items that have them.
    """

    sizes: Array
    values: Array
    counts: Array

    @classmethod
    def of(cls, matrix: Array, functional: Functional) -> Self:
        """Those of a functional of a matrix (K, K)."""
        moves, cells = cell_sensitivities(matrix, functional)
        rows, columns = cells.T
        slopes = np.zeros((moves.shape[1], *matrix.shape))
        slopes[:, rows, columns] = (moves / matrix[rows, columns][:, None]).T
        order = np.argsort(slopes, axis=-1, kind="stable")
        counts = np.take_along_axis(np.broadcast_to(matrix, slopes.shape), order, axis=-1)
        return cls(matrix.sum(axis=1), np.take_along_axis(slopes, order, axis=-1), counts)

    @property
    def falling(self) -> Self:
        """The same sorted the other way."""
        return type(self)(self.sizes, self.values[..., ::-1], self.counts[..., ::-1])

    @property
    def sums(self) -> Array:
        """(V, K) over the items of a class."""
        summed: Array = np.vecdot(self.values, self.counts)
        return summed

    @property
    def squares(self) -> Array:
        """(V, K) sums of squares."""
        summed: Array = np.vecdot(self.values**2, self.counts)
        return summed


def difference_variance_bounds(first: SortedSlopes, second: SortedSlopes) -> tuple[Array, Array]:
    """Smallest and largest delta-method variance (V) of the difference of a functional over every pairing of two
    matrices of the same items, class counts fixed.

    The variance is that of the sum of g_a(t, a) - g_b(t, b) over the items, g the derivative of the functional by the
    count of a cell. Within a class the sum of products g_a g_b is greatest when both are sorted alike and smallest when
    they are sorted against each other (Hoeffding 1940).

    Raises:
        ValueError: the class counts differ: these are not the same items.
    """
    if not np.array_equal(first.sizes, second.sizes):
        raise ValueError("the two matrices have different class counts, so they are not of the same items")
    with silently():
        explained = np.where(first.sizes > 0, (first.sums - second.sums) ** 2 / first.sizes, 0.0)
    squares = first.squares + second.squares - explained
    low, high = (
        np.maximum(squares - 2.0 * _products(first, other), 0.0).sum(axis=-1) for other in (second, second.falling)
    )
    return low, high


def _products(first: SortedSlopes, second: SortedSlopes) -> Array:
    """Sums of products (V, K) over the items of each class when they are paired in the order in which they stand.

    All classes and values are looked at as one line of items, the same for both.
    """
    ends = [side.counts.ravel().cumsum() for side in (first, second)]
    cuts = np.unique(np.concatenate([[0.0], *ends]))
    # Sums of weights end a rounding apart.
    cuts = cuts[cuts <= min(end[-1] for end in ends)]
    middles, widths = (cuts[1:] + cuts[:-1]) / 2.0, np.diff(cuts)
    left, right = (np.searchsorted(end, middles) for end in ends)
    products = first.values.ravel()[left] * second.values.ravel()[right] * widths
    n_values, n_classes, n_cells = first.values.shape
    summed = np.bincount(left // n_cells, weights=products, minlength=n_values * n_classes)
    return summed.astype(np.float64, copy=False).reshape(n_values, n_classes)
