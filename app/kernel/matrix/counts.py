"""The counts of a batch of confusion matrices and their sums, each computed once."""

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.numerics.arrays import TWO, Array, each, inner, largest, lazy, ones, some, total, triangles


class Counts:
    """Confusion matrices of shape (..., K, K): rows are the actual classes, columns the predicted ones.

    Leading axes are a batch. Entries are counts, weights or rates; non-negative, finite and already checked.
    Attributes of shape (..., K) look at every class against the rest; those of shape (...) at the whole matrix.

    Raises:
        ValueError: the last two axes are not square or there are fewer than two classes.
    """

    def __init__(self, counts: ArrayLike) -> None:
        self.counts: Array = np.asarray(counts, dtype=np.float64)
        shape = self.counts.shape
        if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2:
            raise ValueError(f"confusion matrices need shape (..., K, K) with K >= 2, got {shape}")
        self.n_classes: int = shape[-1]

    # Counts, shape (..., K) unless said otherwise.

    @lazy
    def tp(self) -> Array:
        """True positives n_kk."""
        return self.counts.diagonal(0, -2, -1).copy()

    @lazy
    def actual(self) -> Array:
        """Actual members P of each class: row sums."""
        return total(self.counts)

    @lazy
    def predicted(self) -> Array:
        """Predicted members T of each class: column sums."""
        columns: Array = ones(self.n_classes).dot(self.counts)
        return columns

    @lazy
    def n(self) -> Array:
        """All samples, shape (...)."""
        return total(self.actual)

    @lazy
    def pairs(self) -> Array:
        """n^2, shape (...)."""
        return self.n * self.n

    @lazy
    def n_each(self) -> Array:
        """All samples, repeated for each class: arrays of one shape meet faster than an array and a number."""
        return each(self.n) * ones(self.n_classes)

    @lazy
    def fn(self) -> Array:
        """False negatives P - TP."""
        return self.actual - self.tp

    @lazy
    def fp(self) -> Array:
        """False positives T - TP."""
        return self.predicted - self.tp

    @lazy
    def errors(self) -> Array:
        """One-vs-rest errors FP + FN."""
        return self.fp + self.fn

    @lazy
    def rest(self) -> Array:
        """Actual non-members N = n - P."""
        return self.n_each - self.actual

    @lazy
    def predicted_rest(self) -> Array:
        """Predicted non-members n - T."""
        return self.n_each - self.predicted

    @lazy
    def tn(self) -> Array:
        """True negatives N - FP."""
        return self.rest - self.fp

    @lazy
    def correct(self) -> Array:
        """Correctly classified samples, the trace, shape (...)."""
        return total(self.tp)

    @lazy
    def margins(self) -> Array:
        """P + T of each class."""
        return self.actual + self.predicted

    @lazy
    def surplus(self) -> Array:
        """Predicted less actual members, T - P."""
        return self.predicted - self.actual

    # Products of counts, which many scores of one class against the rest are made of.

    @lazy
    def right(self) -> Array:
        """TP TN."""
        return self.tp * self.tn

    @lazy
    def mixed_up(self) -> Array:
        """FP FN."""
        return self.fp * self.fn

    @lazy
    def determinant(self) -> Array:
        """TP TN - FP FN."""
        return self.right - self.mixed_up

    @lazy
    def joint_margins(self) -> Array:
        """P T."""
        return self.actual * self.predicted

    @lazy
    def actual_spread(self) -> Array:
        """P N."""
        return self.actual * self.rest

    @lazy
    def predicted_spread(self) -> Array:
        """T (n - T)."""
        return self.predicted * self.predicted_rest

    # Sums over the classes, shape (...).

    @lazy
    def wrong(self) -> Array:
        """Wrongly classified samples."""
        return total(self.fn)

    @lazy
    def false_alarms(self) -> Array:
        """Samples predicted as a class that they are not of: with one class each, those wrongly classified."""
        return self.wrong

    @lazy
    def largest(self) -> Array:
        """Samples of the most frequent class."""
        return largest(self.actual)

    @lazy
    def largest_predicted(self) -> Array:
        """Samples of the most often predicted class."""
        return largest(self.predicted)

    @lazy
    def correct_margins(self) -> Array:
        """Sum P T."""
        return total(self.joint_margins)

    @lazy
    def actual_squares(self) -> Array:
        """Sum P^2."""
        return inner(self.actual, self.actual)

    @lazy
    def predicted_squares(self) -> Array:
        """Sum T^2."""
        return inner(self.predicted, self.predicted)

    @lazy
    def pooled_squares(self) -> Array:
        """Sum (P + T)^2."""
        return self.actual_squares + self.predicted_squares + 2.0 * self.correct_margins

    @lazy
    def covariance(self) -> Array:
        """N tr C - sum P T: n^2 times (observed minus chance agreement)."""
        return self.n * self.correct - self.correct_margins

    @lazy
    def chance_disagreement(self) -> Array:
        """Sum P (n - T) = n^2 (1 - pe) without the cancellation of n^2 - sum P T."""
        return inner(self.actual, self.predicted_rest)

    @lazy
    def pooled_disagreement(self) -> Array:
        """Sum s (2n - s) with s = P + T: 4 n^2 (1 - pe) for pooled margins."""
        return inner(self.margins, self.rest + self.predicted_rest)

    def weighted_sum(self, values: Array) -> Array:
        """Sum P x over the classes, shape (...); a class without actual samples adds 0 whatever its value."""
        weighted = inner(self.actual, values)
        missing = np.isnan(weighted)
        # Only then is there anything to leave out; the others keep their sum, which must not depend on their company.
        if some(missing):
            return np.where(missing, total(np.where(self.actual == 0, 0.0, self.actual * values)), weighted)
        return weighted

    # The K - 1 cuts of ordered classes in two, {1..k} | {k+1..K}, shape (..., K - 1).

    @lazy
    def lower_actual(self) -> Array:
        """Actual members of the first k classes."""
        return np.add.accumulate(self.actual, axis=-1)[..., :-1]

    @lazy
    def lower_predicted(self) -> Array:
        """Predicted members of the first k classes."""
        return np.add.accumulate(self.predicted, axis=-1)[..., :-1]

    @lazy
    def lower_correct(self) -> Array:
        """Samples of the first k classes that are predicted as one of them."""
        lower, below = triangles(self.n_classes)
        # Row k up to the diagonal and column k above it are what class k adds to the upper left corner.
        added = np.vecdot(self.counts, lower) + np.vecdot(self.counts.swapaxes(-1, -2), below)
        return np.add.accumulate(added, axis=-1)[..., :-1]

    @lazy
    def cut_errors(self) -> Array:
        """Samples that are on different sides of the cut in data and prediction."""
        return self.lower_actual + self.lower_predicted - TWO * self.lower_correct

    @lazy
    def distance(self) -> Array:
        """Sum |i - j| n_ij, shape (...): a sample is as many classes off as there are cuts between them."""
        return total(self.cut_errors)

    @lazy
    def chance_distance(self) -> Array:
        """Sum |i - j| P_i T_j, shape (...)."""
        above_actual, above_predicted = each(self.n) - self.lower_actual, each(self.n) - self.lower_predicted
        return inner(self.lower_actual, above_predicted) + inner(self.lower_predicted, above_actual)

    @lazy
    def upper_correct(self) -> Array:
        """Samples above the cut in data and prediction."""
        return each(self.n) - self.lower_correct - self.cut_errors
