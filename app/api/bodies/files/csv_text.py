"""CSV, read in blocks of a megabyte; rows are counted as they come."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from operator import and_
from typing import Any, BinaryIO, Self

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
from numpy.typing import NDArray

from app.api.bodies.files.limits import MOST_COLUMNS, check_names, check_rows, too_large
from app.api.bodies.files.table import Table, TableFile, arrow_table, coded_texts, refuse_many
from app.domain.errors import InvalidInput
from app.domain.inputs.labels import CodedTexts, Column

_BLOCK = 1 << 20
# As pandas and JSON write booleans.
_BOOLEANS = ({"True", "False"}, {"true", "false"})
_FRACTION = r"\.[0-9]*[1-9]"
_DECIMAL = r"^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]{1,3})?$"
# Whole numbers as columns with missing values have them in pandas.
_WHOLE = r"^-?(0|[1-9][0-9]{0,14})(\.0+)?$"


def open_csv(file: BinaryIO) -> TableFile:
    """The columns of a CSV file."""
    header = file.readline(_BLOCK)
    if len(header) == _BLOCK or header.count(b",") > 2 * MOST_COLUMNS:
        raise too_large(f"at most {MOST_COLUMNS} columns, got more, or a first line of more than {_BLOCK} bytes")
    file.seek(0)
    with _reader(file, {}) as reader:
        names = reader.schema.names
    check_names(names)

    def load(labels: Sequence[str], numbers: Sequence[str]) -> Table:
        # Labels and ids as texts: 007 is another id than 7.
        types = dict.fromkeys(labels, pa.string()) | dict.fromkeys(numbers, pa.float64())
        file.seek(0)
        batches, rows = [], 0
        try:
            with _reader(file, types) as reader:
                for batch in reader:
                    rows += batch.num_rows
                    check_rows(rows, len(types))
                    batches.append(batch)
                table = pa.Table.from_batches(batches, reader.schema)
        except pa.ArrowInvalid as error:
            if "conversion error to double" not in str(error):
                raise
            raise InvalidInput.at("/data", "not_numbers", f"expected numbers: {error}"[:300]) from None
        read = arrow_table(rows, table.column, len(types))
        return replace(
            read,
            labels=lambda name: as_written(table.column(name), name, ids=False),
            ids=lambda name: as_written(table.column(name), name, ids=True),
        )

    return TableFile(names, load)


def _reader(file: BinaryIO, types: dict[str, pa.DataType]) -> pa.csv.CSVStreamingReader:
    return pa.csv.open_csv(
        file,
        read_options=pa.csv.ReadOptions(use_threads=False, block_size=_BLOCK),
        convert_options=pa.csv.ConvertOptions(column_types=types, include_columns=[*types]),
    )


@dataclass(frozen=True, slots=True)
class Spelling:
    """How the texts of a column are written, which says what they are. Those of parts merge to that of all of them.

    Attributes:
        whole: All are whole numbers, perhaps with zeros behind the point.
        integers: All are integers as they are usually written.
        decimal: All are numbers.
        fraction: One has digits behind the point.
        booleans: All are booleans, in each way of writing them.
    """

    whole: bool = True
    integers: bool = True
    decimal: bool = True
    fraction: bool = False
    booleans: tuple[bool, ...] = (True,) * len(_BOOLEANS)

    @classmethod
    def of(cls, texts: pa.Array) -> Self:
        """That of different texts."""

        def all_match(pattern: str) -> bool:
            return bool(pc.all(pc.match_substring_regex(texts, pattern), min_count=0).as_py())

        try:
            integers = texts.cast(pa.int64()).cast(pa.string()).equals(texts)
        except pa.ArrowInvalid:
            integers = False
        fraction = pc.any(pc.match_substring_regex(texts, _FRACTION), min_count=0).as_py()
        booleans = tuple({*texts.to_pylist()} <= spelled for spelled in _BOOLEANS)
        return cls(all_match(_WHOLE), integers, all_match(_DECIMAL), fraction, booleans)

    @property
    def settled(self) -> bool:
        """Are they texts whatever other rows have?"""
        return not (self.whole or self.integers or self.decimal or any(self.booleans))

    def merged(self, other: "Spelling") -> "Spelling":
        """That of the texts of both."""
        return Spelling(
            self.whole and other.whole,
            self.integers and other.integers,
            self.decimal and other.decimal,
            self.fraction or other.fraction,
            tuple(map(and_, self.booleans, other.booleans)),
        )


def as_written(column: pa.ChunkedArray, name: str, *, ids: bool, spelling: Spelling | None = None) -> Column:
    """Labels written as integers, other numbers or booleans as such, so that 2 comes before 10; all others as texts.

    Integers with leading zeros or a plus sign stay texts, and so do ids unless they are whole: nothing of them is lost.
    Of a part of a column the spelling of all of it decides.
    """
    coded = coded_texts((column if ids else refuse_many(column, name)).dictionary_encode())
    texts = pa.array(coded.texts, pa.string())
    if not len(texts):
        return coded
    spelling = spelling or Spelling.of(texts)
    if spelling.whole:
        return _taken(texts.cast(pa.float64()).cast(pa.int64()), coded)
    if spelling.integers:
        return _taken(texts.cast(pa.int64()), coded)
    if ids:
        return coded
    if spelling.fraction and spelling.decimal:
        # Nobody's classes; whoever reads labels says so.
        return _taken(texts.cast(pa.float64()), coded)
    if any(spelling.booleans):
        return _taken(pa.array([text.lower() == "true" for text in coded.texts]), coded)
    return coded


def _taken(values: pa.Array, coded: CodedTexts) -> NDArray[Any]:
    column: NDArray[Any] = values.to_numpy(zero_copy_only=False)[coded.codes]
    return column
