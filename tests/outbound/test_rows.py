"""Engines answer every question as numpy does: DuckDB, Spark in this process, and a server of Spark Connect."""

import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pytest

from app.domain.errors import ClusterUnavailable
from app.embedded.cluster import free_port
from app.kernel.numerics.arrays import Array
from app.kernel.streamed.rows import EngineError, Rows, in_order, side_by_side
from app.outbound import batches as of_engines
from app.outbound import duckdb_rows
from app.outbound.duckdb_rows import DuckEngine
from app.outbound.spark_rows import SparkEngine
from app.services.ports import Engine, OpenEngine
from tests.engine import ENGINE, spark_here

# Rows of a batch, in the place of a million.
BATCH = 50_000
N = BATCH + 4321
_RANDOM = np.random.default_rng(7)
TABLE = pa.table(
    {
        "id": _RANDOM.permutation(N),
        "truth": _RANDOM.integers(0, 2, N).astype(np.int8),
        "p": np.round(_RANDOM.random(N), 5),
        "weight": _RANDOM.gamma(0.5, size=N),
        "site": _RANDOM.integers(0, 300, N).astype(str),
    }
)
COLUMNS = {name: TABLE.column(name).to_numpy() for name in TABLE.column_names}


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (of_engines, duckdb_rows):
        monkeypatch.setattr(module, "BATCH_ROWS", BATCH)


@contextlib.contextmanager
def connect_server(master: str) -> Iterator[tuple[str, psutil.Process]]:
    """A server of Spark Connect in a process of its own: its address, and the process."""
    import pyspark

    home = Path(pyspark.__file__).parent
    port = free_port()
    command = [str(home / "bin" / "spark-submit"), "--master", master]
    command += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer"]
    command += ["--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.ui.enabled=false"]
    log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the server
    started = subprocess.Popen(
        [*command, "spark-internal"],
        env={**os.environ, "SPARK_HOME": str(home)},
        stdout=log,
        stderr=subprocess.STDOUT,
    )
    process = psutil.Process(started.pid)
    try:
        for _ in range(600):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
                break
            if started.poll() is not None:
                log.seek(0)
                pytest.fail(f"the server of Spark Connect ended: {log.read().decode()}")
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}", process
    finally:
        if process.is_running():
            for one in [*process.children(recursive=True), process]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.kill()
        started.wait()


def is_worker(process: psutil.Process) -> bool:
    """Does a process work for a cluster? One that has ended does not."""
    try:
        return "ExecutorBackend" in " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return False


@pytest.fixture(
    scope="module",
    params=["duckdb", pytest.param("local[2]", marks=pytest.mark.slow), pytest.param("sc", marks=pytest.mark.slow)],
)
def opened(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenEngine]:
    with contextlib.ExitStack() as stack:
        engine: Engine = ENGINE
        if request.param == "sc":
            engine = SparkEngine(stack.enter_context(connect_server("local[2]"))[0])
        elif request.param != "duckdb":
            engine = spark_here()
        yield stack.enter_context(engine.opened(tmp_path_factory.mktemp("rows")))


@pytest.fixture(scope="module")
def rows(opened: OpenEngine) -> Rows:
    return opened.take(TABLE.schema, TABLE.to_batches(max_chunksize=7_000))


def test_names_and_sizes(rows: Rows) -> None:
    assert [*rows.names] == TABLE.column_names
    assert rows.n_rows == N
    assert rows.where("p < 0.25").n_rows == (COLUMNS["p"] < 0.25).sum()


def test_counts_and_sums(rows: Rows) -> None:
    counted = rows.sums("truth", n="1")
    assert counted["n"].tolist() == np.bincount(COLUMNS["truth"]).tolist()
    loss = "-ln(greatest(CASE WHEN truth = 1 THEN p ELSE 1 - p END, 1e-15))"
    found = rows.having(loss=loss).sums("truth", weighted="loss * weight", squares="weight * weight", n="1")
    own = np.where(COLUMNS["truth"] == 1, COLUMNS["p"], 1 - COLUMNS["p"])
    expected = -np.log(np.maximum(own, 1e-15)) * COLUMNS["weight"]
    for code in (0, 1):
        inside = COLUMNS["truth"] == code
        np.testing.assert_allclose(found["weighted"][code], expected[inside].sum(), rtol=1e-12)
        np.testing.assert_allclose(found["squares"][code], (COLUMNS["weight"][inside] ** 2).sum(), rtol=1e-12)
    nothing = rows.where("p > 2").sums(n="1", p="p")
    assert (nothing["n"].tolist(), nothing["p"].tolist()) == ([0.0], [0.0])


def test_combinations_are_rows_too(rows: Rows) -> None:
    found = rows.distinct("site", "truth")
    assert found.n_rows == 600
    assert found.sums(n="n")["n"].tolist() == [N]
    sums = rows.summed("site", mass="weight").having(square="mass * mass").sums(square="square")
    expected = np.bincount(np.unique(COLUMNS["site"], return_inverse=True)[1], COLUMNS["weight"])
    np.testing.assert_allclose(sums["square"], [(expected**2).sum()], rtol=1e-12)


def test_ends_and_combinations(rows: Rows) -> None:
    ends = rows.totals(["truth"], {"n": "1"}, {"low": "p", "high": "-p"})
    assert ends["n"].sum() == N
    distinct = rows.where("p < 0.001").distinct("truth", "p")
    found = distinct.sums("truth", combinations="1", rows="n")
    sites = rows.summed("site", total="weight").sums(sites="1", total="total")
    names = np.unique(COLUMNS["site"])
    np.testing.assert_allclose(
        [sites["sites"][0], sites["total"][0]], [len(names), COLUMNS["weight"].sum()], rtol=1e-12
    )
    for code in (0, 1):
        own = COLUMNS["p"][COLUMNS["truth"] == code]
        assert (ends["low"][code], -ends["high"][code]) == (own.min(), own.max())
        few = own[own < 0.001]
        assert (found["combinations"][code], found["rows"][code]) == (len(np.unique(few)), len(few))


def test_codes_follow_the_order_of_values(rows: Rows) -> None:
    coded, size = rows.coded("site", "code")
    names, codes = np.unique(COLUMNS["site"], return_inverse=True)
    assert size == len(names)
    np.testing.assert_allclose(coded.sums("code", p="p")["p"], np.bincount(codes, COLUMNS["p"]), rtol=1e-12)


def test_an_order_comes_in_even_batches(rows: Rows) -> None:
    batches = [*rows.ordered("p DESC", "id", columns=["p", "id"])]
    assert [batch["p"].size for batch in batches] == [BATCH, N - BATCH]
    order = np.lexsort((COLUMNS["id"], -COLUMNS["p"]))
    np.testing.assert_array_equal(np.concatenate([batch["id"] for batch in batches]), COLUMNS["id"][order])


@pytest.mark.parametrize("by", ["p DESC", "p", "kind DESC"])
def test_more_rows_than_memory_sorts_come_in_parts_of_the_same_order(
    by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A billion rows in 600 MiB are five parts; here all rows count seven times the memory."""
    monkeypatch.setattr(duckdb_rows, "_BYTES_SORTED", (128 << 20) * 7 // N // 4)
    with DuckEngine(1).opened(tmp_path) as opened:
        rows = opened.take(TABLE.schema, TABLE.to_batches(max_chunksize=7_000)).having(kind="id % 3")
        batches = [*rows.ordered(by, "id", columns=["kind", "p", "id"])]
    assert [batch["p"].size for batch in batches] == [BATCH, N - BATCH]
    name, _, falls = by.partition(" ")
    keys = {"p": COLUMNS["p"], "kind": COLUMNS["id"] % 3}[name]
    order = np.lexsort((COLUMNS["id"], -keys if falls else keys))
    np.testing.assert_array_equal(np.concatenate([batch["id"] for batch in batches]), COLUMNS["id"][order])


def test_an_order_is_read_from_either_end(rows: Rows) -> None:
    found = rows.sorted("p DESC", "id", columns=["p", "id"])
    order = np.lexsort((COLUMNS["id"], -COLUMNS["p"]))
    for back, expected in ((False, order), (True, order[::-1]), (False, order)):
        batches = [*found.batches(back=back)]
        np.testing.assert_array_equal(np.concatenate([batch["id"] for batch in batches]), COLUMNS["id"][expected])
        np.testing.assert_array_equal(np.concatenate([batch["p"] for batch in batches]), COLUMNS["p"][expected])


def test_an_order_is_read_by_several_threads(rows: Rows) -> None:
    found = rows.sorted("p DESC", "id", columns=["p", "id"])
    order = np.lexsort((COLUMNS["id"], -COLUMNS["p"]))

    def read(back: bool) -> Array:
        return np.concatenate([batch["id"] for batch in found.batches(back=back)])

    for back, ids in enumerate(side_by_side(read, [False, True] * 20, 4)):
        np.testing.assert_array_equal(ids, COLUMNS["id"][order[::-1] if back % 2 else order])


def test_work_beside_each_other_keeps_its_order_and_what_is_said_of_divisions() -> None:
    with np.errstate(divide="ignore"):
        found = [*side_by_side(lambda one: float(np.divide(1.0, one)), range(5), 2)]
    assert found == [np.inf, 1.0, 0.5, 1.0 / 3.0, 0.25]
    with pytest.raises(ZeroDivisionError):
        [*side_by_side(lambda one: 1 // one, [1, 0, 1], 2)]


def test_rows_out_of_order_are_noticed() -> None:
    with pytest.raises(EngineError, match="out of order"):
        [*in_order([{"p": np.array([3.0, 2.0])}, {"p": np.array([2.5, 1.0])}], "p DESC")]
    with pytest.raises(EngineError, match="out of order"):
        [*in_order([{"p": np.array([1.0, 0.5])}], "p")]


def test_joins_and_stacks(opened: OpenEngine, rows: Rows) -> None:
    other = TABLE.select(["id", "p"]).slice(0, 1000).rename_columns(["id", "q"])
    joined = rows.joined(opened.take(other.schema, other.to_batches()), "id").kept()
    assert joined.n_rows == 1000
    np.testing.assert_allclose(joined.sums(pq="p * q")["pq"], [(COLUMNS["p"][:1000] ** 2).sum()], rtol=1e-12)


def test_batches_have_all_rows(rows: Rows) -> None:
    found = np.concatenate([batch["id"] for batch in rows.batches("id")])
    np.testing.assert_array_equal(np.sort(found), np.arange(N))


@pytest.mark.slow
def test_a_cluster_goes_on_when_a_worker_is_killed_and_says_so_when_it_is_gone(tmp_path: Path) -> None:
    with connect_server("local-cluster[2,1,1024]") as (address, server):
        with SparkEngine(address).opened(tmp_path) as opened:
            rows = opened.take(TABLE.schema, TABLE.to_batches())
            before = rows.sums("truth", p="p")["p"]
            workers = [one for one in server.children(recursive=True) if is_worker(one)]
            assert len(workers) == 2
            workers[0].send_signal(signal.SIGKILL)
            np.testing.assert_allclose(rows.sums("truth", p="p")["p"], before, rtol=1e-12)
            for one in [*server.children(recursive=True), server]:
                with contextlib.suppress(psutil.NoSuchProcess):
                    one.send_signal(signal.SIGKILL)
            with pytest.raises(ClusterUnavailable, match="cluster of Spark"):
                rows.sums("truth", p="p")
        assert [*tmp_path.iterdir()] == []


@pytest.mark.slow
def test_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(ClusterUnavailable, match="cannot be reached"), SparkEngine("sc://127.0.0.1:9").opened(tmp_path):
        pass
