"""A batch of confusion matrices with everything that more than one metric needs, each computed once."""

import numpy as np
from numpy.typing import ArrayLike

from app.kernel.numerics import ABOVE_MINUS_ONE, TINY, Array, cells, hollow, lazy, mean, ones, ratio, total, x_log_x


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
        return np.diagonal(self.counts, axis1=-2, axis2=-1).copy()

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
        """All samples, repeated for each class: written out because broadcasting costs more than it saves here."""
        return np.repeat(self.n[..., None], self.n_classes, axis=-1)

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

    # Rates, shape (..., K).

    @lazy
    def recall(self) -> Array:
        return ratio(self.tp, self.actual)

    @lazy
    def fnr(self) -> Array:
        return ratio(self.fn, self.actual)

    @lazy
    def specificity(self) -> Array:
        return ratio(self.tn, self.rest)

    @lazy
    def fpr(self) -> Array:
        return ratio(self.fp, self.rest)

    @lazy
    def precision(self) -> Array:
        return ratio(self.tp, self.predicted)

    @lazy
    def npv(self) -> Array:
        return ratio(self.tn, self.predicted_rest)

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
        return ratio(2.0 * self.tp, self.margins)

    @lazy
    def f1_negative(self) -> Array:
        """F1 of the rest."""
        return ratio(2.0 * self.tn, 2.0 * self.tn + self.errors)

    @lazy
    def jaccard(self) -> Array:
        """TP / (TP + FP + FN)."""
        return ratio(self.tp, self.margins - self.tp)

    @lazy
    def upm(self) -> Array:
        """Unified performance measure in its count form; 0 where there are errors and nothing is right."""
        return unified_performance(self.tp, self.tn, self.errors)

    @lazy
    def odds(self) -> Array:
        """Diagnostic odds ratio TP TN / (FP FN)."""
        return ratio(self.tp * self.tn, self.fp * self.fn)

    @lazy
    def recall_reciprocals(self) -> Array:
        """1 / TPR, infinite where nothing of the class is found."""
        return 1.0 / self.recall

    # Overall quantities, shape (...).

    @lazy
    def wrong(self) -> Array:
        """Wrongly classified samples."""
        return total(self.fn)

    @lazy
    def largest(self) -> Array:
        """Samples of the most frequent class."""
        return np.maximum.reduce(self.actual, axis=-1)

    @lazy
    def mean_recall(self) -> Array:
        return mean(self.recall)

    @lazy
    def mean_specificity(self) -> Array:
        return mean(self.specificity)

    @lazy
    def mean_precision(self) -> Array:
        return mean(self.precision)

    @lazy
    def correct_margins(self) -> Array:
        """sum P T."""
        return total(self.actual * self.predicted)

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
        return total(self.actual * self.predicted_rest)

    @lazy
    def pooled_disagreement(self) -> Array:
        """sum s (2n - s) with s = P + T: 4 n^2 (1 - pe) for pooled margins."""
        return total(self.margins * (2.0 * self.n_each - self.margins))

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
    def united_shares(self) -> Array:
        """(TP + FP + FN) / n of each class."""
        return (self.margins - self.tp) / self.n_each

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
    def actual_logs(self) -> Array:
        """P/n ln P/n of each class."""
        return x_log_x(self.prevalence)

    @lazy
    def deviation(self) -> Array:
        """n n_ij / (P_i T_j) - 1, the relative distance from independence; numerators are exact while n^2 < 2^53."""
        products = self.actual[..., :, None] * self.predicted[..., None, :]
        return (self.counts * cells(self.n) - products) / products

    @lazy
    def phi_squared(self) -> Array:
        """Pearson's chi-squared over n: sum P_i T_j / n^2 deviation^2, shape (...)."""
        inner = total(self.deviation * self.deviation * self.predicted[..., None, :])
        return total(inner * self.actual) / (self.n * self.n)

    @lazy
    def mutual_information(self) -> Array:
        """sum p_ij ln(p_ij n^2 / (P_i T_j)) in nats, shape (...): no difference of entropies, which cancel near independence."""
        # Empty cells and empty margins have p = 0 and count as 0 through any finite logarithm.
        return total(total(self.shares * np.log1p(np.fmax(self.deviation, ABOVE_MINUS_ONE))))


def unified_performance(tp: Array, tn: Array, errors: Array) -> Array:
    """4 TP TN / (4 TP TN + (TP + TN)(FP + FN)): harmonic mean of PPV, TPR, TNR and NPV in counts.

    NaN only where there is no error and one side has no case at all. Martín De Diego et al. (2022), eqs. 16-17.
    """
    both = 4.0 * tp * tn
    # With errors but nothing right the two F1 scores are 0: the smallest number keeps that from being 0/0.
    return ratio(both, both + np.maximum(tp + tn, TINY) * errors)


def at_equal_prevalence(counts: Array) -> Array:
    """The matrices (..., K, K) with every row scaled to the same total, n kept. All NaN when a row is empty: no scale makes it equal."""
    actual = np.add.reduce(counts, axis=-1)
    scale = ratio(total(actual)[..., None] / counts.shape[-1], actual)
    scale = np.where(np.isfinite(scale).all(axis=-1, keepdims=True), scale, np.nan)
    return counts * scale[..., None]
