"""Reports of predictions whose rows were counted, beside those of the same rows in memory."""

import json
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from app.api.bodies.files import counted
from app.api.bodies.files.dataset import Dataset
from app.api.bodies.files.table import FileColumns
from app.api.bodies.referenced import Asked, NamedRows
from app.api.v1.evaluations.referenced import STREAMED_FROM
from app.domain.data import DataFormat, DataReference
from app.domain.errors import BeyondMemory, InvalidInput, TooLarge
from app.domain.inputs.samples import Tally, WeightSums
from app.outbound.data import DataPlaces
from app.services.evaluate.evaluations import Evaluation, evaluate_alone
from tests.engine import ENGINE
from tests.services.named_data import new_evaluation, with_columns

ROWS = 2000
MEMORY = 30_000
RANDOM = np.random.default_rng(7)
CLASSES = np.array(["a", "b", "c"])
TRUTH = RANDOM.integers(0, 3, ROWS)
GUESS = np.where(RANDOM.random(ROWS) < 0.7, TRUTH, RANDOM.integers(0, 3, ROWS))
WEIGHTS = np.where(RANDOM.random(ROWS) < 0.05, 0.0, RANDOM.lognormal(0.0, 2.0, ROWS))
TABLE = pa.table(
    {
        "y_true": CLASSES[TRUTH],
        "y_pred": CLASSES[GUESS],
        "sample_id": np.arange(ROWS) // 2,
        "group_id": [f"household {one}" for one in RANDOM.integers(0, 60, ROWS)],
        "sample_weight": WEIGHTS,
    }
)
BESIDE = {
    "ids": ["sample_id"],
    "groups": ["group_id"],
    "weights": ["sample_weight"],
    "all of them": ["sample_id", "group_id", "sample_weight"],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("counted")
    # Ids that differ, for those who look at them.
    table = TABLE.set_column(2, "sample_id", pa.array(np.arange(ROWS)))
    for start in range(0, ROWS, 500):
        pq.write_table(table.slice(start, 500), place / f"{start:04}.parquet", row_group_size=200)
    return place


def both(folder: Path, place: Path, beside: list[str], **members: Any) -> tuple[Evaluation, Evaluation]:
    """The evaluation of all rows in memory, and that of counted ones."""
    columns = {name: name for name in ["y_true", "y_pred", *beside]}
    source = {"kind": "predictions", "data": {"uri": str(folder), "format": "parquet", "columns": columns}}
    options = members.pop("options", {})
    body = json.dumps({"input": source | members, "options": options}).encode()
    reference, places = DataReference(str(folder), DataFormat.PARQUET, columns), DataPlaces((str(folder),))
    whole = with_columns(body, NamedRows(places, Asked(reference, "predictions", None, 1 << 30)).whole())
    asked = Asked(reference, "predictions", None, MEMORY)
    with pytest.raises(BeyondMemory):
        NamedRows(places, asked).whole()
    with ENGINE.opened(place) as engine:
        found = with_columns(body, NamedRows(places, asked).counted(engine))
    assert found.source.samples is None or found.source.samples.size < ROWS // 2
    return evaluate_alone(whole, None)[0], evaluate_alone(found, None)[0]


def check_close(own: Any, others: Any) -> None:
    """The same, but for the rounding of sums of weights."""
    if isinstance(own, Mapping):
        assert own.keys() == others.keys()
        for name, value in own.items():
            check_close(value, others[name])
    elif isinstance(own, float) or isinstance(others, float):
        assert others == pytest.approx(own, rel=1e-11, abs=1e-12)
    else:
        assert others == own


@pytest.mark.parametrize("beside", BESIDE.values(), ids=BESIDE)
@pytest.mark.parametrize("members", [{}, {"ignore": ["c"]}], ids=["all", "without c"])
def test_the_report_is_that_of_the_rows(
    folder: Path, tmp_path: Path, beside: list[str], members: dict[str, Any]
) -> None:
    first, second = (one.report for one in both(folder, tmp_path, beside, options={"seed": 1}, **members))
    exact = "sample_weight" not in beside
    for name in ("metrics", "per_class", "intervals", "balanced_intervals", "groups", "weights"):
        own, others = getattr(first, name), getattr(second, name)
        if exact:
            assert others == own
        else:
            check_close(own, others)
    assert second.input.confusion_matrix is not None
    assert first.input.confusion_matrix is not None
    np.testing.assert_allclose(second.input.confusion_matrix, first.input.confusion_matrix, rtol=1e-13)
    facts = dict(second.input.facts)
    assert facts["data"].pop("sample_ids_unchecked", False) is ("sample_id" in beside)
    check_close(dict(first.input.facts), facts)
    codes = [one.code for one in second.findings]
    assert ("sample_ids_unchecked" in codes) is ("sample_id" in beside)
    assert [code for code in codes if code != "sample_ids_unchecked"] == [one.code for one in first.findings]


def test_intervals_of_everything_by_groups_are_those_of_the_rows(folder: Path, tmp_path: Path) -> None:
    options = {"intervals": "all", "draws": 200}
    first, second = (one.report for one in both(folder, tmp_path, ["group_id"], options=options))
    assert second.intervals == first.intervals
    assert second.groups == first.groups


def counts(table: pa.Table, place: Path, weight: str | None = "sample_weight") -> tuple[pa.Table, Tally]:
    labels = ["y_true", "y_pred", "group_id"]
    with ENGINE.opened(place) as engine:
        return counted.counted(table.to_batches(max_chunksize=130), table.schema, labels, weight, engine)


def sums_of(tally: Tally) -> WeightSums:
    assert tally.weights is not None
    return tally.weights


def test_no_order_shows(tmp_path: Path) -> None:
    table, tally = counts(TABLE, tmp_path)
    random = np.random.default_rng(3)
    for _ in range(3):
        found, other = counts(TABLE.take(random.permutation(ROWS)), tmp_path)
        assert found.drop_columns("sample_weight") == table.drop_columns("sample_weight")
        np.testing.assert_array_equal(other.times, tally.times)
        sums, own = sums_of(other), sums_of(tally)
        for name in ("used", "lightest", "heaviest"):
            np.testing.assert_array_equal(getattr(sums, name), getattr(own, name))
        np.testing.assert_allclose(found["sample_weight"].to_numpy(), table["sample_weight"].to_numpy(), rtol=1e-14)
        np.testing.assert_allclose(sums.squares, own.squares, rtol=1e-14)


def test_sums_of_weights_are_exact(tmp_path: Path) -> None:
    """Beside exact fractions, of weights of very different sizes."""
    weights = np.array([0.1, 1e15, 3e-12, 0.1, 1e15, 1e-300, 5e-324, 2.0**53, 0.0, 7.0 / 3.0] * 20)
    table = pa.table(
        {"y_true": ["a"] * 200, "y_pred": ["b"] * 200, "group_id": ["x", "y"] * 100, "sample_weight": weights}
    )
    found, tally = counts(table, tmp_path)
    sums = sums_of(tally)
    for place, name in enumerate(["x", "y"]):
        own = weights[place::2]
        assert found["group_id"][place].as_py() == name
        assert found["sample_weight"][place].as_py() == pytest.approx(float(sum(map(Fraction, own.tolist()))), 1e-15)
        assert sums.squares[place] == pytest.approx(float(sum(map(Fraction, (own * own).tolist()))), 1e-15)
        assert (tally.times[place], sums.used[place]) == (100, np.count_nonzero(own))
        assert sums.lightest[place] == own[own > 0].min()
        assert sums.heaviest[place] == own.max()


def test_what_has_no_weight_has_no_lightest_one(tmp_path: Path) -> None:
    table = pa.table({"y_true": ["a", "a"], "y_pred": ["a", "b"], "group_id": [1, 1], "sample_weight": [0.0, 2.0]})
    sums = sums_of(counts(table, tmp_path)[1])
    np.testing.assert_array_equal(sums.used, [0, 1])
    np.testing.assert_array_equal(sums.lightest, [np.nan, 2.0])
    np.testing.assert_array_equal(sums.heaviest, [np.nan, 2.0])


@pytest.mark.parametrize(("weight", "code"), [(-1.0, "bad_weight"), (np.inf, "bad_weight"), (1e16, "total_too_large")])
def test_weights_that_are_none_are_refused(tmp_path: Path, weight: float, code: str) -> None:
    wrong = TABLE.set_column(4, "sample_weight", pa.array(np.where(np.arange(ROWS) == 150, weight, 1.0)))
    with pytest.raises(InvalidInput) as raised:
        counts(wrong, tmp_path)
    assert raised.value.faults[0].code == code
    assert raised.value.faults[0].pointer == "/input/sample_weight/150"


def test_a_missing_value_is_named_by_its_row(tmp_path: Path) -> None:
    wrong = TABLE.set_column(1, "y_pred", pa.array([None if row == 300 else "a" for row in range(ROWS)]))
    among = pa.DictionaryArray.from_arrays([int(row == 300) for row in range(ROWS)], ["a", None])
    for table in (wrong, TABLE.set_column(1, "y_pred", among)):
        with pytest.raises(InvalidInput, match="missing values, got one in 'y_pred' at row 300"):
            counts(table, tmp_path)


_TYPES = [
    *(pa.int16(), pa.uint64(), pa.float16(), pa.float64(), pa.decimal128(6, 2)),
    *(pa.decimal128(38, 0), pa.dictionary(pa.int8(), pa.string())),
]


@pytest.mark.parametrize("kind", _TYPES)
def test_labels_and_groups_of_any_type_are_counted(tmp_path: Path, kind: pa.DataType) -> None:
    own = pa.array(["3", "1", "3", "7", "1", "1"]).cast(kind)
    found, tally = counts(pa.table({"y_true": own, "y_pred": own, "group_id": own}), tmp_path, None)
    assert [float(one.as_py()) for one in found["group_id"]] == [1, 3, 7]
    assert found["y_true"].to_pylist() == found["y_pred"].to_pylist()
    np.testing.assert_array_equal(tally.times, [3, 2, 1])


def test_decimals_are_the_doubles_that_their_digits_are(tmp_path: Path) -> None:
    digits = ["0.6", "0.47", "0.144", "0.788807"]
    decimals = pa.array(map(Decimal, digits), pa.decimal128(12, 6))
    table = pa.table({"y_true": ["a"] * 4, "y_pred": ["a"] * 4, "score": decimals, "group_id": [1, 2, 3, 4]})
    found, _ = counts(table.rename_columns(["y_true", "y_pred", "sample_weight", "group_id"]), tmp_path)
    assert found["sample_weight"].to_pylist() == [*map(float, digits)]
    columns = FileColumns(4, table.column)
    assert columns.numbers("score").tolist() == columns.values("score") == [*map(float, digits)]


def test_too_many_groups_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted, "MOST_GROUPS", 59)
    with pytest.raises(TooLarge, match="at most 59 groups, got 60"):
        counts(TABLE, tmp_path, None)


def test_too_many_labels_are_refused_before_all_are_read(tmp_path: Path) -> None:
    names = pa.array([f"c{index}" for index in range(3000)])
    table = pa.table({"y_true": names, "y_pred": names})
    given = iter(table.to_batches(max_chunksize=100))
    with ENGINE.opened(tmp_path) as engine, pytest.raises(InvalidInput, match="at most 1000 classes, got more in the"):
        counted.counted(given, table.schema, ["y_true", "y_pred"], None, engine)
    assert next(given).num_rows == 100


@pytest.mark.parametrize("form", [DataFormat.PARQUET, DataFormat.CSV])
def test_more_than_100_000_rows_are_streamed_and_fewer_are_not(
    form: DataFormat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    original = Dataset.batches

    def noted(self: Dataset, columns: Any) -> Any:
        for batch in original(self, columns):
            read.append(batch.num_rows)
            yield batch

    monkeypatch.setattr(Dataset, "batches", noted)
    for rows in (STREAMED_FROM, STREAMED_FROM + 1):
        (place := tmp_path / str(rows)).mkdir()
        table = pa.table({"y_true": np.arange(rows) % 2, "y_pred": np.arange(rows) % 3 % 2, "sample_id": range(rows)})
        file = place / f"rows.{form.value}"
        pyarrow.csv.write_csv(table, file) if form is DataFormat.CSV else pq.write_table(table, file)
        body = json.dumps({"input": {"kind": "predictions", "data": {"uri": str(file)}}}).encode()
        asked = Asked(DataReference(str(file), form), "predictions", None, 1 << 30)
        read.clear()
        found = new_evaluation(body, DataPlaces((str(place),)), asked, ENGINE, tmp_path / "rows")
        facts = found.source.facts["data"]
        assert facts["rows"] == rows
        assert facts.get("sample_ids_unchecked", False) is (rows > STREAMED_FROM)
        # A file that says how many rows it has is read once, and of others the first rows are read again.
        assert rows <= sum(read) <= rows * (1 + (form is DataFormat.CSV and rows > STREAMED_FROM))
