"""Which rows of files are read together, so that any process can read some of them: row groups of Parquet, and whole
files of all else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from app.domain.data import DataFile

# Of a piece, about: what is made of them travels, and waits in memory.
PIECE_ROWS: Final = 1 << 20
_PIECE_ENTRIES: Final = 1 << 23


@dataclass(frozen=True, slots=True)
class Piece:
    """Some rows of one file.

    Attributes:
        groups: Its row groups, from the first to behind the last; None: the file is read whole.
        rows: How many there are before a filter; None: the file does not say.
        start: Bytes of all files that are read before it, about.
        stop: The same with it.
        total: Bytes of all files.
    """

    file: DataFile
    groups: tuple[int, int] | None
    rows: int | None
    start: int
    stop: int
    total: int


def pieces_of(files: Sequence[tuple[DataFile, Sequence[int] | None]], columns: int, most: int) -> Iterator[Piece]:
    """All rows of all files, in their order.

    Args:
        files: Each with the rows of its row groups, or None where it has none.
        columns: How many are read.
        most: Rows of a piece, unless one row group has more.
    """
    most = min(most, max(_PIECE_ENTRIES // max(columns, 1), 1))
    total = max(sum(file.size for file, _ in files), 1)
    start = 0
    for file, groups in files:
        if not groups:
            yield Piece(file, None, None if groups is None else 0, start, start + file.size, total)
        else:
            all_rows, before = max(sum(groups), 1), 0
            for first, last in _together(groups, most):
                rows = sum(groups[first:last])
                begin, end = (start + file.size * place // all_rows for place in (before, before + rows))
                yield Piece(file, (first, last), rows, begin, end, total)
                before += rows
        start += file.size


def _together(groups: Sequence[int], most: int) -> Iterator[tuple[int, int]]:
    starts, taken = [0], 0
    for place, rows in enumerate(groups):
        if taken and taken + rows > most:
            starts.append(place)
            taken = 0
        taken += rows
    for first, last in pairwise([*starts, len(groups)]):
        if first < last:
            yield first, last
