"""A batch of confusion matrices with everything that more than one metric needs, each computed once."""

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.numerics import (
    ABOVE_MINUS_ONE,
    HALF,
    ONE,
    TINY,
    TWO,
    Array,
    cells,
    dispersion_of_reciprocals,
    each,
    hollow,
    inner,
    largest,
    lazy,
    mean,
    ones,
    smallest,
    some,
    total,
    triangles,
    x_log_x,
)

_QUARTER = HALF * HALF
# Positions in the block of rates.
RECALL, SPECIFICITY, PRECISION, NPV = range(4)


class Table:
    """Confusion matrices of shape (..., K, K): rows are the actual classes, columns the predicted ones.

    Leading axes are a batch. Entries are counts, weights or rates; non-negative, finite and already checked. Attributes of shape
    (..., K) look at every class against the rest; those of shape (...) at the whole matrix.

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

    # Rates, shape (..., K). The four that are worth averaging stand in one block, which is averaged at once.

    @lazy
    def rates(self) -> Array:
        """Recall, specificity, precision and NPV, shape (4, ..., K)."""
        hits = np.array((self.tp, self.tn, self.tp, self.tn))
        hits /= np.array((self.actual, self.rest, self.predicted, self.predicted_rest))
        return hits

    @lazy
    def mean_rates(self) -> Array:
        """Arithmetic means over the classes, shape (4, ...)."""
        return mean(self.rates)

    @lazy
    def rate_reciprocals(self) -> Array:
        """Their reciprocals, infinite where nothing is right, shape (4, ..., K)."""
        return np.reciprocal(self.rates)

    @lazy
    def harmonic_rates(self) -> Array:
        """Harmonic means over the classes, shape (4, ...)."""
        return self.n_classes / total(self.rate_reciprocals)

    @lazy
    def rate_dispersions(self) -> Array:
        """Dispersions around the harmonic means (Martín De Diego et al. 2022, eq. 9), shape (4, ...)."""
        return dispersion_of_reciprocals(self.rate_reciprocals)

    @lazy
    def recall(self) -> Array:
        return self.rates[RECALL]

    @lazy
    def fnr(self) -> Array:
        return self.fn / self.actual

    @lazy
    def specificity(self) -> Array:
        return self.rates[SPECIFICITY]

    @lazy
    def fpr(self) -> Array:
        return self.fp / self.rest

    @lazy
    def roc_distance(self) -> Array:
        """Distance of (FPR, TPR) from (0, 1)."""
        return np.hypot(self.fpr, self.fnr)

    @lazy
    def precision(self) -> Array:
        return self.rates[PRECISION]

    @lazy
    def npv(self) -> Array:
        return self.rates[NPV]

    @lazy
    def prevalence(self) -> Array:
        return self.actual / self.n_each

    @lazy
    def correct_ovr(self) -> Array:
        """TP + TN of each class against the rest."""
        return self.tp + self.tn

    @lazy
    def accuracy_ovr(self) -> Array:
        """(TP + TN) / n of each class against the rest."""
        return self.correct_ovr / self.n_each

    @lazy
    def f1(self) -> Array:
        """2 TP / (2 TP + FP + FN) = 2 TP / (P + T)."""
        return (self.tp + self.tp) / self.margins

    @lazy
    def f1_negative(self) -> Array:
        """F1 of the rest."""
        return (self.tn + self.tn) / (self.rest + self.predicted_rest)

    @lazy
    def jaccard(self) -> Array:
        """TP / (TP + FP + FN)."""
        return self.tp / self.union

    @lazy
    def union(self) -> Array:
        """TP + FP + FN = P + T - TP."""
        return self.margins - self.tp

    @lazy
    def upm_reciprocals(self) -> Array:
        """1 / UPM, infinite where there are errors and a side on which nothing is right."""
        return unified_performance_reciprocals(self.tp, self.tn, self.errors)

    @lazy
    def upm(self) -> Array:
        """Unified performance measure in its count form; 0 where there are errors and nothing is right."""
        return np.reciprocal(self.upm_reciprocals)

    @lazy
    def balanced_accuracy_ovr(self) -> Array:
        """(TPR + TNR) / 2."""
        return (self.recall + self.specificity) * HALF

    @lazy
    def g_mean_ovr(self) -> Array:
        """sqrt(TPR TNR)."""
        return np.sqrt(self.rate_product)

    @lazy
    def h_mean_ovr(self) -> Array:
        """Harmonic mean of TPR and TNR."""
        return TWO / (self.rate_reciprocals[RECALL] + self.rate_reciprocals[SPECIFICITY])

    @lazy
    def mean_f1(self) -> Array:
        """Macro F1, shape (...)."""
        return mean(self.f1)

    @lazy
    def rate_product(self) -> Array:
        """TPR TNR."""
        return self.recall * self.specificity

    @lazy
    def lift(self) -> Array:
        """PPV over prevalence."""
        return self.precision / self.prevalence

    @lazy
    def odds(self) -> Array:
        """Diagnostic odds ratio TP TN / (FP FN)."""
        return self.right / self.mixed_up

    # Overall quantities, shape (...).

    @lazy
    def wrong(self) -> Array:
        """Wrongly classified samples."""
        return total(self.fn)

    @lazy
    def largest(self) -> Array:
        """Samples of the most frequent class."""
        return largest(self.actual)

    @lazy
    def largest_predicted(self) -> Array:
        """Samples of the most often predicted class."""
        return largest(self.predicted)

    @lazy
    def worst_recall(self) -> Array:
        return smallest(self.recall)

    @lazy
    def best_recall(self) -> Array:
        return largest(self.recall)

    @lazy
    def correct_margins(self) -> Array:
        """sum P T."""
        return total(self.joint_margins)

    @lazy
    def actual_squares(self) -> Array:
        """sum P^2."""
        return inner(self.actual, self.actual)

    @lazy
    def predicted_squares(self) -> Array:
        """sum T^2."""
        return inner(self.predicted, self.predicted)

    @lazy
    def pooled_squares(self) -> Array:
        """sum (P + T)^2."""
        return self.actual_squares + self.predicted_squares + 2.0 * self.correct_margins

    @lazy
    def accuracy(self) -> Array:
        return self.correct / self.n

    @lazy
    def covariance(self) -> Array:
        """n tr C - sum P T: n^2 times (observed minus chance agreement)."""
        return self.n * self.correct - self.correct_margins

    @lazy
    def chance_disagreement(self) -> Array:
        """sum P (n - T) = n^2 (1 - pe) without the cancellation of n^2 - sum P T."""
        return inner(self.actual, self.predicted_rest)

    @lazy
    def pooled_disagreement(self) -> Array:
        """sum s (2n - s) with s = P + T: 4 n^2 (1 - pe) for pooled margins."""
        return inner(self.margins, self.rest + self.predicted_rest)

    def weighted_sum(self, values: Array) -> Array:
        """sum P x over the classes, shape (...); a class without actual samples adds 0 whatever its value."""
        weighted = inner(self.actual, values)
        # Only then is there anything to leave out.
        if some(np.isnan(weighted)):
            return total(np.where(self.actual == 0, 0.0, self.actual * values))
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
        lower, upper = triangles(self.n_classes)
        # Row k up to the diagonal and column k above it are what class k adds to the upper left corner.
        added = total(self.counts * lower) + ones(self.n_classes).dot(self.counts * upper)
        return np.add.accumulate(added, axis=-1)[..., :-1]

    @lazy
    def cut_errors(self) -> Array:
        """Samples that are on different sides of the cut in data and prediction."""
        return self.lower_actual + self.lower_predicted - TWO * self.lower_correct

    @lazy
    def upper_correct(self) -> Array:
        """Samples above the cut in data and prediction."""
        return each(self.n) - self.lower_correct - self.cut_errors

    # Logarithmic parts, of shares and not of counts: sums of n ln n would lose the digits of a small entropy.

    @lazy
    def shares(self) -> Array:
        """Every cell over n, shape (..., K, K)."""
        return self.counts / cells(self.n)

    @lazy
    def predicted_prevalence(self) -> Array:
        return self.predicted / self.n_each

    @lazy
    def error_rate_ovr(self) -> Array:
        """(FP + FN) / n of each class."""
        return self.errors / self.n_each

    @lazy
    def margin_shares(self) -> Array:
        """(P + T) / n of each class."""
        return self.margins / self.n_each

    @lazy
    def union_shares(self) -> Array:
        """(TP + FP + FN) / n of each class."""
        return self.union / self.n_each

    @lazy
    def share_logs(self) -> Array:
        """p ln p of every cell, shape (..., K, K)."""
        return x_log_x(self.shares)

    @lazy
    def row_logs(self) -> Array:
        """sum_j p_ij ln p_ij, shape (..., K)."""
        return total(self.share_logs)

    @lazy
    def error_logs(self) -> Array:
        """Sum of p ln p over the off-diagonal cells in the row and the column of each class.

        The diagonal is taken out before summing: beside it the errors of a good classifier would lose their digits.
        """
        off_diagonal = self.share_logs * hollow(self.n_classes)
        columns: Array = ones(self.n_classes).dot(off_diagonal)
        return total(off_diagonal) + columns

    @lazy
    def margin_entropy(self) -> Array:
        """-sum p ln(p / m) over the errors of each class with m = (P + T)/n: m times its confusion entropy, 0 if absent."""
        return self.error_rate_ovr * np.log(np.maximum(self.margin_shares, TINY)) - self.error_logs

    @lazy
    def union_entropy(self) -> Array:
        """The same with m = (TP + FP + FN)/n."""
        return self.error_rate_ovr * np.log(np.maximum(self.union_shares, TINY)) - self.error_logs

    @lazy
    def actual_logs(self) -> Array:
        """P/n ln P/n of each class."""
        return x_log_x(self.prevalence)

    @lazy
    def excess(self) -> Array:
        """n n_ij - P_i T_j, shape (..., K, K): exact while n^2 < 2^53."""
        return self.counts * cells(self.n) - self.expected

    @lazy
    def expected(self) -> Array:
        """P_i T_j, n times the counts expected under independence, shape (..., K, K)."""
        return self.actual[..., :, None] * self.predicted[..., None, :]

    @lazy
    def deviation(self) -> Array:
        """n n_ij / (P_i T_j) - 1, the relative distance from independence, shape (..., K, K)."""
        return self.excess / self.expected

    @lazy
    def phi_squared(self) -> Array:
        """Pearson's chi-squared over n, shape (...)."""
        return total(total(self.excess * self.deviation)) / (self.n * self.n)

    @lazy
    def mutual_information(self) -> Array:
        """sum p_ij ln(p_ij n^2 / (P_i T_j)) in nats, shape (...): no difference of entropies, which cancel near independence."""
        # Empty cells and empty margins have p = 0 and count as 0 through any finite logarithm.
        return total(total(self.shares * np.log1p(np.fmax(self.deviation, ABOVE_MINUS_ONE))))


def unified_performance_reciprocals(tp: Array, tn: Array, errors: Array) -> Array:
    """1/UPM = 1 + (FP + FN)(1/TP + 1/TN)/4, the mean of 1/PPV, 1/TPR, 1/TNR and 1/NPV in counts.

    NaN only where there is no error and one side has no case at all. Martín De Diego et al. (2022), eqs. 16-17.
    """
    return ONE + errors * (_QUARTER / tp + _QUARTER / tn)


def at_equal_prevalence(counts: Array) -> Array:
    """The matrices (..., K, K) with every row scaled to the same total, n kept. All NaN when a row is empty: no scale makes it equal."""
    actual = np.add.reduce(counts, axis=-1)
    scale = total(actual)[..., None] / counts.shape[-1] / actual
    scale = np.where(np.isfinite(scale).all(axis=-1, keepdims=True), scale, np.nan)
    return counts * scale[..., None]
