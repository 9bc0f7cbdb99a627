"""Bins over [0, 1] that calibration errors are made of: counts, and exact sums of scores."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.not_folded import NotFolded
from app.kernel.metrics.families.probabilities.calibration import expected_calibration_error
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, Whole
from app.kernel.samples.calibration import Excess, width_limits
from app.kernel.samples.rankings.ranking import Ranking

Counts = NDArray[np.int64]
Positions = NDArray[np.intp]
# Of all calibration errors.
BINS = int(expected_calibration_error.card.defaults["bins"])
_FALLING = width_limits(BINS)
# Of each bin, rising, the score above which it begins, and its middle.
_LOWEST = np.concatenate([[-np.inf], _FALLING[::-1]])
_MIDDLES = (np.arange(BINS) + 0.5) / BINS
# Scores from here on are whole numbers of 2^-62: float64 has 53 bits.
SMALL, _ONE = 2.0**-10, 2.0**62
_HALF = 31
_LOW = (1 << _HALF) - 1
# Squares of distances from a middle, of bins of equal width below 2^-9, are cut to whole numbers of 2^-48.
_SQUARES = 2.0**48
# Scores added at once: halves and squares have a sum below 2^53, and halves with counts below 2^16 one below 2^63.
_CHUNK = 1 << 14
_FEW = 1 << 16
# Others and members.
_SIDES = 2


def bins_of(scores: Array) -> Positions:
    """The bin of equal width of each of some scores (n), from the lowest up."""
    # At most one bin too high, where a score lies next to a limit.
    places = np.minimum((scores * BINS).astype(np.intp), BINS - 1)
    places -= scores <= _LOWEST.take(places)
    return places


class Spreads(NamedTuple):
    """Of others and members in each bin, from the lowest up (2, b): how many, mean and standard deviation of their
    scores; both 0 where there are none.
    """

    counts: Array
    means: Array
    deviations: Array

    def excess(self) -> Excess:
        """By how much scores are above the share of members."""
        size = float(self.counts.sum())
        off = self.means - np.arange(_SIDES)[:, None]
        gap = float((self.counts * off).sum()) / size
        squares = self.counts * ((off - gap) ** 2 + self.deviations**2)
        return Excess(float((self.counts * self.means).sum()) / size, gap, float(np.sqrt(squares.sum())) / size)


class PartSums(ABC):
    """Others and members, their summed scores and squared distances from a middle in each of some parts of the scores,
    from the lowest up; states merge in any order.

    A score from 2^-10 on is a whole number of 2^-62, which is added in two halves; smaller ones are cut into more
    pieces.

    Args:
        middles: Of each part.
    """

    by_width: bool

    def __init__(self, middles: Array) -> None:
        shape = _SIDES, middles.size
        self._middles = middles
        self._counts: Counts = np.zeros(shape, dtype=np.int64)
        self._units: Whole = np.zeros(shape, dtype=object)
        self._squares: Whole = np.zeros(shape, dtype=object)
        self._small = ExactSums(shape)

    @abstractmethod
    def _places(self, scores: Array, members: Counts, others: Counts, /) -> Positions:
        """Positions (parts + 1), falling, between which the distinct scores (c), falling, of each part lie."""

    def add_cuts(self, scores: Array, members: Counts, others: Counts) -> None:
        """Add distinct scores (c), falling, with how many members and others have each."""
        ends = self._places(scores, members, others)
        for place, (stop, start) in enumerate(pairwise(ends.tolist())):
            for first in range(start, stop, _CHUNK):
                part = slice(first, min(first + _CHUNK, stop))
                self._add_to(place, scores[part], np.stack([others[part], members[part]]))

    def _add_to(self, place: int, scores: Array, sides: Counts) -> None:
        self._counts[:, place] += sides.sum(axis=1)
        self._squares[:, place] += _summed(_squares(scores, self._middles[place]), sides)
        if scores[-1] < SMALL:
            large = int(np.count_nonzero(scores >= SMALL))
            # Rounded once where several samples have a score, of which all come together.
            self._add_small(place, scores[large:], sides[:, large:])
            scores, sides = scores[:large], sides[:, :large]
        self._units[:, place] += _summed((scores * _ONE).astype(np.int64), sides)

    def _add_small(self, place: int, scores: Array, sides: Counts | Mask) -> None:
        at = np.arange(self._middles.size) == place
        for start in range(0, scores.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._small.add(scores[part] * sides[:, part], lambda rows: rows.sum(axis=-1)[:, None] * at)

    def merge(self, other: Self) -> None:
        """Take in the samples of others."""
        self._counts = self._counts + other._counts
        self._units = self._units + other._units
        self._squares = self._squares + other._squares
        self._small.merge(other._small)

    def read(self) -> "FoldedBins":
        """What there is so far, in the form that calibration errors take."""
        small = np.array(self._small.exact(), dtype=object).reshape(self._counts.shape)
        sums = [
            [Fraction(int(units), int(_ONE)) + less for units, less in zip(*side, strict=True)]
            for side in zip(self._units, small, strict=True)
        ]
        weight, members = self._counts.sum(axis=0).astype(np.float64), self._counts[1].astype(np.float64)
        scores = np.array([float(sum(both)) for both in zip(*sums, strict=True)])
        return FoldedBins(weight, scores, members, self._spreads(sums), by_width=self.by_width)

    def _spreads(self, sums: list[list[Fraction]]) -> Spreads:
        means, deviations = np.zeros((2, *self._counts.shape))
        for cell in np.argwhere(self._counts):
            side, place = cell.tolist()
            size, total = int(self._counts[side, place]), sums[side][place]
            aside = total / size - Fraction(self._middles[place])
            excess = Fraction(int(self._squares[side, place]), int(_SQUARES) * size) - aside * aside
            means[side, place] = float(total / size)
            # Nothing is left where it is not larger than what cutting the squares makes of equal scores.
            deviations[side, place] = float(excess) ** 0.5 if excess > 2 / Fraction(_SQUARES) else 0.0
        return Spreads(self._counts.astype(np.float64), means, deviations)


class BinSums(PartSums):
    """The same in bins of equal width."""

    by_width = True

    def __init__(self) -> None:
        super().__init__(_MIDDLES)

    def add(self, scores: Array, members: Mask) -> None:
        """Add samples (n) in any order."""
        for start in range(0, scores.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            self._add(scores[part], members[part])

    def _add(self, scores: Array, members: Mask) -> None:
        places = bins_of(scores)
        squares, cells = _squares(scores, _MIDDLES.take(places)), places + BINS * members
        units = (scores * _ONE).astype(np.int64)
        if scores.min(initial=1.0) < SMALL:
            small = scores < SMALL
            # All of them are in the lowest bin.
            self._add_small(0, scores[small], np.stack([~members[small], members[small]]))
            units[small] = 0
        self._counts += np.bincount(cells, minlength=_SIDES * BINS).reshape(_SIDES, BINS)
        high, low, squared = (
            np.bincount(cells, part, _SIDES * BINS).astype(np.int64).reshape(_SIDES, BINS).astype(object)
            for part in (units >> _HALF, units & _LOW, squares)
        )
        self._units += (high << _HALF) + low
        self._squares += squared

    def _places(self, scores: Array, _: Counts, __: Counts, /) -> Positions:
        return np.append(scores.size - np.searchsorted(scores[::-1], _LOWEST, side="right"), 0)


class MassSums(PartSums):
    """The same in bins of equally many samples. Those of one score stay together, in the bin of the middle of them.

    Args:
        n_samples: All of them.
        above: How many have higher scores than those that are added here.
    """

    by_width = False

    def __init__(self, n_samples: int, above: int = 0) -> None:
        super().__init__(np.full(BINS, 0.5))
        self._n_samples, self._reached = n_samples, above

    def place_of(self, n_samples: int) -> int | None:
        """The bin of so many samples that come next, if all are in one, whatever their scores."""
        ends = 2 * self._reached + 1, 2 * (self._reached + n_samples) - 1
        first, last = (BINS - 1 - end * BINS // (2 * self._n_samples) for end in ends)
        return first if first == last else None

    def add_to(self, place: int, scores: Array, members: Counts, others: Counts) -> None:
        """Add samples (n) of a bin in any order, with how often each is there, none of them below 2^-10."""
        for start in range(0, scores.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            self._add_to(place, scores[part], np.stack([others[part], members[part]]))

    def _places(self, scores: Array, members: Counts, others: Counts, /) -> Positions:
        held = members + others
        reached = np.cumsum(held) + self._reached
        self._reached = int(reached[-1])
        # From the highest bin down: the first with the middle of its samples beyond so many bins of all.
        wanted = np.arange(BINS) * (2 * self._n_samples)
        starts = np.searchsorted((2 * reached - held) * BINS, wanted, side="left")
        return np.concatenate([[scores.size], starts[::-1]])


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
    """A ranking of which bins are known, in their default number, and nothing else.

    Attributes:
        spreads: Of the scores in them; None where only what curves take was kept.
        by_width: Are they of equal width, or else of equally many samples?
    """

    def __init__(
        self,
        weight: Array,
        scores: Array,
        members: Array,
        spreads: Spreads | None = None,
        *,
        by_width: bool = True,
    ) -> None:
        self._falling = weight[..., ::-1], scores[..., ::-1], members[..., ::-1]
        self.weights, self.spreads, self.by_width = None, spreads, by_width

    def as_lists(self) -> list[list[float]]:
        """What it is made from."""
        return [side[::-1].tolist() for side in self._falling]

    def between(self, limits: Array) -> tuple[Array, Array, Array]:
        """As of a ``Ranking``, for the limits that were looked at."""
        if not self.by_width or not np.array_equal(limits, _FALLING):
            raise NotFolded(f"{BINS} bins of equal width were folded, and no others")
        return self._falling

    def in_parts(self, parts: int) -> tuple[Array, Array, Array]:
        """The same, for the number of bins that were looked at."""
        if self.by_width or parts != BINS:
            raise NotFolded(f"{BINS} bins of equally many samples were folded, and no others")
        return self._falling

    def __getattr__(self, name: str) -> Any:
        raise NotFolded(f"{name} needs the samples of a ranking, which were folded")


class FoldedTopLabel(FoldedBins):
    """The bins of the highest probability, of equal width and of equally many samples.

    Args:
        bins: Of equal width.
        parts: Has the samples go by, which is done when it is asked for.
    """

    _parts: FoldedBins | None

    def __init__(self, bins: FoldedBins, parts: Callable[[], FoldedBins]) -> None:
        self.weights, self.spreads, self.by_width, self._falling = None, bins.spreads, True, bins._falling
        self._look, self._parts = parts, None

    def parts(self) -> FoldedBins:
        """Those of equally many samples."""
        # No property: a fault of reading would look as if it were not there.
        if self._parts is None:
            self._parts = self._look()
        return self._parts

    def in_parts(self, parts: int) -> tuple[Array, Array, Array]:
        """As of a ``Ranking``, for the number of bins that were looked at."""
        return self.parts().in_parts(parts)
