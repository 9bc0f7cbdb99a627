"""Rows beyond memory on a Spark cluster: the questions of `app.kernel.streamed.rows.Rows`, asked there.

The service reads and checks the data as always, and hands it over as Parquet in a folder that it shares with the
cluster. Rows along an order come back by that folder too, sorted by ranges. Both Spark Connect (``sc://``) and a Spark
of this machine (``local[2]``) are spoken to. Expressions are translated by sqlglot.
"""

import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from app.domain.errors import ClusterUnavailable
from app.kernel.streamed.rows import Rows, Table
from app.outbound.batches import Spool, columns_of, even_batches, in_order

# pyarrow does not read the LZ4 that Spark writes by default.
_COMPRESSION = "zstd"
_CONNECT = "sc"
_CONNECT_PORT = 15002
# Spark Connect tries for ten minutes by itself to reach a server that is gone.
_CONNECT_SECONDS, _RETRIES, _LONGEST_PAUSE_MS = 10.0, 5, 5000


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """A cluster. Can be sent to another process.

    Attributes:
        address: ``sc://host:port``, or ``local[2]``.
        shared: Folder that the service and the cluster see under one path; None: the folder of the work.
    """

    address: str
    shared: Path | None = None

    def opened(self, folder: Path) -> AbstractContextManager["Spark"]:
        """A session whose files are in a folder; at the end its rows are gone, and the files too."""
        return _opened(self.address, self.shared or folder)


@contextmanager
def _opened(address: str, folder: Path) -> Iterator["Spark"]:
    with _asked():
        session = _session(address)
    folder.mkdir(parents=True, exist_ok=True)
    own = Path(tempfile.mkdtemp(prefix="rows-", dir=folder))
    # The cluster may write there as another user.
    own.chmod(0o777)
    try:
        yield Spark(session, own)
    finally:
        # A server that is gone has nothing left to let go of.
        with suppress(ClusterUnavailable), _asked():
            session.stop()
        shutil.rmtree(own, ignore_errors=True)


def _session(address: str) -> Any:
    # Imported when a cluster is asked: not every installation has it.
    from pyspark.sql import SparkSession

    builder: Any = SparkSession.builder.appName("Prevail")
    if not address.startswith(f"{_CONNECT}://"):
        return builder.master(address).config("spark.ui.enabled", "false").getOrCreate()
    from pyspark.sql.connect.client.retries import DefaultPolicy

    place = urlsplit(address)
    socket.create_connection((place.hostname, place.port or _CONNECT_PORT), _CONNECT_SECONDS).close()
    session = builder.remote(address).create()
    session.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES, max_backoff=_LONGEST_PAUSE_MS)])
    return session


@contextmanager
def _asked() -> Iterator[None]:
    """Errors of the cluster, told as one. Raises ClusterUnavailable."""
    try:
        yield
    except _errors() as error:
        reason = " ".join(str(error).split())[:300]
        raise ClusterUnavailable(f"the cluster of Spark does not do what was asked: {reason}") from error
    except OSError as error:
        raise ClusterUnavailable(f"the cluster of Spark cannot be reached: {error}") from error


@cache
def _errors() -> tuple[type[Exception], ...]:
    """Errors of Spark's clients: that of Connect has no Py4J, and that of this machine no gRPC."""
    from pyspark.errors import PySparkException

    found: list[type[Exception]] = [PySparkException]
    for module, name in (("grpc", "RpcError"), ("py4j.protocol", "Py4JError")):
        with suppress(ImportError):
            found.append(getattr(import_module(module), name))
    return tuple(found)


class Spark:
    """A session on a cluster, with a folder that both see."""

    def __init__(self, session: Any, folder: Path) -> None:
        self._session, self.folder, self._numbers = session, folder, count()

    def take(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> "SparkRows":
        """Rows of batches, written once. Raises what comes of making the batches."""
        from pyarrow.parquet import ParquetWriter

        place = self._place()
        place.mkdir()
        with ParquetWriter(place / "rows.parquet", schema, compression=_COMPRESSION) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return self._read(place)

    def keep(self, frame: Any) -> "SparkRows":
        """Rows of a frame, written once."""
        return self._read(self._write(frame))

    def written(self, frame: Any) -> Iterator[pa.RecordBatch]:
        """Rows of a frame in their order; the files are gone after it."""
        from pyarrow.parquet import ParquetFile

        place = self._write(frame)
        for file in sorted(place.glob("part-*.parquet")):
            yield from ParquetFile(file).iter_batches()
        shutil.rmtree(place)

    def _write(self, frame: Any) -> Path:
        place = self._place()
        with _asked():
            frame.write.option("compression", _COMPRESSION).parquet(place.as_uri())
        return place

    def _read(self, place: Path) -> "SparkRows":
        with _asked():
            return SparkRows(self, self._session.read.parquet(place.as_uri()))

    def _place(self) -> Path:
        return self.folder / f"part_{next(self._numbers)}"


class SparkRows(Rows):
    """Rows of a frame; see `app.kernel.streamed.rows.Rows`."""

    def __init__(self, spark: Spark, frame: Any) -> None:
        self._spark, self._frame = spark, frame

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns."""
        with _asked():
            return list(self._frame.columns)

    @property
    def threads(self) -> int:
        """Number of processors of this machine."""
        return os.cpu_count() or 1

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        with _asked():
            return int(self._frame.count())

    def having(self, **columns: str) -> "SparkRows":
        """Rows with more columns."""
        kept = [_quoted(name) for name in self.names if name not in columns]
        made = [f"({_spoken(expression)}) AS {_quoted(name)}" for name, expression in columns.items()]
        return self._of(self._frame.selectExpr(*kept, *made))

    def where(self, condition: str) -> "SparkRows":
        """Rows for which a condition is true."""
        return self._of(self._frame.where(_spoken(condition)))

    def totals(self, by: Sequence[str], sums: Mapping[str, str], smallest: Mapping[str, str]) -> Table:
        """Sums of expressions for each combination of some columns, and smallest values of others."""
        return self._aggregated(by, sums, smallest)._table(by)

    def summed(self, *by: str, **values: str) -> "SparkRows":
        """Each combination of some columns once, with sums of expressions."""
        return self._aggregated(by, values, {})

    def coded(self, column: str, into: str) -> tuple["SparkRows", int]:
        """Rows with whole numbers in place of values."""
        from pyspark.sql import Window, functions

        own = functions.row_number().over(Window.orderBy(column)) - 1
        codes = self._of(self._frame.select(column).distinct().withColumn(into, own.cast("bigint"))).kept()
        return self.joined(codes, column), codes.n_rows

    def joined(self, other: "SparkRows", on: str) -> "SparkRows":
        """Rows of both that are equal in a column."""
        return self._of(self._frame.join(other._frame, on))

    def kept(self) -> "SparkRows":
        """Rows written once."""
        return self._spark.keep(self._frame)

    def ordered(self, *by: str, columns: Sequence[str]) -> Iterator[Table]:
        """Columns in an order, in even batches."""
        from pyspark.sql import functions

        sort = [functions.expr(_quoted(name)) for name, _ in map(_key, by)]
        falling = [descending for _, descending in map(_key, by)]
        frame = self._frame.orderBy(*sort, ascending=[not one for one in falling]).select(*map(_quoted, columns))
        return in_order(even_batches(self._spark.written(frame)), by[0])

    def sorted(self, *by: str, columns: Sequence[str]) -> Spool:
        """Columns in an order, to be read from either end."""
        return Spool(self.ordered(*by, columns=columns), self._spark.folder, sys.maxsize)

    def batches(self, *columns: str) -> Iterator[Table]:
        """Columns in any order, in batches."""
        return even_batches(self._spark.written(self._frame.select(*map(_quoted, columns))))

    def _aggregated(self, by: Sequence[str], sums: Mapping[str, str], smallest: Mapping[str, str]) -> "SparkRows":
        from pyspark.sql import functions

        asked = {name: f"coalesce(sum({_spoken(one)}), 0)" for name, one in sums.items()}
        asked |= {name: f"min({_spoken(one)})" for name, one in smallest.items()}
        made = [functions.expr(f"CAST({one} AS DOUBLE)").alias(name) for name, one in asked.items()]
        with _asked():
            return self._of(self._frame.groupBy(*by).agg(*made) if by else self._frame.agg(*made))

    def _table(self, by: Sequence[str]) -> Table:
        with _asked():
            return columns_of((self._frame.orderBy(*by) if by else self._frame).toArrow())

    def _of(self, frame: Any) -> "SparkRows":
        return SparkRows(self._spark, frame)


def _key(by: str) -> tuple[str, bool]:
    """A column of an order, and whether it falls."""
    name, _, direction = by.partition(" ")
    return name.strip('"'), direction.upper().startswith("DESC")


@lru_cache(maxsize=256)
def _spoken(expression: str) -> str:
    """An expression in the words of Spark."""
    import sqlglot

    return str(sqlglot.transpile(expression, read="duckdb", write="spark")[0])


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
