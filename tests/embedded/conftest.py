"""Folders for servers, and a client."""

import asyncio
import shutil
from collections.abc import Iterator
from pathlib import Path

import asyncpg
import pytest

from app.embedded import installation
from tests.folders import server_folder


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that every user can enter."""
    path = server_folder("embedded")
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture(autouse=True)
def reachable(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where root may put what others must reach, instead of the machine's own folder."""
    path = folder / "reachable"
    monkeypatch.setattr(installation, "REACHABLE_ROOTS", (path,))
    return path


def ask(url: str, statement: str) -> object:
    async def run() -> object:
        connection = await asyncpg.connect(url)
        try:
            return await connection.fetchval(statement)
        finally:
            await connection.close()

    return asyncio.run(run())
