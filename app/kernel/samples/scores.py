"""Probabilities or scores of samples, with everything that more than one metric needs, each computed once."""

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from math import fsum
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import Array, Mask, hollow, kept, lazy, ratio, silently, total
from app.kernel.samples.losses import CLIP, sums_by_code
from app.kernel.samples.rankings import Places, Ranking
from app.kernel.samples.recalibration import lines_of

Codes = NDArray[np.intp]
Parameters = Mapping[str, Any]
# Gives the values (n) of samples, each found from its sample alone, for these parameters.
Values = Callable[["Scores", Parameters], Array]


def key_of_rows(values: Values, parameters: Parameters) -> Hashable:
    """The key under which the values of samples for these parameters are kept."""
    return values, *sorted(parameters.items())


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
    """Mean stated probability, frequency of the events, and standard error of the excess of one over the other."""

    stated: float
    frequency: float
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


# From here on a prediction is confident.
CONFIDENT = 0.9


@dataclass(frozen=True, slots=True, eq=False)
class Outcomes:
    """Sums over samples of their probabilities beside what happened; those of several parts add up.

    Attributes:
        clipped: Samples (...) of some weight whose actual class has a probability below `CLIP`.
        above: (..., 6) of the highest probability p beside whether it is right, r = 1 or 0, with a = p - r: sums of w,
            w p, w r, w^2, w^2 a and w^2 a^2.
        sure: (3) samples with a highest probability of at least `CONFIDENT`, as `Stated`.
        squared_error: (..., K) weighted sums of (p - y)^2 of each class.
        leaning: (K) sums of (y - p)(1 - 2p), without weights.
        variance: (K) of these sums, were the probabilities right.
        unsure: (K, 3) samples with a probability of 1/2 at most for a class, as `Stated`.
        lowest: (K, 2) lowest probability of the non-members and of the members of each class that have some weight;
            infinite without any.
        highest: (K, 2) the highest.
    """

    clipped: Array
    above: Array
    sure: Array
    squared_error: Array
    leaning: Array
    variance: Array
    unsure: Array
    lowest: Array
    highest: Array

    @classmethod
    def of(cls, scores: "Scores") -> Self:
        """Add up samples in memory."""
        each, above, sure = scores.each, scores.confidence - scores.right, scores.confidence >= CONFIDENT
        parts = (
            each,
            each * scores.confidence,
            each * scores.right,
            each * each,
            each * each * above,
            np.square(each * above),
        )
        of_class, there = [], (each > 0).reshape(-1, scores.n_samples).any(axis=0)
        for code, p in enumerate(scores.columns):
            members = scores.members(code)
            lean, low, away, sides = 1.0 - 2.0 * p, p <= 0.5, members - p, (p[there & ~members], p[there & members])
            of_class.append(
                (
                    each @ (away * away),
                    away @ lean,
                    (lean * p * (1.0 - p)) @ lean,
                    np.array([np.count_nonzero(low), np.count_nonzero(members & low), p @ low]),
                    np.array([side.min(initial=np.inf) for side in sides]),
                    np.array([side.max(initial=-np.inf) for side in sides]),
                )
            )
        error, *others = zip(*of_class, strict=True)
        return cls(
            np.asarray(np.count_nonzero((scores.p_true < CLIP) & (each > 0), axis=-1)),
            np.stack([total(part) for part in parts], axis=-1),
            np.array([np.count_nonzero(sure), np.count_nonzero(scores.right & sure), scores.confidence @ sure]),
            np.stack(error, axis=-1),
            *map(np.stack, others),
        )

    def __add__(self, other: "Outcomes") -> "Outcomes":
        """Return the sums over both parts."""
        added = {one.name: getattr(self, one.name) + getattr(other, one.name) for one in fields(self)}
        added["lowest"] = np.minimum(self.lowest, other.lowest)
        added["highest"] = np.maximum(self.highest, other.highest)
        return Outcomes(**added)

    @property
    def confident(self) -> Stated:
        """Samples with a confident prediction; the event is that it is right."""
        return _stated(self.sure)

    def unsure_of(self, code: int) -> Stated:
        """Samples to which a class is no more likely than not; the event is that they belong to it."""
        return _stated(self.unsure[code])

    @property
    def excess(self) -> Excess:
        """Excess of the probability of the predicted class over the accuracy; of one vector of weights."""
        weight, stated, right, squares, mixed, spread = self.above.tolist()
        gap = (stated - right) / weight
        error = max(spread - 2.0 * gap * mixed + gap * gap * squares, 0.0) ** 0.5 / weight
        return Excess(stated / weight, right / weight, error)


def _stated(sums: Array) -> Stated:
    size, events, expected = sums.tolist()
    return Stated(int(size), int(events), expected)


def _falling(values: Array) -> tuple[Places, Array]:
    """Places (n) of values (n) in falling order, equal ones in any, and the values in it."""
    order = np.argsort(values)
    return order.astype(np.int32)[::-1], values.take(order)[::-1]


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
        self._orders: dict[int | None, tuple[Places, Array]] = {}
        self._row_values: dict[Hashable, Array] = {}

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
        other._row_values = self._row_values
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

    @cached_property
    def each(self) -> Array:
        """Weight (..., n) of each sample."""
        return np.ones(self.n_samples) if self.weights is None else self.weights

    # One vector of weights at most.

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
        return sums_by_code(self.y, self.each, self.n_classes)

    @lazy
    def rest(self) -> Array:
        """Weight of the samples of all other classes, shape (..., K), without the rounding of n - P."""
        return self.actual @ hollow(self.n_classes)

    @lazy
    def prevalence(self) -> Array:
        """Share of the weight in each class, shape (..., K)."""
        return ratio(self.actual, self.n[..., None])

    @lazy
    def frequencies(self) -> Array:
        """Weights of the classes in an average by how frequent they are, shape (..., K), which add up to 1."""
        return ratio(self.actual, total(self.actual)[..., None])

    # Per-sample values, shape (n,).

    @cached_property
    def columns(self) -> Array:
        """Probabilities by class, contiguous, shape (K, n)."""
        return np.ascontiguousarray(self.probabilities.T)

    @lazy
    def own(self) -> Array:
        """Score of the actual class."""
        own: Array = np.take_along_axis(self.probabilities, self.y[:, None], axis=1)[:, 0]
        return own

    @lazy
    def p_true(self) -> Array:
        """Probability given to the actual class; NaN for scores that are no probabilities."""
        return self.own if self.are_probabilities else np.full(self.n_samples, np.nan)

    def row_values(self, values: "Values", parameters: Parameters) -> Array:
        """Values (n) of a metric of each sample alone, computed once for all weights. Without weights they are not
        kept: of many samples new memory costs more than the values.
        """
        if self.weights is None:
            return values(self, parameters)
        key = key_of_rows(values, parameters)
        if key not in self._row_values:
            self._row_values[key] = values(self, parameters)
        return self._row_values[key]

    @kept
    def class_sums(self, values: "Values", *parameters: tuple[str, Any]) -> Array:
        """Weighted sum of what each sample says by itself over the samples of each class, shape (..., K); NaN for
        scores that are no probabilities.
        """
        if not self.are_probabilities:
            return np.full(self.actual.shape, np.nan)
        return self.sums_of(self.row_values(values, dict(parameters)))

    def sums_of(self, values: Array) -> Array:
        """Weighted sum of values (n,) over the samples of each class, shape (..., K)."""
        if self.weights is None:
            return sums_by_code(self.y, values, self.n_classes)
        with silently():
            weighted = self.weights * values
        if not np.isfinite(values).all():
            # Samples of weight 0 add 0, even if their value is infinite.
            weighted[self.weights == 0] = 0.0
        return sums_by_code(self.y, weighted, self.n_classes)

    @cached_property
    def predicted(self) -> Codes:
        """Class of the highest probability, ties to the lowest index."""
        return np.asarray(self.probabilities.argmax(axis=1))

    @cached_property
    def rank_of_truth(self) -> NDArray[np.int32]:
        """Number (n) of classes ranked before the actual one by falling score, ties by index."""
        before = np.zeros(self.n_samples, dtype=np.int32)
        for code, column in enumerate(self.columns):
            before += column > self.own
            before += (column == self.own) & (self.y > code)
        return before

    @cached_property
    def right(self) -> Mask:
        """Mask (n) of the samples whose class is predicted."""
        right: Mask = self.rank_of_truth == 0
        return right

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
        return np.bincount(self.y[self.each > 0], minlength=self.n_classes)

    @cached_property
    def outcomes(self) -> Outcomes:
        """Probabilities beside what happened."""
        return Outcomes.of(self)

    # Orders.

    @kept
    def ranking(self, code: int | None) -> Ranking:
        """Samples ordered by the probability of one class; without one all n K entries in one order, of which those of
        the actual classes are members.
        """
        if code not in self._orders:
            self._orders[code] = _falling(self.probabilities.ravel() if code is None else self.columns[code])
        places = self._orders[code][0]
        owners = places // self.n_classes if code is None and self.weights is not None else places
        return self._rank(self._orders[code], self.members(code), owners)

    def _rank(self, order: tuple[Places, Array], members: Mask, owners: Places) -> Ranking:
        places, falling = order
        weights = None if self.weights is None else self.weights.take(owners, axis=-1)
        return Ranking(falling, members.take(places), weights, places)

    @property
    def rankings(self) -> list[Ranking]:
        """Samples ordered by the probability of each class."""
        return [self.ranking(code) for code in range(self.n_classes)]

    @property
    def have_entries(self) -> bool:
        """Do scores of all classes compare with each other?"""
        return self.are_probabilities

    @lazy
    def pair_losses(self) -> Array:
        """Pairs of a sample of i and one of j in which that of j has the higher p_i, ties half, as entry (i, j).

        Shape (..., K, K); the diagonal has no meaning.
        """
        if self.n_classes == 2:
            # All others are of the one other class.
            return np.stack([ranking.losses for ranking in self.rankings], axis=-1)[..., None] * hollow(2)
        found = []
        for ranking in self.rankings:
            # Members not above a non-member lose to it.
            lost = ranking.positives[..., None] - ranking.above_each(ranking.members_among)
            lost = lost if ranking.weights is None else lost * ranking.weights
            found.append(sums_by_code(self.y.take(ranking.places), lost, self.n_classes))
        return np.stack(found, axis=-2)

    @cached_property
    def top_label(self) -> Ranking:
        """Samples ordered by their highest probability; members are the correct predictions."""
        order = _falling(self.confidence)
        return self._rank(order, self.right, order[0])

    def recalibrated(self, code: int, clip: float, *, sloped: bool) -> Array:
        """Coefficients a and b of logit P(member of a class) = a + b log odds, shape (..., 2); b is 1 unless it is
        fitted.
        """
        return lines_of(self.columns[code], self.y == code, self.each, clip, sloped=sloped)

    @property
    def unfitted(self) -> Mask:
        """Mask (K) of the classes whose recalibration line could not be fitted; all False for data in memory."""
        return np.zeros(self.n_classes, dtype=np.bool_)

    @cached_property
    def by_p_true(self) -> tuple[Array, Codes, Array]:
        """p_true in rising order with class codes and weights; ties by class, so that the order of the input has no
        effect.
        """
        order = np.argsort(self.p_true)
        rising = self.p_true.take(order)
        if (rising[1:] == rising[:-1]).any():
            order = np.lexsort((self.y, self.p_true))
        weights = self.each if self.weights is None else self.weights.take(order, axis=-1)
        return rising, self.y.take(order), weights

    @cached_property
    def _at_p_true(self) -> tuple[Array, Array]:
        """Number of the n K entries above the probabilities of the actual classes (ties half), summed over the samples,
        shape (...); and `precision_together`.
        """
        above, precision = np.zeros(self.n.shape), np.zeros((*self.n.shape, self.n_classes, self.n_classes))
        thresholds, codes, weights = self.by_p_true
        for other, ranking in enumerate(self.rankings):
            counts, heights = ranking.about(thresholds, besides=codes == other)
            if self.weights is not None:
                counts, heights = counts * weights, heights * weights
            met = sums_by_code(codes, counts, self.n_classes)
            met[..., other] = ranking.losses + 0.5 * ranking.positives**2
            above += total(met)
            precision[..., other] = sums_by_code(codes, heights, self.n_classes)
            precision[..., other, other] = ranking.precision_sum
        return above, precision

    @property
    def precision_together(self) -> Array:
        """Precision of class l along the members of class k, by trapezoids, at their probabilities as thresholds of all
        classes, shape (..., K, K) as [k, l].
        """
        return self._at_p_true[1]

    @property
    def area_of_entries(self) -> Array:
        """Area under the ROC curve of all n K entries, shape (...), without their one order; it has a meaning only
        where there is one (`have_entries`).
        """
        above, pairs = self._at_p_true[0], self.n * self.n
        return 1.0 - ratio(above - 0.5 * pairs, pairs * (self.n_classes - 1))

    @property
    def ends_of_p_true(self) -> Array:
        """Lowest and highest probability of the actual classes (2)."""
        return np.array([self.p_true.min(), self.p_true.max()])
