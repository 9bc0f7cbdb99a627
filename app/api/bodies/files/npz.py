"""NPZ: a zip of arrays. The header of each says its shape and type, which have to agree with its size in the zip."""

import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import IO, Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from app.api.bodies.files.limits import (
    MOST_DESCRIPTION,
    check_bytes,
    check_description,
    check_labels,
    check_names,
    check_rows,
)
from app.api.bodies.files.table import Table, TableFile
from app.domain.errors import InvalidInput
from app.domain.inputs.labels import CodedTexts, Column

# The record at the end of a zip (22 bytes, then up to 64 KiB of comment) and the one before it for very large ones.
_END, _END_SIZE, _LONGEST_COMMENT = b"PK\x05\x06", 22, 2**16
_LARGE_END, _LARGE_END_SIZE = b"PK\x06\x07", 20
_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_CHUNK = 1 << 20
_TEXTS_AT_ONCE = 1 << 16


def open_npz(file: BinaryIO) -> TableFile:
    """The arrays of an NPZ file."""
    check_description(_directory_size(file))
    archive = zipfile.ZipFile(file)
    entries = archive.infolist()
    names = [entry.filename.removesuffix(".npy") for entry in entries]
    check_names(names)
    members = dict(zip(names, entries, strict=True))

    def load(labels: Sequence[str], numbers: Sequence[str]) -> Table:
        check_bytes(sum(members[name].file_size for name in (*labels, *numbers)), "once unpacked")
        arrays = {name: _describe(archive, members[name], name) for name in (*labels, *numbers)}
        rows = arrays[(*labels, *numbers)[0]].shape[0]
        check_rows(rows, max(len(arrays), *(array.shape[-1] for array in arrays.values() if len(array.shape) == 2), 1))

        return Table(
            rows=rows,
            labels=lambda name: _labels(arrays[name].column(), name),
            ids=lambda name: _labels(arrays[name].column()),
            numbers=lambda name: _numbers(arrays[name].column(), name),
            matrix=lambda name: _numbers(arrays[name].read(), name),
            flags=lambda name: _flags(arrays[name].read(), name),
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
    fortran_order: bool
    dtype: np.dtype[Any]
    archive: zipfile.ZipFile
    entry: zipfile.ZipInfo

    def column(self) -> NDArray[Any]:
        """The entries (n); a column [n, 1] is one too."""
        if len(self.shape) != 1 and (len(self.shape) != 2 or self.shape[1] != 1):
            raise InvalidInput.at(
                "/data",
                "not_a_column",
                f"expected one entry per sample as {self.name!r}, got an array of shape {self.shape}",
            )
        return self.read().reshape(-1)

    def read(self) -> NDArray[Any]:
        with self.archive.open(self.entry) as member:
            _header(member, self.name)
            content = bytearray(int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize)
            view, done = memoryview(content), 0
            while done < len(content):
                part = member.read(min(_CHUNK, len(content) - done))
                if not part:
                    raise ValueError(f"the array {self.name!r} ends early")
                view[done : done + len(part)] = part
                done += len(part)
        array = np.frombuffer(content, dtype=self.dtype)
        return array.reshape(self.shape, order="F" if self.fortran_order else "C")


def _describe(archive: zipfile.ZipFile, entry: zipfile.ZipInfo, name: str) -> _Array:
    if entry.compress_type not in _METHODS or entry.flag_bits & 1:
        raise ValueError(f"the array {name!r} is encrypted, or compressed in another way than numpy does")
    with archive.open(entry) as member:
        shape, fortran_order, dtype = _header(member, name)
        size = entry.file_size - member.tell()
    if dtype.kind not in "fiubU" or not shape:
        raise InvalidInput.at("/data", "not_a_column", f"expected an array of numbers or texts as {name!r}")
    claimed = int(np.prod(shape, dtype=object)) * dtype.itemsize
    if min(shape) < 0 or claimed != size:
        raise ValueError(f"the header of {name!r} says {claimed} bytes, there are {size}")
    return _Array(name, shape, fortran_order, dtype, archive, entry)


def _header(member: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    read = _HEADERS.get(np.lib.format.read_magic(member))
    if read is None:
        raise ValueError(f"the array {name!r} has an unknown version")
    return read(member)


def _labels(array: NDArray[Any], limited: str | None = None) -> Column:
    """A column of ids, or of labels when it is named: then it is read up to the first label too many."""
    if array.dtype.kind != "U":
        return array.astype(array.dtype.newbyteorder("="), copy=False)
    places: dict[str, int] = {}
    codes = np.empty(len(array), dtype=np.int64)
    for start in range(0, len(array), _TEXTS_AT_ONCE):
        texts = array[start : start + _TEXTS_AT_ONCE].tolist()
        codes[start : start + len(texts)] = [places.setdefault(text, len(places)) for text in texts]
        if limited is not None:
            check_labels(len(places), limited)
    return CodedTexts(codes, list(places))


def _numbers(array: NDArray[Any], name: str) -> NDArray[np.float64]:
    if array.dtype.kind not in "fiu":
        raise InvalidInput.at("/data", "not_numbers", f"expected numbers as {name!r}")
    return np.ascontiguousarray(array, dtype=np.float64)


def _flags(array: NDArray[Any], name: str) -> NDArray[Any]:
    return array if array.dtype.kind == "b" else _numbers(array, name)
