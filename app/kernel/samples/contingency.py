"""Tables of classes and clusters, and of classes and decisions, and the mutual information of two groupings with its
expectation by chance.

Mutual information and its expectation are sums of e/n g(x/e - 1) over cells with e expected and x observed samples,
g(d) = (1 + d) ln(1 + d) - d. No term is negative, so nothing cancels near independence: the linear part of d sums to 0
over all cells, and over all shufflings.
"""

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.numerics.arrays import ABOVE_MINUS_ONE, TINY, Array, Mask, each, inner, lazy, silently, total
from app.kernel.numerics.scipy_bridge import best_matching
from app.kernel.samples.losses import Codes, sums_by_code

# Above this distance the formula of g keeps its digits; below it the series does.
_NEAR = 0.03
_TERMS = 9
# The omitted tail has less than exp(-60), 1e-26, of the probability.
_TAIL = 60.0
# Largest number of entries of a temporary array.
_AT_ONCE = 1 << 18


def relative_information(distance: Array) -> Array:
    """g(d) = (1 + d) ln(1 + d) - d for d >= -1: 0 at 0, 1 at -1, d^2/2 - d^3/6 + d^4/12 - ... near 0."""
    direct = (1.0 + distance) * np.log1p(np.maximum(distance, np.nextafter(-1.0, 0.0))) - distance
    near = np.abs(distance) < _NEAR
    if not np.any(near):
        return np.asarray(direct)
    small = np.where(near, distance, 0.0)
    series = np.zeros_like(small)
    for power in range(_TERMS + 1, 1, -1):
        series = 1.0 / (power * (power - 1)) - small * series
    return np.where(near, small * small * series, direct)


def expected_information(actual: Array, predicted: Array) -> Array:
    """Mean mutual information (...) of all tables with these margins (..., R) and (..., S), whole numbers. NaN without
    samples.

    The number in a cell is hypergeometric. Its probabilities are ratios of neighbours times that of the most likely
    number, so no factorial is needed. Sizes that occur more than once are computed once. Vinh, Epps & Bailey (2010),
    eq. 24.
    """
    batch = actual.shape[:-1]
    rows, columns = actual.reshape(-1, actual.shape[-1]), predicted.reshape(-1, predicted.shape[-1])
    found = np.array([_of_margins(row, column) for row, column in zip(rows, columns, strict=True)])
    return found.reshape(batch)


def _of_margins(actual: Array, predicted: Array) -> float:
    n = float(actual.sum())
    if n == 0:
        return math.nan
    sizes, times = np.unique(actual[actual > 0], return_counts=True)
    others, other_times = np.unique(predicted[predicted > 0], return_counts=True)
    a, b = (grid.ravel() for grid in np.meshgrid(sizes, others, indexing="ij"))
    weights = np.multiply.outer(times, other_times).ravel() * (a * b / (n * n))
    below, above = _reach(a, b, n)
    # Cells of similar width are computed together, so that few entries are wasted.
    order = np.argsort(below + above)
    mean = 0.0
    start = 0
    with silently():
        while start < order.size:
            # Widths rise, so the last cell of a piece is its widest.
            stop = _piece(below[order] + above[order], start)
            chosen = order[start:stop]
            mean += float(weights[chosen] @ _of_cells(a[chosen], b[chosen], n, below[chosen], above[chosen]))
            start = stop
    return mean


def _piece(widths: Array, start: int) -> int:
    """End of the piece that starts at ``start``: its cells times the widest of them fit into memory, and one always
    does.
    """
    fitting = np.arange(1, widths.size - start + 1) * (widths[start:] + 2.0) <= _AT_ONCE
    return start + max(1, int(np.count_nonzero(np.logical_and.accumulate(fitting))))


def _mode(a: Array, b: Array, n: float) -> Array:
    return np.floor((a + 1.0) * (b + 1.0) / (n + 2.0))


def _reach(a: Array, b: Array, n: float) -> tuple[Array, Array]:
    """Distances below and above the most likely number of a cell within which nearly all probability lies.

    Bernstein's inequality for draws with replacement bounds those without too (Hoeffding 1963, theorem 4); a cell can
    be seen as drawn from either side, so the smaller variance holds.
    """
    mean = a * b / n
    variance = mean * np.minimum(1.0 - a / n, 1.0 - b / n)
    away = _TAIL / 3.0 + np.sqrt(_TAIL * _TAIL / 9.0 + 2.0 * _TAIL * variance)
    mode = _mode(a, b, n)
    low = np.maximum(np.floor(mean - away), np.maximum(0.0, a + b - n))
    high = np.minimum(np.ceil(mean + away), np.minimum(a, b))
    return mode - np.minimum(low, mode), np.maximum(high, mode) - mode


def _of_cells(a: Array, b: Array, n: float, below: Array, above: Array) -> Array:
    """Mean of g over the numbers x that a cell can hold, for cells (c)."""
    mode = _mode(a, b, n)
    mass, sum_of_g = np.zeros(a.size), np.zeros(a.size)
    for steps, sign in ((above, 1.0), (below, -1.0)):
        # Upwards from the most likely number, downwards from the one below it.
        width = int(steps.max()) + 1
        offsets = np.arange(width, dtype=np.float64)
        x = mode[:, None] + sign * offsets
        if sign > 0:
            before = x[:, 1:] - 1.0
            ratios = (a[:, None] - before) * (b[:, None] - before) / (x[:, 1:] * (x[:, 1:] + (n - a - b)[:, None]))
        else:
            after = x[:, 1:] + 1.0
            ratios = after * (after + (n - a - b)[:, None]) / ((a[:, None] - x[:, 1:]) * (b[:, None] - x[:, 1:]))
        chances = np.ones_like(x)
        np.multiply.accumulate(ratios, axis=1, out=chances[:, 1:])
        chances[offsets > steps[:, None]] = 0.0
        if sign < 0:
            chances[:, 0] = 0.0
        product = (a * b)[:, None]
        values = relative_information((np.where(chances > 0, x, 0.0) * n - product) / product)
        mass += chances.sum(axis=1)
        sum_of_g += np.vecdot(chances, values)
    return sum_of_g / mass


# The logarithm of a share above this is computed from its difference to 1.
_HALF = 0.5


@dataclass(frozen=True, eq=False)
class CellPlaces:
    """Places of the cells of tables of classes by clusters that are listed; all others are empty.

    Attributes:
        classes: (C) row of each cell, C >= 1.
        clusters: (C) its column. No cell is listed twice.
        n_classes: R.
        n_clusters: S.
    """

    classes: Codes
    clusters: Codes
    n_classes: int
    n_clusters: int

    @classmethod
    def of(cls, classes: Codes, clusters: Codes, n_classes: int, n_clusters: int) -> tuple[Self, Codes]:
        """The cells in which samples (n) lie, by row and column, and the cell (n) of each sample."""
        found, cell = np.unique(classes * n_clusters + clusters, return_inverse=True)
        return cls(*np.divmod(found, n_clusters), n_classes, n_clusters), cell

    @lazy
    def by_class(self) -> tuple[Codes, Codes]:
        """Cells (C) put in the order of their rows, and where in it each row begins that has any."""
        return _in_order(self.classes)

    @lazy
    def by_cluster(self) -> tuple[Codes, Codes]:
        """Cells (C) put in the order of their columns, and where in it each column begins that has any."""
        return _in_order(self.clusters)


def _in_order(codes: Codes) -> tuple[Codes, Codes]:
    order = np.argsort(codes, kind="stable")
    ordered = codes[order]
    return order, np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1]))


class Contingency:
    """Contingency tables of R classes by S clusters, in no order, by the cells that are not empty.

    Leading axes are a batch of tables with the same cells. Entries are numbers of samples; non-negative, finite and
    already checked. Empty classes and clusters count for nothing.

    Args:
        places: The C cells.
        counts: Samples in each, shape (..., C).

    Raises:
        ValueError: counts are not as many as cells.
    """

    def __init__(self, places: CellPlaces, counts: ArrayLike) -> None:
        self.places = places
        self.counts: Array = np.asarray(counts, dtype=np.float64)
        if self.counts.shape[-1:] != places.classes.shape:
            raise ValueError(f"{places.classes.size} cells need as many counts, got shape {self.counts.shape}")

    @classmethod
    def of_table(cls, table: ArrayLike) -> Self:
        """Return tables (..., R, S) by the cells that are filled in one of them, or one cell where none is.

        Raises:
            ValueError: there are fewer than two axes, or one of the last two is empty.
        """
        dense = np.asarray(table, dtype=np.float64)
        if dense.ndim < 2 or 0 in dense.shape[-2:]:
            raise ValueError(f"contingency tables need shape (..., R, S), neither of them 0, got {dense.shape}")
        filled: Mask = np.logical_or.reduce(dense.reshape(-1, *dense.shape[-2:]), axis=0)
        filled[0, 0] |= not filled.any()
        classes, clusters = np.nonzero(filled)
        return cls(CellPlaces(classes, clusters, *dense.shape[-2:]), dense[..., classes, clusters])

    @lazy
    def actual(self) -> Array:
        """Members of each class (..., R)."""
        return sums_by_code(self.places.classes, self.counts, self.places.n_classes)

    @lazy
    def predicted(self) -> Array:
        """Members of each cluster (..., S)."""
        return sums_by_code(self.places.clusters, self.counts, self.places.n_clusters)

    @lazy
    def n(self) -> Array:
        """All samples (...)."""
        return total(self.actual)

    # Of each cell (..., C).

    @lazy
    def class_sizes(self) -> Array:
        """P_i of its class."""
        return self.actual.take(self.places.classes, axis=-1)

    @lazy
    def cluster_sizes(self) -> Array:
        """T_j of its cluster."""
        return self.predicted.take(self.places.clusters, axis=-1)

    def largest_of(self, places: tuple[Codes, Codes]) -> Array:
        """Sum (...) of the largest cell of each class or of each cluster, by the order of the cells."""
        order, starts = places
        return total(np.maximum.reduceat(self.counts.take(order, axis=-1), starts, axis=-1))

    def at_equal_prevalence(self) -> Self:
        """Tables with every class scaled to the same total, n kept.

        All NaN when one is empty: no factor equalises it.
        """
        with silently():
            scale = each(self.n) / self.places.n_classes / self.actual
        scale = np.where(np.isfinite(scale).all(axis=-1, keepdims=True), scale, np.nan)
        return type(self)(self.places, self.counts * scale.take(self.places.classes, axis=-1))

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

    # Sums (...) over cells of which no two share a class or a cluster; NaN where finding them takes too long.

    @lazy
    def matched(self) -> Array:
        """Largest sum of n_ij."""
        return self._matched(self.counts)

    @lazy
    def matched_recalls(self) -> Array:
        """Largest sum of n_ij / P_i."""
        return self._matched(np.where(self.class_sizes > 0, self.counts / self.class_sizes, 0.0))

    @lazy
    def matched_overlaps(self) -> Array:
        """Largest sum of n_ij / max(P_i, T_j)."""
        larger = np.maximum(self.class_sizes, self.cluster_sizes)
        return self._matched(np.where(larger > 0, self.counts / larger, 0.0))

    def _matched(self, worth: Array) -> Array:
        rows = worth.reshape(-1, worth.shape[-1])
        found = [best_matching(self.places.classes, self.places.clusters, row) for row in rows]
        sums = [np.nan if chosen is None else row[chosen].sum() for row, chosen in zip(rows, found, strict=True)]
        return np.array(sums).reshape(worth.shape[:-1])

    # Ordered pairs of samples (...), exact while n^2 < 2^53.

    @lazy
    def pairs(self) -> Array:
        """All ordered pairs, those of a sample with itself included: n^2."""
        return self.n * self.n

    @lazy
    def squares(self) -> Array:
        """Sum n_ij^2."""
        return inner(self.counts, self.counts)

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
        """Pairs in one class and in one cluster."""
        return self.squares - self.n

    @lazy
    def apart(self) -> Array:
        """Pairs neither in one class nor in one cluster."""
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
        """Sum n_ij/n ln(n n_ij / (P_i T_j)); NaN without samples.

        Vinh, Epps & Bailey (2010), eq. 4. Of an empty cell g is 1, so all of them add what filled ones leave of n^2.
        """
        product = self.class_sizes * self.cluster_sizes
        distance = (self.counts * each(self.n) - product) / product
        # An empty margin contributes 0.
        parts = np.where(product > 0, relative_information(np.where(product > 0, distance, 0.0)) * product, 0.0)
        empty = np.maximum(self.pairs - total(product), 0.0)
        information: Array = (total(parts) + empty) / self.pairs
        return information

    @lazy
    def expected_information(self) -> Array:
        """Expected mutual information of random clusterings with the same cluster sizes."""
        return expected_information(self.actual, self.predicted)


class DecisionTable:
    """Numbers of samples (..., K, M) of classes and of what was decided about them.

    Attributes:
        counts: The same.
        n_classes: K.
        actual: Samples of each class (..., K).
        predicted: Samples about which each was decided (..., M).
        n: All samples (...).
    """

    def __init__(self, counts: ArrayLike) -> None:
        self.counts: Array = np.asarray(counts, dtype=np.float64)
        self.n_classes: int = self.counts.shape[-2]
        self.actual: Array = total(self.counts)
        self.predicted: Array = np.add.reduce(self.counts, axis=-2)
        self.n: Array = total(self.actual)


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
