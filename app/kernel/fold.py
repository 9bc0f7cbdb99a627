"""One order for a whole binary problem.

The two probabilities of a row are p and 1 - p. Ordered by the smaller of the two, the samples give by cutting and
reversing the
order of either class, of the confidence, of p_true and of all 2n entries together: one sort where there would be six.
"""

from collections.abc import Callable
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics import Array, Mask
from app.kernel.sorting import Flags, ascending_order, sort_flagged

# Rows may miss 1 by the rounding of their last bit.
_LAST_BIT = 2.0**-52
_BLOCK = 8192
_SATURATED = 1e-12


class Sorted(NamedTuple):
    """Values (n,) in order, the flags that go with them (n,), and weights (..., n)."""

    values: Array
    members: Mask
    weights: Array | None


class Fold:
    """Samples of two classes ordered by the smaller probability; the larger is read as 1 minus it."""

    # Smaller problems are sorted column by column, exactly as they came.
    minimum_size = 4096

    def __init__(self, smaller: Array, flags: Flags, weights: Array | None) -> None:
        self.weights: Array | None = None
        if weights is None:
            self.small, flags = sort_flagged(smaller, flags)
        else:
            order, self.small = ascending_order(smaller)
            flags, self.weights = flags.take(order), weights.take(order, axis=-1)
        self.y = (flags & np.uint8(1)).view(np.bool_)
        small_is_one = flags >= 2
        self.correct = small_is_one != self.y
        # Where class 0, where class 1 has the smaller probability.
        self.sides = (np.flatnonzero(~small_is_one), np.flatnonzero(small_is_one))

    @classmethod
    def of(cls, probabilities: Array, y: NDArray[np.intp], weights: Array | None) -> Self | None:
        """The fold of rows (n, 2); None where there are too few, or one misses 1 by more than rounding."""
        size = probabilities.shape[0]
        if size < cls.minimum_size:
            return None
        smaller, flags = np.empty(size), np.empty(size, dtype=np.uint8)
        for start in range(0, size, _BLOCK):
            part = slice(start, start + _BLOCK)
            zero, one = np.ascontiguousarray(probabilities[part].T)
            totals = zero + one
            if totals.min() < 1.0 - _LAST_BIT or totals.max() > 1.0 + _LAST_BIT:
                return None
            np.minimum(zero, one, out=smaller[part])
            # Second bit: class 1 has the smaller probability. First bit: class 1 is the actual one.
            np.multiply(one <= zero, np.uint8(2), out=flags[part])
            flags[part] += y[part].astype(np.uint8)
        return cls(smaller, flags, weights)

    @cached_property
    def large(self) -> Array:
        """The larger probabilities, falling."""
        return 1.0 - self.small

    @cached_property
    def distinct(self) -> bool:
        """Are no two of the 2n probabilities equal?"""
        if not (self.small[-1] < 0.5 and (self.small[1:] > self.small[:-1]).all()):
            return False
        # Small numbers that differ may have one complement.
        parts = (1.0 - self.small[start : start + _BLOCK + 1] for start in range(0, self.small.size, _BLOCK))
        return all(bool((large[1:] < large[:-1]).all()) for large in parts)

    @property
    def unsaturated(self) -> bool:
        """Is no probability so near to 1 that phi, infinitely steep there, would feel the rounding of its last
        digit?
        """
        return float(self.small[0]) >= _SATURATED

    def column(self, code: int) -> Sorted:
        """Samples by falling probability of one class; members are of it."""
        low, high = self.sides[code], self.sides[1 - code]
        members = self.y if code else ~self.y
        return self._join(high, low, members)

    def value(self, code: int, position: int) -> float:
        """The probability of a class at one position of its falling order."""
        low, high = self.sides[code], self.sides[1 - code]
        if position < high.size:
            return 1.0 - float(self.small[high[position]])
        return float(self.small[low[self.small.size - 1 - position]])

    def top_label(self) -> Sorted:
        """Samples by rising doubt, the complement of the confidence; members are predicted rightly."""
        return Sorted(self.small, self.correct, self.weights)

    @cached_property
    def _right(self) -> NDArray[np.intp]:
        """Samples whose class has the larger probability, by rising p_true."""
        return np.flatnonzero(self.correct)[::-1]

    @cached_property
    def _wrong(self) -> NDArray[np.intp]:
        """Samples whose class has the smaller probability, by rising p_true."""
        return np.flatnonzero(~self.correct)

    def by_p_true(self, start: int, stop: int) -> tuple[Array, Array, Mask, Array | None]:
        """Some of the samples by rising p_true: that, its complement, is the class 1, and weights."""
        border = self._wrong.size
        wrong = self._wrong[min(start, border) : min(stop, border)]
        right = self._right[max(start - border, 0) : max(stop - border, 0)]
        picked = wrong if right.size == 0 else right if wrong.size == 0 else np.concatenate([wrong, right])
        small = self.small.take(picked)
        large = 1.0 - small
        if wrong.size and right.size:
            p_true, complement = small.copy(), large.copy()
            p_true[wrong.size :], complement[wrong.size :] = large[wrong.size :], small[wrong.size :]
        else:
            p_true, complement = (small, large) if wrong.size else (large, small)
        weights = None if self.weights is None else self.weights.take(picked, axis=-1)
        return p_true, complement, self.y.take(picked), weights

    def crossing(self, code: int) -> Callable[[NDArray[np.intp]], NDArray[np.intp]]:
        """From positions in falling order of a class to how many samples have the other class at least as probable."""
        low, high = self.sides[code], self.sides[1 - code]
        n = self.small.size

        def count(positions: NDArray[np.intp]) -> NDArray[np.intp]:
            # Above a large p lie the larger ones of the other column; above a small p all of its large ones and some
            # small ones.
            if positions[-1] < high.size:
                return high.take(positions) - positions
            border = int(np.searchsorted(positions, high.size))
            in_low = n - 1 - positions[border:]
            above_low = in_low - low.take(in_low)
            above_low += n
            if border == 0:
                return above_low
            return np.concatenate([high.take(positions[:border]) - positions[:border], above_low])

        return count

    def _join(self, first: NDArray[np.intp], last: NDArray[np.intp], members: Mask) -> Sorted:
        """By falling probability: the samples ``first``, of which it is the larger, then ``last`` backwards."""
        values, flags = np.empty_like(self.small), np.empty_like(self.y)
        head, tail = slice(first.size), slice(first.size, None)
        for picked, part in ((first, head), (last[::-1], tail)):
            self.small.take(picked, out=values[part], mode="clip")
            members.take(picked, out=flags[part], mode="clip")
        np.subtract(1.0, values[head], out=values[head])
        if self.weights is None:
            return Sorted(values, flags, None)
        return Sorted(values, flags, self.weights.take(np.concatenate([first, last[::-1]]), axis=-1))
