"""Formats of files of columns: Parquet, Arrow IPC, NPZ and CSV. What a file unpacks to is counted before it is
unpacked, or as it comes.
"""

import struct
import zipfile
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet
from numpy.typing import NDArray

from app.api.bodies.files.table import (
    MOST_COLUMNS,
    MOST_DESCRIPTION,
    FileColumns,
    TableFile,
    bad_file,
    check_bytes,
    check_description,
    check_names,
    check_rows,
    check_start_of_csv,
    is_text,
    too_large,
)
from app.api.bodies.files.written import MISSING

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

        check_rows(metadata.num_rows, len(names))
        return FileColumns(metadata.num_rows, read)

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
        check_rows(table.num_rows, len(names))
        return FileColumns(table.num_rows, table.column)

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
        shapes = {name: _described(archive, members[name], name) for name in (*labels, *numbers)}
        rows = shapes[(*labels, *numbers)[0]][0]
        check_rows(rows, max(len(shapes), *(shape[-1] for shape in shapes.values() if len(shape) == 2), 1))
        return FileColumns(rows, lambda name: _read_array(archive, members[name]), arrays=True)

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


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> pa.ChunkedArray:
    """The entries as a column, of which each is a list where there are several for a sample."""
    with archive.open(entry) as member:
        array: NDArray[Any] = np.lib.format.read_array(member, allow_pickle=False)
    narrow_or_wide = array.dtype.kind == "f" and array.dtype.itemsize not in (4, 8)
    kind = np.dtype(np.float64) if narrow_or_wide else array.dtype.newbyteorder("=")
    column = pa.array(array.astype(kind, copy=False).reshape(-1))
    return pa.chunked_array([column if array.ndim == 1 else pa.FixedSizeListArray.from_arrays(column, array.shape[1])])


def _described(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> tuple[int, ...]:
    """The shape that an array says it has, which agrees with what is there."""
    if entry.compress_type not in _METHODS or entry.flag_bits & 1:
        raise ValueError(f"the array {name!r} is encrypted, or compressed in another way than numpy does")
    with archive.open(entry) as member:
        read = _HEADERS.get(np.lib.format.read_magic(member))
        if read is None:
            raise ValueError(f"the array {name!r} has an unknown version")
        shape, _, dtype = read(member)
        size = entry.file_size - member.tell()
    if shape[2:] or 0 in shape[1:]:
        raise bad_file("not_a_row", f"expected an entry or a row per sample as {name!r}, got an array of shape {shape}")
    if dtype.kind not in "fiubU" or not shape:
        raise bad_file("not_a_column", f"expected an array of numbers or texts as {name!r}")
    claimed = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if min(shape) < 0 or claimed != size or not dtype.itemsize:
        raise ValueError(f"the header of {name!r} says {claimed} bytes, there are {size}")
    return shape


_BLOCK = 1 << 20


def open_csv(file: BinaryIO) -> TableFile:
    """The columns of a CSV file."""
    header = file.readline(_BLOCK)
    if len(header) == _BLOCK or header.count(b",") > 2 * MOST_COLUMNS:
        raise too_large(f"at most {MOST_COLUMNS} columns, got more, or a first line of more than {_BLOCK} bytes")
    check_start_of_csv(header)
    file.seek(0)
    with _reader(file, {}) as reader:
        names = reader.schema.names
    check_names(names)

    def load(labels: Sequence[str], numbers: Sequence[str]) -> FileColumns:
        # Labels and ids as texts: 007 is another id than 7.
        types = dict.fromkeys(labels, pa.string()) | dict.fromkeys(numbers, pa.float64())
        file.seek(0)
        batches, rows = [], 0
        with _reader(file, types) as reader:
            for batch in reader:
                rows += batch.num_rows
                check_rows(rows, len(types))
                batches.append(batch)
            table = pa.Table.from_batches(batches, reader.schema)
        return FileColumns(rows, table.column, written=dict.fromkeys(labels))

    return TableFile(names, load)


def _reader(file: BinaryIO, types: dict[str, pa.DataType]) -> pa.csv.CSVStreamingReader:
    return pa.csv.open_csv(
        file,
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
        convert_options=pa.csv.ConvertOptions(column_types=types, include_columns=[*types], **MISSING),
    )
