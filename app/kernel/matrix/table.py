"""Confusion matrices, single or in batches: counts, rates and sums that the metrics share, each computed once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from app.kernel.numerics.arrays import (
    ABOVE_MINUS_ONE,
    TINY,
    Array,
    cells,
    each,
    hollow,
    inner,
    largest,
    lazy,
    ones,
    silently,
    smallest,
    some,
    total,
    triangle,
    x_log_x,
)


def _of_counts(meaning: str, compute: "Callable[[OneVsRest], Array]") -> "lazy[OneVsRest, Array]":
    return lazy(compute, meaning)


def _of_table(meaning: str, compute: "Callable[[Table], Array]") -> "lazy[Table, Array]":
    return lazy(compute, meaning)


class OneVsRest:
    """Counts of a class against the rest, and what follows from them by arithmetic.

    They may be arrays, fractions, or anything else that has arithmetic.

    Args:
        tp: Members predicted as members.
        fp: Non-members predicted as members.
        actual: Members.
        rest: Non-members.
    """

    tp: Array
    actual: Array
    predicted: Array
    n_each: Array

    def __init__(self, tp: Any, fp: Any, actual: Any, rest: Any) -> None:
        self.__dict__.update(tp=tp, fp=fp, actual=actual, rest=rest, predicted=tp + fp, n_each=actual + rest)

    def transposed(self) -> "OneVsRest":
        """Counts with actual and predicted exchanged."""
        return OneVsRest(self.tp, self.fn, self.predicted, self.predicted_rest)

    fn = _of_counts("False negatives P - TP.", lambda c: c.actual - c.tp)
    fp = _of_counts("False positives T - TP.", lambda c: c.predicted - c.tp)
    errors = _of_counts("One-vs-rest errors FP + FN.", lambda c: c.fp + c.fn)
    rest = _of_counts("Actual non-members N = n - P.", lambda c: c.n_each - c.actual)
    predicted_rest = _of_counts("Predicted non-members n - T.", lambda c: c.n_each - c.predicted)
    tn = _of_counts("True negatives N - FP.", lambda c: c.rest - c.fp)
    margins = _of_counts("P + T of each class.", lambda c: c.actual + c.predicted)
    surplus = _of_counts("Predicted less actual members, T - P.", lambda c: c.predicted - c.actual)
    union = _of_counts("TP + FP + FN = P + T - TP.", lambda c: c.margins - c.tp)

    @lazy
    def determinant(self) -> Array:
        """TP TN - FP FN, linear in what is predicted of fixed classes."""
        return self.tp * self.rest - self.fp * self.actual

    correct_ovr = _of_counts("TP + TN of each class against the rest.", lambda c: c.tp + c.tn)

    # Rates.

    recall = _of_counts("TP / P.", lambda c: c.tp / c.actual)
    fnr = _of_counts("FN / P.", lambda c: c.fn / c.actual)
    specificity = _of_counts("TN / N.", lambda c: c.tn / c.rest)
    fpr = _of_counts("FP / N.", lambda c: c.fp / c.rest)
    precision = _of_counts("TP / T.", lambda c: c.tp / c.predicted)
    npv = _of_counts("TN / (n - T).", lambda c: c.tn / c.predicted_rest)
    f1 = _of_counts("2 TP / (2 TP + FP + FN) = 2 TP / (P + T).", lambda c: (c.tp + c.tp) / c.margins)
    f1_negative = _of_counts("F1 of the rest.", lambda c: (c.tn + c.tn) / (c.rest + c.predicted_rest))
    jaccard = _of_counts("TP / (TP + FP + FN).", lambda c: c.tp / c.union)
    right = _of_counts("TP TN.", lambda c: c.tp * c.tn)
    mixed_up = _of_counts("FP FN.", lambda c: c.fp * c.fn)
    prevalence = _of_counts("P / n.", lambda c: c.actual / c.n_each)
    lift = _of_counts("PPV over prevalence.", lambda c: c.precision / c.prevalence)
    odds = _of_counts("Diagnostic odds ratio TP TN / (FP FN).", lambda c: c.right / c.mixed_up)
    accuracy_ovr = _of_counts("(TP + TN) / n of each class against the rest.", lambda c: c.correct_ovr / c.n_each)


# Two sums of K x K numbers in another order differ by so much, times K and the sum, at most.
_ROUNDED = 4.0 * float(np.finfo(np.float64).eps)
# Sums over many samples likewise, as parts of the sum.
_ROUNDED_SUM = 1e-12
# Below this (part of 1, of the joint entropy) the shorter formula, a difference, would lose two digits.
_NEAR_INDEPENDENCE = np.array(0.05)


class Table(OneVsRest):
    """Confusion matrices (..., K, K), rows actual and columns predicted, with all that more than one metric needs, each
    computed once: sums, one-vs-rest rates, logarithms.

    Leading axes are a batch. Entries are counts, weights or rates: non-negative, finite and already checked. Attributes
    of shape (..., K) are one-vs-rest; those of shape (...) are of the whole matrix.

    Raises:
        ValueError: the last two axes are not square or there are fewer than two classes.
    """

    _make: Callable[[], Array]

    def __init__(self, counts: ArrayLike) -> None:
        given = self.__dict__["counts"] = np.asarray(counts, dtype=np.float64)
        shape = given.shape
        if len(shape) < 2 or shape[-1] != shape[-2] or shape[-1] < 2:
            raise ValueError(f"confusion matrices need shape (..., K, K) with K >= 2, got {shape}")
        self.n_classes: int = shape[-1]

    @classmethod
    def of_sums(cls, tp: Array, actual: Array, predicted: Array, counts: Callable[[], Array]) -> Self:
        """Return matrices by their diagonals and margins (..., K), which is all that most metrics read.

        Args:
            tp: Diagonals.
            actual: Sums of rows.
            predicted: Sums of columns.
            counts: Makes the matrices (..., K, K) themselves for what reads more.
        """
        made = cls.__new__(cls)
        made.n_classes, made._make = tp.shape[-1], counts
        made.__dict__.update(tp=tp, actual=actual, predicted=predicted)
        return made

    counts = _of_table("The matrices (..., K, K).", lambda t: t._make())

    # Counts, shape (..., K) unless said otherwise.

    tp = _of_table("True positives n_kk.", lambda t: t.counts.diagonal(0, -2, -1).copy())
    actual = _of_table("Actual members P of each class: row sums.", lambda t: total(t.counts))

    @lazy
    def predicted(self) -> Array:
        """Predicted members T of each class: column sums."""
        columns: Array = ones(self.n_classes).dot(self.counts)
        return columns

    n = _of_table("All samples, shape (...).", lambda t: total(t.actual))
    pairs = _of_table("n^2, shape (...).", lambda t: t.n * t.n)

    @lazy
    def n_each(self) -> Array:
        """All samples, repeated for each class: operations on arrays of one shape are faster than on an array and a
        number.
        """
        return each(self.n) * ones(self.n_classes)

    correct = _of_table("Correctly classified samples, the trace, shape (...).", lambda t: total(t.tp))

    @lazy
    def fp(self) -> Array:
        """False positives: of two classes the false negatives of the other."""
        return self.fn[..., ::-1] if self.n_classes == 2 else self.predicted - self.tp

    @lazy
    def tn(self) -> Array:
        """True negatives: of two classes the true positives of the other."""
        return self.tp[..., ::-1] if self.n_classes == 2 else self._left(self.n_each - self.actual - self.fp)

    # Sums of parts, so that a part that is 0 leaves all to the other.
    rest = _of_table("Actual non-members N.", lambda t: t.tn + t.fp)
    predicted_rest = _of_table("Predicted non-members n - T.", lambda t: t.tn + t.fn)

    def _left(self, difference: Array) -> Array:
        """Differences (..., K) of sums of cells, 0 where they are no more than rounding: of weights that leave
        nothing a rate would not be undefined, and its logarithm would be a number.
        """
        return np.where(difference > _ROUNDED * self.n_classes * self.n_each[..., :1], difference, 0.0)

    # Products of counts that many one-vs-rest metrics share.

    determinant = _of_table("TP TN - FP FN, with the digits of both products.", lambda t: t.right - t.mixed_up)
    joint_margins = _of_table("P T.", lambda t: t.actual * t.predicted)
    actual_spread = _of_table("P N.", lambda t: t.actual * t.rest)
    predicted_spread = _of_table("T (n - T).", lambda t: t.predicted * t.predicted_rest)

    # Sums over the classes, shape (...).

    wrong = _of_table("Wrongly classified samples.", lambda t: total(t.fn))

    @lazy
    def false_alarms(self) -> Array:
        """Samples predicted as a class they do not belong to; with one class each, the wrongly classified ones."""
        return self.wrong

    largest = _of_table("Samples of the most frequent class.", lambda t: largest(t.actual))
    others_predicted = _of_table("Samples predicted as any other class.", lambda t: smallest(t.predicted_rest))
    correct_margins = _of_table("Sum P T.", lambda t: total(t.joint_margins))
    actual_pairs = _of_table("Sum P N, pairs of samples of two classes.", lambda t: total(t.actual_spread))
    predicted_pairs = _of_table("Sum T (n - T).", lambda t: total(t.predicted_spread))
    squares = _of_table("Sum n_ij^2.", lambda t: total(np.vecdot(t.counts, t.counts)))
    actual_squares = _of_table("Sum P^2.", lambda t: inner(t.actual, t.actual))
    predicted_squares = _of_table("Sum T^2.", lambda t: inner(t.predicted, t.predicted))

    @lazy
    def pooled_squares(self) -> Array:
        """Sum (P + T)^2."""
        return self.actual_squares + self.predicted_squares + 2.0 * self.correct_margins

    @lazy
    def covariance(self) -> Array:
        """N tr C - sum P T = sum TP TN - FP FN: n^2 times (observed minus chance agreement)."""
        return total(self.determinant)

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
        # Other matrices keep their sum: a value must not depend on the rest of its batch.
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
        """Samples of the first k classes that are predicted as one of them: sums of the upper left corners."""
        # Class k adds row k up to the diagonal and column k above it. Sums of all corners of many matrices are four
        # times as slow.
        rows = np.vecdot(self.counts, triangle(self.n_classes))
        columns = np.vecdot(self.counts.swapaxes(-1, -2), triangle(self.n_classes, -1))
        return np.add.accumulate(rows + columns, axis=-1)[..., :-1]

    @lazy
    def cut_errors(self) -> Array:
        """Samples whose actual and predicted class lie on different sides of the cut."""
        return self._left(self.lower_actual + self.lower_predicted - 2.0 * self.lower_correct)

    @lazy
    def upper_correct(self) -> Array:
        """Samples whose actual and predicted class both lie above the cut."""
        return self._left(each(self.n) - self.lower_correct - self.cut_errors)

    # Rates, shape (..., K).

    @lazy
    def upm(self) -> Array:
        """Unified performance measure in its count form; 0 where there are errors and nothing is right."""
        return np.reciprocal(unified_performance_reciprocals(self.tp, self.tn, self.errors))

    roc_distance = _of_table("Distance of (FPR, TPR) from (0, 1).", lambda t: np.hypot(t.fpr, t.fnr))
    rate_product = _of_table("TPR TNR.", lambda t: t.recall * t.specificity)
    worst_recall = _of_table("Smallest recall, shape (...).", lambda t: smallest(t.recall))
    best_recall = _of_table("Largest recall, shape (...).", lambda t: largest(t.recall))
    accuracy = _of_table("Share of the samples on the diagonal, shape (...).", lambda t: t.correct / t.n)

    # Logarithmic parts, of shares and not of counts: sums of n ln n would lose the digits of a small entropy.

    predicted_prevalence = _of_table("T / n.", lambda t: t.predicted / t.n_each)
    error_rate_ovr = _of_table("(FP + FN) / n of each class.", lambda t: t.errors / t.n_each)
    margin_shares = _of_table("(P + T) / n of each class.", lambda t: t.margins / t.n_each)
    union_shares = _of_table("(TP + FP + FN) / n of each class.", lambda t: t.union / t.n_each)

    @lazy
    def share_logs(self) -> Array:
        """P ln p of every cell's share of n, shape (..., K, K)."""
        return x_log_x(self.counts / cells(self.n))

    row_logs = _of_table("sum_j p_ij ln p_ij, shape (..., K).", lambda t: total(t.share_logs))

    @lazy
    def error_logs(self) -> Array:
        """Sum of p ln p over the off-diagonal cells in the row and the column of each class.

        The diagonal is removed before summing: beside it the errors of a good classifier would lose their digits.
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
        """-sum p ln(p / m) over the errors of each class with m = (TP + FP + FN)/n, 0 if absent."""
        return np.abs(self.error_rate_ovr * np.log(np.maximum(self.union_shares, TINY)) - self.error_logs)

    actual_logs = _of_table("P/n ln P/n of each class.", lambda t: x_log_x(t.prevalence))
    predicted_logs = _of_table("T/n ln T/n of each class.", lambda t: x_log_x(t.predicted_prevalence))

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

        Near independence it is summed from the distance to it.
        """
        columns = np.reciprocal(self.predicted)[..., None, :]
        association: Array = inner(inner(self.counts * columns, self.counts), np.reciprocal(self.actual)) - 1.0
        near = association < _NEAR_INDEPENDENCE
        if some(near):
            distance = total(total(self.excess * self.deviation)) / self.pairs
            association = np.where(near, distance, association)
        return association

    @lazy
    def mutual_information(self) -> Array:
        """Sum p_ij ln(p_ij n^2 / (P_i T_j)) in nats, shape (...).

        Near independence, where entropies cancel, it is summed from the distance to it.
        """
        joint = total(self.row_logs)
        information: Array = joint - total(self.actual_logs) - total(self.predicted_logs)
        near = information < np.abs(joint) * _NEAR_INDEPENDENCE
        if some(near):
            # Empty cells and margins have p = 0; any finite logarithm gives 0.
            parts = self.counts / cells(self.n) * np.log1p(np.fmax(self.deviation, ABOVE_MINUS_ONE))
            information = np.where(near, total(total(parts)), information)
        return information


def unified_performance_reciprocals(tp: Array, tn: Array, errors: Array) -> Array:
    """1/UPM = 1 + (FP + FN)(1/TP + 1/TN)/4, the mean of 1/PPV, 1/TPR, 1/TNR and 1/NPV in counts.

    NaN only where there is no error and one side has no case at all. Martín De Diego et al. (2022), eqs. 16-17.
    """
    return 1.0 + errors * (0.25 / tp + 0.25 / tn)


def at_equal_prevalence(counts: Array) -> Array:
    """Matrices (..., K, K) with every row scaled to the same total, n kept.

    All NaN when a row is empty: no factor equalises it.
    """
    actual = np.add.reduce(counts, axis=-1)
    scale = total(actual)[..., None] / counts.shape[-2] / actual
    scale = np.where(np.isfinite(scale).all(axis=-1, keepdims=True), scale, np.nan)
    return counts * scale[..., None]


# A difference of sums below this part of them is rounding of 0.
_ROUNDING = 1e-13


class AdditiveGradient(NamedTuple):
    """A gradient of the form dM/dp_ij = [i = j] diagonal_i + rows_i + columns_j, each part (..., K).

    Accuracy, means of recalls, macro F1, MCC and kappa all have it, which makes their variances a few products of
    vectors instead of K^2 terms.
    """

    diagonal: Array
    rows: Array
    columns: Array

    @property
    def by_cell(self) -> Array:
        """Derivatives (..., K, K) by the share of each cell."""
        found = np.asarray(self.rows[..., :, None] + self.columns[..., None, :])
        places = np.arange(found.shape[-1])
        found[..., places, places] += self.diagonal
        return found


def recall_gradient(t: Table, slopes: Array) -> AdditiveGradient:
    """Gradient of a function of the recalls from its derivatives (..., K) by them."""
    per_sample = slopes * t.n_each / t.actual
    return AdditiveGradient(per_sample, -per_sample * t.recall, np.zeros_like(per_sample))


def stack(gradients: Sequence[AdditiveGradient]) -> AdditiveGradient:
    """Several gradients (..., K) as one (M, ..., K), for their variances in one go."""
    return AdditiveGradient(*map(np.array, zip(*gradients, strict=True)))


def additive_variance(t: Table, gradients: AdditiveGradient) -> Array:
    """Variances (M, ...) of metrics of matrices (..., K, K) under multinomial sampling: [sum p g^2 - (sum p g)^2] / n.

    A variance within rounding of 0 is returned as 0.
    """
    diagonal, rows, columns = gradients
    mean = total(diagonal * t.tp + rows * t.actual + columns * t.predicted) / t.n
    parts = (
        total(diagonal * (diagonal + 2.0 * (rows + columns)) * t.tp),
        total(rows * rows * t.actual + columns * columns * t.predicted),
        2.0 * total((rows[..., None, :] @ t.counts)[..., 0, :] * columns),
    )
    square = (parts[0] + parts[1] + parts[2]) / t.n
    size = (np.abs(parts[0]) + parts[1]) / t.n
    variance = square - mean * mean
    return np.where(variance <= _ROUNDING * (size + mean * mean), 0.0, variance) / t.n


# Small enough for the temporary array to stay in the cache, large enough for the loop not to matter.
_CHUNK = 1 << 16


def confusion_counts(
    y_true_codes: NDArray[np.integer[Any]],
    y_pred_codes: NDArray[np.integer[Any]],
    n_classes: int,
    weights: NDArray[np.float64] | None = None,
) -> NDArray[Any]:
    """Confusion matrix (K, K), rows actual, from two vectors of codes 0..K-1.

    Returns:
        int64 counts, or float64 sums of the weights (n,).

    Raises:
        ValueError: the vectors differ in length or a code is out of range.
    """
    n = len(y_true_codes)
    if len(y_pred_codes) != n or (weights is not None and len(weights) != n):
        raise ValueError("labels and weights must have the same length")
    for codes in (y_true_codes, y_pred_codes):
        if n and (codes.min() < 0 or codes.max() >= n_classes):
            raise ValueError(f"label codes must lie in 0..{n_classes - 1}")
    cells = n_classes * n_classes
    counts = np.zeros(cells, dtype=np.int64 if weights is None else np.float64)
    # Every chunk adds a whole matrix, so chunks grow with the number of classes.
    chunk = max(_CHUNK, 4 * cells)
    cell = np.empty(min(chunk, n), dtype=np.intp)
    for start in range(0, n, chunk):
        part = slice(start, start + chunk)
        here = cell[: min(chunk, n - start)]
        np.multiply(y_true_codes[part], n_classes, out=here, dtype=np.intp, casting="unsafe")
        here += y_pred_codes[part].astype(np.intp, copy=False)
        counts += np.bincount(here, None if weights is None else weights[part], minlength=cells)
    return counts.reshape(n_classes, n_classes)


class LabelTable(Table):
    """One-vs-rest counts of L labels of which a sample can have several, with the attributes of a `Table`.

    Every metric of one class against the rest, and every mean of such metrics, is computed on it by the same function.
    Attributes of shape (..., L) compare a label with its absence. Sums over classes are sums over labels: ``n`` is the
    number of labels that samples have, ``n_each`` the number of samples. There is no joint matrix of the labels, so
    attributes of the cells between two classes do not exist.

    Args:
        hits: Samples (..., L) with a label that was predicted for them.
        false: Samples (..., L) without the label for which it was predicted.
        missed: Samples (..., L) with the label for which it was not.
        others: Samples (..., L) with neither.
    """

    def __init__(self, hits: Array, false: Array, missed: Array, others: Array) -> None:
        # A `Table` computes these lazily from its matrix.
        self.__dict__.update(tp=hits, fp=false, fn=missed, tn=others, actual=hits + missed, predicted=hits + false)
        self.__dict__.update(rest=false + others, predicted_rest=missed + others, n_each=hits + false + missed + others)
        self.n_classes = hits.shape[-1]

    @classmethod
    def of(cls, counts: Array) -> Self:
        """Build it from tables (..., L, 2, 2): actual rows, predicted columns, absent before present."""
        cells = np.asarray(counts, dtype=np.float64)
        return cls(cells[..., 1, 1], cells[..., 0, 1], cells[..., 1, 0], cells[..., 0, 0])

    @classmethod
    def among(cls, hits: Array, false: Array, missed: Array, n_samples: Array) -> Self:
        """Build it from all samples (..., 1) in place of those with neither."""
        others = n_samples - (hits + false + missed)
        return cls(hits, false, missed, np.where(others > _ROUNDED_SUM * n_samples, others, 0.0))

    @lazy
    def false_alarms(self) -> Array:
        """Labels predicted for samples without them, summed over all labels."""
        return total(self.fp)

    def balanced(self) -> "LabelTable":
        """Tables with every label scaled to a prevalence of one half; NaN where it is 0 or 1."""
        with silently():
            known = self.actual * self.rest > 0.0
            half = np.where(known, 0.5 * self.n_each, np.nan)
            return LabelTable(half * self.recall, half * self.fpr, half * self.fnr, half * self.specificity)


@dataclass(frozen=True, slots=True, eq=False)
class WeightedCounts:
    """Confusion matrix of weighted samples: sums of weights, sums of their squares, and numbers of samples.

    Under sampling with replacement, which weights are made for, the variance of a metric of the matrix depends on the
    samples through these three alone: all samples of a cell have one derivative.

    Attributes:
        counts: (K, K) sums of weights, rows actual.
        squares: (K, K) sums of squared weights.
        samples: (K, K) numbers of samples with a weight above 0.
    """

    counts: Array
    squares: Array
    samples: Array

    @classmethod
    def of(
        cls,
        truth: NDArray[Any],
        predicted: NDArray[Any],
        weights: Array,
        n_classes: int,
        squares: Array | None = None,
        samples: NDArray[Any] | None = None,
    ) -> Self:
        """Build it from class codes (n) and weights (n); of entries that stand for several samples these are sums, as
        are ``squares`` (n), and there are so many ``samples`` (n) above 0 in each.
        """
        cells, size = truth * n_classes + predicted, n_classes * n_classes
        known = weights, weights * weights if squares is None else squares, weights > 0 if samples is None else samples
        sums = [np.bincount(cells, each, size) for each in known]
        return cls(*(each.reshape(n_classes, n_classes).astype(np.float64) for each in sums))

    @property
    def effective_samples(self) -> float:
        """(sum w)^2 / sum w^2: the effective number of samples for a mean. Kish (1965)."""
        return float(self.counts.sum() ** 2 / self.squares.sum())


def weight_scales(counts: Array, squares: Array) -> Array:
    """Mean weight (..., K, K) of the samples of each cell, each weighted by itself: sum w^2 / sum w.

    A cell without samples has the mean of its row, and an empty row 1.
    """
    with silently():
        rows = squares.sum(axis=-1, keepdims=True) / counts.sum(axis=-1, keepdims=True)
        scales: Array = np.where(counts > 0, squares / counts, np.where(np.isfinite(rows), rows, 1.0))
    return scales
