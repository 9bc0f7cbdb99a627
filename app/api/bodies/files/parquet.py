"""Parquet: its footer says how much each column holds, and that is asked before anything is unpacked."""

from collections.abc import Sequence
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet

from app.api.bodies.files.limits import MOST_COLUMNS, MOST_DESCRIPTION, check_bytes, check_description, check_names
from app.api.bodies.files.table import Table, TableFile, arrow_table, is_text

# The length of the footer and the last four bytes of every file.
_TAIL = 8
# Lists in the footer: columns of all row groups together.
_LONGEST_LIST = 1_000_000


def open_parquet(file: BinaryIO) -> TableFile:
    """The columns of a Parquet file."""
    end = file.seek(-_TAIL, 2)
    length = int.from_bytes(file.read(4), "little")
    if length <= end:
        # A footer longer than its file is refused by the reader in its own words.
        check_description(length)
    file.seek(0)
    schema = _parquet(file, ()).schema_arrow
    check_names(schema.names[: MOST_COLUMNS + 1])

    def load(labels: Sequence[str], numbers: Sequence[str]) -> Table:
        # Texts stay a dictionary as they are stored: one of 200 characters nine million times is one text.
        opened = _parquet(file, [name for name in labels if is_text(schema.field(name).type)])
        names = [*labels, *numbers]
        metadata = opened.metadata
        groups = [metadata.row_group(index) for index in range(metadata.num_row_groups)]
        wanted = {index for index in range(metadata.num_columns) if _top(opened, index) in names}
        check_bytes(
            sum(group.column(index).total_uncompressed_size for group in groups for index in wanted), "once unpacked"
        )

        def read(name: str) -> pa.ChunkedArray:
            return opened.read(columns=[name], use_threads=False).column(name)

        return arrow_table(metadata.num_rows, read, len(names))

    return TableFile(schema.names, load)


def _top(opened: pa.parquet.ParquetFile, index: int) -> str:
    """The name of the column that a leaf of the schema belongs to; names with a dot are quoted nowhere."""
    path: str = opened.schema.column(index).path
    name: str = opened.schema.column(index).name
    return path if path == name else path.partition(".")[0]


def _parquet(file: BinaryIO, texts: Sequence[str]) -> pa.parquet.ParquetFile:
    return pa.parquet.ParquetFile(
        file,
        read_dictionary=[*texts],
        pre_buffer=False,
        thrift_string_size_limit=MOST_DESCRIPTION,
        thrift_container_size_limit=_LONGEST_LIST,
    )
