"""A table with named columns, the form that all formats are read as, with limits on its size and other column names.

Small files can hold a lot, so all is counted before it is unpacked, or as it comes.
"""

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.api.bodies.files.written import Spelling, as_written, values_as_written
from app.domain.errors import Fault, InvalidInput, TooLarge, in_pointer
from app.domain.inputs.labels import MOST_CLASSES, Column, listed, normalized

# As in JSON.
MOST_ROWS = 10_000_000
# 400 MB as doubles.
MOST_ENTRIES = 50_000_000
# Of a file once unpacked, its texts included.
MOST_BYTES = 2**29
# The classes and what may stand beside them.
MOST_COLUMNS = MOST_CLASSES + 24
# Different labels of a column: the classes, and as many that are to be ignored.
MOST_LABELS = 2 * MOST_CLASSES
_GZIP = b"\x1f\x8b"
_OTHER_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}
# Of what describes the columns: names, types, places.
MOST_DESCRIPTION = 2**24


def check_rows(rows: int, columns: int) -> None:
    """Refuse more rows, or more rows of so many columns, than a request may have."""
    if rows > MOST_ROWS:
        raise too_large(f"at most {MOST_ROWS} rows, got {rows} or more")
    if rows * columns > MOST_ENTRIES:
        raise too_large(f"at most {MOST_ENTRIES} entries, got {rows} rows of {columns} columns")


def check_bytes(size: int, what: str) -> None:
    """Refuse what takes more room once it is unpacked than a request may have."""
    if size > MOST_BYTES:
        raise too_large(f"at most {MOST_BYTES} bytes {what}, got {size} or more")


def check_labels(count: int, column: str) -> None:
    """Refuse more different labels in a column than a request may have."""
    if count > MOST_LABELS:
        detail = f"expected at most {MOST_CLASSES} classes, got more in the column {column!r}"
        raise bad_file("too_many_classes", detail)


def check_description(size: int) -> None:
    """Refuse a description of the columns that is larger than any sensible one."""
    if not 0 <= size <= MOST_DESCRIPTION:
        raise too_large(f"a description of the columns of at most {MOST_DESCRIPTION} bytes, got {size}")


def check_names(names: Sequence[str]) -> None:
    """Refuse too many columns, and two of one name."""
    if len(names) > MOST_COLUMNS:
        raise too_large(f"at most {MOST_COLUMNS} columns, got {len(names)}")
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise bad_file("duplicate_column", f"expected columns with different names, got {twice!r} twice")


def check_start_of_csv(start: bytes) -> None:
    """Refuse what is packed, and a first line in which something else than commas separates the names: rows with commas
    in their numbers could not be read as rows of one column.
    """
    if start.startswith(_GZIP):
        raise bad_file("unreadable_data", "expected a file that is not packed, got gzip")
    header = start.partition(b"\n")[0].decode("utf-8-sig").rstrip()
    found = next((word for sign, word in _OTHER_SEPARATORS.items() if sign in header and "," not in header), None)
    if found is not None:
        raise bad_file(
            "wrong_separator", f"expected commas between the columns of a CSV, got {found}: {header!r}"[:300]
        )


def bad_file(code: str, detail: str) -> InvalidInput:
    """The error that says what is wrong with the contents of a file."""
    return InvalidInput.at("/data", code, detail)


def too_large(expected: str) -> TooLarge:
    """The error that says what may be, and what was counted."""
    return TooLarge(f"expected {expected} in the file", pointer="/data")


# Whose texts are looked at together.
_ROWS = 1 << 14


@dataclass(frozen=True, slots=True)
class FileColumns:
    """The chosen columns of a file, each read when it is asked for, by its name in the file.

    Attributes:
        rows: Of every column; those of an NPZ may differ all the same.
        read: A column. An array [n, K], which only an NPZ has, is one of lists.
        before: Rows of others that came first.
        written: Columns of CSV, whose texts say what they are, with the spelling of all rows where these are some.
        arrays: Are lists of one size the rows of an array? Only in an NPZ, which counts their entries before.
    """

    rows: int
    read: Callable[[str], pa.ChunkedArray]
    before: int = 0
    written: Mapping[str, Spelling | None] = field(default_factory=dict)
    arrays: bool = False

    def labels(self, name: str) -> Column:
        """A column of labels: integers, booleans, floats or texts."""
        return self._coded(refuse_many(self._column(name), name), name, ids=False)

    def ids(self, name: str) -> Column:
        """A column of ids, the same but for texts of CSV that are no whole numbers, which stay as they are."""
        return self._coded(self._column(name), name, ids=True)

    def numbers(self, name: str) -> NDArray[np.float64]:
        """A column of numbers as doubles."""
        return _numbers(self._column(name), name)

    def gaps(self, name: str) -> NDArray[np.float64]:
        """Numbers, NaN where there is none. A NaN that is there is no missing value: some computation went wrong."""
        column = self._column(name, gaps=True)
        if pa.types.is_null(column.type):
            return np.full(len(column), np.nan)
        values = _numbers(column, name)
        wrong = np.isnan(values) & np.asarray(column.is_valid().to_numpy())
        if wrong.any():
            row = self.before + int(np.argmax(wrong))
            raise bad_file("not_finite", f"expected a finite number or none in {name!r} at row {row}, got nan")
        return values

    def flags(self, name: str) -> NDArray[Any]:
        """A column (n) of numbers or booleans."""
        column = self.labels(name)
        if not isinstance(column, pa.Array):
            return np.asarray(column)
        if len(column) or name not in self.written:
            raise bad_file("not_numbers", f"expected numbers in the column {name!r}")
        return np.zeros(0)

    def matrix(self, name: str, *, flags: bool = False) -> NDArray[Any]:
        """An array [n, K] of numbers, or a column (n) of them; with ``flags`` booleans are left as they are."""
        column = self.read(name)
        size = column.type.list_size if self.arrays and pa.types.is_fixed_size_list(column.type) else None
        flat = refuse_missing(column if size is None else _flattened(column), name, self.before)
        values = np.asarray(flat.to_numpy()) if flags and pa.types.is_boolean(flat.type) else _numbers(flat, name)
        return values if size is None else values.reshape(-1, size)

    def values(self, name: str) -> list[Any]:
        """A column of texts, numbers or booleans; None where there is none."""
        column = self._column(name, gaps=True)
        if name in self.written:
            return values_as_written(column)
        kind = canonical(column.type)
        if not (is_text(kind) or _is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
            raise bad_file("not_a_column", f"expected texts, numbers or booleans in the column {name!r}, got {kind}")
        found: list[Any] = held(column).to_pylist()
        return found

    def _column(self, name: str, *, gaps: bool = False) -> pa.ChunkedArray:
        """A column of one entry per sample, perhaps with gaps."""
        column = self.read(name)
        if self.arrays and pa.types.is_fixed_size_list(column.type):
            shape = len(column), column.type.list_size
            if shape[1] != 1:
                raise bad_file(
                    "not_a_column", f"expected one entry per sample as {name!r}, got an array of shape {shape}"
                )
            column = _flattened(column)
        return with_nulls(column) if gaps else refuse_missing(column, name, self.before)

    def _coded(self, column: pa.ChunkedArray, name: str, *, ids: bool) -> Column:
        if name in self.written:
            return as_written(column, ids=ids, spelling=self.written[name])
        kind = canonical(column.type)
        if is_text(kind):
            if pa.types.is_dictionary(column.type):
                return column.combine_chunks()
            check_bytes(sum(map(_text_bytes, column.chunks)), f"of texts in the column {name!r}")
            return held(column).dictionary_encode().combine_chunks()
        if not (_is_number(kind) or pa.types.is_boolean(kind)):
            raise bad_file("not_a_column", f"expected numbers or texts in the column {name!r}, got {kind}")
        return np.asarray(held(column).to_numpy())


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file whose columns are known by name and not yet read.

    Attributes:
        names: Of all columns, in their order.
        load: The table of some columns; the first argument has the names of labels, the second those of numbers.
        aside: Columns of attributes and filters; of the input only where its kind has a column of that name.
    """

    names: Sequence[str]
    load: Callable[[Sequence[str], Sequence[str]], FileColumns]
    aside: frozenset[str] = frozenset()


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values, also of those that are stored as a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def canonical(kind: pa.DataType) -> pa.DataType:
    """The type in which values of a column are held, whatever files have."""
    kind = plain(kind)
    if is_text(kind):
        return pa.large_string()
    if pa.types.is_integer(kind):
        # What is too large stays, so that whoever reads labels can name it.
        return kind if pa.types.is_uint64(kind) else pa.int64()
    if pa.types.is_decimal(kind):
        return pa.float64() if kind.scale > 0 else pa.int64()
    return pa.float64() if pa.types.is_floating(kind) else kind


_Column = TypeVar("_Column", pa.Array, pa.ChunkedArray)


def held(column: _Column) -> _Column:
    """The values in their `canonical` type."""
    kind = canonical(column.type)
    return doubles(column) if pa.types.is_float64(kind) else column.cast(kind)


def doubles(column: _Column) -> _Column:
    """Numbers as the doubles that are nearest to them: Arrow divides decimals, and is off by a rounding."""
    found = column.cast(plain(column.type))
    found = found.cast(pa.string()) if pa.types.is_decimal(found.type) else found
    return found.cast(pa.float64(), safe=False)


def is_text(kind: pa.DataType) -> bool:
    """Are values of a type of Arrow texts?"""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def refuse_missing(column: pa.ChunkedArray, name: str, before: int = 0) -> pa.ChunkedArray:
    """The column, which has a value in every row; ``before`` rows of others came first.

    Raises:
        InvalidInput: one is missing.
    """
    column = with_nulls(column)
    if column.null_count:
        index = before + pc.index(column.is_null(), True).as_py()
        raise bad_file("missing_value", f"expected no missing values, got one in {name!r} at row {index}")
    return column


def with_nulls(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column, in which also those values are missing that a dictionary has as a missing one."""
    if pa.types.is_dictionary(column.type) and any(chunk.dictionary.null_count for chunk in column.chunks):
        return column.cast(column.type.value_type)
    return column


def refuse_many(column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
    """The column of labels, which has no more different texts than may be. It is read up to the first one too many.

    Raises:
        InvalidInput: there are more.
    """
    found = pa.array([], pa.large_string())
    for chunk in column.chunks if is_text(plain(column.type)) else ():
        for start in range(0, len(chunk), _ROWS):
            some = chunk.slice(start, _ROWS).unique()
            some = some.dictionary_decode() if pa.types.is_dictionary(some.type) else some
            found = pa.concat_arrays([found, some.cast(pa.large_string())]).unique()
            check_labels(len(found), name)
    return column


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _text_bytes(chunk: pa.Array) -> int:
    """Bytes of all texts; views may show the same bytes again and again."""
    if not pa.types.is_string_view(chunk.type):
        return int(pc.sum(pc.binary_length(chunk)).as_py() or 0)
    # A view has 16 bytes and begins with its length.
    views = np.frombuffer(chunk.buffers()[1], dtype=np.int32).reshape(-1, 4)
    return int(views[chunk.offset : chunk.offset + len(chunk), 0].sum(dtype=np.int64))


def _numbers(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    kind = plain(column.type)
    if not _is_number(kind):
        raise bad_file("not_numbers", f"expected numbers in the column {name!r}, got {kind}")
    return np.asarray(doubles(column).to_numpy())


def _flattened(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return pa.chunked_array([one.flatten() for one in column.chunks], column.type.value_type)


# Ours to the file's; a list has one column for every class.
Mapped = Mapping[str, str | Sequence[str]]
_WHERE = "/input/columns"


def names_in(
    file: TableFile,
    own: Container[str],
    columns: Mapped | None,
    classes: Sequence[str] | None,
    *,
    apart: bool = False,
) -> Mapping[str, str]:
    """Columns of a file by the names of the service: where columns are named, everything else is left aside.

    Args:
        file: As it came.
        own: Names that columns of the kind of input have.
        columns: By the name of the service the name in the file; of `probabilities` and `scores` also a list, one for
            every class. None: they have the names of the service.
        classes: The classes that a list is about.
        apart: Several lists may be about them: a column is called by its list and its class, as `y_true.cat`.

    Raises:
        InvalidInput: a column is not there, or a list does not have one for every class.
    """
    there = {one: one for one in file.names if one in own or one not in file.aside}
    names = there if columns is None else _names(columns, classes, apart=apart)
    absent = [theirs for theirs in names.values() if theirs not in file.names]
    if absent:
        have = f"there are only {listed(file.names)}" if file.names else "there are none"
        raise InvalidInput([Fault(_WHERE, "missing_column", f"expected a column {one!r}, {have}") for one in absent])
    return names


def _names(columns: Mapped, classes: Sequence[str] | None, *, apart: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for ours, theirs in columns.items():
        if isinstance(theirs, str):
            found[ours] = theirs
            continue
        if classes is None or len(classes) != len(theirs):
            have = "they are not declared" if classes is None else f"there are {len(classes)}"
            detail = f"expected a column for each class that labels declares, got {len(theirs)} and {have}"
            raise InvalidInput.at(f"{_WHERE}/{in_pointer(ours)}", "wrong_length", detail)
        start = f"{ours}." if apart else ""
        found |= {f"{start}{normalized(label)}": column for label, column in zip(classes, theirs, strict=True)}
    return found
