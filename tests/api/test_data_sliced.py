"""Slices of samples that lie elsewhere: those of the same rows sent whole, in memory and counted."""

from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from app.settings import Settings
from tests.api.answers import Json, check_problem
from tests.api.jobs import LATER, ended, result
from tests.api.referenced import PREDICTIONS, keep, named, settings_for
from tests.golden.comparing import differences

# With 1 MiB of memory so many rows of these columns are beyond it.
FEW, MANY = 400, 60_000
RANDOM = np.random.default_rng(8)
ATTRIBUTES = {"site": "hospital", "age": "years"}
NAMED: Json = {**PREDICTIONS, "attributes": ATTRIBUTES}
ASKED: Json = {"by": ["site"], "metrics": ["recall@sick", "precision@sick", "h_mean"], "minimum_samples": 5}


def table(size: int) -> pa.Table:
    sick = RANDOM.random(size) < 0.4
    right = RANDOM.random(size) < 0.8
    site = RANDOM.choice(["A", "B", ""], size)
    return pa.table(
        {
            "label": np.where(sick, "sick", "well"),
            "guess": np.where(sick == right, "sick", "well"),
            "hospital": pa.array([one or None for one in site]),
            "years": RANDOM.integers(20, 25, size),
            "w": RANDOM.integers(1, 4, size).astype(float),
            "patient": np.arange(size) // 4,
        }
    )


TABLES = {"few": table(FEW), "many": table(MANY)}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("data")
    for name, one in TABLES.items():
        pq.write_table(one, place / f"{name}.parquet")
        pyarrow.csv.write_csv(one, place / f"{name}.csv")
    return place


@pytest.fixture(scope="module")
def settings(database_url: str, folder: Path) -> Settings:
    return settings_for(database_url, str(folder), spill_dir=folder.parent / "spilled")


def sent(rows: pa.Table, **besides: str) -> Json:
    columns = {**PREDICTIONS, **besides}
    attributes = {name: rows[column].to_pylist() for name, column in ATTRIBUTES.items()}
    members = {ours: rows[theirs].to_pylist() for ours, theirs in columns.items()}
    return {"kind": "predictions", "attributes": attributes, **members}


def sliced(client: httpx.Client, path: str, **body: Any) -> Json:
    reply = client.post(path, json={**ASKED, **body})
    assert reply.status_code == 202, reply.text
    answer: Json = result(client, reply.json()).json()
    return answer


@pytest.mark.parametrize(
    ("file", "besides"),
    [
        ("few.parquet", {}),
        ("few.csv", {"sample_weight": "w"}),
        ("many.parquet", {}),
        ("many.csv", {}),
        ("many.parquet", {"sample_weight": "w"}),
        ("many.parquet", {"group_id": "patient"}),
    ],
)
def test_slices_are_those_of_the_same_rows_sent_whole(
    client: httpx.Client, folder: Path, file: str, besides: dict[str, str]
) -> None:
    members = {"group_ids" if ours == "group_id" else ours: theirs for ours, theirs in besides.items()}
    whole = client.post("/v1/slices", json={"input": sent(TABLES[file.partition(".")[0]], **members), **ASKED})
    assert whole.status_code == 200, whole.text
    found = sliced(client, "/v1/slices", input=named(folder / file, {**NAMED, **besides}))
    assert [*differences(whole.json(), found)] == []


def test_an_evaluation_of_named_data_reads_it_again(client: httpx.Client, folder: Path) -> None:
    kept = result(client, keep(client, named(folder / "many.parquet", NAMED)).json()).json()
    assert kept["input"]["data"]["columns"] == NAMED
    found = sliced(client, f"/v1/evaluations/{kept['id']}/slices")
    assert found["evaluation_id"] == kept["id"]
    assert found["n_samples"] == MANY
    assert [one["where"]["site"] for one in found["slices"]] == ["A", "B", None]
    deferred = client.post(f"/v1/evaluations/{kept['id']}/slices", json=ASKED, headers=LATER).json()
    assert result(client, deferred).json() == found
    other = client.get(f"/v1/evaluations/{kept['id']}", params={"slice": 'site="A"'})
    check_problem(other, 409, "no_samples_kept")


def test_rows_with_labels_elsewhere_and_of_several_models_have_slices(client: httpx.Client, folder: Path) -> None:
    """Some have no site; an evaluation does not read it, and their slices do."""
    rows = TABLES["few"].append_column("id", pa.array(range(FEW)))
    pq.write_table(rows.drop_columns(["label"]), folder / "rows.parquet")
    pq.write_table(rows.select(["id", "label"]), folder / "labels.parquet")
    labels = {"data": {"uri": str(folder / "labels.parquet"), "columns": {"y_true": "label"}}, "on": "id"}
    columns = {"y_pred": "guess", "attributes": ATTRIBUTES}
    joined = keep(client, named(folder / "rows.parquet", columns, joined=labels)).json()
    source = named(folder / "few.parquet", {"y_true": "label", "attributes": ATTRIBUTES})
    models = {"own": {"columns": {"y_pred": "guess"}}}
    body = {"models": models, "dataset": {"name": "models"}, "input": source}
    several = result(client, client.post("/v1/evaluations", json=body).json()).json()["items"]
    whole = client.post("/v1/slices", json={"input": sent(TABLES["few"]), **ASKED, "by": ["site", "age"]}).json()
    for kept in (result(client, joined).json(), *several):
        found = sliced(client, f"/v1/evaluations/{kept['id']}/slices", by=["site", "age"])
        assert [*differences({**whole, "evaluation_id": kept["id"]}, found)] == []


@pytest.mark.parametrize("besides", [{}, {"sample_weight": "w"}])
def test_what_was_merged_of_named_data_reads_all_parts_again(
    client: httpx.Client, folder: Path, besides: dict[str, str]
) -> None:
    """Its slices are those of the rows of all parts; a part that does not name the same attributes makes none."""
    days = [TABLES["few"].slice(0, 150), TABLES["few"].slice(150)]
    for day, rows in enumerate(days):
        pq.write_table(rows, folder / f"day-{day}-{len(besides)}.parquet")
    files = [folder / f"day-{day}-{len(besides)}.parquet" for day in (0, 1)]
    sources = [
        named(files[day], {**NAMED, **besides, "attributes": own})
        for day, own in ((0, ATTRIBUTES), (1, ATTRIBUTES), (1, {"site": "hospital"}))
    ]
    first, second, other = (result(client, keep(client, one, dataset="days").json()).json()["id"] for one in sources)
    many = result(client, keep(client, named(folder / "many.parquet", {**NAMED, **besides}), dataset="days").json())

    def merged(*parts: str) -> str:
        reply = client.post("/v1/evaluations/merge", json={"evaluations": parts, "model": {"name": "all"}})
        return str((result(client, reply.json()) if reply.status_code == 202 else reply).json()["id"])

    if not besides:
        large = merged(first, many.json()["id"])
        problem = ended(client, client.post(f"/v1/evaluations/{large}/slices", json=ASKED).json())["problem"]
        assert problem["status"] == 413
        assert "that were not merged, or no more rows than memory holds" in problem["detail"]
    whole = client.post("/v1/slices", json={"input": sent(TABLES["few"], **besides), **ASKED}).json()
    month = merged(first, second)
    found = sliced(client, f"/v1/evaluations/{month}/slices")
    assert found["evaluation_id"] == month
    assert [*differences({**whole, "evaluation_id": month}, found)] == []
    reply = client.post(f"/v1/evaluations/{merged(first, other)}/slices", json=ASKED)
    assert "named alike by all its parts" in check_problem(reply, 409, "no_samples_kept")["detail"]


def test_an_evaluation_of_named_data_has_no_values_of_slices(client: httpx.Client, folder: Path) -> None:
    job = keep(client, named(folder / "few.parquet", NAMED), options={"metrics": ["min(recall@sick, by=site)"]}).json()
    (fault,) = ended(client, job)["problem"]["errors"]
    assert fault["pointer"] == "/options/metrics/0"
    assert "expected samples with attributes" in fault["detail"]


@pytest.mark.parametrize(
    ("source", "pointer", "code"),
    [
        ({"attributes": {"site": "ward"}}, "/input/data/columns/attributes/site", "missing_column"),
        ({"attributes": ["hospital"]}, "/input/data/columns/attributes", "column_names"),
        ({"y_true": {"a": "label"}}, "/input/data/columns/y_true", "column_names"),
    ],
)
def test_what_cannot_be_read_is_refused_at_once(
    client: httpx.Client, folder: Path, source: Json, pointer: str, code: str
) -> None:
    body = {"input": named(folder / "few.parquet", {**NAMED, **source}), **ASKED}
    for headers in ({}, LATER):
        problem = check_problem(client.post("/v1/slices", json=body, headers=headers), 422, "invalid_input")
        assert [(one["pointer"], one["code"]) for one in problem["errors"]] == [(pointer, code)]


def test_what_slices_cannot_be_made_of_is_the_problem_of_the_job(client: httpx.Client, folder: Path) -> None:
    rows = TABLES["many"].append_column("risk", pa.array(RANDOM.normal(size=MANY)))
    pq.write_table(rows, folder / "risks.parquet")
    columns = {"y_true": "label", "score": "risk", "attributes": ATTRIBUTES}
    scores = named(folder / "risks.parquet", columns, "scores", labels=["well", "sick"])
    job = client.post("/v1/slices", json={"input": scores, **ASKED}).json()
    problem = ended(client, job)["problem"]
    assert problem["status"] == 413
    assert "expected predictions" in problem["detail"]
    search = {**ASKED, "by": [], "search": {"metric": "accuracy"}}
    job = client.post("/v1/slices", json={"input": named(folder / "many.parquet", NAMED), **search}).json()
    assert ended(client, job)["problem"]["errors"][0]["pointer"] == "/search"
