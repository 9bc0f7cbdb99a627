"""Formats of files of columns: Parquet, Arrow IPC, NPZ and CSV. What a file unpacks to is counted before it is
unpacked, or as it comes.
"""

import struct
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from operator import and_
from typing import Any, BinaryIO, Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from app.api.bodies.files.table import (
    MOST_COLUMNS,
    MOST_DESCRIPTION,
    FileColumns,
    TableFile,
    arrow_table,
    bad_file,
    check_bytes,
    check_description,
    check_labels,
    check_names,
    check_rows,
    is_text,
    refuse_many,
    refuse_nan,
    too_large,
)
from app.domain.inputs.labels import Column, different

# The length of the footer and the last four bytes of every file.
_TAIL = 8
# Lists in the footer: columns of all row groups together.
_LONGEST_LIST = 1_000_000


def open_parquet(file: BinaryIO) -> TableFile:
    """The columns of a Parquet file."""
    end = file.seek(-_TAIL, 2)
    length = int.from_bytes(file.read(4), "little")
    if length <= end:
        # A footer longer than its file is refused by the reader in its own words.
        check_description(length)
    file.seek(0)
    schema = _parquet(file, ()).schema_arrow
    check_names(schema.names[: MOST_COLUMNS + 1])

    def load(labels: Sequence[str], numbers: Sequence[str]) -> FileColumns:
        # Texts stay a dictionary as they are stored: one of 200 characters nine million times is one text.
        opened = _parquet(file, [name for name in labels if is_text(schema.field(name).type)])
        names = [*labels, *numbers]
        metadata = opened.metadata
        groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
        wanted = {index for index in range(metadata.num_columns) if _top(opened, index) in names}
        check_bytes(
            sum(group.column(index).total_uncompressed_size for group in groups for index in wanted), "once unpacked"
        )

        def read(name: str) -> pa.ChunkedArray:
            return opened.read(columns=[name], use_threads=False).column(name)

        return arrow_table(metadata.num_rows, read, len(names))

    return TableFile(schema.names, load)


def _top(opened: pa.parquet.ParquetFile, index: int) -> str:
    """The name of the column that a leaf of the schema belongs to; names with a dot are quoted nowhere."""
    path: str = opened.schema.column(index).path
    name: str = opened.schema.column(index).name
    return path if path == name else path.partition(".")[0]


def _parquet(file: BinaryIO, texts: Sequence[str]) -> pa.parquet.ParquetFile:
    return pa.parquet.ParquetFile(
        file,
        read_dictionary=[*texts],
        pre_buffer=False,
        thrift_string_size_limit=MOST_DESCRIPTION,
        thrift_container_size_limit=_LONGEST_LIST,
    )


# A file is a stream between this and a second list of its batches, which nothing here needs.
_FILE_START, _FILE_END = b"ARROW1\0\0", b"ARROW1"
# Fields of the tables in the header of a message, by their number in Arrow's format/Message.fbs and what they are.
_HEADER, _DICTIONARY_DATA, _BUFFERS, _COMPRESSION = 2, 1, 2, 3


class _UpToItsEnd:
    """A file that is never asked for more than it has: room is made for what is asked, and a message may claim 2^60."""

    closed = False

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._size = file.seek(0, 2)
        self.seek, self.tell = file.seek, file.tell
        file.seek(0)

    def read(self, size: int = -1) -> bytes:
        left = max(self._size - self._file.tell(), 0)
        return self._file.read(left if size < 0 else min(size, left))

    def close(self) -> None:
        """The file is closed by who opened it."""


def open_arrow(whole: BinaryIO) -> TableFile:
    """The columns of an Arrow IPC file or stream."""
    file = _UpToItsEnd(whole)
    start = len(_FILE_START) if file.read(len(_FILE_START)) == _FILE_START else 0
    if start and (file.seek(-len(_FILE_END), 2) < start or file.read() != _FILE_END):
        raise ValueError("the file is cut off")
    file.seek(start)
    check_bytes(sum(_unpacked_size(message) for message in _messages(file)), "once unpacked")
    file.seek(start)
    schema = pa.ipc.open_stream(file).schema
    check_names(schema.names)

    def load(labels: Sequence[str], numbers: Sequence[str]) -> FileColumns:
        names = [*labels, *numbers]
        file.seek(start)
        options = pa.ipc.IpcReadOptions(
            use_threads=False, included_fields=[schema.get_field_index(name) for name in names]
        )
        table = pa.ipc.open_stream(file, options=options).read_all()
        # Arrow trusts what it reads: places of texts, for example, could lie outside of the file.
        table.validate(full=True)
        return arrow_table(table.num_rows, table.column, len(names))

    return TableFile(schema.names, load)


def _messages(file: _UpToItsEnd) -> Iterator[pa.ipc.Message]:
    reader = pa.ipc.MessageReader.open_stream(file)
    while True:
        try:
            message = reader.read_next_message()
        except StopIteration:
            return
        check_description(message.metadata.size)
        yield message


def _unpacked_size(message: pa.ipc.Message) -> int:
    """Bytes that the buffers of a batch take in memory: each compressed one begins with its size (8 bytes)."""
    if message.type not in ("record batch", "dictionary"):
        return 0
    data = memoryview(message.metadata)
    batch = _table(data, _field(data, struct.unpack_from("<I", data, 0)[0], _HEADER))
    if message.type == "dictionary":
        batch = _table(data, _field(data, batch, _DICTIONARY_DATA))
    vector = _table(data, _field(data, batch, _BUFFERS))
    count = struct.unpack_from("<I", data, vector)[0]
    buffers: Any = np.frombuffer(data, dtype="<i8", count=2 * count, offset=vector + 4).reshape(count, 2)
    if _field(data, batch, _COMPRESSION) is None:
        return int(buffers[:, 1].sum())
    body = memoryview(message.body)
    sizes: list[int] = [struct.unpack_from("<q", body, start)[0] for start, length in buffers.tolist() if length >= 8]
    # -1 says that a buffer is not compressed.
    return sum(size for size in sizes if size > 0) + int(buffers[:, 1].sum())


def _field(data: memoryview, table: int, number: int) -> int | None:
    """Return the offset of a field of a flatbuffer's table; None if the table has none."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", data, fields)[0]:
        return None
    offset: int = struct.unpack_from("<H", data, fields + 4 + 2 * number)[0]
    return table + offset if offset else None


def _table(data: memoryview, place: int | None) -> int:
    """Place that an offset in a flatbuffer points at."""
    if place is None:
        raise ValueError("a message lacks a part")
    offset: int = struct.unpack_from("<I", data, place)[0]
    return place + offset


# The record at the end of a zip (22 bytes, then up to 64 KiB of comment) and the one before it for very large ones.
_END, _END_SIZE, _LONGEST_COMMENT = b"PK\x05\x06", 22, 2**16
_LARGE_END, _LARGE_END_SIZE = b"PK\x06\x07", 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}


def open_npz(file: BinaryIO) -> TableFile:
    """The arrays of an NPZ file."""
    check_description(_directory_size(file))
    archive = zipfile.ZipFile(file)
    entries = archive.infolist()
    names = [entry.filename.removesuffix(".npy") for entry in entries]
    check_names(names)
    members = dict(zip(names, entries, strict=True))

    def load(labels: Sequence[str], numbers: Sequence[str]) -> FileColumns:
        check_bytes(sum(members[name].file_size for name in (*labels, *numbers)), "once unpacked")
        arrays = {name: _describe(archive, members[name], name) for name in (*labels, *numbers)}
        rows = arrays[(*labels, *numbers)[0]].shape[0]
        check_rows(rows, max(len(arrays), *(array.shape[-1] for array in arrays.values() if len(array.shape) == 2), 1))

        return FileColumns(
            rows=rows,
            labels=lambda name: _labels(arrays[name].column(), name),
            ids=lambda name: _labels(arrays[name].column()),
            numbers=lambda name: _numbers(arrays[name].column(), name),
            gaps=lambda name: _gaps(arrays[name].column(), name),
            matrix=lambda name: _numbers(arrays[name].read(), name),
            flags=lambda name: _flags(arrays[name].read(), name),
            values=lambda name: arrays[name].column().tolist(),
        )

    return TableFile(names, load)


def _directory_size(file: BinaryIO) -> int:
    """Bytes of the list of members: a million of them would be a million objects."""
    size = file.seek(0, 2)
    file.seek(max(0, size - _END_SIZE - _LONGEST_COMMENT))
    tail = file.read()
    file.seek(0)
    place = tail.rfind(_END)
    if place < 0 or len(tail) < place + _END_SIZE:
        raise ValueError("the zip has no end")
    if tail[max(0, place - _LARGE_END_SIZE) : place].startswith(_LARGE_END):
        return MOST_DESCRIPTION + 1
    return int.from_bytes(tail[place + 12 : place + 16], "little")


@dataclass(frozen=True, slots=True)
class _Array:
    """An array that is described and not yet read."""

    name: str
    shape: tuple[int, ...]
    archive: zipfile.ZipFile
    entry: zipfile.ZipInfo

    def column(self) -> NDArray[Any]:
        """The entries (n); a column [n, 1] is one too."""
        if len(self.shape) != 1 and (len(self.shape) != 2 or self.shape[1] != 1):
            raise bad_file(
                "not_a_column", f"expected one entry per sample as {self.name!r}, got an array of shape {self.shape}"
            )
        return self.read().reshape(-1)

    def read(self) -> NDArray[Any]:
        with self.archive.open(self.entry) as member:
            array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
            return array


def _describe(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> _Array:
    if entry.compress_type not in _METHODS or entry.flag_bits & 1:
        raise ValueError(f"the array {name!r} is encrypted, or compressed in another way than numpy does")
    with archive.open(entry) as member:
        read = _HEADERS.get(np.lib.format.read_magic(member))
        if read is None:
            raise ValueError(f"the array {name!r} has an unknown version")
        shape, _, dtype = read(member)
        size = entry.file_size - member.tell()
    if dtype.kind not in "fiubU" or not shape:
        raise bad_file("not_a_column", f"expected an array of numbers or texts as {name!r}")
    claimed = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if min(shape) < 0 or claimed != size or not dtype.itemsize:
        raise ValueError(f"the header of {name!r} says {claimed} bytes, there are {size}")
    return _Array(name, shape, archive, entry)


def _labels(array: NDArray[Any], limited: str | None = None) -> Column:
    """A column of ids, or of labels when it is named: then it is read up to the first label too many."""
    if array.dtype.kind != "U":
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    texts = pa.array(array.astype(array.dtype.newbyteorder("="), copy=False)).dictionary_encode()
    if limited is not None:
        check_labels(len(texts.dictionary), limited)
    return texts


def _numbers(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    if array.dtype.kind not in "fiu":
        raise bad_file("not_numbers", f"expected numbers as {name!r}")
    return np.ascontiguousarray(array, dtype=np.float64)


def _gaps(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    """Numbers, all of which are there: an array has no missing values."""
    values = _numbers(array, name)
    wrong = np.isnan(values)
    if wrong.any():
        refuse_nan(name, int(np.argmax(wrong)))
    return values


def _flags(array: NDArray[Any], name: str) -> NDArray[Any]:
    return array if array.dtype.kind == "b" else _numbers(array, name)


_BLOCK = 1 << 20
# As pandas and JSON write booleans.
_BOOLEANS = ({"True", "False"}, {"true", "false"})
_FRACTION = r"\.[0-9]*[1-9]"
_DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$"
# Whole numbers as columns with missing values have them in pandas.
_WHOLE = r"^-?(0|[1-9][0-9]{0,14})(\.0+)?$"


def open_csv(file: BinaryIO) -> TableFile:
    """The columns of a CSV file."""
    header = file.readline(_BLOCK)
    if len(header) == _BLOCK or header.count(b",") > 2 * MOST_COLUMNS:
        raise too_large(f"at most {MOST_COLUMNS} columns, got more, or a first line of more than {_BLOCK} bytes")
    file.seek(0)
    with _reader(file, {}) as reader:
        names = reader.schema.names
    check_names(names)

    def load(labels: Sequence[str], numbers: Sequence[str]) -> FileColumns:
        # Labels and ids as texts: 007 is another id than 7.
        types = dict.fromkeys(labels, pa.string()) | dict.fromkeys(numbers, pa.float64())
        file.seek(0)
        batches, rows = [], 0
        try:
            with _reader(file, types) as reader:
                for batch in reader:
                    rows += batch.num_rows
                    check_rows(rows, len(types))
                    batches.append(batch)
                table = pa.Table.from_batches(batches, reader.schema)
        except pa.ArrowInvalid as error:
            if "conversion error to double" not in str(error):
                raise
            raise bad_file("not_numbers", f"expected numbers: {error}"[:300]) from None
        read = arrow_table(rows, table.column, len(types))
        return replace(
            read,
            labels=lambda name: as_written(table.column(name), name, ids=False),
            ids=lambda name: as_written(table.column(name), name, ids=True),
            values=lambda name: values_as_written(table.column(name)),
        )

    return TableFile(names, load)


def _reader(file: BinaryIO, types: dict[str, pa.DataType]) -> pa.csv.CSVStreamingReader:
    return pa.csv.open_csv(
        file,
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
        convert_options=pa.csv.ConvertOptions(column_types=types, include_columns=[*types]),
    )


@dataclass(frozen=True, slots=True)
class Spelling:
    """Spelling of the texts of a column, which says what they are. Spellings of parts merge.

    Attributes:
        whole: All are whole numbers, perhaps with zeros behind the point.
        integers: All are integers as they are usually written.
        decimal: All are numbers.
        fraction: One has digits behind the point.
        booleans: All are booleans, in each way of writing them.
    """

    whole: bool = True
    integers: bool = True
    decimal: bool = True
    fraction: bool = False
    booleans: tuple[bool, ...] = (True,) * len(_BOOLEANS)

    @classmethod
    def of(cls, texts: pa.Array) -> Self:
        """Spelling of different texts."""

        def all_match(pattern: str) -> bool:
            return bool(pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py())

        try:
            integers = texts.cast(pa.int64()).cast(pa.string()).equals(texts)
        except pa.ArrowInvalid:
            integers = False
        fraction = pc.any(pc.match_substring_regex(texts, _FRACTION), min_count=0).as_py()
        booleans = tuple({*texts.to_pylist()} <= spelled for spelled in _BOOLEANS)
        return cls(all_match(_WHOLE), integers, all_match(_DECIMAL), fraction, booleans)

    @property
    def settled(self) -> bool:
        """Are they texts whatever other rows have?"""
        return not (self.whole or self.integers or self.decimal or any(self.booleans))

    def merged(self, other: "Spelling") -> "Spelling":
        """Spelling of the texts of both."""
        return Spelling(
            self.whole and other.whole,
            self.integers and other.integers,
            self.decimal and other.decimal,
            self.fraction or other.fraction,
            tuple(map(and_, self.booleans, other.booleans)),
        )


def values_as_written(column: pa.ChunkedArray) -> list[Any]:
    """Values of an attribute: numbers or booleans where all are written as such, else texts; nothing where nothing is
    written.
    """
    codes, texts = different(column.dictionary_encode().combine_chunks())
    spelled = [text for text in texts.to_pylist() if text]
    spelling = Spelling.of(pa.array(spelled, pa.string()))
    read: dict[str, Any] = {text: text for text in spelled}
    if spelling.decimal:
        read = {text: float(text) for text in spelled}
    elif any(spelling.booleans):
        read = {text: text.lower() == "true" for text in spelled}
    values = [read.get(text) for text in texts.to_pylist()]
    return [values[code] for code in codes.tolist()]


def as_written(column: pa.ChunkedArray, name: str, *, ids: bool, spelling: Spelling | None = None) -> Column:
    """Labels written as integers, other numbers or booleans as such, so that 2 comes before 10; all others as texts.

    Integers with leading zeros or a plus sign stay texts, and so do ids unless they are whole: nothing of them is lost.
    Of a part of a column the spelling of all of it decides.
    """
    coded = (column if ids else refuse_many(column, name)).dictionary_encode().combine_chunks()
    codes, texts = different(coded)
    if not len(texts):
        return coded
    spelling = spelling or Spelling.of(texts)
    if spelling.whole:
        return _taken(texts.cast(pa.float64()).cast(pa.int64()), codes)
    if spelling.integers:
        return _taken(texts.cast(pa.int64()), codes)
    if ids:
        return coded
    if spelling.fraction and spelling.decimal:
        # Nobody's classes; whoever reads labels says so.
        return _taken(texts.cast(pa.float64()), codes)
    if any(spelling.booleans):
        return _taken(pa.array([text.lower() == "true" for text in texts.to_pylist()]), codes)
    return coded


def _taken(values: pa.Array, codes: NDArray[Any]) -> NDArray[Any]:
    column: NDArray[Any] = values.to_numpy(zero_copy_only=False)[codes]
    return column
