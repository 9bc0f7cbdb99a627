"""Samples in the files of columns that data people have: Parquet, Arrow IPC, CSV and NPZ."""

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from app.domain.errors import InvalidInput
from app.domain.inputs.labels import Column

# 400 MB as doubles. Compressed files say how much they hold, and that is asked before anything is unpacked.
MOST_ENTRIES = 50_000_000
_PROBABILITIES = "probabilities"
_FOLD = "fold"
# Names in a file and in the JSON of an input.
_TRUTH = {"y_true": "y_true"}
_OPTIONAL = {"sample_id": "sample_ids", "group_id": "group_ids", "sample_weight": "sample_weight"}
_OWN = {"predictions": {"y_pred": "y_pred"}, "scores": {"score": "scores"}, _PROBABILITIES: {}}
_TEXT_COLUMNS = frozenset({"y_true", "y_pred", "sample_id", "group_id"})
_UNREADABLE = (pa.ArrowException, OSError, ValueError, KeyError, zipfile.BadZipFile, EOFError, NotImplementedError)


def read_columns(file: BinaryIO, kind: str, labels: Sequence[str] | None) -> dict[str, Any]:
    """The arrays of an input from a file, by their names in the JSON of that kind; the file may have others.

    Args:
        file: Open for reading, of any of the formats: they are told apart by their first bytes.
        kind: ``predictions``, ``probabilities`` or ``scores``.
        labels: The classes, whose columns hold the probabilities; without them all further columns do, in order.

    Raises:
        InvalidInput: the file cannot be read, holds too much, or lacks a column.
    """
    _check_kind(kind, "/input/kind")
    with _reading():
        return _Picked(_open(file), kind, labels).columns()


def read_folds(file: BinaryIO, kind: str | None, labels: Sequence[str] | None) -> tuple[str, dict[str, Any], Column]:
    """The same of a file that has a column `fold` too: the kind, the arrays, and that column.

    Without a kind the columns tell: `y_pred` makes predictions, `score` makes scores, and else there are probabilities.

    Raises:
        InvalidInput: as before, or there is no such column.
    """
    if kind is not None:
        _check_kind(kind, "/input/fold/kind")
    with _reading():
        source = _open(file)
        found = kind or next((name for name, own in _OWN.items() if own and own.keys() <= {*source.names}), None)
        picked = _Picked(source, found or _PROBABILITIES, labels, besides=_FOLD)
        return picked.kind, picked.columns(), source.read(_FOLD)


def _check_kind(kind: str, pointer: str) -> None:
    if kind not in _OWN:
        raise InvalidInput.at(
            pointer, "no_columns", f"expected predictions, probabilities or scores with a file, got {kind!r}"
        )


def _open(file: BinaryIO) -> "_Source":
    start = file.read(8)
    file.seek(0)
    reader = next((reader for magic, reader in _READERS if start.startswith(magic)), _read_csv)
    return reader(file)


@contextmanager
def _reading() -> Iterator[None]:
    """What the libraries say of a file that they cannot read, said of the part with the file."""
    try:
        yield
    except InvalidInput:
        raise
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0][:200] if str(error) else "the file is damaged"
        raise InvalidInput.at(
            "/data", "unreadable_data", f"expected Parquet, Arrow IPC, CSV or NPZ: {reason}"
        ) from error


class _Source:
    """Columns by name, each read when it is asked for."""

    def __init__(self, names: Sequence[str], read: Callable[[str], Column], rows: int) -> None:
        self.names = list(names)
        self.read = read
        self.rows = rows
        if len(set(self.names)) < len(self.names):
            raise InvalidInput.at("/data", "duplicate_column", "expected columns with different names")


class _Picked:
    """What an input of a kind needs of a file; ``besides`` is a column that it has to have for others."""

    def __init__(self, source: _Source, kind: str, labels: Sequence[str] | None, besides: str | None = None) -> None:
        self.source, self.kind, self.labels, self.besides = source, kind, labels, besides

    def columns(self) -> dict[str, Any]:
        needed = {**_TRUTH, **_OWN[self.kind]}
        wanted = [*needed] if self.besides is None else [*needed, self.besides]
        absent = [name for name in wanted if name not in self.source.names]
        if absent:
            have = ", ".join(map(repr, self.source.names[:20]))
            raise InvalidInput.at("/data", "missing_column", f"expected a column {absent[0]!r}, there are only {have}")
        found: dict[str, Any] = {}
        for name, member in {**needed, **_OPTIONAL}.items():
            if name in self.source.names:
                found[member] = self._bounded(name, 1)
        if self.kind == _PROBABILITIES:
            found |= self._probabilities()
        return found

    def _bounded(self, name: str, width: int) -> Column:
        self._check_size(width)
        return self.source.read(name)

    def _check_size(self, width: int) -> None:
        if self.source.rows * width > MOST_ENTRIES:
            raise InvalidInput.at(
                "/data", "too_much_data", f"expected at most {MOST_ENTRIES} entries, got {self.source.rows} rows"
            )

    def _probabilities(self) -> dict[str, Any]:
        names = self.source.names
        if _PROBABILITIES in names and not (self.labels and _PROBABILITIES in self.labels):
            return {_PROBABILITIES: self._bounded(_PROBABILITIES, 1)}
        chosen = list(self.labels or [name for name in names if name not in {*_TRUTH, *_OPTIONAL, self.besides}])
        absent = [label for label in chosen if label not in names]
        if absent:
            raise InvalidInput.at(
                "/data", "missing_column", f"expected a column of probabilities for the class {absent[0]!r}"
            )
        if len(chosen) < 2:
            raise InvalidInput.at("/data", "missing_column", "expected a column of probabilities for every class")
        self._check_size(len(chosen))
        matrix = np.empty((self.source.rows, len(chosen)))
        for place, name in enumerate(chosen):
            column = self.source.read(name)
            if isinstance(column, list) or column.ndim != 1 or column.dtype.kind not in "fiu":
                raise InvalidInput.at("/data", "not_numbers", f"expected numbers in the column {name!r}")
            if len(column) != self.source.rows:
                raise InvalidInput.at(
                    "/data", "wrong_length", f"expected {self.source.rows} entries in the column {name!r}"
                )
            matrix[:, place] = column
        return {_PROBABILITIES: matrix, "labels": chosen}


def _of_table(names: Sequence[str], read: Callable[[str], pa.ChunkedArray], rows: int) -> _Source:
    return _Source(names, lambda name: _plain_column(read(name), name), rows)


def _plain_column(column: pa.ChunkedArray, name: str) -> Column:
    """int64 or float64, or a list of texts."""
    if column.null_count:
        index = pc.index(column.is_null(), True).as_py()
        raise InvalidInput.at(
            "/data", "missing_value", f"expected no missing values, got one in {name!r} at row {index}"
        )
    kind = column.type
    if pa.types.is_dictionary(kind):
        column = column.cast(kind.value_type)
        kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        texts: list[Any] = column.to_pylist()
        return texts
    wanted = pa.int64() if pa.types.is_integer(kind) else pa.float64()
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        raise InvalidInput.at("/data", "not_a_column", f"expected numbers or texts in the column {name!r}, got {kind}")
    array: NDArray[Any] = column.cast(wanted).to_numpy()
    return array


def _read_parquet(file: BinaryIO) -> _Source:
    opened = pa.parquet.ParquetFile(file)

    def read(name: str) -> pa.ChunkedArray:
        return opened.read(columns=[name], use_threads=False).column(name)

    return _of_table(opened.schema_arrow.names, read, opened.metadata.num_rows)


def _read_arrow_file(file: BinaryIO) -> _Source:
    return _of_batches(pa.ipc.open_file(file).read_all())


def _read_arrow_stream(file: BinaryIO) -> _Source:
    return _of_batches(pa.ipc.open_stream(file).read_all())


def _of_batches(table: pa.Table) -> _Source:
    return _of_table(table.column_names, table.column, table.num_rows)


def _read_csv(file: BinaryIO) -> _Source:
    # As texts: 007 is another id than 7.
    types = {name: pa.string() for name in _TEXT_COLUMNS}
    table = pa.csv.read_csv(
        file,
        read_options=pa.csv.ReadOptions(use_threads=False),
        convert_options=pa.csv.ConvertOptions(column_types=types),
    )
    return _of_table(table.column_names, lambda name: _whole_if_all_are(table.column(name), name), table.num_rows)


def _whole_if_all_are(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """Labels that are written as integers, so that 2 comes before 10; ids too when nothing of them is lost."""
    if name not in _TEXT_COLUMNS:
        return column
    try:
        whole = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    return whole if pc.all(pc.equal(whole.cast(pa.string()), column)).as_py() else column


def _read_npz(file: BinaryIO) -> _Source:
    with zipfile.ZipFile(file) as archive:
        sizes = {entry.filename.removesuffix(".npy"): entry.file_size for entry in archive.infolist()}
    if sum(sizes.values()) > 8 * MOST_ENTRIES:
        raise InvalidInput.at("/data", "too_much_data", f"expected arrays of at most {8 * MOST_ENTRIES} bytes")
    file.seek(0)
    arrays: Mapping[str, NDArray[Any]] = np.load(file, allow_pickle=False)

    def read(name: str) -> Column:
        array = arrays[name]
        if array.ndim == 0 or array.dtype.kind not in "fiuU":
            raise InvalidInput.at("/data", "not_a_column", f"expected an array of numbers or texts as {name!r}")
        return (
            array.tolist()
            if array.dtype.kind == "U"
            else array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
        )

    rows = len(read("y_true")) if "y_true" in sizes else 0
    return _Source(list(sizes), read, rows)


_READERS: tuple[tuple[bytes, Callable[[BinaryIO], _Source]], ...] = (
    (b"PAR1", _read_parquet),
    (b"ARROW1", _read_arrow_file),
    (b"\xff\xff\xff\xff", _read_arrow_stream),
    (b"PK", _read_npz),
)
