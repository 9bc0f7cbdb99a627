"""What runs are made of: keys of samples, how often each is there, in which groups, and what they weigh."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.keys import Keys, Probabilities
from app.kernel.folds.weights.grid import pieces_of
from app.kernel.numerics.arrays import Array
from app.kernel.numerics.sorting import Order

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
