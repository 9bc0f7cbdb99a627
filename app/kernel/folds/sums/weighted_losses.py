"""What is added up over samples with weights: losses, phi and shares, in exact products."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from app.kernel.folds.sums.losses import COSINE, KINDS, LOG_LOSS, PHI, RULED_OUT, SQUARED_ERROR, SURE, LossSums
from app.kernel.folds.weights.totals import WeightTotals
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_products import Halves, products, weighted_powers
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, weighted_spread
from app.kernel.samples.losses import Losses

# Values in their weights, values and their squares in squared weights, and what rounding took from these products.
_PRODUCTS = 3 * KINDS
# Behind them the two regions in their weights, and in squared weights.
_REGIONS = 2 * _PRODUCTS
_ROWS = _REGIONS + 4


class WeightedLossSums(LossSums):
    """Sums over the samples of each class in their weights.

    Variances are those of weighted means times the effective number of samples, so that they are divided by numbers of
    samples as all others are.

    Args:
        n_classes: K.
        totals: What the samples weigh, which is added up elsewhere.
    """

    # Of so many rows half as many take as much memory as others do.
    _block = BLOCK // 2

    def __init__(self, n_classes: int, totals: WeightTotals) -> None:
        super().__init__(n_classes)
        self._totals = totals
        self._sums = ExactSums((_ROWS, n_classes))

    def losses(self) -> Losses:
        """As metrics take them."""
        weights = self._totals.by_class()[0]
        values = [_as_floats(self._rows_of(kind)[0]) for kind in (LOG_LOSS, SQUARED_ERROR, COSINE)]
        sure, ruled_out = (self._rows_of(region)[0] for region in (SURE, RULED_OUT))
        # A difference of what was rounded would not be 0 where nothing is left.
        undecided = [whole - one - other for whole, one, other in zip(weights, sure, ruled_out, strict=True)]
        regions = [_as_floats(row) for row in (sure, ruled_out, undecided)]
        return Losses(values[0], values[1], values[2], regions[0], regions[1], regions[2], *self._range)

    def phi(self) -> Array:
        """Sum of phi over the samples of each class (K)."""
        return _as_floats(self._rows_of(PHI)[0])

    def variance(self, kind: int, shifts: Array | None = None) -> float:
        """Of a kind of values of all samples, to which shifts (K) of their classes are added."""
        weights, squares = self._totals.by_class()
        first, second, third = self._rows_of(kind)
        total, sums = Fraction(0), [Fraction(0)] * 3
        for code, shift in enumerate(np.zeros(self.n_classes) if shifts is None else shifts):
            more = Fraction(float(shift))
            total += first[code] + more * weights[code]
            own = (
                squares[code],
                second[code] + more * squares[code],
                _squared(third[code], second[code], squares[code], more),
            )
            sums = [one + each for one, each in zip(sums, own, strict=True)]
        return self._of_mean(total, sums, range(self.n_classes))

    def variances(self, kind: int) -> Array:
        """The same within each class (K)."""
        squares = self._totals.by_class()[1]
        rows = zip(*self._rows_of(kind), squares, strict=True)
        return np.array(
            [
                self._of_mean(total, (plain, first, second), [code])
                for code, (total, first, second, plain) in enumerate(rows)
            ]
        )

    def share_variance(self, counted: Sequence[int], *, rest: bool) -> float:
        """Of being counted by some of the counts, or by none of them."""
        weights, squares = self._totals.by_class()
        parts = [self._rows_of(one) for one in counted]
        total, first = (sum((sum(part[row], Fraction(0)) for part in parts), Fraction(0)) for row in (0, 1))
        plain = sum(squares, Fraction(0))
        if rest:
            total, first = sum(weights, Fraction(0)) - total, plain - first
        return self._of_mean(total, (plain, first, first), range(self.n_classes))

    def _of_mean(self, total: Fraction, sums: Sequence[Fraction], codes: Sequence[int]) -> float:
        weight = sum((self._totals.by_class()[0][code] for code in codes), Fraction(0))
        if not weight:
            return 0.0
        used = int(self._totals.used[[*codes]].sum())
        spread = float(weighted_spread(total / weight, sums, used, exact=True) / weight**2)
        return spread * self._totals.effective(codes)

    def _rows_of(self, value: int) -> tuple[list[Fraction], ...]:
        """Sums (K) of a value or a region in the weights, in squared weights, and of its square in these."""
        exact, size = self._sums.exact(), self.n_classes
        rows = [exact[start : start + size] for start in range(0, len(exact), size)]
        if value >= KINDS:
            first, second = (rows[_REGIONS + value - KINDS + more] for more in (0, 2))
            return first, second, second
        return tuple(
            [rounded + rest for rounded, rest in zip(rows[row], rows[_PRODUCTS + row], strict=True)]
            for row in range(value, _PRODUCTS, KINDS)
        )

    def _summed(self, values: Array, regions: Array, weights: Array | None) -> Array:
        if weights is None:
            raise ValueError("expected samples with weights")
        each, inside, squares = values[:KINDS], regions[1:3], weights * weights
        weighed, rest = products(Halves.of(weights), Halves.of(each))
        squared, more = weighted_powers(squares, each)
        return np.concatenate([weighed, squared, rest, more, weights * inside, squares * inside])


def _as_floats(row: Sequence[Fraction]) -> Array:
    return np.array([float(one) for one in row])


def _squared(second: Fraction, first: Fraction, plain: Fraction, more: Fraction) -> Fraction:
    """Sum of squares of what is moved."""
    return second + 2 * more * first + more * more * plain
