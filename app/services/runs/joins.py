"""Joins of runs by sample id beyond memory: divided into files by id, and joined file by file."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.domain.data import MOST_GROUPS
from app.domain.errors import IncomparableRuns, InvalidInput, TooLarge
from app.domain.inputs.labels import shown
from app.kernel.compare.folded import Block, PairedSums, Plan
from app.kernel.compare.paired.joint import JointCounts, combine, merged
from app.kernel.compare.paired.tests import GroupedCounts
from app.kernel.numerics.arrays import Array, silently
from app.kernel.numerics.exact_sums import BLOCK, ExactSums
from app.kernel.numerics.sorting import GOLDEN, Hashes, mixed
from app.kernel.samples.scores import Scores
from app.services.runs.pairing import SAME_WEIGHTS, WEIGHTLESS, another_truth, weighs_otherwise

_MOST: Final = 10**18
_WHOLE: Final = r"^(0|-?[1-9][0-9]{0,17})$"


@dataclass(frozen=True, slots=True, eq=False)
class Keys:
    """Ids of one kind.

    Attributes:
        ids: (m) int64, or texts.
        rows: (m) where they stood.
        hashes: (m) the same for the same id, in any process.
    """

    ids: pa.Array
    rows: NDArray[np.intp]
    hashes: Hashes


def keys_of(ids: NDArray[Any]) -> tuple[Keys, Keys]:
    """Ids (n), integers or texts, as those that are integers and those that are texts."""
    if ids.dtype.kind != "U":
        whole = (ids < _MOST) & (ids > -_MOST)
        numbers, texts = ids[whole].astype(np.int64), ids[~whole].astype(np.str_)
    else:
        column = pa.array(ids, pa.string())
        whole = pc.match_substring_regex(column, _WHOLE).to_numpy(zero_copy_only=False).astype(np.bool_)
        numbers, texts = column.filter(pa.array(whole)).cast(pa.int64()).to_numpy(), ids[~whole]
    return _made(numbers, whole, _hashes), _made(texts, ~whole, _text_hashes)


def numbers_of(names: NDArray[Any]) -> Hashes:
    """A number (n) for each name of a group, the same for the same name in any process.

    They have 64 bits: of a million groups two have one number with a chance of 3 in 10^8.
    """
    numbers = np.empty(names.size, dtype=np.uint64)
    for keys in keys_of(names):
        numbers[keys.rows] = keys.hashes
    return numbers


def as_column(ids: NDArray[Any]) -> pa.Array:
    """Ids (n), integers or texts, in as much memory as they need."""
    return pa.array(ids, pa.int64() if ids.dtype.kind == "i" else pa.large_string())


def together(columns: Sequence[pa.Array], *, texts: bool | None = None) -> pa.Array:
    """Columns of ids, at least one, as one: of texts where this says so; None: where one of them has texts."""
    if texts is None:
        texts = any(pa.types.is_large_string(one.type) for one in columns)
    return pa.concat_arrays([one.cast(pa.large_string() if texts else pa.int64()) for one in columns])


def _made(ids: NDArray[Any], chosen: NDArray[np.bool_], hashed: Callable[[NDArray[Any]], Hashes]) -> Keys:
    return Keys(as_column(ids), np.flatnonzero(chosen), hashed(ids))


def _hashes(numbers: NDArray[np.int64]) -> Hashes:
    return mixed(numbers.view(np.uint64))


def _text_hashes(texts: NDArray[np.str_]) -> Hashes:
    """Of each text the sum of its characters, each times a number of its place: how wide the column is says nothing."""
    # Not 0, so that the text without characters is not the integer 0.
    sums = np.full(texts.size, GOLDEN)
    if texts.size and texts.dtype.itemsize:
        characters = np.ascontiguousarray(texts).view(np.uint32).reshape(texts.size, -1)
        factors = mixed(np.arange(1, characters.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
        for place, factor in enumerate(factors):
            sums += characters[:, place].astype(np.uint64) * factor
    return mixed(sums)


class CommonWeights:
    """What is to be known of the weights of R runs: their sums, and by how much they differ from those of the first.

    Merges in any order, with the same bits.
    """

    def __init__(self, n_runs: int) -> None:
        self._sums = ExactSums((n_runs,))
        # The smallest and the largest ratio to the weight of the first; infinite where only that is 0. Where both are
        # the ratio is NaN and says nothing.
        self._ratios = np.stack([np.full(n_runs, np.inf), np.full(n_runs, -np.inf)])

    def add(self, weights: Sequence[Array]) -> None:
        """Add samples: what each weighs (n) in each run."""
        each = np.stack(weights)
        for start in range(0, each.shape[1], BLOCK):
            self._sums.add(each[:, start : start + BLOCK].copy(), lambda rows: np.asarray(rows.sum(axis=1)))
        if each.size:
            with silently():
                ratios = each / each[0]
            self._take(np.fmin.reduce(ratios, axis=1), np.fmax.reduce(ratios, axis=1))

    def merge(self, other: Self) -> None:
        """Take in those of others."""
        self._sums.merge(other._sums)
        self._take(*other._ratios)

    def fault(self) -> str | None:
        """Why the runs cannot be paired."""
        sums = self._sums.rounded()
        if sums.min() <= 0.0:
            return WEIGHTLESS
        for place, (low, high) in enumerate(self._ratios.T):
            each = np.array([low, high]) * sums[0] / sums[place]
            if not (np.abs(each - 1.0) <= SAME_WEIGHTS).all():
                return weighs_otherwise(place)
        return None

    def _take(self, low: Array, high: Array) -> None:
        self._ratios = np.stack([np.fmin(self._ratios[0], low), np.fmax(self._ratios[1], high)])


class GroupNames:
    """The names of the groups of one run: they say in which order groups stand.

    Args:
        budget: Bytes that they may take.
    """

    def __init__(self, budget: int) -> None:
        self._budget = budget
        self._numbers: Hashes = np.zeros(0, dtype=np.uint64)
        self._names: list[pa.Array] = []

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        of_names: int = sum(one.nbytes for one in self._names)
        return self._numbers.nbytes + of_names

    def add(self, names: NDArray[Any]) -> Hashes:
        """Take in the names (n) of samples; the number (n) of each.

        Raises:
            TooLarge: there are too many, or they are too long.
        """
        numbers = numbers_of(names)
        found, places = np.unique(numbers, return_index=True)
        new = ~np.isin(found, self._numbers, assume_unique=True)
        self._numbers = np.concatenate([self._numbers, found[new]])
        self._names.append(as_column(names[places[new]]))
        if self._numbers.size > MOST_GROUPS:
            raise TooLarge(f"expected at most {MOST_GROUPS} groups, got {self._numbers.size} or more", pointer="/data")
        if self.nbytes > self._budget:
            raise TooLarge(
                f"expected names of groups of at most {self._budget} bytes (a quarter of PREVAIL_DATA_MEMORY_BYTES), "
                f"got {self.nbytes} or more",
                pointer="/data",
            )
        return numbers

    def codes(self, numbers: Hashes) -> tuple[NDArray[np.intp], int]:
        """The place (n) of each number among those that are there, in the order of their names; how many there are."""
        present, codes = np.unique(numbers, return_inverse=True)
        order = np.argsort(self._numbers)
        known = together(self._names).take(pa.array(order[np.searchsorted(self._numbers[order], present)]))
        places = np.empty(present.size, dtype=np.intp)
        places[pc.sort_indices(known).to_numpy()] = np.arange(present.size)
        return places[codes], present.size


class GroupedJoin:
    """Samples that all runs have with their groups. Merges in any order."""

    def __init__(self) -> None:
        self._same = True
        self._counts: list[GroupedCounts] = []
        # Of each run with groups but the first, which of its groups meet which of the first: (2, P) each.
        self._met: list[list[Hashes]] = []

    def add(
        self,
        groups: Sequence[Hashes],
        truth: NDArray[np.int64],
        predictions: NDArray[np.int64],
        n_classes: int,
        weights: Array | None = None,
    ) -> None:
        """Add samples (n): their groups in each run that has groups, classes, predictions (R, n), and weights."""
        self._counts.append(GroupedCounts.of(groups[0], truth, predictions, n_classes, weights=weights))
        self._meet([[np.stack([groups[0], other])] for other in groups[1:]])

    def merge(self, other: Self) -> None:
        """Take in those of other parts."""
        self._counts.extend(other._counts)
        self._same = self._same and other._same
        self._meet(other._met)

    def add_up(self) -> None:
        """What says the same becomes one."""
        if len(self._counts) > 1:
            self._counts = [GroupedCounts.merged(self._counts)]
        met = [_one_to_one(np.concatenate(pairs, axis=1)) for pairs in self._met]
        self._met = [[pairs] for pairs in met if pairs is not None]
        # Groups of a run that meet two of another do so whatever comes.
        self._same = self._same and len(self._met) == len(met)

    @property
    def same(self) -> bool:
        """Do the runs divide the samples alike, as far as is known?"""
        self.add_up()
        return self._same

    @property
    def counts(self) -> GroupedCounts:
        """What was added, at least one sample."""
        self.add_up()
        return self._counts[0]

    @property
    def nbytes(self) -> int:
        """Bytes in memory."""
        met = sum(one.nbytes for pairs in self._met for one in pairs)
        return met + sum(one.nbytes for one in self._counts)

    def _meet(self, met: Sequence[Sequence[Hashes]]) -> None:
        if not self._same:
            self._met = []
            return
        self._met = self._met or [[] for _ in met]
        # Of a part without samples there are none.
        for own, pairs in zip(self._met, met, strict=False):
            own.extend(pairs)


def _one_to_one(pairs: Hashes) -> Hashes | None:
    """Pairs (2, n) that differ; None where a number meets two others."""
    first, places, codes = np.unique(pairs[0], return_index=True, return_inverse=True)
    second = pairs[1, places]
    if not np.array_equal(second[codes], pairs[1]) or np.unique(second).size < second.size:
        return None
    return np.stack([first, second])


_KINDS: Final = {"integers": pa.int64(), "texts": pa.large_string()}
_ID: Final = "id"
# Labels of a sample as one number.
CODE: Final = "code"
CODES: Final = {CODE: pa.int64()}
SampleColumns = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Part:
    """Samples of one run whose ids belong to one part and are of one kind.

    Attributes:
        ids: (m) integers or texts.
        columns: By name, (m) what is known of each.
    """

    ids: pa.Array
    columns: SampleColumns

    @classmethod
    def of(cls, table: pa.Table) -> Self:
        """From what was written."""
        ids, *names = table.column_names
        return cls(table.column(ids).combine_chunks(), {name: table.column(name).to_numpy() for name in names})


@dataclass(slots=True)
class _File:
    """Blocks of one kind of ids, each of one part.

    Attributes:
        waiting: Ids, columns and parts of samples that are not written yet.
        blocks: Of each part the numbers of its blocks.
        rows: Of each part how many samples are written.
    """

    path: Path
    schema: pa.Schema
    waiting: list[tuple[pa.Array, SampleColumns, NDArray[np.uint16]]] = field(default_factory=list)
    blocks: dict[int, list[int]] = field(default_factory=dict)
    rows: dict[int, int] = field(default_factory=dict)
    writer: Any = None
    written: int = 0

    def flush(self) -> None:
        """Write what waits, sorted by part."""
        if not self.waiting:
            return
        if self.writer is None:
            self.writer = pa.ipc.new_file(str(self.path), self.schema)
        parts = np.concatenate([one[2] for one in self.waiting])
        order = np.argsort(parts, kind="stable")
        ids = pa.concat_arrays([one[0] for one in self.waiting]).take(pa.array(order))
        names = self.schema.names[1:]
        columns = [np.concatenate([one[1][name] for one in self.waiting])[order] for name in names]
        self.waiting.clear()
        batch = pa.record_batch([ids, *map(pa.array, columns)], schema=self.schema)
        present, starts = np.unique(parts[order], return_index=True)
        for part, start, stop in zip(present.tolist(), starts, [*starts[1:], order.size], strict=True):
            self.writer.write_batch(batch.slice(start, stop - start))
            self.blocks.setdefault(part, []).append(self.written)
            self.rows[part] = self.rows.get(part, 0) + int(stop - start)
            self.written += 1

    def close(self) -> None:
        if self.writer is not None:
            self.writer.close()
            self.writer = None

    def read(self, number: int) -> Iterator[pa.Table]:
        """The blocks of a part."""
        blocks = self.blocks.get(number)
        if blocks:
            with pa.OSFile(str(self.path)) as source:
                reader = pa.ipc.open_file(source)
                for block in blocks:
                    yield pa.Table.from_batches([reader.get_batch(block)], self.schema)

    def part(self, number: int) -> Part | None:
        blocks = [*self.read(number)]
        return Part.of(pa.concat_tables(blocks)) if blocks else None


class SpilledRun:
    """The samples of one run, of which no more than a budget is in memory.

    Args:
        folder: Where files are made; who made it removes it.
        name: Of the files.
        parts: Into how many parts the ids are divided, by a hash of each: at most 2^16.
        budget: Bytes that may wait in memory, about.
        columns: What is known of each sample, by name the type of the numbers.
        divided: Into how many parts all ids were divided before, of which these are one.
    """

    def __init__(
        self,
        folder: Path,
        name: str,
        parts: int,
        budget: int,
        columns: Mapping[str, pa.DataType] = CODES,
        divided: int = 1,
    ) -> None:
        self.name, self.n_parts, self.divided = name, parts, divided
        self._budget, self._taken = budget, 0
        self._files = {
            kind: _File(folder / f"{name}-{kind}.arrow", pa.schema([(_ID, ids), *columns.items()]))
            for kind, ids in _KINDS.items()
        }
        self.rows = 0

    def add(self, ids: NDArray[Any], **columns: NDArray[Any]) -> None:
        """Take in samples: their ids (n), and what is known of each (n), by name."""
        self.rows += ids.size
        for file, keys in zip(self._files.values(), keys_of(ids), strict=True):
            self._wait(file, keys, columns)
        if self._taken > self._budget:
            self._flush()

    def _wait(self, file: _File, keys: Keys, columns: SampleColumns) -> None:
        if keys.rows.size:
            chosen = {name: column[keys.rows] for name, column in columns.items()}
            numbers = keys.hashes // np.uint64(self.divided) % np.uint64(self.n_parts)
            file.waiting.append((keys.ids, chosen, numbers.astype(np.uint16)))
            self._taken += keys.ids.nbytes + sum(one.nbytes for one in chosen.values()) + 8 * keys.rows.size

    def _flush(self) -> None:
        for file in self._files.values():
            file.flush()
        self._taken = 0

    def finish(self) -> None:
        """All samples are there: what waits is written."""
        self._flush()
        self.close()

    def part(self, number: int) -> Iterator[Part | None]:
        """The samples of a part, by kind of ids; None where there are none."""
        for file in self._files.values():
            yield file.part(number)

    def close(self) -> None:
        """Write no more."""
        with ExitStack() as ending:
            for file in self._files.values():
                ending.callback(file.close)


@dataclass(frozen=True, slots=True, eq=False)
class Joined:
    """Samples that all of R runs have.

    Attributes:
        truth: (m) actual classes.
        predictions: (R, m).
        others: Of each run its other columns, (m) each.
    """

    truth: NDArray[np.int64]
    predictions: NDArray[np.int64]
    others: tuple[SampleColumns, ...]

    def counts(self, n_classes: int, weights: Array | None = None) -> JointCounts:
        """How often each truth met each combination of predictions, with each weight (m) where samples have some."""
        return combine(self.truth, self.predictions, n_classes, weights=weights)

    def among(self, rows: NDArray[np.intp] | slice) -> "Joined":
        """Some of them."""
        others = tuple({name: column[rows] for name, column in columns.items()} for columns in self.others)
        return Joined(self.truth[rows], self.predictions[:, rows], others)


def joined(parts: Sequence[Part | None], n_classes: int) -> Joined | None:
    """The samples whose ids all runs have, of one part and kind: a pure function of these. None where a run has none.

    Args:
        parts: Of two runs or more; their `code` is the actual class times K plus the predicted one. None: a run has
            none.
        n_classes: K.

    Raises:
        InvalidInput: a run has an id twice.
        IncomparableRuns: a sample has another true class in one run than in the first.
    """
    runs = []
    for place, run in enumerate(parts):
        if run is not None:
            _check_different(run.ids, place)
            runs.append(run)
    if len(runs) < len(parts):
        return None
    first, *rest = runs
    found = [pc.index_in(first.ids, value_set=run.ids) for run in rest]
    common = np.ones(len(first.ids), dtype=np.bool_)
    for one in found:
        common &= one.is_valid().to_numpy(zero_copy_only=False)
    own = np.flatnonzero(common)
    rows = [own, *(one.fill_null(0).to_numpy()[own] for one in found)]
    columns = [_taken(run, some) for run, some in zip(runs, rows, strict=True)]
    codes = [one.pop(CODE) for one in columns]
    truth = codes[0] // n_classes
    for number, one in enumerate(codes[1:], start=1):
        other = one // n_classes
        if not np.array_equal(other, truth):
            sample = first.ids[int(own[np.argmax(other != truth)])].as_py()
            raise IncomparableRuns(f"the runs cannot be paired: {another_truth(sample, number)}", pointer="/paired")
    return Joined(truth, np.stack([one % n_classes for one in codes]), tuple(columns))


def _taken(run: Part, rows: NDArray[np.intp]) -> dict[str, NDArray[Any]]:
    return {name: column[rows] for name, column in run.columns.items()}


def _check_different(ids: pa.Array, place: int) -> None:
    if pc.count_distinct(ids).as_py() == len(ids):
        return
    counts = ids.value_counts()
    again = counts.field("values").filter(pc.greater(counts.field("counts"), 1))[0].as_py()
    raise InvalidInput.at(
        f"/evaluations/{place}",
        "duplicate_sample_id",
        f"expected ids that differ in the column `sample_id`, got {shown(str(again))} more than once",
    )


_OUTPUT: Final = "output_"
# The number of the group of a sample.
GROUP: Final = "group"
# What it weighs.
WEIGHT: Final = "weight"


@dataclass(frozen=True, slots=True)
class Outputs:
    """What the probabilities or scores of a run are.

    Attributes:
        width: Numbers of a sample, K.
    """

    width: int
    are_probabilities: bool

    @property
    def columns(self) -> Mapping[str, pa.DataType]:
        """Of the divided files."""
        return {name: pa.float64() for name in self._names}

    def divided(self, outputs: Array) -> SampleColumns:
        """Probabilities or scores (n, K) as columns."""
        return dict(zip(self._names, outputs.T, strict=True))

    def scores(self, truth: NDArray[np.int64], columns: SampleColumns) -> Scores:
        """As metrics take them."""
        made = Scores if self.are_probabilities else Scores.of_class_scores
        return made(truth, np.column_stack([columns[name] for name in self._names]))

    @property
    def _names(self) -> list[str]:
        return [f"{_OUTPUT}{place}" for place in range(self.width)]


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of the samples. Can be sent to another process.

    Attributes:
        outputs: What the outputs of each run are, where some are needed.
        plan: What is summed of them.
        grouped: Which runs have groups, where one has.
        weighted: Which runs have weights, where one has.
    """

    n_runs: int
    n_classes: int
    outputs: tuple[Outputs, ...] = ()
    plan: Plan | None = None
    grouped: tuple[bool, ...] = ()
    weighted: tuple[bool, ...] = ()

    def columns(self, run: int) -> Mapping[str, pa.DataType]:
        """Of the divided files of a run."""
        groups = {GROUP: pa.uint64()} if self.grouped and self.grouped[run] else {}
        weights = {WEIGHT: pa.float64()} if self.weighted and self.weighted[run] else {}
        outputs = self.outputs[run].columns if self.outputs else {}
        return {**CODES, **groups, **weights, **outputs}


class Compared:
    """Counts and sums of samples that all runs have. Merges in any order.

    Attributes:
        sums: Of what rows say by themselves.
        block: Samples of one part whose orders matter; whoever merges takes it first.
        groups: Of samples in groups.
        weights: Of samples with weights.
        matched: How many samples there are.
        different: Bytes of what was different when it was added up last.

    Args:
        question: What is asked.
        waiting: Bytes that wait at least until they are added up.
    """

    def __init__(self, question: Question, waiting: int = 0) -> None:
        self.question, self._waiting, self.different = question, waiting, 0
        self.sums = None if question.plan is None else PairedSums(question.plan, ordered=False)
        self.block: Block | None = None
        self.groups = GroupedJoin() if question.grouped else None
        self.weights = CommonWeights(question.n_runs) if question.weighted else None
        self.matched = 0
        self._joint: list[JointCounts] = []

    @property
    def joint(self) -> JointCounts:
        """How often each truth met each combination of predictions."""
        if len(self._joint) != 1:
            self._joint = [merged(self._joint, self.question.n_runs, self.question.n_classes)]
        return self._joint[0]

    @property
    def nbytes(self) -> int:
        """Bytes in memory of what grows with the samples."""
        of_parts = [one.nbytes for one in (self.groups, self.sums) if one is not None]
        return sum(of_parts) + sum(one.nbytes for one in self._joint)

    def merge(self, other: Self) -> None:
        """Take in what was made of other parts."""
        self.matched += other.matched
        if self.weights is not None and other.weights is not None:
            self.weights.merge(other.weights)
        self._joint.extend(other._joint)
        if self.sums is not None and other.sums is not None:
            self.sums.merge(other.sums)
        if self.groups is not None and other.groups is not None:
            self.groups.merge(other.groups)
        # So that adding up takes no more time for each part the more there are.
        if self.nbytes > self.different + max(self.different // 2, self._waiting):
            self.add_up()

    def add_up(self) -> None:
        """What says the same becomes one."""
        self._joint = [self.joint]
        for one in (self.sums, self.groups):
            if one is not None:
                one.add_up()
        self.different = self.nbytes

    def _add(self, found: Joined) -> None:
        question = self.question
        self.matched = found.truth.size
        weights = None
        if self.weights is not None:
            ones = np.ones(self.matched)
            each = [columns.get(WEIGHT, ones) for columns in found.others]
            self.weights.add(each)
            weights = each[0]
        self._joint.append(found.counts(question.n_classes, weights))
        if question.plan is not None:
            # What weighs nothing says nothing.
            rows = slice(None) if weights is None else np.flatnonzero(weights)
            self._add_outputs(question.plan, found.among(rows), None if weights is None else weights[rows])
        if self.groups is not None:
            groups = [columns[GROUP] for columns in found.others if GROUP in columns]
            self.groups.add(groups, found.truth, found.predictions, question.n_classes, weights)

    def _add_outputs(self, plan: Plan, found: Joined, weights: Array | None) -> None:
        if self.sums is None or not found.truth.size:
            return
        outputs = zip(self.question.outputs, found.others, strict=True)
        runs = [one.scores(found.truth, columns) for one, columns in outputs]
        truth = found.truth.astype(np.intp)
        self.sums.add(truth, runs, weights)
        self.block = Block.of(plan, truth, runs, weights)

    @classmethod
    def of(cls, question: Question, parts: Sequence[Part | None]) -> Self:
        """What comes of the samples that all runs have of one part: a pure function, for any process.

        Raises:
            InvalidInput, IncomparableRuns: as `joined`.
        """
        made, found = cls(question), joined(parts, question.n_classes)
        if found is not None and found.truth.size:
            made._add(found)
            made.add_up()
        return made
