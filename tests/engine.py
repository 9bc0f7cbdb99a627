"""The engine that holds rows beyond memory in tests."""

from app.outbound.duckdb_rows import DuckEngine

ENGINE = DuckEngine(64 << 20, threads=2)
