"""A batch of contingency tables, classes by clusters, with what more than one metric needs, each computed once."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.matrix.coefficients.expected_information import expected_information, table_information
from app.kernel.numerics.arrays import ABOVE_MINUS_ONE, TINY, Array, Mask, each, inner, lazy, total

# Where a share is above it, its logarithm comes from what is missing to 1.
_HALF = 0.5


class Contingency:
    """Contingency tables of shape (..., R, S): rows are the classes, columns the clusters, in no order.

    Leading axes are a batch. Entries are numbers of samples; non-negative, finite and already checked. Empty rows and
    columns count for nothing.

    Raises:
        ValueError: there are fewer than two axes, or one of the last two is empty.
    """

    def __init__(self, counts: ArrayLike) -> None:
        self.counts: Array = np.asarray(counts, dtype=np.float64)
        shape = self.counts.shape
        if len(shape) < 2 or 0 in shape[-2:]:
            raise ValueError(f"contingency tables need shape (..., R, S), neither of them 0, got {shape}")
        self.n_classes: int = shape[-2]
        self.n_clusters: int = shape[-1]

    @lazy
    def actual(self) -> Array:
        """Members of each class (..., R)."""
        return total(self.counts)

    @lazy
    def predicted(self) -> Array:
        """Members of each cluster (..., S)."""
        columns: Array = np.add.reduce(self.counts, axis=-2)
        return columns

    @lazy
    def n(self) -> Array:
        """All samples (...)."""
        return total(self.actual)

    # Groups that have members.

    @lazy
    def filled_classes(self) -> Array:
        """Classes with members (...)."""
        return np.asarray(np.count_nonzero(self.actual, axis=-1), dtype=np.float64)

    @lazy
    def filled_clusters(self) -> Array:
        """Clusters with members (...)."""
        return np.asarray(np.count_nonzero(self.predicted, axis=-1), dtype=np.float64)

    @lazy
    def all_together(self) -> Mask:
        """One class and one cluster hold everything (...)."""
        return np.asarray((self.filled_classes == 1) & (self.filled_clusters == 1))

    @lazy
    def all_alone(self) -> Mask:
        """Every sample is a class of its own and a cluster of its own (...)."""
        return np.asarray((self.filled_classes == self.n) & (self.filled_clusters == self.n))

    # Ordered pairs of samples (...), exact while n^2 < 2^53.

    @lazy
    def pairs(self) -> Array:
        """All of them with those of a sample and itself, n^2."""
        return self.n * self.n

    @lazy
    def squares(self) -> Array:
        """Sum n_ij^2."""
        return total(np.vecdot(self.counts, self.counts))

    @lazy
    def actual_squares(self) -> Array:
        """Sum P^2."""
        return inner(self.actual, self.actual)

    @lazy
    def predicted_squares(self) -> Array:
        """Sum T^2."""
        return inner(self.predicted, self.predicted)

    @lazy
    def together(self) -> Array:
        """Two samples in one class and in one cluster."""
        return self.squares - self.n

    @lazy
    def apart(self) -> Array:
        """Neither in one class nor in one cluster."""
        return self.pairs + self.squares - self.actual_squares - self.predicted_squares

    # Information, in nats (...).

    @lazy
    def class_entropy(self) -> Array:
        """-sum P/n ln P/n."""
        return _entropy(self.actual, self.n)

    @lazy
    def cluster_entropy(self) -> Array:
        """-sum T/n ln T/n."""
        return _entropy(self.predicted, self.n)

    @lazy
    def information(self) -> Array:
        """Sum n_ij/n ln(n n_ij / (P_i T_j))."""
        return table_information(self.counts, self.actual, self.predicted, self.n)

    @lazy
    def expected_information(self) -> Array:
        """Its mean over all ways to put the samples into clusters of these sizes."""
        return expected_information(self.actual, self.predicted)


def cross_tabulated(
    classes: NDArray[np.integer[Any]], clusters: NDArray[np.integer[Any]], size: int, width: int
) -> Array:
    """Numbers of samples (R, S) from codes (n) of their classes and clusters."""
    cells = classes * width + clusters
    return np.bincount(cells, minlength=size * width).reshape(size, width).astype(np.float64)


def _entropy(sizes: Array, n: Array) -> Array:
    """Entropy of the shares sizes (..., K) of n (...), with all digits where nearly all are in one group."""
    of_all = each(n)
    shares = sizes / of_all
    logarithms = np.where(
        shares > _HALF,
        np.log1p(np.maximum(-(of_all - sizes) / of_all, ABOVE_MINUS_ONE)),
        np.log(np.maximum(shares, TINY)),
    )
    return np.abs(total(shares * logarithms))
