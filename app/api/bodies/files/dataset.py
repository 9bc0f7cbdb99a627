"""Files that lie elsewhere, read as if they were one that was sent: parts, a filter, and columns as batches of Arrow.

Columns are checked before any row is read: whoever picks columns is first given a table without rows.
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from itertools import pairwise
from operator import and_
from typing import Any, Final
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc

from app.api.bodies.files.counted import counted
from app.api.bodies.files.filters import Filter, read_filter
from app.api.bodies.files.table import (
    MOST_DESCRIPTION,
    FileColumns,
    Mapped,
    TableFile,
    bad_file,
    check_names,
    check_rows,
    check_start_of_csv,
    refuse_missing,
)
from app.api.bodies.files.written import MISSING, Spelling
from app.domain.data import DataFile, DataFormat, DataListing, DataReference
from app.domain.errors import BeyondMemory, InvalidInput, in_pointer
from app.domain.inputs.labels import listed, shown
from app.domain.inputs.samples import Tally
from app.services.ports import OpenEngine
from app.services.processes.worker import progressed

# Rows that are read before it is told how far that is, about.
_TOLD_ROWS: Final = 1 << 20


def _together(groups: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Row groups, from the first to behind the last, that are read together."""
    starts, taken = [0], 0
    for place, rows in enumerate(groups):
        if taken and taken + rows > _TOLD_ROWS:
            starts.append(place)
            taken = 0
        taken += rows
    return pairwise([*starts, len(groups)])


_WHOLE: Final = re.compile(r"[+-]?[0-9]{1,18}")
_BATCH_ROWS: Final = 1 << 17
_BATCH_ENTRIES: Final = 1 << 22
_CSV_BLOCK: Final = 1 << 20
_LONGEST_LIST: Final = 1_000_000
# What is loaded of a table: columns of labels, and of numbers.
Columns = tuple[Sequence[str], Sequence[str]]


@dataclass(slots=True)
class DataRows:
    """Rows that were read so far.

    Attributes:
        rows: That the filter lets through.
        tally: What each entry of the columns stands for, where rows that say the same are one entry.
    """

    rows: int = 0
    tally: Tally | None = None


@dataclass(frozen=True, slots=True)
class Nested:
    """Part of a column whose rows hold several values.

    Attributes:
        column: As it is in the files.
        place: In a list; of a struct the name of a field.
        size: Of each list.
    """

    column: str
    place: int | str
    size: int

    def of(self, column: pa.Array, before: int) -> pa.Array:
        """The values of a part; ``before`` rows of others come first.

        Raises:
            InvalidInput: a list is missing, or of another length.
        """
        refuse_missing(pa.chunked_array([column]), self.column, before)
        if isinstance(self.place, str):
            return pc.struct_field(column, [self.place])
        lengths = pc.list_value_length(column)
        wrong = pc.index(pc.not_equal(lengths, self.size), True).as_py()
        if wrong >= 0:
            raise bad_file(
                "wrong_length",
                f"expected {self.size} values in each row of {self.column!r}, one for each class, got "
                f"{lengths[wrong]} at row {before + wrong}",
            )
        values = column.flatten()
        return values.take(pa.array(np.arange(self.place, len(values), self.size)))


@dataclass(frozen=True, slots=True)
class Dataset:
    """Files of one form, opened one after another.

    Attributes:
        schema: Of all of them: every column that is needed has one type. Columns that names of folders say, and parts
            of columns that hold several values, are among them.
        columns: What the columns are called, where that is said: several where one holds several values.
        folders: What names of folders say (`day=2026-01-01`), by path.
        nested: Parts of columns that hold several values, by the names that they have here.
        condition: On their rows.
        memory_bytes: That columns may take.
        groups: Rows of the row groups of each file; None of files that have none.
        texts: Columns of CSV, whose texts say what they are.
        spellings: How columns of labels of CSV are written in all rows, by name, where these are some of them.
    """

    listing: DataListing
    form: DataFormat
    schema: pa.Schema
    condition: Filter | None
    memory_bytes: int
    groups: tuple[Sequence[int] | None, ...]
    columns: Mapped | None = None
    folders: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    nested: Mapping[str, Nested] = field(default_factory=dict)
    texts: frozenset[str] = frozenset()
    spellings: Mapping[str, Spelling] = field(default_factory=dict)
    read: DataRows = field(default_factory=DataRows)

    def _file(self, load: Callable[[Sequence[str], Sequence[str]], FileColumns]) -> TableFile:
        """Columns that are loaded so; those of the filter, and what names of folders say, are there for that alone."""
        aside = {*(self.condition.columns if self.condition else ()), *next(iter(self.folders.values()), ())}
        return TableFile(self.schema.names, load, frozenset(aside))

    def described(self) -> TableFile:
        """The columns without any row, of which it can be said whether they fit."""

        def load(labels: Sequence[str], numbers: Sequence[str]) -> FileColumns:
            # What is to be numbers has the type that it has: texts are none.
            found = [self.schema.field(name) for name in numbers if name not in labels]
            return self._table(pa.schema([*self.batch_schema(labels, ()), *found]).empty_table(), labels, numbers)

        return self._file(load)

    def file(self, most_rows: int) -> TableFile:
        """The columns with their rows.

        Raises:
            BeyondMemory: when it is loaded, if there are more rows, or they take more memory than columns may.
        """

        def load(labels: Sequence[str], numbers: Sequence[str]) -> FileColumns:
            self.read.rows = 0
            batches = self._within_memory((labels, numbers), most_rows)
            return self._table(pa.Table.from_batches(batches, self.batch_schema(labels, numbers)), labels, numbers)

        return self._file(load)

    def counted(self, engine: OpenEngine, *, grouped: bool) -> TableFile:
        """The different rows of the columns of predictions, perhaps with one of groups; `read.tally` says how many each
        is. Raises as `counted.counted` when it is loaded.
        """

        def load(labels: Sequence[str], numbers: Sequence[str]) -> FileColumns:
            weight = numbers[0] if numbers else None
            columns, named = (labels, numbers), 3 if grouped else 2
            self.read.rows = 0
            table, self.read.tally = counted(
                self.batches(columns), self.batch_schema(*columns), labels[:named], weight, engine, labels[named:]
            )
            return self._table(table, labels, numbers)

        return self._file(load)

    def loaded(self, pick: Callable[[TableFile], object]) -> Columns:
        """Columns of labels and of numbers that ``pick`` loads of a file of these columns."""
        asked: list[Columns] = []
        described = self.described()

        def load(labels: Sequence[str], numbers: Sequence[str]) -> FileColumns:
            asked.append(([*labels], [*numbers]))
            return described.load(labels, numbers)

        pick(replace(described, load=load))
        return asked[-1]

    def parts(self, columns: Columns) -> Iterator[TableFile]:
        """One file after another, each with some of the rows, for whoever loads these columns."""
        before = 0
        for batch in self.batches(columns):
            if batch.num_rows:
                yield self._file(partial(self._table, pa.Table.from_batches([batch]), before=before))
            before += batch.num_rows

    def spelled(self, columns: Columns) -> dict[str, Spelling]:
        """Spelling of columns of labels over all rows, where their type follows from it."""
        labels = [name for name in dict.fromkeys(columns[0]) if name in self.texts]
        found = dict.fromkeys(labels, ~Spelling(0))
        for batch in self.batches((labels, ())) if labels else ():
            for name in labels:
                found[name] &= Spelling.of(batch.column(name).unique().drop_null())
            if all(one.settled for one in found.values()):
                break
        self.read.rows = 0
        return found

    def rows_about(self) -> tuple[int, bool]:
        """Rows before the filter, and whether that is their number: of CSV it is reckoned from the first ones, of
        tables that do not say it from their size.
        """
        if self.listing.table is not None:
            known = self.listing.table.rows
            size = sum(file.size for file in self.listing.files)
            return (size // (8 * max(len(self.schema), 1)) if known is None else known), known is not None
        if self.form is DataFormat.PARQUET:
            return sum(sum(groups or ()) for groups in self.groups), True
        if self.form is DataFormat.ARROW:
            return sum(map(self._counted_rows, self.listing.files)), True
        with self.listing.open(self.listing.files[0].path) as opened:
            first = bytes(opened.read(_CSV_BLOCK))
        header, _, rows = first.partition(b"\n")
        # Each file has a header.
        size = sum(file.size - len(header) - 1 for file in self.listing.files)
        return round(size * rows.count(b"\n") / max(len(rows), 1)), False

    def _counted_rows(self, file: DataFile) -> int:
        with self.listing.open(file.path) as opened:
            return int(_format(self.form).make_fragment(opened).count_rows())

    def _table(self, table: pa.Table, labels: Sequence[str], numbers: Sequence[str], *, before: int = 0) -> FileColumns:
        check_rows(table.num_rows, len(labels) + len(numbers))
        written = {name: self.spellings.get(name) for name in labels if name in self.texts}
        return FileColumns(table.num_rows, table.column, before, written)

    def batch_schema(self, labels: Sequence[str], numbers: Sequence[str]) -> pa.Schema:
        """Return the schema of the batches. In CSV labels are texts and numbers are doubles, as in uploaded files."""
        kinds = {name: self.schema.field(name).type for name in dict.fromkeys([*labels, *numbers])}
        kinds |= {name: pa.float64() for name in numbers if name in self.texts}
        kinds |= {name: pa.string() for name in labels if name in self.texts}
        return pa.schema([*kinds.items()])

    def _within_memory(self, columns: Columns, most_rows: int) -> Iterator[pa.RecordBatch]:
        beyond = BeyondMemory(
            f"expected columns of at most {self.memory_bytes} bytes (PREVAIL_DATA_MEMORY_BYTES) and {most_rows} rows, "
            "got more: any number of rows is read of predictions, of multilabel, of rankings without weights, and of "
            "probabilities or scores with labels; of others a filter chooses some",
            pointer="/data",
        )
        # Nothing is read in vain where the files say how much they hold.
        rows = 0 if self.condition is not None else sum(sum(groups or ()) for groups in self.groups)
        if rows > most_rows:
            raise beyond
        taken = 0
        for batch in self.batches(columns):
            taken += batch.nbytes
            if taken > self.memory_bytes or self.read.rows > most_rows:
                raise beyond
            yield batch

    def batches(self, columns: Columns) -> Iterator[pa.RecordBatch]:
        """All rows that the condition lets through, file by file, and how far that is."""
        schema = self.batch_schema(*columns)
        plain = [one for one in schema if one.name not in self.nested]
        lists = dict.fromkeys(self.nested[name].column for name in schema.names if name in self.nested)
        own = [*plain, *(self.schema.field(name) for name in lists)]
        read = [one.name for one in own]
        beside = [] if self.condition is None else [n for n in self.condition.columns if n not in read]
        whole = pa.schema([*own, *(self.schema.field(name) for name in beside)])
        # Conditions are on values, also where labels are read as they are written.
        kinds = {name: self.schema.field(name).type for name in columns[0] if name in self.texts}
        meant = {name: kind for name, kind in kinds.items() if not pa.types.is_null(kind)}
        options = {
            "schema": whole,
            "columns": read,
            "filter": None if self.condition is None else self.condition.bound(whole, meant),
            "batch_size": min(_BATCH_ROWS, max(_BATCH_ENTRIES // len(whole), 1)),
            "batch_readahead": 4,
            "fragment_readahead": 1,
        }
        place, total = 0, max(sum(file.size for file in self.listing.files), 1)
        progressed(place, total)
        for file, groups in zip(self.listing.files, self.groups, strict=True):
            for batch in self._scanned(file, groups or (), options, partial(_told, place, file.size, total)):
                before = self.read.rows
                self.read.rows += batch.num_rows
                yield batch.select(schema.names) if not lists else self._unpacked(batch, schema, before)
            place += file.size

    def _scanned(
        self, file: DataFile, groups: Sequence[int], options: Mapping[str, Any], tell: Callable[[float], None]
    ) -> Iterator[pa.RecordBatch]:
        """Rows of one file, whose columns are not looked into; ``tell`` is told the share of it that was read."""
        if self.listing.table is not None:
            import pyarrow.dataset as ds

            own: pa.Schema = options["schema"]
            rows = (batch.select(own.names).cast(own) for batch in self.listing.table.batches(file.path, own.names))
            yield from ds.Scanner.from_batches(rows, **options).to_batches()
            tell(1.0)
            return
        if self.form is DataFormat.ARROW:
            yield from self._of_ipc(file, options)
            tell(1.0)
            return
        with self.listing.open(file.path) as opened:
            said = [pc.field(name) == value for name, value in self.folders.get(file.path, {}).items()]
            folders = reduce(and_, said) if said else None
            whole = _format(self.form).make_fragment(opened, partition_expression=folders)
            for first, last in _together(groups):
                chosen = whole.subset(row_group_ids=[*range(first, last)]) if groups else whole
                yield from chosen.scanner(**options).to_batches()
                tell(sum(groups[:last]) / sum(groups) if sum(groups) else 1.0)

    def _of_ipc(self, file: DataFile, options: Mapping[str, Any]) -> Iterator[pa.RecordBatch]:
        """Rows of an IPC file, one batch after another. Arrow's scanner reads ahead in threads that crash where whoever
        reads stops early, as for rows beyond memory.
        """
        own: pa.Schema = options["schema"]
        said, condition, size = self.folders.get(file.path, {}), options["filter"], options["batch_size"]
        with self.listing.open(file.path) as opened:
            names = pa.ipc.open_file(opened).schema.names
            chosen = pa.ipc.IpcReadOptions(included_fields=[names.index(name) for name in own.names if name in names])
            reader = pa.ipc.open_file(opened, options=chosen)
            for place in range(reader.num_record_batches):
                batch = reader.get_batch(place)
                # Arrow trusts what it reads: places of texts, for example, could lie outside of the file.
                batch.validate(full=True)
                for start in range(0, batch.num_rows, size):
                    some = batch.slice(start, size)
                    columns = [
                        some.column(name) if name in names else pa.repeat(pa.scalar(said[name]), some.num_rows)
                        for name in own.names
                    ]
                    rows = pa.RecordBatch.from_arrays(columns, own.names).cast(own)
                    rows = rows if condition is None else rows.filter(condition)
                    yield rows.select(options["columns"])

    def _unpacked(self, batch: pa.RecordBatch, schema: pa.Schema, before: int) -> pa.RecordBatch:
        found = []
        for one in schema:
            nested = self.nested.get(one.name)
            values = batch.column(one.name) if nested is None else nested.of(batch.column(nested.column), before)
            found.append(values.cast(one.type))
        return pa.RecordBatch.from_arrays(found, schema=schema)


def _told(place: int, size: int, total: int, share: float) -> None:
    """Tell that so much of a file is read, of so many bytes of all files; ``place`` bytes of others come first."""
    progressed(place + int(share * size), total)


def open_dataset(
    listing: DataListing,
    reference: DataReference,
    labels: Sequence[str] | None,
    memory_bytes: int,
    besides: Sequence[str] = (),
) -> Dataset:
    """The files, once it is known that their columns, with some ``besides`` those of the reference, fit each other.

    No row is read. ``labels`` are the classes, where they are declared.

    Raises:
        InvalidInput: a part lacks a column, or has it of another kind; the filter is none, or about other columns.
        OSError, ArrowException: a file cannot be read.
    """
    condition = None if reference.filter is None else read_filter(reference.filter)
    form = reference.format or _form_of(listing.files)
    table = listing.table
    described = [(table.schema, None) if table else _described(listing, file, form) for file in listing.files]
    schemas = [one for one, _ in described]
    asked = (reference.columns or {}).values()
    needed = [name for given in asked for name in ([given] if isinstance(given, str) else given)]
    beside = (*(condition.columns if condition else ()), *reference.attributes.values(), *besides)
    wanted = {*(needed or schemas[0].names), *beside}
    texts = form is DataFormat.CSV
    unified = _unified([name for name in schemas[0].names if name in wanted], schemas, listing, texts=texts)
    folders = {} if table else _said_by_folders(listing.files, {name for one in schemas for name in one.names})
    schema = pa.schema([unified.field(one.name) if one.name in wanted else one for one in schemas[0]])
    for name, value in next(iter(folders.values()), {}).items():
        schema = schema.append(pa.field(name, pa.scalar(value).type))
    columns, nested = _unnested(reference.columns, labels, schema)
    for name, one in nested.items():
        kind = schema.field(one.column).type
        schema = schema.append(pa.field(name, kind.value_type if _is_list(kind) else kind.field(one.place).type))
    if condition is not None:
        condition.bound(schema)
    groups = tuple(one for _, one in described)
    written = frozenset(schema.names) if texts else frozenset()
    return Dataset(listing, form, schema, condition, memory_bytes, groups, columns, folders, nested, written)


def _said_by_folders(files: Sequence[DataFile], present: Container[str]) -> dict[str, dict[str, Any]]:
    """Columns that names of folders say (`day=2026-01-01/`), by path: those that all files have and none holds.

    Whole numbers are such where all values of a column are.
    """
    found = {}
    for file in files:
        parts = [part.partition("=") for part in file.path.split("/")[:-1]]
        found[file.path] = {name: unquote(value) for name, sign, value in parts if sign and name and value}
    common = [name for name in next(iter(found.values())) if all(name in one for one in found.values())]
    kept = [name for name in common if name not in present]
    whole = {name for name in kept if all(_WHOLE.fullmatch(one[name]) for one in found.values())}
    return {
        path: {name: int(said[name]) if name in whole else said[name] for name in kept} for path, said in found.items()
    }


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _unnested(
    columns: Mapped | None, labels: Sequence[str] | None, schema: pa.Schema
) -> tuple[Mapped | None, dict[str, Nested]]:
    """Names of columns with one for each class in place of one that holds a list or a struct, and what these are.

    Raises:
        InvalidInput: it does not hold one value for each class that is declared.
    """
    found: dict[str, Nested] = {}
    named: dict[str, str | Sequence[str]] = {}
    for ours, theirs in (columns or {}).items():
        named[ours] = theirs
        kind = schema.field(theirs).type if isinstance(theirs, str) and theirs in schema.names else None
        if kind is None or not isinstance(theirs, str) or not (_is_list(kind) or pa.types.is_struct(kind)):
            continue
        where, classes = f"/input/columns/{in_pointer(ours)}", labels or ()
        fields = [field.name for field in kind] if pa.types.is_struct(kind) else None
        size = kind.list_size if pa.types.is_fixed_size_list(kind) else len(classes)
        if not classes or size != len(classes):
            detail = f"expected a value for each class that labels declares in {theirs!r}, which holds {kind}"
            raise InvalidInput.at(where, "wrong_length", detail)
        if fields is not None and not {*classes} <= {*fields}:
            detail = f"expected fields called as the classes in {theirs!r}, there are {listed(fields)}"
            raise InvalidInput.at(where, "missing_column", detail)
        parts = {f"{theirs}[{label}]": label for label in classes}
        named[ours] = [*parts]
        for place, (name, label) in enumerate(parts.items()):
            found[name] = Nested(theirs, place if fields is None else label, size)
    return (None if columns is None else named), found


_ENDS: Final = {
    **dict.fromkeys(("parquet", "pq"), DataFormat.PARQUET),
    **dict.fromkeys(("arrow", "feather", "ipc"), DataFormat.ARROW),
    "csv": DataFormat.CSV,
}


def _form_of(files: Sequence[DataFile]) -> DataFormat:
    """Return the format of files by the ends of their names."""
    found = {_ENDS.get(file.path.rpartition(".")[2].lower()) for file in files}
    form = found.pop()
    if form is None or found:
        detail = "expected parquet, arrow or csv: the names of the files do not say which of them all are"
        raise InvalidInput.at("/input/data/format", "missing_field", detail)
    return form


def _described(listing: DataListing, file: DataFile, form: DataFormat) -> tuple[pa.Schema, list[int] | None]:
    """The columns of a file, and how many rows each of its row groups has."""
    with listing.open(file.path) as opened:
        if form is DataFormat.CSV:
            check_start_of_csv(opened.read(_CSV_BLOCK))
            opened.seek(0)
        fragment = _format(form).make_fragment(opened)
        schema = fragment.physical_schema
        groups = [group.num_rows for group in fragment.row_groups] if form is DataFormat.PARQUET else None
    check_names(schema.names)
    return schema, groups


def _unified(names: Sequence[str], schemas: Sequence[pa.Schema], listing: DataListing, *, texts: bool) -> pa.Schema:
    """Columns that every part has, in types that hold what all of them have. With ``texts``, as of CSV, columns without
    such a type are texts: the type of a part of a CSV is only what its first rows look like.
    """
    found = {name: schemas[0].field(name).type for name in names}
    for schema, file in zip(schemas, listing.files, strict=True):
        part = shown(file.path.rpartition("/")[2])
        absent = next((name for name in names if name not in schema.names), None)
        if absent is not None:
            raise bad_file("missing_column", f"expected a column {absent!r} in every file, there is none in {part}")
        for name in names:
            both = [pa.schema([(name, kind)]) for kind in (found[name], schema.field(name).type)]
            try:
                found[name] = pa.unify_schemas(both, promote_options="permissive").field(0).type
            except pa.ArrowException as error:
                if not texts:
                    detail = f"expected the types of the files before in {part}: {error}"
                    raise bad_file("wrong_type", detail) from None
                found[name] = pa.string()
    return pa.schema([*found.items()])


def _format(form: DataFormat) -> Any:
    # Imported when it is used: it takes a tenth of the time in which a service starts.
    import pyarrow.dataset as ds

    if form is DataFormat.PARQUET:
        limits = ds.ParquetFragmentScanOptions(
            thrift_string_size_limit=MOST_DESCRIPTION, thrift_container_size_limit=_LONGEST_LIST
        )
        return ds.ParquetFileFormat(default_fragment_scan_options=limits)
    if form is DataFormat.ARROW:
        return ds.IpcFileFormat()
    return ds.CsvFileFormat(
        default_fragment_scan_options=ds.CsvFragmentScanOptions(
            read_options=pa.csv.ReadOptions(block_size=_CSV_BLOCK, use_threads=False),
            convert_options=pa.csv.ConvertOptions(**MISSING),
        )
    )
