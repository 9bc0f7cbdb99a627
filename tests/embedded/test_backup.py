"""The backups of docs/reference/operations.md, by the commands that stand there."""

import os
import re
import subprocess
from pathlib import Path
from uuid import UUID

import anyio
import numpy as np
import pytest
from pydantic import SecretStr

from app.cli import upgrade
from app.commands import recompute
from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.content import Content
from app.domain.inputs.matrices import MatrixInput
from app.domain.inputs.samples import Samples
from app.domain.options import Options
from app.embedded import EmbeddedPostgres
from app.embedded.installation import Installation
from app.kernel.metrics.catalogue import catalogue
from app.services.evaluate.reports import evaluate
from app.services.transfer import Checker, Discrepancy
from app.settings import normalize_database_url
from app.store.engine import create_engine
from app.store.evaluations import PostgresEvaluationStore
from app.store.transfer import PostgresArchive
from app.store.writer import EvaluationWriter

pytestmark = pytest.mark.slow

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "operations.md").read_text()
PROJECT = "kept"


def command(beginning: str) -> str:
    """The one command of the page with these words."""
    (found,) = re.findall(rf"(?:^ *|`)([^`\n]*\b{re.escape(beginning)} [^`\n]*)(?:`|$)", PAGE, re.MULTILINE)
    return str(found)


def run(line: str, folder: Path, data: Path, **environment: str) -> None:
    """Run a line of the page as a shell does, with the programs of the server."""
    programs = Installation.choose(data / "cluster").program("pg_dump").parent
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    line = re.sub(r"\bDATA\b", str(data), line)
    environment = os.environ | {"PATH": path, "BIN": str(programs)} | environment
    done = subprocess.run(["/bin/sh", "-ec", line], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def record(truth: list[int], predicted: list[int]) -> EvaluationRecord:
    counts = np.zeros((2, 2), dtype=np.int64)
    np.add.at(counts, (truth, predicted), 1)
    source = MatrixInput("predictions", ("0", "1"), 1, Content.counts, counts)
    return EvaluationRecord(
        id=new_id(),
        model=ModelRef("m"),
        dataset=DatasetRef("d"),
        kind=source.kind,
        labels=source.labels,
        positive=1,
        content=source.content,
        counts=counts,
        revision=catalogue().of_matrices.revision,
        values=evaluate(source, Options()).values,
        samples=Samples(np.array(truth), np.array(predicted), ids=np.arange(len(truth))),
    )


def store_some(url: str, *records: EvaluationRecord) -> None:
    async def store_all() -> None:
        engine = create_engine(url, pool_size=2)
        store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
        for one in records:
            await store.add(PROJECT, one)
        await store.close()
        await engine.dispose()

    anyio.run(store_all)


def all_right(url: str) -> list[UUID]:
    """What is there, all of which follows from what is stored."""
    told: list[Discrepancy] = []

    async def check() -> list[UUID]:
        engine = create_engine(url, pool_size=2)
        archive = PostgresArchive(engine)
        verdict = await Checker(archive, recompute).check(PROJECT, told.append)
        newest = await archive.newest(PROJECT)
        assert newest is not None
        found = await archive.evaluations(PROJECT, UUID(int=0), newest, 100)
        await engine.dispose()
        assert verdict.evaluations == len(found)
        assert all(one.columns for one in found)
        return [one.record.id for one in found]

    found = anyio.run(check)
    assert told == []
    return found


def test_what_is_dumped_or_copied_is_there_again(folder: Path) -> None:
    data = folder / "data"
    first, later, another = record([0, 1, 1, 0], [0, 1, 0, 0]), record([0, 1], [1, 1]), record([1, 0], [1, 0])
    with EmbeddedPostgres.start(data, durable=False) as server:
        server.create_database()
        url = normalize_database_url(server.dsn())
        upgrade(SecretStr(url), "head")
        store_some(url, first)
        run(command("pg_dump"), folder, data)
        # What comes after the dump is no part of it.
        store_some(url, later)
        server.create_database("restored")
        run(command("pg_restore"), folder, data, URL=server.dsn("restored"))
        restored = normalize_database_url(server.dsn("restored"))
        assert all_right(restored) == [first.id]
        # It goes on from there: the schema is this release's, new names and metrics find their numbers.
        upgrade(SecretStr(restored), "head")
        store_some(restored, another)
        assert all_right(restored) == [first.id, another.id]
        assert all_right(url) == [first.id, later.id]
    copy = folder / "copy"
    run(f"{command('cp')} DATA {copy}", folder, data)
    run(f"rm -r DATA && mv {copy} DATA", folder, data)
    with EmbeddedPostgres.start(data, durable=False) as server:
        assert all_right(normalize_database_url(server.dsn())) == [first.id, later.id]
