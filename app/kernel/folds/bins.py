"""Bins of equal width over [0, 1] that calibration errors are made of: counts, and exact sums of scores."""

from fractions import Fraction
from itertools import pairwise
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.fold import NotFolded
from app.kernel.metrics.families.probabilities.calibration import expected_calibration_error
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, Whole
from app.kernel.samples.calibration import width_limits

Counts = NDArray[np.int64]
_BINS = int(expected_calibration_error.card.defaults["bins"])
_FALLING = width_limits(_BINS)
# Of each bin, rising, the score above which it begins.
_LOWEST = np.concatenate([[-np.inf], _FALLING[::-1]])
# Scores from here on are whole numbers of 2^-62: float64 has 53 bits.
_SMALL, _ONE = 2.0**-10, 2.0**62
_HALF = 31
_LOW = (1 << _HALF) - 1
# Scores added at once: halves have a sum below 2^53, and with counts below 2^16 one below 2^63.
_CHUNK = 1 << 14
_FEW = 1 << 16


class BinSums:
    """Samples, members and summed scores of each bin, from the lowest up; states merge in any order.

    A score from 2^-10 on is a whole number of 2^-62, which is added in two halves; smaller ones, all of which are in
    the lowest bin, are cut into more pieces.
    """

    def __init__(self) -> None:
        # Others and members.
        self._counts: Counts = np.zeros((2, _BINS), dtype=np.int64)
        self._units: Whole = np.zeros(_BINS, dtype=object)
        self._small = ExactSums((1,))

    def add(self, scores: Array, members: Mask) -> None:
        """Add samples (n) in any order."""
        for start in range(0, scores.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            self._add(scores[part], members[part])

    def _add(self, scores: Array, members: Mask) -> None:
        # At most one bin too high, where a score lies next to a limit.
        places = np.minimum((scores * _BINS).astype(np.intp), _BINS - 1)
        places -= scores <= _LOWEST.take(places)
        self._counts += np.bincount(places + _BINS * members, minlength=2 * _BINS).reshape(2, _BINS)
        units = (scores * _ONE).astype(np.int64)
        if scores.min(initial=1.0) < _SMALL:
            small = scores < _SMALL
            self._add_small(scores[small])
            units[small] = 0
        high, low = (np.bincount(places, half, _BINS).astype(np.int64) for half in (units >> _HALF, units & _LOW))
        self._units += (high.astype(object) << _HALF) + low

    def add_cuts(self, scores: Array, members: Counts, others: Counts) -> None:
        """Add distinct scores (c), falling, with how many members and others have each."""
        ends = scores.size - np.searchsorted(scores[::-1], _LOWEST, side="right")
        for place, (stop, start) in enumerate(pairwise([*ends.tolist(), 0])):
            for first in range(start, stop, _CHUNK):
                part = slice(first, min(first + _CHUNK, stop))
                self._add_to(place, scores[part], members[part], others[part])

    def _add_to(self, place: int, scores: Array, members: Counts, others: Counts) -> None:
        counts = int(others.sum()), int(members.sum())
        self._counts[:, place] += counts
        # None: of each score there is one.
        times = None if sum(counts) == scores.size else others + members
        if scores[-1] < _SMALL:
            large = int(np.count_nonzero(scores >= _SMALL))
            # Rounded once where several samples have a score, of which all come together.
            self._add_small(scores[large:] * (1 if times is None else times[large:]))
            scores, times = scores[:large], None if times is None else times[:large]
        units = (scores * _ONE).astype(np.int64)
        high, low = units >> _HALF, units & _LOW
        if times is None:
            self._units[place] += (int(high.sum()) << _HALF) + int(low.sum())
        elif int(times.max(initial=1)) < _FEW:
            self._units[place] += (int(high @ times) << _HALF) + int(low @ times)
        else:
            self._units[place] += int(units.astype(object) @ times.astype(object))

    def _add_small(self, scores: Array) -> None:
        for start in range(0, scores.size, BLOCK):
            self._small.add(scores[None, start : start + BLOCK].copy(), lambda rows: np.asarray(rows.sum(axis=-1)))

    def merge(self, other: Self) -> None:
        """Take in the samples of others."""
        self._counts = self._counts + other._counts
        self._units = self._units + other._units
        self._small.merge(other._small)

    def read(self) -> "FoldedBins":
        """What there is so far, in the form that calibration errors take."""
        members = self._counts[1].astype(np.float64)
        sums = [Fraction(int(units), int(_ONE)) for units in self._units]
        sums[0] += self._small.exact()[0]
        return FoldedBins(self._counts.sum(axis=0).astype(np.float64), np.array([float(one) for one in sums]), members)


class FoldedBins:
    """A ranking of which the bins of equal width are known, in their default number B, and nothing else."""

    def __init__(self, weight: Array, scores: Array, members: Array) -> None:
        """Of each bin (B), from the lowest up: samples, the sum of their scores, and members."""
        self._falling = weight[::-1], scores[::-1], members[::-1]

    def as_lists(self) -> list[list[float]]:
        """What it is made from."""
        return [side[::-1].tolist() for side in self._falling]

    def between(self, limits: Array) -> tuple[Array, Array, Array]:
        """As of a ``Ranking``, for the limits that were looked at."""
        if not np.array_equal(limits, _FALLING):
            raise NotFolded(f"{_BINS} bins of equal width were folded, and no others")
        return self._falling

    def __getattr__(self, name: str) -> Any:
        raise NotFolded(f"{name} needs the samples of a ranking, which were folded")
