"""A table with named columns, the form that all formats are read as, with limits on its size and other column names.

Small files can hold a lot, so all is counted before it is unpacked, or as it comes.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from app.domain.errors import Fault, InvalidInput, TooLarge
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
    """The chosen columns of a file.

    Attributes:
        rows: Of every column; those of an NPZ may differ all the same.
        labels: A column of labels: integers, booleans, floats or texts.
        ids: A column of ids, the same but for texts of CSV that are no whole numbers, which stay as they are.
        numbers: A column of numbers as doubles.
        matrix: An array of numbers [n, K], which only an NPZ has.
        flags: A column of numbers or booleans, or an array [n, L] of them.
        values: A column of texts, numbers or booleans, None where there is none.
    """

    rows: int
    labels: Callable[[str], Column]
    ids: Callable[[str], Column]
    numbers: Callable[[str], NDArray[np.float64]]
    gaps: Callable[[str], NDArray[np.float64]]
    matrix: Callable[[str], NDArray[np.float64]]
    flags: Callable[[str], NDArray[Any]]
    values: Callable[[str], list[Any]]


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file whose columns are known by name and not yet read.

    Attributes:
        names: Of all columns, in their order.
        load: The table of some columns; the first argument has the names of labels, the second those of numbers.
    """

    names: Sequence[str]
    load: Callable[[Sequence[str], Sequence[str]], FileColumns]


def arrow_table(rows: int, read: Callable[[str], pa.ChunkedArray], columns: int, before: int = 0) -> FileColumns:
    """A table whose columns are read as arrays of Arrow; ``before`` rows of others came first."""
    check_rows(rows, columns)

    def whole(name: str) -> pa.ChunkedArray:
        return refuse_missing(read(name), name, before)

    return FileColumns(
        rows=rows,
        labels=lambda name: _labels(refuse_many(whole(name), name), name),
        ids=lambda name: _labels(whole(name), name),
        numbers=lambda name: _numbers(whole(name), name),
        gaps=lambda name: _gaps(read(name), name, before),
        matrix=lambda name: _numbers(whole(name), name),
        flags=lambda name: _flags(whole(name), name),
        values=lambda name: _values(read(name), name),
    )


def plain(kind: pa.DataType) -> pa.DataType:
    """The type of the values, also of those that are stored as a dictionary."""
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def is_text(kind: pa.DataType) -> bool:
    """Are values of a type of Arrow texts?"""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def refuse_missing(column: pa.ChunkedArray, name: str, before: int = 0) -> pa.ChunkedArray:
    """The column, which has a value in every row; ``before`` rows of others came first.

    Raises:
        InvalidInput: one is missing.
    """
    if column.null_count:
        index = before + pc.index(column.is_null(), True).as_py()
        raise bad_file("missing_value", f"expected no missing values, got one in {name!r} at row {index}")
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


def _labels(column: pa.ChunkedArray, name: str) -> Column:
    kind = column.type
    if pa.types.is_dictionary(kind):
        if is_text(kind.value_type):
            return column.combine_chunks()
        kind = kind.value_type
        if _is_number(kind) or pa.types.is_boolean(kind):
            column = column.cast(kind)
    if is_text(kind):
        check_bytes(sum(map(_text_bytes, column.chunks)), f"of texts in the column {name!r}")
        return column.cast(pa.large_string()).dictionary_encode().combine_chunks()
    if pa.types.is_boolean(kind):
        return np.asarray(column.to_numpy())
    if not _is_number(kind):
        raise bad_file("not_a_column", f"expected numbers or texts in the column {name!r}, got {kind}")
    if not pa.types.is_unsigned_integer(kind):
        column = column.cast(pa.int64() if pa.types.is_integer(kind) else pa.float64())
    return np.asarray(column.to_numpy())


def _text_bytes(chunk: pa.Array) -> int:
    """Bytes of all texts; views may show the same bytes again and again."""
    if not pa.types.is_string_view(chunk.type):
        return int(pc.sum(pc.binary_length(chunk)).as_py() or 0)
    # A view has 16 bytes and begins with its length.
    views = np.frombuffer(chunk.buffers()[1], dtype=np.int32).reshape(-1, 4)
    return int(views[chunk.offset : chunk.offset + len(chunk), 0].sum(dtype=np.int64))


def _numbers(column: pa.ChunkedArray, name: str) -> NDArray[np.float64]:
    kind = plain(column.type)
    if is_text(kind):
        raise bad_file("not_numbers", f"expected numbers in the column {name!r}")
    if not _is_number(kind):
        raise bad_file("not_a_column", f"expected numbers or texts in the column {name!r}, got {kind}")
    return np.asarray(column.cast(kind).cast(pa.float64(), safe=False).to_numpy())


def _gaps(column: pa.ChunkedArray, name: str, before: int) -> NDArray[np.float64]:
    """Numbers, NaN where there is none. A NaN that is there is no missing value: some computation went wrong."""
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    values = _numbers(column, name)
    wrong = np.isnan(values)
    if column.null_count:
        wrong &= np.asarray(column.is_valid().to_numpy())
    if wrong.any():
        refuse_nan(name, before + int(np.argmax(wrong)))
    return values


def refuse_nan(name: str, row: int) -> None:
    """Refuse a value that is not a number, where missing ones may be.

    Raises:
        InvalidInput: always.
    """
    raise bad_file("not_finite", f"expected a finite number or none in {name!r} at row {row}, got nan")


def _flags(column: pa.ChunkedArray, name: str) -> NDArray[Any]:
    return np.asarray(column.to_numpy()) if pa.types.is_boolean(column.type) else _numbers(column, name)


def _values(column: pa.ChunkedArray, name: str) -> list[Any]:
    kind = plain(column.type)
    if pa.types.is_decimal(kind):
        kind = pa.float64()
    if not (is_text(kind) or _is_number(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind)):
        raise bad_file("not_a_column", f"expected texts, numbers or booleans in the column {name!r}, got {kind}")
    found: list[Any] = column.cast(kind).to_pylist()
    return found


# Ours to the file's; a list has one column for every class.
Mapped = Mapping[str, str | Sequence[str]]
_WHERE = "/input/columns"


def mapped_file(file: TableFile, columns: Mapped, classes: Sequence[str] | None, *, apart: bool = False) -> TableFile:
    """The file with the names of the service: what is named is there, everything else is left aside.

    Args:
        file: As it came.
        columns: By the name of the service the name in the file; of `probabilities` and `scores` also a list, one for
            every class.
        classes: The classes that a list is about.
        apart: Several lists may be about them: a column is called by its list and its class, as `y_true.cat`.

    Raises:
        InvalidInput: a column is not there, or a list does not have one for every class.
    """
    names = _names(columns, classes, apart=apart)
    absent = [(ours, theirs) for ours, theirs in names.items() if theirs not in file.names]
    if absent:
        have = f"there are only {listed(file.names)}" if file.names else "there are none"
        raise InvalidInput([Fault(_WHERE, "missing_column", f"expected a column {one!r}, {have}") for _, one in absent])

    def load(labels: Sequence[str], numbers: Sequence[str]) -> FileColumns:
        table = file.load([names[name] for name in labels], [names[name] for name in numbers])
        return FileColumns(
            rows=table.rows,
            labels=lambda name: table.labels(names[name]),
            ids=lambda name: table.ids(names[name]),
            numbers=lambda name: table.numbers(names[name]),
            gaps=lambda name: table.gaps(names[name]),
            matrix=lambda name: table.matrix(names[name]),
            flags=lambda name: table.flags(names[name]),
            values=lambda name: table.values(names[name]),
        )

    return TableFile(list(names), load)


def _names(columns: Mapped, classes: Sequence[str] | None, *, apart: bool) -> dict[str, str]:
    found: dict[str, str] = {}
    for ours, theirs in columns.items():
        if isinstance(theirs, str):
            found[ours] = theirs
            continue
        if classes is None or len(classes) != len(theirs):
            have = "they are not declared" if classes is None else f"there are {len(classes)}"
            detail = f"expected a column for each class that labels declares, got {len(theirs)} and {have}"
            raise InvalidInput.at(f"{_WHERE}/{ours}", "wrong_length", detail)
        start = f"{ours}." if apart else ""
        found |= {f"{start}{normalized(label)}": column for label, column in zip(classes, theirs, strict=True)}
    return found
