"""Averages of areas over more than two streamed classes: joint orders and sampling variances."""

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat, tee
from typing import Literal, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.along import FEW, exact_dot, exact_squares, variance_of
from app.kernel.folds.entries import Counts, Probabilities, score_of, starts_of
from app.kernel.folds.runs import Between, Cuts, InOrder, Reader, floors_of, floors_of_scores, taken_from
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.exact_sums import BLOCK, ExactSums, row_sums
from app.kernel.numerics.sorting import GOLDEN, Hashes, scrambled
from app.kernel.samples.losses import Codes
from app.kernel.samples.rankings import precision_of

# The orders of more classes are not read side by side: every stretch reads from all runs of all classes, and has fewer
# rows the more classes there are.
MOST_CLASSES = 32
# Different rows of a class if all have as many, and probabilities of all rows together.
_MOST, _NUMBERS = 1 << 14, 1 << 20
_HIGHEST = np.uint64(np.iinfo(np.uint64).max)
_SHIFT = np.uint64(31)


class Rows(NamedTuple):
    """Different rows (m) by class, and within it by hash.

    Attributes:
        hashes: (m).
        codes: (m) of the actual classes.
        probabilities: (m, K).
        counts: (m) how often each is there.
    """

    hashes: Hashes
    codes: Codes
    probabilities: Array
    counts: Counts


class RowSample:
    """Rows of K classes that are kept while all go by.

    Args:
        n_classes: K. More than 32 keep none.
    """

    def __init__(self, n_classes: int) -> None:
        self._room = most_of(n_classes) * n_classes
        # Of each class at most.
        self._most = self._room
        # Of each class, the highest hash that can be among the lowest.
        self._limits = np.full(n_classes, _HIGHEST)
        none = np.zeros(0, dtype=np.int64)
        self._parts = [Rows(none.astype(np.uint64), none.astype(np.intp), np.empty((0, n_classes)), none)]

    def add(self, codes: Codes, given: Probabilities) -> None:
        """Add codes (n) with rows (n, K)."""
        if not self._room:
            return
        hashes = _hashes(codes, given)
        at = np.flatnonzero(hashes <= self._limits.take(codes))
        if at.size:
            rows = given.take(at, axis=0).astype(np.float64)
            self._parts.append(Rows(hashes.take(at), codes.take(at), rows, np.ones(at.size, dtype=np.int64)))
            if sum(part.codes.size for part in self._parts[1:]) > self._room:
                self.read()

    def merge(self, other: Self) -> None:
        """Take in the rows of others."""
        self._limits = np.minimum(self._limits, other._limits)
        self._most = min(self._most, other._most)
        self._parts += other._parts
        self.read()

    def read(self) -> Rows:
        """Those that are kept so far."""
        if len(self._parts) > 1:
            self._parts = [self._lowest(Rows(*(np.concatenate(sides) for sides in zip(*self._parts, strict=True))))]
        return self._parts[0]

    def _lowest(self, rows: Rows) -> Rows:
        order = np.lexsort((rows.hashes, rows.codes))
        hashes, codes = rows.hashes.take(order), rows.codes.take(order)
        starts = np.flatnonzero(np.append(True, (hashes[1:] != hashes[:-1]) | (codes[1:] != codes[:-1])))
        counts = np.add.reduceat(rows.counts.take(order), starts)
        hashes, codes, order = hashes.take(starts), codes.take(starts), order.take(starts)
        # Places among the different rows of the class.
        firsts = np.searchsorted(codes, np.arange(self._limits.size))
        places = np.arange(codes.size) - firsts.take(codes)
        self._most = min(self._most, _shared(self._room, np.bincount(codes, minlength=firsts.size)))
        last = np.flatnonzero(places == self._most - 1)
        self._limits[codes.take(last)] = hashes.take(last)
        kept = np.flatnonzero(places < self._most)
        return Rows(
            hashes.take(kept),
            codes.take(kept),
            rows.probabilities.take(order.take(kept), axis=0),
            counts.take(kept),
        )

    def __getstate__(self) -> dict[str, object]:
        self.read()
        return self.__dict__


def most_of(n_classes: int) -> int:
    """How many different rows of each of K classes are kept, if all have as many."""
    return min(_MOST, _NUMBERS // n_classes**2) if n_classes <= MOST_CLASSES else 0


def _shared(room: int, sizes: Counts) -> int:
    """The most that each can have of its own (K), so that all have room."""
    left = room
    for place, size in enumerate(np.sort(sizes).tolist()):
        others = sizes.size - place
        if size * others > left:
            return left // others
        left -= size
    return room


def _hashes(codes: Codes, given: Probabilities) -> Hashes:
    """A number (n) for each row. Of a billion different ones one has that of a kept one with a chance of 1 in 10^5."""
    found = codes.astype(np.uint64)
    found += GOLDEN
    for column in given.T:
        # Adding 0 makes 0 of -0.
        found ^= (column.astype(np.float64) + 0.0).view(np.uint64)
        found *= GOLDEN
        found ^= found >> _SHIFT
    return scrambled(found)


class Sought(NamedTuple):
    """Probabilities (q) of one class, rising, and which of them are of its members."""

    scores: Array
    members: Mask


class Found(NamedTuple):
    """Where they stand (q): twice the samples of the other side above them, ties once.

    Attributes:
        own: In the order of the class.
        among_all: Where the probabilities of all classes are one order.
    """

    own: Counts
    among_all: Counts


class RowsInOrder:
    """Some rows in the order of each class, which are taken from the highest score down.

    Args:
        rows: Of K classes.
    """

    def __init__(self, rows: Rows) -> None:
        columns = rows.probabilities.T
        self._orders = [np.argsort(column, kind="stable") for column in columns]
        self._rising = [
            Sought(column.take(order), rows.codes.take(order) == code)
            for code, (column, order) in enumerate(zip(columns, self._orders, strict=True))
        ]

    def above(self, floors: Iterator[float]) -> Iterator[Sequence[Sought]]:
        """Of each class those from one score up to the next higher one, for each of some falling ones."""
        ends = [sought.scores.size for sought in self._rising]
        for floor in floors:
            starts = [int(np.searchsorted(sought.scores, floor)) for sought in self._rising]
            yield [
                Sought(own.scores[start:end], own.members[start:end])
                for own, start, end in zip(self._rising, starts, ends, strict=True)
            ]
            ends = starts

    def placed(self, parts: Sequence[Sequence[Found]]) -> tuple[Counts, Counts]:
        """What was found (K, m) of each row in each class, from what was found of each part in turn."""
        own, among_all = np.zeros((2, len(self._orders), self._orders[0].size), dtype=np.int64)
        for code, order in enumerate(self._orders):
            found = [part[code] for part in reversed(parts)]
            for whole, sides in zip((own, among_all), zip(*found, strict=True), strict=True):
                whole[code, order] = np.concatenate(sides)
        return own, among_all


# Root mean square of the share by which it changes for how many samples a row stands. Where it is more a row that is
# there often was kept or left out by chance, and standard errors can be off by more than 3 %.
_MOST_CHANGED = 0.2
# By what share totals may be missed: of what hardly a sample adds to, all can have been left out.
_UNMET = 1e-3
# What is a sum of others up to rounding asks for no change of its own.
_SAME = 1e-8
# Rows that are looked at together.
_ROWS = 1 << 12


class Placed(NamedTuple):
    """Some rows (m) with their places among all samples.

    Attributes:
        rows: The rows.
        own: (K, m) twice the samples of the other side, members or others, above them in the order of each class.
        among_all: (K, m) the same where the probabilities of all classes are one order.
    """

    rows: Rows
    own: Counts
    among_all: Counts


class KnownArea(NamedTuple):
    """The area of one class, and what members and others add to its variance."""

    area: float
    of_members: float
    of_others: float


def of_mean_area(placed: Placed, worth: Array, sizes: Sequence[int], areas: Array, *, weighted: bool) -> float:
    """Of the mean of the areas (K), or of that by the shares of the classes, which are as random as all else.

    Args:
        placed: Some rows.
        worth: For how many samples each of them (m) stands.
        sizes: Samples of each class, none of them 0.
        areas: The areas.
        weighted: See above.
    """
    codes, total = placed.rows.codes, sum(sizes)
    shares = np.array(sizes) / total if weighted else np.full(areas.size, 1.0 / areas.size)
    influence = np.zeros(codes.size)
    for code, (area, share) in enumerate(zip(areas.tolist(), shares.tolist(), strict=True)):
        influence += share * _influence(placed.own[code], codes == code, sizes, code, area)
    if weighted:
        influence += (areas.take(codes) - float(shares @ areas)) / _spread(total)
    return float(worth @ (influence * influence))


def of_area_of_entries(placed: Placed, worth: Array, sizes: Sequence[int], area: float) -> float:
    """Of the area of all probabilities of all classes in one order (Obuchowski 1997).

    Args:
        placed: Some rows.
        worth: For how many samples each of them (m) stands.
        sizes: Samples of each class.
        area: The area.
    """
    codes, total, others = placed.rows.codes, sum(sizes), len(sizes) - 1
    actual = codes == np.arange(len(sizes))[:, None]
    shares = placed.among_all / (2 * total * others)
    sums = np.where(actual, 1.0 - shares, shares).sum(axis=0)
    influence = (sums - 2.0 * area) / _spread(total)
    return float(worth @ (influence * influence))


def worth_of_rows(placed: Placed, sizes: Sequence[int], known: Sequence[KnownArea | None]) -> Array | None:
    """For how many samples each row (m) stands; None where that is not known, as where many rows are equal.

    Args:
        placed: Some rows.
        sizes: Samples of each class.
        known: Of each class, None without members or others.
    """
    rows = placed.rows
    kept = np.bincount(rows.codes, rows.counts, len(sizes)).take(rows.codes)
    worth = rows.counts * (np.array(sizes, dtype=np.float64).take(rows.codes) / kept)
    if kept.size == 0 or np.array_equal(worth, rows.counts):
        return worth
    totals = _totals(sizes, known)
    products, missing = np.zeros((totals.size, totals.size)), totals
    for part, values in _values(placed, sizes, known):
        weighed = values * worth[part]
        products += weighed @ values.T
        missing = missing - weighed.sum(axis=1)
    slopes = np.linalg.lstsq(products, missing, rcond=_SAME)[0]
    changes = np.concatenate([slopes @ values for _, values in _values(placed, sizes, known)])
    met = np.abs(missing - products @ slopes).max() <= _UNMET * sum(sizes)
    within = float(worth @ (changes * changes)) <= _MOST_CHANGED**2 * sum(sizes)
    return worth * (1.0 + changes) if met and within else None


def _totals(sizes: Sequence[int], known: Sequence[KnownArea | None]) -> Array:
    """What these values come to over all samples: each class its size, influences 0, and their squares as scaled."""
    of_areas = [(0.0, 0.0, one.of_members > 0.0, one.of_others > 0.0) for one in known if one is not None]
    return np.concatenate([np.array(sizes, dtype=np.float64), sum(sizes) * np.ravel(of_areas)])


def _values(placed: Placed, sizes: Sequence[int], known: Sequence[KnownArea | None]) -> Iterator[tuple[slice, Array]]:
    """Of some rows after others what each adds to these totals, as shares of what a sample adds to them."""
    total = sum(sizes)
    for start in range(0, placed.rows.codes.size, _ROWS):
        part = slice(start, start + _ROWS)
        codes = placed.rows.codes[part]
        values = [codes == code for code in range(len(sizes))]
        for code, one in enumerate(known):
            if one is None:
                continue
            influence = _influence(placed.own[code, part], codes == code, sizes, code, one.area)
            sides = [
                np.where(inside, influence, 0.0) * np.sqrt(total / variance) if variance else np.zeros(codes.size)
                for inside, variance in ((codes == code, one.of_members), (codes != code, one.of_others))
            ]
            values += [*sides, *(side * side for side in sides)]
        yield part, np.array(values, dtype=np.float64)


def _influence(own: Counts, inside: Mask, sizes: Sequence[int], code: int, area: float) -> Array:
    """What each row (m) adds to the area of a class, in or out of it, of its places in the order of that class."""
    members, others = sizes[code], sum(sizes) - sizes[code]
    lost = np.where(inside, 1.0 - own / (2 * others), own / (2 * members)) - area
    influence: Array = lost / np.where(inside, _spread(members), _spread(others))
    return influence


def _spread(size: int) -> float:
    return float(np.sqrt(float(size) * max(size - 1, 1)))


_TWO = 2
_SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
_NONE = Cuts(np.empty(0), *np.zeros((2, 0), dtype=np.int64))
# Of each class how many members and others are above (K, 2).
Above = NDArray[np.int64]


class Together(NamedTuple):
    """What one threshold for all classes says.

    Attributes:
        twice_lost: Twice the pairs of an actual class and a class that is not, of any two samples or one, in which the
            other one has the higher probability, ties once.
        precision: Entry [k, l] (K, K) is the precision of class l along the members of class k, by trapezoids.
        variance: Of two classes, over n - 1, of the share of the others above the actual class of each sample.
        placed: Where some rows stand, None where there are none.
    """

    twice_lost: int
    precision: Array
    variance: float | None
    placed: Placed | None = None


class EntrySums:
    """The same while the orders of K classes go by; states of stretches merge from the highest scores down.

    Attributes:
        found: Of each stretch where the rows stand that were looked for, in each class.

    Args:
        n_classes: K.
        n_samples: All of them.
    """

    def __init__(self, n_classes: int, n_samples: int) -> None:
        self._n_samples, self._others = n_samples, n_samples * (n_classes - 1)
        self._twice_lost = 0
        self._precision = [ExactSums((n_classes,)) for _ in range(n_classes)]
        # Of each sample the square of twice the others above its actual class.
        self._squares = 0
        self._few = n_samples < FEW
        self.found: list[Sequence[Found]] = []

    def add(self, cuts: Sequence[Cuts], above: Above, sought: Sequence[Sought] | None = None) -> Self:
        """Add all between two scores.

        Args:
            cuts: Of each class.
            above: Of each class, of higher scores.
            sought: Of each class scores that are looked for.
        """
        columns = [_Column.of(own, *higher) for own, higher in zip(cuts, above, strict=True)]
        for code, own in enumerate(cuts):
            # Rising, as columns are.
            at = np.flatnonzero(own.members[::-1])
            for start in range(0, at.size, BLOCK):
                part = at[start : start + BLOCK]
                thresholds, held = own.scores[::-1].take(part), own.members[::-1].take(part)
                passed = [
                    column.at(part) if other == code else column.passed(thresholds)
                    for other, column in enumerate(columns)
                ]
                self._add(code, passed, held)
        if sought is not None:
            self.found.append(_found(columns, _members_of(cuts, above), sought))
        return self

    def _add(self, code: int, passed: Sequence["_Passed"], held: Counts) -> None:
        twice, heights = (np.stack(side) for side in zip(*passed, strict=True))
        lost = twice.sum(axis=0)
        self._twice_lost += exact_dot(held, lost)
        self._precision[code].add(heights * held, row_sums)
        if len(passed) == _TWO:
            self._squares += exact_squares(held, lost, few=self._few)

    def merge(self, other: Self) -> None:
        """Take in what another has looked at."""
        self._twice_lost += other._twice_lost
        self._squares += other._squares
        self.found += other.found
        for own, more in zip(self._precision, other._precision, strict=True):
            own.merge(more)

    def read(self) -> Together:
        """What there is so far."""
        precision = np.stack([sums.rounded() for sums in self._precision])
        variance = variance_of(self._twice_lost, self._squares, self._n_samples) / (2 * self._others) ** 2
        return Together(self._twice_lost, precision, float(variance) if len(precision) == _TWO else None)


class _Column(NamedTuple):
    """One class between two scores.

    Attributes:
        rising: Distinct scores (c).
        tp: (c + 1) members with scores above the last 0, 1, ... of these.
        fp: Others.
    """

    rising: Array
    tp: Counts
    fp: Counts

    @classmethod
    def of(cls, cuts: Cuts, members: int, others: int) -> Self:
        """From how many members and others are above."""
        counts = zip((cuts.members, cuts.others), (members, others), strict=True)
        tp, fp = (np.concatenate([[0], np.cumsum(held)])[::-1] + more for held, more in counts)
        return cls(cuts.scores[::-1], tp, fp)

    def passed(self, thresholds: Array) -> "_Passed":
        """As rising thresholds (t) are passed."""
        # Few of its scores lie between them, and stay in the cache.
        low = int(np.searchsorted(self.rising, thresholds[0], "left"))
        high = int(np.searchsorted(self.rising, thresholds[-1], "right"))
        scores = self.rising[low:high]
        at = np.searchsorted(scores, thresholds)
        tied = scores.take(at, mode="clip") == thresholds if scores.size else np.zeros(at.size, dtype=bool)
        at += low
        return self._between(at, at + tied) if tied.any() else self._above(at)

    def above(self, thresholds: Array) -> tuple[Counts, Counts]:
        """Twice the members and twice the others above thresholds (t), ties once."""
        before, after = (np.searchsorted(self.rising, thresholds, side=side) for side in _SIDES)
        members, others = (counts.take(before) + counts.take(after) for counts in (self.tp, self.fp))
        return members, others

    def at(self, places: Counts) -> "_Passed":
        """As some of the scores themselves are passed."""
        return self._between(places, places + 1)

    def _between(self, before: Counts, after: Counts) -> "_Passed":
        (with_them, low), (without, high) = self._above(before), self._above(after)
        return _Passed((with_them + without) // 2, 0.5 * (low + high))

    def _above(self, places: Counts) -> "_Passed":
        tp, fp = self.tp.take(places), self.fp.take(places)
        return _Passed(2 * fp, precision_of(tp, tp + fp))


class _Passed(NamedTuple):
    """What a class says as thresholds (t) are passed: the mean of before and after, where they are among its scores.

    Attributes:
        twice: Twice the others above.
        heights: Precision.
    """

    twice: Counts
    heights: Array


def _members_of(cuts: Sequence[Cuts], above: Above) -> _Column:
    """The members of all classes in one order, each by the probability of its own."""
    held = [np.flatnonzero(own.members) for own in cuts]
    scores = np.concatenate([own.scores.take(at) for own, at in zip(cuts, held, strict=True)])
    if not scores.size:
        return _Column.of(_NONE, int(above[:, 0].sum()), 0)
    order = np.argsort(scores, kind="stable")
    starts = starts_of(scores.take(order))
    members = np.concatenate([own.members.take(at) for own, at in zip(cuts, held, strict=True)]).take(order)
    counts = np.add.reduceat(members, starts)[::-1]
    falling = scores.take(order.take(starts))[::-1]
    return _Column.of(Cuts(falling, counts, np.zeros_like(counts)), int(above[:, 0].sum()), 0)


def _found(columns: Sequence[_Column], members: _Column, sought: Sequence[Sought]) -> Sequence[Found]:
    """Where scores of each class stand.

    Args:
        columns: Of each class.
        members: Of all classes, in one order.
        sought: Of each class.
    """
    found = []
    for column, (scores, inside) in zip(columns, sought, strict=True):
        of_members, of_others = column.above(scores)
        among_all, actual = members.above(scores)[0], np.flatnonzero(inside)
        own = scores.take(actual)
        among_all[actual] = sum((each.above(own)[1] for each in columns), start=np.zeros(own.size, dtype=np.int64))
        found.append(Found(np.where(inside, of_others, of_members), among_all))
    return found


def together(
    readers: Sequence[Sequence[Reader]], n_samples: int, budget: int, in_order: InOrder, rows: Rows | None = None
) -> Together:
    """What one threshold for all classes says.

    Args:
        readers: Of the runs of each class.
        n_samples: How many they have, each.
        budget: Bytes of memory, about.
        in_order: Has stretches looked at, here or elsewhere, and gives what comes of them in turn.
        rows: Some, of which the places are looked for.
    """
    whole, asked = EntrySums(len(readers), n_samples), None if rows is None else RowsInOrder(rows)
    for sums in in_order(partial(_of_stretch, n_samples), _side_by_side(readers, budget, asked)):
        whole.merge(sums)
    placed = None if rows is None or asked is None else Placed(rows, *asked.placed(whole.found))
    return whole.read()._replace(placed=placed)


# The stretches of all classes between the same scores, what is above them, and what is looked for in them.
_Task = tuple[Sequence[Between], Above, Sequence[Sought] | None]


def _side_by_side(readers: Sequence[Sequence[Reader]], budget: int, asked: RowsInOrder | None) -> Iterator[_Task]:
    above: Above = np.zeros((len(readers), 2), dtype=np.int64)
    floors, scores = tee(floors_of([reader for own in readers for reader in own], budget, floors_of_scores))
    sought = repeat(None) if asked is None else asked.above(score_of(floor) for floor in scores)
    for floor, own_sought in zip(floors, sought, strict=False):
        stretches = [Between(taken_from(own, floor, budget)) for own in readers]
        yield stretches, above.copy(), own_sought
        above += [stretch.sizes() for stretch in stretches]


def _of_stretch(n_samples: int, task: _Task) -> EntrySums:
    stretches, above, sought = task
    cuts = [stretch.cuts() if stretch.taken else _NONE for stretch in stretches]
    return EntrySums(len(cuts), n_samples).add(cuts, above, sought)
