"""Sorting fast: numpy sorts 16-bit numbers by radix, so passes over those do most of the work.

Large temporary arrays cost more than the arithmetic on them; they are few here and reused.
"""

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array

Order = NDArray[np.intp]
Keys = NDArray[np.uint64]

# What flags may take.
MAX_BITS = 8
# Below this size a plain sort is faster.
_SMALL = 2048
# Leaves room for rounding below the highest level.
_LEVELS_32 = 2.0**32 - 1024.0
_SLACK = 1e-9
# Samples that go into one bucket, which then fits in the second-level cache, and how many buckets there are at most.
_BUCKET = 32768
_BUCKETS = 32
_NO_BUCKET = np.empty(0, dtype=np.uint8)
# Fewer samples than this stay together.
_LARGE = 1 << 18
# Rows of these lengths are sorted after a 16-bit pass, twice, half a row apart: that repairs every level of half a row.
_ROWS = (64, 512)
# Neighbours out of order that are exchanged one by one; more of them are left to timsort.
_FEW = 4096
_EXCHANGES = 16


def ascending_order(values: Array) -> tuple[Order, Array]:
    """Indices (n,) that sort finite values (n,), ties in any order, and the sorted values.

    The values are rounded to 32 bits and sorted by their lower, then by their upper half. The little that rounding has
    left in disorder is repaired; where rounding tells values badly apart, there is more to repair.
    """
    low, scale = _spread(values, _LEVELS_32)
    if values.size < _SMALL or scale == 0.0:
        order = np.argsort(values)
        return order, values.take(order)
    scaled = values - low
    scaled *= scale
    levels = scaled.astype(np.uint32)
    by_lower = np.argsort(levels.astype(np.uint16), kind="stable")
    levels >>= np.uint32(16)
    order = by_lower.take(np.argsort(levels.astype(np.uint16).take(by_lower), kind="stable"))
    ordered = values.take(order, out=scaled, mode="clip")
    if _exchange(ordered, order):
        return order, ordered
    repair = np.argsort(ordered, kind="stable")
    return order.take(repair), ordered.take(repair)


class Flagged(NamedTuple):
    """Values (b,) that are not negative, with flags (b,): whole numbers that take a given number of bits."""

    values: Array
    flags: NDArray[np.unsignedinteger]


class Range(NamedTuple):
    """The lowest and the highest of some values that are not negative."""

    low: float
    high: float

    @classmethod
    def of(cls, values: Array) -> Self:
        """That of values (n,)."""
        # Adding 0 makes 0 of -0.
        return cls(float(values.min()) + 0.0, float(values.max()) + 0.0)

    @property
    def free_bits(self) -> int:
        """How many of 64 bits are not needed to tell apart the numbers of the range."""
        return 64 - int(_bits_of(self.high) - _bits_of(self.low)).bit_length()


def sort_flagged(pieces: Iterable[Flagged], size: int, within: Range, bits: int) -> tuple[Array, NDArray[np.uint8]]:
    """Sorted values (n,) with the flags that belong to them; ties in any order.

    The bits of numbers that are not negative rise with the numbers and seldom use all their range: what it leaves free
    at the top takes the flags, and the keys sort as integers, without an index and without losing a digit. Many are
    dealt out to buckets first, so that everything after happens in the cache.

    Args:
        pieces: the values, in stretches that fit in the cache.
        size: how many there are in all, n.
        within: their range, which leaves enough bits free.
        bits: how many the flags need, at most 8.
    """
    lowest, shift, mask = _bits_of(within.low), np.uint64(bits), np.uint64((1 << bits) - 1)
    ordered, carried = np.empty(size), np.empty(size, dtype=np.uint8)
    buckets = 1 if size < _LARGE else min(size // _BUCKET, _BUCKETS)
    done = 0
    for keys in _dealt(_keyed(pieces, within, shift, buckets), size, buckets):
        part = slice(done, done + keys.size)
        done = part.stop
        keys = _sort_bucket(keys, shift)
        np.bitwise_and(keys, mask, out=carried[part], casting="unsafe")
        keys >>= shift
        np.add(keys, lowest, out=ordered[part].view(np.uint64))
    return ordered, carried


def _bits_of(value: float) -> np.uint64:
    return np.float64(value).view(np.uint64)


def _keyed(
    pieces: Iterable[Flagged], within: Range, shift: np.uint64, buckets: int
) -> Iterator[tuple[Keys, NDArray[np.uint8]]]:
    """Keys made of values and flags, and the bucket of each."""
    # A little less than the number of buckets, so that rounding leads to no further one.
    lowest, scale = _bits_of(within.low), _scale(*within, buckets * (1.0 - _SLACK))
    for values, flags in pieces:
        # Adding 0 makes 0 of -0, the bits of which do not rise with the others.
        unsigned = values if within.low > 0.0 else values + 0.0
        keys = unsigned.view(np.uint64) - lowest
        keys <<= shift
        keys |= flags
        yield keys, ((values - within.low) * scale).astype(np.uint8) if buckets > 1 else _NO_BUCKET


def _dealt(keyed: Iterable[tuple[Keys, NDArray[np.uint8]]], size: int, buckets: int) -> Iterator[Keys]:
    """The keys of each bucket that is not empty."""
    if buckets == 1:
        yield np.concatenate([keys for keys, _ in keyed])
        return
    dealt = np.empty(size, dtype=np.uint64)
    bounds, done, limits = [], 0, np.arange(buckets + 1)
    for keys, bucket in keyed:
        order = np.argsort(bucket, kind="stable")
        keys.take(order, out=dealt[done : done + keys.size], mode="clip")
        bounds.append((np.searchsorted(bucket, limits, sorter=order) + done).tolist())
        done += keys.size
    for first, last in pairwise(zip(*bounds, strict=True)):
        filled = [dealt[start:stop] for start, stop in zip(first, last, strict=True) if start < stop]
        if filled:
            yield np.concatenate(filled)


def _sort_bucket(keys: Keys, shift: np.uint64) -> Keys:
    """Keys sorted by all but their flags."""
    keys = keys.take(np.argsort(_levels(keys, 1 << int(shift)), kind="stable"))
    for row in _ROWS:
        for start in (0, row // 2):
            rows = (keys.size - start) // row
            keys[start : start + rows * row].reshape(rows, row).sort(axis=1)
        keys[-2 * row :].sort()
        bare = keys >> shift
        if (bare[1:] >= bare[:-1]).all():
            return keys
    # Numbers that rise evenly with the keys, or the same number for keys that are as near as can be.
    return keys.take(ascending_order(bare.view(np.float64))[0])


def _levels(keys: Keys, unit: int) -> NDArray[np.uint16]:
    """Keys rounded down to 16 bits; those below a unit, which are of one value, may lie far below the others."""
    low, high = int(keys.min()), int(keys.max())
    if unit <= low or high < unit:
        levels, room = keys - np.uint64(low), 16
    else:
        low, room = int(keys.min(where=keys >= np.uint64(unit), initial=high)), 15
        base = np.uint64(max(low - (1 << max((high - low).bit_length() - room, 0)), 0))
        levels = np.maximum(keys, base)
        levels -= base
    levels >>= np.uint64(max((high - low).bit_length() - room, 0))
    return levels.astype(np.uint16)


def _spread(values: Array, levels: float) -> tuple[float, np.float64]:
    """Lowest value and the factor that spreads the values over 0..levels; 0 where no factor does."""
    low, high = float(values.min()), float(values.max())
    return low, _scale(low, high, levels)


def _scale(low: float, high: float, levels: float) -> np.float64:
    with np.errstate(over="ignore", divide="ignore"):
        scale = np.float64(levels) / (high - low)
    return scale if np.isfinite(scale) else np.float64(0.0)


def _exchange(ordered: Array, order: Order) -> bool:
    """Put a few neighbours right that stand in the wrong order, in place. False when that is not enough."""
    wrong = np.flatnonzero(ordered[1:] < ordered[:-1])
    for _ in range(_EXCHANGES):
        if wrong.size == 0:
            return True
        if wrong.size > _FEW:
            return False
        # No two exchanges at once may touch.
        first = wrong[np.concatenate([[True], np.diff(wrong) > 1])]
        for array in (ordered, order):
            array[first], array[first + 1] = array[first + 1], array[first]
        near = np.unique(np.concatenate([first - 1, first, first + 1, wrong]))
        near = near[(near >= 0) & (near < ordered.size - 1)]
        wrong = near[ordered[near + 1] < ordered[near]]
    return wrong.size == 0
