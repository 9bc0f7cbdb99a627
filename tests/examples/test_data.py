"""The request of `docs/data.md`, with the files in a folder in place of a bucket."""

import json
from pathlib import Path
from typing import Any

import httpx
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from pydantic import SecretStr

from app.settings import Settings
from tests.api.jobs import result
from tests.examples.documents import blocks
from tests.serving import Served

pytestmark = pytest.mark.slow

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


def bodies(folder: Path) -> list[Any]:
    """The requests of the page that are kept, with a folder in place of the bucket."""
    found = [content for language, content in blocks("docs/data.md") if language == "json" and '"dataset"' in content]
    assert all("s3://preds/2026" in content for content in found)
    return [json.loads(content.replace("s3://preds/2026", str(folder))) for content in found]


def test_the_request_is_done(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "churn").mkdir()
    pq.write_table(TABLE, tmp_path / "churn" / "a.parquet")
    body, *_ = bodies(tmp_path)
    settings = Settings(database_url=SecretStr(database_url), data_prefixes=(str(tmp_path),))
    with Served(settings) as url, httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        job = client.post("/v1/evaluations", json=body)
        assert job.status_code == 202, job.text
        kept = result(client, job.json()).json()
    assert kept["input"]["data"]["rows"] == 80
    assert kept["input"]["data"]["columns"] == body["input"]["data"]["columns"]
    assert kept["input"]["n_groups"] == 50


def test_labels_are_joined_and_models_are_evaluated_together(database_url: str, tmp_path: Path) -> None:
    (tmp_path / "guesses").mkdir()
    left, guess = ["yes", "no"] * (COUNT // 2), ["yes"] * COUNT
    rows = {"customer": [*range(COUNT)], "guess": guess}
    pq.write_table(pa.table(rows), tmp_path / "guesses" / "a.parquet")
    pyarrow.csv.write_csv(pa.table({"id": [*reversed(range(COUNT))], "left": left[::-1]}), tmp_path / "truth.csv")
    pq.write_table(pa.table({"left": left, "guess_7": left, "guess_0": guess}), tmp_path / "wide.parquet")
    _, joined, together = bodies(tmp_path)
    settings = Settings(database_url=SecretStr(database_url), data_prefixes=(str(tmp_path),))
    with Served(settings) as url, httpx.Client(base_url=url, trust_env=False, timeout=60) as client:
        one = result(client, client.post("/v1/evaluations", json=joined).json()).json()
        several = result(client, client.post("/v1/evaluations", json=together).json()).json()["items"]
    assert one["metrics"]["prevalence_sensitive"]["accuracy"] == 0.5
    assert one["input"]["data"]["labels"]["rows"] == COUNT
    found = {each["model"]["name"]: each["metrics"]["prevalence_sensitive"]["accuracy"] for each in several}
    assert found == {"churn": 1.0, "baseline": 0.5}
