"""Ranked items of queries, over HTTP: what comes in, what is answered at once and later, what is refused."""

import gzip
import io
import json
import re
from pathlib import Path
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
        assert answer["intervals"][f"ndcg_at_k(k={k})"]["method"] == "hall_t"
    assert answer["metrics"]["prevalence_insensitive"].keys() == {"query_auc"}
    assert answer["metrics"]["at_balanced_prevalence"] == {}
    assert answer["input"]["n_samples"] == QUERIES
    assert answer["input"]["rows"] == QUERIES * ITEMS
    assert answer["input"]["queries_without_relevant_items"] == 2
    assert "queries_without_relevant_items" in [finding["code"] for finding in answer["findings"]]


MEASURES = [
    *("precision_at_k(k=5)", "mean_average_precision", "mean_reciprocal_rank(k=3)", "f1_at_k(k=5)", "bpref"),
    *("rank_biased_precision", "ndcg", "expected_reciprocal_rank", "judged_at_k(k=5)"),
]


def test_relevance_from_a_grade(client: httpx.Client) -> None:
    """Where relevance is yes or no it is what the same grades are as 0 and 1; gains keep the grades."""
    options = {"metrics": MEASURES}
    graded = compute(client, SOURCE, **options)["requested"]
    found = compute(client, SOURCE | {"relevant_from": 2}, **options)
    binary = SOURCE | {"relevance": [float(grade >= 2) for grade in SOURCE["relevance"]]}
    expected = compute(client, binary, **options)
    assert found["input"]["relevant_from"] == 2.0
    assert found["input"]["relevant_items"] == expected["input"]["relevant_items"] == sum(binary["relevance"])
    for name in MEASURES[:6]:
        assert found["requested"][name] == expected["requested"][name] != graded[name]
    assert found["requested"]["ndcg"] == graded["ndcg"]
    kept = keep(client, SOURCE | {"relevant_from": 2})
    again = compute(client, SOURCE | {"relevant_from": 2}, **options, intervals="all")
    assert kept["metrics"]["prevalence_sensitive"]["mean_average_precision"] == expected["requested"][MEASURES[1]]
    # The share of judged items is about the judgements and not about who ranked: it has no limits.
    assert again["intervals"].keys() >= {*MEASURES[:-1]}
    assert again["requested"]["judged_at_k(k=5)"] == 1.0


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
    value = next(one["value"] for one in board["items"] if one["model"]["name"] == "bad")
    rule = {"metric": "ndcg_at_k(k=10)", "min": value - 0.001}
    client.put("/v1/gates/ranked", json={"rules": [rule]}).raise_for_status()
    checked = client.post("/v1/gates/ranked/checks", json={"evaluation": bad["id"]}, headers={"Accept": "text/plain"})
    said = " ".join(checked.text.split())
    assert re.search(r"About [\d,]+ queries instead of \d+ would settle it", said)
    assert re.search(r"SETTLE about [\d,]+ queries for ndcg_at_k", said)


TREC = Path(__file__).parents[1] / "data" / "trec_eval"
# Names of trec_eval (9.0), and by how much more it has where it counts queries without relevant items as 0.
NAMES = {
    "map": "mean_average_precision",
    "Rprec": "r_precision",
    "recip_rank": "mean_reciprocal_rank",
    "bpref": "bpref",
    "ndcg": "ndcg",
    **{f"P_{k}": f"precision_at_k(k={k})" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"recall_{k}": f"recall_at_k(k={k})" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"ndcg_cut_{k}": f"ndcg_at_k(k={k})" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"map_cut_{k}": f"average_precision_at_k(k={k})" for k in (5, 10, 15, 20, 30, 100, 200, 500, 1000)},
    **{f"success_{k}": f"hit_rate_at_k(k={k})" for k in (1, 5, 10)},
}


def trec_rows(name: str) -> list[list[str]]:
    return [line.split() for line in gzip.decompress((TREC / f"{name}.gz").read_bytes()).decode().splitlines()]


def trec_tables() -> Json:
    """The judgements and the run of trec_eval's own test; it breaks no ties, as these scores have none."""
    judged = list(trec_rows("qrels.test"))
    found = list(trec_rows("results.trunc"))
    return {
        "kind": "ranking",
        "judgements": {
            "query_ids": [row[0] for row in judged],
            "item_ids": [row[2] for row in judged],
            "relevance": [max(int(row[3]), 0) for row in judged],
        },
        "retrieved": {
            "query_ids": [row[0] for row in found],
            "item_ids": [row[2] for row in found],
            "scores": [float(row[4]) for row in found],
        },
    }


def test_judgements_and_a_run_give_what_trec_eval_says_of_them(client: httpx.Client) -> None:
    source = trec_tables()
    body = {"input": source, "options": {"metrics": [*NAMES.values()]}}
    answer = client.post("/v1/metrics/compute", json=body).json()
    said = {row[0]: float(row[2]) for row in trec_rows("out.test.aqc") if row[1] == "all" and row[0] in NAMES}
    assert said.keys() == NAMES.keys()
    for theirs, ours in NAMES.items():
        assert answer["requested"][ours] == pytest.approx(said[theirs], abs=5.1e-5), theirs
    assert answer["input"]["queries_without_retrieved_items"] == 1
    judged, found = source["judgements"], source["retrieved"]
    pairs = [{*zip(one["query_ids"], one["item_ids"], strict=True)} for one in (judged, found)]
    assert answer["input"]["not_retrieved"] == len(pairs[0] - pairs[1])
    assert answer["input"]["unjudged"] == len(pairs[1] - pairs[0])
    codes = [finding["code"] for finding in answer["findings"]]
    assert {"queries_without_retrieved_items", "unjudged_items"} <= {*codes}


def test_tables_are_sliced_and_refused_in_other_processes(client: httpx.Client) -> None:
    source = trec_tables()
    site = ["AB"[int(query) % 2] for query in source["judgements"]["query_ids"]]
    body = {"input": source | {"attributes": {"site": site}}, "by": ["site"], "metrics": ["ndcg"], "minimum_samples": 1}
    answer = client.post("/v1/slices", json=body)
    assert answer.status_code == 200, answer.text
    assert [one["where"]["site"] for one in answer.json()["slices"]] == ["A", "B"]
    problem = check_problem(client.post("/v1/curves/roc", json={"input": source}), 422, "not_for_this_kind")
    assert problem["errors"][0]["pointer"] == "/input/kind"


def test_what_was_not_retrieved_has_no_place(client: httpx.Client) -> None:
    """Five retrieved, the relevant one not."""
    for column, values in (("scores", [0.9, 0.8, 0.7, 0.6, 0.5, None]), ("ranks", [1, 2, 3, 4, 5, None])):
        source = {"kind": "ranking", "query_ids": ["q"] * 6, "relevance": [0, 0, None, 0, 0, 1], column: values}
        asked = ["mean_reciprocal_rank", "hit_rate_at_k(k=10)", "ndcg_at_k(k=10)", "mean_rank"]
        answer = client.post("/v1/metrics/compute", json={"input": source, "options": {"metrics": asked}}).json()
        assert [answer["requested"][name] for name in asked] == [0.0, 0.0, 0.0, None]
        assert {"metric": "mean_rank", "code": "infinite"}.items() <= next(
            gap for gap in answer["undefined"] if gap["metric"] == "mean_rank"
        ).items()
        assert (answer["input"]["not_retrieved"], answer["input"]["unjudged"]) == (1, 1)
        (unjudged,) = (one["message"] for one in answer["findings"] if one["code"] == "unjudged_items")
        assert unjudged.startswith("20.0 % of the retrieved items were not judged")
        assert "mean_rank" not in answer["queries"]["spread"]


def test_one_table_is_the_same_as_two(client: httpx.Client) -> None:
    """Also stored, read again, and compared with a run that retrieved other items."""
    source = trec_tables()
    judged, found = source["judgements"], source["retrieved"]
    table: dict[tuple[str, str], list[Any]] = {
        (query, item): [grade, None]
        for query, item, grade in zip(*(judged[name] for name in ("query_ids", "item_ids", "relevance")), strict=True)
    }
    for query, item, score in zip(*(found[name] for name in ("query_ids", "item_ids", "scores")), strict=True):
        table.setdefault((query, item), [None, None])[1] = score
    together = {
        "kind": "ranking",
        "query_ids": [query for query, _ in table],
        "relevance": [grade for grade, _ in table.values()],
        "scores": [score for _, score in table.values()],
    }
    kept, other = keep(client, together), keep(client, source)
    assert kept["metrics"] == other["metrics"]
    assert kept["queries"] == other["queries"]
    again = client.get(f"/v1/evaluations/{kept['id']}").json()
    assert (again["metrics"], again["input"]) == (kept["metrics"], kept["input"])
    fewer = {**found, **{name: found[name][::2] for name in ("query_ids", "item_ids", "scores")}}
    half = keep(client, {**source, "retrieved": fewer})
    answer = compare(client, kept["id"], half["id"], metrics=["recall_at_k(k=100)"])
    assert answer["design"]["paired"] is True
    # Queries that were not judged say nothing.
    more = {**found, "query_ids": ["x", *found["query_ids"]], "item_ids": ["x", *found["item_ids"]]}
    more["scores"] = [1.0, *found["scores"]]
    answer = compute(client, {**source, "retrieved": more})
    assert answer["metrics"] == kept["metrics"]
    assert answer["input"]["queries_without_judgements"] == 1
    said = {finding["code"]: finding["message"] for finding in answer["findings"]}
    assert said["queries_without_judgements"].startswith("Items were retrieved for 1 query of which none was judged.")


@pytest.mark.parametrize("form", ["csv", "parquet"])
def test_files_have_missing_values_where_nothing_was_retrieved_or_judged(client: httpx.Client, form: str) -> None:
    query, grades, ranks = ["a", "a", "a", "b"], [None, 0.0, 2.0, 1.0], [1.0, 2.0, None, None]
    data = io.BytesIO()
    if form == "csv":
        data.write(b"query_id,relevance,rank\na,,1\na,0,2\na,2,\nb,1,\n")
    else:
        pq.write_table(pa.table({"query_id": query, "relevance": grades, "rank": ranks}), data)
    reply = client.post(
        "/v1/metrics/compute",
        data={"evaluation": json.dumps({"input": {"kind": "ranking"}})},
        files={"data": ("items", data.getvalue(), "application/octet-stream")},
    )
    assert reply.status_code == 200, reply.text
    source = {"kind": "ranking", "query_ids": query, "relevance": grades, "ranks": ranks}
    assert reply.json()["metrics"] == compute(client, source)["metrics"]


@pytest.mark.parametrize(
    ("tables", "pointer", "code"),
    [
        ({"retrieved": None}, "/input/retrieved", "missing_field"),
        ({"judgements": None}, "/input/judgements", "missing_field"),
        ({"relevance": [1.0]}, "/input/relevance", "one_of"),
        ({"retrieved": {"query_ids": ["a"], "item_ids": ["b"]}}, "/input/retrieved/scores", "missing_field"),
        (
            {"retrieved": {"query_ids": ["a"] * 3, "item_ids": ["b", "c", "b"], "ranks": [1, 2, 3]}},
            "/input/retrieved/item_ids/2",
            "duplicate_item",
        ),
        (
            {"judgements": {"query_ids": ["1", "1"], "item_ids": [7, 7], "relevance": [0, 1]}},
            "/input/judgements/item_ids/1",
            "duplicate_item",
        ),
        (
            {"judgements": {"query_ids": ["a"], "item_ids": ["b"], "relevance": [None]}},
            "/input/judgements/relevance/0",
            "not_a_number",
        ),
    ],
)
def test_what_are_no_judgements_with_a_run(client: httpx.Client, tables: Json, pointer: str, code: str) -> None:
    source = {
        "kind": "ranking",
        "judgements": {"query_ids": ["a"], "item_ids": ["b"], "relevance": [1]},
        "retrieved": {"query_ids": ["a"], "item_ids": ["b"], "scores": [1]},
        **tables,
    }
    fault = refused(client, {name: one for name, one in source.items() if one is not None})
    assert (fault["pointer"], fault["code"]) == (pointer, code)


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
        ({"query_ids": None}, "/input/query_ids", "missing_field"),
        (
            {"relevance": [None] * (QUERIES * ITEMS), "scores": [None] * (QUERIES * ITEMS)},
            "/input/relevance/0",
            "missing_value",
        ),
        ({"relevance": ["a"] * (QUERIES * ITEMS)}, "/input/relevance/0", "not_a_number"),
        ({"query_ids": [], "relevance": [], "scores": []}, "/input/query_ids", "no_samples"),
        ({"query_ids": [1.5] * (QUERIES * ITEMS)}, "/input/query_ids/0", "not_an_id"),
        ({"cutoffs": [0]}, "/input/cutoffs/0", "out_of_range"),
        ({"relevant_from": 0}, "/input/relevant_from", "out_of_range"),
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
    cards = client.get("/v1/metrics", params={"task": "ranking", "fields": "inputs"}).json()["items"]
    assert len(cards) == 18
    assert {card["inputs"] for card in cards} == {"queries"}
