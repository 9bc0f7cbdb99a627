"""Probabilities (or scores) of samples with everything that more than one metric needs, each computed once."""

from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask, lazy, ratio, total
from app.kernel.numerics.sorting import ascending_order
from app.kernel.samples.losses import (
    Losses,
    entries_of_truth,
    losses_by_class,
    phi_by_class,
    phi_of,
    sums_by_code,
)
from app.kernel.samples.rankings import Ranking, last_of_ties
from app.kernel.samples.recalibration import lines_of

Codes = NDArray[np.intp]

# Up to so many classes are counted faster one by one than together.
_FEW_CLASSES = 16
_BLOCK = 65536


class TiedGroups(NamedTuple):
    """Values that occur with members of a class, by value and class: the value, the class and how many, each (g,)."""

    values: Array
    codes: Codes
    held: Codes


def tied_groups(rising: Array, codes: NDArray[np.intp | np.bool_], n_classes: int) -> TiedGroups | None:
    """Samples (n,) of one value and one class as one; None where so few are tied that it would not pay."""
    ends = last_of_ties(rising)
    if ends is None or ends.size * n_classes > rising.size:
        return None
    runs = np.repeat(np.arange(0, ends.size * n_classes, n_classes), np.diff(ends, prepend=-1))
    runs += codes
    held = np.bincount(runs, minlength=ends.size * n_classes)
    filled = np.flatnonzero(held)
    run, code = np.divmod(filled, n_classes)
    return TiedGroups(rising.take(ends.take(run)), code, held.take(filled))


class Scores:
    """What a model said about n samples of K classes, beside the truth.

    Attributes of shape (..., K) look at every class against the rest, those of shape (...) at everything. The leading
    axes are a batch of weight vectors over the same samples, as a bootstrap needs. Entries are finite and checked.

    Args:
        y: class codes 0..K-1, shape (n,).
        probabilities: shape (n, K), rows summing to 1.
        weights: non-negative, shape (..., n); None is 1 each.

    Raises:
        ValueError: the shapes do not fit, a code is out of range, or there is no sample.
    """

    are_probabilities = True

    def __init__(self, y: ArrayLike, probabilities: ArrayLike, weights: ArrayLike | None = None) -> None:
        self.y: Codes = np.asarray(y, dtype=np.intp)
        self.probabilities: Array = np.ascontiguousarray(probabilities, dtype=np.float64)
        self.weights: Array | None = None if weights is None else np.asarray(weights, dtype=np.float64)
        if self.probabilities.ndim != 2 or self.probabilities.shape[1] < 2:
            raise ValueError(f"probabilities need shape (n, K) with K >= 2, got {self.probabilities.shape}")
        self.n_samples: int
        self.n_classes: int
        self.n_samples, self.n_classes = self.probabilities.shape
        if self.y.shape != (self.n_samples,) or self.n_samples == 0:
            raise ValueError(f"{self.n_samples} rows need as many codes and at least one, got shape {self.y.shape}")
        if self.y.min() < 0 or self.y.max() >= self.n_classes:
            raise ValueError(f"class codes must lie in 0..{self.n_classes - 1}")
        if self.weights is not None and self.weights.shape[-1:] != (self.n_samples,):
            raise ValueError(f"weights need {self.n_samples} as their last axis, got shape {self.weights.shape}")
        self._rankings: dict[int, Ranking] = {}

    @classmethod
    def of_scores(cls, y: ArrayLike, scores: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Two classes and any real scores (n,), higher for class 1. Only metrics of the order have a value."""
        values = np.asarray(scores, dtype=np.float64)
        return cls.of_class_scores(y, np.column_stack([-values, values]), weights)

    @classmethod
    def of_class_scores(cls, y: ArrayLike, scores: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Any real scores (n, K), each column higher for its class. Only metrics of the order have a value."""
        made = cls(y, scores, weights)
        made.are_probabilities = False
        return made

    def with_weights(self, weights: ArrayLike | None) -> Self:
        """The same samples weighted otherwise."""
        other = type(self)(self.y, self.probabilities, weights)
        other.are_probabilities = self.are_probabilities
        return other

    @property
    def is_mirrored(self) -> bool:
        """Is the order by one column that by the other the other way round?"""
        return self.n_classes == 2

    def members(self, code: int) -> Mask:
        """Samples (n) of a class."""
        members: Mask = self.y == code
        return members

    # Totals.

    @lazy
    def n(self) -> Array:
        """Total weight, shape (...)."""
        return total(self.actual)

    @lazy
    def actual(self) -> Array:
        """Weight of the samples of each class, shape (..., K)."""
        if self.weights is None and self.n_classes <= _FEW_CLASSES:
            counts = np.zeros(self.n_classes)
            for start in range(0, self.n_samples, _BLOCK):
                codes = self.y[start : start + _BLOCK].astype(np.uint8)
                counts += [np.count_nonzero(codes == code) for code in range(self.n_classes)]
            return counts
        if self.weights is None:
            return np.bincount(self.y, minlength=self.n_classes).astype(np.float64)
        return sums_by_code(self.y, self.weights, self.n_classes)

    @lazy
    def rest(self) -> Array:
        """Weight of the samples of all other classes, shape (..., K), without the rounding of n - P."""
        others = 1.0 - np.eye(self.n_classes)
        return self.actual @ others

    @lazy
    def prevalence(self) -> Array:
        """Shape (..., K)."""
        return ratio(self.actual, self.n[..., None])

    def share(self, mask: Mask) -> Array:
        """Share of the weight that lies on samples of a mask (n,), shape (...)."""
        summed = np.count_nonzero(mask) if self.weights is None else self.weights @ mask.astype(np.float64)
        return ratio(np.asarray(summed, dtype=np.float64), self.n)

    # Per-sample values, shape (n,).

    @cached_property
    def columns(self) -> Array:
        """The probabilities of each class in one piece, shape (K, n)."""
        return np.ascontiguousarray(self.probabilities.T)

    @lazy
    def p_true(self) -> Array:
        """Probability given to the actual class; NaN for scores that are no probabilities."""
        if not self.are_probabilities:
            return np.full(self.n_samples, np.nan)
        return entries_of_truth(self.probabilities, self.y)

    @lazy
    def phi(self) -> Array:
        """1 - Hellinger distance between row and truth = 1 - sqrt(1 - sqrt(p_true)) (Aguilar-Ruiz & Michalak 2024)."""
        return phi_of(self.p_true)

    @lazy
    def phi_sums(self) -> Array:
        """Sum of phi over the samples of each class, shape (..., K)."""
        if not self.are_probabilities:
            return np.full(self.actual.shape, np.nan)
        return phi_by_class(self.probabilities, self.y, self.weights)

    @cached_property
    def losses(self) -> Losses:
        """What is added up over the samples, all NaN for scores that are no probabilities."""
        if not self.are_probabilities:
            unknown = np.full(self.actual.shape, np.nan)
            return Losses(unknown, unknown, unknown, unknown, unknown, unknown, lowest=np.nan, highest=np.nan)
        return losses_by_class(self.probabilities, self.y, self.weights)

    def sums_of(self, values: Array) -> Array:
        """Weighted sum of values (n,) over the samples of each class, shape (..., K)."""
        if self.weights is None:
            return sums_by_code(self.y, values, self.n_classes)
        # What weighs nothing adds nothing, be it infinite.
        weighted = np.multiply(self.weights, values, out=np.zeros_like(self.weights), where=self.weights > 0)
        return sums_by_code(self.y, weighted, self.n_classes)

    @cached_property
    def truth_rank(self) -> NDArray[np.int32]:
        """How many classes come before the actual one when the most probable comes first, ties by index, shape (n,)."""
        own = self.p_true if self.are_probabilities else entries_of_truth(self.probabilities, self.y)
        count = np.zeros(self.n_samples, dtype=np.int32)
        for code, column in enumerate(self.columns):
            count += column > own
            tied = column == own
            tied &= self.y > code
            count += tied
        return count

    @cached_property
    def predicted(self) -> Codes:
        """Class of the highest probability, ties to the lowest index."""
        if self.n_classes == 2:
            second: Codes = (self.columns[1] > self.columns[0]).astype(np.intp)
            return second
        best = self.columns[0].copy()
        codes = np.zeros(self.n_samples, dtype=np.intp)
        for code in range(1, self.n_classes):
            np.putmask(codes, self.columns[code] > best, code)
            np.maximum(best, self.columns[code], out=best)
        return codes

    @lazy
    def confidence(self) -> Array:
        """The highest probability of each row."""
        highest: Array = np.maximum.reduce(self.columns, axis=0)
        return highest

    # Orders.

    def ranking(self, code: int) -> Ranking:
        """Samples ordered by the probability of one class."""
        made = self._rankings.get(code)
        if made is None:
            made = self._rankings[code] = self._rank(code)
        return made

    @property
    def rankings(self) -> list[Ranking]:
        """Those of all classes."""
        return [self.ranking(code) for code in range(self.n_classes)]

    def _rank(self, code: int) -> Ranking:
        order, falling, weights = self._falling(self.columns[code])
        codes = self.y.take(order)
        made = Ranking(falling, codes == code, weights)
        self._pair_losses[code] = made.losses_by_class(codes, self.n_classes)
        return made

    def falling(self, code: int | None) -> tuple[Ranking, Codes]:
        """Samples by falling probability of a class, or of the one that is predicted and whether it is right, without
        weights; and their places (n) in that order.
        """
        values = self.confidence if code is None else self.columns[code]
        members = self.predicted == self.y if code is None else self.y == code
        order, falling, _ = self._falling(values)
        return Ranking(falling, members.take(order)), order

    def _falling(self, values: Array) -> tuple[Codes, Array, Array | None]:
        """The order of falling values (n,), the values in it, and the weights."""
        order, rising = ascending_order(values)
        order = order[::-1]
        return order, rising[::-1], None if self.weights is None else self.weights.take(order, axis=-1)

    @cached_property
    def _pair_losses(self) -> dict[int, Array]:
        return {}

    @lazy
    def pair_losses(self) -> Array:
        """Entry (i, j): pairs of samples of i and of j in which that of j has the higher p_i, ties half.

        Shape (..., K, K); the diagonal means nothing.
        """
        rankings = self.rankings
        return np.stack([self._pair_losses[code] for code in range(len(rankings))], axis=-2)

    @cached_property
    def top_label(self) -> Ranking:
        """Samples ordered by their highest probability; members are the correctly classified ones."""
        order, falling, weights = self._falling(self.confidence)
        return Ranking(falling, (self.truth_rank == 0).take(order), weights)

    def recalibrated(self, code: int, clip: float, *, sloped: bool) -> Array:
        """The a and b of logit P(member of a class) = a + b log odds, shape (..., 2); b is 1 where it is not fitted."""
        return lines_of(self.columns[code], self.y == code, self.weights, clip, sloped=sloped)

    @property
    def unfitted(self) -> Mask:
        """Of which classes (K) a line of recalibration was given up: of none while samples are at hand."""
        return np.zeros(self.n_classes, dtype=np.bool_)

    @lazy
    def ends(self) -> Array:
        """Lowest and highest probability of the others and of the members of each class, shape (K, 2, 2); infinite
        where there are none.
        """
        found = np.full((self.n_classes, 2, 2), [np.inf, -np.inf])
        for code, column in enumerate(self.columns):
            members = self.y == code
            for side, there in zip(found[code], (column[~members], column[members]), strict=True):
                if there.size:
                    side[:] = there.min(), there.max()
        return found

    @cached_property
    def by_p_true(self) -> tuple[Array, Codes, Array | None]:
        """p_true rising, with codes and weights; ties by class, so that the order of the input does not show
        through.
        """
        order, rising = ascending_order(self.p_true)
        if last_of_ties(rising) is not None:
            if self.weights is None and (tied := tied_groups(rising, self.y.take(order), self.n_classes)) is not None:
                return rising, np.repeat(tied.codes, tied.held), None
            order = np.lexsort((self.y, self.p_true))
        weights = None if self.weights is None else self.weights.take(order, axis=-1)
        return rising, self.y.take(order), weights

    @cached_property
    def common_threshold(self) -> tuple[Array, Array]:
        """What all columns look like at the thresholds p_true, the probabilities of the actual classes.

        Returns:
            How many of the n K entries lie above the threshold (ties half), summed over the samples, shape (...); and
            the precision of class l along the members of class k, trapezoid, shape (..., K, K) as [k, l].
        """
        above = np.zeros(self.n.shape)
        precision = np.zeros((*self.n.shape, self.n_classes, self.n_classes))
        thresholds, codes, weights = self.by_p_true
        if weights is None and (tied := tied_groups(thresholds, codes, self.n_classes)) is not None:
            thresholds, codes, weights = tied.values, tied.codes, tied.held.astype(np.float64)
        for other, ranking in enumerate(self.rankings):
            counts, heights = ranking.at_thresholds(thresholds, besides=codes == other)
            if weights is not None:
                counts, heights = counts * weights, heights * weights
            met = sums_by_code(codes, counts, self.n_classes)
            met[..., other] = ranking.losses + 0.5 * ranking.positives**2
            above += total(met)
            precision[..., other] = sums_by_code(codes, heights, self.n_classes)
            precision[..., other, other] = ranking.precision_sum
        return above, precision
