"""Columns of CSV have one type, that of all rows, however many parts they are read in."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from app.api.bodies.files import dataset
from app.api.bodies.referenced import Asked, NamedRows, ReadData
from app.domain.data import DataFormat, DataReference
from app.domain.errors import BeyondMemory, InvalidInput
from app.domain.inputs.columns import read_groups
from app.domain.inputs.labels import as_labels
from app.outbound.data import DataPlaces
from app.services.evaluate.evaluations import evaluate_alone
from tests.engine import ENGINE
from tests.services.named_data import with_columns, with_parts

ROWS = 2000
MEMORY = 4096
COLUMNS = {"y_true": "label", "probabilities": ["p0", "p1"], "group_id": "house", "sample_id": "sample_id"}
NUMBERS = [f"{one}.0" for one in range(40)]
WORDS = [*NUMBERS[:20], *(f"house {one}" for one in range(20))]


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dataset, "_CSV_BLOCK", 2048)


def written(folder: Path, labels: list[str], early: list[str], late: list[str]) -> dict[str, Any]:
    """Rows whose first half has the one kind of labels and groups, and the other half the other."""
    random = np.random.default_rng(3)
    sure = random.random(ROWS).round(3)
    codes = (random.random(ROWS) < sure).astype(int)
    codes[: ROWS // 2] = 0
    house = [one[place] for one in (early, late) for place in random.integers(0, len(one), ROWS // 2)]
    rows = {"label": [labels[code] for code in codes], "p0": 1.0 - sure, "p1": sure, "house": house}
    names = [f"{place}.0" if place < ROWS // 2 else f"id {place}" for place in range(ROWS)]
    folder.mkdir()
    pyarrow.csv.write_csv(pa.table({**rows, "sample_id": names}), folder / "all.csv")
    data = {"uri": str(folder / "all.csv"), "format": "csv", "columns": COLUMNS}
    return {"input": {"kind": "probabilities", "labels": labels, "data": data}}


def asked(body: dict[str, Any], memory: int, *, with_ids: bool = False) -> Asked:
    source = body["input"]
    reference = DataReference(source["data"]["uri"], DataFormat.CSV, source["data"]["columns"])
    return Asked(reference, source["kind"], source["labels"], memory, with_ids=with_ids)


def places_of(body: dict[str, Any]) -> DataPlaces:
    return DataPlaces((body["input"]["data"]["uri"],))


@pytest.mark.parametrize(
    ("early", "late"),
    [
        (NUMBERS, WORDS),
        ([*map(str, range(40))], NUMBERS),
        (["True", "False"], WORDS),
        (["True", "False"], ["yes", "True", "0.50"]),
        (["0.5", "1.5"], NUMBERS),
        (["0.5", "1.5"], ["yes", "True", "0.50"]),
    ],
    ids=["words", "whole", "truths, words", "truths, both", "numbers", "numbers, both"],
)
def test_groups_and_labels_are_those_of_all_rows_at_once(early: list[str], late: list[str], tmp_path: Path) -> None:
    body = written(tmp_path / "data", ["1.0", "ill"], early, late)
    text = json.dumps(body).encode()
    whole = with_columns(text, NamedRows(places_of(body), asked(body, 1 << 30)).whole())
    with pytest.raises(BeyondMemory):
        NamedRows(places_of(body), asked(body, MEMORY)).whole()
    (tmp_path / "runs").mkdir()
    parts = NamedRows(places_of(body), asked(body, MEMORY))
    folded = with_parts(text, parts, engine=ENGINE, budget=1 << 20, folder=tmp_path / "runs")
    first, second = (evaluate_alone(one, None)[0].report for one in (whole, folded))
    assert second.input.facts["n_groups"] == first.input.facts["n_groups"]
    np.testing.assert_array_equal(second.input.confusion_matrix, first.input.confusion_matrix)
    for name in ("accuracy", "log_loss", "roc_auc@ill"):
        found, known = second.intervals[name], first.intervals[name]
        assert (found["low"], found["high"]) == pytest.approx((known["low"], known["high"]), rel=1e-9)


def test_ids_are_those_of_all_rows_at_once(tmp_path: Path) -> None:
    body = written(tmp_path / "data", ["no", "yes"], NUMBERS, WORDS)
    whole = NamedRows(places_of(body), asked(body, 1 << 30)).whole().columns
    parts = NamedRows(places_of(body), asked(body, MEMORY, with_ids=True))
    found = [one.columns for one in parts.parts()]
    assert len(found) > 10
    for name in ("sample_ids", "group_ids", "y_true"):
        texts = [str(one) for part in found for one in read_groups(as_labels(part[name], ""), "").tolist()]
        assert texts == [str(one) for one in read_groups(as_labels(whole[name], ""), "").tolist()]


def read(
    folder: Path,
    *files: str,
    columns: dict[str, Any] | None = None,
    condition: str | None = None,
    folders: Sequence[str] = (),
) -> ReadData:
    """The rows of predictions in several files of CSV."""
    for place, text in enumerate(files):
        path = folder / (folders[place] if folders else ".") / f"{place}.csv"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    reference = DataReference(str(folder), DataFormat.CSV, columns, filter=condition)
    return NamedRows(DataPlaces((str(folder),)), Asked(reference, "predictions", None, 1 << 30)).whole()


def test_what_the_first_rows_of_a_file_look_like_is_no_type_of_labels(tmp_path: Path) -> None:
    heading, numbers, words = "y_true,y_pred,group_id\n", "a,b,1\nb,b,2\n", "a,b,A7\nb,b,2020-01-01\n"
    apart = read(tmp_path / "apart", heading + numbers, heading + words).columns
    together = read(tmp_path / "one", heading + numbers + words).columns
    assert {name: column.to_pylist() for name, column in apart.items()} == {
        name: column.to_pylist() for name, column in together.items()
    }
    weights = "y_true,y_pred,sample_weight\n"
    with pytest.raises(InvalidInput, match="expected numbers in the column 'sample_weight'") as refused:
        read(tmp_path / "words", f"{weights}a,b,1\n", f"{weights}a,b,heavy\n")
    assert refused.value.faults[0].code == "not_numbers"


def test_a_number_that_is_none_is_said_wherever_it_stands(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="expected numbers: In CSV column #2") as refused:
        read(tmp_path / "data", "y_true,y_pred,sample_weight\n" + "a,b,1\n" * 1000 + "a,b,heavy\n")
    assert [(one.pointer, one.code) for one in refused.value.faults] == [("/input/data", "not_numbers")]


def test_where_nothing_is_written_a_value_is_missing(tmp_path: Path) -> None:
    text = "y_true,y_pred,group_id\n" + "a,b,1\n" * 1000 + "a,b,\n"
    with pytest.raises(InvalidInput, match="expected no missing values, got one in 'group_id' at row 1000") as refused:
        read(tmp_path / "data", text)
    assert refused.value.faults[0].pointer == "/input/data"
    assert len(read(tmp_path / "data", text, condition="group_id is not null").columns["y_true"]) == 1000


def test_a_column_that_the_filter_names_keeps_its_meaning(tmp_path: Path) -> None:
    rows = "y_true,y_pred,sample_weight,score\na,b,1,0\nb,b,0,3\nb,a,2,3\n"
    found = read(tmp_path / "data", rows, condition="sample_weight > 0 and score < 9").columns
    assert found["sample_weight"].tolist() == [1.0, 2.0]
    # Predictions have no scores.
    assert set(found) == {"y_true", "y_pred", "sample_weight"}


def test_a_filter_takes_labels_for_the_numbers_that_they_are(tmp_path: Path) -> None:
    written = [(9, 10.0, 9), (10, 10.0, 11), (2, 2.0, 2), (10, 9.0, 10)]
    text = "y_true,y_pred,group_id\n" + "".join(f"{own},{guess},{group}\n" for own, guess, group in written)
    for condition, rows in (
        ("y_true = 10", [1, 3]),
        ("y_true != y_pred", [0, 3]),
        ("y_true > y_pred", [3]),
        ("y_pred in (2, 9.0) or group_id between 9 and 10", [0, 2, 3]),
    ):
        found = read(tmp_path / "data", text, condition=condition).columns
        columns = zip(*(found[name].tolist() for name in ("y_true", "y_pred", "group_ids")), strict=True)
        assert [*columns] == [written[row] for row in rows], condition
    # Not of a type before the last row, and of none before the last.
    for first in ("7", ""):
        text = "y_true,y_pred,group_id\n" + f"a,b,{first}\n" * 1000 + "a,b,A7\n"
        assert read(tmp_path / "data", text, condition="group_id is not null").columns["group_ids"][-1].as_py() == "A7"


def test_names_of_folders_are_numbers_where_all_are_and_a_column_where_all_have_one(tmp_path: Path) -> None:
    rows, named = "y_true,y_pred\na,b\nb,b\n", {"y_true": "y_true", "y_pred": "y_pred", "group_id": "part"}
    for parts, groups in ((("part=1", "part=02"), [1, 1, 2, 2]), (("part=1", "part=x"), ["1", "1", "x", "x"])):
        found = read(tmp_path / parts[1], rows, rows, columns=named, folders=parts).columns
        assert sorted(found["group_ids"].tolist()) == groups
        # By its own name it means the same.
        own = [part.replace("part", "group_id") for part in parts]
        found = read(tmp_path / own[1], rows, rows, folders=own).columns
        assert sorted(found["group_ids"].tolist()) == groups
    with pytest.raises(InvalidInput, match="expected a column 'part'"):
        read(tmp_path / "some", rows, rows, columns=named, folders=("part=1", "other"))
