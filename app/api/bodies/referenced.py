"""Data that a request names: its columns, as if they had come in a file with the request.

Pieces of the data are read here or by workers of a cluster, and taken together in the order of the data either way.
"""

import hashlib
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Final, TypeVar

import pyarrow as pa

from app.api.bodies.columns import ARRAYS
from app.api.bodies.files.counted import RowCounts
from app.api.bodies.files.dataset import PIECE_ROWS, Columns, Dataset, Piece, open_dataset
from app.api.bodies.files.filters import read_filter
from app.api.bodies.files.formats import Spelling
from app.api.bodies.files.table import TableFile
from app.api.bodies.uploads import columns_of
from app.domain.data import DataFile, DataFormat, DataReference
from app.domain.errors import BeyondMemory, DomainError, Fault, InvalidInput, TooLarge
from app.domain.inputs.classified import Probabilities, Scores
from app.domain.inputs.content import DataFacts
from app.domain.inputs.ignored import NothingLeft
from app.domain.inputs.kind import Beyond
from app.domain.inputs.kinds import KINDS
from app.domain.inputs.multilabel import Multilabel
from app.domain.inputs.ranking import Ranking
from app.domain.inputs.samples import Tally
from app.services.ports import DataSource, Workers
from app.services.processes.progress import progressed

Made = TypeVar("Made")
# Bytes of what is made of a piece by a process of a cluster; what is larger is made where it is needed.
MOST_TRAVELLING: Final = 128 << 20


def made_of(
    pieces: Sequence[Piece],
    workers: Workers | None,
    apart: Callable[[Piece], Made],
    here: Callable[[Piece], Made],
    travels: Callable[[Piece], bool] = lambda _: True,
) -> Iterator[Made]:
    """Results of each piece, in order.

    Args:
        pieces: Of the data, in order.
        workers: None: everything is done here.
        apart: Makes it in another process.
        here: Makes it here, where it is known what came before; perhaps only while it is gone through.
        travels: Whether what is made of a piece is small enough to come from elsewhere.

    Raises:
        DomainError: what is wrong with the first piece with which something is.
    """
    if workers is None:
        yield from map(here, pieces)
        return
    results = workers.in_order(apart, filter(travels, pieces))
    for piece in pieces:
        if not travels(piece):
            yield here(piece)
            continue
        try:
            made = next(results)
        except InvalidInput:
            # Here it is known how many rows come before it, so that the fault says which row it is.
            yield here(piece)
            raise
        progressed(piece.stop, piece.total)
        yield made


def travels(piece: Piece, numbers: int) -> bool:
    """Is what is made of a piece small, so many numbers of a row? Of files that do not say how many rows they have, a
    number takes 8 bytes.
    """
    size = piece.stop - piece.start if piece.rows is None else 8 * piece.rows * numbers
    return size <= MOST_TRAVELLING


_DATA: Final = "/input/data"
_COLUMNS: Final = f"{_DATA}/columns"
_IDS: Final = "sample_id"
_OF_ITEMS: Final = ("query", "relevance", "score")
# What a row says of itself beside its labels: rows that have such are not the same.
_WEIGHT, _GROUP = "sample_weight", "group_id"
_OF_ROWS: Final = frozenset({_IDS, _GROUP, _WEIGHT})
_UNREADABLE: Final = (pa.ArrowException, OSError, ValueError, KeyError, EOFError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request for columns of named data.

    Attributes:
        labels: The classes, where they are declared.
        memory_bytes: That columns may take.
        piece_rows: That are read together, about.
        digest: Of the files that it has to be; None where any will do.
        with_ids: Parts have the ids of their rows.
    """

    reference: DataReference
    kind: str
    labels: Sequence[str] | None
    memory_bytes: int
    piece_rows: int = PIECE_ROWS
    digest: str | None = None
    with_ids: bool = False

    @property
    def mapped(self) -> bool:
        """Are columns named?"""
        return self.reference.columns is not None

    @property
    def counts(self) -> bool:
        """Can rows beyond memory be counted, those that say the same as one entry?"""
        return KINDS[self.kind].beyond is Beyond.COUNTED

    @property
    def folds(self) -> bool:
        """Can rows beyond memory be folded: rankings, multilabel, and probabilities or scores with labels?"""
        beyond = KINDS[self.kind].beyond
        return beyond is Beyond.STREAMED or (beyond is Beyond.STREAMED_WITH_LABELS and self.labels is not None)


@dataclass(frozen=True, slots=True)
class ReadData:
    """Columns that were read.

    Attributes:
        columns: The arrays of the input by their names in the JSON.
        tally: What each entry stands for; None where each is a row.
        before: Rows that came before these.
        part: Are others read apart from these?
    """

    columns: Mapping[str, Any]
    tally: Tally | None
    facts: DataFacts
    before: int = 0
    part: bool = False


def check_data(source: DataSource, asked: Asked) -> None:
    """Check that the columns are there and fit; no row is read.

    Raises:
        DataNotAllowed: a file does not lie where the operator allows it.
        InvalidInput: there are no files, or they do not fit.
    """
    with _of_reference():
        _checked(_opened(source, asked), asked)


def read_data(source: DataSource, asked: Asked, workers: Workers | None = None, *, counted: bool = False) -> ReadData:
    """All rows. Takes as long as it takes, and tells how far it is.

    Args:
        source: Where they lie.
        asked: What they are to be.
        workers: Who count rows that say the same, where there are some.
        counted: Rows of predictions that say the same are one entry whatever columns there are, and ids are left aside.

    Raises:
        DataNotAllowed, InvalidInput: as `check_data`, or a row is not as it should be.
        BeyondMemory: there are more than this kind of input may have.
        ClusterUnavailable: the cluster does not do it.
    """
    with _of_reference():
        data = _opened(source, asked)
        _checked(data, asked)
        of_rows = _of_rows(asked, data)
        counting = None
        if asked.counts and (counted or not of_rows):
            counting = partial(_counted, Reading(source, asked, data.schema), data.pieces, workers)
        with _of_entries(ARRAYS, 0):
            columns = _columns(asked, data.file(mapped=asked.mapped, counted=counting), ids=not counted)
        _check_unchanged(source, asked, data)
        unchecked = counted and _IDS in of_rows
        facts = _facts(asked.reference, data.listing.files, data.read.rows, unchecked=unchecked)
        return ReadData(columns, data.read.tally, facts)


class PartsOfData:
    """All rows, to be read piece by piece, here or elsewhere."""

    def __init__(self, source: DataSource, asked: Asked) -> None:
        """Raises DataNotAllowed, InvalidInput and TooLarge as `read_data`, before any row is read."""
        with _of_reference():
            self._data = _opened(source, asked)
            _checked(self._data, asked)
            of_rows = _of_rows(asked, self._data)
            names = asked.reference.columns or self._data.names(mapped=False)
            width = _width(asked, names)
            if not asked.with_ids:
                _check_weights(asked.kind, of_rows, width)
            if asked.kind == Scores.kind and len(asked.labels or ()) == 2 and Scores.file()["scores"].name not in names:
                raise BeyondMemory(
                    "expected one score of two classes in each of so many rows, got one for each", pointer="/data"
                )
            schema, grouped = self._data.schema, _GROUP in of_rows
            self._unread = Reading(source, asked, schema, width, grouped=grouped, weighted=_WEIGHT in of_rows)
            self._columns = self._unread.columns_of(self._data)
        self.kind, self._has_ids = asked.kind, _IDS in of_rows

    @cached_property
    def reading(self) -> "Reading":
        """Settings by which pieces are read. All rows of CSV are read for it: they say what labels and ids are.

        Raises:
            DataNotAllowed, InvalidInput: as `read_data`.
        """
        with _of_reference():
            return replace(self._unread, spellings=self._data.spelled(self._columns))

    @property
    def is_read_twice(self) -> bool:
        """Are all rows gone through before it is known how pieces are read?"""
        return self._data.form is DataFormat.CSV and bool(self._columns[0])

    @property
    def pieces(self) -> tuple[Piece, ...]:
        """In the order of the data."""
        return self._data.pieces

    def facts(self, rows: int) -> DataFacts:
        """Facts of the data, once so many rows of all pieces have been read.

        Raises:
            InvalidInput: the files are no more what they were.
        """
        reading, files = self._unread, self._data.listing.files
        with _of_reference():
            _check_unchanged(reading.source, reading.asked, self._data)
        return _facts(reading.asked.reference, files, rows, unchecked=self._has_ids)


def _width(asked: Asked, names: Mapping[str, str | Sequence[str]] | Sequence[str]) -> int:
    """Numbers of a row that are kept of rows that go by: its items, or scores that are sorted; 0 where none is."""
    if asked.kind == Ranking.kind:
        return len(_OF_ITEMS)
    declared = len(asked.labels or ())
    if asked.kind != Multilabel.kind:
        return declared
    chosen = [name for name in names if name.partition(".")[0] == Probabilities.kind]
    if not chosen:
        return 0
    columns = [names[name] for name in chosen] if isinstance(names, Mapping) else chosen
    return max(declared, sum(1 if isinstance(own, str) else len(own) for own in columns))


def _check_weights(kind: str, of_rows: Container[str], width: int) -> None:
    """Raises BeyondMemory: samples have weights that do not fold."""
    if _WEIGHT not in of_rows:
        return
    if kind == Multilabel.kind and width:
        raise BeyondMemory(
            "expected labels without weights, or without probabilities, of more rows than PREVAIL_DATA_MEMORY_BYTES "
            "holds",
            pointer="/data",
        )
    if kind not in (Probabilities.kind, Scores.kind, Multilabel.kind):
        raise BeyondMemory(
            f"expected {kind} without weights, of more rows than PREVAIL_DATA_MEMORY_BYTES holds", pointer="/data"
        )
    if _GROUP in of_rows:
        raise BeyondMemory(
            f"expected {kind} with groups or with weights, and not with both, of more rows than "
            "PREVAIL_DATA_MEMORY_BYTES holds",
            pointer="/data",
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """Settings by which pieces are read; can be sent to another process.

    Attributes:
        schema: Of all files.
        width: Numbers of a row that are kept of rows that go by; 0 where rows are counted.
        grouped: Do rows have groups?
        weighted: Do they have weights?
        spellings: How columns of labels of CSV are written in all rows, by name.
    """

    source: DataSource
    asked: Asked
    schema: pa.Schema
    width: int = 0
    grouped: bool = False
    weighted: bool = False
    spellings: Mapping[str, Spelling] = field(default_factory=dict)

    def columns_of(self, data: Dataset) -> Columns:
        """Columns of labels and of numbers that are read."""
        return data.columns(partial(_columns, self.asked, ids=self.asked.with_ids), mapped=self.asked.mapped)

    def parts(self, piece: Piece, before: int = 0) -> Iterator[ReadData]:
        """The rows of a piece in parts, each as `read_data` has all of them; ``before`` rows of others come first.

        Raises:
            DataNotAllowed, InvalidInput, TooLarge: as `read_data`.
        """
        asked = self.asked
        with _of_reference():
            data = self._opened(piece)
            for file in data.parts(self.columns_of(data), before, mapped=asked.mapped):
                with _of_entries(ARRAYS, before):
                    found = _columns(asked, file, ids=asked.with_ids)
                rows = data.read.rows
                yield ReadData(found, None, _facts(asked.reference, (), rows), before, part=True)
                before, data.read.rows = before + rows, 0

    def counted(self, columns: Columns, piece: Piece, before: int = 0) -> RowCounts:
        """The different rows of a piece, each with how often it occurs; ``before`` rows of others come first. Raises as
        `parts`.
        """
        with _of_reference():
            return self._opened(piece).counted(columns, before)

    def _opened(self, piece: Piece) -> Dataset:
        reference = self.asked.reference
        listing = self.source.again(reference.uri, [piece.file])
        condition = None if reference.filter is None else read_filter(reference.filter)
        memory = self.asked.memory_bytes
        return Dataset(listing, reference.format, self.schema, condition, memory, (piece,), self.spellings)


def _counted(reading: Reading, pieces: Sequence[Piece], workers: Workers | None, columns: Columns) -> RowCounts:
    """The different rows of all pieces."""
    whole: RowCounts | None = None

    def here(piece: Piece) -> RowCounts:
        return reading.counted(columns, piece, 0 if whole is None else whole.rows)

    for counts in made_of(pieces, workers, partial(reading.counted, columns), here):
        whole = counts if whole is None else whole.merge(counts)
    if whole is None:
        raise ValueError("expected at least one piece")
    return whole


def _check_unchanged(source: DataSource, asked: Asked, data: Dataset) -> None:
    if source.files(asked.reference.uri).files != data.listing.files:
        raise InvalidInput.at("/data", "data_changed", "expected files that stay as they are while they are read")


@contextmanager
def of_rows(read: ReadData) -> Iterator[None]:
    """Faults of entries of columns, said of the data."""
    with _of_entries(ARRAYS & read.columns.keys(), read.before if read.tally is None else None):
        yield


@contextmanager
def _of_entries(members: Container[str], before: int | None) -> Iterator[None]:
    """Faults of entries of these arrays, said of the data: ``before`` rows of others came before them; None where an
    entry is no row.
    """
    try:
        yield
    except NothingLeft:
        # Not of any column, and known by what it says.
        raise
    except InvalidInput as error:
        raise InvalidInput([_of_column(fault, members, before) for fault in error.faults]) from None


def _of_column(fault: Fault, members: Container[str], before: int | None) -> Fault:
    member, _, place = fault.pointer.removeprefix("/input/").partition("/")
    if member not in members:
        return fault
    row = place.partition("/")[0]
    where = f", row {before + int(row)} of those read" if row.isdigit() and before is not None else ""
    return Fault(_DATA, fault.code, f"{member}{where}: {fault.detail}")


def _opened(source: DataSource, asked: Asked) -> Dataset:
    listing = source.files(asked.reference.uri)
    if asked.digest is not None and _digest(listing.files) != asked.digest:
        raise InvalidInput.at("/data", "data_changed", "expected the files that were evaluated, others are there now")
    columns = (asked.reference.columns or {}).values()
    needed = [name for given in columns for name in ([given] if isinstance(given, str) else given)]
    return open_dataset(listing, asked.reference, needed, asked.memory_bytes, asked.piece_rows)


def _checked(data: Dataset, asked: Asked) -> None:
    _columns(asked, data.described(mapped=asked.mapped))


def _of_rows(asked: Asked, data: Dataset) -> frozenset[str]:
    """Columns of ids, groups and weights that are there."""
    return _OF_ROWS & {*(asked.reference.columns or data.names(mapped=False))}


def _columns(asked: Asked, file: TableFile, *, ids: bool = True) -> dict[str, Any]:
    columns = asked.reference.columns
    if not ids:
        file = TableFile([name for name in file.names if asked.mapped or name != _IDS], file.load)
        columns = columns and {ours: theirs for ours, theirs in columns.items() if ours != _IDS}
    return columns_of(file, asked.kind, asked.labels, columns)


def _digest(files: Sequence[DataFile]) -> str:
    digest = hashlib.sha256()
    for file in files:
        # No path has such a character: addresses are printable, and what is listed is a name of one file.
        digest.update(f"{file.path}\0{file.size}\0{file.version}\0".encode())
    return f"sha256:{digest.hexdigest()}"


def _facts(reference: DataReference, files: Sequence[DataFile], rows: int, *, unchecked: bool = False) -> DataFacts:
    facts: DataFacts = {
        "uri": reference.uri,
        "format": reference.format.value,
        "rows": rows,
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "digest": _digest(files),
    }
    if reference.columns is not None:
        facts["columns"] = {
            ours: theirs if isinstance(theirs, str) else [*theirs] for ours, theirs in reference.columns.items()
        }
    if unchecked:
        facts["sample_ids_unchecked"] = True
    if reference.filter is not None:
        facts["filter"] = reference.filter
    return facts


@contextmanager
def _of_reference() -> Iterator[None]:
    """Faults of a file told of the reference, and errors of libraries as faults."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput([Fault(_place(one.pointer), one.code, one.detail) for one in error.faults]) from None
    except TooLarge as error:
        raise type(error)(error.detail, pointer=_DATA) from None
    except (DomainError, MemoryError):
        raise
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0][:200] if str(error) else "a file is damaged"
        raise InvalidInput.at(_DATA, "unreadable_data", f"expected files that can be read: {reason}") from error


def _place(pointer: str) -> str:
    if pointer.startswith("/input/columns"):
        return _COLUMNS + pointer.removeprefix("/input/columns")
    return _DATA if pointer == "/data" else pointer
