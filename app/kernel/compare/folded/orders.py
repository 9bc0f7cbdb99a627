"""The orders of samples that runs have in common: how many of the other side stand on the wrong side of each sample.

Samples come in blocks. Of each block the distinct scores are sorted and go into a file, with how many members and
others have each. Then all blocks are read once, from the highest score down, and what is found goes to the same places:
so each number is read and written once, and values come out block by block in the order of the samples of all runs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count
from math import isqrt
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.folded.leaves import Group
from app.kernel.compare.folded.sums import Known, PairedSums, Plan, known_of
from app.kernel.folds.order import sortable
from app.kernel.folds.orders.runs import Reader, Run
from app.kernel.folds.orders.stretches import floors_of
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores

_NUMBER = np.dtype(np.int64)
Numbers = NDArray[np.int64]
# What a stretch of the order comes to, or samples to sums: here or in other processes, in turn.
InOrder = Callable[[Callable[..., object], Iterable[object]], Iterable[object]]


class Ranked(NamedTuple):
    """What one run says of the samples of a block in the order of a class.

    Attributes:
        keys: (d) distinct scores, rising, as whole numbers.
        places: (n) which of them each sample has.
        members: (d) how many members of the class have each.
        others: (d) and how many others.
    """

    keys: NDArray[np.uint64]
    places: NDArray[np.uint32]
    members: Numbers
    others: Numbers

    @classmethod
    def of(cls, scores: Array, members: NDArray[np.bool_]) -> Self:
        """Of scores (n) with membership (n)."""
        keys, places = np.unique(sortable(scores), return_inverse=True)
        inside = np.bincount(places[members], minlength=keys.size)
        return cls(keys, places.astype(np.uint32), inside, np.bincount(places, minlength=keys.size) - inside)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Samples that all runs have, as far as groups need them whose summands are counted in orders.

    Attributes:
        y: (n) codes.
        known: Values (R, n) of rows by the keys of summands.
        ranked: Of each class in whose order is counted what each run says.
    """

    y: Codes
    known: Known
    ranked: Mapping[int, tuple[Ranked, ...]]

    @classmethod
    def of(cls, plan: Plan, y: Codes, runs: Sequence[Scores]) -> "Block | None":
        """Of codes (n) and what the runs say; None where nothing is counted in orders."""
        groups = plan.groups(ordered=True)
        if not groups:
            return None
        codes, known = _codes(groups), known_of(groups, runs)
        ranked = {code: tuple(Ranked.of(one, y == code) for one in known.pop(key)) for code, key in codes.items()}
        return cls(y, known, ranked)


def _codes(groups: Mapping[str, Group]) -> dict[int, str]:
    """The classes in whose orders is counted, with the keys of the summands."""
    return {one.code: one.key for group in groups.values() for one in group.summands if one.code is not None}


class _Stretch(NamedTuple):
    """What several blocks have between two scores, and how many members and others are above, and members in all."""

    keys: Sequence[NDArray[np.uint64]]
    members: Sequence[Numbers]
    others: Sequence[Numbers]
    above: tuple[int, int]
    positives: int


def lost_of(stretch: _Stretch) -> list[Numbers]:
    """For each block (2, d): of a member and of another with each score twice how many are on the wrong side of it.

    Equal scores count once. A pure function, for any process.
    """
    keys, members, others = (np.concatenate(side) for side in stretch[:3])
    distinct, places = np.unique(keys, return_inverse=True)
    held = [np.bincount(places, side, distinct.size).astype(np.int64) for side in (members, others)]
    inside, outside = held
    # Members and others with at least each score.
    tp, fp = (above + np.cumsum(side[::-1])[::-1] for above, side in zip(stretch.above, held, strict=True))
    lost = np.stack([2 * fp - outside, 2 * (stretch.positives - tp) + inside])[:, places]
    ends = np.cumsum([one.size for one in stretch.keys])[:-1]
    return np.split(lost, ends, axis=1)


class _Column:
    """What one run says of one block in the order of a class, in a file: keys, members, others, and what is found."""

    def __init__(self, path: Path, ranked: Ranked) -> None:
        self.path, self.size, self.stride = path, ranked.keys.size, max(isqrt(ranked.keys.size), 1)
        self.marks = ranked.keys[:: self.stride].copy()
        with path.open("wb") as file:
            for part in (ranked.keys, ranked.members, ranked.others, np.zeros(2 * self.size, _NUMBER), ranked.places):
                part.tofile(file)

    def reader(self) -> "_ColumnReader":
        """From the highest score down."""
        return _ColumnReader(self)

    def numbers(self, part: int, start: int, stop: int) -> Numbers:
        """Members (1) or others (2) from a place to another; 3 and 4 is what was found for these."""
        return np.fromfile(self.path, _NUMBER, stop - start, offset=(part * self.size + start) * _NUMBER.itemsize)

    def write(self, start: int, lost: Numbers) -> None:
        """What was found (2, m) from a place on."""
        with self.path.open("r+b") as file:
            for part, found in enumerate(lost, start=3):
                file.seek((part * self.size + start) * _NUMBER.itemsize)
                found.tofile(file)

    def values(self, members: NDArray[np.bool_]) -> Array:
        """What was found for each sample (n), of which some are members."""
        places = np.fromfile(self.path, np.uint32, offset=5 * self.size * _NUMBER.itemsize)
        of_members, of_others = (self.numbers(part, 0, self.size) for part in (3, 4))
        return np.where(members, of_members.take(places), of_others.take(places)).astype(np.float64)


class _ColumnReader(Reader):
    """Knows where what it took stood."""

    def __init__(self, column: _Column) -> None:
        super().__init__(Run(column.size, column.marks, column.stride, None, [column.path, None, None]))
        self.column, self.left = column, column.size

    def next(self, floor: np.uint64) -> tuple[int, NDArray[np.uint64]]:
        """Where the keys from a key on begin that were not taken yet, and these."""
        keys = self.take(floor).keys.view(np.uint64)
        self.left -= keys.size
        return self.left, keys


@dataclass(frozen=True, slots=True, eq=False)
class _Written:
    """A block whose columns are in files."""

    path: Path
    size: int
    names: tuple[str, ...]
    columns: Mapping[int, tuple[_Column, ...]]

    def read(self, codes: Mapping[int, str], n_runs: int) -> tuple[Codes, Known]:
        """The codes of the samples, and all values."""
        y = np.fromfile(self.path, np.intp, self.size)
        rest = np.fromfile(self.path, np.float64, offset=self.size * y.itemsize)
        known = dict(zip(self.names, rest.reshape(len(self.names), n_runs, self.size), strict=True))
        for code, columns in self.columns.items():
            known[codes[code]] = np.stack([column.values(y == code) for column in columns])
        return y, known


class Orders:
    """Blocks of samples, kept in files until all of them are there.

    Args:
        plan: What is summed.
        folder: Where files are made; who made it removes it.
        budget: Bytes of memory, about.
    """

    def __init__(self, plan: Plan, folder: Path, budget: int) -> None:
        self._plan, self._folder, self._budget = plan, folder, budget
        self._blocks: list[_Written] = []
        self._sizes: Numbers = np.zeros(plan.n_classes, dtype=np.int64)
        self._numbers = count()

    def add(self, block: Block) -> None:
        """Take in the samples of a block."""
        self._sizes += np.bincount(block.y, minlength=self._sizes.size)
        path = self._path()
        with path.open("wb") as file:
            block.y.tofile(file)
            for values in block.known.values():
                values.tofile(file)
        columns = {code: tuple(_Column(self._path(), ranked) for ranked in runs) for code, runs in block.ranked.items()}
        self._blocks.append(_Written(path, block.y.size, tuple(block.known), columns))

    def sums(self, in_order: InOrder = map) -> PairedSums:
        """What all samples come to.

        Args:
            in_order: Has stretches of orders and samples of blocks looked at, here or in other processes.
        """
        codes = _codes(self._plan.groups(ordered=True))
        for code in codes:
            for run in range(self._plan.n_runs):
                self._count([block.columns[code][run] for block in self._blocks], int(self._sizes[code]), in_order)
        whole = PairedSums(self._plan, ordered=True)
        read = (block.read(codes, self._plan.n_runs) for block in self._blocks)
        for sums in in_order(partial(_summed, self._plan), read):
            assert isinstance(sums, PairedSums)  # noqa: S101 - what was made
            whole.merge(sums)
        return whole

    def _path(self) -> Path:
        return self._folder / f"order-{next(self._numbers)}"

    def _count(self, columns: Sequence[_Column], positives: int, in_order: InOrder) -> None:
        """Go through one order, and write what was found to where it belongs."""
        places: list[list[tuple[_Column, int]]] = []
        found = in_order(lost_of, self._stretches(columns, positives, places))
        for number, lost in enumerate(found):
            assert isinstance(lost, list)  # noqa: S101 - what was made
            for (column, start), one in zip(places[number], lost, strict=True):
                column.write(start, one)
            places[number] = []

    def _stretches(
        self, columns: Sequence[_Column], positives: int, places: list[list[tuple[_Column, int]]]
    ) -> Iterator[_Stretch]:
        readers, above = [column.reader() for column in columns], (0, 0)
        for floor in floors_of(readers, self._budget, _distinct):
            taken = [(reader.column, *reader.next(floor)) for reader in readers]
            taken = [(column, start, keys) for column, start, keys in taken if keys.size]
            if not taken:
                continue
            members, others = (
                [column.numbers(part, start, start + keys.size) for column, start, keys in taken] for part in (1, 2)
            )
            places.append([(column, start) for column, start, _ in taken])
            yield _Stretch([keys for *_, keys in taken], members, others, above, positives)
            above = above[0] + _total(members), above[1] + _total(others)


def _summed(plan: Plan, block: tuple[Codes, Known]) -> PairedSums:
    return PairedSums(plan, ordered=True).add_known(*block)


def _distinct(marks: NDArray[np.uint64]) -> Iterator[np.uint64]:
    yield from np.unique(marks)[::-1]


def _total(parts: Sequence[Numbers]) -> int:
    return sum(int(part.sum()) for part in parts)
