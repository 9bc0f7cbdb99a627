"""Consistency of reported scores of two classes with whole counts. Fazekas & Kovács (2024).

There are no statistics: counts are whole numbers and a printed score stands for an interval, so either some matrix fits
or none does. The fitting values of one of tp and tn are a range for each value of the other, and O(min(p, n)) steps
find all. The ends of every range are decided in exact fractions.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cache
from itertools import groupby
from operator import itemgetter

import numpy as np
from numpy.typing import NDArray

from app.kernel.consistency.reported_scores import Reported, Score, scores_of_two_classes
from app.kernel.metrics.catalogue import catalogue
from app.kernel.numerics.arrays import Array, Mask

Integers = NDArray[np.int64]

# Widens the ranges while floating point narrows them down; the rest is decided exactly.
_SLACK = 1e-10


@cache
def implied_scores() -> Mapping[str, Score]:
    """Scores that are reported for matrices that fit: bounded, without parameters, each quantity under one name."""
    known = scores_of_two_classes()
    cards = {name: catalogue().by_name[score.key].card for name, score in known.items()}
    # Headline metrics, metrics of one class, and the rest; of names for one quantity the first.
    order = sorted(known, key=lambda name: (not cards[name].inference.headline, known[name].of is None))
    tp, tn = (side.ravel() for side in np.meshgrid(np.arange(8.0), np.arange(13.0)))
    found: dict[str, Score] = {}
    seen: set[bytes] = set()
    for name in order:
        values = known[name].floating(tp, tn, np.full(tp.shape, 7.0), np.full(tp.shape, 12.0)).round(9) + 0.0
        plain = None not in cards[name].range and not known[name].parameters
        if plain and name.removesuffix("_ovr") not in known.keys() - {name} and values.tobytes() not in seen:
            found[name] = known[name]
            seen.add(values.tobytes())
    return found


def feasible_matrices(
    positives: int, negatives: int, reported: Reported, *, undefined_as_zero: bool = False
) -> "Feasible":
    """Every matrix with p >= 1 positive and n >= 1 negative items whose scores all lie in their ranges.

    With ``undefined_as_zero`` a printed score that would be 0/0 is read as 0; otherwise it fits nothing.
    """
    rows = Feasible.of([(positives, negatives)]).narrowed(reported, undefined_as_zero=undefined_as_zero)
    low, high = rows.low.copy(), rows.high.copy()
    for row in range(low.size):
        while low[row] <= high[row] and not rows.fits(row, low[row], reported, undefined_as_zero=undefined_as_zero):
            low[row] += 1
        while high[row] > low[row] and not rows.fits(row, high[row], reported, undefined_as_zero=undefined_as_zero):
            high[row] -= 1
    return replace(rows, low=low, high=high).some(low <= high)


@dataclass(frozen=True, slots=True)
class Fitting:
    """Class sizes for which matrices fit, with one of these matrices."""

    positives: int
    negatives: int
    tp: int
    tn: int


def fitting_sizes(
    sizes: Sequence[tuple[int, int]], reported: Reported, *, undefined_as_zero: bool = False
) -> list[Fitting]:
    """Class sizes (p, n) for which a matrix fits, for reports that do not state them.

    All are searched together; ``search_rows`` gives the cost. Arguments are as of ``feasible_matrices``.
    """
    portions = np.cumsum([min(size) + 1 for size in sizes]) // _ROWS_AT_ONCE
    parts = groupby(zip(sizes, portions.tolist(), strict=True), key=itemgetter(1))
    some = ([size for size, _ in part] for _, part in parts)
    return [found for part in some for found in _fitting(part, reported, undefined_as_zero=undefined_as_zero)]


def search_rows(sizes: Sequence[tuple[int, int]]) -> int:
    """Number of rows that a search over these sizes takes, some microseconds each."""
    return sum(min(size) + 1 for size in sizes)


def _fitting(sizes: Sequence[tuple[int, int]], reported: Reported, *, undefined_as_zero: bool) -> Iterator[Fitting]:
    rows = Feasible.of(sizes).narrowed(reported, undefined_as_zero=undefined_as_zero)
    for _, candidates in groupby(range(rows.owner.size), key=lambda row: int(rows.owner[row])):
        found = (
            (row, moving)
            for row in candidates
            for moving in range(int(rows.low[row]), int(rows.high[row]) + 1)
            if rows.fits(row, moving, reported, undefined_as_zero=undefined_as_zero)
        )
        first = next(found, None)
        if first is not None:
            yield Fitting(*rows.sizes(first[0]), *rows.matrix(*first))


# Rows per piece, about: arrays of 1 MB.
_ROWS_AT_ONCE = 1 << 17


@dataclass(frozen=True, slots=True, eq=False)
class Feasible:
    """Binary matrices that fit, or may fit, of one or many class sizes, one after another: for each value of the count
    of the smaller class a range of the other count.

    Counts are whole numbers in floating point. All have shape (R).

    Attributes:
        owner: Index of the size that a row belongs to.
        fixed: Value of tp, or of tn where swapped.
        p: Positive items.
        n: Negative items.
        swapped: The negative class is the smaller one.
        low: Smallest value of the other count.
        high: Largest; below the smallest where none may fit.
    """

    owner: Integers
    fixed: Array
    p: Array
    n: Array
    swapped: Mask
    low: Array
    high: Array

    @classmethod
    def of(cls, sizes: Sequence[tuple[int, int]]) -> "Feasible":
        """All matrices of some sizes (p, n)."""
        both = np.array(sizes, dtype=np.int64)
        lengths = both.min(axis=1) + 1
        owner = np.repeat(np.arange(len(both)), lengths)
        starts = np.concatenate([[0], np.cumsum(lengths)[:-1]])
        p, n = both[owner].T.astype(np.float64)
        fixed = np.arange(owner.size) - starts[owner] + 0.0
        return cls(owner, fixed, p, n, p > n, np.zeros(owner.size), np.maximum(p, n))

    @property
    def count(self) -> int:
        """Number of matrices."""
        return int((self.high - self.low + 1.0).sum())

    def examples(self, most: int = 5) -> list[tuple[int, int]]:
        """At most ``most`` pairs (tp, tn), spread over all of them."""
        if not self.count:
            return []
        ends = np.cumsum(self.high - self.low + 1.0)
        wanted = np.unique(np.linspace(0, self.count - 1, min(most, self.count)).round())
        rows = np.searchsorted(ends, wanted, side="right")
        moving = self.low[rows] + wanted - np.concatenate([[0.0], ends])[rows]
        return [self.matrix(row, count) for row, count in zip(rows.tolist(), moving.tolist(), strict=True)]

    def implied(self) -> dict[str, tuple[float, float]]:
        """Range of every bounded score over the matrices for which it is defined; empty without any.

        A score is monotone between the smallest and the largest count of a row, and is undefined at most at an end of
        the possible counts. So the counts next to the ends are evaluated too.
        """
        inner = np.minimum(self.low + 1.0, self.high), np.maximum(self.high - 1.0, self.low)
        ranges = {}
        for name, score in implied_scores().items():
            values = np.array([self._values(score, moving) for moving in (self.low, *inner, self.high)])
            if np.isfinite(values).any():
                ranges[name] = (float(np.nanmin(values)), float(np.nanmax(values)))
        return ranges

    def sizes(self, row: int) -> tuple[int, int]:
        """Numbers (p, n) of items of a row."""
        return int(self.p[row]), int(self.n[row])

    def matrix(self, row: int, count: float) -> tuple[int, int]:
        """Counts (tp, tn) of a row with the other count."""
        fixed, moving = int(self.fixed[row]), int(count)
        return (moving, fixed) if self.swapped[row] else (fixed, moving)

    def fits(self, row: int, moving: float, reported: Reported, *, undefined_as_zero: bool) -> bool:
        """True if a matrix has scores in all ranges, in exact fractions."""
        counts = *self.matrix(row, moving), *self.sizes(row)
        for score, wanted in reported:
            value = score.value(*counts)
            if value is None:
                if not undefined_as_zero or score.is_infinite(*counts):
                    return False
                value = Fraction(0)
            if not wanted.holds(value, squared=score.exact.squared):
                return False
        return True

    def narrowed(self, reported: Reported, *, undefined_as_zero: bool) -> "Feasible":
        """Rows that may fit, up to rounding."""
        rows = self
        for score, wanted in reported:
            if rows.owner.size == 0:
                break
            least, most = float(wanted.low) - _SLACK, float(wanted.high) + _SLACK
            defined, undefined = rows._parted(score)
            low, high = defined._within(score, least, most)
            rows = replace(defined, low=low, high=high).some(low <= high)
            if undefined_as_zero and least <= 0.0 <= most:
                rows = rows._and(undefined)
        return rows

    def _parted(self, score: Score) -> tuple["Feasible", "Feasible"]:
        """Rows of the counts at which a score exists, and rows of one count each of those at which it does not, which
        are at an end at most.
        """
        first, last = (np.isnan(self._values(score, end)) for end in (self.low, self.high))
        last &= self.high > self.low
        defined = replace(self, low=self.low + first, high=self.high - last)
        starts, ends = replace(self, high=self.low).some(first), replace(self, low=self.high).some(last)
        return defined.some(defined.low <= defined.high), starts._and(ends)

    def _and(self, others: "Feasible") -> "Feasible":
        """Rows of both, those of a size together."""
        both = Feasible(*(np.concatenate([getattr(one, each.name) for one in (self, others)]) for each in fields(self)))
        order = np.lexsort((both.low, both.fixed, both.owner))
        return Feasible(*(getattr(both, each.name)[order] for each in fields(self)))

    def some(self, kept: Mask) -> "Feasible":
        """Some of the rows."""
        return self if kept.all() else Feasible(*(getattr(self, one.name)[kept] for one in fields(self)))

    def _within(self, score: Score, least: float, most: float) -> tuple[Array, Array]:
        """First and last count (R) at which a monotone score lies between two numbers, by bisection."""
        low, high = self.low, self.high
        falls = self._values(score, high) < self._values(score, low)
        most_steps = high - low

        def rising(step: Array) -> Array:
            """Score in rising order of the steps."""
            return self._values(score, np.where(falls, high - step, low + step))

        begin = _first(lambda step: rising(step) >= least, most_steps)
        after = _first(lambda step: rising(step) > most, most_steps)
        return np.where(falls, high - after + 1, low + begin), np.where(falls, high - begin, low + after - 1)

    def _values(self, score: Score, moving: Array) -> Array:
        """The score (R) with this other count."""
        tp, tn = np.where(self.swapped, moving, self.fixed), np.where(self.swapped, self.fixed, moving)
        return np.broadcast_to(score.floating(tp, tn, self.p, self.n), moving.shape)


def _first(reached: Callable[[Array], Mask], most: Array) -> Array:
    """Smallest whole number from 0 to ``most`` (R) at which a monotone condition holds, ``most`` + 1 where it never
    does.
    """
    low, high = np.zeros_like(most), most + 1.0
    while (low < high).any():
        middle = np.floor((low + high) / 2.0)
        found = (middle > most) | reached(np.minimum(middle, most))
        low, high = np.where(found, low, np.minimum(middle + 1.0, high)), np.where(found, middle, high)
    return low
