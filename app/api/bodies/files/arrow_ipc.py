"""Arrow IPC, as a file or a stream. Batches may be compressed; what they unpack to is read off their headers first."""

import struct
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO

import numpy as np
import pyarrow as pa
import pyarrow.ipc

from app.api.bodies.files.limits import check_bytes, check_description, check_names
from app.api.bodies.files.table import Table, TableFile, arrow_table

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

    def load(labels: Sequence[str], numbers: Sequence[str]) -> Table:
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
    """Where a field of a flatbuffer's table stands; None when the table has none."""
    fields = table - struct.unpack_from("<i", data, table)[0]
    if 4 + 2 * number >= struct.unpack_from("<H", data, fields)[0]:
        return None
    offset: int = struct.unpack_from("<H", data, fields + 4 + 2 * number)[0]
    return table + offset if offset else None


def _table(data: memoryview, place: int | None) -> int:
    """What an offset in a flatbuffer points at."""
    if place is None:
        raise ValueError("a message lacks a part")
    offset: int = struct.unpack_from("<I", data, place)[0]
    return place + offset
