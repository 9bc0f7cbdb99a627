"""The request of `docs/data.md`, with the files in a folder in place of a bucket."""

import json
from pathlib import Path

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import SecretStr

from app.settings import Settings
from tests.api.jobs import result
from tests.examples.documents import blocks
from tests.serving import Served

COUNT = 200
TABLE = pa.table(
    {
        "label": ["stays", "leaves"] * (COUNT // 2),
        "p_stays": [0.75, 0.25, 0.5, 0.5] * (COUNT // 4),
        "p_leaves": [0.25, 0.75, 0.5, 0.5] * (COUNT // 4),
        "household": [place // 2 for place in range(COUNT)],
        "day": ["2025-12-31"] * 100 + ["2026-01-01"] * 100,
        "country": ["ch", "ch", "li", "li", "at"] * (COUNT // 5),
    }
)


def test_the_request_is_done(database_url: str, tmp_path: Path) -> None:
    pq.write_table(TABLE, tmp_path / "a.parquet")
    [content] = [content for language, content in blocks("docs/data.md") if language == "json"]
    place = "s3://preds/2026/churn"
    assert place in content
    body = json.loads(content.replace(place, str(tmp_path)))
    settings = Settings(database_url=SecretStr(database_url), data_prefixes=(str(tmp_path),))
    with Served(settings) as url, httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        job = client.post("/v1/evaluations", json=body)
        assert job.status_code == 202, job.text
        kept = result(client, job.json()).json()
    assert kept["input"]["data"]["rows"] == 80
    assert kept["input"]["data"]["columns"] == body["input"]["data"]["columns"]
    assert kept["input"]["n_groups"] == 50
