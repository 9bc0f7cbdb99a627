"""A batch of confusion matrices with everything that more than one metric needs, each computed once."""

from typing import NamedTuple

import numpy as np

from app.kernel.matrix.counts import Counts
from app.kernel.numerics.arrays import (
    ABOVE_MINUS_ONE,
    HALF,
    ONE,
    TINY,
    TWO,
    Array,
    cells,
    dispersion_of_reciprocals,
    hollow,
    inner,
    largest,
    lazy,
    mean,
    ones,
    smallest,
    some,
    total,
    x_log_x,
)

_QUARTER = HALF * HALF
# Below it (of 1, of the joint entropy) the difference that is the shorter formula would lose two digits.
_NEAR_INDEPENDENCE = np.array(0.05)


class Rates(NamedTuple):
    """Something of the four rates that are worth averaging."""

    recall: Array
    specificity: Array
    precision: Array
    npv: Array


class Table(Counts):
    """The counts with everything that more than one metric needs: rates of every class against the rest, means,
    logarithms.
    """

    # Rates, shape (..., K). The four that are worth averaging stand in one block, which is averaged at once.

    @lazy
    def rate_block(self) -> Array:
        """Recall, specificity, precision and NPV, shape (4, ..., K)."""
        hits = np.array((self.tp, self.tn, self.tp, self.tn))
        hits /= np.array((self.actual, self.rest, self.predicted, self.predicted_rest))
        return hits

    @lazy
    def reciprocal_block(self) -> Array:
        """Their reciprocals, infinite where nothing is right, shape (4, ..., K)."""
        return np.reciprocal(self.rate_block)

    @lazy
    def rates(self) -> Rates:
        """The four rates, each (..., K)."""
        return Rates(*self.rate_block)

    @lazy
    def reciprocals(self) -> Rates:
        """Their reciprocals, each (..., K)."""
        return Rates(*self.reciprocal_block)

    @lazy
    def mean_rates(self) -> Rates:
        """Their arithmetic means over the classes, each (...)."""
        return Rates(*mean(self.rate_block))

    @lazy
    def harmonic_rates(self) -> Rates:
        """Their harmonic means over the classes, each (...)."""
        return Rates(*(self.n_classes / total(self.reciprocal_block)))

    @lazy
    def rate_dispersions(self) -> Rates:
        """Dispersions around the harmonic means (Martín De Diego et al. 2022, eq. 9), each (...)."""
        return Rates(*dispersion_of_reciprocals(self.reciprocal_block))

    @lazy
    def recall(self) -> Array:
        """TP / P."""
        return self.rates.recall

    @lazy
    def fnr(self) -> Array:
        """FN / P."""
        return self.fn / self.actual

    @lazy
    def specificity(self) -> Array:
        """TN / N."""
        return self.rates.specificity

    @lazy
    def fpr(self) -> Array:
        """FP / N."""
        return self.fp / self.rest

    @lazy
    def roc_distance(self) -> Array:
        """Distance of (FPR, TPR) from (0, 1)."""
        return np.hypot(self.fpr, self.fnr)

    @lazy
    def precision(self) -> Array:
        """TP / T."""
        return self.rates.precision

    @lazy
    def npv(self) -> Array:
        """TN / (n - T)."""
        return self.rates.npv

    @lazy
    def prevalence(self) -> Array:
        """P / n."""
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
        return TWO / (self.reciprocals.recall + self.reciprocals.specificity)

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

    @lazy
    def worst_recall(self) -> Array:
        """Smallest recall, shape (...)."""
        return smallest(self.recall)

    @lazy
    def best_recall(self) -> Array:
        """Largest recall, shape (...)."""
        return largest(self.recall)

    @lazy
    def accuracy(self) -> Array:
        """Share of the samples on the diagonal, shape (...)."""
        return self.correct / self.n

    # Logarithmic parts, of shares and not of counts: sums of n ln n would lose the digits of a small entropy.

    @lazy
    def predicted_prevalence(self) -> Array:
        """T / n."""
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
        """P ln p of every cell's share of n, shape (..., K, K)."""
        return x_log_x(self.counts / cells(self.n))

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
        """-sum p ln(p / m) over the errors of each class with m = (P + T)/n: m times its confusion entropy, 0 if
        absent.
        """
        return np.abs(self.error_rate_ovr * np.log(np.maximum(self.margin_shares, TINY)) - self.error_logs)

    @lazy
    def union_entropy(self) -> Array:
        """The same with m = (TP + FP + FN)/n."""
        return np.abs(self.error_rate_ovr * np.log(np.maximum(self.union_shares, TINY)) - self.error_logs)

    @lazy
    def actual_logs(self) -> Array:
        """P/n ln P/n of each class."""
        return x_log_x(self.prevalence)

    @lazy
    def predicted_logs(self) -> Array:
        """T/n ln T/n of each class."""
        return x_log_x(self.predicted_prevalence)

    @lazy
    def excess(self) -> Array:
        """N n_ij - P_i T_j, shape (..., K, K): exact while n^2 < 2^53."""
        return self.counts * cells(self.n) - self.expected

    @lazy
    def expected(self) -> Array:
        """P_i T_j, n times the counts expected under independence, shape (..., K, K)."""
        return self.actual[..., :, None] * self.predicted[..., None, :]

    @lazy
    def deviation(self) -> Array:
        """N n_ij / (P_i T_j) - 1, the relative distance from independence, shape (..., K, K)."""
        return self.excess / self.expected

    @lazy
    def phi_squared(self) -> Array:
        """Pearson's chi-squared over n, sum n_ij^2 / (P_i T_j) - 1, shape (...).

        Near independence it is summed from the distance.
        """
        columns = np.reciprocal(self.predicted)[..., None, :]
        association: Array = inner(inner(self.counts * columns, self.counts), np.reciprocal(self.actual)) - ONE
        near = association < _NEAR_INDEPENDENCE
        if some(near):
            distance = total(total(self.excess * self.deviation)) / self.pairs
            association = np.where(near, distance, association)
        return association

    @lazy
    def mutual_information(self) -> Array:
        """Sum p_ij ln(p_ij n^2 / (P_i T_j)) in nats, shape (...).

        Entropies cancel near independence. There it is summed from the distance.
        """
        joint = total(self.row_logs)
        information: Array = joint - total(self.actual_logs) - total(self.predicted_logs)
        near = information < np.abs(joint) * _NEAR_INDEPENDENCE
        if some(near):
            # Empty cells and empty margins have p = 0 and count as 0 through any finite logarithm.
            parts = self.counts / cells(self.n) * np.log1p(np.fmax(self.deviation, ABOVE_MINUS_ONE))
            information = np.where(near, total(total(parts)), information)
        return information


def unified_performance_reciprocals(tp: Array, tn: Array, errors: Array) -> Array:
    """1/UPM = 1 + (FP + FN)(1/TP + 1/TN)/4, the mean of 1/PPV, 1/TPR, 1/TNR and 1/NPV in counts.

    NaN only where there is no error and one side has no case at all. Martín De Diego et al. (2022), eqs. 16-17.
    """
    return ONE + errors * (_QUARTER / tp + _QUARTER / tn)


def at_equal_prevalence(counts: Array) -> Array:
    """The matrices (..., K, K), or tables of any shape, with every row scaled to the same total, n kept.

    All NaN when a row is empty: no scale makes it equal.
    """
    actual = np.add.reduce(counts, axis=-1)
    scale = total(actual)[..., None] / counts.shape[-2] / actual
    scale = np.where(np.isfinite(scale).all(axis=-1, keepdims=True), scale, np.nan)
    return counts * scale[..., None]
