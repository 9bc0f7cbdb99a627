"""What the samples of two runs contribute to the differences of any smooth metrics between them."""

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.compare.paired.joint import JointCounts
from app.kernel.compare.paired.mcnemar import mcnemar_mid_p
from app.kernel.compare.paired.sign_flips import upper_mid_p
from app.kernel.matrix.table import Table
from app.kernel.numerics.arrays import Array, silently
from app.kernel.uncertainty.draws import Functional
from app.kernel.uncertainty.of_matrices.delta import cell_sensitivities

# Parts of the largest effect on a value: effects that differ by less are equal, and smaller ones are rounding.
_EQUAL = 1e-6
# Parts of a difference, or of its deviation, by which it may lie beside the sum that stands for it.
_NEAR = 0.25


@dataclass(frozen=True, slots=True, eq=False)
class Effects:
    """Differences of V values between two runs on the same samples, as sums over the samples.

    Around the matrix halfway between those of the runs M(A) - M(B) is the sum of g(t, a) - g(t, b), g the derivative by
    the count of a cell, up to terms of third order: those of second order cancel. Swapping the two predictions of a
    sample does not move that matrix, so the sum is the statistic of an exact test by swaps.

    Within each class the samples on which the runs differ count as ``better`` and ``worse`` ones of one weight, the
    root mean square of what they contribute; for means of recalls that is what they do contribute. In a class where no
    sample is right in one run only, one weighs at least what such a sample would.

    Attributes:
        difference: (V) first less second.
        linear: (V) the sums.
        tail: (V) P(S > |s|) + P(S = |s|) / 2 of the sums when every sample is swapped or not by a fair coin.
        better: (V, K) samples for the first run; they need not be whole.
        worse: (V, K) samples for the second.
        weights: (V, K) what one of them adds to the value.
        sizes: (V, K) all samples of the class.
    """

    difference: Array
    linear: Array
    tail: Array
    better: Array
    worse: Array
    weights: Array
    sizes: Array

    def of(self, some: slice) -> "Effects":
        """Those on some of the values."""
        return Effects(*(getattr(self, one.name)[some] for one in fields(self)))

    @classmethod
    def stacked(cls, parts: Sequence["Effects"]) -> "Effects":
        """Those on the values of several, one after the other, all of equally many classes."""
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))

    @property
    def faithful(self) -> NDArray[np.bool_]:
        """Where (V) the sums are near the differences, as they are for what is smooth on the way from run to run."""
        deviation = np.sqrt((self.weights**2 * (self.better + self.worse)).sum(axis=1))
        off = np.abs(self.difference - self.linear)
        near: NDArray[np.bool_] = off <= _NEAR * np.maximum(np.abs(self.difference), deviation)
        return near


def rate_effects(better: ArrayLike, worse: ArrayLike, size: float) -> Effects:
    """Effects on rates of ``size`` samples each, of which so many (V) count for one of the two runs only."""
    better, worse = np.broadcast_arrays(*(np.atleast_1d(np.asarray(side, np.float64)) for side in (better, worse)))
    gap = (better - worse) / size
    tail = mcnemar_mid_p(better, worse) / 2.0
    weights = np.full((gap.size, 1), 1.0 / size)
    return Effects(gap, gap, tail, better[:, None], worse[:, None], weights, np.full((gap.size, 1), size))


def weighted_rate_effects(changes: Array, counts: Array, *, members: float, unit: float) -> Effects:
    """Effects on a rate of weighted samples, of which those count that are for one of the two runs only.

    Args:
        changes: (P) what such a sample adds to the difference.
        counts: (P) of them, whole numbers.
        members: Samples that the rate is among.
        unit: What one of them adds where none counts for one run only.
    """
    linear, square, present = float(counts @ changes), float(counts @ changes**2), float(counts.sum())
    weight = (square / present) ** 0.5 if present else unit
    surplus = linear / weight
    both = max(present, abs(surplus))
    gap = np.array([linear])
    sides = np.array([[(both + surplus) / 2.0]]), np.array([[(both - surplus) / 2.0]])
    tail = np.array([_tail(abs(linear), changes, counts)])
    return Effects(gap, gap, tail, *sides, np.array([[weight]]), np.array([[members]]))


def paired_effects(joint: JointCounts, functionals: Sequence[Functional]) -> Effects:
    """Effects on all values of some functionals, in their order; NaN where a value or a derivative does not exist.

    Args:
        joint: two runs.
        functionals: smooth metrics.

    Raises:
        ValueError: there are not two runs, or the counts are not whole numbers.
    """
    if joint.n_runs != 2:
        raise ValueError(f"swaps need two runs, not {joint.n_runs}")
    if not (joint.counts == np.round(joint.counts)).all():
        raise ValueError("only whole counts can be swapped")

    def together(table: Table) -> Array:
        shape = table.counts.shape[:-2]
        return np.concatenate([np.reshape(functional(table), (*shape, -1)) for functional in functionals], axis=-1)

    matrices = joint.matrices()
    middle = matrices.mean(axis=0)
    with silently():
        difference = np.subtract(*together(Table(matrices)))
    truth, counts, turned, changes = _changes(joint, middle, together)
    absent = ~np.isfinite(difference) | ~np.isfinite(changes).all(axis=0)
    changes = _rounded(np.where(absent, 0.0, changes))
    # Summed value by value, so that none depends on how many there are.
    linear = np.ascontiguousarray((counts[:, None] * changes).T).sum(axis=1)
    tail = [_tail(abs(float(total)), column, counts) for total, column in zip(linear, changes.T, strict=True)]

    def by_class(values: Array) -> Array:
        """Sums (V, K) of what is known of every combination (P, V)."""
        sums = np.zeros((joint.n_classes, values.shape[1]))
        np.add.at(sums, truth, counts[:, None] * values)
        return sums.T

    square, present = by_class(changes**2), changes != 0.0
    seen = by_class(present * turned[:, None]) > 0
    with silently():
        weights = np.sqrt(square / by_class(present.astype(np.float64)))
    unseen = _unseen(middle, together, ~seen, joint.scales())
    weights = np.fmax(np.nan_to_num(weights), np.where(seen | absent[:, None], 0.0, unseen))
    with silently():
        surplus = np.where(weights > 0, by_class(changes) / weights, 0.0)
        both = np.where(weights > 0, np.maximum(square / weights**2, np.abs(surplus)), 0.0)
    better, worse = (np.where(side > _EQUAL, side, 0.0) for side in ((both + surplus) / 2.0, (both - surplus) / 2.0))
    return Effects(
        difference,
        np.where(absent, np.nan, linear),
        np.where(absent, np.nan, tail),
        better,
        worse,
        weights,
        np.broadcast_to(joint.members(), weights.shape),
    )


def _changes(
    joint: JointCounts, middle: Array, functional: Functional
) -> tuple[NDArray[np.int64], Array, Array, Array]:
    """Of the P combinations on which the runs differ: class, count, whether one run is right, and effect (P, V) of one
    of its items.
    """
    moves, cells = cell_sensitivities(middle, functional)
    slopes = np.zeros((middle.size, moves.shape[1]))
    slopes[cells[:, 0] * joint.n_classes + cells[:, 1]] = moves / middle[cells[:, 0], cells[:, 1]][:, None]
    differing = np.flatnonzero(joint.predictions[0] != joint.predictions[1])
    first, second = joint.cells()[:, differing]
    right = joint.correct()[:, differing]
    changes = slopes[first] - slopes[second]
    if joint.weights is not None:
        changes = changes * joint.weights[differing][:, None]
    return joint.truth[differing], joint.counts[differing], right[0] != right[1], changes


def _rounded(changes: Array) -> Array:
    """Effects (P, V) without what numeric derivatives leave of equal ones."""
    unit = _EQUAL * np.abs(changes).max(axis=0, initial=0.0)
    steps = np.divide(changes, unit, out=np.zeros_like(changes), where=unit > 0)
    rounded: Array = np.round(steps) * unit
    return rounded


def _tail(statistic: float, changes: Array, counts: Array) -> float:
    sizes, members = np.unique(np.abs(changes), return_inverse=True)
    items = np.bincount(members, weights=counts, minlength=sizes.size).astype(np.float64)
    some = sizes > 0
    return upper_mid_p(statistic, sizes[some], items[some])


def _unseen(middle: Array, functional: Functional, wanted: NDArray[np.bool_], scales: Array) -> Array:
    """What one more right sample instead of a wrong one adds to values (V, K), without sign, for classes wanted by any.

    By half a sample either way, where there is half a one; what becomes wrong is spread as what is wrong. A sample
    weighs what is usual in its class (K).
    """
    found = np.zeros(wanted.shape)
    classes = np.flatnonzero(wanted.any(axis=0) & (middle.sum(axis=1) > 0))
    if not classes.size:
        return found
    here = np.arange(classes.size)
    right = middle[classes, classes]
    wrong = middle[classes].copy()
    wrong[here, classes] = 0.0
    total = wrong.sum(axis=1)
    spread = np.where(total[:, None] > 0, wrong, 1.0)
    spread[here, classes] = 0.0
    spread /= spread.sum(axis=1, keepdims=True)
    half = 0.5 * scales[classes]
    ways = np.clip(np.stack([total, -right]), -half, half)
    moved = np.repeat(middle[None, None], 2 * classes.size, axis=0).reshape(2, classes.size, *middle.shape)
    moved[:, here, classes] -= ways[:, :, None] * spread
    moved[:, here, classes, classes] += ways
    with silently():
        up, down = functional(Table(moved))
        slopes = (up - down) / (ways[0] - ways[1])[:, None] * scales[classes][:, None]
    found[:, classes] = np.nan_to_num(np.abs(slopes).T, posinf=0.0)
    return found
