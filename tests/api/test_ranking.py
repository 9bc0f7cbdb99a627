"""Ranked items of queries, over HTTP: what comes in, what is answered at once and later, what is refused."""

import io
import json
from typing import Any

import httpx
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.api.answers import Json, check_problem, compute, create, evaluation, refused
from tests.api.decisions import compare
from tests.witnesses import sk

QUERIES, ITEMS = 40, 12


def problem(seed: int = 0, noise: float = 1.0) -> tuple[Any, Any, Any]:
    """Grades that are the same whatever the seed, and scores that follow them more or less."""
    grades = np.random.default_rng(11).integers(0, 4, (QUERIES, ITEMS)) * (
        np.random.default_rng(12).random((QUERIES, ITEMS)) < 0.4
    )
    grades[3] = 0
    scores = grades + np.random.default_rng(seed).normal(0, noise, grades.shape)
    return np.repeat([f"q{code}" for code in range(QUERIES)], ITEMS), grades.ravel(), scores.ravel().round(3)


def source_of(seed: int = 0, noise: float = 1.0, **members: Any) -> Json:
    ids, grades, scores = problem(seed, noise)
    return {
        "kind": "ranking",
        "query_ids": ids.tolist(),
        "relevance": grades.tolist(),
        "scores": scores.tolist(),
    } | members


SOURCE = source_of()


def keep(client: httpx.Client, source: Json, **members: Any) -> Json:
    return create(client, evaluation(input=source) | members)


def expected_ndcg(k: int, seed: int = 0, noise: float = 1.0) -> float:
    _, grades, scores = problem(seed, noise)
    tables = grades.reshape(QUERIES, ITEMS), scores.reshape(QUERIES, ITEMS)
    some = tables[0].any(axis=1)
    return float(sk.ndcg_score(tables[0][some], tables[1][some], k=k))


def test_the_report_has_every_metric_at_every_cutoff(client: httpx.Client) -> None:
    answer = compute(client, SOURCE)
    sensitive = answer["metrics"]["prevalence_sensitive"]
    for k in (1, 3, 5, 10, 20, 100):
        assert sensitive[f"ndcg_at_k(k={k})"] == pytest.approx(expected_ndcg(k), rel=1e-12)
        assert answer["intervals"][f"ndcg_at_k(k={k})"]["method"] == "t"
    assert answer["metrics"]["prevalence_insensitive"].keys() == {"query_auc"}
    assert answer["metrics"]["at_balanced_prevalence"] == {}
    assert answer["input"]["n_samples"] == QUERIES
    assert answer["input"]["rows"] == QUERIES * ITEMS
    assert answer["input"]["queries_without_relevant_items"] == 2
    assert "queries_without_relevant_items" in [finding["code"] for finding in answer["findings"]]


def test_values_of_single_queries(client: httpx.Client) -> None:
    queries = compute(client, SOURCE)["queries"]
    assert queries["lowest_by"] == "ndcg_at_k(k=10)"
    values = [one["value"] for one in queries["lowest"]]
    assert values == sorted(values)
    assert len(values) == 20
    spread = queries["spread"]["ndcg_at_k(k=10)"]
    assert spread["lowest"] == values[0]
    assert spread["lowest"] <= spread["quartile_1"] <= spread["median"] <= spread["quartile_3"] <= spread["highest"]
    assert "q3" not in [one["query_id"] for one in queries["lowest"]]


def test_cutoffs_and_expressions(client: httpx.Client) -> None:
    asked = ["ndcg_at_k(k=7, gain=exponential)", "mrr", "mean(ndcg_at_k(k=5), mean_reciprocal_rank)"]
    answer = client.post(
        "/v1/metrics/compute",
        json={"input": {**SOURCE, "cutoffs": [2, 7]}, "options": {"metrics": asked, "intervals": "all"}},
    ).json()
    names = answer["metrics"]["prevalence_sensitive"]
    assert "ndcg_at_k(k=2)" in names
    assert "ndcg_at_k(k=10)" not in names
    assert list(answer["requested"]) == asked
    assert all(value is not None for value in answer["requested"].values())
    assert all(
        answer["intervals"][text]["low"] < answer["requested"][text] < answer["intervals"][text]["high"]
        for text in asked
    )


def test_ranks_are_scores_turned(client: httpx.Client) -> None:
    ids, grades, scores = problem()
    ranks = np.argsort(np.argsort(-scores.reshape(QUERIES, ITEMS), axis=1), axis=1) + 1
    source = {
        "kind": "ranking",
        "query_ids": ids.tolist(),
        "relevance": grades.tolist(),
        "ranks": ranks.ravel().tolist(),
    }
    assert compute(client, source)["metrics"] == compute(client, SOURCE)["metrics"]


def test_what_is_kept_is_read_again(client: httpx.Client) -> None:
    kept = keep(client, SOURCE)
    again = client.get(f"/v1/evaluations/{kept['id']}").json()
    assert again["metrics"] == kept["metrics"]
    assert again["queries"] == kept["queries"]
    unkept = keep(client, SOURCE, options={"retain": "none"})
    again = client.get(f"/v1/evaluations/{unkept['id']}").json()
    assert again["metrics"] == kept["metrics"]
    assert again["queries"] == kept["queries"]


def test_runs_are_paired_by_query(client: httpx.Client) -> None:
    good, bad = keep(client, source_of(1, 0.5)), keep(client, source_of(2, 3.0))
    answer = compare(client, good["id"], bad["id"], metrics=["ndcg_at_k(k=10)", "mean_reciprocal_rank"])
    assert answer["design"]["paired"] is True
    (difference,) = answer["metrics"]["ndcg_at_k(k=10)"]["differences"]
    assert abs(difference["difference"]) == pytest.approx(expected_ndcg(10, 1, 0.5) - expected_ndcg(10, 2, 3.0))
    assert difference["p_value"] < 0.01


def test_gates_leaderboards_and_lists(client: httpx.Client) -> None:
    good = keep(client, source_of(1, 0.5), dataset={"name": "ranked"}, model={"name": "good", "version": "1"})
    bad = keep(client, source_of(2, 3.0), dataset={"name": "ranked"}, model={"name": "bad", "version": "1"})
    board = client.get("/v1/leaderboard", params={"dataset": "ranked", "metric": "ndcg_at_k(k=10)"}).json()
    assert [entry["model"]["name"] for entry in board["items"]] == ["good", "bad"]
    listed = client.get("/v1/evaluations", params={"dataset": "ranked", "sort": "-ndcg_at_k(k=10)"}).json()["items"]
    assert [one["id"] for one in listed] == [good["id"], bad["id"]]
    reply = client.get("/v1/evaluations", params={"sort": "ndcg_at_k(k=11)"})
    assert check_problem(reply, 422, reply.json()["code"])["errors"][0]["code"] == "not_stored"


@pytest.mark.parametrize("form", ["csv", "parquet", "arrow", "npz"])
def test_files(client: httpx.Client, form: str) -> None:
    ids, grades, scores = problem()
    table = pa.table({"query_id": ids, "relevance": grades, "score": scores})
    data = io.BytesIO()
    if form == "csv":
        rows = zip(ids, grades, scores, strict=True)
        data.write("\n".join(["query_id,relevance,score", *(",".join(map(str, row)) for row in rows)]).encode())
    elif form == "parquet":
        pq.write_table(table, data)
    elif form == "arrow":
        with pa.ipc.new_file(data, table.schema) as writer:
            writer.write_table(table)
    else:
        np.savez(data, query_id=ids, relevance=grades, score=scores)
    request = {"input": {"kind": "ranking", "cutoffs": [5]}}
    reply = client.post(
        "/v1/metrics/compute",
        data={"evaluation": json.dumps(request)},
        files={"data": ("items", data.getvalue(), "application/octet-stream")},
    )
    assert reply.status_code == 200, reply.text
    found = reply.json()["metrics"]["prevalence_sensitive"]["ndcg_at_k(k=5)"]
    assert found == pytest.approx(expected_ndcg(5), rel=1e-12)


def test_large_bodies(client: httpx.Client) -> None:
    ids, grades, scores = problem()
    times = 60
    many = [f"{name}-{number}" for number in range(times) for name in ids]
    source = {
        "kind": "ranking",
        "query_ids": many,
        "relevance": grades.tolist() * times,
        "scores": scores.tolist() * times,
    }
    answer = compute(client, source)
    assert answer["input"]["n_samples"] == QUERIES * times
    assert answer["metrics"]["prevalence_sensitive"]["ndcg_at_k(k=10)"] == pytest.approx(expected_ndcg(10), rel=1e-12)


@pytest.mark.parametrize(
    ("members", "pointer", "code"),
    [
        ({"scores": None}, "/input/scores", "missing_field"),
        ({"ranks": [1.0] * (QUERIES * ITEMS)}, "/input/ranks", "one_of"),
        ({"scores": [1.0]}, "/input/scores", "wrong_length"),
        ({"relevance": [-1.0] + [0.0] * (QUERIES * ITEMS - 1)}, "/input/relevance/0", "out_of_range"),
        ({"relevance": [0.0, 1001.0] + [0.0] * (QUERIES * ITEMS - 2)}, "/input/relevance/1", "out_of_range"),
        ({"relevance": ["a"] * (QUERIES * ITEMS)}, "/input/relevance/0", "not_a_number"),
        ({"query_ids": [], "relevance": [], "scores": []}, "/input/query_ids", "no_samples"),
        ({"query_ids": [1.5] * (QUERIES * ITEMS)}, "/input/query_ids/0", "not_an_id"),
        ({"cutoffs": [0]}, "/input/cutoffs/0", "out_of_range"),
        ({"cutoffs": []}, "/input/cutoffs", "wrong_length"),
    ],
)
def test_what_is_no_ranking(client: httpx.Client, members: Json, pointer: str, code: str) -> None:
    fault = refused(client, {**SOURCE, **members})
    assert fault["pointer"] == pointer
    assert fault["code"] == code


@pytest.mark.parametrize("text", ["recall", "h_mean", "roc_auc", "ndcg_at_k(k=0)", "ndcg_at_k(k=1.5)", "ndcg_at_k@a"])
def test_expressions_that_make_no_sense(client: httpx.Client, text: str) -> None:
    reply = client.post("/v1/metrics/compute", json={"input": SOURCE, "options": {"metrics": [text]}})
    assert check_problem(reply, 422, reply.json()["code"])["errors"][0]["pointer"].startswith("/options/metrics/0")


def test_cards_of_rankings(client: httpx.Client) -> None:
    cards = client.get("/v1/metrics", params={"task": "ranking"}).json()["items"]
    assert len(cards) == 12
    assert {card["inputs"] for card in cards} == {"queries"}
