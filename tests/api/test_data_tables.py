"""Tables as they lie somewhere: their formats, conditions on their rows, columns with several values, folders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from app.domain.data import DataEstimate
from app.settings import Settings
from tests.api.answers import Json, check_problem, check_shape, compute
from tests.api.jobs import ended
from tests.api.referenced import PREDICTIONS, later, lists, named, settings_for

ROWS = 400
RANDOM = np.random.default_rng(44)
TABLE = pa.table(
    {
        "label": RANDOM.choice(["cat", "dog"], ROWS),
        "guess": RANDOM.choice(["cat", "dog"], ROWS),
        "site": pa.array([None if one == 7 else f"site {one}%" for one in RANDOM.integers(0, 12, ROWS)]),
        "low": RANDOM.integers(0, 9, ROWS),
        "high": RANDOM.normal(4.0, 3.0, ROWS),
        "day": pa.array(RANDOM.integers(20_000, 20_090, ROWS).astype("datetime64[D]")),
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("tables")
    for name in ("parts", "mixed", "delta/_delta_log", "ice/metadata", "ice/data", "plain/metadata"):
        (place / name).mkdir(parents=True)
    for start in (0, 200):
        pq.write_table(TABLE.slice(start, 200), place / "parts" / f"{start}.parquet")
    pq.write_table(TABLE, place / "mixed" / "one.parquet")
    pyarrow.csv.write_csv(TABLE, place / "mixed" / "two.csv")
    pq.write_table(TABLE, place / "delta" / "one.parquet")
    (place / "delta" / "_delta_log" / "0.json").write_text("{}")
    pq.write_table(TABLE, place / "ice" / "data" / "one.parquet")
    (place / "ice" / "metadata" / "v1.metadata.json").write_text("{}")
    # Many folders are called so.
    pq.write_table(TABLE, place / "plain" / "metadata" / "one.parquet")
    return place


@pytest.fixture(scope="module")
def settings(database_url: str, folder: Path) -> Settings:
    return settings_for(database_url, str(folder))


def refused(client: httpx.Client, source: Json) -> tuple[str, str]:
    """Pointer and code of the first fault."""
    reply = client.post("/v1/metrics/compute", json={"input": source})
    error = check_problem(reply, 422, reply.json()["code"])["errors"][0]
    return error["pointer"], error["code"]


CONDITIONS: dict[str, Callable[[Any], bool]] = {
    "low between 2 and 5": lambda row: 2 <= row["low"] <= 5,
    "low not between 2 and 5 and high > 0": lambda row: not 2 <= row["low"] <= 5 and row["high"] > 0,
    "day BETWEEN '2024-10-15' AND '2024-11-30'": lambda row: "2024-10-15" <= str(row["day"]) <= "2024-11-30",
    "site like 'site 1_%'": lambda row: row["site"] is not None and row["site"].startswith("site 1"),
    "site like '% 10\\%'": lambda row: row["site"] == "site 10%",
    "site NOT LIKE '%3%'": lambda row: row["site"] is not None and "3" not in row["site"],
    "low <= high": lambda row: row["low"] <= row["high"],
    "label != guess or low > high": lambda row: row["label"] != row["guess"] or row["low"] > row["high"],
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_condition_chooses_the_rows_of_which_it_is_true(client: httpx.Client, folder: Path, condition: str) -> None:
    chosen = [row for row in TABLE.to_pylist() if CONDITIONS[condition](row)]
    found = later(client, named(folder / "parts", filter=condition))
    assert 0 < len(chosen) < ROWS
    assert found["input"]["data"]["rows"] == found["input"]["n_samples"] == len(chosen)
    right = sum(row["label"] == row["guess"] for row in chosen)
    assert found["metrics"]["prevalence_sensitive"]["accuracy"] == pytest.approx(right / len(chosen))


@pytest.mark.parametrize(
    ("condition", "code"),
    [
        ("low = site", "wrong_type"),
        ("low like '1%'", "wrong_type"),
        ("low between 'a' and 'b'", "wrong_type"),
        ("low = lower", "missing_column"),
        ("low between 2", "invalid_filter"),
        ("site like 3", "invalid_filter"),
    ],
)
def test_a_condition_that_means_nothing_is_refused(
    client: httpx.Client, folder: Path, condition: str, code: str
) -> None:
    assert refused(client, named(folder / "parts", filter=condition)) == ("/input/data/filter", code)


def test_names_of_the_files_say_how_they_are_written(client: httpx.Client, folder: Path) -> None:
    for place, form in (("parts", "parquet"), ("parts/*", "parquet"), ("**/*.csv", "csv")):
        found = later(client, named(folder / place))["input"]
        assert (found["n_samples"], found["data"]["format"]) == (ROWS, form)
    assert refused(client, named(folder / "mixed")) == ("/input/data/format", "missing_field")


def test_files_of_a_table_are_not_read_with_their_deleted_rows(client: httpx.Client, folder: Path) -> None:
    for place in ("delta", "delta/one.parquet", "d*/*.parquet"):
        assert refused(client, named(folder / place, PREDICTIONS)) == ("/input/data/uri", "delta_table")
    for place in ("ice/data", "ice", "ice/data/one.parquet", "i*/**/*.parquet"):
        assert refused(client, named(folder / place, PREDICTIONS)) == ("/input/data/uri", "iceberg_table")
    assert later(client, named(folder / "plain"))["input"]["n_samples"] == ROWS


def test_a_version_is_one_of_a_table(client: httpx.Client, folder: Path) -> None:
    assert refused(client, named(folder / "parts", version=1)) == ("/input/data/version", "no_versions")


CLASSES = ["cat", "dog", "owl"]
SHARES = RANDOM.dirichlet([2.0, 2.0, 2.0], ROWS)
TRUTH = RANDOM.choice(CLASSES, ROWS)
NESTED = pa.table(
    {
        "label": TRUTH,
        **{f"p{place}": SHARES[:, place] for place in range(3)},
        "listed": pa.array(SHARES.tolist(), pa.list_(pa.float64())),
        "fixed": pa.FixedSizeListArray.from_arrays(pa.array(SHARES.ravel()), 3),
        "named": pa.StructArray.from_arrays([SHARES[:, 2], SHARES[:, 0], SHARES[:, 1]], ["owl", "cat", "dog"]),
        "flags": pa.array((SHARES > 0.3).astype(int).tolist(), pa.list_(pa.int8())),
        "short": pa.array([[0.5, 0.5] if row == 250 else one for row, one in enumerate(SHARES.tolist())]),
        "gaps": pa.array([None if row == 250 else one for row, one in enumerate(SHARES.tolist())]),
    }
)


@pytest.mark.parametrize("column", ["listed", "fixed", "named"])
@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_a_column_may_hold_the_values_of_all_classes(
    client: httpx.Client, folder: Path, column: str, form: str
) -> None:
    place = folder / f"nested.{form}"
    if form == "parquet":
        pq.write_table(NESTED, place, row_group_size=90)
    else:
        pyarrow.feather.write_feather(NESTED, place, chunksize=90)
    source = named(place, {"y_true": "label", "probabilities": column}, "probabilities", labels=CLASSES)
    found = later(client, {**source, "data": {**source["data"], "filter": "p0 > 0.1"}})
    kept = NESTED.filter(pa.compute.greater(NESTED["p0"], 0.1))
    sent = {"y_true": kept["label"].to_pylist(), "probabilities": lists(kept, "p0", "p1", "p2")}
    whole = compute(client, {"kind": "probabilities", "labels": CLASSES, **sent}, retain="none")
    facts = found["input"].pop("data")
    assert facts["columns"] == {"y_true": "label", "probabilities": column}
    assert found == whole


def test_sets_of_labels_may_be_lists(client: httpx.Client, folder: Path) -> None:
    pq.write_table(NESTED, folder / "sets.parquet")
    columns = {"y_true": "flags", "probabilities": "listed"}
    found = later(client, named(folder / "sets.parquet", columns, "multilabel", labels=CLASSES))
    sent = {"y_true": NESTED["flags"].to_pylist(), "probabilities": NESTED["listed"].to_pylist()}
    whole = compute(client, {"kind": "multilabel", "labels": CLASSES, **sent}, retain="none")
    del found["input"]["data"]
    assert found == whole


def test_a_column_of_several_values_that_does_not_fit_is_refused(client: httpx.Client, folder: Path) -> None:
    place = folder / "wrong.parquet"
    pq.write_table(NESTED, place)
    where = "/input/data/columns/probabilities"
    for column, members, code in (
        ("listed", {}, "wrong_length"),
        ("fixed", {"labels": CLASSES[:2]}, "wrong_length"),
        ("named", {"labels": ["cat", "dog", "emu"]}, "missing_column"),
    ):
        source = named(place, {"y_true": "label", "probabilities": column}, "probabilities", **members)
        assert refused(client, source) == (where, code)
    for column, detail in (("short", "got 2 at row 250"), ("gaps", "got one in 'gaps' at row 250")):
        source = named(place, {"y_true": "label", "probabilities": column}, "probabilities", labels=CLASSES)
        problem = ended(client, client.post("/v1/metrics/compute", json={"input": source}).json())["problem"]
        assert detail in problem["errors"][0]["detail"]


@pytest.mark.parametrize("form", ["parquet", "arrow"])
def test_names_of_folders_are_columns(client: httpx.Client, folder: Path, form: str) -> None:
    root = folder / f"hive-{form}"
    for part in range(4):
        place = root / f"day=2026-01-0{part + 1}" / f"part={part}" / "town=a%2Fb"
        place.mkdir(parents=True)
        rows = TABLE.drop_columns(["day"]).slice(100 * part, 100)
        (pq.write_table if form == "parquet" else pyarrow.feather.write_feather)(rows, str(place / f"rows.{form}"))
    found = later(client, named(root, filter="day >= '2026-01-02' and part < 3 and town = 'a/b'"))
    assert found["input"]["data"]["rows"] == 200
    grouped = later(client, named(root, {**PREDICTIONS, "group_id": "day"}))
    assert grouped["input"]["n_groups"] == 4
    assert refused(client, named(root, filter="part = 'x'")) == ("/input/data/filter", "wrong_type")
    # Without names of columns they are for the filter only.
    plain = TABLE.select(["label", "guess"]).rename_columns(["y_true", "y_pred"])
    (folder / "days" / "day=1").mkdir(parents=True, exist_ok=True)
    pq.write_table(plain, folder / "days" / "day=1" / "rows.parquet")
    assert later(client, named(folder / "days", None, filter="day = 1"))["input"]["n_samples"] == ROWS


@pytest.mark.parametrize("form", ["parquet", "arrow", "csv"])
def test_an_estimate_says_how_much_there_is_and_evaluates_nothing(
    client: httpx.Client, folder: Path, form: str
) -> None:
    many = 200_000
    table = pa.table({"label": np.arange(many) % 2, "guess": np.arange(many) % 3 % 2})
    (place := folder / f"many-{form}").mkdir()
    for start in (0, many // 2):
        half, file = table.slice(start, many // 2), place / f"{start}.{form}"
        if form == "parquet":
            pq.write_table(half, file)
        elif form == "arrow":
            pyarrow.feather.write_feather(half, file)
        else:
            pyarrow.csv.write_csv(half, file)
    before = client.get("/v1/jobs").json()["items"]
    for path in ("evaluations", "metrics/compute"):
        reply = client.post(f"/v1/{path}", json={"input": named(place)}, params={"estimate": "true"})
        assert reply.status_code == 200, reply.text
        check_shape(reply, DataEstimate)
        found = reply.json()
        assert found["rows"] == pytest.approx(many, rel=0 if form != "csv" else 0.01)
        assert found["rows_known"] is (form != "csv")
        assert (found["files"], found["streamed"]) == (2, True)
        assert found["bytes"] == sum(one.stat().st_size for one in place.iterdir())
        assert found["seconds"] > 0
    assert client.get("/v1/jobs").json()["items"] == before
    sent = {"input": {"kind": "predictions", "y_true": [0, 1], "y_pred": [0, 1]}}
    reply = client.post("/v1/metrics/compute", json=sent, params={"estimate": "true"})
    assert check_problem(reply, 422, reply.json()["code"])["errors"][0]["code"] == "no_reference"
    reply = client.post("/v1/metrics/compute", json={"input": named("/etc/passwd")}, params={"estimate": "true"})
    check_problem(reply, 403, "data_not_allowed")
