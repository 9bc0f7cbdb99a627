"""Batches of an engine's answer: of even size, and checked to be in order."""

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa

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
