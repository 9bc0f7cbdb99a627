"""Rows beyond memory in a DuckDB of this process.

The database is a file in a folder of its own, which is removed with it, as are the files that sorting takes. It is
locked: it reads no file but its own, loads no extension, and takes no setting. Rows come in as batches of Arrow
only.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from itertools import chain, count
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from app.domain.errors import SpillFull
from app.kernel.streamed.rows import BATCH_ROWS, EngineError, Rows, Table
from app.kernel.streamed.spool import SPOOL
from app.outbound.batches import columns_of, even_batches

_FULL: Final = "expected rows that take at most PREVAIL_SPILL_BYTES in files; a filter chooses fewer"
_ROWS: Final = "rows"
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
            raise SpillFull(_FULL) from None
        if isinstance(error, MemoryError) or _NO_MEMORY in str(error):
            raise MemoryError(str(error)) from error
        raise EngineError(str(error)) from error


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

    @contextmanager
    def opened(self, folder: Path) -> Iterator["DuckDB"]:
        """A database in a folder of its own within a folder, which is made if need be; both files go with it."""
        # Imported when data is beyond memory: it is 20 MB and a tenth of a second.
        import duckdb

        folder.mkdir(parents=True, exist_ok=True)
        memory = max(self.memory_bytes, _LEAST)
        threads = self.threads or max(min(os.cpu_count() or 1, memory // _LEAST), 1)
        with tempfile.TemporaryDirectory(prefix="rows-", dir=folder, ignore_cleanup_errors=True) as name:
            own = Path(name)
            settings: dict[str, Any] = {
                "memory_limit": f"{memory}B",
                "threads": threads,
                "temp_directory": str(own / "spilled"),
                # Without it DuckDB 2.0 gives batches of an order out of order.
                "preserve_insertion_order": True,
                "autoinstall_known_extensions": False,
                "autoload_known_extensions": False,
                "python_enable_replacements": False,
            }
            # In memory it could not sort tables of eight times that: it keeps blocks of them that sorting needs.
            with duckdb.connect(str(own / _ROWS), config=settings) as connection:
                # In the configuration DuckDB 2.0 passes it over.
                connection.execute(f"SET max_temp_directory_size = '{self.spill_bytes}B'")
                # Where it thinks that somebody looks it draws bars between the lines of the log.
                connection.execute("SET enable_progress_bar = false")
                # Its file is gone with it.
                connection.execute("PRAGMA disable_checkpoint_on_shutdown")
                connection.execute("SET enable_external_access = false")
                connection.execute("SET lock_configuration = true")
                yield DuckDB(connection, own, memory, self.spill_bytes, threads)


@dataclass(slots=True)
class DuckDB:
    """An open database in a folder of its own; the rest is that of `DuckEngine`."""

    connection: Any
    own: Path
    memory_bytes: int
    spill_bytes: int
    threads: int
    # Kahan's.
    sum_of_reals: str = "fsum"
    _numbers: Any = field(default_factory=count)

    def take(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Rows:
        """Rows of batches, written once. Raises what comes of making the batches."""
        given, faults = iter(batches), []
        # Threads of the engine read them, for whom the progress of this one is none.
        context = copy_context()

        def told() -> Iterator[pa.RecordBatch]:
            while True:
                try:
                    self.check_room()
                    batch = context.run(next, given, None)
                except Exception as fault:
                    faults.append(fault)
                    raise
                if batch is None:
                    return
                yield batch

        try:
            with self.connection.cursor() as connection:
                connection.register("incoming", pa.RecordBatchReader.from_batches(schema, told()))
                return self.keep("SELECT * FROM incoming", connection)
        except (EngineError, MemoryError, SpillFull):
            # The engine knows the words of a fault only.
            if faults:
                raise faults[0] from None
            raise

    def keep(self, query: str, connection: Any = None) -> Rows:
        """Rows of a query, written once; by a connection that alone knows what is asked."""
        name = f"kept_{next(self._numbers)}"
        self.answer(f"CREATE TABLE {name} AS {query}", connection)
        self.check_room()
        return Rows(self, f"SELECT * FROM {name}")

    def check_room(self) -> None:
        """Raises SpillFull: the rows, or all orders in files, take more than they may."""
        orders = sum(one.stat().st_size for one in self.own.glob(f"*{SPOOL}/*"))
        if max((self.own / _ROWS).stat().st_size, orders) > self.spill_bytes:
            raise SpillFull(_FULL)

    def answer(self, query: str, connection: Any = None) -> Any:
        """Execute a query."""
        with _told():
            # A cursor each: questions are asked, and answers read, beside each other.
            return (connection or self.connection.cursor()).execute(query)

    def columns(self, query: str) -> Mapping[str, str]:
        """Types of the columns of a query by name."""
        return {row[0]: row[1] for row in self.answer(f"DESCRIBE {query}").fetchall()}

    def n_sorted(self, rows: Rows, n_columns: int) -> int:
        """Number of parts of which each can be sorted in the memory there is."""
        return 1 + rows.n_rows * (n_columns + 1) * _BYTES_SORTED // self.memory_bytes

    def table(self, query: str) -> Table:
        """Return a small answer whole."""
        with _told():
            return columns_of(self.connection.cursor().sql(query).to_arrow_table())

    def batches(self, *queries: str) -> Iterator[Table]:
        """Large answers, one after the other, in even batches."""
        with _told():
            answers = (self.connection.cursor().sql(query).to_arrow_reader(BATCH_ROWS) for query in queries)
            yield from even_batches(chain.from_iterable(answers))


# --- folders for the files: one for each process of the service, gone when it is, however it ended -------------------

_PREFIX: Final = "prevail-"
# Held by whoever the folder belongs to: the system lets go of it when the process ends, also when it is killed.
_LOCK: Final = "lock"


@contextmanager
def spill_folder(root: Path) -> Iterator[Path]:
    """A folder of this process below another one, in which those of processes that have ended are removed.

    Raises:
        OSError: nothing can be written there.
    """
    root.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (root / _LOCK).open("a") as starting:
        # One at a time: a folder that was just made is not locked yet.
        fcntl.flock(starting, fcntl.LOCK_EX)
        for folder in root.glob(f"{_PREFIX}*"):
            with suppress(OSError), (folder / _LOCK).open("a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(folder, ignore_errors=True)
        own = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=root))
        held = (own / _LOCK).open("w")
        fcntl.flock(held, fcntl.LOCK_EX)
    try:
        yield own
    finally:
        shutil.rmtree(own, ignore_errors=True)
        held.close()
