"""Exports and imports that break off, files that are damaged, values that do not follow."""

import random
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
import orjson
import pytest
from sqlalchemy import delete, func, select, text
from sqlalchemy.ext.asyncio import AsyncEngine

from app.commands import recompute
from app.domain.evaluation import DatasetRef, EvaluationRecord, ModelRef
from app.domain.identifiers import new_id
from app.domain.inputs.clustering import Clustering
from app.domain.inputs.content import Content
from app.domain.inputs.samples import Samples
from app.domain.operations import Actor
from app.kernel.metrics.catalogue import catalogue
from app.services import transfer
from app.services.ports import Archived, ArchiveKind
from app.services.present import act_as
from app.services.stored import unkept_record
from app.services.transfer import (
    EVALUATIONS,
    VERSION,
    Checker,
    ColumnReader,
    Discrepancy,
    Exporter,
    FilePart,
    Importer,
    Manifest,
    TransferError,
    Verdict,
    read_evaluation,
    read_manifest,
    write_evaluation,
    write_manifest,
)
from app.store.evaluations import PostgresEvaluationStore
from app.store.samples import find_digests
from app.store.tables import evaluation_samples, evaluations, sample_columns
from app.store.transfer import PostgresArchive
from app.store.writer import EvaluationWriter

pytestmark = pytest.mark.anyio

SHARED = np.arange(30) % 2


class BrokenOffError(Exception):
    pass


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    act_as(Actor("tests"))
    monkeypatch.setattr(transfer, "_MOST_ROWS", 5)
    monkeypatch.setattr(transfer, "_AT_ONCE", 2)
    monkeypatch.setattr(transfer, "_LINES_IN_A_PIECE", 3)


def make_records(count: int) -> list[EvaluationRecord]:
    """Some with samples, all of which share their truth and each of which has predictions of its own."""
    chance = random.Random(3)  # noqa: S311 - a sample, not a secret
    records = []
    for index in range(count):
        predicted = np.array([chance.randrange(2) for _ in SHARED])
        counts = np.zeros((2, 2), dtype=np.int64)
        np.add.at(counts, (SHARED, predicted), 1)
        records.append(
            EvaluationRecord(
                id=new_id(),
                model=ModelRef("m", str(index % 3)),
                dataset=DatasetRef("d"),
                kind="predictions",
                labels=("0", "1"),
                positive=1,
                content=Content.counts,
                counts=counts,
                revision=catalogue().of_matrices.revision,
                values=_values_of(tuple(counts.ravel().tolist())),
                tags={"i": str(index)},
                samples=Samples(SHARED, predicted, ids=np.arange(30)) if index % 3 else None,
            )
        )
    return records


@cache
def _values_of(counts: tuple[int, ...]) -> Any:
    from app.domain.inputs.matrices import MatrixInput
    from app.domain.options import Options
    from app.services.evaluate.reports import evaluate

    matrix = np.reshape(counts, (2, 2))
    return evaluate(MatrixInput("predictions", ("0", "1"), 1, Content.counts, matrix), Options()).values


@pytest.fixture
async def records(engine: AsyncEngine, project: str) -> list[EvaluationRecord]:
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    made = make_records(23)
    for record in made:
        await store.add(project, record)
    await store._writer.close()
    return made


def breaks_off_after(number: int, of: Any, name: str) -> Callable[..., Awaitable[Any]]:
    """The method, which fails at its next call after so many."""
    calls = 0
    original = getattr(of, name)

    async def method(*arguments: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls > number:
            raise BrokenOffError
        return await original(*arguments)

    return method


async def count(engine: AsyncEngine, project: str) -> tuple[int, int, int]:
    """Evaluations, those with samples, and columns."""
    found = []
    async with engine.connect() as connection:
        for table in (evaluations, evaluation_samples, sample_columns):
            wanted = select(func.count()).select_from(table).where(table.c.project == project)
            found.append(await connection.scalar(wanted) or 0)
    return found[0], found[1], found[2]


async def links(engine: AsyncEngine, project: str) -> dict[bytes, int]:
    columns = sample_columns.c
    async with engine.connect() as connection:
        rows = await connection.execute(select(columns.digest, columns.links).where(columns.project == project))
        return {row.digest: row.links for row in rows}


@pytest.mark.parametrize("number", [0, 2, 7])
async def test_an_export_that_broke_off_goes_on(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord], tmp_path: Path, number: int
) -> None:
    archive: Any = PostgresArchive(engine)
    whole = await Exporter(PostgresArchive(engine)).export(project, tmp_path / "whole")
    archive.evaluations = breaks_off_after(number, archive, "evaluations")
    with pytest.raises(BrokenOffError):
        await Exporter(archive).export(project, tmp_path / "broken")
    with pytest.raises(TransferError, match="has broken off"):
        await Importer(archive).bring_in(tmp_path / "broken", f"{project}-2")
    found = await Exporter(PostgresArchive(engine)).export(project, tmp_path / "broken")
    assert found.parts == whole.parts
    assert found.rows(EVALUATIONS) == len(records)
    names = {path.name for path in (tmp_path / "broken").iterdir()}
    assert names == {path.name for path in (tmp_path / "whole").iterdir()}
    for name in names - {"manifest.json"}:
        assert (tmp_path / "broken" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


async def test_an_export_that_broke_off_at_once_goes_on(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: Path) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(transfer, "publish", full)
        with pytest.raises(OSError, match="no space"):
            await Exporter(PostgresArchive(engine)).export(project, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["manifest.json.unfinished"]
    found = await Exporter(PostgresArchive(engine)).export(project, tmp_path)
    assert found.rows(EVALUATIONS) == len(records)
    assert not [*tmp_path.glob("*.unfinished")]


async def test_a_column_is_exported_once(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord], tmp_path: Path
) -> None:
    manifest = await Exporter(PostgresArchive(engine)).export(project, tmp_path)
    paths = [tmp_path / part.samples for part in manifest.parts if part.samples]
    assert len(paths) > 2
    reader = ColumnReader(paths)
    known = await links(engine, project)
    assert reader._places.keys() == known.keys()
    from app.services.transfer import digests_in

    assert sum(len(list(digests_in(path))) for path in paths) == len(known)
    with pytest.raises(TransferError, match="it is not there"):
        reader(bytes(32))


@pytest.mark.parametrize("number", [0, 3])
async def test_an_import_that_broke_off_goes_on(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord], tmp_path: Path, number: int
) -> None:
    await Exporter(PostgresArchive(engine)).export(project, tmp_path)
    other = f"{project}-2"
    archive: Any = PostgresArchive(engine)
    archive.add_evaluations = breaks_off_after(number, archive, "add_evaluations")
    with pytest.raises(BrokenOffError):
        await Importer(archive).bring_in(tmp_path, other)
    before = (await count(engine, other))[0]
    assert before < len(records)
    added = await Importer(PostgresArchive(engine)).bring_in(tmp_path, other)
    assert added[EVALUATIONS] == len(records) - before
    assert (await Importer(PostgresArchive(engine)).bring_in(tmp_path, other))[EVALUATIONS] == 0
    assert await count(engine, other) == await count(engine, project)
    assert await links(engine, other) == await links(engine, project)
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    for record in records:
        found = await store.get(other, record.id)
        assert found is not None
        assert (found.values, found.tags, found.model) == (record.values, record.tags, record.model)
        assert (found.counts == record.counts).all()
        samples = await store.read_samples(other, record.id)
        assert (samples is None) == (record.samples is None)
        if samples is not None and record.samples is not None:
            assert (samples.predicted == record.samples.predicted).all()


async def test_what_was_removed_between_comes_back_alone(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord], tmp_path: Path
) -> None:
    await Exporter(PostgresArchive(engine)).export(project, tmp_path)
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    for record in records[4:9]:
        await store.delete(project, record.id)
    assert (await Importer(PostgresArchive(engine)).bring_in(tmp_path))[EVALUATIONS] == 5
    assert {one.id for one in (await store.get_many(project, [one.id for one in records])).values()} == {
        one.id for one in records
    }


async def test_what_comes_while_it_is_exported_is_no_part_of_it(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord], tmp_path: Path
) -> None:
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    archive: Any = PostgresArchive(engine)
    original = archive.evaluations

    async def evaluations_meanwhile(*arguments: Any) -> Any:
        (record,) = make_records(1)
        await store.add(project, record)
        return await original(*arguments)

    archive.evaluations = evaluations_meanwhile
    manifest = await Exporter(archive).export(project, tmp_path)
    assert manifest.rows(EVALUATIONS) == len(records)
    await store._writer.close()


async def test_what_is_removed_before_its_columns_are_read_does_no_harm(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord], tmp_path: Path
) -> None:
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))
    archive: Any = PostgresArchive(engine)
    original, removed = archive.columns, iter([records[1], records[4]])

    async def columns_meanwhile(*arguments: Any) -> AsyncIterator[Any]:
        gone = next(removed, None)
        if gone is not None:
            await store.delete(project, gone.id)
        async for group in original(*arguments):
            yield group

    archive.columns = columns_meanwhile
    told: list[Discrepancy] = []
    await Checker(archive, recompute).check(project, told.append)
    assert told == []
    await Exporter(archive).export(project, tmp_path)
    added = await Importer(PostgresArchive(engine)).bring_in(tmp_path, f"{project}-2")
    assert added[EVALUATIONS] == len(records) - 2


async def test_what_is_removed_while_it_is_read_is_whole(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    store = PostgresEvaluationStore(engine, EvaluationWriter(engine))

    async def digests_meanwhile(*arguments: Any) -> Any:
        await store.delete(project, records[1].id)
        return await find_digests(*arguments)

    monkeypatch.setattr("app.store.transfer.find_digests", digests_meanwhile)
    found = await PostgresArchive(engine).evaluations(project, UUID(int=0), records[1].id, 10)
    assert [(one.record.id, bool(one.columns)) for one in found] == [(records[0].id, False), (records[1].id, True)]


async def test_what_cannot_be_imported_is_not_exported(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord], tmp_path: Path
) -> None:
    async with engine.begin() as connection:
        mine = evaluation_samples.c
        of_first = select(mine.predicted).where(mine.project == project, mine.evaluation_id == records[1].id)
        digest = await connection.scalar(of_first)
        columns = sample_columns.c
        await connection.execute(delete(sample_columns).where(columns.project == project, columns.digest == digest))
    with pytest.raises(TransferError, match=f"samples of {records[1].id}.*prevail check"):
        await Exporter(PostgresArchive(engine)).export(project, tmp_path)


@pytest.mark.parametrize("damage", ["changed", "gone", "manifest", "version", "elsewhere"])
async def test_what_is_damaged_is_refused_before_anything_is_kept(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord], tmp_path: Path, damage: str
) -> None:
    manifest = await Exporter(PostgresArchive(engine)).export(project, tmp_path)
    last = tmp_path / manifest.of(EVALUATIONS)[-1].file
    content = orjson.loads((tmp_path / "manifest.json").read_bytes())
    match damage:
        case "changed":
            last.write_bytes(last.read_bytes().replace(b'"i"', b'"j"', 1))
        case "gone":
            last.unlink()
        case "manifest":
            (tmp_path / "manifest.json").write_text("{}")
        case "version":
            (tmp_path / "manifest.json").write_bytes(orjson.dumps({**content, "version": VERSION + 1}))
        case "elsewhere":
            content["parts"][0]["file"] = "../outside.ndjson"
            (tmp_path / "manifest.json").write_bytes(orjson.dumps(content))
    with pytest.raises(TransferError):
        await Importer(PostgresArchive(engine)).bring_in(tmp_path, f"{project}-2")
    assert await count(engine, f"{project}-2") == (0, 0, 0)


async def test_another_gate_of_the_same_name_is_no_silent_loss(engine: AsyncEngine, project: str) -> None:
    archive = PostgresArchive(engine)
    row = {"id": str(new_id()), "version": 1, "name": "g", "definition": {"rules": []}}
    assert await archive.add_answers(ArchiveKind.GATES, project, [row]) == 1
    assert await archive.add_answers(ArchiveKind.GATES, project, [row]) == 0
    with pytest.raises(Exception, match="there is another gate g 1"):
        await archive.add_answers(ArchiveKind.GATES, project, [{**row, "id": str(new_id())}])


# Of another version, of no moment that can be named, of another variant, a number.
@pytest.mark.parametrize(
    "identifier",
    ["e3975081-1844-4bb7-9202-68cf45b3c36a", "ffffffff-ffff-7fff-bfff-ffffffffffff", "0" * 12 + "70" * 10, 5],
)
@pytest.mark.parametrize("kind", [EVALUATIONS, "comparisons", "gates", "checks"])
async def test_ids_without_a_moment_are_refused(
    engine: AsyncEngine, project: str, tmp_path: Path, kind: str, identifier: Any
) -> None:
    row: dict[str, Any]
    if kind == EVALUATIONS:
        (record,) = make_records(1)
        row = orjson.loads(write_evaluation(Archived(record, {}, None)))
    else:
        row = {
            "kind": "models",
            "answer": {},
            "version": 1,
            "name": "g",
            "definition": {},
            "evaluation_id": str(new_id()),
        }
        row |= {"baseline_id": None, "gate": "g", "verdict": "passed"}
    content = orjson.dumps({**row, "id": identifier}, option=orjson.OPT_APPEND_NEWLINE)
    (tmp_path / "rows.ndjson").write_bytes(content)
    part = FilePart(kind, "rows.ndjson", 1, None, sha256(content).hexdigest())
    write_manifest(tmp_path, Manifest(project, None, "now", [part], [], complete=True))
    with pytest.raises(TransferError, match=f"expected {kind} in rows.ndjson"):
        await Importer(PostgresArchive(engine)).bring_in(tmp_path)
    assert await count(engine, project) == (0, 0, 0)


async def test_no_digit_is_lost(engine: AsyncEngine, project: str, records: list[EvaluationRecord]) -> None:
    archive = PostgresArchive(engine)
    found = await archive.evaluations(project, UUID(int=0), records[-1].id, 100)
    assert len(found) == len(records)
    for one in found:
        again = read_evaluation(write_evaluation(one))
        assert again.record.values == one.record.values
        assert again.record.counts.dtype == one.record.counts.dtype
        assert (again.record.counts == one.record.counts).all()
        assert (again.columns, again.fold_sizes) == (one.columns, one.fold_sizes)


def test_clusterings_of_version_1_are_whole_tables() -> None:
    source = Clustering(y_true=["a", "a", "b", "b"], y_pred=["x", "y", "y", "y"]).read("/input")
    record = replace(unkept_record(source), id=new_id(), model=ModelRef("m"), dataset=DatasetRef("d"))
    line = write_evaluation(Archived(record, {}, None))
    older = orjson.dumps({**orjson.loads(line), "counts": [[1, 1], [0, 2]]})
    assert read_evaluation(older, version=1).record.counts.tolist() == [[0, 0, 1], [0, 1, 1], [1, 1, 2]]
    assert (read_evaluation(line).record.counts == record.counts).all()


async def test_an_unfinished_export_of_version_1_is_not_gone_on_with(
    engine: AsyncEngine, project: str, tmp_path: Path
) -> None:
    write_manifest(tmp_path, Manifest(project, None, "now", version=1))
    with pytest.raises(TransferError, match="to go on with"):
        await Exporter(PostgresArchive(engine)).export(project, tmp_path)


async def check(engine: AsyncEngine, project: str) -> tuple[Verdict, list[Discrepancy]]:
    told: list[Discrepancy] = []
    return await Checker(PostgresArchive(engine), recompute).check(project, told.append), told


async def test_values_that_follow_are_fine(engine: AsyncEngine, project: str, records: list[EvaluationRecord]) -> None:
    verdict, told = await check(engine, project)
    assert told == []
    assert verdict == Verdict(evaluations=len(records), values=sum(len(record.values) for record in records))


def test_values_follow_whatever_was_asked_of_limits() -> None:
    (record,) = make_records(1)
    for options in ({"alternative": "greater"}, {"proportion_interval": "wald", "intervals": "all"}):
        (again,) = recompute([replace(record, options=options)])
        assert (again.refused, again.values) == (None, record.values)


async def test_what_does_not_follow_is_named(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord]
) -> None:
    mine = {"project": project, "first": records[0].id, "second": records[1].id, "third": records[2].id}
    async with engine.begin() as connection:
        slot = "(SELECT slot FROM metric_slots WHERE key = 'accuracy')"
        for statement, id_name in (
            (f"UPDATE evaluations SET metric_values[{slot}] = 0.123 WHERE project = :project AND id = :id", "first"),
            ("UPDATE evaluations SET counts = '\\x01010101' WHERE project = :project AND id = :id", "second"),
            (
                "DELETE FROM sample_columns WHERE project = :project AND digest = "
                "(SELECT predicted FROM evaluation_samples WHERE project = :project AND evaluation_id = :id)",
                "third",
            ),
        ):
            await connection.execute(text(statement), {"project": project, "id": mine[id_name]})
    verdict, told = await check(engine, project)
    assert verdict.wrong == 3
    assert [(one.evaluation, one.what) for one in told if one.evaluation == records[0].id] == [
        (records[0].id, "accuracy")
    ]
    assert "stored 0.123, computed" in str(next(one for one in told if one.what == "accuracy"))
    assert {one.what for one in told if one.evaluation == records[1].id} >= {"counts", "accuracy"}
    assert [one.what for one in told if one.evaluation == records[2].id] == ["samples"]
    assert {one.evaluation for one in told} == {record.id for record in records[:3]}


async def test_values_of_an_earlier_catalogue_are_told_apart(
    engine: AsyncEngine, project: str, records: list[EvaluationRecord]
) -> None:
    async with engine.begin() as connection:
        slot = "(SELECT slot FROM metric_slots WHERE key = 'accuracy')"
        statement = (
            f"UPDATE evaluations SET revision = 'old', metric_values[{slot}] = 0.5 WHERE project = :p AND id = :i"
        )
        await connection.execute(text(statement), {"p": project, "i": records[0].id})
        await connection.execute(
            text("UPDATE evaluations SET revision = 'old' WHERE project = :p AND id = :i"),
            {"p": project, "i": records[1].id},
        )
    verdict, told = await check(engine, project)
    assert (verdict.of_earlier_catalogue, verdict.wrong, told) == (1, 0, [])
    # No definition is the cause where the counts are not those of the samples.
    async with engine.begin() as connection:
        damaged = "UPDATE evaluations SET revision = 'old', counts = '\\x01010101' WHERE project = :p AND id = :i"
        await connection.execute(text(damaged), {"p": project, "i": records[1].id})
    verdict, told = await check(engine, project)
    assert (verdict.of_earlier_catalogue, verdict.wrong) == (1, 1)
    assert {one.what for one in told} >= {"counts", "accuracy"}


def test_a_folder_without_a_manifest_has_none(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None
