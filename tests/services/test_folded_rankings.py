"""Reports of rankings that went by in parts are, bit for bit, those of the same items at hand."""

import json
import pickle
import tracemalloc
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from app.api.answers import write_json
from app.api.bodies.parsing import parse_value
from app.api.bodies.referenced import Asked, PartsOfData, read_data
from app.api.v1.requests.evaluations import EvaluationRequest
from app.api.v1.requests.referenced import with_columns, with_parts
from app.domain.data import DataFormat, DataReference
from app.domain.errors import BeyondMemory, InvalidExpression, InvalidInput, TooLarge
from app.domain.inputs.content import DataFacts
from app.outbound.data import DataPlaces
from app.services.evaluate.apart import evaluate_alone
from app.services.evaluate.evaluations import NewEvaluation, with_data
from app.services.evaluate.folding.queries import QueryFolding
from app.services.runs import joins
from app.services.runs.joins import Frequent, SpilledRun
from tests.api.answers import Json
from tests.engine import ENGINE

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
    return pa.table({"session": named[ids], "grade": grades, "risk": random.integers(0, 30, ROWS).astype(float)})


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
    return DataPlaces((data["uri"],)), Asked(reference, "ranking", None, memory, piece_rows=300)


def said(new: NewEvaluation) -> Json:
    """Everything that is answered."""
    answer: Json = json.loads(write_json(evaluate_alone(new, None)[0]))
    return answer


def folded(body: Json, folder: Path) -> Json:
    found = with_parts(
        json.dumps(body).encode(), PartsOfData(*asked(body)), engine=ENGINE, budget=MEMORY, folder=folder
    )
    assert found.source.samples is None
    return said(found)


@pytest.mark.parametrize("ids", ["numbers", "texts", "both", "huge"])
def test_the_report_is_that_of_all_items_at_once(ids: str, tmp_path: Path) -> None:
    body = written(tmp_path / "data", table(ids))
    with pytest.raises(BeyondMemory):
        read_data(*asked(body))
    whole = said(with_columns(json.dumps(body).encode(), read_data(*asked(body, 1 << 30))))
    (tmp_path / "runs").mkdir()
    found = folded(body, tmp_path / "runs")
    assert not [*(tmp_path / "runs").iterdir()]
    assert found == whole
    assert found["requested"].keys() == {*OPTIONS["metrics"]}
    assert None not in found["requested"].values()
    assert found["intervals"]["ndcg_at_k(k=10)"]["low"] is not None
    assert len(found["queries"]["lowest"]) == 20


def test_a_cutoff_that_is_not_usual_and_no_cutoffs_at_all_for_lists(tmp_path: Path) -> None:
    body = written(tmp_path / "data", table())
    body["input"]["cutoffs"] = [4, 2]
    whole = said(with_columns(json.dumps(body).encode(), read_data(*asked(body, 1 << 30))))
    assert folded(body, tmp_path) == whole
    assert whole["input"]["cutoffs"] == [4, 2]


READ: DataFacts = {"uri": "/data", "format": "csv", "rows": 0, "files": 1, "bytes": 1, "digest": ""}


def part(rows: pa.Table) -> NewEvaluation:
    given = {
        "kind": "ranking",
        "query_ids": rows["session"].to_pylist(),
        "relevance": rows["grade"].to_pylist(),
        "scores": rows["risk"].to_pylist(),
    }
    request = parse_value({"input": given, "options": OPTIONS}, EvaluationRequest)
    return with_data(request.to_domain(), {**READ, "rows": rows.num_rows})


def in_parts(rows: pa.Table, cuts: Sequence[int], order: Sequence[int], folder: Path, budget: int) -> Json:
    bounds = [0, *cuts, rows.num_rows]
    with closing(QueryFolding(budget, folder)) as whole:
        for place in order:
            one = rows.slice(bounds[place], bounds[place + 1] - bounds[place])
            if not one.num_rows:
                continue
            if place % 2:
                whole.add(part(one))
            else:
                state = QueryFolding(0, None)
                state.add(part(one))
                whole.merge(pickle.loads(pickle.dumps(state)))  # noqa: S301 - its own
        return said(whole.finish({**READ, "rows": whole.rows}))


@pytest.mark.slow
def test_random_splits_and_orders_say_the_same(tmp_path: Path) -> None:
    random = np.random.default_rng(9)
    rows = table("both")
    expected = said(part(rows))
    for budget in (0, 1 << 14, 1 << 20):
        for _ in range(3):
            cuts = np.sort(random.integers(0, ROWS, 6)).tolist()
            shuffled = rows.take(random.permutation(ROWS))
            found = in_parts(shuffled, cuts, random.permutation(7).tolist(), tmp_path, budget)
            found["input"]["data"]["rows"] = ROWS
            assert found == {**expected, "input": {**expected["input"], "data": {**READ, "rows": ROWS}}}
    assert not [*tmp_path.iterdir()]


def test_faults_of_rows_are_told_by_their_place_among_all(tmp_path: Path) -> None:
    body = written(tmp_path / "data", table())
    wrong = pa.table({"session": np.array([1, 2]), "grade": [0.0, -1.0], "risk": [0.0, 0.0]})
    pq.write_table(wrong, tmp_path / "data" / "9.parquet")
    with pytest.raises(InvalidInput, match=f"relevance, row {ROWS + 1} of those read: expected a number between 0"):
        folded(body, tmp_path)
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


def test_what_is_asked_and_cannot_be_given_is_known_before_all_is_read(tmp_path: Path) -> None:
    body = written(tmp_path / "data", table())
    body["options"] = {"metrics": ["recall@cat"]}
    new = with_columns(json.dumps(body).encode(), read_data(*asked(body, 1 << 30)))
    with (
        closing(QueryFolding(MEMORY, tmp_path)) as whole,
        pytest.raises(InvalidExpression, match="no meaning for ranking"),
    ):
        whole.add(new)


def test_a_fault_while_files_are_closed_leaves_none_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: SpilledRun) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(SpilledRun, "close", fail)
    fold = QueryFolding(MEMORY, tmp_path)
    assert len([*tmp_path.iterdir()]) == 1
    with pytest.raises(OSError, match="no space"):
        fold.close()
    assert [*tmp_path.iterdir()] == []


def test_too_many_queries_and_queries_that_are_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "_ALWAYS", 140)
    body = written(tmp_path / "data", table())
    with pytest.raises(TooLarge, match="at most 140 queries"):
        folded(body, tmp_path)
    monkeypatch.setattr(joins, "_ALWAYS", 20)
    with pytest.raises(TooLarge, match=r"at most 20 items of a query .* got more of '"):
        folded(body, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("ids", ["numbers", "both"])
@pytest.mark.parametrize("parts", [1, 3])
def test_parts_that_are_too_large_are_divided_again(
    ids: str, parts: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only a query that is too large by itself is refused."""
    rows = table(ids)
    largest = max(one["counts"] for one in rows["session"].value_counts().to_pylist())
    body = written(tmp_path / "data", rows)
    whole = said(with_columns(json.dumps(body).encode(), read_data(*asked(body, 1 << 30))))
    monkeypatch.setattr(joins, "_PARTS", parts)
    monkeypatch.setattr(joins, "_QUERY_BYTES", 1)
    monkeypatch.setattr(joins, "_ALWAYS", largest)
    assert folded(body, tmp_path) == whole
    assert [one.name for one in tmp_path.iterdir()] == ["data"]


def test_a_query_that_is_too_long_is_told_before_any_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, looked = table(), []
    largest = max(one["counts"] for one in rows["session"].value_counts().to_pylist())
    monkeypatch.setattr(joins, "_PARTS", 2)
    monkeypatch.setattr(joins, "_ALWAYS", largest - 1)
    # While items come it is not known, nor when parts are divided for the first time.
    monkeypatch.setattr(joins, "_COUNTED", 1)
    monkeypatch.setattr(joins, "_looked_at", lambda part, **_: looked.append(part))
    with pytest.raises(TooLarge, match=f"at most {largest - 1} items of a query .* got more of '"):
        folded(written(tmp_path / "data", rows), tmp_path)
    assert not looked


def test_a_query_that_is_too_long_is_told_while_items_come(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joins, "_ALWAYS", 300)
    monkeypatch.setattr(joins, "_PARTS", 8)
    monkeypatch.setattr(joins, "_COUNTED", 5)
    random = np.random.default_rng(4)
    # A tenth of the items is of one query.
    ids = np.where(random.random(ROWS * 5) < 0.1, 7, random.integers(10, 4000, ROWS * 5))
    done: list[int] = []

    def add(divided: joins.DividedQueries) -> None:
        for some in np.split(ids, 100):
            divided.add((some, {"relevance": np.ones(some.size), "score": np.ones(some.size)}))
            done.extend(some.tolist())

    with closing(joins.DividedQueries(4096, tmp_path)) as divided, pytest.raises(TooLarge, match="got more of '7'"):
        add(divided)
    # No more came than it took to see which parts are too large, and to count again.
    assert 300 < done.count(7) < 1000
    assert len(done) < ids.size


def test_dividing_again_takes_no_memory_for_queries(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which there may be more than allowed, all of them in one part."""
    monkeypatch.setattr(joins, "_ALWAYS", 1000)
    monkeypatch.setattr(joins, "_PARTS", 1)
    ids = np.random.default_rng(5).permutation(200_000)
    with closing(joins.DividedQueries(1 << 20, tmp_path)) as divided:
        for some in np.split(ids, 200):
            divided.add((some, {"relevance": np.ones(some.size), "score": np.ones(some.size)}))
        tracemalloc.start()
        with pytest.raises(TooLarge, match="at most 16384 queries"):
            divided.looked_at([], tmp_path, None)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < 4 << 20


@pytest.mark.parametrize("most", [1, 4, 50])
def test_how_often_keys_come_is_never_said_too_high(most: int) -> None:
    random = np.random.default_rng(most)
    keys = (40 * random.random(3000) ** 4).astype(np.uint64)
    found = Frequent(most)
    for place, some in enumerate(np.split(keys, 30)):
        found.add(some)
        so_far = np.bincount(keys[: 100 * (place + 1)].astype(np.int64))
        for times in range(0, int(so_far.max()), 25):
            surely = set(found.beyond(times).tolist())
            assert surely <= set(np.flatnonzero(so_far > times).tolist())
            assert surely >= set(np.flatnonzero(so_far - so_far.sum() / (most + 1) > times).tolist())


def test_no_items(tmp_path: Path) -> None:
    with closing(QueryFolding(MEMORY, tmp_path)) as whole, pytest.raises(InvalidInput, match="at least one row"):
        whole.finish(READ)
