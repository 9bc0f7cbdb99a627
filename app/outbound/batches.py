"""Batches of an engine's answer: of even size, and checked to be in order."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np
import pyarrow as pa

from app.domain.errors import SpillFull
from app.kernel.streamed.along import pieces
from app.kernel.streamed.rows import BATCH_ROWS, EngineError, Table


def columns_of(table: pa.Table) -> Table:
    """Columns by name."""
    return {name: table.column(name).to_numpy() for name in table.column_names}


def even_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[Table]:
    """Batches of `BATCH_ROWS` rows but for the last, so that sums do not depend on how the engine reads."""
    waiting: list[pa.RecordBatch] = []
    size = 0
    for batch in batches:
        waiting.append(batch)
        size += batch.num_rows
        while size >= BATCH_ROWS:
            whole = pa.Table.from_batches(waiting)
            yield columns_of(whole.slice(0, BATCH_ROWS))
            waiting, size = whole.slice(BATCH_ROWS).to_batches(), size - BATCH_ROWS
    if size:
        yield columns_of(pa.Table.from_batches(waiting))


def in_order(batches: Iterable[Table], by: str) -> Iterator[Table]:
    """Batches, while they are in the order of a numeric column.

    Args:
        batches: Of rows.
        by: Name of a column, perhaps with ``DESC``.

    Raises:
        EngineError: they are not.
    """
    name, _, direction = by.partition(" ")
    sign = -1.0 if direction.upper().startswith("DESC") else 1.0
    last = -np.inf
    for batch in batches:
        along = sign * batch[name.strip('"')]
        if along.size and (along[0] < last or (np.diff(along) < 0).any()):
            raise EngineError("the engine gave rows out of order")
        last = along[-1] if along.size else last
        yield batch


# How names of files end that hold rows in an order.
_ORDER = ".order"
FULL = "expected rows that take at most PREVAIL_SPILL_BYTES in files; a filter chooses fewer"


class Spool:
    """Batches in a file, read from either end any number of times. The file goes with this.

    Args:
        batches: Columns of numbers.
        folder: Where the file is made.
        most_bytes: That all such files of the folder may take together.

    Raises:
        SpillFull: they take more.
    """

    def __init__(self, batches: Iterable[Table], folder: Path, most_bytes: int) -> None:
        self._parts: list[dict[str, tuple[int, np.dtype[Any], int]]] = []
        with NamedTemporaryFile(dir=folder, suffix=_ORDER, delete=False) as file:
            self._place = Path(file.name)
            for batch in batches:
                for some in pieces([batch]):
                    part = {}
                    for name, column in some.items():
                        part[name] = file.tell(), column.dtype, column.size
                        file.write(np.ascontiguousarray(column).data)
                    self._parts.append(part)
                if sum(one.stat().st_size for one in folder.glob(f"*{_ORDER}")) > most_bytes:
                    raise SpillFull(FULL)

    def __del__(self) -> None:
        self._place.unlink(missing_ok=True)

    def batches(self, *, back: bool = False) -> Iterator[Table]:
        """The rows as they came, or from the last one to the first, in small batches."""
        step = -1 if back else 1
        with self._place.open("rb") as file:
            for part in self._parts[::step]:
                found = {}
                for name, (start, kind, size) in part.items():
                    file.seek(start)
                    found[name] = np.fromfile(file, kind, size)[::step]
                yield found
