"""Runs whose samples are read again part by part: what is held of them, and how far that is."""

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq
import pytest

from app.api.bodies.referenced import Asked, NamedRows
from app.api.v1.requests import referenced
from app.api.v1.requests.referenced import with_columns
from app.api.v1.reread import DataAgain
from app.domain.data import DataFormat, DataReference
from app.domain.errors import InvalidInput
from app.domain.evaluation import EvaluationRecord
from app.domain.inputs.confusion import BinaryCounts
from app.domain.inputs.matrices import MatrixInput
from app.outbound.data import DataPlaces
from app.services.processes.worker import progressed, tell_progress
from app.services.stored import unkept_record
from tests.engine import ENGINE

ROWS = 300_000
COLUMNS = {"y_true": "truth", "y_pred": "guess", "sample_id": "id"}
FORMS = [DataFormat.CSV, DataFormat.ARROW, DataFormat.PARQUET]


def table(rows: int) -> pa.Table:
    names = np.array(["yes", "no"])
    return pa.table({"truth": names[np.arange(rows) % 2], "guess": names[np.arange(rows) // 2 % 2], "id": range(rows)})


def written(place: Path, form: DataFormat, rows: pa.Table, row_group: int = 50_000) -> Path:
    file = place / f"rows.{form.value}"
    if form is DataFormat.CSV:
        pyarrow.csv.write_csv(rows, file)
    elif form is DataFormat.ARROW:
        with pa.ipc.new_file(file, rows.schema) as writer:
            writer.write_table(rows, max_chunksize=row_group)
    else:
        pq.write_table(rows, file, row_group_size=row_group)
    return file


def kept(file: Path, form: DataFormat, rows: int) -> tuple[DataPlaces, EvaluationRecord]:
    """What is saved of predictions in a file, and where it may be read."""
    places = DataPlaces((str(file.parent),))
    asked = Asked(DataReference(str(file), form, COLUMNS), "predictions", None, 0, with_ids=True)
    facts: Any = NamedRows(places, asked).facts(rows)
    some = unkept_record(BinaryCounts(tp=1, fp=1, fn=1, tn=1, negative="no", positive="yes").read(""))
    return places, replace(some, kind="predictions", facts={**some.facts, "data": facts})


def ids_of(parts: list[MatrixInput]) -> list[int]:
    return [
        one
        for part in parts
        if part.samples is not None and part.samples.ids is not None
        for one in part.samples.ids.tolist()
    ]


@pytest.mark.parametrize("form", FORMS)
def test_parts_of_a_file_go_out_one_by_one(form: DataFormat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a file is: no part is made before the one before it is gone."""
    made: list[int] = []
    original = with_columns

    def counted(request: Any, read: Any) -> Any:
        made.append(read.facts["rows"])
        return original(request, read)

    places, record = kept(written(tmp_path, form, table(ROWS)), form, ROWS)
    monkeypatch.setattr(referenced, "with_columns", counted)
    parts, seen = [], 0
    for part in DataAgain(places, ENGINE, tmp_path).parts(record, outputs=False):
        parts.append(part)
        seen += len(ids_of([part]))
        assert sum(made) == seen
    assert len(parts) > 2
    assert ids_of(parts) == [*range(ROWS)]


def test_a_fault_says_its_row_among_all_files(tmp_path: Path) -> None:
    (folder := tmp_path / "rows").mkdir()
    rows = table(1_000)
    for number, truth in enumerate(
        (rows["truth"], pa.array(["maybe" if row == 400 else "no" for row in range(1_000)]))
    ):
        pq.write_table(rows.set_column(0, "truth", truth), folder / f"{number}.parquet")
    places, record = kept(folder / "*.parquet", DataFormat.PARQUET, 2_000)
    with pytest.raises(InvalidInput, match="row 1400 of those read"):
        [*DataAgain(places, ENGINE, tmp_path).parts(record, outputs=False)]


@pytest.mark.parametrize("form", FORMS)
def test_progress_goes_from_nothing_to_all(form: DataFormat, tmp_path: Path) -> None:
    """CSV is gone through twice: the second time goes on where the first one ended."""
    # Of three files, so that there is something to tell between.
    (folder := tmp_path / "rows").mkdir()
    for number in range(3):
        written(folder, form, table(1_000)).rename(folder / f"{number}.{form.value}")
    places, record = kept(folder / f"*.{form.value}", form, 3_000)
    told: list[float] = []
    with ExitStack() as stack:
        stack.callback(tell_progress, None)
        tell_progress(told.append)
        for _ in DataAgain(places, ENGINE, tmp_path).parts(record, outputs=False):
            # What others say meanwhile is not a part of the reading.
            progressed(9, 1)
    own = [one for one in told if one != 9]
    assert told.count(9) == 3
    assert own == sorted(own)
    assert (own[0], own[-1]) == (0.0, 1.0)
    assert any(0.5 < one < 1.0 for one in own)


@pytest.mark.parametrize("mapped", [False, True])
def test_ids_of_queries_in_csv_stay_as_they_are_written(mapped: bool, tmp_path: Path) -> None:
    """As ids of samples do: 1.10 and 1.1 are two queries."""
    file = tmp_path / "ranking.csv"
    file.write_text("query_id,relevance,score\n1.10,1,2\n1.10,0,1\n1.1,1,2\n1.1,0,1\n")
    columns = {name: name for name in ("query_id", "relevance", "score")} if mapped else None
    asked = Asked(DataReference(str(file), DataFormat.CSV, columns), "ranking", None, 1 << 20)
    places = DataPlaces((str(tmp_path),))
    parts = NamedRows(places, asked)
    found = [NamedRows(places, asked).whole().columns["query_ids"]]
    found += [read.columns["query_ids"] for read in parts.parts()]
    assert all(isinstance(one, pa.Array) for one in found)
    assert [one.to_pylist() for one in found] == [["1.10", "1.10", "1.1", "1.1"]] * 2
