"""The engines that hold rows beyond memory in tests."""

import os

from app.outbound.duckdb_rows import DuckEngine
from app.outbound.spark_rows import SparkEngine

ENGINE = DuckEngine(64 << 20, threads=2)


def spark_here() -> SparkEngine:
    """A Spark of this process, also after a session of Spark Connect: that marks the process as its own."""
    os.environ.pop("SPARK_CONNECT_MODE_ENABLED", None)
    return SparkEngine("local[2]")
