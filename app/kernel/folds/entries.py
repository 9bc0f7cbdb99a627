"""Entries of sorted runs: keys of scores, counts, groups and weights as whole numbers."""

from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, Whole
from app.kernel.numerics.sorting import Order
from app.kernel.samples.losses import Codes, sums_by_code
from app.kernel.streamed.rows import NotStreamed

NotFolded = NotStreamed


# Digits (d, n), the lowest first.
Digits = NDArray[np.int64]
_BITS = 30
_LOW = (1 << _BITS) - 1
# Bits of a float64, and of pieces of which 2^29 have a sum of no more.
_MANTISSA, _PIECE = 53, 24


class Grid(NamedTuple):
    """Sums up to a total, without rounding.

    Attributes:
        exponent: Of the power of 2 that all values are multiples of.
        size: How many digits the total has.
    """

    exponent: int
    size: int

    @classmethod
    def of(cls, total: Fraction, exponent: int) -> Self:
        """For values that add up to a total."""
        bits = cls(exponent, 1).whole(total).bit_length()
        return cls(exponent, max(1, -(-bits // _BITS)))

    @classmethod
    def of_part(cls, values: Array, times: int) -> Self:
        """For sums of values (n), 0 or more, each so often: grids of several parts differ by whole digits."""
        lowest = lowest_bit(values)
        exponent = 0 if lowest is None else lowest // _BITS * _BITS
        return cls.of(Fraction(float(values.max(initial=0.0))) * values.size * times, exponent)

    def taken(self, digits: Digits, own: "Grid") -> Digits:
        """The same sums on this grid, whose exponent is at most theirs, by whole digits."""
        if own == self:
            return digits
        found: Digits = np.zeros((self.size, *digits.shape[1:]), dtype=np.int64)
        # What a part could need is not what all of them come to.
        rows = found[(own.exponent - self.exponent) // _BITS :]
        rows[: own.size] = digits[: len(rows)]
        return found

    def of_units(self, units: int) -> Digits:
        """The digits (d, 1) of a whole number of units."""
        return np.array([(units >> (_BITS * place)) & _LOW for place in range(self.size)])[:, None]

    def digits(self, values: Array) -> Digits:
        """Those of values (n)."""
        found, left = np.empty((self.size, values.size), dtype=np.int64), values
        for place in reversed(range(self.size)):
            unit = self.exponent + _BITS * place
            piece = np.floor(np.ldexp(left, -unit))
            found[place] = piece
            left = left - np.ldexp(piece, unit)
        return found

    def added(self, digits: Digits, starts: NDArray[np.intp]) -> Digits:
        """Sums of stretches that begin at some places."""
        if starts.size == digits.shape[1]:
            return digits
        return carried(np.add.reduceat(digits, starts, axis=1))

    def cumulated(self, digits: Digits, above: int) -> Digits:
        """What they add up to from the first on, and what is above them, in units."""
        sums: Digits = np.cumsum(digits, axis=1)
        sums += self.of_units(above)
        return carried(sums)

    def units(self, digits: Digits) -> Whole:
        """Whole numbers (n) of any size, in units."""
        whole: Whole = np.zeros(digits.shape[1], dtype=object)
        for place, row in enumerate(digits):
            whole = whole + (row.astype(object) << (_BITS * place))
        return whole

    def total(self, digits: Digits) -> int:
        """The sum of all of them, in units."""
        return sum(int(row.sum()) << (_BITS * place) for place, row in enumerate(digits))

    def rounded(self, digits: Digits) -> Array:
        """As float64 (n), which follow from the digits alone and rise with them."""
        values: Array = np.zeros(digits.shape[1])
        for place, row in enumerate(digits):
            values += np.ldexp(row.astype(np.float64), self.exponent + _BITS * place)
        return values

    def rounded_units(self, units: int) -> float:
        """The same of a whole number."""
        return float(self.rounded(self.of_units(units))[0])

    def whole(self, value: Fraction) -> int:
        """A sum as a whole number of units."""
        return int(value / _power(self.exponent))

    def fraction(self, units: int) -> Fraction:
        """A whole number of units."""
        return units * _power(self.exponent)


def pieces_of(values: Array, starts: NDArray[np.intp]) -> list[Array]:
    """Sums of stretches of values (n), 0 or more, that begin at some places: pieces (s) that add up to them, each cut
    along powers of 2 that are the same for all values, so that nothing is rounded.
    """
    found = []
    while values.any():
        unit = _PIECE * (-(-int(np.frexp(values.max())[1]) // _PIECE) - 1)
        whole = np.floor(np.ldexp(values, -unit))
        values = values - np.ldexp(whole, unit)
        found.append(np.ldexp(np.add.reduceat(whole, starts), unit))
    return [piece[None] for piece in found]


def lowest_bit(values: Array) -> int | None:
    """The largest exponent of a power of 2 that values (n), 0 or more, are whole multiples of; None where all are 0."""
    mantissas, exponents = np.frexp(values[values > 0])
    if not mantissas.size:
        return None
    whole = np.ldexp(mantissas, _MANTISSA).astype(np.int64)
    last = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    return int((exponents + last).min()) - _MANTISSA


def carried(sums: Digits) -> Digits:
    """Digits below 2^30 but for the highest; they are overwritten."""
    for place in range(len(sums) - 1):
        sums[place + 1] += sums[place] >> _BITS
        sums[place] &= _LOW
    return sums


def _power(exponent: int) -> Fraction:
    return Fraction(2) ** exponent


class WeightTotals:
    """What samples weigh, by class; states merge in any order.

    Attributes:
        used: Samples (K) with a weight above 0.

    Args:
        n_classes: K.
    """

    def __init__(self, n_classes: int) -> None:
        self.used: NDArray[np.int64] = np.zeros(n_classes, dtype=np.int64)
        self._sums = ExactSums((2, n_classes))
        # Of weights and of their squares.
        self._lowest: list[int | None] = [None, None]

    def add(self, weights: Array, y: Codes) -> None:
        """Add weights (n), finite and 0 or more, of samples with codes (n)."""
        size = self.used.size
        self.used = self.used + np.bincount(y[weights > 0], minlength=size)
        values = np.stack([weights, weights * weights])
        self._lowest = [_lower(own, lowest_bit(row)) for own, row in zip(self._lowest, values, strict=True)]
        for start in range(0, y.size, BLOCK):
            codes = y[start : start + BLOCK]
            self._sums.add(values[:, start : start + BLOCK], partial(sums_by_code, codes, n_classes=size))

    def merge(self, other: Self) -> None:
        """Take in those of others."""
        self.used = self.used + other.used
        self._sums.merge(other._sums)
        self._lowest = [_lower(*both) for both in zip(self._lowest, other._lowest, strict=True)]

    def by_class(self) -> tuple[list[Fraction], list[Fraction]]:
        """Sums (K) of the weights and of their squares."""
        exact, size = self._sums.exact(), self.used.size
        return exact[:size], exact[size:]

    def grids(self) -> tuple[Grid, Grid]:
        """For sums of the weights and of their squares."""
        first, second = (
            Grid.of(sum(sums, Fraction(0)), 0 if lowest is None else lowest)
            for sums, lowest in zip(self.by_class(), self._lowest, strict=True)
        )
        return first, second

    def effective(self, codes: Iterable[int]) -> float:
        """The effective number of samples of some classes, (sum w)^2 / sum w^2 (Kish 1965); 0 without any."""
        chosen = [*codes]
        total, squares = (sum((sums[code] for code in chosen), Fraction(0)) for sums in self.by_class())
        return float(total * total / squares) if squares else 0.0


def _lower(first: int | None, second: int | None) -> int | None:
    known = [one for one in (first, second) if one is not None]
    return min(known, default=None)


# Of 32 bits for probabilities that are float32, of 64 for float64.
Keys = NDArray[np.unsignedinteger[Any]]
Probabilities = NDArray[np.floating[Any]]

_MEMBER = np.uint64(1)
_WIDE = 8
_KEY_OF: dict[int, type[np.unsignedinteger[Any]]] = {4: np.uint32, 8: np.uint64}
_FLOAT_OF: dict[int, type[np.floating[Any]]] = {4: np.float32, 8: np.float64}


def keys_of(probabilities: Probabilities, members: Mask) -> Keys:
    """Keys (n) of probabilities in [0, 1], of 32 bits for float32 and of 64 for float64."""
    # Adding 0 makes 0 of -0, the bits of which do not rise with the others.
    keys: Keys = (probabilities + probabilities.dtype.type(0.0)).view(_KEY_OF[probabilities.itemsize])
    keys <<= keys.dtype.type(1)
    keys |= members
    return keys


def scores_of(keys: Keys) -> Probabilities:
    """The probabilities of keys, as they came."""
    scores: Probabilities = (keys >> keys.dtype.type(1)).view(_FLOAT_OF[keys.itemsize])
    return scores


def members_of(keys: Keys) -> NDArray[np.int64]:
    """1 for the keys of members, 0 for the others."""
    return (keys & keys.dtype.type(1)).astype(np.int64)


def widened(keys: Keys) -> NDArray[np.uint64]:
    """The keys of the same probabilities as float64."""
    if keys.itemsize == _WIDE:
        return keys.view(np.uint64)
    return _joined(scores_of(keys).astype(np.float64), keys & np.uint32(1))


def mirrored(keys: Keys) -> NDArray[np.uint64]:
    """Wide keys of 1 - p and of the other class, rising where the given ones rise.

    1 - p is rounded, so that small probabilities that differ may have one complement.
    """
    scores = scores_of(keys).astype(np.float64)
    complements = np.subtract(1.0, scores, out=scores)
    return _joined(complements, (keys & keys.dtype.type(1)) ^ keys.dtype.type(1))[::-1]


def floor_key(score: float) -> np.uint64:
    """The lowest wide key of a score."""
    return np.float64(score).view(np.uint64) << _MEMBER


def score_of(floor: np.uint64) -> float:
    """The score of a wide key."""
    return float((floor >> _MEMBER).view(np.float64))


def _joined(scores: Array, members: Keys) -> NDArray[np.uint64]:
    keys: NDArray[np.uint64] = scores.view(np.uint64)
    keys <<= _MEMBER
    keys |= members
    return keys


Counts = NDArray[np.int64]
# Numbers that stand for groups.
Groups = NDArray[np.uint64]
# Keys that are there so often are written once, with a count.
_OFTEN = 4


class Entries(NamedTuple):
    """Samples by their keys.

    Attributes:
        keys: (n).
        counts: (n) how often each is there; None is once.
        groups: (n) the group of each; None: they are in none.
        weights: (n) of each; None: they have none.
        squares: (n) of the weights; None: they follow from these. Entries of one key add up, in both.
    """

    keys: Keys
    counts: Counts | None = None
    groups: Groups | None = None
    weights: Array | None = None
    squares: Array | None = None

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(0 if part is None else part.nbytes for part in self)

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        return self.keys.size if self.counts is None else int(self.counts.sum())

    @property
    def times(self) -> Counts:
        """How often each key is there."""
        return np.ones(self.keys.size, dtype=np.int64) if self.counts is None else self.counts

    @property
    def is_summed(self) -> bool:
        """Does an entry stand for several samples?"""
        return self.counts is not None or self.squares is not None

    @property
    def weighed(self) -> tuple[Array, Array]:
        """Weights and their squares.

        Raises:
            ValueError: there are none.
        """
        if self.weights is None:
            raise ValueError("expected samples with weights")
        return self.weights, self.weights * self.weights if self.squares is None else self.squares

    def part(self, rows: slice) -> Self:
        """Some of them."""
        return self._replace(**{name: own[rows] for name, own in self._columns()})

    def take(self, rows: Order) -> Self:
        """Some of them, in another order."""
        return self._replace(**{name: own.take(rows) for name, own in self._columns()})

    def _columns(self) -> Iterator[tuple[str, NDArray[Any]]]:
        for name, column in self._asdict().items():
            if column is not None:
                yield name, column


def joined(parts: Sequence[Entries]) -> Entries:
    """Those of one width, one after another; with groups, and with weights, where all have some."""
    groups = [part.groups for part in parts if part.groups is not None]
    weights = [part.weights for part in parts if part.weights is not None]
    return Entries(
        np.concatenate([part.keys for part in parts]),
        None if all(part.counts is None for part in parts) else np.concatenate([part.times for part in parts]),
        np.concatenate(groups) if len(groups) == len(parts) else None,
        np.concatenate(weights) if len(weights) == len(parts) else None,
        None if all(part.squares is None for part in parts) else np.concatenate([part.weighed[1] for part in parts]),
    )


def in_order(parts: Sequence[Entries]) -> Entries:
    """Those of one width, as one, by rising keys, whatever their groups."""
    parts = [part._replace(groups=None) for part in parts]
    if len(parts) == 1:
        return parts[0]
    entries = joined(parts)
    if entries.counts is None:
        entries.keys.sort()
        return entries
    return entries.take(np.argsort(entries.keys))


def summed(entries: Entries) -> Entries:
    """Each key once, of each group where there are some, with counts, by rising keys. With weights each key has a few
    entries, as many as it takes to write their sums without rounding.
    """
    if entries.weights is not None:
        return _weights_summed(entries)
    keys, groups = entries.keys, entries.groups
    order: Order = np.argsort(keys) if groups is None else np.lexsort((groups, keys))
    entries = entries.take(order)
    changes = entries.keys[1:] != entries.keys[:-1]
    if entries.groups is not None:
        changes |= entries.groups[1:] != entries.groups[:-1]
    starts = np.concatenate([[0], np.flatnonzero(changes) + 1])
    return entries.take(starts)._replace(counts=np.add.reduceat(entries.times, starts))


def _weights_summed(entries: Entries) -> Entries:
    entries = entries.take(np.argsort(entries.keys))
    starts = starts_of(entries.keys)
    pieces = [pieces_of(values, starts) for values in entries.weighed]
    rows = max(1, *map(len, pieces))
    weights, squares = (np.concatenate([*own, np.zeros((rows - len(own), starts.size))]) for own in pieces)
    keys = np.tile(entries.keys.take(starts), (rows, 1))
    # Every key has one entry, whatever it weighs.
    kept = (weights > 0) | (squares > 0)
    kept[0] = True
    found = Entries(keys[kept], weights=weights[kept], squares=squares[kept])
    return found.take(np.argsort(found.keys))


def starts_of(ordered: Keys | Probabilities) -> Order:
    """Where each of the distinct values of a row in order begins."""
    return np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])


def split(entries: Entries) -> Iterator[Entries]:
    """Entries without counts in order: those that are there often, once and with counts, and all others.

    Of a key no part has more than a few entries for each group, or for its weights, so that no block of a merged order
    is large because of one score.
    """
    if entries.groups is not None or entries.weights is not None:
        entries = entries.take(np.argsort(entries.keys))
        found = summed(entries) if _are_often(entries.keys) else entries
        yield found if _OFTEN * found.keys.size <= entries.keys.size else entries
        return
    keys = entries.keys
    keys.sort()
    if not _are_often(keys):
        yield Entries(keys.copy())
        return
    starts = starts_of(keys)
    counts = np.diff(starts, append=keys.size)
    often = counts >= _OFTEN
    yield Entries(keys.take(starts[often]), counts[often])
    if not often.all():
        yield Entries(keys[np.repeat(~often, counts)])


def _are_often(ordered: Keys) -> bool:
    """Is any of some keys in order there often?"""
    return bool((ordered[_OFTEN - 1 :] == ordered[: 1 - _OFTEN]).any())
