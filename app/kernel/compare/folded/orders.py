"""The orders of samples that runs have in common: how many of the other side stand on the wrong side of each sample, or
what these weigh.

Samples come in blocks. Of each block the distinct scores are sorted and go into a file, with how many members and
others have each, or with what these weigh in whole numbers. Then all blocks are read once, from the highest score down,
and what is found goes to the same places: so each number is read and written once, and values come out block by block
in the order of the samples of all runs.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import count
from math import isqrt
from pathlib import Path
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from app.kernel.compare.folded.leaves import Order
from app.kernel.compare.folded.sums import Known, PairedSums, Plan, known_of
from app.kernel.folds.order import sortable
from app.kernel.folds.orders.runs import Reader, Run
from app.kernel.folds.orders.stretches import floors_of
from app.kernel.folds.weights.grid import Digits, Grid, carried
from app.kernel.numerics.arrays import Array
from app.kernel.samples.losses import Codes
from app.kernel.samples.scores import Scores

# Bytes of a number.
_NUMBER = 8
# What a stretch of the order comes to, or samples to sums: here or in other processes, in turn.
InOrder = Callable[[Callable[..., object], Iterable[object]], Iterable[object]]


class Ranked(NamedTuple):
    """What one run says of the entries of a block in an order.

    Attributes:
        keys: (d) distinct scores, rising, as whole numbers.
        places: (m) which of them each entry has.
        members: (L, d) digits of how many members have each, or of what they weigh.
        others: (L, d) and of others.
        undefined: Are they scores that say nothing in this order?
    """

    keys: NDArray[np.uint64]
    places: NDArray[np.uint32]
    members: Digits
    others: Digits
    undefined: bool = False

    @classmethod
    def of(cls, order: Order, run: Scores, digits: Digits | None = None) -> Self:
        """Of samples with weights as digits (L, n)."""
        scores, members = order.scores(run), order.members(run.y, run.n_classes)
        if digits is not None:
            digits = np.repeat(digits, run.n_classes, axis=1) if order.code is None else digits[:, order.rows(run.y)]
        keys, places = np.unique(sortable(scores), return_inverse=True)
        inside, all_of_them = (
            carried(_added(places[some], None if digits is None else digits[:, some], keys.size))
            for some in (members, slice(None))
        )
        undefined = order.code is None and not run.are_probabilities
        return cls(keys, places.astype(np.uint32), inside, carried(all_of_them - inside), undefined)


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Samples that all runs have, as far as groups need them whose summands are counted in orders.

    Attributes:
        y: (n) codes.
        weights: (n) above 0; None is 1 each.
        grid: On which they are whole numbers.
        known: Values (R, n) of rows by the keys of summands.
        ranked: By the key of the summand that is counted in an order what each run says.
    """

    y: Codes
    weights: Array | None
    grid: Grid
    known: Known
    ranked: Mapping[str, tuple[Ranked, ...]]

    @classmethod
    def of(cls, plan: Plan, y: Codes, runs: Sequence[Scores], weights: Array | None = None) -> "Block | None":
        """Of codes (n), what the runs say, and weights (n); None where nothing is counted in orders."""
        groups = plan.groups(ordered=True)
        if not groups:
            return None
        # So often a sample can be in an order.
        most = plan.n_classes
        grid = Grid.of(Fraction(most * y.size), 0) if weights is None else Grid.of_part(weights, most)
        digits = None if weights is None else grid.digits(weights)
        ranked = {key: tuple(Ranked.of(order, run, digits) for run in runs) for key, order in plan.orders().items()}
        return cls(y, weights, grid, known_of(groups, runs), ranked)


class _Stretch(NamedTuple):
    """What several blocks have between two scores, and how many members and others are above, and members in all, or
    what they weigh, in units of a grid.
    """

    grid: Grid
    keys: Sequence[NDArray[np.uint64]]
    members: Sequence[Digits]
    others: Sequence[Digits]
    above: tuple[int, int]
    positives: int


def lost_of(stretch: _Stretch) -> list[Array]:
    """For each block (2, d): of a member and of another with each score twice how many are on the wrong side of it, or
    what these weigh.

    Equal scores count once. A pure function, for any process.
    """
    grid, keys = stretch.grid, np.concatenate(stretch.keys)
    distinct, places = np.unique(keys, return_inverse=True)
    sides = (np.concatenate(side, axis=1) for side in (stretch.members, stretch.others))
    inside, outside = held = [carried(_added(places, side, distinct.size)) for side in sides]
    # Members and others with at least each score.
    tp, fp = (grid.cumulated(side[:, ::-1], above)[:, ::-1] for side, above in zip(held, stretch.above, strict=True))
    below = grid.of_units(stretch.positives) - tp
    lost = np.stack([grid.rounded(carried(one)) for one in (2 * fp - outside, 2 * below + inside)])[:, places]
    ends = np.cumsum([one.size for one in stretch.keys])[:-1]
    return np.split(lost, ends, axis=1)


def _added(places: NDArray[np.intp], digits: Digits | None, size: int) -> Digits:
    """Sums (L, size) of digits (L, n), or how many there are, by their places: no more than 2^23 have one."""
    if digits is None:
        return np.bincount(places, minlength=size)[None].astype(np.int64, copy=False)
    return np.stack([np.bincount(places, row, size) for row in digits]).astype(np.int64)


class _Column:
    """What one run says of one block in an order, in a file: keys, members, others, and what is found.

    Attributes:
        grid: On which members and others are whole numbers.
        positives: What all members come to.
        total: And all entries.
    """

    def __init__(self, path: Path, ranked: Ranked, grid: Grid) -> None:
        self.path, self.size, self.stride = path, ranked.keys.size, max(isqrt(ranked.keys.size), 1)
        self.marks = ranked.keys[:: self.stride].copy()
        self.grid, self.undefined = grid, ranked.undefined
        self.positives = grid.fraction(grid.total(ranked.members))
        self.total = self.positives + grid.fraction(grid.total(ranked.others))
        with path.open("wb") as file:
            for part in (ranked.keys, ranked.members, ranked.others, np.zeros(2 * self.size), ranked.places):
                part.tofile(file)

    def reader(self) -> "_ColumnReader":
        """From the highest score down."""
        return _ColumnReader(self)

    def sides(self, start: int, stop: int) -> tuple[Digits, Digits]:
        """Members and others (L, m) from a place to another."""
        rows = [
            np.fromfile(self.path, np.int64, stop - start, offset=self._at(row, start))
            for row in range(1, 1 + 2 * self.grid.size)
        ]
        return np.stack(rows[: self.grid.size]), np.stack(rows[self.grid.size :])

    def write(self, start: int, lost: Array) -> None:
        """What was found (2, m) from a place on."""
        with self.path.open("r+b") as file:
            for row, found in enumerate(lost, start=self._found):
                file.seek(self._at(row, start))
                found.tofile(file)

    def values(self, members: NDArray[np.bool_]) -> Array:
        """What was found for each entry (m), of which some are members."""
        if self.undefined:
            return np.full(members.size, np.nan)
        places = np.fromfile(self.path, np.uint32, offset=self._at(self._found + 2, 0))
        of_members, of_others = (
            np.fromfile(self.path, np.float64, self.size, offset=self._at(self._found + side, 0)) for side in range(2)
        )
        return np.where(members, of_members.take(places), of_others.take(places))

    @property
    def _found(self) -> int:
        """The row behind keys, members and others."""
        return 1 + 2 * self.grid.size

    def _at(self, row: int, start: int) -> int:
        return (row * self.size + start) * _NUMBER


class _ColumnReader(Reader):
    """Knows where what it took stood."""

    def __init__(self, column: _Column) -> None:
        super().__init__(Run(column.size, column.marks, column.stride, None, [column.path, *[None] * 4]))
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
    columns: Mapping[str, tuple[_Column, ...]]
    weighted: bool

    def read(self, orders: Mapping[str, Order], plan: Plan) -> tuple[Codes, Known, Array | None]:
        """The codes of the samples, all values, and weights."""
        y = np.fromfile(self.path, np.intp, self.size)
        rest = np.fromfile(self.path, np.float64, offset=self.size * y.itemsize)
        weights, rest = (rest[: self.size], rest[self.size :]) if self.weighted else (None, rest)
        known = dict(zip(self.names, rest.reshape(len(self.names), plan.n_runs, self.size), strict=True))
        for key, columns in self.columns.items():
            order = orders[key]
            found = (column.values(order.members(y, plan.n_classes)) for column in columns)
            known[key] = np.stack([order.of_samples(one, y, plan.n_classes) for one in found])
        return y, known, weights


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
        self._numbers = count()

    def add(self, block: Block) -> None:
        """Take in the samples of a block."""
        path, grid, weights = self._path(), block.grid, block.weights
        with path.open("wb") as file:
            for values in (block.y, *([] if weights is None else [weights]), *block.known.values()):
                values.tofile(file)
        columns = {
            key: tuple(_Column(self._path(), ranked, grid) for ranked in runs) for key, runs in block.ranked.items()
        }
        self._blocks.append(_Written(path, block.y.size, tuple(block.known), columns, weights is not None))

    def sums(self, in_order: InOrder = map) -> PairedSums:
        """What all samples come to.

        Args:
            in_order: Has stretches of orders and samples of blocks looked at, here or in other processes.
        """
        orders = self._plan.orders()
        for key in orders:
            for run in range(self._plan.n_runs):
                self._count([block.columns[key][run] for block in self._blocks], in_order)
        whole = PairedSums(self._plan, ordered=True)
        read = (block.read(orders, self._plan) for block in self._blocks)
        for sums in in_order(partial(_summed, self._plan), read):
            assert isinstance(sums, PairedSums)  # noqa: S101 - what was made
            whole.merge(sums)
        return whole

    def _path(self) -> Path:
        return self._folder / f"order-{next(self._numbers)}"

    def _count(self, columns: Sequence[_Column], in_order: InOrder) -> None:
        """Go through one order, and write what was found to where it belongs."""
        places: list[list[tuple[_Column, int]]] = []
        found = in_order(lost_of, self._stretches(columns, places))
        for number, lost in enumerate(found):
            assert isinstance(lost, list)  # noqa: S101 - what was made
            for (column, start), one in zip(places[number], lost, strict=True):
                column.write(start, one)
            places[number] = []

    def _stretches(self, columns: Sequence[_Column], places: list[list[tuple[_Column, int]]]) -> Iterator[_Stretch]:
        readers, above = [column.reader() for column in columns], (0, 0)
        total = sum((column.total for column in columns), start=Fraction(0))
        grid = Grid.of(total, min((column.grid.exponent for column in columns), default=0))
        positives = grid.whole(sum((column.positives for column in columns), start=Fraction(0)))
        for floor in floors_of(readers, self._budget, _distinct):
            taken = [(reader.column, *reader.next(floor)) for reader in readers]
            taken = [(column, start, keys) for column, start, keys in taken if keys.size]
            if not taken:
                continue
            read = [column.sides(start, start + keys.size) for column, start, keys in taken]
            members, others = (
                [grid.taken(both[side], column.grid) for both, (column, *_) in zip(read, taken, strict=True)]
                for side in range(2)
            )
            places.append([(column, start) for column, start, _ in taken])
            yield _Stretch(grid, [keys for *_, keys in taken], members, others, above, positives)
            above = above[0] + sum(map(grid.total, members)), above[1] + sum(map(grid.total, others))


def _summed(plan: Plan, block: tuple[Codes, Known, Array | None]) -> PairedSums:
    return PairedSums(plan, ordered=True).add_known(*block)


def _distinct(marks: NDArray[np.uint64]) -> Iterator[np.uint64]:
    yield from np.unique(marks)[::-1]
