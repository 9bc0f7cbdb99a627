"""Several runs on the same items, as counts: how often each truth met each combination of predictions.

For two runs it is the tensor T[truth, a, b]. It holds everything that paired inference on labels needs, has no more
entries than there are items, and no order and no ids.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, sums_by_code
from app.kernel.uncertainty.draws import WORTH_DIGITS, rounded
from app.kernel.uncertainty.groups import Grouping
from app.kernel.uncertainty.simulation import CELLS_PER_BATCH

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
        grouping: Groups that these (P) are in, which then tell combinations apart; None where they are independent.
    """

    n_classes: int
    truth: Codes
    predictions: Codes
    counts: Array
    weights: Array | None = None
    grouping: Grouping | None = None

    @property
    def n_runs(self) -> int:
        """R."""
        return int(self.predictions.shape[0])

    @property
    def masses(self) -> Array:
        """Weight of the items of each combination (P)."""
        return self.counts if self.weights is None else self.counts * self.weights

    @property
    def n(self) -> float:
        """All items, or what they weigh."""
        return float(self.masses.sum())

    def members(self) -> Array:
        """Items of each class (K)."""
        return self._by_class(self.counts)

    def actual(self) -> Array:
        """Return the weight of the items of each class (K); their number without weights."""
        return self._by_class(self.masses)

    def scales(self) -> Array:
        """Return the mean weight of an item of each class (K), each by its own weight: sum w^2 / sum w."""
        if self.weights is None:
            return np.ones(self.n_classes)
        masses = self.masses
        totals = self._by_class(masses)
        return np.divide(self._by_class(masses * self.weights), totals, out=np.ones(totals.size), where=totals > 0)

    def _by_class(self, values: Array) -> Array:
        return sums_by_code(self.truth, values, self.n_classes)

    def matrices(self) -> Array:
        """The confusion matrix of each run, (R, K, K)."""
        size, cells = self.n_classes, self.truth * self.n_classes + self.predictions
        return np.array([sums_by_code(one, self.masses, size * size).reshape(size, size) for one in cells])

    def correct(self) -> NDArray[np.bool_]:
        """Mask of the runs that are right, (R, P)."""
        right: NDArray[np.bool_] = self.predictions == self.truth
        return right

    def pair(self, first: int, second: int) -> "JointCounts":
        """Return the counts of two of the runs."""
        both = self.predictions[[first, second]]
        return combine(
            self.truth, both, self.n_classes, times=self.counts, weights=self.weights, grouping=self.grouping
        )

    def with_more(self, other: "JointCounts") -> "JointCounts":
        """Return the counts of these and other items, all without weights and groups."""
        predictions = np.concatenate([self.predictions, other.predictions], axis=1)
        times = np.concatenate([self.counts, other.counts])
        return combine(np.concatenate([self.truth, other.truth]), predictions, self.n_classes, times)

    def without_weights(self) -> tuple["JointCounts", Array]:
        """The combinations of truth and predictions alone, with what they weigh in place of counts, and the sums of the
        squared weights.
        """
        masses = self.masses
        each = np.ones(masses.size) if self.weights is None else self.weights
        merged = combine(self.truth, self.predictions, self.n_classes, times=masses)
        return merged, combine(self.truth, self.predictions, self.n_classes, times=masses * each).counts


def combine(
    truth: Codes,
    predictions: Codes,
    n_classes: int,
    times: Array | None = None,
    weights: Array | None = None,
    grouping: Grouping | None = None,
) -> JointCounts:
    """Count the combinations of label codes.

    Args:
        truth: (n) codes 0..K-1.
        predictions: (R, n) codes 0..K-1.
        n_classes: K.
        times: (n) how often each item counts; once when None.
        weights: (n) what each weighs; what weighs nothing is left out. None is 1 each.
        grouping: Groups of the items; None where they are independent.
    """
    columns = [(np.asarray(one, dtype=np.int64), n_classes) for one in (truth, *predictions)]
    if weights is not None:
        distinct, own = np.unique(weights, return_inverse=True)
        columns.append((own, distinct.size))
    if grouping is not None:
        columns.append((grouping.codes, grouping.n_groups))
    codes, span = columns[0]
    levels = np.arange(span)[:, None]
    for column, size in columns[1:]:
        present, codes = _renumber(codes * size + column, span * size)
        levels = np.column_stack([levels[present // size], present % size])
        span = len(present)
    each = None if weights is None else distinct[levels[:, 1 + len(predictions)]]
    counts = np.bincount(codes, weights=times, minlength=span).astype(np.float64)
    filled = counts > 0 if each is None else (counts > 0) & (each > 0)
    return JointCounts(
        n_classes,
        levels[filled, 0],
        levels[filled, 1 : 1 + len(predictions)].T,
        counts[filled],
        None if each is None else each[filled],
        None if grouping is None else Grouping(levels[filled, -1], grouping.n_groups),
    )


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
    for k in np.flatnonzero(actual):
        mine = np.flatnonzero(joint.truth == k)
        hits, counts = right[:, mine], joint.counts[mine]
        only = (hits * counts) @ (1.0 - hits).T
        np.fill_diagonal(only, 1.0)
        total = hits @ counts
        guarded[k] = bool((only == 0).any() or (total == 0).any() or (total == actual[k]).any())
    return guarded


def draw_matrices(joint: JointCounts, *, draws: int, random: np.random.Generator) -> Iterator[Array]:
    """Batches (d, R, K, K) of posterior matrices of all runs together with the class counts as they are, so that what
    the runs have in common stays in common.

    Within each class the combinations follow a Dirichlet with their counts as parameters. A class of
    ``guarded_classes`` gets one more item: its weight is the same for all runs and is spread for each over the
    predicted classes independently, by the row of the edge prior where the recall is 0 or 1 and by the run's own row
    elsewhere. Every run alone then has the posterior of ``simulation.RowPosterior``, or one worth a single item more
    per class. Of weighted items a combination is drawn as a cell is by ``simulation.RowPosterior``, and the one more
    item has the weight that is usual in its class.
    """
    guards, usual = np.flatnonzero(guarded_classes(joint)), joint.scales()
    joint, squares = joint.without_weights() if joint.weights is not None else (joint, joint.counts)
    scales = squares / joint.counts
    worth, actual = rounded(joint.counts / scales, WORTH_DIGITS), joint.actual()
    matrices = joint.matrices()
    of_classes = list(_places_in_classes(joint))
    spread = _guard_rows(matrices, actual, guards)
    batch = max(1, CELLS_PER_BATCH // max(joint.counts.size, joint.n_runs * joint.n_classes**2))
    for start in range(0, draws, batch):
        size = min(batch, draws - start)
        weights = random.standard_gamma(worth, (size, joint.counts.size)) * scales
        rows = np.zeros((size, *matrices.shape))
        for mine, places, belongs in of_classes:
            rows[:, *places] = weights[:, mine] @ belongs
        if guards.size:
            weight = random.standard_exponential((size, 1, guards.size, 1)) * usual[guards][:, None]
            parts = random.standard_gamma(spread, (size, *spread.shape))
            sums = parts.sum(axis=-1, keepdims=True)
            # All parts of a very uneven row can underflow together; its expectation then stands in.
            parts = np.where(sums > 0, parts / np.where(sums > 0, sums, 1.0), spread)
            rows[:, :, guards] += weight * parts
        sums = rows.sum(axis=-1)
        rows *= np.divide(actual, sums, out=np.zeros_like(sums), where=sums > 0)[..., None]
        yield rows


def _places_in_classes(joint: JointCounts) -> Iterator[tuple[slice | Codes, tuple[Codes, int, Codes], Array]]:
    """The combinations (P) of each class, the cells (F) that they have in the matrices (R, K, K) of all runs, and which
    combination has which of these (P, F): a product sums faster than cells are gathered, run by run.
    """
    own = joint.predictions + joint.n_classes * np.arange(joint.n_runs)[:, None]
    for k in np.flatnonzero(joint.members()).tolist():
        mine = np.flatnonzero(joint.truth == k)
        filled, place = np.unique(own[:, mine], return_inverse=True)
        belongs = np.zeros((mine.size, filled.size))
        belongs[np.arange(mine.size), place.reshape(joint.n_runs, -1)] = 1.0
        runs, columns = np.divmod(filled, joint.n_classes)
        # As they are combined, the classes stand one after another.
        side_by_side = mine[-1] - mine[0] + 1 == mine.size
        yield slice(int(mine[0]), int(mine[-1]) + 1) if side_by_side else mine, (runs, k, columns), belongs


def _guard_rows(matrices: Array, actual: Array, guards: NDArray[np.intp]) -> Array:
    """Distribution (R, G, K) of the extra item of each guarded class over the predicted classes of each run."""
    size = matrices.shape[-1]
    rows = matrices[:, guards] / actual[guards, None]
    hits = np.take_along_axis(rows, np.broadcast_to(guards[None, :, None], (*rows.shape[:2], 1)), axis=-1)
    edge = np.full((guards.size, size), 0.5 / (size - 1))
    edge[np.arange(guards.size), guards] = 0.5
    return np.where((hits == 0) | (hits == 1), edge, rows)
