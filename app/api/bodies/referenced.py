"""Data that a request names: its columns, as if they had come in a file with the request."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.api.bodies.columns import ARRAYS
from app.api.bodies.files.dataset import Dataset, open_dataset
from app.api.bodies.files.table import TableFile
from app.api.bodies.uploads import columns_of
from app.domain.data import DataFile, DataReference
from app.domain.errors import BeyondMemory, DomainError, Fault, InvalidInput, TooLarge
from app.domain.inputs.content import DataFacts
from app.services.ports.data import DataSource

_DATA: Final = "/input/data"
_COLUMNS: Final = f"{_DATA}/columns"
_PREDICTIONS: Final = "predictions"
_PROBABILITIES: Final = "probabilities"
# What a row says of itself beside its labels: rows that have such are not the same.
_OF_ROWS: Final = frozenset({"sample_id", "group_id", "sample_weight"})
_UNREADABLE: Final = (pa.ArrowException, OSError, ValueError, KeyError, EOFError, RuntimeError)


@dataclass(frozen=True, slots=True)
class Asked:
    """What decides about the columns.

    Attributes:
        labels: The classes, where they are declared.
        memory_bytes: That columns may take.
        ignores: Rows are left out by their class.
    """

    reference: DataReference
    kind: str
    labels: Sequence[str] | None
    memory_bytes: int
    ignores: bool = False

    @property
    def folds(self) -> bool:
        """Can rows beyond memory be folded: of probabilities whose labels are declared, each row for itself?"""
        return self.kind == _PROBABILITIES and self.labels is not None and not self.ignores


@dataclass(frozen=True, slots=True)
class ReadData:
    """What was read.

    Attributes:
        columns: The arrays of the input by their names in the JSON.
        times: (n) how many rows each entry stands for; None where each is a row.
        before: Rows that came before these.
    """

    columns: Mapping[str, Any]
    times: NDArray[np.int64] | None
    facts: DataFacts
    before: int = 0


def check_data(source: DataSource, asked: Asked) -> None:
    """Whether the columns are there and fit; no row is read.

    Raises:
        DataNotAllowed: a file does not lie where the operator allows it.
        InvalidInput: there are no files, or they do not fit.
    """
    with _of_reference():
        _checked(_opened(source, asked), asked)


def read_data(source: DataSource, asked: Asked) -> ReadData:
    """All rows. Takes as long as it takes, and tells how far it is.

    Raises:
        DataNotAllowed, InvalidInput: as `check_data`, or a row is not as it should be.
        TooLarge: there are more than this kind of input may have.
    """
    with _of_reference():
        data = _opened(source, asked)
        _checked(data, asked)
        mapped = asked.reference.columns is not None
        names = asked.reference.columns or data.names(mapped=False)
        counted = asked.kind == _PREDICTIONS and not _OF_ROWS & {*names}
        columns = _columns(asked, data.file(mapped=mapped, counted=counted))
        _check_unchanged(source, asked, data)
        return ReadData(columns, data.read.times, _facts(asked.reference, data.listing.files, data.read.rows))


class PartsOfData:
    """The rows in parts, each as `ReadData` has all of them; the facts are there when all parts have gone by."""

    def __init__(self, source: DataSource, asked: Asked) -> None:
        self._source, self._asked = source, asked
        self._facts: DataFacts | None = None

    def __iter__(self) -> Iterator[ReadData]:
        asked = self._asked
        with _of_reference():
            data = _opened(self._source, asked)
            _checked(data, asked)
            mapped = asked.reference.columns is not None
            if _OF_ROWS & {*(asked.reference.columns or data.names(mapped=False))}:
                raise BeyondMemory(
                    "expected probabilities without ids, groups and weights, of so many rows", pointer="/data"
                )
            before = 0
            for file in data.parts(lambda described: _columns(asked, described), mapped=mapped):
                columns = _columns(asked, file)
                yield ReadData(columns, None, _facts(asked.reference, (), before), before)
                before = data.read.rows
            _check_unchanged(self._source, asked, data)
            self._facts = _facts(asked.reference, data.listing.files, data.read.rows)

    @property
    def facts(self) -> DataFacts:
        """What was read."""
        if self._facts is None:
            raise ValueError("expected all parts to have been read")
        return self._facts


def _check_unchanged(source: DataSource, asked: Asked, data: Dataset) -> None:
    if source.files(asked.reference.uri).files != data.listing.files:
        raise InvalidInput.at("/data", "data_changed", "expected files that stay as they are while they are read")


@contextmanager
def of_rows(read: ReadData) -> Iterator[None]:
    """Faults of entries of columns, said of the data."""
    try:
        yield
    except InvalidInput as error:
        raise InvalidInput([_of_column(fault, read) for fault in error.faults]) from None


def _of_column(fault: Fault, read: ReadData) -> Fault:
    member, _, place = fault.pointer.removeprefix("/input/").partition("/")
    if member not in ARRAYS or member not in read.columns:
        return fault
    row = place.partition("/")[0]
    where = f", row {read.before + int(row)} of those read" if row.isdigit() and read.times is None else ""
    return Fault(_DATA, fault.code, f"{member}{where}: {fault.detail}")


def _opened(source: DataSource, asked: Asked) -> Dataset:
    listing = source.files(asked.reference.uri)
    columns = (asked.reference.columns or {}).values()
    needed = [name for given in columns for name in ([given] if isinstance(given, str) else given)]
    return open_dataset(listing, asked.reference, needed, asked.memory_bytes)


def _checked(data: Dataset, asked: Asked) -> None:
    _columns(asked, data.described(mapped=asked.reference.columns is not None))


def _columns(asked: Asked, file: TableFile) -> dict[str, Any]:
    return columns_of(file, asked.kind, asked.labels, asked.reference.columns)


def _facts(reference: DataReference, files: Sequence[DataFile], rows: int) -> DataFacts:
    digest = hashlib.sha256()
    for file in files:
        # No path has such a character: addresses are printable, and what is listed is a name of one file.
        digest.update(f"{file.path}\0{file.size}\0{file.version}\0".encode())
    facts: DataFacts = {
        "uri": reference.uri,
        "format": reference.format.value,
        "rows": rows,
        "files": len(files),
        "bytes": sum(file.size for file in files),
        "digest": f"sha256:{digest.hexdigest()}",
    }
    if reference.columns is not None:
        facts["columns"] = {
            ours: theirs if isinstance(theirs, str) else [*theirs] for ours, theirs in reference.columns.items()
        }
    if reference.filter is not None:
        facts["filter"] = reference.filter
    return facts


@contextmanager
def _of_reference() -> Iterator[None]:
    """What is wrong with a file, said of the reference; and what libraries say of one that they cannot read."""
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
