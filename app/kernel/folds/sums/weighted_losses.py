"""What is added up over samples with weights: losses, phi and shares, exactly but for the rounding of each product."""

from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from app.kernel.folds.sums.losses import COSINE, KINDS, LOG_LOSS, RULED_OUT, SQUARED_ERROR, SURE, LossSums
from app.kernel.folds.weights.totals import WeightTotals
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.exact_sums import ExactSums, weighted_spread
from app.kernel.samples.losses import Losses

# Values and regions in their weights, both in squared weights, and squared values in squared weights.
_EACH = KINDS + 2
_ROWS = 2 * _EACH + KINDS


class WeightedLossSums(LossSums):
    """Sums over the samples of each class in their weights.

    Variances are those of weighted means times the effective number of samples, so that they are divided by numbers of
    samples as all others are.

    Args:
        n_classes: K.
        totals: What the samples weigh, which is added up elsewhere.
    """

    def __init__(self, n_classes: int, totals: WeightTotals) -> None:
        super().__init__(n_classes)
        self._totals = totals
        self._sums = ExactSums((_ROWS, n_classes))

    def losses(self) -> Losses:
        """As metrics take them."""
        sums = self._sums.rounded()
        return Losses(sums[LOG_LOSS], sums[SQUARED_ERROR], sums[COSINE], sums[SURE], sums[RULED_OUT], *self._range)

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

    def share_variance(self, value: float, counted: Sequence[int], *, rest: bool) -> float:  # noqa: ARG002 - of samples that count 1 each
        """Of being counted by some of the counts, or by none of them; the share that is follows from the sums."""
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
        spread = float(weighted_spread(total / weight, sums, used) / weight**2)
        return spread * self._totals.effective(codes)

    def _rows_of(self, value: int) -> tuple[list[Fraction], ...]:
        """Sums (K) of a value or a region in the weights, in squared weights, and of its square in these."""
        exact, size = self._sums.exact(), self.n_classes
        squared = 2 * _EACH + value if value < KINDS else _EACH + value
        return tuple(exact[row * size :][:size] for row in (value, _EACH + value, squared))

    def _summed(self, values: Array, regions: Array, weights: Array | None) -> Array:
        if weights is None:
            raise ValueError("expected samples with weights")
        each = np.concatenate([values[:KINDS], regions[1:3]])
        squared = weights * weights * each
        return np.concatenate([weights * each, squared, squared[:KINDS] * values[:KINDS]])


def _squared(second: Fraction, first: Fraction, plain: Fraction, more: Fraction) -> Fraction:
    """Sum of squares of what is moved."""
    return second + 2 * more * first + more * more * plain
