"""Data that requests name: the answer of the same rows sent whole, read only where the operator allows it."""

import gzip
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from secrets import token_hex

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from pydantic import SecretStr

from app.settings import Authentication, Settings
from tests.api.answers import Json, check_problem, compute, evaluation
from tests.api.jobs import LATER, ended, read, result, running
from tests.api.keys import bearer, make_key
from tests.api.referenced import PREDICTIONS, keep, later, lists, named, settings_for
from tests.bank import each
from tests.serving import Served

ROWS = 600
RANDOM = np.random.default_rng(15)
CLASSES = ["cat", "dog", "owl"]
SHARES = RANDOM.dirichlet([2.0, 2.0, 2.0], ROWS)
TRUTH = [CLASSES[one] for one in RANDOM.integers(0, 3, ROWS)]
GUESS = [CLASSES[one] for one in np.argmax(SHARES, axis=1)]
TABLE = pa.table(
    {
        "label": TRUTH,
        "guess": GUESS,
        **{f"p{place}": SHARES[:, place] for place in range(3)},
        "sick": RANDOM.integers(0, 2, ROWS),
        "risk": RANDOM.normal(size=ROWS),
        "day": pa.array([f"2026-01-{1 + place * 30 // ROWS:02}" for place in range(ROWS)]),
        "id": np.arange(ROWS),
        "patient": np.arange(ROWS) // 3,
        "w": RANDOM.uniform(0.5, 2.0, ROWS),
        "t_a": RANDOM.integers(0, 2, ROWS),
        "t_b": RANDOM.integers(0, 2, ROWS),
        "q_a": RANDOM.uniform(size=ROWS),
        "q_b": RANDOM.uniform(size=ROWS),
        "query": np.arange(ROWS) // 10,
        "grade": RANDOM.integers(0, 3, ROWS).astype(float),
    }
)
LAST = TABLE.filter(pa.compute.greater_equal(TABLE["day"], "2026-01-15"))
FILTER = "day >= '2026-01-15'"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One table as parts of Parquet, as Arrow and as CSV."""
    root = tmp_path_factory.mktemp("data")
    place = root / "allowed"
    (place / "parts").mkdir(parents=True)
    for start in range(0, ROWS, 200):
        pq.write_table(TABLE.slice(start, 200), place / "parts" / f"{start}.parquet", row_group_size=70)
    (place / "parts" / "_SUCCESS").write_text("")
    pyarrow.feather.write_feather(TABLE, place / "all.arrow", compression="zstd")
    pyarrow.csv.write_csv(TABLE, place / "all.csv")
    pq.write_table(TABLE, root / "secret.parquet")
    (place / "link.parquet").symlink_to(root / "secret.parquet")
    (place / "inner.parquet").symlink_to(place / "parts" / "0.parquet")
    (place / "text.parquet").write_text("nothing of the kind")
    pq.write_table(TABLE.drop_columns(["guess"]), place / "without.parquet")
    return place


@pytest.fixture(scope="module")
def settings(database_url: str, folder: Path) -> Settings:
    return settings_for(database_url, str(folder), "s3://bucket/preds", spill_dir=folder.parent / "spilled")


def apart(answer: Json) -> tuple[Json, Json]:
    """What was read, and the answer without that."""
    facts = answer["input"].pop("data")
    return facts, answer


SENT: dict[str, tuple[str, Json, Json]] = {
    "predictions": (
        "parts/*.parquet",
        {"kind": "predictions", "columns": PREDICTIONS},
        {"y_true": LAST["label"].to_pylist(), "y_pred": LAST["guess"].to_pylist()},
    ),
    "predictions with ids, groups and weights": (
        "all.csv",
        {
            "kind": "predictions",
            "columns": {**PREDICTIONS, "sample_id": "id", "group_id": "patient", "sample_weight": "w"},
        },
        {
            "y_true": LAST["label"].to_pylist(),
            "y_pred": LAST["guess"].to_pylist(),
            "sample_ids": LAST["id"].to_pylist(),
            "group_ids": LAST["patient"].to_pylist(),
            "sample_weight": LAST["w"].to_pylist(),
        },
    ),
    "predictions without a class": (
        "parts",
        {"kind": "predictions", "columns": PREDICTIONS, "ignore": ["owl"], "labels": CLASSES},
        {"y_true": LAST["label"].to_pylist(), "y_pred": LAST["guess"].to_pylist()},
    ),
    "probabilities": (
        "all.arrow",
        {
            "kind": "probabilities",
            "labels": CLASSES,
            "columns": {"y_true": "label", "probabilities": ["p0", "p1", "p2"]},
        },
        {"y_true": LAST["label"].to_pylist(), "probabilities": lists(LAST, "p0", "p1", "p2")},
    ),
    "scores": (
        "all.csv",
        {"kind": "scores", "columns": {"y_true": "sick", "score": "risk"}, "threshold": 0.25},
        {"y_true": LAST["sick"].to_pylist(), "scores": LAST["risk"].to_pylist()},
    ),
    "multilabel": (
        "parts/**",
        {
            "kind": "multilabel",
            "labels": ["a", "b"],
            "columns": {"y_true": ["t_a", "t_b"], "probabilities": ["q_a", "q_b"]},
        },
        {"y_true": lists(LAST, "t_a", "t_b"), "probabilities": lists(LAST, "q_a", "q_b")},
    ),
    "ranking": (
        "all.arrow",
        {"kind": "ranking", "columns": {"query_id": "query", "relevance": "grade", "score": "risk"}},
        {
            "query_ids": LAST["query"].to_pylist(),
            "relevance": LAST["grade"].to_pylist(),
            "scores": LAST["risk"].to_pylist(),
        },
    ),
}


@pytest.mark.parametrize("name", SENT)
def test_the_answer_is_that_of_the_same_rows_sent_whole(client: httpx.Client, folder: Path, name: str) -> None:
    path, members, arrays = SENT[name]
    members = dict(members)
    columns = members.pop("columns")
    form = {"format": "parquet"} if path.startswith("parts") else {}
    facts, found = apart(later(client, named(folder / path, columns, **members, filter=FILTER, **form)))
    whole = compute(client, {**members, **arrays}, retain="none")
    assert found == whole
    assert (facts["rows"], facts["columns"], facts["filter"]) == (len(LAST), columns, FILTER)
    assert (facts["uri"], facts["files"]) == (str(folder / path), 3 if path.startswith("parts") else 1)


def test_the_digest_says_whether_it_is_the_same_data(client: httpx.Client, folder: Path) -> None:
    place = folder / f"{token_hex(4)}.parquet"
    pq.write_table(TABLE, place)
    first = later(client, named(place))["input"]["data"]
    assert later(client, named(f"file://{place}", filter="id >= 0"))["input"]["data"]["digest"] == first["digest"]
    pq.write_table(TABLE.slice(0, 300), place)
    second = later(client, named(place))["input"]["data"]
    assert (first["rows"], second["rows"]) == (ROWS, 300)
    assert first["digest"] != second["digest"]


def test_it_is_kept_with_its_reference_and_without_its_samples(client: httpx.Client, folder: Path) -> None:
    source = named(folder / "all.arrow", {"y_true": "sick", "score": "risk"}, "scores", threshold=0.0)
    headers = {**LATER, "Idempotency-Key": token_hex(8)}
    taken = keep(client, source, model="kept", headers=headers)
    assert (taken.status_code, taken.headers["preference-applied"]) == (202, "respond-async")
    kept = result(client, taken.json()).json()
    assert kept["input"]["data"]["rows"] == kept["input"]["n_samples"] == ROWS
    assert client.get(f"/v1/evaluations/{kept['id']}").json() == kept
    check_problem(client.get(f"/v1/evaluations/{kept['id']}/curves/roc"), 409, "no_samples_kept")
    again = keep(client, source, model="kept", headers=headers)
    assert again.headers["idempotent-replayed"] == "true"
    assert again.json()["id"] == taken.json()["id"]
    other = {"kind": "scores", "y_true": TABLE["sick"].to_pylist(), "scores": TABLE["risk"].to_pylist()}
    sent = keep(client, {**other, "threshold": 0.5}, model="sent").json()
    compared = client.post("/v1/comparisons", json={"evaluations": [kept["id"], sent["id"]], "metrics": ["accuracy"]})
    assert compared.status_code == 201, compared.text


def refused(reply: httpx.Response) -> Json:
    """The problem of a request with a fault."""
    assert reply.status_code == 422, reply.text
    problem: Json = reply.json()
    return check_problem(reply, 422, problem["code"])


def test_a_request_that_cannot_be_done_is_refused_at_once(client: httpx.Client, folder: Path) -> None:
    place = folder / "all.arrow"
    (folder / "tabs.csv").write_text("label\tguess\ncat\tdog\n")
    (folder / "decimals.csv").write_text("label;guess\n0;0,5\n")
    (folder / "packed.csv").write_bytes(gzip.compress(b"label,guess\ncat,dog\n"))
    wrong: list[tuple[Json, str, str]] = [
        (named(folder / "tabs.csv"), "/input/data", "wrong_separator"),
        (named(folder / "decimals.csv"), "/input/data", "wrong_separator"),
        (named(folder / "packed.csv"), "/input/data", "unreadable_data"),
        (named(folder / "absent*.parquet"), "/input/data/uri", "no_such_data"),
        (named(folder / "none", format="csv"), "/input/data/uri", "no_such_data"),
        (named(folder / "al*"), "/input/data/format", "missing_field"),
        (named(place, {"y_true": "label", "y_pred": "guessed"}), "/input/data/columns", "missing_column"),
        (named(place, {"y_true": "label"}), "/input/data", "missing_column"),
        (named(place, {"y_true": "sick", "score": "guess"}, "scores"), "/input/data", "not_numbers"),
        (named(place, None), "/input/data", "missing_column"),
        (named(place, filter="day > 3"), "/input/data/filter", "wrong_type"),
        (named(place, filter="week = 'x'"), "/input/data/filter", "missing_column"),
        (named(place, filter="__import__('os')"), "/input/data/filter", "invalid_filter"),
        (named(folder / "text.parquet"), "/input/data", "unreadable_data"),
        (named(folder / "a*", format="parquet"), "/input/data", "unreadable_data"),
        (named(place, {"y_true": "label", "probabilities": ["p0"]}, "probabilities", labels=CLASSES),
         "/input/data/columns/probabilities", "wrong_length"),
        (named(place) | {"y_true": ["cat"]}, "/input/y_true", "unknown_field"),
        (named(place, kind="clustering"), "/input/kind", "wrong_value"),
    ]  # fmt: skip
    before = client.get("/v1/jobs").json()["items"]
    for source, pointer, code in wrong:
        problem = refused(client.post("/v1/metrics/compute", json={"input": source}))
        assert (problem["errors"][0]["pointer"], problem["errors"][0]["code"]) == (pointer, code), problem
    full = client.post("/v1/metrics/compute", json={"input": named(place), "options": {"retain": "full"}})
    assert refused(full)["errors"][0]["pointer"] == "/options/retain"
    unnamed = refused(client.post("/v1/evaluations", json={"input": named(place)}))
    assert [one["pointer"] for one in unnamed["errors"]] == ["/model", "/dataset"]
    # One by one, and of evaluations only.
    for path, body in (("curves/roc", {"input": named(place)}), ("thresholds", {"input": named(place)})):
        refused(client.post(f"/v1/{path}", json=body))
    items = client.post("/v1/evaluations/batch", json={"evaluations": [evaluation(input=named(place))]}).json()["items"]
    assert items[0]["status"] == 422
    assert client.get("/v1/jobs").json()["items"] == before


def test_parts_that_do_not_fit_each_other_are_refused_before_they_are_read(client: httpx.Client, folder: Path) -> None:
    place = folder / token_hex(4)
    place.mkdir()
    pq.write_table(TABLE, place / "a.parquet")
    pq.write_table(TABLE.drop_columns(["guess"]), place / "b.parquet")
    reply = client.post("/v1/metrics/compute", json={"input": named(place / "*.parquet")})
    assert refused(reply)["errors"][0]["code"] == "missing_column"
    assert "'guess' in every file, there is none in 'b.parquet'" in reply.text
    changed = TABLE.set_column(TABLE.schema.get_field_index("guess"), "guess", TABLE["sick"])
    pq.write_table(changed, place / "b.parquet")
    reply = client.post("/v1/metrics/compute", json={"input": named(place / "*.parquet")})
    assert refused(reply)["errors"][0]["code"] == "wrong_type"
    # A column that nobody asks for may be another.
    pq.write_table(TABLE.set_column(TABLE.schema.get_field_index("w"), "w", TABLE["label"]), place / "b.parquet")
    assert later(client, named(place / "*.parquet"))["input"]["n_samples"] == 2 * ROWS


def test_what_is_wrong_with_a_row_is_the_problem_of_the_job(client: httpx.Client, folder: Path) -> None:
    place = folder / "all.arrow"
    for source, detail in (
        (named(place, labels=["cat", "dog"]), "y_pred: expected one of 'cat', 'dog', got 'owl'"),
        (named(place, {**PREDICTIONS, "sample_id": "patient"}), "sample_ids, row 1 of those read: expected ids that"),
        (named(place, filter="id < 0"), "expected at least one sample"),
    ):
        reply = client.post("/v1/metrics/compute", json={"input": source})
        assert reply.status_code == 202, reply.text
        problem = ended(client, reply.json())["problem"]
        assert problem["status"] == 422
        assert problem["errors"][0]["pointer"].startswith("/input/data"), problem
        assert detail.partition(":")[2] in problem["errors"][0]["detail"] or detail in problem["errors"][0]["detail"]


HOSTILE = [
    "/etc/passwd", "file:///etc/passwd", "file://localhost/etc/passwd", "etc/passwd", "{folder}/../secret.parquet",
    "{folder}/./../secret.parquet", "{folder}/%2e%2e/secret.parquet", "{folder}/..%2fsecret.parquet",
    "{folder}\\..\\secret.parquet", "{folder}//x.parquet", "{folder}2/x.parquet", "{folder}/link.parquet",
    "{folder}/l*.parquet", "{root}/*/all.arrow", "{root}/**", "FILE://{folder}/../secret.parquet",
    "s3://bucket/preds2/x.parquet", "s3://bucket/x.parquet", "s3://other/preds/x.parquet", "s3://key:secret@bucket/preds/x",
    "s3://key@bucket/preds/x.parquet", "s3://bucket/preds/x?access_key=hidden&secret_key=hidden", "s3://bucket/preds/../x",
    "s3://bucket/preds/x#y", "s3:///preds/x", "s3://bu*/preds/x", "gs://bucket/preds/x", "http://bucket/preds/x",
    "https://user:hidden@bucket/preds/x", "http://169.254.169.254/latest/meta-data", "ftp://bucket/preds/x",
    "hdfs://bucket/preds/x", "abfs://bucket/preds/x", "s3://bucket/preds/\u0007",
    "javascript:alert(1)", "-", "~/x.parquet",
]  # fmt: skip


@each("address", HOSTILE)
def test_only_what_lies_below_a_prefix_is_read(client: httpx.Client, folder: Path, address: str) -> None:
    uri = address.replace("{folder}", str(folder)).replace("{root}", str(folder.parent))
    for headers in ({}, LATER):
        reply = client.post("/v1/metrics/compute", json={"input": named(uri, format="parquet")}, headers=headers)
        problem = check_problem(reply, 403, "data_not_allowed")
        assert "hidden" not in json.dumps(problem)


@pytest.mark.parametrize(
    "wrong", [{"filter": "amount <"}, {"version": "3"}, {"columns": {"y_true": {"a": "b"}, "y_pred": "guess"}}]
)
def test_whether_data_may_be_read_comes_before_what_is_wrong_with_it(
    client: httpx.Client, wrong: Mapping[str, object]
) -> None:
    source = named("/etc/passwd", format="parquet")
    source["data"] |= wrong
    for query in ("", "?estimate=true"):
        check_problem(client.post(f"/v1/metrics/compute{query}", json={"input": source}), 403, "data_not_allowed")


def test_a_link_within_the_prefix_is_followed(client: httpx.Client, folder: Path) -> None:
    assert later(client, named(folder / "inner.parquet"))["input"]["n_samples"] == 200


@pytest.fixture(scope="module")
def strict(database_url: str, folder: Path) -> Iterator[httpx.Client]:
    """A service on the same database that wants keys, and leaves jobs to others."""
    settings = Settings(
        database_url=SecretStr(database_url),
        authentication=Authentication.keys,
        data_prefixes=(str(folder),),
        job_concurrency=0,
    )
    with Served(settings) as url, httpx.Client(base_url=url, timeout=60) as opened:
        yield opened


def test_data_takes_the_scope_to_write_and_stays_in_its_project(
    client: httpx.Client, strict: httpx.Client, database_url: str, folder: Path
) -> None:
    source = named(folder / "all.arrow")
    reader = bearer(make_key(database_url, "one", "read"))
    check_problem(keep(strict, source, headers=reader), 403, "forbidden")
    check_problem(keep(strict, source), 401, "unauthenticated")
    writer, other = (bearer(make_key(database_url, name, "read", "write")) for name in ("one", "two"))
    job = keep(strict, source, headers=writer).json()
    assert read(strict, job, headers=writer)["id"] == job["id"]
    check_problem(strict.get(f"/v1/jobs/{job['id']}", headers=other), 404, "not_found")


def test_it_can_be_cancelled(client: httpx.Client, folder: Path) -> None:
    body = {"input": named(folder / "all.arrow"), "options": {"intervals": "all", "draws": 100_000}}
    job = client.post("/v1/metrics/compute", json=body).json()
    running(client, job)
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 202
    assert ended(client, job)["status"] == "cancelled"


def test_a_job_that_streams_ends_where_it_is_cancelled(client: httpx.Client, folder: Path) -> None:
    """Its process ends, and the engine with it: the rest of the rows is not read, and its files are gone."""
    spilled = folder.parent / "spilled"
    rows = 4_000_000
    table = pa.table({"label": np.arange(rows) % 2, "risk": RANDOM.uniform(size=rows)})
    pq.write_table(table, folder / "many.parquet", row_group_size=1 << 18)
    source = named(folder / "many.parquet", {"y_true": "label", "score": "risk"}, "scores", labels=[0, 1])
    job = client.post("/v1/metrics/compute", json={"input": source}).json()
    while not [*spilled.glob("*/job-*/rows-*")]:
        assert read(client, job)["status"] in ("queued", "running")
    assert client.delete(f"/v1/jobs/{job['id']}").status_code == 202
    found = ended(client, job)
    assert found["status"] == "cancelled"
    # Nothing may have been counted yet.
    assert (found["progress"] or 0.0) < 1.0
    assert [*spilled.glob("*/job-*")] == []
