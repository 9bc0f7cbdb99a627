"""Columns of samples in Parquet: each once, one row each, whatever evaluations have it."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app.services.ports import SampleColumn
from app.services.transfer.layout import TransferError

_INTEGERS, _NUMBERS, _TEXTS = "integers", "numbers", "texts"
_TYPES: Final = {_INTEGERS: pa.int64(), _NUMBERS: pa.float64(), _TEXTS: pa.string()}
_MEMBERS: Final = {"i": _INTEGERS, "f": _NUMBERS, "U": _TEXTS}
_SCHEMA: Final = pa.schema(
    [
        ("digest", pa.binary(32)),
        ("shared", pa.bool_()),
        ("shape", pa.list_(pa.int64())),
        *((name, pa.large_list(kind)) for name, kind in _TYPES.items()),
    ]
)
# Bytes of columns that lie together, and are read together.
_GROUP_BYTES: Final = 16 << 20
# Bytes of columns that a reader remembers: those that many evaluations share come again and again.
_REMEMBERED_BYTES: Final = 64 << 20


class ColumnWriter:
    """Writes columns into a file, which is there once there is a column."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None
        self._rows: list[dict[str, Any]] = []
        self._waiting = 0
        self.size = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            self._flush()
        if self._writer is not None:
            self._writer.close()

    def add(self, columns: Mapping[bytes, SampleColumn]) -> None:
        """Write columns by their digests."""
        for digest, column in columns.items():
            values = column.values
            flat = pa.array(values.reshape(-1), type=_TYPES[_MEMBERS[values.dtype.kind]])
            self._rows.append(
                {"digest": digest, "shared": column.shared, "shape": values.shape, _MEMBERS[values.dtype.kind]: flat}
            )
            self._waiting += values.nbytes
            self.size += values.nbytes
            if self._waiting >= _GROUP_BYTES:
                self._flush()

    def _flush(self) -> None:
        if not self._rows:
            return
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, _SCHEMA, compression="zstd")
        arrays = [
            pa.array([row[name] for row in self._rows], type=_SCHEMA.field(name).type) for name in _SCHEMA.names[:3]
        ]
        arrays += [_lists([row.get(name) for row in self._rows], kind) for name, kind in _TYPES.items()]
        self._writer.write_table(pa.Table.from_arrays(arrays, schema=_SCHEMA), row_group_size=len(self._rows))
        self._rows, self._waiting = [], 0


def _lists(columns: list[Any], kind: pa.DataType) -> pa.Array:
    """A list for each row, null where the column is of another type."""
    sizes = [0 if column is None else len(column) for column in columns]
    offsets = pa.array(np.concatenate([[0], np.cumsum(sizes)]), type=pa.int64())
    there = [column for column in columns if column is not None]
    values = pa.concat_arrays(there) if there else pa.array([], type=kind)
    absent = pa.array([column is None for column in columns], type=pa.bool_())
    return pa.LargeListArray.from_arrays(offsets, values, mask=absent)


def digests_in(path: Path, *, shared: bool = False) -> Iterator[tuple[bytes, int]]:
    """The digests of the columns of a file, each with its row group; those only that several evaluations have."""
    file = pq.ParquetFile(path)
    for group in range(file.num_row_groups):
        found = file.read_row_group(group, columns=["digest", "shared"])
        for digest, one in zip(found["digest"].to_pylist(), found["shared"].to_pylist(), strict=True):
            if one or not shared:
                yield digest, group


class ColumnReader:
    """Finds columns in some files by their digests."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._places = {digest: (path, group) for path in paths for digest, group in digests_in(path)}
        self._known: OrderedDict[bytes, NDArray[Any]] = OrderedDict()
        self._size = 0

    def __call__(self, digest: bytes) -> NDArray[Any]:
        """One column.

        Raises:
            TransferError: no file has it.
        """
        if digest not in self._known:
            if digest not in self._places:
                raise TransferError(f"expected the column {digest.hex()} of samples in the export, it is not there")
            self._read(*self._places[digest])
        self._known.move_to_end(digest)
        found = self._known[digest]
        while self._size > _REMEMBERED_BYTES and len(self._known) > 1:
            self._size -= self._known.popitem(last=False)[1].nbytes
        return found

    def _read(self, path: Path, group: int) -> None:
        table = pq.ParquetFile(path).read_row_group(group)
        for row in range(table.num_rows):
            digest: bytes = table["digest"][row].as_py()
            name = next(name for name in _TYPES if table[name][row].is_valid)
            values = table[name][row].values
            made = np.array(values.to_pylist(), dtype=np.str_) if name == _TEXTS else values.to_numpy()
            if digest not in self._known:
                self._known[digest] = made.reshape(table["shape"][row].as_py())
                self._size += made.nbytes
