"""Could any confusion matrix have produced the scores that were reported? Fazekas & Kovács (2024).

No statistics: counts are whole numbers and a printed score stands for an interval, so either some matrix fits or none
does. The fitting values of one of tp and tn are a range for each value of the other, and O(min(p, n)) steps find all.
The ends of every range are settled in exact fractions.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from app.kernel.consistency.reported_scores import COMPLEMENTS, SCORES, Printed, Range, Score, normalise, printed_range
from app.kernel.numerics.arrays import Array, Mask

Counts = NDArray[np.int64]

# Added to the ranges while floating point narrows them down; what is let in is settled exactly.
_SLACK = 1e-10


@dataclass(frozen=True, slots=True, eq=False)
class Feasible:
    """All binary matrices that fit: for each of some tp, the tn from ``low`` to ``high``; with ``swapped`` the other
    way round.

    Attributes:
        positives: p.
        negatives: n.
        fixed: (S) values of tp, or of tn when swapped.
        low: (S) smallest fitting value of the other.
        high: (S) largest.
        swapped: tn is the fixed one.
    """

    positives: int
    negatives: int
    fixed: Counts
    low: Counts
    high: Counts
    swapped: bool

    @property
    def count(self) -> int:
        """How many matrices fit."""
        return int((self.high - self.low + 1).sum())

    def examples(self, most: int = 5) -> list[tuple[int, int]]:
        """Up to that many (tp, tn) that fit, spread over all of them."""
        if not self.count:
            return []
        ends = np.cumsum(self.high - self.low + 1)
        wanted = np.unique(np.linspace(0, self.count - 1, min(most, self.count)).round().astype(np.int64))
        rows = np.searchsorted(ends, wanted, side="right")
        moving = self.low[rows] + wanted - np.concatenate([[0], ends])[rows]
        pairs = zip(self.fixed[rows].tolist(), moving.tolist(), strict=True)
        return [(moved, still) if self.swapped else (still, moved) for still, moved in pairs]

    def implied(self) -> dict[str, tuple[float, float]]:
        """Range of every score over the matrices that fit, undefined values read as 0; empty when none fits."""
        if not self.count:
            return {}
        ranges = {}
        for name, score in SCORES.items():
            smallest, largest = self._values(score, self.low), self._values(score, self.high)
            ranges[name] = (float(smallest.min()), float(largest.max()))
        for name, base in COMPLEMENTS.items():
            ranges[name] = (1.0 - ranges[base][1], 1.0 - ranges[base][0])
        return ranges

    def _values(self, score: Score, moving: Counts) -> Array:
        fixed, other = self.fixed.astype(np.float64), moving.astype(np.float64)
        tp, tn = (other, fixed) if self.swapped else (fixed, other)
        return score.floating(tp, tn, float(self.positives), float(self.negatives))


def feasible_matrices(
    positives: int, negatives: int, scores: Sequence[tuple[str, Range]], *, undefined_as_zero: bool = False
) -> Feasible:
    """Every matrix with p positive and n negative items whose scores all lie in their ranges.

    Args:
        positives: p >= 1.
        negatives: n >= 1.
        scores: names of ``SCORES`` with their ranges; a name may come twice.
        undefined_as_zero: read a printed score that would be 0/0 as 0; otherwise it fits nothing.

    Raises:
        ValueError: a class is empty.
    """
    if positives < 1 or negatives < 1:
        raise ValueError("both classes need items")
    rows = _Rows.of([(positives, negatives)])
    low, high = rows.narrowed(scores)
    found = []
    for row in np.flatnonzero(low <= high).tolist():
        start, stop = int(low[row]), int(high[row])
        while start <= stop and not rows.fits(row, start, scores, undefined_as_zero=undefined_as_zero):
            start += 1
        while stop > start and not rows.fits(row, stop, scores, undefined_as_zero=undefined_as_zero):
            stop -= 1
        if start <= stop:
            found.append((int(rows.fixed[row]), start, stop))
    table = np.array(found, dtype=np.int64).reshape(-1, 3)
    return Feasible(positives, negatives, table[:, 0], table[:, 1], table[:, 2], positives > negatives)


@dataclass(frozen=True, slots=True)
class Fitting:
    """Sizes of the classes for which matrices fit, with one of them."""

    positives: int
    negatives: int
    tp: int
    tn: int


def fitting_sizes(
    sizes: Sequence[tuple[int, int]], scores: Sequence[tuple[str, Range]], *, undefined_as_zero: bool = False
) -> list[Fitting]:
    """Those of some sizes (p, n) of the classes, for reports that do not say them, that a matrix fits.

    All are searched together, ``search_rows`` says at what price.

    Args:
        sizes: p >= 1 and n >= 1.
        scores: names of ``SCORES`` with their ranges.
        undefined_as_zero: as for ``feasible_matrices``.
    """
    return [found for part in _parts(sizes) for found in _fitting(part, scores, undefined_as_zero=undefined_as_zero)]


def search_rows(sizes: Sequence[tuple[int, int]]) -> int:
    """Rows that a search over these sizes takes, some microseconds each."""
    return sum(min(size) + 1 for size in sizes)


def _parts(sizes: Sequence[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    """The sizes in portions of so many rows that arrays stay small."""
    part: list[tuple[int, int]] = []
    rows = 0
    for size in sizes:
        rows += min(size) + 1
        part.append(size)
        if rows >= _ROWS_AT_ONCE:
            yield part
            part, rows = [], 0
    if part:
        yield part


def _fitting(
    sizes: Sequence[tuple[int, int]], scores: Sequence[tuple[str, Range]], *, undefined_as_zero: bool
) -> Iterator[Fitting]:
    rows = _Rows.of(sizes)
    low, high = rows.narrowed(scores)
    for _, candidates in groupby(np.flatnonzero(low <= high).tolist(), key=lambda row: int(rows.owner[row])):
        found = (
            (row, moving)
            for row in candidates
            for moving in range(int(low[row]), int(high[row]) + 1)
            if rows.fits(row, moving, scores, undefined_as_zero=undefined_as_zero)
        )
        first = next(found, None)
        if first is not None:
            yield Fitting(*rows.sizes(first[0]), *rows.matrix(*first))


# Rows narrowed at a time: some arrays of 1 MB.
_ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """All values of the count of the smaller class, for one or many sizes of the classes, one after another. All (R).

    Attributes:
        owner: Position of the size that a row belongs to.
        fixed: Value of tp, or of tn where swapped.
        p: Positive items.
        n: Negative items.
        swapped: The negative class is the smaller one.
    """

    owner: Counts
    fixed: Counts
    p: Counts
    n: Counts
    swapped: Mask

    @classmethod
    def of(cls, sizes: Sequence[tuple[int, int]]) -> "_Rows":
        both = np.array(sizes, dtype=np.int64)
        lengths = both.min(axis=1) + 1
        owner = np.repeat(np.arange(len(both)), lengths)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        p, n = both[owner].T
        return cls(owner, np.arange(lengths.sum()) - starts[owner], p, n, p > n)

    def sizes(self, row: int) -> tuple[int, int]:
        return int(self.p[row]), int(self.n[row])

    def matrix(self, row: int, moving: int) -> tuple[int, int]:
        """(tp, tn) of a row with the other count."""
        fixed = int(self.fixed[row])
        return (moving, fixed) if self.swapped[row] else (fixed, moving)

    def fits(self, row: int, moving: int, scores: Sequence[tuple[str, Range]], *, undefined_as_zero: bool) -> bool:
        return _fits(*self.matrix(row, moving), *self.sizes(row), scores, undefined_as_zero=undefined_as_zero)

    def narrowed(self, scores: Sequence[tuple[str, Range]]) -> tuple[Counts, Counts]:
        """Smallest and largest (R) of the other count that may fit, to within rounding."""
        inner = np.where(self.swapped, self.p, self.n)
        low, high = np.zeros_like(inner), inner.copy()
        for name, wanted in scores:
            low = np.maximum(low, self._first(SCORES[name], float(wanted.low) - _SLACK, inner))
            high = np.minimum(high, self._first(SCORES[name], float(wanted.high) + _SLACK, inner, above=True) - 1)
        return low, high

    def _first(self, score: Score, target: float, inner: Counts, *, above: bool = False) -> Counts:
        """Smallest whole number 0..inner+1 per row at which the growing score reaches the target, or passes it with
        ``above``.
        """
        fixed, p, n = (values.astype(np.float64) for values in (self.fixed, self.p, self.n))
        low, high = np.zeros_like(inner), inner + 1
        while (low < high).any():
            middle = (low + high) // 2
            moving = np.minimum(middle, inner).astype(np.float64)
            tp, tn = np.where(self.swapped, moving, fixed), np.where(self.swapped, fixed, moving)
            found = score.floating(tp, tn, p, n)
            reached = (found > target if above else found >= target) | (middle > inner)
            low, high = np.where(reached, low, np.minimum(middle + 1, high)), np.where(reached, middle, high)
        return low


def _fits(tp: int, tn: int, p: int, n: int, scores: Sequence[tuple[str, Range]], *, undefined_as_zero: bool) -> bool:
    for name, wanted in scores:
        score = SCORES[name]
        value = score.exact(tp, tn, p, n)
        if value is None:
            if not undefined_as_zero:
                return False
            value = Fraction(0)
        if not wanted.holds(value, squared=score.squared):
            return False
    return True


@dataclass(frozen=True, slots=True)
class Alternative:
    """A reading of the report under which it would be consistent."""

    code: str
    sentence: str
    count: int


@dataclass(frozen=True, slots=True)
class Reading:
    """One way to read a report: which scores were meant, and what 0/0 was printed as."""

    code: str
    sentence: str
    scores: tuple[tuple[str, Range], ...]
    sizes_exchanged: bool = False
    undefined_as_zero: bool = False


def readings(scores: Mapping[str, str], printed: Printed) -> list[Reading]:
    """Readings of printed scores beside the plain one, those that differ from it."""
    plain = tuple(normalise({name: printed_range(text, printed) for name, text in scores.items()}))
    loose = tuple(normalise({name: printed_range(text, Printed.ANY) for name, text in scores.items()}))
    mirrored = tuple((SCORES[name].mirrored or name, wanted) for name, wanted in plain)
    transposed = tuple((SCORES[name].transposed or name, wanted) for name, wanted in plain)
    found = [
        Reading("truncated", "scores were cut off or rounded up, not rounded to nearest", loose),
        Reading("swapped_classes", "the other class was taken as positive", mirrored),
        Reading("transposed", "rows and columns are exchanged, so recall was printed as precision", transposed),
    ]
    return [
        *(reading for reading in found if reading.scores != plain),
        Reading(
            "swapped_counts",
            "the numbers of positive and negative items are exchanged",
            plain,
            sizes_exchanged=True,
        ),
        Reading("undefined_as_zero", "a score that does not exist was printed as 0", plain, undefined_as_zero=True),
    ]


def alternatives(positives: int, negatives: int, scores: Mapping[str, str], printed: Printed) -> list[Alternative]:
    """Other readings of printed scores that some matrix fits.

    None of them is an accusation; each is a question to the authors.
    """
    found = []
    for reading in readings(scores, printed):
        if reading.sizes_exchanged and positives == negatives:
            continue
        p, n = (negatives, positives) if reading.sizes_exchanged else (positives, negatives)
        count = feasible_matrices(p, n, reading.scores, undefined_as_zero=reading.undefined_as_zero).count
        if count:
            found.append(Alternative(reading.code, reading.sentence, count))
    return found
