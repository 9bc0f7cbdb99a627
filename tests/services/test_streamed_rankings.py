"""Reports of streamed rankings are those of the same items in memory."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.api.answers import write_json
from app.api.bodies.referenced import Asked, NamedRows
from app.domain.data import DataFormat, DataReference
from app.domain.errors import BeyondMemory, InvalidExpression, InvalidInput, TooLarge
from app.domain.inputs.content import DataFacts
from app.outbound.data import DataPlaces
from app.services.evaluate.evaluations import NewEvaluation, evaluate_alone
from app.services.evaluate.streamed.units import StreamedParts, streamed_rankings
from app.services.runs import rankings
from tests.api.answers import Json
from tests.engine import ENGINE
from tests.services.named_data import with_columns, with_parts
from tests.services.streamed import check_same

ROWS = 4000
MEMORY = 4096
COLUMNS = {"query_id": "session", "relevance": "grade", "score": "risk"}
OPTIONS: Json = {
    "intervals": "all",
    "draws": 200,
    "metrics": ["ndcg_at_k(k=7, gain=exponential)", "mean(mean_reciprocal_rank, query_auc)", "precision_at_k(k=2)"],
}


def table(ids: str = "numbers", seed: int = 7) -> pa.Table:
    """Queries whose rows lie anywhere, some without a relevant item; scores that are often tied."""
    random = np.random.default_rng(seed)
    query = random.integers(0, 150, ROWS)
    grades = np.where(random.random(ROWS) < 0.7, 0.0, random.random(ROWS).round(2)) * (query % 11 > 0)
    named: dict[str, Any] = {
        "numbers": 10**15 * (query - 70),
        "texts": [f"user {one}" for one in query],
        "both": [str(one) if one % 2 else f"0{one}" for one in query],
        "huge": query + np.where(query % 2, 10**18, 5),
    }
    scores = random.integers(0, 30, ROWS).astype(float)
    # Some were judged and not retrieved, of one query all; others were retrieved and not judged.
    missed, unjudged = (random.random(ROWS) < 0.1) | (query == 5), (random.random(ROWS) < 0.1) & (query != 5)
    return pa.table(
        {
            "session": named[ids],
            "grade": pa.array(grades, mask=unjudged),
            "risk": pa.array(scores, mask=missed & ~unjudged),
        }
    )


def written(folder: Path, rows: pa.Table, size: int = 500) -> Json:
    """Files of Parquet, and a request that names them."""
    folder.mkdir()
    for start in range(0, rows.num_rows, size):
        pq.write_table(rows.slice(start, size), folder / f"{start:05}.parquet", row_group_size=200)
    data = {"uri": str(folder), "format": "parquet", "columns": COLUMNS}
    return {"input": {"kind": "ranking", "data": data}, "options": OPTIONS}


def asked(body: Json, memory: int = MEMORY) -> tuple[DataPlaces, Asked]:
    data = body["input"]["data"]
    reference = DataReference(data["uri"], DataFormat.PARQUET, data["columns"])
    return DataPlaces((data["uri"],)), Asked(reference, "ranking", None, memory)


def said(new: NewEvaluation) -> Json:
    """Everything that is answered."""
    answer: Json = json.loads(write_json(evaluate_alone(new, None)[0]))
    return answer


def streamed(body: Json, folder: Path) -> Json:
    found = with_parts(json.dumps(body).encode(), NamedRows(*asked(body)), engine=ENGINE, budget=MEMORY, folder=folder)
    assert found.source.samples is None
    return said(found)


@pytest.mark.parametrize("ids", ["numbers", "texts", "both", "huge"])
def test_the_report_is_that_of_all_items_at_once(ids: str, tmp_path: Path) -> None:
    body = written(tmp_path / "data", table(ids))
    with pytest.raises(BeyondMemory):
        NamedRows(*asked(body)).whole()
    whole = said(with_columns(json.dumps(body).encode(), NamedRows(*asked(body, 1 << 30)).whole()))
    (tmp_path / "runs").mkdir()
    found = streamed(body, tmp_path / "runs")
    assert not [*(tmp_path / "runs").iterdir()]
    check_same(found, whole)
    assert found["requested"].keys() == {*OPTIONS["metrics"]}
    assert None not in found["requested"].values()
    assert found["intervals"]["ndcg_at_k(k=10)"]["low"] is not None
    assert len(found["queries"]["lowest"]) == 20


def test_a_cutoff_that_is_not_usual_and_no_cutoffs_at_all_for_lists(tmp_path: Path) -> None:
    body = written(tmp_path / "data", table())
    body["input"]["cutoffs"] = [4, 2]
    whole = said(with_columns(json.dumps(body).encode(), NamedRows(*asked(body, 1 << 30)).whole()))
    check_same(streamed(body, tmp_path), whole)
    assert whole["input"]["cutoffs"] == [4, 2]


def test_the_order_of_the_items_and_batches_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries go on from batch to batch, and are looked at some at a time."""
    rows, expected = table("both"), streamed(written(tmp_path / "data", table("both")), tmp_path)
    monkeypatch.setattr("app.kernel.streamed.queries._TOGETHER", 64)
    monkeypatch.setattr("app.outbound.duckdb_rows.BATCH_ROWS", 150)
    for place in range(3):
        shuffled = rows.take(np.random.default_rng(place).permutation(ROWS))
        found = streamed(written(tmp_path / str(place), shuffled), tmp_path)
        check_same({**found, "input": {}}, {**expected, "input": {}})


def test_faults_of_rows_are_told_by_their_place_among_all(tmp_path: Path) -> None:
    body = written(tmp_path / "data", table())
    wrong = pa.table({"session": np.array([1, 2]), "grade": [0.0, -1.0], "risk": [0.0, 0.0]})
    pq.write_table(wrong, tmp_path / "data" / "9.parquet")
    with pytest.raises(InvalidInput, match=f"relevance, row {ROWS + 1} of those read: expected a number between 0"):
        streamed(body, tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


def test_what_is_asked_and_cannot_be_given_is_known_before_all_is_read(tmp_path: Path) -> None:
    body = written(tmp_path / "data", table())
    body["options"] = {"metrics": ["recall@cat"]}
    new = with_columns(json.dumps(body).encode(), NamedRows(*asked(body, 1 << 30)).whole())

    def parts() -> Iterator[NewEvaluation]:
        yield new
        pytest.fail("a second part was read")

    with ENGINE.opened(tmp_path) as engine, pytest.raises(InvalidExpression, match="no meaning for ranking"):
        streamed_rankings(StreamedParts(parts(), lambda _: READ, engine, MEMORY), tmp_path)


def test_too_many_queries_and_queries_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rankings, "_ALWAYS", 140)
    body = written(tmp_path / "data", table())
    with pytest.raises(TooLarge, match="at most 140 queries"):
        streamed(body, tmp_path)
    monkeypatch.setattr(rankings, "_ALWAYS", 20)
    monkeypatch.setattr(rankings, "_QUERY_BYTES", 1)
    with pytest.raises(TooLarge, match=r"at most 20 items of a query .* got \d\d of '"):
        streamed(body, tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


def test_no_items(tmp_path: Path) -> None:
    with ENGINE.opened(tmp_path) as engine, pytest.raises(InvalidInput, match="at least one row"):
        StreamedParts([], lambda _: READ, engine, MEMORY)


READ: DataFacts = {"uri": "/data", "format": "csv", "rows": 0, "files": 1, "bytes": 1, "digest": ""}
