"""Rows of files written down once: with columns of other files joined by an id, or with those of many models."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from app.api.bodies.files.dataset import Columns, Dataset
from app.api.bodies.files.table import Mapped, canonical, held, is_text, refuse_missing
from app.api.bodies.files.written import Spelling, as_written
from app.domain.data import DataFile, DataFormat, DataListing
from app.domain.errors import InvalidInput, SpillFull, moved_faults
from app.domain.inputs.labels import shown
from app.services.evaluate.streamed.joined import ID, LABEL_PLACE, ON, PLACE, Batches, joined
from app.services.ports import Engine, OpenEngine
from app.services.processes.worker import each_as_step

_THERE: Final = "/input/data/labels/data"
# Rows that are written, and read again, together.
_GROUP_ROWS: Final = 1 << 17


@dataclass(frozen=True, slots=True)
class Joined:
    """Rows of some files with columns of others, which have one row for each id, by a column of ids here and there.

    Attributes:
        there: None where nothing is joined.
        gaps: Columns of the rows in which values may be missing.
    """

    here: Dataset
    there: Dataset | None = None
    on: tuple[str, str] = ("", "")
    gaps: frozenset[str] = frozenset()

    def whole(self) -> Dataset:
        """Columns of both, without any row."""
        here, there = self.here, self.there
        schema, texts = here.schema, here.texts
        if there is not None:
            for one in there.schema:
                schema = schema.append(one.with_name(self._own(one.name)))
            texts |= {self._own(name) for name in there.texts}
        return Dataset(DataListing((), _open), DataFormat.PARQUET, schema, None, here.memory_bytes, (), {}, texts=texts)

    def named(self, columns: Mapped) -> dict[str, str | Sequence[str]]:
        """Names of columns of the other files, as they are in `whole`."""
        return {
            ours: self._own(theirs) if isinstance(theirs, str) else [*map(self._own, theirs)]
            for ours, theirs in columns.items()
        }

    def written(self, columns: Columns, engine: Engine, folder: Path, file: Path, most_bytes: int) -> int:
        """Write some columns of `whole` to one file of Parquet, in the order of the rows; returns rows of the others.

        Raises:
            InvalidInput: a row has no value, or ids are missing, doubled or of another type.
            SpillFull: the file takes more than it may.
            EngineError: the engine has no room for the rows.
        """
        kinds = {one.name: canonical(one.type) for one in self.whole().batch_schema(*columns)}
        if self.there is None:
            own = ({name: held(batch.column(name)) for name in kinds} for batch in self.here.batches(columns))
            _write(file, kinds, own, most_bytes)
            return 0
        with engine.opened(folder) as opened:
            _write(file, kinds, self._joined(self.there, columns, kinds, opened), most_bytes)
        return self.there.read.rows

    def _joined(
        self, there: Dataset, columns: Columns, kinds: Mapping[str, pa.DataType], engine: OpenEngine
    ) -> Iterator[Mapping[str, Any]]:
        # What columns are called in the engine, which has some of its own.
        short = {name: f"c{place}" for place, name in enumerate(kinds)}
        ids, others = _Ids.of(self.here, self.on[0]), _Ids.of(there, self.on[1])
        if ids.kind != others.kind:
            here, elsewhere = ("string" if is_text(one.kind) else one.kind for one in (ids, others))
            raise InvalidInput.at(
                ON,
                "wrong_type",
                f"expected ids of one type, got {here} in {shown(self.on[0])} of the samples and {elsewhere} in "
                f"{shown(self.on[1])} of the labels",
            )

        def side(ids: _Ids, place: str, ours: Mapping[str, str]) -> Batches:
            labels, numbers = ([ours[name] for name in one if name in ours] for one in columns)
            chosen = {name: ours[name] for name in kinds if name in ours}
            # Numbers that are missing would come back as NaN.
            fields = [(short[name], pa.large_string() if name in self.gaps else kinds[name]) for name in chosen]
            schema = pa.schema([(ID, ids.kind), (place, pa.int64()), *fields])
            return schema, _rows(ids, (labels, numbers), [*chosen.values()], schema, self.gaps)

        samples = side(ids, PLACE, {name: name for name in self.here.schema.names})
        schema, rows = side(others, LABEL_PLACE, {self._own(name): name for name in there.schema.names})
        labels = schema, each_as_step(1, 3, _of_labels(rows))
        for table in joined(engine, (samples[0], each_as_step(0, 3, samples[1])), labels):
            yield {name: table[short[name]] for name in kinds}

    def _own(self, name: str) -> str:
        """The name in `whole` of a column of the other files."""
        return f"{name} of the labels" if name in self.here.schema.names else name


@dataclass(frozen=True, slots=True)
class _Ids:
    """A column of ids, read as what all its rows say that it is."""

    data: Dataset
    name: str
    kind: pa.DataType
    spelling: Spelling | None

    @classmethod
    def of(cls, data: Dataset, name: str) -> "_Ids":
        spelling = data.spelled(([name], ())).get(name)
        if spelling is None:
            kind = canonical(data.schema.field(name).type)
            return cls(data, name, pa.int64() if pa.types.is_integer(kind) else kind, None)
        whole = spelling & (Spelling.WHOLE | Spelling.INTEGERS)
        return cls(data, name, pa.int64() if whole else pa.large_string(), spelling)

    def read(self, column: pa.Array) -> pa.Array:
        if self.spelling is None:
            return held(column).cast(self.kind)
        found = as_written(pa.chunked_array([column]), ids=True, spelling=self.spelling)
        return found.cast(self.kind) if isinstance(found, pa.Array) else pa.array(found, self.kind)


def _rows(
    ids: _Ids, columns: Columns, chosen: Sequence[str], schema: pa.Schema, gaps: frozenset[str]
) -> Iterator[pa.RecordBatch]:
    """Ids, places and columns of all rows."""
    before, (labels, numbers) = 0, columns
    for batch in ids.data.batches(([*labels, ids.name], numbers)):
        for name in (name for name in batch.schema.names if name == ids.name or name not in gaps):
            refuse_missing(pa.chunked_array([batch.column(name)]), name, before)
        places = pa.array(np.arange(before, before + batch.num_rows))
        before += batch.num_rows
        arrays = [ids.read(batch.column(ids.name)), places, *(held(batch.column(name)) for name in chosen)]
        cast = [array.cast(one.type) for array, one in zip(arrays, schema, strict=True)]
        yield pa.RecordBatch.from_arrays(cast, schema=schema)


def _of_labels(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Batches, whose faults are told of the labels."""
    with moved_faults(partial(replace, pointer=_THERE)):
        yield from batches


def _write(file: Path, kinds: Mapping[str, pa.DataType], tables: Iterable[Mapping[str, Any]], most_bytes: int) -> None:
    from pyarrow.parquet import ParquetWriter

    with ParquetWriter(file, pa.schema([*kinds.items()])) as writer:
        for table in tables:
            arrays = [pa.array(table[name]).cast(kind) for name, kind in kinds.items()]
            writer.write_table(pa.table(arrays, names=[*kinds]), _GROUP_ROWS)
            if file.stat().st_size > most_bytes:
                raise SpillFull("expected columns that take at most PREVAIL_SPILL_BYTES in a file")


def _open(path: str) -> Any:
    return pa.OSFile(path)


def listing_of(file: Path) -> DataListing:
    """The listing of a file that was written."""
    return DataListing((DataFile(str(file), file.stat().st_size, ""),), _open)
