"""What is added up over the samples: losses with their squares, phi and shares, exactly."""

from collections.abc import Sequence
from fractions import Fraction
from typing import Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Groups
from app.kernel.folds.groups.influence import GroupedLosses
from app.kernel.folds.groups.sums import GroupSums
from app.kernel.folds.keys import Probabilities
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, Gather, spread
from app.kernel.samples.losses import CLIP, TOLERANCE, Codes, Losses, entries_of_truth, phi_of, sums_by_code

# Up to so many classes a product with the one-hot truth is faster than counting.
_BY_PRODUCT = 8
# What is summed; the squares follow in the same order.
LOG_LOSS, SQUARED_ERROR, COSINE, PHI = range(4)
KINDS = 4
# Of each group there are besides how many samples are surely right, and how many are ruled out.
SURE, RULED_OUT = 4, 5
# Where groups are, values are whole multiples of these powers of 2: log losses are below 2^6, all others at most 2.
_EXPONENTS = np.array([-52, -57, -57, -57, 0, 0])
_EMPTY: tuple[float, float] = (np.inf, -np.inf)


class LossSums:
    """Sums over the samples of each class.

    Every value is made by operations that are rounded in one way wherever a sample stands, so sums are the same
    whatever comes together.

    Attributes:
        counts: Samples, those with p_true > 1/2, with p_true < 1/K and with p_true < 2^-52, (4, K).

    Args:
        n_classes: K.
        grouped: Do samples have groups? Within these values are rounded down to multiples of 2^-52 and less.
    """

    # Samples at once.
    _block = BLOCK

    def __init__(self, n_classes: int, *, grouped: bool = False) -> None:
        self.n_classes = n_classes
        self._groups = GroupSums(len(_EXPONENTS)) if grouped else None
        self.counts: NDArray[np.int64] = np.zeros((4, n_classes), dtype=np.int64)
        self._sums = ExactSums((2 * KINDS, n_classes))
        self._range = _EMPTY
        self._one_hot = np.eye(n_classes)

    def add(
        self, probabilities: Probabilities, y: Codes, groups: Groups | None = None, weights: Array | None = None
    ) -> None:
        """Add rows (n, K) with codes (n); of two classes (n) of class 1 do. Groups (n) and weights (n) where samples
        have some.
        """
        for start in range(0, y.size, self._block):
            part = slice(start, start + self._block)
            beside = None if groups is None else groups[part], None if weights is None else weights[part]
            self._add(probabilities[part], y[part], *beside)

    def merge(self, other: Self) -> None:
        """Take in the sums of others."""
        self.counts = self.counts + other.counts
        self._sums.merge(other._sums)
        self._range = min(self._range[0], other._range[0]), max(self._range[1], other._range[1])
        if self._groups is not None and other._groups is not None:
            self._groups.merge(other._groups)

    @property
    def bytes_of_groups(self) -> int:
        """Bytes in memory for groups, as of when they were looked at last."""
        return 0 if self._groups is None else self._groups.nbytes

    def by_group(self) -> GroupedLosses | None:
        """The same of each group."""
        return None if self._groups is None else GroupedLosses(self._groups, self.n_classes, np.ldexp(1.0, _EXPONENTS))

    def losses(self) -> Losses:
        """As metrics take them."""
        sums = self._sums.rounded()
        size, sure, ruled_out, _ = self.counts.astype(np.float64)
        undecided = size - sure - ruled_out
        return Losses(sums[LOG_LOSS], sums[SQUARED_ERROR], sums[COSINE], sure, ruled_out, undecided, *self._range)

    def phi(self) -> Array:
        """Sum of phi over the samples of each class (K)."""
        return np.asarray(self._sums.rounded()[PHI])

    def variance(self, kind: int, shifts: Array | None = None) -> float:
        """Variance over n - 1 of a kind of values of all samples, to which shifts (K) of their classes are added."""
        exact, size = self._sums.exact(), self.n_classes
        parts = zip(exact[kind * size :][:size], exact[(kind + KINDS) * size :][:size], self.counts[0], strict=True)
        first = second = Fraction(0)
        for (own, squares, count), shift in zip(parts, np.zeros(size) if shifts is None else shifts, strict=True):
            more, held = Fraction(float(shift)), int(count)
            first += own + held * more
            second += squares + 2 * more * own + held * more * more
        return spread(first, second, int(self.counts[0].sum()))

    def variances(self, kind: int) -> Array:
        """The same within each class (K)."""
        exact, size = self._sums.exact(), self.n_classes
        rows = zip(exact[kind * size :][:size], exact[(kind + KINDS) * size :][:size], self.counts[0], strict=True)
        return np.array([spread(first, second, int(count)) for first, second, count in rows])

    def share_variance(self, counted: Sequence[int], *, rest: bool) -> float:
        """Variance over n - 1 of being counted, by some of the counts or by none of them."""
        size = int(self.counts[0].sum())
        inside = sum(int(self.counts[1 + one - KINDS].sum()) for one in counted)
        value = (size - inside if rest else inside) / size
        return value * (1.0 - value) * size / max(size - 1, 1)

    def _add(self, probabilities: Probabilities, y: Codes, groups: Groups | None, weights: Array | None) -> None:
        values = np.empty((2 * KINDS, y.size))
        p_true, squared_length = self._rows(probabilities, y, values[SQUARED_ERROR])
        low, high = float(p_true.min()), float(p_true.max())
        self._range = min(self._range[0], low), max(self._range[1], high)
        np.log(np.maximum(p_true, CLIP, out=values[LOG_LOSS]), out=values[LOG_LOSS])
        np.negative(values[LOG_LOSS], out=values[LOG_LOSS])
        np.divide(p_true, np.sqrt(squared_length, out=squared_length), out=values[COSINE])
        phi_of(p_true, out=values[PHI])
        gather, regions = self._gather(y), self._regions(p_true)
        if self._groups is not None and groups is not None:
            of_each = np.concatenate([values[:KINDS], regions[1:3]])
            whole = np.ldexp(of_each, -_EXPONENTS[:, None]).astype(np.int64)
            self._groups.add(groups, y.astype(np.int64, copy=False), whole)
        self.counts += gather(regions).astype(np.int64)
        self._sums.add(self._summed(values, regions, weights), gather)

    def _summed(self, values: Array, _: Array, __: Array | None) -> Array:
        """What is added up of the values, which stand in front, of regions and of weights."""
        np.multiply(values[:KINDS], values[:KINDS], out=values[KINDS:])
        return values

    def _rows(self, probabilities: Probabilities, y: Codes, squared_error: Array) -> tuple[Array, Array]:
        """p_true and the squared length of each row; the squared error goes to where it belongs."""
        if probabilities.ndim == 1:
            one = probabilities.astype(np.float64, copy=False)
            zero = 1.0 - one
            np.subtract(one, y, out=squared_error)
            np.square(squared_error, out=squared_error)
            return np.where(y, one, zero), one * one + zero * zero
        columns = np.array(probabilities.T, order="C", dtype=np.float64)
        # One column after the other, since products of matrices add in an order of their own.
        squared_length = np.zeros(y.size)
        squared_error[:] = 0.0
        for code, column in enumerate(columns):
            squared_length += column * column
            if self.n_classes > 2 or code == 1:
                away = column - (y == code)
                squared_error += away * away
        return entries_of_truth(np.ascontiguousarray(probabilities, dtype=np.float64), y), squared_length

    def _gather(self, y: Codes) -> Gather:
        """Sums rows (r, n) by class, (r, K)."""
        if self.n_classes > _BY_PRODUCT:
            return lambda rows: sums_by_code(y, rows, self.n_classes)
        truth = self._one_hot.take(y, axis=0)
        return lambda rows: rows @ truth

    def _regions(self, p_true: Array) -> Array:
        """1 for every sample, for those with p_true > 1/2, with p_true < 1/K and with p_true < 2^-52, (4, n)."""
        counted = np.ones((4, p_true.size))
        np.greater(p_true, 0.5 + TOLERANCE, out=counted[1], casting="unsafe")
        np.less(p_true, 1.0 / self.n_classes - TOLERANCE, out=counted[2], casting="unsafe")
        np.less(p_true, CLIP, out=counted[3], casting="unsafe")
        return counted
