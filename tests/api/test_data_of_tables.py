"""Tables of Delta and Iceberg that their own libraries wrote, with rows deleted and changed."""

import json
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake
from pyiceberg.catalog.memory import InMemoryCatalog

from app.settings import Settings
from tests.api.answers import Json, check_problem, compute
from tests.api.jobs import ended
from tests.api.referenced import PREDICTIONS, keep, later, named, settings_for
from tests.examples.documents import blocks

pytestmark = pytest.mark.slow
ROWS = 300
TABLE = pa.table(
    {
        "id": range(ROWS),
        "label": ["cat", "dog", "owl"] * (ROWS // 3),
        "guess": ["cat", "owl"] * (ROWS // 2),
        "site": [f"site {one % 4}" for one in range(ROWS)],
    }
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tables") / "allowed"


@pytest.fixture(scope="module")
def settings(database_url: str, folder: Path) -> Settings:
    return settings_for(database_url, str(folder))


@pytest.fixture(scope="module")
def tables(folder: Path) -> dict[str, tuple[str, list[int]]]:
    """Addresses by format, with the versions that the tables had: all rows, without some, and with some others."""
    delta = folder / "delta"
    write_deltalake(str(delta), TABLE, partition_by=["site"])
    table = DeltaTable(str(delta))
    table.delete("id < 60")
    table.update(updates={"guess": "label"}, predicate="id >= 200")
    catalog = InMemoryCatalog("own", warehouse=f"file://{folder}")
    catalog.create_namespace("space")
    iceberg = catalog.create_table("space.iceberg", schema=TABLE.schema)
    versions = []
    for change in ("all", "fewer", "others"):
        if change == "all":
            iceberg.append(TABLE)
        elif change == "fewer":
            iceberg.delete("id < 60")
        else:
            changed = TABLE.slice(200)
            iceberg.overwrite(changed.set_column(2, "guess", changed["label"]), overwrite_filter="id >= 200")
        snapshot = iceberg.current_snapshot()
        assert snapshot is not None
        versions.append(snapshot.snapshot_id)
    metadata = Path(iceberg.metadata_location.removeprefix("file://"))
    metadata.with_name("version-hint.text").write_text(metadata.name)
    return {"delta": (str(delta), [0, 1, 2]), "iceberg": (iceberg.location().removeprefix("file://"), versions)}


def sent(*, changed: bool) -> Json:
    rows = TABLE.slice(60).to_pylist()
    guesses = [row["label"] if changed and row["id"] >= 200 else row["guess"] for row in rows]
    return {"kind": "predictions", "y_true": [row["label"] for row in rows], "y_pred": guesses}


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_the_rows_of_a_table_are_those_that_are_there(
    client: httpx.Client, tables: dict[str, tuple[str, list[int]]], form: str
) -> None:
    uri, versions = tables[form]
    found = later(client, named(uri, format=form))
    facts = found["input"].pop("data")
    assert (facts["rows"], facts["version"], facts["format"]) == (240, str(versions[-1]), form)
    assert found == compute(client, sent(changed=True), retain="none")
    before = later(client, named(uri, format=form, version=str(versions[1])))
    old = before["input"].pop("data")
    assert before == compute(client, sent(changed=False), retain="none")
    assert old["digest"] != facts["digest"]
    assert later(client, named(uri, format=form, version=versions[0]))["input"]["n_samples"] == ROWS
    some = later(client, named(uri, format=form, filter="site = 'site 1' and id < 200"))
    assert some["input"]["n_samples"] == 35
    reply = client.post("/v1/metrics/compute", json={"input": named(uri, format=form)}, params={"estimate": "true"})
    assert reply.status_code == 200, reply.text
    assert reply.json()["rows"] == 240


def test_the_example_of_the_manual_is_done(client: httpx.Client, folder: Path) -> None:
    content = next(content for language, content in blocks("docs/data.md") if '"format": "delta"' in content)
    write_deltalake(str(folder / "guesses"), TABLE)
    table = DeltaTable(str(folder / "guesses"))
    for before in (10, 20, 30, 40):
        table.delete(f"id < {before}")
    body = json.loads(content.replace("s3://preds/2026", str(folder)))
    assert later(client, body["input"])["input"]["n_samples"] == ROWS - 30


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_files_of_a_table_are_not_read_with_their_deleted_rows(
    client: httpx.Client, tables: dict[str, tuple[str, list[int]]], form: str
) -> None:
    uri, _ = tables[form]
    for place in (uri, f"{uri}/**/*.parquet"):
        reply = client.post("/v1/metrics/compute", json={"input": named(place, format="parquet")})
        [error] = check_problem(reply, 422, "invalid_input")["errors"]
        assert (error["pointer"], error["code"]) == ("/input/data/uri", f"{form}_table")
        assert f'"format": "{form}"' in error["detail"]


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_a_version_is_read_again_after_the_table_has_gone_on(
    client: httpx.Client, tables: dict[str, tuple[str, list[int]]], form: str
) -> None:
    uri, versions = tables[form]
    runs = []
    for version in versions[1:]:
        columns = {**PREDICTIONS, "sample_id": "id"}
        source = named(uri, columns, format=form, version=version)
        job = keep(client, source, model=f"{form} {version}").json()
        runs.append(ended(client, job)["result"].rpartition("/")[2])
    reply = client.post("/v1/comparisons", json={"evaluations": runs, "metrics": ["accuracy"], "paired": "true"})
    done = ended(client, reply.json())
    assert done["status"] == "succeeded", done


@pytest.mark.parametrize("form", ["delta", "iceberg"])
@pytest.mark.parametrize("version", [-1, 17, 2**63 - 1, "9999999999999999999"])
def test_a_version_that_is_not_there_is_refused(
    client: httpx.Client, tables: dict[str, tuple[str, list[int]]], form: str, version: int | str
) -> None:
    source = named(tables[form][0], format=form, version=version)
    reply = client.post("/v1/metrics/compute", json={"input": source})
    assert check_problem(reply, 422, "invalid_input")["errors"][0]["code"] == "unreadable_table"


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_what_is_no_table_is_refused(client: httpx.Client, folder: Path, form: str) -> None:
    (folder / "plain").mkdir(exist_ok=True)
    pq.write_table(TABLE, folder / "plain" / "rows.parquet")
    for members, code in (
        ({"format": form}, "unreadable_table"),
        ({"format": "parquet", "version": 3}, "no_versions"),
    ):
        reply = client.post("/v1/metrics/compute", json={"input": named(folder / "plain", **members)})
        assert check_problem(reply, 422, "invalid_input")["errors"][0]["code"] == code


@pytest.mark.parametrize("form", ["delta", "iceberg"])
def test_labels_and_more_rows_than_memory_holds_may_be_in_tables(
    client: httpx.Client, folder: Path, tables: dict[str, tuple[str, list[int]]], form: str
) -> None:
    many = pa.concat_tables([TABLE] * 400).set_column(0, "id", pa.array(range(400 * ROWS)))
    uri = str(folder / f"many {form}")
    if form == "delta":
        write_deltalake(uri, many)
        DeltaTable(uri).delete("id < 10000")
    else:
        catalog = InMemoryCatalog("many", warehouse=f"file://{folder}")
        catalog.create_namespace("many")
        table = catalog.create_table("many.rows", schema=many.schema, location=f"file://{uri}")
        table.append(many)
        table.delete("id < 10000")
        uri = table.metadata_location
    pq.write_table(many.select(["id", "guess"]), folder / "guesses.parquet")
    columns = {"y_true": "label", "group_id": "site"}
    labels = {"data": {"uri": uri, "format": form, "columns": columns}, "on": "id"}
    source = named(folder / "guesses.parquet", {"y_pred": "guess"}, joined=labels, filter="id >= 10000")
    both = later(client, source)
    assert both["input"]["data"]["labels"]["rows"] == both["input"]["n_samples"] == 110_000
    alone = later(client, named(uri, {**columns, "y_pred": "guess"}, format=form))
    assert alone["metrics"] == both["metrics"]


def test_a_table_does_not_lead_out_of_what_is_allowed(
    client: httpx.Client, folder: Path, tmp_path: Path, tables: dict[str, tuple[str, list[int]]]
) -> None:
    catalog = InMemoryCatalog("outer", warehouse=f"file://{tmp_path}")
    catalog.create_namespace("space")
    secret = catalog.create_table("space.secret", schema=TABLE.schema)
    secret.append(TABLE)
    (folder / "led" / "metadata").mkdir(parents=True)
    text = Path(secret.metadata_location.removeprefix("file://")).read_bytes()
    (folder / "led" / "metadata" / "v1.metadata.json").write_bytes(text)
    (folder / "led" / "metadata" / "version-hint.text").write_text("1")
    reply = client.post("/v1/metrics/compute", json={"input": named(folder / "led", format="iceberg")})
    check_problem(reply, 403, "data_not_allowed")
    # A log of Delta may name any path.
    write_deltalake(str(tmp_path / "secret"), TABLE)
    (folder / "leading").mkdir()
    (folder / "leading" / "_delta_log").mkdir()
    [file] = (tmp_path / "secret").glob("*.parquet")
    for log in (tmp_path / "secret" / "_delta_log").glob("*.json"):
        for name in (f"../../../{tmp_path.name}/secret/{file.name}", f"file://{file}"):
            (folder / "leading" / "_delta_log" / log.name).write_text(log.read_text().replace(file.name, name))
            reply = client.post("/v1/metrics/compute", json={"input": named(folder / "leading", format="delta")})
            assert reply.status_code in (403, 422), reply.text
            assert reply.json()["code"] in ("data_not_allowed", "invalid_input"), reply.text
