"""Rows beyond memory in a DuckDB of this process.

The database is a file in a folder of its own, which is removed with it, as are the files that sorting takes. It is
locked: it reads no file but its own, loads no extension, and takes no setting. Rows come in as batches of Arrow
only.
"""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import pyarrow as pa

from app.domain.errors import SpillFull
from app.kernel.streamed.rows import BATCH_ROWS, EngineError, Rows, Table
from app.outbound.batches import FULL, Spool, columns_of, even_batches, in_order

# For each thread: with less it fails where it could use files.
_LEAST: Final = 128 << 20
# For each number of a row that is sorted at once. With two thirds of it 300 million rows still went through, and with a
# fifth a billion failed where the sorted pieces are put together.
_BYTES_SORTED: Final = 1
# What the engine says when files have no room, or when there is no memory.
_NO_ROOM: Final = ("max_temp_directory_size", "No space left on device")
_NO_MEMORY: Final = "Out of Memory Error"


@contextmanager
def _told() -> Iterator[None]:
    """Errors of the engine as those of the service.

    Raises:
        SpillFull: files have no room.
        MemoryError: what cannot go into files takes more memory than there is.
        EngineError: anything else.
    """
    import duckdb

    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        # Of what is read batch by batch Arrow tells the errors.
        if any(words in str(error) for words in _NO_ROOM):
            raise SpillFull(FULL) from None
        if isinstance(error, MemoryError) or _NO_MEMORY in str(error):
            raise MemoryError(str(error)) from error
        raise EngineError(str(error)) from error


class DuckRows(Rows):
    """Rows of a query; see `app.kernel.streamed.rows.Rows`."""

    def __init__(self, engine: "DuckDB", query: str) -> None:
        self._engine, self._query = engine, query

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        return [row[0] for row in self._engine.answer(f"DESCRIBE {self._query}").fetchall()]

    @property
    def threads(self) -> int:
        """Number of threads of the engine."""
        return self._engine.threads

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return int(self._engine.answer(f"SELECT count(*) FROM ({self._query})").fetchall()[0][0])

    def having(self, **columns: str) -> "DuckRows":
        """Rows with more columns."""
        kept = [_quoted(name) for name in self.names if name not in columns]
        made = [f"({expression}) AS {_quoted(name)}" for name, expression in columns.items()]
        return self._of(f"SELECT {', '.join([*kept, *made])} FROM ({self._query})")

    def where(self, condition: str) -> "DuckRows":
        """Rows for which a condition is true."""
        return self._of(f"SELECT * FROM ({self._query}) WHERE {condition}")

    def totals(self, by: Sequence[str], sums: Mapping[str, str], smallest: Mapping[str, str]) -> Table:
        """Sums of expressions for each combination of some columns, and smallest values of others."""
        ends = [f"min({one})::DOUBLE AS {_quoted(name)}" for name, one in smallest.items()]
        return self._grouped(by, self._sums_of(sums) + ends)._table(by)

    def summed(self, *by: str, **values: str) -> "DuckRows":
        """Combinations of some columns with sums of expressions."""
        return self._grouped(by, self._sums_of(values))

    def _sums_of(self, values: Mapping[str, str]) -> list[str]:
        if not values:
            return []
        # Whole numbers are summed in 128 bits, which SQL's sum does by itself; fsum is Kahan's.
        own = self._engine.types(f"SELECT {', '.join(f'({one})' for one in values.values())} FROM ({self._query})")
        made = []
        for (name, expression), kind in zip(values.items(), own, strict=True):
            function = "fsum" if kind in ("DOUBLE", "FLOAT") else "sum"
            made.append(f"coalesce({function}({expression}), 0)::DOUBLE AS {_quoted(name)}")
        return made

    def coded(self, column: str, into: str) -> tuple["DuckRows", int]:
        """Rows with whole numbers in place of values."""
        own = _quoted(column)
        codes = self._of(
            f"SELECT v, row_number() OVER (ORDER BY v) - 1 AS c FROM (SELECT DISTINCT {own} AS v FROM ({self._query}))"
        ).kept()
        rows = self._of(
            f"SELECT r.*, k.c AS {_quoted(into)} FROM ({self._query}) r JOIN ({codes._query}) k ON r.{own} = k.v"
        )
        return rows, codes.n_rows

    def joined(self, other: "DuckRows", on: str) -> "DuckRows":
        """Rows of both that are equal in a column."""
        return self._of(f"SELECT * FROM ({self._query}) JOIN ({other._query}) USING ({_quoted(on)})")

    def kept(self) -> "DuckRows":
        """Rows written once."""
        return self._engine.keep(self._query)

    def ordered(self, *by: str, columns: Sequence[str]) -> Iterator[Table]:
        """Columns in an order, in even batches."""
        chosen, order = ", ".join(map(_quoted, columns)), ", ".join(by)
        asked = [f"SELECT {chosen} FROM ({part._query}) ORDER BY {order}" for part in self._along(by[0], len(columns))]
        return in_order(self._engine.batches(*asked), by[0])

    def _along(self, by: str, n_columns: int) -> list["DuckRows"]:
        """Rows from one end of a column to the other, in parts of which each can be sorted in the memory there is."""
        n_parts = 1 + self.n_rows * (n_columns + 1) * _BYTES_SORTED // self._engine.memory_bytes
        if n_parts == 1:
            return [self]
        name, _, direction = by.partition(" ")
        shares = [part / n_parts for part in range(1, n_parts)]
        ((cuts,),) = self._engine.answer(f"SELECT approx_quantile({name}, {shares}) FROM ({self._query})").fetchall()
        ends = sorted({float(cut) for cut in cuts})
        above = ["true", *(f"{name} > {cut!r}" for cut in ends)]
        below = [*(f"{name} <= {cut!r}" for cut in ends), "true"]
        found = [self.where(f"{low} AND {high}") for low, high in zip(above, below, strict=True)]
        return found[::-1] if direction.upper() == "DESC" else found

    def sorted(self, *by: str, columns: Sequence[str]) -> Spool:
        """Columns in an order, to be read from either end."""
        return Spool(self.ordered(*by, columns=columns), self._engine.own, self._engine.spill_bytes)

    def batches(self, *columns: str) -> Iterator[Table]:
        """Columns in any order, in batches."""
        return self._engine.batches(f"SELECT {', '.join(map(_quoted, columns))} FROM ({self._query})")

    def _grouped(self, by: Sequence[str], made: Sequence[str]) -> "DuckRows":
        columns = [_quoted(name) for name in by]
        grouped = f" GROUP BY {', '.join(columns)}" if by else ""
        return self._of(f"SELECT {', '.join([*columns, *made])} FROM ({self._query}){grouped}")

    def _table(self, by: Sequence[str]) -> Table:
        order = f" ORDER BY {', '.join(map(_quoted, by))}" if by else ""
        return self._engine.table(f"{self._query}{order}")

    def _of(self, query: str) -> "DuckRows":
        return DuckRows(self._engine, query)


@dataclass(frozen=True, slots=True)
class DuckEngine:
    """The port `app.services.ports.Engine`.

    Attributes:
        memory_bytes: That the engine may hold, 128 MiB at least.
        spill_bytes: That rows may take in files, and files of sorting besides.
        threads: Of the engine; None is one for each processor, as far as memory is enough for them.
    """

    memory_bytes: int
    spill_bytes: int = 1 << 40
    threads: int | None = None

    def opened(self, folder: Path) -> "DuckDB":
        """A database in a folder of its own within a folder, which is made if need be."""
        folder.mkdir(parents=True, exist_ok=True)
        memory = max(self.memory_bytes, _LEAST)
        threads = self.threads or max(min(os.cpu_count() or 1, memory // _LEAST), 1)
        return DuckDB(folder, memory, self.spill_bytes, threads)


@dataclass(slots=True)
class DuckDB:
    """A database with a folder and an end.

    Attributes:
        folder: In which it has one of its own.
        own: That one, which goes with it.
        memory_bytes, spill_bytes, threads: As of `DuckEngine`.
    """

    folder: Path
    memory_bytes: int
    spill_bytes: int
    threads: int
    own: Path = field(init=False)
    _rows: Path = field(init=False)
    _connection: Any = field(init=False)
    _numbers: Any = field(default_factory=count, init=False)

    def __post_init__(self) -> None:
        # Imported when data is beyond memory: it is 20 MB and a tenth of a second.
        import duckdb

        self.own = Path(tempfile.mkdtemp(prefix="rows-", dir=self.folder))
        self._rows = self.own / "rows"
        settings: dict[str, Any] = {
            "memory_limit": f"{self.memory_bytes}B",
            "threads": self.threads,
            "temp_directory": str(self.own / "spilled"),
            # Without it DuckDB 2.0 gives batches of an order out of order.
            "preserve_insertion_order": True,
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        }
        # In memory it could not sort tables of eight times that: it keeps blocks of them that sorting needs.
        self._connection = duckdb.connect(str(self._rows), config=settings)
        # In the configuration DuckDB 2.0 passes it over.
        self._connection.execute(f"SET max_temp_directory_size = '{self.spill_bytes}B'")
        # Where it thinks that somebody looks it draws bars between the lines of the log.
        self._connection.execute("SET enable_progress_bar = false")
        # Its file is gone with it.
        self._connection.execute("PRAGMA disable_checkpoint_on_shutdown")
        self._connection.execute("SET enable_external_access = false")
        self._connection.execute("SET lock_configuration = true")

    def take(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> DuckRows:
        """Rows of batches, written once. Raises what comes of making the batches."""
        given, faults = iter(batches), []
        # Threads of the engine read them, for whom the progress of this one is none.
        context = copy_context()

        def told() -> Iterator[pa.RecordBatch]:
            while True:
                try:
                    self._check_room()
                    batch = context.run(next, given, None)
                except Exception as fault:
                    faults.append(fault)
                    raise
                if batch is None:
                    return
                yield batch

        connection = self._connection.cursor()
        connection.register("incoming", pa.RecordBatchReader.from_batches(schema, told()))
        try:
            return self.keep("SELECT * FROM incoming", connection)
        except (EngineError, MemoryError, SpillFull):
            # The engine knows the words of a fault only.
            if faults:
                raise faults[0] from None
            raise
        finally:
            connection.close()

    def keep(self, query: str, connection: Any = None) -> DuckRows:
        """Rows of a query, written once; by a connection that alone knows what is asked."""
        name = f"kept_{next(self._numbers)}"
        self.answer(f"CREATE TABLE {name} AS {query}", connection)
        self._check_room()
        return DuckRows(self, f"SELECT * FROM {name}")

    def _check_room(self) -> None:
        if self._rows.stat().st_size > self.spill_bytes:
            raise SpillFull(FULL)

    def answer(self, query: str, connection: Any = None) -> Any:
        """Execute a query."""
        with _told():
            # A cursor each: questions are asked, and answers read, beside each other.
            return (connection or self._connection.cursor()).execute(query)

    def types(self, query: str) -> list[str]:
        """Types of the columns of a query."""
        return [row[1] for row in self.answer(f"DESCRIBE {query}").fetchall()]

    def table(self, query: str) -> Table:
        """Return a small answer whole."""
        with _told():
            return columns_of(self._connection.cursor().sql(query).to_arrow_table())

    def batches(self, *queries: str) -> Iterator[Table]:
        """Large answers, one after the other, in even batches."""
        with _told():
            answers = (self._connection.cursor().sql(query).to_arrow_reader(BATCH_ROWS) for query in queries)
            yield from even_batches(chain.from_iterable(answers))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()
        shutil.rmtree(self.own, ignore_errors=True)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
