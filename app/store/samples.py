"""Columns of samples in the database, each stored once."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from typing import Any
from uuid import UUID

import numpy as np
import orjson
import pyarrow as pa
from numpy.typing import NDArray
from sqlalchemy import delete, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.inputs.attributes import Attributes
from app.domain.inputs.samples import Samples
from app.store.engine import among, same
from app.store.tables import evaluation_samples, probability_reports, sample_columns

_CODEC = "zstd"
_TEXT = "text"
_MOST_DECIMALS = 8
_LARGEST_ROUNDED = 40.0


@dataclass(frozen=True, slots=True)
class StoredColumn:
    """One column: equal columns have equal digests, whatever they belong to."""

    digest: bytes
    content: bytes


def pack(column: NDArray[Any]) -> StoredColumn:
    """A column of codes, ids, weights or probabilities as bytes. No digit is lost."""
    decimals = None
    if column.dtype.kind == "U":
        kind, plain, shape = _TEXT, orjson.dumps(column.tolist()), column.shape
    else:
        decimals, whole = _decimals(column)
        narrow = np.ascontiguousarray(_narrow(whole))
        kind, shape = narrow.dtype.str, narrow.shape
        # First bytes of all entries, then second bytes: exponents lie together and compress.
        plain = narrow.view(np.uint8).reshape(-1, narrow.dtype.itemsize).T.tobytes()
    head = orjson.dumps({"kind": kind, "shape": shape, "size": len(plain), "decimals": decimals})
    packed = pa.compress(plain, codec=_CODEC, asbytes=True)
    return StoredColumn(sha256(head + plain).digest(), len(head).to_bytes(2, "big") + head + packed)


def unpack(content: bytes) -> NDArray[Any]:
    """The reverse of ``pack``: int64, float64 or text."""
    start = 2 + int.from_bytes(content[:2], "big")
    head = orjson.loads(content[2:start])
    plain = pa.decompress(content[start:], decompressed_size=head["size"], codec=_CODEC, asbytes=True)
    if head["kind"] == _TEXT:
        texts: NDArray[Any] = np.array(orjson.loads(plain), dtype=np.str_)
        return texts
    dtype = np.dtype(head["kind"])
    entries = np.ascontiguousarray(np.frombuffer(plain, dtype=np.uint8).reshape(dtype.itemsize, -1).T)
    narrow: NDArray[Any] = entries.view(dtype).reshape(head["shape"])
    if head["decimals"] is not None:
        rounded: NDArray[Any] = narrow.astype(np.float64) / 10.0 ** head["decimals"]
        return rounded
    return narrow.astype(np.float64 if dtype.kind == "f" else np.int64)


def _decimals(column: NDArray[Any]) -> tuple[int | None, NDArray[Any]]:
    """Return the number of decimals that numbers were rounded to, and the whole numbers that they are a quotient of."""
    if column.dtype.kind != "f" or not column.size or column.min() < 0 or column.max() > _LARGEST_ROUNDED:
        return None, column
    for decimals in range(_MOST_DECIMALS + 1):
        scale = 10.0**decimals
        # Most columns are told apart by their first entries.
        for part in (column[:100], column):
            whole = np.rint(part * scale)
            # A negative zero has a sign that whole numbers would lose.
            if not (whole / scale == part).all() or np.signbit(part).any():
                break
        else:
            return decimals, whole.astype(np.int64)
    return None, column


def _narrow(column: NDArray[Any]) -> NDArray[Any]:
    """The narrowest type that holds every entry exactly."""
    if column.dtype.kind == "f":
        with np.errstate(over="ignore"):
            single = column.astype("<f4")
        return single if (single == column).all() else column.astype("<f8", copy=False)
    low, high = (int(column.min()), int(column.max())) if column.size else (0, 0)
    for name in ("<u1", "<u2", "<u4"):
        if low >= 0 and high <= np.iinfo(name).max:
            return column.astype(name)
    return column.astype("<i8", copy=False)


COLUMN_NAMES = ("truth", "predicted", "outputs", "ids", "weights", "groups", "attributes")
_DIGESTS = tuple(evaluation_samples.c[name] for name in COLUMN_NAMES)


@dataclass(frozen=True, slots=True, eq=False)
class PackedSamples:
    """Samples ready to be written: columns by name, None where there is none."""

    columns: Mapping[str, StoredColumn | None]
    fold_sizes: tuple[int, ...] | None

    @property
    def size(self) -> int:
        """Bytes of all columns."""
        return sum(len(column.content) for column in self.columns.values() if column is not None)


def pack_samples(samples: Samples) -> PackedSamples:
    """Compress all columns; takes a while for many samples."""
    columns: dict[str, StoredColumn | None] = {}
    for name in COLUMN_NAMES:
        column: NDArray[Any] | Attributes | None = getattr(samples, name)
        array = column.as_column() if isinstance(column, Attributes) else column
        columns[name] = None if array is None else pack(array)
    return PackedSamples(columns, samples.fold_sizes)


async def add_samples(connection: AsyncConnection, project: str, packed: Mapping[UUID, PackedSamples]) -> None:
    """Write the samples of some evaluations; columns that are there already are only counted."""
    columns: dict[bytes, StoredColumn] = {}
    links: Counter[bytes] = Counter()
    for one in packed.values():
        own = {column.digest: column for column in one.columns.values() if column is not None}
        columns |= own
        links.update(own.keys())
    # In one order for all, so that two writers never wait for each other.
    for digest in sorted(columns):
        await _link(connection, project, columns[digest], links[digest])
    for identifier, one in packed.items():
        digests = {name: None if column is None else column.digest for name, column in one.columns.items()}
        sizes = None if one.fold_sizes is None else list(one.fold_sizes)
        row = {"project": project, "evaluation_id": identifier, "fold_sizes": sizes, **digests}
        await connection.execute(insert(evaluation_samples).values(row))


async def _link(connection: AsyncConnection, project: str, column: StoredColumn, number: int) -> None:
    here = same(sample_columns, project=project, digest=column.digest)
    more = sample_columns.c.links + number
    known = await connection.execute(update(sample_columns).where(*here).values(links=more))
    if known.rowcount == 0:
        row = {"project": project, "digest": column.digest, "links": number, "content": column.content}
        new = insert(sample_columns).values(row)
        await connection.execute(new.on_conflict_do_update(index_elements=["project", "digest"], set_={"links": more}))


async def add_report(connection: AsyncConnection, project: str, identifier: UUID, part: Mapping[str, Any]) -> None:
    """Keep what was said of samples that are not saved."""
    content = orjson.dumps(part)
    row = {"project": project, "evaluation_id": identifier, "content": content}
    await connection.execute(insert(probability_reports).values(row))


async def read_reports(
    connection: AsyncConnection, project: str, identifiers: Iterable[UUID]
) -> dict[UUID, Mapping[str, Any]]:
    """Return what was said of samples that are not saved, by evaluation."""
    columns = probability_reports.c
    wanted = select(probability_reports).where(columns.project == project, among(columns.evaluation_id, identifiers))
    return {row.evaluation_id: orjson.loads(row.content) for row in await connection.execute(wanted)}


async def remove_samples(connection: AsyncConnection, project: str, identifiers: Sequence[UUID]) -> None:
    """Remove what is saved of the samples of some evaluations, and every column that no other evaluation has."""
    theirs, reports = (
        delete(table).where(table.c.project == project, among(table.c.evaluation_id, identifiers))
        for table in (evaluation_samples, probability_reports)
    )
    rows = (await connection.execute(theirs.returning(*_DIGESTS))).all()
    links = Counter(digest for row in rows for digest in {one for one in row if one is not None})
    for digest in sorted(links):
        here = same(sample_columns, project=project, digest=digest)
        fewer = sample_columns.c.links - links[digest]
        await connection.execute(update(sample_columns).where(*here).values(links=fewer))
        await connection.execute(delete(sample_columns).where(*here, sample_columns.c.links <= 0))
    await connection.execute(reports)


def _unpacked(rows: Sequence[Mapping[str, Any]], contents: Mapping[bytes, bytes]) -> dict[UUID, Samples]:
    """Samples by evaluation, of the digests of their columns. A column that several have is unpacked once."""
    columns = {digest: unpack(content) for digest, content in contents.items()}
    found = {}
    for row in rows:
        parts: dict[str, Any] = {name: columns.get(row[name]) for name in COLUMN_NAMES if name in row}
        if parts.get("attributes") is not None:
            parts["attributes"] = Attributes.of_column(parts["attributes"])
        sizes = row["fold_sizes"]
        found[row["evaluation_id"]] = Samples(**parts, fold_sizes=None if sizes is None else tuple(sizes))
    return found


async def find_digests(
    connection: AsyncConnection, project: str, identifiers: Iterable[UUID], names: Sequence[str] = COLUMN_NAMES
) -> list[Mapping[str, Any]]:
    """Read the digests of some columns of the samples of some evaluations, and the sizes of folds."""
    columns = evaluation_samples.c
    chosen = select(columns.evaluation_id, columns.fold_sizes, *(columns[name] for name in names))
    wanted = chosen.where(columns.project == project, among(columns.evaluation_id, identifiers))
    return [dict(row) for row in (await connection.execute(wanted)).mappings()]


async def find_samples(
    connection: AsyncConnection, project: str, identifiers: Iterable[UUID], names: Sequence[str] = COLUMN_NAMES
) -> Callable[[], dict[UUID, Samples]]:
    """Read some columns of the samples of some evaluations; what is returned unpacks them, which can take a while."""
    rows = await find_digests(connection, project, identifiers, names)
    digests = {row[name] for row in rows for name in names if row[name] is not None}
    columns = sample_columns.c
    wanted = select(columns.digest, columns.content).where(columns.project == project, among(columns.digest, digests))
    return partial(_unpacked, rows, {row.digest: row.content for row in await connection.execute(wanted)})
