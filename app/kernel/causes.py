"""Causes of a difference: how much of it is class prevalence, and how much is how each class is recognised.

A confusion matrix is the class shares times one row of recognition for each class. Between two matrices the shares are
one factor and each row is one; every mixture of them has a value, and the Shapley value of a factor is the mean of what
it changes over all orders in which the factors can change. The parts add up to the difference exactly. Shapley (1953);
as a decomposition of differences Shorrocks (2013), Das Gupta (1993).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np

from app.kernel.matrix.table import AdditiveGradient, Table
from app.kernel.metrics.proportion import ConfusionCells, Rate
from app.kernel.numerics.arrays import Array, Mask, silently
from app.kernel.samples.losses import Codes
from app.kernel.uncertainty.closed_forms import moves_in_cells
from app.kernel.uncertainty.draws import Functional

# Rows that are factors of their own; with the shares and the others 2 ** 13 mixtures.
MOST_ROWS = 12
_CELLS_PER_BATCH = 1 << 20
# Cells of all matrices whose values derivatives are made of: about two seconds.
_MOST_CELLS_MOVED = 1 << 26
# Cells of the mixtures: about a second.
_MOST_CELLS = 1 << 25
# Maps matrices (B, K, K) of shares to c dM/dc, for each cell (B, K, K), of several values (V, B, K, K).
Sensitivities = Callable[[Array], Array]


@dataclass(frozen=True, slots=True, eq=False)
class Split:
    """A difference of the values of two matrices, first less second, split by its causes.

    Attributes:
        rows: Classes of the factors of recognition (F - 1); of many classes the last are all others.
        values: (F) parts that add up to the difference: of the class shares, then of each of these rows.
        influences: (F, 2, K, K) what a sample in each cell of either matrix adds to the parts, in its unit of weight;
            None where derivatives take too long.
    """

    rows: tuple[tuple[int, ...], ...]
    values: Array
    influences: Array | None


def mixtures(n_classes: int) -> int:
    """Return how many mixtures two matrices of K classes have at most."""
    return 1 << (1 + min(n_classes, MOST_ROWS))


def of_rate(rate: Rate) -> Sensitivities:
    """Return the sensitivities of a rate of one class, or of all together."""

    def found(matrices: Array) -> Array:
        above, below = (_cells_of(cells, rate.of, matrices.shape[-1]) for cells in (rate.hits, rate.among))
        among = (matrices * below).sum(axis=(-2, -1))[..., None, None]
        share = (matrices * above).sum(axis=(-2, -1))[..., None, None] / among
        moves: Array = rate.line.slope * matrices * (above - share * below) / among
        return moves

    return found


@lru_cache(maxsize=256)
def _cells_of(cells: ConfusionCells, of: int | None, size: int) -> Mask:
    actual, predicted = np.indices((size, size))
    return cells.hold(actual, predicted, of)


def of_gradient(gradient: Callable[[Table], AdditiveGradient]) -> Sensitivities:
    """Return the sensitivities of a metric whose card has a gradient."""

    def found(matrices: Array) -> Array:
        moves: Array = matrices * gradient(Table(matrices)).by_cell
        return moves

    return found


def numeric(functionals: Sequence[Functional]) -> Sensitivities:
    """Return the sensitivities (V, B, K, K) of any metrics, by central differences."""
    return lambda matrices: moves_in_cells(matrices, lambda table: np.stack([f(table) for f in functionals], axis=-1))


def split(counts: Array, values: Sequence[tuple[Functional, Sensitivities | None]]) -> list[Split | None]:
    """Split the differences of values of two matrices by their causes; None where the mixtures are too many cells.

    A class that neither matrix has is no factor. Parts are NaN where a mixture has no value, which is so where one
    matrix alone lacks a class.

    Args:
        counts: (2, K, K) of both.
        values: (V) functions with one value (...), which does not depend on the number of samples, and their
            sensitivities where these have a closed form.
    """
    size = counts.shape[-1]
    sizes = counts.sum(axis=-1)
    with silently():
        shares = sizes / sizes.sum(axis=-1, keepdims=True)
        rows = counts / sizes[..., None]
    present = np.flatnonzero((sizes > 0).any(axis=0)).tolist()
    rows[:, [k for k in range(size) if k not in present]] = 0.0
    found: list[Split | None] = [None] * len(values)
    # Of many classes every value has factors of its own.
    by_factors: dict[tuple[tuple[int, ...], ...], list[int]] = {}
    for place, (functional, sensitivities) in enumerate(values):
        factors: tuple[tuple[int, ...], ...] = tuple((k,) for k in present)
        if len(present) > MOST_ROWS:
            if 2 * size**4 > _MOST_CELLS_MOVED and sensitivities is None:
                continue
            factors = _chosen(shares, rows, present, sensitivities or numeric([functional]))
        by_factors.setdefault(factors, []).append(place)
    for factors, places in by_factors.items():
        mixed = 1 << (1 + len(factors))
        if mixed * size * size > _MOST_CELLS:
            continue
        slow = 2 * mixed * size**4 > _MOST_CELLS_MOVED
        mixtures_of = _Mixtures(shares, rows, factors, sizes)
        splits = mixtures_of.split(counts, [values[place] for place in places], slow=slow)
        for place, one in zip(places, splits, strict=True):
            found[place] = one
    return found


def _chosen(
    shares: Array, rows: Array, present: Sequence[int], sensitivities: Sensitivities
) -> tuple[tuple[int, ...], ...]:
    """Return the rows that matter most by the derivatives in the middle between both, and all others as one."""
    share, row = shares.mean(axis=0), rows.mean(axis=0)
    middle = share[:, None] * row
    with silently():
        moves = sensitivities(middle[None]).reshape(middle.shape)
        slopes = np.where(middle > 0, moves / row, 0.0)
        worth = np.abs((slopes * (rows[0] - rows[1])).sum(axis=-1))
    order = sorted(present, key=lambda k: (-np.nan_to_num(worth[k]), k))
    first = sorted(order[: MOST_ROWS - 1])
    return (*((k,) for k in first), tuple(sorted(order[MOST_ROWS - 1 :])))


@dataclass(frozen=True, slots=True, eq=False)
class _Mixtures:
    """All matrices whose shares and rows are of either of two.

    Attributes:
        shares: (2, K).
        rows: (2, K, K).
        factors: Classes of each factor of recognition.
        sizes: (2, K) samples of the classes.
    """

    shares: Array
    rows: Array
    factors: tuple[tuple[int, ...], ...]
    sizes: Array

    def split(
        self, counts: Array, values: Sequence[tuple[Functional, Sensitivities | None]], *, slow: bool
    ) -> list[Split]:
        """Values of all mixtures, and what each factor changes; ``slow``: no numeric derivatives."""
        n_factors, size = 1 + len(self.factors), self.shares.shape[-1]
        sides, weights = _sides(n_factors)
        of_mixtures = np.empty((len(values), len(sides)))
        open_ones = [place for place, (_, closed) in enumerate(values) if closed is None]
        others = numeric([values[place][0] for place in open_ones])
        known = [place for place in range(len(values)) if not (slow and place in open_ones)]
        found = _Influence.of(len(known), n_factors, size)
        step = max(1, _CELLS_PER_BATCH // (size * size * len(values)))
        with silently():
            for start in range(0, len(sides), step):
                part = slice(start, start + step)
                matrices = self._mixed(sides[part])
                table = Table(matrices)
                moves = dict(zip(open_ones, others(matrices), strict=True)) if open_ones and not slow else {}
                for place, (functional, closed) in enumerate(values):
                    of_mixtures[place, part] = functional(table)
                    if closed is not None:
                        moves[place] = closed(matrices)
                each = np.array([moves[place] for place in known]).reshape(-1, *matrices.shape)
                found.add(weights[:, part], sides[part], each, self.shares, self.factors)
        influences = dict(zip(known, found.of_samples(counts, self.sizes), strict=True))
        parts = _shapley(of_mixtures, n_factors)
        return [Split(self.factors, own, influences.get(place)) for place, own in enumerate(parts)]

    def _mixed(self, sides: Codes) -> Array:
        rows = np.zeros((len(sides), *self.rows.shape[1:]))
        for place, classes in enumerate(self.factors, 1):
            rows[:, classes] = self.rows[sides[:, place]][:, classes]
        mixed: Array = self.shares[sides[:, 0]][..., None] * rows
        return mixed


def _shares_of_orders(n_factors: int) -> Array:
    """Return the share of all orders in which t given factors change before another one, (F) by t."""
    return np.array([factorial(t) * factorial(n_factors - 1 - t) / factorial(n_factors) for t in range(n_factors)])


@lru_cache(maxsize=32)
def _sides(size: int) -> tuple[Codes, Array]:
    """Return which matrix each of F factors is of in each mixture (2 ** F, F), 0 the first, and what the value of each
    mixture adds to each part, (F, 2 ** F).
    """
    sides: Codes = 1 - (np.arange(1 << size)[:, None] >> np.arange(size)[::-1] & 1)
    first = size - sides.sum(axis=1)
    share = _shares_of_orders(size)
    of_first, of_second = share[np.maximum(first - 1, 0)], share[np.minimum(first, size - 1)]
    weights: Array = np.where(sides.T == 0, of_first, -of_second)
    return sides, weights


def _shapley(values: Array, n_factors: int) -> Array:
    """Return the parts (V, F): differences first, so that what a factor does not change is exactly 0."""
    sides, _ = _sides(n_factors)
    share = _shares_of_orders(n_factors)
    found = np.empty((len(values), n_factors))
    for factor in range(n_factors):
        first = sides[:, factor] == 0
        gaps = values[:, first] - values[:, ~first]
        found[:, factor] = (share[n_factors - 1 - sides[first].sum(axis=1)] * gaps).sum(axis=1)
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Influence:
    """Sums over mixtures of what their cells and shares add to the parts of V values.

    Attributes:
        cells: (V, F, 2, K, K) weights times c dM/dc, by the matrix that the row is of.
        by_share: (V, F, 2, K) weights times the derivative by a class share, by the matrix that the shares are of.
        whole: (V, F, 2) the mean of these.
    """

    cells: Array
    by_share: Array
    whole: Array

    @classmethod
    def of(cls, n_values: int, n_factors: int, size: int) -> "_Influence":
        shape = (n_values, n_factors, 2)
        return cls(np.zeros((*shape, size, size)), np.zeros((*shape, size)), np.zeros(shape))

    def add(
        self, weights: Array, sides: Codes, moves: Array, shares: Array, factors: tuple[tuple[int, ...], ...]
    ) -> None:
        """Add some mixtures with their sensitivities (V, B, K, K)."""
        by_row = moves.sum(axis=-1)
        for side in (0, 1):
            for place, classes in enumerate(factors, 1):
                of_side = weights * (sides[:, place] == side)
                rows = moves[:, :, classes]
                sums = of_side @ rows.reshape(*rows.shape[:2], -1)
                self.cells[:, :, side, classes] += sums.reshape(*sums.shape[:2], *rows.shape[2:])
            of_side = weights * (sides[:, 0] == side)
            sums = of_side @ by_row
            self.by_share[:, :, side] += np.where(shares[side] > 0, sums / shares[side], 0.0)
            self.whole[:, :, side] += sums.sum(axis=-1)

    def of_samples(self, counts: Array, sizes: Array) -> Array:
        """Return what a sample in each cell adds, (V, F, 2, K, K): its row moves, and so do the shares."""
        with silently():
            own = np.where(counts > 0, self.cells / counts, 0.0)
            mean = np.where(sizes > 0, self.cells.sum(axis=-1) / sizes, 0.0)
            of_share = (self.by_share - self.whole[..., None]) / sizes.sum(axis=-1)[:, None]
        return np.where(counts > 0, own - mean[..., None] + of_share[..., None], 0.0)
