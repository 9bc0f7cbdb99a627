"""Tables of classes and clusters, and of classes and decisions, and the mutual information of two groupings with its
expectation by chance.

Mutual information and its expectation are sums of e/n g(x/e - 1) over cells with e expected and x observed samples,
g(d) = (1 + d) ln(1 + d) - d. No term is negative, so nothing cancels near independence: the linear part of d sums to 0
over all cells, and over all shufflings.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.numerics.arrays import ABOVE_MINUS_ONE, TINY, Array, Mask, each, inner, lazy, ratio, silently, total
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

    The number in a cell is hypergeometric. Its probabilities are products of ratios of neighbours, so no factorial is
    needed. Sizes that occur more than once are computed once. Vinh, Epps & Bailey (2010),
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
    return float(times @ _expected_parts(sizes, others, n) @ other_times)


def _expected_parts(sizes: Array, others: Array, n: float) -> Array:
    """Parts (A, B) of the expectation in cells of a class and a cluster of these sizes (A) and (B)."""
    a, b = (grid.ravel() for grid in np.meshgrid(sizes, others, indexing="ij"))
    return _expected_in(a, b, n).reshape(sizes.size, others.size)


def _expected_in(a: Array, b: Array, n: float) -> Array:
    """Parts (c) of the expectation of single cells."""
    low, high = _reach(a, b, n)
    # Cells of similar width are computed together, so that few entries are wasted.
    order = np.argsort(high - low)
    found = np.empty(a.size)
    start = 0
    with silently():
        while start < order.size:
            # Widths rise, so the last cell of a piece is its widest.
            stop = _piece((high - low)[order], start)
            chosen = order[start:stop]
            found[chosen] = _of_cells(a[chosen], b[chosen], n, low[chosen], high[chosen])
            start = stop
    return found * (a * b / (n * n))


def _expected_moves(sizes: Array, others: Array, n: float) -> Array:
    """Change (A) of the expectation with one more member of a class or cluster of each size (A), by those of one more
    and of one less, n kept; ``others`` (B) are the sizes on the other side.
    """
    different, place = np.unique(sizes, return_inverse=True)
    on_other_side, times = np.unique(others[others > 0], return_counts=True)
    above, below = np.minimum(different + 1.0, n), np.maximum(different - 1.0, 0.0)
    near, back = np.unique(np.concatenate([above, below]), return_inverse=True)
    sums = np.zeros(near.size)
    sums[near > 0] = _expected_parts(near[near > 0], on_other_side, n) @ times
    up, down = np.split(sums[back], 2)
    moves: Array = ((up - down) / (above - below))[place]
    return moves


def _piece(widths: Array, start: int) -> int:
    """End of the piece that starts at ``start``: its cells times the widest of them fit into memory, and one always
    does.
    """
    fitting = np.arange(1, widths.size - start + 1) * (widths[start:] + 2.0) <= _AT_ONCE
    return start + max(1, int(np.count_nonzero(np.logical_and.accumulate(fitting))))


def _reach(a: Array, b: Array, n: float) -> tuple[Array, Array]:
    """Lowest and highest number of a cell between which nearly all probability lies.

    Bernstein's inequality for draws with replacement bounds those without too (Hoeffding 1963, theorem 4); a cell can
    be seen as drawn from either side, so the smaller variance holds.
    """
    mean = a * b / n
    variance = mean * np.minimum(1.0 - a / n, 1.0 - b / n)
    away = _TAIL / 3.0 + np.sqrt(_TAIL * _TAIL / 9.0 + 2.0 * _TAIL * variance)
    low = np.maximum(np.floor(mean - away), np.maximum(0.0, a + b - n))
    return low, np.minimum(np.ceil(mean + away), np.minimum(a, b))


def _of_cells(a: Array, b: Array, n: float, low: Array, high: Array) -> Array:
    """Mean of g over the numbers x that a cell can hold, for cells (c)."""
    x = low[:, None] + np.arange((high - low).max() + 1.0)
    before, after = x[:, :-1], x[:, 1:]
    # Of the lowest number the chance is 1 here: that of the most likely one is below 1e100.
    chances = np.ones_like(x)
    ratios = (a[:, None] - before) * (b[:, None] - before) / (after * (after + (n - a - b)[:, None]))
    np.multiply.accumulate(ratios, axis=1, out=chances[:, 1:])
    chances[x > high[:, None]] = 0.0
    product = (a * b)[:, None]
    values = relative_information((np.where(chances > 0, x, 0.0) * n - product) / product)
    return np.asarray(np.vecdot(chances, values) / chances.sum(axis=1))


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


def _of_table(meaning: str, compute: "Callable[[Contingency], Array]") -> "lazy[Contingency, Array]":
    return lazy(compute, meaning)


class Contingency:
    """Contingency tables of R classes by S clusters, in no order, by the cells that are not empty.

    Leading axes are a batch of tables with the same cells. Entries are numbers of samples; non-negative, finite and
    already checked. Empty classes and clusters count for nothing.

    Args:
        places: The C cells.
        counts: Samples in each, shape (..., C).
        cell: The cell (n) of each sample that was counted; None where the cells are all that is known.
        is_weighted: Are counts sums of weights?

    Raises:
        ValueError: counts are not as many as cells.
    """

    def __init__(
        self, places: CellPlaces, counts: ArrayLike, cell: Codes | None = None, *, is_weighted: bool = False
    ) -> None:
        self.places, self.cell, self.is_weighted = places, cell, is_weighted
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

    n = _of_table("All samples (...).", lambda c: total(c.actual))

    # Of each cell (..., C).

    class_sizes = _of_table("P_i of its class.", lambda c: c.actual.take(c.places.classes, axis=-1))
    cluster_sizes = _of_table("T_j of its cluster.", lambda c: c.predicted.take(c.places.clusters, axis=-1))

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
        return np.asarray((self.actual_squares == self.n) & (self.predicted_squares == self.n))

    # Sums (...) over the largest cells.

    @lazy
    def largest_in_clusters(self) -> Array:
        """Samples in the largest cell of each cluster."""
        return self._largest(*self.places.by_cluster)

    @lazy
    def largest_in_classes(self) -> Array:
        """Samples in the largest cell of each class."""
        return self._largest(*self.places.by_class)

    def _largest(self, order: Codes, starts: Codes) -> Array:
        return total(np.maximum.reduceat(self.counts.take(order, axis=-1), starts, axis=-1))

    # Sums (...) over cells of which no two share a class or a cluster; NaN where finding them takes too long.

    matched = _of_table("Largest sum of n_ij.", lambda c: c._matched(c.counts))

    @lazy
    def recalls(self) -> Array:
        """Shares n_ij / P_i of the class that each cell holds (..., C)."""
        return np.where(self.class_sizes > 0, ratio(self.counts, self.class_sizes), 0.0)

    @lazy
    def overlaps(self) -> Array:
        """Shares n_ij / max(P_i, T_j) of the larger one that each cell holds (..., C)."""
        larger = np.maximum(self.class_sizes, self.cluster_sizes)
        return np.where(larger > 0, ratio(self.counts, larger), 0.0)

    matched_recalls = _of_table("Largest sum of n_ij / P_i.", lambda c: c._matched(c.recalls))
    matched_overlaps = _of_table("Largest sum of n_ij / max(P_i, T_j).", lambda c: c._matched(c.overlaps))

    def _matched(self, worth: Array) -> Array:
        rows = worth.reshape(-1, worth.shape[-1])
        found = [self.matching(row) for row in rows]
        sums = [np.nan if chosen is None else row[chosen].sum() for row, chosen in zip(rows, found, strict=True)]
        return np.array(sums).reshape(worth.shape[:-1])

    def matching(self, worth: Array) -> Codes | None:
        """Cells with the largest sum of worth (C), no two of one class or one cluster; None: too long to find."""
        return best_matching(self.places.classes, self.places.clusters, worth)

    @lazy
    def expected_overlaps(self) -> Array:
        """Sum of the smaller one of the k-th largest class and the k-th largest cluster, over n."""
        classes, clusters = _ranked(self.actual, self.predicted)
        return total(np.minimum(classes, clusters)) / self.n

    @lazy
    def squares_by_cluster(self) -> Array:
        """Sum n_ij^2 / T_j."""
        return total(np.where(self.cluster_sizes > 0, ratio(self.counts * self.counts, self.cluster_sizes), 0.0))

    @lazy
    def squares_by_class(self) -> Array:
        """Sum n_ij^2 / P_i."""
        return total(np.where(self.class_sizes > 0, ratio(self.counts * self.counts, self.class_sizes), 0.0))

    # Ordered pairs of samples (...), exact while n^2 < 2^53. Where weights add up to the effective number of samples,
    # so do their squares: n are the pairs of samples with themselves, weighted or not.

    pairs = _of_table("All ordered pairs, those of a sample with itself included: n^2.", lambda c: c.n * c.n)
    squares = _of_table("Sum n_ij^2.", lambda c: c._squared(c.counts))
    actual_squares = _of_table("Sum P^2.", lambda c: c._squared(c.actual))
    predicted_squares = _of_table("Sum T^2.", lambda c: c._squared(c.predicted))

    def _squared(self, sizes: Array) -> Array:
        """Sum of squares, which is n itself where it differs from it by a rounding of weights."""
        found = inner(sizes, sizes)
        return np.where(np.abs(found - self.n) <= _ROUNDING * self.n, self.n, found)

    together = _of_table("Pairs in one class and in one cluster.", lambda c: c.squares - c.n)

    # Information, in nats (...).

    class_entropy = _of_table("-sum P/n ln P/n.", lambda c: _entropy(c.actual, c.n))
    cluster_entropy = _of_table("-sum T/n ln T/n.", lambda c: _entropy(c.predicted, c.n))

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
    def open_information(self) -> Array:
        """Sum n_ij/n ln(P_i T_j / n_ij^2): what class and cluster leave open of each other."""
        left = ratio(self.class_sizes, self.counts) * ratio(self.cluster_sizes, self.counts)
        filled = self.counts > 0
        return total(np.where(filled, self.counts * np.log(np.where(filled, left, 1.0)), 0.0)) / self.n

    @lazy
    def expected_information(self) -> Array:
        """Expected mutual information of random clusterings with the same cluster sizes; NaN of weights."""
        if self.is_weighted:
            return np.full(self.n.shape, np.nan)
        return expected_information(self.actual, self.predicted)

    # What a single sample changes.

    def influence(self, function: Callable[[Self], Array], sums: Sequence[str]) -> Array:
        """Part of each sample (n), or cell (C), in the sampling error of a smooth function of sums of one table.

        The derivative by the samples of a cell, about its mean, with m / (m - 1) for m samples; of a cell times the
        root of the samples that it stands for. The sum of squares is the variance.

        Args:
            function: Of a table.
            sums: Names of the attributes that it is a function of.
        """
        moves = self._moves(self._slopes(function, sums))
        moves -= self.counts @ moves / self.n
        moves *= np.sqrt(self.n / (self.n - 1.0))
        return moves * np.sqrt(self.counts) if self.cell is None else moves.take(self.cell)

    def second_order(self, function: Callable[[Self], Array], sums: Sequence[str]) -> float:
        """Variance of the second order of a smooth function of sums of squares of one table; 0 of other sums.

        With little agreement the function hardly moves with the cells but bends with them. The cells c of n samples
        vary by S = diag(c) - c c'/n, and with the second derivatives H of what is summed this is tr(H S H S) / 2, the
        variance of half a quadratic form (Searle 1971, theorem 2.2). It is added to the variance by influences.

        Args:
            function: Of a table.
            sums: Names of the attributes that it is a function of.
        """
        if not {*sums} <= {*SQUARES}:
            return 0.0
        slopes = self._slopes(function, sums)
        moves = self._moves(slopes)
        cell, row, column = (slopes.get(name, 0.0) for name in SQUARES)
        within, rows, columns = (float(getattr(self, name)) for name in SQUARES)
        whole = (cell + row + column) ** 2 * within + row**2 * (rows - within) + column**2 * (columns - within)
        moved, n = self.counts @ moves, float(self.n)
        found = 2.0 * whole - self.counts @ (moves * moves) / n + moved * moved / (2.0 * n * n)
        return max(float(found), 0.0)

    def _slopes(self, function: Callable[[Self], Array], sums: Sequence[str]) -> dict[str, float]:
        """Derivatives by the sums."""
        known, slopes = {name: getattr(self, name) for name in (*_SIZES, *sums)}, {}
        for name in sums:
            step = _STEP * abs(float(known[name]))
            if step:
                up, down = (float(function(self._with({**known, name: known[name] + one}))) for one in (step, -step))
                slopes[name] = (up - down) / (2.0 * step)
        return slopes

    def _moves(self, slopes: Mapping[str, float]) -> Array:
        """Derivatives (C) by the samples of each cell."""
        moves = np.zeros(self.counts.size)
        for name, slope in slopes.items():
            moves += slope * _MOVES[name](self)
        return moves

    def jackknifed(self, function: Callable[[Self], Array], sums: Sequence[str]) -> tuple[float, Array]:
        """By how much noise raises a function of information and entropies of one table, and the part of each sample
        (n), or cell (C), in its sampling error, whose sum of squares is the variance: by leaving out one at a time
        (Zahl 1977; Efron & Stein 1981).

        The bias is infinite where it is not known: with fewer samples than cells it is more than the value varies.
        Derivatives, and the number of filled cells (Miller 1955), see too little of cells that hold one sample or two.
        Of weights a sample is one, or all of a cell that weighs less.
        """
        one = np.minimum(self.counts, 1.0)
        times = np.divide(self.counts, one, out=np.zeros(one.size), where=one > 0)
        left, n = self.n - one, times.sum()
        sides = (self.actual, self.places.classes), (self.predicted, self.places.clusters), (self.counts, slice(None))
        # Of H = ln n - sum n_i ln n_i / n, without one sample of each cell.
        classes, clusters, cells = (
            np.log(left / self.n)
            + _logarithms(sizes).sum() * (1.0 / self.n - 1.0 / left)
            + (_logarithms(sizes)[place] - _logarithms(sizes[place] - one)) / left
            for sizes, place in sides
        )
        moved = {
            "information": classes + clusters - cells,
            "class_entropy": classes,
            "cluster_entropy": clusters,
            "open_information": 2.0 * cells - classes - clusters,
        }
        for name in {*sums} - moved.keys():
            moves = _MOVES[name](self)
            # What is expected by chance falls with the samples.
            moved[name] = one * (self.counts @ moves / self.n - moves + getattr(self, name) / self.n)
        without = function(
            self._with(
                {name: getattr(self, name) for name in _SIZES}
                | {name: getattr(self, name) + moved[name] for name in sums}
            )
        )
        mean = times @ without / n
        moves = (mean - without) * np.sqrt((n - 1.0) / n)
        parts = moves * np.sqrt(times) if self.cell is None else moves.take(self.cell)
        known = self.n >= self.filled_classes * self.filled_clusters
        return float((n - 1.0) * (mean - function(self))) if known else math.inf, parts

    def _with(self, known: Mapping[str, Array]) -> Self:
        other = type(self)(self.places, self.counts)
        vars(other).update(known)
        return other


# Of sums of weights, relative to them. Numbers of samples differ by one at least.
_ROUNDING = 1e-12
# Relative change of a sum for its derivative.
_STEP = 1e-5
# Sums of squares of cells, of classes and of clusters.
SQUARES = ("squares", "actual_squares", "predicted_squares")
_SIZES = ("n", "actual", "predicted", "filled_classes", "filled_clusters", "all_together", "all_alone")


def _ranked(*sides: Array) -> list[Array]:
    """Sizes of classes and of clusters in falling order, as many as there are on both sides."""
    width = min(side.shape[-1] for side in sides)
    return [-np.sort(-side, axis=-1)[..., :width] for side in sides]


def _of_largest(order: Codes, starts: Codes, counts: Array) -> Array:
    """Return 1 for the first largest cell (C) of each row or column, else 0."""
    group = np.repeat(np.arange(starts.size), np.diff(np.append(starts, order.size)))
    by_size = np.lexsort((-counts[order], group))
    found = np.zeros(counts.size)
    found[order[by_size[starts]]] = 1.0
    return found


def _chosen(c: Contingency, worth: Array) -> Codes:
    chosen = c.matching(worth)
    if chosen is None:
        raise ValueError("expected a matching that does not take too long")
    return chosen


def _of_matched(c: Contingency, worth: Array, by_class: Mask) -> Array:
    """Moves (C) of a sum of n_ij / size over the matched cells; the size is that of the class or of the cluster."""
    chosen = _chosen(c, worth)
    sizes = np.where(by_class, c.class_sizes, c.cluster_sizes)
    found, of_class, of_cluster = np.zeros(worth.size), np.zeros(c.actual.size), np.zeros(c.predicted.size)
    found[chosen] = 1.0 / sizes[chosen]
    lost = c.counts[chosen] / sizes[chosen] ** 2
    of_class[c.places.classes[chosen]] = np.where(by_class[chosen], lost, 0.0)
    of_cluster[c.places.clusters[chosen]] = np.where(by_class[chosen], 0.0, lost)
    moves: Array = found - of_class[c.places.classes] - of_cluster[c.places.clusters]
    return moves


def _of_ranks(c: Contingency) -> Array:
    """Moves (C) of the expected overlap: the smaller one of a rank counts, of equals each a half."""
    classes, clusters = _ranked(c.actual, c.predicted)
    parts = (
        np.where(classes == clusters, 0.5, classes < clusters),
        np.where(classes == clusters, 0.5, classes > clusters),
    )
    moves = np.zeros(c.counts.size)
    for part, sizes, codes in zip(parts, (c.actual, c.predicted), (c.places.classes, c.places.clusters), strict=True):
        each_one = np.zeros(sizes.size)
        each_one[np.argsort(-sizes, kind="stable")[: part.size]] = part
        moves += each_one[codes]
    return moves / c.n


def _of_squares(c: Contingency, codes: Codes, sizes: Array, groups: int) -> Array:
    lost = sums_by_code(codes, c.counts * c.counts / (sizes * sizes), groups)
    moves: Array = 2.0 * c.counts / sizes - lost[codes]
    return moves


# Derivatives (C) of sums of a table by the samples in each of its cells, up to what is the same for all cells.
_MOVES: Mapping[str, Callable[[Contingency], Array]] = {
    "squares": lambda c: 2.0 * c.counts,
    "actual_squares": lambda c: 2.0 * c.class_sizes,
    "predicted_squares": lambda c: 2.0 * c.cluster_sizes,
    "largest_in_clusters": lambda c: _of_largest(*c.places.by_cluster, c.counts),
    "largest_in_classes": lambda c: _of_largest(*c.places.by_class, c.counts),
    "matched": lambda c: np.bincount(_chosen(c, c.counts), minlength=c.counts.size).astype(np.float64),
    "squares_by_cluster": lambda c: _of_squares(c, c.places.clusters, c.cluster_sizes, c.places.n_clusters),
    "squares_by_class": lambda c: _of_squares(c, c.places.classes, c.class_sizes, c.places.n_classes),
    "expected_information": lambda c: (
        _expected_moves(c.actual, c.predicted, float(c.n))[c.places.classes]
        + _expected_moves(c.predicted, c.actual, float(c.n))[c.places.clusters]
    ),
    "expected_overlaps": _of_ranks,
    "matched_recalls": lambda c: _of_matched(c, c.recalls, np.ones(c.counts.size, np.bool_)),
    "matched_overlaps": lambda c: _of_matched(c, c.overlaps, c.class_sizes >= c.cluster_sizes),
}


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


def _logarithms(sizes: Array) -> Array:
    """Return n ln n of sizes (C), 0 of none."""
    return sizes * np.log(np.maximum(sizes, TINY))


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
