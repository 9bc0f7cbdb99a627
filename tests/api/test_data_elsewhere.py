"""Data on object storage, spoken to as S3 is, by a job that has no more time than the operator gives it."""

from collections.abc import Iterator

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pydantic import SecretStr

from app.settings import Authentication, Settings
from tests.api.answers import Json, check_problem, compute
from tests.api.jobs import ended, result
from tests.api.objects import objects

pytestmark = pytest.mark.slow

TRUTH, GUESS = ["a", "b", "b", "a", "b", "b"] * 50, ["a", "b", "a", "a", "b", "b"] * 50
TABLE = pa.table({"y_true": TRUTH, "y_pred": GUESS, "part": [*range(300)]})


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """A server of the protocol of S3 with a few objects."""
    with objects("runs", "secret") as (url, store):
        for place in range(3):
            pq.write_table(TABLE.slice(100 * place, 100), f"runs/preds/{place}.parquet", filesystem=store)
        pq.write_table(TABLE, "runs/preds2/x.parquet", filesystem=store)
        pq.write_table(TABLE, "secret/preds/x.parquet", filesystem=store)
        yield url


@pytest.fixture(scope="module")
def settings(database_url: str, endpoint: str, tmp_path_factory: pytest.TempPathFactory) -> Settings:
    folder = tmp_path_factory.mktemp("data")
    pq.write_table(TABLE, folder / "all.parquet")
    return Settings(
        database_url=SecretStr(database_url),
        authentication=Authentication.off,
        data_prefixes=("s3://runs/preds", str(folder)),
        data_s3_endpoint=endpoint,
        # Of work in a process of its own; what is computed here has none.
        data_seconds=0.01,
    )


def named(uri: str, **members: str) -> Json:
    columns = {"y_true": "y_true", "y_pred": "y_pred"}
    return {"input": {"kind": "predictions", "data": {"uri": uri, "format": "parquet", "columns": columns, **members}}}


@pytest.mark.usefixtures("computed_here")
def test_objects_are_read_as_the_same_rows_sent_whole(client: httpx.Client) -> None:
    found = result(client, client.post("/v1/metrics/compute", json=named("s3://runs/preds/*.parquet")).json()).json()
    facts = found["input"].pop("data")
    assert (facts["rows"], facts["files"]) == (300, 3)
    assert found == compute(client, {"kind": "predictions", "y_true": TRUTH, "y_pred": GUESS}, retain="none")
    some = named("s3://runs/preds", filter="part >= 150 and part < 250")
    assert result(client, client.post("/v1/metrics/compute", json=some).json()).json()["input"]["n_samples"] == 100


@pytest.mark.usefixtures("computed_here")
@pytest.mark.parametrize("uri", ["s3://runs/preds/absent.parquet", "s3://runs/preds/none/*.parquet"])
def test_objects_that_are_not_there_are_the_problem_of_the_job(client: httpx.Client, uri: str) -> None:
    problem = ended(client, client.post("/v1/metrics/compute", json=named(uri)).json())["problem"]
    assert (problem["status"], problem["errors"][0]["code"]) == (422, "no_such_data")


@pytest.mark.parametrize("uri", ["s3://runs/preds2/x.parquet", "s3://secret/preds/x.parquet", "s3://runs/*/x.parquet"])
def test_other_objects_are_refused_though_they_could_be_read(client: httpx.Client, uri: str) -> None:
    check_problem(client.post("/v1/metrics/compute", json=named(uri)), 403, "data_not_allowed")


def test_a_job_that_takes_longer_than_the_operator_allows_is_ended(client: httpx.Client, settings: Settings) -> None:
    body = named(f"{settings.data_prefixes[1]}/all.parquet") | {"options": {"intervals": "all", "draws": 100_000}}
    found = ended(client, client.post("/v1/metrics/compute", json=body).json())
    assert found["status"] == "failed"
    assert (found["problem"]["status"], found["problem"]["code"]) == (504, "deadline_passed")
