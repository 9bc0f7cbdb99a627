"""Rows of a query, whatever engine answers it: the questions of `app.kernel.streamed.rows.Rows` as SQL of DuckDB."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from app.domain.errors import SpillFull
from app.kernel.streamed.rows import BATCH_ROWS, EngineError, Rows, Table
from app.kernel.streamed.spool import SPOOL, Spool

FULL = "expected rows that take at most PREVAIL_SPILL_BYTES in files; a filter chooses fewer"


class SqlEngine(Protocol):
    """Answers queries.

    Attributes:
        threads: That may look at rows beside each other.
        own: Folder of its files.
        spill_bytes: That all orders in files may take.
        sum_of_reals: The name of its best sum of numbers that are not whole.
    """

    threads: int
    own: Path
    spill_bytes: int
    sum_of_reals: str

    def columns(self, query: str) -> Mapping[str, str]:
        """Types of the columns of a query by name."""

    def table(self, query: str) -> Table:
        """A small answer whole."""

    def batches(self, *queries: str) -> Iterator[Table]:
        """Large answers, one after the other, in their order and in even batches."""

    def keep(self, query: str) -> "SqlRows":
        """Rows of a query, written once."""

    def n_sorted(self, rows: "SqlRows", n_columns: int) -> int:
        """Number of parts in which rows with so many columns are sorted."""


class SqlRows(Rows):
    """Rows of a query; see `app.kernel.streamed.rows.Rows`."""

    def __init__(self, engine: SqlEngine, query: str) -> None:
        self._engine, self._query = engine, query

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return [*self._engine.columns(self._query)]

    @property
    def threads(self) -> int:
        """Number of threads of the engine."""
        return self._engine.threads

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._engine.table(f"SELECT count(*) AS n FROM ({self._query})")["n"][0])

    def having(self, **columns: str) -> "SqlRows":
        """Rows with more columns."""
        kept = [quoted(name) for name in self.names if name not in columns]
        made = [f"({expression}) AS {quoted(name)}" for name, expression in columns.items()]
        return self._of(f"SELECT {', '.join([*kept, *made])} FROM ({self._query})")

    def where(self, condition: str) -> "SqlRows":
        """Rows for which a condition is true."""
        return self._of(f"SELECT * FROM ({self._query}) WHERE {condition}")

    def totals(self, by: Sequence[str], sums: Mapping[str, str], smallest: Mapping[str, str]) -> Table:
        """Sums of expressions for each combination of some columns, and smallest values of others."""
        ends = [f"min({one})::DOUBLE AS {quoted(name)}" for name, one in smallest.items()]
        order = f" ORDER BY {', '.join(map(quoted, by))}" if by else ""
        return self._engine.table(self._grouped(by, sums, ends)._query + order)

    def summed(self, *by: str, **values: str) -> "SqlRows":
        """Combinations of some columns with sums of expressions."""
        return self._grouped(by, values, [])

    def _grouped(self, by: Sequence[str], sums: Mapping[str, str], made: Sequence[str]) -> "SqlRows":
        # Whole numbers are summed as such.
        asked = [f"({one}) AS {quoted(name)}" for name, one in sums.items()]
        kinds = self._engine.columns(f"SELECT {', '.join(asked)} FROM ({self._query})") if asked else {}
        columns = [quoted(name) for name in by]
        for name, expression in sums.items():
            function = self._engine.sum_of_reals if kinds[name].upper() in ("DOUBLE", "FLOAT") else "sum"
            columns.append(f"coalesce({function}({expression}), 0)::DOUBLE AS {quoted(name)}")
        groups = f" GROUP BY {', '.join(map(quoted, by))}" if by else ""
        return self._of(f"SELECT {', '.join([*columns, *made])} FROM ({self._query}){groups}")

    def coded(self, column: str, into: str) -> tuple["SqlRows", int]:
        """Rows with whole numbers in place of values."""
        own = quoted(column)
        codes = self._of(
            f"SELECT v, row_number() OVER (ORDER BY v) - 1 AS c FROM (SELECT DISTINCT {own} AS v FROM ({self._query}))"
        ).kept()
        rows = self._of(
            f"SELECT r.*, k.c AS {quoted(into)} FROM ({self._query}) r JOIN ({codes._query}) k ON r.{own} = k.v"
        )
        return rows, codes.n_rows

    def joined(self, other: "SqlRows", on: str) -> "SqlRows":
        """Rows of both that are equal in a column."""
        return self._of(f"SELECT * FROM ({self._query}) JOIN ({other._query}) USING ({quoted(on)})")

    def kept(self) -> "SqlRows":
        """Rows written once."""
        return self._engine.keep(self._query)

    def ordered(self, *by: str, columns: Sequence[str]) -> Iterator[Table]:
        """Columns in an order, in even batches."""
        chosen, order = ", ".join(map(quoted, columns)), ", ".join(by)
        asked = [f"SELECT {chosen} FROM ({part._query}) ORDER BY {order}" for part in self._along(by[0], len(columns))]
        return in_order(self._engine.batches(*asked), by[0])

    def _along(self, by: str, n_columns: int) -> list["SqlRows"]:
        """Rows from one end of a column to the other, in parts of which each can be sorted in the memory there is."""
        n_parts = self._engine.n_sorted(self, n_columns)
        if n_parts == 1:
            return [self]
        name, _, direction = by.partition(" ")
        shares = [part / n_parts for part in range(1, n_parts)]
        found = self._engine.table(f"SELECT unnest(approx_quantile({name}, {shares})) AS cut FROM ({self._query})")
        ends = sorted({float(cut) for cut in found["cut"]})
        above = ["true", *(f"{name} > {cut!r}" for cut in ends)]
        below = [*(f"{name} <= {cut!r}" for cut in ends), "true"]
        parts = [self.where(f"{low} AND {high}") for low, high in zip(above, below, strict=True)]
        return parts[::-1] if direction.upper() == "DESC" else parts

    def sorted(self, *by: str, columns: Sequence[str]) -> Spool:
        """Columns in an order, to be read from either end."""
        return Spool(self._with_room(self.ordered(*by, columns=columns)), self._engine.own)

    def _with_room(self, batches: Iterable[Table]) -> Iterator[Iterable[tuple[str, NDArray[Any]]]]:
        """Columns of batches, while there is room for files. Raises SpillFull."""
        for batch in batches:
            yield batch.items()
            if sum(one.stat().st_size for one in self._engine.own.glob(f"*{SPOOL}")) > self._engine.spill_bytes:
                raise SpillFull(FULL)

    def batches(self, *columns: str) -> Iterator[Table]:
        """Columns in any order, in batches."""
        return self._engine.batches(f"SELECT {', '.join(map(quoted, columns))} FROM ({self._query})")

    def _of(self, query: str) -> "SqlRows":
        return SqlRows(self._engine, query)


def quoted(name: str) -> str:
    """A name in SQL."""
    return '"' + name.replace('"', '""') + '"'


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
