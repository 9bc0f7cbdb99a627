"""One order for a whole binary problem.

The two probabilities of a row are p and 1 - p. The samples are sorted by the smaller of the two. Cut in pieces and
partly reversed, that order is the order of either class, of the confidence, of p_true and of all 2n entries together:
one sort where there would be six.
"""

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.sorting import Flagged, Range, ascending_order, sort_flagged

# Rows may miss 1 by the rounding of their last bit.
_LAST_BIT = 2.0**-52
_BLOCK = 8192
_PIECE = 32768
_SATURATED = 1e-12
_UP_TO_HALF = Range(0.0, 0.5 + _LAST_BIT)
_MEMBER, _SMALL_IS_ONE = np.uint8(1), np.uint8(2)


class Rising(NamedTuple):
    """Samples by rising p_true: that (b,), its complement (b,), is the class 1 (b,), and weights (..., b)."""

    p_true: Array
    complement: Array
    members: Mask
    weights: Array | None


class ComplementaryOrder:
    """Samples of two classes ordered by the smaller probability; the larger is read as 1 minus it."""

    # Smaller problems are sorted column by column, exactly as they came.
    minimum_size = 4096

    def __init__(self, small: Array, flags: NDArray[np.uint8], weights: Array | None) -> None:
        self.small, self.weights = small, weights
        self.y = (flags & _MEMBER).view(np.bool_)
        small_is_one = flags >= _SMALL_IS_ONE
        self.correct = small_is_one != self.y
        # Where class 0, where class 1 has the smaller probability.
        self.sides = (np.flatnonzero(~small_is_one), np.flatnonzero(small_is_one))

    @classmethod
    def of(cls, probabilities: Array, y: NDArray[np.intp], weights: Array | None) -> Self | None:
        """The order of rows (n, 2); None where there are too few, or one misses 1 by more than rounding."""
        size = probabilities.shape[0]
        if size < cls.minimum_size:
            return None
        try:
            if weights is None:
                return cls(*sort_flagged(_smaller(probabilities, y), size, _UP_TO_HALF, 2), None)
            smaller, flags = (np.concatenate(parts) for parts in zip(*_smaller(probabilities, y), strict=True))
        except _NotComplementary:
            return None
        order, small = ascending_order(smaller)
        return cls(small, flags.take(order), weights.take(order, axis=-1))

    @cached_property
    def distinct(self) -> bool:
        """Are no two of the 2n probabilities equal?"""
        small = self.small
        starts = range(0, small.size - 1, _BLOCK)
        closest = min(float(np.diff(small[start : start + _BLOCK + 1]).min()) for start in starts)
        if small[-1] >= 0.5 or closest <= 0.0:
            return False
        # Small numbers that differ by less may have one complement.
        return closest > _LAST_BIT or bool((np.diff(1.0 - small) < 0.0).all())

    @property
    def unsaturated(self) -> bool:
        """Is no probability so near to 1 that phi, infinitely steep there, would feel the rounding of its digits?"""
        return float(self.small[0]) >= _SATURATED

    def members(self, code: int) -> Mask:
        """Which samples are of a class, by its falling probability."""
        low, high = self.sides[code], self.sides[1 - code]
        flags = np.empty_like(self.y)
        self.y.take(high, out=flags[: high.size], mode="clip")
        self.y.take(low[::-1], out=flags[high.size :], mode="clip")
        return flags if code else ~flags

    def weights_of(self, code: int) -> Array | None:
        """Weights by falling probability of a class."""
        if self.weights is None:
            return None
        return self.weights.take(np.concatenate([self.sides[1 - code], self.sides[code][::-1]]), axis=-1)

    def values(self, code: int, start: int = 0, stop: int | None = None) -> Array:
        """Probabilities of a class at some positions of its falling order."""
        low, high = self.sides[code], self.sides[1 - code]
        n = self.small.size
        stop = n if stop is None else stop
        of_high = self.small.take(high[start:stop])
        np.subtract(1.0, of_high, out=of_high)
        if stop <= high.size:
            return of_high
        of_low = self.small.take(low[n - stop : n - max(start, high.size)])[::-1]
        return of_low if start >= high.size else np.concatenate([of_high, of_low])

    def above(self, code: int, limits: Array) -> NDArray[np.intp]:
        """How many samples give a class a probability above each limit."""
        low, high = self.sides[code], self.sides[1 - code]
        # Where the larger probability is above the limit, the smaller one is below its complement.
        of_high = np.searchsorted(high, np.searchsorted(self.small, 1.0 - limits, side="left"))
        of_low = low.size - np.searchsorted(low, np.searchsorted(self.small, limits, side="right"))
        return of_high + of_low

    def regions(self, tolerance: float) -> tuple[Array, Array, Array]:
        """Weight of the samples of each class with p_true above and below 1/2, by more than a tolerance, and of all
        others; (..., 2).
        """
        border = int(np.searchsorted(self.small, 0.5 - tolerance, side="left"))
        far, near = slice(border), slice(border, None)
        y, correct = self.y[far], self.correct[far]
        above = self._weigh(far, ~y & correct, y & correct)
        below = self._weigh(far, ~y & ~correct, y & ~correct)
        return above, below, self._weigh(near, ~self.y[near], self.y[near])

    def _weigh(self, part: slice, *kinds: Mask) -> Array:
        """Weight (..., k) of the samples of some kinds, (b) each."""
        if self.weights is None:
            return np.array([np.count_nonzero(kind) for kind in kinds], dtype=np.float64)
        return np.stack([self.weights[..., part] @ kind.astype(np.float64) for kind in kinds], axis=-1)

    def pieces(self) -> Iterator[Rising]:
        """All samples by rising p_true, in pieces of about the same size."""
        n, right = self.small.size, int(np.count_nonzero(self.correct))
        window = _window(n, n - right)
        for start in range(0, n if right < n else 0, window):
            picked = np.flatnonzero(~self.correct[start : start + window])
            picked += start
            if picked.size:
                small = self.small.take(picked)
                yield Rising(small, 1.0 - small, self.y.take(picked), self._weights_at(picked))
        window = _window(n, right)
        for stop in range(n, 0 if right else n, -window):
            start = max(stop - window, 0)
            picked = np.flatnonzero(self.correct[start:stop])[::-1] + start
            if picked.size:
                small = self.small.take(picked)
                yield Rising(1.0 - small, small, self.y.take(picked), self._weights_at(picked))

    def by_p_true(self) -> Rising:
        """The pieces in one."""
        pieces = list(self.pieces())
        p_true, complement, members = (np.concatenate(parts) for parts in list(zip(*pieces, strict=True))[:3])
        if self.weights is None:
            return Rising(p_true, complement, members, None)
        weights = [piece.weights for piece in pieces if piece.weights is not None]
        return Rising(p_true, complement, members, np.concatenate(weights, axis=-1))

    def _weights_at(self, picked: NDArray[np.intp]) -> Array | None:
        return None if self.weights is None else self.weights.take(picked, axis=-1)

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


class _NotComplementary(Exception):
    """A row misses 1 by more than rounding."""


def _smaller(probabilities: Array, y: NDArray[np.intp]) -> Iterator[Flagged]:
    """The smaller probability of each row, with flags: class 1 is the actual one, class 1 has the smaller one."""
    for start in range(0, y.size, _PIECE):
        part = slice(start, start + _PIECE)
        zero, one = probabilities[part].T
        totals = zero + one
        if totals.min() < 1.0 - _LAST_BIT or totals.max() > 1.0 + _LAST_BIT:
            raise _NotComplementary
        flags = (one <= zero).view(np.uint8)
        flags <<= np.uint8(1)
        flags |= y[part].astype(np.uint8)
        yield Flagged(np.minimum(zero, one, out=totals), flags)


def _window(n: int, picked: int) -> int:
    """Length of the stretches of n samples that hold about as many picked ones as fit in the cache."""
    return max(1, min(n, _PIECE * n // max(picked, 1)))
