"""Probabilities or scores of samples, with everything that more than one metric needs, each computed once."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from math import fsum
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask, lazy, ratio, total
from app.kernel.samples.losses import (
    CLIP,
    Losses,
    losses_by_class,
    phi_of,
    sums_by_code,
    true_probabilities,
)
from app.kernel.samples.rankings import Ranking, last_of_ties
from app.kernel.samples.recalibration import lines_of

Codes = NDArray[np.intp]
Places = NDArray[np.int32]


class Side(NamedTuple):
    """Members of a class, or all others: the sum of their weights, that of the squares of these, and how many there
    are.
    """

    weight: float
    squares: float
    used: int

    @classmethod
    def of(cls, weights: Array) -> "Side":
        """Samples with weights (n)."""
        return cls(float(weights.sum()), float(weights @ weights), int(np.count_nonzero(weights)))

    @classmethod
    def summed(cls, sides: Sequence["Side"]) -> "Side":
        """All samples of several sides."""
        weights, squares, used = zip(*sides, strict=True)
        return cls(fsum(weights), fsum(squares), sum(used))

    @property
    def effective(self) -> float:
        """Effective number of samples (Kish), 0 of none."""
        return self.weight**2 / self.squares if self.squares else 0.0

    @property
    def freedom(self) -> float:
        """Degrees of freedom of the variance of a mean."""
        return max(self.effective - 1.0, 1.0)

    @property
    def scale(self) -> float:
        """Root of n / (n - 1): deviations from a mean times it have squares that add up to a variance without bias."""
        return float((self.used / max(self.used - 1, 1)) ** 0.5)

    @property
    def scale_of_mean(self) -> float:
        """Factor of deviations from a weighted mean, the root of n / (n - 1) over the weight; 0 without samples."""
        return self.scale / self.weight if self.weight else 0.0


class Excess(NamedTuple):
    """Mean stated probability, its excess over the frequency of the events, and the standard error of the excess."""

    stated: float
    gap: float
    error: float


class Stated(NamedTuple):
    """Predictions that were stated with much probability, or with little.

    Attributes:
        size: How many there are.
        events: Of how many of them the event took place.
        expected: Sum of their probabilities.
    """

    size: int
    events: int
    expected: float


class Forecasts(NamedTuple):
    """Sums over the samples of probabilities p of a class beside its outcomes y.

    Attributes:
        squared_error: Weighted sum of (p - y)^2, shape (...).
        leaning: Sum of (y - p)(1 - 2p), without weights.
        variance: Of that sum, were the probabilities right.
        unsure: Samples with a probability of 1/2 at most.
    """

    squared_error: Array
    leaning: float
    variance: float
    unsure: Stated


def _rising(values: Array) -> tuple[Codes, Array]:
    """Places (n) of values (n) in rising order, equal ones in any, and the values in it."""
    order = np.argsort(values)
    return order, values.take(order)


# From here on a prediction is confident.
CONFIDENT = 0.9


class Scores:
    """Scores of n samples for K classes, beside the true classes.

    Attributes of shape (..., K) are one-vs-rest, those of shape (...) are overall. The leading axes are a batch of
    weight vectors over the same samples, as a bootstrap needs. Entries are finite and already checked.

    Args:
        y: Class codes 0..K-1, shape (n,).
        probabilities: Shape (n, K), rows summing to 1.
        weights: Non-negative, shape (..., n); None is 1 each.

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
        self._orders: dict[int | None, tuple[Places, Array]] = {}

    @classmethod
    def of_scores(cls, y: ArrayLike, scores: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Scores of two classes by any real numbers (n,), higher for class 1. Only metrics of the order are defined."""
        values = np.asarray(scores, dtype=np.float64)
        return cls.of_class_scores(y, np.column_stack([-values, values]), weights)

    @classmethod
    def of_class_scores(cls, y: ArrayLike, scores: ArrayLike, weights: ArrayLike | None = None) -> Self:
        """Scores by any real numbers (n, K), each column higher for its class. Only metrics of the
        order are defined.
        """
        made = cls(y, scores, weights)
        made.are_probabilities = False
        return made

    def with_weights(self, weights: ArrayLike | None) -> Self:
        """Return the samples with other weights, shape (..., n); None is 1 each."""
        other = type(self)(self.y, self.probabilities, weights)
        other.are_probabilities, other._orders = self.are_probabilities, self._orders
        return other

    @property
    def is_mirrored(self) -> bool:
        """True if the order by one column is the reverse of the order by the other."""
        return self.n_classes == 2

    def members(self, code: int | None) -> Mask:
        """Mask (n) of the samples of a class; without one (n K) of the actual classes, sample after sample."""
        members: Mask = self.y == code if code is not None else (self.y[:, None] == np.arange(self.n_classes)).ravel()
        return members

    def of_members(self, values: Array) -> Array:
        """Sum (n) of the values (K) of the classes of each sample."""
        return values.take(self.y)

    # One vector of weights at most.

    @cached_property
    def each(self) -> Array:
        """Weight (n) of each sample."""
        return np.ones(self.n_samples) if self.weights is None else self.weights

    @cached_property
    def whole(self) -> Side:
        """All samples."""
        return Side.of(self.each)

    def both_sides(self, code: int) -> tuple[Side, Side]:
        """The members of a class, and all others."""
        members = self.members(code)
        return Side.of(self.each[members]), Side.of(self.each[~members])

    # Totals.

    @lazy
    def n(self) -> Array:
        """Total weight, shape (...)."""
        return total(self.actual)

    @lazy
    def actual(self) -> Array:
        """Weight of the samples of each class, shape (..., K)."""
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
        """Share of the weight in each class, shape (..., K)."""
        return ratio(self.actual, self.n[..., None])

    @lazy
    def frequencies(self) -> Array:
        """Weights of the classes in an average by how frequent they are, shape (..., K), which add up to 1."""
        return ratio(self.actual, total(self.actual)[..., None])

    def share(self, mask: Mask) -> Array:
        """Share of the weight that lies on samples of a mask (n,), shape (...)."""
        summed = np.count_nonzero(mask) if self.weights is None else self.weights @ mask.astype(np.float64)
        return ratio(np.asarray(summed, dtype=np.float64), self.n)

    # Per-sample values, shape (n,).

    @cached_property
    def columns(self) -> Array:
        """Probabilities by class, contiguous, shape (K, n)."""
        return np.ascontiguousarray(self.probabilities.T)

    @lazy
    def p_true(self) -> Array:
        """Probability given to the actual class; NaN for scores that are no probabilities."""
        if not self.are_probabilities:
            return np.full(self.n_samples, np.nan)
        return true_probabilities(self.probabilities, self.y)

    @lazy
    def phi(self) -> Array:
        """1 - Hellinger distance between row and truth = 1 - sqrt(1 - sqrt(p_true)) (Aguilar-Ruiz & Michalak 2024)."""
        return phi_of(self.p_true)

    @lazy
    def phi_sums(self) -> Array:
        """Sum of phi over the samples of each class, shape (..., K)."""
        if not self.are_probabilities:
            return np.full(self.actual.shape, np.nan)
        return self.sums_of(self.phi)

    @cached_property
    def losses(self) -> Losses:
        """Sums of phi, losses and counts over the samples of each class; all NaN for scores that are
        no probabilities.
        """
        if not self.are_probabilities:
            unknown = np.full(self.actual.shape, np.nan)
            return Losses(unknown, unknown, unknown, unknown, unknown, unknown, lowest=np.nan, highest=np.nan)
        return losses_by_class(self.probabilities, self.y, self.weights)

    def sums_of(self, values: Array) -> Array:
        """Weighted sum of values (n,) over the samples of each class, shape (..., K)."""
        if self.weights is None:
            return sums_by_code(self.y, values, self.n_classes)
        # Samples of weight 0 add 0, even if their value is infinite.
        weighted = np.multiply(self.weights, values, out=np.zeros_like(self.weights), where=self.weights > 0)
        return sums_by_code(self.y, weighted, self.n_classes)

    @cached_property
    def truth_rank(self) -> NDArray[np.int32]:
        """Number of classes ranked before the actual one by falling probability, ties by index, shape (n,)."""
        own = self.p_true if self.are_probabilities else true_probabilities(self.probabilities, self.y)
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
        return np.asarray(self.probabilities.argmax(axis=1))

    @lazy
    def confidence(self) -> Array:
        """Highest probability of each row, shape (n,)."""
        highest: Array = np.maximum.reduce(self.columns, axis=0)
        return highest

    # Probabilities beside outcomes.

    @property
    def parts(self) -> Iterator["Scores"]:
        """All samples, some at a time."""
        yield self

    @cached_property
    def used(self) -> Codes:
        """Number (K) of samples of each class that weigh something; one vector of weights at most."""
        counted = self.y if self.weights is None else self.y[self.weights > 0]
        return np.bincount(counted, minlength=self.n_classes)

    @property
    def clipped(self) -> int:
        """Number of samples whose actual class has a probability below `CLIP`; one vector of weights at most."""
        low = self.p_true < CLIP
        return int(np.count_nonzero(low if self.weights is None else low & (self.weights > 0)))

    def forecasts(self, code: int) -> Forecasts:
        """Probabilities of a class beside its outcomes."""
        made = self._forecasts.get(code)
        if made is None:
            p, members = self.columns[code], self.y == code
            lean, low, away = 1.0 - 2.0 * p, p <= 0.5, members - p
            spread = lean * p
            spread *= 1.0 - p
            made = self._forecasts[code] = Forecasts(
                np.asarray(away @ away if self.weights is None else self.weights @ (away * away)),
                float(away @ lean),
                float(spread @ lean),
                Stated(int(np.count_nonzero(low)), int(np.count_nonzero(members & low)), float(p @ low)),
            )
        return made

    @cached_property
    def _forecasts(self) -> dict[int, Forecasts]:
        return {}

    @property
    def confident(self) -> Stated:
        """Samples whose highest probability is `CONFIDENT` at least; the event is a correct prediction."""
        sure = self.confidence >= CONFIDENT
        right = int(np.count_nonzero(self.truth_rank[sure] == 0))
        return Stated(int(np.count_nonzero(sure)), right, float(self.confidence[sure].sum()))

    @property
    def excess(self) -> Excess:
        """Excess of the probability of the predicted class over the accuracy; one vector of weights at most."""
        weights = np.ones(self.n_samples) if self.weights is None else self.weights
        above = self.confidence - (self.truth_rank == 0)
        stated, gap = (float(np.average(values, weights=weights)) for values in (self.confidence, above))
        return Excess(stated, gap, float(np.sqrt(np.sum((weights * (above - gap)) ** 2)) / weights.sum()))

    # Orders.

    def ranking(self, code: int) -> Ranking:
        """Samples ordered by the probability of one class."""
        made = self._rankings.get(code)
        if made is None:
            made = self._rankings[code] = self._rank(code)
        return made

    @property
    def rankings(self) -> list[Ranking]:
        """Samples ordered by the probability of each class."""
        return [self.ranking(code) for code in range(self.n_classes)]

    def ordered(self, code: int | None) -> tuple[Places, Array]:
        """Places (n) of the samples by rising score of a class, and the scores in that order, sorted once for all
        weights; without a class of all n K entries, sample after sample.
        """
        made = self._orders.get(code)
        if made is None:
            order, rising = _rising(self.probabilities.ravel() if code is None else self.columns[code])
            made = self._orders[code] = order.astype(np.int32), rising
        return made

    def _falling(self, code: int | None) -> tuple[Places, Array]:
        order, rising = self.ordered(code)
        return order[::-1], rising[::-1]

    def _rank(self, code: int) -> Ranking:
        order, falling = self._falling(code)
        return Ranking(falling, self.y.take(order) == code, self._weights_in(order))

    @cached_property
    def entries(self) -> Ranking:
        """All n K entries in one order; members are those of the actual classes."""
        order, falling = self._falling(None)
        return Ranking(falling, self.members(None).take(order), self._weights_in(order // self.n_classes))

    @lazy
    def area_of_entries(self) -> Array:
        """Area under the ROC curve of all entries, shape (...); NaN for scores that are no probabilities."""
        if not self.are_probabilities:
            return np.full(self.n.shape, np.nan)
        above, _ = self.common_threshold
        return 1.0 - ratio(above - 0.5 * self.n * self.n, self.n * self.n * (self.n_classes - 1))

    @lazy
    def precision_of_entries(self) -> Array:
        """Average precision of all entries, shape (...); NaN for scores that are no probabilities."""
        return self.entries.average_precision if self.are_probabilities else np.full(self.n.shape, np.nan)

    def falling(self, code: int | None) -> tuple[Ranking, Codes]:
        """Unweighted ranking by falling probability of a class, and the places (n) of the samples in it. Without a
        class: by the top probability, members being the correct predictions.
        """
        members = self.predicted == self.y if code is None else self.y == code
        order, rising = _rising(self.confidence) if code is None else self.ordered(code)
        return Ranking(rising[::-1], members.take(order[::-1])), order[::-1].astype(np.intp)

    def _weights_in(self, order: Codes | Places) -> Array | None:
        return None if self.weights is None else self.weights.take(order, axis=-1)

    @lazy
    def pair_losses(self) -> Array:
        """Pairs of a sample of i and one of j in which that of j has the higher p_i, ties half, as entry (i, j).

        Shape (..., K, K); the diagonal has no meaning.
        """
        in_order = [self.y.take(self._falling(code)[0]) for code in range(self.n_classes)]
        lost = [one.losses_by_class(y, self.n_classes) for one, y in zip(self.rankings, in_order, strict=True)]
        return np.stack(lost, axis=-2)

    @cached_property
    def top_label(self) -> Ranking:
        """Samples ordered by their highest probability; members are the correct predictions."""
        order, rising = _rising(self.confidence)
        return Ranking(rising[::-1], (self.truth_rank == 0).take(order[::-1]), self._weights_in(order[::-1]))

    def recalibrated(self, code: int, clip: float, *, sloped: bool) -> Array:
        """Coefficients a and b of logit P(member of a class) = a + b log odds, shape (..., 2); b is 1 unless it is
        fitted.
        """
        return lines_of(self.columns[code], self.y == code, self.weights, clip, sloped=sloped)

    @property
    def unfitted(self) -> Mask:
        """Mask (K) of the classes whose recalibration line could not be fitted; all False for data in memory."""
        return np.zeros(self.n_classes, dtype=np.bool_)

    @lazy
    def ends(self) -> Array:
        """Lowest and highest probability of the non-members and of the members of each class, shape (K, 2, 2); infinite
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
        """p_true in rising order with class codes and weights; ties by class, so that the order of the input has no
        effect.
        """
        order, rising = _rising(self.p_true)
        if last_of_ties(rising) is not None:
            order = np.lexsort((self.y, self.p_true))
        weights = None if self.weights is None else self.weights.take(order, axis=-1)
        return rising, self.y.take(order), weights

    @cached_property
    def common_threshold(self) -> tuple[Array, Array]:
        """Statistics of all columns at the thresholds p_true, the probabilities of the actual classes.

        Returns:
            The number of the n K entries above the threshold (ties half), summed over the samples, shape (...); and the
                precision of class l along the members of class k, by trapezoids, shape (..., K, K) as [k, l].
        """
        above = np.zeros(self.n.shape)
        precision = np.zeros((*self.n.shape, self.n_classes, self.n_classes))
        thresholds, codes, weights = self.by_p_true
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
