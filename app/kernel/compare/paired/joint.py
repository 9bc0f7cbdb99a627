"""Several runs on the same items, as counts: how often each truth met each combination of predictions.

For two runs it is the tensor T[truth, a, b]. It holds everything that paired inference on labels needs, has no more
entries than there are items, and no order and no ids.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array
from app.kernel.uncertainty.draws import Shares
from app.kernel.uncertainty.simulation import CELLS_PER_BATCH, checked_shares

Codes = NDArray[np.int64]

# Up to here combinations are counted in an array of all of them, beyond by sorting.
_DENSE = 1 << 24


@dataclass(frozen=True, slots=True, eq=False)
class JointCounts:
    """P distinct combinations of a truth and R predictions with their counts.

    Attributes:
        n_classes: K.
        truth: (P), the actual class.
        predictions: (R, P), the class that each run predicts.
        counts: (P) items, positive.
        weights: (P) what each of these weighs, which then tells combinations apart; None is 1 each.
    """

    n_classes: int
    truth: Codes
    predictions: Codes
    counts: Array
    weights: Array | None = None

    @property
    def n_runs(self) -> int:
        """R."""
        return int(self.predictions.shape[0])

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        parts = (self.truth, self.predictions, self.counts, self.weights)
        return sum(0 if part is None else part.nbytes for part in parts)

    @property
    def masses(self) -> Array:
        """What the items of each combination weigh (P)."""
        return self.counts if self.weights is None else self.counts * self.weights

    @property
    def n(self) -> float:
        """All items, or what they weigh."""
        return float(self.masses.sum())

    def members(self) -> Array:
        """Items of each class (K)."""
        return self._by_class(self.counts)

    def actual(self) -> Array:
        """What the items of each class weigh (K); their number without weights."""
        return self._by_class(self.masses)

    def scales(self) -> Array:
        """What an item of each class weighs (K) on average, each by its own weight: sum w^2 / sum w."""
        if self.weights is None:
            return np.ones(self.n_classes)
        masses = self.masses
        totals = self._by_class(masses)
        return np.divide(self._by_class(masses * self.weights), totals, out=np.ones(totals.size), where=totals > 0)

    def squares(self) -> Array:
        """Sums of the squared weights of the items of each class (K); their number without weights."""
        return self.actual() * self.scales()

    def _by_class(self, values: Array) -> Array:
        sums: Array = np.bincount(self.truth, weights=values, minlength=self.n_classes).astype(np.float64)
        return sums

    def matrices(self) -> Array:
        """The confusion matrix of each run, (R, K, K)."""
        size = self.n_classes * self.n_classes
        return np.array(
            [
                np.bincount(cells, weights=self.masses, minlength=size).reshape(self.n_classes, -1)
                for cells in self.cells()
            ]
        )

    def cells(self) -> Codes:
        """Position of every combination in the flattened matrix of each run, (R, P)."""
        return self.truth * self.n_classes + self.predictions

    def correct(self) -> NDArray[np.bool_]:
        """Which runs are right, (R, P)."""
        right: NDArray[np.bool_] = self.predictions == self.truth
        return right

    def pair(self, first: int, second: int) -> "JointCounts":
        """The same items for two of the runs."""
        both = self.predictions[[first, second]]
        return combine(self.truth, both, self.n_classes, times=self.counts, weights=self.weights)

    def without_weights(self) -> tuple["JointCounts", Array]:
        """The combinations of truth and predictions alone, with what they weigh in place of counts, and the sums of the
        squared weights.
        """
        masses = self.masses
        each = np.ones(masses.size) if self.weights is None else self.weights
        merged = combine(self.truth, self.predictions, self.n_classes, times=masses)
        return merged, combine(self.truth, self.predictions, self.n_classes, times=masses * each).counts


def combine(
    truth: Codes, predictions: Codes, n_classes: int, times: Array | None = None, weights: Array | None = None
) -> JointCounts:
    """Count the combinations of label codes.

    Args:
        truth: (n) codes 0..K-1.
        predictions: (R, n) codes 0..K-1.
        n_classes: K.
        times: (n) how often each item counts; once when None.
        weights: (n) what each weighs; what weighs nothing is left out. None is 1 each.
    """
    levels, codes = distinct_rows(np.asarray(truth, dtype=np.int64), n_classes, predictions, n_classes)
    each: Array | None = None
    if weights is not None:
        distinct, own = np.unique(weights, return_inverse=True)
        present, codes = _renumber(codes * distinct.size + own, len(levels) * distinct.size)
        levels, each = levels[present // distinct.size], distinct[present % distinct.size]
    counts = np.bincount(codes, weights=times, minlength=len(levels)).astype(np.float64)
    filled = counts > 0 if each is None else (counts > 0) & (each > 0)
    kept = None if each is None else each[filled]
    return JointCounts(n_classes, levels[filled, 0], levels[filled, 1:].T, counts[filled], kept)


def distinct_rows(first: Codes, span: int, columns: Sequence[Codes] | Codes, n_classes: int) -> tuple[Codes, Codes]:
    """Rows of codes that occur, in order, and for each row (n) its place among them.

    Args:
        first: (n) codes 0..span-1.
        span: See above.
        columns: Others (n), 0..K-1.
        n_classes: K.
    """
    codes, levels = first, np.arange(span)[:, None]
    for column in columns:
        present, codes = _renumber(codes * n_classes + np.asarray(column, dtype=np.int64), span * n_classes)
        levels = np.column_stack([levels[present // n_classes], present % n_classes])
        span = len(present)
    if not len(columns):
        present, codes = _renumber(codes, span)
        levels = levels[present]
    return levels, codes


def merged(parts: Sequence[JointCounts], n_runs: int, n_classes: int) -> JointCounts:
    """The joint counts of several parts, all or none with weights: the same whatever the parts and their order."""
    truth = np.concatenate([np.zeros(0, dtype=np.int64), *(one.truth for one in parts)])
    none = np.zeros((n_runs, 0), dtype=np.int64)
    predictions = np.concatenate([none, *(one.predictions for one in parts)], axis=1)
    counts = np.concatenate([np.zeros(0), *(one.counts for one in parts)])
    weights = [one.weights for one in parts if one.weights is not None]
    return combine(truth, predictions, n_classes, counts, np.concatenate(weights) if weights else None)


def _renumber(codes: Codes, span: int) -> tuple[Codes, Codes]:
    """The distinct codes in order, and every code as its position among them."""
    if span > _DENSE:
        distinct, positions = np.unique(codes, return_inverse=True)
        return distinct, positions
    present = np.flatnonzero(np.bincount(codes, minlength=span))
    numbers = np.zeros(span, dtype=np.int64)
    numbers[present] = np.arange(present.size)
    return present, numbers[codes]


def guarded_classes(joint: JointCounts) -> NDArray[np.bool_]:
    """Classes (K) whose counts would leave a degenerate posterior.

    A run has recall 0 or 1 there, or of some pair of runs one is never right where the other is wrong.
    """
    right = joint.correct().astype(np.float64)
    actual = joint.members()
    guarded = np.zeros(joint.n_classes, dtype=np.bool_)
    order = np.argsort(joint.truth, kind="stable")
    ends = np.searchsorted(joint.truth[order], np.arange(joint.n_classes + 1))
    for k in np.flatnonzero(actual):
        mine = order[ends[k] : ends[k + 1]]
        hits, counts = right[:, mine], joint.counts[mine]
        only = (hits * counts) @ (1.0 - hits).T
        np.fill_diagonal(only, 1.0)
        total = hits @ counts
        guarded[k] = bool((only == 0).any() or (total == 0).any() or (total == actual[k]).any())
    return guarded


class _Scatter:
    """Sums the weights of combinations into the matrices of all runs."""

    def __init__(self, joint: JointCounts) -> None:
        self.shape = (joint.n_runs, joint.n_classes, joint.n_classes)
        self.plans = []
        for cells in joint.cells():
            order = np.argsort(cells, kind="stable")
            filled, starts = np.unique(cells[order], return_index=True)
            self.plans.append((order, filled, starts))

    def __call__(self, weights: Array) -> Array:
        """Weights (d, P) to matrices (d, R, K, K)."""
        runs, size, _ = self.shape
        matrices = np.zeros((weights.shape[0], runs, size * size))
        for run, (order, filled, starts) in enumerate(self.plans):
            matrices[:, run, filled] = np.add.reduceat(weights[:, order], starts, axis=1)
        return matrices.reshape(-1, *self.shape)


def _batches(joint: JointCounts, draws: int) -> Iterator[int]:
    cells = max(joint.counts.size, joint.n_runs * joint.n_classes**2)
    batch = max(1, CELLS_PER_BATCH // cells)
    for start in range(0, draws, batch):
        yield min(batch, draws - start)


def draw_matrices(
    joint: JointCounts,
    *,
    draws: int,
    random: np.random.Generator,
    shares: Shares = Shares.OBSERVED,
    given: Array | None = None,
) -> Iterator[Array]:
    """Batches (d, R, K, K) of posterior matrices of all runs together, so that what the runs have in common stays in
    common.

    Within each class the combinations follow a Dirichlet with their counts as parameters. A class of
    ``guarded_classes`` gets one more item: its weight is the same for all runs and is spread for each over the
    predicted classes independently, by the row of the edge prior where the recall is 0 or 1 and by the run's own row
    elsewhere. Every run alone then has the posterior of ``posterior.draw_matrices``, or one worth a single item more
    per class. Of weighted items a combination is drawn as a cell is by ``posterior.draw_matrices``, and the one more
    item has the weight that is usual in its class.

    Raises:
        ValueError: as ``posterior.draw_matrices`` for given shares.
    """
    guards, usual = np.flatnonzero(guarded_classes(joint)), joint.scales()
    joint, squares = joint.without_weights() if joint.weights is not None else (joint, joint.counts)
    scales = squares / joint.counts
    actual = joint.actual()
    scatter, matrices = _Scatter(joint), joint.matrices()
    spread = _guard_rows(matrices, actual, guards)
    row_sums: Array = actual
    if shares is Shares.GIVEN:
        row_sums = joint.n * checked_shares(given, actual)
    for size in _batches(joint, draws):
        rows = scatter(random.standard_gamma(joint.counts / scales, (size, joint.counts.size)) * scales)
        if guards.size:
            weight = random.standard_exponential((size, 1, guards.size, 1)) * usual[guards][:, None]
            parts = random.standard_gamma(spread, (size, *spread.shape))
            sums = parts.sum(axis=-1, keepdims=True)
            # All parts of a very uneven row can underflow together; its expectation then stands in.
            parts = np.where(sums > 0, parts / np.where(sums > 0, sums, 1.0), spread)
            rows[:, :, guards] += weight * parts
        if shares is Shares.SAMPLED:
            worth = np.where(actual > 0, actual / usual + 0.5, 0.0)
            drawn = random.standard_gamma(worth, (size, actual.size)) * usual
            row_sums = (drawn * (joint.n / drawn.sum(axis=-1, keepdims=True)))[:, None]
        sums = rows.sum(axis=-1)
        rows *= np.divide(row_sums, sums, out=np.zeros_like(sums), where=sums > 0)[..., None]
        yield rows


def _guard_rows(matrices: Array, actual: Array, guards: NDArray[np.intp]) -> Array:
    """Distribution (R, G, K) of the extra item of each guarded class over the predicted classes of each run."""
    size = matrices.shape[-1]
    rows = matrices[:, guards] / actual[guards, None]
    hits = np.take_along_axis(rows, np.broadcast_to(guards[None, :, None], (*rows.shape[:2], 1)), axis=-1)
    edge = np.full((guards.size, size), 0.5 / (size - 1))
    edge[np.arange(guards.size), guards] = 0.5
    return np.where((hits == 0) | (hits == 1), edge, rows)


def permute(joint: JointCounts, *, draws: int, random: np.random.Generator) -> Iterator[Array]:
    """Batches (d, 2, K, K) for two runs with the two predictions of every item swapped or not by a fair coin.

    Under exchangeability of the runs every such pair is as likely as the observed one.

    Raises:
        ValueError: there are not two runs, or the counts are not whole numbers.
    """
    if joint.n_runs != 2:
        raise ValueError(f"a permutation of labels needs two runs, not {joint.n_runs}")
    if not (joint.counts == np.round(joint.counts)).all():
        raise ValueError("only whole counts can be permuted")
    swaps = _Swaps.of(joint)
    for size in _batches(joint, draws):
        yield swaps.permuted(_halves(swaps.trials, size, random))


@dataclass(frozen=True, slots=True, eq=False)
class _Swaps:
    """What a swap of two runs' predictions can move.

    Where both runs agree a swap changes nothing. The combinations (t, a, b) and (t, b, a) are one set of c + c' items,
    and of each item the first run has a or b by a fair coin: together one binomial number of them.

    Attributes:
        base: (2, K, K) the matrices with every such item as (t, b, a).
        trials: (S) items of each set, the largest first.
        weights: (S) what each of them weighs.
        scatter: Sums what moves into the cells that the first run adds to, and those that it takes from.
    """

    base: Array
    trials: NDArray[np.int64]
    weights: Array
    scatter: _Scatter

    @classmethod
    def of(cls, joint: JointCounts) -> "_Swaps":
        size = joint.n_classes
        low, high = np.sort(joint.predictions, axis=0)
        differing = low != high
        codes = (joint.truth * size + low) * size + high
        each = np.ones(1)
        if joint.weights is not None:
            each, own = np.unique(joint.weights, return_inverse=True)
            codes = codes * each.size + own
        sets, members = np.unique(codes[differing], return_inverse=True)
        trials = np.bincount(members, weights=joint.counts[differing], minlength=sets.size).astype(np.float64)
        order = np.argsort(-trials, kind="stable")
        cells, weight = np.divmod(sets[order], each.size)
        cells, high = np.divmod(cells, size)
        truth, low = np.divmod(cells, size)
        moving = JointCounts(size, truth, np.stack([low, high]), trials[order], each[weight])
        still = JointCounts(size, joint.truth[~differing], joint.predictions[:, ~differing], joint.masses[~differing])
        base = still.matrices() + moving.matrices()[::-1]
        return cls(base, moving.counts.astype(np.int64), each[weight], _Scatter(moving))

    def permuted(self, moved: Array) -> Array:
        """The matrices (d, 2, K, K) when so many items (d, S) of each set have moved."""
        adds, takes = np.moveaxis(self.scatter(moved * self.weights), 1, 0)
        change = adds - takes
        return np.stack([self.base[0] + change, self.base[1] - change], axis=1)


# Trials up to which counting random bits is faster than a binomial generator.
_MOST_BITS = 512


def _halves(trials: NDArray[np.int64], draws: int, random: np.random.Generator) -> Array:
    """Binomial numbers (draws, S) with probability 1/2; ``trials`` (S) must not increase.

    Few trials are that many random bits, counted 64 at a time.
    """
    many = int(np.searchsorted(-trials, -_MOST_BITS))
    found = np.empty((draws, trials.size))
    found[:, :many] = random.binomial(trials[:many], 0.5, size=(draws, many))
    few = trials[many:]
    counted = np.zeros((draws, few.size), dtype=np.uint16)
    for start in range(0, int(few[0]) if few.size else 0, 64):
        # Those that still need bits stand in front.
        active = int(np.searchsorted(-few, -start))
        bits = random.integers(0, 1 << 64, size=(draws, active), dtype=np.uint64)
        left = np.minimum(few[:active] - start, 64).astype(np.uint64)
        bits >>= np.uint64(64) - left
        counted[:, :active] += np.bitwise_count(bits)
    found[:, many:] = counted
    return found
