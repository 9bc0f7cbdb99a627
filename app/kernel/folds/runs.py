"""Samples sorted in runs: kept in memory up to a budget, then in files, and read again as one order in blocks."""

import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isqrt
from pathlib import Path
from typing import NamedTuple, Protocol, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.keys import Keys, Probabilities, floor_key, keys_of, members_of, mirrored, scores_of, widened
from app.kernel.numerics.arrays import Array, Mask
from app.kernel.numerics.sorting import Order

Counts = NDArray[np.int64]
_COUNT = np.dtype(np.int64)

# What comes in is sorted when it fills this share of the budget; so much of it is held; a block of the merged order
# has a sample for so many bytes of it, since it is copied several times.
_BUFFER, _HELD, _MERGED = 8, 4, 192
# Samples of a block: more would not be faster.
_MOST, _LEAST = 1 << 20, 256
# Keys that are there so often are written once, with a count.
_OFTEN = 4


class Cuts(NamedTuple):
    """Distinct scores (c), falling, and how many members and others have each."""

    scores: Array
    members: Counts
    others: Counts


# Keys of runs, and how often each is there (None is once).
Taken = Sequence[tuple[Keys, Counts | None]]


class Stretch(Protocol):
    """The samples between two scores, not sorted yet. Can be sent to another process."""

    def cuts(self) -> Cuts:
        """The cuts between them."""
        ...

    def sizes(self) -> tuple[int, int]:
        """How many members and others they are."""
        ...


class Between(NamedTuple):
    """A stretch of probabilities.

    Attributes:
        taken: Wide keys.
    """

    taken: Taken

    def cuts(self) -> Cuts:
        """The cuts between them."""
        return _cuts(*sorted_together(self.taken))

    def sizes(self) -> tuple[int, int]:
        """How many members and others they are."""
        members = sum(_summed(members_of(keys), counts) for keys, counts in self.taken)
        return members, size_of(self.taken) - members


def size_of(taken: Taken) -> int:
    """How many samples there are."""
    return sum(keys.size if counts is None else int(counts.sum()) for keys, counts in taken)


def _summed(values: Counts, counts: Counts | None) -> int:
    return int(values.sum() if counts is None else values @ counts)


@dataclass(eq=False)
class Run:
    """Rising keys, in memory or in files, and how often each is there (None is once).

    Attributes:
        marks: Every ``stride``-th key, the first included.
    """

    size: int
    marks: Keys
    stride: int
    keys: Keys | None = None
    counts: Counts | None = None
    paths: list[Path] = field(default_factory=list)

    @classmethod
    def of(cls, keys: Keys, counts: Counts | None, stride: int) -> Self:
        """A run in memory."""
        return cls(keys.size, keys[::stride].copy(), stride, keys, counts)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return sum(0 if part is None else part.nbytes for part in (self.marks, self.keys, self.counts))

    def spill(self, folder: Path) -> None:
        """Write it into files and free its memory."""
        for part in (self.keys, self.counts):
            if part is not None:
                handle, name = tempfile.mkstemp(prefix="run-", dir=folder)
                # Known before it is filled, so that it is deleted whatever happens.
                self.paths.append(Path(name))
                with os.fdopen(handle, "wb") as file:
                    part.tofile(file)
        self.keys = self.counts = None

    def read(self, start: int, stop: int) -> tuple[Keys, Counts | None]:
        """Keys and counts from a position to another."""
        if self.keys is not None:
            return self.keys[start:stop], None if self.counts is None else self.counts[start:stop]
        keys, *counts = (
            np.fromfile(path, kind, stop - start, offset=start * kind.itemsize)
            for path, kind in zip(self.paths, (self.marks.dtype, _COUNT), strict=False)
        )
        return keys, counts[0] if counts else None


# From rising keys to wide keys of the other way round, which rise too.
Flip = Callable[[Keys], NDArray[np.uint64]]


class Reader:
    """A run read from the highest score down; flipped, it is read from its other end."""

    def __init__(self, run: Run, flip: Flip | None = None) -> None:
        self.run, self._flip = run, flip
        # Wide keys of the marks, rising, and between which positions they lie, counted in the order that is read.
        marks = widened(run.marks) if flip is None else flip(run.marks)
        self.marks: NDArray[np.uint64] = marks
        self._left = run.size

    def take(self, floor: np.uint64) -> tuple[NDArray[np.uint64], Counts | None]:
        """All wide keys from a key on that were not taken yet, rising, but for the order of members among equals."""
        run = self.run
        # What is left are the first so many keys of the rising order that is read. A mark stands at every stride.
        low = self._position(int(np.searchsorted(self.marks, floor, side="left")))
        if low >= self._left:
            return np.empty(0, dtype=np.uint64), None
        if self._flip is not None:
            keys, counts = run.read(run.size - self._left, run.size - low)
            wide, counts = self._flip(keys), None if counts is None else counts[::-1]
        else:
            keys, counts = run.read(low, self._left)
            wide = widened(keys)
        cut = int(np.searchsorted(wide, floor, side="left"))
        self._left = low + cut
        return wide[cut:], None if counts is None else counts[cut:]

    def _position(self, mark: int) -> int:
        """Where keys begin that may be at least as high as a floor of which ``mark`` marks are below."""
        if mark == 0:
            return 0
        if self._flip is None:
            return (mark - 1) * self.run.stride
        # The marks stand at the places size - 1 - stride * i of the order that is read.
        return self.run.size - 1 - (self.marks.size - mark) * self.run.stride


class SortedRuns:
    """Keys in sorted runs: samples with the probability of one class and whether they are its members, or others.

    Args:
        budget: Bytes of memory, about; more goes into files.
        folder: Where files are made; None: everything stays in memory.
    """

    def __init__(self, budget: int, folder: Path | None) -> None:
        self.budget, self.folder = budget, folder
        self.runs: list[Run] = []
        self._buffer: Keys | None = None
        self._filled = 0

    def add(self, probabilities: Probabilities, members: Mask) -> None:
        """Add probabilities (n) in [0, 1] with membership (n)."""
        step = self._capacity
        for start in range(0, probabilities.size, step):
            part = slice(start, start + step)
            self.add_keys(keys_of(probabilities[part], members[part]))

    def merge(self, other: "SortedRuns") -> None:
        """Take in the runs of others, and their files."""
        other.flush()
        for run in other.runs:
            if run.keys is not None and run.counts is None:
                self.add_keys(run.keys)
            else:
                self.runs.append(run)
        other.runs = []
        self._compact()

    def flush(self) -> None:
        """Sort what came in last into runs."""
        if self._buffer is not None and self._filled:
            keys = self._buffer[: self._filled]
            keys.sort()
            self._filled = 0
            for part, counts in _split(keys):
                self.runs.append(Run.of(part.copy(), counts, self._stride))
            self._compact()

    def release(self) -> None:
        """Flush, and give back the memory of what comes in."""
        self.flush()
        self._buffer = None

    def close(self) -> None:
        """Delete the files and forget everything."""
        for run in self.runs:
            for path in run.paths:
                path.unlink(missing_ok=True)
        self.runs, self._buffer, self._filled = [], None, 0

    def __getstate__(self) -> dict[str, object]:
        self.release()
        return self.__dict__

    @property
    def _capacity(self) -> int:
        """How many keys are sorted at once."""
        return max(self.budget // (_BUFFER * 8), _LEAST)

    @property
    def _stride(self) -> int:
        # What is kept of all runs in memory, and what is read of each at once, is little together.
        return isqrt(self._capacity)

    def add_keys(self, keys: Keys) -> None:
        """Add keys (n) in any order."""
        capacity = self._capacity
        if self._buffer is None or self._buffer.dtype != keys.dtype or self._buffer.size > capacity:
            self.release()
            self._buffer = np.empty(capacity, dtype=keys.dtype)
        while keys.size:
            free = min(keys.size, self._buffer.size - self._filled)
            self._buffer[self._filled : self._filled + free] = keys[:free]
            self._filled += free
            keys = keys[free:]
            if self._filled == self._buffer.size:
                self.flush()

    def _compact(self) -> None:
        """Bring what is held in memory below its share: runs with counts become one, all others go into files."""
        held = [run for run in self.runs if run.keys is not None]
        if self.folder is None or sum(run.nbytes for run in held) <= self.budget // _HELD:
            return
        self.runs = [run for run in self.runs if run.keys is None]
        for run in held:
            if run.counts is None:
                run.spill(self.folder)
                self.runs.append(run)
        for width in (np.uint32, np.uint64):
            same = [run.read(0, run.size) for run in held if run.counts is not None and run.marks.dtype == width]
            if same:
                keys, counts = sorted_together(same)
                starts = starts_of(keys)
                made = Run.of(keys.take(starts), np.add.reduceat(filled(keys, counts), starts), self._stride)
                if made.nbytes > self.budget // (2 * _HELD):
                    made.spill(self.folder)
                self.runs.append(made)


def sorted_together(pairs: Sequence[tuple[Keys, Counts | None]]) -> tuple[Keys, Counts | None]:
    """Keys of one width with their counts, as one, by rising scores."""
    if len(pairs) == 1:
        return pairs[0]
    keys = np.concatenate([keys for keys, _ in pairs])
    if all(counts is None for _, counts in pairs):
        keys.sort()
        return keys, None
    counts = np.concatenate([filled(*pair) for pair in pairs])
    order: Order = np.argsort(keys)
    return keys.take(order), counts.take(order)


def filled(keys: Keys, counts: Counts | None) -> Counts:
    """How often each key is there."""
    return np.ones(keys.size, dtype=np.int64) if counts is None else counts


def starts_of(ordered: Keys | Probabilities) -> Order:
    """Where each of the distinct values of a row in order begins."""
    return np.concatenate([[0], np.flatnonzero(ordered[1:] != ordered[:-1]) + 1])


def _split(keys: Keys) -> Iterator[tuple[Keys, Counts | None]]:
    """Sorted keys as those that are there often, once and with counts, and all others.

    Of a key no run has more than a few entries, so that no block of a merged order is large because of one score.
    """
    if not (keys[_OFTEN - 1 :] == keys[: 1 - _OFTEN]).any():
        yield keys, None
        return
    starts = starts_of(keys)
    counts = np.diff(starts, append=keys.size)
    often = counts >= _OFTEN
    yield keys.take(starts[often]), counts[often]
    if not often.all():
        yield keys[np.repeat(~often, counts)], None


def stretches(direct: Sequence[Run], mirror: Sequence[Run], budget: int) -> Iterator[Between]:
    """All samples of some runs by falling score, in stretches of bounded size; a score is in one of them only.

    Args:
        direct: Runs that are read as they are.
        mirror: Runs of the other one of two classes.
        budget: Bytes of memory, about.
    """
    readers = [Reader(run) for run in direct] + [Reader(run, mirrored) for run in mirror]
    for floor in floors_of(readers, budget, _floors_of_scores):
        taken = [pair for pair in (reader.take(floor) for reader in readers) if pair[0].size]
        if taken:
            yield Between(taken)


def floors_of(
    readers: Sequence[Reader], budget: int, floors: Callable[[NDArray[np.uint64]], Iterator[np.uint64]]
) -> Iterator[np.uint64]:
    """Keys, falling, with not too many samples between neighbours; the last is 0.

    Args:
        readers: Of all runs.
        budget: Bytes of memory, about.
        floors: From some keys to the lowest of the same score, falling, and each once.
    """
    if readers:
        most = min(max(budget // _MERGED, _LEAST), _MOST)
        marks = np.concatenate([reader.marks for reader in readers])
        sizes = np.repeat([reader.run.stride for reader in readers], [reader.marks.size for reader in readers])
        order = np.argsort(marks)[::-1]
        reached = np.cumsum(sizes.take(order)) // most
        yield from floors(marks.take(order[np.flatnonzero(np.diff(reached))]))
        yield np.uint64(0)


def _floors_of_scores(marks: NDArray[np.uint64]) -> Iterator[np.uint64]:
    yield from (floor_key(score) for score in np.unique(scores_of(marks))[::-1].tolist() if score > 0.0)


def _cuts(keys: Keys, counts: Counts | None) -> Cuts:
    members, scores = members_of(keys), scores_of(keys).astype(np.float64, copy=False)
    if counts is not None:
        members *= counts
    starts = starts_of(scores)
    if starts.size < scores.size:
        members, counts = np.add.reduceat(members, starts), np.add.reduceat(filled(keys, counts), starts)
        scores = scores.take(starts)
    others = 1 - members if counts is None else counts - members
    return Cuts(scores[::-1], members[::-1], others[::-1])
