"""The files of an exported project: their layout, lines of evaluations, columns of samples."""

import math
import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import read_id
from app.domain.inputs.content import Content
from app.domain.inputs.kinds import shape_of
from app.services.ports import Archived, SampleColumn

FORMAT: Final = "prevail-export"
# Raised when a reader of the version before could not read it.
VERSION: Final = 1
MANIFEST: Final = "manifest.json"
EVALUATIONS: Final = "evaluations"


class TransferError(Exception):
    """An export or an import cannot be done; the message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Part:
    """One file that is whole.

    Attributes:
        kind: `evaluations`, `comparisons`, `gates` or `checks`.
        last: Place of its last row: where to go on.
        samples: The file with the columns that its evaluations have and no file before; None when there are none.
    """

    kind: str
    file: str
    rows: int
    last: Any
    sha256: str
    samples: str | None = None
    samples_sha256: str | None = None


@dataclass(slots=True)
class Manifest:
    """What an export is of, and the files that are whole.

    Attributes:
        newest: The newest evaluation when it began; later ones are no part of it. None when there was none.
        done: Kinds of which all is there.
    """

    project: str
    newest: UUID | None
    begun_at: str
    parts: list[Part] = field(default_factory=list)
    done: list[str] = field(default_factory=list)
    complete: bool = False

    def of(self, kind: str) -> list[Part]:
        """The files of a kind."""
        return [part for part in self.parts if part.kind == kind]

    def rows(self, kind: str) -> int:
        """How many rows of a kind there are."""
        return sum(part.rows for part in self.of(kind))


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder; None when it has none.

    Raises:
        TransferError: it is not one of ours, or one of another version.
    """
    path = folder / MANIFEST
    if not path.exists():
        return None
    try:
        found: Mapping[str, Any] = orjson.loads(path.read_bytes())
        if found["format"] != FORMAT:
            raise KeyError("format")
        if found["version"] != VERSION:
            raise TransferError(
                f"expected version {VERSION} of the format in {path}, got {found['version']}: use the release that "
                "wrote it, or a newer one"
            )
        newest = found["newest"]
        return Manifest(
            project=found["project"],
            newest=None if newest is None else UUID(newest),
            begun_at=found["begun_at"],
            parts=[Part(**part) for part in found["parts"]],
            done=found["done"],
            complete=found["complete"],
        )
    except (KeyError, TypeError, ValueError) as error:
        raise TransferError(f"expected the manifest of an export in {path}, got something else") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Put a manifest into a folder: the one before stays until the new one is whole."""
    content = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    write_whole(folder / MANIFEST, orjson.dumps(content, option=orjson.OPT_INDENT_2))


def write_whole(path: Path, content: bytes) -> None:
    """Write a file that is there whole or not at all."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    unfinished.write_bytes(content)
    publish(unfinished, path)


def publish(unfinished: Path, path: Path) -> None:
    """Give a file that is written its name, once it is on disk."""
    with unfinished.open("rb") as file:
        os.fsync(file.fileno())
    unfinished.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def digest_of(path: Path) -> str:
    """SHA-256 of a file."""
    found = sha256()
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


def write_evaluation(one: Archived) -> bytes:
    """A line, its end included."""
    record = one.record
    model, dataset = record.model, record.dataset
    line = {
        "id": record.id,
        "created_at": record.created_at,
        "model": {"name": model.name, "version": model.version},
        "dataset": {"name": dataset.name, "version": dataset.version, "split": dataset.split},
        "tags": dict(record.tags),
        "kind": record.kind,
        "labels": record.labels,
        "positive": record.positive,
        "content": record.content.value,
        "counts": record.counts.tolist(),
        "fold_counts": None if record.fold_counts is None else record.fold_counts.tolist(),
        "options": dict(record.options),
        "extra": dict(record.extra),
        "revision": record.revision,
        "values": {key: _number(value) for key, value in record.values.items()},
        "samples": {name: digest.hex() for name, digest in one.columns.items()} or None,
        "fold_sizes": one.fold_sizes,
        "said_of_samples": record.part,
    }
    return orjson.dumps(line, option=orjson.OPT_UTC_Z | orjson.OPT_APPEND_NEWLINE)


def read_evaluation(line: bytes) -> Archived:
    """The reverse of `write_evaluation`.

    Raises:
        AttributeError, KeyError, TypeError, ValueError: the line is none of ours.
    """
    found: Mapping[str, Any] = orjson.loads(line)
    content, labels, extra = Content(found["content"]), tuple(found["labels"]), found["extra"]
    shape = shape_of(found["kind"], len(labels), extra)
    folds = found["fold_counts"]
    record = EvaluationRecord(
        id=read_id(found["id"]),
        model=ModelRef(**found["model"]),
        dataset=DatasetRef(**found["dataset"]),
        kind=found["kind"],
        labels=labels,
        content=content,
        counts=_counts(found["counts"], content, shape),
        revision=found["revision"],
        values={key: None if value is None else float(value) for key, value in found["values"].items()},
        positive=found["positive"],
        fold_counts=None if folds is None else _counts(folds, content, (-1, *shape)),
        tags=found["tags"],
        options=found["options"],
        extra=extra,
        part=found["said_of_samples"],
    )
    sizes = found["fold_sizes"]
    return Archived(
        record,
        {name: bytes.fromhex(digest) for name, digest in (found["samples"] or {}).items()},
        None if sizes is None else tuple(sizes),
    )


def _number(value: float | None) -> float | str | None:
    # JSON knows no infinities; Python reads these words.
    return value if value is None or math.isfinite(value) else str(value)


def _counts(entries: list[Any], content: Content, shape: tuple[int, ...]) -> NDArray[Any]:
    in_memory = np.int64 if content is Content.counts else np.float64
    return np.array(entries, dtype=in_memory).reshape(shape)


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
