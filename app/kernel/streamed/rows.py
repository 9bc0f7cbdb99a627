"""Rows beyond memory, held by an engine that answers SQL (DuckDB's, in `app/outbound/duckdb_rows.py`).

Everything that the service asks of such rows goes through `Rows`: computed columns, counts and sums by columns, a join,
and one pass along an order. Expressions are SQL over column names.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from app.kernel.streamed.spool import Spool

# Columns by name, all of one length.
Table = Mapping[str, NDArray[Any]]
# Rows of a batch of an order: always so many but for the last, so that sums do not depend on how the engine reads.
BATCH_ROWS = 1 << 20
_Item = TypeVar("_Item")
_Made = TypeVar("_Made")


class EngineError(Exception):
    """The engine does not do what it was asked for: no room, or it cannot be reached."""


class NotStreamed(AttributeError):
    """The value needs all samples at once, and they were streamed."""


class SqlEngine(Protocol):
    """Answers queries.

    Attributes:
        threads: That may look at rows beside each other.
        own: Folder of its files.
        sum_of_reals: The name of its best sum of numbers that are not whole.
    """

    threads: int
    own: Path
    sum_of_reals: str

    def columns(self, query: str) -> Mapping[str, str]:
        """Types of the columns of a query by name."""

    def table(self, query: str) -> Table:
        """A small answer whole."""

    def batches(self, *queries: str) -> Iterator[Table]:
        """Large answers, one after the other, in their order and in batches of `BATCH_ROWS` rows."""

    def keep(self, query: str) -> "Rows":
        """Rows of a query, written once."""

    def n_sorted(self, rows: "Rows", n_columns: int) -> int:
        """Number of parts in which rows with so many columns are sorted."""

    def check_room(self) -> None:
        """Raises what is told where files take more than they may."""


class Rows:
    """Rows of a query, in named columns. They are values: every method answers others and changes none.

    Raises:
        EngineError: any method, when the engine does not do it.
    """

    def __init__(self, engine: SqlEngine, query: str) -> None:
        self._engine, self._query, self.threads = engine, query, engine.threads

    @property
    def names(self) -> Mapping[str, str]:
        """Types of the columns by name."""
        return self._engine.columns(self._query)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._engine.table(f"SELECT count(*) AS n FROM ({self._query})")["n"][0])

    def having(self, **columns: str) -> "Rows":
        """Rows with more columns, each an expression over those that are there; an equal name replaces."""
        kept = [_quoted(name) for name in self.names if name not in columns]
        made = [f"({expression}) AS {_quoted(name)}" for name, expression in columns.items()]
        return self._of(f"SELECT {', '.join([*kept, *made])} FROM ({self._query})")

    def where(self, condition: str) -> "Rows":
        """Rows for which a condition is true."""
        return self._of(f"SELECT * FROM ({self._query}) WHERE {condition}")

    def distinct(self, *by: str) -> "Rows":
        """Each combination of some columns once, with the number ``n`` of its rows."""
        return self.summed(*by, n="1")

    def summed(self, *by: str, **values: str) -> "Rows":
        """Each combination of some columns once, with `sums` of expressions, in no order."""
        return self._grouped(by, values, [])

    def sums(self, *by: str, **values: str) -> Table:
        """Sums (float64) of expressions for each combination of some columns, ordered by these.

        Sums are compensated, so that they do not depend on threads beyond 1e-12 of the sum of magnitudes. Whole numbers
        are summed as such and are exact. Without ``by`` there is one row. Sums of no rows are 0.
        """
        return self.totals(by, values, {})

    def totals(self, by: Sequence[str], sums: Mapping[str, str], smallest: Mapping[str, str]) -> Table:
        """Sums, and the smallest values (float64) of other expressions, at once.

        NULL is passed over; where there is nothing else the smallest value is NaN.
        """
        ends = [f"min({one})::DOUBLE AS {_quoted(name)}" for name, one in smallest.items()]
        order = f" ORDER BY {', '.join(map(_quoted, by))}" if by else ""
        return self._engine.table(self._grouped(by, sums, ends)._query + order)

    def _grouped(self, by: Sequence[str], sums: Mapping[str, str], made: Sequence[str]) -> "Rows":
        asked = [f"({one}) AS {_quoted(name)}" for name, one in sums.items()]
        kinds = self._engine.columns(f"SELECT {', '.join(asked)} FROM ({self._query})") if asked else {}
        columns = [_quoted(name) for name in by]
        for name, expression in sums.items():
            function = self._engine.sum_of_reals if kinds[name].upper() in ("DOUBLE", "FLOAT") else "sum"
            columns.append(f"coalesce({function}({expression}), 0)::DOUBLE AS {_quoted(name)}")
        groups = f" GROUP BY {', '.join(map(_quoted, by))}" if by else ""
        return self._of(f"SELECT {', '.join([*columns, *made])} FROM ({self._query}){groups}")

    def coded(self, column: str, into: str) -> tuple["Rows", int]:
        """Rows with a column of whole numbers 0..G-1 in place of any values, ordered by these values, and G."""
        own = _quoted(column)
        codes = self._of(
            f"SELECT v, row_number() OVER (ORDER BY v) - 1 AS c FROM (SELECT DISTINCT {own} AS v FROM ({self._query}))"
        ).kept()
        rows = self._of(
            f"SELECT r.*, k.c AS {_quoted(into)} FROM ({self._query}) r JOIN ({codes._query}) k ON r.{own} = k.v"
        )
        return rows, codes.n_rows

    def joined(self, other: "Rows", on: str) -> "Rows":
        """Rows of both that are equal in a column; other columns of ``other`` must have other names."""
        return self._of(f"SELECT * FROM ({self._query}) JOIN ({other._query}) USING ({_quoted(on)})")

    def kept(self) -> "Rows":
        """Rows written once, for several questions to what is dear to compute."""
        return self._engine.keep(self._query)

    def ordered(self, *by: str, columns: Sequence[str]) -> Iterator[Table]:
        """Columns in an order (``"p DESC"``), in even batches, each of which is checked to be in order.

        Only the first of ``by`` is checked. It must be a column, numeric, and one of ``columns``.
        """
        chosen, order = ", ".join(map(_quoted, columns)), ", ".join(by)
        asked = [f"SELECT {chosen} FROM ({part._query}) ORDER BY {order}" for part in self._along(by[0], len(columns))]
        return in_order(self._engine.batches(*asked), by[0])

    def _along(self, by: str, n_columns: int) -> list["Rows"]:
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
        """Columns in such an order, put into it once and read from either end."""

        def parts() -> Iterator[Iterable[tuple[str, NDArray[Any]]]]:
            for batch in self.ordered(*by, columns=columns):
                yield batch.items()
                self._engine.check_room()

        return Spool(parts(), self._engine.own)

    def batches(self, *columns: str) -> Iterator[Table]:
        """Columns in any order, in batches."""
        return self._engine.batches(f"SELECT {', '.join(map(_quoted, columns))} FROM ({self._query})")

    def _of(self, query: str) -> "Rows":
        return Rows(self._engine, query)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def in_order(batches: Iterable[Table], by: str) -> Iterator[Table]:
    """Batches, while they are in the order of a numeric column, perhaps with ``DESC``; raises EngineError where they
    are not.
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


def side_by_side(work: Callable[[_Item], _Made], items: Iterable[_Item], threads: int) -> Iterator[_Made]:
    """Results of items in their order, while the next ones are worked on: numpy leaves the interpreter to others."""
    if threads == 1:
        yield from map(work, items)
        return
    waiting = deque[Future[_Made]]()
    with ThreadPoolExecutor(threads) as pool:
        for item in items:
            # With what the caller says of divisions and of progress.
            waiting.append(pool.submit(copy_context().run, work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
