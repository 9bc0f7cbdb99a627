"""Data that a request names instead of sending it: where it lies, and what was read of it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

# Different groups of samples where there are more of these than memory holds.
MOST_GROUPS: Final = 1_000_000


class DataFormat(StrEnum):
    """The file formats that are read, and the tables that say which rows of their files there are."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"
    DELTA = "delta"
    ICEBERG = "iceberg"

    @property
    def is_table(self) -> bool:
        """Does a log beside the files say which of their rows there are?"""
        return self in (DataFormat.DELTA, DataFormat.ICEBERG)


@dataclass(frozen=True, slots=True)
class DataReference:
    """A reference to data that the service reads itself.

    Attributes:
        uri: A file, a folder, or a pattern of files; the folder of a table, or a file of Iceberg metadata.
        format: None: what the names of the files say.
        columns: By the name of the service the name in the files, or one for each class; None where they have the
            names of the service.
        filter: A condition on the rows.
        version: Of a Delta table, or a snapshot of Iceberg; None: the present one.
        labels: What is joined to the rows.
        attributes: Names of columns in the files by the attributes of samples that they hold, which slices are made of.
    """

    uri: str
    format: DataFormat | None = None
    columns: Mapping[str, str | Sequence[str]] | None = None
    filter: str | None = None
    version: int | None = None
    labels: "LabelReference | None" = None
    attributes: Mapping[str, str] = field(default_factory=dict)

    @property
    def parts(self) -> tuple["DataReference", ...]:
        """All that is read: this, and what is joined to it."""
        return (self,) if self.labels is None else (self, self.labels.data)


@dataclass(frozen=True, slots=True)
class LabelReference:
    """Columns of other files, joined by an id.

    Attributes:
        data: Files with one row for each id.
        on: The column of ids of the samples, and that of these files.
    """

    data: DataReference
    on: tuple[str, str]


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file, as it was when it was listed.

    Attributes:
        path: As its place of storage has it.
        version: Changes when the file does: the moment of the last change, or the `ETag` of HTTP.
    """

    path: str
    size: int
    version: str


@dataclass(frozen=True, slots=True)
class DataTable:
    """A version of a table that is more than its files.

    Attributes:
        version: Of a Delta table; a snapshot of Iceberg.
        schema: Of pyarrow.
        rows: How many there are; None where it does not say.
        batches: Batches of pyarrow with the rows of a file that are there, of some columns.
    """

    version: int
    schema: Any
    rows: int | None
    batches: Callable[[str, Sequence[str]], Iterable[Any]]


@dataclass(frozen=True, slots=True)
class DataListing:
    """Files in the order in which they are read.

    Attributes:
        open: Opens the file of a path, to be read from any place, as a file of pyarrow.
        table: What they are files of; None where they are all there is.
    """

    files: tuple[DataFile, ...]
    open: Callable[[str], Any]
    table: DataTable | None = None


@dataclass(frozen=True, slots=True)
class DataEstimate:
    """Size of data that a request names, and how long its evaluation takes, about.

    Attributes:
        rows: Before the filter.
        rows_known: False: reckoned from the first rows of CSV.
        files: That are read.
        bytes: Of these files.
        streamed: Are rows streamed, and not held in memory?
        seconds: From the start of the job, for two processors, within a factor of three or so; without what is
            resampled.
    """

    rows: int
    rows_known: bool
    files: int
    bytes: int
    streamed: bool
    seconds: float
