"""Stretches of a merged order: the samples between two scores, and the cuts between them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.kernel.folds.entries import Counts, Entries, Groups, in_order, joined, starts_of, summed
from app.kernel.folds.keys import floor_key, members_of, mirrored, scores_of
from app.kernel.folds.orders.runs import Reader, Run, samples_of_block
from app.kernel.numerics.arrays import Array, Mask

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
