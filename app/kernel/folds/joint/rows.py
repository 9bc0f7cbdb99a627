"""Some of the rows of each class, with all that they say, and as many of each as there are.

Of the different rows of a class those are kept whose hashes are the lowest: a random part of them, whatever they say
(bottom-k sampling; Cohen & Kaplan 2007, "Summarizing data using bottom-k sketches"). What has a hash that is too high
for one part has one that is too high for all, so parts merge in any order, and of what is kept every row was counted.

Classes share the room: each has as many as all others that have so many, and what rare ones leave goes to the others.
More samples have more different rows, so the number only falls, and what one part leaves out all would.
"""

from typing import NamedTuple, Self

import numpy as np

from app.kernel.folds.entries import Counts
from app.kernel.folds.keys import Probabilities
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.hashing import GOLDEN, Hashes, scrambled
from app.kernel.samples.losses import Codes

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
