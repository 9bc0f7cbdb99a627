"""Batches of an engine's answer, of even size."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from app.kernel.streamed.rows import BATCH_ROWS, Table


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
