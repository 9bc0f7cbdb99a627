"""Rows beyond memory on a Spark cluster: the questions of `app.kernel.streamed.rows.Rows`, asked there.

The service reads and checks the data as always, and hands it over as Parquet in a folder that it shares with the
cluster. Rows along an order come back by that folder too, sorted by ranges. Both Spark Connect (``sc://``) and a Spark
of this machine (``local[2]``) are spoken to. Expressions are translated by sqlglot.
"""

import os
import shutil
import socket
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

import pyarrow as pa

from app.domain.errors import ClusterUnavailable
from app.kernel.streamed.rows import Rows, Table
from app.outbound.batches import columns_of, even_batches

# pyarrow does not read the LZ4 that Spark writes by default.
_COMPRESSION = "zstd"
_CONNECT = "sc"
_CONNECT_PORT = 15002
# Spark Connect tries for ten minutes by itself to reach a server that is gone.
_CONNECT_SECONDS, _RETRIES, _LONGEST_PAUSE_MS = 10.0, 5, 5000


@dataclass(frozen=True, slots=True)
class SparkEngine:
    """A cluster, ``sc://host:port`` or ``local[2]``, and a folder that it sees too; None: the folder of
    the work.
    """

    address: str
    shared: Path | None = None

    @contextmanager
    def opened(self, folder: Path) -> Iterator["Spark"]:
        """A session whose files are in a folder; at the end its rows are gone, and the files too."""
        with _asked():
            session = _session(self.address)
        shared = self.shared or folder
        shared.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(prefix="rows-", dir=shared, ignore_cleanup_errors=True) as own:
            # The cluster may write there as another user.
            Path(own).chmod(0o777)
            try:
                yield Spark(session, Path(own))
            finally:
                # A server that is gone has nothing left to let go of.
                with suppress(ClusterUnavailable), _asked():
                    session.stop()


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
        self._session, self.own, self._numbers = session, folder, count()
        self.threads, self.sum_of_reals = os.cpu_count() or 1, "sum"

    def take(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch]) -> Rows:
        """Rows of batches, written once. Raises what comes of making the batches."""
        from pyarrow.parquet import ParquetWriter

        place = self._place()
        place.mkdir()
        with ParquetWriter(place / "rows.parquet", schema, compression=_COMPRESSION) as writer:
            for batch in batches:
                writer.write_batch(batch)
        return self._named(place)

    def keep(self, query: str) -> Rows:
        """Rows of a query, written once."""
        return self._named(self._written(query))

    def columns(self, query: str) -> Mapping[str, str]:
        """Types of the columns of a query by name."""
        with _asked():
            return dict(self._frame(query).dtypes)

    def table(self, query: str) -> Table:
        """A small answer whole."""
        with _asked():
            return columns_of(self._frame(query).toArrow())

    def batches(self, *queries: str) -> Iterator[Table]:
        """Large answers in their order and in even batches; the files are gone after it."""
        return even_batches(chain.from_iterable(map(self._read, queries)))

    def n_sorted(self, _: Rows, __: int) -> int:
        """1: the cluster divides what it sorts by itself."""
        return 1

    def check_room(self) -> None:
        """Any number of bytes may be in files."""

    def _read(self, query: str) -> Iterator[pa.RecordBatch]:
        from pyarrow.parquet import ParquetFile

        place = self._written(query)
        for file in sorted(place.glob("part-*.parquet")):
            yield from ParquetFile(file).iter_batches()
        shutil.rmtree(place)

    def _written(self, query: str) -> Path:
        place = self._place()
        with _asked():
            self._frame(query).write.option("compression", _COMPRESSION).parquet(place.as_uri())
        return place

    def _named(self, place: Path) -> Rows:
        with _asked():
            self._session.read.parquet(place.as_uri()).createOrReplaceTempView(place.name)
        return Rows(self, f"SELECT * FROM {place.name}")

    def _frame(self, query: str) -> Any:
        return self._session.sql(_spoken(query))

    def _place(self) -> Path:
        return self.own / f"part_{next(self._numbers)}"


@lru_cache(maxsize=256)
def _spoken(query: str) -> str:
    """A query in the words of Spark."""
    import sqlglot

    return str(sqlglot.transpile(query, read="duckdb", write="spark")[0])
