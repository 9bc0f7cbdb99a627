"""Samples in Postgres: every column once per project, however many evaluations have it.

Two runs on one test set share its truth and its ids. A column counts the evaluations that have it, and goes with the
last of them. The count lies in the row itself, so that those who add and those who delete wait for each other there.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import orjson
from numpy.typing import NDArray
from sqlalchemy import ARRAY, LargeBinary, Uuid, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncConnection

from app.domain.inputs.samples import Samples
from app.services.ports import SampleLabels
from app.store.database.tables import evaluation_samples, probability_reports, sample_columns
from app.store.samples.columns import StoredColumn, pack, unpack

COLUMN_NAMES = ("truth", "predicted", "outputs", "ids", "weights", "groups")
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
        column: NDArray[Any] | None = getattr(samples, name)
        columns[name] = None if column is None else pack(column)
    return PackedSamples(columns, samples.fold_sizes)


async def add_samples(connection: AsyncConnection, project: str, identifier: UUID, packed: PackedSamples) -> None:
    """Write the samples of an evaluation; columns that are there already are only counted."""
    distinct = {column.digest: column for column in packed.columns.values() if column is not None}
    # In one order for all, so that two writers never wait for each other.
    for digest in sorted(distinct):
        await _link(connection, project, distinct[digest])
    digests = {name: None if column is None else column.digest for name, column in packed.columns.items()}
    sizes = None if packed.fold_sizes is None else list(packed.fold_sizes)
    row = {"project": project, "evaluation_id": identifier, "fold_sizes": sizes, **digests}
    await connection.execute(insert(evaluation_samples).values(row))


async def _link(connection: AsyncConnection, project: str, column: StoredColumn) -> None:
    here = (sample_columns.c.project == project, sample_columns.c.digest == column.digest)
    one_more = sample_columns.c.links + 1
    known = await connection.execute(update(sample_columns).where(*here).values(links=one_more))
    if known.rowcount == 0:
        row = {"project": project, "digest": column.digest, "links": 1, "content": column.content}
        new = insert(sample_columns).values(row)
        await connection.execute(
            new.on_conflict_do_update(index_elements=["project", "digest"], set_={"links": one_more})
        )


async def add_report(connection: AsyncConnection, project: str, identifier: UUID, part: Mapping[str, Any]) -> None:
    """Keep what was said of samples that are not kept."""
    content = orjson.dumps(part)
    row = {"project": project, "evaluation_id": identifier, "content": content}
    await connection.execute(insert(probability_reports).values(row))


async def read_report(connection: AsyncConnection, project: str, identifier: UUID) -> Mapping[str, Any] | None:
    """Return what was said of samples that are not kept."""
    columns = probability_reports.c
    wanted = select(columns.content).where(columns.project == project, columns.evaluation_id == identifier)
    content = await connection.scalar(wanted)
    if content is None:
        return None
    part: Mapping[str, Any] = orjson.loads(content)
    return part


async def remove_samples(connection: AsyncConnection, project: str, identifiers: Sequence[UUID]) -> None:
    """Remove what is kept of the samples of some evaluations, and every column that no other evaluation has."""
    columns, reports = evaluation_samples.c, probability_reports.c
    these = func.any(literal(list(identifiers), ARRAY(Uuid)))
    theirs = delete(evaluation_samples).where(columns.project == project, columns.evaluation_id == these)
    rows = (await connection.execute(theirs.returning(*_DIGESTS))).all()
    links = Counter(digest for row in rows for digest in {one for one in row if one is not None})
    for digest in sorted(links):
        here = (sample_columns.c.project == project, sample_columns.c.digest == digest)
        fewer = sample_columns.c.links - links[digest]
        await connection.execute(update(sample_columns).where(*here).values(links=fewer))
        await connection.execute(delete(sample_columns).where(*here, sample_columns.c.links <= 0))
    await connection.execute(
        delete(probability_reports).where(reports.project == project, reports.evaluation_id == these)
    )


@dataclass(frozen=True, slots=True, eq=False)
class FoundSamples:
    """Samples as they were read: the digests of each evaluation, and the columns they name."""

    rows: Sequence[Mapping[str, Any]]
    contents: Mapping[bytes, bytes]

    def samples(self) -> dict[UUID, Samples]:
        """Samples by evaluation; takes a while for many. A column that several have is unpacked once."""
        columns = {digest: unpack(content) for digest, content in self.contents.items()}
        found = {}
        for row in self.rows:
            parts = {name: columns.get(row[name]) for name in COLUMN_NAMES if name in row}
            sizes = row["fold_sizes"]
            identifier = UUID(int=row["evaluation_id"].int)
            found[identifier] = Samples(
                truth=columns[row["truth"]],
                predicted=columns[row["predicted"]],
                outputs=parts.get("outputs"),
                ids=parts.get("ids"),
                weights=parts.get("weights"),
                groups=parts.get("groups"),
                fold_sizes=None if sizes is None else tuple(sizes),
            )
        return found

    def labels(self) -> dict[UUID, SampleLabels]:
        """What pairs runs; not for evaluations without ids and weights."""
        labels = {identifier: SampleLabels.of(one) for identifier, one in self.samples().items()}
        return {identifier: one for identifier, one in labels.items() if one is not None}


async def find_samples(
    connection: AsyncConnection, project: str, identifiers: Iterable[UUID], names: Sequence[str] = COLUMN_NAMES
) -> FoundSamples:
    """Read some columns of the samples of some evaluations."""
    columns = evaluation_samples.c
    wanted = columns.evaluation_id == func.any(literal(list(identifiers), ARRAY(Uuid)))
    chosen = [columns[name] for name in names]
    statement = select(columns.evaluation_id, columns.fold_sizes, *chosen).where(columns.project == project, wanted)
    rows = [row._mapping for row in (await connection.execute(statement)).all()]
    digests = {row[name] for row in rows for name in names if row[name] is not None}
    named = sample_columns.c.digest == func.any(literal(list(digests), ARRAY(LargeBinary)))
    found = await connection.execute(
        select(sample_columns.c.digest, sample_columns.c.content).where(sample_columns.c.project == project, named)
    )
    return FoundSamples([dict(row) for row in rows], {row.digest: row.content for row in found})
