"""Labels in files of their own, joined by an id, and many models of one table: the answers of the same rows."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest

from app.api.bodies.referenced import Asked, Reading
from app.domain.data import DataFormat, DataReference, LabelReference
from app.domain.errors import SpillFull
from app.domain.evaluation import ModelRef
from app.outbound.data import DataPlaces
from app.settings import Settings
from tests.api.answers import Json, check_problem, compute, create, evaluation
from tests.api.jobs import ended, result
from tests.api.referenced import keep, later, lists, named, settings_for
from tests.engine import ENGINE

# Large data; what answers small data the same way is held against it by tests/services/test_either_way.py in every run.
pytestmark = pytest.mark.slow

ROWS = 700
RANDOM = np.random.default_rng(251)
CLASSES = ["cat", "dog", "owl"]
SHARES = RANDOM.dirichlet([2.0, 2.0, 2.0], ROWS)
TABLE = pa.table(
    {
        "id": [f"sample {one}" for one in range(ROWS)],
        "number": np.arange(ROWS) * 3,
        "label": RANDOM.choice(CLASSES, ROWS),
        "guess": RANDOM.choice(CLASSES, ROWS),
        "digit": RANDOM.integers(0, 3, ROWS),
        "guessed": RANDOM.integers(0, 3, ROWS),
        **{f"p{place}": SHARES[:, place] for place in range(3)},
        "listed": pa.array(SHARES.tolist(), pa.list_(pa.float64())),
        "sick": RANDOM.integers(0, 2, ROWS),
        "risk": RANDOM.normal(size=ROWS),
        "w": RANDOM.uniform(0.5, 2.0, ROWS),
        "patient": np.arange(ROWS) // 3,
        **{f"t{place}": RANDOM.integers(0, 2, ROWS) for place in range(3)},
        "query": np.arange(ROWS) // 10,
        "grade": RANDOM.integers(0, 3, ROWS).astype(float),
    }
)
HERE = ["id", "number", "guess", "guessed", "p0", "p1", "p2", "listed", "risk", "query"]
THERE = ["id", "number", "label", "digit", "sick", "w", "patient", "t0", "t1", "t2", "grade"]
SHUFFLED = RANDOM.permutation(ROWS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("joined")
    pq.write_table(TABLE.select(HERE), place / "rows.parquet", row_group_size=90)
    pyarrow.csv.write_csv(TABLE.select([one for one in HERE if one != "listed"]), place / "rows.csv")
    (place / "labels").mkdir()
    others = TABLE.select(THERE).take(SHUFFLED)
    for start in (0, 300):
        pq.write_table(others.slice(start, 300 if start == 0 else 400), place / "labels" / f"{start}.parquet")
    renamed = others.rename_columns({"number": "sample"})
    pyarrow.csv.write_csv(renamed, place / "labels.csv")
    return place


@pytest.fixture(scope="module")
def settings(database_url: str, folder: Path) -> Settings:
    return settings_for(database_url, str(folder))


def joined(place: Path, columns: Json, on: Any = "id", **members: Any) -> Json:
    return {"data": {"uri": str(place), "columns": columns, **members}, "on": on}


KINDS: dict[str, tuple[Json, Json, Json, Json]] = {
    "predictions": (
        {"kind": "predictions"},
        {"y_pred": "guess"},
        {"y_true": "label"},
        {"y_true": TABLE["label"].to_pylist(), "y_pred": TABLE["guess"].to_pylist()},
    ),
    "numbers, with groups and weights": (
        {"kind": "predictions"},
        {"y_pred": "guessed", "sample_id": "id"},
        {"y_true": "digit", "group_id": "patient", "sample_weight": "w"},
        {
            "y_true": TABLE["digit"].to_pylist(),
            "y_pred": TABLE["guessed"].to_pylist(),
            "sample_ids": TABLE["id"].to_pylist(),
            "group_ids": TABLE["patient"].to_pylist(),
            "sample_weight": TABLE["w"].to_pylist(),
        },
    ),
    "probabilities": (
        {"kind": "probabilities", "labels": CLASSES},
        {"probabilities": ["p0", "p1", "p2"]},
        {"y_true": "label"},
        {"y_true": TABLE["label"].to_pylist(), "probabilities": lists(TABLE, "p0", "p1", "p2")},
    ),
    "scores": (
        {"kind": "scores", "threshold": 0.25},
        {"score": "risk"},
        {"y_true": "sick"},
        {"y_true": TABLE["sick"].to_pylist(), "scores": TABLE["risk"].to_pylist()},
    ),
    "multilabel": (
        {"kind": "multilabel", "labels": CLASSES},
        {"probabilities": ["p0", "p1", "p2"]},
        {"y_true": ["t0", "t1", "t2"]},
        {"y_true": lists(TABLE, "t0", "t1", "t2"), "probabilities": lists(TABLE, "p0", "p1", "p2")},
    ),
    "ranking": (
        {"kind": "ranking"},
        {"query_id": "query", "score": "risk"},
        {"relevance": "grade"},
        {
            "query_ids": TABLE["query"].to_pylist(),
            "relevance": TABLE["grade"].to_pylist(),
            "scores": TABLE["risk"].to_pylist(),
        },
    ),
}


FORMS = ("parquet", "csv", "mixed")


# Every kind in one form, and one kind in every form.
@pytest.mark.parametrize(
    ("name", "forms"),
    [
        *((name, FORMS[place % 3]) for place, name in enumerate(KINDS)),
        *((next(iter(KINDS)), form) for form in FORMS[1:]),
    ],
)
def test_the_answer_is_that_of_rows_with_their_labels(
    client: httpx.Client, folder: Path, name: str, forms: str
) -> None:
    members, here, there, sent = KINDS[name]
    rows = folder / ("rows.csv" if forms == "csv" else "rows.parquet")
    labels = folder / ("labels" if forms == "parquet" else "labels.csv")
    on: Any = "id" if forms == "parquet" else ["number", "sample"]
    found = later(client, named(rows, here, members["kind"], joined=joined(labels, there, on), **without(members)))
    facts = found["input"].pop("data")
    assert found == compute(client, {**members, **sent}, retain="none")
    assert (facts["rows"], facts["columns"]) == (ROWS, here)
    own = facts["labels"]
    assert (own["rows"], own["unmatched"], own["columns"]) == (ROWS, 0, there)
    assert own["on"] == (["id", "id"] if on == "id" else on)
    assert own["digest"] != facts["digest"]


def without(members: Json) -> Json:
    return {name: value for name, value in members.items() if name != "kind"}


def test_filters_choose_rows_of_each_side(client: httpx.Client, folder: Path) -> None:
    label = joined(folder / "labels", {"y_true": "label"}, filter="number < 1500")
    found = later(client, named(folder / "rows.parquet", {"y_pred": "guess"}, joined=label, filter="number < 900"))
    assert (found["input"]["n_samples"], found["input"]["data"]["labels"]["unmatched"]) == (300, 200)
    some = TABLE.slice(0, 300)
    sent = {"kind": "predictions", "y_true": some["label"].to_pylist(), "y_pred": some["guess"].to_pylist()}
    del found["input"]["data"]
    assert found == compute(client, sent, retain="none")


def test_more_rows_than_memory_holds_are_joined(client: httpx.Client, folder: Path) -> None:
    many = 120_000
    truth, guess = np.arange(many) % 3, np.arange(many) % 5 % 3
    ids = np.random.default_rng(3).permutation(many)
    pq.write_table(pa.table({"id": np.arange(many), "guess": guess}), folder / "many.parquet")
    pq.write_table(pa.table({"id": ids, "label": truth[ids]}), folder / "many labels.parquet")
    label = joined(folder / "many labels.parquet", {"y_true": "label"})
    source = named(folder / "many.parquet", {"y_pred": "guess", "sample_id": "id"}, joined=label)
    found = later(client, source)
    assert found["input"]["data"]["sample_ids_unchecked"] is True
    assert found["metrics"]["prevalence_sensitive"]["accuracy"] == np.mean(truth == guess)
    reply = client.post("/v1/metrics/compute", json={"input": source}, params={"estimate": "true"})
    assert (reply.json()["rows"], reply.json()["files"]) == (many, 2)


def gap(column: pa.ChunkedArray, place: int) -> pa.Array:
    return pa.array([None if row == place else one for row, one in enumerate(column.to_pylist())])


@pytest.mark.parametrize(
    ("change", "code", "detail"),
    [
        ("missing", "missing_label", "2 of 700 have none: the first is row 5 of those read, with the id 'sample 5'"),
        ("last", "missing_label", "1 of 700 have none: the first is row 699 of those read, with the id 'sample 699'"),
        ("doubled", "duplicate_id", "2 of the labels come more than once: the first is 'sample 4', at row 4"),
        ("doubled here", "duplicate_id", "1 of the samples come more than once: the first is 'sample 4', at row 4"),
        ("other type", "wrong_type", "got string in 'id' of the samples and int64 in 'id' of the labels"),
        ("null", "missing_value", "got one in 'id' at row 3"),
        ("no label", "missing_value", "got one in 'label' at row 8"),
    ],
)
def test_ids_that_do_not_fit_are_one_fault(
    client: httpx.Client, folder: Path, change: str, code: str, detail: str
) -> None:
    place = folder / change
    place.mkdir()
    here, there = TABLE.select(["id", "guess"]), TABLE.select(["id", "label"])
    if change == "missing":
        there = there.take([one for one in range(ROWS) if one not in (5, 600)])
    elif change == "last":
        there = there.slice(0, ROWS - 1)
    elif change == "doubled":
        there = pa.concat_tables([there, there.slice(4, 2), there.slice(4, 1)])
    elif change == "doubled here":
        here = pa.concat_tables([here, here.slice(4, 1)])
    elif change == "other type":
        there = there.set_column(0, "id", TABLE["number"])
    elif change == "null":
        there = there.set_column(0, "id", pa.array([None if n == 3 else one for n, one in enumerate(TABLE["id"])]))
    else:
        there = there.set_column(
            1, "label", pa.array([None if n == 8 else one for n, one in enumerate(TABLE["label"])])
        )
    pq.write_table(here, place / "rows.parquet")
    pq.write_table(there, place / "labels.parquet")
    source = named(
        place / "rows.parquet", {"y_pred": "guess"}, joined=joined(place / "labels.parquet", {"y_true": "label"})
    )
    problem = ended(client, client.post("/v1/metrics/compute", json={"input": source}).json())["problem"]
    [error] = problem["errors"]
    where = "/input/data/labels/data" if code == "missing_value" else "/input/data/labels/on"
    assert (error["pointer"], error["code"]) == (where, code)
    assert detail in error["detail"]


def test_what_can_be_seen_at_once_is_refused_at_once(client: httpx.Client, folder: Path) -> None:
    rows, place, label = folder / "rows.parquet", folder / "labels", {"y_true": "label"}
    own, there = {"y_pred": "guess"}, "/input/data/labels/data"
    cases: list[tuple[Json | None, Json, str, str]] = [
        (own, joined(place, label, "none"), "/input/data", "missing_column"),
        (own, joined(place, label, ["id", "none"]), there, "missing_column"),
        (own, joined(folder / "none", label), f"{there}/uri", "no_such_data"),
        (own, joined(place, label, filter="x ="), f"{there}/filter", "invalid_filter"),
        (own, joined(place, label, filter="x = 1"), f"{there}/filter", "missing_column"),
        (own, joined(place, {"y_true": "no"}), f"{there}/columns", "missing_column"),
        ({"y_pred": "guess", "y_true": "guess"}, joined(place, label), f"{there}/columns", "duplicate_column"),
        (None, joined(place, label), "/input/data/columns", "missing"),
    ]
    for columns, labels, pointer, code in cases:
        source = named(rows, columns, joined=labels)
        if columns is None:
            del source["data"]["columns"]
        reply = client.post("/v1/metrics/compute", json={"input": source})
        error = check_problem(reply, 422, "invalid_input")["errors"][0]
        assert (error["pointer"], error["code"]) == (pointer, code), error
    outside = joined(Path("/etc/passwd"), label)
    reply = client.post("/v1/metrics/compute", json={"input": named(rows, {"y_pred": "guess"}, joined=outside)})
    check_problem(reply, 403, "data_not_allowed")


def test_runs_with_labels_elsewhere_are_compared_in_pairs(client: httpx.Client, folder: Path) -> None:
    labels = joined(folder / "labels", {"y_true": "label"})
    runs = [kept(client, named(folder / "rows.parquet", {"y_pred": "guess", "sample_id": "id"}, joined=labels), "own")]
    whole = {"kind": "predictions", "sample_ids": TABLE["id"].to_pylist(), **KINDS["predictions"][3]}
    other = {**whole, "y_pred": [*whole["y_pred"][1:], whole["y_pred"][0]]}
    sent = [
        create(client, evaluation(model=f"sent {place}", input=one))["id"] for place, one in enumerate((whole, other))
    ]
    body = {"metrics": ["accuracy", "mcc"], "paired": "true"}
    reply = client.post("/v1/comparisons", json={"evaluations": [*runs, sent[1]], **body})
    found = result(client, reply.json()).json()
    expected = client.post("/v1/comparisons", json={"evaluations": sent, **body}).json()
    assert found["design"]["paired"]
    assert json.dumps(found["metrics"]).replace(runs[0], sent[0]) == json.dumps(expected["metrics"])
    # Labels that have changed are not those that were evaluated.
    (folder / "labels" / "0.parquet").touch()
    reply = client.post("/v1/comparisons", json={"evaluations": [*runs, sent[1]], **body})
    assert ended(client, reply.json())["problem"]["errors"][0]["code"] == "data_changed"


def kept(client: httpx.Client, source: Json, model: str) -> str:
    job = ended(client, keep(client, source, model=model).json())
    assert job["status"] == "succeeded", job
    return str(job["result"].rpartition("/")[2])


def models_of(**columns: Json) -> Json:
    return {name: {"columns": one} for name, one in columns.items()}


def several(client: httpx.Client, body: Json, path: str = "evaluations") -> list[Json]:
    reply = client.post(f"/v1/{path}", json=body)
    assert reply.status_code == 202, reply.text
    items: list[Json] = result(client, reply.json()).json()["items"]
    return items


@pytest.mark.parametrize("forms", ["parquet", "csv"])
def test_models_of_one_table_are_evaluated_together(client: httpx.Client, folder: Path, forms: str) -> None:
    wide = TABLE.drop_columns(["listed"])
    place = folder / f"wide.{forms}"
    pq.write_table(wide, place) if forms == "parquet" else pyarrow.csv.write_csv(wide, place)
    models = models_of(**{"first": {"y_pred": "guess"}, "second/third": {"y_pred": "label"}})
    models["first"]["version"] = "7"
    source = named(place, {"y_true": "label", "sample_id": "id"}, filter="number < 900")
    body = {"models": models, "dataset": {"name": forms}, "tags": {"a": "b"}, "input": source}
    found = several(client, body)
    assert [one["model"] for one in found] == [
        {"name": "first", "version": "7"},
        {"name": "second/third", "version": None},
    ]
    for one, column in zip(found, ("guess", "label"), strict=True):
        columns = {"y_true": "label", "sample_id": "id", "y_pred": column}
        alone = later(client, {**source, "data": {**source["data"], "columns": columns}})
        assert (one["input"], one["metrics"], one["tags"]) == (alone["input"], alone["metrics"], {"a": "b"})
        assert client.get(f"/v1/evaluations/{one['id']}").json() == one
    # Their samples can be read again, as of any other.
    runs = [one["id"] for one in found]
    reply = client.post("/v1/comparisons", json={"evaluations": runs, "metrics": ["accuracy"], "paired": "true"})
    assert result(client, reply.json()).json()["design"]["paired"]
    assert [one["id"] for one in several(client, body, "metrics/compute")] == [None, None]


def test_models_may_have_several_columns_each_and_labels_elsewhere(client: httpx.Client, folder: Path) -> None:
    labels = joined(folder / "labels", {"y_true": "label"})
    source = named(folder / "rows.parquet", None, "probabilities", labels=CLASSES, joined=labels)
    source["data"]["columns"] = {"group_id": "query"}
    models = models_of(
        plain={"probabilities": ["p0", "p1", "p2"]},
        turned={"probabilities": ["p1", "p0", "p2"]},
        nested={"probabilities": "listed"},
    )
    body = {"models": models, "dataset": {"name": "joined"}, "input": source}
    plain, turned, nested = several(client, body)
    assert plain["metrics"] == nested["metrics"] != turned["metrics"]
    own = {**source["data"], "columns": {"group_id": "query", "probabilities": ["p1", "p0", "p2"]}}
    alone = later(client, {**source, "data": own})
    assert (turned["input"], turned["metrics"]) == (alone["input"], alone["metrics"])
    reply = client.post("/v1/evaluations", json=body, params={"estimate": "true"})
    assert (reply.json()["rows"], reply.json()["files"]) == (ROWS, 3)


def test_all_models_are_kept_or_none(client: httpx.Client, folder: Path) -> None:
    pq.write_table(TABLE.set_column(3, "guess", gap(TABLE["guess"], 690)), folder / "gap.parquet")
    models = models_of(fine={"y_pred": "label"}, **{"with gap": {"y_pred": "guess"}})
    body = {
        "models": models,
        "dataset": {"name": "all or none"},
        "input": named(folder / "gap.parquet", {"y_true": "label"}),
    }
    job = ended(client, client.post("/v1/evaluations", json=body).json())
    [error] = job["problem"]["errors"]
    assert (error["pointer"], error["code"]) == ("/models/with gap", "missing_value")
    found = client.get("/v1/evaluations", params={"dataset": "all or none"}).json()
    assert found["items"] == []


def test_models_that_mean_nothing_are_refused_at_once(client: httpx.Client, folder: Path) -> None:
    source, good = named(folder / "rows.parquet", {"y_true": "guess"}), {"columns": {"y_pred": "guess"}}
    cases: list[tuple[Json, str]] = [
        ({"models": {"a": good}, "model": {"name": "b"}}, "one_of"),
        ({"models": {"a": good, "b": {"columns": {"y_pred": "none"}}}}, "missing_column"),
        ({"models": {"a": good, "b": {"columns": {}}}}, "missing_column"),
        ({"models": {}}, "wrong_length"),
        ({"models": {"": good}}, "wrong_length"),
    ]
    for members, code in cases:
        reply = client.post("/v1/evaluations", json={"dataset": {"name": "d"}, "input": source, **members})
        assert reply.status_code == 422, reply.text
        assert reply.json()["errors"][0]["code"] == code, reply.text
    reply = client.post("/v1/evaluations", json={"models": {"a": good}, "input": source})
    assert check_problem(reply, 422, "invalid_input")["errors"][0]["pointer"] == "/dataset"


@pytest.mark.parametrize("labels", [None, "labels"])
def test_a_copy_takes_no_more_files_than_it_may(folder: Path, tmp_path: Path, labels: str | None) -> None:
    columns = {"y_true": "guess", "y_pred": "guess"}
    reference = DataReference(str(folder / "rows.parquet"), DataFormat.PARQUET, columns)
    if labels is not None:
        others = DataReference(str(folder / labels), DataFormat.PARQUET, {"group_id": "patient"})
        reference = replace(reference, labels=LabelReference(others, ("id", "id")))
    asked = Asked(reference, "predictions", None, 1 << 20, models=((ModelRef("one"), {}),))
    with pytest.raises(SpillFull, match="PREVAIL_SPILL_BYTES"):
        Reading(DataPlaces((str(folder),)), ENGINE, tmp_path, 500).copied(asked)
    [one] = Reading(DataPlaces((str(folder),)), ENGINE, tmp_path, 1 << 20).copied(asked)
    assert one.copy is not None
    assert one.copy.facts["rows"] == ROWS
