"""Bins of equal width over [0, 1] that calibration errors are made of: counts, and exact sums of scores."""

from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.fold import NotFolded
from app.kernel.metrics.families.probabilities.calibration import expected_calibration_error
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, Whole
from app.kernel.samples.calibration import width_limits
from app.kernel.samples.rankings.ranking import Ranking

Counts = NDArray[np.int64]
_BINS = int(expected_calibration_error.card.defaults["bins"])
_FALLING = width_limits(_BINS)
# Of each bin, rising, the score above which it begins, and its middle.
_LOWEST = np.concatenate([[-np.inf], _FALLING[::-1]])
_MIDDLES = (np.arange(_BINS) + 0.5) / _BINS
# Scores from here on are whole numbers of 2^-62: float64 has 53 bits.
_SMALL, _ONE = 2.0**-10, 2.0**62
_HALF = 31
_LOW = (1 << _HALF) - 1
# Squares of distances from the middle of a bin, below 2^-9, are cut to whole numbers of 2^-48.
_SQUARES = 2.0**48
# Scores added at once: halves and squares have a sum below 2^53, and halves with counts below 2^16 one below 2^63.
_CHUNK = 1 << 14
_FEW = 1 << 16
# Others and members.
_SIDES = 2


class Spreads(NamedTuple):
    """Of others and members in each bin, from the lowest up (2, b): how many, mean and standard deviation of their
    scores; both 0 where there are none.
    """

    counts: Array
    means: Array
    deviations: Array


class BinSums:
    """Others and members, their summed scores and squared distances from the middle in each bin, from the lowest up;
    states merge in any order.

    A score from 2^-10 on is a whole number of 2^-62, which is added in two halves; smaller ones, all of which are in
    the lowest bin, are cut into more pieces.
    """

    def __init__(self) -> None:
        self._counts: Counts = np.zeros((_SIDES, _BINS), dtype=np.int64)
        self._units: Whole = np.zeros((_SIDES, _BINS), dtype=object)
        self._squares: Whole = np.zeros((_SIDES, _BINS), dtype=object)
        self._small = ExactSums((_SIDES,))

    def add(self, scores: Array, members: Mask) -> None:
        """Add samples (n) in any order."""
        for start in range(0, scores.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            self._add(scores[part], members[part])

    def _add(self, scores: Array, members: Mask) -> None:
        # At most one bin too high, where a score lies next to a limit.
        places = np.minimum((scores * _BINS).astype(np.intp), _BINS - 1)
        places -= scores <= _LOWEST.take(places)
        squares, cells = _squares(scores, _MIDDLES.take(places)), places + _BINS * members
        units = (scores * _ONE).astype(np.int64)
        if scores.min(initial=1.0) < _SMALL:
            small = scores < _SMALL
            self._add_small(scores[small], np.stack([~members[small], members[small]]))
            units[small] = 0
        self._counts += np.bincount(cells, minlength=_SIDES * _BINS).reshape(_SIDES, _BINS)
        high, low, squared = (
            np.bincount(cells, part, _SIDES * _BINS).astype(np.int64).reshape(_SIDES, _BINS).astype(object)
            for part in (units >> _HALF, units & _LOW, squares)
        )
        self._units += (high << _HALF) + low
        self._squares += squared

    def add_cuts(self, scores: Array, members: Counts, others: Counts) -> None:
        """Add distinct scores (c), falling, with how many members and others have each."""
        ends = scores.size - np.searchsorted(scores[::-1], _LOWEST, side="right")
        for place, (stop, start) in enumerate(pairwise([*ends.tolist(), 0])):
            for first in range(start, stop, _CHUNK):
                part = slice(first, min(first + _CHUNK, stop))
                self._add_to(place, scores[part], np.stack([others[part], members[part]]))

    def _add_to(self, place: int, scores: Array, sides: Counts) -> None:
        self._counts[:, place] += sides.sum(axis=1)
        self._squares[:, place] += _summed(_squares(scores, _MIDDLES[place]), sides)
        if scores[-1] < _SMALL:
            large = int(np.count_nonzero(scores >= _SMALL))
            # Rounded once where several samples have a score, of which all come together.
            self._add_small(scores[large:], sides[:, large:])
            scores, sides = scores[:large], sides[:, :large]
        self._units[:, place] += _summed((scores * _ONE).astype(np.int64), sides)

    def _add_small(self, scores: Array, sides: Counts | Mask) -> None:
        for start in range(0, scores.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._small.add(scores[part] * sides[:, part], lambda rows: np.asarray(rows.sum(axis=-1)))

    def merge(self, other: Self) -> None:
        """Take in the samples of others."""
        self._counts = self._counts + other._counts
        self._units = self._units + other._units
        self._squares = self._squares + other._squares
        self._small.merge(other._small)

    def read(self) -> "FoldedBins":
        """What there is so far, in the form that calibration errors take."""
        sums = [[Fraction(int(units), int(_ONE)) for units in side] for side in self._units]
        for side, small in zip(sums, self._small.exact(), strict=True):
            side[0] += small
        weight, members = self._counts.sum(axis=0).astype(np.float64), self._counts[1].astype(np.float64)
        scores = np.array([float(sum(both)) for both in zip(*sums, strict=True)])
        return FoldedBins(weight, scores, members, self._spreads(sums))

    def _spreads(self, sums: list[list[Fraction]]) -> Spreads:
        means, deviations = np.zeros((2, _SIDES, _BINS))
        for cell in np.argwhere(self._counts):
            side, place = cell.tolist()
            size, total = int(self._counts[side, place]), sums[side][place]
            aside = total / size - Fraction(_MIDDLES[place])
            excess = Fraction(int(self._squares[side, place]), int(_SQUARES) * size) - aside * aside
            means[side, place] = float(total / size)
            # Nothing is left where it is not larger than what cutting the squares makes of equal scores.
            deviations[side, place] = float(excess) ** 0.5 if excess > 2 / Fraction(_SQUARES) else 0.0
        return Spreads(self._counts.astype(np.float64), means, deviations)


def _squares(scores: Array, middles: Array) -> Counts:
    away = scores - middles
    away *= away
    away *= _SQUARES
    return away.astype(np.int64)


def _summed(units: Counts, sides: Counts) -> Whole:
    """Sums (2) of whole numbers (c) below 2^62, each so often on either side (2, c)."""
    if int(sides.max(initial=1)) < _FEW:
        high, low = sides @ (units >> _HALF), sides @ (units & _LOW)
        whole: Whole = (high.astype(object) << _HALF) + low.astype(object)
        return whole
    return np.asarray(sides.astype(object) @ units.astype(object))


class FoldedBins(Ranking):
    """A ranking of which the bins of equal width are known, in their default number, and nothing else.

    Attributes:
        spreads: Of the scores in them; None where only what curves take was kept.
    """

    def __init__(self, weight: Array, scores: Array, members: Array, spreads: Spreads | None = None) -> None:
        self._falling = weight[..., ::-1], scores[..., ::-1], members[..., ::-1]
        self.weights, self.spreads = None, spreads

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
