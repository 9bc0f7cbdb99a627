"""Exact sums over streamed samples: calibration bins and losses, plain and weighted."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Groups, NotFolded, Probabilities, WeightTotals
from app.kernel.folds.groups import GroupedLosses, GroupSums
from app.kernel.metrics.families.calibration import expected_calibration_error
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.exact_sums import (
    BLOCK,
    ExactSums,
    Gather,
    Halves,
    Whole,
    products,
    spread,
    weighted_powers,
    weighted_spread,
)
from app.kernel.samples.calibration import Excess, width_limits
from app.kernel.samples.losses import CLIP, TOLERANCE, Codes, Losses, phi_of, sums_by_code, true_probabilities
from app.kernel.samples.rankings import Ranking

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


# Others and members: what they weigh, that times their scores, and what rounding took from these products.
_BIN_ROWS = 6


class WeightedBins:
    """Bins of equal width; states merge in any order."""

    by_width = True

    def __init__(self) -> None:
        self._sums = ExactSums((_BIN_ROWS, BINS))
        self._one_hot = np.eye(BINS)

    def add(self, scores: Array, sides: Array) -> None:
        """Add scores (n) in any order with what others and members (2, n) of each weigh."""
        for start in range(0, scores.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._add(self._places(scores[part], sides[:, part]), scores[part], sides[:, part])

    def merge(self, other: Self) -> None:
        """Take in the samples of others."""
        self._sums.merge(other._sums)

    def read(self) -> FoldedBins:
        """What there is so far, in the form that calibration errors take."""
        exact = np.array(self._sums.exact(), dtype=object).reshape(_BIN_ROWS, BINS)
        rows = (exact[0] + exact[1], exact[2:].sum(axis=0), exact[1])
        weight, scores, held = (np.array([float(one) for one in row]) for row in rows)
        return FoldedBins(weight, scores, held, by_width=self.by_width)

    def _places(self, scores: Array, _: Array, /) -> Positions:
        """The bin (n) of each."""
        return bins_of(scores)

    def _add(self, places: Positions, scores: Array, sides: Array) -> None:
        inside = self._one_hot.take(places, axis=0)
        weighed, rest = products(Halves.of(sides), Halves.of(scores))
        self._sums.add(np.concatenate([sides, weighed, rest]), lambda rows: rows @ inside)


class WeightedMass(WeightedBins):
    """Bins of equal weight. Samples of one score stay together, in the bin of the middle of them.

    Args:
        total: Weight of all samples.
    """

    by_width = False

    def __init__(self, total: float) -> None:
        super().__init__()
        self._wanted = np.arange(BINS) * (2.0 * total)

    def add_cuts(self, scores: Array, sides: Array, reached: Array) -> None:
        """Add distinct scores (c), falling, with what others and members (2, c) of each weigh, and what there is above
        each and above the next one (c + 1).
        """
        middles = (reached[1:] + reached[:-1]) * BINS
        places = BINS - np.searchsorted(self._wanted, middles, side="right")
        for start in range(0, scores.size, BLOCK):
            part = slice(start, start + BLOCK)
            self._add(places[part], scores[part], sides[:, part])


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
        return true_probabilities(np.ascontiguousarray(probabilities, dtype=np.float64), y), squared_length

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
