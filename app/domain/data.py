"""Data that a request names instead of sending it: where it lies, and what was read of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

# Different groups of samples where there are more of these than memory holds.
MOST_GROUPS: Final = 1_000_000


class DataFormat(StrEnum):
    """How the files are written."""

    PARQUET = "parquet"
    ARROW = "arrow"
    CSV = "csv"


@dataclass(frozen=True, slots=True)
class DataReference:
    """What is to be read.

    Attributes:
        uri: A file, a folder, or a pattern of files.
        format: None: what the names of the files say.
        columns: By the name of the service the name in the files, or one for each class; None where they have the
            names of the service.
        filter: A condition on the rows.
    """

    uri: str
    format: DataFormat | None = None
    columns: Mapping[str, str | Sequence[str]] | None = None
    filter: str | None = None


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
class DataListing:
    """Files in the order in which they are read.

    Attributes:
        open: Opens the file of a path, to be read from any place, as a file of pyarrow.
    """

    files: tuple[DataFile, ...]
    open: Callable[[str], Any]


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
