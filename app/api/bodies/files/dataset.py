"""Files that lie elsewhere, read as if they were one that was sent: parts, a filter, and columns as batches of Arrow.

What the columns need to be is known before any row is read: whoever picks columns is first given a table without rows.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.dataset as ds
from numpy.typing import NDArray

from app.api.bodies.files.csv_text import IDS, as_written
from app.api.bodies.files.filters import Filter, read_filter
from app.api.bodies.files.limits import MOST_DESCRIPTION, MOST_ROWS, check_names
from app.api.bodies.files.table import Table, TableFile, arrow_table, is_text, refuse_missing
from app.domain.data import DataFile, DataFormat, DataListing, DataReference
from app.domain.errors import BeyondMemory, InvalidInput
from app.domain.inputs.labels import shown
from app.domain.inputs.matrices import MOST_CLASSES
from app.services.processes.progress import progressed

_BATCH_ROWS: Final = 1 << 17
# Row groups are read together up to so many rows.
_PIECE_ROWS: Final = 1 << 20
_CSV_BLOCK: Final = 1 << 20
_LONGEST_LIST: Final = 1_000_000
# Pairs of labels that are gathered before they are counted together.
_MOST_PAIRS: Final = (MOST_CLASSES + 100) ** 2
_TIMES: Final = "times"


@dataclass(slots=True)
class DataRows:
    """What was read so far.

    Attributes:
        rows: That the filter lets through.
        times: (n) how many rows each entry of the columns stands for, where rows that say the same are one entry.
    """

    rows: int = 0
    times: NDArray[np.int64] | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """Files of one form, opened one after another.

    Attributes:
        schema: Of all of them: every column that is needed has one type.
        condition: On their rows.
        memory_bytes: That columns may take.
    """

    listing: DataListing
    form: DataFormat
    schema: pa.Schema
    condition: Filter | None
    memory_bytes: int
    read: DataRows = field(default_factory=DataRows)

    def names(self, *, mapped: bool) -> list[str]:
        """The columns; without a mapping those of the filter are for the filter only."""
        aside = () if mapped or self.condition is None else self.condition.columns
        return [name for name in self.schema.names if name not in aside]

    def described(self, *, mapped: bool) -> TableFile:
        """The columns without any row, of which it can be said whether they fit."""

        def load(labels: Sequence[str], numbers: Sequence[str]) -> Table:
            # What is to be numbers has the type that it has: texts are none.
            found = [self.schema.field(name) for name in numbers if name not in labels]
            return self._table(pa.schema([*self._schema(labels, ()), *found]).empty_table(), labels, numbers)

        return TableFile(self.names(mapped=mapped), load)

    def file(self, *, mapped: bool, counted: bool) -> TableFile:
        """The columns with their rows; ``counted``: rows that say the same are one entry, and `read.times` says how
        many each is.
        """

        def load(labels: Sequence[str], numbers: Sequence[str]) -> Table:
            self.read.rows = 0
            batches = self._batches(labels, numbers)
            schema = self._schema(labels, numbers)
            if counted and labels and not numbers:
                table = _counted(batches, schema)
                self.read.times = table.column(_TIMES).to_numpy()
            else:
                table = pa.Table.from_batches(self._within_memory(batches), schema)
            return self._table(table, labels, numbers)

        return TableFile(self.names(mapped=mapped), load)

    def parts(self, pick: Callable[[TableFile], object], *, mapped: bool) -> Iterator[TableFile]:
        """One file after another, each with some of the rows; ``pick`` loads what is needed of one."""
        asked: list[tuple[Sequence[str], Sequence[str]]] = []
        described = self.described(mapped=mapped)

        def load(labels: Sequence[str], numbers: Sequence[str]) -> Table:
            asked.append((labels, numbers))
            return described.load(labels, numbers)

        pick(TableFile(described.names, load))
        self.read.rows = 0
        for batch in self._batches(*asked[-1]):
            if batch.num_rows:
                yield TableFile(described.names, partial(self._table, pa.Table.from_batches([batch])))

    def _table(self, table: pa.Table, labels: Sequence[str], numbers: Sequence[str]) -> Table:
        read = arrow_table(table.num_rows, table.column, len(labels) + len(numbers))
        if self.form is not DataFormat.CSV:
            return read

        def written(name: str) -> Any:
            return as_written(refuse_missing(table.column(name), name).dictionary_encode(), ids=name in IDS)

        return Table(read.rows, written, read.numbers, read.matrix, read.flags)

    def _schema(self, labels: Sequence[str], numbers: Sequence[str]) -> pa.Schema:
        """Of the batches: of CSV labels are texts and numbers are doubles, as in files that are sent."""
        kinds = {name: self.schema.field(name).type for name in dict.fromkeys([*labels, *numbers])}
        if self.form is DataFormat.CSV:
            kinds |= dict.fromkeys(numbers, pa.float64()) | dict.fromkeys(labels, pa.string())
        return pa.schema([*kinds.items()])

    def _within_memory(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        taken = 0
        for batch in batches:
            taken += batch.nbytes
            if taken > self.memory_bytes or self.read.rows > MOST_ROWS:
                raise BeyondMemory(
                    f"expected columns of at most {self.memory_bytes} bytes (PREVAIL_DATA_MEMORY_BYTES) and "
                    f"{MOST_ROWS} rows, got more: any number of rows is read of predictions, and of probabilities with "
                    "labels, without ids, groups and weights; of others a filter chooses some",
                    pointer="/data",
                )
            yield batch

    def _batches(self, labels: Sequence[str], numbers: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """All rows that the condition lets through, file by file, and how far that is."""
        schema = self._schema(labels, numbers)
        beside = [] if self.condition is None else [n for n in self.condition.columns if n not in schema.names]
        whole = pa.schema([*schema, *(self.schema.field(name) for name in beside)])
        condition = None if self.condition is None else self.condition.bound(whole)
        total = max(sum(file.size for file in self.listing.files), 1)
        before = 0
        for file in self.listing.files:
            with self.listing.open(file.path) as opened:
                for part, scanner in self._scanners(opened, whole, schema.names, condition):
                    progressed(before + round(part * file.size), total)
                    for batch in scanner.to_batches():
                        if self.form is DataFormat.ARROW:
                            # Arrow trusts what it reads: places of texts, for example, could lie outside of the file.
                            batch.validate(full=True)
                        self.read.rows += batch.num_rows
                        yield batch.select(schema.names)
            before += file.size
        progressed(total, total)

    def _scanners(
        self, opened: Any, schema: pa.Schema, names: Sequence[str], condition: pc.Expression | None
    ) -> Iterator[tuple[float, ds.Scanner]]:
        """What reads each piece of a file, and how much of the file lies before it."""
        fragment = _format(self.form).make_fragment(opened)
        pieces = [(0.0, fragment)]
        if self.form is DataFormat.PARQUET:
            pieces = [*_of_row_groups(fragment)]
        for part, piece in pieces:
            yield (
                part,
                piece.scanner(
                    schema=schema,
                    columns=[*names],
                    filter=condition,
                    batch_size=_BATCH_ROWS,
                    batch_readahead=4,
                    fragment_readahead=1,
                ),
            )


def _of_row_groups(fragment: Any) -> Iterator[tuple[float, Any]]:
    sizes = [group.num_rows for group in fragment.row_groups]
    whole = max(sum(sizes), 1)
    starts, taken = [0], 0
    for place, size in enumerate(sizes):
        if taken and taken + size > _PIECE_ROWS:
            starts.append(place)
            taken = 0
        taken += size
    for start, stop in pairwise([*starts, len(sizes)]):
        if start < stop:
            yield sum(sizes[:start]) / whole, fragment.subset(row_group_ids=[*range(start, stop)])


def open_dataset(listing: DataListing, reference: DataReference, needed: Sequence[str], memory_bytes: int) -> Dataset:
    """The files, once it is known that their columns fit each other; no row is read.

    Args:
        listing: The files.
        reference: What is asked for.
        needed: The columns that are read, by their names in the files; all of them where none is named.
        memory_bytes: That columns may take.

    Raises:
        InvalidInput: a part lacks a column, or has it of another kind; the filter is none, or about other columns.
        OSError, ArrowException: a file cannot be read.
    """
    condition = None if reference.filter is None else read_filter(reference.filter)
    schemas = [_described(listing, file, reference.format) for file in listing.files]
    names = {*(needed or schemas[0].names), *(condition.columns if condition else ())}
    schema = pa.schema([_of_all(one, schemas, listing) if one.name in names else one for one in schemas[0]])
    if condition is not None:
        condition.bound(schema)
    return Dataset(listing, reference.format, schema, condition, memory_bytes)


def _described(listing: DataListing, file: DataFile, form: DataFormat) -> pa.Schema:
    with listing.open(file.path) as opened:
        schema = _format(form).make_fragment(opened).physical_schema
    check_names(schema.names)
    return schema


def _of_all(found: pa.Field, schemas: Sequence[pa.Schema], listing: DataListing) -> pa.Field:
    """A column that every part has, in a type that holds what all of them have."""
    name = found.name
    for schema, file in zip(schemas, listing.files, strict=True):
        part = file.path.rpartition("/")[2]
        if name not in schema.names:
            raise InvalidInput.at(
                "/data", "missing_column", f"expected a column {name!r} in every file, there is none in {shown(part)}"
            )
        try:
            merged = pa.unify_schemas(
                [pa.schema([found]), pa.schema([schema.field(name)])], promote_options="permissive"
            )
        except pa.ArrowException:
            raise InvalidInput.at(
                "/data",
                "wrong_type",
                f"expected {found.type} in the column {name!r} as in the files before, got {schema.field(name).type} "
                f"in {shown(part)}",
            ) from None
        found = merged.field(0)
    return pa.field(name, found.type)


def _format(form: DataFormat) -> ds.FileFormat:
    if form is DataFormat.PARQUET:
        limits = ds.ParquetFragmentScanOptions(
            thrift_string_size_limit=MOST_DESCRIPTION, thrift_container_size_limit=_LONGEST_LIST
        )
        return ds.ParquetFileFormat(default_fragment_scan_options=limits)
    if form is DataFormat.ARROW:
        return ds.IpcFileFormat()
    return ds.CsvFileFormat(
        default_fragment_scan_options=ds.CsvFragmentScanOptions(
            read_options=pa.csv.ReadOptions(block_size=_CSV_BLOCK, use_threads=False)
        )
    )


def _counted(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> pa.Table:
    """The different rows, and a column `times` with how often each occurs: as much memory as there are of them."""
    names = schema.names
    plain = pa.schema([(name, _countable(schema.field(name).type)) for name in names])
    whole = pa.schema([*plain, (_TIMES, pa.int64())])
    gathered = whole.empty_table()
    before = 0
    for batch in batches:
        for name in names:
            refuse_missing(pa.chunked_array([batch.column(name)]), name, before)
        before += batch.num_rows
        table = pa.Table.from_batches([batch]).cast(plain)
        found = table.group_by(names, use_threads=False).aggregate([([], "count_all")])
        joined = pa.concat_tables([gathered, found.select([*names, "count_all"]).rename_columns(whole.names)])
        summed = joined.group_by(names, use_threads=False).aggregate([(_TIMES, "sum")])
        gathered = summed.select([*names, f"{_TIMES}_sum"]).rename_columns(whole.names)
        if gathered.num_rows > _MOST_PAIRS:
            raise InvalidInput.at(
                "/data",
                "too_many_classes",
                f"expected at most {MOST_CLASSES} classes, got {_MOST_PAIRS} pairs of labels",
            )
    return gathered


def _countable(kind: pa.DataType) -> pa.DataType:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.large_string() if is_text(kind) else kind
