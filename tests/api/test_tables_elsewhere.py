"""Tables of Delta and Iceberg on object storage, spoken to as S3 is."""

from collections.abc import Callable, Iterator

import httpx
import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pydantic import SecretStr
from pyiceberg.catalog.memory import InMemoryCatalog

from app.settings import Authentication, Settings
from tests.api.jobs import ended
from tests.api.objects import CREDENTIALS, objects
from tests.api.referenced import PREDICTIONS, later, named

pytestmark = pytest.mark.slow
TABLE = pa.table({"label": ["a", "b", "b"] * 100, "guess": ["a", "b", "a"] * 100, "part": range(300)})


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with objects("tables") as (url, _):
        yield url


@pytest.fixture(scope="module")
def settings(database_url: str, endpoint: str) -> Settings:
    return Settings(
        database_url=SecretStr(database_url),
        authentication=Authentication.off,
        data_prefixes=("s3://tables/preds",),
        data_s3_endpoint=endpoint,
    )


def delta(endpoint: str) -> str:
    options = {**CREDENTIALS, "AWS_ENDPOINT_URL": endpoint, "AWS_ALLOW_HTTP": "true"}
    write_deltalake("s3://tables/preds/delta", TABLE, storage_options=options)
    DeltaTable("s3://tables/preds/delta", storage_options=options).delete("part < 30")
    return "s3://tables/preds/delta"


def iceberg(endpoint: str) -> str:
    store = {"s3.endpoint": endpoint, "s3.access-key-id": "testing", "s3.secret-access-key": "testing"}
    catalog = InMemoryCatalog("own", warehouse="s3://tables/preds", **{**store, "s3.region": "us-east-1"})
    catalog.create_namespace("iceberg")
    table = catalog.create_table("iceberg.table", schema=TABLE.schema)
    table.append(TABLE)
    table.delete("part < 30")
    return str(table.metadata_location)


# The library of Delta has threads of its own, which processes that are forked from this one would not have.
@pytest.mark.usefixtures("computed_here")
@pytest.mark.parametrize("write", [delta, iceberg])
def test_tables_are_read_from_objects(client: httpx.Client, endpoint: str, write: Callable[[str], str]) -> None:
    form = write.__name__
    assert later(client, named(write(endpoint), format=form))["input"]["n_samples"] == 270
    source = named(f"s3://tables/preds/{form}/**/*.parquet", PREDICTIONS, format="parquet")
    job = ended(client, client.post("/v1/metrics/compute", json={"input": source}).json())
    assert job["problem"]["errors"][0]["code"] == f"{form}_table"
