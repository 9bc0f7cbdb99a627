"""Samples sorted in runs: kept in memory up to a budget, then in files, and read as one order in segments."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import isqrt
from pathlib import Path
from typing import Any, NamedTuple, Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import (
    Counts,
    Entries,
    Groups,
    Keys,
    Probabilities,
    floor_key,
    in_order,
    joined,
    keys_of,
    members_of,
    mirrored,
    scores_of,
    split,
    starts_of,
    summed,
    widened,
)
from app.kernel.numerics.arrays import Array, Mask

_COUNT, _GROUP, _WEIGHT = np.dtype(np.int64), np.dtype(np.uint64), np.dtype(np.float64)

# What comes in is sorted when it fills this share of the budget; so much of it is held; a block of the merged order
# has a sample for so many bytes of it, since it is copied several times.
_BUFFER, _HELD, _MERGED = 8, 4, 192
_NOTHING = np.uint64(0)
# Samples of a block: more would not be faster.
_MOST, _LEAST = 1 << 20, 256


@dataclass(eq=False)
class Run:
    """Entries by rising keys, in memory or in files.

    Attributes:
        marks: Every ``stride``-th key, the first included.
        held: The entries, in memory.
        paths: Files of the keys and of what stands beside them; None where there is none.
    """

    size: int
    marks: Keys
    stride: int
    held: Entries | None = None
    paths: list[Path | None] = field(default_factory=list)

    @classmethod
    def of(cls, entries: Entries, stride: int) -> Self:
        """A run in memory."""
        return cls(entries.keys.size, entries.keys[::stride].copy(), stride, entries)

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        return self.marks.nbytes + (0 if self.held is None else self.held.nbytes)

    def spill(self, folder: Path) -> None:
        """Write it into files and free its memory."""
        for part in self.held or ():
            if part is None:
                self.paths.append(None)
                continue
            handle, name = tempfile.mkstemp(prefix="run-", dir=folder)
            # Known before it is filled, so that it is deleted whatever happens.
            self.paths.append(Path(name))
            with os.fdopen(handle, "wb") as file:
                part.tofile(file)
        self.held = None

    def read(self, start: int, stop: int) -> Entries:
        """Entries from a position to another."""
        if self.held is not None:
            return self.held.part(slice(start, stop))
        kinds = self.marks.dtype, _COUNT, _GROUP, _WEIGHT, _WEIGHT
        # Whoever has files alone names no more of them than there are.
        keys, *beside = (
            None if path is None else np.fromfile(path, kind, stop - start, offset=start * kind.itemsize)
            for path, kind in zip(self.paths, kinds, strict=False)
        )
        if keys is None:
            raise ValueError("expected a run that is in memory or in files")
        return Entries(keys, *beside)

    def delete(self) -> None:
        """Delete its files."""
        for path in self.paths:
            if path is not None:
                path.unlink(missing_ok=True)


# From rising keys to wide keys of the other way round, which rise too.
Flip = Callable[[Keys], NDArray[np.uint64]]


class Reader:
    """A run read from the highest score down; flipped, it is read from its other end."""

    def __init__(self, run: Run, flip: Flip | None = None, lowest: np.uint64 = _NOTHING) -> None:
        """``lowest``: the wide key at which it ends."""
        self.run, self._flip, self._lowest = run, flip, lowest
        # Wide keys of the marks, rising, and between which positions they lie, counted in the order that is read.
        marks = widened(run.marks) if flip is None else flip(run.marks)
        self.marks: NDArray[np.uint64] = marks
        self._left = run.size

    def take(self, floor: np.uint64) -> Entries:
        """All from a wide key on that were not taken yet, rising, but for the order of members among equals."""
        run, ends = self.run, floor <= self._lowest
        floor = max(floor, self._lowest)
        # What is left are the first so many keys of the rising order that is read. A mark stands at every stride.
        low = self._position(int(np.searchsorted(self.marks, floor, side="left")))
        if low >= self._left:
            return Entries(np.empty(0, dtype=np.uint64))
        if self._flip is not None:
            found = run.read(run.size - self._left, run.size - low)
            found = found.part(slice(None, None, -1))._replace(keys=self._flip(found.keys))
        else:
            found = run.read(low, self._left)
            found = found._replace(keys=widened(found.keys))
        cut = int(np.searchsorted(found.keys, floor, side="left"))
        self._left = 0 if ends else low + cut
        return found.part(slice(cut, None))

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
        grouped: Do samples have groups?
        weighted: Do they have weights?
    """

    def __init__(self, budget: int, folder: Path | None, *, grouped: bool = False, weighted: bool = False) -> None:
        self.budget, self.folder, self.grouped, self.weighted = budget, folder, grouped, weighted
        self.runs: list[Run] = []
        self._buffer: Entries | None = None
        self._filled = 0

    def add(
        self, probabilities: Probabilities, members: Mask, groups: Groups | None = None, weights: Array | None = None
    ) -> None:
        """Add probabilities (n) in [0, 1] with membership (n), and with groups (n) or weights (n)."""
        step = self._capacity
        for start in range(0, probabilities.size, step):
            part = slice(start, start + step)
            keys = keys_of(probabilities[part], members[part])
            self.add_keys(keys, None if groups is None else groups[part], None if weights is None else weights[part])

    def merge(self, other: "SortedRuns") -> None:
        """Take in the runs of others, and their files."""
        other.flush()
        for run in other.runs:
            if run.held is not None and not run.held.is_summed:
                self.add_keys(run.held.keys, run.held.groups, run.held.weights)
            else:
                self.runs.append(run)
        other.runs = []
        self._compact()

    def flush(self) -> None:
        """Sort what came in last into runs."""
        if self._buffer is not None and self._filled:
            entries = self._buffer.part(slice(self._filled))
            self._filled = 0
            for part in split(entries):
                self.runs.append(Run.of(part, self._stride))
            self._compact()

    def release(self) -> None:
        """Flush, and give back the memory of what comes in."""
        self.flush()
        self._buffer = None

    def close(self) -> None:
        """Delete the files and forget everything."""
        for run in self.runs:
            run.delete()
        self.runs, self._buffer, self._filled = [], None, 0

    def __getstate__(self) -> dict[str, object]:
        self.release()
        return self.__dict__

    @property
    def _capacity(self) -> int:
        """How many keys are sorted at once."""
        width = 8 * (1 + self.grouped + self.weighted)
        return max(self.budget // (_BUFFER * width), _LEAST)

    @property
    def _stride(self) -> int:
        # What is kept of all runs in memory, and what is read of each at once, is little together.
        return isqrt(self._capacity)

    def add_keys(self, keys: Keys, groups: Groups | None = None, weights: Array | None = None) -> None:
        """Add keys (n) in any order, with their groups (n) or their weights (n)."""
        buffer = self._ready(keys.dtype)
        taken = 0
        while taken < keys.size:
            free = min(keys.size - taken, buffer.keys.size - self._filled)
            place, part = slice(self._filled, self._filled + free), slice(taken, taken + free)
            buffer.keys[place] = keys[part]
            if buffer.groups is not None and groups is not None:
                buffer.groups[place] = groups[part]
            if buffer.weights is not None and weights is not None:
                buffer.weights[place] = weights[part]
            self._filled += free
            taken += free
            if self._filled == buffer.keys.size:
                self.flush()

    def _ready(self, kind: np.dtype[np.unsignedinteger[Any]]) -> Entries:
        """The buffer, for keys of one width."""
        capacity, buffer = self._capacity, self._buffer
        if buffer is None or buffer.keys.dtype != kind or buffer.keys.size > capacity:
            self.release()
            groups = np.empty(capacity, dtype=_GROUP) if self.grouped else None
            weights = np.empty(capacity) if self.weighted else None
            self._buffer = buffer = Entries(np.empty(capacity, dtype=kind), None, groups, weights)
        return buffer

    def _compact(self) -> None:
        """Bring what is held in memory below its share: runs with counts become one, all others go into files."""
        held = [run for run in self.runs if run.held is not None]
        if self.folder is None or sum(run.nbytes for run in held) <= self.budget // _HELD:
            return
        self.runs = [run for run in self.runs if run.held is None]
        counted: list[Entries] = []
        for run in held:
            if run.held is not None and run.held.is_summed:
                counted.append(run.held)
            else:
                run.spill(self.folder)
                self.runs.append(run)
        for width in (np.uint32, np.uint64):
            same = [entries for entries in counted if entries.keys.dtype == width]
            if same:
                made = Run.of(summed(joined(same)), self._stride)
                if made.nbytes > self.budget // (2 * _HELD):
                    made.spill(self.folder)
                self.runs.append(made)


def samples_of_block(budget: int) -> int:
    """How many samples of a merged order are looked at together."""
    return min(max(budget // _MERGED, _LEAST), _MOST)


# Entries of a stretch, in so many times the samples of one, from which on those that say the same become one.
_MANY = 4


class Cuts(NamedTuple):
    """Distinct scores (c), falling, and how many members and others have each."""

    scores: Array
    members: Counts
    others: Counts


# Entries of several runs.
Taken = Sequence[Entries]


class InGroups(NamedTuple):
    """Samples in any order, those that say the same as one entry or several.

    Attributes:
        scores: (n).
        members: (n) whether they are members.
        groups: (n) of which group they are.
        times: (n) how many samples each entry is.
    """

    scores: Array
    members: Mask
    groups: Groups
    times: Counts


class InWeights(NamedTuple):
    """Samples in any order, those of one score perhaps together.

    Attributes:
        scores: (n).
        members: (n) whether they are members.
        weights: (n).
        squares: (n) of the weights.
    """

    scores: Array
    members: Mask
    weights: Array
    squares: Array


class Sized(Protocol):
    """What lies between two scores, not sorted yet. Can be sent to another process."""

    def sizes(self) -> tuple[int, int]:
        """How many members and others they are, or what these weigh in whole numbers."""
        ...


class Stretch(Sized, Protocol):
    """The samples between two scores."""

    def cuts(self) -> Cuts:
        """The cuts between them."""
        ...

    def in_weights(self) -> InWeights:
        """The samples with their weights, which they have to have."""
        ...

    def in_groups(self) -> InGroups:
        """The samples with their groups, which they have to have."""
        ...


Some = TypeVar("Some", bound=Sized)
Task = TypeVar("Task")
Looked = TypeVar("Looked")


class InOrder(Protocol):
    """Has stretches looked at, here or elsewhere."""

    def __call__(self, look: Callable[[Task], Looked], parts: Iterable[Task], /) -> Iterable[Looked]:
        """What comes of each, in turn."""
        ...


class Between(NamedTuple):
    """A stretch of probabilities.

    Attributes:
        taken: Wide keys.
    """

    taken: Taken

    def cuts(self) -> Cuts:
        """The cuts between them."""
        return _cuts(in_order(self.taken))

    def in_any_order(self) -> Cuts:
        """Scores that may be there several times."""
        entries = joined(self.taken)
        members = members_of(entries.keys) * entries.times
        return Cuts(scores_of(entries.keys).astype(np.float64, copy=False), members, entries.times - members)

    def sizes(self) -> tuple[int, int]:
        """How many members and others they are."""
        members = sum(_members(entries) for entries in self.taken)
        return members, sum(entries.n_samples for entries in self.taken) - members

    def in_groups(self) -> InGroups:
        """The samples with their groups."""
        entries = joined(self.taken)
        if entries.groups is None:
            raise ValueError("expected samples in groups")
        scores = scores_of(entries.keys).astype(np.float64, copy=False)
        return InGroups(scores, members_of(entries.keys) == 1, entries.groups, entries.times)

    def in_weights(self) -> InWeights:
        """The samples with their weights."""
        entries = joined(self.taken)
        scores = scores_of(entries.keys).astype(np.float64, copy=False)
        return InWeights(scores, members_of(entries.keys) == 1, *entries.weighed)


def _members(entries: Entries) -> int:
    members = members_of(entries.keys)
    return int(members.sum() if entries.counts is None else members @ entries.counts)


def stretches(direct: Sequence[Run], mirror: Sequence[Run], budget: int) -> Iterator[Between]:
    """All samples of some runs by falling score, in stretches of bounded size; a score is in one of them only.

    Args:
        direct: Runs that are read as they are.
        mirror: Runs of the other one of two classes.
        budget: Bytes of memory, about.
    """
    return between(readers_of(direct, mirror), budget)


def readers_of(direct: Sequence[Run], mirror: Sequence[Run]) -> list[Reader]:
    """Runs that are read as they are, and those of the other one of two classes."""
    return [Reader(run) for run in direct] + [Reader(run, mirrored) for run in mirror]


def between(readers: Sequence[Reader], budget: int) -> Iterator[Between]:
    """The same of what readers of probabilities read."""
    for floor in floors_of(readers, budget, floors_of_scores):
        taken = taken_from(readers, floor, budget)
        if taken:
            yield Between(taken)


def placed(stretches: Iterable[Some]) -> Iterator[tuple[Some, tuple[int, int]]]:
    """Each with how many members and others are above it, or what these weigh."""
    members, others = 0, 0
    for stretch in stretches:
        yield stretch, (members, others)
        more = stretch.sizes()
        members, others = members + more[0], others + more[1]


def taken_from(readers: Sequence[Reader], floor: np.uint64, budget: int) -> list[Entries]:
    """What several runs have from a wide key on: of one score there are no more than a few entries for each run, or in
    all for each group or for their weights.
    """
    taken: list[Entries] = []
    held, most = 0, _MANY * samples_of_block(budget)
    for reader in readers:
        entries = reader.take(floor)
        if entries.keys.size:
            taken.append(entries)
            held += entries.keys.size
        if held > most and (entries.groups is not None or entries.weights is not None):
            taken = [summed(joined(taken))]
            held = taken[0].keys.size
            # As much again before it is done again.
            most = max(most, 2 * held)
    return taken


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
        most = samples_of_block(budget)
        marks = np.concatenate([reader.marks for reader in readers])
        sizes = np.repeat([reader.run.stride for reader in readers], [reader.marks.size for reader in readers])
        order = np.argsort(marks)[::-1]
        reached = np.cumsum(sizes.take(order)) // most
        yield from floors(marks.take(order[np.flatnonzero(np.diff(reached))]))
        yield np.uint64(0)


def floors_of_scores(marks: NDArray[np.uint64]) -> Iterator[np.uint64]:
    """From some wide keys of probabilities to the lowest of the same score, falling, and each once."""
    yield from (floor_key(score) for score in np.unique(scores_of(marks))[::-1].tolist() if score > 0.0)


def _cuts(entries: Entries) -> Cuts:
    keys, counts = entries.keys, entries.counts
    members, scores = members_of(keys), scores_of(keys).astype(np.float64, copy=False)
    if counts is not None:
        members *= counts
    starts = starts_of(scores)
    if starts.size < scores.size:
        members, counts = np.add.reduceat(members, starts), np.add.reduceat(entries.times, starts)
        scores = scores.take(starts)
    others = 1 - members if counts is None else counts - members
    return Cuts(scores[::-1], members[::-1], others[::-1])
